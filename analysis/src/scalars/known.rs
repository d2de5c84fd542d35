//! Results that many computations share.

use std::cell::RefCell;

/// The number of results that are kept.
const PLACES: u32 = 2048;

/// The last results of a pure function. Each key has one place, where a later key may replace it.
pub(super) struct Known<K, V> {
    places: RefCell<Vec<Option<(K, V)>>>,
}

impl<K: Copy + PartialEq, V: Copy> Known<K, V> {
    pub(super) fn new() -> Self {
        Self { places: RefCell::default() }
    }

    /// The value of a key, computed unless it is known. `words` distinguish most keys.
    pub(super) fn value(&self, key: K, words: [u64; 3], compute: impl FnOnce() -> V) -> V {
        // Fibonacci hashing: the high bits of a product depend on all bits of the factors.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = words.iter().fold(0u64, |mixed, word| (mixed.rotate_left(23) ^ word).wrapping_mul(ODD));
        #[expect(clippy::cast_possible_truncation, reason = "below the number of places")]
        let place = (mixed >> (64 - PLACES.ilog2())) as usize;
        if let Some(Some((known, value))) = self.places.borrow().get(place)
            && *known == key
        {
            return *value;
        }
        let value = compute();
        let mut places = self.places.borrow_mut();
        // Most functions need none.
        if places.is_empty() {
            places.resize(PLACES as usize, None);
        }
        places[place] = Some((key, value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_own_value_even_if_another_takes_its_place() {
        let known = Known::new();
        let mut computed = 0;
        // The same words for all keys: one place.
        for key in [1, 1, 2, 2, 1] {
            let value = known.value(key, [7; 3], || {
                computed += 1;
                10 * key
            });
            assert_eq!(value, 10 * key);
        }
        assert_eq!(computed, 3);
    }
}
