//! Matrices of every class of inputs.

use mxprobe_api::{Decoded, Elements, Format, GemmOperands, OperationId, Random};

/// How the elements of a case are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Inputs {
    /// Arbitrary bits, including NaN and infinities.
    AnyBits,
    /// Any finite value.
    AnyFinite,
    /// Exponents within a few of the exponent of 1.
    Narrow,
    /// Exponents within a few of the exponent of 1; c far larger or far smaller.
    NarrowWithOddC,
    /// Half of the elements subnormal, the rest near the smallest normal value.
    Subnormal,
    /// Powers of two of either sign.
    PowersOfTwo,
    /// The largest magnitude, all products of one sign.
    Largest,
    /// Significands of all ones, equal exponents, one sign.
    Ones,
    /// Products in pairs that cancel, except for an odd one.
    Cancelling,
    /// Zeros of both signs, and occasionally something else.
    Zeros,
    /// Finite values with occasional NaN and infinities.
    Specials,
    /// Large values, c near the largest.
    NearOverflow,
    /// Small values, c near the smallest.
    NearUnderflow,
}

pub(crate) const INPUTS: [Inputs; 13] = [
    Inputs::AnyBits,
    Inputs::AnyFinite,
    Inputs::Narrow,
    Inputs::NarrowWithOddC,
    Inputs::Subnormal,
    Inputs::PowersOfTwo,
    Inputs::Largest,
    Inputs::Ones,
    Inputs::Cancelling,
    Inputs::Zeros,
    Inputs::Specials,
    Inputs::NearOverflow,
    Inputs::NearUnderflow,
];

fn below(random: &mut Random, limit: u64) -> u64 {
    random.bits() % limit
}

fn is_finite(format: Format, bits: u64) -> bool {
    matches!(format.decode(bits), Decoded::Zero { .. } | Decoded::Finite { .. })
}

fn any_finite(format: Format, random: &mut Random) -> u64 {
    loop {
        let bits = random.bits() & format.mask();
        if is_finite(format, bits) {
            return bits;
        }
    }
}

/// A value with that exponent, clamped to finite values, and random fraction and sign.
fn with_exponent(format: Format, exponent: i64, random: &mut Random) -> u64 {
    let Some(encoding) = format.as_float() else { return random.bits() & format.mask() };
    let top = (1i64 << encoding.exponent_bits) - 1;
    let field = (exponent + i64::from(encoding.bias)).clamp(0, top);
    let fraction = random.bits() & ((1 << encoding.fraction_bits) - 1);
    let sign = below(random, 2) << (encoding.exponent_bits + encoding.fraction_bits);
    let bits = (sign | (field.cast_unsigned() << encoding.fraction_bits) | fraction) << encoding.unread_bits;
    let bits = bits | (random.bits() & ((1 << encoding.unread_bits) - 1));
    let bits = bits & format.mask();
    if is_finite(format, bits) { bits } else { format.largest(below(random, 2) == 1) }
}

/// The exponents of the smallest normal and of the largest value.
fn range(format: Format) -> (i64, i64) {
    let Some(encoding) = format.as_float() else { return (0, 0) };
    let Decoded::Finite { exponent, .. } = format.decode(format.largest(false)) else { unreachable!("finite") };
    (i64::from(encoding.min_exponent()), i64::from(exponent))
}

/// Draws one element of a factor.
pub(crate) fn factor(format: Format, inputs: Inputs, random: &mut Random) -> u64 {
    let (low, high) = range(format);
    let spread = |random: &mut Random, width: u64| below(random, width).cast_signed();
    let bits = match inputs {
        Inputs::AnyBits => random.bits() & format.mask(),
        Inputs::AnyFinite | Inputs::Cancelling => any_finite(format, random),
        Inputs::Narrow | Inputs::NarrowWithOddC => {
            let at = spread(random, 7) - 4;
            with_exponent(format, at, random)
        }
        Inputs::Subnormal => {
            let at = if below(random, 2) == 0 { low - 1 } else { low + spread(random, 4) };
            with_exponent(format, at, random)
        }
        Inputs::PowersOfTwo => {
            let at = low + spread(random, (high - low + 1).unsigned_abs());
            let bits = with_exponent(format, at, random);
            let encoding = format.as_float();
            encoding.map_or(bits, |encoding| bits & !((1 << (encoding.fraction_bits + encoding.unread_bits)) - 1))
        }
        Inputs::Largest => format.largest(false),
        Inputs::Ones => format.as_float().map_or(format.mask() >> 1, |encoding| {
            let one = format.one() | ((1 << encoding.fraction_bits) - 1) << encoding.unread_bits;
            if is_finite(format, one) { one } else { format.largest(false) }
        }),
        Inputs::Zeros => match below(random, 12) {
            0 => any_finite(format, random),
            _ => (below(random, 2) << (format.bits() - 1)) & format.mask(),
        },
        Inputs::Specials => {
            let bits = if below(random, 12) == 0 { random.bits() & format.mask() } else { any_finite(format, random) };
            let infinity = format.infinity(below(random, 2) == 1).or(format.nan()).unwrap_or(bits);
            if below(random, 24) == 0 { infinity } else { bits }
        }
        Inputs::NearOverflow => {
            let at = high - spread(random, 3);
            with_exponent(format, at, random)
        }
        Inputs::NearUnderflow => {
            let at = (low / 2) - spread(random, 20);
            with_exponent(format, at, random)
        }
    };
    bits & format.mask()
}

/// Draws one element of C.
pub(crate) fn addend(format: Format, inputs: Inputs, random: &mut Random) -> u64 {
    let (low, high) = range(format);
    match inputs {
        Inputs::NarrowWithOddC => {
            let at = below(random, 90).cast_signed() - 45;
            with_exponent(format, at, random)
        }
        Inputs::Largest | Inputs::Ones => match below(random, 4) {
            0 => 0,
            1 => with_exponent(format, below(random, 34).cast_signed(), random),
            2 => format.largest(below(random, 2) == 1),
            _ => factor(format, Inputs::Ones, random),
        },
        Inputs::Cancelling => match below(random, 3) {
            0 => 0,
            1 => with_exponent(format, below(random, 40).cast_signed() - 20, random),
            _ => any_finite(format, random),
        },
        Inputs::NearOverflow => with_exponent(format, high - below(random, 3).cast_signed(), random),
        Inputs::NearUnderflow => with_exponent(format, low + below(random, 30).cast_signed() - 1, random),
        inputs => factor(format, inputs, random),
    }
}

pub(crate) struct Case {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: Elements,
    pub(crate) b: Elements,
    pub(crate) c: Elements,
    pub(crate) scales: Option<(Elements, Elements)>,
}

impl Case {
    pub(crate) fn draw(
        id: &OperationId,
        (m, n, k): (usize, usize, usize),
        inputs: Inputs,
        random: &mut Random,
    ) -> Self {
        let mut a = Elements::from_bits(id.a, (0..m * k).map(|_| factor(id.a, inputs, random)));
        let mut b = Elements::from_bits(id.b, (0..k * n).map(|_| factor(id.b, inputs, random)));
        if inputs == Inputs::Cancelling {
            // The pairs are at k and k + distance, so that they fall into one block or into two.
            let distance = 1 << below(random, 3);
            for at in 0..k {
                if at & distance == 0 && at + distance < k && below(random, 8) != 0 {
                    for row in 0..m {
                        let bits = a.get(row * k + at);
                        let sign = 1 << (id.a.bits() - 1);
                        a.set(row * k + at + distance, if id.a.is_integer() { bits } else { bits ^ sign });
                    }
                    for column in 0..n {
                        b.set((at + distance) * n + column, b.get(at * n + column));
                    }
                }
            }
        }
        let c = Elements::from_bits(id.c, (0..m * n).map(|_| addend(id.c, inputs, random)));
        let scales = id.block_scale().map(|scale| {
            let blocks = k.div_ceil(scale.block);
            let mut draw = |len: usize| {
                let inputs = if inputs == Inputs::Largest { Inputs::Narrow } else { inputs };
                Elements::from_bits(scale.format, (0..len).map(|_| factor(scale.format, inputs, random)))
            };
            (draw(m * blocks), draw(blocks * n))
        });
        Self { m, n, k, a, b, c, scales }
    }

    pub(crate) fn matrices(&self) -> GemmOperands<'_> {
        GemmOperands {
            m: self.m,
            n: self.n,
            k: self.k,
            a: &self.a,
            b: &self.b,
            c: &self.c,
            scale_a: self.scales.as_ref().map(|scales| &scales.0),
            scale_b: self.scales.as_ref().map(|scales| &scales.1),
        }
    }

    /// The operands of one element of D, for people.
    pub(crate) fn describe(&self, at: usize) -> String {
        let (row, column) = (at / self.n, at % self.n);
        let hex = |of: &Elements, at: usize| of.format().hex(of.get(at));
        let a: Vec<String> = (0..self.k).map(|k| hex(&self.a, row * self.k + k)).collect();
        let b: Vec<String> = (0..self.k).map(|k| hex(&self.b, k * self.n + column)).collect();
        let scales = self.scales.as_ref().map_or(String::new(), |(of_a, of_b)| {
            let blocks = of_b.len() / self.n;
            let a: Vec<String> = (0..blocks).map(|k| hex(of_a, row * blocks + k)).collect();
            let b: Vec<String> = (0..blocks).map(|k| hex(of_b, k * self.n + column)).collect();
            format!("; scales {} and {}", a.join(" "), b.join(" "))
        });
        format!("a {}; b {}; c {}{scales}", a.join(" "), b.join(" "), hex(&self.c, at))
    }
}
