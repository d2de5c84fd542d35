//! Traces: every step by which the exact evaluator reached its result.

mod text;

use mxprobe_api::OperationId;

use crate::{
    exact::{Dot, Observer, Step, evaluate_observed},
    model::Model,
};

/// Every step of one dot.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The steps, first to last.
    pub steps: Vec<Step>,
    /// d.
    pub result: u64,
}

impl Observer for Vec<Step> {
    fn observe(&mut self, step: impl FnOnce() -> Step) {
        self.push(step());
    }
}

impl Trace {
    /// Traces a dot of an operation through `model`, or returns `None` if the model lacks the operation.
    ///
    /// # Panics
    /// If the dot has fewer products than the operation's k.
    #[must_use]
    pub fn of(model: &Model, id: &OperationId, dot: Dot<'_>) -> Option<Self> {
        let (unit, plan) = model.plan(id)?;
        let mut steps = Vec::new();
        let result = evaluate_observed(&model.adders, unit, &plan, id, dot, &mut steps);
        Some(Self { steps, result })
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Format;

    use super::*;
    use crate::load;
    use crate::{exact::Exact, tree::Term};

    fn exact(format: Format, bits: u64) -> Exact {
        Exact::decode(format, bits).unwrap()
    }

    #[test]
    fn exact_values_are_written_in_hexadecimal() {
        for (format, bits, text) in [
            (Format::F32, 0x3fc0_0000, "0x1.8p+0"),
            (Format::F32, 0x8000_0001, "-0x1p-149"),
            (Format::F32, 0x3f80_0001, "0x1.000002p+0"),
            (Format::F16, 0x3555, "0x1.554p-2"),
            (Format::F32, 0x8000_0000, "-0"),
        ] {
            assert_eq!(exact(format, bits).to_string(), text);
        }
    }

    #[test]
    fn what_is_lost_is_the_difference_of_magnitudes() {
        let (whole, kept) = (exact(Format::F32, 0xbfc0_0000), exact(Format::F32, 0xbf80_0000));
        assert_eq!(whole.lost(&kept), Some(exact(Format::F32, 0x3f00_0000)));
        assert_eq!(kept.lost(&whole), Some(exact(Format::F32, 0xbf00_0000)));
        assert_eq!(whole.lost(&exact(Format::F32, 0x3f80_0000)), None);
    }

    #[test]
    fn a_trace_tells_every_step_and_ends_with_the_evaluator_s_result() {
        let model = load("v100").unwrap();
        let id: OperationId = "mma.m8n8k4.f32.f16.f16.f32".parse().unwrap();
        // 2^15 + 2^-9, of which the grid keeps only the first.
        let (a, b) = ([0x7800, 0x0400, 0, 0], [0x3c00, 0x4800, 0, 0]);
        let trace = Trace::of(&model, &id, Dot { a: &a, b: &b, c: 0, scales: None }).unwrap();
        assert!(trace.steps.contains(&Step::Grid { unit: -8, exponent: Some(15) }), "{:?}", trace.steps);
        assert!(trace.steps.contains(&Step::Aligned { term: Term::Product(1), kept: exact(Format::F32, 0) }));
        assert_eq!(trace.steps.last(), Some(&Step::Rounded { format: Format::F32, bits: 0x4700_0000 }));
        assert_eq!(trace.result, 0x4700_0000);
    }
}
