//! Properties of one model: dots that show how it computes, each with the results of the alternatives.
//!
//! A property is a question with several alternative answers. Each alternative is the model with one thing changed, so
//! a dot on which the two differ shows the property, and a proof that they are equal shows that no dot can.

mod alternatives;
mod question;
mod trees;

use std::time::{Duration, Instant};

use mxprobe_api::{Error, OperationId};
use mxprobe_models::Model;

use super::{
    decide::Effort,
    panel::{Pair, Panel, Several, Wanted, decide_pairs},
};

pub use question::{Asked, Property};

/// The answer to a question.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The question does not apply to the operation, for this reason.
    DoesNotApply(String),
    /// Each alternative is compared with the model.
    Shown {
        /// The question.
        asked: Box<Asked>,
        /// The dots, with the results of the model and of each alternative, and the result for each pair (0, i).
        several: Several,
    },
}

impl Answer {
    /// Whether each alternative is distinguished from the model or proved to be equal to it.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        match self {
            Self::DoesNotApply(_) => true,
            Self::Shown { several, .. } => several.is_decided(),
        }
    }

    /// Whether it is proved that no dot distinguishes any alternative from the model.
    #[must_use]
    pub fn cannot_be_shown(&self) -> bool {
        let Self::Shown { several, .. } = self else { return false };
        !several.pairs.is_empty()
            && several.pairs.iter().all(|(_, pair)| matches!(pair, Pair::Equal(_) | Pair::EqualThrough(_)))
    }
}

/// Dots that are tried for a number of carry bits: differences are found quickly, and equality is proved.
const CARRY_TRIES: u64 = 50_000;

/// Answers the question of one property of a model's operation, over finite inputs. Also returns the time it took.
///
/// # Errors
/// If the model has no such operation.
pub fn ask(model: &Model, id: &OperationId, property: Property, effort: &Effort) -> Result<(Answer, Duration), Error> {
    let start = Instant::now();
    let asked = match alternatives::of(model, id, property)? {
        Ok(asked) => asked,
        Err(why) => return Ok((Answer::DoesNotApply(why), start.elapsed())),
    };
    let mut models: Vec<&Model> = vec![&asked.base];
    models.extend(asked.alternatives.iter().map(|neighbour| &neighbour.model));
    // The question is how many carry bits suffice, so the solver must answer it and not the closed form.
    let closed_form = property != Property::Carry;
    let tries = if closed_form { effort.tries } else { effort.tries.min(CARRY_TRIES) };
    let effort = Effort { closed_form, tries, ..*effort };
    let panel = Panel::new(&models, id)?.with_finite_results();
    let pairs: Vec<[usize; 2]> = (1..models.len()).map(|other| [0, other]).collect();
    let several = decide_pairs(&panel, &models, Wanted::DifferentFromFirst, &pairs, &effort)?;
    Ok((Answer::Shown { asked: Box::new(asked), several }, start.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::conditions::Conditions;
    use mxprobe_models::load;

    fn answer(model: &str, id: &str, property: Property) -> Answer {
        let (model, id) = (load(model).unwrap(), id.parse().unwrap());
        let end = Instant::now() + Duration::from_secs(3600);
        let effort = Effort { seed: 1, tries: 50_000, conditions: Conditions::FINITE, closed_form: true, end };
        ask(&model, &id, property, &effort).unwrap().0
    }

    /// Every alternative in words, and whether a dot that the exact evaluator replays distinguishes it from the model.
    fn told(answer: &Answer, id: &str) -> Vec<(String, bool)> {
        let id: OperationId = id.parse().unwrap();
        let Answer::Shown { asked, several } = answer else { panic!("{answer:?}") };
        let exactly = |model: &Model, dot: &crate::dots::Dot| {
            let (unit, plan) = model.plan(&id).unwrap();
            mxprobe_models::evaluate(&model.adders, unit, &plan, &id, crate::proof::search::as_input(dot))
        };
        let of = |([_, other], pair): &([usize; 2], Pair)| {
            let neighbour = &asked.alternatives[other - 1];
            let differs = match pair {
                Pair::Differ(dot) => {
                    let (told, _) = &several.dots[*dot];
                    assert_eq!(told.values[0], exactly(&asked.base, &told.dot));
                    assert_eq!(told.values[*other], exactly(&neighbour.model, &told.dot));
                    assert_ne!(told.values[0], told.values[*other]);
                    true
                }
                Pair::Equal(_) | Pair::EqualThrough(_) => false,
                Pair::Undecided(undecided) => panic!("{}: {}", neighbour.what, undecided.why),
            };
            (neighbour.what.clone(), differs)
        };
        several.pairs.iter().map(of).collect()
    }

    const V100: &str = "mma.m8n8k4.f32.f16.f16.f32";

    #[test]
    fn one_carry_bit_fewer_is_told_apart_and_one_more_is_proved_to_change_nothing() {
        let answer = answer("v100", V100, Property::Carry);
        let mut told = told(&answer, V100);
        told.sort();
        assert_eq!(told, [("3 carry bits".to_owned(), true), ("5 carry bits".to_owned(), false)]);
        let Answer::Shown { asked, several } = answer else { unreachable!() };
        assert!(asked.unit.contains("5 terms need 4 carry bits"), "{}", asked.unit);
        let proved =
            several.pairs.iter().find_map(|(_, pair)| if let Pair::Equal(proof) = pair { Some(proof) } else { None });
        let certificate = proved.expect("one more bit is proved to change nothing");
        assert!(certificate.refuted.is_some() && certificate.carry.is_empty());
    }

    #[test]
    fn the_order_of_terms_within_one_sum_cannot_be_shown() {
        let told = told(&answer("v100", V100, Property::Order), V100);
        assert_eq!(told[0], ("products in reverse order".to_owned(), false));
        assert!(told[1..].iter().all(|(_, differs)| *differs) && told.len() == 3, "{told:?}");
    }

    #[test]
    fn the_order_of_products_of_different_sums_can_be_shown() {
        let id = "mma.m16n8k16.f32.f16.f16.f32";
        let told = told(&answer("a100", id, Property::Order), id);
        assert!(told.contains(&("products in reverse order".to_owned(), true)), "{told:?}");
        assert!(told.contains(&("products of each sum in reverse order".to_owned(), false)), "{told:?}");
    }

    #[test]
    fn truncation_at_alignment_is_told_from_every_rounding_of_the_exact_sum() {
        let told = told(&answer("v100", V100, Property::AccumulatorRounding), V100);
        for rounding in ["to nearest, ties to even", "toward zero", "down", "up"] {
            assert!(told.contains(&(format!("the exact sum rounded {rounding}"), true)), "{rounding}: {told:?}");
        }
    }

    #[test]
    fn exact_products_wide_sums_and_sums_that_are_not_normalised_are_shown_on_units_of_each_kind() {
        for (model, id) in [
            ("v100", V100),
            ("h100", "mma.m16n8k16.f16.f16.f16.f16"),
            ("amx", "amx.m16n16k32.f32.bf16.bf16.f32"),
            ("h100", "wgmma.m64n8k32.f32.e4m3.e4m3.f32"),
        ] {
            for property in [Property::Products, Property::Accumulation, Property::Normalisation] {
                let told = told(&answer(model, id, property), id);
                assert!(!told.is_empty(), "{model} {id} {property:?}");
                assert!(told.iter().all(|(_, differs)| *differs), "{model} {id} {property:?}: {told:?}");
            }
        }
    }

    #[test]
    fn every_other_rounding_of_the_result_is_shown() {
        let id = "mma.m16n8k16.f16.f16.f16.f16";
        let told = told(&answer("h100", id, Property::ResultRounding), id);
        assert_eq!(told.len(), 3);
        assert!(told.iter().all(|(_, differs)| *differs), "{told:?}");
    }

    #[test]
    fn integers_have_no_such_properties() {
        let found = answer("h100", "mma.m16n8k32.s32.s8.s8.s32", Property::Products);
        assert!(matches!(&found, Answer::DoesNotApply(why) if why.contains("integers")), "{found:?}");
    }
}
