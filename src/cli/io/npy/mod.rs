//! Matrices in NumPy files.

mod header;

use std::{
    fs::File,
    io::{BufReader, ErrorKind, Read},
    path::Path,
};

use crate::gemm::{Matrix, Rounded, Scaling, Split, words};
use mxprobe_api::{Elements, Format, Rounding};

use self::header::Header;
use crate::cli::failure::Failure;

/// Reads a matrix: floats and integers are values; unsigned integers of a floating-point format's size are its bits.
///
/// A one-dimensional array is a row of A or C, and a column of B.
pub(crate) fn read(path: &Path, format: Format, is_column: bool) -> Result<Matrix, Failure> {
    Array::open(path, format)?.matrix(is_column)
}

/// The rows of an array, to be read as elements of a format, some at a time.
pub(crate) struct Rows<'a> {
    /// The number of rows, and the length of each.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The number of values that were rounded to the format, to nearest even.
    pub(crate) rounded: usize,
    format: Format,
    from: Stored<'a>,
}

/// Where elements come from.
enum Stored<'a> {
    /// A file of the elements' bits, of which so many elements were read.
    File(Array<'a>, usize),
    /// Values that were rounded, of which so many rows were read.
    Rounded(Elements, usize),
}

impl<'a> Rows<'a> {
    /// Opens an array whose first dimension counts rows, of one dimension or of two: one element or several in each row.
    /// Elements that are bits, or values of exactly this format, are taken as they are; other values are rounded.
    pub(crate) fn open(path: &'a Path, format: Format, dimensions: usize) -> Result<Self, Failure> {
        let array = Array::open(path, format)?;
        if array.shape.len() != dimensions {
            let needed = if dimensions == 1 { "1 dimension is needed: n" } else { "2 dimensions are needed: n×k" };
            return Err(array.refuse(&format!("shape {}, but {needed}", array.shown())));
        }
        array.count()?;
        let (rows, columns) = (array.shape[0], array.shape.get(1).copied().unwrap_or(1));
        if !array.is_by_columns && matches!(array.kind, Kind::Bits(stored) if stored == format) {
            return Ok(Self { rows, columns, rounded: 0, format, from: Stored::File(array, 0) });
        }
        let matrix = array.matrix(true)?;
        let split = Split { words: 1, rounding: Rounding::NearestEven, scaling: Scaling::None, lift_bits: 0 };
        let Rounded { mut words, inexact, .. } = words(&matrix, format, &split, true);
        Ok(Self { rows, columns, rounded: inexact[0], format, from: Stored::Rounded(words.swap_remove(0), 0) })
    }

    /// Reads the next rows, of `k` elements each: shorter ones are padded with +0. What `into` held is lost.
    pub(crate) fn read(&mut self, rows: usize, k: usize, into: &mut Elements) -> Result<(), Failure> {
        let size = self.format.storage_bytes();
        let mut bytes = std::mem::replace(into, Elements::zeros(self.format, 0)).into_bytes();
        let is_padded = self.columns < k;
        bytes.resize(rows * self.columns * size, 0);
        match &mut self.from {
            Stored::File(array, read) => array.elements(&mut bytes, read)?,
            Stored::Rounded(elements, read) => {
                let of_row = self.columns * size;
                bytes.copy_from_slice(&elements.bytes()[*read * of_row..][..rows * of_row]);
                *read += rows;
            }
        }
        if is_padded {
            let mut padded = vec![0; rows * k * size];
            let found = bytes.chunks_exact((self.columns * size).max(1));
            found
                .zip(padded.chunks_exact_mut(k * size))
                .for_each(|(row, place)| place[..row.len()].copy_from_slice(row));
            bytes = padded;
        }
        *into = match (Elements::from_bytes(self.format, bytes), &self.from) {
            (Ok(elements), _) => elements,
            (Err(error), Stored::File(array, _)) => return Err(array.refuse(&error)),
            (Err(error), Stored::Rounded(..)) => return Err(Failure::usage(error.to_string())),
        };
        Ok(())
    }
}

/// An open file whose header was read.
struct Array<'a> {
    path: &'a Path,
    file: BufReader<File>,
    shape: Vec<usize>,
    /// Whether this is a matrix whose columns, not rows, are stored one after another.
    is_by_columns: bool,
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
        let header = Header::read(&mut file).map_err(|what| refuse(&format!("not a NumPy file: {what}")))?;
        let unsupported = || refuse(&format!("unsupported element type {}", header.descr));
        let (is_swapped, letter, size) = header.number().ok_or_else(unsupported)?;
        let is_bits = letter == 'u' && !format.is_integer();
        if is_bits && size != format.storage_bytes() {
            return Err(refuse(&format!(
                "unsigned integers of {size} bytes, but the bits of {format} take {}",
                format.storage_bytes()
            )));
        }
        let kind = match (letter, size) {
            ('u', _) if is_bits => Kind::Bits(format),
            // Floats are read by their bits: a conversion would turn signaling NaNs into quiet ones.
            ('f', 2) => Kind::Bits(Format::F16),
            ('f', 4) => Kind::Bits(Format::F32),
            ('f', 8) => Kind::Bits(Format::F64),
            ('i', 1) => Kind::Bits(Format::S8),
            ('i', 2) => Kind::Bits(Format::S16),
            ('i', 4) => Kind::Bits(Format::S32),
            ('u', 1) => Kind::Bits(Format::U8),
            ('u', 2) => Kind::Short,
            ('u', 4) => Kind::Bits(Format::U32),
            ('i', 8) => Kind::Long { is_signed: true },
            ('u', 8) => Kind::Long { is_signed: false },
            _ => return Err(unsupported()),
        };
        let Header { is_fortran, shape, .. } = header;
        let is_by_columns = is_fortran && shape.len() == 2;
        Ok(Self { path, file, shape, is_by_columns, kind, size, is_swapped })
    }

    fn refuse(&self, what: &dyn std::fmt::Display) -> Failure {
        refuse(self.path, what)
    }

    /// The shape for people: `3×4`.
    fn shown(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        if sizes.is_empty() { "()".to_owned() } else { sizes.join("×") }
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
        let values = if self.is_by_columns { by_rows(&values, rows, columns) } else { values };
        Matrix::new(rows, columns, values).map_err(|error| self.refuse(&error))
    }

    /// Reads the bits of the next elements, in their order in the file, after those that are `read`.
    fn elements(&mut self, into: &mut [u8], read: &mut usize) -> Result<(), Failure> {
        let mut length = 0;
        while length < into.len() {
            match self.file.read(&mut into[length..]) {
                Ok(0) => {
                    let (count, found) = (self.count()?, *read + length / self.size);
                    return Err(self.refuse(&format!("it ends before element {count}: {found} were read")));
                }
                Ok(more) => length += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.refuse(&error)),
            }
        }
        *read += length / self.size;
        if self.is_swapped {
            into.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
        }
        Ok(())
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
                if format.bits() < 8
                    && let Some(wide) = chunk.iter().find(|byte| u64::from(**byte) > format.mask())
                {
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
    let mut written = Written::new(d.format(), &[rows, columns], as_bits);
    written.extend(d);
    written.bytes
}

/// A NumPy file that is made some elements at a time.
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// Whether elements are stored as f32, because no type of NumPy's is their format.
    widens: bool,
}

impl Written {
    /// Begins an array of any shape: of values of the narrowest type that holds the format, or of its bits.
    pub(crate) fn new(format: Format, shape: &[usize], as_bits: bool) -> Self {
        let (element, widens) = match (as_bits, format.storage_bytes()) {
            (true, 1) => ("|u1", false),
            (true, 2) => ("<u2", false),
            (true, 4) => ("<u4", false),
            (true, _) => ("<u8", false),
            (false, _) => match format {
                Format::S32 => ("<i4", false),
                Format::U32 => ("<u4", false),
                Format::F64 => ("<f8", false),
                Format::F32 => ("<f4", false),
                Format::F16 => ("<f2", false),
                // The values of every other format are exact in f32.
                _ => ("<f4", true),
            },
        };
        Self { bytes: Header::written(element, shape), widens }
    }

    /// Appends elements.
    #[expect(clippy::cast_possible_truncation, reason = "values are exact in f32 if they are stored so")]
    pub(crate) fn extend(&mut self, d: &Elements) {
        if self.widens {
            let format = d.format();
            self.bytes.extend(d.iter().flat_map(|bits| (format.to_f64(bits) as f32).to_le_bytes()));
        } else {
            self.bytes.extend_from_slice(d.bytes());
        }
    }
}
