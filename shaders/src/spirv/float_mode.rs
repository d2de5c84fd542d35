//! The modes of `SPV_KHR_float_controls`.

use ::spirv::{Capability, ExecutionMode};

/// An execution mode of `SPV_KHR_float_controls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FloatMode {
    /// Subnormals are kept.
    DenormPreserve,
    /// Subnormals become zeros.
    DenormFlush,
    /// Rounds to nearest, ties to even.
    RoundToNearestEven,
    /// Rounds toward zero.
    RoundTowardZero,
    /// Signs of zeros, infinities and NaN are kept.
    SignedZeroInfNanPreserve,
}

impl FloatMode {
    /// The modes in which a matrix operation is offered.
    pub const OF_MATRICES: [Self; 4] =
        [Self::DenormPreserve, Self::DenormFlush, Self::RoundToNearestEven, Self::RoundTowardZero];

    /// Every mode.
    pub const ALL: [Self; 5] = [
        Self::DenormPreserve,
        Self::DenormFlush,
        Self::RoundToNearestEven,
        Self::RoundTowardZero,
        Self::SignedZeroInfNanPreserve,
    ];

    /// The qualifier in an operation's id.
    #[must_use]
    pub fn qualifier(self) -> &'static str {
        match self {
            Self::DenormPreserve => "denormpreserve",
            Self::DenormFlush => "denormflush",
            Self::RoundToNearestEven => "rte",
            Self::RoundTowardZero => "rtz",
            Self::SignedZeroInfNanPreserve => "szinfnan",
        }
    }

    /// The words in the id of scalar arithmetic.
    ///
    /// `DenormFlushToZero` applies to every value that enters a shader or is produced by an instruction (*specified*:
    /// `SPV_KHR_float_controls`), so to operands and results.
    #[must_use]
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::DenormPreserve => &["preserve"],
            Self::DenormFlush => &["ftz", "daz"],
            Self::RoundToNearestEven => &["rne"],
            Self::RoundTowardZero => &["rz"],
            Self::SignedZeroInfNanPreserve => &["szinfnan"],
        }
    }

    /// The SPIR-V execution mode.
    pub(super) fn execution_mode(self) -> ExecutionMode {
        match self {
            Self::DenormPreserve => ExecutionMode::DenormPreserve,
            Self::DenormFlush => ExecutionMode::DenormFlushToZero,
            Self::RoundToNearestEven => ExecutionMode::RoundingModeRTE,
            Self::RoundTowardZero => ExecutionMode::RoundingModeRTZ,
            Self::SignedZeroInfNanPreserve => ExecutionMode::SignedZeroInfNanPreserve,
        }
    }

    /// The capability that the mode needs.
    pub(super) fn capability(self) -> Capability {
        match self {
            Self::DenormPreserve => Capability::DenormPreserve,
            Self::DenormFlush => Capability::DenormFlushToZero,
            Self::RoundToNearestEven => Capability::RoundingModeRTE,
            Self::RoundTowardZero => Capability::RoundingModeRTZ,
            Self::SignedZeroInfNanPreserve => Capability::SignedZeroInfNanPreserve,
        }
    }
}

/// A mode, and the widths in bits for which a kernel requests it.
pub type Asked = (FloatMode, Vec<u32>);
