//! Reproducible random values.

use crate::{Vectorised, vectorised};

/// NumPy's legacy stream, `numpy.random.RandomState(seed).random_sample()`: the 32-bit MT19937, seeded with Knuth's
/// initialisation, two draws per value.
///
/// Matsumoto and Nishimura, "Mersenne Twister", TOMACS 1998.
#[derive(Clone)]
pub struct Uniform {
    /// The state before the last step, and the one after it.
    words: [u32; 2 * STATE],
    /// The values of the last step, and the number of those that were taken.
    values: [f64; STATE / 2],
    taken: usize,
}

/// The number of words in the state.
const STATE: usize = 624;

/// A word depends on those this many and one fewer places before it, and on the one `STATE` − `MIDDLE` places before.
const MIDDLE: usize = 397;

/// Words that are computed side by side: none depends on the 226 before it.
const LANES: usize = 16;

impl Uniform {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let mut words = [0; 2 * STATE];
        let mut last = seed;
        for (at, word) in (0..).zip(&mut words[STATE..]) {
            if at > 0 {
                last = (last ^ last >> 30).wrapping_mul(1_812_433_253).wrapping_add(at);
            }
            *word = last;
        }
        Self { words, values: [0.0; STATE / 2], taken: STATE / 2 }
    }

    /// The next value, in [0, 1): a multiple of 2^−53.
    pub fn next_value(&mut self) -> f64 {
        let [value] = *self.next_values(1) else { unreachable!("one value") };
        value
    }

    /// Sets elements to values in (low, high], computed as high − (high − low)·u and rounded to f32 if `narrow`.
    #[expect(clippy::cast_possible_truncation, reason = "f32 is asked for")]
    pub fn fill(&mut self, low: f64, high: f64, narrow: bool, into: &mut [f64]) {
        let mut left = into;
        while !left.is_empty() {
            let drawn = self.next_values(left.len());
            let (now, rest) = left.split_at_mut(drawn.len());
            for (place, drawn) in now.iter_mut().zip(drawn) {
                let value = high - (high - low) * drawn;
                *place = if narrow { f64::from(value as f32) } else { value };
            }
            left = rest;
        }
    }

    /// The next values, at least one and at most this many.
    fn next_values(&mut self, most: usize) -> &[f64] {
        if self.taken == self.values.len() {
            vectorised(Refill { words: &mut self.words, values: &mut self.values });
            self.taken = 0;
        }
        let first = self.taken;
        self.taken = (first + most).min(self.values.len());
        &self.values[first..self.taken]
    }
}

/// A step of the whole state, and its values.
struct Refill<'a> {
    words: &'a mut [u32; 2 * STATE],
    values: &'a mut [f64; STATE / 2],
}

impl Vectorised for Refill<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { words, values } = self;
        words.copy_within(STATE.., 0);
        for first in (0..STATE).step_by(LANES) {
            let from =
                |from: usize| -> [u32; LANES] { *words[first + from..].first_chunk().expect("words of the state") };
            let (upper, lower, middle) = (from(0), from(1), from(MIDDLE));
            let mut next = [0; LANES];
            for lane in 0..LANES {
                let joined = upper[lane] & 0x8000_0000 | lower[lane] & 0x7fff_ffff;
                next[lane] = middle[lane] ^ joined >> 1 ^ (joined & 1).wrapping_neg() & 0x9908_b0df;
            }
            words[STATE + first..][..LANES].copy_from_slice(&next);
        }
        let drawn = words[STATE..].as_chunks::<LANES>().0;
        for (drawn, values) in drawn.iter().zip(values.as_chunks_mut::<{ LANES / 2 }>().0) {
            for lane in 0..LANES / 2 {
                let [high, low] = [drawn[2 * lane], drawn[2 * lane + 1]].map(tempered).map(u64::from);
                // 53 bits, so that both steps are exact.
                values[lane] = (high >> 5 << 26 | low >> 6) as f64 / 9_007_199_254_740_992.0;
            }
        }
    }
}

#[inline(always)]
fn tempered(word: u32) -> u32 {
    let word = word ^ word >> 11;
    let word = word ^ word << 7 & 0x9d2c_5680;
    let word = word ^ word << 15 & 0xefc6_0000;
    word ^ word >> 18
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_possible_truncation, clippy::float_cmp, reason = "the same bits")]
    fn the_stream_is_numpys() {
        // numpy 1.26: RandomState(12345).random_sample(4).
        let mut stream = Uniform::new(12345);
        let expected =
            [0.929_616_092_817_147_9, 0.316_375_554_581_785_9, 0.183_918_811_677_094_45, 0.204_560_278_553_039_7];
        for value in expected {
            assert_eq!(stream.next_value(), value);
        }
        let mut values = [0.0; 1000];
        Uniform::new(1).fill(-0.5, 0.5, true, &mut values);
        assert!(values.iter().all(|value| *value > -0.5 && *value <= 0.5));
        assert!(values.iter().all(|value| f64::from(*value as f32) == *value));
    }

    #[test]
    fn values_in_parts_are_those_of_the_definition() {
        // The recurrence one word at a time, and the conversion as NumPy writes it.
        let mut words = vec![5489u32];
        for at in 1..624 {
            let last = words[at - 1];
            words.push((last ^ last >> 30).wrapping_mul(1_812_433_253).wrapping_add(u32::try_from(at).unwrap()));
        }
        for at in 0..4000 {
            let joined = words[at] & 0x8000_0000 | words[at + 1] & 0x7fff_ffff;
            words.push(words[at + 397] ^ joined >> 1 ^ if joined & 1 == 1 { 0x9908_b0df } else { 0 });
        }
        let drawn: Vec<u32> = words[624..].iter().map(|word| tempered(*word)).collect();
        let wanted: Vec<f64> = drawn
            .as_chunks()
            .0
            .iter()
            .map(|[high, low]| (f64::from(high >> 5) * 67_108_864.0 + f64::from(low >> 6)) / 9_007_199_254_740_992.0)
            .collect();
        let (mut stream, mut found) = (Uniform::new(5489), Vec::new());
        for length in [1, 311, 1, 624, 0, 500] {
            let mut values = vec![0.0; length];
            stream.fill(1.0, 0.0, false, &mut values);
            found.extend(values);
            found.push(stream.next_value());
        }
        assert_eq!(found, wanted[..found.len()]);
    }
}
