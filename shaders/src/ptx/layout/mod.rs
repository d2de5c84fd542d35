//! The layout of operands in memory before a kernel loads them. This is the only module that knows fragments.
//!
//! Operands are laid out on the host, so that each lane loads its registers with coalesced accesses and a kernel
//! computes no element indices. For every `mma.sync` except Volta's, one rule gives the place of an element; the tests
//! of this module compare it with the formulas for each shape in PTX ISA 9.0, 9.7.14.5.

mod memory;
mod packed;
mod registers;
#[cfg(test)]
mod tests;

pub use packed::Layout;

use super::instruction::{Instruction, Kind};
use memory::Side;

/// The operands of an instruction.
#[derive(Clone, Debug)]
pub struct Layouts {
    /// A.
    pub a: Layout,
    /// B.
    pub b: Layout,
    /// C; D has the same layout if its format is equally wide.
    pub c: Layout,
    /// D.
    pub d: Layout,
    /// Scales of A and B, if the instruction takes them.
    pub scales: Option<(Layout, Layout)>,
}

impl Layouts {
    /// The layouts of an instruction's operands.
    #[must_use]
    pub fn new(instruction: &Instruction) -> Self {
        let id = &instruction.id;
        match instruction.kind {
            Kind::Warp => Self {
                a: registers::warp_a(id),
                b: registers::warp_b(id),
                c: registers::warp_c(id, id.c),
                d: registers::warp_c(id, id.d),
                scales: id.block_scale().map(|scale| registers::scales(id, scale.block)),
            },
            Kind::QuadPair => Self {
                a: registers::quad_pair_a(),
                b: registers::quad_pair_b(),
                c: registers::quad_pair_c(id.c),
                d: registers::quad_pair_c(id.d),
                scales: None,
            },
            Kind::Wmma => Self {
                a: memory::row_major(id, id.a, Side::Rows),
                b: memory::row_major(id, id.b, Side::Columns),
                c: memory::matrix(id, id.c),
                d: memory::matrix(id, id.d),
                scales: None,
            },
            Kind::Warpgroup => Self {
                a: memory::core_matrices(id, id.a, Side::Rows),
                b: memory::core_matrices(id, id.b, Side::Columns),
                c: registers::warpgroup_c(id, id.c),
                d: registers::warpgroup_c(id, id.d),
                scales: None,
            },
            Kind::TensorMemory => Self {
                a: memory::core_matrices(id, id.a, Side::Rows),
                b: memory::core_matrices(id, id.b, Side::Columns),
                c: memory::rows_by_lane(id),
                d: memory::rows_by_lane(id),
                scales: id.block_scale().map(|scale| memory::scales_by_lane(id, scale.block)),
            },
        }
    }
}
