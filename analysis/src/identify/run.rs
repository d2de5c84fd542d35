//! The search of one operation: the order in which trees, their readings and additions that they may hide are tried.

use std::{collections::HashSet, sync::Arc};

use mxprobe_api::Error;

use super::{
    candidates::scored::Scored,
    dots::{experiments::Experiments, first::first_dots},
    outcome::{Effort, Identification, Outcome},
    tree::{
        expression::Expression,
        groups,
        guessed::Guessed,
        live::{self, Counts},
        shapes,
        skeleton::{Skeleton, readings},
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

/// Per cent of the term budget after which the search of the trees as observed ends.
const AS_SEEN: u64 = 55;
/// Per cent of the term budget for determining the additions of one tree, and again for changing the values found.
pub(super) const ONE_SHAPE: u64 = 10;
/// The same for changing the values found if other trees are likelier, and for all of a tree that is less likely.
pub(super) const A_LITTLE: u64 = 3;

/// Trees that are searched for hidden additions.
const HIDING: usize = 3;

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
}
