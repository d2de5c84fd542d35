//! How far are the elementary functions from their exact values, in units in the last place?
//!
//! Asked only if a run names it, since it takes millions of calls of each function.

mod exact;
mod nearest;
mod ranges;

use std::thread;

use mxprobe_api::{Elementary, Elements, Error, Format, ScalarFunction};

use super::{Ask, Probe, subject::Subject};
use crate::{
    findings::{AppliesTo, Finding, Shown, Value},
    in_order::InOrder,
};
pub use exact::cosine;
use nearest::{Judged, judged};
use ranges::{Range, ranges, shares};

/// The default number of calls of each function.
pub const POINTS: u64 = 10_000_000;

/// The most calls of each function of f64: every exact value is computed with integers of hundreds of bits.
const MOST_OF_F64: u64 = 100_000;

/// The number of calls that are sent at a time.
const AT_ONCE: usize = 1 << 18;

/// The number of calls that a thread judges at a time. It is fixed, so that sums do not depend on the number of
/// threads.
const CHUNK: usize = 1 << 13;

const SEED: u64 = 0x0e1e_3e47;

const fn ulp(name: &'static str, question: &'static str) -> Probe {
    Probe {
        name,
        question,
        how: "10,000,000 arguments of f32 (`--points` for another number), every one of f16 and bf16, 100,000 of f64: the same \
              share of each range, drawn by their bits. Exact values by integers of any length, or by f64 where it decides. \
              Asked only where `--probe` names it.",
        answers: &[
            (
                "largest",
                "the largest error in units in the last place of the correctly rounded result, of normal arguments and results",
            ),
            ("at, returned", "the argument of the largest error, and the result, as bits"),
            ("correctly_rounded of points", "results that are the value of the format nearest to the exact one"),
            (
                "mean",
                "the mean error: about 0.25 if every result is correctly rounded, less where results are nearly exact",
            ),
            (
                "wrong_specials",
                "results that are infinite or NaN where the correctly rounded one is not, or the reverse",
            ),
            ("ranges", "the same for each range of arguments, and for results that are subnormal numbers"),
        ],
        source: "Muller et al., Handbook of Floating-Point Arithmetic (2018), 2.3.2; NVIDIA, Precision and Performance, 5.1",
        applies_to: AppliesTo::Scalars,
        shown: Shown::PLAIN,
        ask: Ask::Named,
    }
}

const PREFIX: &str = "ulp.";

/// A question for each function.
pub(super) const PROBES: [&Probe; 10] = [
    &ulp("ulp.square_root", "How far are square roots from their exact values, in units in the last place?"),
    &ulp("ulp.reciprocal", "How far are reciprocals from their exact values, in units in the last place?"),
    &ulp("ulp.reciprocal_square_root", "How far is 1 / √x from its exact value, in units in the last place?"),
    &ulp("ulp.exp", "How far is e^x from its exact value, in units in the last place?"),
    &ulp("ulp.exp2", "How far is 2^x from its exact value, in units in the last place?"),
    &ulp("ulp.log", "How far is the natural logarithm from its exact value, in units in the last place?"),
    &ulp("ulp.log2", "How far is the logarithm to base 2 from its exact value, in units in the last place?"),
    &ulp("ulp.sin", "How far is the sine from its exact value, in units in the last place?"),
    &ulp("ulp.cos", "How far is the cosine from its exact value, in units in the last place?"),
    &ulp("ulp.tanh", "How far is the hyperbolic tangent from its exact value, in units in the last place?"),
];

/// The functions of this arithmetic that have such a question, with its name.
pub(super) fn functions(subject: &Subject<'_>) -> Vec<(String, ScalarFunction)> {
    let elementary = Elementary::ALL.map(ScalarFunction::Elementary);
    let all = [ScalarFunction::SquareRoot, ScalarFunction::Reciprocal].into_iter().chain(elementary);
    all.filter(|function| subject.has(*function)).map(|function| (format!("{PREFIX}{function}"), function)).collect()
}

/// Asks about one function, with `points` arguments.
pub(super) fn ask(subject: &Subject<'_>, name: &str, function: ScalarFunction, points: u64) -> Result<Finding, Error> {
    let format = subject.format();
    if let Some(word) = subject.scalar.id.mode.iter().find(|word| ["rz", "rd", "ru"].contains(&word.as_str())) {
        return Ok(Finding::unsupported(name, format!("{word} asks for another direction than to nearest")));
    }
    let points = if format.bits() > 32 { points.min(MOST_OF_F64) } else { points };
    let ranges = ranges(function, format);
    let mut found: Vec<(String, Errors)> = Vec::new();
    let mut tiny = Errors::default();
    for ((range, share), seed) in ranges.iter().zip(shares(&ranges, points)).zip(SEED..) {
        let (of_range, of_tiny) = of_range(subject, function, range, share, seed)?;
        found.push((range.words.clone(), of_range));
        tiny.add(&of_tiny);
    }
    if tiny.points > 0 {
        found.push((SUBNORMAL_RESULT.to_owned(), tiny));
    }
    Ok(finding(subject, name, function, found))
}

const SUBNORMAL_ARGUMENT: &str = "subnormal x";
const SUBNORMAL_RESULT: &str = "subnormal result";

/// The errors of results that are not subnormal or have a subnormal argument, and the errors of the other subnormal
/// results.
fn of_range(
    subject: &Subject<'_>,
    function: ScalarFunction,
    range: &Range,
    share: u64,
    seed: u64,
) -> Result<(Errors, Errors), Error> {
    let format = subject.format();
    let is_apart = range.words != SUBNORMAL_ARGUMENT;
    let mut points = range.points(share, format, seed);
    let (mut errors, mut tiny) = (Errors::default(), Errors::default());
    loop {
        let x: Vec<u64> = points.by_ref().take(AT_ONCE).collect();
        if x.is_empty() {
            return Ok((errors, tiny));
        }
        let d = subject.ask_elements(function, &Elements::from_bits(format, x.iter().copied()))?;
        for (of_chunk, tiny_of_chunk) in in_chunks(&x, &d, |x, d| judged(function, format, x, d), is_apart) {
            errors.add(&of_chunk);
            tiny.add(&tiny_of_chunk);
        }
    }
}

/// Judges calls on every core, and returns the results of the chunks in order.
fn in_chunks(
    x: &[u64],
    d: &Elements,
    judged: impl Fn(u64, u64) -> Judged + Sync,
    is_apart: bool,
) -> Vec<(Errors, Errors)> {
    let judge = |chunk: usize| {
        let (mut errors, mut tiny) = (Errors::default(), Errors::default());
        for (at, x) in x.iter().enumerate().skip(chunk * CHUNK).take(CHUNK) {
            let one = judged(*x, d.get(at));
            let errors = if is_apart && one.is_tiny { &mut tiny } else { &mut errors };
            errors.count(*x, d.get(at), one);
        }
        (errors, tiny)
    };
    let chunks = x.len().div_ceil(CHUNK);
    let threads = mxprobe_models::threads().min(chunks);
    let mut found: Vec<(usize, (Errors, Errors))> = thread::scope(|scope| {
        let judge = &judge;
        let work =
            |first: usize| move || (first..chunks).step_by(threads).map(|at| (at, judge(at))).collect::<Vec<_>>();
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(work(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("judging does not panic")).collect()
    });
    found.order_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, errors)| errors).collect()
}

/// Statistics of the errors in a range.
#[derive(Clone, Debug, Default)]
struct Errors {
    /// The number of finite results whose correctly rounded value is finite.
    points: u64,
    correct: u64,
    sum: f64,
    largest: Option<Call>,
    absolute: f64,
    wrong_specials: u64,
    first_wrong: Option<Call>,
}

/// A call and the error of its result in ulp.
#[derive(Clone, Copy, Debug)]
struct Call {
    x: u64,
    d: u64,
    nearest: Option<u64>,
    ulp: f64,
}

impl Errors {
    fn count(&mut self, x: u64, d: u64, judged: Judged) {
        let call = |ulp| Call { x, d, nearest: judged.nearest, ulp };
        let Some(error) = judged.error else {
            if !judged.is_correct {
                self.wrong_specials += 1;
                self.first_wrong = self.first_wrong.or(Some(call(f64::INFINITY)));
            }
            return;
        };
        self.points += 1;
        self.correct += u64::from(judged.is_correct);
        self.sum += error.ulp;
        self.absolute = self.absolute.max(error.absolute);
        if self.largest.is_none_or(|largest| error.ulp > largest.ulp) {
            self.largest = Some(call(error.ulp));
        }
    }

    fn add(&mut self, other: &Self) {
        self.points += other.points;
        self.correct += other.correct;
        self.sum += other.sum;
        self.absolute = self.absolute.max(other.absolute);
        if let Some(call) = other.largest
            && self.largest.is_none_or(|largest| call.ulp > largest.ulp)
        {
            self.largest = Some(call);
        }
        self.wrong_specials += other.wrong_specials;
        self.first_wrong = self.first_wrong.or(other.first_wrong);
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of millions")]
    fn mean(&self) -> f64 {
        if self.points == 0 { 0.0 } else { self.sum / self.points as f64 }
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of millions")]
    fn percent(&self) -> f64 {
        if self.points == 0 { 0.0 } else { 100.0 * self.correct as f64 / self.points as f64 }
    }

    fn value(&self, format: Format, to: Format) -> Vec<(&'static str, Value)> {
        let count = |count: u64| Value::Number(i64::try_from(count).unwrap_or(i64::MAX));
        let mut parts = vec![
            ("points", count(self.points)),
            ("correctly_rounded", count(self.correct)),
            ("mean", Value::from(digits(self.mean()))),
            ("wrong_specials", count(self.wrong_specials)),
        ];
        if let Some(call) = self.largest {
            parts.push(("largest", Value::from(digits(call.ulp))));
            parts.push(("largest_absolute", Value::from(power_of_two(self.absolute))));
            parts.push(("at", Value::Bits(format, call.x)));
            parts.push(("returned", Value::Bits(to, call.d)));
        }
        parts
    }
}

/// A small number in a form that people can compare with a bound: `2^-21.4`.
fn power_of_two(value: f64) -> String {
    if value > 0.0 { format!("2^{:.2}", value.log2()) } else { "0".to_owned() }
}

/// An error with a useful number of digits.
fn digits(ulp: f64) -> String {
    match ulp {
        _ if ulp < 100.0 => format!("{ulp:.3}"),
        _ if ulp < 1e6 => format!("{ulp:.0}"),
        _ => power_of_two(ulp),
    }
}

fn finding(subject: &Subject<'_>, name: &str, function: ScalarFunction, found: Vec<(String, Errors)>) -> Finding {
    let format = subject.format();
    let is_subnormal = |words: &str| [SUBNORMAL_ARGUMENT, SUBNORMAL_RESULT].contains(&words);
    let mut all = Errors::default();
    found.iter().filter(|(words, _)| !is_subnormal(words)).for_each(|(_, errors)| all.add(errors));
    let wrong: u64 = found.iter().map(|(_, errors)| errors.wrong_specials).sum();
    let to = function.result(format);
    let of_ranges = found.iter().map(|(words, errors)| {
        let named = [("range", Value::from(words.clone()))];
        Value::parts(named.into_iter().chain(errors.value(format, to)))
    });
    let mut parts = all.value(format, to);
    parts.push(("ranges", Value::List(of_ranges.collect())));
    let largest = all.largest.map_or(0.0, |call| call.ulp);
    let instruction = subject.scalar.functions[&function].as_ref();
    let behind = instruction.map(|text| format!(" [{text}]")).unwrap_or_default();
    let by_range: Vec<String> =
        found.iter().filter_map(|(words, errors)| Some(format!("{words}: {}", digits(errors.largest?.ulp)))).collect();
    let wrong = if wrong == 0 { String::new() } else { format!("; {wrong} infinite or NaN results are wrong") };
    let statement = format!(
        "at most {} ulp, {} on average, {:.2} % correctly rounded, of {} arguments{behind}; at most by range: {}{wrong}",
        digits(largest),
        digits(all.mean()),
        all.percent(),
        all.points,
        by_range.join("; "),
    );
    let mut shown = Vec::new();
    let mut show = |about: String, call: Call| {
        let nearest = call.nearest.filter(|bits| *bits != call.d);
        let rivals: Vec<(String, u64)> =
            nearest.map(|bits| ("correctly rounded".to_owned(), bits)).into_iter().collect();
        shown.push(subject.evidence(about, function, &[call.x], call.d, &rivals));
    };
    for (words, errors) in &found {
        if let Some(call) = errors.largest.filter(|call| call.ulp > 0.0) {
            show(format!("the largest error of {words}: {} ulp", digits(call.ulp)), call);
        }
        if let Some(call) = errors.first_wrong {
            show(format!("an infinite or NaN result that is wrong, of {words}"), call);
        }
    }
    Finding::measured(name, Value::parts(parts), statement).with(shown)
}
