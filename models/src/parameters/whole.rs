//! A whole adder from the table: reading, writing and describing it, and the table itself as documentation.

use std::{collections::BTreeMap, fmt::Write as _};

use mxprobe_api::Error;

use super::{
    choices::Choices,
    parameter::Parameter,
    table::{PARAMETERS, RULE, counted_bits},
};
use crate::{
    adder::{Adder, Below, Class, Exponent, GridRule, NanRules, Output},
    document::Table,
    provenance::Provenance,
};

/// Words that have another meaning in trees.
const TAKEN: [&str; 8] = ["c", "acc", "none", "fold", "pairs", "all", "reverse", "every"];

/// Reads an adder from its table in a file.
pub(crate) fn read_adder(name: &str, table: &Table<'_>, sources: &BTreeMap<String, String>) -> Result<Adder, Error> {
    if TAKEN.contains(&name)
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        return Err(table.place().error(format!(
            "`{name}` is not an adder name: it is a word of trees, or not made of letters, digits, - and _"
        )));
    }
    let mut adder = Adder::exact(name, Output::Wide, NanRules::default());
    adder.grid = read_grid(table)?;
    for parameter in &PARAMETERS {
        parameter.read(table, &mut adder)?;
    }
    adder.provenance = Provenance::read(table, sources)?;
    table.finish()?;
    Ok(adder)
}

/// A rule for every term.
const PLAIN: GridRule =
    GridRule { terms: Class::All, exponent: Exponent::Operands, fraction_bits: 0, exponent_floor: None };

/// Reads one rule whose keys are among the adder's own, or an array of rules.
fn read_grid(table: &Table<'_>) -> Result<Vec<GridRule>, Error> {
    let mut grid = Vec::new();
    if table.integer("fraction_bits", 0, 400)?.is_some() {
        grid.push(PLAIN);
        for parameter in RULE.iter().filter(|parameter| parameter.key != "terms") {
            parameter.read(table, &mut grid[0])?;
        }
    }
    for table in table.tables("grid")? {
        let mut rule = PLAIN;
        for parameter in &RULE {
            parameter.read(&table, &mut rule)?;
        }
        table.finish()?;
        grid.push(rule);
    }
    if table.has("fraction_bits") && table.has("grid") {
        return Err(table.place_of("grid").error("`fraction_bits` and `grid` say the same thing; keep one"));
    }
    Ok(grid)
}

/// An adder as written in a file.
pub(crate) fn write_adder(adder: &Adder) -> String {
    let mut text = format!("\n[adder.{}]\n{}", adder.name, write_grid(&adder.grid));
    for parameter in &PARAMETERS {
        if let Some(value) = parameter.written(adder) {
            let _ = writeln!(text, "{} = {value}", parameter.key);
        }
    }
    text + &adder.provenance.written(&format!("adder.{}.provenance", adder.name))
}

fn write_grid(rules: &[GridRule]) -> String {
    let pair = |parameter: &Parameter<GridRule>, value: &str| format!("{} = {value}", parameter.key);
    if let [rule] = rules
        && rule.terms == Class::All
    {
        // The key that makes it a grid comes first.
        let (first, rest): (Vec<_>, Vec<_>) = RULE.iter().partition(|parameter| parameter.key == "fraction_bits");
        let written = first.into_iter().chain(rest).filter_map(|each| Some(pair(each, &each.written(rule)?)));
        return written.map(|line| line + "\n").collect();
    }
    if rules.is_empty() {
        return String::new();
    }
    let mut text = String::from("grid = [\n");
    for rule in rules {
        let every =
            RULE.iter().map(|each| pair(each, &each.text((each.get)(rule)))).filter(|pair| !pair.ends_with(' '));
        let _ = writeln!(text, "    {{ {} }},", every.collect::<Vec<_>>().join(", "));
    }
    text + "]\n"
}

impl Adder {
    /// Its properties in words, each with the key of the file that states it.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if self.grid.is_empty() {
            facts.push(("output", "no bit is lost at alignment: the sum is exact".to_owned()));
        }
        let is_plain = matches!(&self.grid[..], [rule] if rule.terms == Class::All);
        for rule in &self.grid {
            let (terms, exponent) = (rule.terms.choice().words, rule.exponent.choice().words);
            let bits = counted_bits(rule.fraction_bits);
            let field = |key: &'static str| if is_plain { key } else { "grid" };
            facts.push((field("fraction_bits"), format!("{bits} are kept below the largest {exponent} of {terms}")));
            facts.extend(RULE.iter().filter_map(|each| Some((field(each.key), (each.words)(rule)?))));
        }
        facts.extend(PARAMETERS.iter().filter_map(|each| Some((each.key, (each.words)(self)?))));
        facts
    }

    /// Its arithmetic in one line; defaults are left out.
    ///
    /// ```
    /// let line = mxprobe_models::load("v100")?.adders[0].summary();
    /// assert!(line.contains("the rest is truncated; "), "{line}");
    /// # Ok::<(), mxprobe_api::Error>(())
    /// ```
    #[must_use]
    pub fn summary(&self) -> String {
        let mut words = Vec::new();
        if self.grid.is_empty() {
            words.push("loses nothing before it rounds".to_owned());
        }
        for rule in &self.grid {
            let (terms, exponent) = (rule.terms.choice().brief, rule.exponent.choice().brief);
            let floor = rule.exponent_floor.map(|floor| format!(", taken as {floor} at least")).unwrap_or_default();
            words.push(format!("keeps {} bits below {exponent} of {terms}{floor}", rule.fraction_bits));
        }
        words.extend(PARAMETERS.iter().filter_map(|each| (each.brief)(self)));
        format!("{}: {}", self.name, words.join("; "))
    }

    /// The number of values that differ from the simplest.
    #[must_use]
    pub fn complexity(&self) -> usize {
        let of_rule = |rule: &GridRule| 2 + RULE.iter().filter(|each| each.complicates(rule)).count();
        self.grid.iter().map(of_rule).sum::<usize>() + PARAMETERS.iter().filter(|each| each.complicates(self)).count()
    }
}

/// The tables of docs/model-format.md on the keys of an adder.
#[must_use]
pub fn documentation() -> String {
    let mut text = "| key | type, unit, range | default | meaning |\n|---|---|---|---|\n".to_owned();
    let (terms, rest): (Vec<_>, Vec<_>) = RULE.iter().partition(|parameter| parameter.key == "terms");
    let (first, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|parameter| parameter.key == "fraction_bits");
    text.extend(first.iter().chain(&rest).chain(&terms).map(|parameter| parameter.row()));
    text += "| `grid` | array of tables | none | several such rules instead, each with the four keys above. The highest \
             lowest bit that any of them gives counts |\n";
    text.extend(PARAMETERS.iter().map(Parameter::row));
    text += "\n`below` and `normalised_below` are one of\n\n| value | meaning |\n|---|---|\n";
    for (_, choice) in Below::ALL {
        let _ = writeln!(text, "| `{}` | {} |", choice.name, choice.meaning);
    }
    text
}
