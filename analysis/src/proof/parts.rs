//! Cuts a dot into parts that are compared one by one.
//!
//! A part ends in a rounded result and reads operands, c and the rounded results of earlier parts. If two models cut a
//! dot in the same way, and each part of one gives the same bits as its counterpart for every input, then the dots give
//! the same bits too: by induction, each part reads the same bits. The converse does not hold, since a part may differ
//! on a result that no earlier part can give; a witness is therefore always tried on whole dots.

use std::collections::{BTreeMap, BTreeSet};

use mxprobe_api::{Format, OperationId};
use mxprobe_models::{Plan, Term};

use super::{
    adder::NotCovered,
    circuit::{Circuit, Signal},
    conditions::{self, Conditions, Exponents},
    dot::{Arithmetic, Inputs, evaluate, sorted},
    logic::Logic,
    words::{Word, Words},
};

/// An input of a formula: its meaning and its bits.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The index of its part.
    pub part: usize,
    /// Its meaning in that part.
    pub place: Place,
    /// Its format.
    pub format: Format,
    /// Its bits, lowest first.
    pub bits: Word<Signal>,
}

/// The meaning of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// An element of A.
    A(usize),
    /// An element of B.
    B(usize),
    /// c.
    C,
    /// A scale of A.
    ScaleA(usize),
    /// A scale of B.
    ScaleB(usize),
    /// The rounded result of an earlier node.
    Result(usize),
}

impl Variable {
    /// A name for formulas: `part0_a3`.
    #[must_use]
    pub fn name(&self) -> String {
        let place = match self.place {
            Place::A(k) => format!("a{k}"),
            Place::B(k) => format!("b{k}"),
            Place::C => "c".into(),
            Place::ScaleA(block) => format!("scale_a{block}"),
            Place::ScaleB(block) => format!("scale_b{block}"),
            Place::Result(node) => format!("n{node}"),
        };
        format!("part{}_{place}", self.part)
    }
}

/// A part that represents all parts of its kind.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its nodes in the plans. The last one is rounded.
    pub nodes: Vec<usize>,
    /// The number of parts of this kind in the dot, including this one.
    pub count: usize,
}

/// How a dot is cut, and the inputs that its parts are compared on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The inputs that the question is about.
    pub conditions: Conditions,
    /// Whether earlier results are restricted to the values that they are known to be able to have.
    pub bounded: bool,
    /// Whether products that are rounded alone stay in the part that reads them.
    pub with_products: bool,
}

/// The question whether two models differ, as a circuit.
#[derive(Clone, Debug)]
pub struct Query {
    /// The operation.
    pub id: OperationId,
    /// The gates.
    pub circuit: Circuit,
    /// Its inputs.
    pub variables: Vec<Variable>,
    /// True for exactly the inputs on which a part differs.
    pub differs: Signal,
    /// The parts.
    pub parts: Vec<Part>,
    /// Whether the whole dot is one part, so that a difference in the part is a difference of the dot.
    pub whole: bool,
}

impl Query {
    /// The question, part by part if both models cut a dot in the same way, otherwise for the whole dot.
    ///
    /// # Errors
    /// The part of the models that is not covered, in words.
    pub fn new(models: [Arithmetic<'_>; 2], conditions: Conditions) -> Result<Self, NotCovered> {
        let cut = Cut { conditions, ..Cut::default() };
        Self::cut(models, cut).unwrap_or_else(|| Self::whole(models, conditions))
    }

    /// The question, part by part; `None` if the models cut a dot differently.
    ///
    /// # Errors
    /// The part of the models that is not covered, in words.
    pub fn cut(models: [Arithmetic<'_>; 2], cut: Cut) -> Option<Result<Self, NotCovered>> {
        let [one, other] = models;
        let parts = parts(&one, &other, cut)?;
        Some(Self::of(models, parts, cut, false, usize::MAX))
    }

    /// The question for dots in which all but the first `products` products of each part are +0·+0. If no such dot
    /// differs, other dots may.
    ///
    /// # Errors
    /// The part of the models that is not covered, in words.
    pub fn of_few(models: [Arithmetic<'_>; 2], conditions: Conditions, products: usize) -> Result<Self, NotCovered> {
        let [one, other] = models;
        let cut = Cut { conditions, ..Cut::default() };
        let parts = parts(&one, &other, cut);
        let whole = parts.is_none();
        Self::of(models, parts.unwrap_or_default(), cut, whole, products)
    }

    /// The question for the whole dot.
    ///
    /// # Errors
    /// The part of the models that is not covered, in words.
    pub fn whole(models: [Arithmetic<'_>; 2], conditions: Conditions) -> Result<Self, NotCovered> {
        Self::of(models, Vec::new(), Cut { conditions, ..Cut::default() }, true, usize::MAX)
    }

    fn of(
        models: [Arithmetic<'_>; 2],
        parts: Vec<Part>,
        cut: Cut,
        whole: bool,
        products: usize,
    ) -> Result<Self, NotCovered> {
        let id = models[0].id.clone();
        let mut query =
            Self { id, circuit: Circuit::new(), variables: Vec::new(), differs: Signal::FALSE, parts, whole };
        if whole {
            query.parts = vec![Part { nodes: Vec::new(), count: 1 }];
        }
        let nodes_of = |part: &Part, arithmetic: &Arithmetic<'_>| {
            if whole { (0..arithmetic.plan.nodes.len()).collect() } else { part.nodes.clone() }
        };
        for number in 0..query.parts.len() {
            let part = query.parts[number].clone();
            let mut inputs = query.inputs(number, &models[0], &nodes_of(&part, &models[0]), products);
            inputs.conditions = cut.conditions;
            let mut results = Vec::new();
            for arithmetic in &models {
                let nodes = nodes_of(&part, arithmetic);
                results.push(evaluate(&mut query.circuit, arithmetic, &nodes, &inputs)?);
            }
            let circuit = &mut query.circuit;
            let bits: Vec<Signal> = results[0].iter().zip(&results[1]).map(|(a, b)| circuit.xor(*a, *b)).collect();
            let mut differs = circuit.any(&bits);
            if cut.bounded {
                differs = query.where_possible(number, differs, &models);
            }
            if cut.conditions.finite {
                let never_nan = models.iter().all(|arithmetic| no_result_is_nan(arithmetic));
                differs = query.where_finite(number, differs, never_nan);
            }
            if cut.conditions.has_ranges() {
                differs = query.where_in_range(number, differs, &cut.conditions);
            }
            query.differs = query.circuit.or(query.differs, differs);
        }
        Ok(query)
    }

    /// Creates inputs for everything the nodes read; the operands of all but the first `products` products are +0.
    fn inputs(&mut self, part: usize, arithmetic: &Arithmetic<'_>, nodes: &[usize], products: usize) -> Inputs<Signal> {
        let id = arithmetic.id;
        let scale = id.block_scale();
        let mut read = BTreeSet::new();
        for term in nodes.iter().flat_map(|node| &arithmetic.plan.nodes[*node].terms) {
            match term {
                Term::Product(k) => {
                    read.extend([Place::A(*k), Place::B(*k)]);
                    if let Some(scale) = scale {
                        read.extend([Place::ScaleA(k / scale.block), Place::ScaleB(k / scale.block)]);
                    }
                }
                Term::C => {
                    read.insert(Place::C);
                }
                Term::Node(node) if !nodes.contains(node) => {
                    read.insert(Place::Result(*node));
                }
                Term::Node(_) | Term::PositiveZero => {}
            }
        }
        let mut inputs = Inputs::default();
        let kept: BTreeSet<Place> =
            read.iter().filter(|place| matches!(place, Place::A(_))).take(products).copied().collect();
        for place in read {
            let format = match place {
                Place::A(_) => id.a,
                Place::B(_) => id.b,
                Place::C => id.c,
                Place::ScaleA(_) | Place::ScaleB(_) => scale.map_or(id.a, |scale| scale.format),
                Place::Result(node) => {
                    arithmetic.adders[arithmetic.plan.nodes[node].adder].output_format().unwrap_or(id.d)
                }
            };
            let is_zero = match place {
                Place::A(k) | Place::B(k) => !kept.contains(&Place::A(k)),
                _ => false,
            };
            let bits = if is_zero {
                self.circuit.number(0, format.bits() as usize)
            } else {
                self.circuit.inputs(format.bits())
            };
            match place {
                Place::A(k) => inputs.a.insert(k, bits.clone()),
                Place::B(k) => inputs.b.insert(k, bits.clone()),
                Place::C => inputs.c.replace(bits.clone()),
                Place::ScaleA(block) => inputs.scale_a.insert(block, bits.clone()),
                Place::ScaleB(block) => inputs.scale_b.insert(block, bits.clone()),
                Place::Result(node) => inputs.results.insert(node, bits.clone()),
            };
            if !is_zero {
                self.variables.push(Variable { part, place, format, bits });
            }
        }
        inputs
    }

    /// Restricts `differs` to earlier results that both models can give for some dot, as far as is known.
    fn where_possible(&mut self, part: usize, differs: Signal, models: &[Arithmetic<'_>; 2]) -> Signal {
        let mut holds = differs;
        let variables: Vec<Variable> =
            self.variables.iter().filter(|variable| variable.part == part).cloned().collect();
        for variable in variables {
            let Place::Result(node) = variable.place else { continue };
            for bounds in models.iter().filter_map(|arithmetic| *arithmetic.bounds.get(node)?) {
                let possible = super::number::within(&mut self.circuit, variable.format, &variable.bits, bounds);
                holds = self.circuit.and(holds, possible);
            }
        }
        holds
    }

    /// Restricts `differs` to operands that are neither NaN nor infinite and, with `never_nan`, to earlier results that
    /// are not NaN.
    fn where_finite(&mut self, part: usize, differs: Signal, never_nan: bool) -> Signal {
        let mut holds = differs;
        for variable in self.variables.iter().filter(|variable| variable.part == part) {
            let number = super::number::read(&mut self.circuit, variable.format, &variable.bits);
            let is_result = matches!(variable.place, Place::Result(_));
            if !is_result || never_nan {
                holds = self.circuit.and_not(holds, number.nan);
            }
            if !is_result {
                holds = self.circuit.and_not(holds, number.infinite);
            }
        }
        holds
    }

    /// Restricts `differs` to operands with exponents in their ranges.
    fn where_in_range(&mut self, part: usize, differs: Signal, conditions: &Conditions) -> Signal {
        let mut holds = differs;
        for variable in self.variables.iter().filter(|variable| variable.part == part) {
            let Some(range) = range_of(conditions, variable.place) else { continue };
            let number = super::number::read(&mut self.circuit, variable.format, &variable.bits);
            let within = conditions::within(&mut self.circuit, range, &number);
            holds = self.circuit.and(holds, within);
        }
        holds
    }
}

/// The range of exponents of an input, if it is restricted.
fn range_of(conditions: &Conditions, place: Place) -> Option<Exponents> {
    match place {
        Place::A(_) => conditions.a,
        Place::B(_) => conditions.b,
        Place::C => conditions.c,
        Place::ScaleA(_) | Place::ScaleB(_) | Place::Result(_) => None,
    }
}

/// Whether finite operands and a finite c never give NaN: no addition has two terms that may be infinite.
fn no_result_is_nan(arithmetic: &Arithmetic<'_>) -> bool {
    arithmetic.plan.nodes.iter().all(|node| {
        let adder = &arithmetic.adders[node.adder];
        let may_be_infinite = |term: &&Term| match term {
            Term::Product(_) => adder.product_overflow,
            Term::Node(_) => true,
            Term::C | Term::PositiveZero => false,
        };
        node.terms.iter().filter(may_be_infinite).count() <= 1
    })
}

/// The parts of a dot, one of each kind, if both models cut it in the same way.
fn parts(one: &Arithmetic<'_>, other: &Arithmetic<'_>, cut: Cut) -> Option<Vec<Part>> {
    let (one_nodes, other_nodes) = (&one.plan.nodes, &other.plan.nodes);
    let is_rounded =
        |arithmetic: &Arithmetic<'_>, node: usize| arithmetic.adders[arithmetic.plan.nodes[node].adder].output_format();
    if one_nodes.len() != other_nodes.len() {
        return None;
    }
    for node in 0..one_nodes.len() {
        let sorted = |terms: &[Term]| -> Vec<Term> { sorted(terms).into_iter().map(|(_, term)| term).collect() };
        let same = sorted(&one_nodes[node].terms) == sorted(&other_nodes[node].terms);
        if !same || is_rounded(one, node) != is_rounded(other, node) {
            return None;
        }
    }
    let mut kinds: BTreeMap<Vec<String>, Part> = BTreeMap::new();
    let mut order = Vec::new();
    let last = one_nodes.len() - 1;
    let is_cut: Vec<bool> = (0..one_nodes.len())
        .map(|node| {
            let alone = matches!(one_nodes[node].terms[..], [Term::Product(_)]) && node != last;
            is_rounded(one, node).is_some() && !(cut.with_products && alone)
        })
        .collect();
    for node in (0..one_nodes.len()).filter(|node| is_cut[*node]) {
        let nodes = with_uncut(one.plan, &is_cut, node);
        let kind = kind(one, other, &nodes, cut);
        let part = kinds.entry(kind.clone()).or_insert_with(|| {
            order.push(kind);
            Part { nodes, count: 0 }
        });
        part.count += 1;
    }
    Some(order.iter().filter_map(|kind| kinds.remove(kind)).collect())
}

/// A node and the nodes below it that belong to its part, in the order of the plan.
fn with_uncut(plan: &Plan, is_cut: &[bool], node: usize) -> Vec<usize> {
    let mut found = BTreeSet::from([node]);
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        for term in &plan.nodes[node].terms {
            if let Term::Node(below) = term
                && !is_cut[*below]
                && found.insert(*below)
            {
                waiting.push(*below);
            }
        }
    }
    found.into_iter().collect()
}

/// The kind of a part: the adders of both models and the roles of the terms, which are named in the order in which they
/// are read. Equal kinds are equal questions.
fn kind(one: &Arithmetic<'_>, other: &Arithmetic<'_>, nodes: &[usize], cut: Cut) -> Vec<String> {
    let mut names: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut name = |sort: usize, index: usize| {
        let next = names.keys().filter(|(known, _)| *known == sort).count();
        *names.entry((sort, index)).or_insert(next)
    };
    // An earlier result may be infinite when c must not be.
    let c_is_apart = cut.conditions.finite || cut.conditions.c.is_some() || one.unit.flush.c || other.unit.flush.c;
    let block = one.id.block_scale().map_or(usize::MAX, |scale| scale.block);
    let mut words = Vec::new();
    for node in nodes {
        for (label, arithmetic) in [("one", one), ("other", other)] {
            let mut text = format!("{label} {}:", arithmetic.plan.nodes[*node].adder);
            for term in &arithmetic.plan.nodes[*node].terms {
                text += &match term {
                    Term::Product(k) => format!(" p{}/{}", name(0, *k), name(1, k / block)),
                    Term::PositiveZero => " +0".into(),
                    Term::C if c_is_apart => " c".into(),
                    // Here c is read like an earlier result of its format.
                    Term::C => format!(" {}{}", one.id.c, name(2, usize::MAX)),
                    Term::Node(below) => match nodes.iter().position(|inside| inside == below) {
                        Some(place) => format!(" n{place}"),
                        None => {
                            let format = arithmetic.adders[arithmetic.plan.nodes[*below].adder].output_format();
                            let format = format.map_or_else(String::new, |format| format.to_string());
                            let bounds = |arithmetic: &Arithmetic<'_>| arithmetic.bounds.get(*below).copied().flatten();
                            let bounds = cut.bounded.then(|| [one, other].map(bounds));
                            format!(
                                " {format}{}{}",
                                name(2, *below),
                                bounds.map_or_else(String::new, |b| format!("{b:?}"))
                            )
                        }
                    },
                };
            }
            words.push(text);
        }
    }
    words
}
