//! One fused addition over any logic: the same as `mxprobe_models`'s exact evaluator, in words of fixed width.
//!
//! Widths are worst cases over all inputs, so no bit is lost that the exact evaluator keeps.

use mxprobe_api::Rounding;
use mxprobe_models::{Adder, Below, Class, Output, Scale, ZeroSign};

use super::{
    alignment::{align, grid, is_ignored},
    logic::Logic,
    nan::{nan_bits, specials},
    number::{Finite, Number, Scales, Term},
    rounding::{Cut, cut, round, round_integer},
    words::{Word, Words},
};

/// The reason why a model is not covered.
pub(super) type NotCovered = String;

/// Adds terms; `scales` multiply the sum, whose register has `spare_bits` more bits than it needs.
pub(super) fn add<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    terms: &[Term<L::Bit>],
    scales: Option<&Scales<L::Bit>>,
    spare_bits: usize,
) -> Result<Number<L::Bit>, NotCovered> {
    let (causes, infinities) = specials(logic, terms, scales);
    let nan = {
        let mut all: Vec<L::Bit> = causes.operand.iter().chain(&causes.value).map(|candidate| candidate.nan).collect();
        all.push(causes.invalid);
        logic.any(&all)
    };
    let any_infinite = logic.or(infinities[0], infinities[1]);
    let infinite = logic.and_not(any_infinite, nan);
    let sum = sum(logic, adder, terms, scales, spare_bits)?;
    match adder.output {
        Output::Wide => {
            let negative = logic.choose(infinite, infinities[1], sum.negative);
            let finite = Finite { negative, ..sum };
            Ok(Number { bits: None, nan, infinite, finite, causes: Some(causes) })
        }
        Output::Integer { format, saturates } => {
            let bits = round_integer(logic, format, saturates, &sum);
            Ok(super::number::read(logic, format, &bits))
        }
        Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
            let zero_negative = zero_is_negative(logic, adder, terms, rounding);
            let cut = Cut { format, fraction_bits, rounding, overflow, subnormals };
            let mut bits = round(logic, &cut, &sum, zero_negative);
            if adder.zero == ZeroSign::Positive {
                let sign = bits.pop().expect("a format has bits");
                let nonzero = logic.any(&bits);
                bits.push(logic.and(sign, nonzero));
            }
            let [positive, negative] = [false, true].map(|negative| {
                format.infinity(negative).or_else(|| format.nan()).unwrap_or_else(|| format.largest(negative))
            });
            let width = format.bits() as usize;
            let (positive, negative) =
                (logic.number(u128::from(positive), width), logic.number(u128::from(negative), width));
            let infinity = logic.choose_word(infinities[1], &negative, &positive);
            let of_nan = nan_bits(logic, adder, format, &causes);
            let bits = logic.choose_word(infinite, &infinity, &bits);
            let bits = logic.choose_word(nan, &of_nan, &bits);
            let read = super::number::read(logic, format, &bits);
            // A result of infinities is an infinity whatever its bits are, even in a format without one.
            let special = logic.or(nan, infinite);
            let nan = logic.choose(special, nan, read.nan);
            let read_infinite = logic.and_not(read.infinite, special);
            let infinite = logic.or(infinite, read_infinite);
            let negative = logic.choose(any_infinite, infinities[1], read.finite.negative);
            let finite = Finite { negative, ..read.finite };
            Ok(Number { nan, infinite, finite, ..read })
        }
    }
}

/// The sign of an exact zero.
fn zero_is_negative<L: Logic>(logic: &mut L, adder: &Adder, terms: &[Term<L::Bit>], rounding: Rounding) -> L::Bit {
    let no = logic.constant(false);
    if adder.zero == ZeroSign::Positive {
        return no;
    }
    let nonzero: Vec<L::Bit> = terms.iter().flat_map(|term| term.number.finite.magnitude.iter().copied()).collect();
    let nonzero = logic.any(&nonzero);
    let negatives: Vec<L::Bit> = terms.iter().map(|term| term.number.finite.negative).collect();
    let (all, any) = (logic.all(&negatives), logic.any(&negatives));
    let (all, none) = (logic.and_not(all, nonzero), {
        let either = logic.or(any, nonzero);
        logic.not(either)
    });
    if rounding == Rounding::Down { logic.not(none) } else { all }
}

fn sum<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    terms: &[Term<L::Bit>],
    scales: Option<&Scales<L::Bit>>,
    spare_bits: usize,
) -> Result<Finite<L::Bit>, NotCovered> {
    let grid = grid(logic, adder, terms);
    let mut aligned = Vec::new();
    for term in terms {
        let cut = if term.class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
        let mut magnitude = align(logic, adder, term, &grid.unit.raised(cut));
        if term.class == Class::Values && adder.ignored_values.is_some() {
            let ignored = is_ignored(logic, adder, &term.number.finite, &grid.unit, cut);
            let counted = logic.not(ignored);
            magnitude = logic.where_set(counted, &magnitude);
        }
        let magnitude = logic.raised(&magnitude, usize::try_from(cut).unwrap_or(0));
        aligned.push((term.number.finite.negative, magnitude));
    }
    let complemented = adder.below == Below::OnesComplement;
    let widest = aligned.iter().map(|(_, magnitude)| magnitude.len()).max().unwrap_or(0);
    // Each term is below 2^widest, or one more if it is complemented.
    let carries = usize::BITS - aligned.len().leading_zeros() + u32::from(complemented);
    let width = widest + carries as usize + 1 + spare_bits;
    let mut total = logic.number(0, width);
    for (negative, magnitude) in &aligned {
        let magnitude = logic.resized(magnitude, width);
        let flipped: Word<L::Bit> = magnitude.iter().map(|bit| logic.xor(*negative, *bit)).collect();
        (total, _) = logic.add(&total, &flipped, *negative);
    }
    if complemented {
        total = complement(logic, terms, total);
    }
    if let Some(carry_bits) = adder.carry_bits {
        let fraction_bits =
            grid.fraction_bits.ok_or("carry_bits with several grids, of which the widest depends on the input")?;
        let kept = usize::try_from(fraction_bits).unwrap_or(0) + 2 + carry_bits as usize;
        if kept < total.len() {
            let sign = total[kept - 1];
            total.truncate(kept);
            total.resize(width, sign);
        }
    }
    let negative = *total.last().expect("a sum has bits");
    let magnitude = logic.negated_where(negative, &total);
    let lsb_below_exponent = grid.fraction_bits;
    let mut result = Finite {
        negative,
        magnitude,
        lsb: grid.unit,
        exponent: grid.exponent,
        has_exponent: grid.has_exponent,
        lsb_below_exponent,
    };
    if let Some((a, b)) = scales {
        result = scaled(logic, result, terms, a, b);
    }
    if let Some(bits) = adder.normalised_fraction_bits {
        result = cut(logic, &result, bits, adder.normalised_exponent_floor, adder.normalised_below);
    }
    Ok(result)
}

/// Subtracts one unit of magnitude for each term whose sign differs from the last value's, unless all terms are zeros.
fn complement<L: Logic>(logic: &mut L, terms: &[Term<L::Bit>], total: Word<L::Bit>) -> Word<L::Bit> {
    let no = logic.constant(false);
    let nonzero: Vec<L::Bit> = terms.iter().flat_map(|term| term.number.finite.magnitude.iter().copied()).collect();
    let nonzero = logic.any(&nonzero);
    let last = terms.iter().filter(|term| term.class == Class::Values).max_by_key(|term| term.place);
    let reference = last.map_or(no, |term| term.number.finite.negative);
    let zeros = logic.number(0, total.len());
    let mut total = total;
    for term in terms {
        let differs = logic.xor(term.number.finite.negative, reference);
        let counts = logic.and(differs, nonzero);
        // +1 if the reference is negative, otherwise −1, which has every bit set.
        let up = logic.and(counts, reference);
        let down = logic.and_not(counts, reference);
        let ones: Word<L::Bit> = zeros.iter().map(|_| down).collect();
        (total, _) = logic.add(&total, &ones, up);
    }
    total
}

/// A group's sum times its scales. The exponent is that of the scales alone, if a product is nonzero.
fn scaled<L: Logic>(
    logic: &mut L,
    sum: Finite<L::Bit>,
    terms: &[Term<L::Bit>],
    a: &Number<L::Bit>,
    b: &Number<L::Bit>,
) -> Finite<L::Bit> {
    let (a, b) = (&a.finite, &b.finite);
    let nonzero: Vec<L::Bit> = terms.iter().map(|term| term.number.finite.has_exponent).collect();
    let mut has_exponent = logic.any(&nonzero);
    for scale in [a, b] {
        has_exponent = logic.and(has_exponent, scale.has_exponent);
    }
    let magnitude = logic.times(&sum.magnitude, &a.magnitude);
    let magnitude = logic.times(&magnitude, &b.magnitude);
    let lsb = a.lsb.plus(logic, &b.lsb);
    let lsb_below_exponent = (sum.lsb.low == sum.lsb.high)
        .then(|| a.lsb_below_exponent.zip(b.lsb_below_exponent).map(|(one, other)| one + other - sum.lsb.low))
        .flatten();
    Finite {
        negative: sum.negative,
        magnitude,
        lsb: lsb.plus(logic, &sum.lsb),
        exponent: a.exponent.plus(logic, &b.exponent),
        has_exponent,
        lsb_below_exponent,
    }
}

/// Whether an adder's block scales multiply the sum rather than the products.
pub(super) fn scales_sum(adder: &Adder) -> bool {
    adder.scale == Scale::Sum
}
