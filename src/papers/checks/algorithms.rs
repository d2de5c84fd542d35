//! Compares two algorithms over a unit, on a printed dot or on one that is searched for.

use std::time::{Duration, Instant};

use mxprobe_api::{Error, Format};
use serde::Deserialize;

use crate::papers::computed::Computed;
use crate::{
    dots::Dot,
    literal,
    papers::Target,
    proof::{
        algorithms::{Algorithm, Asked, Found, Question, error_words},
        conditions::{Conditions, Exponents},
        decide::Effort,
    },
};

/// The number of dots that are tried.
const TRIES: u64 = 200_000;

/// A generous limit, so that a loaded machine does not leave a question undecided.
const LIMIT: Duration = Duration::from_secs(3600);

/// The question whether the second algorithm has the larger error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Algorithms {
    /// A pattern of the operation.
    operation: String,
    /// The algorithms.
    algorithms: [String; 2],
    /// The range of exponents of A and B.
    exponents: [i32; 2],
    /// The printed dot; if missing, one is searched for.
    dot: Option<Printed>,
}

/// A dot of f32 values, and the results of both algorithms.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    a: Vec<String>,
    b: Vec<String>,
    c: String,
    d: [String; 2],
}

impl Algorithms {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        if target.device.is_some() {
            return Err(Error::unsupported("algorithms are computed over models alone"));
        }
        let model = target.model()?;
        let id = target.operation(&target.asked()?, &self.operation, 0)?.id;
        let named =
            |name: &String| Algorithm::named(name).ok_or_else(|| Error::invalid(format!("no algorithm `{name}`")));
        let [one, other] = &self.algorithms;
        let algorithms = [named(one)?, named(other)?];
        let terms = id.shape.sizes().2;
        let question = Question::new((&model, &id), algorithms, (Format::F32, terms), terms, Asked::Worse(1))?;
        let range = Some(Exponents { low: self.exponents[0], high: self.exponents[1] });
        let conditions = Conditions { a: range, b: range, ..Conditions::FINITE };
        let f32 = |text: &String| literal::read(Format::F32, text).map(|found| found.bits).map_err(Error::invalid);
        let (shown, agrees) = match &self.dot {
            Some(printed) => {
                let mut dot = Dot::zeros(&question.of_dots);
                for (at, (a, b)) in printed.a.iter().zip(&printed.b).enumerate() {
                    (dot.a[at], dot.b[at]) = (f32(a)?, f32(b)?);
                }
                dot.c = f32(&printed.c)?;
                let shown = question.shown(&dot).ok_or_else(|| Error::invalid("a dot without finite results"))?;
                let results = shown.outcomes.each_ref().map(|outcome| outcome.bits);
                let agrees = results == [f32(&printed.d[0])?, f32(&printed.d[1])?]
                    && question.holds(&dot)
                    && conditions.hold(&question.of_dots, &dot);
                (shown, agrees)
            }
            None => {
                let end = Instant::now() + LIMIT;
                let effort = Effort { seed: 1, tries: TRIES, conditions, closed_form: false, end };
                match question.decide(&effort) {
                    Found::Dot(shown, _) => (shown, true),
                    Found::None(_) => return Ok(Computed { text: "no dot: proved".into(), agrees: false }),
                    Found::Undecided(undecided) => {
                        return Ok(Computed { text: format!("not decided: {}", undecided.why), agrees: false });
                    }
                }
            }
        };
        let [first, second] = &shown.outcomes;
        let of = |bits: u64| Format::F32.hex(bits);
        let text = format!(
            "{one} {}, off by {}; {other} {}, off by {}",
            of(first.bits),
            error_words(&first.error),
            of(second.bits),
            error_words(&second.error)
        );
        Ok(Computed { text, agrees })
    }
}
