//! Summation trees: how they are written, read from experiments, and varied.

mod classes;
pub(in crate::identify) mod exchanged;
pub(in crate::identify) mod expression;
pub(in crate::identify) mod focus;
pub(in crate::identify) mod groups;
pub(in crate::identify) mod guessed;
pub(in crate::identify) mod live;
#[cfg(test)]
mod made_up;
pub(in crate::identify) mod rebuilt;
pub(in crate::identify) mod shapes;
pub(in crate::identify) mod skeleton;
pub(in crate::identify) mod steps;
pub(in crate::identify) mod symmetric;
mod touched;
pub(in crate::identify) mod written;
