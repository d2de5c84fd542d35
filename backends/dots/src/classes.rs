//! Classes of inputs that target the differences between units, for any formats.

use mxprobe_api::Format;

use crate::{
    dot::Dot,
    maker::{Fraction, Maker, Operand, sign_of},
};

/// The classes of inputs: the name that a violation carries, and a description of the dots. Each adapts to the formats;
/// a class that has only a floating or only an integer form gives no dots for the other formats.
pub const CLASSES: &[(&str, &str)] = &[
    ("extremes", "equal terms of the longest significands and one sign, from one to all of them, and c"),
    ("cancelling", "a pair that cancels, and small terms at every depth below it"),
    ("c-cancelling", "c and a product that cancel, and small terms at every depth below them"),
    ("one-large", "one large term and many far smaller ones"),
    ("ties", "c, and products about half its last place"),
    ("sparse", "one to three terms"),
    ("dense", "terms of all sizes within some tens of places"),
    ("subnormals", "subnormal operands, c and results"),
    ("overflow", "terms about the largest values of d"),
    ("zeros", "zeros of both signs, and sums that cancel to zero"),
    ("specials", "NaN with payloads, infinities, and what makes them"),
    ("limits", "integers whose sum is about the ends of d's range"),
    ("bits", "any bits"),
];

type MakeDot = fn(&mut Maker<'_>, usize) -> Option<Dot>;

const MAKERS: [MakeDot; CLASSES.len()] = [
    extremes,
    cancelling,
    c_cancelling,
    one_large,
    ties,
    sparse,
    dense,
    subnormals,
    overflow,
    zeros,
    specials,
    limits,
    bits,
];

impl Maker<'_> {
    /// Makes dot `index` of the class at position `class` in [`CLASSES`]; `None` if the class has no dots for these
    /// formats. The index steps through depths, signs and counts; everything else is random.
    ///
    /// # Panics
    /// If `class` is not below the number of classes.
    pub fn make(&mut self, class: usize, index: usize) -> Option<Dot> {
        MAKERS[class](self, index)
    }
}

fn extremes(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let id = maker.id;
    let mut dot = maker.dot();
    let count = if index.is_multiple_of(2) { maker.k } else { 1 + maker.random.below(maker.k) };
    let negative = index / 2 % 2 == 1;
    let Some(span) = maker.span() else {
        let (a, b) = (id.a.largest(negative), id.b.largest(maker.random.flip()));
        (0..count).for_each(|at| (dot.a[at], dot.b[at]) = (a, b));
        dot.c = if maker.random.flip() { id.c.largest(maker.random.flip()) } else { 0 };
        return Some(dot);
    };
    let top = maker.top(span);
    let fraction = [Fraction::Ones, Fraction::Ones, Fraction::Random][index % 3];
    let (a, b) = maker.product(top, fraction, negative);
    (0..count).for_each(|at| (dot.a[at], dot.b[at]) = (a, b));
    let shift = maker.random.between(-1, 2);
    dot.c = maker.value(Operand::C, top + shift, fraction, negative);
    Some(dot)
}

fn cancelling(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let span = maker.span()?;
    let id = maker.id;
    let mut dot = maker.dot();
    let top = maker.top(span);
    let depth = Maker::depth(index, top, span);
    for at in 0..maker.k {
        let (jitter, fraction) = (maker.random.between(0, 2), maker.fraction());
        let negative = maker.random.flip();
        // Only some of the small terms, so that single ones are tested as well.
        if maker.random.below(4) > 0 {
            maker.put(&mut dot, at, top - depth - jitter, fraction, negative);
        }
    }
    let fraction = maker.fraction();
    let (first, mut second) = (maker.random.below(maker.k), maker.random.below(maker.k));
    if let Some(scale) = id.block_scale() {
        // Both products of the pair have the same scales; the small terms have smaller ones.
        let start = first / scale.block * scale.block;
        // The last block is shorter if k is not a whole number of blocks.
        second = start + second % scale.block.min(maker.k - start);
        maker.lower_other_blocks(&mut dot, first, i32::try_from(index % 48).unwrap_or(0));
    }
    maker.put(&mut dot, first, top, fraction, false);
    (dot.a[second], dot.b[second]) = (dot.a[first] ^ sign_of(id.a), dot.b[first]);
    if maker.random.flip() {
        let (fraction, negative) = (maker.fraction(), maker.random.flip());
        dot.c = maker.value(Operand::C, top - depth, fraction, negative);
    }
    Some(dot)
}

fn c_cancelling(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let span = maker.span()?;
    let id = maker.id;
    let mut dot = maker.dot();
    let top = maker.top(span);
    let depth = Maker::depth(index, top, span);
    let negative = maker.random.flip();
    for at in 0..maker.k {
        let (jitter, fraction, minus) = (maker.random.between(0, 2), maker.fraction(), maker.random.flip());
        if maker.random.below(3) > 0 {
            maker.put(&mut dot, at, top - depth - jitter, fraction, minus);
        }
    }
    let large = maker.random.below(maker.k);
    let [a, b, ..] = maker.ranges()?;
    let of_b = (top / 2).clamp(b.low, b.high);
    let of_a = (top - of_b).clamp(a.low, a.high);
    dot.a[large] = id.a.truncated(negative, 1, of_a);
    dot.b[large] = id.b.truncated(false, 1, of_b);
    dot.c = id.c.truncated(!negative, 1, of_a + of_b);
    Some(dot)
}

fn one_large(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let span = maker.span()?;
    let mut dot = maker.dot();
    let top = maker.top(span);
    let depth = Maker::depth(index, top, span);
    let negative = maker.random.flip();
    let (fraction, jitter) = (maker.fraction(), maker.random.between(0, 1));
    for at in 0..maker.k {
        let minus = if index.is_multiple_of(3) { maker.random.flip() } else { negative };
        let less = maker.random.between(0, jitter);
        maker.put(&mut dot, at, top - depth - less, fraction, minus);
    }
    let (fraction, minus) = (maker.fraction(), maker.random.flip());
    if index.is_multiple_of(2) {
        dot.c = maker.value(Operand::C, top, fraction, minus);
    } else {
        let large = maker.random.below(maker.k);
        maker.put(&mut dot, large, top, fraction, minus);
    }
    Some(dot)
}

fn ties(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let span = maker.span()?;
    let id = maker.id;
    let mut dot = maker.dot();
    let places = id.d.fraction_bits().cast_signed() - maker.random.between(0, 1) * 10;
    let top = maker.random.between((span.low + places + 2).min(span.high), span.high);
    let (fraction, negative) = (maker.fraction(), maker.random.flip());
    dot.c = maker.value(Operand::C, top, fraction, negative);
    let at = index % maker.k;
    let (down, minus) = (maker.random.between(0, 3), maker.random.flip());
    let (first, second) = (maker.fraction(), maker.fraction());
    maker.put(&mut dot, at, top - places - down, first, minus);
    if index.is_multiple_of(2) {
        let (other, deeper) = (maker.random.below(maker.k), maker.random.between(0, 6));
        maker.put(&mut dot, other, top - places - deeper, second, minus);
    }
    Some(dot)
}

fn sparse(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let span = maker.span()?;
    let mut dot = maker.dot();
    for _ in 0..=index % 3 {
        let (at, exponent) = (maker.random.below(maker.k), maker.random.between(span.low, span.high));
        let (fraction, negative) = (maker.fraction(), maker.random.flip());
        maker.put(&mut dot, at, exponent, fraction, negative);
    }
    if maker.random.flip() {
        let (exponent, fraction) = (maker.random.between(span.low, span.high), maker.fraction());
        let negative = maker.random.flip();
        dot.c = maker.value(Operand::C, exponent, fraction, negative);
    }
    Some(dot)
}

fn dense(maker: &mut Maker<'_>, _: usize) -> Option<Dot> {
    let span = maker.span()?;
    let mut dot = maker.dot();
    let top = maker.top(span);
    let offset = |maker: &mut Maker<'_>| {
        let (least, most) = [(0, 0), (1, 1), (1, 8), (8, 20), (20, 32), (24, 24)][maker.random.below(6)];
        maker.random.between(least, most)
    };
    for at in 0..maker.k {
        let (exponent, fraction) = (top - offset(maker), maker.fraction());
        let negative = maker.random.flip();
        maker.put(&mut dot, at, exponent, fraction, negative);
    }
    let (exponent, fraction) = (top - offset(maker), maker.fraction());
    let negative = maker.random.flip();
    dot.c = maker.value(Operand::C, exponent, fraction, negative);
    Some(dot)
}

fn subnormals(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let [a, b, _, d] = maker.ranges()?;
    let id = maker.id;
    let mut dot = maker.dot();
    let subnormal = |maker: &mut Maker<'_>, format: Format| {
        let width = format.fraction_bits();
        let field = maker.random.bits() & ((1 << width) - 1) & maker.random.bits().wrapping_shr(1) | 1;
        let unread = format.as_float().map_or(0, |float| float.unread_bits);
        field << unread | if maker.random.flip() { sign_of(format) } else { 0 }
    };
    for at in 0..maker.k {
        if maker.random.below(3) == 0 {
            continue;
        }
        let (low, high) = (a.low + b.low, (d.low + 40).max(a.low + b.low + 8));
        let (exponent, fraction) = (maker.random.between(low, high), maker.fraction());
        let negative = maker.random.flip();
        maker.put(&mut dot, at, exponent, fraction, negative);
        if index.is_multiple_of(2) {
            if maker.random.flip() {
                dot.a[at] = subnormal(maker, id.a);
                let exponent = maker.random.between(0, b.high);
                dot.b[at] = maker.value(Operand::B, exponent, fraction, negative);
            } else {
                dot.b[at] = subnormal(maker, id.b);
                let exponent = maker.random.between(0, a.high);
                dot.a[at] = maker.value(Operand::A, exponent, fraction, negative);
            }
        }
    }
    dot.c = match index % 4 {
        0 | 1 => subnormal(maker, id.c),
        2 => 0,
        _ => {
            let (exponent, fraction) = (maker.random.between(d.low, d.low + 40), maker.fraction());
            let negative = maker.random.flip();
            maker.value(Operand::C, exponent, fraction, negative)
        }
    };
    Some(dot)
}

fn overflow(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let [a, b, c, d] = maker.ranges()?;
    let mut dot = maker.dot();
    let top = d.high.min(c.high);
    for at in 0..maker.k {
        if maker.random.below(3) == 0 {
            continue;
        }
        let exponent = (top + maker.random.between(-6, 1)).min(a.high + b.high);
        let fraction = maker.fraction();
        let negative = index.is_multiple_of(2) && maker.random.flip();
        maker.put(&mut dot, at, exponent, fraction, negative);
    }
    let (exponent, fraction) = (top + maker.random.between(-4, 0), maker.fraction());
    let negative = maker.random.flip();
    dot.c = maker.value(Operand::C, exponent, fraction, negative);
    Some(dot)
}

fn zeros(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let id = maker.id;
    maker.ranges()?;
    let mut dot = maker.dot();
    let signs = index % 4;
    let mut zero = |format: Format| match signs {
        0 => sign_of(format),
        1 => 0,
        _ if maker.random.flip() => sign_of(format),
        _ => 0,
    };
    // With −0 only in A, every product is −0.
    dot.a.iter_mut().for_each(|bits| *bits = zero(id.a));
    dot.c = zero(id.c);
    if signs > 1 {
        dot.b.iter_mut().for_each(|bits| *bits = zero(id.b));
    }
    if signs == 3 {
        let (first, second) = (maker.random.below(maker.k), maker.random.below(maker.k));
        (dot.a[first], dot.b[first]) = (id.a.one(), id.b.one());
        (dot.a[second], dot.b[second]) = (id.a.one() | sign_of(id.a), id.b.one());
    }
    Some(dot)
}

fn specials(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    maker.ranges()?;
    let id = maker.id;
    let mut dot = dense(maker, index)?;
    let special = |maker: &mut Maker<'_>, format: Format| -> Option<u64> {
        let nan = format.nan()?;
        let infinity = format.infinity(maker.random.flip());
        let float = format.as_float()?;
        let sign = if maker.random.flip() { sign_of(format) } else { 0 };
        match (maker.random.below(4), infinity) {
            (0 | 1, Some(infinity)) => Some(infinity),
            (2, Some(infinity)) => {
                let payload = maker.random.bits() & ((1 << float.fraction_bits) - 1);
                Some(infinity | payload.max(1) << float.unread_bits)
            }
            _ => Some(nan | sign),
        }
    };
    for _ in 0..=index % 3 {
        let at = maker.random.below(maker.k);
        match maker.random.below(4) {
            0 => dot.a[at] = special(maker, id.a).unwrap_or(dot.a[at]),
            1 => dot.b[at] = special(maker, id.b).unwrap_or(dot.b[at]),
            2 => dot.c = special(maker, id.c).unwrap_or(dot.c),
            _ => {
                dot.a[at] = special(maker, id.a).unwrap_or(dot.a[at]);
                dot.b[at] = 0;
            }
        }
    }
    if let (Some(scale), Some((a, _))) = (id.block_scale(), &mut dot.scales)
        && index.is_multiple_of(5)
    {
        let at = maker.random.below(a.len());
        a[at] = scale.format.nan().unwrap_or(a[at]);
    }
    Some(dot)
}

fn limits(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let id = maker.id;
    if !id.is_integer() {
        return None;
    }
    let mut dot = maker.dot();
    let negative = index % 2 == 1;
    let small = |maker: &mut Maker<'_>, format: Format| {
        if index.is_multiple_of(3) {
            maker.random.any(format)
        } else {
            [0, 1, format.mask(), 2][maker.random.below(4)] & format.mask()
        }
    };
    for at in 0..maker.k {
        (dot.a[at], dot.b[at]) = (small(maker, id.a), small(maker, id.b));
    }
    let off = maker.random.bits() & if index.is_multiple_of(3) { 0xffff } else { 3 };
    let end = id.c.largest(negative);
    dot.c = if negative { end.wrapping_add(off) } else { end.wrapping_sub(off) } & id.c.mask();
    Some(dot)
}

fn bits(maker: &mut Maker<'_>, index: usize) -> Option<Dot> {
    let id = maker.id;
    let mut dot = maker.dot();
    // Every second dot has no NaN or infinities, which would hide everything else.
    let finite = index.is_multiple_of(2);
    let mut any = |format: Format| loop {
        let bits = maker.random.any(format);
        let is_finite =
            !matches!(format.decode(bits), mxprobe_api::Decoded::Nan { .. } | mxprobe_api::Decoded::Infinity { .. });
        if is_finite || !finite {
            break bits;
        }
    };
    dot.a.iter_mut().for_each(|bits| *bits = any(id.a));
    dot.b.iter_mut().for_each(|bits| *bits = any(id.b));
    dot.c = any(id.c);
    if let (Some(scale), Some((a, b))) = (id.block_scale(), &mut dot.scales) {
        a.iter_mut().chain(b).for_each(|bits| *bits = any(scale.format));
    }
    Some(dot)
}
