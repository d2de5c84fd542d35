//! Models that come from no file: put together from parts, and written as a file.

use std::{collections::BTreeMap, fmt::Write as _};

use mxprobe_api::{Error, Format, OperationId, Overflow, Rounding, Subnormals};

use crate::{
    model::{
        Adder, BELOW, Basis, Below, Class, Exponent, Flush, GridRule, Model, NanCause, NanRules, Origin, Output,
        Provenance, SCHEMA, Scale, Unit, ZeroSign,
    },
    tree::{Plan, Tree},
};

/// The plan of a tree, written as in a model file, for dots of `k` products; nodes number `adders` by their place.
///
/// # Errors
/// What is wrong with the tree.
pub fn plan_of(tree: &str, adders: &[&str], k: usize) -> Result<Plan, Error> {
    let wrong = |error: String| Error::invalid(format!("`{tree}`: {error}"));
    Tree::parse(tree, adders).map_err(wrong)?.plan(k).map_err(wrong)
}

impl Unit {
    /// A unit of some operations, whose tree is written as in a model file over adders of these names.
    ///
    /// # Errors
    /// If the tree does not parse.
    pub fn new(
        tree: &str,
        adders: &[&str],
        operations: Vec<OperationId>,
        flush: Flush,
        origin: Origin,
    ) -> Result<Self, Error> {
        let parsed = Tree::parse(tree, adders).map_err(|error| Error::invalid(format!("`{tree}`: {error}")))?;
        let provenance = Provenance { origin, exceptions: BTreeMap::new() };
        Ok(Self { name: None, operations, tree: tree.to_owned(), parsed, flush, note: None, provenance })
    }
}

impl Model {
    /// The model as a file in the format of this crate, without the values that variants set: reading it gives the same
    /// model, but for the names of its variants.
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
            text += &adder_text(adder);
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
                // Braces stand for choices where a file is read.
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
        if unit.flush.to_positive {
            text += "flush_to = \"positive-zero\"\n";
        }
        if let Some(note) = &unit.note {
            let _ = writeln!(text, "note = {}", quoted(note));
        }
        text += &provenance_text("unit.provenance", &unit.provenance);
        text
    }
}

fn adder_text(adder: &Adder) -> String {
    let mut text = format!("\n[adder.{}]\n", adder.name);
    let mut pair = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {value}");
    };
    grid(&adder.grid, &mut pair);
    if !adder.grid.is_empty() || adder.below != Below::Truncate {
        pair("below", quoted(name_of(&BELOW, adder.below)));
    }
    if adder.value_cut_bits > 0 {
        pair("value_cut_bits", adder.value_cut_bits.to_string());
    }
    if let Some(ignored) = adder.ignored_values {
        pair("ignore_values_below", ignored.below_bits.to_string());
        if let Some(limit) = ignored.unless_grid_at_most {
            pair("ignore_values_unless_grid_at_most", limit.to_string());
        }
    }
    if adder.product_overflow {
        pair("product_overflow", "true".into());
    }
    if adder.scale == Scale::Sum {
        pair("scale", quoted("sum"));
    }
    if let Some(bits) = adder.carry_bits {
        pair("carry_bits", bits.to_string());
    }
    if let Some(bits) = adder.normalised_fraction_bits {
        pair("normalised_fraction_bits", bits.to_string());
    }
    if let Some(floor) = adder.normalised_exponent_floor {
        pair("normalised_exponent_floor", floor.to_string());
    }
    if adder.normalised_below != Below::Truncate {
        pair("normalised_below", quoted(name_of(&BELOW, adder.normalised_below)));
    }
    output(adder.output, &mut pair);
    if adder.zero == ZeroSign::Positive {
        pair("zero", quoted("positive"));
    }
    if let Output::Float { format, .. } = adder.output {
        pair("nan", nan(&adder.nan, format));
    }
    text += &provenance_text(&format!("adder.{}.provenance", adder.name), &adder.provenance);
    text
}

fn grid(rules: &[GridRule], pair: &mut dyn FnMut(&str, String)) {
    let exponent = |rule: &GridRule| match rule.exponent {
        Exponent::Operands => "operands",
        Exponent::Leading => "leading",
    };
    match rules {
        [] => {}
        [rule] if rule.terms == Class::All => {
            pair("fraction_bits", rule.fraction_bits.to_string());
            if rule.exponent != Exponent::Operands {
                pair("exponent", quoted(exponent(rule)));
            }
            if let Some(floor) = rule.exponent_floor {
                pair("exponent_floor", floor.to_string());
            }
        }
        rules => {
            let mut text = String::from("[\n");
            for rule in rules {
                let terms = match rule.terms {
                    Class::All => "all",
                    Class::Products => "products",
                    Class::Values => "values",
                    Class::Sums => "sums",
                };
                let _ = write!(
                    text,
                    "    {{ terms = \"{terms}\", exponent = \"{}\", fraction_bits = {}",
                    exponent(rule),
                    rule.fraction_bits
                );
                if let Some(floor) = rule.exponent_floor {
                    let _ = write!(text, ", exponent_floor = {floor}");
                }
                text += " },\n";
            }
            text.push(']');
            pair("grid", text);
        }
    }
}

fn output(output: Output, pair: &mut dyn FnMut(&str, String)) {
    match output {
        Output::Wide => pair("output", quoted("wide")),
        Output::Integer { format, saturates } => {
            pair("output", quoted(format.name()));
            pair("overflow", quoted(if saturates { "saturate" } else { "wrap" }));
        }
        Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
            pair("output", quoted(format.name()));
            if fraction_bits != format.fraction_bits() {
                pair("output_fraction_bits", fraction_bits.to_string());
            }
            let rounding = match rounding {
                Rounding::NearestEven => "nearest-even",
                Rounding::TowardZero => "toward-zero",
                Rounding::Down => "down",
                Rounding::Up => "up",
                Rounding::ToOdd => "to-odd",
            };
            pair("rounding", quoted(rounding));
            let overflow = match overflow {
                Overflow::Ieee => None,
                Overflow::Infinity => Some("infinity"),
                Overflow::Nan => Some("nan"),
                Overflow::Saturate => Some("saturate"),
            };
            if let Some(overflow) = overflow {
                pair("overflow", quoted(overflow));
            }
            let subnormals = match subnormals {
                Subnormals::Keep => None,
                Subnormals::FlushBeforeRounding => Some("flush-before-rounding"),
                Subnormals::FlushAfterRounding => Some("flush-after-rounding"),
                Subnormals::FlushToPositiveZero => Some("flush-to-positive-zero"),
            };
            if let Some(subnormals) = subnormals {
                pair("subnormals", quoted(subnormals));
            }
        }
    }
}

fn nan(rules: &NanRules, format: Format) -> String {
    let hex = |bits: u64| quoted(&format.hex(bits));
    if rules.operand == Some(rules.invalid) && rules.value == Some(rules.invalid) {
        return hex(rules.invalid);
    }
    let mut fields = Vec::new();
    if rules.order != [NanCause::Operand, NanCause::Value, NanCause::Invalid] {
        let order = rules.order.iter().map(|cause| match cause {
            NanCause::Operand => "\"operand\"",
            NanCause::Value => "\"value\"",
            NanCause::Invalid => "\"invalid\"",
        });
        fields.push(format!("order = [{}]", order.collect::<Vec<_>>().join(", ")));
    }
    for (key, bits) in [("operand", rules.operand), ("value", rules.value)] {
        fields.push(format!("{key} = {}", bits.map_or_else(|| quoted("quiet"), hex)));
    }
    fields.push(format!("invalid = {}", hex(rules.invalid)));
    format!("{{ {} }}", fields.join(", "))
}

fn provenance_text(table: &str, provenance: &Provenance) -> String {
    let basis = |origin: &Origin| match origin.basis {
        Basis::Specified => "specified",
        Basis::Measured => "measured",
        Basis::Assumed => "assumed",
    };
    let mut text =
        format!("basis = \"{}\"\nsource = {}\n", basis(&provenance.origin), quoted(&provenance.origin.source));
    if !provenance.exceptions.is_empty() {
        let _ = writeln!(text, "[{table}]");
        for (field, origin) in &provenance.exceptions {
            let source = quoted(&origin.source);
            let _ = writeln!(text, "{field} = {{ basis = \"{}\", source = {source} }}", basis(origin));
        }
    }
    text
}

fn name_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], value: T) -> &'static str {
    choices.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// A text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}
