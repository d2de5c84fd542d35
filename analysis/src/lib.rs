//! What mxprobe asks and finds out: questions to devices and models, their answers, and the records that save them.
//!
//! Nothing here opens a device, prints, or knows a vendor; the crate `mxprobe` re-exports what others may use, and
//! shows it.
//!
//! | module | purpose |
//! |---|---|
//! | [`probes`], [`scalars`] | ask a matrix unit, or the scalar units next to it, and answer with evidence |
//! | [`identify`] | fits an executable model to an operation and tries to refute it |
//! | [`proof`] | finds a dot on which two models differ, or proves that there is none |
//! | [`gemm`], [`tolerance`] | multiply whole matrices, and bound the distance of the elements from the exact ones |
//! | [`dots`] | draws inputs and simplifies them |
//! | [`findings`], [`record`] | the answers, and the types of all results, as they are saved and checked when read |
//! | [`summary`] | folds operations with the same answers into rows, and says what is notable |
//! | [`plain`], [`literal`] | text that cannot disturb a terminal, and numbers as people write them |

pub mod aside;
pub mod clock;
pub mod compare;
pub mod contained;
pub mod dots;
pub mod findings;
pub mod gemm;
pub mod identify;
pub mod in_order;
pub mod literal;
pub mod nan_bits;
pub mod plain;
pub mod probes;
pub mod proof;
pub mod record;
pub mod scalars;
mod shard;
pub mod summary;
pub mod tolerance;

pub use shard::Shard;
