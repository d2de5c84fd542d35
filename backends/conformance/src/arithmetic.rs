//! Arithmetic faults. Each function changes a model, and returns whether there was anything to change.

use mxprobe_api::{Rounding, Subnormals};
use mxprobe_models::{Below, Exponent, Model, Output, Term};

pub(crate) fn fewer(model: &mut Model) -> bool {
    let mut changed = false;
    for adder in &mut model.adders {
        for rule in &mut adder.grid {
            rule.fraction_bits -= 1;
            changed = true;
        }
        if let (true, Output::Float { fraction_bits, .. }) = (adder.grid.is_empty(), &mut adder.output) {
            *fraction_bits -= 1;
            changed = true;
        }
    }
    changed
}

pub(crate) fn more(model: &mut Model) -> bool {
    let mut changed = false;
    for rule in model.adders.iter_mut().flat_map(|adder| &mut adder.grid) {
        rule.fraction_bits += 1;
        changed = true;
    }
    changed
}

pub(crate) fn floor(model: &mut Model) -> bool {
    let mut changed = false;
    for adder in &mut model.adders {
        if !adder.grid.is_empty() && adder.below == Below::Truncate {
            adder.below = Below::Floor;
            changed = true;
        }
    }
    changed
}

pub(crate) fn nearest(model: &mut Model) -> bool {
    let mut changed = false;
    for adder in &mut model.adders {
        if let Output::Float { rounding: rounding @ Rounding::TowardZero, .. } = &mut adder.output {
            *rounding = Rounding::NearestEven;
            changed = true;
        }
    }
    changed
}

pub(crate) fn payload_kept(model: &mut Model) -> bool {
    let mut changed = false;
    for adder in &mut model.adders {
        if adder.output_format().is_some_and(|format| format.infinity(false).is_some()) {
            changed |= adder.nan.operand.take().is_some() | adder.nan.value.take().is_some();
        }
    }
    changed
}

/// Rewrites the trees of all units; trees for which `rewrite` returns `None` are unchanged.
fn retree(model: &mut Model, rewrite: impl Fn(&str) -> Option<String>) -> bool {
    let mut changed = false;
    for unit in 0..model.units.len() {
        let Some(tree) = rewrite(&model.units[unit].tree) else { continue };
        changed |= model.set_tree(unit, &tree).is_ok();
    }
    changed
}

/// Changes `fold(c, all/N, X(…, acc))` and `X(all, c)`: they sum from +0, and X then adds c.
pub(crate) fn c_outside(model: &mut Model) -> bool {
    retree(model, |tree| {
        if let Some(rest) = tree.strip_prefix("fold(c,") {
            // The body follows `/N, `.
            let (_, body) = rest.split_once('/')?.1.split_once(',')?;
            let adder = body.split_once('(')?.0.trim();
            return Some(format!("{adder}(fold(+0,{rest}, c)"));
        }
        let adder = tree.strip_suffix("(all, c)")?;
        Some(format!("{adder}({adder}(all), c)"))
    })
}

/// Changes `…/N` with N of at least 2 to N/2, and `X(all, c)` to a chain of pairs.
pub(crate) fn half_block(model: &mut Model) -> bool {
    retree(model, |tree| {
        if let Some(adder) = tree.strip_suffix("(all, c)") {
            return Some(format!("fold(c, all/2, {adder}(all, acc))"));
        }
        let (head, rest) = tree.split_once("all/")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let group: usize = rest[..digits].parse().ok().filter(|group| *group >= 2)?;
        Some(format!("{head}all/{}{}", group / 2, &rest[digits..]))
    })
}

/// Changes `fold(c, all/N, X(all, acc))`: every product first goes through an adder of its own, which rounds it.
pub(crate) fn product_rounded(model: &mut Model) -> bool {
    let mut changed = false;
    for unit in 0..model.units.len() {
        let of_unit = &model.units[unit];
        let Some(id) = of_unit.operations.first().cloned() else { continue };
        let Some(node) = of_unit.plan(id.shape.sizes().2).and_then(|plan| plan.nodes.last().cloned()) else { continue };
        let tree = of_unit.tree.clone();
        let mut rounder = model.adders[node.adder].clone();
        let Output::Float { format, overflow, .. } = rounder.output else { continue };
        rounder.name = format!("product-{unit}");
        rounder.grid.clear();
        (rounder.carry_bits, rounder.ignored_values, rounder.normalised_fraction_bits) = (None, None, None);
        rounder.output = Output::Float {
            format,
            fraction_bits: id.a.fraction_bits().clamp(1, format.fraction_bits()),
            rounding: Rounding::NearestEven,
            overflow,
            subnormals: Subnormals::Keep,
        };
        let group = tree
            .split_once("all/")
            .and_then(|(_, rest)| rest.split_once(','))
            .and_then(|(group, _)| group.parse().ok());
        let Some((group, head)) = group.zip(tree.split_once("(all, acc)").map(|(head, _)| head.to_owned())) else {
            continue;
        };
        let group: usize = group;
        let products: Vec<String> = (0..group).map(|index| format!("{}({index})", rounder.name)).collect();
        model.adders.push(rounder);
        changed |= model.set_tree(unit, &format!("{head}({}, acc))", products.join(", "))).is_ok();
    }
    changed
}

/// Gives each adder that aligns products by their operands' exponents one carry bit too few: its largest sum has its
/// leading bit at log2(Σ largest significands). Adders of unrounded sums are unchanged, as these have no largest
/// significand.
pub(crate) fn carry_short(model: &mut Model) -> bool {
    let mut shortest: Vec<Option<u32>> = vec![None; model.adders.len()];
    for unit in &model.units {
        for id in &unit.operations {
            let Some(plan) = unit.plan(id.shape.sizes().2) else { continue };
            let longest = |bits: u32| 2.0 - (-f64::from(bits)).exp2();
            let product = longest(id.a.fraction_bits()) * longest(id.b.fraction_bits());
            for node in &plan.nodes {
                let by_operands = model.adders[node.adder].grid.iter().any(|rule| rule.exponent == Exponent::Operands);
                let of = |term: &Term| match term {
                    Term::Product(_) => product,
                    Term::PositiveZero => 0.0,
                    _ => longest(id.c.fraction_bits().min(30)),
                };
                let is_wide = |term: &Term| matches!(term, Term::Node(at) if model.adders[plan.nodes[*at].adder].output == Output::Wide);
                let leading = node.terms.iter().map(of).sum::<f64>().log2().floor();
                if !by_operands || leading < 1.0 || node.terms.iter().any(is_wide) {
                    continue;
                }
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to some tens")]
                let short = leading as u32 - 1;
                let slot = &mut shortest[node.adder];
                *slot = Some(slot.map_or(short, |other| other.max(short)));
            }
        }
    }
    for (adder, short) in model.adders.iter_mut().zip(&shortest) {
        adder.carry_bits = short.or(adder.carry_bits);
    }
    shortest.iter().any(Option::is_some)
}
