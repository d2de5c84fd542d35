//! Timed chains compute the right results, and take as long as independently written loops.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::print_stdout, reason = "says which part ran")]

use std::{arch::x86_64::*, time::Instant};

use mxprobe_api::{Backend, Clock, Device, Elements, Format, Load, Operation, Random, Span, TileBatch, execute, time};
use mxprobe_cpu::CpuBackend;

/// Draws values between −1 and 1, or any integers.
fn drawn(operation: &Operation, tiles: usize, seed: u64) -> TileBatch {
    let mut batch = TileBatch::zeros(operation, tiles);
    let mut random = Random(seed);
    for elements in [&mut batch.a, &mut batch.b, &mut batch.c] {
        let format = elements.format();
        for at in 0..elements.len() {
            let bits = random.bits();
            #[expect(clippy::cast_precision_loss)]
            let unit = (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            elements.set(at, if format.is_integer() { bits } else { format.from_f64(unit) });
        }
    }
    batch
}

/// The operations and yardsticks of a device.
fn everything(device: &dyn Device) -> Vec<Operation> {
    let yardsticks = device.timing().expect("the CPU is timed").yardsticks();
    device.operations().values().chain(yardsticks).cloned().collect()
}

/// Computes one more step of every tile.
fn step(device: &dyn Device, operation: &Operation, batch: &TileBatch) -> Elements {
    if device.operations().contains_key(&operation.id) {
        return execute(device, operation, batch).expect("the device computes");
    }
    assert_eq!((operation.id.family.as_str(), operation.id.d), ("fma", Format::F32));
    let value = |bits: u64| f32::from_bits(u32::try_from(bits).expect("32 bits"));
    let of = |at: usize| value(batch.a.get(at)).mul_add(value(batch.b.get(at)), value(batch.c.get(at)));
    Elements::from_bits(Format::F32, (0..batch.tiles).map(|at| of(at).to_bits().into()))
}

#[test]
fn every_chain_ends_where_as_many_executions_do() {
    for device in CpuBackend::new().discover().devices {
        for operation in everything(device.as_ref()) {
            let (m, n, k) = operation.id.shape.sizes();
            for (tiles, steps, span) in [(64, 1, Span::One), (5, 3, Span::One), (1, 2, Span::All), (300, 40, Span::All)]
            {
                let operands = drawn(&operation, tiles, steps);
                let timed =
                    time(device.as_ref(), &operation, &Load { operands: &operands, steps, span }).expect("timed");
                let chains = timed.chains(&operation.id);
                let mut expected = TileBatch::zeros(&operation, timed.pattern.len());
                let copy = |to: &mut Elements, from: &Elements, at: usize, tile: usize, size: usize| {
                    (0..size).for_each(|i| to.set(at * size + i, from.get(tile * size + i)));
                };
                for (at, [a, b, c]) in timed.pattern.iter().enumerate() {
                    copy(&mut expected.a, &operands.a, at, *a, m * k);
                    copy(&mut expected.b, &operands.b, at, *b, k * n);
                    copy(&mut expected.c, &operands.c, at, *c, m * n);
                }
                for _ in 0..steps {
                    expected.c = step(device.as_ref(), &operation, &expected);
                }
                assert!(chains.is_multiple_of(timed.pattern.len()));
                for at in 0..timed.d.len() {
                    let wanted = expected.c.get(at % expected.c.len());
                    assert_eq!(timed.d.get(at), wanted, "{}: element {at} after {steps} steps", operation.id);
                }
                assert_eq!((timed.clock, timed.unit.as_str()), (Clock::Host, "core"));
                assert!(timed.frequency_hz.is_some_and(|frequency| frequency > 0.0), "it is measured");
            }
            println!("{} was timed and compared", operation.id);
        }
    }
}

macro_rules! independent {
    ($name:ident, $feature:literal, $sum:ty, $operand:ty, $with:expr) => {
        /// Runs `steps` rounds of sixteen instructions, written with intrinsics.
        #[target_feature(enable = $feature)]
        unsafe fn $name(steps: u64, a: [$operand; 2], b: [$operand; 2], sums: &mut [$sum; 16]) {
            let [
                mut s0,
                mut s1,
                mut s2,
                mut s3,
                mut s4,
                mut s5,
                mut s6,
                mut s7,
                mut s8,
                mut s9,
                mut s10,
                mut s11,
                mut s12,
                mut s13,
                mut s14,
                mut s15,
            ] = *sums;
            for _ in 0..steps {
                s0 = $with(s0, a[0], b[0]);
                s1 = $with(s1, a[1], b[0]);
                s2 = $with(s2, a[0], b[1]);
                s3 = $with(s3, a[1], b[1]);
                s4 = $with(s4, a[0], b[0]);
                s5 = $with(s5, a[1], b[0]);
                s6 = $with(s6, a[0], b[1]);
                s7 = $with(s7, a[1], b[1]);
                s8 = $with(s8, a[0], b[0]);
                s9 = $with(s9, a[1], b[0]);
                s10 = $with(s10, a[0], b[1]);
                s11 = $with(s11, a[1], b[1]);
                s12 = $with(s12, a[0], b[0]);
                s13 = $with(s13, a[1], b[0]);
                s14 = $with(s14, a[0], b[1]);
                s15 = $with(s15, a[1], b[1]);
            }
            *sums = [s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15];
        }
    };
}

independent!(bf16, "avx512f,avx512bf16", __m512, __m512bh, _mm512_dpbf16_ps);
independent!(bytes, "avx512f,avx512vnni", __m512i, __m512i, _mm512_dpbusd_epi32);
independent!(words, "avx512f,avx512vnni", __m512i, __m512i, _mm512_dpwssd_epi32);
independent!(fma, "avx512f", __m512, __m512, |s, a, b| _mm512_fmadd_ps(a, b, s));

/// The operand of LDTILECFG for eight tiles of 16 rows of 64 bytes (*specified*: Intel SDM volume 2, LDTILECFG).
#[repr(C, align(64))]
struct EightTiles([u8; 64]);

impl EightTiles {
    const fn new() -> Self {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        let mut tile = 0;
        while tile < 8 {
            bytes[16 + 2 * tile] = 64;
            bytes[48 + tile] = 16;
            tile += 1;
        }
        Self(bytes)
    }
}

macro_rules! independent_tiles {
    ($name:ident, $instruction:literal) => {
        /// Runs `steps` rounds of four tile instructions, two rounds per jump, and returns the seconds they took. Tile
        /// instructions have no stable intrinsics (rust-lang/rust#126622).
        ///
        /// # Safety
        /// The instruction is usable in this process, and `steps` is even and not 0.
        unsafe fn $name(steps: u64) -> f64 {
            let ones = [0x3f80_3f80u32; 256];
            // SAFETY: the caller vouches for the instruction; every TILELOADD reads 16 rows of 64 bytes of `ones`. The
            // first block leaves tiles behind, the second one uses them and the third one releases them; Rust code
            // between them does not touch tile registers.
            unsafe {
                std::arch::asm!(
                    "ldtilecfg [{config}]",
                    "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                    "tileloadd tmm4, [{ones} + {row}*1]", "tileloadd tmm5, [{ones} + {row}*1]",
                    "tileloadd tmm6, [{ones} + {row}*1]", "tileloadd tmm7, [{ones} + {row}*1]",
                    config = in(reg) &const { EightTiles::new() }, ones = in(reg) &ones, row = in(reg) 64u64,
                    options(nostack),
                );
                let start = Instant::now();
                std::arch::asm!(
                    "2:",
                    concat!($instruction, " tmm0, tmm4, tmm6"), concat!($instruction, " tmm1, tmm4, tmm7"),
                    concat!($instruction, " tmm2, tmm5, tmm6"), concat!($instruction, " tmm3, tmm5, tmm7"),
                    concat!($instruction, " tmm0, tmm4, tmm6"), concat!($instruction, " tmm1, tmm4, tmm7"),
                    concat!($instruction, " tmm2, tmm5, tmm6"), concat!($instruction, " tmm3, tmm5, tmm7"),
                    "dec {left}",
                    "jnz 2b",
                    left = inout(reg) steps / 2 => _,
                    options(nostack, nomem),
                );
                // The loop retires before the clock is read: a store waits for the last sums.
                let mut sum = [0u32; 256];
                std::arch::asm!("tilestored [{sum} + {row}*1], tmm3", sum = in(reg) &mut sum, row = in(reg) 64u64);
                std::hint::black_box(&sum);
                let seconds = start.elapsed().as_secs_f64();
                std::arch::asm!("tilerelease", options(nostack));
                seconds
            }
        }
    };
}

independent_tiles!(tiles_bf16, "tdpbf16ps");
independent_tiles!(tiles_ss, "tdpbssd");
independent_tiles!(tiles_su, "tdpbsud");
independent_tiles!(tiles_us, "tdpbusd");
independent_tiles!(tiles_uu, "tdpbuud");

/// Times `steps` rounds of the independent loop of an operation, sixteen vector instructions or four tile instructions
/// each, in seconds; `None` if it has no such loop.
fn seconds_of_independent(id: &str, steps: u64) -> Option<f64> {
    let ones = [0x3f80_3f80u32; 16];
    macro_rules! timed {
        ($loop:ident, $sum:ty, $operand:ty) => {{
            // SAFETY: these are plain vectors of 64 bytes, and the operation is one of this CPU's.
            unsafe {
                let mut sums = std::mem::transmute::<[[u32; 16]; 16], [$sum; 16]>([ones; 16]);
                let vector = std::mem::transmute::<[u32; 16], $operand>(ones);
                let start = Instant::now();
                $loop(steps, [vector; 2], [vector; 2], std::hint::black_box(&mut sums));
                std::hint::black_box(&sums);
                Some(start.elapsed().as_secs_f64())
            }
        }};
    }
    match id {
        "dot.m1n1k2.f32.bf16.bf16.f32" => timed!(bf16, __m512, __m512bh),
        "dot.m1n1k4.s32.u8.s8.s32" => timed!(bytes, __m512i, __m512i),
        "dot.m1n1k2.s32.s16.s16.s32" => timed!(words, __m512i, __m512i),
        "fma.m1n1k1.f32.f32.f32.f32" => timed!(fma, __m512, __m512),
        // SAFETY: the operation is one of this CPU's, for which this process has asked the kernel.
        "amx.m16n16k32.f32.bf16.bf16.f32" => Some(unsafe { tiles_bf16(steps) }),
        // SAFETY: as above.
        "amx.m16n16k64.s32.s8.s8.s32" => Some(unsafe { tiles_ss(steps) }),
        // SAFETY: as above.
        "amx.m16n16k64.s32.s8.u8.s32" => Some(unsafe { tiles_su(steps) }),
        // SAFETY: as above.
        "amx.m16n16k64.s32.u8.s8.s32" => Some(unsafe { tiles_us(steps) }),
        // SAFETY: as above.
        "amx.m16n16k64.s32.u8.u8.s32" => Some(unsafe { tiles_uu(steps) }),
        _ => None,
    }
}

#[test]
#[ignore = "a benchmark: it compares times to within 3 %, which requires an otherwise idle core"]
fn the_loops_are_as_fast_as_independent_ones() {
    for device in CpuBackend::new().discover().devices {
        if !device.info().fingerprint.contains("avx512") {
            println!("{} has no AVX-512: nothing was compared", device.info().name);
            continue;
        }
        for operation in everything(device.as_ref()) {
            let id = operation.id.to_string();
            let operands = drawn(&operation, 64, 1);
            let steps = 200_000;
            let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
            // In turns, until they agree: other processes on this machine can only make a loop slower.
            for round in 0..200 {
                let Some(seconds) = seconds_of_independent(&id, steps) else { break };
                theirs = theirs.min(seconds * 1e9);
                let load = Load { operands: &operands, steps, span: Span::One };
                ours = ours.min(time(device.as_ref(), &operation, &load).expect("timed").elapsed_ns);
                if round >= 11 && (0.97..1.03).contains(&(ours / theirs)) {
                    break;
                }
            }
            if theirs.is_finite() {
                println!("{id}: {:.0} ns against {:.0} ns, {:+.2} %", ours, theirs, (ours / theirs - 1.0) * 100.0);
                assert!((0.97..1.03).contains(&(ours / theirs)), "{id}: {ours} ns against {theirs} ns");
            }
        }
    }
}
