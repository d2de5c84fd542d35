//! Compute capabilities, PTX versions, and which code loads on which device.

use std::fmt;

/// A device's compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    /// The number before the dot.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
}

impl Capability {
    /// A capability, such as 9.0.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The architecture as ptxas names it, without a suffix: `sm_90`.
    #[must_use]
    pub fn architecture(self) -> String {
        format!("sm_{}{}", self.major, self.minor)
    }

    /// The architecture with the suffix for architecture-specific instructions, if it has any: `sm_90a`, `sm_89`.
    #[must_use]
    pub fn fingerprint(self) -> String {
        // PTX ISA 9.0, 11.1.2: architecture-specific targets begin with sm_90.
        let suffix = if self.major >= 9 { "a" } else { "" };
        format!("{}{suffix}", self.architecture())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A version of the PTX language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PtxVersion {
    /// The number before the dot.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
}

impl PtxVersion {
    /// A version, such as 7.0.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// The latest version that the driver of a CUDA release (13000 is 13.0) is known to accept.
    ///
    /// The release notes of the PTX ISA, table 63; a later driver accepts every earlier version.
    #[must_use]
    pub fn accepted_by(cuda: i32) -> Self {
        let (major, minor) = (u32::try_from(cuda / 1000).unwrap_or(0), u32::try_from(cuda % 1000 / 10).unwrap_or(0));
        match (major, minor) {
            (..=10, _) => Self::new(6, 4),
            (11, minor) => Self::new(7, minor.min(8)),
            // 12.6 added no version, so that 12.7 has 8.6.
            (12, minor) => Self::new(8, if minor <= 5 { minor } else { (minor - 1).min(8) }),
            (major, minor) => Self::new(major - 4, minor),
        }
    }
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The directives at the head of a kernel: the lowest target and version that its instruction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// `.target`, such as `sm_80` or `sm_90a`.
    pub name: &'static str,
    /// `.version`.
    pub version: PtxVersion,
}

/// The targets for which an instruction can be assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Availability {
    /// On this capability and every later one.
    From(Capability, Target),
    /// On these only.
    Only(&'static [(Capability, Target)]),
}

impl Availability {
    /// The directives of a kernel for this device; `None` if the device lacks the instruction.
    #[must_use]
    pub fn target(self, capability: Capability) -> Option<Target> {
        match self {
            Self::From(first, target) => (capability >= first).then_some(target),
            Self::Only(list) => list.iter().find(|(only, _)| *only == capability).map(|(_, target)| *target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_accepts_the_language_of_its_release() {
        // PTX ISA, release history; the versions from 12.8 on were seen to be accepted by the ptxas of that release.
        let table = [
            (11000, (7, 0)),
            (11080, (7, 8)),
            (12000, (8, 0)),
            (12040, (8, 4)),
            (12050, (8, 5)),
            (12060, (8, 5)),
            (12070, (8, 6)),
            (12080, (8, 7)),
            (12090, (8, 8)),
            (13000, (9, 0)),
            (13010, (9, 1)),
            (13050, (9, 5)),
        ];
        for (cuda, (major, minor)) in table {
            assert_eq!(PtxVersion::accepted_by(cuda), PtxVersion::new(major, minor), "{cuda}");
        }
    }

    #[test]
    fn a_fingerprint_names_the_specific_target() {
        assert_eq!(Capability::new(8, 9).fingerprint(), "sm_89");
        assert_eq!(Capability::new(9, 0).fingerprint(), "sm_90a");
        assert_eq!(Capability::new(12, 1).fingerprint(), "sm_121a");
    }
}
