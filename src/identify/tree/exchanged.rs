//! Groups of products that are read from dots that a candidate leaves unexplained. Terms of one addition may be exchanged
//! without changing any result. If they do not join it directly but in groups whose sums are not rounded, hardly any dot
//! shows it, but those that a candidate without the groups leaves unexplained do.

use mxprobe_api::{Decoded, Error};

use super::expression::Expression;
use crate::{dots::Dot, probes::Subject};

/// The most products of an addition that are exchanged: the number of pairs grows with their square.
const MOST: usize = 32;
/// The most dots in which two products are exchanged.
const DOTS: usize = 96;

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
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for size in sizes {
        let alike: Vec<&[usize]> =
            members.iter().map(Vec::as_slice).filter(|products| products.len() == size).collect();
        groups.push((size, classes(subject, size, &alike, dots)?));
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

/// Returns the class of each place of additions of as many products: places that may be exchanged in all of them.
fn classes(subject: &Subject<'_>, size: usize, alike: &[&[usize]], dots: &[&Dot]) -> Result<Vec<usize>, Error> {
    let mut firsts: Vec<usize> = Vec::new();
    let mut of = Vec::new();
    for place in 0..size {
        let mut own = None;
        for (class, first) in firsts.iter().enumerate() {
            let mut differs = false;
            for products in alike {
                differs = differs || exchange_shows(subject, (products[*first], products[place]), dots)?;
            }
            if !differs {
                own = Some(class);
                break;
            }
        }
        of.push(own.unwrap_or_else(|| {
            firsts.push(place);
            firsts.len() - 1
        }));
    }
    Ok(of)
}

/// Returns whether exchanging two products changes the result of one of these dots to another that is not NaN.
fn exchange_shows(subject: &Subject<'_>, (one, other): (usize, usize), dots: &[&Dot]) -> Result<bool, Error> {
    let differ = |dot: &&&Dot| (dot.a[one], dot.b[one]) != (dot.a[other], dot.b[other]);
    let before: Vec<Dot> = dots.iter().filter(differ).take(DOTS).map(|dot| (*dot).clone()).collect();
    let mut after = before.clone();
    for dot in &mut after {
        dot.a.swap(one, other);
        dot.b.swap(one, other);
    }
    let is_nan = |bits: u64| matches!(subject.id().d.decode(bits), Decoded::Nan { .. });
    let (before, after) = (subject.ask(&before)?, subject.ask(&after)?);
    Ok(before.iter().zip(&after).any(|(before, after)| before != after && !(is_nan(*before) && is_nan(*after))))
}

/// Puts the products of each addition into sums by class, and those alone in their class, too, if `singles` is set.
fn regroup(tree: &Expression, groups: &[(usize, Vec<usize>)], singles: bool, fresh: usize) -> Expression {
    let Expression::Add(adder, arguments) = tree else { return tree.clone() };
    let products: Vec<usize> = arguments.iter().flat_map(joining).collect();
    let classes = groups.iter().find(|(size, _)| *size == products.len()).map(|(_, of)| of);
    let count = classes.and_then(|of| of.iter().max()).map_or(0, |last| last + 1);
    let others = arguments.iter().filter(|argument| joining(argument).is_empty());
    let others = others.map(|argument| regroup(argument, groups, singles, fresh));
    // One class, or as many as products, says nothing of groups.
    let Some(of) = classes.filter(|_| count > 1 && count < products.len()) else {
        let same = arguments.iter().filter(|argument| !joining(argument).is_empty()).cloned();
        return Expression::Add(*adder, same.chain(others).collect());
    };
    let before = arguments.iter().find_map(|argument| match argument {
        Expression::Add(adder, _) if !joining(argument).is_empty() => Some(*adder),
        _ => None,
    });
    let own = before.unwrap_or(fresh);
    let sums = (0..count).map(|class| {
        let members = products.iter().zip(of).filter(|(_, own)| **own == class).map(|(k, _)| Expression::Product(*k));
        let mut members: Vec<Expression> = members.collect();
        if members.len() > 1 || singles { Expression::Add(own, members) } else { members.remove(0) }
    });
    Expression::Add(*adder, sums.chain(others).collect())
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Device;
    use mxprobe_models::Model;
    use mxprobe_sim::ModelDevice;

    use super::*;
    use crate::dots::draw;

    /// Returns the trees that exchanges in drawn dots of a unit show, given another tree.
    fn found(unit: &str, tree: &Expression) -> Vec<Expression> {
        let text = format!(
            "schema = \"mxprobe-model/1\"\nname = \"made-up\"\ntitle = \"made up\"\nvendor = \"nobody\"\n\
             fingerprint = \"made-up\"\n[sources]\nhere = \"made up\"\n\
             [adder.s]\noutput = \"f32\"\nrounding = \"toward-zero\"\nfraction_bits = 24\nbelow = \"truncate\"\n\
             nan = \"0x7fffffff\"\nbasis = \"assumed\"\nsource = \"here\"\n\
             [adder.w]\noutput = \"wide\"\nfraction_bits = 20\nbelow = \"floor\"\nbasis = \"assumed\"\nsource = \"here\"\n\
             [[unit]]\ntree = \"{unit}\"\noperations = [\"dot.m4n4k8.f32.f16.f16.f32\"]\nbasis = \"assumed\"\nsource = \"here\"\n"
        );
        let device = ModelDevice::new(Model::parse("made-up", &text, None).expect("a model"));
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
        // Every product is exchanged with a group of none.
        assert!(found("s(w(0), w(1), w(2), w(3), w(4), w(5), w(6), w(7), c)", &flat).is_empty());
    }
}
