//! Checks of the abilities of a device that hold for any arithmetic.

use mxprobe_api::{
    Decoded, Device, Elements, Error, Flag, Flags, Format, GemmOperands, Load, Operation, Scalar, ScalarFunction, Span,
    TileBatch, call, call_with_flags, execute, flags_of, multiply, multiply_by_tiles, time,
};
use mxprobe_dots::Random;

use crate::{
    Violation, screening,
    suite::{caught, check},
};

/// The checks of an ability: the name that a violation carries, and the requirement.
pub const ABILITY_CHECKS: &[(&str, &str)] = &[
    ("matrices", "whole matrices of any size have the bits of tiles along k, except for the choice between two NaN"),
    ("scalars", "a scalar function returns one result per call, in its format, and repeatable; 1 + 1 is exact"),
    (
        "flags",
        "reading flags changes no result; 1 / 3 raises inexact, 0 / 0 invalid and 1 + 1 nothing, in any order of calls",
    ),
    ("timing", "a timed chain computes the same as that many calls, and the time is a number"),
    (
        "screening",
        "each unit computes the bits of tiles as often as requested, and a bit inverted on one of them is found there",
    ),
    ("code", "the hash of a kernel is 64 hex digits, and repeatable; reading the issued instructions is not an error"),
];

/// A check of an ability with one operation: the name, whether the device has the ability, and the check itself.
type OfOperation<'a> = (&'static str, bool, &'a dyn Fn() -> Result<(), String>);

/// Runs every check of a device: [`check`](crate::check) for each operation that is `wanted`, and the
/// [`ABILITY_CHECKS`] of the abilities that it has.
#[must_use]
pub fn check_device(device: &dyn Device, wanted: impl Fn(&Operation) -> bool) -> Vec<Violation> {
    let wanted = device.operations().values().filter(|operation| wanted(operation));
    let mut violations: Vec<Violation> = wanted.flat_map(|operation| check_operation(device, operation)).collect();
    let members = device.scalars().map_or(&[][..], |scalars| scalars.members());
    violations.extend(members.iter().flat_map(|scalar| check_scalar(device, scalar)));
    violations
}

/// Runs [`check`](crate::check) for an operation, and the [`ABILITY_CHECKS`] of the device's abilities with it.
#[must_use]
pub fn check_operation(device: &dyn Device, operation: &Operation) -> Vec<Violation> {
    let mut violations = check(device, operation);
    let of_operation: [OfOperation<'_>; 4] = [
        ("matrices", device.matrices().is_some(), &|| matrices(device, operation)),
        ("timing", device.timing().is_some(), &|| timing(device, operation)),
        ("screening", device.screening().is_some(), &|| screening::screening(device, operation)),
        ("code", device.code().is_some(), &|| code(device, operation)),
    ];
    for (check, is_there, run) in of_operation {
        if is_there && let Err(found) = caught(run) {
            violations.push(Violation { check, operation: Some(operation.id.clone()), found });
        }
    }
    violations
}

/// Checks one member of a device's scalar arithmetic, and its flags if they can be read.
#[must_use]
pub fn check_scalar(device: &dyn Device, scalar: &Scalar) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut run = |check: &'static str, of: &dyn Fn() -> Result<(), String>| {
        let found = caught(of).err();
        let named = |found: String| Violation { check, operation: None, found: format!("{}: {found}", scalar.id) };
        violations.extend(found.map(named));
    };
    run("scalars", &|| scalars(device, scalar));
    if flags_of(device).is_some() {
        run("flags", &|| flags(device, scalar));
    }
    violations
}

fn said(error: Error) -> String {
    format!("an error: {error}")
}

/// Whether two results are the same bits or both NaN: which of two NaN propagates is up to the kernel.
fn alike(format: Format, one: u64, other: u64) -> bool {
    let is_nan = |bits| matches!(format.decode(bits), Decoded::Nan { .. });
    one == other || is_nan(one) && is_nan(other)
}

fn same(one: &Elements, other: &Elements, what: &str) -> Result<(), String> {
    let format = one.format();
    if (format, one.len()) != (other.format(), other.len()) {
        return Err(format!("{} elements of {format}, and {} of {} {what}", one.len(), other.len(), other.format()));
    }
    match (0..one.len()).find(|at| !alike(format, one.get(*at), other.get(*at))) {
        None => Ok(()),
        Some(at) => {
            Err(format!("element {at} is {}, and {} {what}", format.hex(one.get(at)), format.hex(other.get(at))))
        }
    }
}

/// Multiplies matrices of sizes below, at and above the tile's, with several steps along k, and with empty dimensions.
fn matrices(device: &dyn Device, operation: &Operation) -> Result<(), String> {
    let id = &operation.id;
    let (m, n, k) = id.shape.sizes();
    let longest = if id.c == id.d { 2 * k + 3 } else { k };
    let block = id.block_scale();
    for (seed, (m, n, k)) in
        [(1, 1, 1), (1, 1, k), (m, n, k), (m + 1, 2 * n + 1, longest), (m.min(3), 2, 0), (0, 2, 3), (2, 0, 1)]
            .into_iter()
            .enumerate()
    {
        for draw in [Random::moderate, Random::any] {
            let mut random = Random(seed as u64 + 51);
            let mut drawn = |format: Format, len: usize| {
                let mut elements = Elements::zeros(format, len);
                random.fill(&mut elements, draw);
                elements
            };
            let (a, b, c) = (drawn(id.a, m * k), drawn(id.b, k * n), drawn(id.c, m * n));
            let scales = block.map(|scale| {
                let blocks = k.div_ceil(scale.block);
                (drawn(scale.format, m * blocks), drawn(scale.format, blocks * n))
            });
            let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
            let operands = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a, scale_b };
            let Some(whole) = multiply(device, operation, &operands).map_err(said)? else { continue };
            let tiles = multiply_by_tiles(device, operation, &operands).map_err(said)?;
            same(&whole, &tiles, "tile by tile").map_err(|found| format!("{m}×{n}×{k}: {found}"))?;
        }
    }
    Ok(())
}

/// Compares a timed chain with as many calls, the d of each being the c of the next.
fn timing(device: &dyn Device, operation: &Operation) -> Result<(), String> {
    let id = &operation.id;
    let mut random = Random(61);
    let mut operands = TileBatch::zeros(operation, 2);
    let TileBatch { a, b, c, scale_a, scale_b, .. } = &mut operands;
    for elements in [Some(a), Some(b), Some(c), scale_a.as_mut(), scale_b.as_mut()].into_iter().flatten() {
        random.fill(elements, Random::moderate);
    }
    let steps = 3;
    let timed = match time(device, operation, &Load { operands: &operands, steps, span: Span::One }) {
        Ok(timed) => timed,
        Err(error) if error.is_unsupported() => return Ok(()),
        Err(error) => return Err(said(error)),
    };
    let (m, n, k) = id.shape.sizes();
    let tile = |from: &Elements, at: usize, len: usize| {
        Elements::from_bits(from.format(), (at * len..(at + 1) * len).map(|at| from.get(at)))
    };
    let blocks = id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
    for (chain, [of_a, of_b, of_c]) in timed.pattern.iter().enumerate() {
        let mut batch = TileBatch {
            tiles: 1,
            a: tile(&operands.a, *of_a, m * k),
            b: tile(&operands.b, *of_b, k * n),
            c: tile(&operands.c, *of_c, m * n),
            scale_a: operands.scale_a.as_ref().map(|scales| tile(scales, *of_a, m * blocks)),
            scale_b: operands.scale_b.as_ref().map(|scales| tile(scales, *of_b, blocks * n)),
        };
        for _ in 0..steps {
            batch.c = execute(device, operation, &batch).map_err(said)?;
        }
        same(&tile(&timed.d, chain, m * n), &batch.c, "by calls").map_err(|found| format!("chain {chain}: {found}"))?;
    }
    Ok(())
}

fn code(device: &dyn Device, operation: &Operation) -> Result<(), String> {
    let Some(code) = device.code() else { return Ok(()) };
    let hash = code.kernel_hash(operation);
    let is_hex = |hash: &String| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !hash.as_ref().is_none_or(is_hex) || hash != code.kernel_hash(operation) {
        return Err(format!("the hash {hash:?}, and then {:?}", code.kernel_hash(operation)));
    }
    code.issued(operation).map(|_| ()).map_err(said)
}

fn scalars(device: &dyn Device, scalar: &Scalar) -> Result<(), String> {
    let format = scalar.id.format;
    for function in scalar.functions.keys() {
        let mut operands = Elements::zeros(format, 7 * function.arity());
        Random(71).fill(&mut operands, Random::moderate);
        let once = call(device, scalar, *function, &operands).map_err(said)?;
        let again = call(device, scalar, *function, &operands).map_err(said)?;
        same(&once, &again, "the second time").map_err(|found| format!("{function}: {found}"))?;
    }
    if scalar.functions.contains_key(&ScalarFunction::Add) {
        let ones = Elements::from_bits(format, [format.one(), format.one()]);
        let sum = call(device, scalar, ScalarFunction::Add, &ones).map_err(said)?.get(0);
        if format.to_f64(sum).to_bits() != 2f64.to_bits() {
            return Err(format!("1 + 1 is {}", format.hex(sum)));
        }
    }
    Ok(())
}

/// The operands of a call, and the flags that it must raise.
type Raising<'a> = ([u64; 2], &'a [Flag]);

/// Checks that each call lowers the flags of the previous one, and that reading flags does not change results. The
/// flags that an approximation raises are not specified.
fn flags(device: &dyn Device, scalar: &Scalar) -> Result<(), String> {
    let format = scalar.id.format;
    for function in scalar.functions.keys() {
        let mut operands = Elements::zeros(format, 7 * function.arity());
        Random(73).fill(&mut operands, Random::moderate);
        let plain = call(device, scalar, *function, &operands).map_err(said)?;
        let (read, _) = call_with_flags(device, scalar, *function, &operands).map_err(said)?;
        same(&plain, &read, "when flags are read").map_err(|found| format!("{function}: {found}"))?;
    }
    let one = format.one();
    let three = format.from_f64(3.0);
    // Calls of one batch: each lowers the flags that the previous one raised.
    let known: [(ScalarFunction, &[Raising<'_>]); 3] = [
        (ScalarFunction::Add, &[([one, one], &[])]),
        (ScalarFunction::Multiply, &[([one, one], &[])]),
        (
            ScalarFunction::Divide,
            &[
                ([one, three], &[Flag::Inexact]),
                ([one, one], &[]),
                ([0, 0], &[Flag::Invalid]),
                ([one, one], &[]),
                ([one, 0], &[Flag::DivideByZero]),
                ([three, three], &[]),
            ],
        ),
    ];
    for (function, calls) in known.iter().filter(|(function, _)| scalar.functions.contains_key(function)) {
        let operands = Elements::from_bits(format, calls.iter().flat_map(|(operands, _)| *operands));
        let (_, raised) = call_with_flags(device, scalar, *function, &operands).map_err(said)?;
        for (raised, (operands, wanted)) in raised.iter().zip(*calls) {
            let wanted = Flags::of(wanted);
            if *raised != wanted {
                let [left, right] = operands.map(|bits| format.hex(bits));
                return Err(format!("{function} of {left} and {right} raises {raised}, not {wanted}"));
            }
        }
    }
    Ok(())
}
