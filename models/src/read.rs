//! Reading a model file. Errors name the file, the line and the field.

use std::collections::BTreeMap;

use mxprobe_api::{Error, Format, Operation, OperationSet};

use crate::{
    adder::Adder,
    convert::holds,
    document::{Document, Item, Place, Table},
    model::{Flush, Model, SCHEMA, Unit, Variant, check_plan},
    parameters::read_adder,
    provenance::{Basis, Origin, Provenance},
    tree::Tree,
};

impl Model {
    /// Reads a model file; `variant` overlays one of its variants.
    ///
    /// `file` is the name used in errors.
    ///
    /// # Errors
    /// The first error in the file, as `FILE:LINE: FIELD: what`.
    pub fn parse(file: &str, text: &str, variant: Option<&str>) -> Result<Self, Error> {
        let mut document = Document::parse(file, text)?;
        if let Some(variant) = variant {
            let root = document.root();
            let names: Vec<&str> = root.named_tables("variant")?.into_iter().map(|(name, _)| name).collect();
            if !names.contains(&variant) {
                let known =
                    if names.is_empty() { "it has none".into() } else { format!("it has {}", names.join(", ")) };
                return Err(Error::invalid(format!("{file}: unknown variant `{variant}`; {known}")));
            }
            document.overlay(&["variant", variant, "set"])?;
        }
        let mut model = Self::read(&document, variant)?;
        if let Some(variant) = variant {
            model.cite(&document, variant)?;
        }
        Ok(model)
    }

    /// Attributes the values that a variant sets to the variant's source, unless it attributes them itself.
    fn cite(&mut self, document: &Document, variant: &str) -> Result<(), Error> {
        let origin = Origin { basis: Basis::Assumed, source: self.variants[variant].source.clone() };
        let variants = document.root().named_tables("variant")?;
        let Some((_, table)) = variants.into_iter().find(|(name, _)| *name == variant) else { return Ok(()) };
        let Some(set) = table.table("set")? else { return Ok(()) };
        let cite = |provenance: &mut Provenance, table: &Table<'_>| -> Result<(), Error> {
            let own = table.table("provenance")?;
            for key in table.keys().filter(|key| *key != "provenance") {
                if own.as_ref().is_none_or(|own| !own.has(key)) {
                    provenance.exceptions.insert(key.to_owned(), origin.clone());
                }
            }
            Ok(())
        };
        for (name, table) in set.named_tables("adder")? {
            for adder in self.adders.iter_mut().filter(|adder| adder.name == name) {
                cite(&mut adder.provenance, &table)?;
            }
        }
        for (name, table) in set.named_tables("unit")? {
            for unit in self.units.iter_mut().filter(|unit| unit.name.as_deref() == Some(name)) {
                cite(&mut unit.provenance, &table)?;
            }
        }
        Ok(())
    }

    fn read(document: &Document, variant: Option<&str>) -> Result<Self, Error> {
        let root = document.root();
        let schema = root.required_text("schema")?;
        if schema != SCHEMA {
            return Err(root
                .place_of("schema")
                .error(format!("`{schema}` is not `{SCHEMA}`, which this version reads")));
        }
        let name = root.required_text("name")?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return Err(root.place_of("name").error(format!("`{name}` is not a name of letters, digits, - _ and .")));
        }
        let sources: BTreeMap<String, String> =
            root.named_texts("sources")?.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
        let mut variants = BTreeMap::new();
        for (name, table) in root.named_tables("variant")? {
            let (about, source) = (table.required_text("about")?, table.required_text("source")?);
            if !sources.contains_key(source) {
                return Err(table.place_of("source").error(format!("`{source}` is not among the file's sources")));
            }
            if table.table("set")?.is_none() {
                return Err(table.place().error("`set` is missing: what the variant changes"));
            }
            variants.insert(name.to_owned(), Variant { about: about.to_owned(), source: source.to_owned() });
            table.finish()?;
        }
        let adders = root
            .named_tables("adder")?
            .into_iter()
            .map(|(name, table)| read_adder(name, &table, &sources))
            .collect::<Result<Vec<_>, _>>()?;
        let mut operations = OperationSet::new();
        let mut units = Vec::new();
        for table in root.tables("unit")? {
            units.push(Unit::read(&table, &adders, &sources, &mut operations)?);
        }
        if units.is_empty() {
            return Err(root.place().error("`[[unit]]` is missing"));
        }
        let model = Self {
            name: name.to_owned(),
            variant: variant.map(str::to_owned),
            title: root.required_text("title")?.to_owned(),
            vendor: root.required_text("vendor")?.to_owned(),
            fingerprint: root.required_text("fingerprint")?.to_owned(),
            aliases: root.texts("aliases")?.into_iter().map(|(text, _)| text.to_owned()).collect(),
            sources,
            variants,
            adders,
            units,
            operations,
        };
        root.finish()?;
        Ok(model)
    }
}

impl Unit {
    fn read(
        table: &Table<'_>,
        adders: &[Adder],
        sources: &BTreeMap<String, String>,
        operations: &mut OperationSet,
    ) -> Result<Self, Error> {
        let tree = table.required_text("tree")?;
        let names: Vec<&str> = adders.iter().map(|adder| adder.name.as_str()).collect();
        let parsed = Tree::parse(tree, &names).map_err(|error| table.place_of("tree").error(error))?;
        let mut flush = Flush::default();
        for (operand, place) in table.texts("flush")? {
            match operand {
                "a" => flush.a = true,
                "b" => flush.b = true,
                "c" => flush.c = true,
                other => return Err(place.error(format!("`{other}` is not one of a, b, c"))),
            }
        }
        flush.to_positive = match table.text("flush_to")? {
            None | Some("signed-zero") => false,
            Some("positive-zero") => true,
            Some(other) => {
                return Err(table
                    .place_of("flush_to")
                    .error(format!("`{other}` is not one of signed-zero, positive-zero")));
            }
        };
        flush.converted = match table.text("convert_to")? {
            None => None,
            Some(name) => Some(Format::named(name).map_err(|error| table.place_of("convert_to").error(error))?),
        };
        let scope = table.text("scope")?.unwrap_or("thread");
        let mut ids = Vec::new();
        for (operation, place) in operations_of(table, scope)? {
            let id = operation.id.clone();
            let plan = parsed.plan(id.shape.sizes().2).map_err(|error| place.error(error))?;
            check_plan(&id, &plan, adders).map_err(|error| place.error(format!("{id}: {error}")))?;
            if let Some(to) = flush.converted
                && let Some(from) = [id.a, id.b].into_iter().find(|from| !holds(to, *from))
            {
                return Err(place.error(format!("{id}: {to} does not hold every value of {from}")));
            }
            if operations.insert(id.clone(), operation).is_some() {
                return Err(place.error(format!("{id} appears twice in this file")));
            }
            ids.push(id);
        }
        if ids.is_empty() {
            return Err(table.place().error("`operations` is missing or empty"));
        }
        let unit = Self {
            name: table.text("name")?.map(str::to_owned),
            operations: ids,
            tree: tree.to_owned(),
            parsed,
            flush,
            note: table.text("note")?.map(str::to_owned),
            provenance: Provenance::read(table, sources)?,
        };
        table.finish()?;
        Ok(unit)
    }
}

/// The operations of a unit, with their places in the file.
fn operations_of(table: &Table<'_>, scope: &str) -> Result<Vec<(Operation, Place)>, Error> {
    let mut operations = Vec::new();
    for item in table.items("operations")? {
        let (text, place, rest) = match &item {
            Item::Text(text, place) => (*text, place.clone(), None),
            Item::Table(rest) => (rest.required_text("id")?, rest.place_of("id"), Some(rest)),
        };
        let mut expanded = Vec::new();
        for text in expand(text).map_err(|error| place.error(error))? {
            let id = text.parse().map_err(|error| place.error(error))?;
            expanded.push(Operation::new(id, scope));
        }
        if let Some(rest) = rest {
            // An instruction or an alias has the same braces as the id, unless the id has none.
            let names = |text: &str, place: &Place| {
                let names = expand(text).map_err(|error| place.error(error))?;
                if names.len() == expanded.len() {
                    return Ok(names);
                }
                Err(place.error(format!("{} names for {} operations", names.len(), expanded.len())))
            };
            let instructions = match rest.text("instruction")? {
                Some(text) if text.contains('{') => names(text, &rest.place_of("instruction"))?,
                Some(text) => vec![text.to_owned(); expanded.len()],
                None => Vec::new(),
            };
            let mut aliases = Vec::new();
            for (alias, place) in rest.texts("aliases")? {
                aliases.push(names(alias, &place)?);
            }
            for (index, operation) in expanded.iter_mut().enumerate() {
                operation.instruction = instructions.get(index).cloned();
                operation.aliases = aliases.iter().map(|names| names[index].clone()).collect();
            }
            rest.finish()?;
        }
        operations.extend(expanded.into_iter().map(|operation| (operation, place.clone())));
    }
    Ok(operations)
}

/// Expands `x{a,b}y` to `xay` and `xby`; several braces give every combination, the last one varying fastest.
pub(crate) fn expand(text: &str) -> Result<Vec<String>, String> {
    let Some((head, rest)) = text.split_once('{') else {
        return if text.contains('}') { Err(format!("`}}` without `{{` in `{text}`")) } else { Ok(vec![text.into()]) };
    };
    let (choices, tail) = rest.split_once('}').ok_or_else(|| format!("`{{` without `}}` in `{text}`"))?;
    let tails = expand(tail)?;
    Ok(choices.split(',').flat_map(|choice| tails.iter().map(move |tail| format!("{head}{choice}{tail}"))).collect())
}
