//! `mxprobe` for one more kind of device: a systolic array, here computed by the CPU.
//!
//! Each of its cells multiplies two bf16, adds the output of the previous cell, and rounds the sum once, to f32: d =
//! fma(a7, b7, … fma(a0, b0, c)).

use std::{collections::BTreeMap, process::ExitCode};

use mxprobe_api::{
    Backend, Device, DeviceInfo, DeviceKind, Discovery, Elements, Error, Format, Operation, OperationId, OperationSet,
    TileBatch,
};

fn main() -> ExitCode {
    mxprobe::Backends::included().register(|| Box::new(Systolic)).main()
}

struct Systolic;

impl Backend for Systolic {
    fn name(&self) -> &'static str {
        "systolic"
    }

    /// A real backend asks its driver here; devices that cannot be used go to `refusals`.
    fn discover(&self) -> Discovery {
        Discovery { devices: vec![Box::new(Array::new())], refusals: Vec::new() }
    }
}

struct Array {
    info: DeviceInfo,
    operations: OperationSet,
}

impl Array {
    fn new() -> Self {
        let id = OperationId::new("matmul", (4, 4, 8), Format::F32, Format::BF16, Format::BF16, Format::F32);
        let info = DeviceInfo {
            backend: "systolic".into(),
            selector: "systolic:0".into(),
            name: "Systolic array of 4×4".into(),
            fingerprint: "systolic-4x4".into(),
            kind: DeviceKind::Software,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: BTreeMap::new(),
        };
        Self { info, operations: [(id.clone(), Operation::new(id, "array"))].into() }
    }
}

impl Device for Array {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        &self.operations
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let (m, n, k) = operation.id.shape.sizes();
        let cells = (0..batch.tiles).flat_map(|tile| (0..m * n).map(move |cell| (tile, cell / n, cell % n)));
        let dots = cells.map(|(tile, row, column)| {
            let d = (0..k).fold(f32::from_bits(batch.c.get((tile * m + row) * n + column) as u32), |sum, at| {
                let a = from_bf16(batch.a.get((tile * m + row) * k + at));
                let b = from_bf16(batch.b.get((tile * k + at) * n + column));
                a.mul_add(b, sum)
            });
            u64::from(d.to_bits())
        });
        Ok(Elements::from_bits(operation.id.d, dots))
    }
}

/// A bf16 is the upper half of an f32.
fn from_bf16(bits: u64) -> f32 {
    f32::from_bits((bits as u32) << 16)
}
