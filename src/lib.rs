//! Determines how a matrix unit really computes: which bits it keeps, in which order it adds, and how it rounds.
//!
//! A device computes batches of tiles, bit for bit ([`mxprobe_api`]). Everything else is a question to a device or a
//! model:
//!
//! | module | purpose |
//! |---|---|
//! | [`probes`], [`scalars`] | ask a matrix unit, or the scalar units next to it, and answer with evidence |
//! | [`identify`] | fits an executable model to an operation and tries to refute it |
//! | [`proof`] | finds a dot on which two models differ, or proves that there is none |
//! | [`gemm`], [`tolerance`] | multiply whole matrices, and bound the distance of the elements from the exact ones |
//! | [`mod@bench`], [`screen`] | measure throughput, and search for units that currently compute wrongly |
//! | [`dots`] | draws inputs and simplifies them |
//! | [`session`] | runs these on one device and produces a report |
//! | [`findings`], [`report`] | the answers; the results of a run, their schema, views and comparison |
//! | [`fleet`], [`shards`] | merge the results of many machines, and the parts of one job |
//! | [`plot`], [`site`], [`glossary`] | draw results, generate pages about all units, explain terms |
//! | [`papers`] | compares the results published in papers with those of models |
//! | [`isolate`] | runs a device in a process of its own |
//!
//! This example asks the model of an H100 how many bits its fp8 sums keep; hardware, as [`open`] returns it, is asked
//! in the same way.
//!
//! ```
//! use mxprobe::{findings::Value, probes};
//! use mxprobe_api::{Backend, OperationId, operation_of};
//!
//! let device = mxprobe_sim::SimBackend.open("h100")?;
//! let id: OperationId = "wgmma.m64n8k32.f32.e4m3.e4m3.f32".parse()?;
//! let operation = operation_of(device.as_ref(), &id)?;
//!
//! let probed = probes::probe(device.as_ref(), operation, Some(&|probe| probe.starts_with("alignment")));
//! let finding = probed.finding("alignment.fraction_bits").expect("the operation is a floating-point one");
//! assert_eq!(finding.value, Some(Value::Number(13)));
//! # Ok::<(), mxprobe_api::Error>(())
//! ```
//!
//! What is asked, found and compared is in the crate `mxprobe-analysis`, whose modules this one hands on.
//!
//! [`Backends`] provides the command `mxprobe`, with the backends that this crate's features enable and any others that
//! are registered. No other part of this crate depends on a vendor.

pub mod bench;
mod cli;
pub mod fleet;
pub mod glossary;
pub mod isolate;
pub mod papers;
pub mod plot;
pub mod report;
pub mod screen;
pub mod session;
pub mod shards;
pub mod site;

pub use cli::{Backends, open};
pub use mxprobe_analysis::{Shard, dots, findings, gemm, identify, plain, probes, proof, scalars, tolerance};

use mxprobe_analysis::{aside, clock, contained, in_order, literal, nan_bits};
