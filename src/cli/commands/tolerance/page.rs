//! The output of `tolerance`.

use mxprobe_api::Format;
use serde_json::{Value, json};

use crate::{
    report::{Block, Cell, Page, Row, Show, to_json},
    tolerance::{Bound, Element, Found, Interval, Sides, Signs, Tolerance},
};

/// The element that an interval belongs to.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// Row and column of D.
    Element(usize, usize),
    /// The index of a dot, from 0.
    Dot(usize),
}

/// A bound, with the intervals of given operands.
pub(super) struct Bounded<'a> {
    pub(super) model: &'a str,
    pub(super) bounds: &'a Tolerance,
    pub(super) worst: Option<Found>,
    pub(super) seed: u64,
    pub(super) elements: Option<Vec<(Place, Element)>>,
}

/// The maximum number of elements shown to people; the JSON has all.
const SHOWN: usize = 20;

/// Describes the signs of the terms of a dot.
fn named(signs: Signs) -> &'static str {
    match signs {
        Signs::Positive => "no term is negative",
        Signs::Negative => "no term is positive",
        Signs::Mixed => "terms of both signs",
    }
}

const ALL_SIGNS: [Signs; 3] = [Signs::Positive, Signs::Negative, Signs::Mixed];

/// Formats the ends of an interval.
pub(in crate::cli::commands) fn words(format: Format, interval: Interval) -> [String; 2] {
    match interval {
        Interval::Within { low, high } => [low, high].map(|bits| format!("{:e}", format.to_f64(bits))),
        Interval::Nan => ["NaN".to_owned(), "NaN".to_owned()],
        Interval::Unbounded => ["any: a partial sum may overflow".to_owned(), String::new()],
    }
}

/// An interval as JSON.
pub(in crate::cli::commands) fn record(format: Format, element: &Element) -> Value {
    let number = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
    let (kind, ends) = match element.interval {
        Interval::Within { low, high } => ("within", Some([low, high])),
        Interval::Nan => ("nan", None),
        Interval::Unbounded => ("unbounded", None),
    };
    json!({
        "kind": kind,
        "exact": number(element.exact),
        "low": ends.map(|[low, _]| number(format.to_f64(low))),
        "high": ends.map(|[_, high]| number(format.to_f64(high))),
        "low_bits": ends.map(|[low, _]| format.hex(low)),
        "high_bits": ends.map(|[_, high]| format.hex(high)),
        "below": number(element.down),
        "above": number(element.up),
    })
}

impl Bounded<'_> {
    fn title(&self) -> String {
        let bounds = self.bounds;
        format!("{}  {}, k = {}, order: {}", self.model, bounds.id(), bounds.k(), bounds.order().name())
    }

    fn of_bound(bound: &Bound, blocks: &mut Vec<Block>) {
        let (gamma, eta) = bound.of_magnitudes();
        if gamma.is_finite() {
            blocks.push(Block::words(format!("|d − exact| ≤ {gamma:.6e} · S + {eta:.3e}, where S = Σ|a·b| + |c|")));
        } else {
            blocks.push(Block::words(
                "no multiple of S = Σ|a·b| + |c| bounds the error: sums are too long for the format",
            ));
        }
        let rows = ALL_SIGNS.into_iter().map(|signs| {
            let (relative, absolute) = (bound.relative(signs), bound.absolute(signs));
            let cell = |relative: f64, absolute: f64| {
                Cell::words(match (relative == 0.0, absolute == 0.0) {
                    (true, true) => "0".to_owned(),
                    (_, true) => format!("{relative:.6e} · 2^e"),
                    _ => format!("{relative:.6e} · 2^e + {absolute:.3e}"),
                })
            };
            Row::plain(vec![
                Cell::words(named(signs)),
                cell(relative.down, absolute.down),
                cell(relative.up, absolute.up),
            ])
        });
        blocks.push(Block::table(["terms", "d lies below by at most", "above by at most"], rows));
        blocks.push(Block::words(format!(
            "e: the exponent of the larger of the sums of positive and of negative magnitudes, or of the largest product, and {} at \
             least",
            bound.least_exponent()
        )));
        let [beside, of_products] = bound.split(Signs::Mixed).map(Sides::most);
        if of_products > 0.0 {
            blocks.push(Block::words(format!(
                "instead of a multiple of 2^e also {beside:.6e} · 2^e + {of_products:.6e} · Q, if less, where Q is the sum \
                 of 2^(exponent(a) + exponent(b)) over the products"
            )));
        }
    }
}

impl Show for Bounded<'_> {
    fn page(&self, evidence: bool) -> Page {
        let (title, format) = (self.title(), self.bounds.id().d);
        let mut blocks = Vec::new();
        match self.bounds.bound(true) {
            Some(bound) => Self::of_bound(bound, &mut blocks),
            None => blocks.push(Block::words("sums of integers are exact in every order until one leaves its range")),
        }
        if let Some(found) = &self.worst {
            blocks.push(Block::words(format!(
                "the worst of {} inputs comes within {:.3} of the bound: its error is {:.6e} of {:.6e}",
                found.tried,
                1.0 / found.nearest,
                found.nearest * found.bound,
                found.bound
            )));
            if evidence {
                let id = self.bounds.id();
                let list = |format: Format, bits: &[u64]| {
                    bits.iter().map(|bits| format.hex(*bits)).collect::<Vec<_>>().join(" ")
                };
                blocks.push(Block::Lines(vec![
                    format!("a {}", list(id.a, &found.a)),
                    format!("b {}", list(id.b, &found.b)),
                    format!("c {}", id.c.hex(found.c)),
                    format!("d {}, exactly {:e}", id.d.hex(found.d), found.exact),
                ]));
            }
        }
        if let Some(elements) = &self.elements {
            let rows = elements.iter().take(SHOWN).map(|(place, element)| {
                let place = match place {
                    Place::Element(row, column) => format!("D[{row}, {column}]"),
                    Place::Dot(number) => format!("dot {}", number + 1),
                };
                let [low, high] = words(format, element.interval);
                let cells = [place, format!("{:e}", element.exact), low, high];
                Row::plain(cells.into_iter().map(Cell::words).collect())
            });
            blocks.push(Block::table(["element", "exact", "from", "to"], rows));
            if elements.len() > SHOWN {
                blocks.push(Block::words(format!("and {} more", elements.len() - SHOWN)));
            }
        }
        Page { blocks: Block::titled(1, &title).into_iter().chain([Block::Inset(blocks)]).collect(), title }
    }

    fn json(&self) -> String {
        let (bounds, format) = (self.bounds, self.bounds.id().d);
        let id = bounds.id();
        let number = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
        let bound = bounds.bound(true).map(|bound| {
            let (gamma, eta) = bound.of_magnitudes();
            let sides = ALL_SIGNS.map(|signs| {
                let (relative, absolute, split) = (bound.relative(signs), bound.absolute(signs), bound.split(signs));
                json!({
                    "signs": match signs {
                        Signs::Positive => "positive",
                        Signs::Negative => "negative",
                        Signs::Mixed => "mixed",
                    },
                    "below_relative": relative.down,
                    "above_relative": relative.up,
                    "below_absolute": absolute.down,
                    "above_absolute": absolute.up,
                    "or_relative": [split[0].down, split[0].up],
                    "and_of_products": [split[1].down, split[1].up],
                })
            });
            json!({
                "relative_to_magnitudes": number(gamma),
                "absolute": number(eta),
                "relative_to": "2^e",
                "least_exponent": bound.least_exponent(),
                "by_signs": sides,
            })
        });
        let hex = |format: Format, bits: &[u64]| bits.iter().map(|bits| format.hex(*bits)).collect::<Vec<_>>();
        let worst = self.worst.as_ref().map(|found| {
            json!({
                "tried": found.tried,
                "seed": self.seed,
                "within": 1.0 / found.nearest,
                "error": found.nearest * found.bound,
                "bound": found.bound,
                "a": hex(id.a, &found.a),
                "b": hex(id.b, &found.b),
                "c": id.c.hex(found.c),
                "d": id.d.hex(found.d),
                "products_at_once": found.at_once,
            })
        });
        let elements = self.elements.as_ref().map(|elements| {
            let of = |(place, element): &(Place, Element)| {
                let mut found = record(format, element);
                match place {
                    Place::Element(row, column) => {
                        found["row"] = json!(row);
                        found["column"] = json!(column);
                    }
                    Place::Dot(number) => found["dot"] = json!(number),
                }
                found
            };
            elements.iter().map(of).collect::<Vec<_>>()
        });
        to_json(&json!({
            "model": self.model,
            "operation": id,
            "k": bounds.k(),
            "order": bounds.order().name(),
            "bound": bound,
            "worst": worst,
            "elements": elements,
        }))
    }
}
