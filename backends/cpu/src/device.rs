//! The device: which instruction stands behind each operation, and which extension it takes.

use std::collections::BTreeMap;

use mxprobe_api::{
    Device, DeviceInfo, DeviceKind, Discovery, Elements, Error, GemmOperands, Library, Load, Matrices, Operation,
    OperationId, OperationSet, Refusal, Scalar, ScalarFunction, Scalars, TileBatch, Timed, Timing,
};

use crate::{
    amx,
    blas::Blas,
    detect::{Extension, Leaf, Readings, hypervisor},
    dot,
    gemm::{self, Unit},
    resident::{self, Loop, Registers, TMM, YMM, ZMM},
    scalar::ScalarUnit,
    timing::{self, Resident},
};

/// Runs one instruction over a batch.
///
/// # Safety
/// The extension that the instruction belongs to is usable in this process.
type Kernel = unsafe fn(batch: &TileBatch, d: &mut Elements);

/// An instruction as one extension encodes it.
struct Encoded {
    extension: Extension,
    operands: &'static str,
    kernel: Kernel,
    resident: Resident,
    /// Whole matrices, where there is a faster way than tile by tile.
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
            Some(Unit::tiles(gemm::$name)),
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
            Some(Unit::dots(gemm::$name)),
        )
    };
}

macro_rules! ymm {
    ($extension:ident, $name:ident) => {
        encoded(Extension::$extension, "ymm, ymm, ymm (VEX)", dot::$name, (YMM, resident::$name), None)
    };
}

/// Every instruction known here (*specified*: Intel SDM volume 2, an entry each; A is the second operand, B the third).
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
    /// Of usable instructions only.
    kernels: BTreeMap<OperationId, Kernel>,
    scalars: ScalarUnit,
    gemms: BTreeMap<OperationId, Unit>,
    /// How many threads share a product; to ask takes longer than a small one.
    threads: usize,
    yardsticks: Vec<Operation>,
    /// Of usable instructions only, the yardsticks' among them.
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
}

impl Matrices for CpuDevice {
    fn multiply(&self, operation: &Operation, product: &GemmOperands<'_>) -> Result<Option<Elements>, Error> {
        // SAFETY: `gemms` holds an instruction only if this CPU and this process can use it, and each has sums of 32 bits
        // and operands of 1 or 2 bytes.
        let multiply = |unit: &Unit| unsafe { unit.multiply(product, self.threads) };
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
}

/// The device these readings allow, or why there is none.
///
/// The readings are those of this CPU and this process; with others, [`Device::execute`] would run what is not there.
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
    let device = CpuDevice { info, operations, refusals, kernels, gemms, threads, yardsticks, residents, scalars };
    Discovery { devices: vec![Box::new(device)], refusals: Vec::new() }
}

/// The first encoding that can be used, or why none can.
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
        // Bits 31 to 24 of EBX of leaf 1 are the number of the core that was asked: not a property of the CPU.
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

/// The microcode revision, as Linux shows it.
fn microcode() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("microcode"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The kernel's name and release, as Linux shows them.
fn kernel_release() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(format!("{} {}", std::env::consts::OS, release.trim()))
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "says which part ran")]
mod tests {
    use mxprobe_api::{Encoding, Format, execute};

    use super::*;

    /// SplitMix64: the same numbers on every machine.
    struct Random(u64);

    impl Random {
        fn bits(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    /// The device as it is, and as it would be without AVX-512, so that the VEX encodings run too.
    fn devices() -> Vec<Box<dyn Device>> {
        let here = Readings::here();
        let mut without = here.clone();
        without.leaf_7_0.ebx &= !(1 << 16);
        let found: Vec<_> = [here, without].iter().flat_map(|readings| discover(readings).devices).collect();
        for device in &found {
            println!("{}", device.info().fingerprint);
            device.operations().values().for_each(|it| println!("  {} {:?}", it.id, it.instruction));
            device.refusals().iter().for_each(|it| println!("  {}: {}", it.what, it.reason));
        }
        if found.is_empty() {
            println!("this CPU has none of the instructions: nothing ran");
        }
        found
    }

    /// The value of an element: an integer, or a small integer in a floating format.
    fn integer(format: Format, bits: u64) -> i64 {
        match format.encoding() {
            Encoding::Integer { bits: width, signed: true } => (bits << (64 - width)).cast_signed() >> (64 - width),
            Encoding::Integer { signed: false, .. } => bits.cast_signed(),
            #[expect(clippy::cast_possible_truncation)]
            Encoding::Float(_) => format.to_f64(bits) as i64,
        }
    }

    /// D by the definition of a matrix product, in integers that hold every sum.
    fn reference(id: &OperationId, batch: &TileBatch) -> Vec<i64> {
        let (m, n, k) = id.shape.sizes();
        let mut d = Vec::new();
        for tile in 0..batch.tiles {
            for row in 0..m {
                for column in 0..n {
                    let products = (0..k).map(|l| {
                        let a = integer(id.a, batch.a.get((tile * m + row) * k + l));
                        a * integer(id.b, batch.b.get((tile * k + l) * n + column))
                    });
                    d.push(integer(id.c, batch.c.get((tile * m + row) * n + column)) + products.sum::<i64>());
                }
            }
        }
        d
    }

    fn fill(elements: &mut Elements, mut bits: impl FnMut(Format) -> u64) {
        let format = elements.format();
        for at in 0..elements.len() {
            elements.set(at, bits(format));
        }
    }

    /// Small integers of either sign, so that every product and sum is exact in every format.
    fn small(random: &mut Random) -> impl FnMut(Format) -> u64 {
        |format| {
            let magnitude = random.bits() >> 32 & 7;
            let is_signed = format.largest(true) != 0;
            let negative = is_signed && random.bits() & 1 == 1 && magnitude != 0;
            #[expect(clippy::cast_precision_loss)]
            let value = if negative { -(magnitude as f64) } else { magnitude as f64 };
            format.from_f64(value)
        }
    }

    #[test]
    fn small_integers_are_multiplied_exactly_in_every_place() {
        for device in devices() {
            for operation in device.operations().values() {
                let mut random = Random(1);
                // Whole registers, parts of one, rounds of packed tiles and parts of one.
                for tiles in (0..=40).chain([255, 256, 257]) {
                    let mut batch = TileBatch::zeros(operation, tiles);
                    fill(&mut batch.a, small(&mut random));
                    fill(&mut batch.b, small(&mut random));
                    fill(&mut batch.c, small(&mut random));
                    let d = execute(device.as_ref(), operation, &batch).expect("the device computes");
                    let given: Vec<i64> = d.iter().map(|bits| integer(operation.id.d, bits)).collect();
                    assert_eq!(given, reference(&operation.id, &batch), "{} of {tiles} tiles", operation.id);
                }
            }
        }
    }

    #[test]
    fn one_product_arrives_at_its_row_and_column_only() {
        for device in devices() {
            for operation in device.operations().values() {
                let id = &operation.id;
                let (m, n, k) = id.shape.sizes();
                // A tile for each place in A, each with one 1 in A and 1 + column in the row of B that it meets.
                let mut batch = TileBatch::zeros(operation, m * k);
                for (tile, (row, l)) in (0..m).flat_map(|row| (0..k).map(move |l| (row, l))).enumerate() {
                    batch.a.set(tile * m * k + row * k + l, id.a.one());
                    for column in 0..n {
                        #[expect(clippy::cast_precision_loss)]
                        batch.b.set(tile * k * n + l * n + column, id.b.from_f64((column + 1) as f64));
                    }
                }
                let d = execute(device.as_ref(), operation, &batch).expect("the device computes");
                for (at, bits) in d.iter().enumerate() {
                    let (tile, row, column) = (at / (m * n), at / n % m, at % n);
                    let expected = if tile / k == row { column + 1 } else { 0 };
                    assert_eq!(
                        usize::try_from(integer(id.d, bits)),
                        Ok(expected),
                        "{id} with 1 in row {}, k {} of A, at row {row}, column {column}",
                        tile / k,
                        tile % k
                    );
                }
            }
        }
    }

    #[test]
    fn integers_of_the_whole_range_wrap_or_saturate_once_at_the_end() {
        let limits = i64::from(i32::MIN)..=i64::from(i32::MAX);
        for device in devices() {
            for operation in device.operations().values().filter(|operation| operation.id.is_integer()) {
                let id = &operation.id;
                let (m, n, _) = id.shape.sizes();
                let tiles = 200_000 / (m * n);
                let mut random = Random(2);
                let mut beyond = 0;
                // Uniform bits; the extremes, which overflow; c near its limits.
                for kind in 0..3 {
                    let mut batch = TileBatch::zeros(operation, tiles);
                    for elements in [&mut batch.a, &mut batch.b] {
                        fill(elements, |format| match kind {
                            0 => random.bits(),
                            _ => format.largest(random.bits() & 3 == 0),
                        });
                    }
                    fill(&mut batch.c, |_| match kind {
                        2 => (i64::from(i32::MAX) + (random.bits() >> 50).cast_signed() - (1 << 13)).cast_unsigned(),
                        _ => random.bits(),
                    });
                    let d = execute(device.as_ref(), operation, &batch).expect("the device computes");
                    for (at, (bits, exact)) in d.iter().zip(reference(id, &batch)).enumerate() {
                        beyond += usize::from(!limits.contains(&exact));
                        let expected = if id.has("satfinite") {
                            exact.clamp(*limits.start(), *limits.end())
                        } else {
                            (exact << 32) >> 32
                        };
                        assert_eq!(integer(id.d, bits), expected, "{id}, element {at}, whose exact value is {exact}");
                    }
                }
                assert!(beyond > 1000, "{id}: {beyond} sums leave the range, too few to see what becomes of them");
            }
        }
    }

    #[test]
    fn threads_do_not_disturb_each_other() {
        for device in devices() {
            std::thread::scope(|scope| {
                for seed in 0..8 {
                    let device = device.as_ref();
                    scope.spawn(move || {
                        let mut random = Random(seed);
                        for operation in device.operations().values() {
                            let mut batch = TileBatch::zeros(operation, 19);
                            fill(&mut batch.a, small(&mut random));
                            fill(&mut batch.b, small(&mut random));
                            let d = execute(device, operation, &batch).expect("the device computes");
                            let given: Vec<i64> = d.iter().map(|bits| integer(operation.id.d, bits)).collect();
                            assert_eq!(given, reference(&operation.id, &batch), "{} seed {seed}", operation.id);
                        }
                    });
                }
            });
        }
    }

    /// How refusals of scalar instructions begin.
    const SCALARS: &str = "scalar arithmetic by ";

    #[test]
    fn a_cpu_without_any_matrix_unit_is_scalar_arithmetic_and_a_refusal_for_each_instruction() {
        let found = discover(&Readings::default());
        let [device] = &found.devices[..] else { panic!("{} devices", found.devices.len()) };
        assert!(device.operations().is_empty() && found.refusals.is_empty());
        // SSE2 is in every x86-64 CPU; FMA3 is not in this one.
        let named =
            |text: &str| device.scalars().unwrap().members().iter().find(|scalar| scalar.id.to_string() == text);
        assert!(named("scalar.f32").is_some_and(|scalar| scalar.functions.len() == 12));
        assert!(named("scalar.f64.ru.daz").is_some_and(|scalar| !scalar.functions.contains_key(&ScalarFunction::Fma)));
        let refusals = device.refusals();
        let lines: Vec<String> = refusals.iter().map(|it| format!("{}: {}", it.what, it.reason)).collect();
        let of_scalars = lines.iter().filter(|line| line.starts_with(SCALARS)).count();
        assert!(of_scalars > 0, "{lines:#?}");
        assert_eq!(lines.len(), INSTRUCTIONS.len() + of_scalars);
        for line in [
            "amx.m16n16k32.f32.bf16.bf16.f32 (TDPBF16PS): CPUID.7.0:EDX bit 24 (AMX-TILE) is 0",
            "dot.m1n1k2.f32.bf16.bf16.f32 (VDPBF16PS): CPUID.7.0:EBX bit 16 (AVX512F) is 0",
            "dot.m1n1k4.s32.u8.s8.s32 (VPDPBUSD): CPUID.7.0:EBX bit 16 (AVX512F) is 0, and CPUID.1:ECX bit 28 (AVX) is 0",
        ] {
            assert!(lines.iter().any(|it| it == line), "{line} is not among {lines:#?}");
        }
        assert!(refusals.iter().all(|refusal| refusal.reason.is_unsupported()));
    }

    #[test]
    fn every_instruction_is_an_operation_or_a_refusal() {
        let found = discover(&Readings::here());
        let operations: usize = found.devices.iter().map(|device| device.operations().len()).sum();
        let refusals = found.devices.iter().flat_map(|device| device.refusals()).chain(&found.refusals);
        let refusals = refusals.filter(|refusal| !refusal.what.starts_with(SCALARS)).count();
        assert_eq!(operations + refusals, INSTRUCTIONS.len());
    }

    #[test]
    fn ids_of_the_table_are_canonical_and_differ() {
        let mut ids: Vec<String> = INSTRUCTIONS
            .iter()
            .map(|instruction| instruction.id.parse::<OperationId>().expect("an operation id").to_string())
            .collect();
        assert!(ids.iter().zip(&INSTRUCTIONS).all(|(id, instruction)| id == instruction.id));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), INSTRUCTIONS.len());
    }
}
