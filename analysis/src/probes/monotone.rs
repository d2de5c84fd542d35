//! Question 6, third part: can a larger term give a smaller result?
//!
//! A sum is monotone if it never decreases when a term increases. The pairs of inputs asked differ in one term, the
//! lead: c, and if that shows nothing, a product. With a lead just below a power of two, the grid is one place finer
//! than with that power. Small terms that have the finer grid's lowest bit keep it next to the smaller lead, and lose
//! it next to the larger one. If they lose more than the lead gains, and a last place of the result lies in between,
//! the sum decreases. Terms that are odd multiples of that bit lose it each, so a few terms suffice if their multiples
//! are chosen to reach a last place.
//!
//! A product of a subnormal number may be aligned by the exponents of its operands, far above its value. Its grid is
//! then coarser than that of a product of normal numbers just below it, and bits that lie only on the finer grid are
//! lost.

use mxprobe_api::{Error, Rounding};

use super::{
    Ask, Leaf, Probe, Subject,
    facts::{Facts, Kept, Structure},
    number::Number,
};
use crate::{
    dots::Dot,
    findings::{AppliesTo, Finding, Shown},
};

pub(crate) const PROBE: Probe = Probe {
    name: "monotone",
    question: "Can a larger term give a smaller result?",
    how: "Pairs of inputs that differ in one term, which grows: c, or, if that shows nothing, a product. The others are made \
         from what was found about alignment: equal small terms, and odd multiples of the lowest bit that survives beside \
         the smaller one.",
    answers: &[
        ("false", "a larger term gives a smaller result for the inputs shown: bisection and interval bounds may fail"),
        ("inconclusive", "no such pair was found, which does not prove that none exists"),
    ],
    source: "Fasi et al. (2021), section 3.1.4",
    applies_to: AppliesTo::Floating,
    shown: Shown::at_a_glance(8, "monotone"),
    ask: Ask::Along,
};

/// The most units of the finer grid in a last place of the result for which unequal terms are tried; beyond this, more
/// terms would be needed than a block has.
const WIDEST_PLACE_UNITS: i32 = 64;

/// Asks pairs of dots that differ in one term.
pub(super) fn ask(subject: &Subject<'_>, facts: &Facts, structure: &Structure) -> Result<Finding, Error> {
    let name = PROBE.name;
    let value = |d: u64| subject.id().d.to_f64(d);
    let block = structure.blocks.iter().find(|block| !block.is_empty()).cloned().unwrap_or_default();
    // If products are added before c, or in turn, the last of them may work as the lead when the first does not.
    let ends = [block.first(), block.last()].into_iter().flatten().map(|k| Leaf::Product(*k));
    let mut count = 0;
    let leads = std::iter::once(Leaf::C).chain(ends).map(|lead| (lead, false));
    let subnormal = block.first().map(|k| (Leaf::Product(*k), true));
    for (lead, is_subnormal) in leads.chain(subnormal) {
        let others: Vec<usize> = block.iter().copied().filter(|k| lead != Leaf::Product(*k)).collect();
        // The second set is large, and few units that fail it pass the first.
        let sets: [Option<Pairs>; 2] = match lead {
            Leaf::Product(_) if is_subnormal => [Some(subnormal_pairs), None],
            _ => [Some(equal_pairs), Some(odd_pairs)],
        };
        for pairs in sets.into_iter().flatten() {
            let dots = pairs(subject, facts, lead, &others);
            count += dots.len() / 2;
            let answers = subject.ask(&dots)?;
            let Some(at) = answers.chunks(2).position(|pair| value(pair[0]) > value(pair[1])) else { continue };
            let (below, above) = (&dots[2 * at], &dots[2 * at + 1]);
            let monotone = [("a monotone sum is at least".to_owned(), answers[2 * at])];
            let (term, rest) = if lead == Leaf::C { ("c", "products") } else { ("product", "other terms") };
            let shown = vec![
                subject.evidence(format!("the smaller {term}"), below, answers[2 * at], &[]),
                subject.evidence(format!("the larger {term}, the same {rest}"), above, answers[2 * at + 1], &monotone),
            ];
            let words = format!("not monotone: with the same {rest} a larger {term} gives a smaller result");
            return Ok(Finding::measured(name, false, words).with(shown));
        }
    }
    Ok(match count {
        0 => Finding::inconclusive(name, "no pair of inputs could be made"),
        _ => {
            let reason = format!("no witness against it among {count} pairs made for this unit, which proves nothing");
            Finding::inconclusive(name, reason)
        }
    })
}

/// Makes pairs of dots that differ in the lead, one after another and the smaller one first, with small terms at the
/// other products.
type Pairs = fn(&Subject<'_>, &Facts, Leaf, &[usize]) -> Vec<Dot>;

/// The lead just below a power of two and at it, beside small terms.
struct Around<'a> {
    subject: &'a Subject<'a>,
    lead: Leaf,
    products: &'a [usize],
    /// Numbers of small terms: every count up to that of a wide block, then powers of two.
    counts: Vec<usize>,
    /// The number of bits kept, or what is known of it.
    reach: i32,
    /// The exponents of products.
    range: (i32, i32),
}

impl<'a> Around<'a> {
    fn new(subject: &'a Subject<'a>, facts: &Facts, lead: Leaf, products: &'a [usize]) -> Self {
        let is_asked = |count: &usize| *count <= 24 || count.is_power_of_two() || *count == products.len();
        Self {
            subject,
            lead,
            products,
            counts: (1..=products.len()).filter(is_asked).collect(),
            reach: facts.kept.map_or(subject.id().c.fraction_bits().cast_signed(), Kept::at_least),
            range: subject.exponents(Leaf::Product(0)),
        }
    }

    /// The exponent of the lead next to terms this far below it.
    fn exponent(&self, depth: i32) -> Option<i32> {
        let (low, high) = self.range;
        Some((low + depth).max(0)).filter(|exponent| exponent - depth <= high)
    }

    /// The pair of that exponent and side of zero, beside these terms.
    fn pair(&self, exponent: i32, side: i32, small: &[Number]) -> Option<[Dot; 2]> {
        let format = if self.lead == Leaf::C { self.subject.id().c } else { self.subject.id().a };
        let last_place = Number::power(exponent - 1 - format.fraction_bits().cast_signed());
        let smaller = Number::power(exponent).plus(last_place.negated());
        let below = if side == 1 { smaller } else { Some(Number::power(exponent).negated()) };
        let above = if side == 1 { Some(Number::power(exponent)) } else { smaller.map(Number::negated) };
        let (below, above) = (below?, above?);
        let small = self.products.iter().zip(small).map(|(k, value)| (Leaf::Product(*k), *value));
        if self.lead == Leaf::C {
            // Products do not depend on c.
            let dot = self.subject.dot(&small.collect::<Vec<_>>())?;
            let (below, above) = (self.subject.c_bits(below)?, self.subject.c_bits(above)?);
            return Some([Dot { c: below, ..dot.clone() }, Dot { c: above, ..dot }]);
        }
        let dot = |lead: Number| {
            let terms: Vec<(Leaf, Number)> = std::iter::once((self.lead, lead)).chain(small.clone()).collect();
            self.subject.dot(&terms)
        };
        Some([dot(below)?, dot(above)?])
    }
}

/// Equal small terms: at every depth around the number of bits kept, in every count, of both signs.
fn equal_pairs(subject: &Subject<'_>, facts: &Facts, lead: Leaf, products: &[usize]) -> Vec<Dot> {
    let around = Around::new(subject, facts, lead, products);
    let mut pairs = Vec::new();
    for depth in (around.reach - 14).max(1)..=around.reach + 4 {
        let Some(exponent) = around.exponent(depth) else { continue };
        for count in &around.counts {
            for side in [1, -1] {
                let small = vec![Number::power(exponent - depth).times(side); *count];
                pairs.extend(around.pair(exponent, side, &small).into_iter().flatten());
            }
        }
    }
    pairs
}

/// Small terms that are odd multiples of the lowest bit kept, or of one below it.
fn odd_pairs(subject: &Subject<'_>, facts: &Facts, lead: Leaf, products: &[usize]) -> Vec<Dot> {
    let around = Around::new(subject, facts, lead, products);
    let mut pairs = Vec::new();
    // The units of the finer grid in one last place of the result.
    let result_bits = facts.result_fraction_bits.unwrap_or(subject.id().d.fraction_bits().cast_signed());
    let place = 1i32.checked_shl((around.reach + 1 - result_bits).max(0).unsigned_abs()).filter(|place| *place > 0);
    let Some(place) = place.filter(|place| *place <= WIDEST_PLACE_UNITS) else { return pairs };
    for depth in around.reach.max(1)..=around.reach + 2 {
        let Some(exponent) = around.exponent(depth) else { continue };
        for count in &around.counts {
            let odd = i32::try_from(*count).unwrap_or(i32::MAX);
            // The sum exceeds one last place, but falls below it when each term loses one unit.
            for sum in (odd + 2..=2 * place + odd).step_by(2) {
                for (side, sign) in [(1, 1), (-1, -1), (1, -1), (-1, 1)] {
                    let unit = Number::power(exponent - depth).times(sign);
                    let small: Vec<Number> = odd_parts(sum, odd).map(|part| unit.times(part)).collect();
                    pairs.extend(around.pair(exponent, side, &small).into_iter().flatten());
                }
            }
        }
    }
    pairs
}

/// Pairs of dots that differ in one product: first of normal numbers, then, slightly larger, the smallest subnormal
/// number of A times a power of two. The other terms lie below the grid of the latter: half of its unit, or as close to
/// a unit as A can represent.
fn subnormal_pairs(subject: &Subject<'_>, facts: &Facts, lead: Leaf, others: &[usize]) -> Vec<Dot> {
    let Leaf::Product(lead) = lead else { return Vec::new() };
    let (Some(a), Some(b)) = (subject.id().a.as_float(), subject.id().b.as_float()) else { return Vec::new() };
    let Some((mantissa, bits)) = just_below(a.fraction_bits, b.fraction_bits) else { return Vec::new() };
    let reach = facts.kept.map_or(subject.id().d.fraction_bits().cast_signed(), Kept::at_least);
    let (smallest, least) = (a.exponents().0, a.min_exponent());
    let longest = a.fraction_bits.cast_signed() + 1;
    let smalls = [Number::power(-1), Number::new((1 << longest) - 1, -longest)];
    let mut pairs = Vec::new();
    for power in [b.max_exponent(), 0] {
        for (small, sign) in smalls.into_iter().flat_map(|small| [(small, 1), (small, -1)]) {
            let small = small.scaled(least + power - reach).times(sign);
            let terms: Vec<(Leaf, Number)> = others.iter().map(|k| (Leaf::Product(*k), small)).collect();
            let Some(dot) = subject.dot(&terms) else { continue };
            let with = |operands: Option<(u64, u64)>| {
                let mut dot = dot.clone();
                (dot.a[lead], dot.b[lead]) = operands?;
                Some(dot)
            };
            let below = Number::new(mantissa, smallest + power - bits).times(sign);
            let subnormal = (
                Number::power(smallest).times(sign).encode(subject.id().a, Rounding::TowardZero),
                Number::power(power).encode(subject.id().b, Rounding::TowardZero),
            );
            let pair = with(subject.factored_bits(below)).zip(with(Some(subnormal)));
            let pair = pair.map(|(near, far)| if sign == 1 { [near, far] } else { [far, near] });
            pairs.extend(pair.into_iter().flatten());
        }
    }
    pairs
}

/// The longest fractions for which all products of two significands are enumerated.
const LONGEST_FRACTION: u32 = 12;

/// The largest product of two significands with these fraction bits, as integers, that is below a power of two, and the
/// exponent of that power.
fn just_below(a: u32, b: u32) -> Option<(i128, i32)> {
    if a.max(b) > LONGEST_FRACTION || a.min(b) == 0 {
        return None;
    }
    let power = a + b + 1;
    let significands = 1u64 << a..2 << a;
    let products = significands.filter_map(|of_a| {
        let of_b = ((1u64 << power) - 1) / of_a;
        (1u64 << b..2 << b).contains(&of_b).then_some(of_a * of_b)
    });
    products.max().map(|product| (product.into(), power.cast_signed()))
}

/// Splits a sum into this many odd parts, as equal as possible, the larger ones first; both arguments must have the
/// same parity.
fn odd_parts(sum: i32, count: i32) -> impl Iterator<Item = i32> {
    let twos = (sum - count) / 2;
    let (each, more) = (twos / count, twos % count);
    (0..count).map(move |at| 1 + 2 * (each + i32::from(at < more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_pair_has_the_smaller_lead_and_the_same_products() {
        let device = mxprobe_sim::ModelDevice::new(mxprobe_models::load("h100").unwrap());
        let operation = &mxprobe_api::Device::operations(&device)[&"mma.m16n8k16.f32.f16.f16.f32".parse().unwrap()];
        let subject = Subject::new(&device, operation);
        let small = [Number::power(-14), Number::power(-15).times(3)];
        for lead in [Leaf::C, Leaf::Product(0)] {
            let around = Around::new(&subject, &Facts::default(), lead, &[3, 5]);
            for side in [1, -1] {
                let [below, above] = around.pair(10, side, &small).unwrap();
                let value = |dot: &Dot| match lead {
                    Leaf::C => subject.id().c.to_f64(dot.c),
                    Leaf::Product(k) => subject.id().a.to_f64(dot.a[k]) * subject.id().b.to_f64(dot.b[k]),
                };
                let (of_below, of_above) = (value(&below), value(&above));
                assert!(of_below < of_above, "{of_below} {of_above}");
                let larger = of_below.abs().max(of_above.abs());
                assert_eq!(larger.to_bits(), 1024f64.to_bits(), "{of_below} {of_above}");
                assert_eq!((&below.a[1..], &below.b[1..]), (&above.a[1..], &above.b[1..]));
                let terms = [(Leaf::Product(3), small[0]), (Leaf::Product(5), small[1])];
                assert_eq!(subject.dot(&terms).unwrap().a[1..], below.a[1..]);
            }
        }
    }

    #[test]
    fn the_product_of_two_significands_next_below_a_power_of_two_is_found() {
        assert_eq!(just_below(7, 7), Some((217 * 151, 15)));
        assert_eq!(just_below(10, 10), Some((1025 * 2046, 21)));
        assert_eq!(just_below(3, 2), Some((63, 6)));
        assert_eq!(just_below(52, 52), None);
    }

    #[test]
    fn a_sum_falls_into_odd_parts_of_nearly_the_same_size() {
        assert!(odd_parts(6, 4).eq([3, 1, 1, 1]));
        assert!(odd_parts(12, 8).eq([3, 3, 1, 1, 1, 1, 1, 1]));
        assert!(odd_parts(12, 2).eq([7, 5]));
        for count in 1..20 {
            for sum in (count..60).step_by(2) {
                let parts: Vec<i32> = odd_parts(sum, count).collect();
                assert_eq!(parts.iter().sum::<i32>(), sum);
                assert!(parts.iter().all(|part| part % 2 == 1));
            }
        }
    }
}
