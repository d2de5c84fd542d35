//! The tree over k, seen from outside: which products meet first.
//!
//! After FPRev (arXiv:2411.00442): with a large value at i, its negation at j and units elsewhere, the result counts
//! the units that were added after i and j met. One anchor shows all sums on its way to the root and the products that
//! join at each. Those that join together are then resolved among themselves.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use mxprobe_api::{Error, Random};

use super::{
    product::{Line, Product},
    scale::Scale,
};
use crate::in_order::InOrder;

/// Depth from which anchors are drawn at random, so that chains in any direction are halved.
const IN_ORDER: usize = 2;

/// Maximum number of questions of one wave that are held simultaneously.
const AT_ONCE: usize = 1 << 15;

/// A set of products that are summed before any other joins them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clade {
    /// The sum of the keys of its products.
    pub(super) key: u64,
    /// Number of products.
    pub(super) size: usize,
    /// Number of sets within it, itself included.
    pub(super) within: usize,
    /// The index of the smallest set around it.
    parent: Option<usize>,
    /// Its first product.
    pub(super) first: usize,
}

/// The tree over k: every set of two or more products that are summed before others join.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) k: usize,
    /// The sets: the whole first, and each set before those within it.
    pub(super) clades: Vec<Clade>,
    by_key: HashMap<u64, usize>,
    /// The index of the smallest set that contains each product.
    around: Vec<Option<usize>>,
}

/// Returns the key of one product. The key of a set is the sum of its products' keys.
pub(super) fn key_of(product: usize) -> u64 {
    Random(product as u64 ^ 0x6b65_7900_0000_0000).bits()
}

/// Returns the key of a set.
pub(super) fn key(products: &[usize]) -> u64 {
    products.iter().fold(0, |sum, product| sum.wrapping_add(key_of(*product)))
}

impl Tree {
    /// Makes the tree of some sets of products, each of which comes before those within it.
    fn of(clades: Vec<Clade>, around: Vec<Option<usize>>) -> Self {
        let mut tree = Self { k: around.len(), by_key: HashMap::new(), clades, around };
        for at in (0..tree.clades.len()).rev() {
            if let Some(parent) = tree.clades[at].parent {
                tree.clades[parent].within += tree.clades[at].within;
            }
            tree.by_key.insert(tree.clades[at].key, at);
        }
        tree
    }

    /// Returns the sets that contain a product, the smallest first, as their products in ascending order. Sets of more
    /// than `most` products are left out.
    pub(super) fn around(&self, product: usize, most: usize) -> Vec<Vec<usize>> {
        let mut way = Vec::new();
        let mut next = self.around[product];
        while let Some(at) = next.filter(|at| self.clades[*at].size <= most) {
            way.push(at);
            next = self.clades[at].parent;
        }
        let rank: HashMap<usize, usize> = way.iter().enumerate().map(|(rank, at)| (*at, rank)).collect();
        // The step of the way at which each product enters it, if it does.
        let mut enters: Vec<Vec<usize>> = vec![Vec::new(); way.len()];
        for other in 0..self.k {
            let mut next = self.around[other];
            while let Some(at) = next {
                if let Some(rank) = rank.get(&at) {
                    enters[*rank].push(other);
                    break;
                }
                next = self.clades[at].parent.filter(|_| self.clades[at].size <= most);
            }
        }
        let mut so_far: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        for more in enters {
            so_far.extend(more);
            so_far.sort_unstable();
            found.push(so_far.clone());
        }
        found
    }

    /// Whether another tree has the same sets.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.by_key.len() == other.by_key.len() && self.by_key.keys().all(|key| other.by_key.contains_key(key))
    }

    /// Returns the set with this key.
    pub(super) fn find(&self, key: u64) -> Option<&Clade> {
        self.by_key.get(&key).map(|at| &self.clades[*at])
    }
}

/// Products whose sets join in one sum, and one product of that sum that is not among them.
struct Group {
    members: Vec<usize>,
    witness: Option<usize>,
    parent: Option<usize>,
    depth: usize,
}

/// Discovers the tree. Reports to `progress` how many products are left to place. `None` if a result is not a count of
/// units.
///
/// # Errors
/// Any error that the device reports.
pub(super) fn discover(
    product: &Product<'_>,
    scale: &Scale,
    seed: u64,
    progress: &dyn Fn(&str),
) -> Result<Option<Tree>, Error> {
    let k = product.k();
    let mut random = Random(seed);
    let mut clades: Vec<Clade> = Vec::new();
    let mut around = vec![None; k];
    let mut wave = vec![Group { members: (0..k).collect(), witness: None, parent: None, depth: 0 }];
    while !wave.is_empty() {
        wave.retain(|group| group.members.len() > 1);
        let waiting: usize = wave.iter().map(|group| group.members.len()).sum();
        progress(&format!("the order of the sum: {waiting} of {k} products are left to place"));
        let mut next = Vec::new();
        let mut rest = std::mem::take(&mut wave);
        while !rest.is_empty() {
            let mut taken = 0;
            let here = rest.iter().take_while(|group| {
                let fits = taken == 0 || taken + group.members.len() * parts(group, scale) <= AT_ONCE;
                taken += group.members.len() * parts(group, scale);
                fits
            });
            let groups: Vec<Group> = rest.drain(..here.count()).collect();
            let Some(sizes) = sizes(product, scale, &groups, &mut random)? else { return Ok(None) };
            for (group, (anchor, sizes)) in groups.into_iter().zip(sizes) {
                place(group, anchor, sizes, (&mut clades, &mut around), &mut next);
            }
        }
        wave = next;
    }
    Ok(Some(Tree::of(clades, around)))
}

/// Returns the number of questions, for each member, that count the units of one group.
fn parts(group: &Group, scale: &Scale) -> usize {
    (group.members.len() + 1).div_ceil(scale.capacity).max(1)
}

/// Chooses an anchor for each group. Returns it with, for each other member, the number of products of the group and
/// its witness in the sum where the two meet. `None` if a result is not a count.
#[allow(clippy::type_complexity, reason = "the anchor of each group, and members with sizes")]
fn sizes(
    product: &Product<'_>,
    scale: &Scale,
    groups: &[Group],
    random: &mut Random,
) -> Result<Option<Vec<(usize, Vec<(usize, usize)>)>>, Error> {
    let draw = |group: &Group, random: &mut Random| {
        group.members[if group.depth < IN_ORDER { 0 } else { random.below(group.members.len()) }]
    };
    let anchors: Vec<usize> = groups.iter().map(|group| draw(group, random)).collect();
    let d = product.operation.id.d;
    // Number of units left by each member of each group, in the order of the members.
    let mut survivors: Vec<Vec<usize>> = groups.iter().map(|group| vec![0; group.members.len()]).collect();
    let bits = usize::BITS - (product.k() - 1).leading_zeros();
    let halves: Vec<Half> = if scale.is_split() {
        (0..bits).flat_map(|bit| [0, 1].map(|value| Some((bit, value)))).collect()
    } else {
        vec![None]
    };
    let is_anchor: HashSet<usize> = anchors.iter().copied().collect();
    for half in halves {
        let (mut lines, mut whose) = (Vec::new(), Vec::new());
        for (at, (group, anchor)) in groups.iter().zip(&anchors).enumerate() {
            questions(scale, group, *anchor, half, &mut |member, line| {
                whose.push((at, member));
                lines.push(line);
            });
        }
        let fixed = scale.beside(|at| half.is_none_or(|half| is_anchor.contains(&at) || is_in(at, half)));
        for ((at, member), bits) in whose.into_iter().zip(product.ask(&fixed, &lines, &[0])?) {
            let Some(count) = scale.count(d, bits) else { return Ok(None) };
            survivors[at][member] += count;
        }
    }
    let mut all = Vec::new();
    for ((group, anchor), survivors) in groups.iter().zip(anchors).zip(survivors) {
        let total = group.members.len() + usize::from(group.witness.is_some());
        let others = group.members.iter().copied().zip(survivors).filter(|(member, _)| *member != anchor);
        let others: Vec<(usize, usize)> = others.collect();
        if others.iter().any(|(_, survivors)| survivors + 2 > total) {
            return Ok(None);
        }
        all.push((anchor, others.into_iter().map(|(member, survivors)| (member, total - survivors)).collect()));
    }
    Ok(Some(all))
}

/// The products whose index has this value at a bit: large values lie among them, and units among the others. `None` if
/// both may lie anywhere.
type Half = Option<(u32, usize)>;

/// Whether a product belongs to a half.
fn is_in(product: usize, (bit, value): (u32, usize)) -> bool {
    product >> bit & 1 == value
}

/// Calls `ask` with the questions about the members of a group, and with each member's index in it. For a half, only
/// its members are asked, with those units that differ from them in this bit and in no higher one: over all bits, each
/// unit is counted once.
fn questions(scale: &Scale, group: &Group, anchor: usize, half: Half, ask: &mut impl FnMut(usize, Line)) {
    let units: Vec<usize> = group.members.iter().chain(&group.witness).copied().collect();
    let others = || group.members.iter().enumerate().filter(|(_, member)| **member != anchor);
    let line = |base: &Arc<[u64]>, member: usize| Line {
        base: base.clone(),
        changes: vec![(anchor, scale.large.0), (member, scale.large.1)],
    };
    let Some((bit, value)) = half else {
        for units in units.chunks(scale.capacity) {
            let base = scale.line(units, &[]).base;
            others().for_each(|(at, member)| ask(at, line(&base, *member)));
        }
        return;
    };
    let mut members: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, member) in others().filter(|(_, member)| is_in(**member, (bit, value))) {
        members.entry(member >> bit).or_default().push((at, *member));
    }
    let mut beside: HashMap<usize, Vec<usize>> = HashMap::new();
    for unit in units.into_iter().filter(|unit| *unit != anchor) {
        beside.entry(unit >> bit ^ 1).or_default().push(unit);
    }
    for (high, members) in members {
        for units in beside.get(&high).map_or(&[][..], Vec::as_slice).chunks(scale.capacity) {
            let base = scale.line(units, &[]).base;
            members.iter().for_each(|(at, member)| ask(*at, line(&base, *member)));
        }
    }
}

/// Turns the answers for one anchor into sets, and adds the groups that remain to be asked to `next`.
fn place(
    group: Group,
    anchor: usize,
    sizes: Vec<(usize, usize)>,
    (clades, around): (&mut Vec<Clade>, &mut [Option<usize>]),
    next: &mut Vec<Group>,
) {
    // Members that meet the anchor no sooner than the witness does belong to other sets of the same sum.
    let apart = |size: usize| group.witness.is_some() && size > group.members.len();
    let (others, mut inside): (Vec<_>, Vec<_>) = sizes.into_iter().partition(|(_, size)| apart(*size));
    let Group { witness, parent, depth, .. } = group;
    let rest: Vec<usize> = others.into_iter().map(|(member, _)| member).collect();
    next.push(Group { members: rest, witness, parent, depth });
    inside.order_by_key(|(member, size)| (*size, *member));
    let joins: Vec<&[(usize, usize)]> = inside.chunk_by(|one, other| one.1 == other.1).collect();
    // The sums on the way up from the anchor, the smallest first; they become sets in the reverse order.
    let (mut sum, mut count, mut first) = (key_of(anchor), 1, anchor);
    let mut way = Vec::new();
    for join in &joins {
        let members: Vec<usize> = join.iter().map(|(member, _)| *member).collect();
        sum = sum.wrapping_add(key(&members));
        count += members.len();
        first = first.min(members[0]);
        way.push((sum, count, first, members));
    }
    let mut parent = parent;
    for (key, size, first, members) in way.into_iter().rev() {
        clades.push(Clade { key, size, within: 1, parent, first });
        parent = Some(clades.len() - 1);
        members.iter().for_each(|member| around[*member] = parent);
        around[anchor] = parent;
        next.push(Group { members, witness: Some(anchor), parent, depth: depth + 1 });
    }
}
