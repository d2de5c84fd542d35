//! Comparison of a model with the unit on dots that the identification did not use, with many mixtures of operand
//! values.

use mxprobe::dots::{Dot, Draw, Random};
use mxprobe_api::{Decoded, DotOperands, Elements, Format, GemmOperands, OperationId};
use mxprobe_models::{Evaluator, Model, Path, Sample};

/// The result of a comparison.
pub(crate) struct Verdict {
    /// The number of dots compared.
    pub(crate) dots: usize,
    /// The number of dots that differ, and a description of the first.
    pub(crate) wrong: usize,
    pub(crate) first: Option<String>,
}

/// The value of one operand in a mixture.
#[derive(Clone, Copy)]
enum Holds {
    Zero,
    MinusZero,
    Smallest,
    Subnormal,
    Largest,
    One,
    /// About this power of two.
    Near(i32),
    Special,
    Any,
}

/// Compares two models of an operation on `count` dots of the classes and on as many mixtures.
pub(crate) fn judge(unit: &Model, found: &Model, id: &OperationId, seed: u64, count: usize) -> Verdict {
    let of = |model: &Model| Evaluator::with_path(model, id, Path::Scalar).unwrap();
    let (unit, found) = (of(unit), of(found));
    let mut verdict = Verdict { dots: 0, wrong: 0, first: None };
    let mut random = Random(seed ^ 0x5eed);
    let mixtures = (0..count).map(|_| mixture(id, &mut random)).collect::<Vec<_>>();
    for dot in Draw::new(id, seed).take(count).chain(mixtures) {
        let (wanted, got) = (unit.dot(of_dot(&dot)).unwrap(), found.dot(of_dot(&dot)).unwrap());
        verdict.dots += 1;
        if wanted != got {
            verdict.wrong += 1;
            verdict.first.get_or_insert_with(|| {
                format!("{}: the unit gives {}, the model {}", dot.show(id), id.d.hex(wanted), id.d.hex(got))
            });
        }
    }
    verdict
}

/// Returns the operands of a dot for an evaluator.
fn of_dot(dot: &Dot) -> mxprobe_models::Dot<'_> {
    let scales = dot.scale_slices();
    mxprobe_models::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales }
}

/// Compares what every path of the evaluator gives with what the exact one gives: for a product of small matrices, whose
/// rows, columns and c are those of mixtures, and for its dots by themselves and side by side. Returns the number of
/// elements compared, or the first that differs.
pub(crate) fn paths(unit: &Model, id: &OperationId, seed: u64) -> Result<usize, String> {
    let (m, n, k) = (12, 40, id.shape.sizes().2);
    let mut random = Random(seed);
    let mut drawn = |count: usize| (0..count).map(|_| mixture(id, &mut random)).collect::<Vec<Dot>>();
    let (rows, columns, of_c) = (drawn(m), drawn(n), drawn(m * n));
    let a = Elements::from_bits(id.a, rows.iter().flat_map(|dot| dot.a.iter().copied()));
    let b = Elements::from_bits(id.b, (0..k).flat_map(|at| columns.iter().map(move |dot| dot.b[at])));
    let c = Elements::from_bits(id.c, of_c.iter().map(|dot| dot.c));
    let matrices = GemmOperands { m, n, k, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
    let of = |path: Path| Evaluator::with_path(unit, id, path).unwrap();
    let exact = of(Path::Exact).multiply(&matrices, 1).unwrap();
    let mut compared = 0;
    let dot = |at: usize| Dot { a: rows[at / n].a.clone(), b: columns[at % n].b.clone(), c: c.get(at), scales: None };
    let mut compare = |path: &str, at: usize, found: u64| {
        compared += 1;
        if found == exact.get(at) {
            return Ok(());
        }
        let [found, exact] = [found, exact.get(at)].map(|bits| id.d.hex(bits));
        Err(format!("{path} gives {found}, where exact gives {exact}: {}", dot(at).show(id)))
    };
    let each: Vec<Dot> = (0..m * n).map(dot).collect();
    let of_each = |format: Format, of: fn(&Dot) -> &[u64]| Elements::from_slices(format, each.iter().map(of));
    let (all_a, all_b) = (of_each(id.a, |dot| &dot.a), of_each(id.b, |dot| &dot.b));
    let dots = DotOperands { count: m * n, a: &all_a, b: &all_b, c: &c, scale_a: None, scale_b: None };
    for path in Path::available() {
        let found = of(path).multiply(&matrices, 1).unwrap();
        (0..m * n).try_for_each(|at| compare(&format!("{path:?}"), at, found.get(at)))?;
        let found = of(path).dots(&dots);
        (0..m * n).try_for_each(|at| compare(&format!("{path:?}, dot by dot,"), at, found.get(at)))?;
    }
    let evaluator = of(Path::Scalar);
    let mut sample = Sample::new(id, evaluator.flush());
    each.iter().for_each(|dot| sample.push(of_dot(dot)));
    let mut side_by_side = vec![0; m * n];
    evaluator.visit(&sample, 0..m * n, |at, d| {
        side_by_side[at] = d;
        true
    });
    side_by_side.into_iter().enumerate().try_for_each(|(at, d)| compare("side by side", at, d))?;
    Ok(compared)
}

/// Chooses some k of a dot: all, one block, one residue class, or arbitrary ones.
fn some_k(random: &mut Random, k: usize) -> Vec<usize> {
    match random.below(5) {
        0 => (0..k).collect(),
        1 => {
            let size = 1 + random.below(k);
            let from = random.below(k / size) * size;
            (from..(from + size).min(k)).collect()
        }
        2 => {
            let step = 1 + random.below(k.min(8));
            (random.below(step)..k).step_by(step).collect()
        }
        3 => (0..k).filter(|_| random.flip()).collect(),
        _ => (0..1 + random.below(3)).map(|_| random.below(k)).collect(),
    }
}

/// Draws a dot whose operands hold a few kinds of values.
fn mixture(id: &OperationId, random: &mut Random) -> Dot {
    let k = id.shape.sizes().2;
    let mut dot = Dot::zeros(id);
    let about = random.between(-30, 30);
    let one_sign = random.flip();
    let spread = [0, 1, 4, 30][random.below(4)];
    // A mixture holds a few kinds of operands; most are rare within one dot.
    let kinds = [random.below(10), random.below(10), random.below(10)];
    let pick = |random: &mut Random, kinds: &[usize]| match kinds[random.below(kinds.len())] {
        0 => Holds::Zero,
        1 => Holds::MinusZero,
        2 => Holds::Smallest,
        3 => Holds::Subnormal,
        4 => Holds::Largest,
        5 => Holds::One,
        6 if random.below(8) == 0 => Holds::Special,
        7 if random.flip() => Holds::Any,
        _ => Holds::Near(about + random.between(-spread, spread)),
    };
    // Products outside the chosen k hold zeros of either sign or the smallest values.
    let others = [Holds::Zero, Holds::Zero, Holds::MinusZero, Holds::Smallest][random.below(4)];
    for at in 0..k {
        dot.a[at] = bits(random, id.a, others);
        let of_b = if random.flip() { others } else { Holds::Zero };
        dot.b[at] = bits(random, id.b, of_b);
    }
    let of_b = pick(random, &kinds);
    for at in some_k(random, k) {
        let of_a = pick(random, &kinds);
        dot.a[at] = bits(random, id.a, of_a);
        let of_b = if random.below(3) == 0 { pick(random, &kinds) } else { of_b };
        let of_b = if let Holds::Near(_) = of_b { Holds::Near(random.between(-1, 1)) } else { of_b };
        dot.b[at] = bits(random, id.b, of_b);
    }
    // c is part of the mixture, about as large as its products, or arbitrary.
    let of_c = match random.below(8) {
        // Near the largest products, where sums carry the farthest.
        6 | 7 => {
            let high = |format: Format| format.as_float().map_or(0, mxprobe_api::FloatEncoding::max_exponent);
            let top = (high(id.a) + high(id.b)).min(high(id.c));
            Holds::Near(top - random.between(0, 12))
        }
        0 => Holds::Zero,
        1 => pick(random, &[0, 1, 2, 3, 4, 5, 6, 7]),
        2 => Holds::Near(about + random.between(-2, 40)),
        3 => Holds::Near(random.between(-140, 127)),
        _ => pick(random, &kinds),
    };
    dot.c = bits(random, id.c, of_c);
    if one_sign && !id.is_integer() {
        dot.a.iter_mut().for_each(|bits| *bits &= !sign(id.a));
        dot.b.iter_mut().for_each(|bits| *bits &= !sign(id.b));
        dot.c &= !sign(id.c);
    }
    if let (Some(scale), Some((a, b))) = (id.block_scale(), &mut dot.scales) {
        a.iter_mut().chain(b).for_each(|bits| *bits = near(random, scale.format, 0));
    }
    dot
}

/// Returns the sign bit of a format, or 0 if it does not have a negative zero.
fn sign(format: Format) -> u64 {
    format.negative_zero().map_or(0, |bits| bits)
}

/// Draws a value of either sign with this exponent; the largest value if that is out of range.
fn near(random: &mut Random, format: Format, exponent: i32) -> u64 {
    let fraction = match random.below(4) {
        0 => 1.0,
        1 => 2.0 - f64::from(-i32::try_from(format.fraction_bits().min(50)).unwrap()).exp2(),
        2 => 1.0 + f64::from(-i32::try_from(format.fraction_bits().min(50)).unwrap()).exp2(),
        _ => 1.0 + f64::from(random.between(0, 0xff_ffff)) / 16_777_216.0,
    };
    let bits = format.from_f64(fraction * f64::from(exponent).exp2());
    let finite = matches!(format.decode(bits), Decoded::Finite { .. } | Decoded::Zero { .. });
    let bits = if finite { bits } else { format.largest(false) };
    if random.flip() { bits | sign(format) } else { bits }
}

/// Draws the bits of an operand.
fn bits(random: &mut Random, format: Format, holds: Holds) -> u64 {
    if format.is_integer() {
        return match holds {
            Holds::Zero | Holds::MinusZero => 0,
            Holds::Smallest | Holds::One => 1,
            Holds::Largest => format.largest(random.flip()),
            Holds::Near(_) => random.any(format) & 15,
            _ => random.any(format),
        };
    }
    let signed = |random: &mut Random, bits: u64| if random.flip() { bits | sign(format) } else { bits };
    let float = format.as_float().unwrap();
    match holds {
        Holds::Zero => 0,
        Holds::MinusZero => sign(format),
        Holds::Smallest => signed(random, 1 << float.unread_bits),
        Holds::Subnormal => {
            let field = random.bits() & ((1 << float.fraction_bits) - 1);
            signed(random, field << float.unread_bits)
        }
        Holds::Largest => format.largest(random.flip()),
        Holds::One => signed(random, format.one()),
        Holds::Near(exponent) => near(random, format, exponent),
        Holds::Special => {
            let infinity = format.infinity(random.flip()).or(format.nan()).unwrap_or(0);
            if random.flip() { infinity } else { format.nan().unwrap_or(infinity) }
        }
        Holds::Any => random.any(format),
    }
}
