//! Compares dots of a sample side by side with the same dots one by one: every shipped operation, and every
//! neighbouring value of its adders' parameters.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId, Random};
use mxprobe_models::{Adder, Below, Choices, Evaluator, Flush, Model, PARAMETERS, Path, Plan, RULE, Sample};

use super::{
    agree::Operands,
    distinct_operations,
    inputs::{Case, INPUTS},
};

/// Sums on three levels with an adder for each, in formats and unrounded.
const FILE: &str = r#"
schema = "mxprobe-model/1"
name = "levels"
title = "a unit of three levels"
vendor = "nobody"
fingerprint = "levels"

[sources]
here = "made up"

[adder.pair]
grid = [{ terms = "products", exponent = "leading", fraction_bits = 12 }]
below = "truncate"
output = "wide"
basis = "specified"
source = "here"

[adder.half]
output = "f16"
rounding = "nearest-even"
nan = "0x7e00"
basis = "specified"
source = "here"

[adder.last]
output = "f32"
rounding = "nearest-even"
nan = "0x7fc00000"
basis = "specified"
source = "here"

[[unit]]
tree = "last(half(pair(0..2), pair(2..4)), half(pair(4..6), pair(6..8)), c)"
operations = ["dot.m1n1k8.f32.{f16.f16,e5m2.e5m2}.f32"]
basis = "specified"
source = "here"
"#;

/// Dots of every class of inputs.
fn drawn(id: &OperationId, random: &mut Random) -> Vec<Operands> {
    let mut found = Vec::new();
    let k = id.shape.sizes().2;
    let (m, n) = (4, 4);
    for inputs in INPUTS {
        let case = Case::draw(id, (m, n, k), inputs, random);
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let a = (0..k).map(|at| case.a.get(row * k + at)).collect();
            let b = (0..k).map(|at| case.b.get(at * n + column)).collect();
            let scales = case.scales.as_ref().map(|(of_a, of_b)| {
                let blocks = of_b.len() / n;
                let of_a = (0..blocks).map(|at| of_a.get(row * blocks + at)).collect();
                let of_b = (0..blocks).map(|at| of_b.get(at * n + column)).collect();
                (of_a, of_b)
            });
            found.push(Operands { a, b, c: case.c.get(row * n + column), scales });
        }
    }
    found
}

fn sample(id: &OperationId, flush: Flush, path: Path, dots: &[Operands]) -> Sample {
    let mut sample = Sample::with_path(id, flush, path);
    dots.iter().for_each(|dot| sample.push(dot.dot()));
    sample
}

/// The adders with each neighbouring value of each parameter of one of them.
fn changed(adders: &[Adder], at: usize) -> Vec<Vec<Adder>> {
    let mut found = Vec::new();
    for parameter in PARAMETERS.iter().filter(|parameter| parameter.applies(&adders[at])) {
        for to in (parameter.near)(&adders[at]) {
            let mut adders = adders.to_vec();
            (parameter.set)(&mut adders[at], to);
            found.push(adders);
        }
    }
    found
}

/// The adders after several such steps, including steps of the rules of their grids.
pub(super) fn strayed(adders: &[Adder], random: &mut Random) -> Vec<Adder> {
    let mut adders = adders.to_vec();
    for _ in 0..12 {
        let at = random.below(adders.len());
        let adder = &mut adders[at];
        let rule = random.below(adder.grid.len() + 2);
        if let Some(rule) = adder.grid.get_mut(rule) {
            let parameter = &RULE[random.below(RULE.len())];
            let near = (parameter.near)(rule);
            if !near.is_empty() {
                (parameter.set)(rule, near[random.below(near.len())]);
            }
            continue;
        }
        let parameter = &PARAMETERS[random.below(PARAMETERS.len())];
        let near = (parameter.near)(adder);
        if parameter.applies(adder) && !near.is_empty() {
            (parameter.set)(adder, near[random.below(near.len())]);
        }
    }
    adders
}

/// The adders with grids that keep more bits than a word, or few, and any rule for the bits below.
pub(super) fn regridded(adders: &[Adder], random: &mut Random) -> Vec<Adder> {
    let mut adders = adders.to_vec();
    for adder in &mut adders {
        let below: Vec<Below> = Below::values().collect();
        adder.below = below[random.below(below.len())];
        adder.grid.iter_mut().for_each(|rule| rule.fraction_bits = random.between(2, 200));
    }
    adders
}

/// The adders with another NaN for each that gives one in f32 or in f64, which have many.
fn with_other_nan(adders: &[Adder]) -> Vec<Adder> {
    let mut adders = adders.to_vec();
    for adder in &mut adders {
        if matches!(adder.output_format(), Some(Format::F32 | Format::F64)) {
            adder.nan.invalid ^= 1;
        }
    }
    adders
}

/// The number of walks away from a shipped unit, each of many changes, and of those that change its grids as well.
const STRAYED: usize = 12;

/// One dot in so many is compared with the exact evaluator.
const EXACT: usize = 23;

/// Compares every evaluator of one changed adder, and the unchanged one, on every path that dots take. Returns the
/// number of dots.
fn compare(adders: &[Adder], flush: Flush, plan: &Arc<Plan>, id: &OperationId, random: &mut Random) -> usize {
    let dots = drawn(id, random);
    let alone = sample(id, flush, Path::Scalar, &dots);
    let abreast: Vec<(Path, Sample)> = Path::available()
        .into_iter()
        .filter(|path| *path >= Path::Avx2)
        .map(|path| (path, sample(id, flush, path, &dots)))
        .collect();
    let mut count = 0;
    let all = (0..adders.len()).flat_map(|at| changed(adders, at)).chain([adders.to_vec(), with_other_nan(adders)]);
    let strayed: Vec<Vec<Adder>> = (0..STRAYED).map(|_| strayed(adders, random)).collect();
    let regridded: Vec<Vec<Adder>> = strayed.iter().map(|adders| regridded(adders, random)).collect();
    let all = all.chain(strayed).chain(regridded);
    // Evaluators of one plan share their memory, and eight dots that were asked last stay there for the next one. What is
    // made of an adder stays, too, as long as it is shared.
    let mut shared: Vec<Arc<Adder>> = Vec::new();
    let eight: Vec<usize> = (0..8).map(|lane| lane * dots.len() / 8).collect();
    for (turn, adders) in all.enumerate() {
        let known = |(at, adder): (usize, &Adder)| shared.get(at).filter(|known| ***known == *adder).cloned();
        shared = adders.iter().enumerate().map(|of| known(of).unwrap_or_else(|| Arc::new(of.1.clone()))).collect();
        let Ok(evaluator) = Evaluator::of_plan(shared.iter().cloned(), flush, plan, id, Path::Scalar) else { continue };
        let mut wanted = Vec::new();
        // A number of dots that is not a multiple of eight, starting at a different one each time.
        let which = |sample: &Sample| (turn % 11..sample.len()).collect::<Vec<_>>();
        let exact = evaluator.visit(&alone, which(&alone), |_, d| {
            wanted.push(d);
            true
        });
        let slow = Evaluator::of_plan(adders.clone(), flush, plan, id, Path::Exact).unwrap();
        for dot in (turn % EXACT..dots.len()).step_by(EXACT).filter(|dot| *dot >= turn % 11) {
            let (d, of_exact) = (wanted[dot - turn % 11], slow.dot(dots[dot].dot()).unwrap());
            let hex = |bits| id.d.hex(bits);
            assert!(d == of_exact, "{id} dot {dot}: {}, exactly {}: {adders:?}", hex(d), hex(of_exact));
        }
        let mut of_eight = Vec::new();
        evaluator.visit(&alone, eight.iter().copied(), |_, d| {
            of_eight.push(d);
            true
        });
        let compare_eight = |path: &Path, sample: &Sample| {
            let mut found = Vec::new();
            evaluator.visit(sample, eight.iter().copied(), |_, d| {
                found.push(d);
                true
            });
            assert_eq!(found, of_eight, "{id} {path:?}: {adders:?}");
        };
        let mut paths: Vec<&(Path, Sample)> = abreast.iter().collect();
        if turn % 2 == 1 {
            paths.reverse();
        }
        for (path, sample) in paths {
            compare_eight(path, sample);
            let mut at = 0;
            let of_path = evaluator.visit(sample, which(sample), |dot, d| {
                let hex = |bits| id.d.hex(bits);
                assert!(d == wanted[at], "{id} {path:?} dot {dot}: {}, alone {}: {adders:?}", hex(d), hex(wanted[at]));
                at += 1;
                true
            });
            assert_eq!((at, of_path), (wanted.len(), exact), "{id} {path:?}");
            compare_eight(path, sample);
        }
        count += wanted.len();
    }
    count
}

#[test]
#[allow(clippy::print_stdout)]
fn dots_side_by_side_have_the_bits_that_they_have_alone() {
    let mut random = Random(9);
    let made = Model::parse("levels.toml", FILE, None).unwrap_or_else(|error| panic!("{error}"));
    let own = made.units.iter().flat_map(|unit| &unit.operations).map(|id| (&made, id.clone()));
    let mut compared = 0;
    for (model, id) in own.chain(distinct_operations()) {
        let (unit, mut plan) = model.plan(&id).unwrap();
        if id.shape.sizes().2 > 64 {
            continue;
        }
        let mut used: Vec<usize> = plan.nodes.iter().map(|node| node.adder).collect();
        used.sort_unstable();
        used.dedup();
        let own = |adder: usize| used.iter().position(|used| *used == adder).unwrap();
        plan.nodes.iter_mut().for_each(|node| node.adder = own(node.adder));
        let adders: Vec<Adder> = used.iter().map(|adder| model.adders[*adder].clone()).collect();
        compared += compare(&adders, unit.flush, &Arc::new(plan), &id, &mut random);
    }
    println!("{compared} dots");
    assert!(compared > 200_000, "{compared}");
}
