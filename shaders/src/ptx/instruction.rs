//! The name of an instruction, its requirements, and the devices that have it.

use mxprobe_api::{Format, OperationId};

use super::capability::{Availability, Capability, PtxVersion, Target};

/// The threads that compute one tile together, and the location of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One warp, registers.
    Warp,
    /// A pair of quads of a warp (eight lanes), registers: the `m8n8k4` of f16, four tiles per warp.
    QuadPair,
    /// One warp; registers whose layout only the device knows: `wmma`, which loads and stores matrices itself.
    Wmma,
    /// Four warps; A and B in shared memory, C and D in registers.
    Warpgroup,
    /// One thread of a block; A and B in shared memory, C and D in tensor memory.
    TensorMemory,
}

/// One instruction of the table.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The operation that it performs.
    pub id: OperationId,
    /// The threads that perform it.
    pub kind: Kind,
    /// The instruction with its modifiers, without operands.
    pub text: String,
    /// The mnemonic of the unit for which it is meant.
    pub unit: &'static str,
    /// The devices that have it, with the target it needs on each.
    pub availability: Availability,
}

const fn target(name: &'static str, major: u32, minor: u32) -> Target {
    Target { name, version: PtxVersion::new(major, minor) }
}

const fn from(major: u32, minor: u32, name: &'static str, version: (u32, u32)) -> Availability {
    Availability::From(Capability::new(major, minor), target(name, version.0, version.1))
}

// The lowest `.target` and `.version` of each, as ptxas 12.9.86 and 13.5.37 accept them (measured 2026-11); PTX ISA
// 9.0, 9.7.14.5 and 9.7.15 state the same.
pub(super) const VOLTA: Availability = from(7, 0, "sm_70", (6, 4));
pub(super) const VOLTA_6_3: Availability = from(7, 0, "sm_70", (6, 3));
pub(super) const TURING_6_3: Availability = from(7, 5, "sm_75", (6, 3));
pub(super) const TURING: Availability = from(7, 5, "sm_75", (6, 5));
pub(super) const AMPERE: Availability = from(8, 0, "sm_80", (7, 0));
pub(super) const ADA: Availability = from(8, 9, "sm_89", (8, 4));
pub(super) const ADA_8_7: Availability = from(8, 9, "sm_89", (8, 7));
pub(super) const HOPPER: Availability = from(9, 0, "sm_90", (7, 8));
pub(super) const HOPPER_ONLY: Availability = Availability::Only(&[(Capability::new(9, 0), target("sm_90a", 8, 0))]);
pub(super) const HOPPER_ONLY_8_4: Availability = Availability::Only(&[(Capability::new(9, 0), target("sm_90a", 8, 4))]);
pub(super) const CONSUMER_BLACKWELL: Availability = Availability::Only(&[
    (Capability::new(12, 0), target("sm_120a", 8, 7)),
    (Capability::new(12, 1), target("sm_121a", 8, 8)),
]);
pub(super) const CONSUMER_BLACKWELL_9_1: Availability = Availability::Only(&[
    (Capability::new(12, 0), target("sm_120a", 9, 1)),
    (Capability::new(12, 1), target("sm_121a", 9, 1)),
]);

pub(super) const SMALL: [Format; 5] = [Format::E4M3, Format::E5M2, Format::E3M2, Format::E2M3, Format::E2M1];

/// Every format of A paired with every format of B.
pub(super) fn pairs(formats: &[Format]) -> impl Iterator<Item = (Format, Format)> + '_ {
    formats.iter().flat_map(move |a| formats.iter().map(move |b| (*a, *b)))
}
