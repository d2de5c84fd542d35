//! The most that one operation loses, over every choice of nonzero products and along every path to d.

use mxprobe_api::{Error, Format, OperationId};
use mxprobe_models::{Adder, Below, Model, Plan, Scale, Term};

use super::{
    lossless::Lossless,
    node::{Kind, Node, min_exponent},
    sides::{Counted, Loss, Sides, Signs},
};

/// The losses of a subtree.
struct Part {
    /// The kind of its result in general.
    kind: Kind,
    /// Its losses, by the kind of its result: a lone value that a node returns unchanged has the bits it had.
    states: Vec<State>,
    /// Relative to the sum of its magnitudes: the sum of ln(1 + loss) over the nodes on the worst path from a product,
    /// and from c.
    product_path: f64,
    c_path: Option<f64>,
}

/// The losses of a subtree when its result is of one kind.
struct State {
    kind: Kind,
    /// Indexed by the number of nonzero products: the total loss of its nodes; `None` if the result is a zero, or not of
    /// this kind.
    lost: Vec<Option<Loss>>,
}

impl Part {
    fn products(&self) -> usize {
        self.states[0].lost.len() - 1
    }

    /// The loss with this number of nonzero products, whatever the kind of the result.
    fn lost(&self, products: usize) -> Option<Loss> {
        self.states.iter().filter_map(|state| state.lost[products]).reduce(Loss::max)
    }
}

/// The losses that are found for each operation.
const COUNTED: [Counted; 4] =
    [Counted::All(Signs::Positive), Counted::All(Signs::Negative), Counted::All(Signs::Mixed), Counted::Outward];

/// One operation, decomposed for the analysis of its losses.
pub(super) struct Operation {
    id: OperationId,
    adders: Vec<Adder>,
    plan: Plan,
    reads_subnormal_c: bool,
    /// By [`COUNTED`], without and with a c.
    lost: Vec<[Lost; 2]>,
}

/// The losses of one operation.
pub(super) struct Lost {
    /// Indexed by the number of nonzero products, which may also be smaller.
    pub(super) of: Vec<Loss>,
    /// Along the worst path from a product: the sum of ln(1 + loss), relative to the sum of magnitudes.
    pub(super) product_path: f64,
    /// The same, along the worst path from c.
    pub(super) c_path: f64,
}

impl Operation {
    /// Analyses an operation of a model.
    ///
    /// # Errors
    /// If the model does not have this operation, or if its error has no bound: a sum may wrap, or the tree does not
    /// add each term exactly once.
    pub(super) fn new(model: &Model, id: &OperationId) -> Result<Self, Error> {
        let missing = || Error::invalid(format!("the model {} has no operation {id}", model.name));
        let (unit, plan) = model.plan(id).ok_or_else(missing)?;
        let mut operation = Self {
            id: id.clone(),
            adders: model.adders.clone(),
            plan,
            reads_subnormal_c: !unit.flush.c || id.c.is_integer(),
            lost: Vec::new(),
        };
        if !operation.uses_each_term_once() {
            return Err(Error::unsupported(format!(
                "{id}: its tree does not add every product and c once, so that the exact result is another sum"
            )));
        }
        if let Some(adder) = operation.wrapping() {
            return Err(Error::unsupported(format!(
                "{id}: sums of the adder {adder} may wrap, and nothing bounds the error of a sum that wraps"
            )));
        }
        if !id.is_integer() {
            let of = |counted: Counted| [false, true].map(|has_c| operation.find_lost(operation.kept(counted), has_c));
            operation.lost = COUNTED.map(of).into();
        }
        Ok(operation)
    }

    /// Its id.
    pub(super) fn id(&self) -> &OperationId {
        &self.id
    }

    /// Its loss with or without a nonzero c. Not available for integers.
    pub(super) fn lost(&self, counted: Counted, has_c: bool) -> &Lost {
        let place = COUNTED.iter().position(|other| *other == counted).expect("all are there");
        &self.lost[place][usize::from(has_c)]
    }

    fn find_lost(&self, counted: Counted, has_c: bool) -> Lost {
        let part = self.walk(counted, has_c);
        let mut most = Loss::default();
        let mut of: Vec<Loss> = Vec::new();
        for products in 0..=part.products() {
            most = most.max(part.lost(products).unwrap_or_default());
            of.push(most);
        }
        // A previous result that is read as zero if it is subnormal.
        if has_c && !self.reads_subnormal_c {
            let most = super::sides::power_of_two(min_exponent(self.id.c));
            of.iter_mut().for_each(|lost| lost.absolute = lost.absolute + Sides::toward_zero(most, counted));
        }
        Lost { of, product_path: part.product_path, c_path: part.c_path.unwrap_or(0.0) }
    }

    /// The losses to count for terms of these signs, which partial sums may not keep: the one's complement of a zero is
    /// negative.
    fn kept(&self, counted: Counted) -> Counted {
        let mut below = self.used().flat_map(|adder| [adder.below, adder.normalised_below]);
        let complements = below.any(|below| below == Below::OnesComplement);
        if complements && counted != Counted::Outward { Counted::All(Signs::Mixed) } else { counted }
    }

    /// The smallest exponent that bounds assume: the largest among those of the smallest normal values of results and
    /// c, and the floors.
    pub(super) fn least_exponent(&self) -> i32 {
        let of_c = min_exponent(self.id.c);
        let of = |adder: &Adder| {
            let floors: Vec<i32> = adder.grid.iter().filter_map(|rule| rule.exponent_floor).collect();
            floors
                .into_iter()
                .chain(adder.normalised_exponent_floor)
                .chain(adder.float_format().map(min_exponent))
                .max()
        };
        self.used().filter_map(of).fold(of_c, i32::max)
    }

    /// The rule that tells when nothing is lost, if one is known.
    pub(super) fn lossless(&self) -> Option<Lossless> {
        Lossless::of(self.used(), &self.id, self.reads_subnormal_c)
    }

    /// The formats of results.
    pub(super) fn formats(&self) -> impl Iterator<Item = Format> + '_ {
        self.used().filter_map(Adder::float_format)
    }

    /// Whether a product of magnitude 2^128 or more becomes an infinity.
    pub(super) fn has_product_overflow(&self) -> bool {
        self.used().any(|adder| adder.product_overflow)
    }

    /// Whether block scales multiply sums.
    pub(super) fn scales_sums(&self) -> bool {
        self.used().any(|adder| adder.scale == Scale::Sum)
    }

    fn used(&self) -> impl Iterator<Item = &Adder> {
        self.plan.nodes.iter().map(|node| &self.adders[node.adder])
    }

    /// Whether each product, c and each intermediate result is used by exactly one node.
    fn uses_each_term_once(&self) -> bool {
        let nodes = self.plan.nodes.len();
        let mut uses = vec![0; self.id.shape.sizes().2 + 1 + nodes];
        for term in self.plan.nodes.iter().flat_map(|node| &node.terms) {
            match term {
                Term::Product(index) => uses[1 + nodes + index] += 1,
                Term::C => uses[0] += 1,
                Term::Node(index) => uses[1 + index] += 1,
                Term::PositiveZero => {}
            }
        }
        // The last node is the result.
        uses[nodes] += 1;
        uses.iter().all(|count| *count == 1)
    }

    /// The name of an adder whose sums may wrap.
    fn wrapping(&self) -> Option<&str> {
        let mut results: Vec<Kind> = Vec::new();
        for plan_node in &self.plan.nodes {
            let adder = &self.adders[plan_node.adder];
            let kind = |term: &Term| match term {
                Term::Product(_) => Some(Kind::Product),
                Term::C => Some(Kind::Value(self.id.c)),
                Term::Node(index) => Some(results[*index]),
                Term::PositiveZero => None,
            };
            let kinds = plan_node.terms.iter().filter_map(kind).collect();
            let node = Node { adder, id: &self.id, kinds, terms: plan_node.terms.len() };
            if !node.holds_every_carry() {
                return Some(&adder.name);
            }
            results.push(node.result());
        }
        None
    }

    /// The loss of the last node's subtree. Each result is used once, since the plan is a tree.
    fn walk(&self, counted: Counted, has_c: bool) -> Part {
        let mut parts: Vec<Option<Part>> = Vec::new();
        for plan_node in &self.plan.nodes {
            let adder = &self.adders[plan_node.adder];
            let terms: Vec<Part> =
                plan_node.terms.iter().filter_map(|term| self.part(term, has_c, &mut parts)).collect();
            let kinds = terms.iter().map(|part| part.kind).collect();
            let node = Node { adder, id: &self.id, kinds, terms: plan_node.terms.len() };
            parts.push(Some(joined(&node, &terms, counted)));
        }
        parts.pop().flatten().expect("a plan has a node")
    }

    fn part(&self, term: &Term, has_c: bool, parts: &mut [Option<Part>]) -> Option<Part> {
        let nothing = Some(Loss::default());
        Some(match term {
            Term::Product(_) => {
                let kind = Kind::Product;
                let states = vec![State { kind, lost: vec![None, nothing] }];
                Part { kind, states, product_path: 0.0, c_path: None }
            }
            Term::C => {
                let kind = Kind::Value(self.id.c);
                let states = vec![State { kind, lost: vec![nothing.filter(|_| has_c)] }];
                Part { kind, states, product_path: 0.0, c_path: Some(0.0) }
            }
            Term::Node(index) => parts[*index].take().expect("a node of a tree has one parent"),
            Term::PositiveZero => return None,
        })
    }
}

/// Combines the subtrees of a node's terms.
fn joined(node: &Node<'_>, terms: &[Part], counted: Counted) -> Part {
    let products = terms.iter().map(Part::products).sum::<usize>();
    let state = |kind: Kind| State { kind, lost: vec![None; products + 1] };
    // The general kind comes first.
    let mut states = vec![state(node.result())];
    let most = |into: &mut Option<Loss>, found: Loss| *into = Some(into.map_or(found, |before| before.max(found)));
    // Indexed by the number of nonzero terms, then by the number of nonzero products.
    let mut lost: Vec<Vec<Option<Loss>>> = vec![vec![Some(Loss::default())]];
    for (at, term) in terms.iter().enumerate() {
        let others_zero = terms.iter().enumerate().all(|(other, part)| other == at || part.lost(0).is_none());
        for alone in term.states.iter().filter(|_| others_zero) {
            let own = node.of_one(alone.kind, counted);
            let keeps_kind = matches!(alone.kind, Kind::Value(_)) && node.passes(alone.kind);
            let kind = if keeps_kind { alone.kind } else { node.result() };
            let place = states.iter().position(|known| known.kind == kind).unwrap_or_else(|| {
                states.push(state(kind));
                states.len() - 1
            });
            for (count, before) in alone.lost.iter().enumerate() {
                if let Some(before) = before {
                    most(&mut states[place].lost[count], *before + own);
                }
            }
        }
        let width = lost[0].len() + term.products();
        let mut next = vec![vec![None; width]; lost.len() + 1];
        for (count, row) in lost.iter().enumerate() {
            for (before, found) in row.iter().enumerate().filter_map(|(at, found)| Some((at, (*found)?))) {
                if term.lost(0).is_none() {
                    most(&mut next[count][before], found);
                }
                for own in 0..=term.products() {
                    if let Some(of_term) = term.lost(own) {
                        most(&mut next[count + 1][before + own], found + of_term);
                    }
                }
            }
        }
        lost = next;
    }
    for (count, row) in lost.iter().enumerate().skip(2) {
        let own = node.of_several(count, counted);
        for (at, before) in row.iter().enumerate() {
            if let Some(before) = before {
                most(&mut states[0].lost[at], *before + own);
            }
        }
    }
    let worst = match terms {
        [] => Loss::default(),
        [one] => node.of_one(one.kind, counted),
        _ => node.of_several(terms.len(), counted),
    };
    let own = worst.relative.most().ln_1p();
    let product_path =
        terms.iter().filter(|term| term.products() > 0).map(|term| term.product_path).fold(0.0, f64::max);
    let c_path = terms
        .iter()
        .filter_map(|term| term.c_path)
        .fold(None, |most, path: f64| Some(most.map_or(path, |most: f64| most.max(path))));
    Part { kind: node.result(), states, product_path: product_path + own, c_path: c_path.map(|path| path + own) }
}
