//! Sums, with long ones folded for drawing: repeated parts are drawn once, and dots replace the rest.

use crate::in_order::InOrder;

/// A sum, or a term of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sum {
    /// The addend C.
    C,
    /// The product at this k.
    Product(usize),
    /// The terms of one addition.
    Added(Vec<Sum>),
}

/// A sum as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    /// A term, or dots for several terms or sums.
    Term {
        /// The label below it.
        label: String,
        /// Whether it is dots.
        is_many: bool,
    },
    /// The terms of one addition, sums first.
    Added(Vec<Drawn>),
}

/// Sums with at most this many terms are drawn without folding.
const FEW: usize = 17;
/// In a longer sum, additions with at most this many terms and chains with at most this many steps are drawn whole; of
/// longer ones, the first three and the last.
const WHOLE: usize = 6;
const BEGINNING: usize = 3;
/// The depth to which additions are drawn; dots replace deeper ones.
const DEEPEST: usize = 100;

impl Drawn {
    /// The number of additions on the longest path from a term to the result.
    pub(super) fn levels(&self) -> usize {
        match self {
            Self::Term { .. } => 0,
            Self::Added(terms) => 1 + terms.iter().map(Self::levels).max().unwrap_or(0),
        }
    }

    /// The labels of the terms.
    #[cfg(test)]
    pub(super) fn labels(&self) -> Vec<&str> {
        match self {
            Self::Term { label, .. } => vec![label],
            Self::Added(terms) => terms.iter().flat_map(Self::labels).collect(),
        }
    }
}

/// Folds a sum for drawing; a short one is drawn whole.
pub(super) fn folded(sum: &Sum) -> Drawn {
    draw(sum, sum.terms().len() <= FEW, 0)
}

impl Sum {
    /// All terms of the sum, in no particular order; `None` is c.
    fn terms(&self) -> Vec<Option<usize>> {
        match self {
            Self::C => vec![None],
            Self::Product(k) => vec![Some(*k)],
            Self::Added(terms) => terms.iter().flat_map(Self::terms).collect(),
        }
    }

    /// The terms of one addition: sums first, the one with c before the others; then single terms, c last, or first if
    /// all are single terms.
    fn in_order(terms: &[Self]) -> (Vec<&Self>, Vec<&Self>) {
        let (mut sums, mut leaves): (Vec<&Self>, Vec<&Self>) =
            terms.iter().partition(|term| matches!(term, Self::Added(_)));
        // `None` is less than any k.
        sums.order_by_key(|sum| sum.terms().into_iter().min().unwrap_or_default());
        leaves.order_by_key(|leaf| match leaf {
            Self::C if sums.is_empty() => 0,
            Self::Product(k) => k.saturating_add(1),
            _ => usize::MAX,
        });
        (sums, leaves)
    }

    /// Whether the other sum has the same shape, whatever its terms.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Added(left), Self::Added(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.is_like(right))
            }
            (Self::Added(_), _) | (_, Self::Added(_)) => false,
            _ => true,
        }
    }
}

fn term(sum: &Sum) -> Drawn {
    let label = match sum {
        Sum::Product(k) => format!("p{k}"),
        _ => "c".into(),
    };
    Drawn::Term { label, is_many: false }
}

fn dots() -> Drawn {
    Drawn::Term { label: "…".into(), is_many: true }
}

fn draw(sum: &Sum, is_whole: bool, depth: usize) -> Drawn {
    let Sum::Added(terms) = sum else { return term(sum) };
    if terms.is_empty() || depth > DEEPEST {
        return dots();
    }
    if !is_whole && let Some(chain) = chain(sum, depth) {
        return chain;
    }
    let (sums, leaves) = Sum::in_order(terms);
    let mut drawn: Vec<Drawn> = Vec::new();
    for (at, sum) in sums.iter().enumerate() {
        // Of sums with the same shape, the first is drawn and dots replace the others.
        let is_known = sums[..at].iter().any(|before| before.is_like(sum));
        drawn.push(if is_known && !is_whole && at > 0 { span(sum) } else { draw(sum, is_whole, depth + 1) });
    }
    drawn.extend(run(&leaves, is_whole));
    Drawn::Added(drawn)
}

/// Dots for a sum, labelled with its first and last product.
fn span(sum: &Sum) -> Drawn {
    let products: Vec<usize> = sum.terms().into_iter().flatten().collect();
    match (products.iter().min(), products.iter().max()) {
        (Some(first), Some(last)) => Drawn::Term { label: format!("p{first}…p{last}"), is_many: true },
        _ => dots(),
    }
}

/// The single terms of an addition; of many, the first ones, dots and the last.
fn run(leaves: &[&Sum], is_whole: bool) -> Vec<Drawn> {
    if is_whole || leaves.len() <= WHOLE {
        return leaves.iter().map(|leaf| term(leaf)).collect();
    }
    let first = leaves[..BEGINNING].iter().map(|leaf| term(leaf));
    first.chain([dots(), term(leaves[leaves.len() - 1])]).collect()
}

/// Folds a chain of steps with the same number of terms into the first ones, dots and the last; `None` if there are
/// few.
fn chain(sum: &Sum, depth: usize) -> Option<Drawn> {
    let mut steps: Vec<Vec<&Sum>> = Vec::new();
    let mut at = sum;
    while let Sum::Added(terms) = at {
        let (sums, leaves) = Sum::in_order(terms);
        if sums.len() != 1 || steps.last().is_some_and(|step| step.len() != leaves.len()) {
            break;
        }
        steps.push(leaves);
        at = sums[0];
    }
    steps.reverse();
    if steps.len() <= WHOLE {
        return None;
    }
    let last = steps.len() - 1;
    let step = |sum: Drawn, leaves: &[&Sum]| Drawn::Added([vec![sum], run(leaves, false)].concat());
    let begun = if steps[0].len() > 1 { 1 } else { BEGINNING };
    let begun = steps[..begun].iter().fold(draw(at, false, depth + 1), |sum, leaves| step(sum, leaves));
    let folded = Drawn::Added(vec![begun, dots()]);
    Some(step(folded, &steps[last]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_of(k: usize) -> Sum {
        (0..k).fold(Sum::C, |sum, k| Sum::Added(vec![Sum::Product(k), sum]))
    }

    fn pairs(from: usize, to: usize) -> Sum {
        if to - from == 1 {
            return Sum::Product(from);
        }
        Sum::Added(vec![pairs(from, from.midpoint(to)), pairs(from.midpoint(to), to)])
    }

    #[test]
    fn long_chains_are_drawn_by_their_ends() {
        assert_eq!(folded(&chain_of(64)).labels(), ["c", "p0", "p1", "p2", "p3", "…", "p63"]);
        assert_eq!(folded(&chain_of(16)).labels().len(), 17, "a short one is drawn whole");
        assert_eq!(folded(&chain_of(200)).labels().len(), 7);
        // Steps of four.
        let blocks = (0..16)
            .fold(Sum::C, |sum, block| Sum::Added((4 * block..4 * block + 4).map(Sum::Product).chain([sum]).collect()));
        let drawn = folded(&blocks);
        assert_eq!(drawn.labels().last(), Some(&"p63"));
        assert!(drawn.labels().len() < 16, "{:?}", drawn.labels());
    }

    #[test]
    fn wide_additions_and_halves_that_are_alike_are_drawn_once() {
        let fused = Sum::Added((0..64).map(Sum::Product).chain([Sum::C]).collect());
        assert_eq!(folded(&fused).labels(), ["c", "p0", "p1", "…", "p63"]);
        let tree = Sum::Added(vec![Sum::C, pairs(0, 64)]);
        let labels = ["p0", "p1", "p2…p3", "p4…p7", "p8…p15", "p16…p31", "p32…p63", "c"];
        assert_eq!(folded(&tree).labels(), labels);
        assert_eq!(folded(&pairs(0, 16)).labels().len(), 16);
    }

    #[test]
    fn what_a_hostile_file_nests_is_drawn_too() {
        assert_eq!(folded(&Sum::Added(Vec::new())).labels(), ["…"]);
        let deep = (0..120).fold(Sum::C, |sum, k| Sum::Added(vec![Sum::Product(k), Sum::Added(vec![sum])]));
        assert!(folded(&deep).labels().len() < 2 * DEEPEST);
    }
}
