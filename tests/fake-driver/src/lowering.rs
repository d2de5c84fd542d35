//! The machine instructions of an operation on an architecture.

use mxprobe_api::{Format, OperationId};

/// The assembler's output for each operation, one per line: operation, architectures, instructions.
const TABLE: &str = include_str!("../../../backends/cuda/lowering.tsv");

/// The machine code of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lowering {
    /// The opcodes, and how often each occurs.
    pub opcodes: Vec<(u16, usize)>,
    /// The compiler's own routines that are called.
    pub routines: Vec<String>,
}

/// The 12-bit opcodes, taken from `nvdisasm`.
const OPCODES: [(&str, u16); 19] = [
    ("HMMA", 0x23c),
    ("HMMA.884", 0x236),
    ("IMMA", 0x237),
    ("BMMA", 0x23d),
    ("DMMA", 0x23f),
    ("QMMA", 0x27a),
    ("QMMA.SF", 0x47a),
    ("OMMA.SF", 0x47f),
    ("HGMMA", 0x9f0),
    ("IGMMA", 0x9f1),
    ("BGMMA", 0x9f2),
    ("QGMMA", 0x9f3),
    ("UTCMMA", UTCMMA),
    ("FADD", 0x221),
    ("FFMA", FFMA),
    ("FMUL", 0x220),
    ("HADD2", 0x230),
    ("F2FP", 0x23e),
    ("CALL", CALL_RELATIVE),
];

/// `CALL.REL`, as ptxas writes it, and `CALL.ABS`, as nvlink does.
pub(crate) const CALL_RELATIVE: u16 = 0x944;
pub(crate) const CALL_ABSOLUTE: u16 = 0x943;

/// `tcgen05.mma` of every kind.
pub(crate) const UTCMMA: u16 = 0x5ea;

/// A multiply-add of the scalar units.
pub(crate) const FFMA: u16 = 0x223;

/// The machine code of an operation on a device of this compute capability, 90 for 9.0.
///
/// An operation that the table does not list for the device becomes its one matrix instruction.
#[must_use]
pub fn lowering(id: &OperationId, capability: u32) -> Lowering {
    let (id_text, architecture) = (id.to_string(), format!("sm_{capability}"));
    let line = TABLE.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut columns = line.split('\t');
        let found = columns.next()? == id_text && columns.next()?.split(' ').any(|one| one == architecture);
        found.then(|| columns.next()).flatten()
    });
    line.map_or_else(|| Lowering { opcodes: vec![(matrix_opcode(id), 1)], routines: Vec::new() }, read)
}

/// Parses `emulated HMMA*2 F2FP*6 call:NAME`.
fn read(list: &str) -> Lowering {
    let mut lowering = Lowering::default();
    for word in list.split(' ') {
        if let Some(routine) = word.strip_prefix("call:") {
            lowering.routines.push(routine.to_owned());
        } else if let Some((mnemonic, count)) = word.split_once('*') {
            let known = OPCODES.iter().find(|(name, _)| *name == mnemonic);
            lowering.opcodes.extend(known.and_then(|(_, opcode)| Some((*opcode, count.parse().ok()?))));
        }
    }
    lowering
}

fn matrix_opcode(id: &OperationId) -> u16 {
    let wide = [Format::F16, Format::BF16, Format::TF32].contains(&id.a);
    let name = match id.family.as_str() {
        "wgmma" if id.is_integer() => "IGMMA",
        "wgmma" if wide => "HGMMA",
        "wgmma" => "QGMMA",
        "tcgen05" => "UTCMMA",
        _ if id.is_integer() => "IMMA",
        _ if id.a == Format::F64 => "DMMA",
        _ if wide && (id.shape.m, id.shape.k) == (8, 4) => "HMMA.884",
        _ if wide => "HMMA",
        _ if id.shape.k == 64 => "OMMA.SF",
        _ if id.block_scale().is_some() => "QMMA.SF",
        _ => "QMMA",
    };
    OPCODES.iter().find(|(known, _)| *known == name).map_or(FFMA, |(_, opcode)| *opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: &str, capability: u32) -> Lowering {
        lowering(&id.parse().unwrap(), capability)
    }

    #[test]
    fn an_operation_becomes_what_the_assembler_makes_of_it() {
        assert_eq!(of("mma.m16n8k16.f32.f16.f16.f32", 90).opcodes, [(0x23c, 1)]);
        assert_eq!(of("mma.m16n8k32.f32.e4m3.e4m3.f32", 89).opcodes, [(0x27a, 1)]);
        let emulated = of("mma.m16n8k32.f32.e4m3.e4m3.f32", 90).opcodes;
        assert!(emulated.contains(&(0x23c, 2)) && emulated.contains(&(0x221, 4)), "{emulated:x?}");
        let called = of("mma.m8n8k4.f32.f16.f16.f32", 80);
        assert_eq!(called.routines, ["__cuda_sm_8x_mma_row_col_f32_f16_f16_f32"]);
        assert!(called.opcodes.iter().all(|(opcode, _)| *opcode != 0x236));
    }

    #[test]
    fn every_mnemonic_of_the_table_has_an_opcode() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let list = line.rsplit('\t').next().unwrap();
            let words = list.split(' ').filter(|word| word.contains('*')).count();
            assert_eq!(read(list).opcodes.len(), words, "{line}");
        }
    }

    #[test]
    fn what_the_table_lacks_is_one_matrix_instruction() {
        assert_eq!(of("wgmma.m64n16k16.f32.f16.f16.f32", 90).opcodes, [(0x9f0, 1)]);
        assert_eq!(of("mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0", 90).opcodes, [(0x47f, 1)]);
    }
}
