//! `gemm`: products of whole matrices, and what is left of their accuracy.

mod growth;
mod page;
mod yardstick;

use std::time::Instant;

use crate::gemm::{
    Accumulation, Algorithm, Matrix, Method, Products, Scaling, Split, Uniform, Unit, Variant, errors, multiply,
};
use crate::report::is_layout;
use mxprobe_api::{Error, Format, OperationId, Rounding};

use crate::cli::{
    arguments::{Accumulate, Experiment, Gemm, GemmMethod, Screen, WordRounding},
    choose::{
        limits::Limits,
        reach::{Isolation, reach},
        select,
        target::{Search, Target},
    },
    failure::{Failure, Outcome},
    io::{interrupt::Interrupt, npy, output, progress::Progress},
};
use page::Computed;
pub(super) use page::Grown;
use yardstick::yardstick;

/// Multiplies, or measures.
pub(crate) fn gemm(arguments: &Gemm, screen: Screen) -> Outcome {
    if arguments.format.is_rows() && arguments.experiment.is_none() {
        return Err(Failure::usage(
            "`--format csv`: a product has no rows; it is shown as table, json, markdown or html",
        )
        .help("an experiment has rows: `--experiment growth`, `--experiment yardstick`; `--out` writes D"));
    }
    let isolate = !arguments.reach.no_isolation;
    let search = Search::by(&arguments.reach, arguments.op.as_slice());
    let (targets, _) = select::named(std::slice::from_ref(&arguments.device), &[], &search)?;
    let [target] = targets.as_slice() else {
        return Err(Failure::usage(format!("`{}` means {} devices", arguments.device, targets.len()))
            .help("`gemm` computes on one device: name one of them"));
    };
    // What an experiment has found is kept; a product that is interrupted ends the process, as nothing of it is left.
    let interrupt = if arguments.experiment.is_some() { Interrupt::listen() } else { Interrupt::default() };
    let limits = Limits::new(arguments.reach.timeout, None, interrupt);
    let isolation = Isolation { wanted: isolate, forward_stderr: false };
    let device = reach(target, isolation, &limits).map_err(Failure::no_device)?.device;
    match arguments.experiment {
        Some(Experiment::Growth) => {
            return growth::experiment(arguments, screen, &limits, target, &device, variants(arguments, target)?);
        }
        Some(Experiment::Yardstick) => {
            yardstick::check(arguments)?;
            arguments.out.iter().try_for_each(|path| output::can_write(path))?;
            let without = || Error::unsupported(format!("no library is known that multiplies on {}", target.selector));
            let library = device.timing().ok_or_else(without).and_then(|timing| timing.library());
            let library = library.as_deref().map_err(Clone::clone);
            let unit = |id: &OperationId| Unit::new(device.clone(), id);
            return yardstick(arguments, (screen, &limits), library, &variants(arguments, target)?, &unit);
        }
        None => {}
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
    let (a, b, c) = inputs(arguments, &id)?;
    // What cannot be written is not computed.
    output::can_write(out)?;
    let unit = Unit::new(device, &id).map_err(Failure::usage)?;
    let algorithm = algorithm(arguments);
    let sizes = format!("{id}, {}×{} by {}×{}", a.rows, a.columns, b.rows, b.columns);
    let progress = Progress::of_one(screen, format!("{} {sizes}", target.selector));
    let started = Instant::now();
    let product = multiply(&unit, &a, &b, c.as_ref(), &algorithm).map_err(Failure::of_device)?;
    let seconds = started.elapsed().as_secs_f64();
    drop(progress);
    output::replace_bytes(out, &npy::write(&product.d, a.rows, b.columns, arguments.bits))?;
    let errors = c.is_none().then(|| errors(&a, &b, &product.d));
    let computed = Computed {
        device: &target.selector,
        operation: &id,
        sizes: [a.rows, b.columns, a.columns],
        words: arguments.words,
        has_c: c.is_some(),
        product: &product,
        errors,
        seconds,
    };
    output::show(&computed, arguments.format, screen.unwrapped())
}

fn inputs(arguments: &Gemm, id: &OperationId) -> Result<(Matrix, Matrix, Option<Matrix>), Failure> {
    let c = arguments.c.as_deref().map(|path| npy::read(path, id.c, false)).transpose()?;
    if let Some([m, n, k]) = arguments.random {
        let mut uniform = Uniform::new(arguments.seed);
        let (low, high) = arguments.interval;
        let a = uniform.matrix(m, k, low, high, true);
        return Ok((a, uniform.matrix(k, n, low, high, true), c));
    }
    let named = |path: &Option<_>, name: &str| -> Result<_, Failure> {
        let path: &Option<std::path::PathBuf> = path;
        path.clone().ok_or_else(|| {
            Failure::usage(format!("no {name}: `--{} FILE.npy` names one", name.to_lowercase()))
                .help("`--random M,N,K` draws A and B")
        })
    };
    let (a, b) = (named(&arguments.a, "A")?, named(&arguments.b, "B")?);
    Ok((npy::read(&a, id.a, false)?, npy::read(&b, id.b, true)?, c))
}

fn algorithm(arguments: &Gemm) -> Algorithm {
    let method = match arguments.method {
        GemmMethod::Multiword => Method::Multiword,
        GemmMethod::Markidis => Method::Markidis,
        GemmMethod::Ootomo => Method::Ootomo,
    };
    // The two that are named after their authors take two words.
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
        products: if arguments.all_products { Products::All } else { Products::Significant },
        accumulation: accumulation(arguments),
    }
}

fn accumulation(arguments: &Gemm) -> Accumulation {
    match arguments.accumulate {
        Accumulate::Unit => Accumulation::Unit,
        Accumulate::FabsumF32 => Accumulation::F32 { block: arguments.block },
        Accumulate::FabsumF64 => Accumulation::F64 { block: arguments.block },
    }
}

/// The ways to multiply that this device has.
fn variants(arguments: &Gemm, target: &Target) -> Result<Vec<Variant>, Failure> {
    // Beside the sums in the unit there are blocks, added in f32 unless told otherwise.
    let blocked = match accumulation(arguments) {
        Accumulation::Unit => Accumulation::F32 { block: arguments.block },
        blocked => blocked,
    };
    let mut variants = Vec::new();
    let mut of_format = |format: Format, words: std::ops::RangeInclusive<usize>| {
        let ids = target.listed.operations.iter().map(|operation| &operation.id);
        let fits = |id: &&OperationId| {
            (id.a, id.b, id.c, id.d) == (format, format, Format::F32, Format::F32)
                && id.qualifiers.iter().all(|word| is_layout(word))
        };
        // The shape that chains most products in one operation; of those the smallest tile, and the plainest name.
        let rank = |id: &&OperationId| {
            let (tile, words) = (id.shape.m * id.shape.n, id.qualifiers.len());
            (id.shape.k, std::cmp::Reverse((tile, words)))
        };
        let best = ids.filter(fits).max_by_key(rank);
        let Some(id) = best else { return };
        for words in words {
            let variant = |accumulation| {
                let (name, operation) = (curve_name(words, format, accumulation), Some(id.clone()));
                Variant { name, operation, words, accumulation }
            };
            variants.push(variant(Accumulation::Unit));
            if words == 2 {
                variants.push(variant(blocked));
            }
        }
    };
    if let Some(op) = &arguments.op {
        let id = select::one_operation(op, &target.listed)?.id.clone();
        if id.d != Format::F32 {
            return Err(Failure::usage(format!(
                "{id} returns {}; the experiment takes operations that return f32",
                id.d
            )));
        }
        for words in 1..=arguments.words.max(2) {
            let accumulation = accumulation(arguments);
            let (name, operation) = (curve_name(words, id.a, accumulation), Some(id.clone()));
            variants.push(Variant { name, operation, words, accumulation });
        }
    } else {
        of_format(Format::F16, 1..=2);
        of_format(Format::BF16, 1..=3);
        of_format(Format::TF32, 1..=1);
    }
    if variants.is_empty() {
        return Err(Failure::usage(format!("{} multiplies neither f16, bf16 nor tf32 into f32", target.selector))
            .help("`--op` names an operation that returns f32"));
    }
    variants.push(Variant { name: "f32".into(), operation: None, words: 1, accumulation: Accumulation::Unit });
    Ok(variants)
}

/// The name of a way to multiply: `double-f16, blocks of 256 added in f32`.
fn curve_name(words: usize, format: Format, accumulation: Accumulation) -> String {
    let prefix = match words {
        1 => String::new(),
        2 => "double-".to_owned(),
        3 => "triple-".to_owned(),
        more => format!("{more}-word-"),
    };
    match accumulation {
        Accumulation::Unit => format!("{prefix}{format}"),
        Accumulation::F32 { block } => format!("{prefix}{format}, blocks of {block} added in f32"),
        Accumulation::F64 { block } => format!("{prefix}{format}, blocks of {block} added in f64"),
    }
}
