//! Two ways to multiply f32 numbers on a unit that takes f16, and inputs on which either is the worse one.
//!
//! Both split a = a16 + ra. Markidis et al. (arXiv:1803.04014) add everything inside the unit, through its c. Ootomo and
//! Yokota (arXiv:2203.03341) scale the residuals by 2^11, start each product from c = 0 and add outside, to nearest.
//! Valpey et al. (arXiv:2502.15999, section 6) asked an SMT solver, for five minutes, whether the second can be worse.
//!
//! ```text
//! cargo run --release --example correction [-- MODEL [OPERATION]]
//! ```
#![allow(clippy::print_stdout)]

use std::{cell::RefCell, convert::Infallible, error::Error, time::Instant};

use mxprobe::{
    dots::{Dot, Random, simplest},
    probes::Number,
};
use mxprobe_api::{Format, OperationId, Overflow, Rounding, Subnormals};
use mxprobe_models::{Evaluator, Model, Trace, load};

/// Exponents of the inputs, as in the paper.
const EXPONENTS: [i32; 2] = [-15, 14];

/// Products in a question: as many as the paper has.
const TERMS: usize = 4;

/// Inputs that are tried at the most.
const TRIES: u64 = 5_000_000;

/// A value rounded to f32 to nearest, or exactly in f16 terms: sums and roundings outside of the unit.
fn rounded(format: Format, value: Number) -> u64 {
    let (negative, magnitude, lsb) = value.parts();
    format.encode(negative, magnitude, lsb, Rounding::NearestEven, Overflow::Ieee, Subnormals::Keep).bits
}

fn value(format: Format, bits: u64) -> Option<Number> {
    Number::decode(format, bits)
}

/// The unit: products of f16 and an f32 c.
struct Unit {
    evaluator: Evaluator,
    k: usize,
    /// What it was last given.
    last: RefCell<(Vec<u64>, Vec<u64>, u64)>,
}

impl Unit {
    fn new(model: &Model, id: &OperationId) -> Result<Self, mxprobe_api::Error> {
        let evaluator = Evaluator::new(model, id)?;
        Ok(Self { evaluator, k: id.shape.sizes().2, last: RefCell::default() })
    }

    fn dot(&self, a: &[u64], b: &[u64], c: u64) -> u64 {
        let padded = |bits: &[u64]| {
            let mut bits = bits.to_vec();
            bits.resize(self.k, 0);
            bits
        };
        let (a, b) = (padded(a), padded(b));
        let dot = mxprobe_models::Dot { a: &a, b: &b, c, scales: None };
        let d = self.evaluator.dot(dot).expect("k products");
        self.last.replace((a, b, c));
        d
    }
}

/// f32 inputs as f16 and what that leaves, times 2^scale, as f16.
fn split(inputs: &[u64], scale: i32) -> Option<(Vec<u64>, Vec<u64>)> {
    let mut parts = (Vec::new(), Vec::new());
    for bits in inputs {
        let whole = value(Format::F32, *bits)?;
        let half = rounded(Format::F16, whole);
        let rest = (whole - value(Format::F16, half)?)?;
        parts.0.push(half);
        parts.1.push(rounded(Format::F16, rest.scaled(scale)));
    }
    Some(parts)
}

/// R_A·R_B + A·R_B + R_A·B + A·B + C, each product inside the unit, c handed on.
fn markidis(unit: &Unit, dot: &Dot) -> Option<u64> {
    let ((a, rest_a), (b, rest_b)) = (split(&dot.a, 0)?, split(&dot.b, 0)?);
    let mut sum = dot.c;
    for (left, right) in [(&rest_a, &rest_b), (&a, &rest_b), (&rest_a, &b), (&a, &b)] {
        sum = unit.dot(left, right, sum);
    }
    Some(sum)
}

/// R_A·R_B / 2^22 + (A·R_B + R_A·B) / 2^11 + A·B + C, added outside of the unit in this order, to nearest.
fn ootomo_yokota(unit: &Unit, dot: &Dot) -> Option<u64> {
    let ((a, rest_a), (b, rest_b)) = (split(&dot.a, 11)?, split(&dot.b, 11)?);
    let of = |bits: u64| value(Format::F32, bits);
    let both = of(unit.dot(&rest_a, &rest_b, 0))?.scaled(-22);
    let one = of(unit.dot(&rest_a, &b, unit.dot(&a, &rest_b, 0)))?.scaled(-11);
    let mut sum = both;
    for next in [one, of(unit.dot(&a, &b, 0))?, of(dot.c)?] {
        sum = of(rounded(Format::F32, sum.plus(next)?))?;
    }
    Some(rounded(Format::F32, sum))
}

/// One of the two.
type Way = fn(&Unit, &Dot) -> Option<u64>;

/// The sum of products and c, exactly.
fn exact(dot: &Dot) -> Option<Number> {
    let mut sum = value(Format::F32, dot.c)?;
    for (a, b) in dot.a.iter().zip(&dot.b) {
        let ((a_negative, a, a_lsb), (b_negative, b, b_lsb)) =
            (value(Format::F32, *a)?.parts(), value(Format::F32, *b)?.parts());
        let product = i128::try_from(a * b).ok()?;
        let product = if a_negative == b_negative { product } else { -product };
        sum = sum.plus(Number::new(product, a_lsb + b_lsb))?;
    }
    Some(sum)
}

/// What both come to, and how far off each is.
struct Outcome {
    exact: Number,
    results: [u64; 2],
    errors: [Number; 2],
}

fn outcome(unit: &Unit, dot: &Dot) -> Option<Outcome> {
    let exact = exact(dot)?;
    let results = [markidis(unit, dot)?, ootomo_yokota(unit, dot)?];
    let error = |bits: u64| {
        let error = (value(Format::F32, bits)? - exact)?;
        Some(if error.parts().0 { error.negated() } else { error })
    };
    Some(Outcome { exact, results, errors: [error(results[0])?, error(results[1])?] })
}

/// Whether every input is zero or has an exponent that the paper allows.
fn in_range(dot: &Dot) -> bool {
    let allowed = |bits: &u64| {
        let leading = value(Format::F32, *bits).and_then(Number::leading);
        leading.is_none_or(|leading| (EXPONENTS[0]..=EXPONENTS[1]).contains(&leading))
    };
    dot.a.iter().chain(&dot.b).all(allowed)
}

/// Whether the first (0) or the second (1) of the two ways is off by more than the other.
fn is_worse(unit: &Unit, dot: &Dot, which: usize) -> bool {
    let Some(outcome) = outcome(unit, dot).filter(|_| in_range(dot)) else { return false };
    let [one, other] = [outcome.errors[which], outcome.errors[1 - which]];
    (one - other).is_some_and(|more| !more.is_zero() && !more.parts().0)
}

/// An input near 1, of few or of all bits; c small against the products, so that its place counts.
fn drawn(random: &mut Random) -> Dot {
    let number = |random: &mut Random, low: i32, high: i32| {
        let exponent = random.between(low, high);
        let kept = random.below(24);
        let fraction = random.bits() & 0x7f_ffff & !(0x7f_ffff >> kept);
        let sign = u64::from(random.flip()) << 31;
        sign | u64::from((exponent + 127).unsigned_abs()) << 23 | fraction
    };
    let side = |random: &mut Random| (0..TERMS).map(|_| number(random, EXPONENTS[0], EXPONENTS[1])).collect();
    let (mut a, mut b): (Vec<u64>, Vec<u64>) = (side(random), side(random));
    for at in 1..TERMS {
        // Some terms of the size of the first one's last bits, some of its own size, some absent.
        match random.below(3) {
            0 => (a[at], b[at]) = (0, 0),
            1 => (a[at], b[at]) = (number(random, -12, -12), number(random, -13, -11)),
            _ => (a[at], b[at]) = (number(random, -1, 1), number(random, -1, 1)),
        }
    }
    (a[0], b[0]) = (number(random, -1, 0), number(random, -1, 0));
    let c = if random.flip() { number(random, -26, -22) } else { number(random, -2, 2) };
    Dot { a, b, c, scales: None }
}

/// The first inputs drawn on which that way is the worse one, and how many were tried.
fn first_worse(unit: &Unit, which: usize, random: &mut Random) -> Option<(u64, Dot)> {
    (1..=TRIES).find_map(|tries| {
        let dot = drawn(random);
        is_worse(unit, &dot, which).then_some((tries, dot))
    })
}

fn shown(bits: u64) -> String {
    format!("{} = {}", Format::F32.hex(bits), Format::F32.to_f64(bits))
}

fn power(error: Number) -> String {
    let (_, magnitude, lsb) = error.parts();
    if magnitude == 0 { "0".into() } else { format!("{magnitude}·2^{lsb}") }
}

fn show(unit: &Unit, dot: &Dot) -> Result<(), Box<dyn Error>> {
    let outcome = outcome(unit, dot).ok_or("the inputs are finite")?;
    for (at, (a, b)) in dot.a.iter().zip(&dot.b).enumerate().filter(|(_, (a, b))| **a != 0 || **b != 0) {
        println!("  a{at} = {:40} b{at} = {}", shown(*a), shown(*b));
    }
    println!("  c  = {}", shown(dot.c));
    println!("  exact             {}", power(outcome.exact));
    for (name, which) in [("Markidis", 0), ("Ootomo and Yokota", 1)] {
        println!("  {name:17} {:40} off by {}", shown(outcome.results[which]), power(outcome.errors[which]));
    }
    println!();
    Ok(())
}

/// The inputs of table 5 of arXiv:2502.15999. They are printed there with b0 times 2^−7, which does not give the results
/// that are printed; times 2^7 it does.
fn table_5() -> Dot {
    let (tiny, c) = (0x3980_0000, 0x3380_0000); // 2^−12, 2^−24
    let (a, b) = (vec![0x3b80_2000, 0x38a9_c000, tiny, tiny], vec![0x437f_c000, 0x3c38_e000, tiny, tiny]);
    Dot { a, b, c, scales: None }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "v100".into());
    let model = load(&name)?;
    let id: OperationId = match arguments.next() {
        Some(id) => id.parse()?,
        None => {
            let f16 =
                |id: &&OperationId| [id.d, id.a, id.b, id.c] == [Format::F32, Format::F16, Format::F16, Format::F32];
            model.operations.keys().find(f16).ok_or("the model has no operation on f16 with an f32 c")?.clone()
        }
    };
    let unit = Unit::new(&model, &id)?;
    if unit.k < TERMS {
        return Err(format!("{id} has fewer than {TERMS} products").into());
    }
    println!("{name}, {id}\n");
    // Inputs of the questions: f32, whatever the unit takes.
    let inputs: OperationId = format!("dot.m1n1k{TERMS}.f32.f32.f32.f32").parse()?;

    println!("the inputs of the paper's table 5, b0 times 2^7");
    show(&unit, &table_5())?;

    for (which, title) in [(1, "Ootomo and Yokota worse than Markidis"), (0, "Markidis worse than Ootomo and Yokota")] {
        let start = Instant::now();
        let mut random = Random(1);
        let Some((tries, dot)) = first_worse(&unit, which, &mut random) else {
            println!("{title}: none among {TRIES}\n");
            continue;
        };
        let took = start.elapsed().as_secs_f64() * 1e3;
        println!("{title}: {tries} tried, {took:.3} ms; made simple:");
        let holds = |dots: &[Dot]| -> Result<Vec<bool>, Infallible> {
            Ok(dots.iter().map(|dot| is_worse(&unit, dot, which)).collect())
        };
        let dot = simplest(&inputs, &dot, holds)?;
        show(&unit, &dot)?;
        let ways: [(&str, Way); 2] = [("Markidis", markidis), ("Ootomo and Yokota", ootomo_yokota)];
        for (way, compute) in ways {
            compute(&unit, &dot).ok_or("the inputs are finite")?;
            let (a, b, c) = unit.last.take();
            let input = mxprobe_models::Dot { a: &a, b: &b, c, scales: None };
            let trace = Trace::of(&model, &id, input).ok_or("the model has the operation")?;
            println!("{way}: the last product, A·B, inside the unit\n{}", trace.text(&model, &id, input));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v100() -> Unit {
        Unit::new(&load("v100").unwrap(), &"mma.m8n8k4.f32.f16.f16.f32".parse().unwrap()).unwrap()
    }

    #[test]
    fn the_paper_s_inputs_give_the_paper_s_results() {
        let outcome = outcome(&v100(), &table_5()).unwrap();
        // 1 + 2^−23 and 1.
        assert_eq!(outcome.results, [0x3f80_0001, 0x3f80_0000]);
    }

    #[test]
    fn inputs_are_found_on_which_either_is_the_worse_one() {
        let unit = v100();
        for which in [0, 1] {
            let (_, dot) = first_worse(&unit, which, &mut Random(1)).unwrap();
            let outcome = outcome(&unit, &dot).unwrap();
            let errors = outcome.results.map(|bits| (value(Format::F32, bits).unwrap() - outcome.exact).unwrap());
            let size = |error: Number| {
                let (_, magnitude, lsb) = error.parts();
                // Errors of sums near 1: far within what an f64 holds.
                magnitude as f64 * f64::from(lsb).exp2()
            };
            assert!(size(errors[which]) > size(errors[1 - which]));
        }
    }
}
