//! Dots to ask an operation, and its answers.

pub(in crate::identify) mod around;
pub(in crate::identify) mod blocks;
pub(in crate::identify) mod experiments;
pub(in crate::identify) mod first;
pub(in crate::identify) mod moderate;
mod nan_order;
pub(super) mod nan_seen;
pub(in crate::identify) mod operands;
pub(in crate::identify) mod tiles;
