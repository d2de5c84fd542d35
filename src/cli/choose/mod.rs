//! Selects the device, model and operation, and determines how to reach the device.

pub(super) mod catalog;
pub(super) mod common;
mod executable;
#[cfg(feature = "fault-devices")]
mod fault;
pub(super) mod limits;
pub(super) mod model_file;
pub(super) mod models;
mod names;
pub(super) mod open;
mod operation;
pub(super) mod plan;
pub(super) mod process;
pub(super) mod program;
pub(super) mod reach;
pub(super) mod recipes;
pub(super) mod registry;
pub(super) mod select;
mod selector;
pub(super) mod similar;
pub(super) mod target;

pub(super) use executable::started_by;
