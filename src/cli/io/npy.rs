//! Matrices in NumPy files.

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::Path,
};

use crate::gemm::{Matrix, Rounded, Scaling, Split, words};
use mxprobe_api::{Elements, Format, Rounding};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, WriterBuilder};

use crate::cli::failure::Failure;

/// Reads a matrix: floats and integers are values; unsigned integers of a floating-point format's size are its bits.
///
/// A one-dimensional array is a row of A or C, and a column of B.
pub(crate) fn read(path: &Path, format: Format, is_column: bool) -> Result<Matrix, Failure> {
    Array::open(path, format)?.matrix(is_column)
}

/// The rows of an array as elements of a format.
pub(crate) struct Rows {
    /// The elements, row after row.
    pub(crate) elements: Elements,
    /// The number of rows, and the length of each.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The number of values that were rounded to the format, to nearest even.
    pub(crate) rounded: usize,
}

/// Reads an array whose first dimension counts rows, of one dimension or of two: one element or several in each row.
/// Elements that are bits, or values of exactly this format, are taken as they are; other values are rounded.
pub(crate) fn read_rows(path: &Path, format: Format, dimensions: usize) -> Result<Rows, Failure> {
    let array = Array::open(path, format)?;
    if array.shape.len() != dimensions {
        let needed = if dimensions == 1 { "1 dimension is needed: n" } else { "2 dimensions are needed: n×k" };
        return Err(array.refuse(&format!("shape {}, but {needed}", array.shown())));
    }
    let (rows, columns) = (array.shape[0], array.shape.get(1).copied().unwrap_or(1));
    if !array.is_fortran() && matches!(array.kind, Kind::Bits(stored) if stored == format) {
        return Ok(Rows { elements: array.elements(format)?, rows, columns, rounded: 0 });
    }
    let matrix = array.matrix(true)?;
    let split = Split { words: 1, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
    let Rounded { mut words, inexact, .. } = words(&matrix, format, &split, true);
    Ok(Rows { elements: words.swap_remove(0), rows, columns, rounded: inexact[0] })
}

/// An open file whose header was read.
struct Array<'a> {
    path: &'a Path,
    file: BufReader<File>,
    shape: Vec<usize>,
    order: Order,
    kind: Kind,
    /// The size of an element.
    size: usize,
    is_swapped: bool,
}

impl<'a> Array<'a> {
    /// Opens a file with elements that a format can be read from.
    fn open(path: &'a Path, format: Format) -> Result<Self, Failure> {
        let refuse = |what: &dyn std::fmt::Display| refuse(path, what);
        let mut file = BufReader::new(File::open(path).map_err(|error| refuse(&error))?);
        let npy = NpyHeader::from_reader(&mut file).map_err(|error| refuse(&format!("not a NumPy file: {error}")))?;
        let shape: Vec<usize> = npy.shape().iter().map(|size| usize::try_from(*size).unwrap_or(usize::MAX)).collect();
        let dtype = npy.dtype();
        let unsupported = || refuse(&format!("unsupported element type {}", dtype.descr()));
        let DType::Plain(of) = &dtype else { return Err(unsupported()) };
        let size = usize::try_from(of.size_field()).unwrap_or(0);
        let is_bits = of.type_char() == TypeChar::Uint && !format.is_integer();
        if is_bits && size != format.storage_bytes() {
            return Err(refuse(&format!(
                "unsigned integers of {size} bytes, but the bits of {format} take {}",
                format.storage_bytes()
            )));
        }
        let kind = match (of.type_char(), size) {
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
            _ => return Err(unsupported()),
        };
        let is_swapped = of.endianness() == Endianness::Big;
        Ok(Self { path, file, shape, order: npy.order(), kind, size, is_swapped })
    }

    fn refuse(&self, what: &dyn std::fmt::Display) -> Failure {
        refuse(self.path, what)
    }

    /// The shape for people: `3×4`.
    fn shown(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        if sizes.is_empty() { "()".to_owned() } else { sizes.join("×") }
    }

    fn is_fortran(&self) -> bool {
        self.order == Order::Fortran && self.shape.len() == 2
    }

    /// The number of elements.
    fn count(&self) -> Result<usize, Failure> {
        let count = self.shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        count
            .filter(|count| count.checked_mul(8).is_some())
            .ok_or_else(|| self.refuse(&format!("{} elements are too many", self.shown())))
    }

    /// Reads the values of a matrix.
    fn matrix(mut self, is_column: bool) -> Result<Matrix, Failure> {
        let (rows, columns) = match *self.shape {
            [] => (1, 1),
            [length] if is_column => (length, 1),
            [length] => (1, length),
            [rows, columns] => (rows, columns),
            _ => return Err(self.refuse(&format!("{} dimensions, but a matrix has 2", self.shape.len()))),
        };
        let count = self.count()?;
        let values = values(&mut self.file, self.kind, (count, self.size), self.is_swapped);
        let values = values.map_err(|what| self.refuse(&what))?;
        let values = if self.is_fortran() { by_rows(&values, rows, columns) } else { values };
        Matrix::new(rows, columns, values).map_err(|error| self.refuse(&error))
    }

    /// Reads elements that are stored as the bits of a format, in their order in the file.
    fn elements(mut self, format: Format) -> Result<Elements, Failure> {
        let count = self.count()?;
        let length = count * self.size;
        let mut bytes = Vec::with_capacity(length.min(CAPACITY));
        let read = (&mut self.file).take(length as u64).read_to_end(&mut bytes);
        read.map_err(|error| self.refuse(&error))?;
        if bytes.len() < length {
            return Err(self.refuse(&format!("it ends before element {count}: {} were read", bytes.len() / self.size)));
        }
        if self.is_swapped {
            bytes.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
        }
        Elements::from_bytes(format, bytes).map_err(|error| self.refuse(&error))
    }
}

fn refuse(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("`{}`: {what}", path.display()))
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

/// Returns the bytes of a NumPy file that holds the matrix D: as values of the narrowest type that holds its format, or
/// as its bits.
pub(crate) fn write(d: &Elements, rows: usize, columns: usize, as_bits: bool) -> Vec<u8> {
    write_shaped(d, &[rows as u64, columns as u64], as_bits)
}

/// Like [`write`], for an array of any shape.
pub(crate) fn write_shaped(d: &Elements, shape: &[u64], as_bits: bool) -> Vec<u8> {
    let format = d.format();
    let mut bytes = Vec::new();
    macro_rules! written {
        ($type:ty, $of:expr) => {{
            let mut writer = npyz::WriteOptions::<$type>::new()
                .default_dtype()
                .shape(shape)
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
