//! A sum of finite terms: placing the grid, aligning the terms, wrapping and cutting the sum.

use dashu_int::IBig;

use super::{
    align::{Aligned, align},
    number::{Finite, Number, Value},
    output::output,
    step::{Exact, Observer, Step},
};
use crate::adder::{Adder, Below, Class};

pub(super) fn sum(
    adder: &Adder,
    terms: &[Aligned],
    group_scales: Option<&(Number, Number)>,
    observer: &mut impl Observer,
) -> Number {
    // The grid is the highest that the rules give; without a rule, it lies below every bit of every term.
    let mut grid: Option<(i32, i32)> = None;
    for rule in &adder.grid {
        let exponents = terms
            .iter()
            .filter(|aligned| rule.terms == Class::All || rule.terms == aligned.class)
            .filter_map(|aligned| aligned.term.exponent_by(rule.exponent));
        if let Some(exponent) = exponents.chain(rule.exponent_floor).max() {
            let this = (exponent - rule.fraction_bits, exponent);
            grid = Some(grid.map_or(this, |best| (best.0.max(this.0), best.1.max(this.1))));
        }
    }
    let lowest = terms.iter().filter(|aligned| aligned.term.leading().is_some()).map(|aligned| aligned.term.lsb).min();
    let unit = grid.map_or(lowest.unwrap_or(0), |(unit, _)| unit);
    observer.observe(|| Step::Grid { unit, exponent: grid.map(|(_, exponent)| exponent) });
    let whole = |integer: &IBig| {
        let (sign, magnitude) = integer.clone().into_parts();
        Exact::new(sign == dashu_int::Sign::Negative, magnitude, unit)
    };

    let mut total = IBig::ZERO;
    // RDNA3's adder counts in the sign of its accumulator. Zeros alone are exempt.
    let all_zero = lowest.is_none();
    let reference =
        terms.iter().rev().find(|aligned| aligned.class == Class::Values).is_some_and(|aligned| aligned.term.negative);
    for Aligned { from, class, term } in terms {
        let cut = if *class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
        if *class == Class::Values && is_ignored(adder, term, unit, cut) {
            observer.observe(|| Step::Ignored { term: *from });
            continue;
        }
        let aligned = align(term, unit + cut, adder.below);
        let mut aligned = aligned << usize::try_from(cut).unwrap_or(0);
        if adder.below == Below::OnesComplement && term.negative != reference && !all_zero {
            aligned += if reference { IBig::ONE } else { IBig::NEG_ONE };
        }
        observer.observe(|| Step::Aligned { term: *from, kept: whole(&aligned) });
        total += aligned;
    }
    observer.observe(|| Step::Sum(whole(&total)));
    if let (Some(carry_bits), Some((unit, exponent))) = (adder.carry_bits, grid) {
        let width = usize::try_from(exponent - unit).unwrap_or(0) + 1 + carry_bits as usize;
        total = wrapped(total, width);
        observer.observe(|| Step::Wrapped { carry_bits, value: whole(&total) });
    }
    let exponent = match group_scales {
        None => grid
            .map(|(_, exponent)| exponent)
            .or_else(|| terms.iter().filter_map(|aligned| aligned.term.exponent).max()),
        Some(_) => None,
    };
    let (sign, magnitude) = total.into_parts();
    let mut result = Finite { negative: sign == dashu_int::Sign::Negative, magnitude, lsb: unit, exponent };
    if let Some((a, b)) = group_scales {
        result = scaled(result, terms, a, b);
        observer.observe(|| Step::Scaled(result.traced()));
    }
    if let (Some(bits), Some(leading)) = (adder.normalised_fraction_bits, result.leading()) {
        let exponent = adder.normalised_exponent_floor.map_or(leading, |floor| floor.max(leading));
        let unit = exponent - bits.cast_signed();
        if unit > result.lsb {
            let (sign, magnitude) = align(&result, unit, adder.normalised_below).into_parts();
            result = Finite { negative: sign == dashu_int::Sign::Negative, magnitude, lsb: unit, ..result };
            observer.observe(|| Step::Cut(result.traced()));
        }
    }
    output(adder, terms, result)
}

/// A group's exact sum times its scales. The exponent is that of the scales alone if any product is nonzero.
fn scaled(sum: Finite, terms: &[Aligned], a: &Number, b: &Number) -> Finite {
    let (Value::Finite(a), Value::Finite(b)) = (a.value(), b.value()) else { return sum };
    let any = terms.iter().any(|aligned| aligned.term.exponent.is_some());
    Finite {
        negative: sum.negative,
        magnitude: sum.magnitude * &a.magnitude * &b.magnitude,
        lsb: sum.lsb + a.lsb + b.lsb,
        exponent: a.exponent.zip(b.exponent).map(|(x, y)| x + y).filter(|_| any),
    }
}

fn is_ignored(adder: &Adder, term: &Finite, unit: i32, cut: i32) -> bool {
    let (Some(rule), Some(leading)) = (adder.ignored_values, term.leading()) else { return false };
    let applies = rule.unless_grid_at_most.is_none_or(|limit| unit > limit);
    applies && leading < unit + cut - rule.below_bits
}

/// Two's complement of `width` magnitude bits and a sign.
fn wrapped(total: IBig, width: usize) -> IBig {
    let modulus = IBig::ONE << (width + 1);
    let half = IBig::ONE << width;
    let shifted: IBig = (total + &half) % &modulus;
    let shifted = if shifted < IBig::ZERO { shifted + &modulus } else { shifted };
    shifted - half
}
