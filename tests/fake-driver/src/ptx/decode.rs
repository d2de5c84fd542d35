//! Statements as instructions: names become register numbers, and what ptxas would refuse is refused.

use std::collections::HashMap;

use mxprobe_api::Rounding;

use super::{
    Fault,
    contract::contract,
    copy,
    kernel::{
        Address, Alu, Comparison, Conversion, Guard, Instruction, Kernel, Kind, Rounded, Source, Space, Special, Step,
        Type,
    },
    matrix,
    syntax::{Declaration, EntryText, Item, Operand, Statement, number},
    target::Target,
    tensor, wmma,
};

/// Where static shared memory begins: not at 0, so that a forgotten base is found.
pub(crate) const SHARED_BASE: u64 = 1024;

/// What the names of a kernel stand for.
#[derive(Default)]
pub(super) struct Names {
    registers: HashMap<String, (usize, Type)>,
    masks: Vec<u64>,
    shared: HashMap<String, u64>,
    shared_end: u64,
    parameters: HashMap<String, u64>,
    labels: HashMap<String, usize>,
}

/// Compiles one kernel.
pub(super) fn kernel(entry: &EntryText, target: Target, version: u32) -> Result<Kernel, Fault> {
    let mut names = Names { shared_end: SHARED_BASE, ..Names::default() };
    let parameters = parameters(entry, &mut names)?;
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
    let mut kernel = Kernel {
        name: entry.name.clone(),
        parameters,
        shared_bytes: usize::try_from(names.shared_end - SHARED_BASE).unwrap_or(usize::MAX),
        required_threads: None,
        maximum_threads: 1024,
        register_masks: names.masks.clone(),
        steps: Vec::new(),
    };
    limits(entry, &mut kernel)?;
    let mut free = Vec::new();
    for item in &entry.body {
        if let Item::Statement(statement) = item {
            let decoder = Decoder { names: &names, statement, target, version };
            let guard = decoder.guard()?;
            let instruction = decoder.instruction()?;
            free.push(
                matches!(statement.opcode[0].as_str(), "mul" | "add")
                    && !statement.opcode.iter().any(|word| rounding(word).is_some()),
            );
            kernel.steps.push(Step { line: statement.line, guard, instruction });
        }
    }
    contract(&mut kernel.steps, &free);
    Ok(kernel)
}

fn parameters(entry: &EntryText, names: &mut Names) -> Result<Vec<(usize, usize)>, Fault> {
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
        if names.parameters.insert(name.clone(), offset as u64).is_some() {
            return Err(Fault::new(*line, format!("Duplicate definition of parameter '{name}'")));
        }
    }
    Ok(parameters)
}

fn limits(entry: &EntryText, kernel: &mut Kernel) -> Result<(), Fault> {
    for Declaration { line, text } in &entry.limits {
        let (word, numbers) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if word == "pragma" {
            continue;
        }
        let product = numbers.split(',').try_fold(1u32, |product, one| product.checked_mul(one.trim().parse().ok()?));
        let product = product.ok_or_else(|| Fault::new(*line, format!("`.{text}` is not understood")))?;
        match word {
            "reqntid" => kernel.required_threads = Some(product),
            "maxntid" => kernel.maximum_threads = product,
            "maxnreg" | "minnctapersm" => {}
            _ => return Err(Fault::new(*line, format!("`.{text}` is not understood"))),
        }
    }
    Ok(())
}

impl Names {
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
                let count = count.ok_or_else(|| Fault::new(line, format!("`{name}` is no list of registers")))?;
                (0..count).try_for_each(|index| add(format!("{stem}{index}")))
            }
        }
    }

    /// `.align 128 .b8 name[256]`.
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

/// What is needed to understand one statement.
pub(super) struct Decoder<'a> {
    names: &'a Names,
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

    fn guard(&self) -> Result<Option<Guard>, Fault> {
        let Some((name, negated)) = &self.statement.guard else { return Ok(None) };
        Ok(Some(Guard { register: self.predicate(name)?, negated: *negated }))
    }

    fn lookup(&self, name: &str) -> Result<(usize, Type), Fault> {
        self.names.registers.get(name).copied().ok_or_else(|| self.fault(format!("Unknown symbol '{name}'")))
    }

    pub(super) fn predicate(&self, name: &str) -> Result<usize, Fault> {
        let (register, kind) = self.lookup(name)?;
        if kind.kind != Kind::Predicate {
            return Err(self.fault(format!("'{name}' is no predicate")));
        }
        Ok(register)
    }

    /// A register that holds `kind`; a wider one where the instruction extends or cuts.
    fn register(&self, name: &str, kind: Type, wider: bool) -> Result<usize, Fault> {
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

    fn source_of(&self, word: &str, kind: Type, wider: bool) -> Result<Source, Fault> {
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

    /// The last word of the opcode that is a type.
    fn kind(&self) -> Result<Type, Fault> {
        let found = self.statement.opcode[1..].iter().rev().find_map(|word| Type::parse(word));
        found.ok_or_else(|| self.fault(format!("`{}` names no type", self.statement.opcode.join("."))))
    }

    /// That every word between the name and the type is one of these.
    fn only(&self, known: &[&str]) -> Result<(), Fault> {
        let mut words = self.statement.opcode[1..].iter();
        let unknown = words.find(|word| Type::parse(word).is_none() && !known.contains(&word.as_str()));
        unknown.map_or(Ok(()), |word| Err(self.fault(format!("Unexpected token '.{word}'"))))
    }

    fn instruction(&self) -> Result<Instruction, Fault> {
        match self.statement.opcode[0].as_str() {
            "ld" => self.load(),
            "st" => self.store(),
            "mov" => self.mov(),
            "cvta" => {
                self.only(&["to", "global", "shared"])?;
                self.compute(Alu::Move, 1)
            }
            "add" | "sub" | "mul" | "fma" if !self.kind()?.is_integer() => self.float(),
            "div" | "sqrt" if !self.kind()?.is_integer() => self.quotient(),
            "add" => self.integer(Alu::Add, 2),
            "sub" => self.integer(Alu::Subtract, 2),
            "mul" | "mad" => self.product(),
            "div" => self.integer(Alu::Divide, 2),
            "rem" => self.integer(Alu::Remainder, 2),
            "min" => self.integer(Alu::Minimum, 2),
            "max" => self.integer(Alu::Maximum, 2),
            "and" => self.logic(Alu::And, 2),
            "or" => self.logic(Alu::Or, 2),
            "xor" => self.logic(Alu::Xor, 2),
            "not" => self.logic(Alu::Not, 1),
            "shl" => self.shift(Alu::ShiftLeft),
            "shr" => self.shift(Alu::ShiftRight),
            "neg" => self.compute_only(Alu::Negate, 1),
            "abs" => self.compute_only(Alu::Absolute, 1),
            "popc" => self.integer(Alu::Popcount, 1),
            "selp" => self.select(),
            "setp" => self.compare(),
            "cvt" => self.convert(),
            "bra" => self.branch(),
            "bar" | "barrier" => self.barrier(),
            "ret" | "exit" => self.operands(0).map(|_| Instruction::Exit),
            "membar" => Ok(Instruction::Nothing),
            "fence" if self.statement.opcode[1..].starts_with(&["proxy".into(), "async".into()]) => {
                Ok(Instruction::ProxyFence)
            }
            "fence" => Ok(Instruction::Nothing),
            "mma" => matrix::multiply(self),
            "wgmma" => matrix::group(self),
            "wmma" => wmma::wmma(self),
            "cp" => copy::copy(self),
            "mbarrier" => tensor::barrier(self),
            "tcgen05" => tensor::tensor(self),
            _ => Err(self.unknown()),
        }
    }

    fn compute(&self, alu: Alu, count: usize) -> Result<Instruction, Fault> {
        let kind = self.kind()?;
        let operands = self.operands(count + 1)?;
        let into = self.register(self.word(&operands[0])?, kind, false)?;
        let mut from = [Source::Constant(0); 3];
        for (source, operand) in from.iter_mut().zip(&operands[1..]) {
            *source = self.source(self.word(operand)?, kind)?;
        }
        Ok(Instruction::Compute { alu, kind, into, from })
    }

    fn compute_only(&self, alu: Alu, count: usize) -> Result<Instruction, Fault> {
        self.only(&[])?;
        self.compute(alu, count)
    }

    fn integer(&self, alu: Alu, count: usize) -> Result<Instruction, Fault> {
        let kind = self.kind()?;
        let counts_bits = alu == Alu::Popcount;
        if !kind.is_integer() || (kind.kind == Kind::Bits) != counts_bits {
            return Err(
                self.fault(format!("Unexpected instruction types specified for '{}'", self.statement.opcode[0]))
            );
        }
        if !counts_bits {
            return self.compute_only(alu, count);
        }
        let operands = self.operands(2)?;
        let into = self.register(self.word(&operands[0])?, Type { kind: Kind::Unsigned, bits: 32 }, false)?;
        let from = self.source(self.word(&operands[1])?, kind)?;
        Ok(Instruction::Compute { alu, kind, into, from: [from, Source::Constant(0), Source::Constant(0)] })
    }

    fn logic(&self, alu: Alu, count: usize) -> Result<Instruction, Fault> {
        if !matches!(self.kind()?.kind, Kind::Bits | Kind::Predicate) {
            return Err(
                self.fault(format!("Unexpected instruction types specified for '{}'", self.statement.opcode[0]))
            );
        }
        self.compute_only(alu, count)
    }

    /// The amount has 32 bits whatever is shifted.
    fn shift(&self, alu: Alu) -> Result<Instruction, Fault> {
        self.only(&[])?;
        let kind = self.kind()?;
        let operands = self.operands(3)?;
        let into = self.register(self.word(&operands[0])?, kind, false)?;
        let value = self.source(self.word(&operands[1])?, kind)?;
        let amount = self.source(self.word(&operands[2])?, Type { kind: Kind::Unsigned, bits: 32 })?;
        Ok(Instruction::Compute { alu, kind, into, from: [value, amount, Source::Constant(0)] })
    }

    fn select(&self) -> Result<Instruction, Fault> {
        self.only(&[])?;
        let kind = self.kind()?;
        let operands = self.operands(4)?;
        let into = self.register(self.word(&operands[0])?, kind, false)?;
        let (a, b) = (self.source(self.word(&operands[1])?, kind)?, self.source(self.word(&operands[2])?, kind)?);
        let chosen = Source::Register(self.predicate(self.word(&operands[3])?)?);
        Ok(Instruction::Compute { alu: Alu::Select, kind, into, from: [a, b, chosen] })
    }

    fn product(&self) -> Result<Instruction, Fault> {
        self.only(&["lo", "hi", "wide"])?;
        let kind = self.kind()?;
        let adds = self.statement.opcode[0] == "mad";
        let wide = self.statement.has("wide");
        let alu = match (adds, wide, self.statement.has("hi"), self.statement.has("lo")) {
            (false, true, false, false) => Alu::MultiplyWide,
            (false, false, true, false) => Alu::MultiplyHigh,
            (false, false, false, true) => Alu::MultiplyLow,
            (true, true, false, false) => Alu::MultiplyAddWide,
            (true, false, false, true) => Alu::MultiplyAddLow,
            _ => return Err(self.unknown()),
        };
        if !kind.is_integer() || kind.kind == Kind::Bits || kind.bits < 16 || (wide && kind.bits > 32) {
            return Err(
                self.fault(format!("Unexpected instruction types specified for '{}'", self.statement.opcode[0]))
            );
        }
        let result = if wide { Type { bits: kind.bits * 2, ..kind } } else { kind };
        let operands = self.operands(if adds { 4 } else { 3 })?;
        let into = self.register(self.word(&operands[0])?, result, false)?;
        let (a, b) = (self.source(self.word(&operands[1])?, kind)?, self.source(self.word(&operands[2])?, kind)?);
        let c = match operands.get(3) {
            Some(operand) => self.source(self.word(operand)?, result)?,
            None => Source::Constant(0),
        };
        Ok(Instruction::Compute { alu, kind, into, from: [a, b, c] })
    }

    fn float(&self) -> Result<Instruction, Fault> {
        self.only(&["rn", "rz", "rm", "rp", "ftz"])?;
        let kind = self.kind()?;
        let words = &self.statement.opcode;
        let rounding = words.iter().find_map(|word| rounding(word));
        if matches!(kind.kind, Kind::Predicate)
            || (kind.bits < 64
                && kind != Type { kind: Kind::Float, bits: 32 }
                && rounding.is_some_and(|one| one != Rounding::NearestEven))
        {
            return Err(self.fault("this type is rounded to nearest only"));
        }
        let fused = words[0] == "fma";
        if fused && rounding.is_none() {
            return Err(self.fault("Rounding modifier required for instruction 'fma'"));
        }
        let flush = self.statement.has("ftz");
        if flush && (kind.bits == 64 || matches!(kind.kind, Kind::Bfloat | Kind::BfloatPair)) {
            return Err(self.fault("Illegal modifier '.ftz'"));
        }
        let rounded = Rounded { rounding: rounding.unwrap_or(Rounding::NearestEven), flush };
        let alu = match words[0].as_str() {
            "add" => Alu::FloatAdd(rounded),
            "sub" => Alu::FloatSubtract(rounded),
            "mul" => Alu::FloatMultiply(rounded),
            _ => Alu::FusedMultiplyAdd(rounded),
        };
        self.compute(alu, if fused { 3 } else { 2 })
    }

    /// `div` and `sqrt` of f32 and f64: rounded in a direction, or approximated, which is of f32 alone.
    fn quotient(&self) -> Result<Instruction, Fault> {
        self.only(&["rn", "rz", "rm", "rp", "ftz", "approx", "full"])?;
        let (kind, divides) = (self.kind()?, self.statement.opcode[0] == "div");
        let approximates = self.statement.has("approx") || (divides && self.statement.has("full"));
        let single = kind == Type { kind: Kind::Float, bits: 32 };
        let flush = self.statement.has("ftz");
        if kind.kind != Kind::Float || kind.bits == 16 || (!single && (flush || approximates)) {
            return Err(self.unknown());
        }
        let rounding = self.statement.opcode.iter().find_map(|word| rounding(word));
        if rounding.is_some() == approximates {
            let name = &self.statement.opcode[0];
            return Err(self.fault(format!("Rounding modifier required for instruction '{name}'")));
        }
        let rounded = Rounded { rounding: rounding.unwrap_or(Rounding::NearestEven), flush };
        match (divides, approximates) {
            (true, false) => self.compute(Alu::FloatDivide(rounded), 2),
            (true, true) => self.compute(Alu::ApproximateDivide(rounded), 2),
            (false, false) => self.compute(Alu::SquareRoot(rounded), 1),
            (false, true) => self.compute(Alu::ApproximateSquareRoot(rounded), 1),
        }
    }

    fn compare(&self) -> Result<Instruction, Fault> {
        let kind = self.kind()?;
        let words = &self.statement.opcode;
        let wrong = || self.unknown();
        if words.len() != 3 {
            return Err(wrong());
        }
        let (word, unordered) = match words[1].strip_suffix('u') {
            Some(word) if !kind.is_integer() && word.len() == 2 => (word, true),
            _ => (words[1].as_str(), false),
        };
        let comparison = match word {
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "lt" | "lo" => Comparison::Less,
            "le" | "ls" => Comparison::LessOrEqual,
            "gt" | "hi" => Comparison::Greater,
            "ge" | "hs" => Comparison::GreaterOrEqual,
            _ => return Err(wrong()),
        };
        if !(kind.is_integer() || matches!(kind.kind, Kind::Float | Kind::Bfloat)) {
            return Err(wrong());
        }
        if kind.kind == Kind::Bits && !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            return Err(self.fault("untyped operands have no order"));
        }
        let operands = self.operands(3)?;
        let into = self.predicate(self.word(&operands[0])?)?;
        let from = [self.source(self.word(&operands[1])?, kind)?, self.source(self.word(&operands[2])?, kind)?];
        Ok(Instruction::Compare { comparison, unordered, kind, into, from })
    }

    fn convert(&self) -> Result<Instruction, Fault> {
        self.only(&["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "ftz"])?;
        let words = &self.statement.opcode;
        let kinds: Vec<Type> = words[1..].iter().filter_map(|word| Type::parse(word)).collect();
        let [to, from] = kinds[..] else { return Err(self.unknown()) };
        let scalar = |kind: Type| kind.is_integer() || matches!(kind.kind, Kind::Float | Kind::Bfloat);
        if !scalar(to) || !scalar(from) {
            return Err(self.unknown());
        }
        let given = words.iter().find_map(|word| rounding(word));
        let whole = words.iter().find_map(|word| word.strip_suffix('i').and_then(rounding));
        let rounding = given.or(whole);
        let needed = match (to.is_integer(), from.is_integer()) {
            (true, true) => false,
            (true, false) => true,
            (false, true) => true,
            (false, false) => to.bits < from.bits || (to.bits == from.bits && to.kind != from.kind),
        };
        if needed && rounding.is_none() || (to.is_integer() && !from.is_integer() && whole.is_none()) {
            return Err(self.fault("Rounding modifier required for instruction 'cvt'"));
        }
        let operands = self.operands(2)?;
        let into = self.register(self.word(&operands[0])?, to, true)?;
        let source = self.source_of(self.word(&operands[1])?, from, true)?;
        let conversion = Conversion {
            to,
            from,
            rounding: rounding.unwrap_or(Rounding::NearestEven),
            flush: self.statement.has("ftz"),
            to_whole: whole.is_some() && !to.is_integer(),
        };
        Ok(Instruction::Convert { conversion, into, from: source })
    }

    fn branch(&self) -> Result<Instruction, Fault> {
        self.only(&["uni"])?;
        let label = self.word(&self.operands(1)?[0])?;
        let target = self.names.labels.get(label).ok_or_else(|| self.fault(format!("Unknown symbol '{label}'")))?;
        Ok(Instruction::Branch { target: *target })
    }

    fn barrier(&self) -> Result<Instruction, Fault> {
        self.only(&["sync", "aligned", "cta"])?;
        if !self.statement.has("sync")
            || constant(self.word(&self.operands(1)?[0])?, Type { kind: Kind::Unsigned, bits: 32 }) != Some(0)
        {
            return Err(self.fault("only barrier 0 of the whole block is understood by the fake driver"));
        }
        Ok(Instruction::Barrier)
    }

    /// The space, the type, and how many of it.
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
        if matches!(kind.kind, Kind::Predicate | Kind::Pair | Kind::BfloatPair) || count * kind.bytes() > 16 {
            return Err(self.unknown());
        }
        Ok((space, kind, count))
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
        // Shared addresses may be held in 32 bits.
        let (register, kind) = self.lookup(base)?;
        let wide = kind.bits == 64 || (kind.bits == 32 && space == Space::Shared);
        if !wide || space == Space::Parameter || !kind.is_integer() {
            return Err(self.fault(format!("'{base}' is no address of this space")));
        }
        Ok(Address { base: Source::Register(register), offset: *offset })
    }

    fn load(&self) -> Result<Instruction, Fault> {
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

    fn store(&self) -> Result<Instruction, Fault> {
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

    fn mov(&self) -> Result<Instruction, Fault> {
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

fn rounding(word: &str) -> Option<Rounding> {
    match word {
        "rn" => Some(Rounding::NearestEven),
        "rz" => Some(Rounding::TowardZero),
        "rm" => Some(Rounding::Down),
        "rp" => Some(Rounding::Up),
        _ => None,
    }
}

fn special(word: &str) -> Option<Special> {
    match word {
        "%laneid" => return Some(Special::Lane),
        "%warpid" => return Some(Special::Warp),
        "%clock64" | "%clock" => return Some(Special::Clock),
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
    if word == "WARP_SZ" {
        return Some(32);
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
