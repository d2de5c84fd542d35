//! Trees tried with few adders before any other: chains, and trees whose products are joined before c. Two grid rules of
//! one addition imitate such a group in nearly every dot, so a search that begins without it spends its budget on the
//! imitation; and the steps of a chain, determined one by one, imitate each other. What these trees cost is not counted: if
//! none fits, the search goes on as if they had not been tried.

use mxprobe_api::{Error, Format, Rounding};
use mxprobe_models::{Adder, NanRules, Output};

use super::{
    candidates::{
        hypothesis::float,
        nan,
        scored::{self, Scored},
    },
    fitting::{
        climb::Domain,
        nodes,
        refine::{climbed, refine},
        search,
    },
    outcome::Outcome,
    run::{NEARLY, NEARLY_AT_FIRST, ONE_SHAPE, Search},
    tree::{
        expression::Expression,
        groups,
        skeleton::Skeleton,
        steps,
        symmetric::{self, Apart},
    },
};

/// Per cent of the dots that a chain must explain for its values to be changed before other trees are tried.
const NEARLY_ALL: usize = 99;

/// Of a thousand dots, how many it must explain for a change of one of its values to be completed by a second one.
const ALMOST_ALL: usize = 995;

/// The format whose bits are the upper half of those of f32.
const UPPER_HALF: Format = Format::BF16;

/// Whether the results of a candidate are rounded to f32 and then cut.
fn is_rounded_twice(scored: &Scored) -> bool {
    steps::is_rounded_twice(&scored.hypothesis.skeleton.expression)
}

/// Whether that holds for the first of these candidates.
fn looks_cut(candidates: &[Scored]) -> bool {
    candidates.first().is_some_and(is_rounded_twice)
}

/// Returns a tree with one adder for all additions on one level.
fn by_level(tree: &Expression) -> Skeleton {
    symmetric::tied(tree, Apart::Neither)
}

impl Search<'_, '_> {
    /// Tries trees with few adders. Returns the outcome if one explains every dot.
    ///
    /// # Errors
    /// Returns the error of the device if it fails.
    pub(super) fn beforehand(
        &mut self,
        shape: &Expression,
        of: &[usize],
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        let spent = self.experiments.spent;
        // Scales have readings with groups of their own, which come before more than single values of this tree are changed.
        if self.subject().id().block_scale().is_some() {
            let mut told: Vec<Scored> = self.told_below(shape.untied(), None).into_iter().collect();
            let found = self.climbed_beforehand(&mut told, NEARLY)?;
            self.experiments.spent = spent;
            return self.settle(found, tried);
        }
        // A chain comes first, with one adder for all steps. It may imitate products that are joined before c in all but a
        // few dots, so those come before more than single values of it are changed. One addition of everything is a chain
        // of one step, and is tried again with the other trees.
        let joined = groups::joined(shape, of);
        let is_chain = steps::has_steps_alike(shape);
        let is_one = !joined.is_empty() && shape.adders_by_addition().len() == 1;
        let mut chains = if is_chain || is_one { self.told(&symmetric::tied_to_one(shape), false) } else { Vec::new() };
        let mut found = None;
        // Groups show in the dots that a chain leaves unexplained, too.
        let mut groups = Vec::new();
        if let (Some(joined), Some(chain)) = (joined.first(), chains.first()) {
            (found, groups) = self.grouped_beforehand(joined, &chain.clone(), looks_cut(&chains))?;
        }
        if found.is_none() {
            found = self.climbed_beforehand(&mut chains, NEARLY_ALL)?;
        }
        if let Some(joined) = joined.first().filter(|_| found.is_none()) {
            found = self.joined_beforehand(joined, &groups, looks_cut(&chains))?;
        }
        if found.is_none() && is_chain {
            found = self.refined_beforehand(chains)?;
        }
        self.experiments.spent = spent;
        self.settle(found, tried)
    }

    /// Tries a tree with the groups of products that exchanges show in the dots that a candidate leaves unexplained. Returns
    /// the candidate if one explains all dots, and the trees with groups. `is_cut` is that of [`Search::told`].
    fn grouped_beforehand(
        &mut self,
        joined: &Expression,
        best: &Scored,
        is_cut: bool,
    ) -> Result<(Option<Scored>, Vec<Expression>), Error> {
        let groups = self.groups_in_dots_left(joined, &best.hypothesis, 0)?;
        let candidates = groups.iter().flat_map(|tree| self.told(&by_level(tree), is_cut)).collect();
        Ok((self.refined_beforehand(candidates)?, groups))
    }

    /// Tries a tree with an addition around the products that are joined before c meets them, then with the groups that
    /// exchanges of products show in the dots left, and then with the sums of those joined before c. All additions on one
    /// level share an adder. Trees with groups that were `seen` before have been tried. `is_cut` is that of
    /// [`Search::told`].
    fn joined_beforehand(
        &mut self,
        joined: &Expression,
        seen: &[Expression],
        is_cut: bool,
    ) -> Result<Option<Scored>, Error> {
        let mut candidates = self.told(&by_level(joined), is_cut);
        let is_cut = looks_cut(&candidates);
        let mut groups = Vec::new();
        if let Some(best) = candidates.first() {
            groups = self.groups_in_dots_left(joined, &best.hypothesis, 0)?;
        }
        for tree in groups.iter().filter(|tree| !seen.contains(tree)) {
            candidates.extend(self.told(&by_level(tree), is_cut));
        }
        let found = self.refined_beforehand(candidates)?;
        if found.is_some() {
            return Ok(found);
        }
        let joined: Vec<Expression> = groups.iter().map(|tree| tree.gathered(&|_| true, 0, usize::MAX)).collect();
        let candidates = joined.iter().flat_map(|tree| self.told(&by_level(tree), is_cut)).collect();
        self.refined_beforehand(candidates)
    }

    /// Determines the adders of a tree, if they explain most of the dots. If results look cut to the upper half of f32, or if
    /// they may be and no adder gives them, the same is tried with results that are rounded to f32 and then cut, which cut
    /// results hide but for a few dots; and only that, if another tree explains more dots with them (`is_cut`) and this one
    /// nearly all.
    fn told(&mut self, skeleton: &Skeleton, is_cut: bool) -> Vec<Scored> {
        let all = self.experiments.dots.len();
        let is_cut = is_cut && self.subject().id().d == UPPER_HALF;
        let mut found: Vec<Scored> = Vec::new();
        if is_cut {
            found.extend(self.told_before_a_cut(skeleton));
            if found.first().is_some_and(|first| first.explained * 100 >= all * NEARLY) {
                return found;
            }
        }
        found.extend(self.told_below(skeleton.expression.clone(), None));
        let is_whole = found.iter().any(|found| found.explained == all);
        let cuts = |adder: &Adder| matches!(adder.output, Output::Float { rounding: Rounding::TowardZero, .. });
        let may_be_cut = found.first().is_none_or(|first| cuts(&first.hypothesis.adders[0]));
        if self.subject().id().d == UPPER_HALF && may_be_cut && !is_whole && !is_cut {
            found.extend(self.told_before_a_cut(skeleton));
        }
        scored::best_first(&mut found);
        found
    }

    /// Determines the adders of a tree whose result is rounded to f32 and then cut to its upper half.
    fn told_before_a_cut(&mut self, skeleton: &Skeleton) -> Option<Scored> {
        let cut = float(UPPER_HALF, UPPER_HALF.fraction_bits(), Rounding::TowardZero);
        let nan = NanRules { invalid: nan::seen(&self.experiments, UPPER_HALF).invalid, ..NanRules::default() };
        let tree = steps::rounded_twice(&skeleton.expression);
        self.told_below(tree, Some(Adder::exact("sum", cut, nan)))
    }

    /// Determines the adders of a tree, all but the `last` if that is known, if they explain most of the dots.
    fn told_below(&mut self, tree: Expression, last: Option<Adder>) -> Option<Scored> {
        self.readings += 1;
        let all = self.experiments.dots.len();
        let bits = search::fraction_bits(&self.experiments);
        let stage = self.experiments.at_most(ONE_SHAPE);
        let count = tree.adders_downward().len();
        let told = nodes::by_adders(&mut self.experiments, tree, bits, last);
        self.experiments.back_to(stage);
        let Some(hypothesis) = told.hypothesis else {
            let (known, right) = told.progress;
            (self.progress)(&format!("{known} of {count} adders determined, {right} % of the dots about the next"));
            return None;
        };
        let explained = all - scored::unexplained(&mut self.experiments, &hypothesis).len();
        let text = hypothesis.skeleton.text(self.subject().k());
        (self.progress)(&format!("{text}: explains {explained} of {all} dots with few adders"));
        (explained * 100 >= all * NEARLY_AT_FIRST).then_some(Scored { hypothesis, explained })
    }

    /// Changes single values of the first candidate if it explains so many per cent of the dots, or two together if it
    /// explains almost all. Returns it if it then explains all of them, but for the bits of NaN.
    fn climbed_beforehand(&mut self, candidates: &mut [Scored], per_cent: usize) -> Result<Option<Scored>, Error> {
        let all = self.experiments.dots.len();
        let Some(first) = candidates.first_mut().filter(|first| first.explained * 100 >= all * per_cent) else {
            return Ok(None);
        };
        let stage = self.experiments.at_most(ONE_SHAPE);
        let completing = first.explained * 1_000 >= all * ALMOST_ALL;
        let domain = Domain { completing, ..Domain::whole((0..all).collect()) };
        *first = climbed(&mut self.experiments, first.clone(), &domain);
        self.experiments.back_to(stage);
        let first = first.clone();
        Ok(self.is_whole(&first)?.then_some(first))
    }

    /// Returns whether a candidate explains all dots, but for the bits of NaN.
    fn is_whole(&mut self, scored: &Scored) -> Result<bool, Error> {
        let wrong = scored::unexplained(&mut self.experiments, &scored.hypothesis);
        Ok(wrong.is_empty() || self.only_nan(scored, &wrong)?)
    }

    /// Changes values of the candidate that explains the most dots, if these are nearly all, and of the best of those whose
    /// results are rounded twice, which comes first if it explains hardly fewer. Returns the first that then explains all of
    /// them, but for the bits of NaN.
    fn refined_beforehand(&mut self, mut candidates: Vec<Scored>) -> Result<Option<Scored>, Error> {
        let all = self.experiments.dots.len();
        candidates.retain(|scored| scored.explained * 100 >= all * NEARLY);
        scored::best_first(&mut candidates);
        let is_cut = looks_cut(&candidates);
        let other = candidates.iter().position(|scored| is_rounded_twice(scored) != is_cut);
        let mut order: Vec<Scored> =
            std::iter::once(0).chain(other).filter_map(|at| candidates.get(at).cloned()).collect();
        if let [best, other] = &order[..]
            && is_rounded_twice(other)
            && (best.explained - other.explained) * 100 <= all
        {
            order.reverse();
        }
        for candidate in order {
            let stage = self.experiments.at_most(ONE_SHAPE);
            let found = refine(&mut self.experiments, vec![candidate], 1, 0);
            self.experiments.back_to(stage);
            if let Some(found) = found
                && self.is_whole(&found)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
