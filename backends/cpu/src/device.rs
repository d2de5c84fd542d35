//! The device: the instruction behind each operation, and the extension it needs.

use std::collections::BTreeMap;

use mxprobe_api::{
    Device, DeviceInfo, DeviceKind, Discovery, Drill, Elements, Error, Flags, GemmOperands, Library, Load, Matrices,
    Operation, OperationId, OperationSet, Refusal, Scalar, ScalarFunction, Scalars, Screened, Screening, StatusFlags,
    TileBatch, Timed, Timing,
};

use crate::{
    amx,
    blas::Blas,
    blocks,
    detect::{Extension, Leaf, Readings, hypervisor},
    dot,
    packed::Kept,
    resident::{self, Loop, Registers, TMM, YMM, ZMM},
    scalar::ScalarUnit,
    screening,
    timing::{self, Resident},
    unit::Unit,
};

/// Runs one instruction over a batch.
///
/// # Safety
/// The extension that the instruction belongs to is usable in this process.
type Kernel = unsafe fn(batch: &TileBatch, d: &mut Elements);

/// One encoding of an instruction, in one extension.
struct Encoded {
    extension: Extension,
    operands: &'static str,
    kernel: Kernel,
    resident: Resident,
    /// The kernel for whole matrices, if there is a faster way than tile by tile.
    gemm: Option<Unit>,
}

/// An instruction, the operation it computes, and its encodings, the preferred one first.
struct Instruction {
    mnemonic: &'static str,
    id: &'static str,
    encodings: &'static [Encoded],
}

const fn encoded(
    extension: Extension,
    operands: &'static str,
    kernel: Kernel,
    (registers, run): (Registers, Loop),
    gemm: Option<Unit>,
) -> Encoded {
    Encoded { extension, operands, kernel, resident: Resident { registers, run }, gemm }
}

macro_rules! tiles {
    ($extension:ident, $name:ident) => {
        encoded(
            Extension::$extension,
            "tmm, tmm, tmm",
            amx::$name,
            (TMM, resident::$name),
            Some(Unit::tiles(blocks::$name)),
        )
    };
}

macro_rules! zmm {
    ($extension:ident, $name:ident) => {
        encoded(
            Extension::$extension,
            "zmm, zmm, zmm",
            dot::$name,
            (ZMM, resident::$name),
            Some(Unit::dots(blocks::$name)),
        )
    };
}

macro_rules! ymm {
    ($extension:ident, $name:ident) => {
        encoded(Extension::$extension, "ymm, ymm, ymm (VEX)", dot::$name, (YMM, resident::$name), None)
    };
}

/// Every instruction known here (*specified*: Intel SDM volume 2, one entry each; A is the second operand, B the
/// third).
const INSTRUCTIONS: [Instruction; 10] = [
    Instruction {
        mnemonic: "TDPBF16PS",
        id: "amx.m16n16k32.f32.bf16.bf16.f32",
        encodings: &[tiles!(AmxBf16, tdpbf16ps)],
    },
    Instruction { mnemonic: "TDPBSSD", id: "amx.m16n16k64.s32.s8.s8.s32", encodings: &[tiles!(AmxInt8, tdpbssd)] },
    Instruction { mnemonic: "TDPBSUD", id: "amx.m16n16k64.s32.s8.u8.s32", encodings: &[tiles!(AmxInt8, tdpbsud)] },
    Instruction { mnemonic: "TDPBUSD", id: "amx.m16n16k64.s32.u8.s8.s32", encodings: &[tiles!(AmxInt8, tdpbusd)] },
    Instruction { mnemonic: "TDPBUUD", id: "amx.m16n16k64.s32.u8.u8.s32", encodings: &[tiles!(AmxInt8, tdpbuud)] },
    Instruction {
        mnemonic: "VDPBF16PS",
        id: "dot.m1n1k2.f32.bf16.bf16.f32",
        encodings: &[zmm!(Avx512Bf16, vdpbf16ps)],
    },
    Instruction {
        mnemonic: "VPDPBUSD",
        id: "dot.m1n1k4.s32.u8.s8.s32",
        encodings: &[zmm!(Avx512Vnni, vpdpbusd), ymm!(AvxVnni, vex_vpdpbusd)],
    },
    Instruction {
        mnemonic: "VPDPBUSDS",
        id: "dot.m1n1k4.s32.u8.s8.s32.satfinite",
        encodings: &[zmm!(Avx512Vnni, vpdpbusds), ymm!(AvxVnni, vex_vpdpbusds)],
    },
    Instruction {
        mnemonic: "VPDPWSSD",
        id: "dot.m1n1k2.s32.s16.s16.s32",
        encodings: &[zmm!(Avx512Vnni, vpdpwssd), ymm!(AvxVnni, vex_vpdpwssd)],
    },
    Instruction {
        mnemonic: "VPDPWSSDS",
        id: "dot.m1n1k2.s32.s16.s16.s32.satfinite",
        encodings: &[zmm!(Avx512Vnni, vpdpwssds), ymm!(AvxVnni, vex_vpdpwssds)],
    },
];

/// `cpu:0`.
struct CpuDevice {
    info: DeviceInfo,
    operations: OperationSet,
    refusals: Vec<Refusal>,
    /// The kernels of usable instructions only.
    kernels: BTreeMap<OperationId, Kernel>,
    scalars: ScalarUnit,
    gemms: BTreeMap<OperationId, Unit>,
    /// The number of threads that share a product, cached because querying it takes longer than a small product.
    threads: usize,
    /// Memory that each product packs B into.
    kept: Kept,
    yardsticks: Vec<Operation>,
    /// The timing loops of usable instructions only, yardsticks included.
    residents: BTreeMap<OperationId, Resident>,
}

impl CpuDevice {
    fn missing(&self, id: &OperationId) -> Error {
        Error::invalid(format!("{} has no operation {id}", self.info.selector))
    }
}

impl Timing for CpuDevice {
    fn yardsticks(&self) -> &[Operation] {
        &self.yardsticks
    }

    fn time(&self, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
        let resident = self.residents.get(&operation.id).ok_or_else(|| self.missing(&operation.id))?;
        // SAFETY: `residents` holds an instruction only if this CPU and this process can use it.
        unsafe { timing::time(*resident, operation, load) }
    }

    fn library(&self) -> Result<Box<dyn Library>, Error> {
        Ok(Box::new(Blas::find()?))
    }
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let kernel = self.kernels.get(&operation.id).ok_or_else(|| self.missing(&operation.id))?;
        let (m, n, _) = operation.id.shape.sizes();
        let mut d = Elements::zeros(operation.id.d, batch.tiles * m * n);
        // SAFETY: `kernels` holds an instruction only if the readings of this CPU and this process say that its
        // extension can be used.
        unsafe { kernel(batch, &mut d) };
        Ok(d)
    }

    fn matrices(&self) -> Option<&dyn Matrices> {
        Some(self)
    }

    fn scalars(&self) -> Option<&dyn Scalars> {
        Some(self)
    }

    fn timing(&self) -> Option<&dyn Timing> {
        Some(self)
    }

    fn screening(&self) -> Option<&dyn Screening> {
        Some(self)
    }
}

impl Screening for CpuDevice {
    fn units(&self) -> Vec<u32> {
        screening::units()
    }

    fn screen(&self, operation: &Operation, drill: &Drill<'_>) -> Result<Vec<Screened>, Error> {
        let kernel = self.kernels.get(&operation.id).ok_or_else(|| self.missing(&operation.id))?;
        // SAFETY: `kernels` holds an instruction only if this CPU and this process can use it.
        screening::screen(operation, drill, |batch, d| unsafe { kernel(batch, d) })
    }
}

impl Matrices for CpuDevice {
    fn multiply(&self, operation: &Operation, product: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        // SAFETY: `gemms` holds an instruction only if this CPU and this process can use it, and each has sums of 32
        // bits and operands of 1 or 2 bytes.
        let multiply = |unit: &Unit| unsafe { unit.multiply(product, self.threads, &self.kept) };
        Ok(self.gemms.get(&operation.id).map(multiply))
    }
}

impl Scalars for CpuDevice {
    fn members(&self) -> &[Scalar] {
        self.scalars.listed()
    }

    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error> {
        self.scalars.call(scalar, function, operands)
    }

    fn flags(&self) -> Option<&dyn StatusFlags> {
        Some(self)
    }
}

impl StatusFlags for CpuDevice {
    fn call_with_flags(
        &self,
        scalar: &Scalar,
        function: ScalarFunction,
        operands: &Elements,
    ) -> Result<(Elements, Vec<Flags>), Error> {
        self.scalars.call_with_flags(scalar, function, operands)
    }
}

/// Creates the device that these readings allow.
///
/// The readings must be those of this CPU and this process; with others, [`Device::execute`] would run instructions
/// that do not exist.
pub(crate) fn discover(readings: &Readings) -> Discovery {
    let mut operations = OperationSet::new();
    let (mut kernels, mut gemms) = (BTreeMap::new(), BTreeMap::new());
    let (yardsticks, mut residents) = timing::yardsticks();
    let mut refusals = Vec::new();
    let mut used = Vec::new();
    for instruction in &INSTRUCTIONS {
        let id: OperationId = instruction.id.parse().expect("the table holds operation ids");
        match choose(readings, instruction) {
            Ok(encoded) => {
                let mut operation = Operation::new(id.clone(), "thread");
                operation.instruction = Some(format!("{} {}", instruction.mnemonic, encoded.operands));
                operation.aliases = vec![instruction.mnemonic.to_lowercase()];
                operations.insert(id.clone(), operation);
                kernels.insert(id.clone(), encoded.kernel);
                gemms.extend(encoded.gemm.map(|unit| (id.clone(), unit)));
                residents.insert(id, encoded.resident);
                used.push(encoded.extension);
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    let scalars = ScalarUnit::new(readings);
    refusals.extend(ScalarUnit::refusals(readings));
    used.sort_unstable();
    used.dedup();
    let info = info(readings, &used);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let device = CpuDevice {
        info,
        operations,
        refusals,
        kernels,
        gemms,
        threads,
        kept: Kept::default(),
        yardsticks,
        residents,
        scalars,
    };
    Discovery { devices: vec![Box::new(device)], refusals: Vec::new() }
}

/// Returns the first usable encoding, or the reason why there is none.
fn choose(readings: &Readings, instruction: &Instruction) -> Result<&'static Encoded, Refusal> {
    let mut refused = Vec::new();
    for encoded in instruction.encodings {
        match readings.extension(encoded.extension) {
            Ok(()) => return Ok(encoded),
            Err(step) => refused.push(step),
        }
    }
    let reasons: Vec<&str> = refused.iter().map(|step| step.reason.as_str()).collect();
    Err(Refusal {
        what: format!("{} ({})", instruction.id, instruction.mnemonic),
        reason: Error::unsupported(reasons.join(", and ")),
        help: refused.iter().find_map(|step| step.help).map(str::to_owned),
    })
}

fn info(readings: &Readings, used: &[Extension]) -> DeviceInfo {
    let words: Vec<&str> = used.iter().map(|extension| extension.word()).collect();
    let (family, model, stepping) = readings.signature();
    let mut properties = BTreeMap::from([
        ("vendor".to_owned(), readings.vendor.clone()),
        ("family".to_owned(), family.to_string()),
        ("model".to_owned(), model.to_string()),
        ("stepping".to_owned(), stepping.to_string()),
        ("kernel_form".to_owned(), "machine code of this program".to_owned()),
    ]);
    let leaves = [
        ("cpuid.1", readings.leaf_1),
        ("cpuid.7.0", readings.leaf_7_0),
        ("cpuid.7.1", readings.leaf_7_1),
        ("cpuid.1d.1", readings.leaf_1d_1),
        ("cpuid.1e.0", readings.leaf_1e_0),
    ];
    for (name, Leaf { eax, ebx, ecx, edx }) in leaves {
        // Bits 31 to 24 of EBX of leaf 1 are the number of the core that ran CPUID, which is not a property of the CPU.
        let ebx = if name == "cpuid.1" { ebx & 0x00ff_ffff } else { ebx };
        properties.insert(name.to_owned(), format!("eax={eax:#010x} ebx={ebx:#010x} ecx={ecx:#010x} edx={edx:#010x}"));
    }
    let optional = [
        ("xcr0", readings.xcr0.map(|xcr0| format!("{xcr0:#x}"))),
        ("hypervisor", hypervisor(readings)),
        ("microcode", microcode()),
        ("kernel", kernel_release()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            properties.insert(name.to_owned(), value);
        }
    }
    let name = if readings.brand.is_empty() { readings.vendor.clone() } else { readings.brand.clone() };
    DeviceInfo {
        backend: "cpu".to_owned(),
        selector: "cpu:0".to_owned(),
        name,
        fingerprint: [readings.vendor.to_lowercase().as_str()].into_iter().chain(words).collect::<Vec<_>>().join("+"),
        kind: DeviceKind::Hardware,
        emulated: false,
        aliases: Vec::new(),
        driver: None,
        properties,
    }
}

/// The microcode revision, as reported by Linux.
fn microcode() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("microcode"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The kernel's name and release, as reported by Linux.
fn kernel_release() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(format!("{} {}", std::env::consts::OS, release.trim()))
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "says which part ran")]
mod tests;
