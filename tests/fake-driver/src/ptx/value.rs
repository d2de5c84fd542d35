//! The operands of instructions: types, registers, constants, addresses.

/// The interpretation of an operand's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bits,
    Unsigned,
    Signed,
    /// f16, f32, f64.
    Float,
    Bfloat,
    Predicate,
}

/// A type of PTX, such as `.u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub kind: Kind,
    pub bits: u32,
}

impl Type {
    pub(crate) const PREDICATE: Self = Self { kind: Kind::Predicate, bits: 1 };
    pub(crate) const B32: Self = Self { kind: Kind::Bits, bits: 32 };
    pub(crate) const B64: Self = Self { kind: Kind::Bits, bits: 64 };
    pub(crate) const U16: Self = Self { kind: Kind::Unsigned, bits: 16 };
    pub(crate) const U32: Self = Self { kind: Kind::Unsigned, bits: 32 };
    pub(crate) const S32: Self = Self { kind: Kind::Signed, bits: 32 };
    pub(crate) const F32: Self = Self { kind: Kind::Float, bits: 32 };

    pub(crate) fn parse(word: &str) -> Option<Self> {
        let (kind, bits) = match word {
            "pred" => (Kind::Predicate, 1),
            "f16" => (Kind::Float, 16),
            "f32" => (Kind::Float, 32),
            "f64" => (Kind::Float, 64),
            "bf16" => (Kind::Bfloat, 16),
            _ => {
                let kind = match word.as_bytes().first()? {
                    b'b' => Kind::Bits,
                    b'u' => Kind::Unsigned,
                    b's' => Kind::Signed,
                    _ => return None,
                };
                (kind, word[1..].parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?)
            }
        };
        Some(Self { kind, bits })
    }

    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    pub(crate) fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    pub(crate) fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Bits | Kind::Unsigned | Kind::Signed)
    }

    /// Extends a value to 64 bits, with its sign if the type is signed.
    pub(crate) fn extend(self, bits: u64) -> u64 {
        let free = 64 - self.bits;
        if self.is_signed() { ((bits << free).cast_signed() >> free).cast_unsigned() } else { bits & self.mask() }
    }
}

/// A value that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Register(usize),
    Constant(u64),
    Special(Special),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// `%tid`, `%ntid`, `%ctaid`, `%nctaid`, each .x, .y, .z.
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    /// `%smid`.
    Multiprocessor,
    Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    Parameter,
}

/// A register or a constant, and an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub base: Source,
    pub offset: i64,
}
