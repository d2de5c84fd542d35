//! Dividing k into slices, and the order in which slices are merged.

use std::ops::Range;

use super::types::{Division, MergeOrder, Rest, Share};

/// Some k in the order in which they are summed, as runs of consecutive ones.
pub(super) type Run = Vec<Range<usize>>;

/// A division whose counts are resolved to numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    Every(usize),
    Contiguous { slices: usize, tile: usize, share: Share },
    Interleaved { slices: usize, tile: usize },
}

impl Parts {
    pub(super) fn new(division: &Division, number: impl Fn(&super::types::Count) -> usize) -> Self {
        match division {
            Division::Every(every) => Self::Every(number(every)),
            Division::Contiguous { slices, tile, share } => {
                Self::Contiguous { slices: number(slices), tile: *tile, share: *share }
            }
            Division::Interleaved { slices, tile } => Self::Interleaved { slices: number(slices), tile: *tile },
        }
    }

    /// The number of k in one round: a slice, or a tile of each slice.
    fn round(self) -> usize {
        match self {
            Self::Every(every) => every,
            Self::Contiguous { slices, tile, .. } | Self::Interleaved { slices, tile } => slices.saturating_mul(tile),
        }
    }

    /// Divides some k into at least one slice, and returns the k that are left over for `rest`.
    pub(super) fn slices(self, of: &Run, rest: Rest) -> (Vec<Run>, Run) {
        let total = length(of);
        let divided = if rest == Rest::Divided { total } else { total - total % self.round() };
        let from_to = |from: usize, to: usize| cut(of, from.min(divided)..to.min(divided));
        let slices = match self {
            Self::Every(every) => {
                (0..divided.div_ceil(every).max(1)).map(|slice| from_to(slice * every, (slice + 1) * every)).collect()
            }
            Self::Contiguous { slices, tile, share } => {
                let tiles = divided.div_ceil(tile);
                let first = |slice: usize| match share {
                    Share::RoundUp => slice * tiles.div_ceil(slices),
                    Share::Balanced => slice * (tiles / slices) + slice.min(tiles % slices),
                };
                (0..slices).map(|slice| from_to(first(slice) * tile, first(slice + 1) * tile)).collect()
            }
            Self::Interleaved { slices, tile } => {
                let of_slice = |slice: usize| {
                    let starts = (slice * tile..divided).step_by(slices.saturating_mul(tile));
                    joined(starts.flat_map(|start| from_to(start, start + tile)))
                };
                (0..slices).map(of_slice).collect()
            }
        };
        (slices, cut(of, divided..total))
    }
}

/// The number of k in a run.
pub(super) fn length(run: &Run) -> usize {
    run.iter().map(ExactSizeIterator::len).sum()
}

/// The k at a range of places in a run.
fn cut(run: &Run, places: Range<usize>) -> Run {
    let mut before = 0;
    let mut found = Vec::new();
    for piece in run {
        let (from, to) = (places.start.max(before) - before, places.end.max(before) - before);
        let part = piece.start + from.min(piece.len())..piece.start + to.min(piece.len());
        if !part.is_empty() {
            found.push(part);
        }
        before += piece.len();
        if before >= places.end {
            break;
        }
    }
    found
}

/// Joins runs whose ends meet.
fn joined(pieces: impl Iterator<Item = Range<usize>>) -> Run {
    let mut found: Run = Vec::new();
    for piece in pieces {
        match found.last_mut() {
            Some(last) if last.end == piece.start => last.end = piece.end,
            _ => found.push(piece),
        }
    }
    found
}

/// One operand of an addition in a merge: a partial sum or the result of an earlier addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addend {
    Partial(usize),
    Earlier(usize),
}

impl MergeOrder {
    /// The additions that merge this many partial sums, in the order in which they are performed; the last one gives
    /// the sum. Empty for a single partial sum.
    pub(super) fn additions(self, slices: usize) -> Vec<(Addend, Addend)> {
        let mut steps = Vec::new();
        let mut level: Vec<Addend> = (0..slices).map(Addend::Partial).collect();
        let mut add = |one: Addend, other: Addend| {
            steps.push((one, other));
            Addend::Earlier(steps.len() - 1)
        };
        match self {
            Self::Serial => {
                level.into_iter().reduce(&mut add);
            }
            Self::Reverse => {
                level.into_iter().rev().reduce(&mut add);
            }
            Self::Pairs => {
                while level.len() > 1 {
                    let pairs = level.chunks(2);
                    level =
                        pairs.map(|pair| if let [one, other] = pair { add(*one, *other) } else { pair[0] }).collect();
                }
            }
            Self::Halves => {
                while level.len() > 1 {
                    let (half, kept) = (level.len() / 2, level.len().div_ceil(2));
                    level = (0..kept)
                        .map(|at| if at < half { add(level[at], level[at + kept]) } else { level[at] })
                        .collect();
                }
            }
            Self::LastThenSlots => {
                let (half, last) = (slices.div_ceil(2), slices - 1);
                // One slice needs no addition; of two, the first is a slot of its own.
                let slots: Vec<Addend> = (0..half.min(last))
                    .map(|at| if at + half < last { add(level[at], level[at + half]) } else { level[at] })
                    .collect();
                slots.into_iter().fold(level[last], &mut add);
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(k: usize) -> Run {
        std::iter::once(0..k).filter(|run| !run.is_empty()).collect()
    }

    fn slices(parts: Parts, k: usize, rest: Rest) -> (Vec<Vec<usize>>, Vec<usize>) {
        let (slices, left) = parts.slices(&whole(k), rest);
        let flat = |run: Run| run.into_iter().flatten().collect::<Vec<_>>();
        (slices.into_iter().map(flat).collect(), flat(left))
    }

    #[test]
    fn every_k_goes_into_one_slice_in_ascending_order() {
        for k in 0..70 {
            for count in 1..6 {
                for tile in [1, 3, 8] {
                    for parts in [
                        Parts::Every(count * tile),
                        Parts::Contiguous { slices: count, tile, share: Share::RoundUp },
                        Parts::Contiguous { slices: count, tile, share: Share::Balanced },
                        Parts::Interleaved { slices: count, tile },
                    ] {
                        for (_, rest) in Rest::ALL {
                            let (slices, left) = slices(parts, k, rest);
                            assert!(!slices.is_empty());
                            assert!(slices.iter().all(|slice| slice.is_sorted()), "{parts:?} {k}");
                            let mut all: Vec<usize> = slices.concat();
                            all.sort_unstable();
                            all.extend(&left);
                            assert_eq!(all, (0..k).collect::<Vec<_>>(), "{parts:?} {k} {rest:?}");
                            assert_eq!(left.len(), if rest == Rest::Divided { 0 } else { k % parts.round() });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn slices_are_those_that_libraries_take() {
        let (found, _) = slices(Parts::Interleaved { slices: 3, tile: 2 }, 11, Rest::Divided);
        assert_eq!(found, [vec![0, 1, 6, 7], vec![2, 3, 8, 9], vec![4, 5, 10]]);
        let (found, _) = slices(Parts::Contiguous { slices: 3, tile: 2, share: Share::RoundUp }, 8, Rest::Divided);
        assert_eq!(found, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![]]);
        let (found, _) = slices(Parts::Contiguous { slices: 3, tile: 2, share: Share::Balanced }, 8, Rest::Divided);
        assert_eq!(found, [vec![0, 1, 2, 3], vec![4, 5], vec![6, 7]]);
        let (found, left) = slices(Parts::Interleaved { slices: 2, tile: 2 }, 7, Rest::Chained);
        assert_eq!((found, left), (vec![vec![0, 1], vec![2, 3]], vec![4, 5, 6]));
    }

    #[test]
    fn a_slice_of_interleaved_tiles_is_divided_in_its_own_k() {
        let (outer, _) = Parts::Interleaved { slices: 2, tile: 2 }.slices(&whole(16), Rest::Divided);
        let (inner, _) = Parts::Every(3).slices(&outer[1], Rest::Divided);
        let last: Run = std::iter::once(14..16).collect();
        assert_eq!(inner, [vec![2..4, 6..7], vec![7..8, 10..12], last]);
    }

    #[test]
    fn merges_add_in_their_order() {
        let text = |order: MergeOrder, slices: usize| {
            let mut words: Vec<String> = Vec::new();
            let word = |words: &[String], addend: Addend| match addend {
                Addend::Partial(at) => at.to_string(),
                Addend::Earlier(at) => words[at].clone(),
            };
            for (one, other) in order.additions(slices) {
                let step = format!("({}+{})", word(&words, one), word(&words, other));
                words.push(step);
            }
            words.pop().unwrap_or_default()
        };
        for (order, slices, found) in [
            (MergeOrder::Serial, 4, "(((0+1)+2)+3)"),
            (MergeOrder::Reverse, 4, "(((3+2)+1)+0)"),
            (MergeOrder::Pairs, 5, "(((0+1)+(2+3))+4)"),
            (MergeOrder::Halves, 4, "((0+2)+(1+3))"),
            (MergeOrder::Halves, 5, "(((0+3)+2)+(1+4))"),
            (MergeOrder::LastThenSlots, 2, "(1+0)"),
            (MergeOrder::LastThenSlots, 3, "((2+0)+1)"),
            (MergeOrder::LastThenSlots, 4, "((3+(0+2))+1)"),
            (MergeOrder::LastThenSlots, 5, "(((4+(0+3))+1)+2)"),
            (MergeOrder::LastThenSlots, 6, "(((5+(0+3))+(1+4))+2)"),
            (MergeOrder::LastThenSlots, 7, "((((6+(0+4))+(1+5))+2)+3)"),
        ] {
            assert_eq!(text(order, slices), found, "{order:?}");
        }
        for (_, order) in MergeOrder::ALL {
            assert!(order.additions(1).is_empty());
            for slices in 2..40 {
                assert_eq!(order.additions(slices).len(), slices - 1, "{order:?}");
            }
        }
    }
}
