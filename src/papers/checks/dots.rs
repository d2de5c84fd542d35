//! Dots, and the results of a unit.

use mxprobe_api::{Error, OperationId};
use serde::Deserialize;

use crate::papers::computed::Computed;
use crate::{dots::Dot, literal, papers::Target, plain};

/// Dots of one operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dots {
    /// A pattern of the operation: `*m8n8k4.f32.f16.f16.f32`.
    operation: String,
    /// Each dot with its result.
    dots: Vec<PrintedDot>,
}

/// One dot; missing products are +0 times +0. Values are in the syntax of `eval`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedDot {
    a: Vec<String>,
    b: Vec<String>,
    #[serde(default = "zero")]
    c: String,
    /// The printed result.
    d: String,
}

fn zero() -> String {
    "0".to_owned()
}

impl Dots {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let asked = target.asked()?;
        let products = self.dots.iter().map(|dot| dot.a.len()).max().unwrap_or(0);
        let operation = target.operation(&asked, &self.operation, products)?;
        let id = &operation.id;
        let dots = self.dots.iter().map(|dot| dot.read(id)).collect::<Result<Vec<_>, _>>()?;
        let found = target.dots(&asked, &operation, &dots)?;
        let mut agrees = true;
        let mut texts: Vec<String> = Vec::new();
        for (dot, found) in self.dots.iter().zip(found) {
            let printed = literal::read(id.d, &dot.d).map_err(Error::invalid)?;
            agrees &= found == printed.bits && !printed.rounded;
            let text = plain::short(id.d, found);
            // Orders of the same sum share a result.
            if texts.last() != Some(&text) {
                texts.push(text);
            }
        }
        Ok(Computed { text: texts.join(", "), agrees })
    }
}

impl PrintedDot {
    fn read(&self, id: &OperationId) -> Result<Dot, Error> {
        let mut dot = Dot::zeros(id);
        if self.a.len() != self.b.len() {
            return Err(Error::invalid(format!("{} elements of A and {} of B", self.a.len(), self.b.len())));
        }
        let exact = |format, text: &str| match literal::read(format, text) {
            Ok(found) if !found.rounded => Ok(found.bits),
            Ok(_) => Err(Error::invalid(format!("`{text}` is not a value of {format}"))),
            Err(reason) => Err(Error::invalid(reason)),
        };
        for (at, (a, b)) in self.a.iter().zip(&self.b).enumerate() {
            dot.a[at] = exact(id.a, a)?;
            dot.b[at] = exact(id.b, b)?;
        }
        dot.c = exact(id.c, &self.c)?;
        Ok(dot)
    }
}
