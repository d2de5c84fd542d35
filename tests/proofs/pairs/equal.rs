//! Rewrites models without changing their arithmetic. Shares no code with the canonical forms that it tests.

use mxprobe::dots::Random;
use mxprobe_api::{Format, OperationId, Overflow, Rounding, Subnormals};
use mxprobe_models::{Adder, Below, Class, GridRule, IgnoredValues, Model, NanRules, Output, Scale, ZeroSign};

use super::tree::Tree;

/// The names of the rewriting steps.
pub(super) const WAYS: [&str; 13] = [
    "order of terms",
    "exact sums within exact sums",
    "values rounded to their own format",
    "products rounded to a format that holds them",
    "zeros added",
    "parameters of the grid",
    "parameters of results",
    "parameters of NaN",
    "NaN of inner results",
    "zeros of inner results",
    "exact groups rounded",
    "results rounded again",
    "integers wrapped twice",
];

fn float(adder: &Adder) -> Option<(Format, Rounding)> {
    match adder.output {
        Output::Float { format, rounding, .. } => Some((format, rounding)),
        _ => None,
    }
}

/// Whether all NaN that the adder returns by its rules have the same bits.
fn is_uniform(adder: &Adder) -> bool {
    float(adder).is_none() || adder.nan.operand == Some(adder.nan.invalid) && adder.nan.value == Some(adder.nan.invalid)
}

fn fixes_values(adder: &Adder) -> bool {
    float(adder).is_some() && adder.nan.value.is_some()
}

/// Whether an adder adds exactly, whatever it then does with the sum.
fn adds_exactly(adder: &Adder) -> bool {
    adder.grid.is_empty()
        && adder.below == Below::Truncate
        && adder.value_cut_bits == 0
        && adder.ignored_values.is_none()
        && adder.scale == Scale::Products
}

/// An adder that rounds to a format and does nothing else.
fn rounding_to(adder: &Adder, format: Format) -> Adder {
    let nan = NanRules { invalid: format.nan().unwrap_or(0), ..NanRules::default() };
    Adder { output: Output::in_format(format), nan, ..exact(adder) }
}

/// An adder that returns the exact sum of the same terms.
fn exact(adder: &Adder) -> Adder {
    let Adder { scale, product_overflow, provenance, .. } = adder.clone();
    Adder { scale, product_overflow, provenance, ..Adder::exact(&adder.name, Output::Wide, NanRules::default()) }
}

fn shuffle<T>(random: &mut Random, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at + 1));
    }
}

fn other<T: Copy + PartialEq>(random: &mut Random, own: T, choices: &[T]) -> T {
    let others: Vec<T> = choices.iter().copied().filter(|choice| *choice != own).collect();
    others[random.below(others.len())]
}

/// A model of the same arithmetic after up to six random rewriting steps, and the names of those steps.
pub(super) fn rewritten(random: &mut Random, base: &Model, id: &OperationId) -> (Model, Vec<&'static str>) {
    let mut tree = Tree::of(base, id);
    let mut applied = Vec::new();
    for _ in 0..2 + random.below(5) {
        let way = random.below(WAYS.len());
        if tree.additions() < 60 && rewrite(way, random, &mut tree, id) {
            applied.push(WAYS[way]);
        }
    }
    (tree.model(base), applied)
}

/// Applies one rewriting step to a tree where possible, and returns whether the tree changed.
fn rewrite(way: usize, random: &mut Random, tree: &mut Tree, id: &OperationId) -> bool {
    let mut uniform = true;
    tree.each(&mut |adder, _| uniform &= is_uniform(adder));
    // Products of short operands: all sums with c, and all results, fit into 380 bits.
    let narrow =
        [id.a, id.b].iter().all(|format| !format.is_integer() && format.bits() <= 16 && *format != Format::BF16)
            && id.block_scale().is_none();
    let mut changed = false;
    let Tree::Add(root, _) = &*tree else { unreachable!("a tree adds") };
    if way == 11 {
        // A quiet NaN is not changed, and every rule here returns quiet ones.
        let format = root.output_format().unwrap();
        *tree = Tree::Add(Box::new(rounding_to(root, format)), vec![tree.clone()]);
        return true;
    }
    tree.each(&mut |adder, terms| {
        if random.below(3) == 0 {
            return;
        }
        let complements = adder.below == Below::OnesComplement;
        let is_value = |term: &Tree| match term {
            Tree::C | Tree::Zero => true,
            Tree::Product(_) => false,
            Tree::Add(adder, _) => adder.output != Output::Wide,
        };
        changed |= match way {
            0 if uniform && !complements => {
                shuffle(random, terms);
                true
            }
            1 if uniform
                && adds_exactly(adder)
                && terms.len() > 2
                && (float(adder).is_none() || adder.zero == ZeroSign::Positive) =>
            {
                let from = random.below(terms.len() - 1);
                let to = from + 2 + random.below(terms.len() - from - 1);
                let group: Vec<Tree> = terms.drain(from..to.min(terms.len())).collect();
                terms.insert(from, Tree::Add(Box::new(exact(adder)), group));
                true
            }
            2 => {
                let mut any = false;
                for term in terms.iter_mut() {
                    let format = match &*term {
                        Tree::C => id.c,
                        Tree::Add(inner, _) if inner.output != Output::Wide => inner.output_format().unwrap(),
                        _ => continue,
                    };
                    if fixes_values(adder) || format.is_integer() {
                        *term = Tree::Add(Box::new(rounding_to(adder, format)), vec![term.clone()]);
                        any = true;
                    }
                }
                any
            }
            3 if uniform && narrow && adds_exactly(adder) && float(adder).is_some() => {
                for term in terms.iter_mut().filter(|term| matches!(term, Tree::Product(_))) {
                    let format = other(random, Format::E4M3, &[Format::F32, Format::F64]);
                    *term = Tree::Add(Box::new(rounding_to(adder, format)), vec![term.clone()]);
                }
                true
            }
            4 if !complements => {
                let adds_nothing = match float(adder) {
                    None => true,
                    Some((_, rounding)) => adder.zero == ZeroSign::Positive || rounding == Rounding::Down,
                };
                if adds_nothing {
                    terms.insert(random.below(terms.len() + 1), Tree::Zero);
                }
                adds_nothing
            }
            5 => grid(random, adder, terms.iter().any(is_value), narrow),
            6 => results(random, adder, narrow),
            7 if float(adder).is_some() && is_uniform(adder) => {
                shuffle(random, &mut adder.nan.order);
                true
            }
            8 if fixes_values(adder) => {
                let mut any = false;
                for term in terms.iter_mut() {
                    if let Tree::Add(inner, _) = term
                        && let Some((format, _)) = float(inner)
                    {
                        let bits = format.nan().unwrap() | 1 << format.fraction_bits() >> (2 + random.below(2));
                        inner.nan =
                            NanRules { operand: Some(bits), value: Some(bits), invalid: bits, ..inner.nan.clone() };
                        any = true;
                    }
                }
                any
            }
            9 if !complements && (float(adder).is_none() || adder.zero == ZeroSign::Positive) => {
                let mut any = false;
                for term in terms.iter_mut() {
                    if let Tree::Add(inner, _) = term {
                        inner.zero = other(random, inner.zero, &[ZeroSign::Ieee, ZeroSign::Positive]);
                        any = true;
                    }
                }
                any
            }
            10 if uniform
                && adds_exactly(adder)
                && [id.a, id.b].iter().all(|format| matches!(*format, Format::E4M3 | Format::E2M1))
                && narrow
                && float(adder).is_some_and(|(_, rounding)| rounding != Rounding::Down) =>
            {
                let products: Vec<usize> =
                    (0..terms.len()).filter(|at| matches!(terms[*at], Tree::Product(_))).collect();
                if products.len() > 1 {
                    let group: Vec<Tree> = products.iter().map(|at| terms[*at].clone()).collect();
                    terms.retain(|term| !matches!(term, Tree::Product(_)));
                    terms.push(Tree::Add(Box::new(rounding_to(adder, Format::F64)), group));
                }
                products.len() > 1
            }
            12 if matches!(adder.output, Output::Integer { saturates: false, format } if format.bits() <= 32)
                && terms.len() > 2 =>
            {
                let group: Vec<Tree> = terms.drain(1..).collect();
                terms.push(Tree::Add(Box::new(rounding_to(adder, Format::S32)), group));
                true
            }
            _ => false,
        };
    });
    changed
}

/// Changes parameters of the grid that make no difference.
fn grid(random: &mut Random, adder: &mut Adder, has_values: bool, narrow: bool) -> bool {
    let before = adder.clone();
    if !has_values && adder.below != Below::OnesComplement {
        adder.value_cut_bits = random.between(0, 3).unsigned_abs();
    }
    match adder.grid[..] {
        [] if narrow && matches!(adder.output, Output::Float { .. }) && adds_exactly(adder) => {
            let rule = GridRule {
                terms: Class::All,
                exponent: other(random, mxprobe_models::Exponent::Operands, &[mxprobe_models::Exponent::Leading]),
                fraction_bits: 380,
                exponent_floor: None,
            };
            adder.grid.push(rule);
            adder.below = other(random, Below::OnesComplement, &[Below::Truncate, Below::Floor, Below::Nearest]);
        }
        [rule] if rule.terms == Class::All => match random.below(4) {
            0 if adder.carry_bits.is_none() => adder.carry_bits = Some(56 + random.between(0, 8).unsigned_abs()),
            1 if rule.exponent_floor.is_none() && adder.output != Output::Wide => {
                adder.grid[0].exponent_floor = Some(-3000 - random.between(0, 2000));
            }
            2 if rule.exponent_floor.is_none() && adder.carry_bits.is_none() => {
                adder.grid =
                    [Class::Products, Class::Values, Class::Sums].map(|terms| GridRule { terms, ..rule }).into();
                shuffle(random, &mut adder.grid);
            }
            3 if adder.carry_bits.is_none() => {
                adder.grid.push(GridRule {
                    terms: Class::Products,
                    fraction_bits: rule.fraction_bits + random.between(1, 4),
                    exponent_floor: None,
                    ..rule
                });
            }
            _ => {}
        },
        _ => {}
    }
    if adder.below == Below::Truncate && adder.ignored_values.is_none() && random.flip() {
        adder.ignored_values = Some(IgnoredValues { below_bits: random.between(0, 3), unless_grid_at_most: None });
    }
    *adder != before
}

/// Changes parameters of results that make no difference.
fn results(random: &mut Random, adder: &mut Adder, narrow: bool) -> bool {
    let before = adder.clone();
    let zero = adder.zero;
    let Output::Float { rounding, overflow, subnormals, fraction_bits, .. } = &mut adder.output else { return false };
    let odd_or_zero = matches!(rounding, Rounding::TowardZero | Rounding::ToOdd);
    *overflow = match (*rounding, *overflow) {
        (Rounding::NearestEven, Overflow::Ieee) => Overflow::Infinity,
        (Rounding::NearestEven, Overflow::Infinity) => Overflow::Ieee,
        (_, Overflow::Ieee) if odd_or_zero => Overflow::Saturate,
        (_, Overflow::Saturate) if odd_or_zero => Overflow::Ieee,
        (_, own) => own,
    };
    *subnormals = match *subnormals {
        Subnormals::FlushBeforeRounding if odd_or_zero => Subnormals::FlushAfterRounding,
        Subnormals::FlushAfterRounding if zero == ZeroSign::Positive => Subnormals::FlushToPositiveZero,
        Subnormals::FlushAfterRounding if odd_or_zero => Subnormals::FlushBeforeRounding,
        Subnormals::FlushToPositiveZero if zero == ZeroSign::Positive => Subnormals::FlushAfterRounding,
        own => own,
    };
    let (bits, rounding) = (*fraction_bits, *rounding);
    if adder.normalised_fraction_bits.is_none() {
        (adder.normalised_fraction_bits, adder.normalised_below) = match random.below(3) {
            0 if rounding == Rounding::TowardZero => {
                (Some(bits + random.between(0, 9).unsigned_abs()), Below::Truncate)
            }
            1 => (Some(bits + 2 + random.between(0, 9).unsigned_abs()), Below::Sticky),
            2 if narrow => (Some(390), Below::Nearest),
            _ => (None, Below::Truncate),
        };
    }
    *adder != before
}
