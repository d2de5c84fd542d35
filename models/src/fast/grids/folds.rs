//! Plans that add some products to a value again and again by the same rules, for which a kernel has no nodes to
//! interpret.

use super::{GridNode, GridOutput, GridTerm, GridWidth, MOST_PRODUCTS};
use crate::{
    adder::{Below, NanCause},
    fast::{simd::LEAST_UNIT_OF_VALUES, tree::Flush},
};

/// A plan whose nodes are folds: in each, sums of products of its own if there are any, a node that adds these, or the
/// products themselves, to the value, and perhaps a cut of the result.
#[derive(Clone, Debug)]
pub(crate) struct Folds {
    /// The number of sums in a fold, and of products in each of them; or of products, if there are no sums.
    pub sums: usize,
    pub products: usize,
    /// The k of the products of all folds, in order.
    pub terms: Vec<usize>,
    pub rules: FoldRules,
}

/// How all folds of a plan add. The unit of a fold is the largest of `2^(e − product_bits)` for the exponents e of its
/// products, `2^(e − value_bits)` for that of the value, and `2^least_unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoldRules {
    pub product_bits: i32,
    /// The bits below the largest exponent in sums of products.
    pub sum_bits: i32,
    pub value_bits: i32,
    pub least_unit: i32,
    /// Values of which nothing is left count as 0 if the unit is above this.
    pub ignored_above: i32,
    pub output: FoldOutput,
    /// The bits of an f32 that remain.
    pub mask: i32,
}

/// The format of a fold's result, to nearest even; zeros are positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldOutput {
    /// f32, whose subnormals become +0.
    Flushed,
    F32,
    F16,
}

/// A grid that covers exponents this low covers every exponent.
const NO_FLOOR: i32 = -1000;

impl Folds {
    /// Finds the folds of a plan, if all of its nodes belong to folds of one kind.
    pub(super) fn of(nodes: &[GridNode], plain_products: bool) -> Option<Self> {
        let is_sum = |node: &GridNode| node.output == GridOutput::Wide;
        let sums = nodes.iter().take_while(|node| is_sum(node)).count();
        let has_cut = nodes.get(sums + 1).is_some_and(|node| matches!(node.width, GridWidth::Cut(_)));
        Self::in_groups(nodes, sums, has_cut, plain_products)
    }

    fn in_groups(nodes: &[GridNode], sums: usize, has_cut: bool, plain_products: bool) -> Option<Self> {
        let length = sums + 1 + usize::from(has_cut);
        if !nodes.len().is_multiple_of(length) {
            return None;
        }
        let mut terms = Vec::new();
        let mut found: Option<(FoldRules, usize)> = None;
        for (index, group) in nodes.chunks_exact(length).enumerate() {
            let start = index * length;
            let value = if index == 0 { GridTerm::C } else { GridTerm::Value(start - 1) };
            let (of_sums, rest) = group.split_at(sums);
            let expected: Vec<GridTerm> = (start..start + sums).map(GridTerm::Sum).chain([value]).collect();
            let mut others = rest.first()?.others.clone();
            others.sort_by_key(|term| !matches!(term, GridTerm::Sum(_)));
            if others != expected {
                return None;
            }
            let with_products = if sums == 0 { &rest[..1] } else { of_sums };
            let products = with_products[0].products.len();
            if with_products.iter().any(|node| node.products.len() != products) {
                return None;
            }
            terms.extend(with_products.iter().flat_map(|node| &node.products).copied());
            let mut rules = FoldRules::of(&rest[0], of_sums, plain_products)?;
            if let Some(cut) = rest.get(1) {
                let GridWidth::Cut(mask) = cut.width else { return None };
                let is_plain = cut.others == [GridTerm::Value(start + sums)] && keeps_nan(cut);
                if !is_plain || cut.flush != Flush::None || cut.positive_zero {
                    return None;
                }
                rules.mask = mask;
            }
            if found.is_some_and(|found| found != (rules, products)) {
                return None;
            }
            found = Some((rules, products));
        }
        let (rules, products) = found?;
        (1..=MOST_PRODUCTS).contains(&products).then_some(Self { sums, products, terms, rules })
    }
}

/// Whether a NaN value stays itself, quieted, if no product is one.
fn keeps_nan(node: &GridNode) -> bool {
    node.quiet_values && node.nan.iter().any(|(cause, nan)| *cause == NanCause::Value && nan.is_none())
}

impl FoldRules {
    /// The rules of the node that adds to the value; `sums` are the sums that it adds.
    fn of(node: &GridNode, sums: &[GridNode], plain_products: bool) -> Option<Self> {
        let is_direct = sums.is_empty();
        let output = match (node.output, node.flush) {
            (GridOutput::F32 { toward_zero: false }, Flush::Positive) => FoldOutput::Flushed,
            (GridOutput::F32 { toward_zero: false }, Flush::None) => FoldOutput::F32,
            (GridOutput::F16, Flush::None) => FoldOutput::F16,
            _ => return None,
        };
        if node.width != GridWidth::Words || !node.positive_zero || node.product_overflow || !keeps_nan(node) {
            return None;
        }
        let ignored_above = match (is_direct, node.below, node.ignored) {
            // Values that lose all bits are 0 in any case.
            (true, Below::OnesComplement, None) => i32::MAX,
            (false, Below::Floor, Some((0, unless))) if node.products.is_empty() => unless.unwrap_or(i32::MIN / 2),
            _ => return None,
        };
        let mut sum_bits = None;
        for sum in sums {
            let [rule] = &sum.rules[..] else { return None };
            let is_bare = sum.width == GridWidth::Words && sum.others.is_empty() && !sum.product_overflow;
            let on_products = rule.products && !rule.leading && rule.floor < NO_FLOOR;
            let same = sum_bits.is_none_or(|bits| bits == rule.fraction_bits);
            if !is_bare || !on_products || !same || sum.below != Below::Floor {
                return None;
            }
            sum_bits = Some(rule.fraction_bits);
        }
        let is_sum = |at: &usize| matches!(node.others[*at], GridTerm::Sum(_));
        let (mut of_products, mut of_leading, mut of_value, mut least_unit) = (i32::MAX, i32::MAX, i32::MAX, i32::MIN);
        for rule in &node.rules {
            least_unit = least_unit.max(rule.floor - rule.fraction_bits);
            let covered = rule.others.iter().filter(|at| is_sum(at)).count();
            if covered != 0 && covered != sums.len() {
                return None;
            }
            let bits = rule.fraction_bits;
            match (rule.products || covered != 0, rule.leading) {
                (true, false) => of_products = of_products.min(bits),
                (true, true) if !is_direct => return None,
                (true, true) => of_leading = of_leading.min(bits),
                (false, _) => {}
            }
            if rule.others.iter().any(|at| !is_sum(at)) {
                if !rule.leading {
                    return None;
                }
                of_value = of_value.min(bits);
            }
        }
        let product_bits = of_products;
        let sum_bits = sum_bits.unwrap_or(product_bits);
        // The leading one of a product is at most one place above its exponent: rules on it with more bits do not matter.
        // An unrounded sum is only shifted down.
        let decides = product_bits < of_leading && product_bits <= sum_bits;
        // The significand of a value is shifted up.
        if !decides || !(23..=29).contains(&of_value) || !(1..=27).contains(&product_bits) || sum_bits > 27 {
            return None;
        }
        let count = i32::try_from(if is_direct { node.products.len() } else { sums.len() }).ok()?;
        // The kernel's units are 2^lowest or more, those of subnormal values.
        let lowest = -126 - of_value;
        let is_exact = least_unit >= lowest;
        // Otherwise the sum of products on a lower grid is tiny: each is below 2^(exponent + 2).
        let growth = i32::try_from(count.cast_unsigned().next_power_of_two().ilog2()).ok()?;
        let is_tiny = output == FoldOutput::Flushed && is_direct && growth + 1 + product_bits + lowest <= -126;
        if !(is_exact || is_tiny) || least_unit.max(lowest) < LEAST_UNIT_OF_VALUES {
            return None;
        }
        if is_direct {
            // The complements of zeros alone are a few units, which must not be seen.
            let seen = match output {
                FoldOutput::Flushed => -128,
                FoldOutput::F16 => -26,
                FoldOutput::F32 => return None,
            };
            if least_unit.max(lowest) + growth > seen {
                return None;
            }
        }
        // Powers of two that multiply plain products stay those of normal numbers.
        if plain_products && least_unit > 90 {
            return None;
        }
        Some(Self { product_bits, sum_bits, value_bits: of_value, least_unit, ignored_above, output, mask: -1 })
    }
}
