//! The ways in which a unit may read operands: flush rules and conversions.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use mxprobe_api::{Decoded, Format, OperationId};
use mxprobe_models::{Flush, Sample, holds};

use crate::dots::Dot;

/// The formats to which operands may be converted before they are multiplied.
const CONVERTED: [Format; 3] = [Format::F16, Format::F32, Format::F64];

/// The number of ways to read operands: flush rules, with and without conversions.
const READINGS: usize = 16 * (1 + CONVERTED.len());

/// Returns the number of a way to read operands.
fn number_of(flush: Flush) -> usize {
    let to = |format: Format| CONVERTED.iter().position(|known| *known == format).map_or(0, |at| at + 1);
    let flags = [flush.a, flush.b, flush.c, flush.to_positive];
    flags.into_iter().fold(flush.converted.map_or(0, to), |number, flag| 2 * number + usize::from(flag))
}

/// Returns other conversions of the operands of an operation, each of which gives other operands their exponents.
pub(in crate::identify) fn conversions(id: &OperationId, now: Flush) -> Vec<Flush> {
    let effect = |flush: Flush| [id.a, id.b].map(|format| flush.normalises(format));
    let mut found = vec![now];
    for converted in std::iter::once(None).chain(CONVERTED.map(Some)) {
        let flush = Flush { converted, ..now };
        let is_new = found.iter().all(|known| effect(*known) != effect(flush));
        if is_new && converted.is_none_or(|to| [id.a, id.b].into_iter().all(|from| holds(to, from))) {
            found.push(flush);
        }
    }
    found.split_off(1)
}

/// The dots so far as read under one flush rule, once a candidate has needed them.
#[derive(Default)]
struct Reading {
    sample: OnceLock<Sample>,
    /// Whether a candidate has needed them since dots were last added.
    is_used: AtomicBool,
}

/// Dots are also added to readings that are not in use, if there are fewer than one for so many in them.
const FEW_MORE: usize = 16;

impl Reading {
    /// Adds dots. A reading that is not in use is rather made anew when it is needed.
    fn extend(&mut self, dots: &[Dot]) {
        let is_used = std::mem::take(self.is_used.get_mut());
        let Some(sample) = self.sample.get_mut() else { return };
        if is_used || dots.len() * FEW_MORE < sample.len() {
            dots.iter().for_each(|dot| push(sample, dot));
        } else {
            self.sample.take();
        }
    }
}

/// The dots so far as read in every way that a candidate has needed.
pub(super) struct Readings([Reading; READINGS]);

impl Readings {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Reading::default()))
    }

    /// Adds dots.
    pub(super) fn extend(&mut self, dots: &[Dot]) {
        self.0.iter_mut().for_each(|reading| reading.extend(dots));
    }

    /// Returns the dots so far as an evaluator with this flush rule reads them; `dots` must be all that were added.
    pub(super) fn sample(&self, id: &OperationId, dots: &[Dot], flush: Flush) -> &Sample {
        let reading = &self.0[number_of(flush)];
        reading.is_used.store(true, Ordering::Relaxed);
        reading.sample.get_or_init(|| sample_of(id, dots, flush))
    }
}

/// A set of operands of a dot.
#[derive(Clone, Copy, Default)]
pub(in crate::identify) struct Operands {
    pub(in crate::identify) a: bool,
    pub(in crate::identify) b: bool,
    pub(in crate::identify) c: bool,
}

impl Operands {
    /// Returns the operands whose subnormals two flush rules read differently.
    pub(in crate::identify) fn read_otherwise(id: &OperationId, one: Flush, other: Flush) -> Self {
        let moved = one.to_positive != other.to_positive;
        let changes = |one: bool, other: bool| one != other || moved && one;
        let converts = |format: Format| one.normalises(format) != other.normalises(format);
        Self {
            a: changes(one.a, other.a) || converts(id.a),
            b: changes(one.b, other.b) || converts(id.b),
            c: changes(one.c, other.c),
        }
    }

    /// Whether two sets have an operand in common.
    pub(super) fn share(self, other: Self) -> bool {
        self.a && other.a || self.b && other.b || self.c && other.c
    }
}

/// Whether two flush rules read a dot differently.
pub(in crate::identify) fn is_read_otherwise(id: &OperationId, dot: &Dot, one: Flush, other: Flush) -> bool {
    subnormal(id, dot).share(Operands::read_otherwise(id, one, other))
}

/// Returns the operands of a dot that hold a subnormal.
pub(super) fn subnormal(id: &OperationId, dot: &Dot) -> Operands {
    let is = |format: Format, bits: u64| match format.decode(bits) {
        Decoded::Finite { significand, .. } => significand >> format.fraction_bits() == 0,
        _ => false,
    };
    let any = |format: Format, all: &[u64]| !format.is_integer() && all.iter().any(|bits| is(format, *bits));
    Operands { a: any(id.a, &dot.a), b: any(id.b, &dot.b), c: any(id.c, &[dot.c]) }
}

/// Adds a dot to a sample.
pub(in crate::identify) fn push(sample: &mut Sample, dot: &Dot) {
    let scales = dot.scale_slices();
    sample.push(mxprobe_models::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales });
}

/// Returns dots as an evaluator with this flush rule reads them.
pub(in crate::identify) fn sample_of(id: &OperationId, dots: &[Dot], flush: Flush) -> Sample {
    let mut sample = Sample::new(id, flush);
    sample.reserve(dots.len());
    dots.iter().for_each(|dot| push(&mut sample, dot));
    sample
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Rounding;
    use mxprobe_models::{Adder, Evaluator, NanRules, Path};

    use super::*;
    use crate::dots::draw;

    #[test]
    fn a_dot_gives_other_bits_under_another_rule_of_flushing_only_if_it_is_read_otherwise() {
        let id = OperationId::new("dot", (4, 4, 4), Format::F32, Format::F16, Format::BF16, Format::F32);
        let output = crate::identify::candidates::hypothesis::float(Format::F32, 23, Rounding::NearestEven);
        let adders = [Adder::exact("sum", output, NanRules { invalid: 0x7fc0_0000, ..NanRules::default() })];
        let plan = std::sync::Arc::new(mxprobe_models::plan_of("sum(all, c)", &["sum"], 4).unwrap());
        let rules = |bits: u8| Flush {
            a: bits & 1 > 0,
            b: bits & 2 > 0,
            c: bits & 4 > 0,
            to_positive: bits & 8 > 0,
            ..Flush::default()
        };
        let dots = draw(&id, 1, 2_000);
        let answers: Vec<Vec<u64>> = (0..16)
            .map(|bits| {
                let mut sample = Sample::new(&id, rules(bits));
                dots.iter().for_each(|dot| push(&mut sample, dot));
                let mut found = Vec::new();
                let evaluator = Evaluator::of_plan(adders.clone(), rules(bits), &plan, &id, Path::Scalar).unwrap();
                evaluator.visit(&sample, 0..dots.len(), |_, d| {
                    found.push(d);
                    true
                });
                found
            })
            .collect();
        let mut told = 0;
        for (one, other) in (0..16u8).flat_map(|one| (0..16u8).map(move |other| (one, other))) {
            for (at, dot) in dots.iter().enumerate() {
                let differs = answers[usize::from(one)][at] != answers[usize::from(other)][at];
                let is_read_otherwise = is_read_otherwise(&id, dot, rules(one), rules(other));
                assert!(is_read_otherwise || !differs, "{one} {other} {}", dot.show(&id));
                told += usize::from(differs);
            }
        }
        assert!(told > 1_000, "{told}");
    }
}
