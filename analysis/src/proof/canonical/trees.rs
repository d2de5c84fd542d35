//! Removes additions, or joins them with the one that reads them.

use std::collections::HashMap;

use mxprobe_api::{Format, Rounding};
use mxprobe_models::{Adder, Below, Class, Exponent, NanCause, Output, Scale, Term, ZeroSign};

use super::{
    adders::{is_exact, loses_nothing},
    facts::{Facts, NanBits},
    form::{Form, Node},
    observed::Observed,
};

/// The most terms of a joined addition.
const MOST_TERMS: usize = 4096;

impl Form<'_> {
    /// Applies every applicable rewriting of the tree, from the leaves up; returns whether any was applied.
    ///
    /// No result changes, so the facts about results stay true; and the observed properties of a result depend only on
    /// the additions that read it, which come later.
    pub(super) fn rewrite_tree(&mut self) -> bool {
        let facts = self.facts();
        let observed = self.observed(&facts);
        let mut changed = self.drop_zeros(&facts);
        changed |= self.merge_equal();
        let mut uses = self.uses();
        for node in 0..self.nodes.len() {
            let mut at = 0;
            while let Some(term) = self.nodes[node].terms.get(at).copied() {
                let Term::Node(below) = term else {
                    at += 1;
                    continue;
                };
                let alone = uses[below] == 1 || self.nodes[below].terms.len() == 1;
                let joined = if alone { self.joined(node, at, below, &facts, &observed) } else { None };
                let (step, terms) = match joined {
                    Some(terms) => ("sums that lose nothing are joined with the sum that reads them", terms),
                    None => match self.passed_through(node, at, below, &facts, &observed) {
                        Some(terms) => ("additions of one term that change nothing are left out", terms),
                        None => {
                            at += 1;
                            continue;
                        }
                    },
                };
                self.steps.insert(step);
                uses[below] -= 1;
                for term in &terms {
                    if let Term::Node(read) = term {
                        uses[*read] += 1;
                    }
                }
                self.nodes[node].terms.splice(at..=at, terms);
                changed = true;
            }
        }
        if changed {
            return true;
        }
        (0..self.nodes.len()).any(|node| self.absorbed(node, &facts))
    }

    /// Removes +0 if it does not show in any result.
    fn drop_zeros(&mut self, facts: &[Facts]) -> bool {
        let mut changed = false;
        for node in 0..self.nodes.len() {
            let terms = self.terms(node, facts);
            let own = &self.nodes[node];
            // A one's complement counts zeros too, and takes the sign of the last value, which may be this +0.
            if own.adder.below == Below::OnesComplement || own.terms.len() < 2 {
                continue;
            }
            let Some(at) = own.terms.iter().position(|term| *term == Term::PositiveZero) else { continue };
            let positive = terms.iter().enumerate().any(|(other, term)| other != at && !term.negative_zero);
            let shows = match own.adder.output {
                Output::Wide | Output::Integer { .. } => false,
                Output::Float { .. } if own.adder.zero == ZeroSign::Positive => false,
                // A zero is −0 unless every term is +0, and this one is.
                Output::Float { rounding: Rounding::Down, .. } => false,
                // A zero is −0 if every term is; another term never is.
                Output::Float { .. } => !positive,
            };
            if !shows {
                self.nodes[node].terms.remove(at);
                changed = true;
            }
        }
        // A sum of only +0 is +0. An unrounded one may have an exponent, and it is not a value that can be cut.
        let is_zero = |node: &Node| {
            matches!(node.adder.output, Output::Float { .. })
                && node.adder.below != Below::OnesComplement
                && node.terms.iter().all(|term| *term == Term::PositiveZero)
        };
        let zeros: Vec<bool> = self.nodes.iter().map(is_zero).collect();
        for term in self.nodes.iter_mut().flat_map(|node| &mut node.terms) {
            if matches!(*term, Term::Node(below) if zeros[below]) {
                (*term, changed) = (Term::PositiveZero, true);
            }
        }
        if changed {
            self.steps.insert("zeros that add nothing are left out");
        }
        changed
    }

    /// Keeps one of several identical additions.
    fn merge_equal(&mut self) -> bool {
        let mut known: HashMap<String, Vec<usize>> = HashMap::new();
        let mut first: Vec<usize> = (0..self.nodes.len()).collect();
        for node in 0..self.nodes.len() {
            for term in &mut self.nodes[node].terms {
                if let Term::Node(below) = term {
                    *below = first[*below];
                }
            }
            let alike = known.entry(format!("{:?}", self.nodes[node].terms)).or_default();
            match alike.iter().find(|other| self.nodes[**other] == self.nodes[node]) {
                Some(other) => first[node] = *other,
                None => alike.push(node),
            }
        }
        let changed = first.iter().enumerate().any(|(node, first)| node != *first);
        if changed {
            // The last one is not read by another, and either of the two gives d.
            let kept: Vec<usize> = (0..self.nodes.len()).filter(|node| first[*node] == *node).collect();
            let last = first[self.nodes.len() - 1];
            if kept.last() == Some(&last) {
                self.keep(&kept);
            }
        }
        changed && self.nodes.len() < first.len()
    }

    /// The terms of a sum, to replace the sum as a term, if an exact sum is added exactly.
    ///
    /// Addition is associative, so the value is the same. Zeros: an unrounded zero is positive whatever its terms are,
    /// so +0 is added instead; a rounded one is −0 exactly if all its terms are, which is also the condition of the
    /// joined sum. NaN: see [`causes_stay`](Self::causes_stay).
    fn joined(
        &self,
        node: usize,
        at: usize,
        below: usize,
        facts: &[Facts],
        observed: &[Observed],
    ) -> Option<Vec<Term>> {
        let (own, inner) = (&self.nodes[node], &self.nodes[below]);
        let plain = |adder: &Adder| {
            adder.grid.is_empty()
                && adder.below == Below::Truncate
                && adder.value_cut_bits == 0
                && adder.ignored_values.is_none()
                && (adder.scale == Scale::Products || self.id.block_scale().is_none())
        };
        let terms = self.terms(below, facts);
        let overflows = terms.iter().any(|term| term.class == Class::Products && term.top > 128);
        if !plain(&own.adder)
            || !plain(&inner.adder)
            || inner.adder.normalised_fraction_bits.is_some()
            || overflows && own.adder.product_overflow != inner.adder.product_overflow
            || own.terms.len() + inner.terms.len() > MOST_TERMS
            || own.adder.output == Output::Wide && observed[node].exponent && inner.adder.output != Output::Wide
        {
            return None;
        }
        let sum = self.sum(below, &terms);
        match inner.adder.output {
            Output::Wide => {}
            Output::Float { format, fraction_bits, .. } => {
                // The rounded sum must be exact; a flushed one would be below the normal range.
                if !is_exact(format, fraction_bits, &sum) || sum.low < Facts::of(format, false).exponents.0 {
                    return None;
                }
            }
            Output::Integer { format, saturates } => {
                let own_format = own.adder.output_format();
                let wraps = matches!(own.adder.output, Output::Integer { saturates: false, .. });
                // Wrapping twice is the same as wrapping once to the narrower format; or the sum is never out of range.
                let once = wraps && !saturates && own_format.is_some_and(|own| own.bits() <= format.bits());
                let fits = Facts::of(format, false).whole.zip(sum.whole);
                if !once && !fits.is_some_and(|((least, most), (low, high))| least <= low && high <= most) {
                    return None;
                }
            }
        }
        if !self.causes_stay(node, below, &terms, observed) {
            return None;
        }
        let mut joined = inner.terms.clone();
        if self.shows_zero(node, at, facts, observed) {
            let never_negative = !facts[below].negative_zero;
            match (own.adder.output, inner.adder.output) {
                // Rounded down, a zero is +0 only if every term is +0: terms that cancel count differently from their
                // sum.
                (Output::Float { rounding: Rounding::Down, .. }, _) => return None,
                (_, Output::Float { rounding: Rounding::Down, .. }) if !never_negative => return None,
                _ if never_negative => joined.push(Term::PositiveZero),
                _ => {}
            }
        }
        Some(joined)
    }

    /// Whether the sign of a zero shows if it is this term of a node.
    fn shows_zero(&self, node: usize, at: usize, facts: &[Facts], observed: &[Observed]) -> bool {
        self.observed_by(node, observed[node], at, facts).zero_sign
    }

    /// Whether a NaN result stays the same if `node` reads the terms of `below` directly.
    ///
    /// If the bits of a NaN do not show its cause, a NaN stays the same. An unrounded sum passes on the causes of its
    /// terms in their order, so there is only one change: if it is NaN by an operand or a value, its infinities are
    /// forgotten and cannot make a sum of infinities above it invalid. That shows only if invalid operations precede
    /// another cause.
    fn causes_stay(&self, node: usize, below: usize, terms: &[Facts], observed: &[Observed]) -> bool {
        let causes = self.causes(below, terms);
        let infinite = terms.iter().any(|term| term.infinite);
        if !causes.any() && !infinite {
            return true;
        }
        let (operand, value, invalid) = self.nan_shown(node, observed[node]);
        if self.nodes[below].adder.output == Output::Wide {
            return !invalid || !infinite || !causes.operand && !causes.value;
        }
        // A rounded sum turns every cause into a value.
        !operand && !value && !invalid && self.causes_alike(node, observed[node])
    }

    /// Whether a node does not show the cause of a NaN: all causes give the same bits, or the bits do not show.
    fn causes_alike(&self, node: usize, observed: Observed) -> bool {
        let adder = &self.nodes[node].adder;
        match adder.output {
            Output::Integer { .. } => true,
            // The adder that rounds this sum would have to be checked.
            Output::Wide => false,
            Output::Float { .. } => {
                let rules = &adder.nan;
                !observed.nan_bits || rules.operand == Some(rules.invalid) && rules.value == Some(rules.invalid)
            }
        }
    }

    /// The only term of an addition, to replace the addition as a term, if that changes nothing.
    fn passed_through(
        &self,
        node: usize,
        at: usize,
        below: usize,
        facts: &[Facts],
        observed: &[Observed],
    ) -> Option<Vec<Term>> {
        let (own, inner) = (&self.nodes[node], &self.nodes[below]);
        let [term] = *inner.terms.as_slice() else { return None };
        let terms = self.terms(below, facts);
        let fact = &terms[0];
        let result = &facts[below];
        if !self.keeps_value(below, &terms) || fact.zero {
            return None;
        }
        let complemented = own.adder.below == Below::OnesComplement;
        let of_class = own.adder.value_cut_bits > 0
            || own.adder.ignored_values.is_some()
            || own.adder.grid.iter().any(|rule| rule.terms != Class::All)
            || complemented;
        let overflows = fact.class == Class::Products && fact.top > 128;
        if fact.class != result.class && of_class
            || overflows && own.adder.product_overflow != inner.adder.product_overflow
            || fact.class == Class::Products && self.id.block_scale().is_some() && own.adder.scale == Scale::Sum
            || complemented && fact.negative_zero && inner.adder.zero == ZeroSign::Positive
        {
            return None;
        }
        // The exponent by operands: an unrounded sum of one term passes on its term's; a rounded result has that of its
        // format.
        let by_operands = own.adder.grid.iter().any(|rule| rule.exponent == Exponent::Operands)
            || own.adder.output == Output::Wide && observed[node].exponent;
        let same_exponent = match inner.adder.output {
            Output::Wide => inner.adder.grid.is_empty(),
            _ => inner.adder.output_format() == self.format_of(term) || fact.normalised && result.normalised,
        };
        if by_operands && !same_exponent {
            return None;
        }
        if !self.same_nan(node, below, term, &terms, observed) {
            return None;
        }
        let mut passed = vec![term];
        if self.shows_zero(node, at, facts, observed) && fact.negative_zero && inner.adder.zero == ZeroSign::Positive {
            match own.adder.output {
                Output::Float { rounding: Rounding::Down, .. } => return None,
                // An unrounded or positive zero instead of −0: +0 is added.
                _ => passed.push(Term::PositiveZero),
            }
        }
        Some(passed)
    }

    /// Whether an addition of one term gives that term's value, infinities included.
    fn keeps_value(&self, node: usize, terms: &[Facts]) -> bool {
        let adder = &self.nodes[node].adder;
        if adder.below == Below::OnesComplement
            || adder.carry_bits.is_some()
            || adder.ignored_values.is_some()
            || adder.normalised_fraction_bits.is_some()
            || adder.scale == Scale::Sum && self.id.block_scale().is_some()
            || !loses_nothing(adder, terms)
        {
            return false;
        }
        let [term] = terms else { return false };
        match adder.output {
            Output::Wide => true,
            Output::Integer { format, .. } => {
                let own = Facts::of(format, false).whole.zip(term.whole);
                own.is_some_and(|((least, most), (low, high))| least <= low && high <= most)
            }
            Output::Float { format, fraction_bits, subnormals, .. } => {
                let (least, most) = Facts::of(format, false).exponents;
                let keeps = subnormals == mxprobe_api::Subnormals::Keep || term.low >= least;
                // The largest values of a format without infinity may be NaN.
                let top = if format.infinity(false).is_some() { most + 1 } else { most };
                let infinite = !term.infinite || format.infinity(false).is_some();
                let fraction_bits = fraction_bits.cast_signed();
                keeps
                    && infinite
                    && term.top <= top
                    && term.length() <= fraction_bits
                    && term.low >= least - fraction_bits
            }
        }
    }

    /// The format of a term that is a value.
    fn format_of(&self, term: Term) -> Option<Format> {
        match term {
            Term::C => Some(self.id.c),
            Term::Node(node) => self.nodes[node].adder.output_format(),
            Term::Product(_) | Term::PositiveZero => None,
        }
    }

    /// Whether a NaN result stays the same if an addition of one term is left out.
    fn same_nan(&self, node: usize, below: usize, term: Term, terms: &[Facts], observed: &[Observed]) -> bool {
        let causes = self.causes(below, terms);
        if !causes.any() {
            return true;
        }
        let (_, value, _) = self.nan_shown(node, observed[node]);
        let adder = &self.nodes[below].adder;
        if adder.output == Output::Wide {
            // The causes of a single term are passed on unchanged.
            return true;
        }
        if terms[0].class != Class::Values {
            return self.causes_stay(node, below, terms, observed);
        }
        if !value {
            return true;
        }
        // The value's NaN shows: it must be the same NaN, or one that is quieted either now or later.
        let format = adder.output_format();
        match (terms[0].nan_bits, self.bits_by(below, terms, NanCause::Value)) {
            (NanBits::Known(from, own), NanBits::Known(to, result)) => from == to && own == result,
            _ => adder.nan.value.is_none() && format == self.format_of(term) && format.is_some(),
        }
    }

    /// Absorbs the addition below an addition of one term, if nothing else reads it and only the sign of zeros or the
    /// bits of NaN differ: the inner addition takes over these rules.
    fn absorbed(&mut self, node: usize, facts: &[Facts]) -> bool {
        let [Term::Node(below)] = *self.nodes[node].terms.as_slice() else { return false };
        let terms = self.terms(node, facts);
        let (own, inner) = (&self.nodes[node].adder, &self.nodes[below].adder);
        let (Output::Float { format, .. }, Output::Float { format: from, .. }) = (own.output, inner.output) else {
            return false;
        };
        if format != from || self.uses()[below] > 1 || !self.keeps_value(node, &terms) {
            return false;
        }
        let nan = if terms[0].nan.any() {
            match (terms[0].nan_bits, self.bits_by(node, &terms, NanCause::Value)) {
                (NanBits::Known(_, from), NanBits::Known(_, to)) if from == to => inner.nan.clone(),
                // A NaN by its own rules has these bits, but an overflow to NaN does not.
                (NanBits::Known(..), NanBits::Known(_, to)) => {
                    mxprobe_models::NanRules { operand: Some(to), value: Some(to), invalid: to, ..inner.nan.clone() }
                }
                // A quiet NaN stays unchanged.
                _ if own.nan.value.is_none() && self.is_quiet(below) => inner.nan.clone(),
                _ => return false,
            }
        } else {
            inner.nan.clone()
        };
        let zero = if own.zero == ZeroSign::Positive { ZeroSign::Positive } else { inner.zero };
        let mut joined = self.nodes[below].clone();
        (joined.adder.zero, joined.adder.nan) = (zero, nan);
        self.nodes[node] = joined;
        self.steps.insert("additions of one term that change nothing are left out");
        true
    }

    /// Whether every NaN that an addition gives has its quiet bit set.
    fn is_quiet(&self, node: usize) -> bool {
        let adder = &self.nodes[node].adder;
        let Output::Float { format, .. } = adder.output else { return false };
        let Some(quiet) = format.nan().filter(|_| format.infinity(false).is_some()) else { return false };
        let rules = &adder.nan;
        [rules.operand, rules.value, Some(rules.invalid)].iter().flatten().all(|bits| bits & quiet == quiet)
    }
}
