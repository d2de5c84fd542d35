//! The ranges of arguments by which errors are grouped, and the arguments drawn from each.

use mxprobe_api::{Elementary, Format, ScalarFunction};

use crate::{dots::Random, in_order::InOrder};

/// Arguments between two bit patterns, of one sign or both.
#[derive(Clone, Debug)]
pub(super) struct Range {
    /// The range in words.
    pub(super) words: String,
    /// The bit pattern of the smallest magnitude.
    least: u64,
    /// The bit pattern of the largest magnitude.
    most: u64,
    signs: &'static [bool],
}

/// A border between two ranges: a power of two, the smallest normal number, or an end.
#[derive(Clone, Copy)]
enum Border {
    Zero,
    Normal,
    Power(i32),
    End,
}

const BOTH: &[bool] = &[false, true];
const POSITIVE: &[bool] = &[false];

/// The borders of a function's ranges: π/4, above which arguments are reduced, is below 1, and 2^17 is beyond the
/// arguments that libraries reduce with a few constants.
fn borders(function: ScalarFunction) -> (&'static [Border], &'static [bool]) {
    use Border::{End, Normal, Power, Zero};
    use Elementary as E;
    match function {
        ScalarFunction::SquareRoot => (&[Zero, Normal, End], POSITIVE),
        ScalarFunction::Elementary(E::ReciprocalSquareRoot) => (&[Zero, Normal, End], POSITIVE),
        ScalarFunction::Elementary(E::Log | E::Log2) => (&[Zero, Normal, Power(-1), Power(1), End], POSITIVE),
        ScalarFunction::Elementary(E::Exp | E::Exp2) => (&[Normal, Power(-12), Power(0), Power(3), Power(10)], BOTH),
        ScalarFunction::Elementary(E::Sin | E::Cos) => {
            (&[Zero, Normal, Power(-12), Power(0), Power(3), Power(10), Power(17), End], BOTH)
        }
        ScalarFunction::Elementary(E::Tanh) => (&[Zero, Normal, Power(-12), Power(0), Power(4), End], BOTH),
        _ => (&[Zero, Normal, End], BOTH),
    }
}

/// The ranges of a function, without those that the format does not reach.
pub(super) fn ranges(function: ScalarFunction, format: Format) -> Vec<Range> {
    let Some(float) = format.as_float() else { return Vec::new() };
    let width = format.fraction_bits();
    let end = format.largest(false);
    let bits = |border: Border| match border {
        Border::Zero => 1,
        Border::Normal => 1 << width,
        Border::Power(power) => {
            let field = i64::from(power - float.min_exponent() + 1).max(1).unsigned_abs();
            (field << width).min(end + 1)
        }
        Border::End => end + 1,
    };
    let (borders, signs) = borders(function);
    let name = if signs == BOTH { "|x|" } else { "x" };
    let text = |border: Border| match border {
        Border::Power(0) => "1".to_owned(),
        Border::Power(1) => "2".to_owned(),
        Border::Power(3) => "8".to_owned(),
        Border::Power(4) => "16".to_owned(),
        Border::Power(power) => format!("2^{power}"),
        _ => String::new(),
    };
    let words = |from: Border, to: Border| match (from, to) {
        (Border::Zero, _) => "subnormal x".to_owned(),
        (Border::Normal, Border::End) => "normal x".to_owned(),
        (Border::Normal, _) => format!("{name} < {}", text(to)),
        (_, Border::End) => format!("{name} ≥ {}", text(from)),
        _ => format!("{} ≤ {name} < {}", text(from), text(to)),
    };
    borders
        .windows(2)
        .map(|pair| (bits(pair[0]), bits(pair[1]), words(pair[0], pair[1])))
        .filter(|(least, beyond, _)| least < beyond)
        .map(|(least, beyond, words)| Range { words, least, most: beyond - 1, signs })
        .collect()
}

impl Range {
    /// The number of arguments.
    pub(super) fn len(&self) -> u64 {
        (self.most - self.least + 1) * self.signs.len() as u64
    }

    /// An argument by its index.
    fn at(&self, number: u64, format: Format) -> u64 {
        let (patterns, sign) = (self.most - self.least + 1, 1 << (format.bits() - 1));
        let negative = self.signs[usize::from(number >= patterns)];
        (self.least + number % patterns) | if negative { sign } else { 0 }
    }

    /// Every argument if there are at most `count`, otherwise `count` drawn ones that include the ends of the range.
    pub(super) fn points(&self, count: u64, format: Format, seed: u64) -> Points<'_> {
        let is_whole = count >= self.len();
        Points {
            range: self,
            format,
            random: (!is_whole).then_some(Random(seed)),
            next: 0,
            count: count.min(self.len()),
        }
    }
}

/// The number of arguments for each range, given the total: equal shares, except that a small range is used completely.
pub(super) fn shares(ranges: &[Range], points: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.order_by_key(|at| ranges[*at].len());
    let (mut left, mut shares) = (points, vec![0; ranges.len()]);
    for (done, at) in order.iter().enumerate() {
        let share = left.div_ceil((ranges.len() - done) as u64);
        shares[*at] = share.min(ranges[*at].len());
        left -= shares[*at];
    }
    shares
}

/// The arguments of one range.
pub(super) struct Points<'a> {
    range: &'a Range,
    format: Format,
    random: Option<Random>,
    next: u64,
    count: u64,
}

impl Iterator for Points<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let at = self.next;
        if at == self.count {
            return None;
        }
        self.next += 1;
        let number = match &mut self.random {
            None => at,
            Some(_) if at == 0 => 0,
            Some(_) if at == 1 => self.range.len() - 1,
            Some(random) => random.bits() % self.range.len(),
        };
        Some(self.range.at(number, self.format))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_one_another_and_hold_every_finite_argument_of_f16_once() {
        for function in Elementary::ALL.map(ScalarFunction::Elementary) {
            let ranges = ranges(function, Format::F16);
            let shares = shares(&ranges, 1 << 20);
            let all: Vec<u64> =
                ranges.iter().zip(&shares).flat_map(|(range, share)| range.points(*share, Format::F16, 1)).collect();
            let distinct: std::collections::BTreeSet<u64> = all.iter().copied().collect();
            assert_eq!(all.len(), distinct.len(), "{function}");
            let (negative, from) = match function {
                ScalarFunction::Elementary(Elementary::ReciprocalSquareRoot | Elementary::Log | Elementary::Log2) => {
                    (0, 1)
                }
                // The ranges exclude subnormal arguments of the exponential, and those whose result no format holds.
                ScalarFunction::Elementary(Elementary::Exp | Elementary::Exp2) => {
                    assert_eq!(all.len(), 2 * (0x6400 - 0x400), "{function}");
                    continue;
                }
                _ => (1, 1),
            };
            assert_eq!(all.len(), (1 + negative) * (0x7c00 - from), "{function}");
        }
    }

    #[test]
    fn as_many_are_drawn_as_are_asked_for_and_the_same_of_the_same_seed() {
        let ranges = ranges(ScalarFunction::Elementary(Elementary::Sin), Format::F32);
        let shares = shares(&ranges, 1_000_003);
        assert_eq!(shares.iter().sum::<u64>(), 1_000_003);
        let drawn = |seed| ranges[2].points(shares[2], Format::F32, seed).collect::<Vec<_>>();
        assert_eq!(drawn(5), drawn(5));
        assert_ne!(drawn(5), drawn(6));
        let is_inside = |bits: &u64| (0.000_244..1.0).contains(&Format::F32.to_f64(*bits).abs());
        assert!(drawn(5).iter().all(is_inside));
    }
}
