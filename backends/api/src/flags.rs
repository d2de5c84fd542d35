use std::fmt;

use crate::{Device, Elements, Error, Scalar, ScalarFunction, scalar::claimed};

/// A status flag: one kind of exception that was raised (IEEE 754-2019, 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// No useful result (7.2).
    Invalid,
    /// A subnormal operand. Only x86 has this flag (*specified*: Intel SDM volume 1, 4.9.1.2).
    Denormal,
    /// An infinite result of finite operands (7.3).
    DivideByZero,
    /// A result beyond the format's range (7.4).
    Overflow,
    /// A tiny result that is inexact (7.5).
    Underflow,
    /// A result that was rounded (7.6).
    Inexact,
}

impl Flag {
    /// Every flag, in the order of x86's MXCSR, starting with bit 0 of [`Flags::bits`].
    pub const ALL: [Self; 6] =
        [Self::Invalid, Self::Denormal, Self::DivideByZero, Self::Overflow, Self::Underflow, Self::Inexact];

    /// Its name, as in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Denormal => "denormal",
            Self::DivideByZero => "divide by zero",
            Self::Overflow => "overflow",
            Self::Underflow => "underflow",
            Self::Inexact => "inexact",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Invalid => 1,
            Self::Denormal => 2,
            Self::DivideByZero => 4,
            Self::Overflow => 8,
            Self::Underflow => 16,
            Self::Inexact => 32,
        }
    }
}

/// A set of raised status flags.
///
/// ```
/// use mxprobe_api::{Flag, Flags};
/// let flags = Flags::of(&[Flag::Overflow, Flag::Inexact]);
/// assert_eq!((flags.bits(), flags.to_string().as_str()), (0b10_1000, "overflow, inexact"));
/// assert_eq!((Flags::from_bits(0b10_1000), Flags::from_bits(64)), (Some(flags), None));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flags(u8);

impl Flags {
    /// Creates a set of exactly these flags.
    #[must_use]
    pub fn of(flags: &[Flag]) -> Self {
        Self(flags.iter().fold(0, |bits, flag| bits | flag.bit()))
    }

    /// Reads one bit per flag, in the order of [`Flag::ALL`] from the lowest; `None` if a higher bit is set.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        (bits < 64).then_some(Self(bits))
    }

    /// One bit per flag, in the order of [`Flag::ALL`] from the lowest.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether a flag is raised.
    #[must_use]
    pub fn has(self, flag: Flag) -> bool {
        self.0 & flag.bit() != 0
    }

    /// The same set without `flag`.
    #[must_use]
    pub fn without(self, flag: Flag) -> Self {
        Self(self.0 & !flag.bit())
    }

    /// The union of two sets.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The raised flags, in the order of [`Flag::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.into_iter().filter(move |flag| self.has(*flag))
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Flag::name).collect();
        f.write_str(if names.is_empty() { "none".to_owned() } else { names.join(", ") }.as_str())
    }
}

/// Scalar arithmetic whose status flags can be read; [`Scalars::flags`](crate::Scalars::flags) returns it.
pub trait StatusFlags: Send + Sync {
    /// Calls a function as [`Scalars::call`](crate::Scalars::call) does, lowering every flag before each call, and
    /// returns one element and the raised flags per call.
    ///
    /// Call [`call_with_flags`] instead, which validates.
    ///
    /// # Errors
    /// Whatever the driver or the device reports.
    fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error>;
}

/// The status flags of a device; `None` if they cannot be read.
#[must_use]
pub fn flags_of(device: &dyn Device) -> Option<&dyn StatusFlags> {
    device.scalars().and_then(|scalars| scalars.flags())
}

/// Like [`call`](crate::call), and also returns the status flags that each call raised.
///
/// # Errors
/// [`Error::is_unsupported`] if flags cannot be read; otherwise as for [`call`](crate::call).
pub fn call_with_flags(
    device: &dyn Device,
    scalar: &Scalar,
    function: ScalarFunction,
    operands: &Elements,
) -> Result<(Elements, Vec<Flags>), Error> {
    let (scalars, calls) = claimed(device, scalar, function, operands)?;
    let (selector, id) = (&device.info().selector, &scalar.id);
    let none = || Error::unsupported(format!("no flags can be read of {selector}"));
    let (results, flags) = scalars.flags().ok_or_else(none)?.call_with_flags(scalar, function, operands)?;
    if results.format() != function.result(id.format) || results.len() != calls || flags.len() != calls {
        return Err(Error::driver(format!(
            "{selector} returned {} elements of {} and {} sets of flags for {calls} calls of {function} of {id}",
            results.len(),
            results.format(),
            flags.len()
        )));
    }
    Ok((results, flags))
}
