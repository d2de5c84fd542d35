//! Question 5 when the tree cannot be determined: which products are added before c's sum is rounded.

use mxprobe_api::Error;

use super::{
    Leaf, Subject,
    facts::{Facts, Structure},
    number::Number,
    steps,
};
use crate::{dots::Dot, findings::Finding};

/// For products whose formats are too narrow for one to swamp another: two products of half a unit in the last place of
/// c raise c by that unit if and only if they are added before c's sum is rounded.
pub(super) fn under_c(subject: &Subject<'_>, facts: &mut Facts) -> Result<Vec<Finding>, Error> {
    let tree_reason =
        "products of these formats, or of one scale block, are too close in magnitude for one to swamp another";
    let k = subject.k();
    let (_, high) = subject.exponents(Leaf::Product(0));
    let precision = subject.id().d.fraction_bits().cast_signed();
    let half = Number::power(high.min(0));
    let c = half.scaled(precision + 1);
    let pairs: Vec<(usize, usize)> = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j))).collect();
    let dots: Option<Vec<Dot>> = pairs
        .iter()
        .map(|(i, j)| subject.dot(&[(Leaf::C, c), (Leaf::Product(*i), half), (Leaf::Product(*j), half)]))
        .collect();
    let reach = c.plus(half.times(2));
    let (Some(dots), Some(apart), Some(together)) =
        (dots, subject.d_bits(c), reach.and_then(|value| subject.d_bits(value)))
    else {
        return Ok(vec![Finding::inconclusive(steps::TREE, tree_reason)]);
    };
    let answers = subject.ask(&dots)?;
    let mut part_of: Vec<usize> = (0..k).collect();
    for ((i, j), d) in pairs.iter().zip(&answers) {
        if *d == together {
            let (from, to) = (part_of[*j], part_of[*i]);
            part_of.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
        }
    }
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    for part in 0..k {
        let block: Vec<usize> = (0..k).filter(|index| part_of[*index] == part).collect();
        if !block.is_empty() {
            blocks.push(block);
        }
    }
    let tree = Finding::inconclusive(steps::TREE, tree_reason);
    if let Some(odd) = answers.iter().position(|d| *d != apart && *d != together) {
        let shown = subject.evidence("c and two products of half its last place", &dots[odd], answers[odd], &[]);
        return Ok(vec![
            tree,
            Finding::inconclusive(steps::BLOCKS.name, "a sum is neither c nor the next value").with(vec![shown]),
        ]);
    }
    if blocks.len() == k && k > 1 {
        let reason = "no two products of half c's last place are seen to meet before c's sum is rounded";
        let shown = subject.evidence(
            "c and two products of half its last place",
            &dots[0],
            answers[0],
            &[("added together".into(), together), ("added one after another, or cut at alignment".into(), apart)],
        );
        return Ok(vec![tree, Finding::inconclusive(steps::BLOCKS.name, reason).with(vec![shown])]);
    }
    let rivals = [("added together".to_owned(), together), ("added one after another".to_owned(), apart)];
    let shown = subject.evidence("c and two products of half its last place", &dots[0], answers[0], &rivals);
    let width = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let statement =
        format!("blocks of {width} products meet before c's sum is rounded: {}", steps::show_blocks(&blocks));
    facts.structure = Some(Structure::of_blocks(blocks.clone()));
    Ok(vec![
        tree,
        Finding::measured(steps::BLOCKS.name, blocks.clone(), statement).with(vec![shown]),
        Finding::inconclusive(
            steps::PRODUCTS_AT_ONCE.name,
            format!("at most {width}: these formats do not show whether a block's products are added in one addition"),
        ),
    ])
}
