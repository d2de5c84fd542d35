//! Detection of products that are added before c joins them. Two products of one such group have the same effect as one
//! product of twice the size, however few bits are kept next to c.

use std::collections::HashMap;

use mxprobe_api::Error;

use super::{classes::classes, expression::Expression};
use crate::{
    dots::Dot,
    probes::{Leaf, Number, Subject},
};

/// The most products of a dot for which groups are searched: the number of pairs grows with their square.
const MOST: usize = 64;
/// How many binades below c are searched for the smallest product that counts, and by how many binades below and above
/// it pairs are tested.
const DEPTH: i32 = 60;
const BELOW: i32 = 4;
const ABOVE: i32 = 2;
/// How many binades above the largest product c may lie: no more than the bits that a unit keeps below it.
const BEYOND: i32 = 12;
/// Significands of c, of few bits.
const BESIDE: [i128; 2] = [4, -5];

/// Returns the number of the group of each product. Two products are in one group if they count as one of twice the
/// size next to a large c. All are in one group if c swallows nothing, if c or the products never count, or if there
/// are too many.
///
/// # Errors
/// Returns the error of the device if it fails.
pub(in crate::identify) fn groups(subject: &Subject<'_>) -> Result<Vec<usize>, Error> {
    let products: Vec<usize> = subject
        .leaves()
        .into_iter()
        .filter_map(|leaf| if let Leaf::Product(k) = leaf { Some(k) } else { None })
        .collect();
    let mut of: Vec<usize> = vec![0; subject.k()];
    let (Some(first), true) = (products.first(), subject.leaves().contains(&Leaf::C)) else { return Ok(of) };
    if products.len() < 2 || products.len() > MOST {
        return Ok(of);
    }
    let leaf = Leaf::Product(*first);
    let (low, high) = subject.exponents(leaf);
    // So high that the smallest products do not count, but the largest do: a unit of few bits needs a lower c.
    let mut beside = Vec::new();
    for top in [(low + DEPTH).min(high + BEYOND), high] {
        if beside.is_empty() {
            beside = values_beside(subject, leaf, top)?;
        }
    }
    let alike = |one: usize, other: usize| together(subject, products[one], products[other], &beside);
    for (group, members) in classes(products.len(), MOST, alike)?.into_iter().enumerate() {
        members.into_iter().for_each(|at| of[products[at]] = group);
    }
    Ok(of)
}

/// Returns values of c about 2^top, each with the smallest value of a product that counts next to it.
fn values_beside(subject: &Subject<'_>, leaf: Leaf, top: i32) -> Result<Vec<(Number, Number)>, Error> {
    let (low, high) = subject.exponents(Leaf::C);
    let top = top.clamp(0, (high - 8).max(0)).max(low);
    let mut found = Vec::new();
    for of_c in BESIDE {
        let c = Number::new(of_c, top - 2);
        for sign in [1, -1] {
            let values: Vec<Number> = (0..DEPTH).map(|depth| Number::new(sign, top - depth)).collect();
            let dots: Vec<Option<Dot>> =
                values.iter().map(|value| subject.dot(&[(Leaf::C, c), (leaf, *value)])).collect();
            let Some(alone) = subject.dot(&[(Leaf::C, c)]) else { continue };
            let possible: Vec<Dot> = std::iter::once(alone).chain(dots.iter().flatten().cloned()).collect();
            let answers = subject.ask(&possible)?;
            let some: Vec<Number> =
                values.iter().zip(&dots).filter(|(_, dot)| dot.is_some()).map(|(v, _)| *v).collect();
            // The smallest that counts, provided that a smaller one does not.
            let counts = some.iter().zip(&answers[1..]).rev().find(|(_, d)| **d != answers[0]);
            if let Some((least, _)) = counts
                && some.last() != Some(least)
            {
                found.push((c, *least));
            }
        }
    }
    Ok(found)
}

/// Returns whether two products count as one of twice the size next to each of these values of c.
fn together(subject: &Subject<'_>, one: usize, other: usize, beside: &[(Number, Number)]) -> Result<bool, Error> {
    let mut dots = Vec::new();
    for (c, least) in beside {
        for by in -BELOW..=ABOVE {
            let value = least.scaled(by);
            let two = [(Leaf::C, *c), (Leaf::Product(one), value), (Leaf::Product(other), value)];
            let single = [(Leaf::C, *c), (Leaf::Product(one), value.times(2))];
            dots.extend(subject.dot(&two).zip(subject.dot(&single)));
        }
    }
    let (two, single): (Vec<Dot>, Vec<Dot>) = dots.into_iter().unzip();
    Ok(subject.ask(&two)? == subject.ask(&single)?)
}

/// Returns the tree with a new addition around the arguments that belong to one group, wherever an addition has others
/// too; and the same with an addition around each product that is alone in its group next to larger ones. Empty if that
/// changes nothing.
pub(in crate::identify) fn joined(tree: &Expression, of: &[usize]) -> Vec<Expression> {
    let mut found: Vec<Expression> = [false, true].map(|singles| join(tree, of, singles)).into();
    found.dedup();
    found.retain(|joined| joined != tree);
    found
}

/// Joins groups as [`joined`] does, with an addition around products that are alone in their group if `singles` is set.
fn join(tree: &Expression, of: &[usize], singles: bool) -> Expression {
    let Expression::Add(adder, arguments) = tree else { return tree.clone() };
    let group = |argument: &Expression| -> Option<usize> {
        let products = argument.products();
        let first = of[*products.first()?];
        (!argument.has_c() && products.iter().all(|product| of[*product] == first)).then_some(first)
    };
    let mut count: HashMap<usize, usize> = HashMap::new();
    arguments.iter().filter_map(group).for_each(|group| *count.entry(group).or_default() += 1);
    let has_larger = count.values().any(|count| *count > 1 && *count < arguments.len());
    let mut found: Vec<(Option<usize>, Vec<Expression>)> = Vec::new();
    for argument in arguments {
        let is_joined = |group: &usize| (singles && has_larger || count[group] > 1) && count[group] < arguments.len();
        let own = group(argument).filter(is_joined);
        let argument = join(argument, of, singles);
        match found.iter_mut().find(|(group, _)| own.is_some() && *group == own) {
            Some((_, members)) => members.push(argument),
            None => found.push((own, vec![argument])),
        }
    }
    let arguments = found.into_iter().map(|(group, mut members)| match (group, &members[..]) {
        // A sum that is alone in its group has an addition already.
        (Some(_), [Expression::Add(..)]) | (None, _) => members.remove(0),
        (Some(_), _) => Expression::Add(*adder, members),
    });
    Expression::Add(*adder, arguments.collect())
}
