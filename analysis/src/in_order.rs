//! Stable sorting of lists that are short or rarely sorted, by code that is compiled once.
//!
//! The standard library's stable sort is some fifteen functions for each type of element and each way to compare.

use std::cmp::Ordering;

/// A list that can be sorted.
pub trait InOrder<T> {
    /// Sorts like [`sort_by_key`](slice::sort_by_key), calling `key` once for each element.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> InOrder<T> for [T] {
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        let keys: Vec<K> = self.iter().map(key).collect();
        for (at, other) in swaps(keys.len(), &|at, other| keys[at].cmp(&keys[other])) {
            self.swap(at, other);
        }
    }
}

/// Returns the swaps, one after the other, that sort a list whose elements at two places compare like this.
fn swaps(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut from: Vec<usize> = (0..count).collect();
    from.sort_by(|at, other| compare(*at, *other));
    let mut swaps = Vec::new();
    for first in 0..count {
        // The element at `first` moves along the cycle until it reaches its own place.
        let mut at = first;
        while from[at] != first {
            swaps.push((at, from[at]));
            at = std::mem::replace(&mut from[at], at);
        }
        from[at] = at;
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::Random;

    #[test]
    fn elements_come_in_the_order_of_the_standard_library() {
        let mut random = Random(1);
        for count in (0..20).chain([100, 1000]) {
            for distinct in [1, 2, 5, 1 << 20] {
                let keys: Vec<usize> = (0..count).map(|_| random.below(distinct)).collect();
                let list: Vec<(usize, usize)> = keys.into_iter().zip(0..).collect();
                let (mut ours, mut expected) = (list.clone(), list);
                ours.order_by_key(|(key, _)| *key);
                expected.sort_by_key(|(key, _)| *key);
                assert_eq!(ours, expected);
            }
        }
    }
}
