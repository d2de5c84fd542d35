//! `gemm --experiment yardstick`: compares words on a unit with a library's product of f32 matrices.

use std::ops::ControlFlow;

use crate::{
    gemm::{Accumulation, Interval, Race, Unit, Variant, Way, Yardstick, compare},
    report::{Block, Cell, Column, Layout, Page, Row, Rows, Show, Table, to_json},
};
use mxprobe_api::{Error, Library, OperationId};

use crate::cli::{
    arguments::{Experiment, Gemm, Screen},
    choose::limits::Limits,
    failure::{Failure, INTERRUPTED, Outcome},
    io::{output, progress::Progress},
};

/// Times and compares every way to multiply, and prints the result.
pub(crate) fn yardstick(
    arguments: &Gemm,
    (screen, limits): (Screen, &Limits),
    library: Result<&dyn Library, Error>,
    variants: &[Variant],
    unit: &dyn Fn(&OperationId) -> Result<Unit, Error>,
) -> Outcome {
    let n = arguments.size[0];
    let race = Race { n, seed: arguments.seed, interval: Interval::Centred, rounds: arguments.rounds };
    let variants: Vec<Variant> =
        variants.iter().filter(|variant| variant.accumulation == Accumulation::Unit).cloned().collect();
    let mut progress = Progress::new(screen, race.rounds + 1);
    progress.begin((0..=race.rounds).map(|round| format!("round {round} of {}", race.rounds)).collect());
    let mut said = |_| {
        progress.step();
        if limits.interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let found = compare(&race, library, &variants, unit, &mut said).map_err(Failure::of_device)?;
    drop(progress);
    if let Some(path) = &arguments.out {
        output::replace(path, &to_json(&found))?;
    }
    output::show(&Raced(&found), arguments.format, screen.for_lines())?;
    Ok(if limits.interrupt.is_set() { INTERRUPTED } else { 0 })
}

/// The page of ways to multiply.
struct Raced<'a>(&'a Yardstick);

impl Show for Raced<'_> {
    /// A row for each way.
    fn page(&self, _: bool) -> Page {
        let found = self.0;
        let head = format!(
            "A·B, {0}×{0} by {0}×{0}, f32 elements in {1}, {2} rounds of all ways in turn",
            found.n,
            found.interval.name(),
            found.rounds
        );
        let mut inset: Vec<Block> = found.no_library.iter().map(Block::words).collect();
        // Columns that stay empty are left out.
        let has_kernels = found.ways.iter().any(|way| way.kernel_best_ns.is_some());
        let heads = [
            ("best", 10),
            ("median", 9),
            ("GFLOP/s", 9),
            ("kernels", 11),
            ("GFLOP/s", 9),
            ("componentwise", 12),
            ("normwise", 8),
        ];
        let is_shown = |at: &usize| has_kernels || !(3..5).contains(at);
        let columns = heads.into_iter().enumerate().filter(|(at, _)| is_shown(at));
        let columns = columns.map(|(_, (head, least))| Column { head: head.to_owned(), is_number: true, least });
        let columns = columns.chain([Column { head: "way".to_owned(), ..Column::default() }]).collect();
        let rows = found.ways.iter().map(|way| {
            let seconds = |ns: u64| format!("{:.4} s", ns as f64 / 1e9);
            let rate = |flop_per_s: f64| format!("{:.1}", flop_per_s / 1e9);
            let kernels = way.kernel_best_ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.6} s", ns as f64 / 1e9));
            let numbers = [
                seconds(way.best_ns),
                seconds(way.median_ns),
                rate(way.flop_per_s),
                kernels,
                way.kernel_flop_per_s.map_or_else(|| "-".to_owned(), rate),
                format!("{:.2e}", way.componentwise),
                format!("{:.2e}", way.normwise),
            ];
            let numbers = numbers.into_iter().enumerate().filter(|(at, _)| is_shown(at)).map(|(_, number)| number);
            let operation = way.operation.as_ref().map_or(String::new(), |id| format!(" ({id})"));
            Row::plain(numbers.chain([format!("{}{operation}", way.name)]).map(Cell::words).collect())
        });
        inset.push(Block::Table(Table { columns, rows: rows.collect(), layout: Layout::Rows }));
        let mut blocks: Vec<Block> = Block::titled(1, &head).into();
        blocks.push(Block::Inset(inset));
        blocks.push(Block::words(
            "GFLOP/s are 2n³ over the best time; errors are of |A|·|B|, and in Frobenius norms of A·B",
        ));
        if has_kernels {
            blocks.push(Block::words(
                "best and median include splitting, packing and copies; kernels are timed by the device's clock",
            ));
        }
        Page { title: head, blocks }
    }

    fn rows(&self) -> Rows {
        let columns = "way operation n rounds best_ns median_ns flop_per_s kernel_best_ns kernel_median_ns \
            kernel_flop_per_s componentwise normwise";
        let row = |way: &Way| {
            vec![
                way.name.clone(),
                way.operation.clone().unwrap_or_default(),
                self.0.n.to_string(),
                self.0.rounds.to_string(),
                way.best_ns.to_string(),
                way.median_ns.to_string(),
                way.flop_per_s.to_string(),
                way.kernel_best_ns.map(|ns| ns.to_string()).unwrap_or_default(),
                way.kernel_median_ns.map(|ns| ns.to_string()).unwrap_or_default(),
                way.kernel_flop_per_s.map(|rate| rate.to_string()).unwrap_or_default(),
                way.componentwise.to_string(),
                way.normwise.to_string(),
            ]
        };
        Rows::new(columns, self.0.ways.iter().map(row).collect())
    }

    fn json(&self) -> String {
        to_json(self.0)
    }
}

/// Checks that an experiment has something to compare.
pub(crate) fn check(arguments: &Gemm) -> Result<(), Failure> {
    for (name, values) in [("--size", &arguments.size[..]), ("--rounds", &[arguments.rounds])] {
        if values.contains(&0) {
            return Err(Failure::usage(format!("`{name} 0`: there must be one at least")));
        }
    }
    if arguments.experiment == Some(Experiment::Yardstick) && arguments.size.len() != 1 {
        let sizes: Vec<String> = arguments.size.iter().map(ToString::to_string).collect();
        return Err(Failure::usage(format!("`--size {}`: the yardstick takes one size", sizes.join(",")))
            .help("`--experiment throughput` takes several"));
    }
    if arguments.random_words.is_some() {
        return Err(Failure::usage(
            "`--random-words` is of `--random` and of the experiments `growth` and `smallest-block`",
        ));
    }
    Ok(())
}
