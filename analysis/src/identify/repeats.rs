//! Checks that the same dot always gives the same bits: when repeated, at other places of a tile, next to other dots,
//! and after other calls.

use mxprobe_api::{Elements, Error, TileBatch, execute};

use super::{
    candidates::hypothesis::Hypothesis,
    dots::tiles::{Spread, fill},
    outcome::Outcome,
    run::Search,
};
use crate::{
    dots::{Dot, Random, draw, seed_of},
    nan_bits::NanBits,
    probes::steadiness,
};

/// The most calls that repeat the same batches, and the most elements of D that they compute in total.
const CALLS: usize = 1_024;
const MOST_ELEMENTS: usize = 1 << 19;
/// The most products that each multiplier computes alone or nearly alone, and the most products in one such batch.
const OF_EACH_MULTIPLIER: usize = 16;
const MOST_PLACED: usize = 1 << 18;

/// An element of D whose bits change with the call, the place or the neighbours.
struct Differs {
    /// The change, as the end of a sentence.
    how: String,
    dot: Dot,
    now: u64,
    before: u64,
}

impl Search<'_, '_> {
    /// Makes the outcome, with a hint at `--nan any` if both results are NaN.
    fn unrepeatable(&self, differs: Differs) -> Outcome {
        let Differs { how, dot, now, before } = differs;
        let id = self.subject().id();
        let about = format!("gave {} before", id.d.hex(before));
        let evidence = self.subject().evidence(about, &dot, now, &[("before".into(), before)]);
        let nan = if NanBits::Any.alike(id.d, now, before) { NanBits::HINT } else { "" };
        let what = format!("the same dot gives other bits {how}{nan}");
        Outcome::Unrepeatable { what, evidence: Some(evidence) }
    }

    /// Computes the same dots again: immediately, in reverse order, alone, at other places, and in many calls. Returns
    /// [`Outcome::Unrepeatable`] if any bits differ.
    pub(super) fn repeats(&mut self) -> Result<Option<Outcome>, Error> {
        let subject = self.experiments.subject;
        for finding in steadiness(subject)? {
            if finding.is(false) {
                let what = format!("{}: {}", finding.probe, finding.statement);
                return Ok(Some(Outcome::Unrepeatable { what, evidence: finding.evidence.into_iter().next() }));
            }
        }
        let dots = draw(subject.id(), seed_of(self.effort.seed, 7), 512);
        let first = subject.ask(&dots)?;
        let again = subject.ask(&dots)?;
        let turned: Vec<Dot> = dots.iter().rev().cloned().collect();
        let mut reversed = subject.ask(&turned)?;
        reversed.reverse();
        let mut alone = Vec::new();
        for dot in dots.iter().take(24) {
            alone.extend(subject.ask(std::slice::from_ref(dot))?);
        }
        let ways = [
            ("when it is asked again in the same place", &again),
            ("when it is asked in another order", &reversed),
            ("when it is asked alone", &alone),
        ];
        for (how, answers) in ways {
            if let Some(at) = (0..answers.len()).find(|at| answers[*at] != first[*at]) {
                let (dot, now, before) = (dots[at].clone(), answers[at], first[at]);
                return Ok(Some(self.unrepeatable(Differs { how: how.into(), dot, now, before })));
            }
        }
        if let Some(outcome) = self.elsewhere(&dots, &first, 1)? {
            return Ok(Some(outcome));
        }
        (self.progress)("repeating the same tiles in many calls");
        self.many_calls()
    }

    /// Computes dots whose results are known at other places and next to other dots. Returns [`Outcome::Unrepeatable`]
    /// if any bits differ.
    pub(super) fn elsewhere(&self, dots: &[Dot], answers: &[u64], shift: usize) -> Result<Option<Outcome>, Error> {
        let id = self.subject().id();
        let (m, n, _) = id.shape.sizes();
        let turned: Vec<Dot> = dots.iter().rev().cloned().collect();
        let mut moved = self.subject().ask_from(&turned, shift)?;
        moved.reverse();
        let Some(at) = (0..dots.len()).find(|at| moved[*at] != answers[*at]) else { return Ok(None) };
        // To find the place that differs, the dot is computed at every place; the most frequent result counts as right.
        let dot = dots[at].clone();
        let mut seen: Vec<(usize, usize, u64)> = Vec::new();
        let (_, places) = crate::dots::pack(self.subject().operation(), &vec![dot.clone(); m * n]);
        let everywhere = self.subject().ask(&vec![dot.clone(); m * n])?;
        seen.extend(places.iter().zip(&everywhere).map(|(place, d)| (place / n % m, place % n, *d)));
        let usual = majority(&everywhere);
        let odd = seen.iter().find(|(.., d)| *d != usual);
        let differs = match odd {
            Some((row, column, d)) => {
                Differs { how: format!("at row {row}, column {column} of a tile"), dot, now: *d, before: usual }
            }
            None => {
                Differs { how: "when it is asked again beside others".into(), dot, now: moved[at], before: answers[at] }
            }
        };
        Ok(Some(self.unrepeatable(differs)))
    }

    /// Computes two random tiles again and again, in random order, as often as is cheap. Returns
    /// [`Outcome::Unrepeatable`] if any bits differ.
    fn many_calls(&self) -> Result<Option<Outcome>, Error> {
        let subject = self.experiments.subject;
        let (m, n, _) = subject.id().shape.sizes();
        let mut random = Random(seed_of(self.effort.seed, 8));
        let batches = [self.random_tiles(&mut random, 1), self.random_tiles(&mut random, 1)];
        let first = [self.execute(&batches[0])?, self.execute(&batches[1])?];
        for call in 0..(MOST_ELEMENTS / (m * n)).clamp(64, CALLS) {
            let which = usize::from(random.flip());
            let again = self.execute(&batches[which])?;
            if let Some(at) = differing(&first[which], &again) {
                let dot = Dot::at(subject.id(), &batches[which], at);
                let how = format!(
                    "when it is asked again in the same place (call {} of the same tiles, row {}, column {})",
                    call + 3,
                    at / n % m,
                    at % n
                );
                let (now, before) = (again.get(at), first[which].get(at));
                return Ok(Some(self.unrepeatable(Differs { how, dot, now, before })));
            }
        }
        Ok(None)
    }

    /// Runs a batch on the device.
    fn execute(&self, batch: &TileBatch) -> Result<Elements, Error> {
        execute(self.subject().device(), self.subject().operation(), batch)
    }

    /// Returns tiles of random elements.
    fn random_tiles(&self, random: &mut Random, tiles: usize) -> TileBatch {
        let mut batch = TileBatch::zeros(self.subject().operation(), tiles);
        for elements in [&mut batch.a, &mut batch.b, &mut batch.c] {
            fill(elements, random, Spread::Narrow);
        }
        for scale in [&mut batch.scale_a, &mut batch.scale_b].into_iter().flatten() {
            fill(scale, random, Spread::Narrow);
        }
        batch
    }

    /// Compares the model found with every multiplier of a tile: each row, column and k, nearly alone and among others.
    /// If the result at one place differs from that at most others, the unit is [`Outcome::Unrepeatable`]. Otherwise
    /// returns up to 64 dots on which the model is wrong, from which the search can go on.
    pub(super) fn every_place(&mut self, found: &Hypothesis) -> Result<Result<Vec<Dot>, Outcome>, Error> {
        let subject = self.experiments.subject;
        let id = subject.id();
        let (m, n, k) = id.shape.sizes();
        let mut random = Random(seed_of(self.effort.seed, 9));
        let evaluator = found.fastest_evaluator(id)?;
        // The number of tiles over which the k of each row are spread, so that a batch stays below `MOST_PLACED`.
        let each = (MOST_PLACED / (m * n * k)).clamp(2, OF_EACH_MULTIPLIER);
        let filled = (m * n * k * each).div_ceil(MOST_PLACED).min(k);
        let steps = k.div_ceil(filled);
        let mut odd = Vec::new();
        for round in 0..each + 1 {
            let mut batch = self.random_tiles(&mut random, steps);
            if round < each {
                for at in 0..steps * m * k {
                    let (tile, row, index) = (at / (m * k), at / k % m, at % k);
                    if (index + row + tile) % steps != 0 {
                        batch.a.set(at, 0);
                    }
                }
                (0..batch.c.len()).filter(|at| at % 4 > 0).for_each(|at| batch.c.set(at, 0));
            }
            let d = self.execute(&batch)?;
            let modelled = evaluator.tiles(&batch, 1);
            for at in (0..d.len()).filter(|at| d.get(*at) != modelled.get(*at)) {
                let (dot, got) = (Dot::at(id, &batch, at), d.get(at));
                let again = self.execute(&batch)?.get(at);
                let (row, column) = (at / n % m, at % n);
                if again != got {
                    let how = format!("when it is asked again in the same place (row {row}, column {column})");
                    return Ok(Err(self.unrepeatable(Differs { how, dot, now: again, before: got })));
                }
                let shift = (row + m.max(n) - column % m.max(n)) % m.max(n);
                let others: Vec<u64> = (1..m.max(n))
                    .flat_map(|by| subject.ask_from(std::slice::from_ref(&dot), shift + by))
                    .flatten()
                    .collect();
                let usual =
                    if others.is_empty() { subject.ask(std::slice::from_ref(&dot))?[0] } else { majority(&others) };
                if usual != got {
                    let how = format!("at row {row}, column {column} of a tile");
                    return Ok(Err(self.unrepeatable(Differs { how, dot, now: got, before: usual })));
                }
                odd.push(dot);
                if odd.len() >= 64 {
                    return Ok(Ok(odd));
                }
            }
            self.tested += d.len();
        }
        Ok(Ok(odd))
    }
}

/// Returns the most frequent bits.
fn majority(answers: &[u64]) -> u64 {
    let count = |bits: u64| answers.iter().filter(|other| **other == bits).count();
    answers.iter().copied().max_by_key(|bits| count(*bits)).unwrap_or(0)
}

/// Returns the index of the first element in which two results differ.
fn differing(one: &Elements, other: &Elements) -> Option<usize> {
    if one.bytes() == other.bytes() {
        return None;
    }
    (0..one.len().min(other.len())).find(|at| one.get(*at) != other.get(*at))
}
