//! Determines why a sum is NaN, and which NaN results, over any logic.

use mxprobe_api::Format;
use mxprobe_models::{Adder, Class, NanCause};

use super::{
    logic::Logic,
    number::{Candidate, Causes, Number, Scales, Term},
    words::{Word, Words},
};

/// The possible causes of a NaN result, and whether there are infinities, positive and negative.
pub(super) fn specials<L: Logic>(
    logic: &mut L,
    terms: &[Term<L::Bit>],
    scales: Option<&Scales<L::Bit>>,
) -> (Causes<L::Bit>, [L::Bit; 2]) {
    let no = logic.constant(false);
    let mut causes = Causes { operand: Vec::new(), of_b: Vec::new(), value: Vec::new(), invalid: no };
    let mut infinities = [no, no];
    let mut in_place: Vec<&Term<L::Bit>> = terms.iter().collect();
    in_place.sort_by_key(|term| term.place);
    for term in in_place {
        causes.operand.extend(term.operands.iter().cloned());
        causes.of_b.extend(term.operands.get(1).cloned());
        causes.invalid = logic.or(causes.invalid, term.invalid);
        if term.class != Class::Products {
            note_value(logic, &mut causes, &term.number);
        }
    }
    for Term { number, .. } in terms {
        let negative = logic.and(number.infinite, number.finite.negative);
        let positive = logic.and_not(number.infinite, number.finite.negative);
        infinities = [logic.or(infinities[0], positive), logic.or(infinities[1], negative)];
    }
    for scale in scales.iter().flat_map(|(a, b)| [a, b]) {
        note_value(logic, &mut causes, scale);
    }
    let both = logic.and(infinities[0], infinities[1]);
    causes.invalid = logic.or(causes.invalid, both);
    (causes, infinities)
}

fn note_value<L: Logic>(logic: &mut L, causes: &mut Causes<L::Bit>, number: &Number<L::Bit>) {
    if let Some(earlier) = &number.causes {
        causes.operand.extend(earlier.operand.iter().cloned());
        causes.of_b.extend(earlier.of_b.iter().cloned());
        causes.value.extend(earlier.value.iter().cloned());
        causes.invalid = logic.or(causes.invalid, earlier.invalid);
    } else if let Some((format, bits)) = &number.bits {
        causes.value.push(Candidate { nan: number.nan, format: *format, bits: bits.clone() });
    }
}

/// The bits of a NaN result.
pub(super) fn nan_bits<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    format: Format,
    causes: &Causes<L::Bit>,
) -> Word<L::Bit> {
    let rules = &adder.nan;
    let invalid = logic.number(u128::from(rules.invalid), format.bits() as usize);
    let mut bits = invalid.clone();
    for cause in rules.order.iter().rev() {
        match cause {
            NanCause::Invalid => bits = logic.choose_word(causes.invalid, &invalid, &bits),
            NanCause::Operand => bits = first_nan(logic, &causes.operand, rules.operand, format, &invalid, &bits),
            NanCause::B => bits = first_nan(logic, &causes.of_b, rules.operand, format, &invalid, &bits),
            NanCause::Value => bits = first_nan(logic, &causes.value, rules.value, format, &invalid, &bits),
        }
    }
    bits
}

/// The bits that the first NaN among the candidates gives, or `otherwise` if none is NaN.
fn first_nan<L: Logic>(
    logic: &mut L,
    candidates: &[Candidate<L::Bit>],
    fixed: Option<u64>,
    format: Format,
    invalid: &[L::Bit],
    otherwise: &[L::Bit],
) -> Word<L::Bit> {
    let mut bits = otherwise.to_vec();
    for candidate in candidates.iter().rev() {
        let own = match fixed {
            Some(fixed) => logic.number(u128::from(fixed), format.bits() as usize),
            None => quieted(logic, candidate, format).unwrap_or_else(|| invalid.to_vec()),
        };
        bits = logic.choose_word(candidate.nan, &own, &bits);
    }
    bits
}

/// A NaN converted into another format, its payload in the highest bits; `None` if either format has no payload.
pub(super) fn quieted<L: Logic>(logic: &mut L, candidate: &Candidate<L::Bit>, to: Format) -> Option<Word<L::Bit>> {
    let (from, into) = (candidate.format.as_float()?, to.as_float()?);
    let quiet = to.nan().filter(|_| to.infinity(false).is_some() && candidate.format.infinity(false).is_some())?;
    let unread = from.unread_bits as usize;
    let payload = &candidate.bits[unread..unread + from.fraction_bits as usize];
    let (from_bits, into_bits) = (from.fraction_bits as usize, into.fraction_bits as usize);
    let payload = if into_bits >= from_bits {
        logic.raised(payload, into_bits - from_bits)
    } else {
        payload[from_bits - into_bits..].to_vec()
    };
    let payload = logic.raised(&payload, into.unread_bits as usize);
    let width = to.bits() as usize;
    let (payload, quiet) = (logic.resized(&payload, width), logic.number(u128::from(quiet), width));
    let mut bits: Word<L::Bit> = payload.into_iter().zip(quiet).map(|(one, other)| logic.or(one, other)).collect();
    bits[width - 1] = *candidate.bits.last()?;
    Some(bits)
}
