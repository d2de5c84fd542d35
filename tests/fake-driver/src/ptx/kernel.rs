//! What a kernel is once it is understood.

use super::{
    copy::CopyStep,
    matrix::{GroupMultiply, Multiply},
    target::Target,
    tensor::TensorStep,
    wmma::MatrixAccess,
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
    /// What each register can hold.
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

/// What the bits of an operand are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bits,
    Unsigned,
    Signed,
    /// f16, f32, f64.
    Float,
    Bfloat,
    /// Two halves, f16x2.
    Pair,
    BfloatPair,
    Predicate,
}

/// A type as it stands behind the dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub kind: Kind,
    pub bits: u32,
}

impl Type {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let (kind, bits) = match word {
            "pred" => (Kind::Predicate, 1),
            "f16" => (Kind::Float, 16),
            "f32" => (Kind::Float, 32),
            "f64" => (Kind::Float, 64),
            "bf16" => (Kind::Bfloat, 16),
            "f16x2" => (Kind::Pair, 32),
            "bf16x2" => (Kind::BfloatPair, 32),
            _ => {
                let kind = match word.as_bytes().first()? {
                    b'b' => Kind::Bits,
                    b'u' => Kind::Unsigned,
                    b's' => Kind::Signed,
                    _ => return None,
                };
                (kind, word[1..].parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?)
            }
        };
        Some(Self { kind, bits })
    }

    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    pub(crate) fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    pub(crate) fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Bits | Kind::Unsigned | Kind::Signed)
    }

    /// The value with its sign, as 64 bits.
    pub(crate) fn extend(self, bits: u64) -> u64 {
        let free = 64 - self.bits;
        if self.is_signed() { ((bits << free).cast_signed() >> free).cast_unsigned() } else { bits & self.mask() }
    }
}

/// A value that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Register(usize),
    Constant(u64),
    Special(Special),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// `%tid`, `%ntid`, `%ctaid`, `%nctaid`, each .x, .y, .z.
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    Lane,
    Warp,
    Clock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    Parameter,
}

/// A register or a constant, and what is added to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub base: Source,
    pub offset: i64,
}

/// Arithmetic on at most three operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Move,
    Add,
    Subtract,
    MultiplyLow,
    MultiplyHigh,
    /// The whole product, twice as wide.
    MultiplyWide,
    MultiplyAddLow,
    MultiplyAddWide,
    Divide,
    Remainder,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    Negate,
    Absolute,
    Popcount,
    /// The third operand chooses the first where it is true.
    Select,
    FloatAdd(Rounded),
    FloatSubtract(Rounded),
    FloatMultiply(Rounded),
    FusedMultiplyAdd(Rounded),
    FloatDivide(Rounded),
    SquareRoot(Rounded),
    /// `div.approx` and `div.full`.
    ApproximateDivide(Rounded),
    ApproximateSquareRoot(Rounded),
}

/// How a float operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounded {
    pub rounding: mxprobe_api::Rounding,
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
    pub rounding: mxprobe_api::Rounding,
    pub flush: bool,
    /// `.rni` and the like: to a whole number of the same format.
    pub to_whole: bool,
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
        unordered: bool,
        kind: Type,
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
    Exit,
    /// Orders memory, which the interpreter does anyhow.
    Nothing,
    /// Makes what was written to shared memory visible to the unit that reads it through a descriptor.
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
