//! Groups of products that are read from dots that a candidate leaves unexplained. Terms of one addition may be exchanged
//! without changing any result. If they do not join it directly but in groups whose sums are not rounded, hardly any dot
//! shows it, but those that a candidate without the groups leaves unexplained do.

use mxprobe_api::Error;

use super::{classes::classes, expression::Expression};
use crate::{dots::Dot, nan_bits::NanBits, probes::Subject};

/// The most products of an addition that are exchanged: the number of pairs grows with their square.
const MOST: usize = 32;
/// The most dots in which two products are exchanged.
const DOTS: usize = 96;

/// How many products an addition takes, and the places of those that may be exchanged, group by group.
type Groups = (usize, Vec<Vec<usize>>);

/// Returns the tree with the products of each addition in the groups within which they may be exchanged in these dots,
/// with products that are alone in additions of their own, and without those. Groups are added by the adder of the groups
/// that were there, and by `fresh` where there was none. Empty if the dots show no groups.
///
/// # Errors
/// Returns the error of the device if it fails.
pub(in crate::identify) fn regrouped(
    subject: &Subject<'_>,
    tree: &Expression,
    dots: &[&Dot],
    fresh: usize,
) -> Result<Vec<Expression>, Error> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    collect(tree, &mut members);
    members.retain(|products| (3..=MOST).contains(&products.len()));
    let mut sizes: Vec<usize> = members.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    sizes.dedup();
    // Additions of as many products are taken as alike.
    let mut groups: Vec<Groups> = Vec::new();
    for size in sizes {
        let alike: Vec<&[usize]> =
            members.iter().map(Vec::as_slice).filter(|products| products.len() == size).collect();
        let may_be_exchanged = |one: usize, other: usize| {
            for products in &alike {
                if exchange_of_two_shows(subject, (products[one], products[other]), dots)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        groups.push((size, classes(size, MOST, may_be_exchanged)?));
    }
    let changed = [true, false].map(|singles| regroup(tree, &groups, singles, fresh));
    let mut found: Vec<Expression> = Vec::new();
    for variant in changed {
        if variant.untied() != tree.untied() && !found.contains(&variant) {
            found.push(variant);
        }
    }
    Ok(found)
}

/// Returns the products that join an addition directly or in a sum of products alone; none for anything else.
fn joining(argument: &Expression) -> Vec<usize> {
    match argument {
        Expression::Product(k) => vec![*k],
        Expression::Add(_, inner) if inner.iter().all(|leaf| matches!(leaf, Expression::Product(_))) => {
            argument.products()
        }
        _ => Vec::new(),
    }
}

/// Whether an addition takes other terms than single products.
fn takes_sums_or_c(arguments: &[Expression]) -> bool {
    arguments.iter().any(|argument| !matches!(argument, Expression::Product(_)))
}

/// Appends the products that join each addition, but for those that join another addition with their sum.
fn collect(tree: &Expression, found: &mut Vec<Vec<usize>>) {
    let Expression::Add(_, arguments) = tree else { return };
    found.push(arguments.iter().flat_map(joining).collect());
    for argument in arguments {
        if matches!(argument, Expression::Add(_, inner) if takes_sums_or_c(inner)) {
            collect(argument, found);
        }
    }
}

/// Returns whether exchanging two products changes the result of one of the first of these dots that it alters.
fn exchange_of_two_shows(subject: &Subject<'_>, (one, other): (usize, usize), dots: &[&Dot]) -> Result<bool, Error> {
    let differ = |dot: &&&Dot| (dot.a[one], dot.b[one]) != (dot.a[other], dot.b[other]);
    let dots: Vec<Dot> = dots.iter().filter(differ).take(DOTS).map(|dot| (*dot).clone()).collect();
    exchange_shows(subject, (&[one], &[other]), &dots)
}

/// Returns whether exchanging the products of two lists, each with the one at the same place of the other list, changes the
/// result of one of these dots, other than from one NaN to another.
///
/// # Errors
/// Returns the error of the device if it fails.
pub(super) fn exchange_shows(
    subject: &Subject<'_>,
    (one, other): (&[usize], &[usize]),
    dots: &[Dot],
) -> Result<bool, Error> {
    let mut exchanged = dots.to_vec();
    for dot in &mut exchanged {
        for (one, other) in one.iter().zip(other) {
            dot.a.swap(*one, *other);
            dot.b.swap(*one, *other);
        }
    }
    let d = subject.id().d;
    let (before, after) = (subject.ask(dots)?, subject.ask(&exchanged)?);
    Ok(before.iter().zip(&after).any(|(before, after)| !NanBits::Any.alike(d, *before, *after)))
}

/// Puts the products of each addition into sums by group, and those alone in their group, too, if `singles` is set.
fn regroup(tree: &Expression, groups: &[Groups], singles: bool, fresh: usize) -> Expression {
    let Expression::Add(adder, arguments) = tree else { return tree.clone() };
    let products: Vec<usize> = arguments.iter().flat_map(joining).collect();
    let (grouped, others): (Vec<&Expression>, Vec<&Expression>) =
        arguments.iter().partition(|argument| !joining(argument).is_empty());
    let others = others.into_iter().map(|argument| regroup(argument, groups, singles, fresh));
    // One group, or as many as products, says nothing.
    let places = groups.iter().find(|(size, _)| *size == products.len()).map(|(_, places)| places);
    let Some(places) = places.filter(|places| places.len() > 1 && places.len() < products.len()) else {
        return Expression::Add(*adder, grouped.into_iter().cloned().chain(others).collect());
    };
    let before =
        grouped.iter().find_map(|argument| if let Expression::Add(own, _) = argument { Some(*own) } else { None });
    let sums = places.iter().map(|group| {
        let mut members: Vec<Expression> = group.iter().map(|place| Expression::Product(products[*place])).collect();
        if members.len() > 1 || singles { Expression::Add(before.unwrap_or(fresh), members) } else { members.remove(0) }
    });
    Expression::Add(*adder, sums.chain(others).collect())
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Device;

    use super::*;
    use crate::{dots::draw, identify::tree::made_up};

    /// Returns the trees that exchanges in drawn dots of a unit show, given another tree.
    fn found(unit: &str, tree: &Expression) -> Vec<Expression> {
        let device = made_up::device("dot.m4n4k8.f32.f16.f16.f32", unit, "truncate");
        let operation = device.operations().values().next().expect("an operation").clone();
        let subject = Subject::new(&device, &operation);
        let dots = draw(subject.id(), 1, 400);
        regrouped(&subject, tree, &dots.iter().collect::<Vec<_>>(), 7).expect("answers")
    }

    fn sum(adder: usize, products: impl IntoIterator<Item = usize>, others: Vec<Expression>) -> Expression {
        Expression::Add(adder, products.into_iter().map(Expression::Product).chain(others).collect())
    }

    #[test]
    fn groups_are_read_with_the_adder_that_was_there_or_a_fresh_one() {
        let chain =
            |first: &dyn Fn(usize, Vec<Expression>) -> Expression| first(4, vec![first(0, vec![Expression::C])]);
        let pairs = |adder: usize, own: usize| {
            chain(&move |at, mut acc| {
                let mut terms = vec![sum(adder, at..at + 2, vec![]), sum(adder, at + 2..at + 4, vec![])];
                terms.append(&mut acc);
                Expression::Add(own, terms)
            })
        };
        let unit = "fold(c, all/4, s(w(0..2), w(2..4), acc))";
        let flat = chain(&|at, acc| sum(0, at..at + 4, acc));
        assert_eq!(found(unit, &flat), [pairs(7, 0)]);
        let grouped = chain(&|at, mut acc| {
            acc.insert(0, sum(3, at..at + 4, vec![]));
            Expression::Add(0, acc)
        });
        assert_eq!(found(unit, &grouped), [pairs(3, 0)]);
        assert!(found(unit, &pairs(1, 0)).is_empty());
        assert!(found("fold(c, all/4, s(all, acc))", &flat).is_empty());
    }

    #[test]
    fn a_product_alone_is_added_by_itself_or_not() {
        let with = |wrapped: bool| {
            let group = sum(7, 1..8, vec![]);
            if wrapped {
                Expression::Add(0, vec![sum(7, 0..1, vec![]), group, Expression::C])
            } else {
                Expression::Add(0, vec![Expression::Product(0), group, Expression::C])
            }
        };
        let flat = sum(0, 0..8, vec![Expression::C]);
        assert_eq!(found("s(w(0), w(1..8), c)", &flat), [with(true), with(false)]);
        // Groups of one product each may all be exchanged.
        assert!(found("s(w(0), w(1), w(2), w(3), w(4), w(5), w(6), w(7), c)", &flat).is_empty());
    }
}
