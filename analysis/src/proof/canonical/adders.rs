//! Normalises parameters whose value no dot can show.
//!
//! Each function takes an adder, the facts about its terms, and what is observed of its result. None changes a bit of
//! d.

use mxprobe_api::{Format, Overflow, Rounding, Subnormals};
use mxprobe_models::{Adder, Below, Class, Exponent, GridRule, NanCause, NanRules, Output, PlanNode, Scale, ZeroSign};

use super::{
    super::carry::sufficient_carry_bits,
    facts::{Facts, NanBits, Sum},
    form::Form,
    observed::Observed,
    ranges::{in_one_block, may_be_negative_zero, units},
};

/// The causes in their default order in model files.
const CAUSES: [NanCause; 3] = [NanCause::Operand, NanCause::Value, NanCause::Invalid];

impl Form<'_> {
    /// Sets parameters that do not matter to a fixed value; returns whether any changed.
    pub(super) fn simplify_adders(&mut self) -> bool {
        let facts = self.facts();
        let observed = self.observed(&facts);
        let mut changed = self.simplify_flush(&facts, &observed);
        let lowest = self.lowest(&facts);
        for (node, &observed) in observed.iter().enumerate() {
            let terms = self.terms(node, &facts);
            let sum = self.sum(node, &terms);
            let mut adder = self.nodes[node].adder.clone();
            if self.id.block_scale().is_none() {
                adder.scale = Scale::Products;
            }
            // Without a product that large, none becomes an infinity. The top of the terms is the same with and without
            // the rule.
            if terms.iter().all(|term| term.class != Class::Products || term.top <= 128) {
                adder.product_overflow = false;
            }
            values(&mut adder, &terms);
            grid(&mut adder, &terms, observed, lowest);
            self.carry(node, &mut adder);
            lossless(&mut adder, &terms, observed);
            normalisation(&mut adder, &sum);
            output(&mut adder, &terms, &sum, observed);
            self.nan(node, &mut adder, &terms, observed);
            if adder != self.nodes[node].adder {
                self.nodes[node].adder = adder;
                self.steps.insert("parameters that no dot can show are left out");
                changed = true;
            }
        }
        changed
    }

    /// Removes carry bits that suffice according to the closed form.
    fn carry(&self, node: usize, adder: &mut Adder) {
        let Some(bits) = adder.carry_bits else { return };
        let adders: Vec<Adder> = self.nodes.iter().map(|node| node.adder.clone()).collect();
        let nodes: Vec<PlanNode> =
            (0..).zip(&self.nodes).map(|(adder, node)| PlanNode { adder, terms: node.terms.clone() }).collect();
        if sufficient_carry_bits(adder, &nodes[node], self.id, &adders, &nodes).is_some_and(|needed| needed <= bits) {
            adder.carry_bits = None;
        }
    }

    /// Clears flushing of operands that have no subnormals or that no addition reads, the sign of the flushed zero if it
    /// does not show, and a conversion that leaves every exponent as it is.
    fn simplify_flush(&mut self, facts: &[Facts], observed: &[Observed]) -> bool {
        use mxprobe_models::Term;
        let before = self.unit.flush;
        let has_subnormals = |format: Format| format.as_float().is_some_and(|float| float.fraction_bits > 0);
        let reads = |wanted: fn(&Term) -> bool| self.nodes.iter().any(|node| node.terms.iter().any(wanted));
        let (products, c) = (reads(|term| matches!(term, Term::Product(_))), reads(|term| *term == Term::C));
        let mut flush = before;
        flush.a &= products && has_subnormals(self.id.a);
        flush.b &= products && has_subnormals(self.id.b);
        flush.c &= c && has_subnormals(self.id.c);
        let shows = self.nodes.iter().enumerate().any(|(node, own)| {
            own.terms.iter().enumerate().any(|(at, term)| {
                let flushed = match term {
                    Term::Product(_) => flush.a || flush.b,
                    Term::C => flush.c,
                    _ => false,
                };
                flushed && self.observed_by(node, observed[node], at, facts).zero_sign
            })
        });
        flush.to_positive &= shows;
        let converts = |format: Format, flushed: bool| !flushed && flush.normalises(format);
        // A NaN without payload becomes one with a payload, which another format may pass on.
        let keeps_nan = |format: Format| format.infinity(false).is_some() || format.nan().is_none();
        let shows = converts(self.id.a, flush.a) || converts(self.id.b, flush.b);
        if !products || !shows && keeps_nan(self.id.a) && keeps_nan(self.id.b) {
            flush.converted = None;
        }
        self.unit.flush = flush;
        flush != before
    }

    /// Normalises NaN rules: causes that cannot occur, and bits that do not show.
    fn nan(&self, node: usize, adder: &mut Adder, terms: &[Facts], observed: Observed) {
        let Output::Float { format, .. } = adder.output else {
            // Integers and unrounded sums have no NaN rules of their own.
            adder.nan = NanRules::default();
            return;
        };
        let causes = self.causes(node, terms);
        let present: Vec<NanCause> = adder.nan.order.iter().copied().filter(|cause| causes.has(*cause)).collect();
        let outcome = |cause: NanCause| match self.bits_by(node, terms, cause) {
            NanBits::Known(_, bits) => Some(bits),
            NanBits::Never | NanBits::Any => None,
        };
        let outcomes: Vec<Option<u64>> = present.iter().map(|cause| outcome(*cause)).collect();
        let standard = format.nan().unwrap_or(adder.nan.invalid);
        let one = if present.is_empty() || !observed.nan_bits {
            Some(standard)
        } else {
            // Every NaN that can result is the same.
            outcomes[0].filter(|bits| outcomes.iter().all(|other| *other == Some(*bits)))
        };
        if let Some(bits) = one {
            adder.nan = NanRules { operand: Some(bits), value: Some(bits), invalid: bits, ..NanRules::default() };
            return;
        }
        let mut rules = adder.nan.clone();
        let fixed =
            |own: Option<u64>, cause: NanCause| if causes.has(cause) { outcome(cause).or(own) } else { Some(standard) };
        (rules.operand, rules.value) = (fixed(rules.operand, NanCause::Operand), fixed(rules.value, NanCause::Value));
        if !causes.invalid && rules.operand.is_some() && rules.value.is_some() {
            rules.invalid = standard;
        }
        // The order of two neighbours that give the same bits does not matter, nor does the place of a cause that never
        // occurs.
        let mut order = present;
        // If all operands give the same bits, it does not matter which of them counts, unless another cause lies between.
        let of_b = order.iter().position(|cause| *cause == NanCause::B);
        if let Some(at) = of_b.filter(|at| order.get(at + 1) == Some(&NanCause::Operand) && rules.operand.is_some()) {
            order.remove(at);
        }
        for _ in 0..order.len() {
            for at in 1..order.len() {
                let (one, other) = (order[at - 1], order[at]);
                let place = |cause: NanCause| CAUSES.iter().position(|known| *known == cause);
                if place(other) < place(one) && outcome(one).is_some() && outcome(one) == outcome(other) {
                    order.swap(at - 1, at);
                }
            }
        }
        order.extend(CAUSES.into_iter().filter(|cause| !causes.has(*cause)));
        rules.order = order;
        adder.nan = rules;
    }
}

/// Clears the treatment of values if +0 is the only value among the terms.
fn values(adder: &mut Adder, terms: &[Facts]) {
    let mut values = terms.iter().filter(|term| term.class == Class::Values && !term.zero).peekable();
    if values.peek().is_none() {
        (adder.value_cut_bits, adder.ignored_values) = (0, None);
        return;
    }
    let Some(rule) = adder.ignored_values else { return };
    let idle = match adder.below {
        // A value below the lowest kept bit is truncated to zero anyway, and a value below half of it is rounded to
        // zero.
        Below::Truncate => rule.below_bits >= 0,
        Below::Nearest => rule.below_bits >= 1,
        _ => false,
    };
    let cut = adder.value_cut_bits.cast_signed();
    // Or no value is that low. The lowest kept bit is that of a rule; without one, it is at most as high as any term's.
    let highest = units(adder, terms).map(|(_, highest)| highest);
    let never = (always(adder) || cut <= rule.below_bits)
        && highest.is_none_or(|unit| values.all(|term| term.low >= unit + cut - rule.below_bits));
    if idle || never {
        adder.ignored_values = None;
    }
}

/// Normalises the rules of the grid: removes those that have no effect or repeat another, and replaces classes if there
/// is only one, and exponents of leading bits that equal those of the operands.
fn grid(adder: &mut Adder, terms: &[Facts], observed: Observed, lowest: i32) {
    let present: Vec<Class> = {
        let all = [Class::Products, Class::Values, Class::Sums];
        all.into_iter().filter(|class| terms.iter().any(|term| !term.zero && term.class == *class)).collect()
    };
    // A zero has no exponent, so only nonzero terms count.
    let looks_at = |rule: &GridRule| -> Vec<Class> {
        present.iter().copied().filter(|class| rule.terms == Class::All || rule.terms == *class).collect()
    };
    let is_normalised = |rule: &GridRule| {
        let classes = looks_at(rule);
        let mut read = terms.iter().filter(|term| !term.zero && classes.contains(&term.class));
        read.all(|term| term.normalised)
    };
    adder.grid.retain(|rule| rule.exponent_floor.is_some() || !looks_at(rule).is_empty());
    for rule in &mut adder.grid {
        if looks_at(rule) == present {
            rule.terms = Class::All;
        }
        if is_normalised(rule) {
            rule.exponent = Exponent::Operands;
        }
    }
    let mut at = 0;
    while at < adder.grid.len() {
        let rule = adder.grid[at];
        let other = (0..adder.grid.len()).filter(|other| *other != at).find_map(|other| {
            let (one, two) = alike(rule, adder.grid[other], &is_normalised)?;
            Some((other, merged(&one, &two, &looks_at, &present)?))
        });
        match other {
            Some((other, merged)) => {
                adder.grid[other] = merged;
                adder.grid.remove(at);
                at = 0;
            }
            None => at += 1,
        }
    }
    // The highest of them counts, so their order does not matter.
    adder.grid.sort_by_key(|rule| {
        let class =
            [Class::All, Class::Products, Class::Values, Class::Sums].iter().position(|class| *class == rule.terms);
        (class, rule.exponent == Exponent::Leading, rule.fraction_bits, rule.exponent_floor)
    });
    floors(adder, terms, observed, lowest);
}

/// Two rules with the same kind of exponent, if they have it or if one of them can take the other's.
fn alike(one: GridRule, two: GridRule, is_normalised: &dyn Fn(&GridRule) -> bool) -> Option<(GridRule, GridRule)> {
    if one.exponent == two.exponent {
        Some((one, two))
    } else if is_normalised(&one) {
        Some((GridRule { exponent: two.exponent, ..one }, two))
    } else {
        is_normalised(&two).then_some((one, GridRule { exponent: one.exponent, ..two }))
    }
}

/// One rule that is equivalent to two, or the second rule if the first never counts.
fn merged(
    rule: &GridRule,
    other: &GridRule,
    looks_at: &dyn Fn(&GridRule) -> Vec<Class>,
    present: &[Class],
) -> Option<GridRule> {
    let (own, others) = (looks_at(rule), looks_at(other));
    let floor = rule.exponent_floor.max(other.exponent_floor);
    if rule.fraction_bits == other.fraction_bits {
        // The greater of two exponents minus the same number of bits is the exponent of both classes minus that number.
        let both = present.iter().all(|class| own.contains(class) || others.contains(class));
        if both {
            return Some(GridRule { terms: Class::All, exponent_floor: floor, ..*other });
        }
        return (own == others).then_some(GridRule { exponent_floor: floor, ..*other });
    }
    // A rule that sees fewer terms and keeps more bits gives neither the higher lowest bit nor the greater exponent.
    let never = rule.fraction_bits > other.fraction_bits
        && own.iter().all(|class| others.contains(class))
        && rule.exponent_floor <= other.exponent_floor;
    never.then_some(*other)
}

/// Removes an exponent floor if no exponent is below it.
fn floors(adder: &mut Adder, terms: &[Facts], observed: Observed, lowest: i32) {
    let [rule] = adder.grid.as_mut_slice() else { return };
    let Some(floor) = rule.exponent_floor else { return };
    // The exponent of an unrounded zero is the floor, which shows only if it is above the exponent of another term.
    let shows = adder.output == Output::Wide && observed.exponent;
    if rule.terms != Class::All || shows && floor > lowest {
        return;
    }
    // If every term is zero, so is the sum, on any grid.
    let some = || terms.iter().filter(|term| !term.zero);
    let below_all = some().all(|term| match rule.exponent {
        Exponent::Operands => floor <= term.exponents.0,
        Exponent::Leading => floor <= term.low,
    });
    // If the floor counts, the lowest kept bit is below every bit of every term; without the floor, it is lower still.
    let cut = |term: &Facts| if term.class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
    let keeps_all = adder.carry_bits.is_none()
        && adder.below != Below::OnesComplement
        && adder.ignored_values.is_none()
        && some().all(|term| floor - rule.fraction_bits + cut(term) <= term.low);
    if below_all || keeps_all && !shows {
        rule.exponent_floor = None;
    }
}

/// Removes a grid on which no bit of any term is lost.
fn lossless(adder: &mut Adder, terms: &[Facts], observed: Observed) {
    if adder.below == Below::OnesComplement {
        return;
    }
    if adder.grid.is_empty() {
        adder.carry_bits = None;
        if adder.value_cut_bits == 0 {
            // The lowest kept bit is the lowest of all terms.
            adder.below = Below::Truncate;
        }
        return;
    }
    if adder.carry_bits.is_some() || adder.ignored_values.is_some() || !loses_nothing(adder, terms) {
        return;
    }
    let plain = matches!(
        adder.grid[..],
        [GridRule { terms: Class::All, exponent: Exponent::Operands, exponent_floor: None, .. }]
    );
    // Without a grid, the exponent of an unrounded sum is the greatest of its terms, as on this grid.
    if adder.output == Output::Wide && observed.exponent && !plain {
        return;
    }
    (adder.grid, adder.below, adder.value_cut_bits) = (Vec::new(), Below::Truncate, 0);
}

/// Whether every dot with a nonzero term has a grid.
fn always(adder: &Adder) -> bool {
    adder.grid.iter().any(|rule| rule.terms == Class::All || rule.exponent_floor.is_some())
}

/// Whether alignment never loses a bit.
pub(super) fn loses_nothing(adder: &Adder, terms: &[Facts]) -> bool {
    // Without a grid, the lowest bit of all terms is kept, but a value may be cut further.
    if adder.value_cut_bits > 0 && !always(adder) {
        return false;
    }
    let Some((_, highest)) = units(adder, terms) else { return true };
    let cut = |term: &Facts| if term.class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
    let mut some = terms.iter().filter(|term| !term.zero);
    if some.clone().all(|term| highest + cut(term) <= term.low) || within_block(adder, terms) {
        return true;
    }
    // A single term determines its own grid.
    let (Some(term), None) = (some.next(), some.next()) else { return false };
    adder.grid.iter().all(|rule| {
        let floor = rule.exponent_floor.is_none_or(|floor| floor - rule.fraction_bits + cut(term) <= term.low);
        let own = rule.terms != Class::All && rule.terms != term.class
            || match rule.exponent {
                Exponent::Operands => term.significand_bits + cut(term) <= rule.fraction_bits,
                Exponent::Leading => term.length() + cut(term) <= rule.fraction_bits,
            };
        floor && own
    })
}

/// Whether every term is a product of one scale block and the grid keeps all of their bits for any scales, which move
/// all terms and the grid by the same amount.
fn within_block(adder: &Adder, terms: &[Facts]) -> bool {
    let Some((low, top, exponent)) = in_one_block(terms) else { return false };
    adder.grid.iter().all(|rule| {
        let highest = match rule.exponent {
            Exponent::Operands => exponent,
            Exponent::Leading => top,
        };
        rule.exponent_floor.is_none() && highest - rule.fraction_bits <= low
    })
}

/// Removes a cut of the normalised sum that loses nothing, or only what rounding loses anyway.
fn normalisation(adder: &mut Adder, sum: &Sum) {
    let Some(bits) = adder.normalised_fraction_bits.map(u32::cast_signed) else {
        (adder.normalised_exponent_floor, adder.normalised_below) = (None, Below::Truncate);
        return;
    };
    let floor = adder.normalised_exponent_floor;
    // Every bit of a sum is between `low` and `top`.
    let nothing = sum.top - 1 - bits <= sum.low && floor.is_none_or(|floor| floor - bits <= sum.low);
    let rounded = match adder.output {
        Output::Float { fraction_bits, rounding, subnormals, .. } => {
            let more = bits - fraction_bits.cast_signed();
            floor.is_none()
                && match adder.normalised_below {
                    // The leading bit stays, and rounding toward zero depends only on the bits of the result.
                    Below::Truncate | Below::OnesComplement => rounding == Rounding::TowardZero && more >= 0,
                    // The bit below the result stays, and so does whether any bit below that is set.
                    Below::Sticky => more >= 2,
                    // Rounding down twice is rounding down once; flushing is decided by the sum itself.
                    Below::Floor => rounding == Rounding::Down && more >= 0 && subnormals == Subnormals::Keep,
                    Below::Nearest | Below::NearestAway => false,
                }
        }
        Output::Wide | Output::Integer { .. } => false,
    };
    if nothing || rounded {
        (adder.normalised_fraction_bits, adder.normalised_exponent_floor) = (None, None);
        adder.normalised_below = Below::Truncate;
    }
}

/// Normalises rounding, overflow, flushing and the sign of zeros if no sum makes them matter.
fn output(adder: &mut Adder, terms: &[Facts], sum: &Sum, observed: Observed) {
    match adder.output {
        Output::Wide => adder.zero = ZeroSign::Positive,
        Output::Integer { format, saturates } => {
            adder.zero = ZeroSign::Positive;
            let range = Facts::of(format, false).whole;
            let fits = |(least, most): (i128, i128)| sum.whole.is_some_and(|(low, high)| least <= low && high <= most);
            if saturates && range.is_some_and(fits) {
                adder.output = Output::Integer { format, saturates: false };
            }
        }
        Output::Float { format, fraction_bits, .. } => {
            // The sign of a zero does not show, or the zero is never −0.
            if !observed.zero_sign || format.negative_zero().is_none() || !may_be_negative_zero(adder, sum, terms) {
                adder.zero = ZeroSign::Positive;
            }
            let exact = is_exact(format, fraction_bits, sum);
            // A single term keeps its sign if it is zero, and does not become zero if no bit of it is lost.
            let alone =
                terms.iter().filter(|term| !term.zero).count() == 1 && terms.len() == 1 && loses_nothing(adder, terms);
            let Output::Float { fraction_bits, rounding, overflow, subnormals, .. } = &mut adder.output else { return };
            let Facts { exponents: (least, most), .. } = Facts::of(format, false);
            // An exact sum is not rounded; but a zero from cancellation is −0 if rounding is down.
            if exact {
                *fraction_bits = format.fraction_bits();
                if *rounding != Rounding::Down || adder.zero == ZeroSign::Positive || alone {
                    *rounding = Rounding::TowardZero;
                }
            }
            if sum.top <= most {
                *overflow = Overflow::Ieee;
            }
            let (has_infinity, has_nan) = (format.infinity(false).is_some(), format.nan().is_some());
            *overflow = match (*rounding, *overflow) {
                _ if !has_infinity && !has_nan => Overflow::Saturate,
                // To nearest, IEEE's rule also overflows to infinity, or to NaN in a format without infinity.
                (Rounding::NearestEven, Overflow::Infinity) => Overflow::Ieee,
                (Rounding::NearestEven, Overflow::Nan) if !has_infinity => Overflow::Ieee,
                // Toward zero and to odd, IEEE's rule also gives the largest finite value.
                (Rounding::TowardZero | Rounding::ToOdd, Overflow::Saturate) => Overflow::Ieee,
                (_, Overflow::Infinity) if !has_infinity => Overflow::Nan,
                (_, overflow) => overflow,
            };
            // No sum is below the normal range.
            if sum.low >= least {
                *subnormals = Subnormals::Keep;
            }
            if *subnormals == Subnormals::FlushToPositiveZero && adder.zero == ZeroSign::Positive {
                *subnormals = Subnormals::FlushAfterRounding;
            }
            // Neither rounding can raise a value to the next power of two.
            if *subnormals == Subnormals::FlushBeforeRounding
                && (exact || matches!(rounding, Rounding::TowardZero | Rounding::ToOdd))
            {
                *subnormals = Subnormals::FlushAfterRounding;
            }
        }
    }
}

/// Whether every sum is a value of a format with this many fraction bits.
pub(super) fn is_exact(format: Format, fraction_bits: u32, sum: &Sum) -> bool {
    let (least, most) = Facts::of(format, false).exponents;
    let fraction_bits = fraction_bits.cast_signed();
    sum.low >= least - fraction_bits && sum.top <= most && sum.length <= fraction_bits
}
