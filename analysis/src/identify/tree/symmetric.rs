//! Trees read from exchanges of products. Terms of one addition may be exchanged without changing any result, and so may
//! whole sums that one addition takes, if they have the same tree and adder. This shows the groups of a unit even if no
//! term swallows another, and however its additions align and round.

use std::{collections::HashSet, sync::Arc};

use mxprobe_api::{Error, FloatEncoding, Format};

use super::{
    classes::classes,
    exchanged::exchange_shows,
    expression::Expression,
    focus::{negated_into, put},
    skeleton::{Role, Skeleton},
};
use crate::{
    dots::{Dot, Random, seed_of},
    probes::{Leaf, Number, Subject},
};

/// The most products of a dot that are exchanged, and the most groups: the number of pairs grows with their square.
const MOST: usize = 64;
const MOST_GROUPS: usize = 32;
/// Dots with which an exchange is tried, batch by batch: most pairs that may not be exchanged differ in the first.
const BATCHES: [usize; 3] = [48, 192, 640];
/// How many binades above c products lie that would swallow it.
const BEYOND: [i32; 4] = [14, 27, 34, 60];
/// How many binades below 1 c lies at most.
const LEAST_OF_C: i32 = 8;
/// The places of families of trees (see [`around_c`]): one addition of all parts, chains that begin with c, and chains that
/// c joins last.
const FUSED: usize = 0;
const FROM_C: usize = 1;
const BEFORE_C: usize = 3;

/// A part of the tree: a product, or an addition of parts that may be exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    tree: Expression,
    products: Vec<usize>,
}

/// Returns the trees that agree with the exchanges that change no result, the likeliest families first. Empty if there
/// are too many products or groups, or if a leaf does not count exactly once.
///
/// # Errors
/// Returns the error of the device if it fails.
pub(in crate::identify) fn trees(subject: &Subject<'_>, seed: u64) -> Result<Vec<Vec<Expression>>, Error> {
    let k = subject.k();
    // Scales belong to places, so that products of two blocks cannot be exchanged.
    if !(2..=MOST).contains(&k) || subject.id().block_scale().is_some() || subject.leaves().len() <= k {
        return Ok(Vec::new());
    }
    let mut random = Random(seed_of(seed, 12));
    let mut parts: Vec<Part> = (0..k).map(|k| Part { tree: Expression::Product(k), products: vec![k] }).collect();
    let mut has_order = false;
    loop {
        let mut found = exchangeable(subject, &parts, Signs::Any, &mut random)?;
        let sizes: HashSet<usize> = parts.iter().map(|part| part.products.len()).collect();
        let have_equals = sizes.len() < parts.len();
        if found.len() == parts.len() && have_equals && !sizes.contains(&1) {
            // An addition in one's complement counts in the sign of the last sum that it takes, so that its sums may be
            // exchanged only if no signs differ.
            found = exchangeable(subject, &parts, Signs::Positive, &mut random)?;
            has_order |= found.len() < parts.len();
        }
        if found.len() > MOST_GROUPS {
            return Ok(Vec::new());
        }
        let ended = found.len() == 1 || found.len() == parts.len();
        if !ended {
            parts = found.into_iter().map(added).collect();
            continue;
        }
        // One addition of two equal parts would allow them to be exchanged, so chains come first.
        let first = if found.len() == 1 || !have_equals {
            FUSED
        } else if c_joins_last(subject, &parts)? {
            BEFORE_C
        } else {
            FROM_C
        };
        let mut families = around_c(parts);
        if found.len() == 1 {
            families.truncate(1);
        }
        families.rotate_left(first);
        if has_order {
            families.iter_mut().for_each(|family| *family = with_sums_reversed(family));
        }
        return Ok(families);
    }
}

/// Returns whether c counts in full next to products of two parts that cancel, however large these are: their sum is then
/// complete before c joins it.
fn c_joins_last(subject: &Subject<'_>, parts: &[Part]) -> Result<bool, Error> {
    let [Part { products: one, .. }, .., Part { products: other, .. }] = parts else { return Ok(false) };
    let (one, other) = (Leaf::Product(one[0]), Leaf::Product(other[0]));
    let high = subject.exponents(one).1;
    let mut dots = Vec::new();
    for by in BEYOND {
        // c is 1, or less if products do not reach that far.
        let top = by.min(high);
        if by - top > LEAST_OF_C {
            continue;
        }
        let c = (Leaf::C, Number::new(1, top - by));
        for sign in [1, -1] {
            let large = [(one, Number::new(sign, top)), (other, Number::new(-sign, top)), c];
            dots.extend(subject.dot(&large).zip(subject.dot(&[c])));
        }
    }
    let (beside, alone): (Vec<Dot>, Vec<Dot>) = dots.into_iter().unzip();
    Ok(!beside.is_empty() && subject.ask(&beside)? == subject.ask(&alone)?)
}

/// Returns these trees, each followed by the same with the sums reversed in additions that take only sums.
fn with_sums_reversed(trees: &[Expression]) -> Vec<Expression> {
    fn reversed(tree: &Expression) -> Expression {
        let Expression::Add(own, arguments) = tree else { return tree.clone() };
        let mut arguments: Vec<Expression> = arguments.iter().map(reversed).collect();
        if arguments.iter().all(|argument| matches!(argument, Expression::Add(..))) {
            arguments.reverse();
        }
        Expression::Add(*own, arguments)
    }
    trees.iter().flat_map(|tree| [tree.clone(), reversed(tree)]).collect()
}

/// The signs of the terms with which an exchange is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signs {
    Any,
    Positive,
}

/// The addition through which c passes that has an adder of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::identify) enum Apart {
    /// None: all of them share one.
    Neither,
    /// The one that gives d.
    Last,
    /// The one that takes c itself.
    First,
}

/// Returns a tree with one adder for the additions in which c meets other terms, but for the one that is `apart`, and
/// one for each level of the others.
pub(in crate::identify) fn tied(tree: &Expression, apart: Apart) -> Skeleton {
    // A step of a chain is on the level of the step before.
    fn height(tree: &Expression) -> usize {
        let Expression::Add(_, arguments) = tree else { return 0 };
        let sums = arguments.iter().filter(|argument| matches!(argument, Expression::Add(..))).count();
        let is_step = sums == 1 && arguments.len() > 1;
        arguments.iter().map(height).max().unwrap_or(0) + usize::from(!is_step)
    }
    fn tie(tree: &Expression, (of_first, of_c): (usize, usize), levels: &mut Vec<usize>) -> Expression {
        let Expression::Add(_, arguments) = tree else { return tree.clone() };
        let own = if tree.has_c() && !is_c_alone(arguments) {
            if arguments.contains(&Expression::C) { of_first } else { of_c }
        } else {
            let level = height(tree);
            levels.iter().position(|known| *known == level).unwrap_or_else(|| {
                levels.push(level);
                levels.len() - 1
            })
        };
        Expression::Add(own, arguments.iter().map(|argument| tie(argument, (of_first, of_c), levels)).collect())
    }
    // No level is 0: that stands for the adder of d, and the largest number for one of other sums with c.
    let (mut levels, of_c) = match apart {
        Apart::Neither => (vec![0], (0, 0)),
        Apart::Last => (vec![0, usize::MAX], (1, 1)),
        Apart::First => (vec![0, usize::MAX], (1, 0)),
    };
    let mut expression = tie(tree, of_c, &mut levels);
    if let Expression::Add(last, _) = &mut expression {
        *last = 0;
    }
    with_adders(expression, levels.len())
}

/// Returns a tree with one adder for all additions.
pub(in crate::identify) fn tied_to_one(tree: &Expression) -> Skeleton {
    let count = tree.untied().arguments_by_adder().len();
    with_adders(tree.untied().recoloured(&vec![0; count]), 1)
}

/// Returns a tree with one adder for all additions but that which rounds c alone; `None` if there is none.
pub(in crate::identify) fn tied_but_c_alone(tree: &Expression) -> Option<Skeleton> {
    fn tie(tree: &Expression) -> Expression {
        let Expression::Add(_, arguments) = tree else { return tree.clone() };
        Expression::Add(usize::from(is_c_alone(arguments)), arguments.iter().map(tie).collect())
    }
    let expression = tie(tree);
    let of = expression.adders_by_addition();
    (of.first() == Some(&0) && of.contains(&1)).then(|| with_adders(expression, 2))
}

/// Returns a tree with one adder for all additions but that which gives d; `None` if there is no other.
pub(in crate::identify) fn tied_but_last(tree: &Expression) -> Option<Skeleton> {
    let count = tree.untied().arguments_by_adder().len();
    let of: Vec<usize> = (0..count).map(|addition| usize::from(addition > 0)).collect();
    (count > 1).then(|| with_adders(tree.untied().recoloured(&of), 2))
}

/// Whether c is the only argument of an addition.
fn is_c_alone(arguments: &[Expression]) -> bool {
    matches!(arguments, [Expression::C])
}

/// Returns the skeleton of a tree with this many adders, of which the first gives d.
fn with_adders(expression: Expression, adders: usize) -> Skeleton {
    let plan = Arc::new(expression.plan());
    let name = |at: usize| if at == 0 { "sum".to_owned() } else { format!("level-{at}") };
    let role = |at: usize| if at == 0 { Role::Root } else { Role::Inner };
    Skeleton { expression, plan, names: (0..adders).map(name).collect(), roles: (0..adders).map(role).collect() }
}

/// Returns the part itself if it is one, and otherwise their sum.
fn added(mut parts: Vec<Part>) -> Part {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let products = parts.iter().flat_map(|part| part.products.iter().copied()).collect();
    Part { tree: Expression::Add(0, parts.into_iter().map(|part| part.tree).collect()), products }
}

/// Sorts parts into classes of those that may be exchanged, as far as terms of these signs show.
fn exchangeable(
    subject: &Subject<'_>,
    parts: &[Part],
    signs: Signs,
    random: &mut Random,
) -> Result<Vec<Vec<Part>>, Error> {
    let may_be = |one: usize, other: usize| {
        may_be_exchanged(subject, (&parts[one].products, &parts[other].products), signs, random)
    };
    let found = classes(parts.len(), MOST_GROUPS, may_be)?;
    Ok(found.into_iter().map(|class| class.into_iter().map(|at| parts[at].clone()).collect()).collect())
}

/// Returns the trees in which these parts and c meet: first those in which one addition takes all parts, then chains.
/// Trees of one family differ in additions that hardly show.
fn around_c(parts: Vec<Part>) -> Vec<Vec<Expression>> {
    let trees: Vec<Expression> = parts.into_iter().map(|part| part.tree).collect();
    let with = |c: Expression, trees: &[Expression]| Expression::Add(0, trees.iter().cloned().chain([c]).collect());
    let sum = || vec![Expression::Add(0, trees.clone())];
    let mut fused = vec![with(Expression::C, &trees), with(Expression::C, &sum())];
    // A part of one product may have an addition like those of larger parts, and so may c.
    if trees.iter().any(|tree| matches!(tree, Expression::Add(..))) {
        let alone = |tree: &Expression| match tree {
            Expression::Add(..) => tree.clone(),
            leaf => Expression::Add(0, vec![leaf.clone()]),
        };
        fused.push(with(Expression::C, &trees.iter().map(alone).collect::<Vec<_>>()));
    }
    let c_alone = || Expression::Add(0, vec![Expression::C]);
    fused.extend([with(c_alone(), &trees), with(c_alone(), &sum())]);
    // The terms of a part join a chain one step at a time, or their sum does.
    let chain = |start: Option<Expression>, list: &mut dyn Iterator<Item = &Expression>, apart: bool| {
        list.fold(start, |sum, part| {
            let mut terms = match part {
                Expression::Add(_, terms) if !apart => terms.clone(),
                other => vec![other.clone()],
            };
            terms.extend(sum);
            Some(if terms.len() == 1 { terms.remove(0) } else { Expression::Add(0, terms) })
        })
    };
    // c comes last, as it is or rounded alone.
    let last = |sums: Vec<Expression>| -> Vec<Expression> {
        let with = |c: Expression| sums.iter().map(move |sum| Expression::Add(0, vec![sum.clone(), c.clone()]));
        with(Expression::C).chain(with(c_alone())).collect()
    };
    let c = || Some(Expression::C);
    let both = [false, true];
    vec![
        fused,
        both.iter().filter_map(|apart| chain(c(), &mut trees.iter(), *apart)).collect(),
        both.iter().filter_map(|apart| chain(c(), &mut trees.iter().rev(), *apart)).collect(),
        last(both.iter().filter_map(|apart| chain(None, &mut trees.iter(), *apart)).collect()),
        last(both.iter().filter_map(|apart| chain(None, &mut trees.iter().rev(), *apart)).collect()),
    ]
}

/// Returns the trees of all families without those that are known and without duplicates. If `near` is set, which says
/// that a known tree explains nearly every dot, only the family of that one is taken.
pub(in crate::identify) fn unknown(
    families: Vec<Vec<Expression>>,
    known: &[Expression],
    near: bool,
) -> Vec<Expression> {
    let untied = |family: Vec<Expression>| family.iter().map(Expression::untied).collect();
    let mut families: Vec<Vec<Expression>> = families.into_iter().map(untied).collect();
    let is_seen = |family: &Vec<Expression>| family.iter().any(|tree| known.contains(tree));
    if near && let Some(seen) = families.iter().position(is_seen) {
        families = vec![families.swap_remove(seen)];
    }
    let mut distinct: Vec<Expression> = Vec::new();
    for tree in families.into_iter().flatten() {
        if !distinct.contains(&tree) && !known.contains(&tree) {
            distinct.push(tree);
        }
    }
    distinct
}

/// Returns whether the products of two lists may be exchanged, each with the one at the same place of the other list, in
/// dots with terms of these signs.
fn may_be_exchanged(
    subject: &Subject<'_>,
    (one, other): (&[usize], &[usize]),
    signs: Signs,
    random: &mut Random,
) -> Result<bool, Error> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for count in BATCHES {
        let dots: Vec<Dot> = (0..count).map(|_| dot(subject, (one, other), signs, random)).collect();
        if exchange_shows(subject, (one, other), &dots)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Draws a dot of two to five terms, at least one of them a product of the first list.
fn dot(subject: &Subject<'_>, (one, other): (&[usize], &[usize]), signs: Signs, random: &mut Random) -> Dot {
    let id = subject.id();
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut take = |leaf: Leaf| {
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    };
    take(Leaf::Product(one[random.below(one.len())]));
    for list in [one, other] {
        if random.flip() {
            take(Leaf::Product(list[random.below(list.len())]));
        }
    }
    for _ in 0..1 + random.below(2) {
        take(Leaf::Product(random.below(subject.k())));
    }
    if random.flip() {
        take(Leaf::C);
    }
    // Any of them is the largest, and any other may cancel it.
    for at in (1..leaves.len()).rev() {
        leaves.swap(at, random.below(at + 1));
    }
    let range = |format: Format| format.as_float().map_or((0, 0), FloatEncoding::exponents);
    let ((low_a, high_a), (low_b, high_b)) = (range(id.a), range(id.b));
    let (low, high) = (low_a + low_b, high_a + high_b);
    let precision = id.d.fraction_bits().cast_signed();
    let top = match random.below(4) {
        0 => random.between(low, high),
        1 => high - random.between(0, 3),
        _ => random.between(-8, 8).clamp(low, high),
    };
    let mut dot = subject.zeros();
    let negative = |random: &mut Random| random.flip() && signs == Signs::Any;
    put(subject, &mut dot, leaves[0], top, negative(random), random.flip(), random);
    let cancels = random.flip() && leaves.len() > 2 && signs == Signs::Any;
    if cancels {
        dot = negated_into(subject, &dot, leaves[0], leaves[1]);
    }
    for leaf in leaves.iter().skip(if cancels { 2 } else { 1 }) {
        let depth = match random.below(4) {
            0 => random.between(0, 3),
            1 | 2 => random.between(0, precision + 8),
            _ => random.between(0, 2 * precision + 16),
        };
        put(subject, &mut dot, *leaf, (top - depth).max(low), negative(random), random.flip(), random);
    }
    dot
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Device;

    use super::*;
    use crate::identify::tree::made_up;

    fn families(operation: &str, tree: &str, below: &str) -> Vec<Vec<String>> {
        let device = made_up::device(operation, tree, below);
        let operation = device.operations().values().next().expect("an operation").clone();
        let subject = Subject::new(&device, &operation);
        let names: Vec<String> = (0..64).map(|at| format!("n{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = |tree: &Expression| tied(tree, Apart::Neither).expression.text(&names, subject.k());
        trees(&subject, 1).expect("answers").iter().map(|family| family.iter().map(text).collect()).collect()
    }

    #[test]
    fn exchanges_show_groups_beside_a_c_that_swallows_nothing() {
        for (tree, wanted) in [
            ("s(w(every(2, 0)), w(every(2, 1)), c)", "n0(n1(every(2, 0)), n1(every(2, 1)), c)"),
            ("s(all, c)", "fold(c, all/8, n0(all, acc))"),
            ("fold(c, all/4, s(w(0..2), w(2..4), acc))", "fold(c, all/4, n0(n1(0..2), n1(2..4), acc))"),
            (
                "s(c, fold(none, reverse/2, s(all, acc)))",
                "fold(c, all/8, n0(n1(0..2, n1(2..4, n1(4..6, n1(6..8)))), acc))",
            ),
        ] {
            for below in ["truncate", "ones-complement"] {
                let found = families("dot.m4n4k8.f32.f16.f16.f32", tree, below);
                assert!(found.concat().iter().any(|other| other == wanted), "{tree} {below}: {found:#?}");
            }
        }
    }

    #[test]
    fn a_c_that_joins_a_chain_last_is_told_from_one_that_begins_it() {
        for (tree, wanted) in [
            ("s(c, fold(none, all/2, s(all, acc)))", "n0(fold(none, all/2, n1(all, acc)), c)"),
            ("s(s(c), fold(none, all/2, s(all, acc)))", "n0(fold(none, all/2, n1(all, acc)), n1(c))"),
            ("fold(c, all/2, s(all, acc))", "fold(c, all/2, n0(all, acc))"),
        ] {
            let found = families("dot.m4n4k4.f32.f16.f16.f32", tree, "truncate");
            assert!(found[0].iter().any(|other| other == wanted), "{tree}: {found:#?}");
        }
    }

    #[test]
    fn positive_terms_show_sums_that_an_addition_in_ones_complement_takes() {
        let found = families("dot.m4n4k8.f32.f16.f16.f32", "s(s(s(0..4), s(4..8)), c)", "ones-complement");
        for wanted in ["fold(c, all/8, n0(n1(n2(0..4), n2(4..8)), acc))", "n0(n1(n2(4..8), n2(0..4)), c)"] {
            assert!(found[0].iter().any(|other| other == wanted), "{found:#?}");
        }
    }

    #[test]
    fn only_trees_like_one_that_was_seen_remain() {
        let (product, c) = (Expression::Product, || Expression::C);
        let sum = |terms: Vec<Expression>| Expression::Add(0, terms);
        let seen = sum(vec![product(0), product(1), c()]).untied();
        let like = sum(vec![sum(vec![product(0), product(1)]), c()]);
        let other = sum(vec![product(1), sum(vec![product(0), c()])]);
        let families = vec![vec![other.clone()], vec![seen.clone(), like.clone()]];
        assert_eq!(unknown(families.clone(), std::slice::from_ref(&seen), true), [like.untied()]);
        assert_eq!(unknown(families.clone(), std::slice::from_ref(&seen), false), [other.untied(), like.untied()]);
        assert_eq!(unknown(families, &[], true), [other.untied(), seen, like.untied()]);
    }
}
