//! The matrix unit: registers in, a tile batch of the model, registers out.

use std::collections::BTreeMap;

use mxprobe_api::{Device, Elements, Error, Format, Operation, OperationId, Shape, TileBatch};
use mxprobe_sim::{Model, ModelDevice};

use super::fragments::{self, Operand};
use crate::ptx::{Fault, Instruction, Layout, Module, Multiply, Step};

/// The unit of a device.
#[derive(Debug)]
pub(crate) struct Unit {
    device: ModelDevice,
    /// Row 2 of A is taken for row 3.
    wrong_layout: bool,
}

/// One element: which register of the operand holds it, in which lane, where in the register, and its index in the
/// matrices of one warp.
#[derive(Clone, Copy, Debug)]
struct Place {
    register: u32,
    lane: u32,
    shift: u32,
    index: u32,
}

/// How the registers of an `mma` are read and written.
#[derive(Debug)]
pub(crate) struct Plan {
    pub operation: Operation,
    /// Multiplies that a warp does at once: 4 on Volta's shape.
    pub tiles: usize,
    a: Vec<Place>,
    b: Vec<Place>,
    c: Vec<Place>,
    d: Vec<Place>,
}

/// What the instructions of a module need, by kernel and step.
pub(crate) type Plans = BTreeMap<(usize, usize), Plan>;

impl Unit {
    pub(crate) fn new(model: Model, wrong_layout: bool) -> Self {
        Self { device: ModelDevice::new(model), wrong_layout }
    }

    /// The model's operation, or the one that computes it piece by piece.
    pub(crate) fn operation(&self, id: &OperationId) -> Option<&Operation> {
        if let Some(operation) = self.device.operations().get(id) {
            return Some(operation);
        }
        // Rows and columns of D are computed each for itself: wgmma and tcgen05 of a larger shape are several of a smaller.
        let smaller = |own: &OperationId| {
            let Shape { m, n, .. } = own.shape;
            let fits = id.shape.m.is_multiple_of(m) && id.shape.n.is_multiple_of(n);
            fits && *own == OperationId { shape: Shape { m, n, ..id.shape }, ..id.clone() }
        };
        let operations = self.device.operations().values();
        operations.filter(|_| id.family != "mma").find(|operation| smaller(&operation.id))
    }

    /// D, row-major, of A row after row, B column after column and C row after row.
    pub(crate) fn product(&self, id: &OperationId, a: &[u64], b: &[u64], c: &[u64]) -> Result<Vec<u64>, Error> {
        let operation = self.operation(id).ok_or_else(|| Error::unsupported(format!("this unit has no {id}")))?;
        let ((_, n, k), (rows, columns, _)) = (id.shape.sizes(), operation.id.shape.sizes());
        let across = n / columns;
        let tiles = c.len() / (rows * columns);
        let mut batch = TileBatch::zeros(operation, tiles);
        // Where element `at` of a tile of so many columns begins among the whole.
        let origin = |tile: usize| (tile / across * rows, tile % across * columns);
        for tile in 0..tiles {
            let (row, column) = origin(tile);
            for at in 0..rows * k {
                batch.a.set(tile * rows * k + at, a[row * k + at]);
            }
            for at in 0..k * columns {
                batch.b.set(tile * k * columns + at, b[(column + at % columns) * k + at / columns]);
            }
            for at in 0..rows * columns {
                batch.c.set(tile * rows * columns + at, c[(row + at / columns) * n + column + at % columns]);
            }
        }
        let computed = self.compute(operation, &batch)?;
        let mut d = vec![0; c.len()];
        for (index, bits) in computed.iter().enumerate() {
            let (tile, at) = (index / (rows * columns), index % (rows * columns));
            let (row, column) = origin(tile);
            d[(row + at / columns) * n + column + at % columns] = bits;
        }
        Ok(d)
    }

    pub(crate) fn compute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        self.device.execute(operation, batch)
    }

    /// Row 3 for row 2, if the unit is to be wrong.
    pub(crate) fn row_of_a(&self, row: u32) -> u32 {
        if self.wrong_layout && row == 2 { 3 } else { row }
    }

    /// The plans of every `mma` of a module.
    ///
    /// # Errors
    /// The line of an instruction that this unit does not have, and its id.
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
                // e2m1 in a byte stands in bits 2 to 5 (PTX ISA 8.7, 9.7.14.5.12).
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
}

/// A warp's registers, by number and lane.
pub(crate) trait Registers {
    fn read(&self, register: usize, lane: u32) -> u64;
    fn write(&mut self, register: usize, lane: u32, bits: u64);
}

impl Plan {
    /// The operands of every warp as one batch; `warps` are the first lanes.
    pub(crate) fn gather(&self, multiply: &Multiply, registers: &impl Registers, warps: &[u32]) -> TileBatch {
        let mut batch = TileBatch::zeros(&self.operation, warps.len() * self.tiles);
        let operands = [
            (&self.a, &multiply.a, &mut batch.a),
            (&self.b, &multiply.b, &mut batch.b),
            (&self.c, &multiply.c, &mut batch.c),
        ];
        for (places, names, elements) in operands {
            let each = elements.len() / warps.len();
            for (at, warp) in warps.iter().enumerate() {
                for place in places {
                    let word = registers.read(names[place.register as usize], warp + place.lane);
                    elements.set(at * each + place.index as usize, word >> place.shift);
                }
            }
        }
        batch
    }

    /// D of every warp into its registers.
    pub(crate) fn scatter(&self, multiply: &Multiply, registers: &mut impl Registers, warps: &[u32], d: &Elements) {
        let each = d.len() / warps.len();
        for (at, warp) in warps.iter().enumerate() {
            for place in &self.d {
                let name = multiply.d[place.register as usize];
                let bits = d.get(at * each + place.index as usize) << place.shift;
                let kept = if place.shift == 0 { 0 } else { registers.read(name, warp + place.lane) };
                registers.write(name, warp + place.lane, kept | bits);
            }
        }
    }
}
