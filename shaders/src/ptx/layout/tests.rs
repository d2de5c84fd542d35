use std::collections::HashMap;

use mxprobe_api::{Elements, Format, OperationId};

use super::packed::{LANES, index, per_register};
use super::{Layout, Layouts};
use crate::ptx::kernel::instructions;

fn of(text: &str) -> Layouts {
    let table = instructions();
    let found = table.iter().find(|instruction| instruction.id.to_string() == text);
    Layouts::new(found.unwrap_or_else(|| panic!("{text}")))
}

#[test]
fn every_layout_holds_every_element_exactly_once() {
    for instruction in instructions() {
        let layouts = Layouts::new(&instruction);
        for layout in [&layouts.a, &layouts.b, &layouts.c, &layouts.d] {
            let mut places = layout.places.clone();
            places.sort_unstable();
            let all: Vec<u32> = (0..u32::try_from(layout.elements * layout.group).unwrap()).collect();
            assert_eq!(places, all, "{}", instruction.id);
        }
    }
}

#[test]
fn what_was_packed_is_unpacked() {
    for instruction in instructions() {
        let Layouts { d, .. } = Layouts::new(&instruction);
        let format = instruction.id.d;
        let tiles = d.group + 1;
        let elements = Elements::from_bits(format, (0..tiles * d.elements).map(|at| at as u64 * 0x9e37_79b9));
        let groups = tiles.div_ceil(d.group);
        let packed = d.pack(&elements, 0, groups);
        assert_eq!(packed.len(), groups * d.bytes());
        assert_eq!(d.unpack(&packed, format, tiles), elements, "{}", instruction.id);
    }
}

/// Row and column as the PTX ISA writes them, from groupID, threadID_in_group and the index i of an element.
type Formula = fn(usize, usize, usize) -> (usize, usize);

/// PTX ISA 9.0, 9.7.14.5.2 to 9.7.14.5.12: the fragments of A, shape by shape, exactly as written there.
const A_FORMULAS: &[(&str, Formula)] = &[
    ("mma.m8n8k4.f64.f64.f64.f64", |g, t, _| (g, t)),
    ("mma.m8n8k16.s32.s8.s8.s32", |g, t, i| (g, t * 4 + i)),
    ("mma.m8n8k32.s32.s4.s4.s32", |g, t, i| (g, t * 8 + i)),
    ("mma.m16n8k4.f32.tf32.tf32.f32", |g, t, i| (if i == 0 { g } else { g + 8 }, t)),
    ("mma.m16n8k4.f64.f64.f64.f64", |g, t, i| (if i == 0 { g } else { g + 8 }, t)),
    ("mma.m16n8k8.f32.f16.f16.f32", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
    ("mma.m16n8k8.f32.tf32.tf32.f32", |g, t, i| {
        (if i == 0 || i == 2 { g } else { g + 8 }, if i < 2 { t } else { t + 4 })
    }),
    ("mma.m16n8k8.f64.f64.f64.f64", |g, t, i| {
        (if i == 0 || i == 2 { g } else { g + 8 }, if i < 2 { t } else { t + 4 })
    }),
    ("mma.m16n8k16.f32.f16.f16.f32", |g, t, i| {
        let row = if i < 2 || (4..6).contains(&i) { g } else { g + 8 };
        (row, if i < 4 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 })
    }),
    ("mma.m16n8k16.f64.f64.f64.f64", |g, t, i| (if i % 2 == 0 { g } else { g + 8 }, i / 2 * 4 + t)),
    ("mma.m16n8k16.s32.s8.s8.s32", |g, t, i| (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3))),
    ("mma.m16n8k16.f32.e4m3.e4m3.f32", |g, t, i| (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3))),
    ("mma.m16n8k32.s32.s8.s8.s32", |g, t, i| {
        let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
        (row, if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 })
    }),
    ("mma.m16n8k32.f32.e2m1.e3m2.f32", |g, t, i| {
        let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
        (row, if i < 8 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 })
    }),
    ("mma.m16n8k32.s32.s4.s4.s32", |g, t, i| (if i < 8 { g } else { g + 8 }, t * 8 + (i & 7))),
    ("mma.m16n8k64.s32.s4.s4.s32", |g, t, i| {
        let row = if i < 8 || (16..24).contains(&i) { g } else { g + 8 };
        (row, if i < 16 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 })
    }),
    ("mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3", |g, t, i| {
        let row = if i < 8 || (16..24).contains(&i) { g } else { g + 8 };
        (row, if i < 16 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 })
    }),
];

/// The formulas of B: row (k) and column.
const B_FORMULAS: &[(&str, Formula)] = &[
    ("mma.m8n8k4.f64.f64.f64.f64", |g, t, _| (t, g)),
    ("mma.m8n8k16.s32.s8.s8.s32", |g, t, i| (t * 4 + i, g)),
    ("mma.m8n8k32.s32.s4.s4.s32", |g, t, i| (t * 8 + i, g)),
    ("mma.m16n8k4.f32.tf32.tf32.f32", |g, t, _| (t, g)),
    ("mma.m16n8k8.f32.f16.f16.f32", |g, t, i| (t * 2 + i, g)),
    ("mma.m16n8k8.f32.tf32.tf32.f32", |g, t, i| (if i == 0 { t } else { t + 4 }, g)),
    ("mma.m16n8k16.f32.f16.f16.f32", |g, t, i| (if i < 2 { t * 2 + (i & 1) } else { t * 2 + (i & 1) + 8 }, g)),
    ("mma.m16n8k16.f64.f64.f64.f64", |g, t, i| (t + i * 4, g)),
    ("mma.m16n8k16.s32.s8.s8.s32", |g, t, i| (t * 4 + i, g)),
    ("mma.m16n8k32.s32.s8.s8.s32", |g, t, i| (if i < 4 { t * 4 + (i & 3) } else { t * 4 + (i & 3) + 16 }, g)),
    ("mma.m16n8k32.s32.s4.s4.s32", |g, t, i| (t * 8 + (i & 7), g)),
    ("mma.m16n8k64.s32.s4.s4.s32", |g, t, i| (if i < 8 { t * 8 + (i & 7) } else { t * 8 + (i & 7) + 32 }, g)),
];

/// The formulas of C and D.
const C_FORMULAS: &[(&str, Formula)] = &[
    ("mma.m8n8k4.f64.f64.f64.f64", |g, t, i| (g, t * 2 + (i & 1))),
    ("mma.m8n8k16.s32.s8.s8.s32", |g, t, i| (g, t * 2 + i)),
    ("mma.m16n8k8.f16.f16.f16.f16", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
    ("mma.m16n8k16.f32.f16.f16.f32", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
    ("mma.m16n8k16.f64.f64.f64.f64", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
    ("mma.m16n8k64.s32.s4.s4.s32", |g, t, i| (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))),
];

#[test]
fn fragments_lie_where_the_documentation_says() {
    type Operand = fn(&Layouts) -> &Layout;
    let tables: [(&[(&str, Formula)], Operand); 3] =
        [(A_FORMULAS, |of| &of.a), (B_FORMULAS, |of| &of.b), (C_FORMULAS, |of| &of.d)];
    for (formulas, operand) in tables {
        for (id, formula) in formulas {
            let layouts = of(id);
            let layout = operand(&layouts);
            let shape = id.parse::<OperationId>().unwrap().shape;
            let columns = if std::ptr::eq(layout, &layouts.a) { shape.k } else { shape.n } as usize;
            let e = per_register(layout.container_bits);
            for (at, place) in layout.places.iter().enumerate() {
                let (word, s) = (at / e, at % e);
                let (r, lane) = (word / LANES, word % LANES);
                let (row, column) = formula(lane / 4, lane % 4, r * e + s);
                assert_eq!(*place, index(row, column, columns), "{id}: lane {lane}, element {}", r * e + s);
            }
        }
    }
}

#[test]
fn voltas_quad_pairs_lie_where_the_documentation_says() {
    // PTX ISA 9.0, 9.7.14.5.1: computation c is done by threads 4c..4c+3 and 16+4c..16+4c+3.
    let layouts = of("mma.m8n8k4.f32.f16.f16.f32");
    for (at, place) in layouts.d.places.iter().enumerate() {
        let (i, lane) = (at / LANES, at % LANES);
        let x = if lane < 16 { lane & 1 } else { (lane & 1) + 4 };
        let (row, column) = (if i & 2 == 0 { x } else { x + 2 }, (i & 4) + (lane & 2) + (i & 1));
        assert_eq!(*place, index(lane / 4 % 4 * 8 + row, column, 8), "lane {lane}, element {i}");
    }
    let layouts = of("mma.m8n8k4.f16.f16.f16.f16");
    for (at, place) in layouts.d.places.iter().enumerate() {
        let (word, s) = (at / 2, at % 2);
        let (i, lane) = (word / LANES * 2 + s, word % LANES);
        let row = if lane < 16 { lane % 4 } else { lane % 4 + 4 };
        assert_eq!(*place, index(lane / 4 % 4 * 8 + row, i, 8), "lane {lane}, element {i}");
    }
}

#[test]
fn narrow_floats_stand_where_their_kind_wants_them() {
    let padded = of("mma.m16n8k32.f32.e2m1.e3m2.f32");
    assert_eq!((padded.a.container_bits, padded.a.shift), (8, 2));
    assert_eq!((padded.b.container_bits, padded.b.shift), (8, 0));
    let packed = of("mma.m16n8k64.f32.e2m1.e2m1.f32.block32.ue8m0");
    assert_eq!((packed.a.container_bits, packed.a.shift), (4, 0));
    let elements = Elements::from_bits(Format::E2M1, (0..16 * 32).map(|_| 0xf));
    assert!(padded.a.pack(&elements, 0, 1).iter().all(|byte| *byte == 0xf << 2));
}

#[test]
fn each_lane_is_given_the_scales_of_its_row_and_column() {
    let (a, b) = of("mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3").scales.unwrap();
    for lane in 0..LANES {
        for chunk in 0..4 {
            assert_eq!(a.places[lane * 4 + chunk], index(lane / 4 + 8 * (lane % 2), chunk, 4));
            assert_eq!(b.places[lane * 4 + chunk], index(chunk, lane / 4, 8));
        }
    }
}

#[test]
fn core_matrices_are_eight_lines_of_sixteen_bytes() {
    let layouts = of("wgmma.m64n8k16.f32.f16.f16.f32");
    // Element (row, k) of A is at byte (k / 8) · 1024 + row · 16 + (k mod 8) · 2.
    let offsets: HashMap<u32, usize> =
        layouts.a.places.iter().enumerate().map(|(at, place)| (*place, at * 2)).collect();
    for row in 0..64 {
        for k in 0..16 {
            assert_eq!(offsets[&index(row, k, 16)], k / 8 * 1024 + row * 16 + k % 8 * 2);
        }
    }
    assert_eq!(layouts.b.bytes(), 256);
}
