//! Words of an operation with block scales: in each word, every block of k has its own scale.

use mxprobe_api::{BlockScale, Decoded, Elements, Format, Rounding};
use mxprobe_models::many::{exponent, round};

use super::{
    Matrix,
    words::{Rounded, scaled},
};

/// Splits a matrix into words with scales: word i is scale·fl(rest / scale), and the rest is the remainder after the
/// words before it.
///
/// A block is `scale.block` consecutive k of one row of A (`by_rows`) or one column of B. Its scale is computed from
/// the largest finite magnitude x of its remainder. A scale that holds only powers of two is 2^(⌊log2 x⌋ − the exponent
/// of the format's largest value), as OCP's specification of microscaling formats recommends (MX v1.0, section 6.3);
/// any other is x divided by the format's largest value, rounded to nearest, ties to even. Both stay in the scale's
/// range, and the scale of a block of zeros is 1. Quotients are rounded once, with `rounding`; those beyond the
/// format's range become its largest value.
pub(super) fn block_words(
    matrix: &Matrix,
    format: Format,
    scale: BlockScale,
    (count, rounding): (usize, Rounding),
    by_rows: bool,
) -> Rounded {
    let (lines, k) = if by_rows { (matrix.rows, matrix.columns) } else { (matrix.columns, matrix.rows) };
    let place = |line: usize, at: usize| if by_rows { line * k + at } else { at * lines + line };
    let blocks = k.div_ceil(scale.block);
    let block_place = |line: usize, at: usize| if by_rows { line * blocks + at } else { at * lines + line };
    let largest = format.to_f64(format.largest(false));
    let mut rest = matrix.values.clone();
    let mut found = Rounded { line_exponents: vec![0; lines], ..Rounded::default() };
    for _ in 0..count {
        let mut elements = Elements::zeros(format, rest.len());
        let mut scales = Elements::zeros(scale.format, lines * blocks);
        for (line, block) in (0..lines).flat_map(|line| (0..blocks).map(move |block| (line, block))) {
            let places = || (block * scale.block..((block + 1) * scale.block).min(k)).map(|at| place(line, at));
            let finite = places().map(|at| rest[at].abs()).filter(|value| value.is_finite());
            let bits = scale_of(finite.fold(0.0, f64::max), format, scale.format);
            let factor = scale.format.to_f64(bits);
            scales.set(block_place(line, block), bits);
            for at in places() {
                let value = quotient(rest[at], factor);
                let held = if value.is_finite() { value.clamp(-largest, largest) } else { value };
                let element = round(held, format, rounding);
                elements.set(at, element);
                let taken = format.to_f64(element) * factor;
                rest[at] = if taken.is_finite() && rest[at].is_finite() { rest[at] - taken } else { 0.0 };
            }
        }
        found.words.push(elements);
        found.scales.push(scales);
        found.inexact.push(rest.iter().filter(|value| **value != 0.0).count());
    }
    found
}

/// The bits of the scale of a block with this largest magnitude.
fn scale_of(largest: f64, format: Format, scale: Format) -> u64 {
    if largest == 0.0 {
        return scale.one();
    }
    let of_elements = format.to_f64(format.largest(false));
    let has_fraction = scale.fraction_bits() > 0;
    let wanted =
        if has_fraction { largest / of_elements } else { scaled(1.0, exponent(largest) - exponent(of_elements)) };
    let greatest = scale.to_f64(scale.largest(false));
    let bits = round(wanted.min(greatest), scale, Rounding::NearestEven);
    match scale.decode(bits) {
        // Below the range: the smallest value that it holds.
        Decoded::Zero { .. } => 1,
        _ => bits,
    }
}

/// x / y rounded to f64 (to odd), so that rounding it once more gives the same as rounding x / y.
fn quotient(x: f64, y: f64) -> f64 {
    let q = x / y;
    let left = (-q).mul_add(y, x);
    if left == 0.0 || !q.is_finite() || q == 0.0 {
        return q;
    }
    // Round q toward zero, then to odd.
    let overshot = (left < 0.0) != (q < 0.0);
    f64::from_bits((q.to_bits() - u64::from(overshot)) | 1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mxprobe_api::{Device, DeviceInfo, Error, Operation, OperationId, OperationSet, TileBatch};
    use mxprobe_models::load;
    use mxprobe_sim::ModelDevice;

    use super::*;
    use crate::gemm::{
        Accumulation, Algorithm, Block, Method, Products, Scaling, Split, Uniform, Unit, errors, multiply,
    };

    const NEAREST: Rounding = Rounding::NearestEven;
    const MX: BlockScale = BlockScale { format: Format::UE8M0, block: 2 };
    const NV: BlockScale = BlockScale { format: Format::UE4M3, block: 2 };

    fn values(elements: &Elements) -> Vec<f64> {
        elements.iter().map(|bits| elements.format().to_f64(bits)).collect()
    }

    #[test]
    fn a_power_of_two_for_a_scale_puts_the_largest_of_a_block_into_the_formats_last_binade() {
        // The blocks of the rows are (12, 1), (0.3); (0, −0), (−3.4e38): e2m1 reaches 6 = 1.5·2^2.
        let matrix = Matrix::new(2, 3, vec![12.0, 1.0, 0.3, 0.0, -0.0, -3.4e38]).unwrap();
        let found = block_words(&matrix, Format::E2M1, MX, (1, NEAREST), true);
        let (two, a_quarter, largest) = (128, 123, 127 + 125);
        assert_eq!(found.scales[0].iter().collect::<Vec<_>>(), [two, a_quarter, 127, largest]);
        assert_eq!(values(&found.words[0]), [6.0, 0.5, 4.0, 0.0, -0.0, -6.0]);
        assert_eq!(found.inexact, [2]);
        // Values beyond the largest one saturate: 15 / 2 is 7.5.
        let beyond = block_words(&Matrix::new(1, 1, vec![15.0]).unwrap(), Format::E2M1, MX, (1, NEAREST), true);
        assert_eq!(values(&beyond.words[0]), [6.0]);
    }

    #[test]
    fn a_scale_with_a_fraction_brings_the_largest_of_a_block_to_the_formats_largest_value() {
        let matrix = Matrix::new(4, 1, vec![6.6, 3.0, 1e-9, 0.0]).unwrap();
        let found = block_words(&matrix, Format::E2M1, NV, (1, NEAREST), false);
        // 1.1 to nearest of ue4m3, 1.125; the smallest scale, 2^−9.
        assert_eq!(values(&found.scales[0]), [1.125, f64::from(-9).exp2()]);
        assert_eq!(values(&found.words[0]), [6.0, 3.0, 0.0, 0.0]);
    }

    #[test]
    fn quotients_are_rounded_once() {
        let divisor = 1.125;
        // Halfway between 4 and 6 of e2m1, and its neighbours in f64: f64 rounds their quotients to 5.
        let tie = 5.0 * divisor;
        for (value, wanted) in
            [(tie, 4.0), (f64::next_up(tie), 6.0), (f64::next_down(tie), 4.0), (-f64::next_up(tie), -6.0)]
        {
            let bits = round(quotient(value, divisor), Format::E2M1, NEAREST);
            assert_eq!(Format::E2M1.to_f64(bits).to_bits(), f64::to_bits(wanted), "{value}");
        }
    }

    #[test]
    fn later_words_have_scales_of_their_own() {
        let matrix = Uniform::new(7).matrix(5, 64, -1.0, 1.0, true);
        let scale = BlockScale { format: Format::UE8M0, block: 32 };
        let found = block_words(&matrix, Format::E4M3, scale, (3, NEAREST), true);
        assert!(found.inexact.is_sorted_by(|one, next| one >= next), "{:?}", found.inexact);
        let sum = |at: usize| -> f64 {
            let of = |word: usize| {
                let scale = Format::UE8M0.to_f64(found.scales[word].get(at / 64 * 2 + at % 64 / 32));
                Format::E4M3.to_f64(found.words[word].get(at)) * scale
            };
            (0..3).map(of).sum()
        };
        for (at, value) in matrix.values.iter().enumerate() {
            assert!((sum(at) - value).abs() <= f64::from(-11).exp2(), "{at}: {} of {value}", sum(at));
        }
    }

    /// A device that can only multiply tiles.
    struct Tiles(ModelDevice);

    impl Device for Tiles {
        fn info(&self) -> &DeviceInfo {
            self.0.info()
        }

        fn operations(&self) -> &OperationSet {
            self.0.operations()
        }

        fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
            self.0.execute(operation, batch)
        }
    }

    #[test]
    fn products_with_block_scales_are_the_same_whole_and_tile_by_tile() {
        for (model, id) in [
            ("rtx5090", "mma.m16n8k32.f32.e4m3.e5m2.f32.block32.ue8m0"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0"),
        ] {
            let (id, model): (OperationId, _) = (id.parse().unwrap(), load(model).unwrap());
            let block = id.block_scale().unwrap().block;
            let whole = Unit::of_model(&model, &id).unwrap();
            let tiles = Unit::new(Arc::new(Tiles(ModelDevice::new(model))), &id).unwrap();
            let mut uniform = Uniform::new(11);
            let (a, b) = (uniform.matrix(19, 200, -1.0, 1.0, true), uniform.matrix(200, 11, -1.0, 1.0, true));
            let mut left = f64::INFINITY;
            for words in 1..=2 {
                let split = Split { words, rounding: NEAREST, scaling: Scaling::None, lift_bits: 0 };
                for accumulation in [Accumulation::Unit, Accumulation::F32 { block: Block::Products(2 * block) }] {
                    let products = Products::Significant;
                    let algorithm = Algorithm { method: Method::Multiword, split, products, accumulation };
                    let [one, other] = [&whole, &tiles].map(|unit| multiply(unit, &a, &b, None, &algorithm).unwrap().d);
                    assert_eq!(one, other, "{id}, {words} words, {accumulation:?}");
                    if accumulation == Accumulation::Unit {
                        let error = errors(&a, &b, &one).componentwise;
                        assert!(error < left / 2.0 && error < 0.1, "{id}, {words} words: {error:e} after {left:e}");
                        left = error;
                    }
                }
            }
            let split = Split { words: 1, rounding: NEAREST, scaling: Scaling::None, lift_bits: 0 };
            let accumulation = Accumulation::F32 { block: Block::Products(block + 1) };
            let algorithm = Algorithm { method: Method::Multiword, split, products: Products::All, accumulation };
            let error = multiply(&whole, &a, &b, None, &algorithm).unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(&format!("of {} products", block + 1)), "{error}");
        }
    }
}
