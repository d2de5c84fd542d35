//! Plans whose nodes have one or two terms, in the processor's f64 arithmetic.
//!
//! A sum of two terms is a rounded sum and its error, both in f64, however far apart the terms lie. Terms are cut at a
//! grid before they are added, and sums are rounded to odd before they are rounded to a narrower format. A dot of which f64
//! cannot hold the bits that a step needs is abandoned in its lane, and so is one with a NaN or an infinity among its
//! elements.

use mxprobe_api::{FloatEncoding, Format, Overflow, Rounding, Specials, Subnormals};

use super::{
    super::{
        compiled::{Compiled, Node},
        output::{Adding, Rounder},
        repeats::{Repeats, Step},
    },
    elements::Elements,
    invalid::Nan,
    lanes::Lanes,
    loud::Loud,
    output::infinities,
    reals::{Reals, SIGN},
    sum::{NO_EXPONENT, Terms},
    whole::{Unit, whole},
};
use crate::{
    adder::{Below, Class, Exponent, GridRule, ZeroSign},
    tree::Term,
};

/// Exponents of products whose errors lie within the range of f64, and of sums that no step overflows.
const LEAST: i64 = -960;
const MOST: i64 = 1022;

/// Products of this exponent or a larger one overflow, whatever number is added to them.
const BEYOND: i64 = 1026;

/// The exponents of numbers of f64 that are not zero.
const NUMBERS: (i64, i64) = (-1074, 1022);

/// The scale of terms that are not scaled, and the exponent of the number that all are multiples of.
const AS_THEY_ARE: (Lanes, i64) = (Lanes::ZERO, NUMBERS.0);

/// The exponent of a number that products of factors from one to two are multiples of, and of units that such products are
/// floored to at the most.
const NEAR_ONE: i64 = -104;
const HIGH: i64 = 900;

/// The fraction bits of f64, and the most of a narrower format.
const FRACTION_BITS: u32 = 52;
const NARROW: u32 = 48;

/// A term of a node: a number, the part of a product that does not fit it, and the exponent that grids count.
#[derive(Clone, Copy)]
struct Part {
    class: Class,
    high: Reals,
    low: Reals,
    exponent: Lanes,
}

impl Part {
    const ZERO: Self =
        Self { class: Class::Values, high: Reals::ZERO, low: Reals::ZERO, exponent: Lanes::all(NO_EXPONENT) };

    /// A product in two parts.
    #[inline(always)]
    fn of_factors(a: Reals, b: Reals, exponent: Lanes) -> Self {
        let high = a * b;
        Self { class: Class::Products, high, low: a.times_and(b, -high), exponent }
    }

    #[inline(always)]
    fn is_zero(&self) -> Lanes {
        self.high.is_zero()
    }

    /// Where a product or its second part may lie beyond the range.
    #[inline(always)]
    fn is_far(&self) -> Lanes {
        let underflows = self.is_zero() & self.exponent.is_above(Lanes::all(NO_EXPONENT));
        is_extreme(self.high) | underflows
    }

    /// The exponent of the leading bit; [`NO_EXPONENT`] for a zero.
    #[inline(always)]
    fn leading(&self) -> Lanes {
        // The part below a power of two may be negative.
        let borrows = !self.low.is_zero() & (self.low.is_negative() ^ self.high.is_negative());
        let leading = Reals::of_bits(self.high.bits() + borrows).leading();
        Lanes::all(NO_EXPONENT).select(self.is_zero(), leading)
    }

    /// The term without what lies below the unit, where there is one.
    #[inline(always)]
    fn cut(&self, unit: Lanes, below: Below) -> (Reals, Reals) {
        let has_unit = unit.is_above(Lanes::all(NO_EXPONENT));
        let unit = Unit::of(unit & has_unit);
        if matches!(below, Below::Nearest | Below::NearestAway | Below::Sticky) {
            let (high, low) = unit.nearest(self.high, self.low, below);
            return (high.select(has_unit, self.high), low.select(has_unit, self.low));
        }
        let toward_zero = unit.whole(self.high);
        let high = if below == Below::Truncate { toward_zero } else { unit.below(self.high, toward_zero) };
        let high = high.select(has_unit, self.high);
        // Only a whole number of units may lose some of what lies below it.
        let mirrored = self.high.bits() & Lanes::all(if below == Below::Truncate { i64::MIN } else { 0 });
        let low = Reals::of_bits(self.low.bits() ^ mirrored);
        let low = unit.below(low, unit.whole(low));
        let low = Reals::of_bits(low.bits() ^ mirrored).select(has_unit, self.low);
        (high, low.select(high.is(self.high), Reals::ZERO))
    }
}

/// The factors of dots and c, as numbers.
pub(super) struct Numbers {
    /// Products that fit one number, or the factors of those that do not.
    a: Vec<Reals>,
    b: Vec<Reals>,
    /// The exponents of the products, by those of their factors.
    exponents: Vec<Lanes>,
    c: Reals,
    of_c: Lanes,
    results: Vec<Reals>,
    has_factors: bool,
    pub(super) nan: Nan,
    /// Where an element is a NaN or an infinity, once the elements have been read.
    special: Option<Lanes>,
}

/// Whether products do not fit one number.
pub(super) fn has_factors(compiled: &Compiled) -> bool {
    compiled.product_fraction_bits > 50
}

/// The lanes that are abandoned: with a NaN or an infinity, and beyond the range.
#[derive(Clone, Copy)]
pub(super) struct Abandoned {
    pub(super) special: Lanes,
    pub(super) wide: Lanes,
}

/// Whether the errors of numbers that are not zero may lie beyond the range, or steps on them overflow.
#[inline(always)]
fn is_extreme(value: Reals) -> Lanes {
    let exponent = value.exponent();
    (Lanes::all(LEAST).is_above(exponent) | exponent.is_above(Lanes::all(MOST))) & !value.is_zero()
}

/// The numbers that elements stand for, and their exponents.
#[inline(always)]
fn read(elements: &Elements, fraction_bits: i32, special: &mut Lanes) -> (Reals, Lanes) {
    let (Terms { negative, magnitude, lsb, exponent, .. }, is_special) = elements.terms(Class::Values, fraction_bits);
    *special = *special | is_special;
    // The lowest bit of f64 is too small a factor; its root is not.
    let root = lsb >> Lanes::all(1);
    let scaled = Reals::of_whole(magnitude) * Reals::power_of_two(root);
    let value = scaled * Reals::power_of_two(lsb - root);
    (Reals::of_bits(value.bits() ^ negative & SIGN), exponent)
}

impl Numbers {
    /// Whether the plan can be computed this way.
    pub(super) fn take(compiled: &Compiled) -> bool {
        let has_factors = has_factors(compiled);
        let operands = [compiled.a.format, compiled.b.format, compiled.c.format];
        let results = compiled.nodes.iter().map(|node| compiled.adders[node.adder].format);
        compiled.scale.is_none()
            && !operands.into_iter().chain(results).any(Format::is_integer)
            && compiled.nodes.iter().all(|node| is_taken(compiled, node, has_factors))
    }

    /// Memory for dots of `k` products.
    pub(super) fn of(compiled: &Compiled, k: usize) -> Self {
        let has_factors = has_factors(compiled);
        let of_factors = if has_factors { k } else { 0 };
        Self {
            a: vec![Reals::ZERO; k],
            b: vec![Reals::ZERO; of_factors],
            exponents: vec![Lanes::all(NO_EXPONENT); k],
            c: Reals::ZERO,
            of_c: Lanes::ZERO,
            results: vec![Reals::ZERO; compiled.nodes.len()],
            has_factors,
            nan: Nan::default(),
            special: None,
        }
    }

    /// Whether products are read as two factors.
    pub(super) fn has_factors(&self) -> bool {
        self.has_factors
    }

    /// Lets the elements be read again, because they are others.
    pub(super) fn renew(&mut self) {
        self.special = None;
    }

    /// Makes a product +0 in all lanes.
    pub(super) fn erase(&mut self, k: usize) {
        (self.a[k], self.exponents[k]) = (Reals::ZERO, Lanes::all(NO_EXPONENT));
        if self.has_factors {
            self.b[k] = Reals::ZERO;
        }
    }

    /// Reads elements that are not +0 in all lanes, unless they have been read. Returns where one is a NaN or an infinity.
    #[inline(always)]
    fn load(
        &mut self,
        compiled: &Compiled,
        (of_a, of_b): (&[Elements], &[Elements]),
        c: &Elements,
        loud: &[usize],
    ) -> Lanes {
        if let Some(special) = self.special {
            return special;
        }
        let mut special = Lanes::ZERO;
        if self.has_factors {
            let bits = [compiled.a, compiled.b].map(|reader| reader.format.fraction_bits().cast_signed());
            for k in loud.iter().copied() {
                let (a, of_a) = read(&of_a[k], bits[0], &mut special);
                let (b, of_b) = read(&of_b[k], bits[1], &mut special);
                (self.a[k], self.b[k]) = (a, b);
                self.exponents[k] = Lanes::all(NO_EXPONENT).select(a.is_zero() | b.is_zero(), of_a + of_b);
            }
        } else {
            for k in loud.iter().copied() {
                (self.a[k], self.exponents[k]) = read(&of_a[k], compiled.product_fraction_bits, &mut special);
            }
        }
        (self.c, self.of_c) = read(c, compiled.c_fraction_bits, &mut special);
        self.special = Some(special);
        special
    }

    /// Computes the dots whose elements these are. Returns the bits of the results, and the lanes without one.
    #[inline(always)]
    pub(super) fn compute(
        &mut self,
        compiled: &Compiled,
        factors: (&[Elements], &[Elements]),
        c: &Elements,
        (loud, repeats): (&Loud, &mut Repeats),
    ) -> (Lanes, Abandoned) {
        let special = self.load(compiled, factors, c, &loud.places);
        let mut abandoned = Abandoned { special, wide: Lanes::ZERO };
        let mut bits = Lanes::ZERO;
        let mut are_finite = true;
        repeats.begin();
        for (index, node) in compiled.nodes.iter().enumerate() {
            let step = repeats.step(index, compiled.terms_of(node), |k| loud.is_quiet(k));
            if step == Step::Known {
                continue;
            }
            let adder = &compiled.adders[node.adder];
            let Some(rounder) = &adder.float else { break };
            let mut own = Abandoned { special: Lanes::ZERO, wide: Lanes::ZERO };
            let (sum, zeros) = self.sum((compiled, repeats), node, &mut own.wide);
            let mut value = rounded(adder, rounder, sum, zeros, &mut own);
            if let ([Term::Product(k)], true) = (compiled.terms_of(node), self.has_factors && !is_native(adder)) {
                let is_far = self.product(*k).is_far();
                if is_far.any() {
                    value = self.far_product(adder, rounder, *k, (is_far, &mut own)).select(is_far, value);
                }
            }
            if !are_finite || self.has_factors && !is_native(adder) {
                value = self.not_finite((compiled, repeats), node, value, &mut own);
                if value.is_nan().any() {
                    let is_known = self.nan.of(compiled).is_some();
                    own.special = own.special | value.is_nan() & Lanes::all(if is_known { 0 } else { -1 });
                }
            }
            are_finite = are_finite && !(value.is_infinite() | value.is_nan()).any();
            abandoned.special = abandoned.special | own.special;
            abandoned.wide = abandoned.wide | own.wide;
            if !(!abandoned.special & !abandoned.wide).any() {
                break;
            }
            if index + 1 == compiled.nodes.len() {
                bits = encoded(adder, rounder, value);
                if value.is_nan().any()
                    && let Some(nan) = self.nan.of(compiled)
                {
                    bits = Lanes::all(nan.cast_signed()).select(value.is_nan(), bits);
                }
            }
            let left = !abandoned.special & !abandoned.wide;
            let is_same = |other: usize| !(!value.bits().is(self.results[other].bits()) & left).any();
            if !repeats.is_unchanged(step, index, is_same) {
                self.results[index] = value;
            }
        }
        (bits, abandoned)
    }

    /// The sum of a node's terms in two parts, or rounded to f64 if the adder does that and nothing else. Sets `wide` where
    /// it is not known.
    #[inline(always)]
    fn sum(
        &self,
        (compiled, repeats): (&Compiled, &Repeats),
        node: &Node,
        wide: &mut Lanes,
    ) -> ((Reals, Reals), Zeros) {
        let adder = &compiled.adders[node.adder];
        let terms = compiled.terms_of(node);
        let first = self.part((compiled, repeats), terms[0]);
        let Some(second) = terms.get(1).map(|term| self.part((compiled, repeats), *term)) else {
            let parts = [first];
            if self.has_factors && first.class == Class::Products && is_native(adder) {
                return ((first.high, Reals::ZERO), Zeros::of(first.high));
            }
            let (high, low) = if adder.rules.grid.is_empty() {
                (first.high, first.low)
            } else {
                first.cut(unit(adder, &parts, AS_THEY_ARE, wide), adder.rules.below)
            };
            return (high.plus(low), zeros(&parts));
        };
        let parts = [first, second];
        if let ([Term::Product(k), _] | [_, Term::Product(k)], true) = (terms, self.has_factors) {
            let (product, other) = if first.class == Class::Products { (first, second) } else { (second, first) };
            if is_native(adder) {
                let sum = self.a[*k].times_and(self.b[*k], other.high);
                return ((sum, Reals::ZERO), Zeros::of(sum));
            }
            *wide = *wide | product.is_far();
            if adder.rules.grid.is_empty() {
                return (sum_of_three((product.high, product.low), other.high), zeros(&parts));
            }
            let unit = unit(adder, &parts, AS_THEY_ARE, wide);
            let (product, (other, _)) = (product.cut(unit, adder.rules.below), other.cut(unit, adder.rules.below));
            return (sum_of_three(product, other), zeros(&parts));
        }
        if adder.rules.grid.is_empty() {
            return (first.high.plus(second.high), zeros(&parts));
        }
        // Only a product alone may have a second part.
        let unit = unit(adder, &parts, AS_THEY_ARE, wide);
        let ((first, _), (second, _)) = (first.cut(unit, adder.rules.below), second.cut(unit, adder.rules.below));
        (first.plus(second), zeros(&parts))
    }

    /// Products alone as their adder rounds them, at any exponent. They are computed near one and scaled once they are
    /// rounded. Only those that are `far` count; they are abandoned again if they cannot be computed this way either.
    #[inline(always)]
    fn far_product(
        &self,
        adder: &Adding,
        rounder: &Rounder,
        k: usize,
        (far, abandoned): (Lanes, &mut Abandoned),
    ) -> Reals {
        let mut own = Abandoned { special: Lanes::ZERO, wide: Lanes::ZERO };
        let one = Reals::all(1.0);
        let (a, b) = (one.select(!far, self.a[k]), one.select(!far, self.b[k]));
        let (of_a, of_b) = (a.leading(), b.leading());
        let (a, b) = (a.scaled(-of_a), b.scaled(-of_b));
        let scale = of_a + of_b;
        let mut part = Part::of_factors(a, b, self.exponents[k] - scale);
        if !adder.rules.grid.is_empty() {
            let unit = unit(adder, &[part], (scale, NEAR_ONE), &mut own.wide);
            let (high, low) = part.cut(unit, adder.rules.below);
            (part.high, part.low) = high.plus(low);
            own.wide = own.wide | part.high.exponent().is_above(Lanes::all(HIGH));
        }
        let bits = Lanes::all(i64::from(rounder.encoding.fraction_bits));
        let least = Lanes::all(i64::from(rounder.min_exponent));
        // The exponent of the last bit kept. If it is beyond the range, the number is far below half of that bit.
        let last = part.leading().max(least - scale) - bits;
        let near = last.min(Lanes::all(MOST));
        let whole = whole(part.high * Reals::power_of_two(-near), part.low, rounder.rounding);
        let whole = Reals::of_bits(whole.bits() | part.high.bits() & SIGN);
        let value = whole.scaled(last + scale);
        let value = bounded(adder, rounder, value, &mut own);
        let zeros = Zeros { negative: Lanes::ZERO, positive: Lanes::ZERO };
        let value = signed(adder, rounder, value, (part.is_zero(), zeros));
        abandoned.special = abandoned.special & !far | own.special & far;
        abandoned.wide = abandoned.wide & !far | own.wide & far;
        value
    }

    /// The value of a node: infinite or NaN where one of its terms is, NaN where infinite terms have both signs, and
    /// infinite where a product overflows whatever is added to it.
    #[inline(always)]
    fn not_finite(
        &self,
        (compiled, repeats): (&Compiled, &Repeats),
        node: &Node,
        mut value: Reals,
        abandoned: &mut Abandoned,
    ) -> Reals {
        let terms = compiled.terms_of(node);
        let mut is_infinite = Lanes::ZERO;
        for term in terms {
            let Term::Product(k) = *term else { continue };
            let is_beyond = self.exponents[k].is_above(Lanes::all(BEYOND - 1));
            if self.has_factors && is_beyond.any() && overflows_beyond(&compiled.adders[node.adder]) {
                is_infinite = is_beyond;
                value = (self.a[k] * self.b[k]).select(is_beyond, value);
            }
        }
        let (mut is_of_terms, mut is_nan) = (Lanes::ZERO, Lanes::ZERO);
        for term in terms {
            let Term::Node(index) = *term else { continue };
            let term = self.results[repeats.place(index)];
            let is_one = term.is_infinite();
            is_nan = is_nan | term.is_nan() | is_of_terms & is_one & (term.is_negative() ^ value.is_negative());
            value = term.select(is_one, value);
            is_of_terms = is_of_terms | is_one;
        }
        let is_known = is_infinite | is_of_terms | is_nan;
        abandoned.special = abandoned.special & !is_known;
        abandoned.wide = abandoned.wide & !is_known;
        Reals::all(f64::NAN).select(is_nan, value)
    }

    /// A product as a node takes it.
    #[inline(always)]
    fn product(&self, k: usize) -> Part {
        let exponent = self.exponents[k];
        if self.has_factors {
            return Part::of_factors(self.a[k], self.b[k], exponent);
        }
        Part { class: Class::Products, high: self.a[k], low: Reals::ZERO, exponent }
    }

    /// A term as the node takes it.
    #[inline(always)]
    fn part(&self, (compiled, repeats): (&Compiled, &Repeats), term: Term) -> Part {
        match term {
            Term::Product(k) => self.product(k),
            Term::C => Part { class: Class::Values, high: self.c, low: Reals::ZERO, exponent: self.of_c },
            Term::Node(index) => {
                let high = self.results[repeats.place(index)];
                let adder = &compiled.adders[compiled.nodes[index].adder];
                let least = adder.format.as_float().map_or(0, FloatEncoding::min_exponent);
                let exponent = high.exponent().max(Lanes::all(i64::from(least)));
                let exponent = Lanes::all(NO_EXPONENT).select(high.is_zero(), exponent);
                Part { class: Class::Values, high, low: Reals::ZERO, exponent }
            }
            Term::PositiveZero => Part::ZERO,
        }
    }
}

/// The rounded sum of a product in two parts and another term, and a number of the sign of its error.
///
/// The smaller parts are added to odd, so that their sum lies on the same side of every number of 53 bits (Boldo and
/// Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
#[inline(always)]
fn sum_of_three((high, low): (Reals, Reals), other: Reals) -> (Reals, Reals) {
    let (high, low) = high.plus(low);
    let (sum, error) = high.plus(other);
    let (rest, lost) = error.plus(low);
    sum.plus(odd(rest, lost))
}

/// A rounded sum and its error as one number, rounded to odd.
#[inline(always)]
fn odd(high: Reals, low: Reals) -> Reals {
    Reals::of_bits(toward_zero(high, low) | Lanes::all(1) & !low.is_zero())
}

/// The bits of a rounded sum and its error as one number, rounded toward zero.
#[inline(always)]
fn toward_zero(high: Reals, low: Reals) -> Lanes {
    // Steps from a number to the next one away from zero are the same for both signs.
    let is_past = (low.is_negative() ^ high.is_negative()) & !low.is_zero();
    high.bits() + is_past
}

/// Where a sum that is zero is −0, and where it is +0, in every rounding: where all terms are.
#[derive(Clone, Copy)]
struct Zeros {
    negative: Lanes,
    positive: Lanes,
}

impl Zeros {
    /// The signs of results of the processor, which also rounds numbers to zero.
    #[inline(always)]
    fn of(result: Reals) -> Self {
        let negative = result.is_negative();
        Self { negative, positive: !negative }
    }
}

#[inline(always)]
fn zeros(parts: &[Part]) -> Zeros {
    let (mut negative, mut positive) = (Lanes::all(-1), Lanes::all(-1));
    for part in parts {
        let (is_zero, is_negative) = (part.is_zero(), part.high.is_negative());
        negative = negative & is_zero & is_negative;
        positive = positive & is_zero & !is_negative;
    }
    Zeros { negative, positive }
}

/// Whether a node is computed this way.
fn is_taken(compiled: &Compiled, node: &Node, has_factors: bool) -> bool {
    let adder = &compiled.adders[node.adder];
    let rules = &adder.rules;
    let Some(rounder) = &adder.float else { return false };
    let encoding = rounder.encoding;
    let is_f64 = encoding.fraction_bits == FRACTION_BITS && adder.format == Format::F64;
    let terms = compiled.terms_of(node);
    let of_products = terms.iter().filter(|term| matches!(term, Term::Product(_))).count();
    (1..=2).contains(&terms.len())
        && (!has_factors || of_products <= 1)
        && (is_f64 || encoding.fraction_bits <= NARROW)
        && matches!(encoding.specials, Specials::Ieee | Specials::AllOnesNan | Specials::None)
        && encoding.is_signed()
        && rounder.subnormals == Subnormals::Keep
        && rules.cuts_all_alike()
        && rules.carry_bits.is_none()
        && rules.normalised_fraction_bits.is_none()
        // It adds units even where it cuts nothing.
        && rules.below != Below::OnesComplement
        && !rules.product_overflow
}

/// Whether an adder only rounds to nearest in f64, as the processor does.
fn is_native(adder: &Adding) -> bool {
    let rounds = |rounder: &Rounder| {
        rounder.encoding.fraction_bits == FRACTION_BITS
            && rounder.rounding == Rounding::NearestEven
            && rounder.overflow == Overflow::Ieee
    };
    adder.rules.grid.is_empty() && adder.float.as_ref().is_some_and(rounds)
}

/// What becomes of a sum that is rounded beyond the largest number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Infinite,
    Largest,
    /// A NaN, or one of the others for one sign only.
    Else,
}

impl Beyond {
    #[inline(always)]
    fn of(adder: &Adding, rounder: &Rounder) -> Self {
        match (rounder.overflow, rounder.rounding) {
            (Overflow::Infinity, _) | (Overflow::Ieee, Rounding::NearestEven)
                if adder.format.infinity(false).is_some() =>
            {
                Self::Infinite
            }
            (Overflow::Saturate, _) | (Overflow::Ieee, Rounding::TowardZero) => Self::Largest,
            _ => Self::Else,
        }
    }
}

/// Whether a sum with a product of the exponent [`BEYOND`] or more is infinite, whatever the other term is.
fn overflows_beyond(adder: &Adding) -> bool {
    // On a grid of no bits, a number far below the unit may be floored to minus one unit.
    let has_bits =
        |rule: &GridRule| rule.fraction_bits >= 1 && rule.exponent_floor.is_none_or(|floor| i64::from(floor) < BEYOND);
    adder.float.as_ref().is_some_and(|rounder| Beyond::of(adder, rounder) == Beyond::Infinite)
        && adder.rules.grid.iter().all(has_bits)
}

/// The unit of a node's grid for terms divided by two to the power of `scale`; [`NO_EXPONENT`] if no rule has one, or if it
/// is not above two to the power of `least`, of which every term is a multiple. Sets `wide` where it is not known.
#[inline(always)]
fn unit(adder: &Adding, parts: &[Part], (scale, least): (Lanes, i64), wide: &mut Lanes) -> Lanes {
    let none = Lanes::all(NO_EXPONENT);
    let (least, most) = (Lanes::all(least), Lanes::all(NUMBERS.1));
    let mut unit = none;
    for rule in &adder.rules.grid {
        let mut exponent = rule.exponent_floor.map_or(none, |floor| Lanes::all(i64::from(floor)) - scale);
        for part in parts.iter().filter(|part| rule.terms == Class::All || rule.terms == part.class) {
            exponent = exponent.max(if rule.exponent == Exponent::Operands { part.exponent } else { part.leading() });
        }
        let of_rule = exponent - Lanes::all(i64::from(rule.fraction_bits));
        unit = unit.max(of_rule.select(exponent.is_above(none), none));
    }
    let counts = unit.is_above(least);
    let is_known = !unit.is_above(most);
    *wide = *wide | counts & !is_known;
    unit.select(counts & is_known, none)
}

/// A sum, in two parts, as its adder rounds it.
#[inline(always)]
fn rounded(
    adder: &Adding,
    rounder: &Rounder,
    (high, low): (Reals, Reals),
    zeros: Zeros,
    abandoned: &mut Abandoned,
) -> Reals {
    let is_native = is_native(adder);
    if is_native {
        abandoned.special = abandoned.special | high.is_nan();
    } else {
        let exponent = high.exponent();
        abandoned.special = abandoned.special | exponent.is_above(Lanes::all(Reals::BIAS));
        abandoned.wide = abandoned.wide | exponent.is_above(Lanes::all(MOST));
    }
    let is_exact = low.is_zero();
    let is_negative = high.is_negative();
    let toward_zero = toward_zero(high, low);
    let bits = rounder.encoding.fraction_bits;
    let mut value = if bits == FRACTION_BITS {
        let one = Lanes::all(1);
        match rounder.rounding {
            Rounding::NearestEven => high,
            Rounding::TowardZero => Reals::of_bits(toward_zero),
            Rounding::ToOdd => odd(high, low),
            Rounding::Down => Reals::of_bits(toward_zero + (one & !is_exact & is_negative)),
            Rounding::Up => Reals::of_bits(toward_zero + (one & !is_exact & !is_negative)),
        }
    } else {
        let odd = odd(high, low);
        let exponent = odd.exponent().max(Lanes::all(i64::from(rounder.min_exponent)));
        let is_far = is_extreme(high);
        abandoned.wide = abandoned.wide | is_far;
        let last = (exponent - Lanes::all(i64::from(bits))) & !is_far;
        let scaled = odd * Reals::power_of_two(-last);
        let whole = match rounder.rounding {
            Rounding::NearestEven => scaled.nearest_even(),
            Rounding::TowardZero => scaled.trunc(),
            Rounding::Down => scaled.floor(),
            Rounding::Up => scaled.ceil(),
            Rounding::ToOdd => {
                let whole = scaled.trunc();
                let halved = whole * Reals::all(0.5);
                let steps = !whole.is(scaled) & halved.is(halved.trunc());
                let one = Reals::of_bits(Reals::all(1.0).bits() | scaled.bits() & SIGN);
                whole + one.select(steps, Reals::ZERO)
            }
        };
        // A sum that is rounded to zero keeps its sign.
        let whole = Reals::of_bits(whole.bits() | scaled.bits() & SIGN);
        whole * Reals::power_of_two(last)
    };
    if !is_native {
        value = bounded(adder, rounder, value, abandoned);
    }
    signed(adder, rounder, value, (high.is_zero(), zeros))
}

/// A rounded sum, or what becomes of it beyond the largest number.
#[inline(always)]
fn bounded(adder: &Adding, rounder: &Rounder, value: Reals, abandoned: &mut Abandoned) -> Reals {
    let largest = Reals::all(largest(rounder));
    let is_beyond = largest.is_below(value.abs());
    if !is_beyond.any() {
        return value;
    }
    let signed = |limit: Reals| Reals::of_bits(limit.bits() | value.bits() & SIGN).select(is_beyond, value);
    match Beyond::of(adder, rounder) {
        Beyond::Infinite => signed(Reals::all(f64::INFINITY)),
        Beyond::Largest => signed(largest),
        Beyond::Else => {
            abandoned.special = abandoned.special | is_beyond;
            value
        }
    }
}

/// A rounded sum with the sign that its adder gives it where it was zero before rounding, and where it is zero after.
#[inline(always)]
fn signed(adder: &Adding, rounder: &Rounder, value: Reals, (is_zero, zeros): (Lanes, Zeros)) -> Reals {
    let down = Lanes::all(if rounder.rounding == Rounding::Down { -1 } else { 0 });
    let of_zero = (zeros.negative | down & !zeros.positive) & SIGN;
    let value = Reals::of_bits(of_zero.select(is_zero, value.bits()));
    if adder.rules.zero == ZeroSign::Positive { Reals::ZERO.select(value.is_zero(), value) } else { value }
}

/// The largest number of the adder's format.
fn largest(rounder: &Rounder) -> f64 {
    let FloatEncoding { fraction_bits, bias, .. } = rounder.encoding;
    let to_f64 = (Reals::BIAS - i64::from(bias)).cast_unsigned() << fraction_bits;
    f64::from_bits((rounder.largest + to_f64) << (FRACTION_BITS - fraction_bits))
}

/// The bits of numbers that the format has, and of infinities.
#[inline(always)]
fn encoded(adder: &Adding, rounder: &Rounder, value: Reals) -> Lanes {
    let encoding = &rounder.encoding;
    let bits = value.bits();
    if encoding.fraction_bits == FRACTION_BITS {
        return bits;
    }
    let narrower = Lanes::all(i64::from(FRACTION_BITS - encoding.fraction_bits));
    let exponent = value.exponent();
    let least = Lanes::all(i64::from(rounder.min_exponent));
    let fraction = bits & Lanes::all((1 << FRACTION_BITS) - 1);
    let biased = (exponent + Lanes::all(i64::from(encoding.bias))).max(Lanes::ZERO);
    let normal = (biased << Lanes::all(i64::from(encoding.fraction_bits))) + (fraction >> narrower);
    let down = ((least - exponent).max(Lanes::ZERO) + narrower).min(Lanes::all(63));
    let subnormal = (fraction | Lanes::all(1 << FRACTION_BITS)) >> down;
    let field = subnormal.select(least.is_above(exponent), normal);
    let field = Lanes::ZERO.select(value.is_zero(), field);
    let sign = (value.is_negative() & Lanes::all(1)) << Lanes::all(i64::from(rounder.sign_at));
    let finite = field << Lanes::all(i64::from(encoding.unread_bits)) | sign;
    infinities(adder.format, value.is_negative()).select(value.is_infinite(), finite)
}
