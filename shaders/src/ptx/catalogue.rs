//! Every kernel of a capability as text, for assembling without a device.

use std::collections::BTreeMap;

use mxprobe_api::{OperationId, ScalarFunction, ScalarId};

use super::capability::{Capability, Target};
use super::instruction::Instruction;
use super::kernel::{instructions, kernel};
use super::layout::Layouts;
use super::product::{self, ProductKernels};
use super::text::header;
use super::throughput_loop::Steps;
use super::{scalar, screening};

/// A kernel's text, for one operation on one capability.
#[derive(Clone, Debug)]
pub struct KernelText {
    /// The operation.
    pub id: OperationId,
    /// The operation's id and the suffix that distinguishes its kernels: `.timed`, `.screen`, or `.product4x8` with the
    /// block of D.
    pub name: String,
    /// The target and version in its header.
    pub target: Target,
    /// The PTX.
    pub ptx: String,
    /// The mnemonic of the unit for which the instruction is meant.
    pub unit: &'static str,
}

impl KernelText {
    /// Every kernel that a device of this capability is offered, whatever its driver's version.
    #[must_use]
    pub fn all(capability: Capability) -> Vec<Self> {
        Self::with_steps(capability, Steps::One)
    }

    /// The timed kernels, for the operations that can be chained.
    #[must_use]
    pub fn timed(capability: Capability) -> Vec<Self> {
        let mut all = Self::with_steps(capability, Steps::Many);
        all.retain(|kernel| kernel.id.c == kernel.id.d);
        all
    }

    /// The kernels of whole matrices, for the operations that have them: one for each size of block, the largest first.
    #[must_use]
    pub fn whole(capability: Capability) -> Vec<Self> {
        let mut all = Vec::new();
        for instruction in instructions() {
            let Some(target) = instruction.availability.target(capability) else { continue };
            let Some(kernels) = ProductKernels::new(&instruction) else { continue };
            all.extend(kernels.blocks().iter().map(|block| {
                let name = product::name(&instruction.id, *block);
                let ptx = kernels.kernel(&instruction, target, *block).kernel.text;
                Self { id: instruction.id.clone(), name, target, ptx, unit: instruction.unit }
            }));
        }
        all
    }

    /// The screening kernels, for the operations that have one.
    #[must_use]
    pub fn screened(capability: Capability) -> Vec<Self> {
        let text = |instruction: Instruction| {
            let target = instruction.availability.target(capability)?;
            let ptx = screening::kernel(&instruction, &Layouts::new(&instruction), target)?.text;
            let name = format!("{}.screen", instruction.id);
            Some(Self { id: instruction.id, name, target, ptx, unit: instruction.unit })
        };
        instructions().into_iter().filter_map(text).collect()
    }

    fn with_steps(capability: Capability, steps: Steps) -> Vec<Self> {
        let text = |instruction: Instruction| {
            let target = instruction.availability.target(capability)?;
            let ptx = kernel(&instruction, &Layouts::new(&instruction), target, steps).text;
            let suffix = if steps == Steps::Many { ".timed" } else { "" };
            let name = format!("{}{suffix}", instruction.id);
            Some(Self { id: instruction.id, name, target, ptx, unit: instruction.unit })
        };
        instructions().into_iter().filter_map(text).collect()
    }
}

/// Every scalar kernel of a capability in one text, an entry each: there are hundreds, so they are assembled together.
#[derive(Clone, Debug)]
pub struct ScalarText {
    /// The PTX.
    pub ptx: String,
    /// The function behind each entry.
    pub entries: BTreeMap<String, (ScalarId, ScalarFunction)>,
}

impl ScalarText {
    /// The text for a capability, whatever its driver's version.
    #[must_use]
    pub fn all(capability: Capability) -> Self {
        let kernels = scalar::kernels(capability);
        let latest = kernels.iter().map(|kernel| kernel.target).max_by_key(|target| target.version);
        let mut ptx = latest.map_or_else(String::new, header);
        let mut entries = BTreeMap::new();
        for (at, kernel) in kernels.into_iter().enumerate() {
            let name = format!("scalar{at}");
            ptx.push_str(&kernel.entry(&name));
            entries.insert(name, (kernel.id, kernel.function));
        }
        Self { ptx, entries }
    }
}
