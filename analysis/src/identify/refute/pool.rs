//! Pools of dots on which a hypothesis is compared with its rivals.

use std::ops::Range;

use mxprobe_api::OperationId;
use mxprobe_models::{Flush, Sample};

use crate::{
    dots::Dot,
    identify::{
        candidates::{hypothesis::Hypothesis, scored::modelled},
        dots::{
            experiments::{Experiments, Limit},
            operands::{is_read_otherwise, sample_of},
        },
    },
};

/// The most dots returned for each rival.
const ASKED: usize = 3;

/// Dots that a thread computes at a time.
const PIECE: usize = 512;

/// Divides these dots into pieces.
fn pieces(dots: Range<usize>) -> Vec<Range<usize>> {
    dots.clone().step_by(PIECE).map(|from| from..dots.end.min(from + PIECE)).collect()
}

/// Dots, and their results by the hypothesis.
pub(in crate::identify) struct Pool {
    dots: Vec<Dot>,
    flush: Flush,
    sample: Sample,
    own: Vec<u64>,
}

impl Pool {
    /// Computes these dots with the hypothesis, on every core.
    pub(in crate::identify) fn new(
        experiments: &mut Experiments<'_, '_>,
        dots: Vec<Dot>,
        hypothesis: &Hypothesis,
    ) -> Self {
        let sample = sample_of(experiments.subject.id(), &dots, hypothesis.flush);
        let own = experiments.each(Limit::None, 1, &pieces(0..dots.len()), |_, answered, piece| {
            let mut own = Vec::with_capacity(piece.len());
            if let Ok(evaluator) = hypothesis.evaluator(answered.id) {
                evaluator.visit(&sample, piece.clone(), |_, d| {
                    own.push(d);
                    true
                });
            }
            own
        });
        Self { own: own.concat(), dots, flush: hypothesis.flush, sample }
    }

    /// Returns the first dots on which another hypothesis differs, as [`Pool::split`] does. The first few dots show most
    /// rivals, and the others are computed on every core.
    pub(in crate::identify) fn split_by_all(
        &self,
        experiments: &mut Experiments<'_, '_>,
        other: &Hypothesis,
    ) -> Vec<Dot> {
        let id = experiments.subject.id();
        if other.flush != self.flush {
            return self.split(id, other);
        }
        let first = self.own.len().min(PIECE);
        let mut found = self.split_among(id, other, 0..first);
        if found.len() < ASKED {
            let more = experiments.each(Limit::None, 1, &pieces(first..self.own.len()), |_, answered, piece| {
                self.split_among(answered.id, other, piece.clone())
            });
            found.extend(more.into_iter().flatten());
            found.truncate(ASKED);
        }
        found
    }

    /// Returns the first dots on which another hypothesis differs.
    pub(in crate::identify) fn split(&self, id: &OperationId, other: &Hypothesis) -> Vec<Dot> {
        if other.flush != self.flush {
            // With another flush rule, only dots that it reads differently are compared.
            let reads = |at: &usize| is_read_otherwise(id, &self.dots[*at], self.flush, other.flush);
            let which: Vec<usize> = (0..self.own.len()).filter(reads).collect();
            let dots: Vec<Dot> = which.iter().map(|at| self.dots[*at].clone()).collect();
            let Ok(modelled) = modelled(id, other, &dots) else { return Vec::new() };
            let differs = dots.into_iter().zip(modelled).zip(which).filter(|((_, d), at)| *d != self.own[*at]);
            return differs.map(|((dot, _), _)| dot).take(ASKED).collect();
        }
        self.split_among(id, other, 0..self.own.len())
    }

    /// Returns the first of these dots on which another hypothesis with the same flush rule differs.
    fn split_among(&self, id: &OperationId, other: &Hypothesis, which: Range<usize>) -> Vec<Dot> {
        let mut found = Vec::new();
        let Ok(evaluator) = other.evaluator(id) else { return found };
        evaluator.visit(&self.sample, which, |at, d| {
            if d != self.own[at] {
                found.push(self.dots[at].clone());
            }
            found.len() < ASKED
        });
        found
    }
}
