//! Attempts to refute the model found: rivals that explain the same dots, and dots that tell them apart.

mod aim;
mod alike;
pub(in crate::identify) mod pool;
mod rival;
pub(in crate::identify) mod rivals;
pub(in crate::identify) mod simplify;
pub(in crate::identify) mod thresholds;
pub(in crate::identify) mod tried;
