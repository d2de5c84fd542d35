//! A summation tree, derived from which leaves swamp which.

use super::subject::Leaf;
use crate::findings::Value;

/// A summation tree as far as it can be observed: which leaves are joined before which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A product or c.
    Leaf(Leaf),
    /// An inner node.
    Node {
        /// How its children are joined.
        joint: Joint,
        /// Leaves first, in order of k, then inner nodes by their first leaf.
        children: Vec<Tree>,
    },
}

/// How the children of a node are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// Two terms.
    Pair,
    /// Three or more at once; the largest swamps the others even if they cancel.
    Fused,
    /// Three or more at once; nothing is lost before all are added.
    Exact,
}

/// For every pair of leaves (i, j) that hold M and −M: which third leaves are lost.
pub(super) struct Losses {
    n: usize,
    lost: Vec<bool>,
}

impl Losses {
    pub(super) fn new(n: usize) -> Self {
        Self { n, lost: vec![false; n * n * n] }
    }

    pub(super) fn set(&mut self, i: usize, j: usize, x: usize, lost: bool) {
        let n = self.n;
        self.lost[(i * n + j) * n + x] = lost;
        self.lost[(j * n + i) * n + x] = lost;
    }

    pub(super) fn get(&self, i: usize, j: usize, x: usize) -> bool {
        self.lost[(i * self.n + j) * self.n + x]
    }

    /// Whether i and j are joined before x: x survives them, and each of them, with x, swamps the other.
    fn closer(&self, i: usize, j: usize, x: usize) -> bool {
        !self.get(i, j, x) && self.get(i, x, j) && self.get(j, x, i)
    }

    /// Builds the tree that explains every loss; the error is a triple that no tree explains.
    pub(super) fn tree(&self, leaves: &[Leaf]) -> Result<Tree, (Leaf, Leaf, Leaf)> {
        let all: Vec<usize> = (0..self.n).collect();
        let tree = self.build(&all, leaves)?;
        self.check(&tree, leaves)?;
        Ok(tree)
    }

    fn build(&self, set: &[usize], leaves: &[Leaf]) -> Result<Tree, (Leaf, Leaf, Leaf)> {
        if let [only] = set {
            return Ok(Tree::Leaf(leaves[*only]));
        }
        let parts = self.parts(set);
        if parts.len() == 1 {
            return Err((leaves[set[0]], leaves[set[1]], leaves[*set.get(2).unwrap_or(&set[1])]));
        }
        let joint = match parts[..] {
            [_, _] => Joint::Pair,
            _ if self.get(parts[0][0], parts[1][0], parts[2][0]) => Joint::Fused,
            _ => Joint::Exact,
        };
        let mut children = parts.iter().map(|part| self.build(part, leaves)).collect::<Result<Vec<_>, _>>()?;
        children.sort_by_key(|child| (matches!(child, Tree::Node { .. }), child.first_leaf()));
        Ok(Tree::Node { joint, children })
    }

    /// Splits a set into parts whose members some third member shows to be joined first.
    fn parts(&self, set: &[usize]) -> Vec<Vec<usize>> {
        let mut part_of: Vec<usize> = (0..set.len()).collect();
        for i in 0..set.len() {
            for j in i + 1..set.len() {
                let (from, to) = (part_of[j], part_of[i]);
                if from != to && set.iter().any(|x| *x != set[i] && *x != set[j] && self.closer(set[i], set[j], *x)) {
                    part_of.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
                }
            }
        }
        let mut parts: Vec<Vec<usize>> = Vec::new();
        let mut seen: Vec<usize> = Vec::new();
        for (member, part) in set.iter().zip(&part_of) {
            match seen.iter().position(|known| known == part) {
                Some(at) => parts[at].push(*member),
                None => {
                    seen.push(*part);
                    parts.push(vec![*member]);
                }
            }
        }
        parts
    }

    /// Checks every triple against the tree.
    fn check(&self, tree: &Tree, leaves: &[Leaf]) -> Result<(), (Leaf, Leaf, Leaf)> {
        let Tree::Node { joint, children } = tree else { return Ok(()) };
        let index_of = |leaf: &Leaf| leaves.iter().position(|other| other == leaf).expect("a leaf of the tree");
        let members: Vec<Vec<usize>> =
            children.iter().map(|child| child.leaves().iter().map(index_of).collect()).collect();
        let inside: Vec<usize> = members.iter().flatten().copied().collect();
        for (first, left) in members.iter().enumerate() {
            for (second, right) in members.iter().enumerate().skip(first + 1) {
                for (i, j) in left.iter().flat_map(|i| right.iter().map(move |j| (*i, *j))) {
                    for x in (0..self.n).filter(|x| *x != i && *x != j) {
                        let in_a_child = |child: usize| members[child].contains(&x);
                        let lost =
                            in_a_child(first) || in_a_child(second) || (*joint == Joint::Fused && inside.contains(&x));
                        if lost != self.get(i, j, x) {
                            return Err((leaves[i], leaves[j], leaves[x]));
                        }
                    }
                }
            }
        }
        children.iter().try_for_each(|child| self.check(child, leaves))
    }
}

/// For every pair of leaves that hold M and −M: how many others are lost.
pub(super) struct Counts {
    n: usize,
    lost: Vec<u32>,
}

impl Counts {
    pub(super) fn new(n: usize) -> Self {
        Self { n, lost: vec![0; n * n] }
    }

    pub(super) fn set(&mut self, i: usize, j: usize, lost: usize) {
        let lost = u32::try_from(lost).unwrap_or(u32::MAX);
        self.lost[i * self.n + j] = lost;
        self.lost[j * self.n + i] = lost;
    }

    /// Builds the tree in which two leaves swamp everything below their joint; the error is a pair that no such tree
    /// explains.
    pub(super) fn tree(&self, leaves: &[Leaf]) -> Result<Tree, (Leaf, Leaf)> {
        self.build(&(0..self.n).collect::<Vec<_>>(), leaves)
    }

    fn build(&self, set: &[usize], leaves: &[Leaf]) -> Result<Tree, (Leaf, Leaf)> {
        if let [only] = set {
            return Ok(Tree::Leaf(leaves[*only]));
        }
        let all = u32::try_from(set.len() - 2).unwrap_or(u32::MAX);
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for member in set {
            let joined_earlier = |part: &&mut Vec<usize>| self.lost[part[0] * self.n + member] < all;
            match parts.iter_mut().find(joined_earlier) {
                Some(part) => part.push(*member),
                None => parts.push(vec![*member]),
            }
        }
        if parts.len() == 1 {
            return Err((leaves[set[0]], leaves[set[1]]));
        }
        for (at, part) in parts.iter().enumerate() {
            for (i, j) in part.iter().flat_map(|i| parts[at + 1..].iter().flatten().map(move |j| (*i, *j))) {
                if self.lost[i * self.n + j] != all {
                    return Err((leaves[i], leaves[j]));
                }
            }
        }
        let joint = if parts.len() == 2 { Joint::Pair } else { Joint::Fused };
        let mut children = parts.iter().map(|part| self.build(part, leaves)).collect::<Result<Vec<_>, _>>()?;
        children.sort_by_key(|child| (matches!(child, Tree::Node { .. }), child.first_leaf()));
        Ok(Tree::Node { joint, children })
    }
}

impl Tree {
    /// The leaves of the tree, in no particular order.
    #[must_use]
    pub fn leaves(&self) -> Vec<Leaf> {
        fn collect(tree: &Tree, found: &mut Vec<Leaf>) {
            match tree {
                Tree::Leaf(leaf) => found.push(*leaf),
                Tree::Node { children, .. } => children.iter().for_each(|child| collect(child, found)),
            }
        }
        let mut found = Vec::new();
        collect(self, &mut found);
        found
    }

    fn first_leaf(&self) -> Leaf {
        self.leaves().into_iter().min().unwrap_or(Leaf::C)
    }

    /// Every inner node, from the root down.
    #[must_use]
    pub fn nodes(&self) -> Vec<&Self> {
        fn collect<'t>(tree: &'t Tree, found: &mut Vec<&'t Tree>) {
            if let Tree::Node { children, .. } = tree {
                found.push(tree);
                children.iter().for_each(|child| collect(child, found));
            }
        }
        let mut found = Vec::new();
        collect(self, &mut found);
        found
    }

    /// The leaves that are joined at this node itself.
    #[must_use]
    pub fn direct_leaves(&self) -> Vec<Leaf> {
        match self {
            Self::Leaf(_) => Vec::new(),
            Self::Node { children, .. } => children
                .iter()
                .filter_map(|child| match child {
                    Self::Leaf(leaf) => Some(*leaf),
                    Self::Node { .. } => None,
                })
                .collect(),
        }
    }

    /// The products that join c's running sum together, step by step from c to the root.
    #[must_use]
    pub fn blocks(&self) -> Vec<Vec<usize>> {
        let Self::Node { children, .. } = self else { return Vec::new() };
        let mut blocks = Vec::new();
        let mut here = Vec::new();
        for child in children {
            if child.leaves().contains(&Leaf::C) {
                blocks = child.blocks();
            } else {
                here.extend(child.leaves().into_iter().filter_map(|leaf| match leaf {
                    Leaf::Product(k) => Some(k),
                    Leaf::C => None,
                }));
            }
        }
        here.sort_unstable();
        blocks.push(here);
        blocks
    }

    /// The most products that are joined at one node of three or more terms; 1 if every node joins two.
    #[must_use]
    pub fn products_at_once(&self) -> usize {
        let fused = self.nodes().into_iter().filter(|node| !matches!(node, Self::Node { joint: Joint::Pair, .. }));
        let products = |node: &Self| node.direct_leaves().iter().filter(|leaf| **leaf != Leaf::C).count();
        fused.map(products).max().unwrap_or(0).max(1)
    }

    /// Nested lists: `[["c", 0, 1], 2, 3]` is c and the products 0 and 1 at once, then 2 and 3.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Self::Leaf(Leaf::Product(k)) => (*k).into(),
            Self::Leaf(Leaf::C) => "c".into(),
            Self::Node { children, .. } => Value::List(children.iter().map(Self::value).collect()),
        }
    }

    /// The terms of a chain of two-term additions, in order; `None` if the tree is not such a chain.
    fn chain(&self) -> Option<Vec<Leaf>> {
        match self {
            Self::Leaf(leaf) => Some(vec![*leaf]),
            Self::Node { joint: Joint::Pair, children } => match &children[..] {
                [Self::Leaf(x), Self::Leaf(y)] => {
                    // The first two terms of a chain commute; c and low k come first.
                    Some(if *y == Leaf::C { vec![*y, *x] } else { vec![*x, *y] })
                }
                [Self::Leaf(last), rest] => {
                    let mut chain = rest.chain()?;
                    chain.push(*last);
                    Some(chain)
                }
                _ => None,
            },
            Self::Node { .. } => None,
        }
    }

    /// The chains of additions that this node joins, if its children are all chains of three or more terms; otherwise
    /// empty.
    #[must_use]
    pub fn chains(&self) -> Vec<Vec<Leaf>> {
        let Self::Node { joint: Joint::Pair, children } = self else { return Vec::new() };
        let chains: Option<Vec<Vec<Leaf>>> = children.iter().map(Self::chain).collect();
        chains.filter(|chains| chains.iter().all(|chain| chain.len() > 2)).unwrap_or_default()
    }

    /// Describes the tree.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Leaf(Leaf::Product(k)) => format!("p{k}"),
            Self::Leaf(Leaf::C) => "c".into(),
            Self::Node { joint, children } => {
                if let Some(chain) = self.chain().filter(|chain| chain.len() > 2) {
                    return format!("chain({})", names(&chain, " → "));
                }
                let word = match joint {
                    Joint::Pair => "",
                    Joint::Fused => "fused",
                    Joint::Exact => "exact",
                };
                let leaves = self.direct_leaves();
                let mut parts: Vec<String> =
                    children.iter().filter(|child| matches!(child, Self::Node { .. })).map(Self::describe).collect();
                if !leaves.is_empty() {
                    parts.push(names(&leaves, " + "));
                }
                format!("{word}({})", parts.join(" + "))
            }
        }
    }
}

/// Formats leaves.
pub(super) fn list(leaves: &[Leaf]) -> String {
    names(leaves, " ")
}

/// Formats runs of products with a constant step as `p0…p7` or `p0,p2…p30`.
fn names(leaves: &[Leaf], separator: &str) -> String {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < leaves.len() {
        let Leaf::Product(first) = leaves[at] else {
            parts.push("c".to_owned());
            at += 1;
            continue;
        };
        let follows =
            |from: usize, step: i64, leaf: &Leaf| matches!(leaf, Leaf::Product(k) if to_i64(*k) == to_i64(from) + step);
        let step = match leaves.get(at + 1) {
            Some(Leaf::Product(second)) => to_i64(*second) - to_i64(first),
            _ => 0,
        };
        let mut end = at;
        while let (Leaf::Product(from), Some(next)) = (leaves[end], leaves.get(end + 1)) {
            if step == 0 || !follows(from, step, next) {
                break;
            }
            end += 1;
        }
        let last = match leaves[end] {
            Leaf::Product(k) => k,
            Leaf::C => first,
        };
        match end - at {
            0 => parts.push(format!("p{first}")),
            1 => parts.push(format!("p{first}{separator}p{last}")),
            _ if step == 1 => parts.push(format!("p{first}…p{last}")),
            _ => parts.push(format!("p{first},p{}…p{last}", to_i64(first) + step)),
        }
        at = end + 1;
    }
    parts.join(separator)
}

fn to_i64(k: usize) -> i64 {
    i64::try_from(k).unwrap_or(i64::MAX)
}
