//! Matrices in NumPy files.

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::Path,
};

use crate::gemm::Matrix;
use mxprobe_api::{Elements, Format};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, WriterBuilder};

use crate::cli::failure::Failure;

/// Reads a matrix: floats and integers are values; unsigned integers of a floating-point format's size are its bits.
///
/// A one-dimensional array is a row of A or C, and a column of B.
pub(crate) fn read(path: &Path, format: Format, is_column: bool) -> Result<Matrix, Failure> {
    let refuse = |what: &dyn std::fmt::Display| Failure::usage(format!("`{}`: {what}", path.display()));
    let mut file = BufReader::new(File::open(path).map_err(|error| refuse(&error))?);
    let npy = NpyHeader::from_reader(&mut file).map_err(|error| refuse(&format!("not a NumPy file: {error}")))?;
    let shape: Vec<usize> = npy.shape().iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect();
    let (rows, columns) = match *shape {
        [] => (1, 1),
        [length] if is_column => (length, 1),
        [length] => (1, length),
        [rows, columns] => (rows, columns),
        _ => return Err(refuse(&format!("{} dimensions, but a matrix has 2", shape.len()))),
    };
    let is_fortran = npy.order() == Order::Fortran && shape.len() == 2;
    let dtype = npy.dtype();
    let DType::Plain(kind) = &dtype else { return Err(refuse(&format!("unsupported element type {}", dtype.descr()))) };
    let size = usize::try_from(kind.size_field()).unwrap_or(0);
    let is_bits = kind.type_char() == TypeChar::Uint && !format.is_integer();
    if is_bits && size != format.storage_bytes() {
        return Err(refuse(&format!(
            "unsigned integers of {size} bytes, but the bits of {format} take {}",
            format.storage_bytes()
        )));
    }
    let kind_of = match (kind.type_char(), size) {
        (TypeChar::Uint, _) if is_bits => Kind::Bits(format),
        // Floats are read by their bits: a conversion would turn signaling NaNs into quiet ones.
        (TypeChar::Float, 2) => Kind::Bits(Format::F16),
        (TypeChar::Float, 4) => Kind::Bits(Format::F32),
        (TypeChar::Float, 8) => Kind::Bits(Format::F64),
        (TypeChar::Int, 1) => Kind::Bits(Format::S8),
        (TypeChar::Int, 2) => Kind::Bits(Format::S16),
        (TypeChar::Int, 4) => Kind::Bits(Format::S32),
        (TypeChar::Uint, 1) => Kind::Bits(Format::U8),
        (TypeChar::Uint, 2) => Kind::Short,
        (TypeChar::Uint, 4) => Kind::Bits(Format::U32),
        (TypeChar::Int, 8) => Kind::Long { is_signed: true },
        (TypeChar::Uint, 8) => Kind::Long { is_signed: false },
        _ => return Err(refuse(&format!("unsupported element type {}", dtype.descr()))),
    };
    let Some(count) = rows.checked_mul(columns).filter(|count| count.checked_mul(8).is_some()) else {
        return Err(refuse(&format!("{rows}×{columns} elements are too many")));
    };
    let is_swapped = kind.endianness() == Endianness::Big;
    let values = values(&mut file, kind_of, (count, size), is_swapped).map_err(|what| refuse(&what))?;
    let values = if is_fortran { by_rows(&values, rows, columns) } else { values };
    Matrix::new(rows, columns, values).map_err(|error| refuse(&error))
}

/// Converts a matrix that is stored column by column to row-major order.
fn by_rows(values: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut by_rows = vec![0.0; values.len()];
    // A few rows at a time, so that their lines stay in the cache.
    for first in (0..rows).step_by(ROWS_AT_ONCE) {
        for column in 0..columns {
            for row in first..(first + ROWS_AT_ONCE).min(rows) {
                by_rows[row * columns + column] = values[column * rows + row];
            }
        }
    }
    by_rows
}

const ROWS_AT_ONCE: usize = 32;

/// The interpretation of a file's elements.
#[derive(Clone, Copy)]
enum Kind {
    /// Elements in a format.
    Bits(Format),
    /// 16-bit unsigned integers, which have no format.
    Short,
    /// 64-bit integers.
    Long { is_signed: bool },
}

/// The number of bytes read at a time: whole elements of any size.
const CHUNK_BYTES: usize = 1 << 16;

/// Reads the values of `count` elements of `size` bytes each.
fn values(
    file: &mut impl Read,
    kind: Kind,
    (count, size): (usize, usize),
    is_swapped: bool,
) -> Result<Vec<f64>, String> {
    // A header may announce more elements than the file has.
    let mut values = Vec::with_capacity(count.min(CAPACITY));
    let mut bytes = vec![0; CHUNK_BYTES.min(count * size)];
    let mut rest = count * size;
    while rest > 0 {
        let chunk = &mut bytes[..CHUNK_BYTES.min(rest)];
        let read = values.len();
        file.read_exact(chunk).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => format!("it ends before element {count}: {read} were read"),
            _ => error.to_string(),
        })?;
        rest -= chunk.len();
        if is_swapped {
            chunk.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        match kind {
            Kind::Bits(format) => {
                if let Some(wide) = chunk.iter().find(|byte| format.bits() < 8 && u64::from(**byte) > format.mask()) {
                    return Err(format!("{wide:#x} is wider than {format}, which has {} bits", format.bits()));
                }
                Matrix::decode(format, chunk, &mut values);
            }
            Kind::Short => values.extend(chunk.as_chunks().0.iter().map(|bytes| f64::from(u16::from_le_bytes(*bytes)))),
            Kind::Long { is_signed } => {
                for bytes in chunk.as_chunks().0 {
                    let bits = u64::from_le_bytes(*bytes);
                    let value = if is_signed { i128::from(bits.cast_signed()) } else { i128::from(bits) };
                    let magnitude = value.unsigned_abs();
                    if magnitude.checked_shr(magnitude.trailing_zeros()).unwrap_or(0) >> f64::MANTISSA_DIGITS != 0 {
                        return Err(format!("{value} has more bits than f64, in which values are read"));
                    }
                    values.push(value as f64);
                }
            }
        }
    }
    Ok(values)
}

/// The maximum capacity reserved before elements are read.
const CAPACITY: usize = 1 << 24;

/// Returns the bytes of a NumPy file that holds D: as values of the narrowest type that holds its format, or as its
/// bits.
pub(crate) fn write(d: &Elements, rows: usize, columns: usize, as_bits: bool) -> Vec<u8> {
    let shape = [rows as u64, columns as u64];
    let format = d.format();
    let mut bytes = Vec::new();
    macro_rules! written {
        ($type:ty, $of:expr) => {{
            let mut writer = npyz::WriteOptions::<$type>::new()
                .default_dtype()
                .shape(&shape)
                .writer(&mut bytes)
                .begin_nd()
                .expect("a vector takes every byte");
            writer.extend(d.iter().map($of)).expect("a vector takes every byte");
            writer.finish().expect("every element was written");
        }};
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "bits of the format's own width")]
    match (as_bits, format.storage_bytes()) {
        (true, 1) => written!(u8, |bits| bits as u8),
        (true, 2) => written!(u16, |bits| bits as u16),
        (true, 4) => written!(u32, |bits| bits as u32),
        (true, _) => written!(u64, |bits| bits),
        (false, _) if format == Format::S32 => written!(i32, |bits| bits as u32 as i32),
        (false, _) if format == Format::U32 => written!(u32, |bits| bits as u32),
        (false, _) if format == Format::F64 => written!(f64, f64::from_bits),
        (false, _) if format == Format::F32 => written!(f32, |bits| f32::from_bits(bits as u32)),
        (false, _) if format == Format::F16 => {
            written!(npyz::half::f16, |bits| npyz::half::f16::from_bits(bits as u16))
        }
        // The values of every other format are exact in f32.
        (false, _) => written!(f32, |bits| format.to_f64(bits) as f32),
    }
    bytes
}
