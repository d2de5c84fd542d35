//! Comparisons as rows for spreadsheets.

use super::{
    comparisons_words::{ids, shown, sides, state},
    csv::{self, Rows},
};
use crate::report::{Comparison, MatchedBy, State};

/// The columns of comparisons.
const COLUMNS: &str = "schema state matched_by probe report source backend fingerprint device driver driver_version \
     operations outcome value words a b c d";

/// Returns one row per property and report, then one per dot and report.
pub(super) fn rows(comparison: &Comparison, all: bool) -> Rows {
    let mut rows = Vec::new();
    for found in &comparison.matches {
        for (at, side) in sides(found, comparison) {
            let mut add = |state: State, probe: &str, operations: &str, rest: [&str; 7]| {
                let by = match found.by {
                    MatchedBy::Id => "id",
                    MatchedBy::Formats => "formats",
                    MatchedBy::Terms => "terms",
                };
                let driver = side.driver.as_ref().map_or(["", ""], |driver| [&driver.name, &driver.version]);
                let head =
                    [&comparison.schema, self::state(state), by, probe, &side.label, &side.source, &side.backend];
                let device = [&side.fingerprint, &side.name, driver[0], driver[1], operations];
                rows.push(head.into_iter().chain(device).chain(rest).map(str::to_owned).collect());
            };
            for row in shown(found, all) {
                for answer in &row.answers[at] {
                    let operations =
                        if answer.operations.is_empty() { &found.operations[at] } else { &answer.operations };
                    let value = answer.value.as_ref().map(csv::value).unwrap_or_default();
                    let rest = [answer.outcome.name(), value.as_str(), &answer.words, "", "", "", ""];
                    add(row.state, &row.probe, &ids(operations), rest);
                }
            }
            for dot in &found.dots {
                if let (Some(d), Some(id)) = (&dot.d[at], &dot.operations[at]) {
                    let (a, b) = (dot.input.a.join(" "), dot.input.b.join(" "));
                    let rest = ["measured", "", &dot.input.about, &a, &b, &dot.input.c, d];
                    add(State::Differs, "", &id.to_string(), rest);
                }
            }
        }
    }
    Rows::new(COLUMNS, rows)
}
