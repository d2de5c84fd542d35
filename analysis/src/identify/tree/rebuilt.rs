//! Trees made of others: with terms in another order, in groups, alone, or by other adders.

use std::sync::Arc;

use super::expression::{Expression, is_one};
use crate::probes::Leaf;

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

    /// Returns the tree with the adder `i` renumbered to `of[i]`.
    pub(in crate::identify) fn recoloured(&self, of: &[usize]) -> Self {
        match self {
            Self::Add(adder, arguments) => {
                Self::Add(of[*adder], arguments.iter().map(|argument| argument.recoloured(of)).collect())
            }
            leaf => leaf.clone(),
        }
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

    /// Returns the tree in which this adder's additions of a single argument are by another one.
    pub(in crate::identify) fn with_single_ones(&self, adder: usize, own: usize) -> Self {
        let Self::Add(by, arguments) = self else { return self.clone() };
        let is_changed = *by == adder && is_one(arguments);
        let arguments = arguments.iter().map(|argument| argument.with_single_ones(adder, own)).collect();
        Self::Add(if is_changed { own } else { *by }, arguments)
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
}
