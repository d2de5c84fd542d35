//! The "cubin" that linking gives: an ELF file with opcodes where a scanner looks for them, and the PTX to run.

use crate::lowering::Lowering;

/// `EM_CUDA`.
const MACHINE: u16 = 190;
const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: u64 = 24;
const INSTRUCTION_BYTES: usize = 16;
/// The section that holds the PTX.
const PTX_SECTION: &str = ".nv_mxprobe_ptx";

const PROGBITS: u32 = 1;
const SYMBOLS: u32 = 2;
const STRINGS: u32 = 3;

/// What surrounds the matrix instructions: S2R, IMAD and two loads before, a store and the end after.
const BEFORE: [u16; 4] = [0x919, 0x224, 0x981, 0x981];
const AFTER: [u16; 2] = [0x986, 0x94d];

/// The machine code of one kernel.
#[derive(Debug)]
pub(crate) struct Code {
    pub name: String,
    pub operations: Vec<Lowering>,
}

struct Section {
    name: String,
    kind: u32,
    flags: u64,
    link: u32,
    info: u32,
    entry_bytes: u64,
    bytes: Vec<u8>,
}

impl Section {
    fn new(name: String, kind: u32, bytes: Vec<u8>) -> Self {
        Self { name, kind, flags: 0, link: 0, info: 0, entry_bytes: 0, bytes }
    }
}

/// Writes the file. The section table stands last, so that the header tells how long the file is.
pub(crate) fn write(capability: u32, kernels: &[Code], ptx: &str) -> Vec<u8> {
    let mut names = vec![0];
    let mut symbols = vec![0; 24];
    let symbol = |names: &mut Vec<u8>, symbols: &mut Vec<u8>, name: &str, section: u16, size: usize| {
        symbols.extend((names.len() as u32).to_le_bytes());
        // A global function.
        symbols.extend([0x12, 0]);
        symbols.extend(section.to_le_bytes());
        symbols.extend(0u64.to_le_bytes());
        symbols.extend((size as u64).to_le_bytes());
        names.extend(name.as_bytes());
        names.push(0);
    };
    let mut code_sections = Vec::new();
    for (index, kernel) in (1..).zip(kernels) {
        let text = instructions(&kernel.operations);
        symbol(&mut names, &mut symbols, &kernel.name, index, text.len());
        for routine in kernel.operations.iter().flat_map(|operation| &operation.routines) {
            symbol(&mut names, &mut symbols, &format!("$__internal_0_${routine}"), index, 0);
        }
        let mut section = Section::new(format!(".text.{}", kernel.name), PROGBITS, text);
        // Allocated and executable.
        section.flags = 0x6;
        code_sections.push(section);
    }
    let mut sections = vec![Section::new(String::new(), 0, Vec::new())];
    sections.extend(code_sections);
    sections.push(Section::new(PTX_SECTION.to_owned(), PROGBITS, ptx.as_bytes().to_vec()));
    let strings = sections.len() as u32;
    sections.push(Section::new(".strtab".to_owned(), STRINGS, names));
    let mut table = Section::new(".symtab".to_owned(), SYMBOLS, symbols);
    (table.link, table.info, table.entry_bytes) = (strings, 1, SYMBOL_BYTES);
    sections.push(table);
    sections.push(Section::new(".shstrtab".to_owned(), STRINGS, Vec::new()));
    assemble(capability, sections)
}

fn assemble(capability: u32, mut sections: Vec<Section>) -> Vec<u8> {
    let mut section_names = Vec::new();
    let mut name_offsets = Vec::new();
    for section in &sections {
        name_offsets.push(section_names.len() as u32);
        section_names.extend(section.name.as_bytes());
        section_names.push(0);
    }
    let last = sections.len() - 1;
    sections[last].bytes = section_names;
    let mut body = Vec::new();
    let mut table = Vec::new();
    for (section, name) in sections.iter().zip(name_offsets) {
        body.resize((HEADER_BYTES + body.len()).next_multiple_of(INSTRUCTION_BYTES) - HEADER_BYTES, 0);
        let offset = if section.kind == 0 { 0 } else { HEADER_BYTES + body.len() };
        let alignment = u64::from(section.kind != 0) * INSTRUCTION_BYTES as u64;
        table.extend(name.to_le_bytes());
        table.extend(section.kind.to_le_bytes());
        for word in [section.flags, 0, offset as u64, section.bytes.len() as u64] {
            table.extend(word.to_le_bytes());
        }
        table.extend(section.link.to_le_bytes());
        table.extend(section.info.to_le_bytes());
        table.extend(alignment.to_le_bytes());
        table.extend(section.entry_bytes.to_le_bytes());
        body.extend(&section.bytes);
    }
    body.resize((HEADER_BYTES + body.len()).next_multiple_of(8) - HEADER_BYTES, 0);
    // 64 bits, little-endian, version 1, the ABI of CUDA (0x33), version 7.
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0x33, 7, 0, 0, 0, 0, 0, 0, 0];
    file.extend(2u16.to_le_bytes());
    file.extend(MACHINE.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(0u64.to_le_bytes());
    file.extend(((HEADER_BYTES + body.len()) as u64).to_le_bytes());
    file.extend(capability.to_le_bytes());
    for half in [HEADER_BYTES as u16, 0, 0, SECTION_BYTES as u16, sections.len() as u16, last as u16] {
        file.extend(half.to_le_bytes());
    }
    file.extend(body);
    file.extend(table);
    file
}

fn instructions(operations: &[Lowering]) -> Vec<u8> {
    let mut opcodes = BEFORE.to_vec();
    for operation in operations {
        for (opcode, count) in &operation.opcodes {
            opcodes.extend(std::iter::repeat_n(*opcode, *count));
        }
    }
    opcodes.extend(AFTER);
    // Bits 12 to 15 are the predicate, 7 for always.
    let words = opcodes.into_iter().map(|opcode| u128::from(opcode | 7 << 12));
    words.flat_map(u128::to_le_bytes).collect()
}

/// How long a file is whose first 64 bytes these are; `None` if it is none of ours.
pub(crate) fn length(header: &[u8; 64]) -> Option<usize> {
    let start = usize::try_from(u64::from_le_bytes(header[40..48].try_into().ok()?)).ok()?;
    let half = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let ours = header.starts_with(b"\x7fELF\x02\x01") && half(18) == usize::from(MACHINE) && half(58) == SECTION_BYTES;
    ours.then(|| start.checked_add(half(60) * SECTION_BYTES)).flatten()
}

/// The PTX in a file, and the capability that the file was made for.
pub(crate) fn read(file: &[u8]) -> Option<(u32, &str)> {
    let word = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
    let place = |at: usize| usize::try_from(word(at)?).ok();
    let capability = word(48)? as u32;
    let (table, count, names) = (place(40)?, word(60)? as u16, (word(60)? >> 16) as u16);
    let bytes = |index: u16| {
        let header = table + usize::from(index) * SECTION_BYTES;
        let start = place(header + 24)?;
        file.get(start..start.checked_add(place(header + 32)?)?)
    };
    let names = bytes(names)?;
    let found = (0..count).find(|index| {
        let name = word(table + usize::from(*index) * SECTION_BYTES).map(|word| word as u32 as usize);
        name.and_then(|at| names.get(at..)).is_some_and(|name| name.starts_with(PTX_SECTION.as_bytes()))
    })?;
    Some((capability, std::str::from_utf8(bytes(found)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let operations =
            vec![Lowering { opcodes: vec![(0x23c, 2), (0x221, 4)], routines: vec!["__cuda_sm_9x_mma".to_owned()] }];
        write(90, &[Code { name: "tiles".to_owned(), operations }], "the text")
    }

    #[test]
    fn the_ptx_comes_back_out_of_the_file() {
        let file = file();
        assert_eq!(read(&file), Some((90, "the text")));
        assert_eq!(length(file[..64].try_into().unwrap()), Some(file.len()));
        assert_eq!(read(b"no file"), None);
    }

    #[test]
    fn instructions_have_16_bytes_and_their_opcode_lowest() {
        let text = instructions(&[Lowering { opcodes: vec![(0x23c, 2)], routines: Vec::new() }]);
        let opcodes: Vec<u16> = text.chunks(16).map(|chunk| u16::from_le_bytes([chunk[0], chunk[1]]) & 0xfff).collect();
        assert_eq!(opcodes, [0x919, 0x224, 0x981, 0x981, 0x23c, 0x23c, 0x986, 0x94d]);
    }

    #[test]
    fn the_symbols_name_the_routines() {
        let file = file();
        let routine = b"$__internal_0_$__cuda_sm_9x_mma\0";
        assert!(file.windows(routine.len()).any(|window| window == routine));
    }
}
