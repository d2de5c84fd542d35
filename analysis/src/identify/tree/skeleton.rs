//! The readings of an observed summation tree: which nodes share an adder, and which further steps it may hide.
//!
//! Experiments on the order show which leaves meet before which. They do not show whether a product is rounded before
//! it is added, whether the products of a block are summed on a grid of their own before c joins them, or whether a
//! result is cut in a second step. Each such reading is a skeleton: a tree over adders whose parameters are still to be
//! found.

use std::{collections::HashSet, sync::Arc};

use mxprobe_api::OperationId;
use mxprobe_models::Plan;

use super::{
    expression::{Expression, Node},
    rebuilt::Order,
    written::nested,
};
use crate::probes::{Joint, Leaf, Tree};

/// The role of an adder in a skeleton, which limits the parameters that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::identify) enum Role {
    /// Gives d.
    Root,
    /// Adds several terms and passes the sum to another adder, rounded or not.
    Inner,
    /// Adds products on a grid of their own and passes the sum on unrounded.
    Group,
    /// Rounds one product.
    Product,
}

/// A tree over adders without parameters.
#[derive(Clone, Debug)]
pub(in crate::identify) struct Skeleton {
    /// The tree.
    pub(in crate::identify) expression: Expression,
    /// The same tree in the form that the evaluator takes.
    pub(in crate::identify) plan: Arc<Plan>,
    /// The adders' names.
    pub(in crate::identify) names: Vec<String>,
    /// The role of each adder.
    pub(in crate::identify) roles: Vec<Role>,
}

impl Skeleton {
    /// Returns a tree with adders that are named by their numbers.
    pub(in crate::identify) fn numbered(expression: Expression, roles: Vec<Role>) -> Self {
        let name = |at: usize| if at == 0 { "sum".to_owned() } else { format!("sum-{at}") };
        Self { plan: Arc::new(expression.plan()), expression, names: (0..roles.len()).map(name).collect(), roles }
    }

    /// Returns the same adders in another tree.
    pub(in crate::identify) fn with(&self, expression: Expression) -> Self {
        Self { plan: Arc::new(expression.plan()), expression, ..self.clone() }
    }

    /// Returns the tree as nested calls without folds, which takes less time than [`Skeleton::text`].
    pub(in crate::identify) fn unfolded(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        self.expression.plain(&names, &[])
    }

    /// Returns the tree as in a model file, for dots of `k` products.
    pub(in crate::identify) fn text(&self, k: usize) -> String {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        self.expression.text(&names, k)
    }

    /// Returns the products that meet exactly one other term: each may be rounded alone before that.
    pub(in crate::identify) fn joining_one(&self) -> Vec<usize> {
        self.expression.joining_one()
    }

    /// Returns the same tree with these products rounded alone before they meet anything, as the last terms of the adders of
    /// which `is_last` holds.
    pub(in crate::identify) fn alone(&self, products: &[usize], is_last: &[bool]) -> Self {
        self.with(products.iter().fold(self.expression.clone(), |tree, product| tree.alone(*product, is_last)))
    }

    /// Returns the number of products in the first of its groups, if it has groups.
    pub(in crate::identify) fn group_size(&self) -> Option<usize> {
        let group = self.roles.iter().position(|role| *role == Role::Group)?;
        self.plan.nodes.iter().find(|node| node.adder == group).map(|node| node.terms.len())
    }

    /// Returns the additions of two terms or more.
    pub(in crate::identify) fn nodes(&self) -> Vec<Node> {
        let mut found = Vec::new();
        self.expression.nodes(2, &mut found);
        found
    }

    /// Returns the additions by this adder, those of a single term, too.
    pub(in crate::identify) fn nodes_of(&self, adder: usize) -> Vec<Node> {
        let mut found = Vec::new();
        self.expression.nodes(1, &mut found);
        found.retain(|node| node.adder == adder);
        found
    }

    /// Returns the products that are rounded alone.
    pub(in crate::identify) fn rounded_alone(&self) -> Vec<usize> {
        self.expression.rounded_alone()
    }

    /// Returns the same tree with this product no longer rounded alone.
    pub(in crate::identify) fn together(&self, product: usize) -> Self {
        self.with(self.expression.together(product))
    }

    /// Returns the most terms that c, or the sum that contains it, meets in an addition by this adder.
    pub(in crate::identify) fn beside_c(&self, adder: usize) -> usize {
        self.expression.beside_c(adder)
    }

    /// Returns the pairs of products that meet first, whether or not they are rounded alone before.
    pub(in crate::identify) fn begun(&self) -> Vec<(usize, usize)> {
        self.expression.begun()
    }

    /// Returns the same tree with two products exchanged, which changes the NaN that comes first.
    pub(in crate::identify) fn exchanged(&self, one: usize, other: usize) -> Self {
        self.with(self.expression.exchanged(one, other))
    }

    /// Returns the same sums with the arguments of one adder in another order, which changes the NaN that comes first;
    /// `None` if the order is already this one.
    pub(in crate::identify) fn turned(&self, adder: usize, order: &Order) -> Option<Self> {
        let expression = self.expression.turned(adder, order);
        (expression != self.expression).then(|| self.with(expression))
    }
}

/// The places at which results are rounded a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Nowhere,
    AtTheEnd,
    EachStep,
}

/// How a chain of products begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// The first two products meet in one addition.
    Together,
    /// One of them, the `second` or the first, is rounded, and then the other is added.
    Alone { second: bool },
    /// As `Alone`, but the product is added to +0.
    FromZero { second: bool },
}

/// How the products of one node are grouped before they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    None,
    /// All products in one group, which then meets c.
    Whole,
    /// Groups of this many neighbours.
    Neighbours(usize),
    /// This many groups, each of the products whose numbers have the same remainder.
    Remainders(usize),
}

/// One reading of a tree.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// All additions share one adder. Otherwise there is one each for blocks that hold c, for other blocks, and for
    /// sums without products with c and without it.
    tied: bool,
    rounds_products: bool,
    cut: Cut,
    start: Start,
    grouping: Grouping,
    /// The groups are added to each other before c.
    joined: bool,
}

const PLAIN: Reading = Reading {
    tied: true,
    rounds_products: false,
    cut: Cut::Nowhere,
    start: Start::Together,
    grouping: Grouping::None,
    joined: false,
};

/// Returns every reading of a tree, the simplest first.
pub(in crate::identify) fn readings(tree: &Tree, id: &OperationId) -> Vec<Skeleton> {
    let mut skeletons = Vec::new();
    let mut seen = HashSet::new();
    for reading in reading_list(tree, id) {
        let skeleton = Builder::new(reading).skeleton(tree);
        if let Some(skeleton) = skeleton
            && seen.insert((nested(&skeleton.plan), skeleton.roles.len()))
        {
            skeletons.push(skeleton);
        }
    }
    skeletons
}

/// Returns the readings to try for a tree, the simplest first; some of them may give the same skeleton.
fn reading_list(tree: &Tree, id: &OperationId) -> Vec<Reading> {
    let starts = [
        Start::Alone { second: false },
        Start::FromZero { second: false },
        Start::Alone { second: true },
        Start::FromZero { second: true },
    ];
    let widest = tree.nodes().iter().map(|node| products_of(node).len()).max().unwrap_or(0);
    let mut groupings = Vec::new();
    if widest >= 2 {
        groupings.push((Grouping::Whole, false));
        let sizes: Vec<usize> = (2..widest).filter(|size| widest.is_multiple_of(*size)).collect();
        for joined in [false, true] {
            groupings.extend(sizes.iter().map(|size| (Grouping::Neighbours(*size), joined)));
            groupings.extend(sizes.iter().map(|size| (Grouping::Remainders(*size), joined)));
        }
    }
    let narrow = id.d.bits() < 32;
    let cuts = if narrow { &[Cut::Nowhere, Cut::AtTheEnd, Cut::EachStep][..] } else { &[Cut::Nowhere][..] };
    let mut readings = Vec::new();
    for cut in cuts.iter().copied() {
        let plain = Reading { cut, ..PLAIN };
        readings.push(plain);
        readings.extend(starts.map(|start| Reading { start, ..plain }));
        readings.push(Reading { rounds_products: true, ..plain });
    }
    for cut in cuts.iter().copied() {
        let untied = Reading { tied: false, cut, ..PLAIN };
        readings.push(untied);
        readings.extend(starts.map(|start| Reading { start, ..untied }));
        readings.push(Reading { rounds_products: true, ..untied });
    }
    for cut in cuts.iter().copied() {
        for (grouping, joined) in &groupings {
            readings.push(Reading { grouping: *grouping, joined: *joined, cut, ..PLAIN });
        }
    }
    readings
}

/// Returns the products that are direct children of a node, in ascending order.
fn products_of(node: &Tree) -> Vec<usize> {
    let mut products: Vec<usize> = node
        .direct_leaves()
        .into_iter()
        .filter_map(|leaf| match leaf {
            Leaf::Product(k) => Some(k),
            Leaf::C => None,
        })
        .collect();
    products.sort_unstable();
    products
}

/// Builds the skeleton of one reading, and collects its adders.
struct Builder {
    reading: Reading,
    names: Vec<String>,
    roles: Vec<Role>,
}

impl Builder {
    fn new(reading: Reading) -> Self {
        Self { reading, names: Vec::new(), roles: Vec::new() }
    }

    /// Returns the number of the adder of this name, and adds it if it is new.
    fn adder(&mut self, name: &'static str, role: Role) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.roles.push(role);
            self.names.len() - 1
        })
    }

    /// Builds the skeleton of a tree; `None` if the tree is a single leaf and the reading adds nothing around it.
    fn skeleton(mut self, tree: &Tree) -> Option<Skeleton> {
        let mut expression = self.build(tree);
        if self.reading.cut == Cut::AtTheEnd {
            let cut = self.adder("cut", Role::Root);
            expression = Expression::Add(cut, vec![expression]);
        }
        let Expression::Add(root, _) = &expression else { return None };
        self.roles[*root] = Role::Root;
        let plan = Arc::new(expression.plan());
        Some(Skeleton { expression, plan, names: self.names, roles: self.roles })
    }

    /// Builds the expression of a tree.
    fn build(&mut self, tree: &Tree) -> Expression {
        match tree {
            Tree::Leaf(Leaf::C) => Expression::C,
            Tree::Leaf(Leaf::Product(k)) => Expression::Product(*k),
            Tree::Node { children, .. } => {
                let has_c = tree.leaves().contains(&Leaf::C);
                let products = products_of(tree);
                let name = match (self.reading.tied, products.is_empty(), has_c) {
                    (true, ..) | (false, false, true) => "sum",
                    (false, false, false) => "block",
                    (false, true, false) => "join",
                    (false, true, true) => "last",
                };
                let adder = self.adder(name, Role::Inner);
                let mut arguments = match (self.reading.start, &products[..]) {
                    (Start::Together, _) => self.terms(&products),
                    (start, [first, second]) if children.len() == 2 => Self::begun(adder, start, *first, *second),
                    _ => self.terms(&products),
                };
                let others: Vec<&Tree> =
                    children.iter().filter(|child| !matches!(child, Tree::Leaf(Leaf::Product(_)))).collect();
                arguments.extend(others.into_iter().map(|child| self.build(child)));
                let sum = Expression::Add(adder, arguments);
                if self.reading.cut == Cut::EachStep && has_c {
                    let cut = self.adder("cut", Role::Root);
                    return Expression::Add(cut, vec![sum]);
                }
                sum
            }
        }
    }

    /// Builds the start of a chain whose first two products are added one after the other.
    fn begun(adder: usize, start: Start, first: usize, second: usize) -> Vec<Expression> {
        let (of_zero, swapped) = match start {
            Start::Alone { second } => (false, second),
            Start::FromZero { second } => (true, second),
            Start::Together => (false, false),
        };
        let (first, second) = if swapped { (second, first) } else { (first, second) };
        let mut inner = vec![Expression::Product(first)];
        if of_zero {
            inner.push(Expression::Zero);
        }
        vec![Expression::Product(second), Expression::Add(adder, inner)]
    }

    /// Builds the terms for the products of one node, rounded or grouped as the reading says.
    fn terms(&mut self, products: &[usize]) -> Vec<Expression> {
        let plain = |products: &[usize]| products.iter().map(|k| Expression::Product(*k)).collect::<Vec<_>>();
        if self.reading.rounds_products {
            let name = if self.reading.tied { "sum" } else { "product" };
            let adder = self.adder(name, Role::Product);
            return products.iter().map(|k| Expression::Add(adder, vec![Expression::Product(*k)])).collect();
        }
        let groups: Vec<Vec<usize>> = match self.reading.grouping {
            Grouping::None => return plain(products),
            Grouping::Whole => vec![products.to_vec()],
            Grouping::Neighbours(size) => products.chunks(size).map(<[usize]>::to_vec).collect(),
            Grouping::Remainders(count) => (0..count.min(products.len()))
                .map(|from| products.iter().copied().skip(from).step_by(count).collect())
                .collect(),
        };
        if products.is_empty() {
            return Vec::new();
        }
        let adder = self.adder("group", Role::Group);
        let groups: Vec<Expression> = groups.iter().map(|group| Expression::Add(adder, plain(group))).collect();
        if self.reading.joined {
            let merge = self.adder("merge", Role::Group);
            return vec![Expression::Add(merge, groups)];
        }
        groups
    }
}

/// Returns the trees to try, the simplest first, if experiments on the order show nothing or only the blocks.
pub(in crate::identify) fn guesses(k: usize, blocks: &[Vec<usize>]) -> Vec<Tree> {
    let leaf = |k: &usize| Tree::Leaf(Leaf::Product(*k));
    let node = |children: Vec<Tree>| {
        let joint = if children.len() == 2 { Joint::Pair } else { Joint::Fused };
        Tree::Node { joint, children }
    };
    let chain = |blocks: &[Vec<usize>]| {
        blocks.iter().fold(Tree::Leaf(Leaf::C), |below, block| node(block.iter().map(leaf).chain([below]).collect()))
    };
    let cut_into =
        |size: usize| -> Vec<Vec<usize>> { (0..k).collect::<Vec<_>>().chunks(size).map(<[usize]>::to_vec).collect() };
    let mut trees = Vec::new();
    if blocks.len() > 1 || blocks.first().is_some_and(|block| block.len() > 1) {
        trees.push(chain(blocks));
    }
    let sizes = (1..=k).rev().filter(|size| k.is_multiple_of(*size) || *size <= 16);
    trees.extend(sizes.map(|size| chain(&cut_into(size))));
    // c last, after one sum of all products or after blocks of them.
    if k > 1 {
        let all: Vec<usize> = (0..k).collect();
        trees.push(node(vec![Tree::Leaf(Leaf::C), node(all.iter().map(leaf).collect())]));
        for size in (1..k).filter(|size| k.is_multiple_of(*size)) {
            let mut blocks = cut_into(size).into_iter();
            let first: Vec<Tree> = blocks.next().unwrap_or_default().iter().map(leaf).collect();
            let first = if let [only] = &first[..] { only.clone() } else { node(first) };
            let sum = blocks.fold(first, |below, block| node(block.iter().map(leaf).chain([below]).collect()));
            trees.push(node(vec![Tree::Leaf(Leaf::C), sum]));
        }
    }
    let mut seen: Vec<Tree> = Vec::new();
    for tree in trees {
        if !seen.contains(&tree) {
            seen.push(tree);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(tree: &Tree, operation: &str) -> Vec<String> {
        let id: OperationId = operation.parse().unwrap();
        readings(tree, &id).into_iter().map(|skeleton| skeleton.text(id.shape.sizes().2)).collect()
    }

    #[test]
    fn a_chain_of_blocks_has_the_readings_of_known_units() {
        let tree = guesses(16, &[(0..8).collect(), (8..16).collect()]).remove(0);
        let found = trees(&tree, "mma.m16n8k16.f32.f16.f16.f32");
        assert_eq!(found[0], "fold(c, all/8, sum(all, acc))");
        for wanted in [
            "fold(c, all/8, sum(group(all), acc))",
            "fold(c, all/8, sum(group(0..2), group(2..4), group(4..6), group(6..8), acc))",
            "fold(c, every(8, 0, 2, 4, 6, 1, 3, 5, 7)/8, sum(merge(group(0..4), group(4..8)), acc))",
        ] {
            assert!(found.iter().any(|tree| tree == wanted), "{wanted} is not among {found:#?}");
        }
        let narrow = trees(&tree, "mma.m16n8k16.bf16.bf16.bf16.bf16");
        assert!(narrow.iter().any(|tree| tree == "fold(c, all/8, cut(sum(all, acc)))"), "{narrow:#?}");
    }

    #[test]
    fn a_chain_of_products_may_begin_with_one_alone() {
        let pair = |children| Tree::Node { joint: Joint::Pair, children };
        let leaf = |k| Tree::Leaf(Leaf::Product(k));
        let chain = pair(vec![leaf(2), pair(vec![leaf(0), leaf(1)])]);
        let tree = pair(vec![Tree::Leaf(Leaf::C), chain]);
        let found = trees(&tree, "dot.m1n1k3.f32.f32.f32.f32");
        for wanted in ["fold(+0, all/1, sum(all, acc))", "fold(none, all/1, sum(all, acc))", "last(c, "] {
            assert!(found.iter().any(|tree| tree.contains(wanted)), "{wanted} is not among {found:#?}");
        }
    }
}
