//! Where sums are computed: in the unit, or in blocks outside it.

/// Where the products along k are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulation {
    /// In the unit, from the first k to the last.
    Unit,
    /// In the unit within blocks of k, each starting from +0; the sums of the blocks are added in f32, to nearest, k
    /// ascending (FABsum-v1).
    F32 {
        /// How k is divided into blocks.
        block: Block,
    },
    /// The same, but the sums of the blocks are added in f64 and rounded to f32 at the end (FABsum-v2).
    F64 {
        /// How k is divided into blocks.
        block: Block,
    },
}

impl Accumulation {
    /// How k is divided into blocks; `None` if it is not.
    #[must_use]
    pub fn block(self) -> Option<Block> {
        match self {
            Self::Unit => None,
            Self::F32 { block } | Self::F64 { block } => Some(block),
        }
    }
}

/// How k is divided into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Blocks of this many products; the last may have fewer.
    Products(usize),
    /// This many blocks of k / count products, rounded up; with block scales, to whole scales.
    Count(usize),
}

impl Block {
    /// The number of products in a block of a sum of `k`, at least 1.
    #[must_use]
    pub fn products(self, k: usize) -> usize {
        match self {
            Self::Products(products) => products.max(1),
            Self::Count(count) => k.div_ceil(count.max(1)).max(1),
        }
    }
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Products(products) => write!(f, "blocks of {products}"),
            Self::Count(1) => f.write_str("1 block"),
            Self::Count(count) => write!(f, "{count} blocks"),
        }
    }
}
