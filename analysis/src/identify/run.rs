//! The search of one operation: the order in which trees, their readings and additions that they may hide are tried.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use mxprobe_api::Error;

use super::{
    candidates::{
        integers,
        scored::{self, Scored, keep_better},
    },
    dots::{experiments::Experiments, first::first_dots},
    fitting::{
        climb::Domain,
        nodes,
        refine::{climbed, most_explaining, refine},
        search,
    },
    outcome::{Effort, Identification, Outcome},
    tree::{
        expression::Expression,
        groups,
        guessed::Guessed,
        live::{self, Counts},
        shapes,
        skeleton::{Role, Skeleton, readings},
    },
};
use crate::{
    dots::{Dot, seed_of},
    findings::{self, Evidence, Finding},
    in_order::InOrder,
    probes::{self, Subject},
};

/// Per cent of the ordinary dots that a reading must explain for its values to be changed before other readings are
/// tried. The first reading, which is the tree as observed, needs fewer.
pub(super) const NEARLY: usize = 94;
pub(super) const NEARLY_AT_FIRST: usize = 80;
/// Readings tried before two values of the best candidate are changed simultaneously, and readings still tried after a
/// candidate misses only the bits of NaN.
const PATIENCE: usize = 12;

/// Per cent of the term budget after which the search ends a stage: the trees as observed, their readings, and the
/// trees with hidden additions (`HIDDEN`).
const AS_SEEN: u64 = 55;
const AS_READ: u64 = 80;
/// Per cent of the term budget for determining the additions of one tree, and again for changing the values found.
pub(super) const ONE_SHAPE: u64 = 10;
/// The same for changing the values found if other trees are likelier, and for all of a tree that is less likely.
pub(super) const A_LITTLE: u64 = 3;
/// See `AS_SEEN`.
const HIDDEN: u64 = 95;

/// Readings whose values are changed one at a time when no reading has fitted.
const BENT: usize = 8;
/// The last attempts: how many of the best candidates are refined, and how often two of their values may be changed
/// simultaneously.
const BENT_FAR: [(usize, usize); 2] = [(4, 1), (2, 8)];

/// The smallest groups that are tried first where blocks of products have scales.
const LEAST_SCALED_GROUP: usize = 4;

/// Trees that are searched for hidden additions.
const HIDING: usize = 3;
/// The most candidates of which two values are changed simultaneously after that.
const BENT_SHAPES: usize = 3;

/// How often two values of a candidate that explains nearly every dot may be changed simultaneously.
pub(super) const PAIRS: usize = 2;

/// Returns these trees with the products that are added before c moved into additions of their own, each followed by
/// its variants with groups of neighbours in those additions. `of` is the group of each product, as [`groups::groups`]
/// finds it.
fn joined(shapes: &[&Expression], of: &[usize]) -> Vec<Expression> {
    let mut found: Vec<Expression> = Vec::new();
    for joined in shapes.iter().flat_map(|shape| groups::joined(shape, of)) {
        found.push(joined.clone());
        found.extend(shapes::grouped_below(&joined));
    }
    let mut seen = HashSet::new();
    found.retain(|shape| seen.insert(shape.untied()));
    found
}

/// The state of the search for one operation.
pub(super) struct Search<'a, 's> {
    pub(super) experiments: Experiments<'a, 's>,
    pub(super) effort: Effort,
    pub(super) progress: &'a dyn Fn(&str),
    pub(super) order: Option<String>,
    pub(super) readings: usize,
    pub(super) tested: usize,
    pub(super) counterexamples: Vec<Evidence>,
    /// What the probes found.
    pub(super) findings: Vec<Finding>,
    /// How often two values may be changed simultaneously after an attack finds a counterexample. Zero until every tree
    /// has been tried.
    pub(super) pairs: usize,
    /// Rounds of dots around those that a candidate left unexplained.
    pub(super) around: usize,
    /// Those of them that followed an attack.
    pub(super) around_attacks: usize,
    /// Trees and adders of which two values have been changed simultaneously.
    pub(super) bent: HashSet<(String, String)>,
    /// The best candidate that explains nearly every dot and whose refinement ended with a small budget.
    pub(super) cut_short: Option<Scored>,
    /// Trees whose products have been exchanged in dots left unexplained.
    pub(super) regrouped: HashSet<Expression>,
}

impl Search<'_, '_> {
    pub(super) fn subject(&self) -> &Subject<'_> {
        self.experiments.subject
    }

    /// Makes the result with an outcome and the counts so far. Takes the counterexamples.
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
            findings: std::mem::take(&mut self.findings),
        }
    }

    /// Runs the whole identification.
    ///
    /// # Errors
    /// Returns the error of the device if it fails, and an error if there is no tree to try.
    pub(super) fn run(&mut self) -> Result<Identification, Error> {
        if let Some(outcome) = self.repeats()? {
            return Ok(self.finished(outcome));
        }
        let counts = if self.subject().id().is_integer() { Counts::default() } else { live::counts(self.subject())? };
        self.subject().leave_out(counts.never.iter().chain(&counts.twice).copied().collect());
        (self.progress)("asking all questions");
        let (findings, order) = if counts.never.is_empty() && counts.twice.is_empty() {
            probes::findings(self.subject())
        } else {
            // Probes ask about every leaf, and the order is that of the leaves that count once.
            let (findings, _) = probes::findings(&Subject::new(self.subject().device(), self.subject().operation()));
            (findings, None)
        };
        let trees = self.trees(order)?;
        // The evidence of the probes, whatever they concluded from it.
        let shown = findings.iter().filter(|finding| finding.outcome == findings::Outcome::Measured);
        let seen: Vec<(Dot, u64)> = shown
            .flat_map(|finding| &finding.evidence)
            .filter_map(|evidence| Some((evidence.dot()?.clone(), evidence.d)))
            .collect();
        self.findings = findings;
        self.tested += seen.len();
        let (dots, answers) = seen.into_iter().unzip();
        self.experiments.keep(dots, answers);
        (self.progress)("running the first round of dots");
        let first = first_dots(self.subject(), self.effort.first, seed_of(self.effort.seed, 1));
        self.tested += first.len();
        let answers = self.experiments.only_ask(&first)?;
        if let Some(outcome) = self.elsewhere(&first, &answers, 1)? {
            return Ok(self.finished(outcome));
        }
        self.experiments.keep(first, answers);
        let id = self.subject().id().clone();
        let mut skeletons: Vec<Arc<Skeleton>> =
            trees.iter().flat_map(|tree| readings(tree, &id)).map(Arc::new).collect();
        // Residues of cancelling terms may hide the order, so blocks of every size are tried after the observed tree.
        let guessed = Guessed::new(&id);
        let at = skeletons.len().min(1);
        skeletons.splice(at..at, guessed.skeletons());
        // With block scales, groups come next: first groups of as many products as a block, then smaller ones.
        if let Some(scale) = id.block_scale() {
            let rank = |skeleton: &Skeleton| match skeleton.group_size() {
                None => usize::MAX,
                Some(size) if size > scale.block => size,
                Some(size) => scale.block - size,
            };
            let from = skeletons.len().min(1);
            skeletons[from..].order_by_key(|skeleton| rank(skeleton));
        }
        let mut known = HashSet::new();
        skeletons.retain(|skeleton| known.insert((skeleton.unfolded(), skeleton.roles.len())));
        let shapes = self.shapes(&trees, &counts)?;
        let mut tried = Vec::new();
        self.experiments.stage(AS_SEEN);
        let mut come = Vec::new();
        let of = if shapes.is_empty() { Vec::new() } else { groups::groups(self.subject())? };
        let joins = shapes.first().is_some_and(|shape| !groups::joined(shape, &of).is_empty());
        // The first shape is the tree as observed. If the order does not show, the others are guesses.
        let (observed, guesses) = shapes.split_at(shapes.len().min(1));
        if let Some(shape) = observed.first()
            && let Some(outcome) = self.beforehand(shape, &of, &mut tried)?
        {
            return Ok(self.finished(outcome));
        }
        if let Some(scale) = id.block_scale()
            && let Some(outcome) = self.scaled_groups(&skeletons, scale.block, &mut tried)?
        {
            return Ok(self.finished(outcome));
        }
        // If products are joined before c, trees with such additions are tried before the values of the observed tree are
        // changed to imitate them.
        if let Some(outcome) = self.each_shape(observed, joins, &mut come, &mut tried)? {
            return Ok(self.finished(outcome));
        }
        // Other trees and other values of this one would imitate an addition that c passes alone.
        let changes_c = !observed.is_empty() && self.changes_c_alone(&tried)?;
        let alone = if changes_c { shapes::with_c_alone(observed) } else { Vec::new() };
        if let Some(outcome) = self.each_shape(&alone, false, &mut come, &mut tried)? {
            return Ok(self.finished(outcome));
        }
        if let Some(outcome) = self.gather_what_is_near(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        if let Some(outcome) = self.refine_what_was_cut_short(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        if let Some(outcome) = self.regroup_what_is_near(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        let above_floors = self.shapes_above_floors(&shapes, &counts)?;
        let above_floors_alone = if changes_c { shapes::with_c_alone(&above_floors) } else { Vec::new() };
        for shapes in [&above_floors, &above_floors_alone] {
            if let Some(outcome) = self.each_shape(shapes, false, &mut come, &mut tried)? {
                return Ok(self.finished(outcome));
            }
        }
        let all = self.experiments.dots.len();
        let near = tried.iter().any(|scored| scored.explained * 100 >= all * NEARLY);
        let symmetric = self.symmetric_shapes(&shapes, &above_floors, near)?;
        // If a tree explains nearly every dot, an addition hidden in it is likelier than few adders or another tree. The
        // dots about exchanges have been asked all the same.
        let few = observed.first().filter(|_| !near).into_iter();
        let few = few.flat_map(|shape| [shape.clone(), shapes::products_alone(shape)]);
        if let Some(outcome) = self.with_few_adders(few, &mut tried)? {
            return Ok(self.finished(outcome));
        }
        if !near && let Some(outcome) = self.symmetric(&symmetric, &mut come, &mut tried)? {
            return Ok(self.finished(outcome));
        }
        if let Some(outcome) = self.each_shape(guesses, joins, &mut come, &mut tried)? {
            return Ok(self.finished(outcome));
        }
        if let Some(outcome) = self.bend_what_lacks_little(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        come.order_by_key(|(progress, _)| std::cmp::Reverse(*progress));
        let hiding: Vec<&Expression> = come.into_iter().take(HIDING).map(|(_, shape)| shape).collect();
        for variant in joined(&hiding, &of) {
            if let (_, Some(outcome)) = self.shape(&variant, false, &mut tried)? {
                return Ok(self.finished(outcome));
            }
        }
        if joins && let Some(outcome) = self.bent_shapes(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        for variant in hiding.first().into_iter().flat_map(|shape| shapes::chained(shape)) {
            let stage = self.experiments.at_most(A_LITTLE);
            let (_, outcome) = self.shape(&variant, false, &mut tried)?;
            self.experiments.back_to(stage);
            if let Some(outcome) = outcome {
                return Ok(self.finished(outcome));
            }
        }
        for variant in hiding.first().into_iter().flat_map(|shape| shapes::rounded(shape)) {
            if let (_, Some(outcome)) = self.shape(&variant, false, &mut tried)? {
                return Ok(self.finished(outcome));
            }
        }
        if near && let Some(outcome) = self.symmetric(&symmetric, &mut Vec::new(), &mut tried)? {
            return Ok(self.finished(outcome));
        }
        self.pairs = PAIRS;
        // A candidate that explains almost every dot is refined before other readings are tried.
        if let Some(outcome) = self.bend_what_is_almost_it(&mut tried)? {
            return Ok(self.finished(outcome));
        }
        let outcome = self.search(skeletons, guessed, &hiding, tried)?;
        Ok(self.finished(outcome))
    }

    /// Tries the first reading with groups of each size that divides the block of products that share a scale: products
    /// that are added before they are scaled do not show their order, and other trees would take the budget. Changes more
    /// than single values only if no size fits without, because one size imitates another in most dots.
    fn scaled_groups(
        &mut self,
        skeletons: &[Arc<Skeleton>],
        block: usize,
        tried: &mut Vec<Scored>,
    ) -> Result<Option<Outcome>, Error> {
        let of = scored::spread(&self.experiments.ordinary, search::SECOND).len();
        let mut sizes = HashSet::new();
        let mut near = Vec::new();
        for skeleton in skeletons {
            let divides = |size: &usize| *size >= LEAST_SCALED_GROUP && block.is_multiple_of(*size);
            if !skeleton.group_size().filter(divides).is_some_and(|size| sizes.insert(size)) {
                continue;
            }
            self.readings += 1;
            let stage = self.experiments.at_most(ONE_SHAPE);
            let beam = search::coarse(&mut self.experiments, skeleton);
            let top = beam.first().map_or(0, |scored| scored.explained);
            let tree = skeleton.text(self.subject().k());
            (self.progress)(&format!("{tree}: explains {top} of {of} dots of ordinary values"));
            let all = self.experiments.dots.len();
            if top * 100 >= of * NEARLY {
                let domain = Domain::whole((0..all).collect());
                for best in most_explaining(&mut self.experiments, beam, 1) {
                    near.push(climbed(&mut self.experiments, best, &domain));
                }
            }
            self.experiments.back_to(stage);
            if let Some(whole) = near.pop_if(|last| last.explained == all)
                && let Some(found) = self.settle(Some(whole), tried)?
            {
                return Ok(Some(found));
            }
        }
        scored::best_first(&mut near);
        self.each_refined(near, tried)
    }

    /// Tries additions that may be hidden in the trees that came the farthest, addition by addition. Finally changes
    /// two values simultaneously of the candidates that explain the most dots.
    fn hidden(&mut self, shapes: &[&Expression], tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        for (at, shape) in shapes.iter().enumerate() {
            // Leaves rounded alone in the first of them have been tried already.
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
        scored::best_and_simplest_first(&mut nearest);
        for scored in nearest.into_iter().take(BENT_SHAPES) {
            if self.experiments.is_late() || scored.explained * 100 < self.experiments.dots.len() * NEARLY_AT_FIRST {
                break;
            }
            let scored = refine(&mut self.experiments, vec![scored], 1, 1);
            let outcome = self.settle(scored, tried)?;
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }

    /// Tries trees one after another as [`Search::shape`] does, and adds how far each came to `come`. Returns the outcome
    /// if there is one.
    fn each_shape<'t>(
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

    /// Tries the readings of the trees, the simplest first, until one explains every dot, and attacks that one.
    fn search(
        &mut self,
        skeletons: Vec<Arc<Skeleton>>,
        mut guessed: Guessed,
        hiding: &[&Expression],
        mut tried: Vec<Scored>,
    ) -> Result<Outcome, Error> {
        self.experiments.stage(AS_READ);
        let mut beams: Vec<(usize, Vec<Scored>)> = Vec::new();
        // The first reading after which every dot left unexplained was a NaN of other bits.
        let mut only_nan_since = None;
        let of = scored::spread(&self.experiments.ordinary, search::SECOND).len();
        let mut skeletons = VecDeque::from(skeletons);
        let mut at = 0;
        while let Some(next) = skeletons.pop_front() {
            let mut grouped = guessed.grouped(&next, self.subject().id());
            grouped.push(next);
            let skeleton = &grouped.remove(0);
            grouped.into_iter().rev().for_each(|later| skeletons.push_front(later));
            at += 1;
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
            guessed.note(skeleton, top);
            let tree = skeleton.text(self.subject().k());
            (self.progress)(&format!("{tree}: explains {top} of {of} dots of ordinary values"));
            // A near fit is refined immediately if no earlier reading came as near: intermediate sums of ordinary dots
            // may leave the ordinary range.
            let nearly = if beams.is_empty() { NEARLY_AT_FIRST } else { NEARLY };
            let near = top * 100 >= of * nearly && beams.iter().all(|(other, _)| top > *other);
            if top == of || near {
                let width = if top == of { 3 } else { 1 };
                let scored = refine(&mut self.experiments, beam.clone(), width, 0);
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
            // Changing two values costs as much as many readings, so `PATIENCE` readings are tried first.
            if at.is_multiple_of(PATIENCE)
                && let Some(found) = self.bend_what_is_almost_it(&mut tried)?
            {
                return Ok(found);
            }
        }
        if let Some(found) = self.bend_what_is_almost_it(&mut tried)? {
            return Ok(found);
        }
        if let Some(found) = self.adders_in_other_trees(&beams, &mut tried)? {
            return Ok(found);
        }
        self.experiments.stage(HIDDEN);
        if only_nan_since.is_none()
            && let Some(found) = self.hidden(hiding, &mut tried)?
        {
            return Ok(found);
        }
        self.experiments.stage(100);
        // Only the bits of some NaN are unexplained, although values were changed in this candidate and in others: no
        // other tree would give them.
        if only_nan_since.is_some()
            && let Some(best) = tried.iter().max_by_key(|scored| scored.explained).cloned()
        {
            return self.outside(&best);
        }
        // None fits so far: values of the nearest are changed, first one at a time, then two simultaneously.
        beams.order_by_key(|(top, _)| std::cmp::Reverse(*top));
        for (_, beam) in beams.into_iter().take(BENT) {
            if self.experiments.is_late() && !tried.is_empty() {
                break;
            }
            let scored = refine(&mut self.experiments, beam, 1, 0);
            if let Some(found) = self.settle(scored, &mut tried)? {
                return Ok(found);
            }
        }
        for (count, pairs) in BENT_FAR {
            scored::best_first(&mut tried);
            tried.truncate(BENT);
            for scored in tried.clone().into_iter().take(count) {
                if self.experiments.is_late() {
                    break;
                }
                let scored = refine(&mut self.experiments, vec![scored], 1, pairs);
                if let Some(found) = self.settle(scored, &mut tried)? {
                    return Ok(found);
                }
            }
        }
        if let Some(found) = self.bend_beyond_the_budget(&mut tried)? {
            return Ok(found);
        }
        scored::best_first(&mut tried);
        match tried.first() {
            Some(best) => self.outside(&best.clone()),
            None => Err(Error::invalid(format!("no summation tree to try for {}", self.subject().id()))),
        }
    }
}
