//! Whether the same dot gives the same bits: again, at other places of a tile, beside other dots, and after other calls.

use mxprobe_api::{Elements, Error, TileBatch, execute};

use super::{
    hypothesis::Hypothesis,
    outcome::Outcome,
    run::Search,
    tiles::{Spread, fill},
};
use crate::{
    dots::{Dot, Random, draw, seed_of},
    nan_bits::NanBits,
    probes::steadiness,
};

/// Calls of one batch, again and again, and elements of D that they compute in all.
const CALLS: usize = 1_024;
const MOST_ELEMENTS: usize = 1 << 19;
/// Products that each multiplier is given alone, or nearly alone, at the most.
const OF_EACH_MULTIPLIER: usize = 16;
const MOST_PLACED: usize = 1 << 18;

/// An element of D whose bits another call, place or neighbour changes.
struct Differs {
    how: String,
    dot: Dot,
    now: u64,
    before: u64,
}

impl Search<'_, '_> {
    fn unrepeatable(&self, differs: Differs) -> Outcome {
        let Differs { how, dot, now, before } = differs;
        let id = self.subject().id();
        let about = format!("gave {} before", id.d.hex(before));
        let evidence = self.subject().evidence(about, &dot, now, &[("before".into(), before)]);
        let nan = if NanBits::Any.alike(id.d, now, before) { NanBits::HINT } else { "" };
        let what = format!("the same dot gives other bits {how}{nan}");
        Outcome::Unrepeatable { what, evidence: Some(evidence) }
    }

    /// The same dots again: at once, in another order, alone, at other places, and in many calls.
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
        (self.progress)("asking the same again in many calls");
        self.many_calls()
    }

    /// Dots that were answered, asked at other places and beside others.
    pub(super) fn elsewhere(&self, dots: &[Dot], answers: &[u64], shift: usize) -> Result<Option<Outcome>, Error> {
        let id = self.subject().id();
        let (m, n, _) = id.shape.sizes();
        let turned: Vec<Dot> = dots.iter().rev().cloned().collect();
        let mut moved = self.subject().ask_from(&turned, shift)?;
        moved.reverse();
        let Some(at) = (0..dots.len()).find(|at| moved[*at] != answers[*at]) else { return Ok(None) };
        // Where: the place at which most others agree is taken as right.
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

    /// Two full batches of one tile each, in turns that follow no pattern, as often as that is cheap.
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

    fn execute(&self, batch: &TileBatch) -> Result<Elements, Error> {
        execute(self.subject().device(), self.subject().operation(), batch)
    }

    /// Tiles every element of which is drawn.
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

    /// What was found against every multiplier of a tile: each row, column and k, nearly alone and among others. What
    /// differs at one place and not at others is no arithmetic; what differs everywhere is a dot to learn from.
    pub(super) fn every_place(&mut self, found: &Hypothesis) -> Result<Result<Vec<Dot>, Outcome>, Error> {
        let subject = self.experiments.subject;
        let id = subject.id();
        let (m, n, k) = id.shape.sizes();
        let mut random = Random(seed_of(self.effort.seed, 9));
        let evaluator = found.fastest_evaluator(id)?;
        // As many k of each row hold a value as bring all of them into so many tiles.
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

/// The bits that come most often.
fn majority(answers: &[u64]) -> u64 {
    let count = |bits: u64| answers.iter().filter(|other| **other == bits).count();
    answers.iter().copied().max_by_key(|bits| count(*bits)).unwrap_or(0)
}

/// The first element of two results that is not the same.
fn differing(one: &Elements, other: &Elements) -> Option<usize> {
    if one.bytes() == other.bytes() {
        return None;
    }
    (0..one.len().min(other.len())).find(|at| one.get(*at) != other.get(*at))
}
