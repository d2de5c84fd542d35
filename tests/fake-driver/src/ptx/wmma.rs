//! `wmma` statements: loads and stores of whole matrices, and multiplies of their fragments.

use mxprobe_api::{Format, OperationId, Shape};

use super::{
    Fault,
    decoder::Decoder,
    kernel::Instruction,
    matrix::{self, check},
    multiply::{Layout, MatrixAccess, MatrixOperand, Multiply},
    syntax::Operand,
    value::{Source, Space, Type},
};

/// The number of registers of a fragment (PTX ISA 9.0, 9.7.14.4.1): as many as its elements need, but 8 for A and B of
/// f16.
fn registers(operand: MatrixOperand, shape: Shape, format: Format) -> u32 {
    if format == Format::F16 && operand != MatrixOperand::Accumulator {
        return 8;
    }
    let (rows, columns) = operand.sizes(shape);
    let bits = format.bits();
    rows * columns * bits / 32 / bits.max(32)
}

/// The formats of A and B that a shape multiplies, the `.target` and `.version` they need, and the formats of C and D
/// (PTX ISA 9.0, 9.7.14.4; `.aligned` exists since 6.3).
fn forms(shape: Shape) -> &'static [(Format, u32, u32, &'static [Format])] {
    const HALVES: &[Format] = &[Format::F16, Format::F32];
    const SUMS: &[Format] = &[Format::S32];
    match shape.sizes() {
        (16, 16, 16) | (8, 32, 16) | (32, 8, 16) => &[
            (Format::F16, 70, 63, HALVES),
            (Format::BF16, 80, 70, &[Format::F32]),
            (Format::S8, 72, 63, SUMS),
            (Format::U8, 72, 63, SUMS),
        ],
        (16, 16, 8) => &[(Format::TF32, 80, 70, &[Format::F32])],
        (8, 8, 4) => &[(Format::F64, 80, 70, &[Format::F64])],
        (8, 8, 32) => &[(Format::S4, 75, 63, SUMS), (Format::U4, 75, 63, SUMS)],
        _ => &[],
    }
}

/// Whether an operand of a format may have a layout: formats narrower than a byte must lie along k.
fn lies(operand: MatrixOperand, format: Format, layout: Layout) -> bool {
    let along_k = if operand == MatrixOperand::A { Layout::Row } else { Layout::Column };
    format.bits() >= 8 || layout == along_k
}

fn layout(word: &str) -> Option<Layout> {
    match word {
        "row" => Some(Layout::Row),
        "col" => Some(Layout::Column),
        _ => None,
    }
}

/// Reads `wmma.…`.
pub(super) fn wmma(decoder: &Decoder<'_>) -> Result<Instruction, Fault> {
    let opcode: Vec<&str> = decoder.statement.opcode.iter().map(String::as_str).collect();
    match opcode[1..] {
        ["load", "a", "sync", "aligned", ref words @ ..] => access(decoder, MatrixOperand::A, words).map(load),
        ["load", "b", "sync", "aligned", ref words @ ..] => access(decoder, MatrixOperand::B, words).map(load),
        ["load", "c", "sync", "aligned", ref words @ ..] => {
            access(decoder, MatrixOperand::Accumulator, words).map(load)
        }
        ["store", "d", "sync", "aligned", ref words @ ..] => {
            access(decoder, MatrixOperand::Accumulator, words).map(|access| Instruction::StoreMatrix(Box::new(access)))
        }
        ["mma", "sync", "aligned", ref words @ ..] => multiply(decoder, words),
        _ => Err(decoder.unknown()),
    }
}

fn load(access: MatrixAccess) -> Instruction {
    Instruction::LoadMatrix(Box::new(access))
}

/// Reads `.row.m16n16k16.global.f16 {…}, [p], stride`; a store has the address first.
fn access(decoder: &Decoder<'_>, operand: MatrixOperand, words: &[&str]) -> Result<MatrixAccess, Fault> {
    let unknown = || decoder.unknown();
    let (order, shape, space, format) = match *words {
        [order, shape, "global", format] | [order, shape, format] => (order, shape, Space::Global, format),
        [order, shape, "shared" | "shared::cta", format] => (order, shape, Space::Shared, format),
        _ => return Err(unknown()),
    };
    let layout = layout(order).ok_or_else(unknown)?;
    let shape = matrix::shape(shape).ok_or_else(unknown)?;
    let format = Format::named(format).map_err(|_| unknown())?;
    let is_accumulator = operand == MatrixOperand::Accumulator;
    let needed =
        forms(shape).iter().filter(
            |(of_operands, .., of_sums)| {
                if is_accumulator { of_sums.contains(&format) } else { *of_operands == format }
            },
        );
    let needed = needed.min_by_key(|(_, target, ..)| *target);
    let Some((of_operands, target, version, _)) = needed else {
        return Err(decoder.fault(format!("a matrix of {format} is not an operand of a wmma of {shape}")));
    };
    check(decoder, decoder.target.number >= *target, &format!("sm_{target}"), *version)?;
    if !is_accumulator && !lies(operand, *of_operands, layout) {
        return Err(decoder.fault(format!("a matrix of {format} cannot have the layout `.{order}`")));
    }
    let operands = &decoder.statement.operands;
    let is_store = decoder.statement.opcode[1] == "store";
    let (list, address, stride) = match (&operands[..], is_store) {
        ([address, list, stride @ ..], true) | ([list, address, stride @ ..], false) if stride.len() < 2 => {
            (list, address, stride.first())
        }
        _ => return Err(decoder.fault("`wmma.load` and `wmma.store` take two operands and a stride")),
    };
    let (rows, columns) = operand.sizes(shape);
    let stride = match stride {
        Some(operand) => decoder.source(decoder.word(operand)?, Type::U32)?,
        None => Source::Constant(u64::from(if layout == Layout::Row { columns } else { rows })),
    };
    Ok(MatrixAccess {
        operand,
        shape,
        format,
        layout,
        space,
        address: decoder.address(address, space)?,
        stride,
        registers: fragment(decoder, list, operand, shape, format)?,
    })
}

fn fragment(
    decoder: &Decoder<'_>,
    list: &Operand,
    operand: MatrixOperand,
    shape: Shape,
    format: Format,
) -> Result<Vec<usize>, Fault> {
    let found = decoder.vector(list, format.bits().max(32))?;
    let wanted = registers(operand, shape, format);
    if found.len() != wanted as usize {
        let text =
            format!("{operand:?} of {format} in a wmma of {shape} takes {wanted} registers, not {}", found.len());
        return Err(decoder.fault(text));
    }
    Ok(found)
}

/// Reads `.row.col.m16n16k16.f32.f32`, with four formats if A and B are not f16.
fn multiply(decoder: &Decoder<'_>, words: &[&str]) -> Result<Instruction, Fault> {
    let unknown = || decoder.unknown();
    let [a_order, b_order, shape, ref words @ ..] = *words else { return Err(unknown()) };
    let shape = matrix::shape(shape).ok_or_else(unknown)?;
    let layouts = (layout(a_order).ok_or_else(unknown)?, layout(b_order).ok_or_else(unknown)?);
    let (words, saturates) = match words {
        [words @ .., "satfinite"] => (words, true),
        _ => (words, false),
    };
    let formats: Result<Vec<Format>, _> = words.iter().map(|word| Format::named(word)).collect();
    let [d, a, b, c] = match formats.map_err(|_| unknown())?[..] {
        [d, c] => [d, Format::F16, Format::F16, c],
        [d, a, b, c] if a != Format::F16 => [d, a, b, c],
        _ => return Err(unknown()),
    };
    let mut id = OperationId { family: "wmma".into(), shape, d, a, b, c, qualifiers: Vec::new() };
    let found = forms(shape).iter().find(|(of_operands, ..)| *of_operands == a && a == b);
    let found = found.filter(|(.., of_sums)| of_sums.contains(&c) && of_sums.contains(&d));
    let Some((_, target, version, _)) = found else {
        return Err(decoder.fault(format!("Unexpected types or shape of a wmma: {id}")));
    };
    check(decoder, decoder.target.number >= *target, &format!("sm_{target}"), *version)?;
    if saturates {
        if !id.is_integer() {
            return Err(decoder.fault("`.satfinite` of a wmma belongs to integers"));
        }
        id = id.with("satfinite");
    }
    if !lies(MatrixOperand::A, a, layouts.0) || !lies(MatrixOperand::B, b, layouts.1) {
        return Err(decoder.fault(format!("{a} takes `.row.col` only")));
    }
    let operands = decoder.operands(4)?;
    let of = |at: usize, operand, format| fragment(decoder, &operands[at], operand, shape, format);
    Ok(Instruction::Multiply(Box::new(Multiply {
        d: of(0, MatrixOperand::Accumulator, d)?,
        a: of(1, MatrixOperand::A, a)?,
        b: of(2, MatrixOperand::B, b)?,
        c: of(3, MatrixOperand::Accumulator, c)?,
        container_bits: (a.bits(), b.bits()),
        id,
        layouts,
        scales: None,
    })))
}
