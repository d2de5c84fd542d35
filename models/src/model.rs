//! The types of a model: adders, the trees that join them, and where each value comes from.

use std::{borrow::Borrow, collections::BTreeMap};

use mxprobe_api::{Error, Format, OperationId, OperationSet};

use crate::{
    adder::{Adder, Output, Scale},
    provenance::{Origin, Provenance},
    tree::{Plan, Term, Tree},
};

/// The version of the file format this crate reads; `schema` in a file.
pub const SCHEMA: &str = "mxprobe-model/1";

/// An executable description of a device: its operations and the arithmetic behind them.
#[derive(Clone, Debug)]
pub struct Model {
    /// The name that selects it: `h100`.
    pub name: String,
    /// The variant of the file that this is, if any.
    pub variant: Option<String>,
    /// The device's name for people.
    pub title: String,
    /// The manufacturer.
    pub vendor: String,
    /// The key that programs use: `sm_90a`.
    pub fingerprint: String,
    /// Part numbers and other names.
    pub aliases: Vec<String>,
    /// Where values come from: key and text.
    pub sources: BTreeMap<String, String>,
    /// The variants that the file offers, by name.
    pub variants: BTreeMap<String, Variant>,
    /// The adders that the units use.
    pub adders: Vec<Adder>,
    /// The units.
    pub units: Vec<Unit>,
    /// Every operation of every unit.
    pub operations: OperationSet,
}

/// Another reading of the same unit, for cases in which sources disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// A description of the change.
    pub about: String,
    /// A key of the model's sources.
    pub source: String,
}

/// The arithmetic shared by some operations: one tree.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The name that variants refer to it by.
    pub name: Option<String>,
    /// The operations that compute this way.
    pub operations: Vec<OperationId>,
    /// The tree as written in the file.
    pub tree: String,
    pub(crate) parsed: Tree,
    /// Which subnormal operands are read as zero.
    pub flush: Flush,
    /// A remark from the file, for people.
    pub note: Option<String>,
    /// Where the values come from.
    pub provenance: Provenance,
}

/// How operands are read: whose subnormals as zero (DAZ), as which zero, and in which format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Subnormals of A.
    pub a: bool,
    /// Subnormals of B.
    pub b: bool,
    /// Subnormals of C.
    pub c: bool,
    /// They become +0 whatever their sign.
    pub to_positive: bool,
    /// The format to which A and B are converted before they are multiplied: a subnormal of theirs that is a normal
    /// number there counts as one.
    pub converted: Option<Format>,
}

impl Flush {
    /// Whether subnormals of an operand in this format are normal numbers of the format to which it is converted.
    #[must_use]
    pub fn normalises(&self, format: Format) -> bool {
        let least = |format: Format| format.as_float().map(|float| float.min_exponent());
        let fraction_bits = format.fraction_bits().cast_signed();
        let (own, converted) = (least(format), self.converted.and_then(least));
        own.zip(converted).is_some_and(|(own, converted)| fraction_bits > 0 && converted <= own - fraction_bits)
    }
}

impl Model {
    /// The unit of an operation, if the model has it.
    #[must_use]
    pub fn unit(&self, id: &OperationId) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.operations.contains(id))
    }

    /// Replaces a unit's tree, written as in a model file.
    ///
    /// # Errors
    /// If the tree does not parse, names an adder that the model lacks, or does not fit one of the unit's operations.
    /// The unit is then unchanged.
    ///
    /// # Panics
    /// If `unit` is out of range.
    pub fn set_tree(&mut self, unit: usize, tree: &str) -> Result<(), Error> {
        let names: Vec<&str> = self.adders.iter().map(|adder| adder.name.as_str()).collect();
        let wrong = |error: String| Error::invalid(format!("{}: `{tree}`: {error}", self.name));
        let parsed = Tree::parse(tree, &names).map_err(wrong)?;
        for id in &self.units[unit].operations {
            let plan = parsed.plan(id.shape.sizes().2).map_err(wrong)?;
            check_plan(id, &plan, &self.adders).map_err(|error| wrong(format!("{id}: {error}")))?;
        }
        let unit = &mut self.units[unit];
        (unit.tree, unit.parsed) = (tree.to_owned(), parsed);
        Ok(())
    }

    /// The unit of an operation, and its plan for the operation's k.
    #[must_use]
    pub fn plan(&self, id: &OperationId) -> Option<(&Unit, Plan)> {
        let unit = self.unit(id)?;
        Some((unit, unit.plan(id.shape.sizes().2)?))
    }
}

impl Unit {
    /// A unit of some operations, with its tree written as in a model file and `adders` naming the adders by position.
    ///
    /// # Errors
    /// If the tree does not parse.
    pub fn new(
        tree: &str,
        adders: &[&str],
        operations: Vec<OperationId>,
        flush: Flush,
        origin: Origin,
    ) -> Result<Self, Error> {
        let parsed = Tree::parse(tree, adders).map_err(|error| Error::invalid(format!("`{tree}`: {error}")))?;
        let provenance = Provenance { origin, exceptions: BTreeMap::new() };
        Ok(Self { name: None, operations, tree: tree.to_owned(), parsed, flush, note: None, provenance })
    }

    /// The fused additions of one dot of `k` products, or `None` if the tree adds nothing for this `k`.
    #[must_use]
    pub fn plan(&self, k: usize) -> Option<Plan> {
        self.parsed.plan(k).ok()
    }
}

/// The plan of a tree, written as in a model file, for dots of `k` products. Its nodes refer to `adders` by position.
///
/// # Errors
/// If the tree does not parse or does not fit `k`.
pub fn plan_of(tree: &str, adders: &[&str], k: usize) -> Result<Plan, Error> {
    let wrong = |error: String| Error::invalid(format!("`{tree}`: {error}"));
    Tree::parse(tree, adders).map_err(wrong)?.plan(k).map_err(wrong)
}

/// Checks that a plan fits an operation's formats and block scales.
pub(crate) fn check_plan(id: &OperationId, plan: &Plan, adders: &[impl Borrow<Adder>]) -> Result<(), String> {
    let last = plan.nodes.last().map(|node| adders[node.adder].borrow());
    let output = match last.map(|adder| adder.output) {
        Some(Output::Float { format, .. } | Output::Integer { format, .. }) => format,
        _ => return Err("the tree's last adder gives no format".into()),
    };
    if output != id.d {
        return Err(format!("the tree gives {output}, and d is {}", id.d));
    }
    let integers = [id.a, id.b, id.c, id.d].iter().filter(|format| format.is_integer()).count();
    if !matches!(integers, 0 | 4) {
        return Err("integer and floating formats are mixed".into());
    }
    for node in &plan.nodes {
        let adder = adders[node.adder].borrow();
        if adder.scale != Scale::Sum {
            continue;
        }
        let products = || node.terms.iter().filter_map(as_product);
        if products().count() < node.terms.len() {
            return Err(format!("adder {} scales its sum and has terms other than products", adder.name));
        }
        let block = id
            .block_scale()
            .ok_or_else(|| format!("adder {} scales its sum; the operation has no block scale", adder.name))?
            .block;
        let first = products().next().unwrap_or(0) / block;
        if products().any(|k| k / block != first) {
            return Err(format!("adder {} sums products of several scale blocks", adder.name));
        }
    }
    Ok(())
}

fn as_product(term: &Term) -> Option<usize> {
    if let Term::Product(k) = term { Some(*k) } else { None }
}
