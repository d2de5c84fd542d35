//! Rows of a summary, read from the findings of an operation, and whether two operations can share one.

use serde_json::Value;

use super::class;
use crate::{
    in_order::InOrder,
    record::{AtOnce, BitsKept, OperationReport, SummaryRow},
};

/// Builds the row of one operation.
pub(super) fn row(report: &OperationReport) -> SummaryRow {
    let id = &report.operation.id;
    let value = |probe: &str| report.finding(probe)?.value.as_ref();
    let word = |probe: &str| value(probe).and_then(Value::as_str).map(str::to_owned);
    let is_integer = id.is_integer();
    let exact_sums = is_integer && value("integers.exact").and_then(Value::as_bool) == Some(true);
    let fraction = number(value("rounding.fraction_bits"));
    let kept = value("alignment.fraction_bits");
    SummaryRow {
        inputs: class::inputs(id),
        result: id.d.name().to_owned(),
        families: vec![id.family.clone()],
        shape: None,
        unit: class::unit(id),
        products_at_once: match number(value("order.products_at_once")) {
            None => exact_sums.then_some(AtOnce::All),
            Some(products) => Some(AtOnce::Products(products)),
        },
        bits_kept: if exact_sums { Some(BitsKept::Exact) } else { kept.and_then(bits_kept) },
        dropped: word("alignment.below"),
        rounding: word("rounding.result"),
        result_bits: fraction.filter(|bits| !is_integer && *bits < id.d.fraction_bits()),
        rounded_to_bits: number(kept.and_then(|kept| kept.get("rounded_to_bits"))),
        overflow: word("integers.overflow"),
        modes: class::modes(id),
        operations: vec![id.clone()],
    }
}

fn number(value: Option<&Value>) -> Option<u32> {
    value?.as_u64()?.try_into().ok()
}

/// Parses `alignment.fraction_bits`: a number, exact sums that are then rounded, or no loss as far as could be
/// observed.
fn bits_kept(value: &Value) -> Option<BitsKept> {
    if let Some(bits) = number(Some(value)) {
        return Some(BitsKept::Bits(bits));
    }
    match (number(value.get("exact_over")), value.get("rounded_to_bits")) {
        (Some(_), Some(_)) => Some(BitsKept::Exact),
        (over, _) => over.map(BitsKept::AtLeast),
    }
}

impl SummaryRow {
    /// Counts the known answers.
    pub(super) fn known(&self) -> usize {
        let kept = matches!(self.bits_kept, Some(BitsKept::Bits(_) | BitsKept::Exact));
        let words = [&self.dropped, &self.rounding, &self.overflow];
        usize::from(kept) + words.iter().filter(|word| word.is_some()).count()
    }

    /// Returns the sort key of the row's inputs in tables.
    #[must_use]
    pub fn place(&self) -> impl Ord {
        self.inputs.first().map(|kind| class::place(kind))
    }

    /// Whether these are shapes that add one product at a time although others with the same inputs add several, as
    /// scalar instructions do in place of the matrix unit. Readers do not look for these first.
    #[must_use]
    pub fn is_minor(&self) -> bool {
        self.shape.is_some() && self.products_at_once == Some(AtOnce::Products(1))
    }

    /// Whether no answers contradict each other: an answer that one side lacks is taken from the other.
    pub(super) fn is_compatible(&self, other: &Self) -> bool {
        fn agree<T: PartialEq>(left: Option<&T>, right: Option<&T>) -> bool {
            left.zip(right).is_none_or(|(left, right)| left == right)
        }
        let kept = match (self.bits_kept, other.bits_kept) {
            (Some(BitsKept::AtLeast(least)), Some(BitsKept::Bits(bits)))
            | (Some(BitsKept::Bits(bits)), Some(BitsKept::AtLeast(least))) => least <= bits,
            (Some(BitsKept::AtLeast(_)), Some(BitsKept::AtLeast(_))) => true,
            (left, right) => agree(left.as_ref(), right.as_ref()),
        };
        let rounded = self.rounding.is_some() && other.rounding.is_some();
        kept && (!rounded || self.result_bits == other.result_bits)
            && self.is_grouped_alike(other)
            && agree(self.dropped.as_ref(), other.dropped.as_ref())
            && agree(self.rounding.as_ref(), other.rounding.as_ref())
            && agree(self.overflow.as_ref(), other.overflow.as_ref())
            && agree(self.rounded_to_bits.as_ref(), other.rounded_to_bits.as_ref())
    }

    /// Whether the numbers of products added at once may be those of one unit: they are equal, or the same part of k, or
    /// the smaller one is all of its k.
    pub(super) fn is_grouped_alike(&self, other: &Self) -> bool {
        let (Some(AtOnce::Products(own)), Some(AtOnce::Products(others))) =
            (self.products_at_once, other.products_at_once)
        else {
            return true;
        };
        let longest = |row: &Self| row.operations.iter().map(|id| id.shape.k).max().unwrap_or(0);
        let ((few, of_few), (many, of_many)) = if own < others {
            ((own, longest(self)), (others, longest(other)))
        } else {
            ((others, longest(other)), (own, longest(self)))
        };
        few == many || of_few <= few || u64::from(few) * u64::from(of_many) == u64::from(many) * u64::from(of_few)
    }

    /// Whether all answers are the same, except for the number of products added at once.
    pub(super) fn is_equal_but_for_grouping(&self, other: &Self) -> bool {
        self.bits_kept == other.bits_kept
            && self.dropped == other.dropped
            && self.rounding == other.rounding
            && self.result_bits == other.result_bits
            && self.rounded_to_bits == other.rounded_to_bits
            && self.overflow == other.overflow
    }

    /// Merges the operations of another row into this one, with the answers that this one lacks.
    pub(super) fn absorb(&mut self, other: Self) {
        self.products_at_once = match (self.products_at_once, other.products_at_once) {
            (Some(AtOnce::Products(left)), Some(AtOnce::Products(right))) => Some(AtOnce::Products(left.max(right))),
            (left, right) => left.or(right),
        };
        self.bits_kept = match (self.bits_kept, other.bits_kept) {
            (Some(BitsKept::AtLeast(left)), Some(BitsKept::AtLeast(right))) => Some(BitsKept::AtLeast(left.max(right))),
            (Some(BitsKept::AtLeast(_)) | None, Some(right)) => Some(right),
            (left, _) => left,
        };
        self.dropped = self.dropped.take().or(other.dropped);
        self.rounding = self.rounding.take().or(other.rounding);
        self.result_bits = self.result_bits.or(other.result_bits);
        self.rounded_to_bits = self.rounded_to_bits.or(other.rounded_to_bits);
        self.overflow = self.overflow.take().or(other.overflow);
        extend(&mut self.families, other.families);
        extend(&mut self.modes, other.modes);
        extend(&mut self.inputs, other.inputs);
        self.inputs.order_by_key(|kind| class::place(kind));
        extend(&mut self.operations, other.operations);
    }
}

fn extend<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}
