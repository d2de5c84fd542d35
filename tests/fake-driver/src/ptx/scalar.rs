//! Arithmetic on the registers of one thread.

use rustc_apfloat::Round;

use super::{
    Fault,
    decoder::Decoder,
    kernel::{Alu, Comparison, Conversion, Elementary, Function, Instruction, Rounded},
    value::{Kind, Source, Type},
};

impl Decoder<'_> {
    /// Reads an instruction whose result and operands have these types.
    fn compute_from(&self, alu: Alu, result: Type, types: &[Type]) -> Result<Instruction, Fault> {
        let operands = self.operands(types.len() + 1)?;
        let into = self.register(self.word(&operands[0])?, result, false)?;
        let mut from = [Source::Constant(0); 3];
        for ((source, operand), kind) in from.iter_mut().zip(&operands[1..]).zip(types) {
            *source = self.source(self.word(operand)?, *kind)?;
        }
        Ok(Instruction::Compute { alu, kind: self.kind()?, into, from })
    }

    /// Reads an instruction with one type.
    pub(super) fn compute(&self, alu: Alu, count: usize) -> Result<Instruction, Fault> {
        let kind = self.kind()?;
        self.compute_from(alu, kind, &[kind; 3][..count])
    }

    fn check_type(&self, is_allowed: bool) -> Result<(), Fault> {
        let name = &self.statement.opcode[0];
        if is_allowed {
            Ok(())
        } else {
            Err(self.fault(format!("Unexpected instruction types specified for '{name}'")))
        }
    }

    pub(super) fn integer(&self, alu: Alu) -> Result<Instruction, Fault> {
        self.check_type(matches!(self.kind()?.kind, Kind::Signed | Kind::Unsigned))?;
        self.only(&[])?;
        self.compute(alu, 2)
    }

    pub(super) fn logic(&self, alu: Alu) -> Result<Instruction, Fault> {
        self.check_type(matches!(self.kind()?.kind, Kind::Bits | Kind::Predicate))?;
        self.only(&[])?;
        self.compute(alu, 2)
    }

    /// Reads a shift, whose amount always has 32 bits.
    pub(super) fn shift(&self, alu: Alu) -> Result<Instruction, Fault> {
        self.only(&[])?;
        let kind = self.kind()?;
        self.compute_from(alu, kind, &[kind, Type::U32])
    }

    /// Reads `shf.l.wrap.b32`.
    pub(super) fn funnel(&self) -> Result<Instruction, Fault> {
        self.only(&["l", "wrap"])?;
        if !self.statement.opcode[1..].starts_with(&["l".into(), "wrap".into()]) || self.kind()? != Type::B32 {
            return Err(self.unknown());
        }
        self.compute_from(Alu::FunnelLeft, Type::B32, &[Type::B32, Type::B32, Type::U32])
    }

    pub(super) fn product(&self) -> Result<Instruction, Fault> {
        self.only(&["lo", "wide"])?;
        let kind = self.kind()?;
        let adds = self.statement.opcode[0] == "mad";
        let wide = self.statement.has("wide");
        let alu = match (adds, wide, self.statement.has("lo")) {
            (false, true, false) => Alu::MultiplyWide,
            (false, false, true) => Alu::MultiplyLow,
            (true, true, false) => Alu::MultiplyAddWide,
            (true, false, true) => Alu::MultiplyAddLow,
            _ => return Err(self.unknown()),
        };
        let is_integer = matches!(kind.kind, Kind::Signed | Kind::Unsigned);
        self.check_type(is_integer && kind.bits >= 16 && !(wide && kind.bits > 32))?;
        let result = if wide { Type { bits: kind.bits * 2, ..kind } } else { kind };
        self.compute_from(alu, result, &[kind, kind, result][..if adds { 3 } else { 2 }])
    }

    pub(super) fn float(&self) -> Result<Instruction, Fault> {
        self.only(&["rn", "rz", "rm", "rp", "ftz"])?;
        let kind = self.kind()?;
        let words = &self.statement.opcode;
        let given = words.iter().find_map(|word| rounding(word));
        let directed = given.is_some_and(|one| one != Round::NearestTiesToEven);
        if kind == Type::PREDICATE || (directed && kind.bits < 64 && kind != Type::F32) {
            return Err(self.fault("this type is rounded to nearest only"));
        }
        let fused = words[0] == "fma";
        if fused && given.is_none() {
            return Err(self.fault("Rounding modifier required for instruction 'fma'"));
        }
        let flush = self.statement.has("ftz");
        if flush && (kind.bits == 64 || kind.kind == Kind::Bfloat) {
            return Err(self.fault("Illegal modifier '.ftz'"));
        }
        let function = match words[0].as_str() {
            "add" => Function::Add,
            "sub" => Function::Subtract,
            "mul" => Function::Multiply,
            _ => Function::FusedMultiplyAdd,
        };
        let how = Rounded { round: given.unwrap_or(Round::NearestTiesToEven), flush };
        self.compute(Alu::Float(function, how), if fused { 3 } else { 2 })
    }

    /// Reads `div` and `sqrt` of f32 and f64: rounded in a direction or, for f32 only, approximated.
    pub(super) fn quotient(&self) -> Result<Instruction, Fault> {
        self.only(&["rn", "rz", "rm", "rp", "ftz", "approx", "full"])?;
        let (kind, divides) = (self.kind()?, self.statement.opcode[0] == "div");
        let approximates = self.statement.has("approx") || (divides && self.statement.has("full"));
        let flush = self.statement.has("ftz");
        if kind.kind != Kind::Float || kind.bits == 16 || (kind != Type::F32 && (flush || approximates)) {
            return Err(self.unknown());
        }
        let given = self.statement.opcode.iter().find_map(|word| rounding(word));
        if given.is_some() == approximates {
            let name = &self.statement.opcode[0];
            return Err(self.fault(format!("Rounding modifier required for instruction '{name}'")));
        }
        let function = match (divides, approximates) {
            (true, false) => Function::Divide,
            (true, true) => Function::ApproximateDivide,
            (false, false) => Function::SquareRoot,
            (false, true) => Function::ApproximateSquareRoot,
        };
        let how = Rounded { round: given.unwrap_or(Round::NearestTiesToEven), flush };
        self.compute(Alu::Float(function, how), if divides { 2 } else { 1 })
    }

    /// Reads `neg` and `abs`, which change only the sign, except that `.ftz` flushes.
    pub(super) fn sign(&self) -> Result<Instruction, Fault> {
        self.only(&["ftz"])?;
        let kind = self.kind()?;
        let flush = self.statement.has("ftz");
        if kind.kind != Kind::Float || (kind != Type::F32 && flush) {
            return Err(self.unknown());
        }
        let function = if self.statement.opcode[0] == "neg" { Function::Negate } else { Function::Absolute };
        self.compute(Alu::Float(function, Rounded { round: Round::NearestTiesToEven, flush }), 1)
    }

    /// Reads `copysign` of f32 and f64.
    pub(super) fn copy_sign(&self) -> Result<Instruction, Fault> {
        self.only(&[])?;
        let kind = self.kind()?;
        if kind.kind != Kind::Float || kind.bits == 16 {
            return Err(self.unknown());
        }
        let how = Rounded { round: Round::NearestTiesToEven, flush: false };
        self.compute(Alu::Float(Function::CopySign, how), 2)
    }

    /// Reads approximated functions of f32, and `rcp`, which also exists for f64 and may be rounded in a direction.
    pub(super) fn elementary(&self) -> Result<Instruction, Fault> {
        self.only(&["rn", "rz", "rm", "rp", "ftz", "approx"])?;
        let (kind, name) = (self.kind()?, self.statement.opcode[0].as_str());
        let (approximates, flush) = (self.statement.has("approx"), self.statement.has("ftz"));
        let given = self.statement.opcode.iter().find_map(|word| rounding(word));
        let is_single = kind == Type::F32;
        if !is_single && (approximates || flush || kind.kind != Kind::Float || kind.bits != 64)
            || (name == "tanh" && flush)
        {
            return Err(self.unknown());
        }
        if given.is_some() == approximates || (name != "rcp" && !approximates) {
            return Err(self.fault(format!("Rounding modifier required for instruction '{name}'")));
        }
        let function = match name {
            "rcp" if !approximates => Function::Reciprocal,
            "rcp" => Function::Elementary(Elementary::Reciprocal),
            "rsqrt" => Function::Elementary(Elementary::ReciprocalRoot),
            "ex2" => Function::Elementary(Elementary::Exponential),
            "lg2" => Function::Elementary(Elementary::Logarithm),
            "sin" => Function::Elementary(Elementary::Sine),
            "cos" => Function::Elementary(Elementary::Cosine),
            _ => Function::Elementary(Elementary::Tangent),
        };
        let how = Rounded { round: given.unwrap_or(Round::NearestTiesToEven), flush };
        self.compute(Alu::Float(function, how), 1)
    }

    pub(super) fn compare(&self) -> Result<Instruction, Fault> {
        let kind = self.kind()?;
        let [_, word, modifiers @ .., _] = &self.statement.opcode[..] else { return Err(self.unknown()) };
        // f32 and f16 may flush (PTX ISA 9.0, 9.7.7.2 and 9.7.6.2).
        let flush = match modifiers {
            [] => false,
            [one] if one == "ftz" && kind.kind == Kind::Float && kind.bits < 64 => true,
            _ => return Err(self.unknown()),
        };
        let comparison = match word.as_str() {
            "lo" | "ls" | "hi" | "hs" if !kind.is_integer() => return Err(self.unknown()),
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "lt" | "lo" => Comparison::Less,
            "le" | "ls" => Comparison::LessOrEqual,
            "gt" | "hi" => Comparison::Greater,
            "ge" | "hs" => Comparison::GreaterOrEqual,
            _ => return Err(self.unknown()),
        };
        if kind.kind == Kind::Bits && !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            return Err(self.fault("untyped operands have no order"));
        }
        let operands = self.operands(3)?;
        let into = self.predicate(self.word(&operands[0])?)?;
        let from = [self.source(self.word(&operands[1])?, kind)?, self.source(self.word(&operands[2])?, kind)?];
        Ok(Instruction::Compare { comparison, kind, flush, into, from })
    }

    pub(super) fn convert(&self) -> Result<Instruction, Fault> {
        self.only(&["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "ftz"])?;
        let words = &self.statement.opcode;
        let kinds: Vec<Type> = words[1..].iter().filter_map(|word| Type::parse(word)).collect();
        let [to, from] = kinds[..] else { return Err(self.unknown()) };
        if [to, from].iter().any(|kind| kind.kind == Kind::Predicate) {
            return Err(self.unknown());
        }
        let given = words.iter().find_map(|word| rounding(word));
        let whole = words.iter().find_map(|word| word.strip_suffix('i').and_then(rounding));
        let needed = match (to.is_integer(), from.is_integer()) {
            (true, false) => whole.is_none(),
            (false, false) if to.bits > from.bits || to == from => false,
            (to, from) => !(to && from) && given.is_none(),
        };
        if whole.is_some() && !to.is_integer() {
            return Err(self.unknown());
        }
        if needed {
            return Err(self.fault("Rounding modifier required for instruction 'cvt'"));
        }
        let operands = self.operands(2)?;
        let into = self.register(self.word(&operands[0])?, to, true)?;
        let source = self.source_of(self.word(&operands[1])?, from, true)?;
        let round = given.or(whole).unwrap_or(Round::NearestTiesToEven);
        let how = Rounded { round, flush: self.statement.has("ftz") };
        let conversion = Conversion { to, from, how };
        Ok(Instruction::Convert { conversion, into, from: source })
    }
}

pub(super) fn rounding(word: &str) -> Option<Round> {
    match word {
        "rn" => Some(Round::NearestTiesToEven),
        "rz" => Some(Round::TowardZero),
        "rm" => Some(Round::TowardNegative),
        "rp" => Some(Round::TowardPositive),
        _ => None,
    }
}
