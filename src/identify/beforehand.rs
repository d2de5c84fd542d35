//! Trees whose products are joined before c, tried with few adders before any other tree. Two grid rules of one addition
//! imitate such a group in nearly every dot, so a search that begins without it spends its budget on the imitation.
//! What these trees cost is not counted: if none fits, the search goes on as if they had not been tried.

use mxprobe_api::Error;

use super::{
    candidates::scored::{self, Scored},
    fitting::{nodes, refine::refine, search},
    outcome::Outcome,
    run::{NEARLY, NEARLY_AT_FIRST, ONE_SHAPE, Search},
    tree::{
        expression::Expression,
        groups,
        symmetric::{self, Apart},
    },
};

impl Search<'_, '_> {
    /// Tries a tree with an addition around the products that are joined before c meets them, then with the groups that
    /// exchanges of products show in the dots left, and then with the sums of those joined before c. All additions on one
    /// level share an adder.
    ///
    /// # Errors
    /// Returns the error of the device if it fails.
    pub(super) fn joined_beforehand(
        &mut self,
        shape: &Expression,
        of: &[usize],
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        // Scales have readings with groups of their own.
        let joined = groups::joined(shape, of).into_iter().next();
        let Some(joined) = joined.filter(|_| self.subject().id().block_scale().is_none()) else { return Ok(None) };
        let spent = self.experiments.spent;
        let mut candidates: Vec<Scored> = self.with_few_adders_told(&joined).into_iter().collect();
        let mut groups = Vec::new();
        if let Some(best) = candidates.first().filter(|best| best.explained < self.experiments.dots.len()) {
            groups = self.groups_in_dots_left(&joined, &best.hypothesis, 0)?;
        }
        candidates.extend(groups.iter().filter_map(|tree| self.with_few_adders_told(tree)));
        let mut found = self.refined_beforehand(candidates)?;
        if found.is_none() {
            let joined = groups.iter().map(|tree| tree.gathered(&|_| true, 0, usize::MAX));
            let candidates: Vec<Scored> = joined.filter_map(|tree| self.with_few_adders_told(&tree)).collect();
            found = self.refined_beforehand(candidates)?;
        }
        self.experiments.spent = spent;
        self.settle(found, tried)
    }

    /// Determines the adders of a tree, one for each level, if they explain most of the dots.
    fn with_few_adders_told(&mut self, tree: &Expression) -> Option<Scored> {
        self.readings += 1;
        let all = self.experiments.dots.len();
        let bits = search::fraction_bits(&self.experiments);
        let tied = symmetric::tied(tree, Apart::Neither);
        let text = tied.text(self.subject().k());
        let stage = self.experiments.at_most(ONE_SHAPE);
        let hypothesis = nodes::by_adders(&mut self.experiments, tied.expression, bits).hypothesis;
        self.experiments.back_to(stage);
        let hypothesis = hypothesis?;
        let explained = all - scored::unexplained(&mut self.experiments, &hypothesis).len();
        (self.progress)(&format!("{text}: explains {explained} of {all} dots with an adder for each level"));
        (explained * 100 >= all * NEARLY_AT_FIRST).then_some(Scored { hypothesis, explained })
    }

    /// Changes values of the candidate that explains the most dots, if these are nearly all. Returns it if it then explains
    /// all of them, but for the bits of NaN.
    fn refined_beforehand(&mut self, mut candidates: Vec<Scored>) -> Result<Option<Scored>, Error> {
        let all = self.experiments.dots.len();
        candidates.retain(|scored| scored.explained * 100 >= all * NEARLY);
        candidates.sort_by_key(|scored| std::cmp::Reverse(scored.explained));
        candidates.truncate(1);
        let stage = self.experiments.at_most(ONE_SHAPE);
        let found = refine(&mut self.experiments, candidates, 1, 0);
        self.experiments.back_to(stage);
        let Some(found) = found else { return Ok(None) };
        let wrong = scored::unexplained(&mut self.experiments, &found.hypothesis);
        Ok((wrong.is_empty() || self.only_nan(&found, &wrong)?).then_some(found))
    }
}
