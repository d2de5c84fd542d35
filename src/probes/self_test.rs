//! Before anything is believed: small integers, exact in every format and in every order of addition.

use mxprobe_api::{Encoding, Error, Format, Overflow, Rounding, Subnormals, TileBatch, execute};

use super::Subject;

/// A matrix product of small integers at every position of some tiles.
///
/// # Errors
/// [`Error::is_self_test`] with the first wrong element; what the device reports.
pub(super) fn layout(subject: &Subject<'_>) -> Result<(), Error> {
    let id = subject.id();
    let (m, n, k) = id.shape.sizes();
    let tiles = 2;
    let mut batch = TileBatch::zeros(subject.operation(), tiles);
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut next = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    // Few enough ones that any partial sum is exact in 8 bits; formats without a sign get no negative values.
    let mut value = |format: Format, chance: u64| -> i64 {
        let signed = !matches!(format.encoding(), Encoding::Integer { signed: false, .. });
        match next(chance) {
            0 => 1,
            1 if signed => -1,
            2 => 2,
            _ => 0,
        }
    };
    let chance = (k as u64 / 4).max(4);
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..tiles * m * k {
        a.push(value(id.a, chance));
        batch.a.set(at, integer(id.a, a[at]));
    }
    for at in 0..tiles * k * n {
        b.push(value(id.b, 4));
        batch.b.set(at, integer(id.b, b[at]));
    }
    for at in 0..tiles * m * n {
        c.push(value(id.c, 4) * 3);
        batch.c.set(at, integer(id.c, c[at]));
    }
    let d = execute(subject.device(), subject.operation(), &batch)?;
    for tile in 0..tiles {
        for row in 0..m {
            for column in 0..n {
                let products = (0..k).map(|index| a[(tile * m + row) * k + index] * b[(tile * k + index) * n + column]);
                let at = (tile * m + row) * n + column;
                let wanted = products.sum::<i64>() + c[at];
                let got = d.get(at);
                let is_same =
                    super::number::Number::decode(id.d, got) == Some(super::number::Number::new(i128::from(wanted), 0));
                // A one's complement makes 1 − 1 a little less than 0: a layout is right if every element is within a half.
                let is_near = !id.d.is_integer() && (id.d.to_f64(got) - wanted as f64).abs() < 0.5;
                if !is_same && !is_near {
                    return Err(Error::self_test(format!(
                        "the layout self-test of {id} failed: row {row}, column {column} of tile {tile} is {}, and small \
                         integers give {wanted}",
                        id.d.hex(got)
                    )));
                }
            }
        }
    }
    Ok(())
}

fn integer(format: Format, value: i64) -> u64 {
    let magnitude = u128::from(value.unsigned_abs());
    format.encode(value < 0, magnitude, 0, Rounding::NearestEven, Overflow::Saturate, Subnormals::Keep).bits
}
