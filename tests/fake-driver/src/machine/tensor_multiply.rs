//! `tcgen05.mma`: its descriptors and the product.

use mxprobe_api::{Format, OperationId};

use super::{
    launch::Trap,
    tensor_memory::{LANES, UnderWay},
    unit::Product,
    wave::Wave,
};
use crate::ptx::{Address, Step, TensorKind, TensorMultiply};

/// A decoded instruction descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    pub id: OperationId,
    /// The first byte that is used of each word of scales: of A, and of B.
    pub scale_bytes: (u32, u32),
}

impl Wave<'_> {
    pub(super) fn tensor_multiply(&mut self, step: &Step, multiply: &TensorMultiply, lane: u32) -> Result<(), Trap> {
        self.check_shared(step, lane)?;
        let block = self.block_of(lane);
        let of_block = block * self.block_lanes..(block + 1) * self.block_lanes;
        if self.unstored[of_block].contains(&true) {
            return Err(Trap::failure(step, "tensor memory was written and no `tcgen05.wait::st` followed"));
        }
        let descriptor = self.value(multiply.descriptor, lane) as u32;
        let described = describe(multiply, descriptor).map_err(|text| Trap::failure(step, text))?;
        let Described { id, scale_bytes } = &described;
        let n = id.shape.n;
        let start = self.at(multiply.d, lane) as u32;
        if start >> 16 != 0 {
            return Err(Trap::failure(step, format!("D at {start:#x} does not begin in lane 0")));
        }
        let adds = self.value(multiply.adds, lane) != 0;
        let tensor = &self.tensors[block];
        // Multiplies of one shape that add to the same columns execute in order, without a wait between them (PTX ISA,
        // "Pipelined tcgen05 instructions").
        let before = tensor.under_way.iter().rfind(|before| (before.column, before.n) == (start, n));
        let mut c = vec![0; (LANES * n) as usize];
        for (row, row_of_c) in (0..).zip(c.chunks_exact_mut(n as usize)) {
            let cells = tensor.row(row, start, n);
            let cells = cells.ok_or_else(|| Trap::failure(step, "D exceeds the allocation"))?;
            if let Some(before) = before.filter(|_| adds) {
                row_of_c.copy_from_slice(&before.d[(row * n) as usize..][..n as usize]);
            } else if adds {
                for (bits, cell) in row_of_c.iter_mut().zip(cells) {
                    *bits = u64::from(*cell) & id.c.mask();
                }
            }
        }
        let mut a = self.operand(step, self.value(multiply.a, lane), lane, LANES, id, id.a)?;
        self.launch.unit.misplace_rows(&mut a, id.shape.k);
        let b = self.operand(step, self.value(multiply.b, lane), lane, n, id, id.b)?;
        let (mut scale_a, mut scale_b) = (Vec::new(), Vec::new());
        if let Some(scales) = &multiply.scales {
            scale_a = self.scales(step, scales.a, lane, LANES, (scale_bytes.0, scales.count))?;
            self.launch.unit.misplace_rows(&mut scale_a, scales.count);
            scale_b = self.scales(step, scales.b, lane, n, (scale_bytes.1, scales.count))?;
        }
        let product = Product { a: &a, b: &b, c: &c, scale_a: &scale_a, scale_b: &scale_b };
        let d = self.launch.unit.product(id, &product).map_err(|error| Trap::failure(step, error.to_string()))?;
        let d = self.launch.unit.flipped(id, self.multiprocessor(lane), d);
        self.tensors[block].under_way.push(UnderWay { barrier: None, asked: false, column: start, n, d });
        Ok(())
    }

    /// Reads the rows of A or the columns of B.
    fn operand(
        &self,
        step: &Step,
        descriptor: u64,
        lane: u32,
        lines: u32,
        id: &OperationId,
        format: Format,
    ) -> Result<Vec<u64>, Trap> {
        // Bits 46 to 48 hold 1 in this generation (PTX ISA 8.7, 9.7.16.4.1).
        if descriptor >> 46 & 7 != 1 {
            return Err(Trap::failure(step, format!("descriptor {descriptor:#x} does not have 1 in bits 46 to 48")));
        }
        // For kinds that mix widths, 16 bytes hold 16 elements, packed from the lowest bit on, and the rest is unused
        // (PTX ISA 9.0, 9.7.16.3.1); for others they hold as many elements as fit.
        let in_sixteen_bytes = if id.shape.k == 32 { 16 } else { 128 / format.bits() };
        let place = (lines, id.shape.k, in_sixteen_bytes);
        self.shared_lines(step, descriptor & !(7 << 46), lane, place, format.bits())
    }

    /// Reads the scales of A's rows or B's columns, line by line. Those of line i are the bytes of one word, in lane
    /// i mod 32 and column i / 32, repeated in each of the four quarters of the lanes (PTX ISA 9.0, 9.7.16.10.7).
    fn scales(
        &self,
        step: &Step,
        address: Address,
        lane: u32,
        lines: u32,
        (first_byte, count): (u32, u32),
    ) -> Result<Vec<u64>, Trap> {
        let start = self.at(address, lane) as u32;
        if start >> 16 != 0 {
            return Err(Trap::failure(step, format!("scales at {start:#x} do not begin in lane 0")));
        }
        let tensor = &self.tensors[self.block_of(lane)];
        let mut scales = Vec::new();
        for line in 0..lines {
            let word = |quarter: u32| {
                let cell = tensor.cell(quarter * 32 + line % 32, start + line / 32);
                let cell = cell.ok_or_else(|| Trap::failure(step, "scales lie outside the allocation"))?;
                Ok(tensor.cells[cell])
            };
            let first = word(0)?;
            for quarter in 1..4 {
                if word(quarter)? != first {
                    let text = format!("the scales of line {line} are not the same in all four quarters of the lanes");
                    return Err(Trap::failure(step, text));
                }
            }
            scales.extend((0..count).map(|at| u64::from(first >> (8 * (first_byte + at)) & 0xff)));
        }
        Ok(scales)
    }
}

/// The format of A or B that a code means in a kind.
fn operand(kind: TensorKind, code: u32) -> Option<Format> {
    let formats: &[(u32, Format)] = match kind {
        TensorKind::F16 => &[(0, Format::F16), (1, Format::BF16)],
        TensorKind::Tf32 => &[(2, Format::TF32)],
        TensorKind::F8F6F4 | TensorKind::MxF8F6F4 => {
            &[(0, Format::E4M3), (1, Format::E5M2), (3, Format::E2M3), (4, Format::E3M2), (5, Format::E2M1)]
        }
        TensorKind::I8 => &[(0, Format::U8), (1, Format::S8)],
        TensorKind::MxF4 | TensorKind::MxF4NvF4 => &[(1, Format::E2M1)],
    };
    formats.iter().find(|(known, _)| *known == code).map(|(_, format)| *format)
}

/// Decodes an instruction descriptor (PTX ISA 9.0, 9.7.16.4.2, tables 44 and 45): bits 7 to 9 are the format of A, 10
/// to 12 that of B, 17 to 22 n/8. Without scales, bit 3 means saturation, 4 and 5 are the format of D, and 24 to 28
/// m/16. With scales, bits 4 and 5 are the byte of B's scales, 29 and 30 that of A's, 23 their format, and 27 and 28
/// m/128. The other bits are sparsity, signs and transposition, and must be 0.
pub(crate) fn describe(multiply: &TensorMultiply, descriptor: u32) -> Result<Described, String> {
    let kind = multiply.kind;
    let wrong = || format!("instruction descriptor {descriptor:#x} of {kind:?} is not understood by the fake driver");
    let field = |low: u32, bits: u32| descriptor >> low & ((1 << bits) - 1);
    let sides = 0b11_1111 << 7 | 0b11_1111 << 17;
    let understood = match multiply.scales {
        None => sides | 0b111 << 3 | 0b1_1111 << 24,
        Some(_) => sides | 0b11 << 4 | 1 << 23 | 0b11 << 27 | 0b11 << 29,
    };
    let m = if multiply.scales.is_some() { field(27, 2) * 128 } else { field(24, 5) * 16 };
    let n = field(17, 6) * 8;
    if descriptor & !understood != 0 || m != LANES || !(8..=256).contains(&n) {
        return Err(wrong());
    }
    let (a, b) = (operand(kind, field(7, 3)).ok_or_else(wrong)?, operand(kind, field(10, 3)).ok_or_else(wrong)?);
    let k = match kind {
        TensorKind::F16 => 16,
        TensorKind::Tf32 => 8,
        TensorKind::F8F6F4 | TensorKind::MxF8F6F4 | TensorKind::I8 => 32,
        TensorKind::MxF4 | TensorKind::MxF4NvF4 => 64,
    };
    if let Some(scales) = &multiply.scales {
        let format = if field(23, 1) == 1 { Format::UE8M0 } else { Format::UE4M3 };
        let scale_bytes = (field(29, 2), field(4, 2));
        let begins = |byte: u32| byte.is_multiple_of(scales.count);
        if (format == Format::UE4M3 && scales.count != 4) || !begins(scale_bytes.0) || !begins(scale_bytes.1) {
            return Err(wrong());
        }
        let id = OperationId::new("tcgen05", (m, n, k), Format::F32, a, b, Format::F32);
        return Ok(Described { id: id.with(&format!("block{}", k / scales.count)).with(format.name()), scale_bytes });
    }
    let d = match (kind, field(4, 2)) {
        (TensorKind::I8, 2) => Format::S32,
        (TensorKind::F16 | TensorKind::F8F6F4, 0) => Format::F16,
        (TensorKind::F16 | TensorKind::Tf32 | TensorKind::F8F6F4, 1) => Format::F32,
        _ => return Err(wrong()),
    };
    if (a != b && kind == TensorKind::F16) || (field(3, 1) == 1 && kind != TensorKind::I8) {
        return Err(wrong());
    }
    let id = OperationId::new("tcgen05", (m, n, k), d, a, b, d);
    Ok(Described { id: if field(3, 1) == 1 { id.with("satfinite") } else { id }, scale_bytes: (0, 0) })
}
