//! Every kernel of a capability as text, for those who assemble them without a device.

use mxprobe_api::{Error, Issued, OperationId};

use crate::capability::{Capability, Target};
use crate::instruction::{Instruction, table};
use crate::layout::Layouts;
use crate::opcodes::Code;
use crate::ptx::kernel;
use crate::resident::Steps;

/// A kernel's text, for one operation on one capability.
#[derive(Clone, Debug)]
pub struct KernelText {
    /// The operation.
    pub id: OperationId,
    /// The target and version it begins with.
    pub target: Target,
    /// The PTX.
    pub ptx: String,
    unit: &'static str,
    capability: Capability,
}

impl KernelText {
    /// Every kernel that a device of this capability is offered, whatever its driver's version.
    #[must_use]
    pub fn all(capability: Capability) -> Vec<Self> {
        Self::of(capability, Steps::One)
    }

    /// The kernels that are timed, of the operations that can be chained.
    #[must_use]
    pub fn timed(capability: Capability) -> Vec<Self> {
        let mut all = Self::of(capability, Steps::Many);
        all.retain(|kernel| kernel.id.c == kernel.id.d);
        all
    }

    fn of(capability: Capability, steps: Steps) -> Vec<Self> {
        let text = |instruction: Instruction| {
            let target = instruction.availability.target(capability)?;
            let ptx = kernel(&instruction, &Layouts::of(&instruction), target, steps).text;
            Some(Self { id: instruction.id, target, ptx, unit: instruction.unit, capability })
        };
        table().into_iter().filter_map(text).collect()
    }

    /// What the machine code that was made from it consists of.
    ///
    /// # Errors
    /// If this is no cubin.
    pub fn issued(&self, cubin: &[u8]) -> Result<Issued, Error> {
        issued(self.unit, cubin, self.capability)
    }
}

/// What machine code for a device of this capability consists of; `unit` is how the mnemonic begins that it should have.
///
/// # Errors
/// If this is no cubin.
pub fn issued(unit: &str, cubin: &[u8], capability: Capability) -> Result<Issued, Error> {
    Code::of(cubin, capability).map(|code| code.issued(unit, cubin))
}
