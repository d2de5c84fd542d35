//! A layout check of an operation without a model, by small integers whose sums are exact in every format.

use crate::{Elements, Encoding, Error, Format, Operation, Overflow, Random, Rounding, Subnormals, TileBatch};

/// The number of tiles that a check computes: 16, or fewer for tiles so wide that a single one reveals a wrong stride.
fn tiles_of(operation: &Operation) -> usize {
    let (m, n, _) = operation.id.shape.sizes();
    (8192 / (m * n)).clamp(3, 16)
}

/// The extent of a passed self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTest {
    /// The number of tiles computed.
    pub tiles: usize,
    /// The number of elements of D compared.
    pub elements: usize,
}

/// Random small integers, with sums small enough to be exact in every format of the operation, whatever the order of
/// addition.
struct Inputs {
    batch: TileBatch,
    /// m·k integers per tile; `b` has k·n and `c` has m·n.
    a: Vec<i64>,
    b: Vec<i64>,
    c: Vec<i64>,
}

/// Computes D of small integers with `execute` and compares every element with the exact result.
///
/// Detects a transposed or permuted operand, a wrong tile, a wrong sign and a wrong stride. A float may be wrong by
/// less than a half: this checks where elements lie, not how they are added.
///
/// # Errors
/// [`Error::is_self_test`] with the row, column, expected and computed value of the first wrong element; otherwise what
/// `execute` reports.
pub fn self_test(
    operation: &Operation,
    execute: impl FnOnce(&TileBatch) -> Result<Elements, Error>,
) -> Result<SelfTest, Error> {
    let id = &operation.id;
    let (m, n, k) = id.shape.sizes();
    let tiles = tiles_of(operation);
    let inputs = inputs(operation, tiles);
    let d = execute(&inputs.batch)?;
    for tile in 0..tiles {
        let (a, b, c) = (&inputs.a[tile * m * k..], &inputs.b[tile * k * n..], &inputs.c[tile * m * n..]);
        for row in 0..m {
            for column in 0..n {
                let products: i64 = (0..k).map(|k_at| a[row * k + k_at] * b[k_at * n + column]).sum();
                let exact = products + c[row * n + column];
                let got = d.get((tile * m + row) * n + column);
                // One's complement makes 1 − 1 slightly less than 0, so a float only has to be within a half.
                let is_right = if id.d.is_integer() {
                    got == encode(id.d, exact)
                } else {
                    (id.d.to_f64(got) - f64::from(i32::try_from(exact).expect("a small sum"))).abs() < 0.5
                };
                if !is_right {
                    return Err(Error::self_test(format!(
                        "the layout self-test of {id} failed: row {row}, column {column} of tile {tile} should be \
                         {exact} ({}), a sum of small integers, and is {}",
                        id.d.hex(encode(id.d, exact)),
                        id.d.hex(got)
                    )));
                }
            }
        }
    }
    Ok(SelfTest { tiles, elements: tiles * m * n })
}

/// Encodes an integer; an integer format keeps its low bits.
#[expect(clippy::cast_sign_loss, reason = "two's complement is what is wanted")]
fn encode(format: Format, value: i64) -> u64 {
    if format.is_integer() {
        return value as u64 & format.mask();
    }
    let magnitude = u128::from(value.unsigned_abs());
    format.encode(value < 0, magnitude, 0, Rounding::NearestEven, Overflow::Saturate, Subnormals::Keep).bits
}

/// The magnitude up to which all integers are exact in a format: at most 2^(fraction bits + 1), or the largest integer.
fn exact_up_to(format: Format) -> i64 {
    if format.is_integer() {
        i64::try_from(format.largest(false)).map_or(i64::from(i16::MAX), |largest| largest.min(i64::from(i16::MAX)))
    } else {
        1 << (format.fraction_bits() + 1).min(15)
    }
}

fn is_unsigned(format: Format) -> bool {
    matches!(format.encoding(), Encoding::Integer { signed: false, .. })
}

fn inputs(operation: &Operation, tiles: usize) -> Inputs {
    let id = &operation.id;
    let (m, n, k) = id.shape.sizes();
    let limit = [id.c, id.d].into_iter().map(exact_up_to).min().expect("two formats");
    // The largest magnitude whose sums stay exact; if even 1 is too large, some products are left out.
    let length = i64::try_from(k).expect("a small shape");
    let magnitude = (1..=3).rev().find(|size| length * size * size + size <= limit).unwrap_or(1);
    let used = usize::try_from((limit - magnitude) / (magnitude * magnitude)).expect("a positive limit").min(k);
    let non_negative = id.has("satfinite") && is_unsigned(id.d);

    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut below = |bound: usize| usize::try_from(random.bits() % bound as u64).expect("below a length");
    let mut integer = |format: Format| {
        let magnitude = usize::try_from(magnitude).expect("1 to 3");
        let value = if non_negative || is_unsigned(format) { below(magnitude + 1) } else { below(2 * magnitude + 1) };
        let shift = if non_negative || is_unsigned(format) { 0 } else { magnitude };
        i64::try_from(value).expect("small") - i64::try_from(shift).expect("small")
    };
    let mut a: Vec<i64> = (0..tiles * m * k).map(|_| integer(id.a)).collect();
    let b: Vec<i64> = (0..tiles * k * n).map(|_| integer(id.b)).collect();
    let c: Vec<i64> = (0..tiles * m * n).map(|_| integer(id.c)).collect();
    for (row, values) in a.chunks_exact_mut(k).enumerate() {
        // Keep `used` products per row, at different places in every row.
        for at in used..k {
            values[(at * 5 + row * 3) % k] = 0;
        }
    }
    let elements = |format: Format, values: &[i64]| {
        let encoded: Vec<u64> = (-magnitude..=magnitude).map(|value| encode(format, value)).collect();
        let at = |value: &i64| usize::try_from(value + magnitude).expect("within the magnitude");
        Elements::from_bits(format, values.iter().map(|value| encoded[at(value)]))
    };
    let mut batch = TileBatch::zeros(operation, tiles);
    (batch.a, batch.b, batch.c) = (elements(id.a, &a), elements(id.b, &b), elements(id.c, &c));
    Inputs { batch, a, b, c }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoded;

    const IDS: [&str; 9] = [
        "coopmat.m8n8k8.f16.f16.f16.f16",
        "coopmat.m16n8k16.f32.f16.f16.f32",
        "coopmat.m16n16k16.bf16.bf16.bf16.bf16",
        "coopmat.m16n16k16.f32.e5m2.e4m3.f32",
        "coopmat.m16n16k64.bf16.bf16.bf16.bf16",
        "coopmat.m16n16k64.e4m3.e4m3.e4m3.e4m3",
        "coopmat.m16n16k16.u32.u8.s8.u32",
        "coopmat.m16n8k32.s32.u8.s8.s32.satfinite",
        "coopmat.m16n8k64.s8.s8.s8.s8.satfinite",
    ];

    fn integer(format: Format, bits: u64) -> i64 {
        match format.decode(bits) {
            Decoded::Zero { .. } => 0,
            Decoded::Finite { negative, significand, exponent } => {
                let shift = exponent - i32::try_from(format.fraction_bits()).unwrap();
                let significand = i64::try_from(significand).unwrap();
                let magnitude = if shift < 0 {
                    assert_eq!(significand % (1 << -shift), 0, "{format} {bits:#x} is not an integer");
                    significand >> -shift
                } else {
                    significand << shift
                };
                if negative { -magnitude } else { magnitude }
            }
            other => panic!("{format} {bits:#x} is {other:?}"),
        }
    }

    /// A unit whose layout is right except for `wrong`: a transposed `a`, `b` or `c`, or the wrong `tile`.
    fn unit(operation: &Operation, batch: &TileBatch, wrong: &str) -> Elements {
        let id = &operation.id;
        let (m, n, k) = id.shape.sizes();
        let pick =
            |elements: &Elements, tile: usize, rows: usize, columns: usize, row: usize, column: usize, transposed| {
                let at = if transposed { (column * rows + row) % (rows * columns) } else { row * columns + column };
                integer(elements.format(), elements.get(tile * rows * columns + at))
            };
        let mut d = Elements::from_bits(id.d, []);
        for tile in 0..batch.tiles {
            let from = if wrong == "tile" { 0 } else { tile };
            for row in 0..m {
                for column in 0..n {
                    let mut sum = pick(&batch.c, from, m, n, row, column, wrong == "c");
                    for at in 0..k {
                        let a = pick(&batch.a, from, m, k, row, at, wrong == "a");
                        sum += a * pick(&batch.b, from, k, n, at, column, wrong == "b");
                    }
                    d.push(encode(id.d, sum));
                }
            }
        }
        d
    }

    #[test]
    fn a_right_layout_passes_in_every_format() {
        for id in IDS {
            let operation = Operation::new(id.parse().unwrap(), "subgroup");
            let passed = self_test(&operation, |batch| Ok(unit(&operation, batch, ""))).unwrap();
            let (m, n, _) = operation.id.shape.sizes();
            assert_eq!(passed.elements, 16 * m * n, "{id}");
        }
    }

    #[test]
    fn a_transposed_operand_or_a_wrong_tile_is_found() {
        for id in IDS {
            let operation = Operation::new(id.parse().unwrap(), "subgroup");
            for wrong in ["a", "b", "c", "tile"] {
                let error = self_test(&operation, |batch| Ok(unit(&operation, batch, wrong))).unwrap_err();
                assert!(error.is_self_test(), "{id} {wrong}");
                assert!(error.to_string().contains("row ") && error.to_string().contains("should be"), "{error}");
            }
        }
    }

    #[test]
    fn zeros_for_every_element_are_found() {
        for id in IDS {
            let operation = Operation::new(id.parse().unwrap(), "subgroup");
            let (m, n, _) = operation.id.shape.sizes();
            let zeros = |batch: &TileBatch| Ok(Elements::zeros(operation.id.d, batch.tiles * m * n));
            assert!(self_test(&operation, zeros).unwrap_err().is_self_test(), "{id}");
        }
    }
}
