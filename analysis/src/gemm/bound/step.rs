//! The largest loss of one operation of a unit, derived node by node from its model.

use mxprobe_api::{Format, OperationId, Rounding, Subnormals};
use mxprobe_models::{Adder, Below, Class, Evaluator, Flush, Output, PlanNode, Scale, Term};

/// 2^exponent; 0 or infinity beyond the range of f64.
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}

/// The loss of one operation d = c + Σ p, for products p of operands that it reads unchanged:
///
/// |d − (c + Σp)| ≤ `c`·|c| + `product`·Σ|p| + `aligned`·Σp̂ + `constant`, where p̂ = (|a| + θ)(|b| + θ') and θ is the
/// smallest normal value of an operand's format: the exponent of a nonzero operand counts as log2 θ or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// Products per operation.
    pub(super) k: usize,
    pub(super) lost: Linear,
    /// The upper limit of |d|, in the same terms.
    pub(super) magnitude: Linear,
    /// The smallest of the largest finite values of the formats that the operation rounds into.
    pub(super) largest: f64,
}

/// Coefficients of |c|, Σ|p| and Σp̂, and a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Linear {
    pub(super) c: f64,
    pub(super) product: f64,
    pub(super) aligned: f64,
    pub(super) constant: f64,
}

/// A linear form in |c| and in the |p| and p̂ of each product.
#[derive(Clone, Debug)]
struct Form {
    c: f64,
    products: Vec<f64>,
    aligned: Vec<f64>,
    constant: f64,
}

impl Form {
    fn zero(k: usize) -> Self {
        Self { c: 0.0, products: vec![0.0; k], aligned: vec![0.0; k], constant: 0.0 }
    }

    fn add(&mut self, other: &Self, factor: f64) {
        // A factor of 0 adds nothing, even if the other form is infinite.
        if factor == 0.0 {
            return;
        }
        self.c += factor * other.c;
        self.constant += factor * other.constant;
        self.products.iter_mut().zip(&other.products).for_each(|(to, from)| *to += factor * from);
        self.aligned.iter_mut().zip(&other.aligned).for_each(|(to, from)| *to += factor * from);
    }

    /// The largest coefficients, so that the form holds for any order of the products.
    fn linear(&self) -> Linear {
        let most = |values: &[f64]| values.iter().fold(0.0, |most: f64, value| most.max(*value));
        Linear { c: self.c, product: most(&self.products), aligned: most(&self.aligned), constant: self.constant }
    }
}

/// The known bounds of a term, which may be a node's result.
struct Known {
    class: Class,
    /// |term| in exact arithmetic on the operation's inputs, plus the losses so far.
    magnitude: Form,
    /// An upper limit of 2^exponent, for the exponent that aligns the term.
    aligned: Form,
    /// The losses so far.
    lost: Form,
    /// Bits below its exponent; `None` if unlimited.
    fraction_bits: Option<i32>,
    /// The magnitude is less than this times 2^exponent.
    factor: f64,
}

impl Step {
    /// The loss of an operation of a model; `None` if the model may wrap or rounds to integers.
    pub(super) fn of(evaluator: &Evaluator) -> Option<Self> {
        let (id, adders, flush) = (evaluator.id(), evaluator.adders(), evaluator.flush());
        let k = id.shape.sizes().2;
        let mut known: Vec<Known> = Vec::new();
        let mut largest = f64::INFINITY;
        for node in &evaluator.plan().nodes {
            let adder = &adders[node.adder];
            if let Output::Float { format, .. } = adder.output {
                largest = largest.min(format.to_f64(format.largest(false)));
            }
            let found = of_node(adder, node, id, flush, k, &known)?;
            known.push(found);
        }
        let last = known.last()?;
        Some(Self { k, lost: last.lost.linear(), magnitude: last.magnitude.linear(), largest })
    }

    /// The loss of a multiplication and an addition, each rounded to f32.
    pub(super) fn single() -> Self {
        let (roundoff, least) = (power_of_two(-24), power_of_two(-150));
        let sum = |start: f64| Linear {
            c: start + roundoff,
            product: start + roundoff * (2.0 + roundoff),
            aligned: 0.0,
            constant: least * (2.0 + roundoff),
        };
        Self { k: 1, lost: sum(0.0), magnitude: sum(1.0), largest: f64::from(f32::MAX) }
    }
}

/// The smallest normal value of a floating format.
pub(super) fn smallest_normal(format: Format) -> f64 {
    format.as_float().map_or(0.0, |float| power_of_two(float.min_exponent()))
}

/// The bounds of a term of a node.
fn of_term(term: &Term, id: &OperationId, flush: Flush, k: usize, known: &[Known]) -> Known {
    let mut magnitude = Form::zero(k);
    let mut aligned = Form::zero(k);
    let mut lost = Form::zero(k);
    match term {
        Term::Product(index) => {
            magnitude.products[*index] = 1.0;
            aligned.aligned[*index] = 1.0;
            let fraction_bits = (id.a.fraction_bits() + id.b.fraction_bits()).cast_signed();
            Known { class: Class::Products, magnitude, aligned, lost, fraction_bits: Some(fraction_bits), factor: 4.0 }
        }
        Term::C => {
            magnitude.c = 1.0;
            (aligned.c, aligned.constant) = (1.0, smallest_normal(id.c));
            if flush.c {
                lost.constant = smallest_normal(id.c);
            }
            let fraction_bits = Some(id.c.fraction_bits().cast_signed());
            Known { class: Class::Values, magnitude, aligned, lost, fraction_bits, factor: 2.0 }
        }
        Term::Node(index) => {
            let Known { class, magnitude, aligned, lost, fraction_bits, factor } = &known[*index];
            Known {
                class: *class,
                magnitude: magnitude.clone(),
                aligned: aligned.clone(),
                lost: lost.clone(),
                fraction_bits: *fraction_bits,
                factor: *factor,
            }
        }
        Term::PositiveZero => {
            Known { class: Class::Values, magnitude, aligned, lost, fraction_bits: Some(0), factor: 0.0 }
        }
    }
}

fn of_node(adder: &Adder, node: &PlanNode, id: &OperationId, flush: Flush, k: usize, known: &[Known]) -> Option<Known> {
    let terms: Vec<Known> = node.terms.iter().map(|term| of_term(term, id, flush, k, known)).collect();
    let mut lost = Form::zero(k);
    let mut magnitude = Form::zero(k);
    let mut aligned = Form::zero(k);
    for term in &terms {
        lost.add(&term.lost, 1.0);
        magnitude.add(&term.magnitude, 1.0);
        aligned.add(&term.aligned, 1.0);
    }
    if adder.scale == Scale::Sum || !holds_every_carry(adder, &terms) {
        return None;
    }
    let at_alignment = alignment(adder, &terms, k);
    // The sum as the adder keeps it, and the loss when it is rounded.
    let mut kept = magnitude.clone();
    let shrinks = matches!(adder.below, Below::Truncate) || adder.grid.is_empty();
    if !shrinks {
        kept.add(&at_alignment, 1.0);
    }
    let mut rounding = Form::zero(k);
    let mut never_away = shrinks;
    if let Some(bits) = adder.normalised_fraction_bits {
        let unit = units_lost(adder.normalised_below) * power_of_two(-bits.cast_signed());
        rounding.add(&kept, unit);
        rounding.constant += adder.normalised_exponent_floor.map_or(0.0, |floor| unit * power_of_two(floor));
        never_away &= adder.normalised_below == Below::Truncate;
    }
    let (class, fraction_bits, factor) = match adder.output {
        Output::Integer { .. } => return None,
        Output::Wide => (Class::Sums, None, factor_of(adder, &terms)),
        Output::Float { format, fraction_bits, rounding: direction, subnormals, .. } => {
            let half = if direction == Rounding::NearestEven { 0.5 } else { 1.0 };
            let bits = fraction_bits.cast_signed();
            let mut sum = kept.clone();
            sum.add(&rounding.clone(), 1.0);
            rounding.add(&sum, half * power_of_two(-bits));
            let least = smallest_normal(format);
            let flushes = subnormals != Subnormals::Keep;
            rounding.constant += if flushes { least } else { half * least * power_of_two(-bits) };
            never_away &= direction == Rounding::TowardZero;
            (Class::Values, Some(format.fraction_bits().cast_signed()), 2.0)
        }
    };
    lost.add(&at_alignment, 1.0);
    lost.add(&rounding, 1.0);
    if !never_away {
        magnitude = kept;
        magnitude.add(&rounding, 1.0);
    }
    if let Output::Float { format, .. } = adder.output {
        aligned = magnitude.clone();
        aligned.constant += smallest_normal(format);
    } else {
        // An unrounded sum is aligned by the exponent of its own grid, or by its leading bit: each term's exponent and
        // magnitude is within the limit that aligns the term.
        if !never_away {
            aligned.add(&at_alignment, 1.0);
            aligned.add(&rounding, 1.0);
        }
        aligned.constant += floors(adder).map(power_of_two).sum::<f64>();
    }
    Some(Known { class, magnitude, aligned, lost, fraction_bits, factor })
}

/// The loss at alignment. Each term loses less than a number of units of the grid, and a unit is 2^−F of the largest
/// exponent: at most the sum over all terms of 2^−F times each term's `aligned`. A term that determines the grid loses
/// nothing itself if it has at most F bits.
fn alignment(adder: &Adder, terms: &[Known], k: usize) -> Form {
    let mut form = Form::zero(k);
    if adder.grid.is_empty() {
        return form;
    }
    let losses: Vec<(f64, f64)> = terms.iter().map(|term| units_of(adder, term)).collect();
    let every: f64 = losses.iter().map(|(cut, complement)| cut + complement).sum();
    for (term, (cut, _)) in terms.iter().zip(&losses) {
        let rules = adder.grid.iter().filter(|rule| rule.terms == Class::All || rule.terms == term.class);
        let Some(fraction_bits) = rules.map(|rule| rule.fraction_bits).min() else { continue };
        // Aligned by its leading bit, a product has an exponent one larger.
        let own = term.fraction_bits.map(|bits| bits + i32::from(term.class == Class::Products));
        let value_cut = if term.class == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
        let fits = own.is_some_and(|bits| bits + value_cut <= fraction_bits)
            && adder.ignored_values.is_none_or(|rule| rule.below_bits >= 0);
        let units = if fits { every - cut } else { every };
        form.add(&term.aligned, units * power_of_two(-fraction_bits));
    }
    for rule in &adder.grid {
        form.constant += rule.exponent_floor.map_or(0.0, |floor| every * power_of_two(floor - rule.fraction_bits));
    }
    form
}

/// The largest loss of a term in units of the grid, from being cut and from being complemented.
fn units_of(adder: &Adder, term: &Known) -> (f64, f64) {
    let (cut, ignored) = match (term.class, adder.ignored_values) {
        (Class::Values, Some(rule)) => (adder.value_cut_bits, Some(rule.below_bits)),
        (Class::Values, None) => (adder.value_cut_bits, None),
        _ => (0, None),
    };
    let cut_unit = power_of_two(cut.cast_signed());
    let below = units_lost(adder.below) * cut_unit;
    let ignored = ignored.map_or(0.0, |below_bits| cut_unit * power_of_two(-below_bits));
    (below.max(ignored), if adder.below == Below::OnesComplement { 1.0 } else { 0.0 })
}

/// The largest loss of this rounding, in units.
fn units_lost(below: Below) -> f64 {
    if below.as_rounding() == Rounding::NearestEven { 0.5 } else { 1.0 }
}

fn floors(adder: &Adder) -> impl Iterator<Item = i32> + '_ {
    adder.grid.iter().filter_map(|rule| rule.exponent_floor)
}

/// Whether every sum of these terms fits the adder's carry bits.
fn holds_every_carry(adder: &Adder, terms: &[Known]) -> bool {
    adder.carry_bits.is_none_or(|bits| factor_of(adder, terms) <= power_of_two(bits.cast_signed() + 1))
}

/// Returns f: a sum of these terms, with what alignment adds, is less than f times 2^exponent of their grid.
fn factor_of(adder: &Adder, terms: &[Known]) -> f64 {
    let governs = |term: &Known| adder.grid.iter().any(|rule| rule.terms == Class::All || rule.terms == term.class);
    if !adder.grid.is_empty() && !terms.iter().all(governs) {
        return f64::INFINITY;
    }
    let fraction_bits = adder.grid.iter().map(|rule| rule.fraction_bits).min().unwrap_or(0);
    let units: f64 = terms.iter().map(|term| units_of(adder, term)).map(|(cut, complement)| cut + complement).sum();
    terms.iter().map(|term| term.factor).sum::<f64>() + units * power_of_two(-fraction_bits)
}
