//! A closed form for the number of carry bits that a sum can need.
//!
//! On a grid of F fraction bits below the largest exponent E, a term is a multiple of 2^(E−F). A term of exponent E has
//! the magnitude of its significand, at most M; one of a lower exponent is smaller, even after rounding. So no sum of
//! the terms is larger in magnitude than the sum S of all M, and a register of F + 1 + L magnitude bits holds it if S <
//! 2^(F+1+L). Terms of one exponent with the largest significands attain S, so fewer bits do not suffice.

use mxprobe_api::{Format, OperationId};
use mxprobe_models::{Adder, Below, Class, Exponent, PlanNode, Scale, Term};

/// The most fraction bits of operands whose significands are all enumerated.
const NARROW_BITS: u32 = 12;

/// The smallest number of carry bits with which no sum of a node wraps. For exponents of leading bits and operands of
/// more than 12 fraction bits, for scaled operands and for terms that are unrounded sums, it is a number that suffices.
///
/// Returns `None` if the closed form does not apply: there are several grids, c is cut further, unrounded sums are not
/// exact, operands are integers, or sums are scaled.
#[must_use]
pub fn sufficient_carry_bits(
    adder: &Adder,
    node: &PlanNode,
    id: &OperationId,
    adders: &[Adder],
    nodes: &[PlanNode],
) -> Option<u32> {
    let [rule] = adder.grid.as_slice() else { return None };
    if rule.terms != Class::All || adder.value_cut_bits != 0 || adder.scale == Scale::Sum && id.block_scale().is_some()
    {
        return None;
    }
    // The largest significand of a format, and its fraction bits.
    let significand = |format: Format| -> Option<(u128, u32)> {
        let float = format.as_float()?;
        Some(((2 << float.fraction_bits) - 1, float.fraction_bits))
    };
    let mut sum: u128 = 0;
    for term in &node.terms {
        let (largest, fraction_bits) = match term {
            Term::Product(_) => {
                let ((a, a_bits), (b, b_bits)) = (significand(id.a)?, significand(id.b)?);
                let (product, bits) = (a.checked_mul(b)?, a_bits + b_bits);
                match (rule.exponent, id.block_scale()) {
                    // Scales are factors as well: their exponents and significands are part of the product's.
                    (Exponent::Operands, Some(scale)) => {
                        let (largest, scale_bits) = significand(scale.format)?;
                        (product.checked_mul(largest * largest)?, bits + 2 * scale_bits)
                    }
                    (Exponent::Operands, None) => (product, bits),
                    // An upper bound: any normalised significand is below 2.
                    (Exponent::Leading, Some(scale)) => {
                        let bits = bits + 2 * significand(scale.format)?.1 + 1;
                        ((2 << bits) - 1, bits)
                    }
                    (Exponent::Leading, None) => (largest_normalised([a, b], [a_bits, b_bits]), bits + 1),
                }
            }
            Term::C => significand(id.c)?,
            Term::Node(below) => match adders[nodes[*below].adder].output_format() {
                Some(format) => significand(format)?,
                None if rule.exponent == Exponent::Leading => (2, 0),
                None => unrounded(*below, id, adders, nodes)?,
            },
            Term::PositiveZero => (0, 0),
        };
        let drop = fraction_bits.cast_signed() - rule.fraction_bits;
        sum += on_grid(largest, drop, adder.below)?;
    }
    if adder.below == Below::OnesComplement {
        sum += node.terms.len() as u128;
    }
    let length = u128::BITS - sum.leading_zeros();
    Some(length.saturating_sub(rule.fraction_bits.unsigned_abs() + 1))
}

/// The largest unrounded sum, as a multiple of 2 to its exponent by operands, and the number of fraction bits in that
/// multiple. Each term is at most its largest significand, since no term has a greater exponent, rounded to the sum's
/// grid.
fn unrounded(node: usize, id: &OperationId, adders: &[Adder], nodes: &[PlanNode]) -> Option<(u128, u32)> {
    let adder = &adders[nodes[node].adder];
    let rule = match adder.grid[..] {
        [] if adder.below == Below::Truncate => None,
        [rule] if rule.terms == Class::All && rule.exponent == Exponent::Operands => Some(rule),
        _ => return None,
    };
    if adder.normalised_fraction_bits.is_some() || adder.value_cut_bits != 0 || id.block_scale().is_some() {
        return None;
    }
    let float = |format: Format| format.as_float().map(|float| ((2 << float.fraction_bits) - 1, float.fraction_bits));
    let mut sum: (u128, u32) = (0, 0);
    for term in &nodes[node].terms {
        let (largest, bits) = match term {
            Term::Product(_) => {
                let ((a, a_bits), (b, b_bits)): ((u128, u32), (u128, u32)) = (float(id.a)?, float(id.b)?);
                (a.checked_mul(b)?, a_bits + b_bits)
            }
            Term::C => float(id.c)?,
            Term::Node(below) => match adders[nodes[*below].adder].output_format() {
                Some(format) => float(format)?,
                None => unrounded(*below, id, adders, nodes)?,
            },
            Term::PositiveZero => (0, 0),
        };
        let (largest, bits) = match rule {
            Some(rule) => {
                let drop = bits.cast_signed() - rule.fraction_bits;
                let complement = u128::from(adder.below == Below::OnesComplement);
                (on_grid(largest, drop, adder.below)? + complement, rule.fraction_bits.unsigned_abs())
            }
            None => (largest, bits),
        };
        let most = bits.max(sum.1);
        let raised = |(value, bits): (u128, u32)| value.checked_mul(1_u128.checked_shl(most - bits)?);
        sum = (raised(sum)?.checked_add(raised((largest, bits))?)?, most);
    }
    Some(sum)
}

/// The largest significand, in [1, 2), of a normalised product of two significands, with one more fraction bit than the
/// two have together; an upper bound if the formats are so wide that it makes no difference.
fn largest_normalised([a, b]: [u128; 2], [a_bits, b_bits]: [u32; 2]) -> u128 {
    let bits = a_bits + b_bits;
    let (narrow_bits, wide) = if a_bits <= b_bits { (a_bits, b) } else { (b_bits, a) };
    if narrow_bits > NARROW_BITS {
        return (4 << bits) - 1;
    }
    // The largest of the products below 2 for each significand of the narrower operand, and the largest of all
    // products.
    let below_two =
        (1u128 << narrow_bits..2 << narrow_bits).map(|narrow| narrow * wide.min(((2 << bits) - 1) / narrow));
    below_two.max().map_or(0, |largest| largest * 2).max(a * b)
}

/// A magnitude without its lowest `drop` bits, rounded up if the rule allows it.
fn on_grid(magnitude: u128, drop: i32, below: Below) -> Option<u128> {
    if drop <= 0 {
        let shift = drop.unsigned_abs();
        return (magnitude.leading_zeros() > shift).then(|| magnitude << shift);
    }
    let drop = drop.unsigned_abs().min(127);
    let kept = magnitude >> drop;
    let up = below != Below::Truncate && below != Below::OnesComplement && kept << drop != magnitude;
    // `sticky` sets at most one bit, and rounding up adds at least as much.
    Some(kept + u128::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxprobe_models::load;

    /// The closed form for one node of a shipped model, with this number of fraction bits.
    fn of(model: &str, id: &str, fraction_bits: Option<i32>, exponent: Exponent) -> Option<u32> {
        let mut model = load(model).unwrap();
        let id: OperationId = id.parse().unwrap();
        let (_, plan) = model.plan(&id).unwrap();
        let node = &plan.nodes[0];
        for rule in &mut model.adders[node.adder].grid {
            rule.exponent = exponent;
            rule.fraction_bits = fraction_bits.unwrap_or(rule.fraction_bits);
        }
        sufficient_carry_bits(&model.adders[node.adder], node, &id, &model.adders, &plan.nodes)
    }

    #[test]
    fn four_eight_and_sixteen_products_and_c_need_one_bit_more_each() {
        let ids = ["mma.m8n8k4.f32.f16.f16.f32", "mma.m16n8k8.f32.f16.f16.f32", "mma.m16n8k16.f32.f16.f16.f32"];
        for ((model, id), (operands, leading)) in
            ["v100", "a100", "h100"].into_iter().zip(ids).zip([(4, 3), (5, 4), (6, 5)])
        {
            assert_eq!(of(model, id, None, Exponent::Operands), Some(operands), "{model}");
            assert_eq!(of(model, id, None, Exponent::Leading), Some(leading), "{model}");
        }
    }

    #[test]
    fn narrow_operands_need_fewer_than_their_logarithm_says() {
        // 32 products of at most 1.875², and c below 2: 114.5; a bound of 4 per product would give 130 and one more
        // bit.
        assert_eq!(of("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32", Some(25), Exponent::Operands), Some(6));
        assert_eq!(on_grid(0b1111, 2, Below::Truncate), Some(0b11));
        assert_eq!(on_grid(0b1111, 2, Below::Nearest), Some(0b100));
        assert_eq!(on_grid(0b1100, 2, Below::Floor), Some(0b11));
        assert_eq!(on_grid(0b11, -3, Below::Nearest), Some(0b11000));
    }

    #[test]
    fn the_largest_normalised_product_is_that_of_all_significands() {
        for (a_bits, b_bits) in [(1, 1), (2, 2), (3, 2), (3, 3), (5, 7)] {
            let bits = a_bits + b_bits;
            let (a, b) = ((2u128 << a_bits) - 1, (2u128 << b_bits) - 1);
            let all = (1u128 << a_bits..=a).flat_map(|x| (1u128 << b_bits..=b).map(move |y| x * y));
            let wanted = all.map(|product| if product >> (bits + 1) == 0 { product * 2 } else { product }).max();
            assert_eq!(Some(largest_normalised([a, b], [a_bits, b_bits])), wanted, "{a_bits} {b_bits}");
        }
    }

    #[test]
    fn where_it_does_not_speak_it_says_nothing() {
        let model = load("mi300x").unwrap();
        let id: OperationId = "mfma.m16n16k16.f32.f16.f16.f32".parse().unwrap();
        let (_, plan) = model.plan(&id).unwrap();
        let node = &plan.nodes[1];
        assert_eq!(sufficient_carry_bits(&model.adders[node.adder], node, &id, &model.adders, &plan.nodes), None);
    }
}
