//! Summation trees over numbered adders, and trees derived from them.

use std::sync::Arc;

use mxprobe_models::{Plan, PlanNode, Term};

use crate::{dots::Dot, probes::Leaf};

/// A summation tree whose adders are numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::identify) enum Expression {
    /// c.
    C,
    /// The constant +0.
    Zero,
    /// The product at this k.
    Product(usize),
    /// One fused addition.
    Add(usize, Vec<Expression>),
}

/// An addition of two terms or more.
#[derive(Clone, Debug)]
pub(in crate::identify) struct Node {
    pub(in crate::identify) adder: usize,
    /// The leaves below each argument.
    pub(in crate::identify) parts: Vec<Vec<Leaf>>,
}

/// An order of the arguments of an addition.
#[derive(Clone, Debug)]
pub(in crate::identify) enum Order {
    /// Arguments without c before those with it.
    ProductsFirst,
    /// Arguments with c before those without.
    ProductsLast,
    /// The reverse of the current order.
    Reversed,
    /// Single products in ascending order of k, in the places of single products.
    Ascending,
    /// The same in descending order.
    Descending,
    /// The argument with c after this many of the others.
    CAfter(usize),
    /// The arguments at these places exchanged, where there are both.
    Exchanged(usize, usize),
    /// Arguments without c by the rank of the first of their products, in the places of such arguments.
    Ranked(Arc<[usize]>),
}

impl Order {
    /// The orders that concern all arguments of an addition.
    pub(in crate::identify) const WHOLE: [Self; 5] =
        [Self::ProductsFirst, Self::ProductsLast, Self::Reversed, Self::Ascending, Self::Descending];
}

/// Sorts those of some arguments that have a key, which keep their places among the others.
fn sort_some<K: Ord>(arguments: &mut [Expression], key: impl Fn(&Expression) -> Option<K>) {
    let mut sorted: Vec<(K, Expression)> =
        arguments.iter().filter_map(|argument| Some((key(argument)?, argument.clone()))).collect();
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    let places = arguments.iter_mut().filter(|argument| key(argument).is_some());
    places.zip(sorted).for_each(|(place, (_, argument))| *place = argument);
}

impl Expression {
    /// Returns every product below, in the order of the leaves.
    pub(in crate::identify) fn products(&self) -> Vec<usize> {
        fn collect(tree: &Expression, found: &mut Vec<usize>) {
            match tree {
                Expression::C | Expression::Zero => {}
                Expression::Product(k) => found.push(*k),
                Expression::Add(_, arguments) => arguments.iter().for_each(|argument| collect(argument, found)),
            }
        }
        let mut found = Vec::new();
        collect(self, &mut found);
        found
    }

    /// Returns the additions in the order of their evaluation.
    pub(in crate::identify) fn plan(&self) -> Plan {
        let mut nodes = Vec::new();
        self.unroll(&mut nodes);
        Plan { nodes }
    }

    fn unroll(&self, nodes: &mut Vec<PlanNode>) -> Term {
        match self {
            Self::C => Term::C,
            Self::Zero => Term::PositiveZero,
            Self::Product(k) => Term::Product(*k),
            Self::Add(adder, arguments) => {
                let terms = arguments.iter().map(|argument| argument.unroll(nodes)).collect();
                nodes.push(PlanNode { adder: *adder, terms });
                Term::Node(nodes.len() - 1)
            }
        }
    }

    /// Returns the largest number of arguments of an adder's additions.
    pub(in crate::identify) fn width(&self, adder: usize) -> usize {
        let Self::Add(own, arguments) = self else { return 0 };
        let below = arguments.iter().map(|argument| argument.width(adder)).max().unwrap_or(0);
        below.max(if *own == adder { arguments.len() } else { 0 })
    }

    /// Returns the largest number of terms that c, or a sum with c in it, meets in an addition by this adder.
    pub(in crate::identify) fn beside_c(&self, adder: usize) -> usize {
        let Self::Add(own, arguments) = self else { return 0 };
        let below = arguments.iter().map(|argument| argument.beside_c(adder)).max().unwrap_or(0);
        let here = *own == adder && arguments.iter().any(Self::has_c);
        below.max(if here { arguments.len() - 1 } else { 0 })
    }

    /// Returns the tree with the arguments of one adder in another order.
    pub(in crate::identify) fn turned(&self, adder: usize, order: &Order) -> Self {
        let Self::Add(own, arguments) = self else { return self.clone() };
        let mut arguments: Vec<Self> = arguments.iter().map(|argument| argument.turned(adder, order)).collect();
        if *own == adder {
            let is_product = |argument: &Self| !argument.has_c() && !matches!(argument, Self::Zero);
            let product = |argument: &Self| if let Self::Product(k) = argument { Some(*k) } else { None };
            match order {
                Order::ProductsFirst => arguments.sort_by_key(|argument| !is_product(argument)),
                Order::ProductsLast => arguments.sort_by_key(is_product),
                Order::Reversed => arguments.reverse(),
                Order::Ascending => sort_some(&mut arguments, product),
                Order::Descending => sort_some(&mut arguments, |argument| product(argument).map(std::cmp::Reverse)),
                Order::Ranked(ranks) => sort_some(&mut arguments, |argument| {
                    argument.products().iter().map(|k| ranks[*k]).min().filter(|_| is_product(argument))
                }),
                Order::Exchanged(one, other) if *one.max(other) < arguments.len() => arguments.swap(*one, *other),
                Order::Exchanged(..) => {}
                Order::CAfter(others) => {
                    if let Some(at) = arguments.iter().position(|argument| !is_product(argument)) {
                        let of_c = arguments.remove(at);
                        arguments.insert((*others).min(arguments.len()), of_c);
                    }
                }
            }
        }
        Self::Add(*own, arguments)
    }

    /// Returns the products that meet exactly one other term in their addition: each may be rounded alone before that.
    pub(in crate::identify) fn joining_one(&self) -> Vec<usize> {
        let Self::Add(_, arguments) = self else { return Vec::new() };
        let here = arguments.iter().filter(|_| arguments.len() == 2).filter_map(|argument| match argument {
            Self::Product(k) => Some(*k),
            _ => None,
        });
        here.chain(arguments.iter().flat_map(Self::joining_one)).collect()
    }

    /// Returns the tree with this product rounded alone, by the adder that takes it, before it meets anything. It becomes
    /// the first term there, or the last one if `is_last` of the adder.
    pub(in crate::identify) fn alone(&self, product: usize, is_last: &[bool]) -> Self {
        let Self::Add(adder, arguments) = self else { return self.clone() };
        let is_it = |argument: &Self| matches!(argument, Self::Product(k) if *k == product);
        if arguments.len() > 1 && arguments.iter().any(is_it) {
            let others = arguments.iter().filter(|argument| !is_it(argument)).cloned();
            let mut arguments: Vec<Self> = others.collect();
            let at = if is_last[*adder] { arguments.len() } else { 0 };
            arguments.insert(at, Self::Add(*adder, vec![Self::Product(product)]));
            return Self::Add(*adder, arguments);
        }
        Self::Add(*adder, arguments.iter().map(|argument| argument.alone(product, is_last)).collect())
    }

    /// Returns the leaves below, and appends every addition of at least so many terms to `found`.
    pub(in crate::identify) fn nodes(&self, least: usize, found: &mut Vec<Node>) -> Vec<Leaf> {
        match self {
            Self::C => vec![Leaf::C],
            Self::Zero => Vec::new(),
            Self::Product(k) => vec![Leaf::Product(*k)],
            Self::Add(adder, arguments) => {
                let parts: Vec<Vec<Leaf>> = arguments.iter().map(|argument| argument.nodes(least, found)).collect();
                let leaves = parts.concat();
                if parts.len() >= least {
                    found.push(Node { adder: *adder, parts });
                }
                leaves
            }
        }
    }

    /// Returns the distinct adders in the order in which they occur from d downward.
    pub(in crate::identify) fn adders_downward(&self) -> Vec<usize> {
        let mut found = Vec::new();
        for adder in self.adders_by_addition() {
            if !found.contains(&adder) {
                found.push(adder);
            }
        }
        found
    }

    /// Returns the adders whose additions take a sum by this adder.
    pub(in crate::identify) fn takers(&self, of: usize) -> Vec<usize> {
        let Self::Add(own, arguments) = self else { return Vec::new() };
        let takes = arguments.iter().any(|argument| matches!(argument, Self::Add(adder, _) if *adder == of));
        let mut found: Vec<usize> = arguments.iter().flat_map(|argument| argument.takers(of)).collect();
        found.extend(takes.then_some(*own));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the tree with a separate adder for every addition, numbered from d downward, level by level.
    pub(in crate::identify) fn untied(&self) -> Self {
        fn number(expression: &mut Expression, depth: usize, wanted: usize, next: &mut usize) -> bool {
            let Expression::Add(adder, arguments) = expression else { return false };
            if depth == wanted {
                *adder = *next;
                *next += 1;
                return true;
            }
            arguments.iter_mut().map(|argument| number(argument, depth + 1, wanted, next)).max().unwrap_or(false)
        }
        let mut untied = self.clone();
        let mut next = 0;
        for level in 0.. {
            if !number(&mut untied, 0, level, &mut next) {
                break;
            }
        }
        untied
    }

    /// Returns the adder of each addition, in the order in which [`Expression::untied`] numbers them.
    pub(in crate::identify) fn adders_by_addition(&self) -> Vec<usize> {
        self.of_additions(|adder, _| adder)
    }

    /// Returns, in the same order, whether c is not below each addition.
    pub(in crate::identify) fn additions_without_c(&self) -> Vec<bool> {
        self.of_additions(|_, addition| !addition.has_c())
    }

    /// Returns, in the same order, whether each addition takes nothing but products.
    pub(in crate::identify) fn additions_of_products(&self) -> Vec<bool> {
        self.of_additions(|_, addition| match addition {
            Self::Add(_, arguments) => arguments.iter().all(|argument| matches!(argument, Self::Product(_))),
            _ => false,
        })
    }

    /// Returns, in the same order, which argument of the addition that gives d each addition belongs to; `None` for that
    /// addition itself.
    pub(in crate::identify) fn branches(&self) -> Vec<Option<usize>> {
        self.by_addition().into_iter().map(|(branch, ..)| branch).collect()
    }

    /// Returns whether an addition, numbered in the same order, takes a product that joins it by itself, and the adders of
    /// the sums without c that it takes.
    pub(in crate::identify) fn takes_beside_c(&self, addition: usize) -> (bool, Vec<usize>) {
        let additions = self.by_addition();
        let Some((.., Self::Add(_, arguments))) = additions.get(addition) else { return (false, Vec::new()) };
        let products = arguments.iter().any(|argument| matches!(argument, Self::Product(_)));
        let sums = arguments.iter().filter(|argument| !argument.has_c()).filter_map(|argument| match argument {
            Self::Add(adder, _) => Some(*adder),
            _ => None,
        });
        (products, sums.collect())
    }

    /// Returns the tree with additions by `own` around groups of `size` of the terms that meet c in each addition by one of
    /// these adders.
    pub(in crate::identify) fn gathered(&self, by: &dyn Fn(usize) -> bool, own: usize, size: usize) -> Self {
        let Self::Add(adder, arguments) = self else { return self.clone() };
        let arguments = arguments.iter().map(|argument| argument.gathered(by, own, size));
        let (with_c, others): (Vec<Self>, Vec<Self>) = arguments.clone().partition(Self::has_c);
        if !by(*adder) || with_c.is_empty() || others.len() < 2 {
            return Self::Add(*adder, arguments.collect());
        }
        let groups = others.chunks(size).map(|group| Self::Add(own, group.to_vec()));
        Self::Add(*adder, groups.chain(with_c).collect())
    }

    /// Returns something of each addition, given its adder and itself.
    fn of_additions<T>(&self, of: impl Fn(usize, &Self) -> T) -> Vec<T> {
        self.by_addition().into_iter().map(|(_, adder, addition)| of(adder, addition)).collect()
    }

    /// Returns each addition in the order in which [`Expression::untied`] numbers them: the argument of the first one that
    /// it belongs to, its adder, and itself.
    fn by_addition(&self) -> Vec<(Option<usize>, usize, &Self)> {
        let mut found = Vec::new();
        let mut level = vec![(None, self)];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (branch, expression) in level {
                if let Self::Add(adder, arguments) = expression {
                    found.push((branch, *adder, expression));
                    next.extend(arguments.iter().enumerate().map(|(at, argument)| (branch.or(Some(at)), argument)));
                }
            }
            level = next;
        }
        found
    }

    /// Returns the additions above one of an untied tree, from d downward.
    pub(in crate::identify) fn above(&self, addition: usize) -> Vec<usize> {
        match self {
            Self::Add(own, arguments) if *own != addition => {
                let below = arguments.iter().find(|argument| argument.has_addition(addition));
                below.map_or(Vec::new(), |below| std::iter::once(*own).chain(below.above(addition)).collect())
            }
            _ => Vec::new(),
        }
    }

    fn has_addition(&self, addition: usize) -> bool {
        match self {
            Self::Add(own, arguments) => {
                *own == addition || arguments.iter().any(|argument| argument.has_addition(addition))
            }
            _ => false,
        }
    }

    /// Returns the tree with the adder `i` renumbered to `of[i]`.
    pub(in crate::identify) fn recoloured(&self, of: &[usize]) -> Self {
        match self {
            Self::Add(adder, arguments) => {
                Self::Add(of[*adder], arguments.iter().map(|argument| argument.recoloured(of)).collect())
            }
            leaf => leaf.clone(),
        }
    }

    /// Returns, for every adder of an untied tree, the leaves below each of its arguments.
    pub(in crate::identify) fn arguments_by_adder(&self) -> Vec<Vec<Vec<Leaf>>> {
        fn collect(expression: &Expression, found: &mut Vec<Vec<Vec<Leaf>>>) -> Vec<Leaf> {
            match expression {
                Expression::C => vec![Leaf::C],
                Expression::Zero => Vec::new(),
                Expression::Product(k) => vec![Leaf::Product(*k)],
                Expression::Add(adder, arguments) => {
                    let below: Vec<Vec<Leaf>> = arguments.iter().map(|argument| collect(argument, found)).collect();
                    let leaves = below.concat();
                    if found.len() <= *adder {
                        found.resize(*adder + 1, Vec::new());
                    }
                    found[*adder] = below;
                    leaves
                }
            }
        }
        let mut found = Vec::new();
        collect(self, &mut found);
        found
    }

    /// Returns the tree without a leaf; `None` if it has no other.
    pub(in crate::identify) fn without(&self, leaf: Leaf) -> Option<Self> {
        match self {
            Self::C if leaf == Leaf::C => None,
            Self::Product(k) if leaf == Leaf::Product(*k) => None,
            Self::Add(adder, arguments) => {
                let arguments: Vec<Self> = arguments.iter().filter_map(|argument| argument.without(leaf)).collect();
                (!arguments.is_empty()).then_some(Self::Add(*adder, arguments))
            }
            other => Some(other.clone()),
        }
    }

    /// Returns the tree with each of the wanted leaves in an addition of its own, by `adder`.
    pub(in crate::identify) fn each_alone(&self, adder: usize, wanted: &dyn Fn(&Self) -> bool) -> Self {
        match self {
            Self::Add(own, arguments) => {
                Self::Add(*own, arguments.iter().map(|argument| argument.each_alone(adder, wanted)).collect())
            }
            leaf if wanted(leaf) => Self::Add(adder, vec![leaf.clone()]),
            leaf => leaf.clone(),
        }
    }

    /// Returns the adder of an addition that takes c alone.
    pub(in crate::identify) fn of_c_alone(&self) -> Option<usize> {
        let Self::Add(own, arguments) = self else { return None };
        match &arguments[..] {
            [Self::C] => Some(*own),
            all => all.iter().find_map(Self::of_c_alone),
        }
    }

    /// Whether an addition takes one of the `wanted` leaves alone.
    pub(in crate::identify) fn has_alone(&self, wanted: &dyn Fn(&Self) -> bool) -> bool {
        let Self::Add(_, arguments) = self else { return false };
        is_one(arguments) && arguments.iter().any(wanted) || arguments.iter().any(|argument| argument.has_alone(wanted))
    }

    /// Returns the tree with the products of each addition in the groups that `group` makes of them, each summed by
    /// `adder`. If `joined`, the groups of one addition are first added to each other.
    pub(in crate::identify) fn grouped(
        &self,
        adder: usize,
        group: &dyn Fn(&[usize]) -> Vec<Vec<usize>>,
        joined: bool,
    ) -> Self {
        let Self::Add(own, arguments) = self else { return self.clone() };
        let products: Vec<usize> = arguments
            .iter()
            .filter_map(|argument| if let Self::Product(k) = argument { Some(*k) } else { None })
            .collect();
        let others = arguments.iter().filter(|argument| !matches!(argument, Self::Product(_)));
        let others: Vec<Self> = others.map(|argument| argument.grouped(adder, group, joined)).collect();
        let groups = group(&products);
        let grouped: Vec<Self> = if groups.len() < 2 && (others.is_empty() || products.len() < 2) {
            products.iter().map(|k| Self::Product(*k)).collect()
        } else {
            let sum = |group: &Vec<usize>| Self::Add(adder, group.iter().map(|k| Self::Product(*k)).collect());
            let sums: Vec<Self> = groups.iter().map(sum).collect();
            if joined && sums.len() > 1 { vec![Self::Add(adder, sums)] } else { sums }
        };
        Self::Add(*own, grouped.into_iter().chain(others).collect())
    }

    /// Returns the tree with groups of `size` neighbours in every addition of more products than that and of nothing
    /// else.
    pub(in crate::identify) fn grouped_below(&self, adder: usize, size: usize) -> Self {
        let Self::Add(own, arguments) = self else { return self.clone() };
        if arguments.iter().all(|argument| matches!(argument, Self::Product(_))) && arguments.len() > size {
            let groups = arguments.chunks(size).map(|group| Self::Add(adder, group.to_vec()));
            return Self::Add(*own, groups.collect());
        }
        Self::Add(*own, arguments.iter().map(|argument| argument.grouped_below(adder, size)).collect())
    }

    /// Returns the largest number of products that one addition takes.
    pub(in crate::identify) fn widest(&self) -> usize {
        let Self::Add(_, arguments) = self else { return 0 };
        let own = arguments.iter().filter(|argument| matches!(argument, Self::Product(_))).count();
        arguments.iter().map(Self::widest).max().unwrap_or(0).max(own)
    }

    /// Returns the adders that take a single argument, which they round.
    pub(in crate::identify) fn of_one_argument(&self) -> Vec<usize> {
        match self {
            Self::Add(adder, arguments) => {
                let below = arguments.iter().flat_map(Self::of_one_argument);
                is_one(arguments).then_some(*adder).into_iter().chain(below).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the tree in which this adder's additions of a single argument are by another one.
    pub(in crate::identify) fn with_single_ones(&self, adder: usize, own: usize) -> Self {
        let Self::Add(by, arguments) = self else { return self.clone() };
        let is_changed = *by == adder && is_one(arguments);
        let arguments = arguments.iter().map(|argument| argument.with_single_ones(adder, own)).collect();
        Self::Add(if is_changed { own } else { *by }, arguments)
    }

    /// Returns a mask of the adders that add at least two nonzero terms of this dot, or that round a single term alone.
    /// Adders from 127 on share a bit.
    pub(in crate::identify) fn busy(&self, dot: &Dot) -> u128 {
        self.busy_below(&|leaf| match leaf {
            Leaf::C => dot.c != 0,
            Leaf::Product(k) => dot.a[k] != 0 && dot.b[k] != 0,
        })
        .1
    }

    fn busy_below(&self, has: &dyn Fn(Leaf) -> bool) -> (bool, u128) {
        match self {
            Self::C => (has(Leaf::C), 0),
            Self::Zero => (false, 0),
            Self::Product(k) => (has(Leaf::Product(*k)), 0),
            Self::Add(adder, arguments) => {
                let (mut count, mut busy) = (0, 0);
                for argument in arguments {
                    let (any, below) = argument.busy_below(has);
                    count += usize::from(any);
                    busy |= below;
                }
                let rounds = count == 1 && is_one(arguments);
                let own = if count > 1 || rounds { 1u128 << (*adder).min(127) } else { 0 };
                (count > 0, busy | own)
            }
        }
    }

    /// Returns the mask of [`Expression::busy`] with the adders that a single term passes if an adder of a narrow
    /// format may change it, which `long` says of each leaf. Unless `alone` is set, the same holds for adders of one
    /// argument.
    pub(in crate::identify) fn touched(&self, dot: &Dot, long: &dyn Fn(Leaf) -> bool, alone: bool) -> u128 {
        self.touched_below(dot, long, alone).1
    }

    /// Returns whether a narrow format may change a term below (`None` if all are zero), and the mask of the adders
    /// that touch any.
    fn touched_below(&self, dot: &Dot, long: &dyn Fn(Leaf) -> bool, alone: bool) -> (Option<bool>, u128) {
        let leaf = |leaf: Leaf, any: bool| (any.then(|| long(leaf)), 0);
        match self {
            Self::C => leaf(Leaf::C, dot.c != 0),
            Self::Zero => (None, 0),
            Self::Product(k) => leaf(Leaf::Product(*k), dot.a[*k] != 0 && dot.b[*k] != 0),
            Self::Add(adder, arguments) => {
                let (mut terms, mut is_long, mut mask) = (0, false, 0);
                for argument in arguments {
                    let (term, below) = argument.touched_below(dot, long, alone);
                    terms += usize::from(term.is_some());
                    is_long |= term.unwrap_or(false);
                    mask |= below;
                }
                let touches = terms > 1 || terms == 1 && (is_long || alone && is_one(arguments));
                let own = if touches { 1u128 << (*adder).min(127) } else { 0 };
                ((terms > 0).then_some(is_long), mask | own)
            }
        }
    }

    /// Returns the products that are rounded alone.
    pub(in crate::identify) fn rounded_alone(&self) -> Vec<usize> {
        match self {
            Self::Add(_, arguments) => match &arguments[..] {
                [Self::Product(k)] => vec![*k],
                arguments => arguments.iter().flat_map(Self::rounded_alone).collect(),
            },
            _ => Vec::new(),
        }
    }

    /// Returns the tree with this product no longer rounded alone.
    pub(in crate::identify) fn together(&self, product: usize) -> Self {
        let Self::Add(adder, arguments) = self else { return self.clone() };
        let arguments = arguments.iter().map(|argument| match argument {
            Self::Add(_, inner) if *inner == [Self::Product(product)] => Self::Product(product),
            other => other.together(product),
        });
        Self::Add(*adder, arguments.collect())
    }

    /// Returns the pairs of products that meet first, whether or not each is rounded alone before.
    pub(in crate::identify) fn begun(&self) -> Vec<(usize, usize)> {
        let Self::Add(_, arguments) = self else { return Vec::new() };
        match &arguments[..] {
            [one, other] => match (one.lone_product(), other.lone_product()) {
                (Some(one), Some(other)) => vec![(one, other)],
                _ => one.begun().into_iter().chain(other.begun()).collect(),
            },
            _ => arguments.iter().flat_map(Self::begun).collect(),
        }
    }

    /// Returns the tree with one of the two products of each sum of two added to +0, by the adder of that sum, before it
    /// meets the other: the first of them, or the second if `second`.
    pub(in crate::identify) fn begun_at_zero(&self, second: bool) -> Self {
        let Self::Add(own, arguments) = self else { return self.clone() };
        if let [one, other] = &arguments[..]
            && let (Some(one), Some(other)) = (one.lone_product(), other.lone_product())
        {
            let (begins, joins) = if second { (other, one) } else { (one, other) };
            let begun = Self::Add(*own, vec![Self::Product(begins), Self::Zero]);
            return Self::Add(*own, vec![Self::Product(joins), begun]);
        }
        Self::Add(*own, arguments.iter().map(|argument| argument.begun_at_zero(second)).collect())
    }

    /// Returns the product that this is, rounded alone or not; `None` for any other tree.
    fn lone_product(&self) -> Option<usize> {
        match self {
            Self::Product(product) => Some(*product),
            Self::Add(_, arguments) => match &arguments[..] {
                [Self::Product(product)] => Some(*product),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the tree with two products exchanged.
    pub(in crate::identify) fn exchanged(&self, one: usize, other: usize) -> Self {
        match self {
            Self::Product(k) if *k == one => Self::Product(other),
            Self::Product(k) if *k == other => Self::Product(one),
            Self::Add(adder, arguments) => {
                Self::Add(*adder, arguments.iter().map(|argument| argument.exchanged(one, other)).collect())
            }
            leaf => leaf.clone(),
        }
    }

    /// Whether c is a leaf of the tree.
    pub(in crate::identify) fn has_c(&self) -> bool {
        match self {
            Self::C => true,
            Self::Zero | Self::Product(_) => false,
            Self::Add(_, arguments) => arguments.iter().any(Self::has_c),
        }
    }
}

/// Whether an addition takes a single argument, apart from +0.
fn is_one(arguments: &[Expression]) -> bool {
    arguments.iter().filter(|argument| **argument != Expression::Zero).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_meet_c_are_gathered_before_it() {
        let sum = |adder: usize, terms: Vec<Expression>| Expression::Add(adder, terms);
        let pair = |first: usize| sum(1, vec![Expression::Product(first), Expression::Product(first + 1)]);
        let step = |acc: Expression, first: usize| sum(0, vec![pair(first), pair(first + 2), acc]);
        let tree = step(step(Expression::C, 0), 4);
        let joined = |acc: Expression, first: usize| sum(0, vec![sum(2, vec![pair(first), pair(first + 2)]), acc]);
        assert_eq!(tree.gathered(&|_| true, 2, usize::MAX), joined(joined(Expression::C, 0), 4));
        assert_eq!(tree.gathered(&|adder| adder == 1, 2, usize::MAX), tree);
        let alone = sum(0, vec![pair(0), Expression::C]);
        assert_eq!(alone.gathered(&|_| true, 2, usize::MAX), alone);
    }

    #[test]
    fn an_addition_takes_products_and_sums_beside_c() {
        let product = Expression::Product;
        let acc = Expression::Add(0, vec![product(0), Expression::C]);
        let tree = Expression::Add(0, vec![product(3), Expression::Add(1, vec![product(1), product(2)]), acc]);
        assert_eq!(tree.takes_beside_c(0), (true, vec![1]));
        assert_eq!(tree.takes_beside_c(1), (true, vec![]));
        assert_eq!(
            Expression::Add(0, vec![Expression::Add(1, vec![product(0)]), Expression::C]).takes_beside_c(0),
            (false, vec![1])
        );
    }
}
