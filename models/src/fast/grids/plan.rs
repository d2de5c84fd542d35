//! Deciding which plans are sums on grids that the lanes can hold.

use std::sync::Arc;

use mxprobe_api::{Format, OperationId, Subnormals};

use super::{
    Context, ExactFolds, Folds, GridNode, GridOutput, GridRule, GridTerm, GridWidth, GridsPlan, MOST_NODES,
    MOST_PRODUCTS, Normalised,
};
use crate::{
    adder::{Adder, Below, NanCause, Output, Scale, ZeroSign},
    fast::{
        operand::{ABSENT, Operand},
        simd::LEAST_UNIT_OF_VALUES,
        sums::{SumNode, SumOutput, SumTerm, SumsPlan},
        tree::Flush,
    },
    model::Unit,
    tree::Plan,
};

fn narrow(value: i64) -> i32 {
    i32::try_from(value.clamp(2 * i64::from(ABSENT), 1 << 20)).unwrap_or(0)
}

/// Whether the exponents of the factors are those of f16 or fewer, so that products are normal f32.
fn are_plain(id: &OperationId) -> bool {
    [id.a, id.b].iter().all(|format| format.as_float().is_some_and(|float| float.exponent_bits <= 5))
}

/// `2^x`.
fn power(x: i32) -> f64 {
    f64::from(x).exp2()
}

/// Converts a NaN of f32, f16 or bf16 to the f32 NaN that narrows to it.
fn nan_as_f32(format: Format, bits: u64) -> Option<i32> {
    let bits = u32::try_from(bits).ok()?;
    let wide = match format {
        Format::F32 => bits,
        Format::BF16 => bits << 16,
        Format::F16 => (bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x3ff) << 13,
        _ => return None,
    };
    (wide & 0x7fff_ffff > 0x7f80_0000).then_some(wide.cast_signed())
}

impl GridsPlan {
    /// Compiles a plan to sums in these lanes, if all of its nodes fit.
    pub(in crate::fast) fn of(
        sums: &SumsPlan,
        adders: &[Arc<Adder>],
        unit: &Unit,
        plan: &Plan,
        id: &OperationId,
    ) -> Option<Self> {
        if plan.nodes.len() > MOST_NODES || id.a.fraction_bits() + id.b.fraction_bits() > 22 {
            return None;
        }
        let operand = |format: Format, flush: bool| Operand::new(format, flush, unit.flush.to_positive);
        let (a, b) = (operand(id.a, unit.flush.a)?, operand(id.b, unit.flush.b)?);
        if !matches!(id.c, Format::F32 | Format::F16 | Format::BF16) {
            return None;
        }
        let mut nodes: Vec<GridNode> = Vec::new();
        let mut masks = 0;
        for (index, sum) in sums.nodes.iter().enumerate() {
            let mut node = Self::node(sums, sum, &nodes, &adders[plan.nodes[index].adder], id)?;
            if node.width == GridWidth::Exact {
                node.mask = masks;
                masks += 1;
            }
            nodes.push(node);
        }
        for index in 0..nodes.len() {
            let is_term = nodes.iter().any(|node| node.others.contains(&GridTerm::Value(index)));
            if is_term {
                let format = adders[plan.nodes[index].adder].float_format()?;
                nodes[index].read_again = Some(format.as_float()?.min_exponent());
            }
        }
        // Values and significands cannot be packed side by side.
        let exact = nodes.iter().filter(|node| node.width == GridWidth::Exact).count();
        let with_products = nodes.iter().filter(|node| !node.products.is_empty()).count();
        if exact != 0 && exact != with_products {
            return None;
        }
        let context = Context {
            len: sums.context.len,
            blocks: sums.context.blocks,
            masks,
            plain_products: are_plain(id),
            least: narrow(sums.context.least),
            flush_c: sums.context.flush_c,
        };
        let has_scales = sums.scale.is_some() || masks > 0;
        let folds = if has_scales { None } else { Folds::of(&nodes, context.plain_products) };
        let fraction_bits = [id.a.fraction_bits(), id.b.fraction_bits()];
        let exact = if has_scales { None } else { ExactFolds::of(&nodes, context.flush_c, fraction_bits) };
        Some(Self { nodes, a, b, c: id.c, d: id.d, scale: sums.scale, context, folds, exact })
    }

    fn node(sums: &SumsPlan, sum: &SumNode, before: &[GridNode], adder: &Adder, id: &OperationId) -> Option<GridNode> {
        let mut products = Vec::new();
        let mut others = Vec::new();
        for term in &sum.terms {
            match *term {
                SumTerm::Product(k) => products.push(k),
                SumTerm::C => others.push(GridTerm::C),
                SumTerm::Node(index, true) => others.push(GridTerm::Value(index)),
                SumTerm::Node(index, false) if before[index].width == GridWidth::Exact => {
                    others.push(GridTerm::Group(index));
                }
                SumTerm::Node(index, false) => others.push(GridTerm::Sum(index)),
            }
        }
        if sum.scales_products && !products.is_empty() {
            return None;
        }
        let is_value = |term: &GridTerm| matches!(term, GridTerm::C | GridTerm::Value(_));
        let values = others.iter().filter(|term| is_value(term)).count();
        // Products have no index in a rule; the other terms are numbered among themselves.
        let number = |at: usize| sum.terms[..at].iter().filter(|term| !matches!(term, SumTerm::Product(_))).count();
        let rules: Vec<GridRule> = sum
            .rules
            .iter()
            .map(|rule| GridRule {
                products: rule.terms.iter().any(|at| matches!(sum.terms[*at], SumTerm::Product(_))),
                others: rule
                    .terms
                    .iter()
                    .filter(|at| !matches!(sum.terms[**at], SumTerm::Product(_)))
                    .map(|at| number(*at))
                    .collect(),
                leading: rule.leading,
                fraction_bits: narrow(rule.fraction_bits),
                floor: narrow(rule.floor),
            })
            .collect();
        let leads = rules.iter().any(|rule| rule.leading && rule.products);
        // The leading one of a value is read from its exponent, so the value must be a normal f32 if that matters.
        let c_is_normal = sums.context.flush_c != Flush::None || id.c == Format::F16;
        let is_normal = |term: &GridTerm| Self::is_normal(*term, before, c_is_normal);
        let is_readable = |rule: &GridRule| {
            !rule.leading
                || rule
                    .others
                    .iter()
                    .all(|at| is_normal(&others[*at]) || (is_value(&others[*at]) && rule.floor >= -126))
        };
        if !rules.iter().all(is_readable) || products.len() > MOST_PRODUCTS {
            return None;
        }
        // A subnormal value may place the grid near itself, and another value anywhere.
        let has_value = |rule: &&GridRule| rule.others.iter().any(|at| is_value(&others[*at]));
        let by_itself = rules.iter().filter(has_value).map(|rule| -126 - rule.fraction_bits).max();
        let all_normal = others.iter().filter(|term| is_value(term)).all(is_normal);
        if !all_normal && !Self::ignores_surely(sum, (values, by_itself), &rules, id) {
            return None;
        }
        let least_kept = rules.iter().map(|rule| rule.floor - rule.fraction_bits).max().unwrap_or(2 * ABSENT);
        let flush = match adder.output {
            Output::Float { subnormals, .. } => match subnormals {
                Subnormals::Keep => Flush::None,
                Subnormals::FlushToPositiveZero => Flush::Positive,
                _ => Flush::Signed,
            },
            _ => Flush::None,
        };
        let positive_zero = adder.zero == ZeroSign::Positive;
        if flush == Flush::Positive && !positive_zero {
            return None;
        }
        let width = Self::width(sum, (&products, &others), &rules, before, adder)?;
        let output = match (sum.output, adder.output) {
            (SumOutput::Wide, _) => GridOutput::Wide,
            (_, Output::Float { .. }) if matches!(width, GridWidth::Cut(_)) => GridOutput::F32 { toward_zero: false },
            (SumOutput::Float { nearest, .. }, Output::Float { format, fraction_bits, .. }) => {
                let becomes_infinite = adder.becomes_infinite();
                match (format, nearest) {
                    (Format::F32, true) if fraction_bits == 23 && becomes_infinite => {
                        GridOutput::F32 { toward_zero: false }
                    }
                    (Format::F32, false) if fraction_bits == 23 => GridOutput::F32 { toward_zero: true },
                    (Format::F16, true)
                        if fraction_bits == 10
                            && becomes_infinite
                            && flush == Flush::None
                            && are_plain(id)
                            && id.c == Format::F16
                            && width == GridWidth::Words =>
                    {
                        GridOutput::F16
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        if width == GridWidth::Words && values > 0 {
            // Bits below the lowest unit must not matter.
            let vanishes = output != GridOutput::Wide && positive_zero;
            if !vanishes && least_kept < LEAST_UNIT_OF_VALUES {
                return None;
            }
        }
        if width == GridWidth::Cascade && output != (GridOutput::F32 { toward_zero: false }) {
            return None;
        }
        // A sum in words cannot tell that all its terms were −0. Sums in f64 can, unless they cut a negative value to
        // −0. An unrounded sum among the terms is +0 if it is cut to nothing, and then the total is +0 too.
        if width == GridWidth::Words && output != GridOutput::Wide && !positive_zero {
            return None;
        }
        if width == GridWidth::Doubles
            && (output == GridOutput::Wide || !(positive_zero || values < others.len() || adder.below == Below::Floor))
        {
            return None;
        }
        let format = adder.float_format().unwrap_or(Format::F32);
        let word = |bits: Option<u64>| bits.map(|bits| nan_as_f32(format, bits));
        let mut nan = Vec::new();
        for cause in &adder.nan.order {
            let word = match cause {
                NanCause::Operand => word(adder.nan.operand),
                // Kernels do not tell a NaN in B from one in A.
                NanCause::B => return None,
                NanCause::Value => word(adder.nan.value),
                NanCause::Invalid => word(Some(adder.nan.invalid)),
            };
            let word = if output == GridOutput::Wide { None } else { word };
            nan.push((*cause, if let Some(word) = word { Some(word?) } else { None }));
        }
        let (last, first) = (products.last().copied().unwrap_or(0), products.first().copied().unwrap_or(0));
        let scale_block = first / sums.context.block.max(1);
        if width == GridWidth::Exact {
            let has_specials = |format: Format| format.nan().is_some() || format.infinity(false).is_some();
            let one_block = products.iter().all(|k| k / sums.context.block == scale_block) && last >= first;
            if !one_block || has_specials(id.a) || has_specials(id.b) || products.len() > 31 {
                return None;
            }
        }
        let others_count = others.len();
        let exponents_lead = others.iter().all(|term| match *term {
            GridTerm::C => sums.context.least == -126,
            GridTerm::Value(index) => matches!(before[index].output, GridOutput::F32 { .. }),
            GridTerm::Sum(_) | GridTerm::Group(_) => true,
        });
        Some(GridNode {
            width,
            exponents_lead,
            product_count: i32::try_from(products.len()).unwrap_or(0),
            products,
            others,
            rules,
            leads,
            least_unit: (width == GridWidth::Words && values > 0).then_some(LEAST_UNIT_OF_VALUES),
            below: sum.below,
            value_cut_bits: narrow(sum.value_cut_bits),
            value_cut_unit: power(narrow(sum.value_cut_bits)),
            ignored: sum.ignored.map(|(below, unless)| (narrow(below), unless.map(narrow))),
            normalised: sum.normalised.map(|(bits, floor)| Normalised {
                least_unit: narrow(floor - bits),
                last_place: power(-narrow(bits)),
                floors: sum.normalised_floors,
            }),
            product_overflow: sum.product_overflow,
            output,
            flush,
            positive_zero,
            read_again: None,
            scale_block,
            mask: 0,
            nan,
            quiet_operands: adder.nan.operand.is_none()
                && output == (GridOutput::F32 { toward_zero: false })
                && values == others_count
                && matches!(id.a, Format::F16 | Format::BF16)
                && matches!(id.b, Format::F16 | Format::BF16),
            quiet_values: values == 1,
        })
    }

    /// Whether a term is a value that is 0 or a normal f32.
    fn is_normal(term: GridTerm, before: &[GridNode], c_is_normal: bool) -> bool {
        match term {
            GridTerm::C => c_is_normal,
            GridTerm::Value(index) => {
                let node = &before[index];
                let is_cut = matches!(node.width, GridWidth::Cut(_));
                node.flush != Flush::None
                    || node.output == GridOutput::F16
                    || (is_cut && Self::is_normal(node.others[0], before, c_is_normal))
            }
            GridTerm::Sum(_) | GridTerm::Group(_) => false,
        }
    }

    /// Whether no subnormal value, whose leading one is unknown, is near the exponent below which it counts as 0.
    /// `by_itself` is the unit if only a subnormal one of the `values` places the grid.
    fn ignores_surely(
        sum: &SumNode,
        (values, by_itself): (usize, Option<i32>),
        rules: &[GridRule],
        id: &OperationId,
    ) -> bool {
        let Some((below, unless)) = sum.ignored else { return true };
        let lowest = |unit: i64| unit + sum.value_cut_bits - below;
        if unless.is_some_and(|at_most| lowest(at_most + 1) >= -126) {
            return true;
        }
        if unless.is_some() || by_itself.is_some() && values > 1 {
            return false;
        }
        // Either no product and no value is small enough, or there is one with small exponents and every
        // subnormal is.
        let of_floors = rules.iter().map(|rule| rule.floor - rule.fraction_bits);
        let least = i64::from(of_floors.chain(by_itself).max().unwrap_or(0));
        let most_kept = rules.iter().map(|rule| i64::from(rule.fraction_bits)).max().unwrap_or(0);
        let of_product: i64 = [id.a, id.b]
            .iter()
            .map(|format| format.as_float().map_or(-1000, |float| i64::from(float.min_exponent())))
            .sum();
        lowest(least) <= -149 && lowest(of_product - most_kept) >= -126
    }

    /// How a node is added, if these lanes can add it.
    fn width(
        sum: &SumNode,
        (products, others): (&[usize], &[GridTerm]),
        rules: &[GridRule],
        before: &[GridNode],
        adder: &Adder,
    ) -> Option<GridWidth> {
        let values = others.iter().filter(|term| matches!(term, GridTerm::C | GridTerm::Value(_))).count();
        if rules.is_empty() {
            if sum.scales_sum {
                let fits = others.is_empty() && adder.scale == Scale::Sum && sum.width <= 24;
                return (fits && matches!(sum.output, SumOutput::Wide)).then_some(GridWidth::Exact);
            }
            if sum.without_grid {
                let fits = values == others.len() && products.len() + values <= MOST_PRODUCTS;
                return fits.then_some(GridWidth::Cascade);
            }
            let SumOutput::Float { fraction_bits, least: -126, nearest: false, flush: false, .. } = sum.output else {
                return None;
            };
            return (values == 1 && others.len() == 1 && products.is_empty())
                .then_some(GridWidth::Cut(-1 << (23 - narrow(fraction_bits))));
        }
        let is_bare = sum.value_cut_bits == 0 && sum.normalised.is_none();
        // A sum is only ever shifted down: its own grid keeps at least as many bits as this one.
        let goes_down = |at: usize, index: usize| {
            let kept = before[index].rules.iter().map(|rule| rule.fraction_bits).min().unwrap_or(0);
            before[index].width == GridWidth::Words
                && rules.iter().any(|rule| !rule.leading && rule.others.contains(&at) && rule.fraction_bits <= kept)
        };
        let sums_go_down = others.iter().enumerate().all(|(at, term)| match *term {
            GridTerm::Sum(index) => sum.below == Below::Floor && goes_down(at, index),
            GridTerm::Group(_) => false,
            GridTerm::C | GridTerm::Value(_) => true,
        });
        let small_are_ignored =
            sum.ignored.is_some_and(|(below, unless)| below <= 0 && unless.is_none_or(|at_most| at_most <= 0));
        let below_fits = match sum.below {
            Below::Floor => values == 0 || small_are_ignored,
            Below::OnesComplement => values == 1 && others.len() == 1 && sum.ignored.is_none(),
            _ => true,
        };
        if sum.width <= 31 && is_bare && sums_go_down && below_fits {
            return Some(GridWidth::Words);
        }
        let in_doubles = products.is_empty() && matches!(sum.below, Below::Truncate | Below::Floor);
        in_doubles.then_some(GridWidth::Doubles)
    }
}
