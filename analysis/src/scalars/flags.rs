//! Which status flags does each function raise on the exceptions of IEEE 754-2019, clause 7?

use std::collections::BTreeMap;

use mxprobe_api::{Elementary, Error, Flag, Flags, Format, ScalarFunction};

use super::{Ask, Probe, subject::Subject};
use crate::findings::{AppliesTo, Evidence, Finding, Shown, Value};

pub(crate) const PROBE: Probe = Probe {
    name: "flags",
    question: "Which status flags does each function raise: invalid, divide by zero, overflow, underflow, inexact?",
    how: "Each function on operands of every exception that it can raise, and on operands that raise none, with all flags lowered \
         before each call; where no flags can be read nothing is asked.",
    answers: &[
        (
            "calls, otherwise",
            "the calls, and those of them that raise other flags than IEEE 754 asks; the evidence has these",
        ),
        ("by function", "the flags that calls of the function raised, all together"),
        (
            "underflow",
            "whether a result is tiny before or after it is rounded: IEEE 754 lets binary formats do either (7.5)",
        ),
        ("denormal", "whether a subnormal operand raises a flag of its own, which IEEE 754 does not have"),
    ],
    source: "IEEE 754-2019, 7.2 to 7.6 and 9.2; NVIDIA, Precision and Performance, 4.5: a GPU has no status flags",
    applies_to: AppliesTo::Scalars,
    shown: Shown::PLAIN,
    ask: Ask::Question(|subject, _, findings| {
        findings.push(ask(subject)?);
        Ok(())
    }),
};

/// Functions for which the standard specifies the same exceptions.
const TWO_OPERANDS: [ScalarFunction; 4] =
    [ScalarFunction::Add, ScalarFunction::Subtract, ScalarFunction::Multiply, ScalarFunction::Divide];

/// A call, and the flags that IEEE 754 specifies for it.
struct Case {
    /// The kind of call.
    about: &'static str,
    function: ScalarFunction,
    operands: Vec<u64>,
    wanted: Flags,
}

/// The numbers of a format that cause exceptions.
struct Numbers {
    format: Format,
    infinity: u64,
    one: u64,
    three: u64,
    largest: u64,
    /// The smallest normal value.
    normal: u64,
    half: u64,
    sign: u64,
    signalling: u64,
    quiet: u64,
}

impl Numbers {
    fn of(format: Format) -> Option<Self> {
        let infinity = format.infinity(false)?;
        Some(Self {
            format,
            infinity,
            one: format.one(),
            three: format.from_f64(3.0),
            largest: format.largest(false),
            normal: 1 << format.fraction_bits(),
            half: format.from_f64(0.5),
            sign: 1 << (format.bits() - 1),
            signalling: infinity | 1,
            quiet: format.nan()?,
        })
    }
}

const INVALID: &[Flag] = &[Flag::Invalid];
const ZERO: &[Flag] = &[Flag::DivideByZero];
const OVER: &[Flag] = &[Flag::Overflow, Flag::Inexact];
const UNDER: &[Flag] = &[Flag::Underflow, Flag::Inexact];
const INEXACT: &[Flag] = &[Flag::Inexact];

/// The calls of a function, with the flags of clause 7.
fn cases(function: ScalarFunction, n: &Numbers) -> Vec<Case> {
    use ScalarFunction as F;
    let mut found = Vec::new();
    let mut add = |about, operands: &[u64], flags: &[Flag]| {
        found.push(Case { about, function, operands: operands.to_vec(), wanted: Flags::of(flags) });
    };
    let Numbers { infinity, one, three, largest, normal, half, sign, signalling, quiet, .. } = *n;
    let odd = normal + 1;
    if TWO_OPERANDS.contains(&function) || matches!(function, F::Remainder | F::TruncatedRemainder) {
        add("a signalling NaN", &[signalling, one], INVALID);
        add("a quiet NaN", &[quiet, one], &[]);
    }
    match function {
        F::Add | F::Subtract => {
            let other = if function == F::Add { sign } else { 0 };
            add("infinity less infinity", &[infinity, infinity | other], INVALID);
            add("infinity and a number", &[infinity, one], &[]);
            add("a sum that is exact", &[one, one], &[]);
            add("a sum beyond the range", &[largest, largest | (sign ^ other)], OVER);
            add("a sum that is rounded", &[one, normal], INEXACT);
            add("a subnormal sum, which is always exact", &[odd, normal | other], &[]);
        }
        F::Multiply => {
            add("zero times infinity", &[0, infinity], INVALID);
            add("a product beyond the range", &[largest, three], OVER);
            add("a tiny product that is rounded", &[odd, half], UNDER);
            add("a product that is rounded to zero, or to the smallest value", &[normal, normal], UNDER);
            add("a tiny product that is exact", &[normal, half], &[]);
            add("a product that is rounded", &[one + 1, one + 1], INEXACT);
            add("a product that is exact", &[three, three], &[]);
        }
        F::Divide => {
            add("0 / 0", &[0, 0], INVALID);
            add("infinity by infinity", &[infinity, infinity], INVALID);
            add("1 / 0", &[one, 0], ZERO);
            add("infinity by zero", &[infinity, 0], &[]);
            add("a quotient beyond the range", &[largest, half], OVER);
            add("a tiny quotient that is rounded", &[odd, three - 1], UNDER);
            add("a quotient that is rounded", &[one, three], INEXACT);
            add("a quotient that is exact", &[three, three], &[]);
        }
        F::Reciprocal => {
            add("a signalling NaN", &[signalling], INVALID);
            add("1 / 0", &[0], ZERO);
            add("1 / infinity", &[infinity], &[]);
            add("a tiny quotient that is rounded", &[largest], UNDER);
            add("a quotient that is rounded", &[three], INEXACT);
            add("a quotient that is exact", &[one], &[]);
        }
        F::SquareRoot => {
            add("a signalling NaN", &[signalling], INVALID);
            add("the root of -1", &[one | sign], INVALID);
            add("the root of -0", &[sign], &[]);
            add("a root that is rounded", &[three], INEXACT);
            add("a root that is exact", &[one], &[]);
        }
        F::Fma | F::MultiplyAdd => {
            add("a signalling NaN", &[signalling, one, one], INVALID);
            add("zero times infinity", &[0, infinity, one], INVALID);
            add("infinity less infinity", &[infinity, one, infinity | sign], INVALID);
            add("a sum beyond the range", &[largest, one, largest], OVER);
            add("a tiny sum that is rounded", &[odd, half, 0], UNDER);
            add("a sum that is rounded", &[one, one, normal], INEXACT);
            add("a sum that is exact", &[one, one, one], &[]);
        }
        F::Remainder | F::TruncatedRemainder => {
            add("a remainder of division by zero", &[one, 0], INVALID);
            add("a remainder of infinity", &[infinity, one], INVALID);
            add("a remainder, which is always exact", &[three, one + 1], &[]);
        }
        F::Scale => {
            add("a signalling NaN", &[signalling, one], INVALID);
            add("a scaled number beyond the range", &[largest, one], OVER);
            add("a tiny scaled number that is rounded", &[odd, one | sign], UNDER);
            add("a tiny scaled number that is exact", &[normal, one | sign], &[]);
        }
        F::Convert { to } if to.is_integer() => {
            add("a NaN as an integer", &[quiet], INVALID);
            add("infinity as an integer", &[infinity], INVALID);
            add("a fraction as an integer", &[half], INEXACT);
            add("an integer as an integer", &[three], &[]);
            if let Some(beyond) = to_beyond(n.format, to) {
                add("an integer beyond the range", &[beyond], INVALID);
            }
        }
        F::Convert { to } => {
            add("a signalling NaN", &[signalling], INVALID);
            add("a quiet NaN", &[quiet], &[]);
            add("a value of both formats", &[three], &[]);
            if to.bits() < n.format.bits() {
                let lowest = to.as_float().map_or(0, |float| float.exponents().0);
                add("a value beyond the narrower range", &[largest], OVER);
                add("a value that is rounded", &[one + 1], INEXACT);
                let tiny = n.format.from_f64(1.25 * 2f64.powi(lowest + 1));
                add("a value that is tiny in the narrower format, and rounded", &[tiny], UNDER);
            }
        }
        F::Compare => {
            add("a signalling NaN", &[signalling, one], INVALID);
            add("a quiet NaN, of a comparison that does not signal", &[quiet, one], &[]);
            add("two numbers", &[one, three], &[]);
        }
        F::Negate | F::Abs => add("a sign, of a signalling NaN", &[signalling], &[]),
        F::CopySign => add("a sign, of a signalling NaN", &[signalling, one], &[]),
        F::Elementary(elementary) => {
            add("a signalling NaN", &[signalling], INVALID);
            add("a quiet NaN", &[quiet], &[]);
            match elementary {
                Elementary::Exp | Elementary::Exp2 => {
                    add("a power beyond the range", &[largest], OVER);
                    add("a power that is rounded to zero, or to the smallest value", &[largest | sign], UNDER);
                }
                Elementary::Log | Elementary::Log2 => {
                    add("the logarithm of 0", &[0], ZERO);
                    add("the logarithm of -1", &[one | sign], INVALID);
                }
                Elementary::Sin | Elementary::Cos => add("the sine or cosine of infinity", &[infinity], INVALID),
                Elementary::ReciprocalSquareRoot => {
                    add("1 / the root of 0", &[0], ZERO);
                    add("1 / the root of -1", &[one | sign], INVALID);
                }
                Elementary::Tanh => add("tanh of infinity", &[infinity], &[]),
            }
        }
        F::Dot4 { .. } => {}
    }
    found
}

/// A number of a floating-point format beyond the range of an integer format, if there is one.
fn to_beyond(from: Format, to: Format) -> Option<u64> {
    let exponent = i32::try_from(to.bits()).ok()?;
    (from.as_float()?.exponents().1 > exponent).then(|| from.from_f64(2f64.powi(exponent + 1)))
}

/// A call and the flags that it raised.
struct Answered {
    case: Case,
    d: u64,
    raised: Flags,
}

fn ask(subject: &Subject<'_>) -> Result<Finding, Error> {
    if !subject.has_flags() {
        return Ok(Finding::unsupported(PROBE.name, "no flags can be read"));
    }
    let Some(numbers) = Numbers::of(subject.format()) else {
        return Ok(Finding::unsupported(PROBE.name, "the format has no infinity"));
    };
    let mut all = Vec::new();
    for function in subject.scalar.functions.keys() {
        let cases = cases(*function, &numbers);
        let operands: Vec<Vec<u64>> = cases.iter().map(|case| case.operands.clone()).collect();
        let answers = subject.ask_with_flags(*function, &operands)?;
        all.extend(cases.into_iter().zip(answers).map(|(case, (d, raised))| Answered { case, d, raised }));
    }
    let tiny = tininess(subject, &numbers)?;
    let denormal = denormal(subject, &numbers)?;
    Ok(finding(subject, &all, tiny, denormal))
}

fn finding(
    subject: &Subject<'_>,
    all: &[Answered],
    tiny: Option<(&'static str, Evidence)>,
    denormal: Option<bool>,
) -> Finding {
    let is_otherwise = |answered: &&Answered| answered.raised.without(Flag::Denormal) != answered.case.wanted;
    let otherwise: Vec<&Answered> = all.iter().filter(is_otherwise).collect();
    let mut by_function: BTreeMap<String, Flags> = BTreeMap::new();
    for answered in all {
        let flags = by_function.entry(answered.case.function.to_string()).or_default();
        *flags = flags.or(answered.raised);
    }
    let names = |flags: Flags| Value::from(flags.iter().map(Flag::name).collect::<Vec<&'static str>>());
    let mut value = vec![
        ("calls".to_owned(), Value::from(all.len())),
        ("otherwise".to_owned(), Value::from(otherwise.len())),
        ("by function".to_owned(), Value::parts(by_function.iter().map(|(name, flags)| (name.clone(), names(*flags))))),
    ];
    value.extend(tiny.iter().map(|(word, _)| ("underflow".to_owned(), Value::from(*word))));
    value.extend(denormal.map(|denormal| ("denormal".to_owned(), Value::from(denormal))));
    let statement =
        statement(all, &otherwise, by_function.values().fold(Flags::default(), |all, flags| all.or(*flags)))
            + &tiny.as_ref().map(|(word, _)| format!("; underflow by what is tiny {word}")).unwrap_or_default()
            + denormal.filter(|is_raised| *is_raised).map_or("", |_| "; a subnormal operand raises denormal");
    // For each function the calls with other flags, then an example of each flag.
    let show = |answered: &Answered| {
        let Case { about, function, operands, wanted } = &answered.case;
        let asked = if answered.raised.without(Flag::Denormal) == *wanted {
            String::new()
        } else {
            format!(", where IEEE 754 asks for {wanted}")
        };
        let about = format!("{about} raises {}{asked}", answered.raised);
        subject.evidence(about, *function, operands, answered.d, &[])
    };
    let mut shown: Vec<Evidence> = otherwise.iter().map(|answered| show(answered)).collect();
    let is_example = |flag: Flag| {
        all.iter().find(|answered| {
            answered.raised.has(flag) && answered.raised.without(Flag::Denormal) == answered.case.wanted
        })
    };
    let examples = Flag::ALL.into_iter().filter(|flag| *flag != Flag::Denormal).filter_map(is_example);
    shown.extend(examples.map(show));
    shown.extend(tiny.map(|(_, evidence)| evidence));
    Finding::measured(PROBE.name, Value::parts(value), statement).with(shown)
}

fn statement(all: &[Answered], otherwise: &[&Answered], raised: Flags) -> String {
    let count = all.len();
    if otherwise.is_empty() {
        return format!("{} are raised as IEEE 754 asks, in all of {count} calls", raised.without(Flag::Denormal));
    }
    if raised == Flags::default() {
        return format!("no function raises a flag: {} of {count} calls should", otherwise.len());
    }
    let mut functions: Vec<String> = otherwise.iter().map(|answered| answered.case.function.to_string()).collect();
    functions.dedup();
    let raise = if otherwise.len() == 1 { "raises" } else { "raise" };
    format!("{} of {count} calls {raise} other flags than IEEE 754 asks: of {}", otherwise.len(), functions.join(", "))
}

/// Multiplies to just below the smallest normal value, which the product is rounded up to: it is tiny only before
/// rounding.
fn tininess(subject: &Subject<'_>, n: &Numbers) -> Result<Option<(&'static str, Evidence)>, Error> {
    let function = ScalarFunction::Multiply;
    if !subject.has(function) {
        return Ok(None);
    }
    let operands = [n.normal + 1, n.one - 2];
    let (d, raised) = subject.ask_with_flags(function, &[operands.to_vec()])?[0];
    // Rounding toward zero gives no such product.
    if d != n.normal || !raised.has(Flag::Inexact) {
        return Ok(None);
    }
    let word = if raised.has(Flag::Underflow) { "before it is rounded" } else { "after it is rounded" };
    let about = format!("a product that is rounded up to the smallest normal value raises {raised}");
    Ok(Some((word, subject.evidence(about, function, &operands, d, &[]))))
}

/// Whether a subnormal operand of an exact product raises a flag; `None` if the arithmetic has no product.
fn denormal(subject: &Subject<'_>, n: &Numbers) -> Result<Option<bool>, Error> {
    let function = ScalarFunction::Multiply;
    if !subject.has(function) {
        return Ok(None);
    }
    let (_, raised) = subject.ask_with_flags(function, &[vec![1, n.one]])?[0];
    Ok(Some(raised.has(Flag::Denormal)))
}
