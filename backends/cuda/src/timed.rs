//! How long a kernel runs whose operands stay in registers (in shared memory, where the instruction reads it from there).

use cudarc::driver::{LaunchConfig, PushKernelArg, sys::CUevent_flags};
use mxprobe_api::{Clock, Elements, Error, Load, Operation, Span, TileBatch, Timed};

use crate::capability::{PtxVersion, Target};
use crate::instruction::{Instruction, Kind};
use crate::layout::{Layout, Layouts};
use crate::resident::{FMA_CHAINS, FMA_THREADS, fma};
use crate::session::{Session, Timeable, called};

/// The id of the scalar units' multiply-add.
pub(crate) const FMA: &str = "fma.m1n1k1.f32.f32.f32.f32";

/// What the scalar kernel asks for: less than any device with a matrix unit has.
pub(crate) const FMA_TARGET: Target = Target { name: "sm_70", version: PtxVersion::new(6, 3) };

/// Blocks of a multiprocessor: 32 warps of one sum each hide the latency of `mma` at its throughput (a unit of a quarter of
/// a multiprocessor has 8 of them), in 64 registers a thread; of a warpgroup with a sum of 64×256 the registers hold two;
/// tensor memory is one block's.
pub(crate) fn blocks_of_multiprocessor(instruction: Option<&Instruction>) -> u32 {
    match instruction.map(|instruction| (instruction.kind, instruction.id.shape.n)) {
        None | Some((Kind::Warp | Kind::Quarter | Kind::Opaque, _)) => 8,
        Some((Kind::Warpgroup, 256)) => 2,
        Some((Kind::Warpgroup, _)) => 8,
        Some((Kind::Tensor, _)) => 1,
    }
}

/// Times an operation whose kernel was compiled, or with no instruction the scalar units' multiply-add.
///
/// # Errors
/// What the driver reports.
pub(crate) fn time(
    session: &Session,
    compiled: &Timeable,
    instruction: Option<&Instruction>,
    operation: &Operation,
    load: &Load<'_>,
) -> Result<Timed, Error> {
    // Where a block runs is the device's choice, so that one multiprocessor cannot be filled alone: one block can.
    let (units, unit, blocks) = match load.span {
        Span::One => (1, "block", 1),
        Span::All => {
            let multiprocessors = session.multiprocessors;
            (multiprocessors, "multiprocessor", multiprocessors * blocks_of_multiprocessor(instruction))
        }
    };
    let groups = blocks * compiled.kernel.groups_at_once;
    let operands = match &compiled.layouts {
        Some(layouts) => of_unit(layouts, load.operands, groups as usize),
        None => of_scalars(load.operands, blocks as usize),
    };
    let mut d_device = session.upload(&operands.d)?;
    let inputs = operands.inputs.iter().map(|bytes| session.upload(bytes)).collect::<Result<Vec<_>, _>>()?;
    let mut cycles_device = session.upload(&[0; 8])?;
    let configuration =
        LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (compiled.kernel.threads, 1, 1), shared_mem_bytes: 0 };
    let event = || session.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(called("cuEventCreate"));
    let (before, after) = (event()?, event()?);
    let steps = u32::try_from(load.steps)
        .map_err(|_| Error::unsupported(format!("{} steps are more than a kernel counts", load.steps)))?;
    let steps = u64::from(steps);
    let mut builder = session.stream.launch_builder(&compiled.function);
    inputs.iter().take(3).for_each(|input| {
        builder.arg(input);
    });
    builder.arg(&mut d_device);
    inputs.iter().skip(3).for_each(|input| {
        builder.arg(input);
    });
    builder.arg(&steps).arg(&mut cycles_device).arg(&groups);
    before.record(&session.stream).map_err(called("cuEventRecord"))?;
    // SAFETY: the parameters are those of the kernel's text: pointers, the number of steps in the size of one, a pointer, a
    // count; every buffer holds what so many groups read and write, and all outlive the synchronisation below.
    unsafe { builder.launch(configuration) }.map_err(called("cuLaunchKernel"))?;
    after.record(&session.stream).map_err(called("cuEventRecord"))?;
    let milliseconds = before.elapsed_ms(&after).map_err(called("cuEventElapsedTime"))?;
    let elapsed_ns = f64::from(milliseconds) * 1e6;
    let d = session.download(&d_device, operands.d.len())?;
    let cycles = session.download(&cycles_device, 8)?;
    let cycles = u64::from_le_bytes(cycles.try_into().expect("eight bytes"));
    let d = match &compiled.layouts {
        Some(layouts) => layouts.d.unpack(&d, operation.id.d, groups as usize * layouts.d.group()),
        None => Elements::from_bytes(operation.id.d, d)?,
    };
    #[expect(clippy::cast_precision_loss, reason = "a frequency has few digits")]
    let frequency_hz = (elapsed_ns > 0.0 && cycles > 0).then(|| cycles as f64 / elapsed_ns * 1e9);
    Ok(Timed { elapsed_ns, clock: Clock::Device, units: Some(units), unit, frequency_hz, pattern: operands.pattern, d })
}

/// What a launch is given.
struct Operands {
    /// A, B, C, and scales where there are any.
    inputs: Vec<Vec<u8>>,
    /// D, filled with what it does not stay.
    d: Vec<u8>,
    pattern: Vec<[usize; 3]>,
}

/// What D holds before a launch.
const FILLING: u8 = 0xa5;

/// Every group has operands of its own, the tiles in turn.
fn of_unit(layouts: &Layouts, batch: &TileBatch, groups: usize) -> Operands {
    let tiles = groups * layouts.d.group();
    let packed = |layout: &Layout, elements: &Elements| {
        let size = elements.len() / batch.tiles * elements.format().storage_bytes();
        let all = (0..tiles).flat_map(|tile| &elements.bytes()[tile % batch.tiles * size..][..size]).copied().collect();
        let all = Elements::from_bytes(elements.format(), all).expect("elements of this format");
        layout.pack(&all, 0, groups)
    };
    let mut inputs = vec![packed(&layouts.a, &batch.a), packed(&layouts.b, &batch.b), packed(&layouts.c, &batch.c)];
    if let (Some((of_a, of_b)), Some(a), Some(b)) = (&layouts.scales, &batch.scale_a, &batch.scale_b) {
        inputs.extend([packed(of_a, a), packed(of_b, b)]);
    }
    let pattern = (0..batch.tiles.min(tiles)).map(|tile| [tile; 3]).collect();
    Operands { inputs, d: vec![FILLING; groups * layouts.d.bytes()], pattern }
}

/// Every block has the same operands, the tiles in turn.
fn of_scalars(batch: &TileBatch, blocks: usize) -> Operands {
    let chains = FMA_THREADS as usize * FMA_CHAINS;
    let of = |elements: &Elements| -> Vec<u8> {
        (0..chains).flat_map(|chain| &elements.bytes()[chain % batch.tiles * 4..][..4]).copied().collect()
    };
    let inputs = vec![of(&batch.a), of(&batch.b), of(&batch.c)];
    let pattern = (0..chains).map(|chain| [chain % batch.tiles; 3]).collect();
    Operands { inputs, d: vec![FILLING; blocks * chains * 4], pattern }
}

/// The scalar kernel.
pub(crate) fn scalar_kernel() -> crate::ptx::Kernel {
    fma(FMA_TARGET)
}
