//! The order in which trees, their readings and what they may hide are tried.

use std::{collections::HashSet, rc::Rc};

use mxprobe_api::Error;

use super::{
    experiments::{self, Experiments},
    expression::Expression,
    groups, integers,
    live::{self, Counts},
    nodes,
    outcome::{Effort, Identification, Outcome},
    scored::{self, Scored},
    search, shapes,
    skeleton::{Skeleton, guesses, readings},
};
use crate::{
    dots::{Dot, seed_of},
    findings::{self, Evidence},
    probes::{Subject, probe},
};

/// Per cent of the ordinary dots that a reading has to explain to be bent before others are tried; the first one, which
/// is the tree as it was seen, fewer.
const NEARLY: usize = 94;
const NEARLY_AT_FIRST: usize = 80;
/// Per cent of all dots from which on two values are changed at once, and how many readings are tried before that.
const ALMOST: usize = 98;
const PATIENCE: usize = 12;

/// Per cent of all terms that are spent when the trees as they were seen, their readings, and what they may hide have had
/// their turn.
const AS_SEEN: u64 = 55;
const AS_READ: u64 = 80;
/// The same for one tree, and again for bending what was told of it.
const ONE_SHAPE: u64 = 10;
/// The same for bending it where other trees are likelier.
const A_LITTLE: u64 = 3;
const HIDDEN: u64 = 95;

/// Readings that are bent a little, and those that are bent as far as it goes.
const BENT: usize = 8;
const BENT_FAR: [(usize, usize); 2] = [(4, 1), (2, 8)];

/// Trees in which something hidden is looked for, and trees of which two values are changed at once.
const HIDING: usize = 3;
const BENT_SHAPES: usize = 3;

/// How often two values are changed at once of what nearly explains everything.
const PAIRS: usize = 2;

/// These trees with what is added before c joins it in an addition of its own, and with groups in those.
fn joined(shapes: &[&Expression], of: &[usize]) -> Vec<Expression> {
    let mut found: Vec<Expression> = Vec::new();
    for joined in shapes.iter().filter_map(|shape| groups::joined(shape, of)) {
        found.push(joined.clone());
        found.extend(shapes::grouped_below(&joined));
    }
    let mut seen = HashSet::new();
    found.retain(|shape| seen.insert(shape.untied()));
    found
}

/// A search at work.
pub(super) struct Search<'a, 's> {
    pub(super) experiments: Experiments<'a, 's>,
    pub(super) effort: Effort,
    pub(super) progress: &'a dyn Fn(&str),
    pub(super) order: Option<String>,
    pub(super) readings: usize,
    pub(super) tested: usize,
    pub(super) counterexamples: Vec<Evidence>,
    /// How often two values may be changed at once where an attack finds something: not before every tree had its turn.
    pub(super) pairs: usize,
    /// Trees and adders of which two values were changed at once.
    pub(super) bent: HashSet<(String, String)>,
}

impl Search<'_, '_> {
    pub(super) fn subject(&self) -> &Subject<'_> {
        self.experiments.subject
    }

    fn finished(&mut self, outcome: Outcome) -> Identification {
        Identification {
            operation: self.subject().id().clone(),
            outcome,
            order: self.order.clone(),
            rounds: self.experiments.rounds,
            dots: self.subject().asked(),
            tested: self.tested,
            readings: self.readings,
            counterexamples: std::mem::take(&mut self.counterexamples),
        }
    }

    pub(super) fn run(&mut self) -> Result<Identification, Error> {
        if let Some(outcome) = self.repeats()? {
            return Ok(self.finished(outcome));
        }
        let counts = if self.subject().id().is_integer() { Counts::default() } else { live::counts(self.subject())? };
        self.subject().leave_out(counts.never.iter().chain(&counts.twice).copied().collect());
        let trees = self.trees()?;
        // What the probes saw, whatever they made of it.
        let probed = probe(self.subject().device(), self.subject().operation(), None);
        let shown = probed.findings.iter().filter(|finding| finding.outcome == findings::Outcome::Measured);
        let seen: Vec<(Dot, u64)> = shown
            .flat_map(|finding| &finding.evidence)
            .filter_map(|evidence| Some((evidence.dot()?.clone(), evidence.d)))
            .collect();
        self.tested += seen.len();
        let (dots, answers) = seen.into_iter().unzip();
        self.experiments.keep(dots, answers);
        (self.progress)("asking the first round");
        let first = experiments::first_dots(self.subject(), self.effort.first, seed_of(self.effort.seed, 1));
        self.tested += first.len();
        let answers = self.experiments.only_ask(&first)?;
        if let Some(outcome) = self.elsewhere(&first, &answers, 1)? {
            return Ok(self.finished(outcome));
        }
        self.experiments.keep(first, answers);
        let id = self.subject().id().clone();
        let mut skeletons: Vec<Rc<Skeleton>> = trees.iter().flat_map(|tree| readings(tree, &id)).map(Rc::new).collect();
        // What cancelling terms leave behind may hide the order: blocks of every size come after what was seen.
        let others = guesses(id.shape.sizes().2, &[]);
        let plain = others.iter().filter_map(|tree| readings(tree, &id).into_iter().next());
        let at = skeletons.len().min(1);
        skeletons.splice(at..at, plain.map(Rc::new));
        // Groups come next where blocks have scales: of as many products as a block first, then of fewer.
        if let Some(scale) = id.block_scale() {
            let rank = |skeleton: &Skeleton| match skeleton.group_size() {
                None => usize::MAX,
                Some(size) if size > scale.block => size,
                Some(size) => scale.block - size,
            };
            let from = skeletons.len().min(1);
            skeletons[from..].sort_by_key(|skeleton| rank(skeleton));
        }
        let mut known = HashSet::new();
        skeletons.retain(|skeleton| known.insert((skeleton.text(id.shape.sizes().2), skeleton.roles.len())));
        let shapes = self.shapes(&trees, &counts)?;
        let mut tried = Vec::new();
        self.experiments.stage(AS_SEEN);
        let mut come = Vec::new();
        let of = if shapes.is_empty() { Vec::new() } else { groups::groups(self.subject())? };
        let joins = shapes.first().is_some_and(|shape| groups::joined(shape, &of).is_some());
        for shape in &shapes {
            // Where products are joined before c, that is tried before what shows is bent to do as much.
            let (progress, outcome) = self.shape(shape, joins, &mut tried)?;
            if let Some(outcome) = outcome {
                return Ok(self.finished(outcome));
            }
            come.push((progress, shape));
        }
        let above_floors = self.shapes_above_floors(&shapes, &counts)?;
        for shape in &above_floors {
            let (progress, outcome) = self.shape(shape, false, &mut tried)?;
            if let Some(outcome) = outcome {
                return Ok(self.finished(outcome));
            }
            come.push((progress, shape));
        }
        come.sort_by_key(|(progress, _)| std::cmp::Reverse(*progress));
        let hiding: Vec<&Expression> = come.into_iter().take(HIDING).map(|(_, shape)| shape).collect();
        for variant in joined(&hiding, &of) {
            if let (_, Some(outcome)) = self.shape(&variant, false, &mut tried)? {
                return Ok(self.finished(outcome));
            }
        }
        if joins && let Some(outcome) = self.bent_shapes(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        for variant in hiding.first().into_iter().flat_map(|shape| shapes::rounded(shape)) {
            if let (_, Some(outcome)) = self.shape(&variant, false, &mut tried)? {
                return Ok(self.finished(outcome));
            }
        }
        self.pairs = PAIRS;
        // What is almost it is bent before other readings are tried.
        if let Some(outcome) = self.bend_what_is_almost_it(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        let outcome = self.search(&skeletons, &hiding, tried)?;
        Ok(self.finished(outcome))
    }

    /// What may be hidden in the shapes that came the farthest, told addition by addition; two changes at once of what
    /// explains the most come last.
    fn hidden(&mut self, shapes: &[&Expression], tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        for (at, shape) in shapes.iter().enumerate() {
            // What is rounded alone in the first of them had its turn.
            let rounded = if at == 0 { Vec::new() } else { shapes::rounded(shape) };
            for variant in rounded.into_iter().chain(shapes::grouped(shape)) {
                let (_, outcome) = self.shape(&variant, false, tried)?;
                if outcome.is_some() {
                    return Ok(outcome);
                }
            }
        }
        self.experiments.stage(100);
        let mut nearest = tried.clone();
        nearest.sort_by_key(|scored| (std::cmp::Reverse(scored.explained), scored.hypothesis.complexity()));
        for scored in nearest.into_iter().take(BENT_SHAPES) {
            if self.experiments.is_late() || scored.explained * 100 < self.experiments.dots.len() * NEARLY_AT_FIRST {
                break;
            }
            let scored = search::refine(&mut self.experiments, vec![scored], 1, 1);
            let outcome = self.settle(scored, tried)?;
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }

    /// The additions of a tree one by one; bent at once, or a little now and the rest `later`. If nothing but zeros of the other
    /// sign is left then, the same with sums that begin at +0. How far that came, and what attacks ended with.
    fn shape(
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
        let Some(hypothesis) = told.hypothesis else { return Ok((told.progress, None)) };
        let adders = hypothesis.adders.len();
        let tree = hypothesis.skeleton.text(self.subject().k());
        (self.progress)(&format!("{tree}: told addition by addition, {adders} adders"));
        let all: Vec<usize> = (0..self.experiments.dots.len()).collect();
        let explained = scored::explained(&mut self.experiments, &hypothesis, &all, all.len()).unwrap_or(0);
        let scored = Scored { hypothesis, explained };
        if explained * 100 < all.len() * NEARLY_AT_FIRST {
            tried.push(scored);
            return Ok((told.progress, None));
        }
        let stage = self.experiments.at_most(if later { A_LITTLE } else { ONE_SHAPE });
        let scored = search::refine(&mut self.experiments, vec![scored], 1, 0);
        self.experiments.back_to(stage);
        Ok((told.progress, self.settle(scored, tried)?))
    }

    /// What was told of these trees but for some dots, changed value by value.
    fn bent_shapes(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let all = self.experiments.dots.len();
        let (near, others): (Vec<Scored>, Vec<Scored>) =
            tried.drain(..).partition(|scored| scored.explained * 100 >= all * NEARLY_AT_FIRST);
        tried.extend(others);
        for scored in near {
            let stage = self.experiments.at_most(ONE_SHAPE);
            let scored = search::refine(&mut self.experiments, vec![scored], 1, 0);
            self.experiments.back_to(stage);
            let outcome = self.settle(scored, tried)?;
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }

    /// Readings of the tree, the simplest first, until one explains everything; then attacks on it.
    fn search(
        &mut self,
        skeletons: &[Rc<Skeleton>],
        hiding: &[&Expression],
        mut tried: Vec<Scored>,
    ) -> Result<Outcome, Error> {
        self.experiments.stage(AS_READ);
        let mut beams: Vec<(usize, Vec<Scored>)> = Vec::new();
        // The reading at which nothing but NaN of other bits was left for the first time.
        let mut only_nan_since = None;
        let of = scored::spread(&self.experiments.ordinary, search::SECOND).len();
        for (at, skeleton) in skeletons.iter().enumerate() {
            if self.experiments.is_late() && !(tried.is_empty() && beams.is_empty()) {
                break;
            }
            if only_nan_since.is_some_and(|since| at >= since + PATIENCE) {
                break;
            }
            self.readings += 1;
            if self.subject().id().is_integer() {
                let scored = integers::fit(&mut self.experiments, skeleton);
                if let Some(found) = self.settle(scored, &mut tried)? {
                    return Ok(found);
                }
                continue;
            }
            let beam = search::coarse(&mut self.experiments, skeleton);
            let Some(top) = beam.first().map(|scored| scored.explained) else { continue };
            let tree = skeleton.text(self.subject().k());
            (self.progress)(&format!("{tree}: explains {top} of {of} ordinary dots"));
            // What nearly fits is bent at once, if nothing before came as near: sums on the way may leave the ordinary.
            let nearly = if beams.is_empty() { NEARLY_AT_FIRST } else { NEARLY };
            let near = top * 100 >= of * nearly && beams.iter().all(|(other, _)| top > *other);
            if top == of || near {
                let width = if top == of { 3 } else { 1 };
                let scored = search::refine(&mut self.experiments, beam.clone(), width, 0);
                if let Some(found) = self.settle(scored, &mut tried)? {
                    return Ok(found);
                }
            }
            if top < of {
                beams.push((top, beam));
            }
            if only_nan_since.is_none()
                && let Some(best) = tried.iter().max_by_key(|scored| scored.explained)
            {
                let wrong = scored::unexplained(&mut self.experiments, &best.hypothesis);
                only_nan_since = self.only_nan(best, &wrong)?.then_some(at);
            }
            // What is almost it is bent further, but others have their turn first: that costs as much as many of them.
            if (at + 1).is_multiple_of(PATIENCE)
                && let Some(found) = self.bend_what_is_almost_it(&mut tried)?
            {
                return Ok(found);
            }
        }
        if let Some(found) = self.bend_what_is_almost_it(&mut tried)? {
            return Ok(found);
        }
        self.experiments.stage(HIDDEN);
        if only_nan_since.is_none()
            && let Some(found) = self.hidden(hiding, &mut tried)?
        {
            return Ok(found);
        }
        self.experiments.stage(100);
        // What explains all but the bits of some NaN was bent, and so were others: no other tree gives them.
        if only_nan_since.is_some()
            && let Some(best) = tried.iter().max_by_key(|scored| scored.explained).cloned()
        {
            return self.outside(&best);
        }
        // None fits at once: the nearest are bent, one value at a time first, then two, as far as it goes.
        beams.sort_by_key(|(top, _)| std::cmp::Reverse(*top));
        for (_, beam) in beams.into_iter().take(BENT) {
            if self.experiments.is_late() && !tried.is_empty() {
                break;
            }
            let scored = search::refine(&mut self.experiments, beam, 1, 0);
            if let Some(found) = self.settle(scored, &mut tried)? {
                return Ok(found);
            }
        }
        for (count, pairs) in BENT_FAR {
            tried.sort_by_key(|scored| std::cmp::Reverse(scored.explained));
            tried.truncate(BENT);
            for scored in tried.clone().into_iter().take(count) {
                if self.experiments.is_late() {
                    break;
                }
                let scored = search::refine(&mut self.experiments, vec![scored], 1, pairs);
                if let Some(found) = self.settle(scored, &mut tried)? {
                    return Ok(found);
                }
            }
        }
        tried.sort_by_key(|scored| std::cmp::Reverse(scored.explained));
        match tried.first() {
            Some(best) => self.outside(&best.clone()),
            None => Err(Error::invalid(format!("{} has no tree to try", self.subject().id()))),
        }
    }

    /// Two values at once of what explains the most, unless that was done.
    fn bend_what_is_almost_it(&mut self, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let all = self.experiments.dots.len();
        let best = tried.iter().max_by_key(|scored| scored.explained).cloned();
        let Some(best) = best.filter(|best| best.explained * 100 >= all * ALMOST) else { return Ok(None) };
        let adders = format!("{:?}", best.hypothesis.adders);
        if !self.bent.insert((best.hypothesis.skeleton.text(self.subject().k()), adders)) {
            return Ok(None);
        }
        let scored = search::refine(&mut self.experiments, vec![best], 1, PAIRS);
        self.settle(scored, tried)
    }
}
