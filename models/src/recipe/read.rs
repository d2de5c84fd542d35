//! Reading a recipe file. Errors name the file, the line and the field.

use std::collections::BTreeMap;

use mxprobe_api::{Error, Format, OperationId};

use super::{
    expression::{Expression, Factor},
    types::{
        Case, Count, Division, Input, InputShape, Lengths, Level, MergeOrder, Recipe, Rest, SCHEMA, Shapes, Share,
        Start,
    },
};
use crate::{
    adder::{Adder, Scale},
    document::{Document, Place, Table},
    parameters::read_adder,
    provenance::Provenance,
    read::expand,
};

/// The largest slice, tile or parameter, and the largest number of slices of a level.
const LARGEST: i64 = 1 << 20;

impl Recipe {
    /// Reads a recipe file; `file` is the name used in errors. The model is not opened.
    ///
    /// # Errors
    /// The first error in the file, as `FILE:LINE: FIELD: what`.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let mut document = Document::parse(file, text)?;
        document.write_out("case")?;
        let root = document.root();
        let schema = root.required_text("schema")?;
        if schema != SCHEMA {
            return Err(root
                .place_of("schema")
                .error(format!("`{schema}` is not `{SCHEMA}`, which this version reads")));
        }
        let name = root.required_text("name")?;
        check_name(name, &root.place_of("name"))?;
        let sources: BTreeMap<String, String> =
            root.named_texts("sources")?.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
        let mut adders = Vec::new();
        for (name, table) in root.named_tables("adder")? {
            let place = table.place().clone();
            let adder = read_adder(name, &table, &sources)?;
            check_adder(&adder).map_err(|error| place.error(error))?;
            adders.push(adder);
        }
        let mut cases: Vec<Case> = Vec::new();
        for table in root.tables("case")? {
            let case = read_case(&table, &adders, &sources)?;
            let is_hidden = |other: &Case| {
                let same = (&other.name, other.shapes) == (&case.name, case.shapes);
                same && other.operations.iter().any(|id| case.operations.contains(id))
            };
            if cases.iter().any(is_hidden) {
                return Err(table
                    .place_of("name")
                    .error(format!("`{}` appears twice in this file, for the same shapes and operations", case.name)));
            }
            cases.push(case);
        }
        if cases.is_empty() {
            return Err(root.place().error("`[[case]]` is missing"));
        }
        let recipe = Self {
            name: name.to_owned(),
            title: root.required_text("title")?.to_owned(),
            model: root.required_text("model")?.to_owned(),
            aliases: root.texts("aliases")?.into_iter().map(|(alias, _)| alias.to_owned()).collect(),
            sources,
            adders,
            cases,
        };
        root.finish()?;
        Ok(recipe)
    }
}

fn check_name(name: &str, place: &Place) -> Result<(), Error> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return Err(place.error(format!("`{name}` is not a name of letters, digits, - _ and .")));
    }
    Ok(())
}

/// Checks that an adder fits outside a unit: it must have a format and no block scales.
fn check_adder(adder: &Adder) -> Result<(), String> {
    if adder.output_format().is_none() {
        return Err("`output` is `wide`: outside a unit every sum needs a format".to_owned());
    }
    if adder.scale == Scale::Sum {
        return Err("`scale` is `sum`: block scales belong to units".to_owned());
    }
    Ok(())
}

fn read_case(table: &Table<'_>, adders: &[Adder], sources: &BTreeMap<String, String>) -> Result<Case, Error> {
    let name = table.required_text("name")?;
    check_name(name, &table.place_of("name"))?;
    let mut operations: Vec<OperationId> = Vec::new();
    for (text, place) in table.texts("operations")? {
        for text in expand(text).map_err(|error| place.error(error))? {
            let id: OperationId = text.parse().map_err(|error| place.error(error))?;
            if operations.contains(&id) {
                return Err(place.error(format!("{id} appears twice in this case")));
            }
            operations.push(id);
        }
    }
    let Some(first) = operations.first() else {
        return Err(table.place().error("`operations` is missing or empty"));
    };
    if let Some(other) = operations.iter().find(|id| (id.c, id.d) != (first.c, first.d)) {
        return Err(table.place_of("operations").error(format!(
            "{first} gives {} from {} and {other} {} from {}; a case needs one format of c and one of d",
            first.d, first.c, other.d, other.c
        )));
    }
    let shapes = Shapes { m: lengths(table, "m")?, n: lengths(table, "n")?, k: lengths(table, "k")? };
    let mut parameters = BTreeMap::new();
    if let Some(named) = table.table("parameters")? {
        for key in named.keys().map(str::to_owned).collect::<Vec<_>>() {
            check_name(&key, &named.place_of(&key))?;
            let number = named.number(&key, 1, LARGEST)?;
            parameters.insert(key, usize::try_from(number).unwrap_or(1));
        }
    }
    let start = table.choice("start", &[("+0", Start::Zero), ("c", Start::C)])?.unwrap_or(Start::Zero);
    let mut levels = Vec::new();
    for level in table.tables("level")? {
        levels.push(read_level(&level, adders, &parameters, first)?);
    }
    let mut inputs = BTreeMap::new();
    for (name, input) in table.named_tables("input")? {
        check_name(name, input.place())?;
        if ["acc", "c"].contains(&name) {
            return Err(input.place().error(format!("`{name}` has another meaning in an epilogue")));
        }
        inputs.insert(name.to_owned(), read_input(&input)?);
    }
    let epilogue = read_epilogue(table, adders, &inputs)?;
    let c_format = match table.text("c_format")? {
        None => None,
        Some(_) if !epilogue.as_ref().is_some_and(Expression::reads_c) => {
            return Err(table
                .place_of("c_format")
                .error("the epilogue does not read c, which alone may have another format"));
        }
        Some(name) => Some(Format::named(name).map_err(|error| table.place_of("c_format").error(error))?),
    };
    let case = Case {
        name: name.to_owned(),
        operations,
        shapes,
        parameters,
        start,
        levels,
        c_format,
        inputs,
        epilogue,
        note: table.text("note")?.map(str::to_owned),
        provenance: Provenance::read(table, sources)?,
    };
    check_case(&case, table, adders)?;
    table.finish()?;
    Ok(case)
}

fn lengths(table: &Table<'_>, key: &'static str) -> Result<Lengths, Error> {
    let Some(table) = table.table(key)? else { return Ok(Lengths::default()) };
    let read = |key: &'static str, least: i64| -> Result<Option<usize>, Error> {
        let number = table.integer(key, least, i64::from(i32::MAX))?;
        Ok(number.map(|number| usize::try_from(number).unwrap_or_default()))
    };
    let (from, to) = (read("from", 0)?.unwrap_or(0), read("to", 0)?);
    let lengths = Lengths { from, to, multiple_of: read("multiple_of", 1)?.unwrap_or(1) };
    if let Some(to) = to.filter(|to| *to < from) {
        return Err(table.place_of("to").error(format!("{to} is below `from`, {from}")));
    }
    table.finish()?;
    Ok(lengths)
}

/// Reads one level over k.
fn read_level(
    table: &Table<'_>,
    adders: &[Adder],
    parameters: &BTreeMap<String, usize>,
    operation: &OperationId,
) -> Result<Level, Error> {
    let slices = count(table, "slices", parameters)?;
    let every = count(table, "every", parameters)?;
    let walk = table.choice("walk", &[("contiguous", false), ("interleaved", true)])?;
    let tile = table.integer("tile", 1, LARGEST)?.map(|tile| usize::try_from(tile).unwrap_or(1));
    let share = table.choice("share", &[("round-up", Share::RoundUp), ("balanced", Share::Balanced)])?;
    let division = match (slices, every) {
        (Some(_), Some(_)) => {
            return Err(table.place_of("every").error("`slices` and `every` both divide k; keep one"));
        }
        (None, None) => return Err(table.place().error("neither `slices` nor `every` says how k is divided")),
        (None, Some(every)) => {
            if let Some(key) = ["walk", "tile", "share"].into_iter().find(|key| table.has(key)) {
                return Err(table
                    .place_of(key)
                    .error(format!("`{key}` belongs to `slices`, but this level has `every`")));
            }
            Division::Every(every)
        }
        (Some(slices), None) if walk == Some(true) => {
            if share.is_some() {
                return Err(table
                    .place_of("share")
                    .error("interleaved slices take tiles in turn; `share` applies to contiguous ones"));
            }
            Division::Interleaved { slices, tile: tile.unwrap_or(1) }
        }
        (Some(slices), None) => {
            Division::Contiguous { slices, tile: tile.unwrap_or(1), share: share.unwrap_or(Share::RoundUp) }
        }
    };
    let rest = table.choice("rest", &Rest::ALL)?.unwrap_or(Rest::Divided);
    let named = |key: &'static str| -> Result<Option<usize>, Error> {
        let Some(name) = table.text(key)? else { return Ok(None) };
        let names: Vec<&str> = adders.iter().map(|adder| adder.name.as_str()).collect();
        let found = names.iter().position(|other| *other == name);
        found.map(Some).ok_or_else(|| {
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            table.place_of(key).error(format!("`{name}` is not an adder of this recipe; it has {names}"))
        })
    };
    let partial = named("partial")?;
    let add =
        named("add")?.ok_or_else(|| table.place().error("`add` is missing: the adder that merges partial sums"))?;
    let merge = table.choice("merge", &MergeOrder::ALL)?.unwrap_or(MergeOrder::Serial);
    let start = table.choice("start", &Start::ALL)?.unwrap_or(Start::First);
    if start != Start::First && !matches!(merge, MergeOrder::Serial | MergeOrder::Reverse) {
        return Err(table
            .place_of("start")
            .error(format!("a merge by `{}` always starts from its first partial sums", merge.name())));
    }
    let merged = adders[add].output_format();
    if let Some(misfit) = rest.misfit(merged, operation.c) {
        return Err(table.place_of("rest").error(misfit));
    }
    table.finish()?;
    Ok(Level { division, rest, partial, merge, start, add })
}

/// Reads a number, or the name of a parameter.
fn count(table: &Table<'_>, key: &'static str, parameters: &BTreeMap<String, usize>) -> Result<Option<Count>, Error> {
    if table.is_text(key) {
        let Some(name) = table.text(key)? else { return Ok(None) };
        if !parameters.contains_key(name) {
            let known: Vec<&str> = parameters.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(table.place_of(key).error(format!("`{name}` is not a parameter of this case; it has {known}")));
        }
        return Ok(Some(Count::Parameter(name.to_owned())));
    }
    let number = table.integer(key, 1, LARGEST)?;
    Ok(number.map(|number| Count::Fixed(usize::try_from(number).unwrap_or(1))))
}

fn read_input(table: &Table<'_>) -> Result<Input, Error> {
    let format =
        Format::named(table.required_text("format")?).map_err(|error| table.place_of("format").error(error))?;
    let shape = table.choice("shape", &InputShape::ALL)?.unwrap_or(InputShape::Scalar);
    let default = match table.text("default")? {
        None => None,
        Some(text) => Some(format.parse_hex(text).map_err(|error| table.place_of("default").error(error))?),
    };
    table.finish()?;
    Ok(Input { format, shape, default })
}

fn read_epilogue(
    table: &Table<'_>,
    adders: &[Adder],
    inputs: &BTreeMap<String, Input>,
) -> Result<Option<Expression>, Error> {
    let Some(text) = table.text("epilogue")? else {
        if let Some(name) = inputs.keys().next() {
            return Err(table.place_of("input").error(format!("`{name}` is given, but no epilogue reads it")));
        }
        return Ok(None);
    };
    let names: Vec<&str> = adders.iter().map(|adder| adder.name.as_str()).collect();
    let known: Vec<&str> = inputs.keys().map(String::as_str).collect();
    let place = table.place_of("epilogue");
    let expression = Expression::parse(text, &names, &known).map_err(|error| place.error(error))?;
    let mut read: Vec<Factor> = Vec::new();
    expression.visit(&mut |addition| read.extend(addition.factors().cloned()));
    if !read.contains(&Factor::Acc) {
        return Err(place.error("the epilogue does not read acc, so the product would be lost"));
    }
    Ok(Some(expression))
}

/// Checks that levels, epilogue and operations fit together.
fn check_case(case: &Case, table: &Table<'_>, adders: &[Adder]) -> Result<(), Error> {
    let mut reads_c: Vec<String> = Vec::new();
    if case.start == Start::C {
        reads_c.push("start".to_owned());
    }
    let levels = case.levels.iter().enumerate();
    reads_c.extend(levels.filter(|(_, level)| level.start == Start::C).map(|(at, _)| format!("level[{at}].start")));
    if case.epilogue.as_ref().is_some_and(Expression::reads_c) {
        reads_c.push("epilogue".to_owned());
    }
    if let [one, other, ..] = &reads_c[..] {
        return Err(table.place().error(format!("c enters twice, by `{one}` and by `{other}`")));
    }
    // A fraction is never rounded to an integer.
    let mut is_whole = case.operations[0].d.is_integer();
    let mut steps: Vec<(usize, &str)> = Vec::new();
    for level in case.levels.iter().rev() {
        steps.extend(level.partial.map(|adder| (adder, "level")));
        steps.push((level.add, "level"));
    }
    if let Some(epilogue) = &case.epilogue {
        epilogue.visit(&mut |addition| steps.push((addition.adder, "epilogue")));
    }
    for (adder, key) in steps {
        let adder = &adders[adder];
        let gives_whole = adder.output_format().is_some_and(Format::is_integer);
        if gives_whole && !is_whole {
            return Err(table
                .place_of(key)
                .error(format!("adder {} has an integer format, but its input is not an integer", adder.name)));
        }
        is_whole = gives_whole;
    }
    Ok(())
}
