//! The search in one tree: its additions are determined one by one, then their values changed until they fit.

use mxprobe_api::Error;

use super::{
    candidates::scored::{self, Scored, keep_better},
    fitting::{nodes, refine::refine, search},
    outcome::Outcome,
    run::{A_LITTLE, NEARLY, NEARLY_AT_FIRST, ONE_SHAPE, Search},
    tree::{
        expression::Expression,
        shapes,
        skeleton::{Role, Skeleton},
    },
};

impl Search<'_, '_> {
    /// Tries trees one after another as [`Search::shape`] does, and adds how far each came to `come`. Returns the outcome
    /// if there is one.
    pub(super) fn each_shape<'t>(
        &mut self,
        shapes: &'t [Expression],
        later: bool,
        come: &mut Vec<((usize, usize), &'t Expression)>,
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        for shape in shapes {
            let (progress, outcome) = self.shape(shape, later, tried)?;
            if outcome.is_some() {
                return Ok(outcome);
            }
            come.push((progress, shape));
        }
        Ok(None)
    }

    /// Determines the additions of a tree one by one and changes their values until they fit, with a smaller budget if
    /// a `later` step comes back to them. If every dot left unexplained then has a result of zero, the same is tried
    /// with sums that begin at +0. Returns how far this came, and the outcome of the attacks if there is one.
    pub(super) fn shape(
        &mut self,
        shape: &Expression,
        later: bool,
        tried: &mut Vec<Scored>,
    ) -> Result<((usize, usize), Option<Outcome>), Error> {
        let before = tried.len();
        let (progress, outcome) = self.shape_as_it_is(shape, later, tried)?;
        if outcome.is_some()
            || tried.len() == before
            || !scored::misses_zeros_alone(&mut self.experiments, tried.last())
        {
            return Ok((progress, outcome));
        }
        for variant in shapes::begun_at_zero(shape) {
            let (_, outcome) = self.shape_as_it_is(&variant, later, tried)?;
            if outcome.is_some() {
                return Ok((progress, outcome));
            }
        }
        Ok((progress, None))
    }

    /// As [`Search::shape`], but for this tree only.
    fn shape_as_it_is(
        &mut self,
        shape: &Expression,
        later: bool,
        tried: &mut Vec<Scored>,
    ) -> Result<((usize, usize), Option<Outcome>), Error> {
        if self.experiments.is_late() {
            return Ok(((0, 0), None));
        }
        self.readings += 1;
        let bits = search::fraction_bits(&self.experiments);
        let stage = self.experiments.at_most(ONE_SHAPE);
        let told = nodes::by_nodes(&mut self.experiments, shape, bits);
        self.experiments.back_to(stage);
        let Some(hypothesis) = told.hypothesis else {
            let count = shape.adders_by_addition().len();
            let tree = Skeleton::numbered(shape.untied(), vec![Role::Inner; count]).text(self.subject().k());
            (self.progress)(&format!("{tree}: {} of {count} additions determined", told.progress.0));
            return Ok((told.progress, None));
        };
        let adders = hypothesis.adders.len();
        let tree = hypothesis.skeleton.text(self.subject().k());
        (self.progress)(&format!("{tree}: fitted addition by addition, with {adders} adders"));
        let all: Vec<usize> = (0..self.experiments.dots.len()).collect();
        let explained = scored::explained(&mut self.experiments, &hypothesis, &all, all.len()).unwrap_or(0);
        let scored = Scored { hypothesis, explained };
        if explained * 100 < all.len() * NEARLY_AT_FIRST {
            tried.push(scored);
            return Ok((told.progress, None));
        }
        let stage = self.experiments.at_most(if later { A_LITTLE } else { ONE_SHAPE });
        // What determining the additions took is not missing here if they explain nearly every dot.
        if explained * 100 >= all.len() * NEARLY {
            self.experiments.at_least(A_LITTLE);
        }
        let scored = refine(&mut self.experiments, vec![scored], 1, 0);
        if later
            && self.experiments.is_late()
            && let Some(scored) = scored.as_ref().filter(|scored| scored.explained * 100 >= all.len() * NEARLY)
        {
            keep_better(&mut self.cut_short, 0, scored.clone());
        }
        self.experiments.back_to(stage);
        let scored = self.refined_around(scored)?;
        Ok((told.progress, self.settle(scored, tried)?))
    }
}
