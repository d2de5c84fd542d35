//! Changes of values of the candidates that came the nearest, beyond those that are tried for every tree.

use std::{collections::HashSet, sync::Arc};

use mxprobe_api::Error;
use mxprobe_models::Adder;

use super::{
    candidates::{
        hypothesis::Hypothesis,
        scored::{self, Scored, spread},
    },
    dots::{around::around, experiments::Limit},
    fitting::{climb::Domain, gathered::gathered, refine::refine, search},
    outcome::Outcome,
    run::{A_LITTLE, NEARLY, NEARLY_AT_FIRST, ONE_SHAPE, PAIRS, Search},
    tree::{
        exchanged,
        expression::Expression,
        guessed::Guessed,
        skeleton::{Role, Skeleton},
        symmetric::{self, Apart},
    },
};
use crate::{
    dots::{Dot, seed_of},
    in_order::InOrder,
};

/// Per cent of all dots that a candidate must explain before two of its values are changed simultaneously.
const ALMOST: usize = 98;
/// Of a thousand dots, how many it must explain for that to be done before any other tree is tried.
const LACKS_LITTLE: usize = 985;

/// The same for that to be done once more when the budget is spent.
const LACKS_NOTHING: usize = 995;

/// The most dots left unexplained in which products are exchanged.
const EXCHANGED: usize = 400;

/// The most dots left unexplained around which others are asked, and how many around each.
const AROUND: usize = 40;
const EACH: usize = 32;

/// Candidates whose adders other trees are given.
const GIVING: usize = 3;

/// Rounds of dots around others after which a candidate that is almost right is changed no more.
const ROUNDS_AROUND: usize = 4;

/// Trees read from exchanges of products that are also tried with few adders.
const TIED: usize = 4;

/// Adders of a tree with one for each level, up to which no single one is tried for all additions but the last.
const FEW_LEVELS: usize = 3;

impl Search<'_, '_> {
    /// Tries the trees that agree with the exchanges of products that change no result: each addition by itself, and
    /// with few adders, because an addition that changes single terms hides those below it. Adds how far each
    /// tree came to `come`. Returns the outcome if there is one.
    pub(super) fn symmetric<'t>(
        &mut self,
        shapes: &'t [Expression],
        come: &mut Vec<((usize, usize), &'t Expression)>,
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        for (at, shape) in shapes.iter().enumerate() {
            let stage = self.experiments.at_most(A_LITTLE);
            let (progress, mut outcome) = self.shape(shape, true, tried)?;
            self.experiments.back_to(stage);
            come.push((progress, shape));
            if outcome.is_none() && at < TIED {
                outcome = self.with_few_adders([shape.clone()], tried)?;
            }
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }

    /// Determines the adders of these trees with few of them, and changes values of those that explain the most dots first:
    /// an adder shared by additions that differ explains many, too. Trees after one that explains every ordinary dot wait
    /// until that has failed.
    pub(super) fn with_few_adders(
        &mut self,
        shapes: impl IntoIterator<Item = Expression>,
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        let ordinary = spread(&self.experiments.ordinary, search::SECOND);
        let of = ordinary.len();
        let mut shapes = shapes.into_iter().peekable();
        while shapes.peek().is_some() {
            let mut beams: Vec<(usize, Vec<Scored>)> = Vec::new();
            while let Some(shape) = shapes.next_if(|_| beams.iter().all(|(top, _)| *top < of)) {
                let stage = self.experiments.at_most(2 * A_LITTLE);
                beams.extend(self.beams_with_few_adders(&shape, &ordinary));
                self.experiments.back_to(stage);
            }
            // Each that explains nearly every ordinary dot has a share of its own, and the others have one together.
            beams.order_by_key(|(top, _)| std::cmp::Reverse(*top));
            let near = beams.partition_point(|(top, _)| top * 1_000 >= of * LACKS_LITTLE);
            let others = beams.split_off(near);
            for beam in beams {
                let stage = self.experiments.at_most(ONE_SHAPE);
                let outcome = self.refined(vec![beam], tried);
                self.experiments.back_to(stage);
                if let Some(outcome) = outcome? {
                    return Ok(Some(outcome));
                }
            }
            let stage = self.experiments.at_most(2 * A_LITTLE);
            let outcome = self.refined(others, tried);
            self.experiments.back_to(stage);
            if let Some(outcome) = outcome? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Determines the adders of a tree whose additions share one, then of the same tree with one for each level, and with
    /// one more for the addition that gives d or for the one that takes c. Returns the candidates of those that explain
    /// most of these ordinary dots, each with the number of them.
    fn beams_with_few_adders(&mut self, shape: &Expression, ordinary: &[usize]) -> Vec<(usize, Vec<Scored>)> {
        let of = ordinary.len();
        let mut seen = HashSet::new();
        let mut beams: Vec<(usize, Vec<Scored>)> = Vec::new();
        let few = [Apart::Neither, Apart::Last, Apart::First].map(|apart| symmetric::tied(shape, apart));
        let but_c = symmetric::tied_but_c_alone(shape);
        // In a tree of few levels, an adder for each is likelier.
        let but_last = if few[0].roles.len() > FEW_LEVELS { symmetric::tied_but_last(shape) } else { None };
        let tied = std::iter::once(symmetric::tied_to_one(shape)).chain(but_c).chain(but_last).chain(few);
        for skeleton in tied.map(Arc::new) {
            if self.experiments.is_late() {
                break;
            }
            if !seen.insert(skeleton.expression.clone()) {
                continue;
            }
            self.readings += 1;
            let beam = search::coarse(&mut self.experiments, &skeleton);
            let top = beam.first().map_or(0, |scored| scored.explained);
            let tree = skeleton.text(self.subject().k());
            (self.progress)(&format!("{tree}: explains {top} of {of} dots of ordinary values"));
            if top * 100 >= of * NEARLY_AT_FIRST {
                beams.push((top, beam));
            }
            if top == of {
                break;
            }
        }
        let best = beams.iter().max_by_key(|(top, _)| *top).and_then(|(_, beam)| beam.first().cloned());
        if let Some(best) = best.filter(|best| best.explained < of) {
            let chain = self.in_even_chain(&best, ordinary);
            beams.extend(chain.map(|chain| (chain.explained, vec![chain])));
        }
        beams
    }

    /// Gives each adder of a candidate to chains of blocks of one size. Returns the chain that explains the most of these
    /// dots, if that is more than the candidate does. Terms that an adder of few bits cuts may hide one addition of such a
    /// chain, and changes of values would imitate it at a great cost.
    fn in_even_chain(&mut self, candidate: &Scored, dots: &[usize]) -> Option<Scored> {
        let given = candidate.hypothesis.merged();
        let chains = Guessed::new(self.subject().id());
        let others = chains
            .skeletons()
            .filter(|chain| chain.roles.len() == 1 && chain.expression.untied() != given.skeleton.expression.untied());
        let hypotheses: Vec<Hypothesis> = others
            .flat_map(|chain| {
                given.adders.iter().map(move |adder| {
                    let adder = Adder { name: chain.names[0].clone(), ..adder.clone() };
                    Hypothesis { skeleton: Arc::clone(&chain), adders: vec![adder].into(), flush: given.flush }
                })
            })
            .collect();
        let mut found = vec![candidate.clone()];
        scored::keep_among(&mut self.experiments, Limit::None, &mut found, 1, &hypotheses, dots);
        found.pop().filter(|found| found.explained > candidate.explained)
    }

    /// Changes values of the best candidate of each beam. Returns the outcome if there is one.
    fn refined(&mut self, beams: Vec<(usize, Vec<Scored>)>, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        for (_, beam) in beams {
            let scored = refine(&mut self.experiments, beam, 1, 0);
            let outcome = self.settle(scored, tried)?;
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }

    /// Changes values, one at a time, of the candidates that explain all but some of the dots.
    pub(super) fn bent_shapes(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let all = self.experiments.dots.len();
        let (near, others): (Vec<Scored>, Vec<Scored>) =
            tried.drain(..).partition(|scored| scored.explained * 100 >= all * NEARLY_AT_FIRST);
        tried.extend(others);
        self.each_refined(near, tried)
    }

    /// Refines these candidates, each with a share of its own, until one has an outcome.
    pub(super) fn each_refined(
        &mut self,
        candidates: Vec<Scored>,
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        for scored in candidates {
            let stage = self.experiments.at_most(ONE_SHAPE);
            let scored = refine(&mut self.experiments, vec![scored], 1, 0);
            self.experiments.back_to(stage);
            let outcome = self.settle(scored, tried)?;
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }

    /// Goes on refining the best candidate whose refinement ended with a small budget.
    pub(super) fn refine_what_was_cut_short(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let Some(best) = self.cut_short.take() else { return Ok(None) };
        let stage = self.experiments.at_most(ONE_SHAPE);
        let scored = refine(&mut self.experiments, vec![best], 1, 0);
        self.experiments.back_to(stage);
        let scored = self.refined_around(scored)?;
        self.settle(scored, tried)
    }

    /// Adds the terms that meet c in the candidate that explains the most dots to each other first, if it explains all but
    /// some of the dots. An unrounded sum differs from its terms only in the place of its lowest bit.
    pub(super) fn gather_what_is_near(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let all = self.experiments.dots.len();
        let Some(best) = tried.iter().max_by_key(|scored| scored.explained).cloned() else { return Ok(None) };
        let stage = self.experiments.at_most(ONE_SHAPE);
        let domain = Domain::whole((0..all).collect());
        let scored = gathered(&mut self.experiments, &best, &domain);
        self.experiments.back_to(stage);
        self.settle(scored, tried)
    }

    /// Returns a tree with the groups of products that exchanges show in the dots that a candidate leaves unexplained, as
    /// [`exchanged::regrouped`] does.
    pub(super) fn groups_in_dots_left(
        &mut self,
        tree: &Expression,
        best: &Hypothesis,
        fresh: usize,
    ) -> Result<Vec<Expression>, Error> {
        let wrong = scored::unexplained(&mut self.experiments, best);
        if wrong.is_empty() {
            return Ok(Vec::new());
        }
        let some: Vec<&Dot> = spread(&wrong, EXCHANGED).into_iter().map(|at| &self.experiments.dots[at]).collect();
        let found = exchanged::regrouped(self.subject(), tree, &some, fresh)?;
        (self.progress)(&format!(
            "  products exchanged in {} dots left: {} trees with groups",
            some.len(),
            found.len()
        ));
        Ok(found)
    }

    /// Exchanges products in the dots that the candidate that explains the most leaves unexplained, if it explains all but
    /// some of them, and tries the trees with the groups that show.
    pub(super) fn regroup_what_is_near(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let all = self.experiments.dots.len();
        let best = tried.iter().max_by_key(|scored| scored.explained).cloned();
        let Some(best) = best.filter(|best| best.explained * 100 >= all * NEARLY) else { return Ok(None) };
        let tree = &best.hypothesis.skeleton.expression;
        if self.subject().id().block_scale().is_some() || !self.regrouped.insert(tree.untied()) {
            return Ok(None);
        }
        let found = self.groups_in_dots_left(tree, &best.hypothesis, best.hypothesis.adders.len())?;
        // Groups that show are likelier than any tree that was not tried yet, so this takes its share of the whole budget.
        let end = self.experiments.whole_stage();
        let mut outcome = None;
        for variant in found {
            // The adders of the candidate remain, or they are determined again.
            let hypothesis = best.hypothesis.with_one_more(variant.clone(), "group", Role::Group).merged();
            let stage = self.experiments.at_most(ONE_SHAPE);
            let scored = refine(&mut self.experiments, vec![Scored { hypothesis, explained: 0 }], 1, 0);
            self.experiments.back_to(stage);
            outcome = self.settle(scored, tried)?;
            if outcome.is_none() {
                outcome = self.with_few_adders([variant.clone()], tried)?;
            }
            if outcome.is_none() {
                outcome = self.shape(&variant, false, tried)?.1;
            }
            if outcome.is_some() {
                break;
            }
        }
        self.experiments.back_to(end);
        Ok(outcome)
    }

    /// Gives the adders of the candidates that explain the most dots to the other trees tried that have as many adders: a
    /// tree that is nearly right may have the right ones, where the search in the right tree ended with others. Changes
    /// values of the best of these if it explains more dots.
    pub(super) fn adders_in_other_trees(
        &mut self,
        beams: &[(usize, Vec<Scored>)],
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        let all: Vec<usize> = (0..self.experiments.dots.len()).collect();
        let some = tried.iter().chain(beams.iter().filter_map(|(_, beam)| beam.first()));
        let mut seen = HashSet::new();
        let mut trees: Vec<Arc<Skeleton>> = some.map(|scored| Arc::clone(&scored.hypothesis.skeleton)).collect();
        trees.retain(|tree| seen.insert((tree.expression.clone(), tree.roles.len())));
        let mut nearest = tried.clone();
        scored::best_first(&mut nearest);
        for giving in nearest.into_iter().take(GIVING) {
            let explained = all.len() - scored::unexplained(&mut self.experiments, &giving.hypothesis).len();
            if explained * 100 < all.len() * NEARLY_AT_FIRST {
                continue;
            }
            let Hypothesis { skeleton, adders, .. } = &giving.hypothesis;
            let others = trees.iter().filter(|tree| tree.roles.len() == adders.len() && !Arc::ptr_eq(tree, skeleton));
            let others: Vec<Hypothesis> =
                others.map(|tree| Hypothesis { skeleton: Arc::clone(tree), ..giving.hypothesis.clone() }).collect();
            let mut best = vec![Scored { explained, ..giving.clone() }];
            scored::keep_among(&mut self.experiments, Limit::None, &mut best, 1, &others, &all);
            if best.first().is_some_and(|best| best.explained > explained) {
                let stage = self.experiments.at_most(ONE_SHAPE);
                self.experiments.at_least(A_LITTLE);
                let scored = refine(&mut self.experiments, best, 1, 0);
                self.experiments.back_to(stage);
                let scored = self.refined_around(scored)?;
                if let Some(outcome) = self.settle(scored, tried)? {
                    return Ok(Some(outcome));
                }
            }
        }
        Ok(None)
    }

    /// Changes two values simultaneously of the candidate that explains the most dots, if it explains all but very few:
    /// its tree is likelier than any that was not tried yet.
    pub(super) fn bend_what_lacks_little(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let all = self.experiments.dots.len();
        // More dots may have been run since.
        for scored in tried.iter_mut() {
            scored.explained = all - scored::unexplained(&mut self.experiments, &scored.hypothesis).len();
        }
        let best = tried.iter().max_by_key(|scored| scored.explained).cloned();
        let Some(best) = best.filter(|best| best.explained * 1_000 >= all * LACKS_LITTLE) else { return Ok(None) };
        self.bend_around(best, tried)
    }

    /// Changes two values simultaneously of the candidate that explains the most dots, unless that was done before.
    pub(super) fn bend_what_is_almost_it(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        if let Some(outcome) = self.regroup_what_is_near(tried)? {
            return Ok(Some(outcome));
        }
        let all = self.experiments.dots.len();
        let Some(best) = tried.iter().max_by_key(|scored| scored.explained).cloned() else { return Ok(None) };
        let wrong = scored::unexplained(&mut self.experiments, &best.hypothesis);
        let is_almost_it = self.experiments.not_around(&wrong) * 100 <= all * (100 - ALMOST);
        if !is_almost_it || self.around - self.around_attacks >= ROUNDS_AROUND {
            return Ok(None);
        }
        let adders = format!("{:?}", best.hypothesis.adders);
        if !self.bent.insert((best.hypothesis.skeleton.text(self.subject().k()), adders)) {
            return Ok(None);
        }
        self.bend_around(best, tried)
    }

    /// As [`Search::bend_what_is_almost_it`], with a further share of the budget, if so few dots are left that the budget
    /// rather than the model format is what the candidate lacks.
    pub(super) fn bend_beyond_the_budget(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let all = self.experiments.dots.len();
        let best = tried.iter().max_by_key(|scored| scored.explained).cloned();
        let Some(best) = best.filter(|best| best.explained * 1_000 >= all * LACKS_NOTHING) else { return Ok(None) };
        self.experiments.extend(ONE_SHAPE);
        self.bend_around(best, tried)
    }

    /// Changes two values simultaneously of a candidate after dots around those that it leaves unexplained have been
    /// asked. It is the likeliest one, so this takes its share of the budget even if the stage has ended.
    fn bend_around(&mut self, best: Scored, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let wrong = scored::unexplained(&mut self.experiments, &best.hypothesis);
        self.ask_around(&best.hypothesis, &wrong)?;
        let end = self.experiments.whole_stage();
        self.experiments.at_most(ONE_SHAPE);
        let scored = refine(&mut self.experiments, vec![best], 1, PAIRS);
        self.experiments.back_to(end);
        self.settle(scored, tried)
    }

    /// Changes the values of a candidate again after dots around those that it leaves unexplained have been asked, if it
    /// explains nearly every dot.
    pub(super) fn refined_around(&mut self, scored: Option<Scored>) -> Result<Option<Scored>, Error> {
        let all = self.experiments.dots.len();
        let is_near = |scored: &Scored| scored.explained < all && scored.explained * 100 >= all * ALMOST;
        let Some(near) = scored.clone().filter(is_near) else { return Ok(scored) };
        // Payloads of NaN are fitted by themselves.
        let wrong = scored::unexplained(&mut self.experiments, &near.hypothesis);
        if self.only_nan(&near, &wrong)? {
            return Ok(scored);
        }
        self.ask_around(&near.hypothesis, &wrong)?;
        let stage = self.experiments.at_most(ONE_SHAPE);
        self.experiments.at_least(A_LITTLE);
        let scored = refine(&mut self.experiments, vec![near], 1, 0);
        self.experiments.back_to(stage);
        Ok(scored)
    }

    /// Asks dots around those that a candidate leaves unexplained (`wrong`) and keeps them. A few dots hardly weigh
    /// against the many from which its wrong values follow.
    pub(super) fn ask_around(&mut self, best: &Hypothesis, wrong: &[usize]) -> Result<(), Error> {
        let some: Vec<&Dot> = spread(wrong, AROUND).into_iter().map(|at| &self.experiments.dots[at]).collect();
        let seed = seed_of(self.effort.seed, 200 + self.experiments.rounds as u64);
        let dots = around(self.subject().id(), &some, EACH, seed);
        if dots.is_empty() {
            return Ok(());
        }
        let answers = self.experiments.only_ask(&dots)?;
        self.tested += dots.len();
        self.around += 1;
        let more = self.compare(best, &dots, &answers)?.len();
        (self.progress)(&format!("  around {} dots left: {more} more differ", wrong.len()));
        self.experiments.keep_around(dots, answers);
        Ok(())
    }
}
