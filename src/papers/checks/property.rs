//! A property of a unit, shown by dots or proved not to show.

use std::time::{Duration, Instant};

use mxprobe_api::Error;
use serde::Deserialize;

use crate::papers::computed::Computed;
use crate::{
    papers::Target,
    plain::counted,
    proof::{
        conditions::Conditions,
        decide::Effort,
        panel::Pair,
        properties::{Answer, Property, ask},
    },
};

/// Dots that are tried for each alternative.
const TRIES: u64 = 50_000;

/// A generous limit, so that a loaded machine does not leave a question undecided.
const LIMIT: Duration = Duration::from_secs(3600);

/// A property of an operation, and the expected answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PropertyOf {
    /// A pattern of the operation.
    operation: String,
    /// The name of the property: `carry`.
    property: String,
    /// A part of the unit's answer in words.
    says: String,
    /// The number of alternatives that a dot distinguishes from the unit.
    told_apart: usize,
    /// The number of alternatives that are proved to be equal to the unit.
    proved_equal: usize,
}

impl PropertyOf {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        if target.device.is_some() {
            return Err(Error::unsupported("what other answers would give is computed of models alone"));
        }
        let model = target.model()?;
        let operation = target.operation(&target.asked()?, &self.operation, 0)?;
        let named = Property::ALL.into_iter().find(|property| property.name() == self.property);
        let property = named.ok_or_else(|| Error::invalid(format!("no property `{}`", self.property)))?;
        let end = Instant::now() + LIMIT;
        let effort = Effort { seed: 1, tries: TRIES, conditions: Conditions::FINITE, closed_form: true, end };
        let (answer, _) = ask(&model, &operation.id, property, &effort)?;
        let (asked, several) = match answer {
            Answer::Shown { asked, several } => (asked, several),
            Answer::DoesNotApply(why) => return Err(Error::unsupported(why)),
        };
        let count = |is: fn(&Pair) -> bool| several.pairs.iter().filter(|(_, pair)| is(pair)).count();
        let told = count(|pair| matches!(pair, Pair::Differ(_)));
        let equal = count(|pair| matches!(pair, Pair::Equal(_) | Pair::EqualThrough(_)));
        let mut text = format!("{}: {} told apart by a dot", asked.unit, counted(told, "other answer"));
        if equal > 0 {
            text += &format!(", {equal} proved equal");
        }
        let agrees = asked.unit.contains(&self.says)
            && several.is_decided()
            && (told, equal) == (self.told_apart, self.proved_equal);
        Ok(Computed { text, agrees })
    }
}
