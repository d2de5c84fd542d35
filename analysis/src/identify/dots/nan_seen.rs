//! The bits of the NaN that dots gave, and what caused them.

use mxprobe_api::{Decoded, Format, OperationId};

use crate::dots::Dot;

/// The results of dots that have one cause for a NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::identify) enum Same {
    #[default]
    None,
    /// All have these bits.
    Bits(u64),
    Several,
}

impl Same {
    fn join(&mut self, bits: u64) {
        *self = match *self {
            Self::None => Self::Bits(bits),
            Self::Bits(other) if other == bits => Self::Bits(bits),
            _ => Self::Several,
        };
    }
}

/// The NaN seen so far.
#[derive(Default)]
pub(in crate::identify) struct NanSeen {
    /// The bits of each, in the order in which they were seen, and how often.
    pub(in crate::identify) counts: Vec<(u64, usize)>,
    /// Of a single NaN in A or B.
    pub(in crate::identify) of_operand: Same,
    /// Of a NaN in c.
    pub(in crate::identify) of_value: Same,
    /// The first of dots with an infinity and no NaN.
    pub(in crate::identify) of_invalid: Option<u64>,
}

fn is_nan(format: Format, bits: u64) -> bool {
    matches!(format.decode(bits), Decoded::Nan { .. })
}

impl NanSeen {
    /// Counts the result of a dot, if it is NaN.
    pub(super) fn note(&mut self, id: &OperationId, dot: &Dot, answer: u64) {
        if !is_nan(id.d, answer) {
            return;
        }
        match self.counts.iter_mut().find(|(bits, _)| *bits == answer) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((answer, 1)),
        }
        let operands = || dot.a.iter().map(|bits| (id.a, *bits)).chain(dot.b.iter().map(|bits| (id.b, *bits)));
        let nans = operands().filter(|(format, bits)| is_nan(*format, *bits)).count();
        let is_infinite = |(format, bits): (Format, u64)| matches!(format.decode(bits), Decoded::Infinity { .. });
        match (nans, is_nan(id.c, dot.c), operands().any(is_infinite)) {
            (1, false, false) => self.of_operand.join(answer),
            (0, true, false) => self.of_value.join(answer),
            (0, false, true) => self.of_invalid = self.of_invalid.or(Some(answer)),
            _ => {}
        }
    }
}
