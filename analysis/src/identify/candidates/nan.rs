//! The NaN that a unit returns, read from its results.

use mxprobe_api::{Decoded, Format};
use mxprobe_models::{NanCause, NanRules};

use crate::identify::dots::{
    experiments::Experiments,
    nan_seen::{NanSeen, Same},
};
use crate::in_order::InOrder;

/// Returns up to six NaN among the results, the most frequent first. If `format` is not that of d, they are converted
/// to it.
pub(in crate::identify) fn bits_seen(experiments: &Experiments<'_, '_>, format: Format) -> Vec<u64> {
    let d = experiments.subject.id().d;
    let mut counts = experiments.nan.counts.clone();
    counts.order_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().filter_map(|(bits, _)| widened(bits, d, format)).take(6).collect()
}

/// Converts a NaN from one format to another, with the payload aligned to its highest bit. `None` if the other format
/// does not have such a NaN.
fn widened(bits: u64, from: Format, to: Format) -> Option<u64> {
    if from == to {
        return Some(bits);
    }
    let (Decoded::Nan { negative, payload }, Some(of), Some(into)) =
        (from.decode(bits), from.as_float(), to.as_float())
    else {
        return None;
    };
    let infinity = to.infinity(negative)?;
    let payload = if into.fraction_bits >= of.fraction_bits {
        payload << (into.fraction_bits - of.fraction_bits)
    } else {
        payload >> (of.fraction_bits - into.fraction_bits)
    };
    if payload == 0 {
        return None;
    }
    Some(infinity | payload << into.unread_bits)
}

/// Converts the NaN rules of an adder whose result is now in another format.
pub(in crate::identify) fn in_format(rules: &NanRules, from: Format, to: Format) -> NanRules {
    let bits = |bits: u64| widened(bits, from, to).or(to.nan()).unwrap_or(0);
    NanRules {
        order: rules.order.clone(),
        operand: rules.operand.map(bits),
        value: rules.value.map(bits),
        invalid: bits(rules.invalid),
    }
}

/// Returns the rules that the simplest dots show: the result of an invalid operation, and whether payloads are passed
/// on.
pub(in crate::identify) fn seen(experiments: &Experiments<'_, '_>, format: Format) -> NanRules {
    let id = experiments.subject.id();
    let order = vec![NanCause::Operand, NanCause::Value, NanCause::Invalid];
    let NanSeen { of_operand, of_value, of_invalid, .. } = experiments.nan;
    let one = |seen: Same| match seen {
        Same::Bits(bits) => widened(bits, id.d, format),
        Same::None | Same::Several => None,
    };
    let usual = bits_seen(experiments, format).first().copied().or(format.nan()).unwrap_or(0);
    let invalid = of_invalid.and_then(|bits| widened(bits, id.d, format)).unwrap_or(usual);
    NanRules { order, operand: one(of_operand), value: one(of_value), invalid }
}
