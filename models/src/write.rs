//! Writing a model as a file.

use std::fmt::Write as _;

use crate::{
    document::{list, quoted},
    model::{Model, SCHEMA, Unit},
    parameters::write_adder,
};

impl Model {
    /// The model as a file in the format of this crate, without `[variant]` tables. Parsing it gives the same model,
    /// except for the names of its variants.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            text += &words;
            text.push('\n');
        };
        line(format!("schema = {}", quoted(SCHEMA)));
        for (key, value) in
            [("name", &self.name), ("title", &self.title), ("vendor", &self.vendor), ("fingerprint", &self.fingerprint)]
        {
            line(format!("{key} = {}", quoted(value)));
        }
        if !self.aliases.is_empty() {
            line(format!("aliases = {}", list(&self.aliases)));
        }
        line("\n[sources]".into());
        for (key, value) in &self.sources {
            line(format!("{} = {}", quoted(key), quoted(value)));
        }
        for adder in &self.adders {
            text += &write_adder(adder);
        }
        for unit in &self.units {
            text += &self.unit_text(unit);
        }
        text
    }

    fn unit_text(&self, unit: &Unit) -> String {
        let mut text = String::from("\n[[unit]]\n");
        if let Some(name) = &unit.name {
            let _ = writeln!(text, "name = {}", quoted(name));
        }
        let _ = writeln!(text, "tree = {}", quoted(&unit.tree));
        let scope =
            unit.operations.first().and_then(|id| self.operations.get(id)).map_or("thread", |first| &first.scope);
        if scope != "thread" {
            let _ = writeln!(text, "scope = {}", quoted(scope));
        }
        text += "operations = [\n";
        for id in &unit.operations {
            let operation = self.operations.get(id);
            let instruction = operation.and_then(|operation| operation.instruction.as_ref());
            let aliases = operation.map(|operation| &operation.aliases[..]).unwrap_or_default();
            if instruction.is_none() && aliases.is_empty() {
                let _ = writeln!(text, "    {},", quoted(&id.to_string()));
                continue;
            }
            let mut fields = format!("id = {}", quoted(&id.to_string()));
            if let Some(instruction) = instruction {
                // When a file is read, braces denote choices.
                let plain = instruction.replace(['{', '}'], "");
                let _ = write!(fields, ", instruction = {}", quoted(&plain));
            }
            let aliases: Vec<String> = aliases.iter().filter(|alias| !alias.contains(['{', '}'])).cloned().collect();
            if !aliases.is_empty() {
                let _ = write!(fields, ", aliases = {}", list(&aliases));
            }
            let _ = writeln!(text, "    {{ {fields} }},");
        }
        text += "]\n";
        let flush = [("a", unit.flush.a), ("b", unit.flush.b), ("c", unit.flush.c)];
        let flushed: Vec<String> = flush.into_iter().filter(|(_, flush)| *flush).map(|(name, _)| name.into()).collect();
        if !flushed.is_empty() {
            let _ = writeln!(text, "flush = {}", list(&flushed));
        }
        if let Some(format) = unit.flush.converted {
            let _ = writeln!(text, "convert_to = {}", quoted(format.name()));
        }
        if unit.flush.to_positive {
            text += "flush_to = \"positive-zero\"\n";
        }
        if let Some(note) = &unit.note {
            let _ = writeln!(text, "note = {}", quoted(note));
        }
        text += &unit.provenance.written("unit.provenance");
        text
    }
}
