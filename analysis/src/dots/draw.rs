//! An endless sequence of structured dots, in which the classes take turns.

use mxprobe_api::{Decoded, FloatEncoding, Format, OperationId};

use super::{CLASSES, Dot, Maker, Random};

/// Dots of an operation, with the classes of [`CLASSES`] in turn, some of them modified; the same seed gives the same
/// dots.
///
/// ```
/// use mxprobe_analysis::dots::Draw;
///
/// let id = "mma.m16n8k16.f32.f16.f16.f32".parse()?;
/// let dots: Vec<_> = Draw::new(&id, 1).take(100).collect();
/// assert_eq!(dots, Draw::new(&id, 1).take(100).collect::<Vec<_>>());
/// assert!(dots.iter().all(|dot| dot.a.len() == 16));
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
pub struct Draw<'a> {
    id: &'a OperationId,
    maker: Maker<'a>,
    twists: Random,
    classes: Vec<usize>,
    drawn: usize,
}

impl<'a> Draw<'a> {
    /// Dots of every class that the operation's formats have.
    #[must_use]
    pub fn new(id: &'a OperationId, seed: u64) -> Self {
        let mut probe = Maker::new(id, seed);
        let classes = (0..CLASSES.len()).filter(|class| probe.make(*class, 0).is_some()).collect();
        Self::of(id, classes, seed)
    }

    /// Dots of only the class with that name, some of them modified; `None` if the operation's formats have no such
    /// class.
    #[must_use]
    pub fn of_class(id: &'a OperationId, class: &str, seed: u64) -> Option<Self> {
        let class = CLASSES.iter().position(|(name, _)| *name == class)?;
        Maker::new(id, seed).make(class, 0)?;
        Some(Self::of(id, vec![class], seed))
    }

    fn of(id: &'a OperationId, classes: Vec<usize>, seed: u64) -> Self {
        Self { id, maker: Maker::new(id, seed_of(seed, 1)), twists: Random(seed_of(seed, 2)), classes, drawn: 0 }
    }

    /// Replaces one operand by a value that its class rarely contains.
    fn twist(&mut self, dot: &mut Dot) {
        let (id, random) = (self.id, &mut self.twists);
        if id.is_integer() || dot.a.is_empty() {
            return;
        }
        let at = random.below(dot.a.len());
        match random.below(24) {
            0 | 1 => dot.c = subnormal(random, id.c),
            2 => dot.c = zero(random, id.c),
            3 => dot.a[at] = subnormal(random, id.a),
            4 => dot.b[at] = subnormal(random, id.b),
            5 => dot.a[at] = zero(random, id.a),
            // Equal terms: the largest magnitude of the sum for its exponent.
            6 => {
                let (a, b) = (dot.a[at], dot.b[at]);
                dot.a.fill(a);
                dot.b.fill(b);
            }
            // A product and its negation at neighbouring k, if the scales allow.
            7 if at > 0 => {
                dot.a[at] = negated(id.a, dot.a[at - 1]);
                dot.b[at] = dot.b[at - 1];
            }
            8 => dot.c = negated(id.c, dot.c),
            // A term far below the others, whose bits a sum may keep and a single term loses.
            9 => dot.c = scaled(id.c, dot.c, -random.between(20, 60)),
            10 => dot.a[at] = scaled(id.a, dot.a[at], -random.between(4, 28)),
            _ => {}
        }
    }
}

impl Iterator for Draw<'_> {
    type Item = Dot;

    fn next(&mut self) -> Option<Dot> {
        let count = self.classes.len();
        let (class, index) = (*self.classes.get(self.drawn % count.max(1))?, self.drawn / count);
        self.drawn += 1;
        let mut dot = self.maker.make(class, index)?;
        self.twist(&mut dot);
        Some(dot)
    }
}

/// The first `count` dots of [`Draw`].
#[must_use]
pub fn draw(id: &OperationId, seed: u64, count: usize) -> Vec<Dot> {
    Draw::new(id, seed).take(count).collect()
}

/// Derives a seed for part `part` of what is drawn from `seed`.
#[must_use]
pub fn seed_of(seed: u64, part: u64) -> u64 {
    Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(part)).bits()
}

fn sign(format: Format) -> u64 {
    if format.as_float().is_some_and(FloatEncoding::is_signed) { 1 << (format.bits() - 1) } else { 0 }
}

/// The negation, if the format has signs and the result is not NaN because of it.
fn negated(format: Format, bits: u64) -> u64 {
    let other = bits ^ sign(format);
    let is_nan = |bits: u64| matches!(format.decode(bits), Decoded::Nan { .. });
    if is_nan(other) && !is_nan(bits) { bits } else { other }
}

fn zero(random: &mut Random, format: Format) -> u64 {
    let negative = format.negative_zero().filter(|_| random.flip());
    negative.unwrap_or(0)
}

fn subnormal(random: &mut Random, format: Format) -> u64 {
    let Some(float) = format.as_float() else { return 0 };
    let field = random.bits() & ((1 << float.fraction_bits) - 1);
    let bits = field << float.unread_bits;
    if random.flip() { negated(format, bits) } else { bits }
}

/// The value times 2^by, truncated to what the format holds.
fn scaled(format: Format, bits: u64, by: i32) -> u64 {
    let Decoded::Finite { negative, significand, exponent } = format.decode(bits) else { return bits };
    let lowest = exponent - format.fraction_bits().cast_signed() + by;
    format.truncated(negative, significand, lowest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 7] = [
        "mma.m16n8k16.f32.f16.f16.f32",
        "mma.m16n8k8.f64.f64.f64.f64",
        "mma.m16n8k8.f32.tf32.tf32.f32",
        "mma.m16n8k32.f16.e4m3.e5m2.f16",
        "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3",
        "mma.m16n8k32.f32.e3m2.e2m3.f32.block32.ue8m0",
        "mma.m16n8k32.s32.s8.u8.s32",
    ];

    #[test]
    fn dots_whose_last_scale_block_is_short_are_drawn_like_any_other() {
        let id: OperationId = "dot.m1n1k5.f32.e2m1.e2m1.f32.block4.ue8m0".parse().unwrap();
        let dots = draw(&id, 1, 2_000);
        assert!(dots.iter().any(|dot| dot.a[4] != 0 && dot.scales.as_ref().is_some_and(|(a, _)| a.len() == 2)));
    }

    #[test]
    fn every_format_gets_dots_of_its_own_shape() {
        for text in IDS {
            let id: OperationId = text.parse().unwrap();
            let dots = draw(&id, 7, 2_000);
            assert_eq!(dots.len(), 2_000, "{text}");
            let (_, _, k) = id.shape.sizes();
            for dot in &dots {
                assert_eq!((dot.a.len(), dot.b.len()), (k, k), "{text}");
                assert_eq!(dot.scales.is_some(), id.block_scale().is_some(), "{text}");
                assert!(dot.a.iter().all(|bits| *bits <= id.a.mask()) && dot.c <= id.c.mask(), "{text}");
            }
            let distinct: std::collections::HashSet<&Dot> = dots.iter().collect();
            assert!(distinct.len() > 1_500, "{text}: {} distinct dots", distinct.len());
        }
    }

    #[test]
    fn another_seed_gives_other_dots() {
        let id: OperationId = IDS[0].parse().unwrap();
        assert_ne!(draw(&id, 1, 50), draw(&id, 2, 50));
    }

    #[test]
    fn a_class_without_a_form_for_the_formats_is_none() {
        let (float, integer): (OperationId, OperationId) = (IDS[0].parse().unwrap(), IDS[6].parse().unwrap());
        assert!(Draw::of_class(&float, "limits", 1).is_none() && Draw::of_class(&integer, "limits", 1).is_some());
        assert!(Draw::of_class(&float, "no such class", 1).is_none());
    }
}
