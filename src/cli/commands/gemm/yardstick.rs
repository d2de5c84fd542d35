//! `gemm --experiment yardstick`: words on a unit beside a library's product of f32 matrices.

use std::fmt::Write as _;

use mxprobe::gemm::{Accumulation, Interval, Race, Unit, Variant, Yardstick, compare};
use mxprobe_api::{Error, Library, OperationId};

use crate::cli::{
    arguments::{Gemm, Printed, Screen},
    failure::{Failure, Outcome},
    io::output,
};

/// Compares, and prints.
pub(crate) fn yardstick(
    arguments: &Gemm,
    screen: Screen,
    library: Result<&dyn Library, Error>,
    variants: &[Variant],
    unit: &dyn Fn(&OperationId) -> Result<Unit, Error>,
) -> Outcome {
    let race = Race { n: arguments.size, seed: arguments.seed, interval: Interval::Centred, rounds: arguments.rounds };
    let variants: Vec<Variant> =
        variants.iter().filter(|variant| variant.accumulation == Accumulation::Unit).cloned().collect();
    let mut said = |round: usize| {
        if !screen.quiet {
            output::note(format!("round {round} of {}", race.rounds));
        }
    };
    let found = compare(&race, library, &variants, unit, &mut said).map_err(Failure::of_device)?;
    if let Some(path) = &arguments.out {
        output::replace(path, &mxprobe::report::to_json(&found))?;
    }
    if arguments.format == Printed::Json {
        return output::print_json(&found);
    }
    output::print(table(&found).as_bytes())
}

/// A line for each way.
fn table(found: &Yardstick) -> String {
    let mut text = format!(
        "A·B, {0}×{0} by {0}×{0}, f32 elements in {1}, {2} rounds of all ways in turn\n",
        found.n,
        found.interval.name(),
        found.rounds
    );
    if let Some(reason) = &found.no_library {
        let _ = writeln!(text, "  {reason}");
    }
    // Columns that no way fills are left out.
    let has_kernels = found.ways.iter().any(|way| way.kernel_best_ns.is_some());
    let kernels = |words: String| if has_kernels { words } else { String::new() };
    let _ = writeln!(
        text,
        "  {:>10} {:>10} {:>10} {}{:>13} {:>9}",
        "best",
        "median",
        "GFLOP/s",
        kernels(format!("{:>12} {:>10} ", "kernels", "GFLOP/s")),
        "componentwise",
        "normwise"
    );
    for way in &found.ways {
        let alone = match (way.kernel_best_ns, way.kernel_flop_per_s) {
            (Some(ns), Some(rate)) => format!("{:>10.6} s {:>10.1} ", ns as f64 / 1e9, rate / 1e9),
            _ => format!("{:>12} {:>10} ", "-", "-"),
        };
        let _ = writeln!(
            text,
            "  {:>8.4} s {:>8.4} s {:>10.1} {}{:>13.2e} {:>9.2e}  {}{}",
            way.best_ns as f64 / 1e9,
            way.median_ns as f64 / 1e9,
            way.flop_per_s / 1e9,
            kernels(alone),
            way.componentwise,
            way.normwise,
            way.name,
            way.operation.as_ref().map_or(String::new(), |id| format!(" ({id})"))
        );
    }
    text.push_str("GFLOP/s are 2n³ over the best time; errors are of |A|·|B|, and in Frobenius norms of A·B\n");
    if has_kernels {
        text.push_str(
            "best and median include splitting, packing and copies; kernels are timed by the device's clock\n",
        );
    }
    text
}

/// That an experiment has something to compare.
pub(crate) fn check(arguments: &Gemm) -> Result<(), Failure> {
    for (name, value) in [("--size", arguments.size), ("--rounds", arguments.rounds)] {
        if value == 0 {
            return Err(Failure::usage(format!("`{name} 0`: there must be one at least")));
        }
    }
    Ok(())
}
