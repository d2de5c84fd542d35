//! The table of instructions: what each is called, what it needs, and which devices have it.

use mxprobe_api::{Format, OperationId};

use crate::capability::{Availability, Capability, PtxVersion, Target};

/// Who computes one tile together, and where the operands lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One warp, registers.
    Warp,
    /// A quarter of a warp, registers: the `m8n8k4` of f16, four tiles a warp.
    Quarter,
    /// One warp, registers whose layout only the device knows: `wmma`, which loads and stores matrices itself.
    Opaque,
    /// Four warps; A and B in shared memory, C and D in registers.
    Warpgroup,
    /// One thread of a block; A and B in shared memory, C and D in tensor memory.
    Tensor,
}

/// One instruction of the table.
#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub(crate) id: OperationId,
    pub(crate) kind: Kind,
    /// The instruction with its modifiers, without operands.
    pub(crate) text: String,
    /// The mnemonic of the unit that it is meant for.
    pub(crate) unit: &'static str,
    pub(crate) availability: Availability,
}

const fn target(name: &'static str, major: u32, minor: u32) -> Target {
    Target { name, version: PtxVersion::new(major, minor) }
}

const fn from(major: u32, minor: u32, name: &'static str, version: (u32, u32)) -> Availability {
    Availability::From(Capability::new(major, minor), target(name, version.0, version.1))
}

// The least `.target` and `.version` of each, as ptxas 12.9.86 and 13.5.37 accept them (measured 2026-11);
// PTX ISA 9.0, 9.7.14.5 and 9.7.15 state the same.
const VOLTA: Availability = from(7, 0, "sm_70", (6, 4));
const VOLTA_6_3: Availability = from(7, 0, "sm_70", (6, 3));
const TURING_6_3: Availability = from(7, 5, "sm_75", (6, 3));
const TURING: Availability = from(7, 5, "sm_75", (6, 5));
const AMPERE: Availability = from(8, 0, "sm_80", (7, 0));
const ADA: Availability = from(8, 9, "sm_89", (8, 4));
const ADA_8_7: Availability = from(8, 9, "sm_89", (8, 7));
const HOPPER: Availability = from(9, 0, "sm_90", (7, 8));
const HOPPER_ONLY: Availability = Availability::Only(&[(Capability::new(9, 0), target("sm_90a", 8, 0))]);
const HOPPER_ONLY_8_4: Availability = Availability::Only(&[(Capability::new(9, 0), target("sm_90a", 8, 4))]);
const CONSUMER_BLACKWELL: Availability = Availability::Only(&[
    (Capability::new(12, 0), target("sm_120a", 8, 7)),
    (Capability::new(12, 1), target("sm_121a", 8, 8)),
]);
const CONSUMER_BLACKWELL_9_1: Availability = Availability::Only(&[
    (Capability::new(12, 0), target("sm_120a", 9, 1)),
    (Capability::new(12, 1), target("sm_121a", 9, 1)),
]);

pub(crate) const SMALL: [Format; 5] = [Format::E4M3, Format::E5M2, Format::E3M2, Format::E2M3, Format::E2M1];

/// Every instruction there is, of every architecture; sparse forms and 1-bit operands are not among them.
pub(crate) fn table() -> Vec<Instruction> {
    let mut table = Vec::new();
    halves(&mut table);
    doubles(&mut table);
    integers(&mut table);
    small_floats(&mut table);
    block_scaled(&mut table);
    opaque(&mut table);
    warpgroups(&mut table);
    crate::tensor::instructions(&mut table);
    table
}

fn warp(id: OperationId, modifiers: &str, unit: &'static str, availability: Availability) -> Instruction {
    let OperationId { shape, d, a, b, c, .. } = &id;
    let text = format!("mma.sync.aligned.{shape}.row.col{modifiers}.{d}.{a}.{b}.{c}");
    Instruction { id, kind: Kind::Warp, text, unit, availability }
}

/// f16, bf16 and tf32.
fn halves(table: &mut Vec<Instruction>) {
    let (f16, f32) = (Format::F16, Format::F32);
    for (d, c) in [(f16, f16), (f32, f16), (f32, f32)] {
        let id = OperationId::new("mma", (8, 8, 4), d, f16, f16, c);
        table.push(Instruction { kind: Kind::Quarter, ..warp(id, "", "HMMA", VOLTA) });
    }
    for d in [f16, f32] {
        table.push(warp(OperationId::new("mma", (16, 8, 8), d, f16, f16, d), "", "HMMA", TURING));
        table.push(warp(OperationId::new("mma", (16, 8, 16), d, f16, f16, d), "", "HMMA", AMPERE));
    }
    for (k, format) in [(8, Format::BF16), (16, Format::BF16), (4, Format::TF32), (8, Format::TF32)] {
        table.push(warp(OperationId::new("mma", (16, 8, k), f32, format, format, f32), "", "HMMA", AMPERE));
    }
}

/// f64, in four rounding modes; to nearest is the default and has no qualifier.
fn doubles(table: &mut Vec<Instruction>) {
    let f64 = Format::F64;
    for (shape, availability) in
        [((8, 8, 4), AMPERE), ((16, 8, 4), HOPPER), ((16, 8, 8), HOPPER), ((16, 8, 16), HOPPER)]
    {
        for mode in ["", "rz", "rm", "rp"] {
            let id = OperationId::new("mma", shape, f64, f64, f64, f64);
            let mut instruction = warp(id, "", "DMMA", availability);
            if !mode.is_empty() {
                instruction.text = format!("{}.{mode}", instruction.text);
                instruction.id = instruction.id.with(mode);
            }
            table.push(instruction);
        }
    }
}

/// s8, u8, s4 and u4, with and without saturation.
fn integers(table: &mut Vec<Instruction>) {
    let s32 = Format::S32;
    let bytes = ([Format::S8, Format::U8], [((8, 8, 16), TURING), ((16, 8, 16), AMPERE), ((16, 8, 32), AMPERE)]);
    let nibbles = ([Format::S4, Format::U4], [((8, 8, 32), TURING), ((16, 8, 32), AMPERE), ((16, 8, 64), AMPERE)]);
    for (formats, shapes) in [bytes, nibbles] {
        for (shape, availability) in shapes {
            for (a, b) in pairs(&formats) {
                let id = OperationId::new("mma", shape, s32, a, b, s32);
                table.push(warp(id.clone(), "", "IMMA", availability));
                table.push(Instruction {
                    id: id.clone().with("satfinite"),
                    ..warp(id, ".satfinite", "IMMA", availability)
                });
            }
        }
    }
}

/// e4m3 and e5m2, which are baseline from sm_89 on, and e3m2, e2m3 and e2m1, which one architecture has.
fn small_floats(table: &mut Vec<Instruction>) {
    for d in [Format::F16, Format::F32] {
        for (a, b) in pairs(&SMALL[..2]) {
            table.push(warp(OperationId::new("mma", (16, 8, 16), d, a, b, d), "", "QMMA", ADA_8_7));
            let availability = if d == Format::F32 { ADA } else { ADA_8_7 };
            table.push(warp(OperationId::new("mma", (16, 8, 32), d, a, b, d), "", "QMMA", availability));
        }
        for (a, b) in pairs(&SMALL).filter(|(a, b)| a.bits().min(b.bits()) < 8) {
            let id = OperationId::new("mma", (16, 8, 32), d, a, b, d);
            table.push(warp(id, ".kind::f8f6f4", "QMMA", CONSUMER_BLACKWELL));
        }
    }
}

/// Products with scales: 1X and 2X are one scale for 32 k, 4X is one for 16.
fn block_scaled(table: &mut Vec<Instruction>) {
    let (f32, e2m1) = (Format::F32, Format::E2M1);
    let mut push = |shape, a, b, block: &str, scale: Format, kind: &str, unit, availability| {
        let id = OperationId::new("mma", shape, f32, a, b, f32);
        let mut instruction = warp(id, &format!(".kind::{kind}"), unit, availability);
        instruction.text = format!("{}.{scale}", instruction.text);
        instruction.id = instruction.id.with(block).with(&scale.to_string());
        table.push(instruction);
    };
    for (a, b) in pairs(&SMALL) {
        let kind = "mxf8f6f4.block_scale.scale_vec::1X";
        push((16, 8, 32), a, b, "block32", Format::UE8M0, kind, "QMMA.SF", CONSUMER_BLACKWELL);
    }
    let fp4 = (16, 8, 64);
    let [two, four] = ["mxf4.block_scale.scale_vec::2X", "mxf4nvf4.block_scale.scale_vec::4X"];
    push(fp4, e2m1, e2m1, "block32", Format::UE8M0, two, "OMMA.SF", CONSUMER_BLACKWELL);
    push(fp4, e2m1, e2m1, "block16", Format::UE4M3, four, "OMMA.SF", CONSUMER_BLACKWELL);
    push(fp4, e2m1, e2m1, "block16", Format::UE8M0, four, "OMMA.SF", CONSUMER_BLACKWELL_9_1);
}

/// `wmma`, the oldest interface: some of its shapes lower to steps that `mma` has no name for.
fn opaque(table: &mut Vec<Instruction>) {
    let (f16, f32, s32) = (Format::F16, Format::F32, Format::S32);
    let mut push = |shape, d: Format, a: Format, b: Format, unit, availability| {
        let id = OperationId::new("wmma", shape, d, a, b, d);
        // Operands of f16 are not named.
        let formats = if a == f16 { format!("{d}.{d}") } else { format!("{d}.{a}.{b}.{d}") };
        let text = format!("wmma.mma.sync.aligned.row.col.{}.{formats}", id.shape);
        let instruction = Instruction { id, kind: Kind::Opaque, text, unit, availability };
        if d == s32 {
            let id = instruction.id.clone().with("satfinite");
            table.push(Instruction { id, text: format!("{}.satfinite", instruction.text), ..instruction.clone() });
        }
        table.push(instruction);
    };
    for shape in [(16, 16, 16), (8, 32, 16), (32, 8, 16)] {
        for d in [f16, f32] {
            push(shape, d, f16, f16, "HMMA", VOLTA_6_3);
        }
        push(shape, f32, Format::BF16, Format::BF16, "HMMA", AMPERE);
        push(shape, s32, Format::S8, Format::S8, "IMMA", TURING_6_3);
        push(shape, s32, Format::U8, Format::U8, "IMMA", TURING_6_3);
    }
    push((16, 16, 8), f32, Format::TF32, Format::TF32, "HMMA", AMPERE);
    push((8, 8, 4), Format::F64, Format::F64, Format::F64, "DMMA", AMPERE);
    for format in [Format::S4, Format::U4] {
        push((8, 8, 32), s32, format, format, "IMMA", TURING_6_3);
    }
}

/// `wgmma`, the units that Hopper's own programs use; the widest n, the narrowest, and one between.
fn warpgroups(table: &mut Vec<Instruction>) {
    let (f16, f32, s32) = (Format::F16, Format::F32, Format::S32);
    let group = |n, k, d, a, b, unit| {
        let id = OperationId::new("wgmma", (64, n, k), d, a, b, d);
        let text = format!("wgmma.mma_async.sync.aligned.{}.{d}.{a}.{b}", id.shape);
        Instruction { id, kind: Kind::Warpgroup, text, unit, availability: HOPPER_ONLY }
    };
    for n in [8, 64, 256] {
        table.push(group(n, 16, f16, f16, f16, "HGMMA"));
        table.push(group(n, 16, f32, f16, f16, "HGMMA"));
        table.push(group(n, 16, f32, Format::BF16, Format::BF16, "HGMMA"));
        table.push(group(n, 8, f32, Format::TF32, Format::TF32, "HGMMA"));
        for (a, b) in pairs(&SMALL[..2]) {
            table.push(group(n, 32, f16, a, b, "QGMMA"));
            table.push(group(n, 32, f32, a, b, "QGMMA"));
        }
        for (a, b) in pairs(&[Format::S8, Format::U8]) {
            let mut wrapping = group(n, 32, s32, a, b, "IGMMA");
            if a != b {
                wrapping.availability = HOPPER_ONLY_8_4;
            }
            let text = format!("wgmma.mma_async.sync.aligned.{}.satfinite.s32.{a}.{b}", wrapping.id.shape);
            table.push(Instruction { id: wrapping.id.clone().with("satfinite"), text, ..wrapping.clone() });
            table.push(wrapping);
        }
    }
}

/// Every format of A with every format of B.
pub(crate) fn pairs(formats: &[Format]) -> impl Iterator<Item = (Format, Format)> + '_ {
    formats.iter().flat_map(move |a| formats.iter().map(move |b| (*a, *b)))
}
