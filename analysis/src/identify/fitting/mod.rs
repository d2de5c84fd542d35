//! The search for parameters with which a candidate explains every dot.

mod alone;
pub(in crate::identify) mod beside;
pub(in crate::identify) mod climb;
mod coupled;
pub(in crate::identify) mod fit;
pub(in crate::identify) mod gathered;
pub(in crate::identify) mod nodes;
pub(in crate::identify) mod payloads;
pub(in crate::identify) mod refine;
pub(in crate::identify) mod rejoined;
pub(in crate::identify) mod search;
mod trial;
pub(in crate::identify) mod wrapped;
