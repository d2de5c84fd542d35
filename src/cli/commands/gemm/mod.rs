//! `gemm`: computes products of whole matrices, and runs experiments on their accuracy and speed.

mod grown;
mod growth;
mod inputs;
mod page;
mod recipe;
mod smallest_block;
mod throughput;
mod variants;
mod yardstick;

use std::time::Instant;

use clap::ValueEnum;

use crate::gemm::{Algorithm, Method, Scaling, Split, Unit, multiply_words, parts_of_words};
use mxprobe_api::{Error, OperationId, Rounding};

use crate::cli::{
    arguments::{Experiment, Gemm, GemmMethod, Screen, WordRounding},
    choose::{
        limits::Limits,
        reach::{Isolation, reach},
        select,
        target::Search,
    },
    failure::{Failure, Outcome},
    io::{interrupt::Interrupt, npy, output, progress::Progress},
};
pub(super) use grown::Grown;
use inputs::inputs;
use page::Computed;
use throughput::throughput;
use variants::{accumulation, variants};
use yardstick::yardstick;

/// Computes a product, or runs an experiment.
pub(crate) fn gemm(arguments: &Gemm, screen: Screen) -> Outcome {
    if arguments.format.is_rows() && arguments.experiment.is_none() {
        return Err(Failure::usage(
            "`--format csv`: a product has no rows; it is shown as table, json, markdown or html",
        )
        .help("an experiment has rows: `--experiment growth`, `--experiment yardstick`; `--out` writes D"));
    }
    if let (Some(shard), Some(experiment)) =
        (arguments.shard, arguments.experiment.filter(|of| *of != Experiment::Growth))
    {
        let name = experiment.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(Failure::usage(format!("`--shard {shard}`: `--experiment {name}` has no shards"))
            .help("`--experiment growth` has"));
    }
    variants::are_those_of_an_experiment(arguments)?;
    if let Some(name) = &arguments.recipe {
        return recipe::recipe(arguments, screen, name);
    }
    let selector = arguments.device.clone().unwrap_or_default();
    let isolate = !arguments.reach.no_isolation;
    let search = Search::by(&arguments.reach, arguments.op.as_slice());
    let (targets, _) = select::named(std::slice::from_ref(&selector), &[], &search)?;
    // An interrupted experiment keeps its points. An interrupted product has nothing to keep and ends the process.
    let interrupt = if arguments.experiment.is_some() { Interrupt::listen() } else { Interrupt::default() };
    let limits = Limits::new(arguments.reach.timeout, None, interrupt);
    let isolation = Isolation { wanted: isolate, forward_stderr: false };
    if arguments.experiment == Some(Experiment::SmallestBlock) {
        return smallest_block::smallest_block(arguments, screen, &limits, isolation, &targets);
    }
    let [target] = targets.as_slice() else {
        return Err(Failure::usage(format!("`{selector}` means {} devices", targets.len()))
            .help("`gemm` computes on one device: name one of them"));
    };
    let device = reach(target, isolation, &limits).map_err(Failure::no_device)?.device;
    match arguments.experiment {
        Some(Experiment::Growth) => {
            return growth::experiment(arguments, screen, &limits, target, &device, variants(arguments, target)?);
        }
        Some(experiment @ (Experiment::Yardstick | Experiment::Throughput)) => {
            yardstick::check(arguments)?;
            arguments.out.iter().try_for_each(|path| output::can_write(path))?;
            let without = || Error::unsupported(format!("no library is known that multiplies on {}", target.selector));
            let library = device.timing().ok_or_else(without).and_then(|timing| timing.library());
            let library = library.as_deref().map_err(Clone::clone);
            let unit = |id: &OperationId| Unit::new(device.clone(), id);
            let variants = variants(arguments, target)?;
            let measure = if experiment == Experiment::Yardstick { yardstick } else { throughput };
            return measure(arguments, (screen, &limits), library, &variants, &unit);
        }
        Some(Experiment::SmallestBlock) | None => {}
    }
    let Some(op) = &arguments.op else {
        return Err(
            Failure::usage("`--op OP` is missing (the operation)").help("`mxprobe list --device SEL` shows them")
        );
    };
    let id = select::one_operation(op, &target.listed)?.id.clone();
    let Some(out) = &arguments.out else {
        return Err(Failure::usage("`--out FILE.npy` is missing (where to write D)"));
    };
    if arguments.random_words.is_some() && arguments.random.is_none() {
        return Err(Failure::usage("`--random-words` without `--random M,N,K`, which says what to draw"));
    }
    let (a, b, c) = inputs(arguments, &id)?;
    let c = c.map(|path| npy::read(path, id.c, false)).transpose()?;
    // Fail before the computation, not after it.
    output::can_write(out)?;
    let unit = Unit::new(device, &id).map_err(Failure::usage)?;
    let algorithm = algorithm(arguments);
    let sizes = format!("{id}, {}×{} by {}×{}", a.rows, a.columns, b.rows, b.columns);
    let progress = Progress::of_one(screen, format!("{} {sizes}", target.selector));
    let started = Instant::now();
    let (product, words) = multiply_words(&unit, &a, &b, c.as_ref(), &algorithm).map_err(Failure::of_device)?;
    let seconds = started.elapsed().as_secs_f64();
    drop(progress);
    output::replace_bytes(out, &npy::write(&product.d, a.rows, b.columns, arguments.bits))?;
    let parts = c.is_none().then(|| parts_of_words(&unit, (&a, &b), &words, &algorithm, &product.d));
    let computed = Computed {
        device: &target.selector,
        operation: &id,
        sizes: [a.rows, b.columns, a.columns],
        words: algorithm.split.words,
        has_c: c.is_some(),
        product: &product,
        parts,
        seconds,
    };
    output::show(&computed, arguments.format, screen.for_lines())
}

fn algorithm(arguments: &Gemm) -> Algorithm {
    let method = match arguments.method {
        GemmMethod::Multiword => Method::Multiword,
        GemmMethod::Markidis => Method::Markidis,
        GemmMethod::Ootomo => Method::Ootomo,
    };
    // The methods of Markidis and of Ootomo take two words.
    let words = if method == Method::Multiword { arguments.words } else { arguments.words.max(2) };
    Algorithm {
        method,
        split: Split {
            words,
            rounding: match arguments.split_rounding {
                WordRounding::Rne => Rounding::NearestEven,
                WordRounding::Rz => Rounding::TowardZero,
                WordRounding::Rd => Rounding::Down,
                WordRounding::Ru => Rounding::Up,
            },
            scaling: if arguments.scale { Scaling::Lines } else { Scaling::None },
            lift_bits: i32::from(arguments.lift),
        },
        products: variants::products(arguments),
        accumulation: accumulation(arguments),
    }
}
