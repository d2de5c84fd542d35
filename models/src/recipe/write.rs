//! Writing a recipe as a file.

use std::fmt::Write as _;

use super::types::{Case, Count, Division, Lengths, Level, MergeOrder, Recipe, Rest, SCHEMA, Share, Start};
use crate::{
    adder::Adder,
    document::{list, quoted},
    parameters::write_adder,
};

impl Recipe {
    /// The recipe as a file in the format of this crate. Parsing it gives the same recipe.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (key, value) in [("schema", SCHEMA), ("name", &self.name), ("title", &self.title), ("model", &self.model)] {
            let _ = writeln!(text, "{key} = {}", quoted(value));
        }
        if !self.aliases.is_empty() {
            let _ = writeln!(text, "aliases = {}", list(&self.aliases));
        }
        text += "\n[sources]\n";
        for (key, value) in &self.sources {
            let _ = writeln!(text, "{} = {}", quoted(key), quoted(value));
        }
        text.extend(self.adders.iter().map(write_adder));
        text.extend(self.cases.iter().map(|case| case_text(case, &self.adders)));
        text
    }
}

fn case_text(case: &Case, adders: &[Adder]) -> String {
    let mut text = format!("\n[[case]]\nname = {}\noperations = [\n", quoted(&case.name));
    for id in &case.operations {
        let _ = writeln!(text, "    {},", quoted(&id.to_string()));
    }
    text += "]\n";
    for (key, lengths) in [("m", case.shapes.m), ("n", case.shapes.n), ("k", case.shapes.k)] {
        if lengths != Lengths::default() {
            let _ = writeln!(text, "{key} = {}", lengths_text(lengths));
        }
    }
    if !case.parameters.is_empty() {
        let each = case.parameters.iter().map(|(name, number)| format!("{name} = {number}"));
        let _ = writeln!(text, "parameters = {{ {} }}", each.collect::<Vec<_>>().join(", "));
    }
    if case.start == Start::C {
        text += "start = \"c\"\n";
    }
    if let Some(epilogue) = &case.epilogue {
        let _ = writeln!(text, "epilogue = {}", quoted(&epilogue.text(adders)));
    }
    if let Some(format) = case.c_format {
        let _ = writeln!(text, "c_format = {}", quoted(format.name()));
    }
    if let Some(note) = &case.note {
        let _ = writeln!(text, "note = {}", quoted(note));
    }
    text += &case.provenance.written("case.provenance");
    for (name, input) in &case.inputs {
        let _ = writeln!(text, "[case.input.{}]\nformat = {}", quoted(name), quoted(input.format.name()));
        let _ = writeln!(text, "shape = {}", quoted(input.shape.name()));
        if let Some(bits) = input.default {
            let _ = writeln!(text, "default = {}", quoted(&input.format.hex(bits)));
        }
    }
    text.extend(case.levels.iter().map(|level| level_text(level, adders)));
    text
}

fn lengths_text(lengths: Lengths) -> String {
    let mut fields = Vec::new();
    if lengths.from > 0 {
        fields.push(format!("from = {}", lengths.from));
    }
    fields.extend(lengths.to.map(|to| format!("to = {to}")));
    if lengths.multiple_of > 1 {
        fields.push(format!("multiple_of = {}", lengths.multiple_of));
    }
    format!("{{ {} }}", fields.join(", "))
}

fn count_text(count: &Count) -> String {
    match count {
        Count::Fixed(number) => number.to_string(),
        Count::Parameter(name) => quoted(name),
    }
}

fn level_text(level: &Level, adders: &[Adder]) -> String {
    let mut text = String::from("[[case.level]]\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {value}");
    };
    match &level.division {
        Division::Every(every) => line("every", count_text(every)),
        Division::Contiguous { slices, tile, share } => {
            line("slices", count_text(slices));
            line("tile", tile.to_string());
            if *share != Share::RoundUp {
                line("share", quoted(share.name()));
            }
        }
        Division::Interleaved { slices, tile } => {
            line("slices", count_text(slices));
            line("walk", quoted("interleaved"));
            line("tile", tile.to_string());
        }
    }
    if level.rest != Rest::Divided {
        line("rest", quoted(level.rest.name()));
    }
    if let Some(partial) = level.partial {
        line("partial", quoted(&adders[partial].name));
    }
    if level.merge != MergeOrder::Serial {
        line("merge", quoted(level.merge.name()));
    }
    if level.start != Start::First {
        line("start", quoted(level.start.name()));
    }
    line("add", quoted(&adders[level.add].name));
    text
}
