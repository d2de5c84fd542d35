//! One fused addition over any logic: what `mxprobe_models`'s exact evaluator does, in words of fixed width.
//!
//! Widths are worst cases over all inputs, so nothing is lost that the exact evaluator keeps.

use mxprobe_api::{Format, Rounding};
use mxprobe_models::{Adder, Below, Class, Exponent, NanCause, Output, Scale, ZeroSign};

use super::{
    integer::Integer,
    logic::Logic,
    number::{Candidate, Causes, Finite, Number, length},
    rounding::{Cut, cut, round, round_integer},
    words::{Word, Words},
};

/// A term of an addition.
pub(super) struct Term<B> {
    /// Where it stands among the terms as the model has them. The terms themselves are handed over sorted, so that sums of
    /// the same terms are the same circuit; the order shows in NaN alone, and in whose sign a one's complement takes.
    pub place: usize,
    pub class: Class,
    pub number: Number<B>,
    /// Operands that may be NaN, where it is a product.
    pub operands: Vec<Candidate<B>>,
    /// It is NaN though no operand is.
    pub invalid: B,
}

/// The scales of a block, of A and of B.
pub(super) type Scales<B> = (Number<B>, Number<B>);

/// Why a model is not covered.
pub(super) type NotCovered = String;

/// Adds terms; `scales` multiply the sum, whose register has `spare_bits` more than it needs.
pub(super) fn add<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    terms: &[Term<L::Bit>],
    scales: Option<&Scales<L::Bit>>,
    spare_bits: usize,
) -> Result<Number<L::Bit>, NotCovered> {
    let (causes, infinities) = specials(logic, terms, scales);
    let nan = {
        let mut all: Vec<L::Bit> = causes.operand.iter().chain(&causes.value).map(|candidate| candidate.nan).collect();
        all.push(causes.invalid);
        logic.any(&all)
    };
    let any_infinite = logic.or(infinities[0], infinities[1]);
    let infinite = logic.and_not(any_infinite, nan);
    let sum = sum(logic, adder, terms, scales, spare_bits)?;
    match adder.output {
        Output::Wide => {
            let negative = logic.choose(infinite, infinities[1], sum.negative);
            let finite = Finite { negative, ..sum };
            Ok(Number { bits: None, nan, infinite, finite, causes: Some(causes) })
        }
        Output::Integer { format, saturates } => {
            let bits = round_integer(logic, format, saturates, &sum);
            Ok(super::number::read(logic, format, &bits))
        }
        Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
            let zero_negative = zero_is_negative(logic, adder, terms, rounding);
            let cut = Cut { format, fraction_bits, rounding, overflow, subnormals };
            let mut bits = round(logic, &cut, &sum, zero_negative);
            if adder.zero == ZeroSign::Positive {
                let sign = bits.pop().expect("a format has bits");
                let nonzero = logic.any(&bits);
                bits.push(logic.and(sign, nonzero));
            }
            let [positive, negative] = [false, true].map(|negative| {
                format.infinity(negative).or_else(|| format.nan()).unwrap_or_else(|| format.largest(negative))
            });
            let width = format.bits() as usize;
            let (positive, negative) =
                (logic.number(u128::from(positive), width), logic.number(u128::from(negative), width));
            let infinity = logic.choose_word(infinities[1], &negative, &positive);
            let of_nan = nan_bits(logic, adder, format, &causes);
            let bits = logic.choose_word(infinite, &infinity, &bits);
            let bits = logic.choose_word(nan, &of_nan, &bits);
            let read = super::number::read(logic, format, &bits);
            // What came from infinities is an infinity whatever its bits say, in a format without one too.
            let special = logic.or(nan, infinite);
            let nan = logic.choose(special, nan, read.nan);
            let read_infinite = logic.and_not(read.infinite, special);
            let infinite = logic.or(infinite, read_infinite);
            let negative = logic.choose(any_infinite, infinities[1], read.finite.negative);
            let finite = Finite { negative, ..read.finite };
            Ok(Number { nan, infinite, finite, ..read })
        }
    }
}

/// Why the result may be NaN, and whether there are infinities, positive and negative.
fn specials<L: Logic>(
    logic: &mut L,
    terms: &[Term<L::Bit>],
    scales: Option<&Scales<L::Bit>>,
) -> (Causes<L::Bit>, [L::Bit; 2]) {
    let no = logic.constant(false);
    let mut causes = Causes { operand: Vec::new(), value: Vec::new(), invalid: no };
    let mut infinities = [no, no];
    let mut in_place: Vec<&Term<L::Bit>> = terms.iter().collect();
    in_place.sort_by_key(|term| term.place);
    for term in in_place {
        causes.operand.extend(term.operands.iter().cloned());
        causes.invalid = logic.or(causes.invalid, term.invalid);
        if term.class != Class::Products {
            note_value(logic, &mut causes, &term.number);
        }
    }
    for Term { number, .. } in terms {
        let negative = logic.and(number.infinite, number.finite.negative);
        let positive = logic.and_not(number.infinite, number.finite.negative);
        infinities = [logic.or(infinities[0], positive), logic.or(infinities[1], negative)];
    }
    for scale in scales.iter().flat_map(|(a, b)| [a, b]) {
        note_value(logic, &mut causes, scale);
    }
    let both = logic.and(infinities[0], infinities[1]);
    causes.invalid = logic.or(causes.invalid, both);
    (causes, infinities)
}

fn note_value<L: Logic>(logic: &mut L, causes: &mut Causes<L::Bit>, number: &Number<L::Bit>) {
    if let Some(earlier) = &number.causes {
        causes.operand.extend(earlier.operand.iter().cloned());
        causes.value.extend(earlier.value.iter().cloned());
        causes.invalid = logic.or(causes.invalid, earlier.invalid);
    } else if let Some((format, bits)) = &number.bits {
        causes.value.push(Candidate { nan: number.nan, format: *format, bits: bits.clone() });
    }
}

/// The bits of a NaN result.
fn nan_bits<L: Logic>(logic: &mut L, adder: &Adder, format: Format, causes: &Causes<L::Bit>) -> Word<L::Bit> {
    let rules = &adder.nan;
    let invalid = logic.number(u128::from(rules.invalid), format.bits() as usize);
    let mut bits = invalid.clone();
    for cause in rules.order.iter().rev() {
        match cause {
            NanCause::Invalid => bits = logic.choose_word(causes.invalid, &invalid, &bits),
            NanCause::Operand => bits = first_nan(logic, &causes.operand, rules.operand, format, &invalid, &bits),
            NanCause::Value => bits = first_nan(logic, &causes.value, rules.value, format, &invalid, &bits),
        }
    }
    bits
}

/// The bits that the first NaN among the candidates gives; without one, `otherwise`.
fn first_nan<L: Logic>(
    logic: &mut L,
    candidates: &[Candidate<L::Bit>],
    fixed: Option<u64>,
    format: Format,
    invalid: &[L::Bit],
    otherwise: &[L::Bit],
) -> Word<L::Bit> {
    let mut bits = otherwise.to_vec();
    for candidate in candidates.iter().rev() {
        let own = match fixed {
            Some(fixed) => logic.number(u128::from(fixed), format.bits() as usize),
            None => quieted(logic, candidate, format).unwrap_or_else(|| invalid.to_vec()),
        };
        bits = logic.choose_word(candidate.nan, &own, &bits);
    }
    bits
}

/// A NaN in another format, its payload at the top; `None` where either format has no payload.
pub(super) fn quieted<L: Logic>(logic: &mut L, candidate: &Candidate<L::Bit>, to: Format) -> Option<Word<L::Bit>> {
    let (from, into) = (candidate.format.as_float()?, to.as_float()?);
    let quiet = to.nan().filter(|_| to.infinity(false).is_some() && candidate.format.infinity(false).is_some())?;
    let unread = from.unread_bits as usize;
    let payload = &candidate.bits[unread..unread + from.fraction_bits as usize];
    let (from_bits, into_bits) = (from.fraction_bits as usize, into.fraction_bits as usize);
    let payload = if into_bits >= from_bits {
        logic.raised(payload, into_bits - from_bits)
    } else {
        payload[from_bits - into_bits..].to_vec()
    };
    let payload = logic.raised(&payload, into.unread_bits as usize);
    let width = to.bits() as usize;
    let (payload, quiet) = (logic.resized(&payload, width), logic.number(u128::from(quiet), width));
    let mut bits: Word<L::Bit> = payload.into_iter().zip(quiet).map(|(one, other)| logic.or(one, other)).collect();
    bits[width - 1] = *candidate.bits.last()?;
    Some(bits)
}

/// The sign of an exact zero.
fn zero_is_negative<L: Logic>(logic: &mut L, adder: &Adder, terms: &[Term<L::Bit>], rounding: Rounding) -> L::Bit {
    let no = logic.constant(false);
    if adder.zero == ZeroSign::Positive {
        return no;
    }
    let nonzero: Vec<L::Bit> = terms.iter().flat_map(|term| term.number.finite.magnitude.iter().copied()).collect();
    let nonzero = logic.any(&nonzero);
    let negatives: Vec<L::Bit> = terms.iter().map(|term| term.number.finite.negative).collect();
    let (all, any) = (logic.all(&negatives), logic.any(&negatives));
    let (all, none) = (logic.and_not(all, nonzero), {
        let either = logic.or(any, nonzero);
        logic.not(either)
    });
    if rounding == Rounding::Down { logic.not(none) } else { all }
}

/// The lowest bit kept, the largest exponent, and how far above the grid a term of each class may reach.
struct Grid<B> {
    unit: Integer<B>,
    exponent: Integer<B>,
    has_exponent: B,
    fraction_bits: Option<i32>,
}

fn grid<L: Logic>(logic: &mut L, adder: &Adder, terms: &[Term<L::Bit>]) -> Grid<L::Bit> {
    let lowest = terms.iter().map(|term| term.number.finite.lsb.low).min().unwrap_or(0);
    let mut found: Option<Grid<L::Bit>> = None;
    for rule in &adder.grid {
        let floor = rule.exponent_floor.filter(|floor| !is_idle(adder, *floor, terms));
        let mut largest: Option<(Integer<L::Bit>, L::Bit)> =
            floor.map(|floor| (Integer::constant(floor), logic.constant(true)));
        for term in terms.iter().filter(|term| rule.terms == Class::All || rule.terms == term.class) {
            let finite = &term.number.finite;
            let (exponent, has) = match rule.exponent {
                Exponent::Operands => (finite.exponent.clone(), finite.has_exponent),
                Exponent::Leading => (finite.leading(logic), logic.any(&finite.magnitude)),
            };
            largest = Some(match largest {
                None => (exponent, has),
                Some((other, other_has)) => greater(logic, &other, other_has, &exponent, has),
            });
        }
        let Some((exponent, has)) = largest else { continue };
        let unit = exponent.raised(-rule.fraction_bits);
        found = Some(match found {
            None => Grid { unit, exponent, has_exponent: has, fraction_bits: Some(rule.fraction_bits) },
            Some(grid) => {
                let (unit, _) = greater(logic, &grid.unit, grid.has_exponent, &unit, has);
                let (exponent, has) = greater(logic, &grid.exponent, grid.has_exponent, &exponent, has);
                let fraction_bits = grid.fraction_bits.filter(|bits| *bits == rule.fraction_bits);
                Grid { unit, exponent, has_exponent: has, fraction_bits }
            }
        });
    }
    match found {
        // Without an exponent there is no grid: nothing may be lost.
        Some(grid) if logic.known(grid.has_exponent) == Some(true) => grid,
        Some(grid) if every_term_has_a_rule(adder, terms) => grid,
        Some(grid) => {
            let (exponent, has) = largest_exponent(logic, terms);
            let unit = Integer::choose(logic, grid.has_exponent, &grid.unit, &Integer::constant(lowest));
            let exponent = Integer::choose(logic, grid.has_exponent, &grid.exponent, &exponent);
            let has_exponent = logic.or(grid.has_exponent, has);
            Grid { unit, exponent, has_exponent, fraction_bits: None }
        }
        None => {
            let (exponent, has_exponent) = largest_exponent(logic, terms);
            Grid { unit: Integer::constant(lowest), exponent, has_exponent, fraction_bits: None }
        }
    }
}

/// The largest exponent of the terms, and whether one has any.
fn largest_exponent<L: Logic>(logic: &mut L, terms: &[Term<L::Bit>]) -> (Integer<L::Bit>, L::Bit) {
    let mut largest = (Integer::constant(0), logic.constant(false));
    for (at, Term { number: Number { finite, .. }, .. }) in terms.iter().enumerate() {
        largest = match at {
            0 => (finite.exponent.clone(), finite.has_exponent),
            _ => greater(logic, &largest.0, largest.1, &finite.exponent, finite.has_exponent),
        };
    }
    largest
}

/// Whether an exponent floor makes no difference: no term that is not zero can have a lower exponent, and where all are
/// zeros, so is what is rounded, whatever the grid.
fn is_idle<B: Copy + std::fmt::Debug>(adder: &Adder, floor: i32, terms: &[Term<B>]) -> bool {
    let [rule] = adder.grid.as_slice() else { return false };
    let lowest = |finite: &Finite<B>| match rule.exponent {
        Exponent::Operands => finite.exponent.low,
        Exponent::Leading => finite.lsb.low,
    };
    adder.output != Output::Wide
        && rule.terms == Class::All
        && terms.iter().all(|term| term.number.finite.magnitude.is_empty() || floor <= lowest(&term.number.finite))
}

fn every_term_has_a_rule<B>(adder: &Adder, terms: &[Term<B>]) -> bool {
    terms.iter().all(|term| adder.grid.iter().any(|rule| rule.terms == Class::All || rule.terms == term.class))
}

/// The greater of two integers of which each may be absent; absent if both are.
fn greater<L: Logic>(
    logic: &mut L,
    one: &Integer<L::Bit>,
    has_one: L::Bit,
    other: &Integer<L::Bit>,
    has_other: L::Bit,
) -> (Integer<L::Bit>, L::Bit) {
    let low = one.low.min(other.low);
    let present = |logic: &mut L, integer: &Integer<L::Bit>, has: L::Bit| {
        let above = integer.above(logic, low);
        let above = logic.where_set(has, &above);
        Integer::new(logic, low, integer.high, &above)
    };
    let (one, other) = (present(logic, one, has_one), present(logic, other, has_other));
    let both = one.max(logic, &other);
    // An integer that is always there bounds the result from below.
    (both, logic.or(has_one, has_other))
}

fn sum<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    terms: &[Term<L::Bit>],
    scales: Option<&Scales<L::Bit>>,
    spare_bits: usize,
) -> Result<Finite<L::Bit>, NotCovered> {
    let grid = grid(logic, adder, terms);
    let mut aligned = Vec::new();
    for term in terms {
        let cut = if term.class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
        let mut magnitude = align(logic, adder, term, &grid.unit.raised(cut));
        if term.class == Class::Values && adder.ignored_values.is_some() {
            let ignored = is_ignored(logic, adder, &term.number.finite, &grid.unit, cut);
            let counted = logic.not(ignored);
            magnitude = logic.where_set(counted, &magnitude);
        }
        let magnitude = logic.raised(&magnitude, usize::try_from(cut).unwrap_or(0));
        aligned.push((term.number.finite.negative, magnitude));
    }
    let complemented = adder.below == Below::OnesComplement;
    let widest = aligned.iter().map(|(_, magnitude)| magnitude.len()).max().unwrap_or(0);
    // Each term is below 2^widest, and one more where it is complemented.
    let carries = usize::BITS - aligned.len().leading_zeros() + u32::from(complemented);
    let width = widest + carries as usize + 1 + spare_bits;
    let mut total = logic.number(0, width);
    for (negative, magnitude) in &aligned {
        let magnitude = logic.resized(magnitude, width);
        let flipped: Word<L::Bit> = magnitude.iter().map(|bit| logic.xor(*negative, *bit)).collect();
        (total, _) = logic.add(&total, &flipped, *negative);
    }
    if complemented {
        total = complement(logic, terms, total);
    }
    if let Some(carry_bits) = adder.carry_bits {
        let fraction_bits =
            grid.fraction_bits.ok_or("carry_bits with several grids, of which the widest depends on the input")?;
        let kept = usize::try_from(fraction_bits).unwrap_or(0) + 2 + carry_bits as usize;
        if kept < total.len() {
            let sign = total[kept - 1];
            total.truncate(kept);
            total.resize(width, sign);
        }
    }
    let negative = *total.last().expect("a sum has bits");
    let magnitude = logic.negated_where(negative, &total);
    let lsb_below_exponent = grid.fraction_bits;
    let mut result = Finite {
        negative,
        magnitude,
        lsb: grid.unit,
        exponent: grid.exponent,
        has_exponent: grid.has_exponent,
        lsb_below_exponent,
    };
    if let Some((a, b)) = scales {
        result = scaled(logic, result, terms, a, b);
    }
    if let Some(bits) = adder.normalised_fraction_bits {
        result = cut(logic, &result, bits, adder.normalised_exponent_floor, adder.normalised_below);
    }
    Ok(result)
}

/// One unit less in magnitude for each term whose sign is not the last value's, unless all are zeros.
fn complement<L: Logic>(logic: &mut L, terms: &[Term<L::Bit>], total: Word<L::Bit>) -> Word<L::Bit> {
    let no = logic.constant(false);
    let nonzero: Vec<L::Bit> = terms.iter().flat_map(|term| term.number.finite.magnitude.iter().copied()).collect();
    let nonzero = logic.any(&nonzero);
    let last = terms.iter().filter(|term| term.class == Class::Values).max_by_key(|term| term.place);
    let reference = last.map_or(no, |term| term.number.finite.negative);
    let zeros = logic.number(0, total.len());
    let mut total = total;
    for term in terms {
        let differs = logic.xor(term.number.finite.negative, reference);
        let counts = logic.and(differs, nonzero);
        // +1 where the reference is negative, else −1, which is every bit set.
        let up = logic.and(counts, reference);
        let down = logic.and_not(counts, reference);
        let ones: Word<L::Bit> = zeros.iter().map(|_| down).collect();
        (total, _) = logic.add(&total, &ones, up);
    }
    total
}

/// A term's magnitude as a whole number of `2^unit`.
fn align<L: Logic>(logic: &mut L, adder: &Adder, term: &Term<L::Bit>, unit: &Integer<L::Bit>) -> Word<L::Bit> {
    let finite = &term.number.finite;
    if finite.magnitude.is_empty() {
        return Vec::new();
    }
    let rules = adder.grid.iter().filter(|rule| rule.terms == Class::All || rule.terms == term.class);
    // Places the term's lowest bit may lie above the unit, at most.
    let mut highest = finite.lsb.high - unit.low;
    let cut = if term.class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
    let mut normalise = false;
    for rule in rules {
        match (rule.exponent, finite.lsb_below_exponent) {
            (Exponent::Operands, Some(below)) => highest = highest.min(rule.fraction_bits - cut - below),
            (Exponent::Operands, None) => {}
            (Exponent::Leading, _) => {
                let least = rule.fraction_bits - cut - (length(&finite.magnitude) - 1);
                if least < highest {
                    (highest, normalise) = (least, true);
                }
            }
        }
    }
    let (magnitude, lsb) =
        if normalise { normalised(logic, finite) } else { (finite.magnitude.clone(), finite.lsb.clone()) };
    // The term is put `highest` places up, with one bit below the unit, and shifted down from there.
    let distance = unit.minus(logic, &lsb);
    let down = distance.raised(highest);
    let down = down.above(logic, 0);
    let up = highest + 1;
    let (register, dropped) = if up >= 0 {
        let place = usize::try_from(up).unwrap_or(0);
        (logic.raised(&magnitude, place), logic.constant(false))
    } else {
        let drop = usize::try_from(-up).unwrap_or(0).min(magnitude.len());
        (magnitude[drop..].to_vec(), logic.any(&magnitude[..drop]))
    };
    let (register, lost) = logic.shifted_right(&register, &down);
    let lost = logic.or(lost, dropped);
    let (guard, kept) = match register.split_first() {
        Some((guard, kept)) => (*guard, kept.to_vec()),
        None => (logic.constant(false), Vec::new()),
    };
    below(logic, adder.below, finite.negative, &kept, guard, lost)
}

/// The magnitude shifted up until its top bit is set, and the exponent of its lowest bit then.
fn normalised<L: Logic>(logic: &mut L, finite: &Finite<L::Bit>) -> (Word<L::Bit>, Integer<L::Bit>) {
    let zeros = logic.leading_zeros(&finite.magnitude);
    let magnitude = logic.shifted_left(&finite.magnitude, &zeros);
    let most = length(&finite.magnitude) - 1;
    let zeros = Integer::new(logic, 0, most, &zeros);
    (magnitude, finite.lsb.minus(logic, &zeros))
}

/// What becomes of bits below a grid: the highest of them, and whether another is set.
pub(super) fn below<L: Logic>(
    logic: &mut L,
    rule: Below,
    negative: L::Bit,
    kept: &[L::Bit],
    guard: L::Bit,
    lost: L::Bit,
) -> Word<L::Bit> {
    let any = logic.or(guard, lost);
    let up = match rule {
        Below::Truncate | Below::OnesComplement => return kept.to_vec(),
        Below::Sticky => {
            let mut kept = kept.to_vec();
            match kept.first_mut() {
                Some(lowest) => *lowest = logic.or(*lowest, any),
                None => kept.push(any),
            }
            return kept;
        }
        Below::Floor => logic.and(negative, any),
        Below::NearestAway => guard,
        Below::Nearest => {
            let odd = kept.first().copied().unwrap_or_else(|| logic.constant(false));
            let more = logic.or(lost, odd);
            logic.and(guard, more)
        }
    };
    let kept = logic.resized(kept, kept.len() + 1);
    logic.increased(&kept, up)
}

fn is_ignored<L: Logic>(
    logic: &mut L,
    adder: &Adder,
    finite: &Finite<L::Bit>,
    unit: &Integer<L::Bit>,
    cut: i32,
) -> L::Bit {
    let Some(rule) = adder.ignored_values else { return logic.constant(false) };
    let leading = finite.leading(logic);
    let nonzero = logic.any(&finite.magnitude);
    let small = leading.less(logic, &unit.raised(cut - rule.below_bits));
    let small = logic.and(small, nonzero);
    match rule.unless_grid_at_most {
        None => small,
        Some(limit) => {
            let applies = Integer::constant(limit).less(logic, unit);
            logic.and(small, applies)
        }
    }
}

/// A group's sum times its scales; its exponent is that of the scales alone, if a product was not zero.
fn scaled<L: Logic>(
    logic: &mut L,
    sum: Finite<L::Bit>,
    terms: &[Term<L::Bit>],
    a: &Number<L::Bit>,
    b: &Number<L::Bit>,
) -> Finite<L::Bit> {
    let (a, b) = (&a.finite, &b.finite);
    let nonzero: Vec<L::Bit> = terms.iter().map(|term| term.number.finite.has_exponent).collect();
    let mut has_exponent = logic.any(&nonzero);
    for scale in [a, b] {
        has_exponent = logic.and(has_exponent, scale.has_exponent);
    }
    let magnitude = logic.times(&sum.magnitude, &a.magnitude);
    let magnitude = logic.times(&magnitude, &b.magnitude);
    let lsb = a.lsb.plus(logic, &b.lsb);
    let lsb_below_exponent = (sum.lsb.low == sum.lsb.high)
        .then(|| a.lsb_below_exponent.zip(b.lsb_below_exponent).map(|(one, other)| one + other - sum.lsb.low))
        .flatten();
    Finite {
        negative: sum.negative,
        magnitude,
        lsb: lsb.plus(logic, &sum.lsb),
        exponent: a.exponent.plus(logic, &b.exponent),
        has_exponent,
        lsb_below_exponent,
    }
}

/// What block scales multiply in an adder.
pub(super) fn scales_sum(adder: &Adder) -> bool {
    adder.scale == Scale::Sum
}
