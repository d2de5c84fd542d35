//! Scalar arithmetic on lavapipe, compared with the host's IEEE 754 arithmetic in f64.

use half::f16;
use mxprobe_api::{Decoded, Device, DotOrder, Elementary, Elements, Format, Random, ScalarFunction, ScalarId, call};
use mxprobe_vulkan::VulkanDevice;

/// The number of calls of each function of each format and mode: not a whole number of workgroups, and for some
/// functions more than fit in one buffer.
const CALLS: usize = 100_003;

fn value(format: Format, bits: u64) -> f64 {
    match format {
        Format::F16 => f16::from_bits(u16::try_from(bits).expect("16 bits")).to_f64(),
        Format::F32 => f64::from(f32::from_bits(u32::try_from(bits).expect("32 bits"))),
        _ => f64::from_bits(bits),
    }
}

/// The bits of a value rounded to nearest even.
fn rounded(format: Format, value: f64) -> u64 {
    match format {
        // `half` rounds an f64 to f32 first if the CPU has F16C.
        Format::F16 => Format::F16.from_f64(value),
        #[expect(clippy::cast_possible_truncation, reason = "it rounds, to nearest")]
        Format::F32 => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

/// The results that lavapipe may give, *measured* (Mesa 26.1, LLVM 21, x86-64). Each operation is rounded to nearest
/// even; `fma` is a multiply and an add, whether it may be contracted or not. The sums of a dot product may be
/// reassociated; those written as pairs are in another order. An f64 becomes an f16 via f32, rounded twice, unless
/// rounding to nearest even is requested.
fn host(id: &ScalarId, function: ScalarFunction, x: &[u64]) -> Vec<u64> {
    use ScalarFunction as F;
    let format = id.format;
    let x: Vec<f64> = x.iter().map(|bits| value(format, *bits)).collect();
    // An f64 holds more than twice the bits of f16 and f32, so that its results, rounded again, are as if rounded once
    // (Figueroa 1995).
    let round = |result: f64| value(format, rounded(format, result));
    let product = |at: usize| round(x[at] * x[at + 4]);
    let result = match function {
        F::Convert { to: Format::F16 } if format == Format::F64 && !id.has("rne") => {
            return vec![rounded(Format::F16, value(Format::F32, rounded(Format::F32, x[0])))];
        }
        F::Convert { to } => return vec![rounded(to, x[0])],
        F::Add => x[0] + x[1],
        F::Subtract => x[0] - x[1],
        F::Multiply => x[0] * x[1],
        F::Divide => x[0] / x[1],
        F::SquareRoot => x[0].sqrt(),
        F::Fma | F::MultiplyAdd => round(x[0] * x[1]) + x[2],
        F::Dot4 { order: DotOrder::Serial | DotOrder::Fma } => (0..4).fold(0.0, |sum, at| round(sum + product(at))),
        F::Dot4 { order: DotOrder::Pairwise } => {
            let add = |a: f64, b: f64| round(a + b);
            let pairs = add(add(product(0), product(1)), add(product(2), product(3)));
            let chains = (0..24).map(|order: usize| {
                let mut left = vec![0, 1, 2, 3];
                let mut take = |at: usize| product(left.remove(at));
                add(add(add(take(order % 4), take(order / 4 % 3)), take(order / 12)), take(0))
            });
            return [pairs].into_iter().chain(chains).map(|sum| rounded(format, sum)).collect();
        }
        F::Reciprocal => 1.0 / x[0],
        // Computed from the rounded quotient, as the required precision allows (*specified*: Vulkan, OpFRem).
        F::TruncatedRemainder => x[0] - round(x[1] * round(x[0] / x[1]).trunc()),
        F::Scale => x[0] * x[1].trunc().exp2(),
        F::Compare => {
            let order = x[0].partial_cmp(&x[1]).map_or(2, |order| order as i32);
            return vec![order.cast_unsigned().into()];
        }
        F::Negate => -x[0],
        F::Abs => x[0].abs(),
        _ => unreachable!("lavapipe does not list {function}"),
    };
    vec![rounded(format, result)]
}

/// Draws operands whose results are normal in every format: significands are random, exponents are near 0.
fn operands(format: Format, len: usize, positive: bool) -> Elements {
    let float = format.as_float().expect("a scalar format");
    let mut random = Random(u64::from(format.bits()));
    let draw = |_| {
        let bits = random.bits();
        let exponent = u64::from(float.bias.unsigned_abs()) + (bits >> 60) % 3;
        let sign = if positive { 0 } else { bits & 1 << (format.bits() - 1) };
        sign | exponent << float.fraction_bits | bits & ((1 << float.fraction_bits) - 1)
    };
    Elements::from_bits(format, (0..len).map(draw))
}

pub(crate) fn lists(device: &VulkanDevice) {
    let ids: Vec<String> = device.scalars().unwrap().members().iter().map(|scalar| scalar.id.to_string()).collect();
    let wanted =
        ["f16", "f32", "f64"].map(|format| ["", ".rne", ".szinfnan"].map(|mode| format!("scalar.{format}{mode}")));
    assert_eq!(ids, wanted.concat());
    assert!(
        device
            .scalars()
            .unwrap()
            .members()
            .iter()
            .all(|scalar| scalar.functions.len() == functions_of(scalar.id.format))
    );
}

/// The number of functions of a format: twelve that have several operands or another result format, the reciprocal, the
/// remainder, the product with a power of two, two on signs, the comparison, and the elementary functions (one for
/// f64).
fn functions_of(format: Format) -> usize {
    18 + if format == Format::F64 { 1 } else { Elementary::ALL.len() }
}

pub(crate) fn agrees_with_the_host(device: &VulkanDevice) {
    let mut compared = 0;
    for scalar in device.scalars().unwrap().members() {
        for function in scalar.functions.keys() {
            let arity = function.arity();
            let has_no_negative = [
                ScalarFunction::SquareRoot,
                ScalarFunction::Elementary(Elementary::ReciprocalSquareRoot),
                ScalarFunction::Elementary(Elementary::Log),
                ScalarFunction::Elementary(Elementary::Log2),
            ];
            let x = operands(scalar.id.format, CALLS * arity, has_no_negative.contains(function));
            let got = call(device, scalar, *function, &x).unwrap();
            if let ScalarFunction::Elementary(function) = function {
                is_near(*function, scalar.id.format, &x, &got);
                continue;
            }
            for (at, found) in got.iter().enumerate() {
                let call: Vec<u64> = (0..arity).map(|operand| x.get(at * arity + operand)).collect();
                let wanted = host(&scalar.id, *function, &call);
                assert!(wanted.contains(&found), "{function} of {}: {call:x?}: {found:x}, not {wanted:x?}", scalar.id);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 9 * 18 * CALLS);
}

/// Checks the results of an elementary function. Vulkan allows them some units in the last place, or an absolute error
/// (*specified*: Vulkan, "Precision and Operation of SPIR-V Instructions"); no two functions are that close to each
/// other at all of these arguments.
fn is_near(function: Elementary, format: Format, x: &Elements, got: &Elements) {
    for (x, found) in x.iter().zip(got.iter()) {
        let (x, found) = (value(format, x), value(format, found));
        let wanted = match function {
            Elementary::ReciprocalSquareRoot => x.sqrt().recip(),
            Elementary::Exp => x.exp(),
            Elementary::Exp2 => x.exp2(),
            Elementary::Log => x.ln(),
            Elementary::Log2 => x.log2(),
            Elementary::Sin => x.sin(),
            Elementary::Cos => x.cos(),
            Elementary::Tanh => x.tanh(),
        };
        let allowed = if format == Format::F16 { 1.0 / 128.0 } else { 1.0 / 1024.0 };
        let off = (found - wanted).abs() / wanted.abs().max(1.0);
        assert!(off <= allowed, "{} of {x} in {format}: {found}, not {wanted}", function.name());
    }
}

/// Whether lavapipe flushes the subnormals of a format, *measured*: its threads run with DAZ and FTZ set, and f16 is
/// computed in f32, where its subnormals are normal. The driver supports neither `DenormPreserve` nor
/// `DenormFlushToZero`.
fn flushes(format: Format) -> bool {
    format != Format::F16
}

fn flushed(format: Format, bits: u64) -> u64 {
    let sign = bits & 1 << (format.bits() - 1);
    if flushes(format) && bits ^ sign < 1 << format.fraction_bits() { sign } else { bits }
}

/// Whether the driver violates its float controls, *measured*: if rounding to nearest even is requested, an f64 above
/// the range of f32 becomes NaN as an f16, not infinity.
fn breaks(id: &ScalarId, function: ScalarFunction, x: u64) -> bool {
    let beyond = value(id.format, x).abs() > f64::from(f32::MAX) && value(id.format, x).is_finite();
    id.format == Format::F64 && id.has("rne") && function == ScalarFunction::Convert { to: Format::F16 } && beyond
}

/// Checks with operands of any bits that the driver's float controls hold, and that subnormals behave as measured where
/// the controls do not cover them.
pub(crate) fn keeps_its_float_controls(device: &VulkanDevice) {
    use ScalarFunction as F;
    let properties = &device.info().properties;
    assert_eq!(properties["rounding_mode_rte_bits"], "16 32 64");
    assert_eq!(properties["signed_zero_inf_nan_preserve_bits"], "16 32 64");
    for none in ["denorm_preserve_bits", "denorm_flush_to_zero_bits", "rounding_mode_rtz_bits"] {
        assert_eq!(properties[none], "none");
    }
    let mut random = Random(3);
    let mut broken = 0;
    for scalar in device.scalars().unwrap().members() {
        let format = scalar.id.format;
        let single = |function: &&F| {
            // `Ldexp` of a large exponent may give anything (*specified*: GLSL.std.450), and a remainder is as exact as
            // its quotient.
            let is_loose = matches!(function, F::TruncatedRemainder | F::Scale);
            !is_loose && !matches!(function, F::Fma | F::MultiplyAdd | F::Dot4 { .. } | F::Elementary(_))
        };
        for function in scalar.functions.keys().filter(single) {
            let (arity, to) = (function.arity(), function.result(format));
            let x = Elements::from_bits(format, (0..CALLS * arity).map(|_| random.bits() & format.mask()));
            let got = call(device, scalar, *function, &x).unwrap();
            for (at, found) in got.iter().enumerate() {
                let call: Vec<u64> = (0..arity).map(|operand| flushed(format, x.get(at * arity + operand))).collect();
                let ieee = host(&scalar.id, *function, &call)[0];
                // Tininess is judged after rounding with an unbounded exponent: a result that becomes the smallest
                // normal may be flushed.
                let at_the_edge = ieee & (format.mask() >> 1) == 1 << to.fraction_bits();
                let wanted = flushed(to, ieee);
                if breaks(&scalar.id, *function, call[0]) {
                    assert!(matches!(to.decode(found), Decoded::Nan { .. }), "the driver keeps its word: {call:x?}");
                    broken += 1;
                    continue;
                }
                // Signs may be changed bitwise, which flushes nothing.
                let raw: Vec<u64> = (0..arity).map(|operand| x.get(at * arity + operand)).collect();
                let of_bits = matches!(function, F::Negate | F::Abs) && found == host(&scalar.id, *function, &raw)[0];
                let both_nan = [found, wanted].iter().all(|bits| matches!(to.decode(*bits), Decoded::Nan { .. }));
                assert!(
                    found == wanted || both_nan || at_the_edge || of_bits,
                    "{function} of {}: {call:x?}: {found:x}, not {wanted:x}",
                    scalar.id
                );
            }
        }
    }
    assert!(broken > CALLS / 4, "{broken}");
}
