use crate::{Error, Format, Operation};

/// Elements of one format as bits, each in the fewest whole bytes that hold it (1, 2, 4 or 8), little-endian.
///
/// A 4-bit or 6-bit element takes one byte whose unused high bits are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elements {
    format: Format,
    bytes: Vec<u8>,
}

impl Elements {
    /// Creates `len` elements whose bits are all zero.
    #[must_use]
    pub fn zeros(format: Format, len: usize) -> Self {
        Self { format, bytes: vec![0; len * format.storage_bytes()] }
    }

    /// Creates elements from their bits, in order; bits above the format's width are dropped.
    #[must_use]
    pub fn from_bits(format: Format, bits: impl IntoIterator<Item = u64>) -> Self {
        let mut elements = Self { format, bytes: Vec::new() };
        let mut some = [0; 64];
        let mut count = 0;
        for bits in bits {
            some[count] = bits;
            count += 1;
            if count == some.len() {
                elements.extend_from_slice(&some);
                count = 0;
            }
        }
        elements.extend_from_slice(&some[..count]);
        elements
    }

    /// Creates elements from their bits in slices, one after another; bits above the format's width are dropped.
    ///
    /// ```
    /// use mxprobe_api::{Elements, Format};
    ///
    /// let whole = Elements::from_bits(Format::E4M3, [1, 2, 0x103]);
    /// assert_eq!(Elements::from_slices(Format::E4M3, [&[1, 2][..], &[], &[3]]), whole);
    /// ```
    #[must_use]
    pub fn from_slices<'a>(format: Format, slices: impl IntoIterator<Item = &'a [u64]>) -> Self {
        let mut slices = slices.into_iter().peekable();
        // Often all of them are of one length.
        let count = slices.peek().map_or(0, |first| first.len()) * slices.size_hint().0;
        let mut elements = Self { format, bytes: Vec::with_capacity(count * format.storage_bytes()) };
        slices.for_each(|bits| elements.extend_from_slice(bits));
        elements
    }

    /// Appends elements; bits above the format's width are dropped.
    #[expect(clippy::cast_possible_truncation, reason = "the mask leaves no more bits than are stored")]
    pub fn extend_from_slice(&mut self, bits: &[u64]) {
        let (bytes, mask) = (&mut self.bytes, self.format.mask());
        match self.format.storage_bytes() {
            1 => append(bytes, bits, |bits| [(bits & mask) as u8]),
            2 => append(bytes, bits, |bits| ((bits & mask) as u16).to_le_bytes()),
            4 => append(bytes, bits, |bits| ((bits & mask) as u32).to_le_bytes()),
            _ => append(bytes, bits, |bits| (bits & mask).to_le_bytes()),
        }
    }

    /// Creates elements from their storage bytes.
    ///
    /// # Errors
    /// If the length is not a multiple of the format's storage size, or a narrow element has bits set above its width.
    pub fn from_bytes(format: Format, bytes: Vec<u8>) -> Result<Self, Error> {
        let size = format.storage_bytes();
        if !bytes.len().is_multiple_of(size) {
            return Err(Error::invalid(format!(
                "{} bytes are not a whole number of {format} elements of {size} bytes",
                bytes.len()
            )));
        }
        if format.bits() < 8
            && let Some(byte) = bytes.iter().find(|byte| u64::from(**byte) > format.mask())
        {
            return Err(Error::invalid(format!(
                "{byte:#04x} is wider than {format}, which has {} bits",
                format.bits()
            )));
        }
        Ok(Self { format, bytes })
    }

    /// The format of every element.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.format.storage_bytes()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The storage bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the storage bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The storage bytes, writable in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Returns the bits of element `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        let size = self.format.storage_bytes();
        let bytes = &self.bytes[index * size..][..size];
        match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        }
    }

    /// Sets the bits of element `index`; bits above the format's width are dropped.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[inline]
    pub fn set(&mut self, index: usize, bits: u64) {
        let size = self.format.storage_bytes();
        let bits = (bits & self.format.mask()).to_le_bytes();
        self.bytes[index * size..][..size].copy_from_slice(&bits[..size]);
    }

    /// Appends one element; bits above the format's width are dropped.
    #[inline]
    pub fn push(&mut self, bits: u64) {
        let size = self.format.storage_bytes();
        let bits = (bits & self.format.mask()).to_le_bytes();
        self.bytes.extend_from_slice(&bits[..size]);
    }

    /// Returns the bits of every element in order.
    #[must_use]
    pub fn to_bits(&self) -> Vec<u64> {
        self.iter().collect()
    }

    /// Iterates over the bits of every element in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// Appends the storage bytes of elements.
fn append<const SIZE: usize>(bytes: &mut Vec<u8>, bits: &[u64], storage: impl Fn(u64) -> [u8; SIZE]) {
    let start = bytes.len();
    bytes.resize(start + bits.len() * SIZE, 0);
    for (slot, bits) in bytes[start..].as_chunks_mut().0.iter_mut().zip(bits) {
        *slot = storage(*bits);
    }
}

/// The inputs of many independent multiplies D = A·B + C of one operation, as bits.
///
/// Tile `t` of A is the `m·k` elements from `t·m·k`, row-major; B is `k×n`, C is `m×n`. A block-scaled operation has
/// `scale_a`, `m × ⌈k/block⌉` per tile, and `scale_b`, `⌈k/block⌉ × n` per tile, both row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileBatch {
    /// The number of tiles.
    pub tiles: usize,
    /// A, `m×k` per tile.
    pub a: Elements,
    /// B, `k×n` per tile.
    pub b: Elements,
    /// C, `m×n` per tile.
    pub c: Elements,
    /// Scales of A, for an operation that has them.
    pub scale_a: Option<Elements>,
    /// Scales of B, for an operation that has them.
    pub scale_b: Option<Elements>,
}

impl TileBatch {
    /// Creates a batch whose elements are all +0, and whose scales, if any, are 1.
    #[must_use]
    pub fn zeros(operation: &Operation, tiles: usize) -> Self {
        let id = &operation.id;
        let (m, n, k) = id.shape.sizes();
        let scales = id.block_scale().map(|scale| {
            let blocks = k.div_ceil(scale.block);
            let ones = |len| Elements::from_bits(scale.format, (0..len).map(|_| scale.format.one()));
            (ones(tiles * m * blocks), ones(tiles * blocks * n))
        });
        let (scale_a, scale_b) = scales.unzip();
        Self {
            tiles,
            a: Elements::zeros(id.a, tiles * m * k),
            b: Elements::zeros(id.b, tiles * k * n),
            c: Elements::zeros(id.c, tiles * m * n),
            scale_a,
            scale_b,
        }
    }

    /// Checks formats and lengths against the operation.
    ///
    /// # Errors
    /// The first operand that does not fit, with what was found and what was expected.
    pub fn validate(&self, operation: &Operation) -> Result<(), Error> {
        let id = &operation.id;
        let (m, n, k) = id.shape.sizes();
        let check = |name: &str, elements: &Elements, format: Format, per_tile: usize| {
            if elements.format() != format {
                return Err(Error::invalid(format!("{name} holds {}, but {id} takes {format}", elements.format())));
            }
            let wanted = self.tiles * per_tile;
            if elements.len() != wanted {
                return Err(Error::invalid(format!(
                    "{name} holds {} elements, but {} tiles of {id} take {wanted}",
                    elements.len(),
                    self.tiles
                )));
            }
            Ok(())
        };
        check("a", &self.a, id.a, m * k)?;
        check("b", &self.b, id.b, k * n)?;
        check("c", &self.c, id.c, m * n)?;
        match (id.block_scale(), &self.scale_a, &self.scale_b) {
            (None, None, None) => Ok(()),
            (None, ..) => Err(Error::invalid(format!("{id} takes no block scales"))),
            (Some(scale), Some(scale_a), Some(scale_b)) => {
                let blocks = k.div_ceil(scale.block);
                check("scale_a", scale_a, scale.format, m * blocks)?;
                check("scale_b", scale_b, scale.format, blocks * n)
            }
            (Some(_), ..) => Err(Error::invalid(format!("{id} takes scale_a and scale_b"))),
        }
    }
}
