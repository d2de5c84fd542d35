//! A layout check of an operation without a model, by small integers whose sums are exact in every format.

use std::ops::Index;

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
    a: Vec<i32>,
    b: Vec<i32>,
    c: Vec<i32>,
    /// No sum is larger in magnitude.
    largest_sum: i32,
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
    let encoded = Encoded::of(id.d, inputs.largest_sum);
    let mut sums = vec![0; n];
    // A row of A and of C, of any tile.
    for (row, (a, c)) in inputs.a.chunks_exact(k).zip(inputs.c.chunks_exact(n)).enumerate() {
        let tile = row / m;
        sums.copy_from_slice(c);
        for (a, b) in a.iter().zip(inputs.b[tile * k * n..].chunks_exact(n)) {
            sums.iter_mut().zip(b).for_each(|(sum, b)| *sum += a * b);
        }
        for (column, exact) in sums.iter().enumerate() {
            let got = d.get(row * n + column);
            // One's complement makes 1 − 1 slightly less than 0, so a float only has to be within a half.
            let is_near = || !id.d.is_integer() && (id.d.to_f64(got) - f64::from(*exact)).abs() < 0.5;
            if got != encoded[*exact] && !is_near() {
                return Err(Error::self_test(format!(
                    "the layout self-test of {id} failed: row {}, column {column} of tile {tile} should be {exact} \
                     ({}), a sum of small integers, and is {}",
                    row % m,
                    id.d.hex(encoded[*exact]),
                    id.d.hex(got)
                )));
            }
        }
    }
    Ok(SelfTest { tiles, elements: tiles * m * n })
}

/// The bits of integers up to some magnitude.
struct Encoded {
    largest: i32,
    bits: Vec<u64>,
}

impl Encoded {
    fn of(format: Format, largest: i32) -> Self {
        Self { largest, bits: (-largest..=largest).map(|value| encode(format, value)).collect() }
    }
}

impl Index<i32> for Encoded {
    type Output = u64;

    fn index(&self, value: i32) -> &u64 {
        &self.bits[usize::try_from(value + self.largest).expect("within the largest magnitude")]
    }
}

/// Encodes an integer; an integer format keeps its low bits.
fn encode(format: Format, value: i32) -> u64 {
    if format.is_integer() {
        return i64::from(value).cast_unsigned() & format.mask();
    }
    let magnitude = value.unsigned_abs().into();
    format.encode(value < 0, magnitude, 0, Rounding::NearestEven, Overflow::Saturate, Subnormals::Keep).bits
}

/// The magnitude up to which all integers are exact in a format: at most 2^(fraction bits + 1), or the largest integer.
fn exact_up_to(format: Format) -> i32 {
    if format.is_integer() {
        i16::try_from(format.largest(false)).unwrap_or(i16::MAX).into()
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
    let length = i32::try_from(k).expect("a small shape");
    let magnitude = (1..=3).rev().find(|size| length * size * size + size <= limit).unwrap_or(1);
    let used = ((limit - magnitude) / (magnitude * magnitude)).min(length);
    let largest_sum = used * magnitude * magnitude + magnitude;
    let non_negative = id.has("satfinite") && is_unsigned(id.d);

    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut integers = |format: Format, count: usize| -> Vec<i32> {
        let least = if non_negative || is_unsigned(format) { 0 } else { -magnitude };
        let values: Vec<i32> = (least..=magnitude).collect();
        let mut draw = || values[usize::try_from(random.bits() % values.len() as u64).expect("below a length")];
        (0..count).map(|_| draw()).collect()
    };
    let mut a = integers(id.a, tiles * m * k);
    let b = integers(id.b, tiles * k * n);
    let c = integers(id.c, tiles * m * n);
    for (row, values) in a.chunks_exact_mut(k).enumerate() {
        // Keep `used` products per row, at different places in every row.
        for at in used.unsigned_abs() as usize..k {
            values[(at * 5 + row * 3) % k] = 0;
        }
    }
    let elements = |format: Format, values: &[i32]| {
        let encoded = Encoded::of(format, magnitude);
        Elements::from_bits(format, values.iter().map(|value| encoded[*value]))
    };
    let mut batch = TileBatch::zeros(operation, tiles);
    (batch.a, batch.b, batch.c) = (elements(id.a, &a), elements(id.b, &b), elements(id.c, &c));
    Inputs { batch, a, b, c, largest_sum }
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
                    d.push(encode(id.d, sum.try_into().unwrap()));
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
