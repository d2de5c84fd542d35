//! The search in readings of trees, and in additions that a tree may hide.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use mxprobe_api::Error;

use super::{
    candidates::{
        integers,
        scored::{self, Scored},
    },
    fitting::{
        climb::Domain,
        refine::{climbed, most_explaining, refine},
        search,
    },
    outcome::Outcome,
    run::{NEARLY, NEARLY_AT_FIRST, ONE_SHAPE, Search},
    tree::{expression::Expression, guessed::Guessed, shapes, skeleton::Skeleton},
};
use crate::in_order::InOrder;

/// Readings tried before two values of the best candidate are changed simultaneously, and readings still tried after a
/// candidate misses only the bits of NaN.
const PATIENCE: usize = 12;

/// Per cent of the term budget after which the search ends a stage: the readings of the trees, and the trees with hidden
/// additions.
const AS_READ: u64 = 80;
const HIDDEN: u64 = 95;

/// Readings whose values are changed one at a time when no reading has fitted.
const BENT: usize = 8;
/// The last attempts: how many of the best candidates are refined, and how often two of their values may be changed
/// simultaneously.
const BENT_FAR: [(usize, usize); 2] = [(4, 1), (2, 8)];

/// The smallest groups that are tried first where blocks of products have scales.
const LEAST_SCALED_GROUP: usize = 4;

/// The most candidates of which two values are changed simultaneously after hidden additions were tried.
const BENT_SHAPES: usize = 3;

impl Search<'_, '_> {
    /// Tries the first reading with groups of each size that divides the block of products that share a scale: products
    /// that are added before they are scaled do not show their order, and other trees would take the budget. Changes more
    /// than single values only if no size fits without, because one size imitates another in most dots.
    pub(super) fn scaled_groups(
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

    /// Tries the readings of the trees, the simplest first, until one explains every dot, and attacks that one.
    pub(super) fn search(
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
}
