//! The device that computes dots.

use std::sync::Arc;

use mxprobe_api::{
    Device, DotOperands, Elements, Error, GemmOperands, Operation, OperationId, TileBatch, execute, multiply,
};

use crate::cli::{
    choose::{reach::Reached, target::Target},
    failure::Failure,
    io::dot_lines::{Dots, range_of},
};

/// The device and operation that compute.
pub(super) struct Opened {
    device: Arc<dyn Device>,
    pub(super) operation: Arc<Operation>,
}

impl Opened {
    pub(super) fn new(target: &Target, id: &OperationId, reached: Result<Reached, Error>) -> Result<Self, Failure> {
        let device = reached.map_err(Failure::no_device)?.device;
        let missing = || Failure::no_device(format!("{} has no operation {id} any more", target.selector));
        let operation = device.operations().get(id).ok_or_else(missing)?.clone();
        Ok(Self { device, operation: Arc::new(operation) })
    }

    /// Computes d of dots that are given as elements, all in one call if the device has a faster way for single dots than
    /// whole tiles.
    pub(super) fn compute_elements(&self, a: &Elements, b: &Elements, c: &Elements) -> Result<Elements, Failure> {
        let count = c.len();
        let operands = DotOperands { count, a, b, c, scale_a: None, scale_b: None };
        match mxprobe_api::dots(self.device.as_ref(), &self.operation, &operands) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                let [a, b, c] = [a, b, c].map(Elements::to_bits);
                let dots = Dots { count, a, b, c, ..Dots::new(Arc::clone(&self.operation)) };
                Ok(Elements::from_bits(self.operation.id.d, self.compute(&dots)?))
            }
            Err(error) => Err(Failure::of_device(error)),
        }
    }

    /// Computes d of every dot: one at a time if the device can do so for less than a tile, and otherwise on the
    /// diagonals of tiles.
    pub(super) fn compute(&self, dots: &Dots) -> Result<Vec<u64>, Failure> {
        let (device, operation) = (self.device.as_ref(), &self.operation);
        let of_device = |error| Failure::incomplete(error).help("the lines before have been answered");
        if let Some(all) = together(device, operation, dots).map_err(of_device)? {
            return Ok(all.to_bits());
        }
        if device.matrices().is_some_and(|matrices| !matrices.has_tiles()) {
            let all = (0..dots.count).map(|dot| alone(device, operation, dots, dot));
            if let Some(all) = all.collect::<Result<Option<_>, _>>().map_err(of_device)? {
                return Ok(all);
            }
        }
        on_diagonals(device, operation, dots).map_err(of_device)
    }
}

/// Computes all dots in one call, if the device has a faster way for single dots than whole tiles.
fn together(device: &dyn Device, operation: &Operation, dots: &Dots) -> Result<Option<Elements>, Error> {
    let id = &operation.id;
    let elements = |format, bits: &[u64]| Elements::from_slices(format, [bits]);
    let (a, b, c) = (elements(id.a, &dots.a), elements(id.b, &dots.b), elements(id.c, &dots.c));
    let scales =
        id.block_scale().map(|scale| (elements(scale.format, &dots.scale_a), elements(scale.format, &dots.scale_b)));
    let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
    let operands = DotOperands { count: dots.count, a: &a, b: &b, c: &c, scale_a, scale_b };
    mxprobe_api::dots(device, operation, &operands)
}

/// Computes one dot as a product of 1×k and k×1 matrices, if the device multiplies matrices in this operation.
fn alone(device: &dyn Device, operation: &Operation, dots: &Dots, dot: usize) -> Result<Option<u64>, Error> {
    let id = &operation.id;
    let k = id.shape.sizes().2;
    let elements = |format, bits: &[u64]| Elements::from_bits(format, bits.iter().copied());
    let (a, b) = (elements(id.a, &dots.a[range_of(dot, k)]), elements(id.b, &dots.b[range_of(dot, k)]));
    let c = elements(id.c, &[dots.c[dot]]);
    let scales = id.block_scale().map(|scale| {
        let blocks = range_of(dot, k.div_ceil(scale.block));
        (elements(scale.format, &dots.scale_a[blocks.clone()]), elements(scale.format, &dots.scale_b[blocks]))
    });
    let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
    let operands = GemmOperands { m: 1, n: 1, k, a: &a, b: &b, c: &c, scale_a, scale_b };
    Ok(multiply(device, operation, &operands)?.map(|d| d.get(0)))
}

/// Computes dots on the diagonals of tiles, so that each has a row of A and a column of B of its own.
fn on_diagonals(device: &dyn Device, operation: &Operation, dots: &Dots) -> Result<Vec<u64>, Error> {
    if dots.count == 0 {
        return Ok(Vec::new());
    }
    let (m, n, k) = operation.id.shape.sizes();
    let in_tile = m.min(n);
    let mut batch = TileBatch::zeros(operation, dots.count.div_ceil(in_tile));
    let blocks = operation.id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
    for dot in 0..dots.count {
        let (tile, lane) = (dot / in_tile, dot % in_tile);
        set_row(&mut batch.a, (tile * m + lane) * k, &dots.a[range_of(dot, k)]);
        set_column(&mut batch.b, tile * k * n + lane, n, &dots.b[range_of(dot, k)]);
        batch.c.set((tile * m + lane) * n + lane, dots.c[dot]);
        if let (Some(scale_a), Some(scale_b)) = (&mut batch.scale_a, &mut batch.scale_b) {
            set_row(scale_a, (tile * m + lane) * blocks, &dots.scale_a[range_of(dot, blocks)]);
            set_column(scale_b, tile * blocks * n + lane, n, &dots.scale_b[range_of(dot, blocks)]);
        }
    }
    let d = execute(device, operation, &batch)?;
    Ok((0..dots.count).map(|dot| d.get(((dot / in_tile) * m + dot % in_tile) * n + dot % in_tile)).collect())
}

fn set_row(elements: &mut Elements, at: usize, numbers: &[u64]) {
    for (index, bits) in numbers.iter().enumerate() {
        elements.set(at + index, *bits);
    }
}

fn set_column(elements: &mut Elements, at: usize, stride: usize, numbers: &[u64]) {
    for (index, bits) in numbers.iter().enumerate() {
        elements.set(at + index * stride, *bits);
    }
}
