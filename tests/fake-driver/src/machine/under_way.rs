//! What was started and nobody has waited for: copies of a lane, multiplies of a warpgroup.

/// The copies of one lane that nobody has waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// How many groups were committed.
    pub committed: u64,
    pub under_way: Vec<Copy>,
}

/// One copy.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// Which group it belongs to; `None` before it is committed.
    pub group: Option<u64>,
    pub to: u64,
    pub len: usize,
    pub bytes: [u8; 16],
}

/// What a warpgroup has under way.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// `wgmma.fence` was executed.
    pub fenced: bool,
    /// How many groups of multiplies were committed.
    pub committed: u64,
    pub under_way: Vec<GroupResult>,
}

/// The result of one multiply that nobody has waited for.
#[derive(Debug)]
pub(super) struct GroupResult {
    /// Which committed group it belongs to; `None` before it is committed.
    pub commit: Option<u64>,
    pub registers: Vec<usize>,
    /// By register, then by thread.
    pub values: Vec<u64>,
    /// Shared memory that it reads: addresses from and to.
    pub reads: Vec<(u64, u64)>,
}
