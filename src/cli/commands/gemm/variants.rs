//! The ways to multiply that the arguments of `gemm` select.

use crate::{
    gemm::{Accumulation, Block, Drawn, Products, Variant},
    report::is_layout,
};
use mxprobe_api::{Format, OperationId};

use crate::cli::{
    arguments::{Accumulate, Gemm, GemmMethod, WordRounding},
    choose::{select, target::Target},
    failure::Failure,
};

pub(super) fn accumulation(arguments: &Gemm) -> Accumulation {
    match arguments.accumulate {
        Accumulate::Unit => Accumulation::Unit,
        Accumulate::FabsumF32 => Accumulation::F32 { block: block(arguments) },
        Accumulate::FabsumF64 => Accumulation::F64 { block: block(arguments) },
    }
}

fn block(arguments: &Gemm) -> Block {
    arguments.blocks.map_or(Block::Products(arguments.block), Block::Count)
}

pub(super) fn products(arguments: &Gemm) -> Products {
    if arguments.all_products { Products::All } else { Products::Significant }
}

/// Refuses options that experiments do not take: they split as Fasi et al. do, to nearest and unscaled.
pub(super) fn are_those_of_an_experiment(arguments: &Gemm) -> Result<(), Failure> {
    if arguments.experiment.is_none() {
        return Ok(());
    }
    let given = match arguments {
        Gemm { method: GemmMethod::Markidis, .. } => "--method markidis".to_owned(),
        Gemm { method: GemmMethod::Ootomo, .. } => "--method ootomo".to_owned(),
        Gemm { scale: true, .. } => "--scale".to_owned(),
        Gemm { lift: 1.., .. } => format!("--lift {}", arguments.lift),
        Gemm { split_rounding: WordRounding::Rz | WordRounding::Rd | WordRounding::Ru, .. } => {
            "--split-rounding".to_owned()
        }
        _ => return Ok(()),
    };
    Err(Failure::usage(format!(
        "`{given}`: experiments multiply unscaled words that are rounded to nearest, as multiword"
    ))
    .help("a product of `--random` or of files takes it"))
}

/// How elements are drawn as sums of words of an operation, if `--random-words` asks for that.
pub(super) fn drawn(arguments: &Gemm, id: &OperationId) -> Result<Option<Drawn>, Failure> {
    let Some(words) = arguments.random_words else { return Ok(None) };
    if !(1..=MOST_WORDS).contains(&words) {
        return Err(Failure::usage(format!("`--random-words {words}`: 1 to {MOST_WORDS} words")));
    }
    if id.a.as_float().is_none() || id.b.as_float().is_none() || id.block_scale().is_some() {
        return Err(Failure::usage(format!("`--random-words {words}`: {id} does not take words of a floating format"))
            .help("operations on integers and with block scales draw elements with `--random` alone"));
    }
    Ok(Some(Drawn { words, a: id.a, b: id.b }))
}

/// The limit of `--random-words`: as many words as a value of f32 has bits.
const MOST_WORDS: usize = 24;

/// The ways to multiply that this device has.
pub(super) fn variants(arguments: &Gemm, target: &Target) -> Result<Vec<Variant>, Failure> {
    // Besides sums in the unit there are sums of blocks, which are added in f32 by default.
    let blocked = match accumulation(arguments) {
        Accumulation::Unit => Accumulation::F32 { block: block(arguments) },
        blocked => blocked,
    };
    let mut variants = Vec::new();
    let mut of_format = |format: Format, words: std::ops::RangeInclusive<usize>| {
        let Some(id) = longest(target, format) else { return };
        for words in words {
            let variant = |accumulation| {
                let name = curve_name(words, format, products(arguments), accumulation);
                Variant { name, operation: Some(id.clone()), words, products: products(arguments), accumulation }
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
            let (products, accumulation) = (products(arguments), accumulation(arguments));
            let (name, operation) = (curve_name(words, id.a, products, accumulation), Some(id.clone()));
            variants.push(Variant { name, operation, words, products, accumulation });
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
    variants.push(Variant::single(Accumulation::Unit));
    // A count of blocks also applies to the loop in f32, as in section 4.3 of the paper.
    if arguments.blocks.is_some() {
        variants.push(Variant::single(blocked));
    }
    Ok(variants)
}

/// The name of a way to multiply: `double-f16, blocks of 256 added in f32`.
pub(super) fn curve_name(words: usize, format: Format, products: Products, accumulation: Accumulation) -> String {
    let prefix = match words {
        1 => String::new(),
        2 => "double-".to_owned(),
        3 => "triple-".to_owned(),
        more => format!("{more}-word-"),
    };
    let all = if products == Products::All && words > 1 { ", all products" } else { "" };
    let added = match accumulation {
        Accumulation::Unit => String::new(),
        Accumulation::F32 { block } => format!(", {block} added in f32"),
        Accumulation::F64 { block } => format!(", {block} added in f64"),
    };
    format!("{prefix}{format}{all}{added}")
}

/// The operation from a format to f32 with the largest k; of several, the one with the smallest tile, then the fewest
/// qualifiers.
pub(super) fn longest(target: &Target, format: Format) -> Option<OperationId> {
    let ids = target.listed.operations.iter().map(|operation| &operation.id);
    let fits = |id: &&OperationId| {
        (id.a, id.b, id.c, id.d) == (format, format, Format::F32, Format::F32)
            && id.qualifiers.iter().all(|word| is_layout(word))
    };
    let rank = |id: &&OperationId| {
        let (tile, words) = (id.shape.m * id.shape.n, id.qualifiers.len());
        (id.shape.k, std::cmp::Reverse((tile, words)))
    };
    ids.filter(fits).max_by_key(rank).cloned()
}
