//! Candidates: trees with parameters, which are executable models, and the changes between them.

pub(in crate::identify) mod adders;
pub(in crate::identify) mod directed;
pub(in crate::identify) mod flattened;
pub(in crate::identify) mod hypothesis;
pub(in crate::identify) mod integers;
pub(in crate::identify) mod moves;
pub(in crate::identify) mod nan;
pub(in crate::identify) mod proposals;
pub(in crate::identify) mod scored;
pub(in crate::identify) mod ties;
pub(in crate::identify) mod united;
pub(in crate::identify) mod unrounded;
