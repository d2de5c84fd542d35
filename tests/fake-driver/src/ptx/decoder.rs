//! The operands of one statement: resolves names to register numbers and checks types.

use std::collections::HashMap;

use super::{
    Fault,
    names::Names,
    syntax::{Operand, Statement, number},
    target::Target,
    value::{Address, Kind, Source, Space, Special, Type},
};

/// A statement and what is needed to decode it.
pub(super) struct Decoder<'a> {
    pub names: &'a Names,
    pub statement: &'a Statement,
    pub target: Target,
    pub version: u32,
}

impl Decoder<'_> {
    pub(super) fn fault(&self, text: impl std::fmt::Display) -> Fault {
        self.statement.fault(text)
    }

    pub(super) fn unknown(&self) -> Fault {
        self.fault(format!("`{}` is not understood by the fake driver", self.statement.opcode.join(".")))
    }

    pub(super) fn lookup(&self, name: &str) -> Result<(usize, Type), Fault> {
        self.names.registers.get(name).copied().ok_or_else(|| self.fault(format!("Unknown symbol '{name}'")))
    }

    pub(super) fn predicate(&self, name: &str) -> Result<usize, Fault> {
        let (register, kind) = self.lookup(name)?;
        if kind.kind != Kind::Predicate {
            return Err(self.fault(format!("'{name}' is not a predicate")));
        }
        Ok(register)
    }

    /// Looks up a register that holds `kind`, or a wider one if `wider` is set (for instructions that extend or cut).
    pub(super) fn register(&self, name: &str, kind: Type, wider: bool) -> Result<usize, Fault> {
        let (register, own) = self.lookup(name)?;
        let fits = if wider { own.bits >= kind.bits } else { own.bits == kind.bits };
        let predicates = (own.kind == Kind::Predicate) == (kind.kind == Kind::Predicate);
        let untyped = own.kind == Kind::Bits || kind.kind == Kind::Bits;
        let alike = untyped || own.kind == kind.kind || (own.is_integer() && kind.is_integer());
        if fits && predicates && alike {
            return Ok(register);
        }
        Err(self.fault(format!("Arguments mismatch for instruction '{}': '{name}'", self.statement.opcode[0])))
    }

    pub(super) fn source(&self, word: &str, kind: Type) -> Result<Source, Fault> {
        self.source_of(word, kind, false)
    }

    pub(super) fn source_of(&self, word: &str, kind: Type, wider: bool) -> Result<Source, Fault> {
        if self.names.registers.contains_key(word) {
            return Ok(Source::Register(self.register(word, kind, wider)?));
        }
        if let Some(special) = special(word) {
            let bits = if word.ends_with("64") { 64 } else { 32 };
            if kind.bits != bits {
                return Err(self.fault(format!("Arguments mismatch: '{word}' has {bits} bits")));
            }
            return Ok(Source::Special(special));
        }
        if let Some(offset) = self.names.shared.get(word) {
            return Ok(Source::Constant(*offset));
        }
        constant(word, kind).map(Source::Constant).ok_or_else(|| self.fault(format!("Unknown symbol '{word}'")))
    }

    pub(super) fn operands(&self, count: usize) -> Result<&[Operand], Fault> {
        let operands = &self.statement.operands[..];
        if operands.len() != count {
            let opcode = self.statement.opcode.join(".");
            return Err(self.fault(format!("`{opcode}` takes {count} operands, not {}", operands.len())));
        }
        Ok(operands)
    }

    pub(super) fn word<'a>(&self, operand: &'a Operand) -> Result<&'a str, Fault> {
        match operand {
            Operand::Word(word) => Ok(word),
            _ => Err(self.fault("a vector or an address where a register belongs")),
        }
    }

    /// The registers of a vector, each of `bits`.
    pub(super) fn vector(&self, operand: &Operand, bits: u32) -> Result<Vec<usize>, Fault> {
        let kind = Type { kind: Kind::Bits, bits };
        match operand {
            Operand::Vector(words) => words.iter().map(|word| self.register(word, kind, false)).collect(),
            _ => Err(self.fault("a vector of registers is missing")),
        }
    }

    /// The last type in the opcode.
    pub(super) fn kind(&self) -> Result<Type, Fault> {
        let found = self.statement.opcode[1..].iter().rev().find_map(|word| Type::parse(word));
        found.ok_or_else(|| self.fault(format!("`{}` names no type", self.statement.opcode.join("."))))
    }

    /// Checks that every word between the name and the type is one of these.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Fault> {
        let mut words = self.statement.opcode[1..].iter();
        let unknown = words.find(|word| Type::parse(word).is_none() && !known.contains(&word.as_str()));
        unknown.map_or(Ok(()), |word| Err(self.fault(format!("Unexpected token '.{word}'"))))
    }

    pub(super) fn address(&self, operand: &Operand, space: Space) -> Result<Address, Fault> {
        let Operand::Address { base, offset } = operand else { return Err(self.fault("an address is missing")) };
        let table = match space {
            Space::Parameter => &self.names.parameters,
            Space::Shared => &self.names.shared,
            Space::Global => &HashMap::new(),
        };
        if let Some(start) = table.get(base) {
            return Ok(Address { base: Source::Constant(*start), offset: *offset });
        }
        // Addresses in shared memory may be held in 32 bits.
        let (register, kind) = self.lookup(base)?;
        let wide = kind.bits == 64 || (kind.bits == 32 && space == Space::Shared);
        if !wide || space == Space::Parameter || !kind.is_integer() {
            return Err(self.fault(format!("'{base}' is not an address of this space")));
        }
        Ok(Address { base: Source::Register(register), offset: *offset })
    }
}

fn special(word: &str) -> Option<Special> {
    match word {
        "%clock64" => return Some(Special::Clock),
        "%smid" => return Some(Special::Multiprocessor),
        _ => {}
    }
    let (name, axis) = word.strip_prefix('%')?.split_once('.')?;
    let axis = ["x", "y", "z"].iter().position(|one| *one == axis)?;
    match name {
        "tid" => Some(Special::Thread(axis)),
        "ntid" => Some(Special::Threads(axis)),
        "ctaid" => Some(Special::Block(axis)),
        "nctaid" => Some(Special::Blocks(axis)),
        _ => None,
    }
}

/// The bits of a number: `3`, `-1`, `0xff`, `0f3F800000`, `0d3FF0000000000000`, `1.5`.
pub(super) fn constant(word: &str, kind: Type) -> Option<u64> {
    let hex = |prefix: &str, digits: usize| {
        let digits_text = word.strip_prefix(prefix)?;
        (digits_text.len() == digits).then(|| u64::from_str_radix(digits_text, 16).ok()).flatten()
    };
    if kind.kind == Kind::Predicate {
        return None;
    }
    if !kind.is_integer() || kind.kind == Kind::Bits {
        let float = match kind.bits {
            32 => hex("0f", 8).or_else(|| hex("0F", 8)),
            64 => hex("0d", 16).or_else(|| hex("0D", 16)),
            _ => None,
        };
        if float.is_some() || !kind.is_integer() {
            return float.or_else(|| decimal(word, kind));
        }
    }
    number(word).map(|value| value.cast_unsigned() & kind.mask())
}

fn decimal(word: &str, kind: Type) -> Option<u64> {
    match (word.contains('.'), kind.bits) {
        (true, 32) => word.parse::<f32>().ok().map(|value| u64::from(value.to_bits())),
        (true, 64) => word.parse::<f64>().ok().map(f64::to_bits),
        _ => None,
    }
}
