//! Fragments: operands in the registers of a warp or warpgroup.

use mxprobe_api::{Format, OperationId};

use super::packed::{LANES, Layout, container_bits, index, per_register, registers_of, shift};

/// A of `mma.sync`: row and k of sub-element s of register r in a lane.
pub(super) fn warp_a(id: &OperationId) -> Layout {
    let (m, _, k) = id.shape.sizes();
    let container_bits = container_bits(id, id.a);
    let e = per_register(container_bits);
    let rows_at_once = m / 8;
    let registers = m * k / LANES / e;
    let places = registers_of(LANES, registers, e, |lane, r, s| {
        let (g, t) = (lane / 4, lane % 4);
        index(g + 8 * (r % rows_at_once), t * e + s + 4 * e * (r / rows_at_once), k)
    });
    Layout { container_bits, shift: shift(id, id.a), dense_bits: None, places, elements: m * k, group: 1 }
}

/// B of `mma.sync`.
pub(super) fn warp_b(id: &OperationId) -> Layout {
    let (_, n, k) = id.shape.sizes();
    let container_bits = container_bits(id, id.b);
    let e = per_register(container_bits);
    let places = registers_of(LANES, k * n / LANES / e, e, |lane, r, s| {
        let (g, t) = (lane / 4, lane % 4);
        index(t * e + s + 4 * e * r, g, n)
    });
    Layout { container_bits, shift: shift(id, id.b), dense_bits: None, places, elements: k * n, group: 1 }
}

/// C and D of `mma.sync`: each lane holds two neighbours of a row, in one register if they fit.
pub(super) fn warp_c(id: &OperationId, format: Format) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let container_bits = format.bits() as usize;
    let e = per_register(container_bits);
    let places = registers_of(LANES, m * n / LANES / e, e, |lane, r, s| {
        let (g, t, i) = (lane / 4, lane % 4, r * e + s);
        index(g + 8 * (i / 2), 2 * t + i % 2, n)
    });
    Layout { container_bits, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}

/// Scales of A and of B: every lane gets those of its row (one of two, by the parity of its place among four) and of
/// its column, repeated to fill the word, so that any thread selector and any byte selector reads the right ones.
pub(super) fn scales(id: &OperationId, block: usize) -> (Layout, Layout) {
    let (m, n, k) = id.shape.sizes();
    let blocks = k / block;
    let a = registers_of(LANES, 1, 4, |lane, _, s| index(lane / 4 + 8 * (lane % 2), s % blocks, blocks));
    let b = registers_of(LANES, 1, 4, |lane, _, s| index(s % blocks, lane / 4, n));
    let layout =
        |places, elements| Layout { container_bits: 8, shift: 0, dense_bits: None, places, elements, group: 1 };
    (layout(a, m * blocks), layout(b, blocks * n))
}

/// The tile of a lane, and its first row or column in that tile. Volta's quad pairs: lanes 4q to 4q+3 and 16+4q to
/// 19+4q compute tile q (PTX ISA 9.0, 9.7.14.5.1).
fn quad_pair(lane: usize) -> (usize, usize) {
    (lane / 4 % 4, if lane < 16 { 0 } else { 4 })
}

const QUAD_PAIRS: usize = 4;

/// A of the f16 `m8n8k4`, `.row`.
pub(super) fn quad_pair_a() -> Layout {
    let places = registers_of(LANES, 2, 2, |lane, r, s| {
        let (tile, high) = quad_pair(lane);
        index(tile * 8 + lane % 4 + high, 2 * r + s, 4)
    });
    Layout { container_bits: 16, shift: 0, dense_bits: None, places, elements: 32, group: QUAD_PAIRS }
}

/// B of the f16 `m8n8k4`, `.col`.
pub(super) fn quad_pair_b() -> Layout {
    let places = registers_of(LANES, 2, 2, |lane, r, s| {
        let (tile, high) = quad_pair(lane);
        index(tile * 4 + 2 * r + s, lane % 4 + high, 8)
    });
    Layout { container_bits: 16, shift: 0, dense_bits: None, places, elements: 32, group: QUAD_PAIRS }
}

/// C and D of the f16 `m8n8k4`.
pub(super) fn quad_pair_c(format: Format) -> Layout {
    let container_bits = format.bits() as usize;
    let e = per_register(container_bits);
    let places = registers_of(LANES, 8 / e, e, |lane, r, s| {
        let (tile, high) = quad_pair(lane);
        let i = r * e + s;
        let (row, column) = if container_bits == 16 {
            (lane % 4 + high, i)
        } else {
            (lane % 2 + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))
        };
        index(tile * 8 + row, column, 8)
    });
    Layout { container_bits, shift: 0, dense_bits: None, places, elements: 64, group: QUAD_PAIRS }
}

/// C and D of `wgmma`: each warp has 16 rows (PTX ISA 9.0, 9.7.15.5.1.2).
pub(super) fn warpgroup_c(id: &OperationId, format: Format) -> Layout {
    let (m, n, _) = id.shape.sizes();
    let container_bits = format.bits() as usize;
    let e = per_register(container_bits);
    let threads = 4 * LANES;
    let places = registers_of(threads, m * n / threads / e, e, |thread, r, s| {
        let (warp, g, t, i) = (thread / LANES, thread % LANES / 4, thread % 4, r * e + s);
        index(16 * warp + g + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * t + i % 2, n)
    });
    Layout { container_bits, shift: 0, dense_bits: None, places, elements: m * n, group: 1 }
}
