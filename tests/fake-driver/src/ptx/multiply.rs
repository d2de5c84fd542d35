//! The matrix instructions and their operands: `mma`, `wmma`, `wgmma`, `tcgen05`.

use mxprobe_api::{Format, OperationId, Shape};

use super::value::{Address, Source, Space};

/// The order in which `mma.m8n8k4` takes an operand's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Row,
    Column,
}

/// A matrix of a multiply; C and D are the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixOperand {
    A,
    B,
    Accumulator,
}

impl MatrixOperand {
    /// The numbers of rows and columns.
    pub(crate) fn sizes(self, Shape { m, n, k }: Shape) -> (u32, u32) {
        match self {
            Self::A => (m, k),
            Self::B => (k, n),
            Self::Accumulator => (m, n),
        }
    }
}

/// The registers that hold one operand of a warp.
pub(crate) type WarpOperand = Vec<usize>;

/// `mma.sync` or `wmma.mma`.
#[derive(Debug)]
pub(crate) struct Multiply {
    pub id: OperationId,
    /// The bits that an element of A, and one of B, takes in a register.
    pub container_bits: (u32, u32),
    pub layouts: (Layout, Layout),
    pub d: WarpOperand,
    pub a: WarpOperand,
    pub b: WarpOperand,
    pub c: WarpOperand,
    pub scales: Option<Scales>,
}

/// The operands of a block-scaled `mma`.
#[derive(Debug)]
pub(crate) struct Scales {
    /// The number of scales of a row or column: 4 for `.scale_vec::4X`.
    pub count: u32,
    pub a: usize,
    pub b: usize,
    /// The selected byte and thread.
    pub a_select: (Source, Source),
    pub b_select: (Source, Source),
}

/// `wgmma.mma_async`.
#[derive(Debug)]
pub(crate) struct GroupMultiply {
    pub id: OperationId,
    pub d: WarpOperand,
    pub a: GroupOperand,
    pub b: Source,
    /// Whether C is added.
    pub scale_d: Source,
    pub negate_a: bool,
    pub negate_b: bool,
}

/// The location of A of a `wgmma`.
#[derive(Debug)]
pub(crate) enum GroupOperand {
    Descriptor(Source),
    Registers(WarpOperand),
}

/// `wmma.load` or `wmma.store`: a matrix in memory and the registers of a warp.
#[derive(Debug)]
pub(crate) struct MatrixAccess {
    pub operand: MatrixOperand,
    pub shape: Shape,
    pub format: Format,
    pub layout: Layout,
    pub space: Space,
    pub address: Address,
    /// Elements from one row (or column) to the next.
    pub stride: Source,
    pub registers: Vec<usize>,
}

impl MatrixAccess {
    /// The numbers of rows and columns.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        self.operand.sizes(self.shape)
    }
}

/// One step on tensor memory or on a barrier in shared memory.
#[derive(Debug)]
pub(crate) enum TensorStep {
    /// `mbarrier.init`.
    Initialise {
        barrier: Address,
        count: Source,
    },
    /// `mbarrier.try_wait.parity`.
    TryWait {
        into: usize,
        barrier: Address,
        parity: Source,
    },
    Allocate {
        slot: Address,
        columns: u32,
    },
    Free {
        start: Source,
        columns: u32,
    },
    /// Stores 32 lanes by as many columns as there are registers.
    Store {
        address: Address,
        from: Vec<usize>,
    },
    Load {
        address: Address,
        into: Vec<usize>,
    },
    WaitStores,
    WaitLoads,
    Multiply(TensorMultiply),
    /// Makes all multiplies so far arrive at a barrier once they are done.
    Commit {
        barrier: Address,
    },
}

/// `tcgen05.mma`.
#[derive(Debug)]
pub(crate) struct TensorMultiply {
    pub kind: TensorKind,
    pub d: Address,
    pub a: Source,
    pub b: Source,
    /// The instruction descriptor: shape and formats.
    pub descriptor: Source,
    pub scales: Option<TensorScales>,
    /// Whether D is added.
    pub adds: Source,
}

/// The addresses in tensor memory of the scales of a block-scaled `tcgen05.mma`.
#[derive(Debug)]
pub(crate) struct TensorScales {
    /// The number of scales of a row or column: 4 for `.scale_vec::4X`.
    pub count: u32,
    pub a: Address,
    pub b: Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorKind {
    F16,
    Tf32,
    F8F6F4,
    I8,
    MxF8F6F4,
    MxF4,
    MxF4NvF4,
}
