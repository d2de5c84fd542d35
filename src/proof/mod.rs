//! Two models: a dot on which they differ, or a proof that there is none.

pub mod search;
