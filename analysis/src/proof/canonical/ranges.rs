//! Bounds of the terms of an addition that hold for every dot.

use mxprobe_api::{Format, Overflow, Subnormals};
use mxprobe_models::{Adder, Below, Class, Exponent, Flush, GridRule, NanCause, Output, Scale, Term, ZeroSign};

use super::{
    facts::{Causes, Facts, NanBits, Sum},
    form::Form,
};

impl Form<'_> {
    /// The facts about a term of an adder.
    pub(super) fn term(&self, adder: &Adder, term: Term, results: &[Facts]) -> Facts {
        let flush @ Flush { a, b, c, .. } = self.unit.flush;
        match term {
            Term::PositiveZero => Facts::zero(),
            Term::C => Facts::of(self.id.c, c),
            Term::Node(node) => results[node].clone(),
            Term::Product(k) => {
                let mut factors = vec![Facts::operand(self.id.a, flush, a), Facts::operand(self.id.b, flush, b)];
                let Some(rule) = self.id.block_scale().filter(|_| adder.scale == Scale::Products) else {
                    return Facts::product(&factors, adder.product_overflow);
                };
                let unscaled = Facts::product(&factors, false);
                let scale = Facts::of(rule.format, false);
                let bits = scale.significand_bits;
                factors.extend([scale.clone(), scale]);
                let mut product = Facts::product(&factors, adder.product_overflow);
                // A significand in [1, 2) raises the top by one place, and has this many bits below its exponent.
                let raised = if bits > 0 { 2 } else { 0 };
                let relative = (unscaled.low - 2 * bits, unscaled.top + raised, unscaled.exponents.1);
                product.block = Some((k / rule.block, relative));
                product
            }
        }
    }

    /// The facts about the terms of a node.
    pub(super) fn terms(&self, node: usize, results: &[Facts]) -> Vec<Facts> {
        let node = &self.nodes[node];
        node.terms.iter().map(|term| self.term(&node.adder, *term, results)).collect()
    }

    /// The lowest bit that a product or c can have; neither has an exponent below it.
    pub(super) fn lowest(&self, results: &[Facts]) -> i32 {
        let leaves = self.nodes.iter().flat_map(|node| {
            let leaves = node.terms.iter().filter(|term| matches!(term, Term::Product(_) | Term::C));
            leaves.map(|term| self.term(&node.adder, *term, results).low)
        });
        leaves.min().unwrap_or(0)
    }

    /// The facts about every result.
    pub(super) fn facts(&self) -> Vec<Facts> {
        let mut results = Vec::with_capacity(self.nodes.len());
        for node in 0..self.nodes.len() {
            let terms = self.terms(node, &results);
            results.push(self.result(node, &terms));
        }
        results
    }

    /// The bounds of a node's sum before it is rounded.
    pub(super) fn sum(&self, node: usize, terms: &[Facts]) -> Sum {
        let adder = &self.nodes[node].adder;
        let some = || terms.iter().filter(|term| !term.zero);
        let mut low = some().map(|term| term.low).min().unwrap_or(0);
        let mut top = some().map(|term| term.top).max().unwrap_or(0);
        if let Some((lowest, highest)) = units(adder, terms) {
            // Rounded up, a term is at most the next power of two or one unit.
            if adder.below != Below::Truncate {
                top = top.max(highest) + adder.value_cut_bits.cast_signed();
            }
            if adder.below == Below::OnesComplement {
                (low, top) = (low.min(lowest), top.max(highest) + 1);
            }
        } else if adder.below != Below::Truncate {
            top += adder.value_cut_bits.cast_signed() + 1;
        }
        top += i32::try_from(usize::BITS - terms.len().leading_zeros()).unwrap_or(64);
        low = low.max(lowest_unit(adder, terms).unwrap_or(low));
        if let Some(scale) = self.id.block_scale().filter(|_| adder.scale == Scale::Sum) {
            let scale = Facts::of(scale.format, false);
            (low, top) = (low + 2 * scale.low, top + 2 * scale.top);
        }
        if let Some(bits) = adder.normalised_fraction_bits
            && adder.normalised_below != Below::Truncate
        {
            let floor = adder.normalised_exponent_floor.map_or(top, |floor| floor - bits.cast_signed());
            top = top.max(floor) + 1;
        }
        let exact = adder.grid.is_empty() && adder.value_cut_bits == 0 && adder.below == Below::Truncate;
        let whole = terms.iter().try_fold((0, 0), |(least, most), term| {
            let (low, high) = term.whole.filter(|_| exact && adder.normalised_fraction_bits.is_none())?;
            Some((least + low, most + high))
        });
        // A single term: dropping or rounding bits of it does not leave more bits than it had. Wrapping may.
        let kept = adder.below != Below::OnesComplement && adder.carry_bits.is_none() && adder.scale == Scale::Products;
        let mut within = top - low - 1;
        if let Some((low, top, _)) = in_one_block(terms)
            && kept
            && adder.grid.iter().all(|rule| rule.exponent_floor.is_none())
        {
            // As above, with scales in [1, 2), which move all terms and the grid alike.
            let units = adder.grid.iter().map(|rule| top - rule.fraction_bits);
            let top = units.max().unwrap_or(top).max(top);
            within = within.min(top + i32::try_from(usize::BITS - terms.len().leading_zeros()).unwrap_or(64) - low - 1);
        }
        let length = match some().collect::<Vec<_>>()[..] {
            [term] if kept => term.length().min(within),
            _ => within,
        };
        Sum { low, top, length, whole }
    }

    fn result(&self, node: usize, terms: &[Facts]) -> Facts {
        let adder = &self.nodes[node].adder;
        let sum = self.sum(node, terms);
        let nan = self.causes(node, terms);
        let infinite = terms.iter().any(|term| term.infinite);
        match adder.output {
            Output::Wide => {
                let own = terms.iter().filter(|term| !term.zero).map(|term| term.exponents);
                let floors = adder.grid.iter().filter_map(|rule| rule.exponent_floor).map(|floor| (floor, floor));
                // By leading bits, an exponent is between the lowest bit and the top.
                let leading = adder.grid.iter().any(|rule| rule.exponent == Exponent::Leading);
                let leading = leading.then_some((sum.low, sum.top));
                let scaled = self.id.block_scale().filter(|_| adder.scale == Scale::Sum);
                let exponents = match scaled {
                    Some(scale) => {
                        let (low, high) = Facts::of(scale.format, false).exponents;
                        (2 * low, 2 * high)
                    }
                    None => own
                        .chain(floors)
                        .chain(leading)
                        .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
                        .unwrap_or((0, 0)),
                };
                Facts {
                    class: Class::Sums,
                    zero: false,
                    low: sum.low,
                    top: sum.top,
                    exponents,
                    significand_bits: exponents.1.saturating_sub(sum.low).max(0),
                    normalised: false,
                    whole: sum.whole,
                    negative_zero: false,
                    infinite,
                    nan,
                    nan_bits: NanBits::Any,
                    block: None,
                }
            }
            Output::Integer { format, .. } => {
                let mut facts = Facts::of(format, false);
                if let (Some((least, most)), Some(own)) = (facts.whole, sum.whole)
                    && least <= own.0
                    && own.1 <= most
                {
                    facts.whole = Some(own);
                }
                facts
            }
            Output::Float { format, fraction_bits, overflow, subnormals, rounding } => {
                let mut facts = Facts::of(format, false);
                let least = facts.exponents.0;
                facts.low = sum.low.max(least - fraction_bits.cast_signed());
                let overflows = sum.top > facts.exponents.1;
                if overflows {
                    // The largest finite value, whose lowest bit may be set.
                    facts.low = facts.low.min(facts.exponents.1 - fraction_bits.cast_signed());
                }
                facts.top = facts.top.min(sum.top + 1);
                let exponents = (least.max(facts.low), facts.exponents.1.min(facts.top));
                facts.exponents = (exponents.0.min(exponents.1), exponents.1);
                facts.normalised = facts.low >= least || subnormals != Subnormals::Keep;
                facts.negative_zero &= adder.zero == ZeroSign::Ieee && may_be_negative_zero(adder, &sum, terms);
                let ieee = facts.infinite;
                facts.infinite =
                    infinite || ieee && overflows && matches!(overflow, Overflow::Infinity | Overflow::Ieee);
                let becomes_nan = overflows && format.nan().is_some() && (!ieee || overflow == Overflow::Nan);
                let _ = rounding;
                facts.nan = Causes { value: nan.any() || becomes_nan, ..Causes::default() };
                facts.nan_bits = if becomes_nan { NanBits::Any } else { self.nan_bits(node, terms, nan) };
                // An infinity in a format without infinities may read as NaN.
                if infinite && !ieee {
                    facts.nan_bits = NanBits::Any;
                    facts.nan.value = true;
                }
                facts
            }
        }
    }

    /// The causes by which a node's sum may be NaN.
    pub(super) fn causes(&self, node: usize, terms: &[Facts]) -> Causes {
        let adder = &self.nodes[node].adder;
        let mut causes = terms.iter().fold(Causes::default(), |causes, term| causes.and(term.nan));
        // Infinities cancel only if their signs differ; a single term has one sign.
        causes.invalid |= terms.iter().filter(|term| term.infinite).count() > 1;
        if let Some(scale) = self.id.block_scale().filter(|_| adder.scale == Scale::Sum) {
            causes.value |= Facts::of(scale.format, false).nan.any();
        }
        causes
    }

    /// The bits of every NaN that a node with these causes gives.
    fn nan_bits(&self, node: usize, terms: &[Facts], causes: Causes) -> NanBits {
        [NanCause::Operand, NanCause::Value, NanCause::Invalid]
            .into_iter()
            .filter(|cause| causes.has(*cause))
            .map(|cause| self.bits_by(node, terms, cause))
            .fold(NanBits::Never, NanBits::and)
    }

    /// The bits of every NaN that a node gives by one cause.
    pub(super) fn bits_by(&self, node: usize, terms: &[Facts], cause: NanCause) -> NanBits {
        let adder = &self.nodes[node].adder;
        let Output::Float { format, .. } = adder.output else { return NanBits::Any };
        let ieee = |format: Format| format.infinity(false).is_some();
        let [a, b] = [self.id.a, self.id.b].map(|format| self.unit.flush.converted.unwrap_or(format));
        let fixed = |bits: u64| NanBits::Known(format, bits);
        match cause {
            NanCause::Invalid => fixed(adder.nan.invalid),
            NanCause::Operand | NanCause::B => match adder.nan.operand {
                Some(bits) => fixed(bits),
                // Formats without payloads give the NaN of invalid operations.
                None if !ieee(format) || !ieee(a) && !ieee(b) => fixed(adder.nan.invalid),
                None => NanBits::Any,
            },
            NanCause::Value => match adder.nan.value {
                Some(bits) => fixed(bits),
                None if !ieee(format) => fixed(adder.nan.invalid),
                None if terms.iter().any(|term| term.class == Class::Sums) || adder.scale == Scale::Sum => NanBits::Any,
                None => {
                    let values = terms.iter().filter(|term| term.class == Class::Values);
                    values.fold(NanBits::Never, |bits, term| {
                        bits.and(match term.nan_bits {
                            NanBits::Known(from, own) => fixed(quieted(from, own, format, adder.nan.invalid)),
                            other => other,
                        })
                    })
                }
            },
        }
    }
}

/// A NaN converted into another format, as an adder passes it on.
fn quieted(from: Format, bits: u64, to: Format, otherwise: u64) -> u64 {
    let word = |bits: u64, width: u32| -> Vec<bool> { (0..width).map(|place| bits >> place & 1 == 1).collect() };
    let candidate = super::super::number::Candidate { nan: true, format: from, bits: word(bits, from.bits()) };
    super::super::nan::quieted(&mut super::super::logic::Values, &candidate, to)
        .map_or(otherwise, |word| word.iter().enumerate().fold(0, |sum, (place, bit)| sum | u64::from(*bit) << place))
}

/// Whether a result with IEEE's sign of zeros may be −0: every term is −0, it is rounded down, or it is rounded or
/// flushed to zero from below.
pub(super) fn may_be_negative_zero(adder: &Adder, sum: &Sum, terms: &[Facts]) -> bool {
    let Output::Float { format, fraction_bits, rounding, subnormals, .. } = adder.output else { return false };
    let least = Facts::of(format, false).exponents.0;
    let underflows = sum.low < least - fraction_bits.cast_signed() || sum.low < least && subnormals != Subnormals::Keep;
    underflows || rounding == mxprobe_api::Rounding::Down || terms.iter().all(|term| term.negative_zero)
}

/// `low`, `top` and the largest exponent of products of one scale block, as if its scales were in [1, 2); `None` if a
/// term is not a product of that block.
pub(super) fn in_one_block(terms: &[Facts]) -> Option<(i32, i32, i32)> {
    let mut some = terms.iter().filter(|term| !term.zero);
    let (block, relative) = some.next()?.block?;
    some.all(|term| term.block.is_some_and(|(other, _)| other == block)).then_some(relative)
}

/// A lower bound of the exponent of the lowest kept bit, unless every term is zero. All addends are multiples of 2 to
/// this power.
fn lowest_unit(adder: &Adder, terms: &[Facts]) -> Option<i32> {
    let least = |rule: &GridRule| {
        let own = terms.iter().filter(|term| !term.zero).map(|term| match rule.exponent {
            Exponent::Operands => term.exponents.0,
            Exponent::Leading => term.low,
        });
        // Only a rule that sees every term has an exponent whenever a term is nonzero.
        let own = if rule.terms == Class::All { own.min() } else { None };
        own.max(rule.exponent_floor).map(|exponent| exponent - rule.fraction_bits)
    };
    adder.grid.iter().filter_map(least).max()
}

/// The smallest and the largest exponent of the lowest kept bit, if there is a grid.
pub(super) fn units(adder: &Adder, terms: &[Facts]) -> Option<(i32, i32)> {
    let mut found: Option<(i32, i32)> = None;
    for rule in &adder.grid {
        let of_class = |term: &&Facts| !term.zero && (rule.terms == Class::All || rule.terms == term.class);
        let exponents = terms.iter().filter(of_class).map(|term| match rule.exponent {
            Exponent::Operands => term.exponents,
            Exponent::Leading => (term.low, term.top),
        });
        let floor = rule.exponent_floor.map(|floor| (floor, floor));
        for (low, high) in exponents.chain(floor) {
            let (low, high) = (low - rule.fraction_bits, high - rule.fraction_bits);
            found = Some(found.map_or((low, high), |(least, most)| (least.min(low), most.max(high))));
        }
    }
    found
}
