//! Compiles kernels to steps: decodes each statement by its family and refuses what ptxas would refuse.

use super::{
    Fault,
    contract::contract,
    copy,
    decoder::{Decoder, constant},
    kernel::{Alu, Guard, Instruction, Kernel, Step},
    matrix,
    names::Names,
    scalar::rounding,
    syntax::{Declaration, EntryText, Item},
    target::Target,
    tensor,
    value::Type,
    wmma,
};

/// Compiles one kernel.
pub(super) fn kernel(entry: &EntryText, target: Target, version: u32) -> Result<Kernel, Fault> {
    let (names, parameters) = Names::read(entry)?;
    let mut kernel = Kernel {
        name: entry.name.clone(),
        parameters,
        shared_bytes: names.shared_bytes(),
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

impl Decoder<'_> {
    fn guard(&self) -> Result<Option<Guard>, Fault> {
        let Some((name, negated)) = &self.statement.guard else { return Ok(None) };
        Ok(Some(Guard { register: self.predicate(name)?, negated: *negated }))
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
            "neg" | "abs" if !self.kind()?.is_integer() => self.sign(),
            "copysign" => self.copy_sign(),
            "rcp" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => self.elementary(),
            "add" => self.integer(Alu::Add),
            "sub" => self.integer(Alu::Subtract),
            "mul" | "mad" => self.product(),
            "div" => self.integer(Alu::Divide),
            "min" => self.integer(Alu::Minimum),
            "and" => self.logic(Alu::And),
            "or" => self.logic(Alu::Or),
            "xor" => self.logic(Alu::Xor),
            "shl" => self.shift(Alu::ShiftLeft),
            "shr" => self.shift(Alu::ShiftRight),
            "shf" => self.funnel(),
            "setp" => self.compare(),
            "cvt" => self.convert(),
            "bra" => self.branch(),
            "bar" if self.statement.has("warp") => self.warp_barrier(),
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

    fn branch(&self) -> Result<Instruction, Fault> {
        self.only(&["uni"])?;
        let label = self.word(&self.operands(1)?[0])?;
        let target = self.names.labels.get(label).ok_or_else(|| self.fault(format!("Unknown symbol '{label}'")))?;
        Ok(Instruction::Branch { target: *target })
    }

    /// Reads `bar.warp.sync` of all threads of a warp.
    fn warp_barrier(&self) -> Result<Instruction, Fault> {
        self.only(&["warp", "sync"])?;
        if constant(self.word(&self.operands(1)?[0])?, Type::U32) != Some(u64::from(u32::MAX)) {
            return Err(self.fault("only whole warps are synchronised by the fake driver"));
        }
        Ok(Instruction::WarpBarrier)
    }

    fn barrier(&self) -> Result<Instruction, Fault> {
        self.only(&["sync", "aligned", "cta"])?;
        if !self.statement.has("sync") || constant(self.word(&self.operands(1)?[0])?, Type::U32) != Some(0) {
            return Err(self.fault("only barrier 0 of the whole block is understood by the fake driver"));
        }
        Ok(Instruction::Barrier)
    }
}
