//! Every kernel of a capability as text, for those who assemble them without a device.

use std::collections::BTreeMap;

use mxprobe_api::{Error, Issued, OperationId, ScalarFunction, ScalarId};

use crate::capability::{Capability, Target};
use crate::instruction::{Instruction, table};
use crate::layout::Layouts;
use crate::opcodes::{Code, scalar_counts};
use crate::product::{Kernels, name as product_name};
use crate::ptx::{header, kernel};
use crate::resident::Steps;
use crate::scalar;

/// A kernel's text, for one operation on one capability.
#[derive(Clone, Debug)]
pub struct KernelText {
    /// The operation.
    pub id: OperationId,
    /// The operation's id, with what tells its kernels apart: `.timed`, or `.product4x8` with the block of D.
    pub name: String,
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

    /// The kernels of whole matrices, of the operations that have one: for each size of block, the largest first.
    #[must_use]
    pub fn whole(capability: Capability) -> Vec<Self> {
        let mut all = Vec::new();
        for instruction in table() {
            let Some(target) = instruction.availability.target(capability) else { continue };
            let Some(kernels) = Kernels::of(&instruction) else { continue };
            all.extend(kernels.texts(&instruction, target).map(|(block, ptx)| {
                let name = product_name(&instruction.id, block);
                Self { id: instruction.id.clone(), name, target, ptx, unit: instruction.unit, capability }
            }));
        }
        all
    }

    fn of(capability: Capability, steps: Steps) -> Vec<Self> {
        let text = |instruction: Instruction| {
            let target = instruction.availability.target(capability)?;
            let ptx = kernel(&instruction, &Layouts::of(&instruction), target, steps).text;
            let suffix = if steps == Steps::Many { ".timed" } else { "" };
            let name = format!("{}{suffix}", instruction.id);
            Some(Self { id: instruction.id, name, target, ptx, unit: instruction.unit, capability })
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

/// Every scalar kernel of a capability in one text, an entry each: assembled at once, since there are hundreds.
#[derive(Clone, Debug)]
pub struct ScalarText {
    /// The PTX.
    pub ptx: String,
    /// The function behind each entry.
    pub entries: BTreeMap<String, (ScalarId, ScalarFunction)>,
    capability: Capability,
}

impl ScalarText {
    /// The text for a capability, whatever its driver's version.
    #[must_use]
    pub fn all(capability: Capability) -> Self {
        let kernels = scalar::table(capability);
        let latest = kernels.iter().map(|kernel| kernel.target).max_by_key(|target| target.version);
        let mut ptx = latest.map_or_else(String::new, header);
        let mut entries = BTreeMap::new();
        for (at, kernel) in kernels.into_iter().enumerate() {
            let name = format!("scalar{at}");
            ptx.push_str(&kernel.entry(&name));
            entries.insert(name, (kernel.id, kernel.function));
        }
        Self { ptx, entries, capability }
    }

    /// The arithmetic instructions that the machine code of each entry consists of, and how many; integer arithmetic,
    /// which addresses take too, is left out.
    ///
    /// # Errors
    /// If this is no cubin.
    pub fn counts(&self, cubin: &[u8]) -> Result<BTreeMap<String, BTreeMap<&'static str, usize>>, Error> {
        scalar_counts(cubin, self.capability)
    }
}
