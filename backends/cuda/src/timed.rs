//! Timing of kernels whose operands stay in registers (or in shared memory, if the instruction reads them from there).

use std::collections::HashMap;

use cudarc::driver::{CudaFunction, CudaSlice, PushKernelArg};
use mxprobe_api::{
    Clock, Elements, Error, Format, Load, Operation, OperationId, Span, TileBatch, Timed, written::FILLINGS,
};

use mxprobe_shaders::ptx::layout::{Layout, Layouts};
use mxprobe_shaders::ptx::throughput_loop::{FMA_CHAINS, FMA_THREADS, STAMPS, blocks_of_multiprocessor};
use mxprobe_shaders::ptx::{Instruction, Kernel};

use crate::session::{Session, called, grid};

/// The id of the multiply-add of the scalar units.
pub(crate) const FMA: &str = "fma.m1n1k1.f32.f32.f32.f32";

/// The kernels compiled for timing, and the operands of the last timed operation.
#[derive(Default)]
pub(crate) struct Timer {
    compiled: HashMap<OperationId, Compiled>,
    resident: Option<Resident>,
}

/// A compiled timing kernel.
struct Compiled {
    function: CudaFunction,
    kernel: Kernel,
    /// The layouts of the instruction's operands; `None` for the scalar units' kernel.
    layouts: Option<Layouts>,
}

impl Timer {
    /// Times an operation with its timing kernel, compiled on first use; if `instruction` is `None`, the multiply-add
    /// of the scalar units.
    ///
    /// # Errors
    /// Whatever the driver and its compiler report.
    pub(crate) fn time(
        &mut self,
        session: &Session,
        instruction: Option<&Instruction>,
        make: impl FnOnce() -> (Option<Layouts>, Kernel),
        operation: &Operation,
        load: &Load<'_>,
    ) -> Result<Timed, Error> {
        let id = &operation.id;
        if !self.compiled.contains_key(id) {
            let (layouts, kernel) = make();
            let loaded = session.load(&format!("{id}.timed"), &kernel.text).map_err(|error| error.context(id))?;
            self.compiled.insert(id.clone(), Compiled { function: loaded.function, kernel, layouts });
        }
        time(session, &mut self.resident, &self.compiled[id], instruction, operation, load)
    }
}

fn time(
    session: &Session,
    kept: &mut Option<Resident>,
    compiled: &Compiled,
    instruction: Option<&Instruction>,
    operation: &Operation,
    load: &Load<'_>,
) -> Result<Timed, Error> {
    // The device chooses where a block runs, so a single multiprocessor cannot be filled; `One` is a single block
    // instead.
    let (units, unit, blocks) = match load.span {
        Span::One => (1, "block", 1),
        Span::All => {
            let multiprocessors = session.multiprocessors;
            (multiprocessors, "multiprocessor", multiprocessors * blocks_of_multiprocessor(instruction))
        }
    };
    let groups = blocks * compiled.kernel.groups_at_once;
    let steps = u32::try_from(load.steps)
        .map_err(|_| Error::unsupported(format!("{} steps exceed the 32-bit counter of a kernel", load.steps)))?;
    let steps = u64::from(steps);
    let known = kept.take().filter(|known| known.is_of(operation, load));
    let mut resident = match known {
        Some(known) => known,
        None => {
            let operands = match &compiled.layouts {
                Some(layouts) => of_unit(layouts, load.operands, groups as usize),
                None => of_scalars(load.operands, blocks as usize),
            };
            let warps = blocks as usize * (compiled.kernel.threads / 32) as usize;
            Resident::upload(session, operation, load, operands, warps)?
        }
    };
    // Overwrites the results of the previous launch, so that they are not mistaken for new ones.
    session.fill(&mut resident.d, FILLINGS[0])?;
    session.fill(&mut resident.stamps, 0)?;
    let mut builder = session.stream.launch_builder(&compiled.function);
    resident.inputs.iter().take(3).for_each(|input| {
        builder.arg(input);
    });
    builder.arg(&mut resident.d);
    resident.inputs.iter().skip(3).for_each(|input| {
        builder.arg(input);
    });
    builder.arg(&steps).arg(&mut resident.stamps).arg(&groups);
    let before = session.event()?;
    // SAFETY: the parameters are those of the kernel's text: pointers, the number of steps in pointer size, a pointer,
    // a count; every buffer holds what that many groups read and write, and all outlive the synchronisation below.
    unsafe { builder.launch(grid(blocks, compiled.kernel.threads)) }.map_err(called("cuLaunchKernel"))?;
    let after = session.event()?;
    let milliseconds = before.elapsed_ms(&after).map_err(called("cuEventElapsedTime"))?;
    let elapsed_ns = f64::from(milliseconds) * 1e6;
    let d = session.download(&resident.d, resident.d.len())?;
    let cycles = cycles_of(&session.download(&resident.stamps, resident.stamps.len())?);
    let d = match &compiled.layouts {
        Some(layouts) => unpack(&layouts.d, &d, operation.id.d, resident.period),
        None => Elements::from_bytes(operation.id.d, d)?,
    };
    #[expect(clippy::cast_precision_loss, reason = "a frequency has few digits")]
    let frequency_hz = (elapsed_ns > 0.0 && cycles > 0).then(|| cycles as f64 / elapsed_ns * 1e9);
    let pattern = resident.pattern.clone();
    *kept = Some(resident);
    Ok(Timed { elapsed_ns, clock: Clock::Device, units: Some(units), unit: unit.to_owned(), frequency_hz, pattern, d })
}

/// The most cycles that a multiprocessor took from the beginning of its first warp to the end of its last.
fn cycles_of(stamps: &[u8]) -> u64 {
    let mut spans: HashMap<u64, (u64, u64)> = HashMap::new();
    for stamp in stamps.chunks_exact(8 * STAMPS) {
        let [began, ended, unit] =
            [0, 1, 2].map(|at| u64::from_le_bytes(stamp[8 * at..][..8].try_into().expect("eight bytes")));
        let span = spans.entry(unit).or_insert((began, ended));
        *span = (span.0.min(began), span.1.max(ended));
    }
    spans.values().map(|(began, ended)| ended.saturating_sub(*began)).max().unwrap_or(0)
}

/// The operands of the last timed operation, kept on the device: a measurement launches the same kernel dozens of
/// times, and only D and the number of steps change.
struct Resident {
    id: OperationId,
    span: Span,
    operands: TileBatch,
    /// A, B, C, and scales if there are any.
    inputs: Vec<CudaSlice<u8>>,
    d: CudaSlice<u8>,
    /// What each warp stores: see [`STAMPS`].
    stamps: CudaSlice<u8>,
    pattern: Vec<[usize; 3]>,
    /// Groups after which the operands repeat.
    period: usize,
}

impl Resident {
    fn is_of(&self, operation: &Operation, load: &Load<'_>) -> bool {
        self.id == operation.id && self.span == load.span && self.operands == *load.operands
    }

    fn upload(
        session: &Session,
        operation: &Operation,
        load: &Load<'_>,
        operands: Operands,
        warps: usize,
    ) -> Result<Self, Error> {
        Ok(Self {
            id: operation.id.clone(),
            span: load.span,
            operands: load.operands.clone(),
            inputs: operands.inputs.iter().map(|bytes| session.upload(bytes)).collect::<Result<_, _>>()?,
            d: session.filled(FILLINGS[0], operands.d_bytes)?,
            stamps: session.filled(0, 8 * STAMPS * warps)?,
            pattern: operands.pattern,
            period: operands.period,
        })
    }
}

/// The inputs of a timing kernel.
struct Operands {
    /// A, B, C, and scales if there are any.
    inputs: Vec<Vec<u8>>,
    d_bytes: usize,
    pattern: Vec<[usize; 3]>,
    /// Groups after which the operands repeat.
    period: usize,
}

/// Prepares operands for a matrix instruction: the groups take the tiles of the batch in turn.
fn of_unit(layouts: &Layouts, batch: &TileBatch, groups: usize) -> Operands {
    let group = layouts.d.group();
    // Tiles repeat after `batch.tiles`; whole groups repeat after the least common multiple.
    let period = (1..=batch.tiles).find(|groups| (groups * group).is_multiple_of(batch.tiles)).unwrap_or(batch.tiles);
    let period = period.min(groups);
    let packed = |layout: &Layout, elements: &Elements| {
        let size = elements.len() / batch.tiles * elements.format().storage_bytes();
        let tile = |tile: usize| &elements.bytes()[tile % batch.tiles * size..][..size];
        let all = (0..period * group).flat_map(tile).copied().collect();
        let all = Elements::from_bytes(elements.format(), all).expect("elements of this format");
        let one_period = layout.pack(&all, 0, period);
        let bytes = groups * layout.bytes();
        one_period.iter().copied().cycle().take(bytes).collect::<Vec<u8>>()
    };
    let mut inputs = vec![packed(&layouts.a, &batch.a), packed(&layouts.b, &batch.b), packed(&layouts.c, &batch.c)];
    if let (Some((of_a, of_b)), Some(a), Some(b)) = (&layouts.scales, &batch.scale_a, &batch.scale_b) {
        inputs.extend([packed(of_a, a), packed(of_b, b)]);
    }
    let pattern = (0..batch.tiles.min(groups * group)).map(|tile| [tile; 3]).collect();
    Operands { inputs, d_bytes: groups * layouts.d.bytes(), pattern, period }
}

/// Prepares operands for the scalar units: every block has the same ones, whose chains take the tiles in turn. The chains
/// of a thread have the first of its tiles of A.
fn of_scalars(batch: &TileBatch, blocks: usize) -> Operands {
    let chains = FMA_THREADS as usize * FMA_CHAINS;
    let of = |elements: &Elements| -> Vec<u8> {
        (0..chains).flat_map(|chain| &elements.bytes()[chain % batch.tiles * 4..][..4]).copied().collect()
    };
    let inputs = vec![of(&batch.a), of(&batch.b), of(&batch.c)];
    let of_thread = |chain: usize| chain / FMA_CHAINS * FMA_CHAINS;
    let pattern = (0..chains).map(|chain| [of_thread(chain), chain, chain].map(|at| at % batch.tiles)).collect();
    Operands { inputs, d_bytes: blocks * chains * 4, pattern, period: 1 }
}

/// Unpacks the D of all groups. Groups with the same operands should have the same bytes, which are unpacked once;
/// those that differ are unpacked separately.
fn unpack(layout: &Layout, packed: &[u8], format: Format, period: usize) -> Elements {
    let of = |packed: &[u8]| layout.unpack(packed, format, packed.len() / layout.bytes() * layout.group());
    let bytes = period * layout.bytes();
    let first = of(&packed[..bytes]);
    let mut all = Vec::with_capacity(packed.len() / bytes * first.bytes().len());
    for part in packed.chunks(bytes) {
        if *part == packed[..part.len()] {
            all.extend_from_slice(&first.bytes()[..first.bytes().len() * part.len() / bytes]);
        } else {
            all.extend_from_slice(of(part).bytes());
        }
    }
    Elements::from_bytes(format, all).expect("elements of this format")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cycles_are_those_from_the_first_warp_of_a_multiprocessor_to_its_last() {
        let warps = [(100, 150, 3), (140, 300, 3), (7, 90, 0), (120, 290, 3)];
        let stamps: Vec<u8> = warps
            .iter()
            .flat_map(|(began, ended, unit): &(u64, u64, u64)| [began, ended, unit].map(|word| word.to_le_bytes()))
            .flatten()
            .collect();
        assert_eq!(cycles_of(&stamps), 200);
        assert_eq!(cycles_of(&[]), 0);
    }
}
