//! `mma` and `wgmma` statements.

use mxprobe_api::{Format, OperationId, Shape};

use super::{
    Fault,
    decoder::{Decoder, constant},
    kernel::Instruction,
    multiply::{GroupMultiply, GroupOperand, Layout, Multiply, Scales},
    syntax::Operand,
    value::{Source, Type},
};

/// The modifiers of an `mma` or `wgmma`.
#[derive(Default)]
struct Words {
    shape: Option<Shape>,
    formats: Vec<Format>,
    layouts: Vec<Layout>,
    kind: Option<String>,
    block_scale: bool,
    scale_count: Option<u32>,
    qualifier: Option<String>,
}

impl Words {
    fn read(decoder: &Decoder<'_>, skip: usize) -> Result<Self, Fault> {
        let mut words = Self::default();
        for word in &decoder.statement.opcode[skip..] {
            let unexpected = || decoder.fault(format!("Unexpected token '.{word}'"));
            match word.as_str() {
                "row" => words.layouts.push(Layout::Row),
                "col" => words.layouts.push(Layout::Column),
                "block_scale" => words.block_scale = true,
                "rn" | "rz" | "rm" | "rp" | "satfinite" => {
                    if words.qualifier.replace(word.clone()).is_some() {
                        return Err(unexpected());
                    }
                }
                "scale_vec::1X" => words.scale_count = Some(1),
                "scale_vec::2X" => words.scale_count = Some(2),
                "scale_vec::4X" => words.scale_count = Some(4),
                _ => {
                    if let Some(kind) = word.strip_prefix("kind::") {
                        words.kind = Some(kind.to_owned());
                    } else if let Some(shape) = shape(word) {
                        words.shape = Some(shape);
                    } else {
                        words.formats.push(Format::named(word).map_err(|_| unexpected())?);
                    }
                }
            }
        }
        Ok(words)
    }
}

pub(super) fn shape(word: &str) -> Option<Shape> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some(Shape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
}

/// Reads `mma.sync.aligned.…`.
pub(super) fn multiply(decoder: &Decoder<'_>) -> Result<Instruction, Fault> {
    if decoder.statement.opcode.get(1..3).is_none_or(|words| words != ["sync", "aligned"]) {
        return Err(decoder.fault("`mma` is `mma.sync.aligned`"));
    }
    let words = Words::read(decoder, 3)?;
    let missing = |what: &str| decoder.fault(format!("`mma` without {what}"));
    let shape = words.shape.ok_or_else(|| missing("a shape"))?;
    let [a_layout, b_layout] = words.layouts[..] else { return Err(missing("two layouts")) };
    let (d, a, b, c) = match words.formats[..] {
        [d, a, b, c] if !words.block_scale => (d, a, b, c),
        [d, a, b, c, _] if words.block_scale => (d, a, b, c),
        _ => return Err(missing("the types it needs")),
    };
    let mut id = OperationId { family: "mma".into(), shape, d, a, b, c, qualifiers: Vec::new() };
    id.qualifiers.extend(words.qualifier.clone().filter(|word| word != "rn"));
    let count = scale_count(decoder, &words, &id)?;
    if let Some(count) = count {
        let block = shape.k / count;
        id = id.with(&format!("block{block}")).with(words.formats[4].name());
    }
    let volta = (shape.m, shape.n, shape.k) == (8, 8, 4) && a == Format::F16;
    if !volta && (a_layout, b_layout) != (Layout::Row, Layout::Column) {
        return Err(decoder.fault("this shape takes `.row.col` only"));
    }
    require(decoder, &id, words.kind.as_deref())?;
    let wide = matches!(words.kind.as_deref(), Some("f8f6f4" | "mxf8f6f4"));
    let container = |format: Format| if wide { 8 } else { format.bits() };
    let operands = decoder.operands(if count.is_some() { 8 } else { 4 })?;
    let registers = |operand: &Operand, name: &str, elements: u32, bits: u32| {
        let register_bits = if bits == 64 { 64 } else { 32 };
        let found = decoder.vector(operand, register_bits)?;
        // Volta's instruction multiplies four pairs of matrices.
        let wanted = elements * bits * if volta { 4 } else { 1 } / (32 * register_bits);
        if found.len() != wanted as usize {
            return Err(decoder.fault(format!("{name} of {id} takes {wanted} registers, not {}", found.len())));
        }
        Ok(found)
    };
    let Shape { m, n, k } = shape;
    let containers = (container(a), container(b));
    let (d, a, b, c) = (
        registers(&operands[0], "D", m * n, d.bits())?,
        registers(&operands[1], "A", m * k, containers.0)?,
        registers(&operands[2], "B", k * n, containers.1)?,
        registers(&operands[3], "C", m * n, c.bits())?,
    );
    let scales = match count {
        None => None,
        Some(count) => Some(scales(decoder, count, &operands[4..])?),
    };
    let layouts = (a_layout, b_layout);
    Ok(Instruction::Multiply(Box::new(Multiply { id, container_bits: containers, layouts, d, a, b, c, scales })))
}

/// The number of scales in a row: one for mxf8f6f4 (32 k), two for mxf4, two or four for mxf4nvf4 (PTX ISA 8.7,
/// 9.7.14.5.14).
fn scale_count(decoder: &Decoder<'_>, words: &Words, id: &OperationId) -> Result<Option<u32>, Fault> {
    let wrong = |text: String| Err(decoder.fault(text));
    let kind = words.kind.as_deref();
    let allowed: &[u32] = match kind {
        None | Some("f8f6f4") => &[],
        Some("mxf8f6f4") => &[1],
        Some("mxf4") => &[2],
        Some("mxf4nvf4") => &[2, 4],
        Some(other) => return wrong(format!("Unexpected token '.kind::{other}'")),
    };
    if allowed.is_empty() == words.block_scale {
        return wrong("`.block_scale` belongs to the kinds mxf8f6f4, mxf4 and mxf4nvf4".into());
    }
    if allowed.is_empty() {
        return Ok(None);
    }
    let count = match words.scale_count {
        None if allowed.len() == 1 => allowed[0],
        Some(count) if allowed.contains(&count) => count,
        _ => return wrong("`.scale_vec` does not fit the kind".into()),
    };
    let shape_fits = (id.shape.m, id.shape.n) == (16, 8) && id.shape.k == if count == 1 { 32 } else { 64 };
    let scale = words.formats[4];
    let scale_fits = scale == Format::UE8M0 || (scale == Format::UE4M3 && kind == Some("mxf4nvf4") && count == 4);
    if !shape_fits || !scale_fits || id.d != Format::F32 {
        return wrong(format!("Unexpected types or shape of a block-scaled mma: {id} with scales {scale}"));
    }
    Ok(Some(count))
}

fn scales(decoder: &Decoder<'_>, count: u32, operands: &[Operand]) -> Result<Scales, Fault> {
    let one = |operand: &Operand| match operand {
        // The braces around the data are optional.
        Operand::Vector(_) => decoder.vector(operand, 32).map(|registers| registers[0]),
        _ => match decoder.source(decoder.word(operand)?, Type::B32)? {
            Source::Register(register) => Ok(register),
            _ => Err(decoder.fault("the scales are not a register")),
        },
    };
    let select = |operand: &Operand| match operand {
        Operand::Vector(words) if words.len() == 2 => {
            Ok((decoder.source(&words[0], Type::U16)?, decoder.source(&words[1], Type::U16)?))
        }
        _ => Err(decoder.fault("{byte-id, thread-id} is missing")),
    };
    Ok(Scales {
        count,
        a: one(&operands[0])?,
        a_select: select(&operands[1])?,
        b: one(&operands[2])?,
        b_select: select(&operands[3])?,
    })
}

/// Checks that `.target` and `.version` suffice for an instruction, according to PTX ISA 9.0, 9.7.14.5.14 (mma) and
/// 9.7.15 (wgmma), and to what ptxas 12.9 and 13.5 accept.
fn require(decoder: &Decoder<'_>, id: &OperationId, kind: Option<&str>) -> Result<(), Fault> {
    let narrow = |format: Format| [Format::E3M2, Format::E2M3, Format::E2M1].contains(&format);
    let fp8 = |format: Format| [Format::E4M3, Format::E5M2].contains(&format);
    let Shape { m, k, .. } = id.shape;
    let (target, version) = match kind {
        Some("f8f6f4") if !narrow(id.a) && !narrow(id.b) => {
            let version = if id.d == Format::F32 { 86 } else { 87 };
            let found = [100, 103, 107, 110, 120, 121].iter().any(|number| decoder.target.has_features_of(*number));
            return check(decoder, found, "sm_100a", version);
        }
        Some(_) => {
            let version = if id.has("block16") && id.has("ue8m0") { 91 } else { 87 };
            let found = [120, 121].iter().any(|number| decoder.target.has_features_of(*number));
            return check(decoder, found, "sm_120a", version);
        }
        None if narrow(id.a) || narrow(id.b) => return Err(decoder.fault("this type needs `.kind::f8f6f4`")),
        None if fp8(id.a) => (89, if k == 32 && id.d == Format::F32 { 84 } else { 87 }),
        None if id.a == Format::F64 => {
            if m == 8 {
                (80, 70)
            } else {
                (90, 78)
            }
        }
        None if id.a == Format::F16 => match (m, k) {
            (8, 4) => (70, 64),
            (16, 8) => (75, 65),
            _ => (80, 70),
        },
        None if id.a.is_integer() && m == 8 => (75, 65),
        None => (80, 70),
    };
    check(decoder, decoder.target.number >= target, &format!("sm_{target}"), version)
}

pub(super) fn check(decoder: &Decoder<'_>, target_fits: bool, target: &str, version: u32) -> Result<(), Fault> {
    let opcode = decoder.statement.opcode.join(".");
    if !target_fits {
        let own = decoder.target;
        return Err(decoder.fault(format!("Feature '{opcode}' requires .target {target} or higher, not '{own}'")));
    }
    if decoder.version < version {
        let (major, minor) = (version / 10, version % 10);
        return Err(decoder.fault(format!("Feature '{opcode}' requires PTX ISA .version {major}.{minor} or later")));
    }
    Ok(())
}

/// Reads `wgmma.…`.
pub(super) fn group(decoder: &Decoder<'_>) -> Result<Instruction, Fault> {
    check(decoder, decoder.target.has_features_of(90), "sm_90a", 80)?;
    let opcode: Vec<&str> = decoder.statement.opcode.iter().map(String::as_str).collect();
    match opcode[1..] {
        ["fence", "sync", "aligned"] => decoder.operands(0).map(|_| Instruction::GroupFence),
        ["commit_group", "sync", "aligned"] => decoder.operands(0).map(|_| Instruction::GroupCommit),
        ["wait_group", "sync", "aligned"] => {
            let count = constant(decoder.word(&decoder.operands(1)?[0])?, Type::S32)
                .and_then(|count| u32::try_from(count).ok());
            let count = count.filter(|count| *count < 8);
            count
                .map(Instruction::GroupWait)
                .ok_or_else(|| decoder.fault("`wgmma.wait_group` takes a number from 0 to 7"))
        }
        ["mma_async", "sync", "aligned", ..] => group_multiply(decoder),
        _ => Err(decoder.fault(format!("`{}` is not understood by the fake driver", opcode.join(".")))),
    }
}

fn group_multiply(decoder: &Decoder<'_>) -> Result<Instruction, Fault> {
    let words = Words::read(decoder, 4)?;
    let wrong = |text: &str| decoder.fault(format!("`wgmma`: {text}"));
    let shape = words.shape.ok_or_else(|| wrong("no shape"))?;
    let [d_format, a_format, b_format] = words.formats[..] else { return Err(wrong("not three types")) };
    if !words.layouts.is_empty() || words.kind.is_some() || words.block_scale {
        return Err(wrong("layouts and kinds belong to `mma`"));
    }
    let bits = a_format.bits();
    let columns = shape.n % 8 == 0 && (8..=256).contains(&shape.n);
    if shape.m != 64 || shape.k * bits != 256 || !columns || bits != b_format.bits() {
        return Err(wrong(&format!("{a_format} has no shape {shape}")));
    }
    let mut id = OperationId {
        family: "wgmma".into(),
        shape,
        d: d_format,
        a: a_format,
        b: b_format,
        c: d_format,
        qualifiers: Vec::new(),
    };
    id.qualifiers.extend(words.qualifier);
    let operands = &decoder.statement.operands;
    let [d, a, b, scale_d, rest @ ..] = &operands[..] else { return Err(wrong("operands are missing")) };
    let registers = |operand: &Operand, name: &str, wanted: u32| {
        let found = decoder.vector(operand, 32)?;
        if found.len() != wanted as usize {
            return Err(decoder.fault(format!("{name} of {id} takes {wanted} registers, not {}", found.len())));
        }
        Ok(found)
    };
    let d = registers(d, "D", shape.n * 64 * d_format.bits() / (128 * 32))?;
    let from_registers = matches!(a, Operand::Vector(_));
    let a = if from_registers {
        GroupOperand::Registers(registers(a, "A", 4)?)
    } else {
        GroupOperand::Descriptor(decoder.source(decoder.word(a)?, Type::B64)?)
    };
    let b = decoder.source(decoder.word(b)?, Type::B64)?;
    let scale_d = decoder.word(scale_d)?;
    let scale_d = match constant(scale_d, Type::S32) {
        Some(value) => Source::Constant(value),
        None => Source::Register(decoder.predicate(scale_d)?),
    };
    // f16 and bf16 take two signs and a transposition for each operand in shared memory, other floats two signs,
    // integers neither (PTX ISA 8.7, 9.7.15.5.2).
    let transposes = if bits == 16 { 2 - usize::from(from_registers) } else { 0 };
    let signs = if a_format.is_integer() { 0 } else { 2 };
    if rest.len() != signs + transposes {
        return Err(wrong(&format!("{} operands follow scale-d, not {}", signs + transposes, rest.len())));
    }
    let mut flags = Vec::new();
    for operand in rest {
        let value = constant(decoder.word(operand)?, Type::S32).ok_or_else(|| wrong("a flag is not a constant"))?;
        flags.push(u32::try_from(value).unwrap_or(u32::MAX).cast_signed());
    }
    let (signs, transposes) = flags.split_at(signs);
    if signs.iter().any(|sign| ![1, -1].contains(sign)) {
        return Err(wrong("imm-scale is neither 1 nor -1"));
    }
    if transposes.iter().any(|transpose| *transpose != 0) {
        return Err(wrong("imm-trans is not understood by the fake driver"));
    }
    let negates = |at: usize| signs.get(at) == Some(&-1);
    let (negate_a, negate_b) = (negates(0), negates(1));
    Ok(Instruction::GroupMultiply(Box::new(GroupMultiply { id, d, a, b, scale_d, negate_a, negate_b })))
}
