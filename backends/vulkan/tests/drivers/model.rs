//! A model of lavapipe, *measured* (Mesa 25.3 to 26.1, LLVM 19 and 21, x86-64): products are rounded to the
//! accumulator's format and added one by one with k ascending, C last; each sum is rounded to nearest even. f16 keeps
//! subnormals; f32 flushes them, in inputs and results. Integers wrap.

use half::f16;
use mxprobe_api::{Elements, Format, OperationId, Random, TileBatch};

/// Rounds to nearest even in the accumulator's format.
fn round(format: Format, value: f64) -> f64 {
    if format == Format::F16 {
        return f16::from_f64(value).to_f64();
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    let rounded = value as f32;
    flush(rounded)
}

fn flush(value: f32) -> f64 {
    if value.is_subnormal() { f64::from(0_f32.copysign(value)) } else { f64::from(value) }
}

fn value(format: Format, bits: u64) -> f64 {
    if format == Format::F16 {
        f16::from_bits(u16::try_from(bits).unwrap()).to_f64()
    } else {
        flush(f32::from_bits(u32::try_from(bits).unwrap()))
    }
}

fn bits(format: Format, value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the value is one of the format's")]
    if format == Format::F16 { u64::from(f16::from_f64(value).to_bits()) } else { u64::from((value as f32).to_bits()) }
}

/// Computes D of every tile.
pub(crate) fn lavapipe(id: &OperationId, batch: &TileBatch) -> Elements {
    let (m, n, k) = id.shape.sizes();
    let mut d = Elements::from_bits(id.d, []);
    let integer = |elements: &Elements, at: usize| {
        let bits = elements.get(at);
        #[expect(clippy::cast_possible_truncation, reason = "sign extension of 8 bits")]
        let signed = i64::from(bits as i8);
        if elements.format() == Format::S8 { signed } else { i64::try_from(bits).unwrap() }
    };
    for tile in 0..batch.tiles {
        for row in 0..m {
            for column in 0..n {
                let a = |at: usize| tile * m * k + row * k + at;
                let b = |at: usize| tile * k * n + at * n + column;
                let c = batch.c.get((tile * m + row) * n + column);
                if id.is_integer() {
                    let sum: i64 = (0..k).map(|at| integer(&batch.a, a(at)) * integer(&batch.b, b(at))).sum();
                    #[expect(clippy::cast_sign_loss, reason = "two's complement is what is wanted")]
                    d.push(c.wrapping_add(sum as u64));
                    continue;
                }
                let product =
                    |at: usize| round(id.d, value(id.a, batch.a.get(a(at))) * value(id.b, batch.b.get(b(at))));
                let sum = (1..k).fold(product(0), |sum, at| round(id.d, sum + product(at)));
                d.push(bits(id.d, round(id.d, sum + value(id.c, c))));
            }
        }
    }
    d
}

/// Kinds of random inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inputs {
    /// Similar exponents, so that rounding and cancellation are frequent.
    Moderate,
    /// Any finite exponent.
    Finite,
    /// Mostly subnormal or nearly so.
    Tiny,
    /// Any bits, including NaN and infinity.
    Any,
}

impl Inputs {
    pub(crate) const ALL: [Self; 4] = [Self::Moderate, Self::Finite, Self::Tiny, Self::Any];
}

fn element(random: &mut Random, format: Format, inputs: Inputs) -> u64 {
    let bits = random.bits();
    let Some(float) = format.as_float() else { return bits & format.mask() };
    let fraction = bits & ((1 << float.fraction_bits) - 1);
    let sign = (bits >> 40 & 1) << (format.bits() - 1);
    let choice = bits >> 41;
    let bias = u64::try_from(float.bias).unwrap();
    let exponent = match inputs {
        Inputs::Any => return bits & format.mask(),
        Inputs::Moderate => bias - 3 + choice % 7,
        Inputs::Finite => choice % ((1 << float.exponent_bits) - 1),
        Inputs::Tiny => choice % 3,
    };
    sign | exponent << float.fraction_bits | fraction
}

/// Draws the operands of `tiles` tiles.
pub(crate) fn batch(random: &mut Random, id: &OperationId, tiles: usize, inputs: Inputs) -> TileBatch {
    let (m, n, k) = id.shape.sizes();
    let mut elements =
        |format: Format, len: usize| Elements::from_bits(format, (0..len).map(|_| element(random, format, inputs)));
    TileBatch {
        tiles,
        a: elements(id.a, tiles * m * k),
        b: elements(id.b, tiles * k * n),
        c: elements(id.c, tiles * m * n),
        scale_a: None,
        scale_b: None,
    }
}
