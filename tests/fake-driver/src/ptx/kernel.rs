//! Decoded kernels.

use rustc_apfloat::Round;

use super::{
    multiply::{GroupMultiply, MatrixAccess, Multiply, TensorStep},
    target::Target,
    value::{Address, Source, Space, Type},
};

/// A compiled module.
#[derive(Debug)]
pub(crate) struct Module {
    pub version: u32,
    pub target: Target,
    pub kernels: Vec<Kernel>,
}

/// One kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub name: String,
    /// The offset and size in bytes of each parameter.
    pub parameters: Vec<(usize, usize)>,
    /// Bytes of static shared memory.
    pub shared_bytes: usize,
    /// Threads that a block must have (`.reqntid`) or may have (`.maxntid`).
    pub required_threads: Option<u32>,
    pub maximum_threads: u32,
    /// The bits that each register can hold, as masks.
    pub register_masks: Vec<u64>,
    pub steps: Vec<Step>,
}

/// One instruction and its predicate.
#[derive(Debug)]
pub(crate) struct Step {
    pub line: usize,
    pub guard: Option<Guard>,
    pub instruction: Instruction,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub register: usize,
    pub negated: bool,
}

/// Arithmetic on at most three operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Move,
    Add,
    Subtract,
    MultiplyLow,
    /// The whole product, twice as wide.
    MultiplyWide,
    MultiplyAddLow,
    MultiplyAddWide,
    Divide,
    Minimum,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    /// `shf.l.wrap`: the upper word of both shifted left.
    FunnelLeft,
    Float(Function, Rounded),
}

/// Arithmetic on floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Add,
    Subtract,
    Multiply,
    FusedMultiplyAdd,
    Divide,
    SquareRoot,
    /// `div.approx` and `div.full`.
    ApproximateDivide,
    ApproximateSquareRoot,
    Reciprocal,
    Negate,
    Absolute,
    /// `copysign`: the sign of the first, and the rest of the second.
    CopySign,
    Elementary(Elementary),
}

/// The other functions of f32 that `.approx` computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elementary {
    Reciprocal,
    ReciprocalRoot,
    Exponential,
    Logarithm,
    Sine,
    Cosine,
    Tangent,
}

/// How the result of a float operation is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounded {
    pub round: Round,
    /// `.ftz`: subnormal inputs and results are zero of their sign.
    pub flush: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub to: Type,
    pub from: Type,
    pub how: Rounded,
}

/// One step of asynchronous copies.
#[derive(Debug)]
pub(crate) enum CopyStep {
    /// 4, 8 or 16 bytes.
    Copy { bytes: usize, to: Address, from: Address },
    /// Makes the copies since the last commit a group.
    Commit,
    /// Waits until all but this many of the thread's latest groups have arrived.
    Wait(u64),
}

/// One instruction.
#[derive(Debug)]
pub(crate) enum Instruction {
    Load {
        space: Space,
        kind: Type,
        address: Address,
        into: Vec<usize>,
    },
    Store {
        space: Space,
        kind: Type,
        address: Address,
        from: Vec<Source>,
    },
    Compute {
        alu: Alu,
        kind: Type,
        into: usize,
        from: [Source; 3],
    },
    Compare {
        comparison: Comparison,
        kind: Type,
        /// Whether subnormals compare as zeros.
        flush: bool,
        into: usize,
        from: [Source; 2],
    },
    Convert {
        conversion: Conversion,
        into: usize,
        from: Source,
    },
    /// `mov.b32 %r, {%a, %b}`: parts of `bits` each, the first lowest.
    Pack {
        bits: u32,
        into: usize,
        from: Vec<Source>,
    },
    /// `mov.b32 {%a, %b}, %r`.
    Unpack {
        bits: u32,
        into: Vec<usize>,
        from: Source,
    },
    Branch {
        target: usize,
    },
    Barrier,
    /// `bar.warp.sync`.
    WarpBarrier,
    Exit,
    /// A fence that needs no work, since the interpreter orders memory anyway.
    Nothing,
    /// Makes writes to shared memory visible to the unit that reads it through a descriptor.
    ProxyFence,
    /// `mma` and `wmma`.
    Multiply(Box<Multiply>),
    LoadMatrix(Box<MatrixAccess>),
    StoreMatrix(Box<MatrixAccess>),
    GroupFence,
    GroupMultiply(Box<GroupMultiply>),
    GroupCommit,
    GroupWait(u32),
    CopyAsync(Box<CopyStep>),
    Tensor(Box<TensorStep>),
}
