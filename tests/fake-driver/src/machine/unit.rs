//! The matrix unit, which computes tile batches on a model.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use mxprobe_api::{Device, Elements, Error, Format, Injection, Operation, OperationId, Shape, TileBatch};
use mxprobe_models::Model;
use mxprobe_sim::ModelDevice;

use super::{
    fragments::{self, Place},
    plan::{Plan, Plans, put},
};
use crate::ptx::{Fault, Instruction, Layout, MatrixOperand as Operand, Module, Multiply, Step};

/// The unit of a device.
#[derive(Debug)]
pub(crate) struct Unit {
    device: ModelDevice,
    /// Whether rows 2 and 3 of A are confused.
    wrong_layout: bool,
    /// Bits inverted in results.
    flip: Option<Flip>,
}

/// A fault of the units of some or all multiprocessors.
#[derive(Debug)]
struct Flip {
    injection: Injection,
    /// By multiprocessor, the number of results that met the fault's conditions.
    met: Mutex<BTreeMap<u32, u64>>,
}

/// The operands of one product, as bits: A and its scales row by row, B and its scales column by column, C row by row.
pub(crate) struct Product<'a> {
    pub a: &'a [u64],
    pub b: &'a [u64],
    pub c: &'a [u64],
    pub scale_a: &'a [u64],
    pub scale_b: &'a [u64],
}

impl Unit {
    pub(crate) fn new(model: Model, wrong_layout: bool, flip: Option<Injection>) -> Self {
        let flip = flip.map(|injection| Flip { injection, met: Mutex::default() });
        Self { device: ModelDevice::new(model), wrong_layout, flip }
    }

    /// Whether some results are wrong.
    pub(crate) fn flips(&self) -> bool {
        self.flip.is_some()
    }

    /// Inverts bits of D that a multiprocessor computed, as the unit is set to.
    pub(crate) fn flipped(&self, id: &OperationId, multiprocessor: u32, d: Vec<u64>) -> Vec<u64> {
        let Some(Flip { injection, met }) = &self.flip else { return d };
        if injection.bit >= id.d.bits() {
            return d;
        }
        let mut d = Elements::from_bits(id.d, d);
        let mut met = met.lock().unwrap_or_else(PoisonError::into_inner);
        injection.apply(id, Some(multiprocessor), met.entry(multiprocessor).or_default(), &mut d);
        d.iter().collect()
    }

    /// The model's operation, or a smaller one that computes it piece by piece.
    pub(crate) fn operation(&self, id: &OperationId) -> Option<&Operation> {
        if let Some(operation) = self.device.operations().get(id) {
            return Some(operation);
        }
        // Elements of D are computed independently: wgmma and tcgen05 of a larger shape are several of a smaller one.
        let smaller = |own: &OperationId| {
            let Shape { m, n, .. } = own.shape;
            let fits = id.shape.m.is_multiple_of(m) && id.shape.n.is_multiple_of(n);
            fits && *own == OperationId { shape: Shape { m, n, ..id.shape }, ..id.clone() }
        };
        let operations = self.device.operations().values();
        operations.filter(|_| id.family != "mma").find(|operation| smaller(&operation.id))
    }

    /// Computes D, row-major.
    pub(crate) fn product(&self, id: &OperationId, product: &Product<'_>) -> Result<Vec<u64>, Error> {
        let operation = self.operation(id).ok_or_else(|| Error::unsupported(format!("this unit has no {id}")))?;
        let ((_, n, k), (rows, columns, _)) = (id.shape.sizes(), operation.id.shape.sizes());
        let across = n / columns;
        let tiles = product.c.len() / (rows * columns);
        let mut batch = TileBatch::zeros(operation, tiles);
        let blocks = id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
        for tile in 0..tiles {
            // The tile's first row and column in the whole.
            let (row, column) = (tile / across * rows, tile % across * columns);
            put(&mut batch.a, (tile * rows * k..).zip(product.a[row * k..].iter().copied().take(rows * k)));
            let transposed = |lines: &[u64], deep: usize| -> Vec<u64> {
                let of_tile = &lines[column * deep..(column + columns) * deep];
                (0..deep).flat_map(|at| of_tile[at..].iter().copied().step_by(deep)).collect()
            };
            put(&mut batch.b, (tile * k * columns..).zip(transposed(product.b, k)));
            for (at, row) in (row..row + rows).enumerate() {
                let of_row = product.c[row * n + column..].iter().copied().take(columns);
                put(&mut batch.c, ((tile * rows + at) * columns..).zip(of_row));
            }
            if let (Some(scale_a), Some(scale_b)) = (&mut batch.scale_a, &mut batch.scale_b) {
                let of_a = product.scale_a[row * blocks..].iter().copied().take(rows * blocks);
                put(scale_a, (tile * rows * blocks..).zip(of_a));
                put(scale_b, (tile * blocks * columns..).zip(transposed(product.scale_b, blocks)));
            }
        }
        let computed = self.compute(operation, &batch)?;
        if tiles == 1 {
            return Ok(computed.iter().collect());
        }
        let mut d = vec![0; product.c.len()];
        for (index, bits) in computed.iter().enumerate() {
            let (tile, at) = (index / (rows * columns), index % (rows * columns));
            let (row, column) = (tile / across * rows, tile % across * columns);
            d[(row + at / columns) * n + column + at % columns] = bits;
        }
        Ok(d)
    }

    pub(crate) fn compute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.device.execute(operation, batch)
    }

    /// The row to read for a row of A: 3 for 2, if the unit is set to be wrong.
    pub(crate) fn row_of_a(&self, row: u32) -> u32 {
        if self.wrong_layout && row == 2 { 3 } else { row }
    }

    /// Swaps rows 2 and 3 of A or its scales, in rows of `columns` elements, if the unit is set to be wrong.
    pub(crate) fn misplace_rows(&self, a: &mut [u64], columns: u32) {
        if self.wrong_layout {
            let columns = columns as usize;
            let (before, row_3) = a.split_at_mut(3 * columns);
            row_3[..columns].swap_with_slice(&mut before[2 * columns..]);
        }
    }

    /// The plans of every `mma` of a module.
    ///
    /// # Errors
    /// If this unit does not have an instruction; the error has its line and its id.
    pub(crate) fn plans(&self, module: &Module) -> Result<Plans, Fault> {
        let missing = |step: &Step, id: &OperationId| {
            Fault::new(step.line, format!("Feature '{id}' not supported on .target '{}'", module.target))
        };
        let mut plans = Plans::new();
        for (kernel_index, kernel) in module.kernels.iter().enumerate() {
            for (index, step) in kernel.steps.iter().enumerate() {
                match &step.instruction {
                    Instruction::Multiply(multiply) => {
                        let plan = self.plan(multiply).ok_or_else(|| missing(step, &multiply.id))?;
                        plans.insert((kernel_index, index), plan);
                    }
                    Instruction::GroupMultiply(multiply) => {
                        self.operation(&multiply.id).ok_or_else(|| missing(step, &multiply.id))?;
                    }
                    _ => {}
                }
            }
        }
        Ok(plans)
    }

    fn plan(&self, multiply: &Multiply) -> Option<Plan> {
        let id = &multiply.id;
        let operation = self.operation(id)?.clone();
        if id.family == "wmma" {
            return Some(self.opaque_plan(multiply, operation));
        }
        let (m, n, k) = (id.shape.m, id.shape.n, id.shape.k);
        let volta = (m, n, k) == (8, 8, 4) && id.a == Format::F16;
        let tiles = if volta { 4 } else { 1 };
        let places = |operand: Operand, rows: u32, columns: u32, format: Format, bits: u32, layout: Layout| {
            let each = rows * columns * tiles / 32;
            let mut places = Vec::new();
            for (lane, i) in (0..32).flat_map(|lane| (0..each).map(move |i| (lane, i))) {
                let (tile, (row, column)) = if volta {
                    (fragments::volta_quad_pair(lane), fragments::volta(operand, layout, bits, lane, i))
                } else {
                    (0, fragments::element(operand, id.shape, bits, lane, i)?)
                };
                let row = if operand == Operand::A { self.row_of_a(row) } else { row };
                let in_register = if bits == 64 { 1 } else { 32 / bits };
                // e2m1 in a byte occupies bits 2 to 5 (PTX ISA 8.7, 9.7.14.5.12).
                let inset = if format == Format::E2M1 && bits == 8 { 2 } else { 0 };
                places.push(Place {
                    register: i / in_register,
                    lane,
                    shift: i % in_register * bits + inset,
                    index: tile * rows * columns + row * columns + column,
                });
            }
            Some(places)
        };
        let row = Layout::Row;
        let (a_bits, b_bits) = multiply.container_bits;
        Some(Plan {
            tiles: tiles as usize,
            a: places(Operand::A, m, k, id.a, a_bits, multiply.layouts.0)?,
            b: places(Operand::B, k, n, id.b, b_bits, multiply.layouts.1)?,
            c: places(Operand::Accumulator, m, n, id.c, id.c.bits(), row)?,
            d: places(Operand::Accumulator, m, n, id.d, id.d.bits(), row)?,
            operation,
        })
    }

    fn opaque_plan(&self, multiply: &Multiply, operation: Operation) -> Plan {
        let id = &multiply.id;
        let (m, n, k) = (id.shape.m, id.shape.n, id.shape.k);
        let places = |operand, layout, format: Format, elements, registers: &[usize]| {
            fragments::wmma(operand, layout, format.bits(), elements, registers.len() as u32)
        };
        let mut a = places(Operand::A, multiply.layouts.0, id.a, m * k, &multiply.a);
        a.iter_mut().for_each(|place| place.index = self.row_of_a(place.index / k) * k + place.index % k);
        let sums = |format, registers| places(Operand::Accumulator, Layout::Row, format, m * n, registers);
        Plan {
            tiles: 1,
            a,
            b: places(Operand::B, multiply.layouts.1, id.b, k * n, &multiply.b),
            c: sums(id.c, &multiply.c),
            d: sums(id.d, &multiply.d),
            operation,
        }
    }
}
