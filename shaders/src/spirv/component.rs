//! Components of cooperative matrices and scalars.

use mxprobe_api::Format;

/// A component type of a cooperative matrix that has a [`Format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Component {
    /// IEEE 754 binary16.
    F16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// `SPV_KHR_bfloat16`.
    Bf16,
    /// `SPV_EXT_float8`.
    E4m3,
    /// `SPV_EXT_float8`.
    E5m2,
    /// Signed, 8 bits.
    S8,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 16 bits.
    S16,
    /// Signed, 32 bits.
    S32,
    /// Unsigned, 32 bits.
    U32,
}

impl Component {
    /// The format of an element.
    #[must_use]
    pub fn format(self) -> Format {
        match self {
            Self::F16 => Format::F16,
            Self::F32 => Format::F32,
            Self::F64 => Format::F64,
            Self::Bf16 => Format::BF16,
            Self::E4m3 => Format::E4M3,
            Self::E5m2 => Format::E5M2,
            Self::S8 => Format::S8,
            Self::U8 => Format::U8,
            Self::S16 => Format::S16,
            Self::S32 => Format::S32,
            Self::U32 => Format::U32,
        }
    }

    /// The number of bytes of an element in a buffer.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.format().bits() / 8
    }

    pub(super) fn is_signed_integer(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32)
    }
}
