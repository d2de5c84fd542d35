//! The "cubin" that linking returns: an ELF file with opcodes where a scanner looks for them, and the PTX to run.

use crate::{
    lowering::{CALL_ABSOLUTE, CALL_RELATIVE, Lowering},
    settings::Linker,
};

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

/// The instructions around the matrix instructions: S2R, IMAD and two loads before, a store and EXIT after.
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

    /// An allocated and executable section.
    fn code(name: String, bytes: Vec<u8>) -> Self {
        Self { flags: 0x6, ..Self::new(name, PROGBITS, bytes) }
    }
}

/// The symbols of a file: local ones come first, as ELF requires.
#[derive(Default)]
struct Symbols {
    names: Vec<u8>,
    local: Vec<u8>,
    global: Vec<u8>,
}

impl Symbols {
    /// Adds a function of `size` bytes in a section.
    fn add(&mut self, name: &str, is_local: bool, section: usize, size: usize) {
        let table = if is_local { &mut self.local } else { &mut self.global };
        // The table of names begins with a zero byte.
        table.extend((self.names.len() as u32 + 1).to_le_bytes());
        table.extend([if is_local { 0x02 } else { 0x12 }, 0]);
        table.extend((section as u16).to_le_bytes());
        table.extend(0u64.to_le_bytes());
        table.extend((size as u64).to_le_bytes());
        self.names.extend(name.as_bytes());
        self.names.push(0);
    }

    /// The string table, and the symbol table with the index of the first global symbol.
    fn sections(self, names_section: u32) -> [Section; 2] {
        let names = [&[0], &self.names[..]].concat();
        let table = [&[0; SYMBOL_BYTES as usize], &self.local[..], &self.global].concat();
        let mut symbols = Section::new(".symtab".to_owned(), SYMBOLS, table);
        symbols.info = 1 + (self.local.len() / SYMBOL_BYTES as usize) as u32;
        (symbols.link, symbols.entry_bytes) = (names_section, SYMBOL_BYTES);
        [Section::new(".strtab".to_owned(), STRINGS, names), symbols]
    }
}

/// Writes the file. The section table comes last, so that the header gives the length of the file.
pub(crate) fn write(capability: u32, kernels: &[Code], ptx: &str, linker: Linker) -> Vec<u8> {
    let mut sections = vec![Section::new(String::new(), 0, Vec::new())];
    let mut symbols = Symbols::default();
    let call = if linker == Linker::Assembler { CALL_RELATIVE } else { CALL_ABSOLUTE };
    let has_own_sections = matches!(linker, Linker::Absolute | Linker::Stripped);
    for kernel in kernels {
        let mut opcodes = Vec::new();
        for Lowering { opcodes: all, routines } in &kernel.operations {
            let (calls, others): (Vec<_>, Vec<_>) =
                all.iter().copied().partition(|(opcode, _)| *opcode == CALL_RELATIVE);
            opcodes.extend(calls.into_iter().map(|(_, count)| (call, count)));
            if routines.is_empty() || !has_own_sections {
                opcodes.extend(others);
                continue;
            }
            for routine in routines {
                let text = instructions(&others);
                if linker == Linker::Absolute {
                    symbols.add(routine, true, sections.len(), text.len());
                }
                sections.push(Section::code(format!(".text.{routine}"), text));
            }
        }
        let text = instructions(&opcodes);
        symbols.add(&kernel.name, false, sections.len(), text.len());
        if linker == Linker::Assembler {
            for routine in kernel.operations.iter().flat_map(|operation| &operation.routines) {
                symbols.add(&format!("$__internal_0_${routine}"), true, sections.len(), 0);
            }
        }
        sections.push(Section::code(format!(".text.{}", kernel.name), text));
    }
    sections.push(Section::new(PTX_SECTION.to_owned(), PROGBITS, ptx.as_bytes().to_vec()));
    let names_section = sections.len() as u32;
    sections.extend(symbols.sections(names_section));
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

fn instructions(between: &[(u16, usize)]) -> Vec<u8> {
    let mut opcodes = BEFORE.to_vec();
    opcodes.extend(between.iter().flat_map(|(opcode, count)| std::iter::repeat_n(*opcode, *count)));
    opcodes.extend(AFTER);
    // Bits 12 to 15 are the predicate, 7 for always.
    let words = opcodes.into_iter().map(|opcode| u128::from(opcode | 7 << 12));
    words.flat_map(u128::to_le_bytes).collect()
}

/// The length of the file with this header; `None` if the file is not one of ours.
pub(crate) fn length(header: &[u8; 64]) -> Option<usize> {
    let start = usize::try_from(u64::from_le_bytes(header[40..48].try_into().ok()?)).ok()?;
    let half = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let ours = header.starts_with(b"\x7fELF\x02\x01") && half(18) == usize::from(MACHINE) && half(58) == SECTION_BYTES;
    ours.then(|| start.checked_add(half(60) * SECTION_BYTES)).flatten()
}

/// The compute capability that a file was made for, and the PTX in it.
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

    const ROUTINE: &str = "__cuda_sm_9x_mma";

    fn file(linker: Linker) -> Vec<u8> {
        let opcodes = vec![(0x237, 2), (CALL_RELATIVE, 1)];
        let operations = vec![Lowering { opcodes, routines: vec![ROUTINE.to_owned()] }];
        write(90, &[Code { name: "tiles".to_owned(), operations }], "the text", linker)
    }

    fn holds(file: &[u8], text: &str) -> bool {
        file.windows(text.len()).any(|window| window == text.as_bytes())
    }

    #[test]
    fn the_ptx_comes_back_out_of_the_file() {
        for linker in [Linker::Assembler, Linker::Absolute, Linker::Stripped, Linker::Bare] {
            let file = file(linker);
            assert_eq!(read(&file), Some((90, "the text")), "{linker:?}");
            assert_eq!(length(file[..64].try_into().unwrap()), Some(file.len()), "{linker:?}");
        }
        assert_eq!(read(b"no file"), None);
    }

    #[test]
    fn instructions_have_16_bytes_and_their_opcode_lowest() {
        let text = instructions(&[(0x23c, 2)]);
        let opcodes: Vec<u16> = text.chunks(16).map(|chunk| u16::from_le_bytes([chunk[0], chunk[1]]) & 0xfff).collect();
        assert_eq!(opcodes, [0x919, 0x224, 0x981, 0x981, 0x23c, 0x23c, 0x986, 0x94d]);
    }

    #[test]
    fn each_linker_names_the_routines_in_its_own_way() {
        let opcode = |file: &[u8], wanted: u16| {
            file.chunks_exact(16).any(|chunk| u16::from_le_bytes([chunk[0], chunk[1]]) & 0xfff == wanted)
        };
        for (linker, prefixed, symbol, section, absolute) in [
            (Linker::Assembler, true, true, false, false),
            (Linker::Absolute, false, true, true, true),
            (Linker::Stripped, false, false, true, true),
            (Linker::Bare, false, false, false, true),
        ] {
            let file = file(linker);
            assert_eq!(holds(&file, &format!("$__internal_0_${ROUTINE}\0")), prefixed, "{linker:?}");
            assert_eq!(holds(&file, &format!("\0{ROUTINE}\0")) || prefixed, symbol, "{linker:?}");
            assert_eq!(holds(&file, &format!(".text.{ROUTINE}\0")), section, "{linker:?}");
            assert_eq!((opcode(&file, 0x943), opcode(&file, 0x944)), (absolute, !absolute), "{linker:?}");
            assert!(opcode(&file, 0x237), "{linker:?}");
        }
    }
}
