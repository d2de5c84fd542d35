//! What an adder does, in words.

use mxprobe_api::{Overflow, Rounding, Subnormals};
use mxprobe_models::{Adder, Below, Class, Exponent, Output, Scale, ZeroSign};

use super::outcome::Arithmetic;

/// What each adder does and how operands are read, one line each.
#[must_use]
pub fn parameters(arithmetic: &Arithmetic) -> Vec<String> {
    let mut lines: Vec<String> = arithmetic.adders.iter().map(adder).collect();
    let flush = arithmetic.flush;
    let flushed: Vec<&str> = [("a", flush.a), ("b", flush.b), ("c", flush.c)]
        .into_iter()
        .filter(|(_, flush)| *flush)
        .map(|(name, _)| name)
        .collect();
    if !flushed.is_empty() {
        let zero = if flush.to_positive { "+0" } else { "zero of their sign" };
        lines.push(format!("subnormals of {} are read as {zero}", flushed.join(", ")));
    }
    lines
}

fn adder(adder: &Adder) -> String {
    let mut words = Vec::new();
    if adder.grid.is_empty() {
        words.push("loses nothing before it rounds".to_owned());
    }
    for rule in &adder.grid {
        let terms = match rule.terms {
            Class::All => "all terms",
            Class::Products => "products",
            Class::Values => "c or an earlier result",
            Class::Sums => "unrounded sums",
        };
        let exponent = match rule.exponent {
            Exponent::Operands => "the largest exponent, products not renormalised,",
            Exponent::Leading => "the largest leading bit",
        };
        let floor = rule.exponent_floor.map(|floor| format!(", taken as {floor} at least")).unwrap_or_default();
        words.push(format!("keeps {} bits below {exponent} of {terms}{floor}", rule.fraction_bits));
    }
    if !adder.grid.is_empty() {
        words.push(below(adder.below).to_owned());
    }
    if adder.value_cut_bits > 0 {
        words.push(format!("{} bits fewer of c", adder.value_cut_bits));
    }
    if let Some(ignored) = adder.ignored_values {
        words.push(format!("leaves c out where it lies more than {} bits below the grid", ignored.below_bits));
    }
    if let Some(bits) = adder.carry_bits {
        words.push(format!("wraps beyond {bits} carry bits"));
    }
    if let Some(bits) = adder.normalised_fraction_bits {
        words.push(format!("cuts the normalised sum to {bits} bits, {}", below(adder.normalised_below)));
    }
    if adder.scale == Scale::Sum {
        words.push("scales the sum".to_owned());
    }
    if adder.product_overflow {
        words.push("products of 2^128 and more are infinite".to_owned());
    }
    output(adder.output, &mut words);
    if adder.zero == ZeroSign::Positive {
        words.push("zero is +0".to_owned());
    }
    format!("{}: {}", adder.name, words.join("; "))
}

fn below(rule: Below) -> &'static str {
    match rule {
        Below::Truncate => "the rest is truncated",
        Below::Floor => "the rest is floored",
        Below::OnesComplement => "the rest is truncated, opposite signs in one's complement",
        Below::Nearest => "the rest is rounded to nearest",
        Below::Sticky => "the rest is kept as a sticky bit",
    }
}

fn output(output: Output, words: &mut Vec<String>) {
    match output {
        Output::Wide => words.push("hands the sum on unrounded".to_owned()),
        Output::Integer { format, saturates } => {
            words.push(format!("{format}, {}", if saturates { "saturating" } else { "wrapping" }));
        }
        Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
            let rounding = match rounding {
                Rounding::NearestEven => "RNE",
                Rounding::TowardZero => "RZ",
                Rounding::Down => "RD",
                Rounding::Up => "RU",
                Rounding::ToOdd => "RO",
            };
            let cut = if fraction_bits == format.fraction_bits() {
                String::new()
            } else {
                format!(" cut to {fraction_bits} fraction bits")
            };
            words.push(format!("{format}{cut}, {rounding}"));
            match overflow {
                Overflow::Ieee => {}
                Overflow::Infinity => words.push("overflow is infinite".to_owned()),
                Overflow::Nan => words.push("overflow is NaN".to_owned()),
                Overflow::Saturate => words.push("overflow saturates".to_owned()),
            }
            match subnormals {
                Subnormals::Keep => {}
                Subnormals::FlushBeforeRounding => words.push("FTZ before rounding".to_owned()),
                Subnormals::FlushAfterRounding => words.push("FTZ after rounding".to_owned()),
                Subnormals::FlushToPositiveZero => words.push("FTZ to +0".to_owned()),
            }
        }
    }
}
