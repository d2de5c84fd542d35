//! The error bound of a dot of any length, in one order or in every order.

use mxprobe_api::{Error, Format, OperationId};
use mxprobe_models::Model;

use super::{
    lossless::Lossless,
    plan::{Lost, Operation},
    sides::{Counted, Loss, Sides, Signs, power_of_two},
};

/// The orders in which the products of a dot may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One operation after another, k ascending, the last one padded with zeros, each taking the previous d as its c.
    Given,
    /// The same, but with the products in any order.
    Chain,
    /// Every tree of operations and additions. An operation takes at least one product, up to its k, and as its c
    /// either +0, C, or an earlier result. An addition joins two results, or a result and C, rounded to nearest into
    /// D's format, or into a wider one and then into D's. Each product, C and each result is used once.
    Any,
}

impl Order {
    /// Every order, from the narrowest on.
    pub const ALL: [Self; 3] = [Self::Given, Self::Chain, Self::Any];

    /// Its name: `given`, `chain`, `any`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Chain => "chain",
            Self::Any => "any",
        }
    }

    /// The order with this name.
    ///
    /// # Errors
    /// If the name is unknown.
    pub fn named(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|order| order.name() == name);
        found.ok_or_else(|| Error::invalid(format!("`{name}` is not an order; the orders are given, chain and any")))
    }
}

/// The most that a dot of one length loses, in an order; docs/tolerance.md derives it.
///
/// Let P be the sum of the positive terms of a dot (products and c), N the sum of the magnitudes of the negative ones,
/// and e the largest of three exponents: that of the larger of P and N, that of the largest sum of two operands'
/// exponents, and [`least_exponent`](Self::least_exponent). Then d lies at most `relative(signs).down · 2^e +
/// absolute(signs).down` below the exact sum, and above it at most the same with `up`. All are 0 without a c if the
/// formats are so narrow that no sum of k products has more bits than are kept. With Q, the sum of 2^(sum of the
/// operands' exponents) over the products that are not 0, `relative·2^e` may be replaced by the parts of
/// [`split`](Self::split).
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    lost: [Loss; 3],
    /// The part that may take partial sums beyond the sums of the terms of each sign.
    outward: Loss,
    /// Relative to the sum of all magnitudes, along the worst path to d; infinite if any tree is allowed.
    along: f64,
    least_exponent: i32,
    largest: f64,
    /// The rule that tells when a dot loses nothing, if one is known.
    lossless: Option<Lossless>,
}

/// An allowance for the rounding of the coefficients' own sums, which is far smaller.
pub(super) const ROUNDED: f64 = 1.0 + 1e-9;

impl Bound {
    /// The bound of dots of `k` products of an operation of a model; `has_c` if c may be nonzero.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the model does not have this operation. [`Error::is_unsupported`] if its sums may wrap,
    /// if it multiplies integers, or if results cannot be passed on as c.
    pub fn new(model: &Model, id: &OperationId, k: usize, order: Order, has_c: bool) -> Result<Self, Error> {
        if id.is_integer() {
            return Err(Error::unsupported(format!("{id}: sums of integers are exact until they overflow")));
        }
        let operation = Operation::new(model, id)?;
        Self::of(&operation, k, order, has_c)
    }

    pub(super) fn of(operation: &Operation, k: usize, order: Order, has_c: bool) -> Result<Self, Error> {
        let id = operation.id();
        let step = id.shape.sizes().2;
        if id.c != id.d && (k > step || order == Order::Any) {
            return Err(Error::unsupported(format!(
                "k is {k}, {id} takes {step} at a time, and its d, {}, cannot be the next one's c, {}",
                id.d, id.c
            )));
        }
        let of = |counted: Counted| {
            let (chained, first) = (operation.lost(counted, true), operation.lost(counted, has_c));
            let lost = match order {
                Order::Given | Order::Chain => chain(first, chained, k, step),
                Order::Any => any(operation.lost(counted, false), chained, (k, step), has_c, addition(id.d)),
            };
            lost.times(ROUNDED)
        };
        let (mut lost, mut outward) = (Signs::ALL.map(|signs| of(Counted::All(signs))), of(Counted::Outward));
        let mut along: f64 = 0.0;
        for signs in Signs::ALL {
            let counted = Counted::All(signs);
            let (chained, first) = (operation.lost(counted, true), operation.lost(counted, has_c));
            let after = k.div_ceil(step).max(1) - 1;
            let path = (first.product_path + after as f64 * chained.c_path).max((after + 1) as f64 * chained.c_path);
            along = along.max(path.exp_m1() * ROUNDED);
        }
        let (lossless, least_exponent) = (operation.lossless(), operation.least_exponent());
        if !has_c && lossless.is_some_and(|rule| rule.holds_for_all(id, k, least_exponent)) {
            (lost, outward, along) = Default::default();
        }
        let is_any = order == Order::Any;
        let largest = operation.formats().chain([id.d]).map(|format| format.to_f64(format.largest(false)));
        Ok(Self {
            lost,
            outward,
            along: if is_any { f64::INFINITY } else { along },
            least_exponent,
            largest: largest.fold(f64::INFINITY, f64::min),
            lossless,
        })
    }

    fn lost(&self, signs: Signs) -> Loss {
        self.lost[Signs::ALL.iter().position(|other| *other == signs).expect("all are there")]
    }

    /// The loss in units of 2^e.
    #[must_use]
    pub fn relative(&self, signs: Signs) -> Sides {
        self.lost(signs).relative
    }

    /// Another bound in place of `relative(signs) · 2^e`: the first part, in units of 2^e, plus the second, in units of
    /// Q. It is smaller where a unit aligns products by a rule of their own, with fewer bits, and they are small.
    #[must_use]
    pub fn split(&self, signs: Signs) -> [Sides; 2] {
        let Loss { beside, of_products, .. } = self.lost(signs);
        [beside, of_products]
    }

    /// The additional loss that does not scale with 2^e: flushed results, and limits on exponents.
    #[must_use]
    pub fn absolute(&self, signs: Signs) -> Sides {
        self.lost(signs).absolute
    }

    /// The loss relative to the sum of all magnitudes, along the worst path: an alternative bound, useful for shallow
    /// trees. Infinite if every tree is allowed.
    #[must_use]
    pub fn along(&self) -> f64 {
        self.along
    }

    /// The smallest exponent that the bound assumes for e.
    #[must_use]
    pub fn least_exponent(&self) -> i32 {
        self.least_exponent
    }

    /// The most, relative to 2^e and besides, by which a partial sum exceeds the sum of the terms with its sign.
    pub(super) fn outward(&self) -> (f64, f64) {
        (self.outward.relative.most(), self.outward.absolute.most())
    }

    /// Whether terms that are integer multiples of 2^lowest lose nothing if every partial sum has an exponent of at
    /// most `exponent`.
    pub(super) fn is_lossless(&self, lowest: i32, exponent: i32) -> bool {
        self.lossless.is_some_and(|rule| rule.holds(lowest, exponent))
    }

    /// The largest value that every partial result can have.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// γ and η of |d − exact| ≤ γ·S + η, S = Σ|a·b| + |c|, for normal operands whose sums stay below the largest value.
    /// Infinite if no such γ is known.
    #[must_use]
    pub fn of_magnitudes(&self) -> (f64, f64) {
        let Loss { relative, beside, of_products, absolute } = self.lost(Signs::Mixed);
        let (relative, absolute, (outward, _)) = (relative.most(), absolute.most(), self.outward());
        // 2^e is at most what partial sums grow to: (S + H) / (1 − G), of the outward losses. Q is at most S.
        let rest = |relative: f64| {
            relative * power_of_two(self.least_exponent) + absolute * (1.0 + (relative - outward).max(0.0))
        };
        let growth = 1.0 - outward;
        let uniform = |relative: f64, of_products: f64| {
            let grown = (relative / growth + of_products, rest(relative) / growth);
            if growth > 0.0 { grown } else { (f64::INFINITY, f64::INFINITY) }
        };
        let path = (self.along, rest(relative) * (1.0 + self.along));
        let bounds = [uniform(beside.most(), of_products.most() * ROUNDED), uniform(relative, 0.0), path];
        bounds.into_iter().min_by(|one, other| one.0.total_cmp(&other.0)).expect("there are three")
    }
}

/// The loss of an addition of two results, rounded to nearest.
fn addition(d: Format) -> Loss {
    let half = |format: Format| 0.5 * power_of_two(-format.fraction_bits().cast_signed());
    let by_way_of = if d.fraction_bits() < Format::F32.fraction_bits() { half(Format::F32) } else { 0.0 };
    Loss::of(Sides::both(half(d) + by_way_of), Sides::default())
}

/// The loss of consecutive operations.
fn chain(first: &Lost, chained: &Lost, k: usize, step: usize) -> Loss {
    if k <= step {
        return first.of[k];
    }
    let mut lost = first.of[step] + chained.of[step].times((k / step - 1) as f64);
    if !k.is_multiple_of(step) {
        lost = lost + chained.of[k % step];
    }
    lost
}

/// The loss of any tree: every operation of n products, except one, either takes an earlier result as c or is joined to
/// the others by an addition.
fn any(alone: &Lost, chained: &Lost, (k, step): (usize, usize), has_c: bool, addition: Loss) -> Loss {
    if k == 0 {
        return chained.of[0];
    }
    let counts = 1..=step.min(k);
    let each = counts
        .clone()
        .fold(Loss::default(), |most, n| most.max(chained.of[n].max(alone.of[n] + addition).times(1.0 / n as f64)));
    if has_c {
        return each.times(k as f64);
    }
    counts.fold(Loss::default(), |most, n| most.max(alone.of[n] + each.times((k - n) as f64)))
}
