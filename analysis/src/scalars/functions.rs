//! In which direction does each function round, is it correctly rounded, and are its steps those that its name says?

use mxprobe_api::{DotOrder, Error, Format, Rounding, ScalarFunction, Subnormals};

use super::{
    Ask, Probe, cases,
    exact::{self, Shared, Steps},
    extended,
    found::{Calls, Found},
    once::{Mode, ROUNDINGS},
    subject::Subject,
};
use crate::{
    findings::{AppliesTo, Evidence, Finding, Shown, source},
    in_order::InOrder,
};

/// The method of the functions' probes, and of the probes that evaluate the results about functions.
pub(super) const FUNCTION: &str = "Every pair of special values and 1,500 drawn operands, about ties and the ends of the range, against \
                        the exact result in each direction, with subnormals kept and flushed.";

const CORRECT: &[(&str, &str)] = &[
    ("RNE, RZ, RD or RU", "correctly rounded in that direction: nothing is lost but what the format cannot hold"),
    ("RZ or RD", "no result is negative, as of a square root, so that the two directions are one"),
    ("exact", "every result tried is a value of the format"),
    ("by way of x87", "rounded to 64 bits, then to the format: a last place off where the first rounding makes a tie"),
    ("within N ulp", "an approximation: so far from the correctly rounded result at the most, among the calls tried"),
];

const STEPPED: &[(&str, &str)] = &[
    ("RNE, fused", "one rounding for a product and the sum it joins: more accurate, and other bits than two steps"),
    ("RNE, separate", "each step is rounded: the same bits as the same steps on any machine that follows IEEE 754"),
    (
        "fused: EXPRESSION",
        "contracted in another way than each product with the sum before it, as the expression says; p0 is the rounded \
         product of a0 and b0: other bits than either of the two",
    ),
    ("partly fused", "some additions are contracted and others are not"),
    ("reordered", "the compiler changed the order of the sum: results depend on the compiler"),
    ("by way of x87", "computed in 64 bits and a wider range, then rounded: 32-bit x86 without SSE gives other bits"),
    ("by way of f64", "computed wider, then rounded: nearly always the fused result, and not always"),
];

const fn rounded(name: &'static str, question: &'static str) -> Probe {
    let (how, answers, source) = (FUNCTION, CORRECT, source::IEEE);
    Probe {
        name,
        question,
        how,
        answers,
        source,
        applies_to: AppliesTo::Scalars,
        shown: Shown::PLAIN,
        ask: Ask::Function,
    }
}

const fn stepped(name: &'static str, question: &'static str) -> Probe {
    Probe { answers: STEPPED, source: source::NVIDIA, ..rounded(name, question) }
}

pub(super) const ADD: Probe =
    rounded("function.add", "In which direction is a sum rounded, and is it correctly rounded?");
pub(super) const SUBTRACT: Probe =
    rounded("function.subtract", "In which direction is a difference rounded, and is it correctly rounded?");
pub(super) const MULTIPLY: Probe =
    rounded("function.multiply", "In which direction is a product rounded, and is it correctly rounded?");
pub(super) const DIVIDE: Probe =
    rounded("function.divide", "In which direction is a quotient rounded, and is it correctly rounded?");
pub(super) const SQUARE_ROOT: Probe =
    rounded("function.square_root", "In which direction is a square root rounded, and is it correctly rounded?");
pub(super) const FMA: Probe = stepped("function.fma", "Is the fused multiply-add fused, and correctly rounded?");
pub(super) const MULTIPLY_ADD: Probe =
    stepped("function.multiply_add", "Does the compiler contract a·b + c to a fused multiply-add?");
pub(super) const CONVERT: Probe =
    rounded("function.convert", "In which direction does a conversion round, and is it correctly rounded?");
pub(super) const DOT4: Probe =
    stepped("function.dot4", "Are the steps of a dot product of four terms those that its source says?");

pub(super) const RECIPROCAL: Probe =
    rounded("function.reciprocal", "In which direction is a reciprocal rounded, and is it correctly rounded?");
pub(super) const REMAINDER: Probe = rounded(
    "function.remainder",
    "Is a remainder exact: IEEE 754's of the nearest quotient, and that of the truncated quotient, as fmod?",
);
pub(super) const SCALE: Probe =
    rounded("function.scale", "In which direction is a product with a power of two rounded, where it is subnormal?");
pub(super) const NEGATE: Probe = rounded("function.negate", "Does the negation change the sign and nothing else?");
pub(super) const ABS: Probe = rounded("function.abs", "Does the absolute value change the sign and nothing else?");
pub(super) const COPY_SIGN: Probe =
    rounded("function.copy_sign", "Does copying a sign change the sign and nothing else?");
pub(super) const COMPARE: Probe = rounded(
    "function.compare",
    "Are numbers compared as IEEE 754 says: -0 equals +0, subnormals differ from zero, NaN is unordered?",
);

/// The possible treatments of subnormal results.
const FLUSHES: [Subnormals; 4] = [
    Subnormals::Keep,
    Subnormals::FlushAfterRounding,
    Subnormals::FlushBeforeRounding,
    Subnormals::FlushToPositiveZero,
];

/// The registers that hold results before they are stored.
#[derive(Clone, Copy)]
pub(super) enum Registers {
    /// In registers of the format: each result is rounded once.
    OfFormat,
    /// In x87 registers.
    OfX87,
}

impl Registers {
    fn of(subject: &Subject<'_>) -> Self {
        if subject.scalar.id.has("x87") { Self::OfX87 } else { Self::OfFormat }
    }
}

/// Every reading, starting with those without flushing.
pub(super) fn readings(function: ScalarFunction, format: Format, registers: Registers) -> Vec<(Mode, Steps)> {
    let steps = match registers {
        Registers::OfFormat => Steps::of(function, format),
        Registers::OfX87 => Steps::of_x87(function, format),
    };
    let mut found = Vec::new();
    for (daz, results) in [false, true].into_iter().flat_map(|daz| FLUSHES.map(|results| (daz, results))) {
        for steps in &steps {
            found.extend(ROUNDINGS.map(|(_, rounding)| (Mode { rounding, daz, results }, *steps)));
        }
    }
    found
}

/// The readings that are shown as rivals and searched for the nearest one: sums are not both reordered and contracted.
fn likely(function: ScalarFunction, format: Format, registers: Registers) -> Vec<(Mode, Steps)> {
    let mut found = readings(function, format, registers);
    if let ScalarFunction::Dot4 { order } = function {
        found.retain(|(_, steps)| match steps {
            Steps::Summed(sum) => sum.is_in_order(order) || sum.contracts_none(),
            _ => true,
        });
    }
    found
}

/// The name of a function's probe.
pub(super) fn probe(function: ScalarFunction) -> String {
    format!("function.{function}")
}

/// Asks about a function.
pub(super) fn ask(subject: &Subject<'_>, function: ScalarFunction) -> Result<Calls, Error> {
    let format = subject.format();
    let mut operands = paper(function, format);
    operands.extend(cases::calls(function, format, 0x5ca1_a5e5));
    if matches!(Registers::of(subject), Registers::OfX87) {
        operands.extend(extended::telling(function, format));
    }
    let results = subject.ask(function, &operands)?;
    Ok(Calls { function, format, operands, results })
}

/// Holds the results of a function against every reading.
pub(super) fn explain(subject: &Subject<'_>, calls: Calls) -> (Finding, Found) {
    let (function, format) = (calls.function, calls.format);
    let explain = calls.explaining(readings(function, format, Registers::of(subject)));
    let (finding, nearest) = match explain.first() {
        Some(first) => (explained(subject, &calls, *first, &explain), *first),
        None => unexplained(subject, &calls),
    };
    (finding, Found { function, calls, readings: explain, nearest })
}

/// The operands in NVIDIA, Precision & Performance, Figures 1 and 5.
fn paper(function: ScalarFunction, format: Format) -> Vec<Vec<u64>> {
    if format != Format::F32 {
        return Vec::new();
    }
    match function {
        ScalarFunction::Fma | ScalarFunction::MultiplyAdd => vec![vec![0x3f80_0001, 0x3f80_0001, 0xbf80_0002]],
        ScalarFunction::Dot4 { .. } => {
            // The figure's seven digits fit several values of f32; of those with its three results, these have its
            // exact value, 0.0559587528435.
            let a = [0x3ff4_2c76, 0xbf49_4494, 0x3f92_db19, 0x3f75_dcc9];
            let b = [0xbf6f_7cee, 0xbf31_06da, 0x3fdc_bb70, 0xbf35_b25d];
            vec![a.into_iter().chain(b).collect()]
        }
        _ => Vec::new(),
    }
}

/// The value and the statement of a finding.
fn name(function: ScalarFunction, reading: (Mode, Steps), explain: &[(Mode, Steps)]) -> (String, String) {
    let directions = |steps: Steps| explain.iter().filter(|(_, other)| *other == steps).count();
    let (mode, steps) = reading;
    let exact = directions(steps) >= ROUNDINGS.len()
        && ROUNDINGS.iter().all(|(_, rounding)| explain.iter().any(|(mode, _)| mode.rounding == *rounding));
    // Several directions if no input distinguishes them: a square root is never negative, so RD equals RZ.
    let alike = |rounding: Rounding| explain.contains(&(Mode { rounding, ..mode }, steps));
    let words: Vec<&str> = ROUNDINGS.iter().filter(|(_, rounding)| alike(*rounding)).map(|(word, _)| *word).collect();
    let word = words.join(" or ");
    let value = if exact { "exact" } else { &word };
    let words = if exact { "exact".to_owned() } else { format!("correctly rounded ({word})") };
    let fused = Steps::fuses(function, steps);
    match (function, steps, fused) {
        (_, Steps::ByWayOfF32, _) => {
            (format!("{value}, by way of f32"), format!("rounded twice: to f32, then to the result, each {words}"))
        }
        (_, Steps::ByWayOfF64, _) => (format!("{value}, by way of f64"), format!("computed in f64, then {words}")),
        (_, Steps::ByWayOfX87, _) => (
            format!("{value}, by way of x87"),
            format!("computed in the 64 bits of x87, then rounded to the format, each {words}"),
        ),
        (ScalarFunction::Dot4 { order }, _, _) => of_sum(order, steps, value, &words),
        (_, _, None) => (value.to_owned(), words),
        (_, Steps::AsNamed, Some(true)) => (format!("{value}, fused"), format!("fused: {words}")),
        (_, _, Some(true)) => {
            (format!("{value}, fused"), format!("contracted: products fused with sums, each {words}"))
        }
        (_, Steps::AsNamed, Some(false)) => {
            (format!("{value}, separate"), format!("not contracted: each step {words}"))
        }
        (_, _, Some(false)) => (format!("{value}, separate"), format!("not fused: products and sums each {words}")),
    }
}

/// The value and the statement for the way in which a dot product is added.
fn of_sum(order: DotOrder, steps: Steps, value: &str, words: &str) -> (String, String) {
    let named_as_fused = order == DotOrder::Fma;
    let Steps::Summed(sum) = steps else {
        let (word, not) = if named_as_fused { ("fused", "fused") } else { ("separate", "not contracted") };
        return (format!("{value}, {word}"), format!("{not}: each step {words}"));
    };
    let expression = sum.words();
    let not = if named_as_fused { "not fused" } else { "not contracted" };
    match (sum.is_in_order(order), sum.is_without_zero(order), sum.contracts_none()) {
        (true, _, true) => (format!("{value}, separate"), format!("{not}: products and sums each {words}")),
        (true, ..) if sum.contracts_in_order() => {
            (format!("{value}, fused"), format!("contracted to {expression}: each step {words}"))
        }
        (true, ..) => {
            let partly = if sum.contracts_all() { "" } else { "partly " };
            let expression = format!("{expression}: each step {words}");
            (format!("{value}, {partly}fused: {}", sum.words()), format!("{partly}contracted to {expression}"))
        }
        (_, true, true) => (
            format!("{value}, separate, from p0"),
            format!("{not}; the sum begins with p0, not with +0: each step {words}"),
        ),
        (_, true, _) => (
            format!("{value}, fused, from p0: {expression}"),
            format!("contracted to {expression}; the sum begins with p0, not with +0: each step {words}"),
        ),
        (_, _, true) => (format!("{value}, reordered"), format!("reordered to {expression}: each step {words}")),
        (..) => (
            format!("{value}, reordered and fused"),
            format!("reordered and contracted to {expression}: each step {words}"),
        ),
    }
}

fn explained(subject: &Subject<'_>, calls: &Calls, reading: (Mode, Steps), explain: &[(Mode, Steps)]) -> Finding {
    let function = calls.function;
    let (value, words) = name(function, reading, explain);
    let count = calls.operands.len();
    let instruction = subject.scalar.functions[&function].as_ref();
    let behind = instruction.map(|text| format!(" [{text}]")).unwrap_or_default();
    let statement = format!("{words}, in all of {count} calls{behind}");
    Finding::measured(&probe(function), value, statement).with(evidence(subject, calls, reading, explain))
}

/// The most calls of which one becomes evidence.
const TRIED: usize = 40;

/// The paper's example, and a call for which the other readings give different bits.
fn evidence(subject: &Subject<'_>, calls: &Calls, reading: (Mode, Steps), explain: &[(Mode, Steps)]) -> Vec<Evidence> {
    let mut others = likely(calls.function, calls.format, Registers::of(subject));
    others.retain(|(mode, steps)| {
        let same_flush = (mode.daz, mode.results) == (reading.0.daz, reading.0.results);
        same_flush && !explain.contains(&(*mode, *steps))
    });
    // Among readings with the same bits, show the likeliest: the same direction, and the written order contracted
    // throughout.
    let far = |(mode, steps): &(Mode, Steps)| match (calls.function, steps) {
        _ if mode.rounding != reading.0.rounding => 3,
        (ScalarFunction::Dot4 { order }, Steps::Summed(sum)) if !sum.is_in_order(order) => 2,
        (_, Steps::Summed(sum)) if !sum.contracts_all() => 1,
        _ => 0,
    };
    others.order_by_key(far);
    let shared = Shared::new();
    let differing = |at: usize| {
        let mut found: Vec<((Mode, Steps), u64)> = Vec::new();
        for reading in &others {
            let Ok(bits) = calls.expected_of(at, *reading, &shared) else { continue };
            if bits != calls.results[at] && found.iter().all(|(_, other)| *other != bits) {
                found.push((*reading, bits));
            }
        }
        found
    };
    let rivals = |at: usize| -> Vec<(String, u64)> {
        let named = |((mode, steps), bits): ((Mode, Steps), u64)| {
            let (value, _) = name(calls.function, (mode, steps), &[(mode, steps)]);
            // Several orders give different sums.
            let order = match steps {
                Steps::Summed(sum) if value.ends_with("reordered") => format!(": {}", sum.words()),
                _ => String::new(),
            };
            (value + &order, bits)
        };
        differing(at).into_iter().map(named).collect()
    };
    let mut shown = Vec::new();
    if !paper(calls.function, calls.format).is_empty() {
        let figure = if calls.function.arity() == 3 { "Figure 1" } else { "Figure 5" };
        let about = format!("the example of NVIDIA's Precision & Performance, {figure}");
        shown.push(subject.evidence(about, calls.function, &calls.operands[0], calls.results[0], &rivals(0)));
    }
    let some = (0..calls.operands.len()).step_by(calls.operands.len() / TRIED + 1);
    let telling = some.max_by_key(|at| {
        let found = differing(*at);
        let near = found.iter().filter(|(reading, _)| far(reading) < 2).count();
        (near, found.len(), usize::MAX - at)
    });
    let first = usize::from(shown.is_empty());
    if let Some(at) = telling.filter(|at| *at + first > 0 && !rivals(*at).is_empty()) {
        let about = "other readings give other bits";
        shown.push(subject.evidence(about, calls.function, &calls.operands[at], calls.results[at], &rivals(at)));
    }
    shown
}

/// Handles a function that no reading explains: finds the nearest reading and the largest distance from it.
fn unexplained(subject: &Subject<'_>, calls: &Calls) -> (Finding, (Mode, Steps)) {
    let (function, format) = (calls.function, calls.format);
    let to = function.result(format);
    let all = calls.operands.len();
    let mut nearest: Option<(Vec<usize>, (Mode, Steps))> = None;
    for reading in likely(function, format, Registers::of(subject)) {
        let best = nearest.as_ref().map_or(all + 1, |(wrong, _)| wrong.len());
        let wrong = calls.wrong(reading, best);
        if wrong.len() < best {
            nearest = Some((wrong, reading));
        }
    }
    let (wrong, reading) = nearest.expect("there are readings");
    let (_, words) = name(function, reading, &[reading]);
    let mut worst: Option<u64> = None;
    let mut shown = Vec::new();
    for at in &wrong {
        let expected = calls.expected(*at, reading).ok();
        worst = worst.max(expected.and_then(|bits| exact::distance(to, bits, calls.results[*at])));
        if shown.len() < 3 {
            let rivals: Vec<(String, u64)> = expected.map(|bits| (words.clone(), bits)).into_iter().collect();
            let about = "not what the nearest reading gives";
            shown.push(subject.evidence(about, function, &calls.operands[*at], calls.results[*at], &rivals));
        }
    }
    let off = worst.map_or_else(String::new, |worst| format!(", by up to {worst} units in the last place"));
    let statement = format!("not correctly rounded: {} of {all} calls differ from {words}{off}", wrong.len());
    let value = worst.map_or_else(|| "wrong".to_owned(), |worst| format!("within {worst} ulp"));
    (Finding::measured(&probe(function), value, statement).with(shown), reading)
}
