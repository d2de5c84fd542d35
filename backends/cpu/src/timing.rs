//! Timing of instructions whose operands stay in registers, on one core or on all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mxprobe_api::{Clock, Elements, Error, Load, Operation, OperationId, Span, TileBatch, Timed};

use crate::cores;
use crate::pack::{TILE_BYTES, pack_b};
use crate::resident::{self, Loop, Registers, TMM, YMM, ZMM};

/// The timing loop of an operation and its registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resident {
    pub(crate) registers: Registers,
    pub(crate) run: Loop,
}

/// The instructions of ordinary arithmetic that are timed for comparison.
pub(crate) fn yardsticks() -> (Vec<Operation>, BTreeMap<OperationId, Resident>) {
    let id: OperationId = "fma.m1n1k1.f32.f32.f32.f32".parse().expect("an operation id");
    let wide = is_x86_feature_detected!("avx512f")
        .then_some(("VFMADD231PS zmm, zmm, zmm", Resident { registers: ZMM, run: resident::vfmadd231ps }));
    let narrow = is_x86_feature_detected!("fma")
        .then_some(("VFMADD231PS ymm, ymm, ymm", Resident { registers: YMM, run: resident::vex_vfmadd231ps }));
    let mut operations = Vec::new();
    let mut residents = BTreeMap::new();
    for (at, (instruction, resident)) in [wide, narrow].into_iter().flatten().enumerate() {
        // The widest one is the default yardstick.
        let id = if at == 0 { id.clone() } else { id.clone().with("ymm") };
        let mut operation = Operation::new(id.clone(), "thread");
        operation.instruction = Some(instruction.to_owned());
        operations.push(operation);
        residents.insert(id, resident);
    }
    (operations, residents)
}

/// The operands as the registers hold them: tiles 0, 1, … fill lanes and registers, starting over after the last tile.
struct Held {
    a: Vec<u8>,
    b: Vec<u8>,
    c: Vec<u8>,
    pattern: Vec<[usize; 3]>,
}

impl Held {
    fn new(registers: Registers, operation: &Operation, operands: &TileBatch) -> Self {
        let Registers { bytes, lanes, operands: count, sums } = registers;
        let tile_bytes = bytes / lanes;
        let of = |elements: &Elements, registers: usize| -> Vec<u8> {
            let tiles = (0..registers * lanes).map(|place| place % operands.tiles);
            tiles.flat_map(|tile| &elements.bytes()[tile * tile_bytes..][..tile_bytes]).copied().collect()
        };
        let mut b = of(&operands.b, count);
        if registers == TMM {
            let row_major = b.clone();
            for (row_major, packed) in row_major.chunks_exact(TILE_BYTES).zip(b.chunks_exact_mut(TILE_BYTES)) {
                match operation.id.b.storage_bytes() {
                    1 => pack_b::<1>(row_major, packed),
                    _ => pack_b::<2>(row_major, packed),
                }
            }
        }
        let pattern = (0..sums * lanes)
            .map(|chain| {
                let (sum, lane) = (chain / lanes, chain % lanes);
                let place = |register: usize| (register % count * lanes + lane) % operands.tiles;
                [place(sum), place(sum / count), chain % operands.tiles]
            })
            .collect();
        Self { a: of(&operands.a, count), b, c: of(&operands.c, sums), pattern }
    }
}

/// The measurements of one thread.
struct Worked {
    start: Instant,
    end: Instant,
    frequency_hz: f64,
    sums: Vec<u8>,
}

/// Times chains in registers.
///
/// # Safety
/// The instruction of the loop is usable in this process.
pub(crate) unsafe fn time(resident: Resident, operation: &Operation, load: &Load<'_>) -> Result<Timed, Error> {
    let held = Held::new(resident.registers, operation, load.operands);
    let cores = match load.span {
        Span::One => vec![None],
        Span::All => match cores::one_of_each_core() {
            cores if cores.is_empty() => vec![None],
            cores => cores.into_iter().map(Some).collect(),
        },
    };
    let waiting = AtomicUsize::new(cores.len());
    let worked: Vec<Worked> = std::thread::scope(|scope| {
        let threads: Vec<_> = cores
            .iter()
            .map(|core| {
                let (held, waiting) = (&held, &waiting);
                scope.spawn(move || {
                    if let Some(core) = core {
                        // A thread that moves costs time, but its results are right.
                        let _ = cores::stay_on(*core);
                    }
                    let mut sums = held.c.clone();
                    // All threads start together.
                    waiting.fetch_sub(1, Ordering::AcqRel);
                    while waiting.load(Ordering::Acquire) > 0 {
                        std::hint::spin_loop();
                    }
                    let start = Instant::now();
                    // SAFETY: the caller vouches for the instruction; the operands were prepared for these registers,
                    // and a validated load has at least one step.
                    unsafe { (resident.run)(load.steps, held.a.as_ptr(), held.b.as_ptr(), sums.as_mut_ptr()) };
                    let end = Instant::now();
                    Worked { start, end, frequency_hz: frequency_hz(), sums }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a loop does not panic")).collect()
    });
    let start = worked.iter().map(|thread| thread.start).min().expect("a thread");
    let end = worked.iter().map(|thread| thread.end).max().expect("a thread");
    let units = u32::try_from(worked.len()).expect("a few thousand threads at the most");
    let frequency_hz = worked.iter().map(|thread| thread.frequency_hz).sum::<f64>() / f64::from(units);
    let d = worked.into_iter().flat_map(|thread| thread.sums).collect();
    Ok(Timed {
        elapsed_ns: (end - start).as_secs_f64() * 1e9,
        clock: Clock::Host,
        units: Some(units),
        unit: "core".into(),
        frequency_hz: Some(frequency_hz),
        pattern: held.pattern,
        d: Elements::from_bytes(operation.id.d, d)?,
    })
}

/// The frequency of this core right after the load: that of the fastest of a few short chains of multiplications, since
/// other threads may use the core now and then.
fn frequency_hz() -> f64 {
    let mut best = 0f64;
    for _ in 0..5 {
        let start = Instant::now();
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let cycles = resident::dependent_multiplications(4_000) as f64;
        best = best.max(cycles / start.elapsed().as_secs_f64());
    }
    best
}
