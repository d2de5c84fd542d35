//! `gemm --experiment throughput`: measures the rates of words and blocks over sizes.

use std::ops::ControlFlow;

use crate::{
    gemm::{Accumulation, Interval, Race, Unit, Variant, Way, Yardstick, compare},
    report::{Block, Cell, Column, Layout, Page, Row, Rows, Show, Table, to_json},
};
use mxprobe_api::{Error, Library, OperationId};

use crate::cli::{
    arguments::{Gemm, Screen},
    choose::limits::Limits,
    failure::{Failure, INTERRUPTED, Outcome},
    io::{output, progress::Progress},
};

/// Times every way at every size, and the device's library, and prints the rates.
pub(super) fn throughput(
    arguments: &Gemm,
    (screen, limits): (Screen, &Limits),
    library: Result<&dyn Library, Error>,
    variants: &[Variant],
    unit: &dyn Fn(&OperationId) -> Result<Unit, Error>,
) -> Outcome {
    let variants = with_both_blocks(variants);
    let per_size = arguments.rounds + 1;
    let mut progress = Progress::new(screen, per_size * arguments.size.len());
    let steps = arguments
        .size
        .iter()
        .flat_map(|n| (0..per_size).map(move |round| format!("n = {n}, round {round} of {}", per_size - 1)));
    progress.begin(steps.collect());
    let mut found = Vec::new();
    for n in &arguments.size {
        let race = Race { n: *n, seed: arguments.seed, interval: Interval::Centred, rounds: arguments.rounds };
        let mut said = |_| {
            progress.step();
            if limits.interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let library = library.as_ref().map(|library| *library).map_err(Clone::clone);
        found.push(compare(&race, library, &variants, unit, &mut said).map_err(Failure::of_device)?);
        if let Some(path) = &arguments.out {
            output::replace(path, &to_json(&json(&found)))?;
        }
        if limits.interrupt.is_set() {
            break;
        }
    }
    drop(progress);
    output::show(&Timed(&found), arguments.format, screen.for_lines())?;
    Ok(if limits.interrupt.is_set() { INTERRUPTED } else { 0 })
}

/// The ways with blocks, in f32 and in f64, whichever of them is named.
fn with_both_blocks(variants: &[Variant]) -> Vec<Variant> {
    let mut all = Vec::new();
    for variant in variants {
        let other = match variant.accumulation {
            Accumulation::Unit => None,
            Accumulation::F32 { block } => {
                Some((Accumulation::F64 { block }, variant.name.replace("in f32", "in f64")))
            }
            Accumulation::F64 { block } => {
                Some((Accumulation::F32 { block }, variant.name.replace("in f64", "in f32")))
            }
        };
        all.push(variant.clone());
        all.extend(other.map(|(accumulation, name)| Variant { name, accumulation, ..variant.clone() }));
    }
    all
}

/// The page of rates at several sizes.
struct Timed<'a>(&'a [Yardstick]);

impl Show for Timed<'_> {
    /// A row for each way and size.
    fn page(&self, _: bool) -> Page {
        let head = "effective GFLOP/s of words and blocks";
        let mut blocks: Vec<Block> = Block::titled(1, head).into();
        let first = self.0.first();
        blocks.extend(first.map(|first| Block::words(format!("timed: {}", first.timed))));
        blocks.extend(first.and_then(|first| first.no_library.as_ref()).map(Block::words));
        // A time, and the rate that follows from it.
        let timed = |n: u64, mean_ns: Option<f64>| match mean_ns {
            Some(ns) => [format!("{:.6} s", ns / 1e9), format!("{:.2}", flop(n) / ns.max(1.0))],
            None => ["-".to_owned(), "-".to_owned()],
        };
        let has_kernels = self.0.iter().flat_map(|of| &of.ways).any(|way| way.kernel_effective_flop_per_s.is_some());
        let heads = ["n", "products", "GFLOP/s", "kernels", "GFLOP/s", "all", "GFLOP/s", "error", "way"];
        let is_shown = |at: &usize| has_kernels || !(3..5).contains(at);
        let column = |(at, head): (usize, &str)| Column { head: head.to_owned(), is_number: at < 8, least: 0 };
        let columns = heads.into_iter().enumerate().filter(|(at, _)| is_shown(at)).map(column).collect();
        let rows = self.0.iter().flat_map(|of| {
            of.ways.iter().map(move |way| {
                let kernel_mean_ns = way.kernel_effective_flop_per_s.map(|rate| flop(of.n) / rate * 1e9);
                let times = [Some(way.products_mean_ns), kernel_mean_ns, Some(way.mean_ns)].map(|ns| timed(of.n, ns));
                let ends = [format!("{:.2e}", way.componentwise), way.name.clone()];
                let cells = std::iter::once(of.n.to_string()).chain(times.into_iter().flatten()).chain(ends);
                Row::plain(
                    cells.enumerate().filter(|(at, _)| is_shown(at)).map(|(_, cell)| Cell::words(cell)).collect(),
                )
            })
        });
        blocks.push(Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Rows }));
        blocks.push(Block::words(
            "GFLOP/s are 2n³ over the mean time, however many products of words it takes: of the products of words alone, of \
             the device's kernels without copies, and of all from f32 matrices to D; errors are of |A|·|B|",
        ));
        Page { title: head.to_owned(), blocks }
    }

    fn rows(&self) -> Rows {
        let columns = "way operation n rounds mean_ns products_mean_ns effective_flop_per_s kernel_effective_flop_per_s \
                       componentwise";
        let row = |of: &Yardstick, way: &Way| {
            vec![
                way.name.clone(),
                way.operation.clone().unwrap_or_default(),
                of.n.to_string(),
                of.rounds.to_string(),
                way.mean_ns.to_string(),
                way.products_mean_ns.to_string(),
                way.effective_flop_per_s.to_string(),
                way.kernel_effective_flop_per_s.map(|rate| rate.to_string()).unwrap_or_default(),
                way.componentwise.to_string(),
            ]
        };
        Rows::new(columns, self.0.iter().flat_map(|of| of.ways.iter().map(move |way| row(of, way))).collect())
    }

    fn json(&self) -> String {
        to_json(&json(self.0))
    }
}

fn json(sizes: &[Yardstick]) -> serde_json::Value {
    serde_json::json!({ "sizes": sizes })
}

/// The number of multiplications and additions in a product of n×n matrices.
fn flop(n: u64) -> f64 {
    2.0 * (n as f64).powi(3)
}
