//! Tracing one element through a recipe, step by step, by the exact evaluator alone: independent of how whole matrices
//! are computed.

use std::{collections::BTreeMap, fmt::Write as _};

use mxprobe_api::{Elements, Error, Format};

use super::{
    divide::{Addend, Run, length},
    epilogue::Inputs,
    expression::{Expression, Factor},
    gather::check_scales,
    program::Program,
    sum::Sum,
    types::{MergeOrder, Recipe, Rest, Start},
};
use crate::{
    adder::Adder,
    exact::{Bits, Dot, Exact, Fused, Step, fuse},
    model::Model,
    trace::Trace,
};

/// The computation of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementTrace {
    /// The steps in words.
    pub lines: Vec<String>,
    /// The format of the element.
    pub format: Format,
    /// Its bits.
    pub bits: u64,
}

/// The additions inside the unit are shown for at most this many operations; for more, only each operation's result.
const SHOWN_OPERATIONS: usize = 4;

impl Program {
    /// Traces one element of D, whatever m and n are. `dot` has any number of products in the operation's formats, with
    /// the scales of whole blocks, and c of [`c_format`](Self::c_format). The model is the one that the program was
    /// made from.
    ///
    /// # Errors
    /// As [`multiply`](Self::multiply) for one element; and if the numbers of elements of A and B, or of scales, do not
    /// fit k.
    pub fn trace(
        &self,
        recipe: &Recipe,
        model: &Model,
        dot: Dot<'_>,
        inputs: &BTreeMap<String, Elements>,
    ) -> Result<ElementTrace, Error> {
        let k = dot.a.len();
        let block = self.id().block_scale().map(|scale| scale.block);
        let scales = block.map_or(0, |block| k.div_ceil(block));
        let found = dot.scales.map_or((0, 0), |(a, b)| (a.len(), b.len()));
        if dot.b.len() != k || found != (scales, scales) {
            return Err(Error::invalid(format!(
                "a dot of {k} elements of A has {} of B and {} and {} scales, not {scales} of each",
                dot.b.len(),
                found.0,
                found.1
            )));
        }
        if !self.case().shapes.k.contains(k) {
            return Err(Error::invalid(format!("case {} does not hold for k = {k}", self.case().name)));
        }
        let step = self.id().shape.sizes().2;
        let inputs = Inputs::new(self.case(), inputs, (1, 1))?;
        let shows_all = k.div_ceil(step) <= SHOWN_OPERATIONS;
        let mut walk = Walk { program: self, model, dot, shows_all, lines: Vec::new() };
        let whole: Run = std::iter::once(0..k).filter(|run| !run.is_empty()).collect();
        let acc = walk.sum(0, &whole, true, "")?;
        let mut lines = walk.lines;
        let (format, bits) = match &self.case().epilogue {
            None => acc,
            Some(epilogue) => {
                let c = (self.c_format(), dot.c);
                let given = |name: &str| inputs.of(name, (0, 0), 1);
                Stored { adders: &recipe.adders, acc, c, given: &given }.sum(epilogue, &mut lines)
            }
        };
        lines.push(format!("d = {}", shown((format, bits))));
        Ok(ElementTrace { lines, format, bits })
    }
}

/// The state of an element's evaluation through the levels.
struct Walk<'a> {
    program: &'a Program,
    model: &'a Model,
    dot: Dot<'a>,
    shows_all: bool,
    lines: Vec<String>,
}

impl Walk<'_> {
    fn sum(&mut self, level: usize, run: &Run, first: bool, indent: &str) -> Result<Bits, Error> {
        let Some(stage) = self.program.stages().get(level) else {
            let is_c = first && self.program.case().start == Start::C;
            let start = if is_c { self.dot.c } else { 0 };
            return self.chain(run, (self.program.id().c, start), indent);
        };
        let (slices, left) = stage.parts.slices(run, stage.rest);
        let inner = format!("{indent}  ");
        let mut partials = Vec::with_capacity(slices.len());
        for (at, slice) in slices.iter().enumerate() {
            self.lines.push(format!("{indent}slice {at}: {}", runs(slice)));
            let mut sum = self.sum(level + 1, slice, first && at == 0, &inner)?;
            if let Some(partial) = &stage.partial {
                sum = self.add(partial, &[("p", sum)], &inner);
            }
            partials.push(sum);
        }
        let start = match stage.start {
            Start::First => None,
            Start::C if first => Some(("c", (self.program.c_format(), self.dot.c))),
            Start::Zero | Start::C => Some(("+0", (stage.add.format(), 0))),
        };
        let mut names: Vec<String> = (0..partials.len()).map(|at| format!("p{at}")).collect();
        if let Some((name, bits)) = start {
            // Counts as another partial sum, before the first one that is added.
            let place = if stage.merge == MergeOrder::Reverse { partials.len() } else { 0 };
            partials.insert(place, bits);
            names.insert(place, name.to_owned());
        }
        let mut earlier: Vec<Bits> = Vec::new();
        for (one, other) in stage.merge.additions(partials.len()) {
            let of = |addend: Addend| match addend {
                Addend::Partial(at) => (names[at].clone(), partials[at]),
                Addend::Earlier(at) => (format!("s{at}"), earlier[at]),
            };
            let ((one, a), (other, b)) = (of(one), of(other));
            let sum = self.add(&stage.add, &[(&one, a), (&other, b)], indent);
            if let Some(line) = self.lines.last_mut() {
                *line = format!("{indent}s{} = {}", earlier.len(), line.trim_start());
            }
            earlier.push(sum);
        }
        let mut merged = earlier.last().copied().unwrap_or(partials[0]);
        if merged.0 != stage.add.format() {
            merged = self.add(&stage.add, &[("p0", merged)], indent);
        }
        match stage.rest {
            _ if left.is_empty() => Ok(merged),
            Rest::Chained => {
                self.lines.push(format!("{indent}the rest, from the merged sum: {}", runs(&left)));
                self.chain(&left, merged, &inner)
            }
            Rest::Divided | Rest::Added => {
                self.lines.push(format!("{indent}the rest: {}", runs(&left)));
                let sum = self.chain(&left, (self.program.id().c, 0), &inner)?;
                Ok(self.add(&stage.add, &[("merged", merged), ("rest", sum)], indent))
            }
        }
    }

    /// Chains the unit's operations over some k.
    fn chain(&mut self, run: &Run, (_, start): Bits, indent: &str) -> Result<Bits, Error> {
        let id = self.program.id();
        let step = id.shape.sizes().2;
        let all: Vec<usize> = run.iter().cloned().flatten().collect();
        let scale = id.block_scale();
        check_scales(run, self.dot.a.len(), scale.map_or(1, |scale| scale.block))?;
        let mut c = start;
        // Without products, one operation on zeros.
        let groups = if all.is_empty() { vec![&all[..]] } else { all.chunks(step).collect() };
        for (at, group) in groups.into_iter().enumerate() {
            let padded = |from: &[u64]| -> Vec<u64> {
                group.iter().map(|k| from[*k]).chain(std::iter::repeat(0)).take(step).collect()
            };
            let (a, b) = (padded(self.dot.a), padded(self.dot.b));
            let scales = scale.zip(self.dot.scales).map(|(rule, (of_a, of_b))| {
                let of = |from: &[u64]| -> Vec<u64> {
                    let of_block = |first: usize| group.get(first).map_or(rule.format.one(), |k| from[k / rule.block]);
                    (0..step).step_by(rule.block).map(of_block).collect()
                };
                (of(of_a), of(of_b))
            });
            let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
            let dot = Dot { a: &a, b: &b, c, scales };
            let trace = Trace::of(self.model, id, dot).expect("the program's model has the operation");
            let group: Run = at_runs(group);
            self.lines.push(format!("{indent}{}, from {}", runs(&group), shown((id.c, c))));
            if self.shows_all {
                let text = trace.text(self.model, id, dot);
                self.lines.extend(text.lines().map(|line| format!("{indent}  {line}")));
            } else {
                self.lines.push(format!("{indent}  operation {at} gives {}", shown((id.d, trace.result))));
            }
            c = trace.result;
        }
        Ok((id.d, c))
    }

    /// Performs one addition outside the unit.
    fn add(&mut self, sum: &Sum, terms: &[(&str, Bits)], indent: &str) -> Bits {
        let fused: Vec<Fused> = terms.iter().map(|(_, bits)| Fused(*bits, None)).collect();
        let names: Vec<String> = terms.iter().map(|(name, bits)| format!("{name} ({})", shown(*bits))).collect();
        addition(sum.adder(), &names.join(", "), &fused, indent, &mut self.lines)
    }
}

/// Performs an addition and appends its line: the exact sum, and the rounded result.
fn addition(adder: &Adder, terms: &str, fused: &[Fused], indent: &str, lines: &mut Vec<String>) -> Bits {
    let mut steps: Vec<Step> = Vec::new();
    let bits = fuse(adder, fused, &mut steps);
    let format = adder.output_format().expect("an adder outside of a unit gives a format");
    let exact = steps.iter().find_map(|step| if let Step::Sum(exact) = step { Some(exact.to_string()) } else { None });
    let exact = exact.unwrap_or_else(|| "NaN or an infinity".to_owned());
    lines.push(format!("{indent}{}({terms}): {exact}, {}", adder.name, shown((format, bits))));
    (format, bits)
}

/// The inputs for evaluating a stored element.
struct Stored<'a> {
    adders: &'a [Adder],
    acc: Bits,
    c: Bits,
    given: &'a dyn Fn(&str) -> Bits,
}

impl Stored<'_> {
    fn sum(&self, expression: &Expression, lines: &mut Vec<String>) -> Bits {
        let adder = &self.adders[expression.adder];
        let zero = (adder.output_format().unwrap_or(Format::F32), 0);
        let mut terms = String::new();
        let mut fused = Vec::new();
        for (at, (one, other)) in expression.terms.iter().enumerate() {
            let mut factor = |factor: &Factor| self.factor(factor, zero, lines);
            let term = (factor(one), other.as_ref().map(&mut factor));
            fused.push(Fused(term.0.1, term.1.as_ref().map(|(_, bits)| *bits)));
            let _ = write!(terms, "{}{}", if at == 0 { "" } else { ", " }, term.0.0);
            if let Some((name, _)) = term.1 {
                let _ = write!(terms, " * {name}");
            }
        }
        addition(adder, &terms, &fused, "", lines)
    }

    /// A factor in words, and its bits.
    fn factor(&self, factor: &Factor, zero: Bits, lines: &mut Vec<String>) -> (String, Bits) {
        let named = |name: &str, bits: Bits| (format!("{name} ({})", shown(bits)), bits);
        match factor {
            Factor::Acc => named("acc", self.acc),
            Factor::C => named("c", self.c),
            Factor::PositiveZero => ("+0".to_owned(), zero),
            Factor::Input(name) => named(name, (self.given)(name)),
            Factor::Sum(sum) => {
                let bits = self.sum(sum, lines);
                (shown(bits), bits)
            }
            Factor::Call(function, of) => {
                let (name, (format, bits)) = self.factor(of, zero, lines);
                (format!("{}({name})", function.name()), (format, function.of(format, bits)))
            }
        }
    }
}

/// Groups consecutive k into runs.
fn at_runs(all: &[usize]) -> Run {
    let mut found: Run = Vec::new();
    for k in all {
        match found.last_mut() {
            Some(last) if last.end == *k => last.end += 1,
            _ => found.push(*k..k + 1),
        }
    }
    found
}

/// Formats runs as `k 0…63, 128…191`.
fn runs(run: &Run) -> String {
    if length(run) == 0 {
        return "no k".to_owned();
    }
    let word = |run: &std::ops::Range<usize>| {
        if run.len() == 1 { run.start.to_string() } else { format!("{}…{}", run.start, run.end - 1) }
    };
    let shown: Vec<String> = run.iter().take(SHOWN_RUNS).map(word).collect();
    let more = if run.len() > SHOWN_RUNS { format!(", … {}", word(&run[run.len() - 1])) } else { String::new() };
    format!("k {}{more}", shown.join(", "))
}

/// The number of runs shown; of more, the last is shown as well.
const SHOWN_RUNS: usize = 4;

/// Bits and their value.
fn shown((format, bits): Bits) -> String {
    let value = Exact::decode(format, bits).map_or_else(|| format.to_f64(bits).to_string(), |exact| exact.to_string());
    format!("{format} {} = {value}", format.hex(bits))
}
