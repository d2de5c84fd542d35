//! `check`: finds the elements of a product that no admissible order gives.

use mxprobe_models::threads;
use serde_json::{Value, json};

use super::tolerance::{Chosen, Operands, record, words};
use crate::{
    cli::{
        arguments::{Check, Screen},
        failure::{Failure, NO, Outcome},
        io::{npy, output},
    },
    report::{Block, Cell, Page, Row, Show, to_json},
    tolerance::{Checked, Outside, Tolerance},
};

/// Checks D against the unit's tolerance; the exit code is 1 if an element lies outside.
pub(crate) fn check(arguments: &Check, screen: Screen) -> Outcome {
    let unit = Chosen::new(&arguments.unit)?;
    let id = &unit.operation.id;
    let operands = Operands::read(id, &arguments.a, &arguments.b, arguments.c.as_deref())?;
    let d = npy::read(&arguments.d, id.d, false)?;
    let (m, n) = (operands.m, operands.n);
    if (d.rows, d.columns) != (m, n) {
        return Err(Failure::usage(format!("D is {}×{}, but A·B is {m}×{n}", d.rows, d.columns)));
    }
    let d = d.exactly(id.d, "D").map_err(Failure::usage)?;
    let tolerance = Tolerance::new(&unit.model, id, operands.k, arguments.unit.order.into()).map_err(Failure::usage)?;
    let checked = tolerance.check(&operands.operands(), &d, threads()).map_err(Failure::usage)?;
    let found = Judged { model: &unit.name, tolerance: &tolerance, sizes: [m, n, operands.k], checked: &checked };
    output::show(&found, arguments.format.into(), screen.for_lines())?;
    Ok(if checked.is_inside() { 0 } else { NO })
}

/// The results for a product.
struct Judged<'a> {
    model: &'a str,
    tolerance: &'a Tolerance,
    sizes: [usize; 3],
    checked: &'a Checked,
}

/// The maximum number of elements shown to people; the JSON has all.
const SHOWN: usize = 20;

impl Show for Judged<'_> {
    fn page(&self, _: bool) -> Page {
        let Self { tolerance, checked, sizes: [m, n, k], .. } = self;
        let format = tolerance.id().d;
        let title = format!("{}  {}, order: {}", self.model, tolerance.id(), tolerance.order().name());
        let outside = checked.outside.len();
        let mut blocks = vec![Block::words(format!(
            "D is {m}×{n}, k = {k}; outside their intervals: {} of {} elements",
            outside, checked.elements
        ))];
        if checked.unbounded > 0 {
            let words = format!("{} elements have no interval: a partial sum may overflow", checked.unbounded);
            blocks.push(Block::words(words));
        }
        if checked.nearest.is_finite() {
            let words = format!("the others are off by at most {:.3} of their tolerance", checked.nearest);
            blocks.push(Block::words(words));
        }
        if outside > 0 {
            let rows = checked.outside.iter().take(SHOWN).map(|found| {
                let [low, high] = words(format, found.element.interval);
                let cells = [
                    format!("D[{}, {}]", found.row, found.column),
                    format!("{:e}", found.value),
                    low,
                    high,
                    if found.beyond.is_nan() { "-".to_owned() } else { format!("{:.3e}", found.beyond) },
                    if found.times.is_finite() { format!("{:.3}", found.times) } else { "-".to_owned() },
                ];
                Row::plain(cells.into_iter().map(Cell::words).collect())
            });
            let head = ["element", "is", "may be from", "to", "beyond by", "error / tolerance"];
            blocks.push(Block::table(head, rows));
        }
        if outside > SHOWN {
            blocks.push(Block::words(format!("and {} more", outside - SHOWN)));
        }
        Page { blocks: Block::titled(1, &title).into_iter().chain([Block::Inset(blocks)]).collect(), title }
    }

    fn json(&self) -> String {
        let Self { tolerance, checked, sizes: [m, n, k], .. } = self;
        let id = tolerance.id();
        let number = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
        let outside = |found: &Outside| {
            let mut of = record(id.d, &found.element);
            of["row"] = json!(found.row);
            of["column"] = json!(found.column);
            of["d"] = number(found.value);
            of["d_bits"] = json!(id.d.hex(found.d));
            of["beyond"] = number(found.beyond);
            of["times_tolerance"] = number(found.times);
            of
        };
        to_json(&json!({
            "model": self.model,
            "operation": id,
            "order": tolerance.order().name(),
            "m": m, "n": n, "k": k,
            "elements": checked.elements,
            "unbounded": checked.unbounded,
            "nearest": number(checked.nearest),
            "outside": checked.outside.iter().map(outside).collect::<Vec<_>>(),
        }))
    }
}
