//! The most that one fused addition of a plan loses, by the number of its nonzero terms.

use std::ops::Add;

use mxprobe_api::{Format, OperationId, Rounding, Subnormals};
use mxprobe_models::{Adder, Below, Class, Exponent, GridRule, Output, Scale};

use super::sides::{Counted, Loss, Sides, Signs, power_of_two};

/// The kind of a node's term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An exact product.
    Product,
    /// A value of a format: c, or a rounded result.
    Value(Format),
    /// A sum that has not been rounded.
    Sum,
}

impl Kind {
    fn class(self) -> Class {
        match self {
            Self::Product => Class::Products,
            Self::Value(_) => Class::Values,
            Self::Sum => Class::Sums,
        }
    }
}

/// Limits on the bits of a term.
#[derive(Clone, Copy)]
struct Bits {
    /// The most positions that a bit can lie below the exponent that the term is aligned by.
    below_exponent: i32,
    /// The number of significant bits.
    count: i32,
    /// The exponent of the lowest possible bit.
    lowest: i32,
}

/// One fused addition with the kinds of its terms.
pub(super) struct Node<'a> {
    pub(super) adder: &'a Adder,
    pub(super) id: &'a OperationId,
    /// The kinds of all terms except constants.
    pub(super) kinds: Vec<Kind>,
    /// The number of terms, including constants.
    pub(super) terms: usize,
}

impl Node<'_> {
    /// The kind of its result.
    pub(super) fn result(&self) -> Kind {
        self.adder.float_format().map_or(Kind::Sum, Kind::Value)
    }

    /// The limits on a term's bits; `None` if there are none.
    fn bits(&self, kind: Kind) -> Option<Bits> {
        let of = |format: Format| (format.fraction_bits().cast_signed(), min_exponent(format));
        match kind {
            Kind::Sum => None,
            Kind::Value(format) => {
                let (fraction, least) = of(format);
                Some(Bits { below_exponent: fraction, count: fraction + 1, lowest: least - fraction })
            }
            Kind::Product => {
                let mut bits = Bits { below_exponent: 0, count: 0, lowest: 0 };
                let scale = self.id.block_scale().filter(|_| self.adder.scale == Scale::Products);
                let scales = scale.map_or([None; 2], |scale| [Some(scale.format); 2]);
                for format in [Some(self.id.a), Some(self.id.b)].into_iter().chain(scales).flatten() {
                    let (fraction, least) = of(format);
                    bits.below_exponent += fraction;
                    bits.count += fraction + 1;
                    bits.lowest += least - fraction;
                }
                Some(bits)
            }
        }
    }

    /// The fewest bits that are kept below the largest exponent.
    fn fraction_bits(&self) -> i32 {
        self.adder.grid.iter().map(|rule| rule.fraction_bits).min().unwrap_or(0)
    }

    /// The loss of this many units of the grid. A rule that aligns by products' operands gives a unit that these
    /// products bound, whatever the largest exponent is.
    fn on_grid(&self, units: Sides) -> Loss {
        let of_products = |rule: &GridRule| rule.terms == Class::Products && rule.exponent == Exponent::Operands;
        let fewest = |products: bool| {
            let rules = self.adder.grid.iter().filter(|rule| of_products(rule) == products);
            rules.map(|rule| rule.fraction_bits).min()
        };
        let unit = |fraction_bits: i32| units.times(power_of_two(-fraction_bits));
        let whole = Loss::of(unit(self.fraction_bits()), Sides::default());
        match (fewest(true), fewest(false)) {
            (Some(own), Some(beside)) if own < beside => Loss { beside: unit(beside), of_products: unit(own), ..whole },
            _ => whole,
        }
    }

    /// The most that is lost of a term of this kind, in units of the grid.
    fn units(&self, kind: Kind, counted: Counted) -> Sides {
        let adder = self.adder;
        let cut = Sides::cut(adder.below, counted);
        if kind.class() != Class::Values {
            return cut;
        }
        let value = cut.times(power_of_two(adder.value_cut_bits.cast_signed()));
        match adder.ignored_values {
            None => value,
            Some(rule) => {
                let whole = power_of_two(adder.value_cut_bits.cast_signed() - rule.below_bits);
                value.max(Sides::toward_zero(whole, counted))
            }
        }
    }

    /// Whether a term of this kind keeps all of its bits when it determines the grid.
    fn fits(&self, kind: Kind) -> bool {
        let Some(bits) = self.bits(kind) else { return false };
        let is_value = kind.class() == Class::Values;
        let cut = if is_value { self.adder.value_cut_bits.cast_signed() } else { 0 };
        let kept = !is_value || self.adder.ignored_values.is_none_or(|rule| rule.below_bits >= 0);
        kept && self.adder.grid.iter().all(|rule| {
            let leads = rule.exponent == Exponent::Leading && kind == Kind::Product;
            bits.below_exponent + i32::from(leads) + cut <= rule.fraction_bits
        })
    }

    /// Whether a term of this kind is returned unchanged when all other terms are zero.
    pub(super) fn passes(&self, kind: Kind) -> bool {
        let adder = self.adder;
        let Some(bits) = self.bits(kind) else { return false };
        let cut = if kind.class() == Class::Values { adder.value_cut_bits.cast_signed() } else { 0 };
        let above = |floor: i32, fraction_bits: i32| floor - fraction_bits + cut <= bits.lowest;
        let on_grid = adder.grid.is_empty()
            || (self.fits(kind)
                && (adder.below != Below::OnesComplement || self.restores(kind))
                && adder
                    .grid
                    .iter()
                    .all(|rule| rule.exponent_floor.is_none_or(|floor| above(floor, rule.fraction_bits))));
        let normalised = adder.normalised_fraction_bits.is_none_or(|kept| {
            let kept = kept.cast_signed();
            bits.count - 1 <= kept && adder.normalised_exponent_floor.is_none_or(|floor| floor - kept <= bits.lowest)
        });
        let rounded = match adder.output {
            Output::Wide | Output::Integer { .. } => true,
            Output::Float { format, fraction_bits, .. } => {
                let fraction = fraction_bits.cast_signed();
                bits.count <= fraction + 1 && bits.lowest >= min_exponent(format) - fraction
            }
        };
        on_grid && normalised && rounded
    }

    /// Whether rounding undoes what the ones' complements of zeros take from a lone value: at most a unit each, together
    /// at most a quarter of a unit in the last place, half of one just below a power of two.
    fn restores(&self, kind: Kind) -> bool {
        let Output::Float { format, fraction_bits, rounding: Rounding::NearestEven, .. } = self.adder.output else {
            return false;
        };
        let governs =
            |rule: &&GridRule| rule.terms == Class::All || rule.terms == kind.class() || rule.exponent_floor.is_some();
        let rules = || self.adder.grid.iter().filter(governs);
        let kept = rules().map(|rule| rule.fraction_bits).min();
        let zeros = (self.terms - 1) as f64;
        self.adder.normalised_fraction_bits.is_none()
            && kind.class() == Class::Values
            && self.kinds.iter().filter(|kind| kind.class() == Class::Values).count() == 1
            && rules().all(|rule| rule.exponent_floor.is_none_or(|floor| floor <= min_exponent(format)))
            && kept.is_some_and(|kept| zeros <= power_of_two(kept - fraction_bits.cast_signed() - 2))
    }

    /// The relative loss of cutting and rounding the sum.
    fn after_the_sum(&self, counted: Counted) -> Sides {
        let adder = self.adder;
        let normalised = adder.normalised_fraction_bits.map_or(Sides::default(), |kept| {
            Sides::cut(adder.normalised_below, counted).times(power_of_two(-kept.cast_signed()))
        });
        let rounded = match adder.output {
            Output::Float { fraction_bits, rounding, .. } => {
                Sides::rounded(rounding, counted).times(power_of_two(-fraction_bits.cast_signed()))
            }
            _ => Sides::default(),
        };
        normalised + rounded
    }

    /// The absolute loss of flushing the result.
    fn flushed(&self, counted: Counted) -> Sides {
        match self.adder.output {
            Output::Float { format, subnormals, .. } if subnormals != Subnormals::Keep => {
                Sides::toward_zero(power_of_two(min_exponent(format)), counted)
            }
            _ => Sides::default(),
        }
    }

    /// The loss when only one term is nonzero.
    pub(super) fn of_one(&self, kind: Kind, counted: Counted) -> Loss {
        let absolute = self.flushed(counted);
        if self.passes(kind) {
            return Loss::of(Sides::default(), absolute);
        }
        let units = match (self.adder.grid.is_empty(), self.adder.below) {
            (true, _) => Sides::default(),
            (false, Below::OnesComplement) => self.all_units(counted),
            (false, _) => self.units(kind, counted),
        };
        self.on_grid(units) + Loss::of(self.after_the_sum(counted), absolute)
    }

    /// The loss when two or more terms are nonzero.
    pub(super) fn of_several(&self, count: usize, counted: Counted) -> Loss {
        let adder = self.adder;
        let relative = self.after_the_sum(counted);
        let mut absolute = self.flushed(counted);
        if adder.grid.is_empty() {
            return Loss::of(relative, absolute);
        }
        if adder.below == Below::OnesComplement {
            // Zeros are complemented as well.
            return self.on_grid(self.all_units(counted)) + Loss::of(relative, absolute);
        }
        let unit = power_of_two(-self.fraction_bits());
        let cut = Sides::cut(adder.below, counted);
        let mut units = cut.times(count as f64);
        for kind in self.kinds.iter().filter(|kind| kind.class() == Class::Values) {
            let more = self.units(*kind, counted);
            let more = Sides { down: (more.down - cut.down).max(0.0), up: (more.up - cut.up).max(0.0) };
            units = units + more;
        }
        if self.kinds.iter().all(|kind| self.fits(*kind)) {
            // The term that determines the grid loses nothing, unless the floor determines it.
            units = Sides { down: (units.down - cut.down).max(0.0), up: (units.up - cut.up).max(0.0) };
            for floor in adder.grid.iter().filter_map(|rule| rule.exponent_floor) {
                absolute = absolute + cut.times(unit * power_of_two(floor));
            }
        }
        self.on_grid(units) + Loss::of(relative, absolute)
    }

    /// The most that all terms lose together, zeros included, in units of the grid.
    fn all_units(&self, counted: Counted) -> Sides {
        let zero = Sides::cut(self.adder.below, counted).times((self.terms - self.kinds.len()) as f64);
        self.kinds.iter().map(|kind| self.units(*kind, counted)).fold(zero, Sides::add)
    }

    /// Whether the adder has enough carry bits for every sum of these terms.
    pub(super) fn holds_every_carry(&self) -> bool {
        let Some(carry_bits) = self.adder.carry_bits else { return true };
        let governs =
            |kind: &Kind| self.adder.grid.iter().any(|rule| rule.terms == Class::All || rule.terms == kind.class());
        let mut most = 0.0;
        for kind in &self.kinds {
            most += match kind {
                Kind::Product => 4.0,
                Kind::Value(_) => 2.0,
                Kind::Sum => return false,
            };
            most += 2.0 * self.units(*kind, Counted::All(Signs::Mixed)).most() * power_of_two(-self.fraction_bits());
        }
        self.kinds.iter().all(governs) && most <= power_of_two(carry_bits.cast_signed() + 1)
    }
}

/// The exponent of the smallest normal value of a format; 0 for an integer format.
pub(super) fn min_exponent(format: Format) -> i32 {
    format.as_float().map_or(0, mxprobe_api::FloatEncoding::min_exponent)
}
