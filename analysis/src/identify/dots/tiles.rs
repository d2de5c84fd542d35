//! Batches of tiles with random values, for comparisons of millions of dots.

use mxprobe_api::{Elements, Format, GemmOperands, Operation, OperationId, Specials, TileBatch};

use crate::dots::Random;

/// Elements of the operands of one batch.
const ELEMENTS: usize = 1 << 20;
/// Divides the size of a batch of tiles with arbitrary bits: nearly all of them hold a NaN, which hides the other
/// values and is slow to model.
const ANY: usize = 64;

/// Random values for a batch of tiles in which every tile of A is combined with every tile of B: as such a batch, or as
/// one product of matrices.
pub(in crate::identify) struct Tiles {
    /// The tiles of A, one below another, and those of B, one after another.
    some: TileBatch,
    /// B and its scales with their tiles side by side.
    b: Elements,
    scale_b: Option<Elements>,
    /// C of the product.
    c: Elements,
    /// The number of tiles of A, and of B.
    size: usize,
}

impl Tiles {
    /// Draws the values of one round: about 1, of many sizes, up to the largest, or arbitrary bits.
    pub(in crate::identify) fn drawn(operation: &Operation, seed: u64, round: u64) -> Self {
        let id = &operation.id;
        let (m, n, _) = id.shape.sizes();
        let (spread, size) = (spread(round), size(id, round));
        let mut random = Random(seed);
        let mut some = TileBatch::zeros(operation, size);
        fill(&mut some.a, &mut random, spread);
        fill(&mut some.b, &mut random, spread);
        for scale in [&mut some.scale_a, &mut some.scale_b].into_iter().flatten() {
            fill(scale, &mut random, spread);
        }
        let mut c = Elements::zeros(id.c, size * size * m * n);
        fill(&mut c, &mut random, if round % 4 == 2 { Spread::Wide } else { spread });
        let b = side_by_side(&some.b, 1, size, n);
        let scale_b = some.scale_b.as_ref().map(|scales| side_by_side(scales, 1, size, n));
        Self { some, b, scale_b, c, size }
    }

    /// The product whose elements are those of all tiles.
    pub(in crate::identify) fn product(&self, id: &OperationId) -> GemmOperands<'_> {
        let (m, n, k) = id.shape.sizes();
        GemmOperands {
            m: self.size * m,
            n: self.size * n,
            k,
            a: &self.some.a,
            b: &self.b,
            c: &self.c,
            scale_a: self.some.scale_a.as_ref(),
            scale_b: self.scale_b.as_ref(),
        }
    }

    /// The tiles one by one.
    pub(in crate::identify) fn batch(&self, operation: &Operation) -> TileBatch {
        let (some, size) = (&self.some, self.size);
        let mut batch = TileBatch::zeros(operation, size * size);
        each(&some.a, size, &mut batch.a);
        all(&some.b, &mut batch.b);
        batch.c = self.in_tiles(&self.c, &operation.id);
        if let (Some(from), Some(into)) = (&some.scale_a, &mut batch.scale_a) {
            each(from, size, into);
        }
        if let (Some(from), Some(into)) = (&some.scale_b, &mut batch.scale_b) {
            all(from, into);
        }
        batch
    }

    /// Converts elements of the product to tiles: a row of the product holds one row of each tile of its band.
    pub(in crate::identify) fn in_tiles(&self, d: &Elements, id: &OperationId) -> Elements {
        let (m, n, _) = id.shape.sizes();
        side_by_side(d, self.size, m, n)
    }
}

/// Returns the number of dots in the tiles of a round, without drawing them.
pub(in crate::identify) fn dots_of(id: &OperationId, round: u64) -> u64 {
    let (m, n, _) = id.shape.sizes();
    let size = size(id, round);
    (size * size * m * n) as u64
}

/// Returns the spread of the values of a round.
fn spread(round: u64) -> Spread {
    match round % 8 {
        7 => Spread::Any,
        1 | 5 => Spread::Wide,
        3 => Spread::Large,
        _ => Spread::Narrow,
    }
}

/// Returns the number of tiles of A in a round, which is that of B as well.
fn size(id: &OperationId, round: u64) -> usize {
    let (m, n, k) = id.shape.sizes();
    let is_small = matches!(spread(round), Spread::Any) && !id.is_integer();
    let elements = if is_small { ELEMENTS / ANY } else { ELEMENTS };
    (elements / (m * k + k * n + m * n)).isqrt().max(1)
}

/// Fills `into` with each of `size` tiles, repeated equally often before the next one comes.
fn each(tiles: &Elements, size: usize, into: &mut Elements) {
    let one = tiles.bytes().len() / size;
    for (at, tile) in into.bytes_mut().chunks_exact_mut(one.max(1)).enumerate() {
        tile.copy_from_slice(&tiles.bytes()[at / size * one..][..one]);
    }
}

/// Fills `into` with the whole sequence of tiles, repeated.
fn all(tiles: &Elements, into: &mut Elements) {
    into.bytes_mut().chunks_exact_mut(tiles.bytes().len().max(1)).for_each(|slot| slot.copy_from_slice(tiles.bytes()));
}

/// Rearranges blocks of rows so that they lie side by side. Each of the `bands` equal parts of `elements` has `count`
/// blocks, one after another, with rows of `n` elements. In the result, the first rows of all blocks of a band come
/// first, then the second rows, and so on.
fn side_by_side(elements: &Elements, bands: usize, count: usize, n: usize) -> Elements {
    let mut found = Elements::zeros(elements.format(), elements.len());
    let row = n * elements.format().storage_bytes();
    let band = (elements.bytes().len() / bands).max(1);
    let block = band / count;
    let each = elements.bytes().chunks_exact(band).zip(found.bytes_mut().chunks_exact_mut(band));
    for (from, into) in each {
        for (from, line) in into.chunks_exact_mut(row * count).enumerate().map(|(at, line)| (&from[at * row..], line)) {
            for (at, slot) in line.chunks_exact_mut(row).enumerate() {
                slot.copy_from_slice(&from[at * block..][..row]);
            }
        }
    }
    found
}

/// The distribution of random values.
#[derive(Clone, Copy, Debug)]
pub(in crate::identify) enum Spread {
    /// Exponents from −4 to 3.
    Narrow,
    /// Exponents from −16 to 15; in formats with fewer exponents, the lower half of them, with subnormals.
    Wide,
    /// The same, but the upper half of the finite exponents in formats with fewer.
    Large,
    /// Arbitrary bits.
    Any,
}

/// Fills elements with random values, eight bytes at a time: random bits under a mask, plus the bits of the least
/// exponent.
pub(in crate::identify) fn fill(elements: &mut Elements, random: &mut Random, spread: Spread) {
    let format = elements.format();
    let (mask, base) = lane(format, spread);
    let lanes = 8 / format.storage_bytes();
    let repeat = |bits: u64| (0..lanes).fold(0, |all, lane| all | bits << (lane * 8 * format.storage_bytes()));
    let (mask, base) = (repeat(mask), repeat(base));
    let mut chunks = elements.bytes_mut().chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&((random.bits() & mask) + base).to_le_bytes());
    }
    let rest = chunks.into_remainder();
    let last = ((random.bits() & mask) + base).to_le_bytes();
    let length = rest.len();
    rest.copy_from_slice(&last[..length]);
}

/// Returns the mask of the random bits of one element, and the bits that are added to them. Their sum is never NaN or
/// an infinity, except with [`Spread::Any`].
fn lane(format: Format, spread: Spread) -> (u64, u64) {
    let any = (format.mask(), 0);
    let wanted = match spread {
        Spread::Narrow => 3,
        Spread::Wide | Spread::Large => 5,
        Spread::Any => return any,
    };
    let Some(float) = format.as_float().filter(|float| float.specials != Specials::None) else { return any };
    let bits = wanted.min(float.exponent_bits - 1);
    let below = float.fraction_bits + float.unread_bits;
    let fraction = (1u64 << below) - 1;
    let sign = if float.is_signed() { 1 << (format.bits() - 1) } else { 0 };
    let exponents = ((1u64 << bits) - 1) << below;
    let least = match spread {
        _ if bits == wanted => (float.bias - (1 << (bits - 1))).max(0).cast_unsigned().into(),
        Spread::Large => (1u64 << bits) - 1,
        // If the code of −0 is a NaN, exponents begin at 1 rather than 0.
        _ => u64::from(float.specials == Specials::NegativeZeroNan),
    };
    (sign | exponents | fraction, least << below)
}

#[cfg(test)]
mod tests {
    use mxprobe_api::{Decoded, execute};
    use mxprobe_models::Evaluator;
    use mxprobe_sim::ModelDevice;

    use super::*;

    #[test]
    fn random_values_lie_where_they_are_meant_to() {
        for format in [Format::F16, Format::BF16, Format::F32, Format::F64, Format::TF32, Format::E4M3, Format::E5M2] {
            let mut elements = Elements::zeros(format, 999);
            fill(&mut elements, &mut Random(3), Spread::Narrow);
            for bits in elements.iter() {
                match format.decode(bits) {
                    Decoded::Finite { exponent, .. } => assert!((-4..=3).contains(&exponent), "{format} {bits:#x}"),
                    other => panic!("{format} {bits:#x} is {other:?}"),
                }
            }
            assert!(elements.iter().collect::<std::collections::HashSet<_>>().len() > 60, "{format}");
        }
    }

    #[test]
    fn any_bits_stay_within_the_width_of_narrow_formats() {
        for format in Format::ALL {
            let mut elements = Elements::zeros(format, 77);
            fill(&mut elements, &mut Random(3), Spread::Any);
            assert!(elements.iter().all(|bits| bits <= format.mask()), "{format}");
        }
    }

    #[test]
    fn finite_values_are_what_all_but_one_spread_gives() {
        for format in Format::ALL.into_iter().filter(|format| format.as_float().is_some()) {
            for spread in [Spread::Narrow, Spread::Wide, Spread::Large] {
                let mut elements = Elements::zeros(format, 999);
                fill(&mut elements, &mut Random(5), spread);
                let finite = |bits| matches!(format.decode(bits), Decoded::Finite { .. } | Decoded::Zero { .. });
                assert!(elements.iter().all(finite), "{format} {spread:?}");
            }
        }
    }

    #[test]
    fn both_ends_of_f16_are_reached() {
        let exponents = |spread| {
            let mut elements = Elements::zeros(Format::F16, 4_000);
            fill(&mut elements, &mut Random(7), spread);
            elements.iter().map(|bits| bits >> 10 & 31).collect::<std::collections::BTreeSet<u64>>()
        };
        assert_eq!(exponents(Spread::Wide), (0..16).collect());
        assert_eq!(exponents(Spread::Large), (15..31).collect());
    }

    #[test]
    fn the_product_of_all_pairs_is_the_tiles_one_by_one() {
        for (model, id) in [
            ("fma-chain", "dot.m1n1k16.f32.bf16.bf16.f32"),
            ("amx", "amx.m16n16k32.f32.bf16.bf16.f32"),
            ("v100", "mma.m8n8k4.f32.f16.f16.f32"),
            ("amx", "amx.m16n16k64.s32.s8.u8.s32"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
        ] {
            let id: OperationId = id.parse().unwrap();
            let model = mxprobe_models::load(model).unwrap();
            let operation = Operation::new(id, "warp");
            let evaluator = Evaluator::new(&model, &operation.id).unwrap();
            let reference = ModelDevice::new(model);
            for round in [0, 1, 2, 3, 7] {
                let tiles = Tiles::drawn(&operation, 11 + round, round);
                let one_by_one = execute(&reference, &operation, &tiles.batch(&operation)).unwrap();
                let product = evaluator.multiply(&tiles.product(&operation.id), 1).unwrap();
                let product = tiles.in_tiles(&product, &operation.id);
                assert!(one_by_one.bytes() == product.bytes(), "{} round {round}", operation.id);
            }
        }
    }
}
