//! Matrices in NumPy's files.

use std::{fs::File, io::BufReader, path::Path};

use mxprobe::gemm::{Matrix, value};
use mxprobe_api::{Elements, Format};
use npyz::{DType, NpyFile, Order, TypeChar, WriterBuilder};

use super::failure::Failure;

/// Reads a matrix: floats and integers are values; unsigned integers of a floating format's size are its bits.
///
/// One dimension is a row of A or C, and a column of B.
pub(crate) fn read(path: &Path, format: Format, is_column: bool) -> Result<Matrix, Failure> {
    let refuse = |what: &dyn std::fmt::Display| Failure::usage(format!("`{}`: {what}", path.display()));
    let file = File::open(path).map_err(|error| refuse(&error))?;
    let npy = NpyFile::new(BufReader::new(file)).map_err(|error| refuse(&format!("no NumPy file: {error}")))?;
    let shape: Vec<usize> = npy.shape().iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect();
    let (rows, columns) = match *shape {
        [] => (1, 1),
        [length] if is_column => (length, 1),
        [length] => (1, length),
        [rows, columns] => (rows, columns),
        _ => return Err(refuse(&format!("{} dimensions, where a matrix has 2", shape.len()))),
    };
    let is_fortran = npy.order() == Order::Fortran && shape.len() == 2;
    let dtype = npy.dtype();
    let DType::Plain(kind) = &dtype else { return Err(refuse(&format!("elements of {}", dtype.descr()))) };
    let size = usize::try_from(kind.size_field()).unwrap_or(0);
    let is_bits = kind.type_char() == TypeChar::Uint && !format.is_integer();
    if is_bits && size != format.storage_bytes() {
        return Err(refuse(&format!(
            "unsigned integers of {size} bytes, where the bits of {format} take {}",
            format.storage_bytes()
        )));
    }
    let bad = |error: std::io::Error| refuse(&error);
    macro_rules! values {
        (whole $type:ty) => {{
            let values = npy.data::<$type>().map_err(|error| refuse(&error))?;
            let values = values.collect::<Result<Vec<$type>, _>>().map_err(bad)?;
            let is_wide = |value: &&$type| {
                let magnitude = i128::from(**value).unsigned_abs();
                magnitude.checked_shr(magnitude.trailing_zeros()).unwrap_or(0) >> f64::MANTISSA_DIGITS != 0
            };
            if let Some(value) = values.iter().find(is_wide) {
                return Err(refuse(&format!("{value} has more bits than f64, in which values are read")));
            }
            values.into_iter().map(|value| value as f64).collect()
        }};
        (exact $type:ty) => {
            npy.data::<$type>()
                .map_err(|error| refuse(&error))?
                .map(|value| value.map(f64::from))
                .collect::<Result<Vec<f64>, _>>()
                .map_err(bad)?
        };
        (nan $type:ty, $of:expr) => {
            npy.data::<$type>()
                .map_err(|error| refuse(&error))?
                // By their bits: a conversion would make every NaN a quiet one.
                .map(|found| found.map(|found| value($of, u64::from(found.to_bits()))))
                .collect::<Result<Vec<f64>, _>>()
                .map_err(bad)?
        };
        (bits $type:ty) => {
            npy.data::<$type>()
                .map_err(|error| refuse(&error))?
                .map(|bits| bits.map(|bits| u64::from(bits)))
                .collect::<Result<Vec<u64>, _>>()
                .map_err(bad)?
        };
    }
    let values = if is_bits {
        let bits = match size {
            1 => values!(bits u8),
            2 => values!(bits u16),
            4 => values!(bits u32),
            _ => values!(bits u64),
        };
        if let Some(wide) = bits.iter().find(|bits| **bits > format.mask()) {
            return Err(refuse(&format!("{wide:#x} is wider than {format}, which has {} bits", format.bits())));
        }
        bits.into_iter().map(|bits| value(format, bits)).collect()
    } else {
        match (kind.type_char(), size) {
            (TypeChar::Float, 2) => values!(nan npyz::half::f16, Format::F16),
            (TypeChar::Float, 4) => values!(nan f32, Format::F32),
            (TypeChar::Float, 8) => values!(exact f64),
            (TypeChar::Int, 1) => values!(exact i8),
            (TypeChar::Int, 2) => values!(exact i16),
            (TypeChar::Int, 4) => values!(exact i32),
            (TypeChar::Int, 8) => values!(whole i64),
            (TypeChar::Uint, 1) => values!(exact u8),
            (TypeChar::Uint, 2) => values!(exact u16),
            (TypeChar::Uint, 4) => values!(exact u32),
            (TypeChar::Uint, 8) => values!(whole u64),
            _ => return Err(refuse(&format!("elements of {}", dtype.descr()))),
        }
    };
    if values.len() != rows.saturating_mul(columns) {
        return Err(refuse(&format!("{} elements, where {rows}×{columns} are announced", values.len())));
    }
    let values = if is_fortran {
        (0..rows * columns).map(|at| values[at % columns * rows + at / columns]).collect()
    } else {
        values
    };
    Matrix::new(rows, columns, values).map_err(|error| refuse(&error))
}

/// The bytes of a NumPy file that holds D: as values of the narrowest type that holds its format, or as its bits.
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
        // Every other format's values are f32's.
        (false, _) => written!(f32, |bits| format.to_f64(bits) as f32),
    }
    bytes
}
