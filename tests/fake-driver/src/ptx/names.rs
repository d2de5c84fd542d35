//! A kernel's names: registers, parameters, shared memory, labels.

use std::collections::HashMap;

use super::{
    Fault,
    syntax::{Declaration, EntryText, Item},
    value::{Kind, Type},
};

/// The start of static shared memory: not 0, so that a forgotten base is detected.
pub(crate) const SHARED_BASE: u64 = 1024;

/// The names of a kernel and what each refers to.
#[derive(Default)]
pub(super) struct Names {
    pub registers: HashMap<String, (usize, Type)>,
    pub masks: Vec<u64>,
    pub shared: HashMap<String, u64>,
    shared_end: u64,
    pub parameters: HashMap<String, u64>,
    pub labels: HashMap<String, usize>,
}

impl Names {
    /// Collects the names of a kernel, and the offset and size in bytes of each parameter.
    pub(super) fn read(entry: &EntryText) -> Result<(Self, Vec<(usize, usize)>), Fault> {
        let mut names = Self { shared_end: SHARED_BASE, ..Self::default() };
        let parameters = names.declare_parameters(entry)?;
        let mut steps = 0;
        for item in &entry.body {
            match item {
                Item::Declaration(declaration) => names.declare(declaration)?,
                Item::Label(label, line) => {
                    if names.labels.insert(label.clone(), steps).is_some() {
                        return Err(Fault::new(*line, format!("Duplicate definition of label '{label}'")));
                    }
                }
                Item::Statement(_) => steps += 1,
            }
        }
        Ok((names, parameters))
    }

    /// Bytes of static shared memory.
    pub(super) fn shared_bytes(&self) -> usize {
        usize::try_from(self.shared_end - SHARED_BASE).unwrap_or(usize::MAX)
    }

    fn declare_parameters(&mut self, entry: &EntryText) -> Result<Vec<(usize, usize)>, Fault> {
        let mut parameters = Vec::new();
        let mut end = 0;
        for Declaration { line, text } in &entry.parameters {
            let words: Vec<&str> = text.split_whitespace().collect();
            let kind = match words[..] {
                [".param", kind, _] => {
                    kind.strip_prefix('.').and_then(Type::parse).filter(|kind| kind.kind != Kind::Predicate)
                }
                _ => None,
            };
            let kind = kind.ok_or_else(|| Fault::new(*line, format!("`{text}` is not understood as a parameter")))?;
            let size = kind.bytes();
            let offset = usize::next_multiple_of(end, size);
            end = offset + size;
            parameters.push((offset, size));
            let name = words[words.len() - 1].to_owned();
            if self.parameters.insert(name.clone(), offset as u64).is_some() {
                return Err(Fault::new(*line, format!("Duplicate definition of parameter '{name}'")));
            }
        }
        Ok(parameters)
    }

    fn declare(&mut self, Declaration { line, text }: &Declaration) -> Result<(), Fault> {
        let wrong = || Fault::new(*line, format!("`{text}` is not understood as a declaration"));
        let (word, rest) = text.split_once(char::is_whitespace).ok_or_else(wrong)?;
        match word {
            ".reg" => {
                let (kind, list) = rest.trim_start().split_once(char::is_whitespace).ok_or_else(wrong)?;
                let kind = kind.strip_prefix('.').and_then(Type::parse).ok_or_else(wrong)?;
                for name in list.split(',').map(str::trim) {
                    self.declare_registers(name, kind, *line)?;
                }
                Ok(())
            }
            ".shared" => self.declare_shared(rest).ok_or_else(wrong),
            ".pragma" => Ok(()),
            _ => Err(wrong()),
        }
    }

    fn declare_registers(&mut self, name: &str, kind: Type, line: usize) -> Result<(), Fault> {
        let mut add = |name: String| {
            if is_special(&name) {
                return Err(Fault::new(line, format!("'{name}' is a special register")));
            }
            if self.registers.insert(name.clone(), (self.masks.len(), kind)).is_some() {
                return Err(Fault::new(line, format!("Duplicate definition of variable '{name}'")));
            }
            self.masks.push(kind.mask());
            Ok(())
        };
        match name.split_once('<') {
            None if !name.is_empty() => add(name.to_owned()),
            None => Err(Fault::new(line, "a register without a name")),
            Some((stem, count)) => {
                let count = count.strip_suffix('>').and_then(|count| count.trim().parse::<usize>().ok());
                let count = count.filter(|count| *count <= 4096);
                let count = count.ok_or_else(|| Fault::new(line, format!("`{name}` is not a list of registers")))?;
                (0..count).try_for_each(|index| add(format!("{stem}{index}")))
            }
        }
    }

    /// Declares `.align 128 .b8 name[256]`.
    fn declare_shared(&mut self, text: &str) -> Option<()> {
        let mut words = text.split_whitespace().peekable();
        let mut alignment = 1;
        if words.next_if_eq(&".align").is_some() {
            alignment = words.next()?.parse::<u64>().ok().filter(|align| align.is_power_of_two())?;
        }
        let kind = Type::parse(words.next()?.strip_prefix('.')?)?;
        let name: String = words.collect();
        let (name, count) = match name.split_once('[') {
            Some((name, count)) => (name.to_owned(), count.strip_suffix(']')?.trim().parse::<u64>().ok()?),
            None => (name, 1),
        };
        let start = self.shared_end.next_multiple_of(alignment.max(kind.bytes() as u64));
        self.shared_end = start + count.checked_mul(kind.bytes() as u64).filter(|bytes| *bytes <= 1 << 20)?;
        self.shared.insert(name, start).is_none().then_some(())
    }
}

/// Whether PTX predefines a register of this name. NVIDIA's assembler accepts such a declaration, but reads the special
/// register wherever the name occurs.
fn is_special(name: &str) -> bool {
    const NAMES: [&str; 23] = [
        "tid",
        "ntid",
        "laneid",
        "warpid",
        "nwarpid",
        "ctaid",
        "nctaid",
        "smid",
        "nsmid",
        "gridid",
        "clock",
        "clock_hi",
        "clock64",
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        "clusterid",
        "nclusterid",
        "is_explicit_cluster",
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
    ];
    const STEMS: [&str; 5] = ["lanemask_", "cluster_", "reserved_smem_offset_", "envreg", "pm"];
    let Some(name) = name.strip_prefix('%') else { return false };
    let follows = |stem: &&str| {
        let rest = name.strip_prefix(*stem);
        rest.is_some_and(|rest| stem.ends_with('_') || rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    NAMES.contains(&name) || STEMS.iter().any(follows)
}
