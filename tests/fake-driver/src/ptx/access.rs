//! Loads, stores and moves.

use super::{
    Fault,
    decoder::Decoder,
    kernel::{Alu, Instruction},
    syntax::Operand,
    value::{Kind, Space, Type},
};

impl Decoder<'_> {
    /// The space, the type, and the number of values.
    fn access(&self) -> Result<(Space, Type, usize), Fault> {
        self.only(&[
            "global",
            "shared",
            "param",
            "v2",
            "v4",
            "volatile",
            "weak",
            "nc",
            "ca",
            "cg",
            "cs",
            "lu",
            "cv",
            "wb",
            "wt",
            "shared::cta",
        ])?;
        let kind = self.kind()?;
        let space =
            match (self.statement.has("shared") || self.statement.has("shared::cta"), self.statement.has("param")) {
                (true, _) => Space::Shared,
                (_, true) => Space::Parameter,
                _ => Space::Global,
            };
        let count = if self.statement.has("v4") { 4 } else { 1 + usize::from(self.statement.has("v2")) };
        if kind.kind == Kind::Predicate || count * kind.bytes() > 16 {
            return Err(self.unknown());
        }
        Ok((space, kind, count))
    }

    pub(super) fn load(&self) -> Result<Instruction, Fault> {
        let (space, kind, count) = self.access()?;
        let operands = self.operands(2)?;
        let into = match (&operands[0], count) {
            (Operand::Word(word), 1) => vec![self.register(word, kind, true)?],
            (Operand::Vector(words), _) if words.len() == count => {
                words.iter().map(|word| self.register(word, kind, true)).collect::<Result<_, _>>()?
            }
            _ => return Err(self.fault(format!("`ld` takes {count} registers here"))),
        };
        Ok(Instruction::Load { space, kind, address: self.address(&operands[1], space)?, into })
    }

    pub(super) fn store(&self) -> Result<Instruction, Fault> {
        let (space, kind, count) = self.access()?;
        if space == Space::Parameter {
            return Err(self.unknown());
        }
        let operands = self.operands(2)?;
        let from = match (&operands[1], count) {
            (Operand::Word(word), 1) => vec![self.source_of(word, kind, true)?],
            (Operand::Vector(words), _) if words.len() == count => {
                words.iter().map(|word| self.source_of(word, kind, true)).collect::<Result<_, _>>()?
            }
            _ => return Err(self.fault(format!("`st` takes {count} registers here"))),
        };
        Ok(Instruction::Store { space, kind, address: self.address(&operands[0], space)?, from })
    }

    pub(super) fn mov(&self) -> Result<Instruction, Fault> {
        self.only(&[])?;
        let kind = self.kind()?;
        let part = |words: &[String]| match words.len() {
            2 | 4 if kind.kind == Kind::Bits => {
                Ok(Type { kind: Kind::Bits, bits: kind.bits / u32::try_from(words.len()).unwrap_or(1) })
            }
            _ => Err(self.fault("`mov` packs two or four parts into untyped bits")),
        };
        match self.operands(2)? {
            [Operand::Word(into), Operand::Vector(words)] => {
                let part = part(words)?;
                let from = words.iter().map(|word| self.source(word, part)).collect::<Result<_, _>>()?;
                Ok(Instruction::Pack { bits: part.bits, into: self.register(into, kind, false)?, from })
            }
            [Operand::Vector(words), Operand::Word(from)] => {
                let part = part(words)?;
                let into = words.iter().map(|word| self.register(word, part, false)).collect::<Result<_, _>>()?;
                Ok(Instruction::Unpack { bits: part.bits, into, from: self.source(from, kind)? })
            }
            _ => self.compute(Alu::Move, 1),
        }
    }
}
