//! Pools of dots on which a hypothesis is compared with its rivals.

use mxprobe_api::OperationId;
use mxprobe_models::{Flush, Sample};

use crate::{
    dots::Dot,
    identify::{
        candidates::{hypothesis::Hypothesis, scored::modelled},
        dots::experiments::{is_read_otherwise, sample_of},
    },
};

/// The most dots returned for each rival.
const ASKED: usize = 3;

/// Dots, and their results by the hypothesis.
pub(in crate::identify) struct Pool {
    dots: Vec<Dot>,
    flush: Flush,
    sample: Sample,
    own: Vec<u64>,
}

impl Pool {
    /// Computes these dots with the hypothesis.
    pub(in crate::identify) fn new(id: &OperationId, dots: Vec<Dot>, hypothesis: &Hypothesis) -> Self {
        let sample = sample_of(id, &dots, hypothesis.flush);
        let mut own = Vec::with_capacity(dots.len());
        if let Ok(evaluator) = hypothesis.evaluator(id) {
            evaluator.visit(&sample, 0..dots.len(), |_, d| {
                own.push(d);
                true
            });
        }
        Self { dots, flush: hypothesis.flush, sample, own }
    }

    /// Returns the first dots on which another hypothesis differs.
    pub(in crate::identify) fn split(&self, id: &OperationId, other: &Hypothesis) -> Vec<Dot> {
        let mut found = Vec::new();
        if other.flush != self.flush {
            // With another flush rule, only dots that it reads differently are compared.
            let reads = |at: &usize| is_read_otherwise(id, &self.dots[*at], self.flush, other.flush);
            let which: Vec<usize> = (0..self.own.len()).filter(reads).collect();
            let dots: Vec<Dot> = which.iter().map(|at| self.dots[*at].clone()).collect();
            let Ok(modelled) = modelled(id, other, &dots) else { return found };
            let differs = dots.into_iter().zip(modelled).zip(which).filter(|((_, d), at)| *d != self.own[*at]);
            return differs.map(|((dot, _), _)| dot).take(ASKED).collect();
        }
        let Ok(evaluator) = other.evaluator(id) else { return found };
        evaluator.visit(&self.sample, 0..self.own.len(), |at, d| {
            if d != self.own[at] {
                found.push(self.dots[at].clone());
            }
            found.len() < ASKED
        });
        found
    }
}
