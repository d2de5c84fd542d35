//! Levels of a recipe, read from the tree: the slices that k is divided into, and the order in which their sums are
//! merged.

use std::{collections::HashMap, ops::Range};

use mxprobe_models::{
    Plan, Term,
    recipe::{Count, Division, MergeOrder, Rest, Share},
};

use super::tree::{Tree, key, key_of};

/// One level without its parameters, which show only in values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) division: Division,
    pub(super) rest: Rest,
    pub(super) merge: MergeOrder,
}

/// Maximum number of readings of one tree that are kept.
const READINGS: usize = 24;

/// Maximum number of readings of one slice that are kept: few of them hold for the other slices.
const WITHIN: usize = 120;
/// The same for slices farther down.
const DEEP: usize = 6;

/// Maximum depth of levels: the lanes of a wide register are merged in up to four steps.
const DEEPEST: usize = 5;

/// All merge orders, the usual ones first.
const ORDERS: [MergeOrder; 5] =
    [MergeOrder::Serial, MergeOrder::Pairs, MergeOrder::Halves, MergeOrder::Reverse, MergeOrder::LastThenSlots];

/// Returns every way to read the tree as levels, outermost first. The first reading has no levels: all of k is one
/// chain.
pub(super) fn readings_of(tree: &Tree) -> Vec<Vec<Split>> {
    let all: Vec<usize> = (0..tree.k).collect();
    let mut found = below(tree, &all, DEEPEST);
    found.truncate(READINGS);
    found
}

/// Returns the readings of some products, with at most `depth` levels.
fn below(tree: &Tree, products: &[usize], depth: usize) -> Vec<Vec<Split>> {
    let mut found = vec![Vec::new()];
    let mut known: Vec<(usize, Vec<Vec<usize>>)> = Vec::new();
    if depth == 0 || products.len() < 2 {
        return found;
    }
    let is_whole = products.len() == tree.k;
    let most = match depth {
        DEEPEST => READINGS,
        _ if depth + 1 == DEEPEST => WITHIN,
        _ => DEEP,
    };
    let mut inner_of: HashMap<u64, Vec<Vec<Split>>> = HashMap::new();
    for split in splits(tree, products) {
        let (slices, _) = slices(&split, products);
        let longest = slices.iter().max_by_key(|slice| slice.len()).cloned().unwrap_or_default();
        let inner = inner_of.entry(key(&longest)).or_insert_with(|| below(tree, &longest, depth - 1)).clone();
        for inner in inner {
            // A single finer division with the same order says the same.
            let nests = !matches!(split.merge, MergeOrder::Pairs | MergeOrder::Halves);
            if inner.first().is_some_and(|inner| inner.merge == split.merge && !nests) {
                continue;
            }
            let levels: Vec<Split> = std::iter::once(split.clone()).chain(inner).collect();
            if found.len() >= most {
                return found;
            }
            if !explains(tree, products, &levels) {
                continue;
            }
            // Within a slice, equal divisions of its own slices may differ for shorter ones, so all are kept.
            if is_whole {
                let chains = (levels.len(), chains(products, &levels));
                if known.contains(&chains) {
                    continue;
                }
                known.push(chains);
            }
            found.push(levels);
        }
    }
    found
}

/// Returns the products of each of the unit's own chains.
fn chains(products: &[usize], levels: &[Split]) -> Vec<Vec<usize>> {
    let Some((split, inner)) = levels.split_first() else { return vec![products.to_vec()] };
    let (slices, rest) = slices(split, products);
    let rest = if rest.is_empty() { None } else { Some(rest) };
    slices.iter().flat_map(|slice| chains(slice, inner)).chain(rest).collect()
}

/// Whether these levels give the tree's sums of these products, down to the unit's own chains.
fn explains(tree: &Tree, products: &[usize], levels: &[Split]) -> bool {
    let Some((split, inner)) = levels.split_first() else { return within(tree, products).is_some() };
    let (slices, rest) = slices(split, products);
    if slices.len() + usize::from(!rest.is_empty()) < 2 {
        // A part that is shorter than a slice.
        return explains(tree, products, inner);
    }
    merged(tree, split, &slices, &rest, products) && slices.iter().all(|slice| explains(tree, slice, inner))
}

/// Whether a unit whose operations of `step` products add as `plan` says, chained over each innermost slice, gives the
/// tree's sums within it. Only the longest slice is checked.
pub(super) fn is_chain(tree: &Tree, levels: &[Split], plan: &Plan, step: usize) -> bool {
    let mut products: Vec<usize> = (0..tree.k).collect();
    for level in levels {
        let (parts, _) = slices(level, &products);
        products = parts.into_iter().max_by_key(Vec::len).unwrap_or_default();
    }
    let mut acc: (u64, usize) = (0, 0);
    let mut sums = 0;
    for block in products.chunks(step) {
        let mut nodes: Vec<(u64, usize)> = Vec::new();
        for node in &plan.nodes {
            let (mut key, mut count, mut largest) = (0_u64, 0, 0);
            for term in &node.terms {
                let (of, size) = match term {
                    Term::Product(at) => block.get(*at).map_or((0, 0), |product| (key_of(*product), 1)),
                    Term::C => acc,
                    Term::Node(at) => nodes[*at],
                    Term::PositiveZero => (0, 0),
                };
                (key, count, largest) = (key.wrapping_add(of), count + size, largest.max(size));
            }
            if count > largest {
                sums += 1;
                if tree.find(key).is_none_or(|clade| clade.size != count) {
                    return false;
                }
            }
            nodes.push((key, count));
        }
        acc = nodes.last().copied().unwrap_or(acc);
    }
    within(tree, &products) == Some(sums)
}

/// Returns the number of sums within a set of products, itself included; `None` if it is not a set of the tree.
fn within(tree: &Tree, products: &[usize]) -> Option<usize> {
    if products.len() < 2 { Some(0) } else { tree.find(key(products)).map(|clade| clade.within) }
}

/// Whether the sums of slices are merged as `split` says, with no other sums in between.
fn merged(tree: &Tree, split: &Split, slices: &[Vec<usize>], rest: &[usize], products: &[usize]) -> bool {
    let Some(inside) = slices.iter().map(|slice| within(tree, slice)).sum::<Option<usize>>() else { return false };
    let keys: Vec<u64> = slices.iter().map(|slice| key(slice)).collect();
    let sums = sums(split.merge, &keys);
    if sums.iter().any(|sum| tree.find(*sum).is_none()) {
        return false;
    }
    let Some(all) = within(tree, products) else { return false };
    let merged = inside + sums.len();
    match (rest.len(), split.rest) {
        (0, _) => all == merged,
        (_, Rest::Added) => within(tree, rest).is_some_and(|rest| all == merged + rest + 1),
        // How many are added at once depends on the unit.
        (_, Rest::Chained) => {
            let before = slices.iter().flatten().fold(0, |sum: u64, product| sum.wrapping_add(key_of(*product)));
            let first = sums.last().or(keys.first()).copied();
            first == Some(before) && all > merged && all <= merged + rest.len()
        }
        (_, Rest::Divided) => false,
    }
}

/// Returns the key of each sum of two partial sums, in the order in which they are added.
fn sums(order: MergeOrder, partial: &[u64]) -> Vec<u64> {
    let mut found = Vec::new();
    let mut add = |one: u64, other: u64| {
        found.push(one.wrapping_add(other));
        one.wrapping_add(other)
    };
    let mut serial = |first: u64, others: &mut dyn Iterator<Item = u64>| {
        others.fold(first, &mut add);
    };
    match (order, partial) {
        (_, []) => {}
        (MergeOrder::Serial, [first, others @ ..]) => serial(*first, &mut others.iter().copied()),
        (MergeOrder::Reverse, [others @ .., last]) => serial(*last, &mut others.iter().rev().copied()),
        (MergeOrder::LastThenSlots, _) => {
            let half = partial.len().div_ceil(2);
            let last = partial[partial.len() - 1];
            let mut slots = Vec::new();
            for slot in 0..half.min(partial.len() - 1) {
                let other = slot + half;
                let is_pair = other + 1 < partial.len();
                slots.push(if is_pair { add(partial[slot], partial[other]) } else { partial[slot] });
            }
            slots.into_iter().fold(last, &mut add);
        }
        (MergeOrder::Pairs, _) => {
            let mut level = partial.to_vec();
            while level.len() > 1 {
                level = level.chunks(2).map(|pair| if let [a, b] = pair { add(*a, *b) } else { pair[0] }).collect();
            }
        }
        (MergeOrder::Halves, _) => {
            let mut level = partial.to_vec();
            while level.len() > 1 {
                let half = level.len().div_ceil(2);
                level = (0..half)
                    .map(|at| if at + half < level.len() { add(level[at], level[at + half]) } else { level[at] })
                    .collect();
            }
        }
    }
    found
}

/// Returns every division of these products whose slices are sets of the tree and are merged in one of [`ORDERS`].
fn splits(tree: &Tree, products: &[usize]) -> Vec<Split> {
    let mut found = Vec::new();
    let before = before(products);
    // The slice of the first product determines the others.
    let single = vec![products[0]];
    for slice in std::iter::once(single).chain(tree.around(products[0], products.len())) {
        let Some(ranks) = slice.iter().map(|product| products.binary_search(product).ok()).collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        if ranks.len() >= products.len() {
            continue;
        }
        'divisions: for division in divisions(&ranks, products.len()) {
            for rest in [Rest::Divided, Rest::Added, Rest::Chained] {
                let mut split = Split { division: division.clone(), rest, merge: MergeOrder::Serial };
                if !are_sets(tree, &split, &before) {
                    continue;
                }
                let (slices, left) = slices(&split, products);
                if slices.len() < 2 || (rest != Rest::Divided && left.is_empty()) {
                    continue;
                }
                let holds = |order: &MergeOrder| {
                    merged(tree, &Split { merge: *order, ..split.clone() }, &slices, &left, products)
                };
                // Consecutive single products are a chain of the unit.
                if slices[1..].iter().all(|slice| slice.len() == 1) && holds(&MergeOrder::Serial) {
                    continue;
                }
                // One order is enough for all of k, and for two slices, whose orders all give one sum. Slices within
                // others may be fewer, so that orders differ for them.
                let is_whole = products.len() == tree.k;
                let most = if is_whole || slices.len() == 2 { 1 } else { ORDERS.len() };
                let orders: Vec<MergeOrder> = ORDERS.into_iter().filter(holds).take(most).collect();
                for order in &orders {
                    split.merge = *order;
                    if !found.contains(&split) {
                        found.push(split.clone());
                    }
                }
                if is_whole && !orders.is_empty() {
                    break 'divisions;
                }
            }
        }
    }
    found
}

/// Returns, for each product and for the end, the sum of the keys of the products before it.
fn before(products: &[usize]) -> Vec<u64> {
    let sums = products.iter().scan(0_u64, |sum, product| {
        *sum = sum.wrapping_add(key_of(*product));
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

/// Whether every slice is a single product or a set of the tree. Most divisions fail this at their second slice.
fn are_sets(tree: &Tree, split: &Split, before: &[u64]) -> bool {
    let count = before.len() - 1;
    let count = if split.rest == Rest::Divided { count } else { whole(&split.division, count) };
    let of = |range: Range<usize>| before[range.end].wrapping_sub(before[range.start]);
    let is_set = |size: usize, key: u64| size < 2 || tree.find(key).is_some();
    if let Division::Interleaved { slices, tile } = &split.division {
        let slices = fixed(slices);
        return (0..slices).all(|slice| {
            let tiles = (slice * tile..count).step_by(slices * tile).map(|from| from..(from + tile).min(count));
            let (size, key) =
                tiles.fold((0, 0_u64), |(size, key), tile| (size + tile.len(), key.wrapping_add(of(tile))));
            is_set(size, key)
        });
    }
    contiguous(&split.division, count).all(|range| is_set(range.len(), of(range)))
}

/// Returns the divisions of `count` products whose first slice has these ranks.
fn divisions(ranks: &[usize], count: usize) -> Vec<Division> {
    let run = ranks.iter().enumerate().take_while(|(at, rank)| at == *rank).count();
    if run == ranks.len() {
        let mut found = vec![Division::Every(Count::Fixed(run))];
        // The largest tiles come first.
        for tile in (1..=run).rev().filter(|tile| run.is_multiple_of(*tile)) {
            let tiles = count.div_ceil(tile);
            let each = run / tile;
            for slices in tiles.div_ceil(each)..=tiles {
                if tiles.div_ceil(slices) != each {
                    break;
                }
                for share in [Share::Balanced, Share::RoundUp] {
                    found.push(Division::Contiguous { slices: Count::Fixed(slices), tile, share });
                }
            }
        }
        return found;
    }
    let period = ranks[run];
    if period.is_multiple_of(run) {
        vec![Division::Interleaved { slices: Count::Fixed(period / run), tile: run }]
    } else {
        Vec::new()
    }
}

/// Returns a fixed count, and 1 for a parameter.
fn fixed(count: &Count) -> usize {
    match count {
        Count::Fixed(number) => *number,
        Count::Parameter(_) => 1,
    }
}

/// Returns the ranges of consecutive slices, without the empty ones.
fn contiguous(division: &Division, count: usize) -> impl Iterator<Item = Range<usize>> {
    let (slices, tile, share) = match division {
        Division::Every(every) => (count.div_ceil(fixed(every)), fixed(every), None),
        Division::Contiguous { slices, tile, share } => (fixed(slices), *tile, Some(*share)),
        Division::Interleaved { .. } => (0, 1, None),
    };
    let tiles = count.div_ceil(tile);
    let first = move |slice: usize| {
        let tile_of = match share {
            None => slice,
            Some(Share::RoundUp) => slice * tiles.div_ceil(slices),
            Some(Share::Balanced) => slice * (tiles / slices) + slice.min(tiles % slices),
        };
        (tile_of * tile).min(count)
    };
    (0..slices).map(move |slice| first(slice)..first(slice + 1)).filter(|range| !range.is_empty())
}

/// Returns the products of each slice that is not empty, and those left over.
pub(super) fn slices(split: &Split, products: &[usize]) -> (Vec<Vec<usize>>, Vec<usize>) {
    let count = products.len();
    let whole = if split.rest == Rest::Divided { count } else { whole(&split.division, count) };
    let (divided, left) = products.split_at(whole);
    let slices = match &split.division {
        Division::Interleaved { slices, tile } => {
            let mut found = vec![Vec::new(); fixed(slices)];
            for (at, tile) in divided.chunks(*tile).enumerate() {
                found[at % fixed(slices)].extend_from_slice(tile);
            }
            found.retain(|slice| !slice.is_empty());
            found
        }
        division => contiguous(division, whole).map(|range| divided[range].to_vec()).collect(),
    };
    (slices, left.to_vec())
}

/// Returns how many of `count` products fill whole rounds.
fn whole(division: &Division, count: usize) -> usize {
    let round = match division {
        Division::Every(every) => fixed(every),
        Division::Contiguous { slices, tile, .. } | Division::Interleaved { slices, tile } => fixed(slices) * tile,
    };
    count - count % round
}
