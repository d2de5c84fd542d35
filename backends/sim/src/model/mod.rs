//! What a model is: adders, the trees that join them, and where each value comes from.

use std::collections::BTreeMap;

use mxprobe_api::{Decoded, Error, Format, Operation, OperationId, OperationSet, Overflow, Rounding, Subnormals};
use serde::Serialize;

use crate::{
    document::{Document, Item, Place, Table},
    tree::{Plan, Tree},
};

/// The version of the file format this crate reads; `schema` in a file.
pub const SCHEMA: &str = "mxprobe-model/1";

/// An executable description of a device: its operations and the arithmetic behind them.
#[derive(Clone, Debug)]
pub struct Model {
    /// The name that selects it: `h100`.
    pub name: String,
    /// Which of the file's variants this is, if any.
    pub variant: Option<String>,
    /// The device for people.
    pub title: String,
    /// The maker.
    pub vendor: String,
    /// What programs key on: `sm_90a`.
    pub fingerprint: String,
    /// Part numbers and other names.
    pub aliases: Vec<String>,
    /// Where values come from: key and text.
    pub sources: BTreeMap<String, String>,
    /// The variants that the file offers, by name.
    pub variants: BTreeMap<String, Variant>,
    /// The adders that the units use.
    pub adders: Vec<Adder>,
    /// The units.
    pub units: Vec<Unit>,
    /// Every operation of every unit.
    pub operations: OperationSet,
}

/// Another reading of the same unit, where sources disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What it changes, in words.
    pub about: String,
    /// A key of the model's sources.
    pub source: String,
}

/// The arithmetic of some operations: one tree.
#[derive(Clone, Debug)]
pub struct Unit {
    /// What variants call it.
    pub name: Option<String>,
    /// The operations that compute so.
    pub operations: Vec<OperationId>,
    /// The tree as it stands in the file.
    pub tree: String,
    pub(crate) parsed: Tree,
    /// Subnormal A, B or C read as zero.
    pub flush: Flush,
    /// What the file says beside the values.
    pub note: Option<String>,
    /// Where the values come from.
    pub provenance: Provenance,
}

/// Which operands' subnormals are read as zero (DAZ), and as which zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Those of A.
    pub a: bool,
    /// Those of B.
    pub b: bool,
    /// Those of C.
    pub c: bool,
    /// To +0 whatever the sign.
    pub to_positive: bool,
}

/// How a value came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A vendor's document says so.
    Specified,
    /// Somebody measured it on silicon.
    Measured,
    /// Neither; the best guess.
    Assumed,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// How it is known.
    pub basis: Basis,
    /// A key of the model's sources.
    pub source: String,
}

/// Where the values of an adder or a unit come from: one origin, and exceptions by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// Of every field that is not among the exceptions.
    pub origin: Origin,
    /// Fields with another origin.
    pub exceptions: BTreeMap<String, Origin>,
}

impl Provenance {
    /// Where the value of a field comes from.
    #[must_use]
    pub fn of(&self, field: &str) -> &Origin {
        self.exceptions.get(field).unwrap_or(&self.origin)
    }
}

/// One kind of fused addition: any number of terms, aligned on one grid, added exactly, rounded once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adder {
    /// Its name in trees.
    pub name: String,
    /// The rules that give the lowest bit kept: the highest of what they say. None: nothing is lost.
    pub grid: Vec<GridRule>,
    /// What becomes of a term's bits below the grid.
    pub below: Below,
    /// So many more bits are lost of a value (c or an earlier rounded result) than of a product or a sum.
    pub value_cut_bits: u32,
    /// When a value counts as 0 before bits are dropped.
    pub ignored_values: Option<IgnoredValues>,
    /// The sum wraps beyond this many bits above the bit of the largest exponent; `None`: enough.
    pub carry_bits: Option<u32>,
    /// The sum is cut to so many fraction bits once it is normalised, before it is rounded.
    pub normalised_fraction_bits: Option<u32>,
    /// The exponent never counts as less than this there.
    pub normalised_exponent_floor: Option<i32>,
    /// What becomes of the bits lost there.
    pub normalised_below: Below,
    /// What block scales multiply.
    pub scale: Scale,
    /// A product of magnitude 2^128 or more is an infinity.
    pub product_overflow: bool,
    /// What comes out.
    pub output: Output,
    /// The sign of a zero result.
    pub zero: ZeroSign,
    /// NaN results.
    pub nan: NanRules,
    /// Where the values come from.
    pub provenance: Provenance,
}

/// One rule for the grid: the largest exponent of some terms, less the fraction bits kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridRule {
    /// The terms it looks at.
    pub terms: Class,
    /// How the exponent of a term is taken.
    pub exponent: Exponent,
    /// How many bits below that exponent are kept.
    pub fraction_bits: i32,
    /// The exponent never counts as less than this; what sources call the exponent of a zero term.
    pub exponent_floor: Option<i32>,
}

/// A class of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every term.
    All,
    /// Products of a and b.
    Products,
    /// c, and results that were rounded into a format.
    Values,
    /// Results that were not rounded (`output = "wide"`).
    Sums,
}

/// How the exponent of a term is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponent {
    /// A product's is the sum of its operands' exponents, so its significand lies in [0, 4); a subnormal has the
    /// smallest normal exponent; an unrounded sum has the exponent of its own grid rule.
    Operands,
    /// That of the leading one.
    Leading,
}

/// What becomes of bits below a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Dropped from the magnitude.
    Truncate,
    /// Rounded down, toward −∞.
    Floor,
    /// Dropped from the magnitude; a term whose sign differs from that of the adder's value (c) is then added as its
    /// one's complement, one unit less than its negation, even where it is a zero, unless every term is one.
    OnesComplement,
    /// Rounded to nearest, ties to even.
    Nearest,
    /// Dropped from the magnitude, whose lowest kept bit is set if any lost bit was.
    Sticky,
}

/// When a value is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IgnoredValues {
    /// Its leading bit lies more than this many places below the lowest bit kept of it.
    pub below_bits: i32,
    /// Not where the grid is at this exponent or lower.
    pub unless_grid_at_most: Option<i32>,
}

/// What block scales multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Each product, whose exponent they join.
    Products,
    /// The exact sum of the products; its exponent is that of the scales alone.
    Sum,
}

/// What an adder gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The sum itself, unrounded, for another adder.
    Wide,
    /// A floating format.
    Float {
        /// Which.
        format: Format,
        /// Fraction bits kept of it; the rest of the format's are 0.
        fraction_bits: u32,
        /// How it is rounded.
        rounding: Rounding,
        /// What becomes of results beyond its range.
        overflow: Overflow,
        /// What becomes of results below its normal range.
        subnormals: Subnormals,
    },
    /// An integer format.
    Integer {
        /// Which.
        format: Format,
        /// Results beyond its range become its nearest end; else they wrap.
        saturates: bool,
    },
}

/// The sign of a zero result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroSign {
    /// As IEEE 754-2019, 6.3: the common sign of the terms where all are zeros of one sign; else +0, or −0 when
    /// rounding down. A result that underflows keeps its sign.
    Ieee,
    /// Always +0.
    Positive,
}

/// Which NaN comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NanRules {
    /// Which cause decides where several are there.
    pub order: Vec<NanCause>,
    /// For a NaN in A or B: `None` gives the operand quieted, its payload kept at the top.
    pub operand: Option<u64>,
    /// For a NaN in c or in an earlier result: `None` gives it quieted.
    pub value: Option<u64>,
    /// For Inf·0 and Inf − Inf.
    pub invalid: u64,
}

/// Why a result is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanCause {
    /// A NaN in A or B, A first, in the order of the terms.
    Operand,
    /// A NaN in c or an earlier result, in the order of the terms.
    Value,
    /// Inf·0, Inf − Inf.
    Invalid,
}

impl Model {
    /// Reads a model file; `variant` lays one of its variants over it.
    ///
    /// `file` is what errors call it.
    ///
    /// # Errors
    /// The first thing that is wrong, as `FILE:LINE: FIELD: what`.
    pub fn parse(file: &str, text: &str, variant: Option<&str>) -> Result<Self, Error> {
        let mut document = Document::parse(file, text)?;
        if let Some(variant) = variant {
            let root = document.root();
            let names: Vec<&str> = root.named_tables("variant")?.into_iter().map(|(name, _)| name).collect();
            if !names.contains(&variant) {
                let known =
                    if names.is_empty() { "it has none".into() } else { format!("it has {}", names.join(", ")) };
                return Err(Error::invalid(format!("{file}: there is no variant `{variant}`; {known}")));
            }
            document.overlay(&["variant", variant, "set"])?;
        }
        let mut model = Self::read(&document, variant)?;
        if let Some(variant) = variant {
            model.cite(&document, variant)?;
        }
        Ok(model)
    }

    /// Gives the values that a variant sets the variant's source, unless it gives them one itself.
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
            return Err(root.place_of("name").error(format!("`{name}` is no name of letters, digits, - _ and .")));
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
            .map(|(name, table)| Adder::read(name, &table, &sources))
            .collect::<Result<Vec<_>, _>>()?;
        let mut operations = OperationSet::new();
        let mut units = Vec::new();
        for table in root.tables("unit")? {
            units.push(Unit::read(&table, &adders, &sources, &mut operations)?);
        }
        if units.is_empty() {
            return Err(root.place().error("there is no [[unit]]"));
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

    /// The unit of an operation.
    #[must_use]
    pub fn unit(&self, id: &OperationId) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.operations.contains(id))
    }

    /// Gives a unit another tree, as it would stand in the file.
    ///
    /// # Errors
    /// If the tree does not parse, names an adder the model lacks, or does not fit one of the unit's operations; the
    /// unit is then as it was.
    ///
    /// # Panics
    /// If `unit` is not below the number of units.
    pub fn set_tree(&mut self, unit: usize, tree: &str) -> Result<(), Error> {
        let names: Vec<&str> = self.adders.iter().map(|adder| adder.name.as_str()).collect();
        let wrong = |error: String| Error::invalid(format!("{}: `{tree}`: {error}", self.name));
        let parsed = Tree::parse(tree, &names).map_err(wrong)?;
        for id in &self.units[unit].operations {
            let plan = parsed.plan(id.shape.sizes().2).map_err(wrong)?;
            check_plan(id, &plan, &self.adders).map_err(|error| wrong(format!("{id}: {error}")))?;
        }
        let unit = &mut self.units[unit];
        (unit.tree, unit.parsed) = (tree.to_owned(), parsed);
        Ok(())
    }

    /// The unit of an operation, and its plan for the operation's k.
    #[must_use]
    pub fn plan(&self, id: &OperationId) -> Option<(&Unit, Plan)> {
        let unit = self.unit(id)?;
        Some((unit, unit.plan(id.shape.sizes().2)?))
    }
}

impl Unit {
    /// The fused additions of one dot of `k` products, or `None` if the tree adds nothing then.
    #[must_use]
    pub fn plan(&self, k: usize) -> Option<Plan> {
        self.parsed.plan(k).ok()
    }

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
                other => return Err(place.error(format!("`{other}` is none of a, b, c"))),
            }
        }
        flush.to_positive = match table.text("flush_to")? {
            None | Some("signed-zero") => false,
            Some("positive-zero") => true,
            Some(other) => {
                return Err(table
                    .place_of("flush_to")
                    .error(format!("`{other}` is none of signed-zero, positive-zero")));
            }
        };
        let scope = table.text("scope")?.unwrap_or("thread");
        let mut ids = Vec::new();
        for (operation, place) in operations_of(table, scope)? {
            let id = operation.id.clone();
            let plan = parsed.plan(id.shape.sizes().2).map_err(|error| place.error(error))?;
            check_plan(&id, &plan, adders).map_err(|error| place.error(format!("{id}: {error}")))?;
            if operations.insert(id.clone(), operation).is_some() {
                return Err(place.error(format!("{id} stands twice in this file")));
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

/// The operations of a unit, where each stands in the file.
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
            // An instruction or an alias has the braces of the id, or the id has none.
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

/// `x{a,b}y` as `xay` and `xby`; several braces give every combination, the last one fastest.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let Some((head, rest)) = text.split_once('{') else {
        return if text.contains('}') { Err(format!("`}}` without `{{` in `{text}`")) } else { Ok(vec![text.into()]) };
    };
    let (choices, tail) = rest.split_once('}').ok_or_else(|| format!("`{{` without `}}` in `{text}`"))?;
    let tails = expand(tail)?;
    Ok(choices.split(',').flat_map(|choice| tails.iter().map(move |tail| format!("{head}{choice}{tail}"))).collect())
}

/// What a plan needs of an operation's formats.
pub(crate) fn check_plan(id: &OperationId, plan: &Plan, adders: &[Adder]) -> Result<(), String> {
    let last = plan.nodes.last().map(|node| &adders[node.adder]);
    let output = match last.map(|adder| adder.output) {
        Some(Output::Float { format, .. } | Output::Integer { format, .. }) => format,
        _ => return Err("the tree's last adder gives no format".into()),
    };
    if output != id.d {
        return Err(format!("the tree gives {output}, and d is {}", id.d));
    }
    let integers = [id.a, id.b, id.c, id.d].iter().filter(|format| format.is_integer()).count();
    if !matches!(integers, 0 | 4) {
        return Err("integer and floating formats are mixed".into());
    }
    for node in &plan.nodes {
        let adder = &adders[node.adder];
        let Some(products) = node.terms.iter().map(as_product).collect::<Option<Vec<_>>>() else {
            if adder.scale == Scale::Sum {
                return Err(format!("adder {} scales its sum and has terms other than products", adder.name));
            }
            continue;
        };
        if adder.scale == Scale::Sum {
            let block = id
                .block_scale()
                .ok_or_else(|| format!("adder {} scales its sum; the operation has no block scale", adder.name))?
                .block;
            if products.iter().any(|k| k / block != products[0] / block) {
                return Err(format!("adder {} sums products of several scale blocks", adder.name));
            }
        }
    }
    Ok(())
}

fn as_product(term: &crate::tree::Term) -> Option<usize> {
    match term {
        crate::tree::Term::Product(k) => Some(*k),
        _ => None,
    }
}

impl Provenance {
    fn read(table: &Table<'_>, sources: &BTreeMap<String, String>) -> Result<Self, Error> {
        let origin = |table: &Table<'_>| -> Result<Origin, Error> {
            let basis = match table.required_text("basis")? {
                "specified" => Basis::Specified,
                "measured" => Basis::Measured,
                "assumed" => Basis::Assumed,
                other => {
                    let place = table.place_of("basis");
                    return Err(place.error(format!("`{other}` is none of specified, measured, assumed")));
                }
            };
            let source = table.required_text("source")?;
            if !sources.contains_key(source) {
                return Err(table.place_of("source").error(format!("`{source}` is not among the file's sources")));
            }
            Ok(Origin { basis, source: source.to_owned() })
        };
        let mut exceptions = BTreeMap::new();
        for (field, exception) in table.named_tables("provenance")? {
            if !table.has(field) {
                return Err(exception.place().error("there is no such field beside it"));
            }
            exceptions.insert(field.to_owned(), origin(&exception)?);
            exception.finish()?;
        }
        Ok(Self { origin: origin(table)?, exceptions })
    }
}

impl Adder {
    /// Whether its result is rounded to that format or to none.
    #[must_use]
    pub fn output_format(&self) -> Option<Format> {
        match self.output {
            Output::Wide => None,
            Output::Float { format, .. } | Output::Integer { format, .. } => Some(format),
        }
    }

    fn read(name: &str, table: &Table<'_>, sources: &BTreeMap<String, String>) -> Result<Self, Error> {
        if ["c", "acc", "none", "fold", "pairs", "all", "reverse", "every"].contains(&name)
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        {
            return Err(table.place().error(format!(
                "`{name}` is no name of an adder: a word of trees, or not of letters, digits, - and _"
            )));
        }
        let mut grid = Vec::new();
        if let Some(fraction_bits) = table.integer("fraction_bits", 0, 400)? {
            grid.push(GridRule {
                terms: Class::All,
                exponent: exponent(table)?,
                fraction_bits,
                exponent_floor: table.integer("exponent_floor", -5000, 5000)?,
            });
        }
        for rule in table.tables("grid")? {
            let terms = choice(
                &rule,
                "terms",
                &[("all", Class::All), ("products", Class::Products), ("values", Class::Values), ("sums", Class::Sums)],
            )?;
            let missing = || rule.place().error("`fraction_bits` is missing");
            grid.push(GridRule {
                terms: terms.unwrap_or(Class::All),
                exponent: exponent(&rule)?,
                fraction_bits: rule.integer("fraction_bits", 0, 400)?.ok_or_else(missing)?,
                exponent_floor: rule.integer("exponent_floor", -5000, 5000)?,
            });
            rule.finish()?;
        }
        if table.has("fraction_bits") && table.has("grid") {
            return Err(table.place_of("grid").error("`fraction_bits` and `grid` say the same thing; keep one"));
        }
        let below = choice(table, "below", &BELOW)?;
        if below.is_none() && !grid.is_empty() {
            return Err(table.place().error("`below` is missing: what becomes of the bits below the grid"));
        }
        let output_name = table.required_text("output")?;
        let output = match output_name {
            "wide" => Output::Wide,
            name => {
                let format = Format::named(name).map_err(|error| table.place_of("output").error(error))?;
                if format.is_integer() { integer_output(table, format)? } else { float_output(table, format)? }
            }
        };
        let nan_format = match output {
            Output::Float { format, .. } => Some(format),
            Output::Wide | Output::Integer { .. } => None,
        };
        let ignored_values = match table.integer("ignore_values_below", -400, 400)? {
            None => None,
            Some(below_bits) => {
                let unless_grid_at_most = table.integer("ignore_values_unless_grid_at_most", -5000, 5000)?;
                Some(IgnoredValues { below_bits, unless_grid_at_most })
            }
        };
        let carry_bits = table.integer("carry_bits", 0, 64)?.map(i32::unsigned_abs);
        if carry_bits.is_some() && grid.is_empty() {
            return Err(table.place_of("carry_bits").error("an exact sum (no `fraction_bits`) has no carry limit"));
        }
        let adder = Self {
            name: name.to_owned(),
            grid,
            below: below.unwrap_or(Below::Truncate),
            value_cut_bits: table.integer("value_cut_bits", 0, 400)?.unwrap_or(0).unsigned_abs(),
            ignored_values,
            carry_bits,
            normalised_fraction_bits: table.integer("normalised_fraction_bits", 0, 400)?.map(i32::unsigned_abs),
            normalised_exponent_floor: table.integer("normalised_exponent_floor", -5000, 5000)?,
            normalised_below: choice(table, "normalised_below", &BELOW)?.unwrap_or(Below::Truncate),
            scale: choice(table, "scale", &[("products", Scale::Products), ("sum", Scale::Sum)])?
                .unwrap_or(Scale::Products),
            product_overflow: table.boolean("product_overflow")?.unwrap_or(false),
            output,
            zero: choice(table, "zero", &[("ieee", ZeroSign::Ieee), ("positive", ZeroSign::Positive)])?
                .unwrap_or(ZeroSign::Ieee),
            nan: NanRules::read(table, nan_format)?,
            provenance: Provenance::read(table, sources)?,
        };
        table.finish()?;
        Ok(adder)
    }
}

pub(crate) const BELOW: [(&str, Below); 5] = [
    ("truncate", Below::Truncate),
    ("floor", Below::Floor),
    ("ones-complement", Below::OnesComplement),
    ("nearest", Below::Nearest),
    ("sticky", Below::Sticky),
];

fn choice<T: Copy>(table: &Table<'_>, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, Error> {
    let Some(text) = table.text(key)? else { return Ok(None) };
    let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| table.place_of(key).error(format!("`{text}` is none of {}", names())))
}

fn required_choice<T: Copy>(table: &Table<'_>, key: &'static str, choices: &[(&str, T)]) -> Result<T, Error> {
    choice(table, key, choices)?.ok_or_else(|| table.place().error(format!("`{key}` is missing")))
}

fn exponent(table: &Table<'_>) -> Result<Exponent, Error> {
    let choices = [("operands", Exponent::Operands), ("leading", Exponent::Leading)];
    Ok(choice(table, "exponent", &choices)?.unwrap_or(Exponent::Operands))
}

fn integer_output(table: &Table<'_>, format: Format) -> Result<Output, Error> {
    let saturates = required_choice(table, "overflow", &[("wrap", false), ("saturate", true)])?;
    Ok(Output::Integer { format, saturates })
}

fn float_output(table: &Table<'_>, format: Format) -> Result<Output, Error> {
    let all = format.fraction_bits();
    let fraction_bits = table.integer("output_fraction_bits", 1, i64::from(all))?.map_or(all, i32::unsigned_abs);
    let rounding = required_choice(
        table,
        "rounding",
        &[
            ("nearest-even", Rounding::NearestEven),
            ("toward-zero", Rounding::TowardZero),
            ("down", Rounding::Down),
            ("up", Rounding::Up),
            ("to-odd", Rounding::ToOdd),
        ],
    )?;
    let overflow = choice(
        table,
        "overflow",
        &[
            ("infinity", Overflow::Infinity),
            ("ieee", Overflow::Ieee),
            ("nan", Overflow::Nan),
            ("saturate", Overflow::Saturate),
        ],
    )?;
    let subnormals = choice(
        table,
        "subnormals",
        &[
            ("keep", Subnormals::Keep),
            ("flush-before-rounding", Subnormals::FlushBeforeRounding),
            ("flush-after-rounding", Subnormals::FlushAfterRounding),
            ("flush-to-positive-zero", Subnormals::FlushToPositiveZero),
        ],
    )?;
    Ok(Output::Float {
        format,
        fraction_bits,
        rounding,
        overflow: overflow.unwrap_or(Overflow::Ieee),
        subnormals: subnormals.unwrap_or(Subnormals::Keep),
    })
}

impl NanRules {
    /// `format` is that of the result; an unrounded sum hands on why it is NaN, and integers never are.
    fn read(table: &Table<'_>, format: Option<Format>) -> Result<Self, Error> {
        let default = vec![NanCause::Operand, NanCause::Value, NanCause::Invalid];
        let Some(format) = format else {
            return Ok(Self { order: default, operand: None, value: None, invalid: 0 });
        };
        let bits = |table: &Table<'_>, key: &'static str, text: &str| {
            let bits = format.parse_hex(text).map_err(|error| table.place_of(key).error(error))?;
            let is_nan = matches!(format.decode(bits), Decoded::Nan { .. });
            is_nan.then_some(bits).ok_or_else(|| table.place_of(key).error(format!("{text} is no NaN of {format}")))
        };
        if let Ok(text) = table.text("nan") {
            let text = text.ok_or_else(|| table.place().error("`nan` is missing: which NaN comes out"))?;
            let nan = bits(table, "nan", text)?;
            return Ok(Self { order: default, operand: Some(nan), value: Some(nan), invalid: nan });
        }
        let Some(rules) = table.table("nan")? else { return Err(table.place().error("`nan` is missing")) };
        let mut order = Vec::new();
        for (cause, place) in rules.texts("order")? {
            order.push(match cause {
                "operand" => NanCause::Operand,
                "value" => NanCause::Value,
                "invalid" => NanCause::Invalid,
                other => return Err(place.error(format!("`{other}` is none of operand, value, invalid"))),
            });
        }
        for cause in default {
            if !order.contains(&cause) {
                order.push(cause);
            }
        }
        let quiet_or_bits = |key: &'static str| match rules.text(key)? {
            None | Some("quiet") => Ok(None),
            Some(text) => bits(&rules, key, text).map(Some),
        };
        let (operand, value) = (quiet_or_bits("operand")?, quiet_or_bits("value")?);
        let invalid = bits(&rules, "invalid", rules.required_text("invalid")?)?;
        rules.finish()?;
        Ok(Self { order, operand, value, invalid })
    }
}
