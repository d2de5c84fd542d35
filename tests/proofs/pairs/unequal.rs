//! Models that differ from another in one value.

use mxprobe::dots::Random;
use mxprobe_api::{OperationId, Overflow, Rounding, Subnormals};
use mxprobe_models::{Below, Exponent, Model, NanCause, Output, ZeroSign};

use super::tree::Tree;

fn other<T: Copy + PartialEq>(random: &mut Random, own: T, choices: &[T]) -> T {
    let others: Vec<T> = choices.iter().copied().filter(|choice| *choice != own).collect();
    others[random.below(others.len())]
}

/// The model with one value of one addition changed, and a description of the change. Most changes show in some dot.
pub(super) fn changed(random: &mut Random, base: &Model, id: &OperationId) -> (Model, &'static str) {
    loop {
        let mut tree = Tree::of(base, id);
        let chosen = random.below(tree.additions());
        let way = random.below(16);
        let mut flush = base.units[0].flush;
        let mut what = None;
        let mut at = 0;
        tree.each(&mut |adder, terms| {
            at += 1;
            if at - 1 != chosen {
                return;
            }
            what = match way {
                0 if !adder.grid.is_empty() => {
                    let rule = random.below(adder.grid.len());
                    adder.grid[rule].fraction_bits += if random.flip() { 1 } else { -1 };
                    Some("fraction bits")
                }
                1 if adder.grid.len() == 1 => {
                    adder.grid[0].exponent =
                        other(random, adder.grid[0].exponent, &[Exponent::Operands, Exponent::Leading]);
                    Some("exponents")
                }
                2 if adder.grid.len() == 1 => {
                    let floor = adder.grid[0].exponent_floor;
                    adder.grid[0].exponent_floor = Some(floor.map_or(-126 - random.between(0, 10), |floor| floor + 1));
                    Some("exponent floor")
                }
                3 if !adder.grid.is_empty() => {
                    let all = [Below::Truncate, Below::Floor, Below::Nearest, Below::Sticky, Below::OnesComplement];
                    adder.below = other(random, adder.below, &all);
                    Some("bits below the grid")
                }
                4 if adder.grid.len() == 1 => {
                    let bits = adder.carry_bits.unwrap_or(5);
                    adder.carry_bits = Some(bits.saturating_sub(1));
                    Some("carry bits")
                }
                5 => {
                    adder.value_cut_bits += 1;
                    Some("bits cut of values")
                }
                6 => {
                    adder.zero = other(random, adder.zero, &[ZeroSign::Ieee, ZeroSign::Positive]);
                    Some("sign of zeros")
                }
                7 => match &mut adder.nan.value {
                    Some(bits) if *bits & 1 == 0 => {
                        *bits |= 1;
                        Some("NaN of values")
                    }
                    _ => None,
                },
                8 => {
                    let order = &mut adder.nan.order;
                    let same = *order == [NanCause::Invalid, NanCause::Value, NanCause::Operand];
                    *order = vec![NanCause::Invalid, NanCause::Value, NanCause::Operand];
                    (!same).then_some("order of causes of NaN")
                }
                9 if terms.len() > 1 => {
                    let (one, other) = (random.below(terms.len()), random.below(terms.len()));
                    terms.swap(one, other);
                    (one != other).then_some("order of terms")
                }
                10 => match random.below(3) {
                    0 => {
                        flush.a ^= true;
                        Some("subnormals of a")
                    }
                    1 => {
                        flush.c ^= true;
                        Some("subnormals of c")
                    }
                    _ => {
                        flush.to_positive ^= true;
                        Some("zero that subnormals become")
                    }
                },
                11 => {
                    let moved = terms.iter().position(|term| matches!(term, Tree::Product(_)));
                    match moved {
                        Some(at) if terms.len() > 1 => {
                            terms.remove(at);
                            Some("a product left out")
                        }
                        _ => None,
                    }
                }
                12 if matches!(adder.output, Output::Integer { .. }) => {
                    if let Output::Integer { saturates, .. } = &mut adder.output {
                        *saturates ^= true;
                    }
                    Some("overflow of integers")
                }
                _ => match &mut adder.output {
                    Output::Float { rounding, overflow, subnormals, .. } => match way {
                        12 | 13 => {
                            let all = [
                                Rounding::NearestEven,
                                Rounding::TowardZero,
                                Rounding::Down,
                                Rounding::Up,
                                Rounding::ToOdd,
                            ];
                            *rounding = other(random, *rounding, &all);
                            Some("rounding")
                        }
                        14 => {
                            let all = [Overflow::Ieee, Overflow::Infinity, Overflow::Nan, Overflow::Saturate];
                            *overflow = other(random, *overflow, &all);
                            Some("overflow")
                        }
                        15 => {
                            let all = [
                                Subnormals::Keep,
                                Subnormals::FlushBeforeRounding,
                                Subnormals::FlushAfterRounding,
                                Subnormals::FlushToPositiveZero,
                            ];
                            *subnormals = other(random, *subnormals, &all);
                            Some("subnormal results")
                        }
                        _ => None,
                    },
                    _ => None,
                },
            };
        });
        if let Some(what) = what {
            let mut model = tree.model(base);
            model.units[0].flush = flush;
            let model = Model::parse("changed.toml", &model.to_toml(), None).unwrap();
            return (model, what);
        }
    }
}
