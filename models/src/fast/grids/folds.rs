//! Plans that add some products to a value again and again by the same rules, for which a kernel has no nodes to
//! interpret.

use super::{
    FoldKind, FoldOutput, FoldRules, Folds, GridNode, GridOutput, GridTerm, GridWidth, MOST_PRODUCTS, Normalised,
};
use crate::{
    adder::{Below, NanCause},
    fast::tree::Flush,
};

/// A grid that covers exponents this low covers every exponent.
const NO_FLOOR: i32 = -1000;

impl Folds {
    /// Finds the folds of a plan, if all of its nodes belong to folds of one kind.
    pub(super) fn of(nodes: &[GridNode], plain_products: bool) -> Option<Self> {
        let wide = nodes.iter().take_while(|node| node.output == GridOutput::Wide).count();
        let has_pair = wide > 0 && nodes[wide - 1].products.is_empty();
        let sums = wide - usize::from(has_pair);
        let has_cut = nodes.get(wide + 1).is_some_and(|node| matches!(node.width, GridWidth::Cut(_)));
        Self::in_groups(nodes, (sums, has_pair, has_cut), plain_products)
    }

    fn in_groups(
        nodes: &[GridNode],
        (sums, has_pair, has_cut): (usize, bool, bool),
        plain_products: bool,
    ) -> Option<Self> {
        let length = sums + usize::from(has_pair) + 1 + usize::from(has_cut);
        if !nodes.len().is_multiple_of(length) {
            return None;
        }
        let mut terms = Vec::new();
        let mut found: Option<(FoldRules, usize)> = None;
        for (index, group) in nodes.chunks_exact(length).enumerate() {
            let start = index * length;
            let value = if index == 0 { GridTerm::C } else { GridTerm::Value(start - 1) };
            let (of_sums, rest) = group.split_at(sums);
            let mut all: Vec<GridTerm> = (start..start + sums).map(GridTerm::Sum).collect();
            let (pair, rest) = rest.split_at(usize::from(has_pair));
            if let Some(pair) = pair.first() {
                if pair.others != all {
                    return None;
                }
                all = vec![GridTerm::Sum(start + sums)];
            }
            all.push(value);
            let mut others = rest.first()?.others.clone();
            others.sort_by_key(|term| !matches!(term, GridTerm::Sum(_)));
            if others != all {
                return None;
            }
            let with_products = if sums == 0 { &rest[..1] } else { of_sums };
            let products = with_products[0].products.len();
            if with_products.iter().any(|node| node.products.len() != products) {
                return None;
            }
            terms.extend(with_products.iter().flat_map(|node| &node.products).copied());
            let mut rules = match rest[0].width {
                GridWidth::Doubles => FoldRules::in_doubles(&rest[0], of_sums, pair.first())?,
                _ if has_pair => return None,
                _ => FoldRules::of(&rest[0], of_sums, plain_products)?,
            };
            if let Some(cut) = rest.get(1) {
                let GridWidth::Cut(mask) = cut.width else { return None };
                let is_plain = cut.others == [GridTerm::Value(start + length - 2)] && keeps_nan(cut);
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
        let kind = match nodes[sums + usize::from(has_pair)].width {
            GridWidth::Doubles => FoldKind::Doubles,
            _ if sums == 0 => FoldKind::Direct,
            _ => FoldKind::Words,
        };
        (1..=MOST_PRODUCTS).contains(&products).then_some(Self { kind, sums, products, terms, rules })
    }
}

/// Whether a sum has one grid, for its terms alone, which are all products or all sums.
fn is_plain_sum(sum: &GridNode) -> bool {
    let [rule] = &sum.rules[..] else { return false };
    let covers_all = rule.products == sum.others.is_empty() && rule.others.len() == sum.others.len();
    covers_all && sum.width == GridWidth::Words && !rule.leading && rule.floor < NO_FLOOR
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
            let same = sum_bits.is_none_or(|bits| bits == rule.fraction_bits);
            if !is_plain_sum(sum) || sum.product_overflow || !same || sum.below != Below::Floor {
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
        if !(is_exact || is_tiny) {
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
        Some(Self {
            product_bits,
            sum_bits,
            value_bits: of_value,
            least_unit,
            ignored_below: 0,
            ignored_above,
            low_bits: 0,
            normalised: 0,
            largest: 1000,
            nan: None,
            output,
            mask: -1,
        })
    }

    /// The rules of a node in f64 that adds one sum to the value; `pair` is the sum of several sums.
    fn in_doubles(node: &GridNode, sums: &[GridNode], pair: Option<&GridNode>) -> Option<Self> {
        let to_f32 = node.output == (GridOutput::F32 { toward_zero: false }) && node.flush == Flush::None;
        if !to_f32 || node.positive_zero || node.below != Below::Floor || (sums.len() == 1) != pair.is_none() {
            return None;
        }
        let [rule] = &node.rules[..] else { return None };
        let Normalised { least_unit, last_place, floors: true } = node.normalised? else { return None };
        if rule.leading || rule.others.len() != node.others.len() || rule.floor != -126 {
            return None;
        }
        let bits_of = |sum: &GridNode| is_plain_sum(sum).then(|| sum.rules[0].fraction_bits);
        let sum_bits = bits_of(sums.first()?)?;
        let alike = |sum: &GridNode| bits_of(sum) == Some(sum_bits) && sum.below == Below::Truncate;
        let product_bits = match pair {
            Some(pair) if pair.below == Below::Floor => bits_of(pair)?,
            Some(_) => return None,
            None => sum_bits,
        };
        let (low_bits, value_bits) = (node.value_cut_bits, rule.fraction_bits - node.value_cut_bits);
        // Of a sum, as many bits are kept as of the value, and then the low ones.
        if !sums.iter().all(alike) || product_bits > sum_bits || product_bits != value_bits {
            return None;
        }
        let kept = (0..=48).find(|bits| f64::from(-bits).exp2() <= last_place)?;
        if !(1..=8).contains(&low_bits) || !(23..=27).contains(&value_bits) || kept < 24 {
            return None;
        }
        // Below the normal numbers, where the last place that is kept stays the same, the kernel computes values alone.
        if least_unit > -126 - kept {
            return None;
        }
        // Sums and the whole units of the value stay in words.
        let count: usize = sums.iter().map(|sum| sum.products.len()).sum();
        if count.next_power_of_two().ilog2().cast_signed() + 2 + sum_bits > 30 {
            return None;
        }
        let ignored_below = match node.ignored {
            None => i32::MAX,
            // Counted from the unit of the value.
            Some((below, None)) if (0..=30).contains(&below) => below,
            Some(_) => return None,
        };
        let nan = match node.nan.iter().find(|(cause, _)| *cause == NanCause::Value)? {
            (_, Some(nan)) => Some(*nan),
            (_, None) if node.quiet_values => None,
            _ => return None,
        };
        Some(Self {
            product_bits,
            sum_bits,
            value_bits,
            least_unit: -126 - value_bits,
            ignored_below,
            ignored_above: i32::MIN / 2,
            low_bits,
            normalised: (1 << (52 - kept)) - 1,
            largest: if sums.iter().any(|sum| sum.product_overflow) { 126 } else { 1000 },
            nan,
            output: FoldOutput::F32,
            mask: -1,
        })
    }
}
