//! Infers the adders of a tree, one addition after the other, from the dots about each.

use std::sync::Arc;

use mxprobe_api::Rounding;
use mxprobe_models::{Adder, Choices, Flush, Output};

use super::{
    beside,
    climb::{Domain, climb},
    search::sweep_class,
};
use crate::identify::{
    candidates::{
        adders::Adders,
        hypothesis::{Hypothesis, ON_THE_WAY, exact_cores, float, in_format},
        nan,
        scored::{Scored, explained, spread},
    },
    dots::experiments::Experiments,
    tree::{
        expression::Expression,
        skeleton::{Role, Skeleton},
    },
};
use crate::in_order::InOrder;

/// Minimum and maximum number of dots from which one addition is inferred.
pub(in crate::identify) const TELLING: usize = 12;
const TOLD_BY: usize = 700;
/// Number of dots on which every possible adder is tried first.
const FIRST: usize = 40;
/// Percentage of the dots about one addition that the best adder has to explain for the other additions to be examined.
const NEARLY: usize = 95;
/// The same of ordinary dots, for an adder to be changed value by value.
const HALF_WAY: usize = 60;

/// One in this many dots about an addition may be left unexplained, for its rules for NaN and zeros, when the additions
/// below it are examined.
const FEW_OF: usize = 50;

/// The fit of one tree, whose additions are inferred one after the other.
pub(in crate::identify) struct Fit<'e, 'a, 's> {
    pub(in crate::identify) experiments: &'e mut Experiments<'a, 's>,
    pub(in crate::identify) tree: Expression,
    /// The index in `adders` of each addition's adder, if it is known.
    pub(in crate::identify) of: Vec<Option<usize>>,
    pub(in crate::identify) adders: Adders,
    pub(in crate::identify) roles: Vec<Role>,
    /// The adder assumed for additions that are not known yet; without it, they use the one that gives d.
    pub(in crate::identify) neutral: Option<Adder>,
    /// The initial adder for an addition of which nothing is known.
    pub(in crate::identify) plain: Adder,
    /// The dots from which each addition was inferred, and all dots about it, both limited to `TOLD_BY`.
    pub(in crate::identify) told: Vec<Vec<usize>>,
    pub(in crate::identify) about: Vec<Vec<usize>>,
    /// Whether the terms of each dot are of moderate size, within the range of every format on the way to d.
    pub(in crate::identify) moderate: Arc<[bool]>,
    pub(in crate::identify) bits: u32,
    pub(in crate::identify) flush: Flush,
    /// Percentage of the dots about the addition examined last that its best adder explains.
    pub(in crate::identify) nearest: usize,
}

impl Fit<'_, '_, '_> {
    /// Returns the hypothesis so far.
    pub(in crate::identify) fn hypothesis(&self) -> Hypothesis {
        let neutral = if self.neutral.is_some() { self.adders.len() } else { 0 };
        let of: Vec<usize> = self.of.iter().map(|class| class.unwrap_or(neutral)).collect();
        let expression = self.tree.recoloured(&of);
        let mut adders = self.adders.clone();
        let mut roles = self.roles.clone();
        if let Some(neutral) = self.neutral.as_ref().filter(|_| self.of.contains(&None)) {
            adders.push(neutral.clone());
            roles.push(Role::Inner);
        }
        Hypothesis { skeleton: Arc::new(Skeleton::numbered(expression, roles)), adders, flush: self.flush }
    }

    /// Counts the dots that are explained if an addition has this adder.
    fn right(&mut self, node: usize, class: usize, which: &[usize]) -> usize {
        let before = self.of[node].replace(class);
        let hypothesis = self.hypothesis();
        self.of[node] = before;
        explained(self.experiments, &hypothesis, which, which.len()).unwrap_or(0)
    }

    /// Infers the adder of one addition. Returns false if none explains most of the dots about it.
    pub(in crate::identify) fn node(&mut self, node: usize, role: Role, about: &[usize]) -> bool {
        let moderate: Vec<usize> = about.iter().copied().filter(|at| self.moderate[*at]).collect();
        let which = spread(if moderate.len() < TELLING { about } else { &moderate }, TOLD_BY);
        self.told[node].clone_from(&which);
        self.about[node] = spread(about, TOLD_BY);
        if which.len() < TELLING {
            // Too few dots: use the adder of the other additions of its kind, or the one that gives d.
            let like =
                self.roles.iter().rposition(|other| *other == role).or(Some(0).filter(|_| !self.roles.is_empty()));
            match like {
                Some(class) => self.of[node] = Some(class),
                None => self.add(node, role),
            }
            return true;
        }
        let mut nearest: Option<(usize, usize)> = None;
        // The adder that was used last is the likeliest.
        let mut classes: Vec<usize> = (0..self.adders.len()).rev().collect();
        classes.order_by_key(|class| std::cmp::Reverse(self.of[..node].iter().rposition(|of| *of == Some(*class))));
        for class in classes {
            let right = self.right(node, class, &which);
            if right == which.len() {
                self.of[node] = Some(class);
                return true;
            }
            if nearest.is_none_or(|(_, most)| right > most) {
                nearest = Some((class, right));
            }
        }
        // An adder that loses nothing before it rounds is simpler than another adder changed to do as much.
        if node > 0 && (self.plainly(node, role, &which) || self.with_its_own_result(node, role, &which)) {
            return true;
        }
        // Change the nearest adder: for all its additions, if that works, else for this one.
        if let Some((class, right)) = nearest
            && right * 100 >= which.len() * HALF_WAY
        {
            self.of[node] = Some(class);
            let others = (0..node).filter(|other| self.of[*other] == Some(class)).flat_map(|other| &self.told[other]);
            let mut all: Vec<usize> = which.iter().chain(others).copied().collect();
            all.sort_unstable();
            all.dedup();
            let before = self.adders[class].clone();
            if self.climbed(class, &all) == all.len() {
                return true;
            }
            self.adders.set(class, before.clone());
            self.adders.push(before);
            self.roles.push(role);
            let own = self.adders.len() - 1;
            self.of[node] = Some(own);
            if self.climbed(own, &which) == which.len() {
                return true;
            }
            self.adders.pop();
            self.roles.pop();
            self.of[node] = None;
        }
        self.add(node, role);
        let own = self.adders.len() - 1;
        let made = self.made((node, own), &which);
        // A separate adder must explain over one per cent more dots.
        if let Some((class, right)) = nearest.filter(|(_, right)| made <= *right + which.len() / 100) {
            self.adders.pop();
            self.roles.pop();
            self.of[node] = Some(class);
            self.nearest = right * 100 / which.len();
        } else {
            self.nearest = made * 100 / which.len();
        }
        self.nearest >= NEARLY
    }

    /// Gives one addition a separate adder that loses nothing before it rounds, if one explains all dots about it.
    /// Otherwise tries the same adder for the additions on the way to d as well, except the one that gives d, in case
    /// rounding twice looked like rounding once. Returns whether an adder was found.
    fn plainly(&mut self, node: usize, role: Role, which: &[usize]) -> bool {
        let above: Vec<usize> = self.tree.above(node).into_iter().filter(|other| *other > 0).collect();
        let told = above.iter().flat_map(|other| &self.told[*other]).chain(which).copied();
        let mut with_those_above: Vec<usize> = told.collect();
        with_those_above.sort_unstable();
        with_those_above.dedup();
        let before = self.of.clone();
        self.add(node, role);
        let own = self.adders.len() - 1;
        let id = self.experiments.subject.id();
        let cores = exact_cores(role, &self.adders[own].clone(), id, self.bits, &ON_THE_WAY);
        let tries = [(Vec::new(), which), (above, &with_those_above[..])];
        for (changed, which) in tries.into_iter().take(if with_those_above.len() > which.len() { 2 } else { 1 }) {
            changed.into_iter().for_each(|other| self.of[other] = Some(own));
            for adder in &cores {
                self.adders.set(own, adder.clone());
                let hypothesis = self.hypothesis();
                if explained(self.experiments, &hypothesis, which, 0).is_some() {
                    return true;
                }
            }
        }
        self.adders.pop();
        self.roles.pop();
        self.of = before;
        false
    }

    /// Gives one addition the adder of another with a result of its own: another format, fewer bits, another rounding.
    /// Takes the first that explains all dots about it, and returns false if none does.
    fn with_its_own_result(&mut self, node: usize, role: Role, which: &[usize]) -> bool {
        let some = spread(which, FIRST);
        for class in 0..self.adders.len() {
            let from = self.adders[class].clone();
            self.adders.push(from.clone());
            self.roles.push(role);
            let own = self.adders.len() - 1;
            self.of[node] = Some(own);
            let mut formats = ON_THE_WAY.to_vec();
            if let Output::Float { format, .. } = from.output {
                formats.retain(|other| *other != format);
                formats.insert(0, format);
            }
            for format in formats {
                let adder = in_format(&from, format).unwrap_or_else(|| from.clone());
                let Output::Float { overflow, subnormals, .. } = adder.output else { continue };
                for fraction_bits in (1..=format.fraction_bits()).rev() {
                    for rounding in Rounding::values() {
                        let output = Output::Float { format, fraction_bits, rounding, overflow, subnormals };
                        self.adders.set(own, Adder { output, ..adder.clone() });
                        let hypothesis = self.hypothesis();
                        if explained(self.experiments, &hypothesis, &some, 0).is_some()
                            && explained(self.experiments, &hypothesis, which, 0).is_some()
                        {
                            return true;
                        }
                    }
                }
            }
            self.adders.pop();
            self.roles.pop();
            self.of[node] = None;
        }
        false
    }

    /// Replaces an adder by another one for all its additions, if that explains at least as many of the dots about
    /// them: an adder that was inferred from few dots may be the same as one that was inferred later.
    fn shared_at_the_ends(&mut self, class: usize) {
        let which = self.all_about(class);
        let mut most = explained(self.experiments, &self.hypothesis(), &which, which.len()).unwrap_or(0);
        let before = self.of.clone();
        for other in (0..self.adders.len()).filter(|other| *other != class) {
            let with = |own: &Option<usize>| if *own == Some(class) { Some(other) } else { *own };
            let kept = std::mem::replace(&mut self.of, before.iter().map(with).collect());
            let hypothesis = self.hypothesis();
            match explained(self.experiments, &hypothesis, &which, which.len() - most) {
                Some(right) => most = right,
                None => self.of = kept,
            }
        }
    }

    /// Infers the format of an adder's results from dots at the ends of formats: values of a moderate size show only
    /// its precision.
    fn format_at_the_ends(&mut self, class: usize, which: &[usize]) {
        if self.roles[class] == Role::Root {
            return;
        }
        let mut best = self.adders[class].clone();
        let mut most = explained(self.experiments, &self.hypothesis(), which, which.len()).unwrap_or(0);
        for format in ON_THE_WAY {
            let Some(adder) = in_format(&best, format) else { continue };
            self.adders.set(class, adder.clone());
            let hypothesis = self.hypothesis();
            if let Some(right) = explained(self.experiments, &hypothesis, which, which.len() - most)
                && right > most
            {
                (best, most) = (adder, right);
            }
        }
        self.adders.set(class, best);
    }

    /// Gives one addition another of the adders, or a separate one, if that explains more. An addition that was
    /// inferred from moderate values only may differ from those that share its adder if terms are far apart.
    fn apart_at_the_ends(&mut self, node: usize, role: Role) {
        let Some(class) = self.of[node] else { return };
        let which = self.about[node].clone();
        let is_shared = self.of.iter().filter(|of| **of == Some(class)).count() > 1;
        if !is_shared || which.len() < TELLING || self.experiments.is_late() {
            return;
        }
        let right = self.right(node, class, &which);
        if right == which.len() {
            return;
        }
        for other in (0..self.adders.len()).rev().filter(|other| *other != class) {
            if self.right(node, other, &which) == which.len() {
                self.of[node] = Some(other);
                return;
            }
        }
        let flush = self.flush;
        self.add(node, role);
        let own = self.adders.len() - 1;
        // Half of the unexplained dots must now be explained.
        if 2 * self.made((node, own), &which) < right + which.len() {
            self.adders.pop();
            self.roles.pop();
            self.of[node] = Some(class);
            self.flush = flush;
        }
    }

    /// Refines every adder with the dots about its additions, including those at the ends of the range.
    pub(in crate::identify) fn at_the_ends(&mut self, unary: &[usize]) {
        // Refine the adder that gives d first, with all that its own dots show.
        let (first, flush, about) = (self.adders[0].clone(), self.flush, self.about[0].clone());
        if self.climbed(0, &about) < about.len() {
            (self.adders[0], self.flush) = (first, flush);
        }
        let mut unexplained = Vec::new();
        for node in 0..self.of.len() {
            // Do not make up for the errors of an addition above this one.
            if node > 0 && self.tree.above(node).iter().all(|above| !unexplained.contains(above)) {
                self.apart_at_the_ends(node, if unary.contains(&node) { Role::Product } else { Role::Inner });
            }
            let which = self.about[node].clone();
            let hypothesis = self.hypothesis();
            if explained(self.experiments, &hypothesis, &which, which.len() / FEW_OF).is_none() {
                unexplained.push(node);
            }
        }
        for class in 1..self.adders.len() {
            self.shared_at_the_ends(class);
        }
        let about: Vec<Vec<usize>> = (0..self.adders.len()).map(|class| self.all_about(class)).collect();
        for (class, all) in about.iter().enumerate() {
            self.format_at_the_ends(class, all);
        }
        for (class, all) in about.into_iter().enumerate() {
            if !all.is_empty() && !self.experiments.is_late() {
                self.climbed(class, &all);
            }
        }
    }

    /// Returns the dots about the additions of one adder.
    fn all_about(&self, class: usize) -> Vec<usize> {
        let own = (0..self.of.len()).filter(|node| self.of[*node] == Some(class));
        let mut all: Vec<usize> =
            own.flat_map(|node| self.told[node].iter().chain(&self.about[node])).copied().collect();
        all.sort_unstable();
        all.dedup();
        spread(&all, 2 * TOLD_BY)
    }

    /// Gives an addition a new adder, of which nothing is known.
    fn add(&mut self, node: usize, role: Role) {
        let id = self.experiments.subject.id();
        let adder = if role == Role::Root {
            let output = float(id.d, self.bits, Rounding::NearestEven);
            Adder::exact("sum", output, nan::seen(self.experiments, id.d))
        } else {
            self.neutral.as_ref().unwrap_or(&self.plain).clone()
        };
        self.adders.push(adder);
        self.roles.push(role);
        self.of[node] = Some(self.adders.len() - 1);
    }

    /// Changes one adder value by value. Returns how many of the dots it explains then.
    fn climbed(&mut self, class: usize, which: &[usize]) -> usize {
        let now = Scored { hypothesis: self.hypothesis(), explained: 0 };
        let domain = Domain { reading: class == 0, ..Domain::of_adder(class, which.to_vec()) };
        let scored = climb(self.experiments, now, 0, &domain);
        self.adders.set(class, scored.hypothesis.adders[class].clone());
        self.flush = scored.hypothesis.flush;
        scored.explained
    }

    /// Tries every possible adder for one addition, then changes single values of the best; tries a separate grid rule
    /// for values if one rule is not enough. Returns how many of the dots the best explains.
    fn made(&mut self, (node, class): (usize, usize), which: &[usize]) -> usize {
        let ordinary: Vec<usize> =
            which.iter().copied().filter(|at| self.experiments.ordinary.binary_search(at).is_ok()).collect();
        let ordinary = if ordinary.len() < TELLING { which.to_vec() } else { ordinary };
        let (first, second) = (spread(&ordinary, FIRST), spread(&ordinary, TOLD_BY));
        let from = self.hypothesis();
        let now = Scored { hypothesis: from.clone(), explained: 0 };
        let beam = sweep_class(self.experiments, vec![now], class, self.bits, &ON_THE_WAY, &first, &second);
        // An adder that passes its sum on unrounded and one that rounds it may look alike so far.
        let is_wide = |scored: &Scored| scored.hypothesis.adders[class].output == Output::Wide;
        let other = beam.iter().position(|scored| is_wide(scored) != is_wide(&beam[0])).unwrap_or(1);
        let some: Vec<Scored> = [0, other].into_iter().filter_map(|at| beam.get(at)).cloned().collect();
        let mut best: Option<Scored> = None;
        // Candidates that explain too little are not changed value by value.
        if beam.first().is_some_and(|best| best.explained * 100 >= second.len() * HALF_WAY) {
            self.climbed_from(some, class, which, &mut best);
        }
        if best.as_ref().is_none_or(|best| best.explained * 100 < which.len() * NEARLY) && !self.experiments.is_late() {
            let place = (&self.tree, node, class);
            let apart = beside::with_values_apart(self.experiments, &from, place, self.bits, &ordinary);
            let near =
                apart.into_iter().filter(|scored| scored.explained * 100 >= ordinary.len().min(TOLD_BY) * HALF_WAY);
            self.climbed_from(near.collect(), class, which, &mut best);
        }
        let Some(best) = best else { return 0 };
        self.adders.set(class, best.hypothesis.adders[class].clone());
        self.flush = best.hypothesis.flush;
        best.explained
    }

    /// Changes one adder of each of some candidates value by value, until one explains all of these dots. Updates
    /// `best`.
    fn climbed_from(&mut self, some: Vec<Scored>, class: usize, which: &[usize], best: &mut Option<Scored>) {
        for candidate in some {
            if best.as_ref().is_some_and(|best| best.explained == which.len()) {
                break;
            }
            let domain = Domain { reading: class == 0, ..Domain::of_adder(class, which.to_vec()) };
            let found = climb(self.experiments, candidate, 0, &domain);
            if best.as_ref().is_none_or(|best| found.explained > best.explained) {
                *best = Some(found);
            }
        }
    }
}
