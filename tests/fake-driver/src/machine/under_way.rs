//! Asynchronous work that has not been waited for: copies of a lane, multiplies of a warpgroup.

/// The copies of one lane that have not been waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// The number of committed groups.
    pub committed: u64,
    pub under_way: Vec<Copy>,
}

/// One copy.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    /// The group it belongs to; `None` until it is committed.
    pub group: Option<u64>,
    pub to: u64,
    pub len: usize,
    pub bytes: [u8; 16],
}

/// The multiplies of one warpgroup that have not been waited for.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Whether `wgmma.fence` was executed.
    pub fenced: bool,
    /// The number of committed groups of multiplies.
    pub committed: u64,
    pub under_way: Vec<GroupResult>,
}

/// The result of one multiply that has not been waited for.
#[derive(Debug)]
pub(super) struct GroupResult {
    /// The group it belongs to; `None` until it is committed.
    pub commit: Option<u64>,
    pub registers: Vec<usize>,
    /// By register, then by thread.
    pub values: Vec<u64>,
    /// The ranges of shared memory that it reads, as start and end addresses.
    pub reads: Vec<(u64, u64)>,
}
