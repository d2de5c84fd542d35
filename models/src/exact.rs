//! The exact evaluator: integers of any width, one obviously right path for every model.

use dashu_int::{IBig, UBig, ops::BitTest};
use mxprobe_api::{Decoded, Encoding, FloatEncoding, Format, OperationId, Rounding, Subnormals};

use crate::{
    adder::{Adder, Below, Class, Exponent, NanCause, Output, Scale, ZeroSign},
    model::{Flush, Unit},
    trace::{self, Exact, Observer, Step},
    tree::{Plan, PlanNode, Term},
};

/// The operands of one dot, as bits.
#[derive(Clone, Copy, Debug)]
pub struct Dot<'a> {
    /// k elements of A.
    pub a: &'a [u64],
    /// k elements of B.
    pub b: &'a [u64],
    /// One element of C.
    pub c: u64,
    /// Scales of A and of B, one a block of k, where the operation has them.
    pub scales: Option<(&'a [u64], &'a [u64])>,
}

/// d of one dot, bit for bit, by integer arithmetic of unbounded width.
///
/// # Panics
/// If `plan` is not one of `unit` for the operation's k, or the dot has fewer products than it.
#[must_use]
pub fn evaluate(adders: &[Adder], unit: &Unit, plan: &Plan, id: &OperationId, dot: Dot<'_>) -> u64 {
    evaluate_observed(adders, unit, plan, id, dot, &mut ())
}

/// As [`evaluate`], and tells `observer` every step.
pub(crate) fn evaluate_observed(
    adders: &[Adder],
    unit: &Unit,
    plan: &Plan,
    id: &OperationId,
    dot: Dot<'_>,
    observer: &mut impl Observer,
) -> u64 {
    let block = id.block_scale();
    let scale_of = |k: usize| -> Option<(Number, Number)> {
        let (block, (a, b)) = (block?, dot.scales?);
        let index = k / block.block;
        Some((read(block.format, a[index]), read(block.format, b[index])))
    };
    let product = |k: usize, scaled: bool| {
        let a = flushed(read(id.a, dot.a[k]), unit.flush.a, unit.flush);
        let b = flushed(read(id.b, dot.b[k]), unit.flush.b, unit.flush);
        let scales = if scaled { scale_of(k) } else { None };
        Operands { a, b, scales }
    };
    let c = flushed(read(id.c, dot.c), unit.flush.c, unit.flush);
    let mut results: Vec<Number> = Vec::with_capacity(plan.nodes.len());
    for (index, node) in plan.nodes.iter().enumerate() {
        let adder = &adders[node.adder];
        observer.observe(|| Step::Addition { node: index, adder: node.adder });
        let result = add(adder, node, &product, &scale_of, &c, &results, observer);
        observer.observe(|| match &result {
            Number::Bits { format, bits, .. } => Step::Rounded { format: *format, bits: *bits },
            Number::Wide(value) => Step::Unrounded(value.traced()),
            Number::WideNan(_) => Step::Unrounded(trace::Value::Nan),
        });
        results.push(result);
    }
    let last = results.last().expect("a plan has a node");
    match (last, adders[plan.nodes[plan.nodes.len() - 1].adder].output) {
        (Number::Bits { bits, .. }, _) => *bits,
        _ => unreachable!("the last adder of a plan gives a format"),
    }
}

/// A number on its way through the tree.
#[derive(Clone, Debug)]
enum Number {
    /// In a format: an operand, c or a rounded result.
    Bits { format: Format, bits: u64, value: Value },
    /// An unrounded sum.
    Wide(Value),
    /// An unrounded sum that is NaN, and why.
    WideNan(NanCauses),
}

#[derive(Clone, Debug)]
enum Value {
    Nan,
    Infinity { negative: bool },
    Finite(Finite),
}

impl Value {
    fn traced(&self) -> trace::Value {
        match self {
            Self::Nan => trace::Value::Nan,
            Self::Infinity { negative } => trace::Value::Infinity { negative: *negative },
            Self::Finite(finite) => trace::Value::Finite(finite.traced()),
        }
    }

    fn exponent(&self) -> Option<i32> {
        match self {
            Self::Finite(finite) => finite.exponent,
            Self::Nan | Self::Infinity { .. } => None,
        }
    }
}

/// `±magnitude · 2^lsb`. The exponent is the one it is aligned by; a true zero has none.
#[derive(Clone, Debug)]
struct Finite {
    negative: bool,
    magnitude: UBig,
    lsb: i32,
    exponent: Option<i32>,
}

struct Operands {
    a: Number,
    b: Number,
    scales: Option<(Number, Number)>,
}

impl Number {
    fn value(&self) -> &Value {
        match self {
            Self::Bits { value, .. } | Self::Wide(value) => value,
            Self::WideNan(_) => &Value::Nan,
        }
    }

    /// A subnormal value of a floating format.
    fn is_subnormal(&self) -> bool {
        let Self::Bits { format, value: Value::Finite(finite), .. } = self else { return false };
        let length = UBig::ONE << format.fraction_bits() as usize;
        !format.is_integer() && finite.exponent.is_some() && finite.magnitude < length
    }
}

fn read(format: Format, bits: u64) -> Number {
    let value = match format.decode(bits) {
        Decoded::Nan { .. } => Value::Nan,
        Decoded::Infinity { negative } => Value::Infinity { negative },
        Decoded::Zero { negative } => Value::Finite(Finite::zero(negative)),
        Decoded::Finite { negative, significand, exponent } => Value::Finite(Finite {
            negative,
            magnitude: UBig::from(significand),
            lsb: exponent - format.fraction_bits().cast_signed(),
            exponent: Some(exponent),
        }),
    };
    Number::Bits { format, bits, value }
}

fn flushed(number: Number, flush: bool, rule: Flush) -> Number {
    if !flush || !number.is_subnormal() {
        return number;
    }
    match number {
        Number::Bits { format, value: Value::Finite(finite), .. } => {
            let zero = Finite::zero(finite.negative && !rule.to_positive);
            let bits = if zero.negative { 1 << (format.bits() - 1) } else { 0 };
            Number::Bits { format, bits, value: Value::Finite(zero) }
        }
        other => other,
    }
}

impl Finite {
    fn zero(negative: bool) -> Self {
        Self { negative, magnitude: UBig::ZERO, lsb: 0, exponent: None }
    }

    fn traced(&self) -> Exact {
        Exact::new(self.negative, self.magnitude.clone(), self.lsb)
    }

    fn leading(&self) -> Option<i32> {
        let length = i32::try_from(self.magnitude.bit_len()).expect("far below 2^31 bits");
        (length > 0).then(|| self.lsb + length - 1)
    }

    fn exponent_by(&self, rule: Exponent) -> Option<i32> {
        match rule {
            Exponent::Operands => self.exponent,
            Exponent::Leading => self.leading(),
        }
    }
}

/// The product of operands, or NaN with whether an operand was one.
fn multiply(operands: &Operands) -> Value {
    let mut factors = vec![operands.a.value(), operands.b.value()];
    if let Some((a, b)) = &operands.scales {
        factors.extend([a.value(), b.value()]);
    }
    let mut negative = false;
    let (mut infinite, mut zero) = (false, false);
    let mut product = Finite { negative: false, magnitude: UBig::ONE, lsb: 0, exponent: Some(0) };
    for factor in factors {
        match factor {
            Value::Nan => return Value::Nan,
            Value::Infinity { negative: sign } => {
                negative ^= sign;
                infinite = true;
            }
            Value::Finite(finite) => {
                negative ^= finite.negative;
                zero |= finite.exponent.is_none();
                product.magnitude *= &finite.magnitude;
                product.lsb += finite.lsb;
                product.exponent = product.exponent.zip(finite.exponent).map(|(x, y)| x + y);
            }
        }
    }
    match (infinite, zero) {
        (true, true) => Value::Nan,
        (true, false) => Value::Infinity { negative },
        (false, true) => Value::Finite(Finite::zero(negative)),
        (false, false) => Value::Finite(Finite { negative, ..product }),
    }
}

struct Aligned {
    from: Term,
    class: Class,
    term: Finite,
}

fn add(
    adder: &Adder,
    node: &PlanNode,
    product: &dyn Fn(usize, bool) -> Operands,
    scale_of: &dyn Fn(usize) -> Option<(Number, Number)>,
    c: &Number,
    results: &[Number],
    observer: &mut impl Observer,
) -> Number {
    let positive_zero = Number::Wide(Value::Finite(Finite::zero(false)));
    let scales_products = adder.scale == Scale::Products;
    let mut terms = Vec::with_capacity(node.terms.len());
    let mut causes = NanCauses::default();
    let mut infinities = [false, false];
    for term in &node.terms {
        let (class, value) = match term {
            Term::Product(k) => {
                let operands = product(*k, scales_products);
                let value = multiply(&operands);
                if !causes.note_operands(&operands) {
                    causes.invalid |= matches!(value, Value::Nan);
                }
                (Class::Products, overflowed(adder, value))
            }
            other => {
                let number = match other {
                    Term::C => c,
                    Term::Node(index) => &results[*index],
                    _ => &positive_zero,
                };
                causes.note_value(number);
                let class = if matches!(other, Term::Node(_)) && matches!(number, Number::Wide(_)) {
                    Class::Sums
                } else {
                    Class::Values
                };
                (class, number.value().clone())
            }
        };
        observer.observe(|| Step::Term { term: *term, value: value.traced(), exponent: value.exponent() });
        match value {
            Value::Nan => {}
            Value::Infinity { negative } => infinities[usize::from(negative)] = true,
            Value::Finite(finite) => terms.push(Aligned { from: *term, class, term: finite }),
        }
    }
    let group_scales = match (adder.scale, node.terms.first()) {
        (Scale::Sum, Some(Term::Product(k))) => scale_of(*k),
        _ => None,
    };
    if let Some((a, b)) = &group_scales {
        // A NaN scale makes the group NaN.
        causes.note_value(a);
        causes.note_value(b);
    }
    causes.invalid |= infinities == [true, true];
    if causes.any() || infinities != [false, false] {
        observer.observe(|| Step::Special);
    }
    if causes.any() {
        return match adder.output {
            Output::Float { format, .. } => {
                Number::Bits { format, bits: causes.bits(adder, format), value: Value::Nan }
            }
            _ => Number::WideNan(causes),
        };
    }
    if infinities != [false, false] {
        return infinite(adder, infinities[1]);
    }
    sum(adder, &terms, group_scales.as_ref(), observer)
}

/// A product that this adder's multiplier cannot hold.
fn overflowed(adder: &Adder, value: Value) -> Value {
    match value {
        Value::Finite(finite) if adder.product_overflow && finite.leading().is_some_and(|leading| leading >= 128) => {
            Value::Infinity { negative: finite.negative }
        }
        value => value,
    }
}

fn infinite(adder: &Adder, negative: bool) -> Number {
    match adder.output {
        Output::Float { format, .. } => {
            let bits = format.infinity(negative).or_else(|| format.nan()).unwrap_or_else(|| format.largest(negative));
            Number::Bits { format, bits, value: Value::Infinity { negative } }
        }
        _ => Number::Wide(Value::Infinity { negative }),
    }
}

/// Why a result is NaN: the first number of each cause. An unrounded sum hands them on, for the adder that rounds to choose.
#[derive(Clone, Debug, Default)]
struct NanCauses {
    operand: Option<Box<Number>>,
    value: Option<Box<Number>>,
    invalid: bool,
}

impl NanCauses {
    /// Whether an operand is NaN.
    fn note_operands(&mut self, operands: &Operands) -> bool {
        let scales = operands.scales.iter().flat_map(|(a, b)| [a, b]);
        let mut numbers = [&operands.a, &operands.b].into_iter().chain(scales);
        let nan = numbers.find(|number| matches!(number.value(), Value::Nan));
        if let Some(nan) = nan {
            self.operand.get_or_insert_with(|| Box::new(nan.clone()));
        }
        nan.is_some()
    }

    fn note_value(&mut self, number: &Number) {
        match number {
            Number::WideNan(earlier) => {
                self.operand = self.operand.take().or_else(|| earlier.operand.clone());
                self.value = self.value.take().or_else(|| earlier.value.clone());
                self.invalid |= earlier.invalid;
            }
            Number::Bits { value: Value::Nan, .. } => {
                self.value.get_or_insert_with(|| Box::new(number.clone()));
            }
            _ => {}
        }
    }

    fn any(&self) -> bool {
        self.operand.is_some() || self.value.is_some() || self.invalid
    }

    fn bits(&self, adder: &Adder, format: Format) -> u64 {
        let rules = &adder.nan;
        let of = |number: &Number, fixed: Option<u64>| fixed.unwrap_or_else(|| quieted(number, format, rules.invalid));
        let first = rules.order.iter().find_map(|cause| match cause {
            NanCause::Operand => self.operand.as_ref().map(|number| of(number, rules.operand)),
            NanCause::Value => self.value.as_ref().map(|number| of(number, rules.value)),
            NanCause::Invalid => self.invalid.then_some(rules.invalid),
        });
        first.unwrap_or(rules.invalid)
    }
}

/// A NaN in another format: sign and payload kept, payload at the top of the fraction, quiet bit set; `otherwise` where
/// either format has no payload.
fn quieted(number: &Number, to: Format, otherwise: u64) -> u64 {
    let Number::Bits { format, bits, .. } = number else { return otherwise };
    let (Decoded::Nan { negative, payload }, Some(encoding)) = (format.decode(*bits), to.as_float()) else {
        return otherwise;
    };
    let ieee = |format: Format| format.infinity(false).is_some();
    let Some(quiet) = to.nan().filter(|_| ieee(to) && ieee(*format)) else { return otherwise };
    let (from, into) = (format.fraction_bits(), encoding.fraction_bits);
    let payload = if into >= from { payload << (into - from) } else { payload >> (from - into) };
    quiet | (payload << encoding.unread_bits) | u64::from(negative) << (to.bits() - 1)
}

fn sum(
    adder: &Adder,
    terms: &[Aligned],
    group_scales: Option<&(Number, Number)>,
    observer: &mut impl Observer,
) -> Number {
    // The grid: the highest of the rules; without a rule, below every bit of every term.
    let mut grid: Option<(i32, i32)> = None;
    for rule in &adder.grid {
        let exponents = terms
            .iter()
            .filter(|aligned| rule.terms == Class::All || rule.terms == aligned.class)
            .filter_map(|aligned| aligned.term.exponent_by(rule.exponent));
        if let Some(exponent) = exponents.chain(rule.exponent_floor).max() {
            let this = (exponent - rule.fraction_bits, exponent);
            grid = Some(grid.map_or(this, |best| (best.0.max(this.0), best.1.max(this.1))));
        }
    }
    let lowest = terms.iter().filter(|aligned| aligned.term.leading().is_some()).map(|aligned| aligned.term.lsb).min();
    let unit = grid.map_or(lowest.unwrap_or(0), |(unit, _)| unit);
    observer.observe(|| Step::Grid { unit, exponent: grid.map(|(_, exponent)| exponent) });
    let whole = |integer: &IBig| {
        let (sign, magnitude) = integer.clone().into_parts();
        Exact::new(sign == dashu_int::Sign::Negative, magnitude, unit)
    };

    let mut total = IBig::ZERO;
    // RDNA3's adder counts in the sign of its accumulator; it does not count zeros alone.
    let all_zero = lowest.is_none();
    let reference =
        terms.iter().rev().find(|aligned| aligned.class == Class::Values).is_some_and(|aligned| aligned.term.negative);
    for Aligned { from, class, term } in terms {
        let cut = if *class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
        if *class == Class::Values && is_ignored(adder, term, unit, cut) {
            observer.observe(|| Step::Ignored { term: *from });
            continue;
        }
        let aligned = align(term, unit + cut, adder.below);
        let mut aligned = aligned << usize::try_from(cut).unwrap_or(0);
        if adder.below == Below::OnesComplement && term.negative != reference && !all_zero {
            aligned += if reference { IBig::ONE } else { IBig::NEG_ONE };
        }
        observer.observe(|| Step::Aligned { term: *from, kept: whole(&aligned) });
        total += aligned;
    }
    observer.observe(|| Step::Sum(whole(&total)));
    if let (Some(carry_bits), Some((unit, exponent))) = (adder.carry_bits, grid) {
        let width = usize::try_from(exponent - unit).unwrap_or(0) + 1 + carry_bits as usize;
        total = wrapped(total, width);
        observer.observe(|| Step::Wrapped { carry_bits, value: whole(&total) });
    }
    let exponent = match group_scales {
        None => grid
            .map(|(_, exponent)| exponent)
            .or_else(|| terms.iter().filter_map(|aligned| aligned.term.exponent).max()),
        Some(_) => None,
    };
    let (sign, magnitude) = total.into_parts();
    let mut result = Finite { negative: sign == dashu_int::Sign::Negative, magnitude, lsb: unit, exponent };
    if let Some((a, b)) = group_scales {
        result = scaled(result, terms, a, b);
        observer.observe(|| Step::Scaled(result.traced()));
    }
    if let (Some(bits), Some(leading)) = (adder.normalised_fraction_bits, result.leading()) {
        let exponent = adder.normalised_exponent_floor.map_or(leading, |floor| floor.max(leading));
        let unit = exponent - bits.cast_signed();
        if unit > result.lsb {
            let (sign, magnitude) = align(&result, unit, adder.normalised_below).into_parts();
            result = Finite { negative: sign == dashu_int::Sign::Negative, magnitude, lsb: unit, ..result };
            observer.observe(|| Step::Cut(result.traced()));
        }
    }
    output(adder, terms, result)
}

/// A group's exact sum times its scales; its exponent is that of the scales alone, if any product was not zero.
fn scaled(sum: Finite, terms: &[Aligned], a: &Number, b: &Number) -> Finite {
    let (Value::Finite(a), Value::Finite(b)) = (a.value(), b.value()) else { return sum };
    let any = terms.iter().any(|aligned| aligned.term.exponent.is_some());
    Finite {
        negative: sum.negative,
        magnitude: sum.magnitude * &a.magnitude * &b.magnitude,
        lsb: sum.lsb + a.lsb + b.lsb,
        exponent: a.exponent.zip(b.exponent).map(|(x, y)| x + y).filter(|_| any),
    }
}

fn is_ignored(adder: &Adder, term: &Finite, unit: i32, cut: i32) -> bool {
    let (Some(rule), Some(leading)) = (adder.ignored_values, term.leading()) else { return false };
    let applies = rule.unless_grid_at_most.is_none_or(|limit| unit > limit);
    applies && leading < unit + cut - rule.below_bits
}

/// A term as a whole number of `2^unit`.
fn align(term: &Finite, unit: i32, below: Below) -> IBig {
    let signed = |magnitude: UBig| if term.negative { -IBig::from(magnitude) } else { IBig::from(magnitude) };
    let shift = term.lsb - unit;
    if shift >= 0 {
        return signed(term.magnitude.clone() << usize::try_from(shift).unwrap_or(0));
    }
    let shift = usize::try_from(-shift).unwrap_or(0);
    let kept = term.magnitude.clone() >> shift;
    let lost = term.magnitude.clone() - (kept.clone() << shift);
    if lost == UBig::ZERO {
        return signed(kept);
    }
    match below {
        Below::Truncate | Below::OnesComplement => signed(kept),
        Below::Floor => signed(kept) - IBig::from(u8::from(term.negative)),
        Below::Nearest => {
            let half = UBig::ONE << (shift - 1);
            let up = lost > half || (lost == half && kept.bit(0));
            signed(kept + UBig::from(u8::from(up)))
        }
        Below::NearestAway => {
            let half = UBig::ONE << (shift - 1);
            signed(kept + UBig::from(u8::from(lost >= half)))
        }
        Below::Sticky => signed(kept | UBig::ONE),
    }
}

/// Two's complement of `width` magnitude bits and a sign.
fn wrapped(total: IBig, width: usize) -> IBig {
    let modulus = IBig::ONE << (width + 1);
    let half = IBig::ONE << width;
    let shifted: IBig = (total + &half) % &modulus;
    let shifted = if shifted < IBig::ZERO { shifted + &modulus } else { shifted };
    shifted - half
}

fn output(adder: &Adder, terms: &[Aligned], result: Finite) -> Number {
    let is_zero = result.magnitude == UBig::ZERO;
    match adder.output {
        Output::Wide => Number::Wide(Value::Finite(result)),
        Output::Integer { format, saturates } => {
            let bits = integer(format, saturates, &result);
            read(format, bits)
        }
        Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
            let negative = if is_zero { zero_is_negative(adder, terms, rounding) } else { result.negative };
            let (magnitude, lsb) = narrowed(&result);
            let encoding = cut_encoding(format, fraction_bits);
            let encoded = encoding.encode(negative, magnitude, lsb, rounding, overflow, subnormals);
            let is_zero = encoded.bits & (format.mask() >> 1) == 0;
            let bits = if is_zero && adder.zero == ZeroSign::Positive { 0 } else { encoded.bits };
            read(format, bits)
        }
    }
}

fn zero_is_negative(adder: &Adder, terms: &[Aligned], rounding: Rounding) -> bool {
    if adder.zero == ZeroSign::Positive {
        return false;
    }
    let zeros_of = |negative: bool| {
        terms.iter().all(|aligned| aligned.term.magnitude == UBig::ZERO && aligned.term.negative == negative)
    };
    if zeros_of(true) {
        true
    } else if zeros_of(false) {
        false
    } else {
        rounding == Rounding::Down
    }
}

/// The format with its lowest fraction bits unread.
pub(crate) fn cut_encoding(format: Format, fraction_bits: u32) -> FloatEncoding {
    let Encoding::Float(encoding) = format.encoding() else { unreachable!("checked when the model was read") };
    let unread_bits = encoding.unread_bits + encoding.fraction_bits - fraction_bits;
    FloatEncoding { fraction_bits, unread_bits, ..encoding }
}

/// The magnitude in 128 bits; where it is longer, its top 126 and a bit that says whether any other is set.
fn narrowed(finite: &Finite) -> (u128, i32) {
    let excess = finite.magnitude.bit_len().saturating_sub(126);
    let top = finite.magnitude.clone() >> excess;
    let sticky = top.clone() << excess != finite.magnitude;
    let top = u128::try_from(top).expect("126 bits");
    let excess = i32::try_from(excess).expect("far below 2^31 bits");
    if excess == 0 { (top, finite.lsb) } else { (top << 1 | u128::from(sticky), finite.lsb + excess - 1) }
}

fn integer(format: Format, saturates: bool, result: &Finite) -> u64 {
    // Products and sums of integers have no bits below 1.
    let whole = align(result, 0, Below::Truncate);
    let magnitude = u128::try_from(
        UBig::try_from(if result.negative { -whole.clone() } else { whole.clone() }).unwrap_or(UBig::ZERO),
    )
    .unwrap_or(u128::MAX);
    if saturates {
        let rounding = Rounding::TowardZero;
        format.encode(result.negative, magnitude, 0, rounding, mxprobe_api::Overflow::Saturate, Subnormals::Keep).bits
    } else {
        let wide = if result.negative { magnitude.wrapping_neg() } else { magnitude };
        // Wraps: only the low bits are kept.
        u64::try_from(wide & u128::from(format.mask())).unwrap_or(0)
    }
}
