//! The instructions in a compiled kernel, decoded from its machine code.
//!
//! Since Volta, an instruction has 16 bytes, and its lowest 12 bits are the opcode. NVIDIA does not document this; the
//! numbers come from the output of `nvdisasm` 12.8 and 13.5 for every kernel of this backend on every architecture
//! (2026-11).

use std::collections::{BTreeMap, BTreeSet};

use mxprobe_api::{Error, Issued};
use object::{Object, ObjectSection, ObjectSymbol};

use mxprobe_shaders::{ptx::Capability, sha256};

/// The opcodes that are counted: matrix instructions, and the instructions that make up emulations of them.
const OPCODES: &[(u16, &str)] = &[
    (0x23c, "HMMA"),
    (0x237, "IMMA"),
    (0x23d, "BMMA"),
    (0x23f, "DMMA"),
    (0x27a, "QMMA"),
    (0x47a, "QMMA.SF"),
    (0x47f, "OMMA.SF"),
    (0x9f0, "HGMMA"),
    (0xdf0, "HGMMA"),
    (0x9f1, "IGMMA"),
    (0xdf1, "IGMMA"),
    (0x9f2, "BGMMA"),
    (0xdf2, "BGMMA"),
    (0x9f3, "QGMMA"),
    (0xdf3, "QGMMA"),
    // UTCHMMA, UTCQMMA, UTCOMMA and UTCIMMA share one opcode.
    (0x5ea, "UTCMMA"),
    (0xdea, "UTCMMA"),
    (0x221, "FADD"),
    (0x223, "FFMA"),
    (0x220, "FMUL"),
    (0x230, "HADD2"),
    (0x23e, "F2FP"),
];

/// A step of HMMA before capability 8.0; the opcode has another meaning on later devices.
const HMMA_884: (u16, &str) = (0x236, "HMMA.884");

/// The mnemonic of [`CALLS`].
const CALL: &str = "CALL";

/// Calls. Our kernels contain none, so a call means that the compiler replaced an instruction by a routine. ptxas emits
/// relative calls (`CALL.REL`), nvlink absolute ones (`CALL.ABS`); nvdisasm 13.5 knows these five, by the source of the
/// address.
const CALLS: &[(u16, &str)] = &[(0x944, CALL), (0x344, CALL), (0x943, CALL), (0x343, CALL), (0xb43, CALL)];

/// Opcodes of scalar arithmetic without the three bits that encode the source of the operands.
const SCALAR_OPCODES: &[(u16, &str)] = &[
    (0x00b, "FSETP"),
    (0x020, "FMUL"),
    (0x021, "FADD"),
    (0x023, "FFMA"),
    (0x028, "DMUL"),
    (0x029, "DADD"),
    (0x02a, "DSETP"),
    (0x02b, "DFMA"),
    (0x030, "HADD2"),
    (0x031, "HFMA2"),
    (0x032, "HMUL2"),
    (0x034, "HSETP2"),
    (0x03e, "F2FP"),
    (0x045, "I2FP"),
    (0x102, "FCHK"),
    (0x104, "F2F"),
    (0x110, "F2F"),
    (0x105, "F2I"),
    (0x111, "F2I"),
    (0x106, "I2F"),
    (0x112, "I2F"),
    (0x108, "MUFU"),
    (0x143, CALL),
    (0x144, CALL),
];

/// An opcode of capabilities before 10.0; it has another meaning on later devices.
const HFMA2_MMA: (u16, &str) = (0x035, "HFMA2.MMA");

/// Counts the arithmetic instructions in each entry of a cubin. Integer arithmetic is not counted, because address
/// computations use it too.
///
/// # Errors
/// If `cubin` is not a cubin.
pub fn scalar_counts(
    cubin: &[u8],
    capability: Capability,
) -> Result<BTreeMap<String, BTreeMap<&'static str, usize>>, Error> {
    let has_both = capability < Capability::new(10, 0);
    let known = SCALAR_OPCODES.iter().chain(has_both.then_some(&HFMA2_MMA));
    let known: BTreeMap<u16, &'static str> = known.copied().collect();
    let file =
        object::File::parse(cubin).map_err(|error| Error::driver(format!("this is not an ELF file: {error}")))?;
    let mut counts: BTreeMap<String, BTreeMap<&'static str, usize>> = BTreeMap::new();
    for section in file.sections() {
        let Some(entry) = section.name().ok().and_then(|name| name.strip_prefix(".text.")) else { continue };
        let bytes = section.data().map_err(|error| Error::driver(format!("a section cannot be read: {error}")))?;
        let found = counts.entry(entry.to_owned()).or_default();
        for instruction in bytes.chunks_exact(16) {
            let opcode = u16::from_le_bytes([instruction[0], instruction[1]]) & 0x1ff;
            if let Some(name) = known.get(&opcode) {
                *found.entry(name).or_insert(0) += 1;
            }
        }
    }
    Ok(counts)
}

/// Collects the instructions in machine code for a device of this capability; `unit` is the expected mnemonic prefix.
///
/// # Errors
/// If `cubin` is not a cubin.
pub fn issued(unit: &str, cubin: &[u8], capability: Capability) -> Result<Issued, Error> {
    Code::of(cubin, capability).map(|code| code.issued(unit, cubin))
}

/// The instructions and routines in the code of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    /// How often each of the named opcodes occurs.
    pub(crate) counts: BTreeMap<&'static str, usize>,
    /// Compiler routines that replace an instruction that the device does not have.
    pub(crate) routines: BTreeSet<String>,
}

impl Code {
    /// Reads a cubin for a device of this capability.
    ///
    /// # Errors
    /// If it is not an ELF file, or has no code.
    pub(crate) fn of(cubin: &[u8], capability: Capability) -> Result<Self, Error> {
        let file = object::File::parse(cubin).map_err(|error| {
            Error::driver(format!("the driver's code of {} bytes is not an ELF file: {error}", cubin.len()))
        })?;
        let mut code = Self::default();
        let has_steps = capability < Capability::new(8, 0);
        let known = OPCODES.iter().chain(has_steps.then_some(&HMMA_884)).chain(CALLS);
        let known: BTreeMap<u16, &'static str> = known.copied().collect();
        let mut instructions = 0;
        for section in file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".text"))) {
            let bytes = section.data().map_err(|error| Error::driver(format!("a section cannot be read: {error}")))?;
            for instruction in bytes.chunks_exact(16) {
                instructions += 1;
                let opcode = u16::from_le_bytes([instruction[0], instruction[1]]) & 0xfff;
                if let Some(name) = known.get(&opcode) {
                    *code.counts.entry(name).or_insert(0) += 1;
                }
            }
        }
        if instructions == 0 {
            return Err(Error::driver("the driver's code has no instruction"));
        }
        // ptxas puts a routine into the kernel's section, under a symbol with a prefix:
        // `$__internal_0_$__cuda_sm_9x_mma_sub_byte_internal_m8n8k32_s4_s4`. nvlink leaves it in its own section,
        // `.text.__cuda_sm_9x_…`, whose name survives when local symbols are stripped.
        let symbols = file.symbols().filter_map(|symbol| symbol.name().ok().map(str::to_owned));
        let sections = file.sections().filter_map(|section| section.name().ok().map(str::to_owned));
        let names = symbols.chain(sections.filter(|name| name.starts_with(".text")));
        let own: Vec<String> =
            names.filter_map(|name| name.find("__cuda_sm").map(|at| name[at..].to_owned())).collect();
        // The other routines only guard the use of tensor memory.
        code.routines.extend(own.iter().filter(|name| name.contains("mma")).cloned());
        let calls = code.counts.contains_key(CALL) && !code.counts.contains_key("UTCMMA");
        if calls && own.is_empty() {
            code.routines.insert("a routine whose name the driver took out".to_owned());
        }
        Ok(code)
    }

    /// Converts to the form for reports; `unit` is the unit that the instruction names.
    pub(crate) fn issued(&self, unit: &str, cubin: &[u8]) -> Issued {
        let counts = self.counts.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let (matrix, others) = counts.partition(|(name, _)| name.contains("MMA") && name != "FFMA");
        Issued {
            matrix,
            others,
            routines: self.routines.iter().cloned().collect(),
            unit: Some(unit.to_owned()),
            code_sha256: Some(sha256(cubin)),
            listing: None,
        }
    }
}
