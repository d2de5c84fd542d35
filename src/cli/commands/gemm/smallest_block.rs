//! `gemm --experiment smallest-block`: finds the blocks with which words on each device are as accurate as f32.

use crate::{
    gemm::{Accumulation, BlockError, BlockErrors, Draw, Unit, block_errors},
    report::{Block, Cell, Column, Layout, Page, Row, Rows, Show, Table, to_json},
};
use mxprobe_api::{Format, OperationId};
use serde::Serialize;

use super::variants::{curve_name, drawn, longest, products};
use crate::cli::{
    arguments::{Gemm, Screen},
    choose::{
        limits::Limits,
        reach::{Isolation, reach},
        select,
        target::Target,
    },
    failure::{Failure, INTERRUPTED, Outcome},
    io::{output, progress::Progress},
};

/// The default length of sums, as an exponent of 2.
const EXPONENT: u32 = 14;

/// The bits of f32's significand, less the 2 bits that words of f16 lack (Fasi et al. 2023, Table 2.1).
const ENOUGH_BITS: u32 = 22;

/// The errors of one device.
#[derive(Serialize)]
struct OfDevice {
    device: String,
    /// The words: `double-f16`.
    name: String,
    #[serde(flatten)]
    errors: BlockErrors,
    /// The smallest block whose error is at most f32's, and the largest, with sums of blocks in f32.
    reached_f32: Option<(u64, u64)>,
    /// The same in f64.
    reached_f64: Option<(u64, u64)>,
}

/// The results of the experiment.
#[derive(Serialize)]
struct SmallestBlocks {
    seed: u32,
    interval: (f64, f64),
    devices: Vec<OfDevice>,
    /// Devices that were left out, each with the reason.
    left_out: Vec<(String, String)>,
}

/// Computes the errors of one device after the other.
pub(super) fn smallest_block(
    arguments: &Gemm,
    screen: Screen,
    limits: &Limits,
    isolation: Isolation,
    targets: &[Target],
) -> Outcome {
    arguments.out.iter().try_for_each(|path| output::can_write(path))?;
    let n = 1usize << arguments.exponents.map_or(EXPONENT, |(_, last)| last);
    let mut found = SmallestBlocks {
        seed: arguments.seed,
        interval: arguments.interval,
        devices: Vec::new(),
        left_out: Vec::new(),
    };
    let mut progress = Progress::new(screen, targets.len());
    progress.begin(targets.iter().map(|target| target.selector.clone()).collect());
    for target in targets {
        if limits.interrupt.is_set() {
            break;
        }
        let device_name = target.selector.clone();
        match operation(arguments, target)? {
            Some((id, words)) => {
                let device = reach(target, isolation, limits).map_err(Failure::no_device)?.device;
                let unit = Unit::new(device, &id).map_err(Failure::usage)?;
                let draw =
                    Draw { n, seed: arguments.seed, interval: arguments.interval, drawn: drawn(arguments, &id)? };
                let name = curve_name(words, id.a, products(arguments), Accumulation::Unit);
                let errors = block_errors(&unit, words, products(arguments), &draw).map_err(Failure::of_device)?;
                let (reached_f32, reached_f64) = (errors.reached(|block| block.f32), errors.reached(|block| block.f64));
                found.devices.push(OfDevice { device: device_name, name, errors, reached_f32, reached_f64 });
            }
            None => found.left_out.push((device_name, "multiplies neither f16, bf16 nor tf32 into f32".to_owned())),
        }
        progress.step();
    }
    drop(progress);
    if let Some(path) = &arguments.out {
        output::replace(path, &to_json(&found))?;
    }
    output::show(&found, arguments.format, screen)?;
    Ok(if limits.interrupt.is_set() { INTERRUPTED } else { 0 })
}

/// The operation of a device, which `--op` names or else is the longest of f16, bf16 or tf32, and the number of words:
/// that of `--words`, or as many as nearly hold f32's significand.
fn operation(arguments: &Gemm, target: &Target) -> Result<Option<(OperationId, usize)>, Failure> {
    let id = match &arguments.op {
        Some(op) => Some(select::one_operation(op, &target.listed)?.id.clone()),
        None => [Format::F16, Format::BF16, Format::TF32].into_iter().find_map(|format| longest(target, format)),
    };
    let words = |id: &OperationId| {
        let bits = id.a.fraction_bits().min(id.b.fraction_bits()) + 1;
        usize::try_from(ENOUGH_BITS.div_ceil(bits)).expect("a few words")
    };
    Ok(id.map(|id| {
        let words = if arguments.words > 1 { arguments.words } else { words(&id) };
        (id, words)
    }))
}

/// `16`, `16 to 512`, or `none`.
fn range(reached: Option<(u64, u64)>) -> String {
    match reached {
        Some((first, last)) if first == last => first.to_string(),
        Some((first, last)) => format!("{first} to {last}"),
        None => "none".to_owned(),
    }
}

impl Show for SmallestBlocks {
    /// A row for each device; with `evidence` the error of each block too.
    fn page(&self, evidence: bool) -> Page {
        let head = "blocks that bring words to the accuracy of f32";
        let mut blocks: Vec<Block> = Block::titled(1, head).into();
        let lengths = self.devices.first().map_or(0, |device| device.errors.n);
        let (low, high) = self.interval;
        blocks.push(Block::words(format!(
            "n = {lengths}, elements in ({low}, {high}]: the smallest and the largest block, in powers of 2, of which the \
             largest error is at most that of a loop in f32 on the same matrices; every block: -v"
        )));
        let rows = self.devices.iter().map(|of| {
            let errors = &of.errors;
            let cells = [
                of.device.clone(),
                of.name.clone(),
                format!("{:.2e}", errors.single),
                format!("{:.2e}", errors.unit),
                range(of.reached_f32),
                range(of.reached_f64),
            ];
            Row::plain(cells.map(Cell::words).to_vec())
        });
        let heads = ["device", "words", "f32", "no blocks", "added in f32", "added in f64"];
        let column = |(at, head): (usize, &str)| Column { head: head.to_owned(), is_number: at > 1, least: 0 };
        let columns = heads.into_iter().enumerate().map(column).collect();
        blocks.push(Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Rows }));
        blocks.extend(self.left_out.iter().map(|(device, why)| Block::words(format!("{device} {why}"))));
        let every: Vec<Block> = self.devices.iter().flat_map(every_block).collect();
        if evidence {
            blocks.extend(every)
        } else {
            blocks.push(Block::Paper(every))
        }
        Page { title: head.to_owned(), blocks }
    }

    fn rows(&self) -> Rows {
        let columns = "device operation words n single unit block f32 f64";
        let rows = self.devices.iter().flat_map(|OfDevice { device, errors, .. }| {
            errors.blocks.iter().map(move |block| {
                vec![
                    device.clone(),
                    errors.operation.clone(),
                    errors.words.to_string(),
                    errors.n.to_string(),
                    errors.single.to_string(),
                    errors.unit.to_string(),
                    block.block.to_string(),
                    block.f32.to_string(),
                    block.f64.to_string(),
                ]
            })
        });
        Rows::new(columns, rows.collect())
    }

    fn json(&self) -> String {
        to_json(self)
    }
}

/// The errors of each block of a device.
fn every_block(of: &OfDevice) -> Vec<Block> {
    let number = |error: f64| format!("{error:.2e}");
    let rows = of.errors.blocks.iter().map(|BlockError { block, f32, f64 }| {
        Row::plain([block.to_string(), number(*f32), number(*f64)].map(Cell::words).to_vec())
    });
    let heads = ["block", "added in f32", "added in f64"];
    let columns = heads.into_iter().map(|head| Column { head: head.to_owned(), is_number: true, least: 8 }).collect();
    let head = format!("{}: {}", of.device, of.errors.operation);
    let table = Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Rows });
    Block::titled(2, head).into_iter().chain([table, Block::Gap]).collect()
}
