//! Summation trees over numbered adders.

use mxprobe_models::{Plan, PlanNode, Term};

use crate::probes::Leaf;

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

    /// Returns the products that meet exactly one other term in their addition: each may be rounded alone before that.
    pub(in crate::identify) fn joining_one(&self) -> Vec<usize> {
        let Self::Add(_, arguments) = self else { return Vec::new() };
        let here = arguments.iter().filter(|_| arguments.len() == 2).filter_map(|argument| match argument {
            Self::Product(k) => Some(*k),
            _ => None,
        });
        here.chain(arguments.iter().flat_map(Self::joining_one)).collect()
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

    /// Returns the product that this is, rounded alone or not; `None` for any other tree.
    pub(super) fn lone_product(&self) -> Option<usize> {
        match self {
            Self::Product(product) => Some(*product),
            Self::Add(_, arguments) => match &arguments[..] {
                [Self::Product(product)] => Some(*product),
                _ => None,
            },
            _ => None,
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
pub(super) fn is_one(arguments: &[Expression]) -> bool {
    arguments.iter().filter(|argument| **argument != Expression::Zero).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

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
