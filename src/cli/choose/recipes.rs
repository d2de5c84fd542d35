//! Recipes that a command asks for: `NAME[@CASE][,NUMBER=4]`, a shipped recipe or a file.

use std::{collections::BTreeMap, path::Path};

use mxprobe_api::{Elements, Format, OperationId};
use mxprobe_models::{
    Model,
    recipe::{Case, Input, Program, Recipe, load},
};

use crate::cli::{failure::Failure, io::npy};

/// What stands before a recipe where models and devices are named too.
pub(crate) const PREFIX: &str = "recipe:";

/// A recipe, and what was said beside its name.
pub(crate) struct Chosen {
    /// All that was said.
    pub(crate) name: String,
    /// The recipe.
    pub(crate) recipe: Recipe,
    /// Its model.
    pub(crate) model: Model,
    /// The name of a case.
    case: Option<String>,
    parameters: BTreeMap<String, usize>,
}

/// Reads the recipe of `NAME[@CASE][,NAME=NUMBER]…`.
pub(crate) fn chosen(text: &str) -> Result<Chosen, Failure> {
    let bare = text.strip_prefix(PREFIX).unwrap_or(text);
    let mut words = bare.split(',');
    let first = words.next().unwrap_or_default();
    let (name, case) = match first.rsplit_once('@') {
        Some((name, case)) if !case.contains('/') => (name, Some(case.to_owned())),
        _ => (first, None),
    };
    let setting = |word: &str| {
        let (name, number) = word.split_once('=')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let mut parameters = BTreeMap::new();
    for word in words {
        let (name, number) = setting(word).ok_or_else(|| {
            Failure::usage(format!("`{text}`: `{word}` is not a name and a whole number such as slices=4"))
        })?;
        parameters.insert(name, number);
    }
    let (recipe, model) = load(name).map_err(Failure::usage)?;
    Ok(Chosen { name: bare.to_owned(), recipe, model, case, parameters })
}

impl Chosen {
    /// The operations of the case that was named, or of all.
    pub(crate) fn operations(&self) -> Vec<&OperationId> {
        self.recipe.operations(self.case.as_deref())
    }

    /// The operation that is named, or the only one.
    pub(crate) fn operation(&self, op: Option<&str>) -> Result<OperationId, Failure> {
        let known = self.operations();
        if known.is_empty() {
            // That there is no such case is said with the cases that there are.
            return self.case((0, 0, 0), None).map(|case| case.operations[0].clone());
        }
        let listed = || known.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let Some(op) = op else {
            return match known[..] {
                [id] => Ok(id.clone()),
                _ => Err(Failure::usage(format!("`--op OP` is missing: {} is for {}", self.name, listed()))),
            };
        };
        let found =
            self.recipe.operation_named(&self.model, self.case.as_deref(), op).map_err(Failure::usage)?.cloned();
        found.ok_or_else(|| Failure::usage(format!("`--op {op}`: {} is for {}", self.name, listed())))
    }

    /// The case for a shape.
    pub(crate) fn case(&self, shape: (usize, usize, usize), operation: Option<&OperationId>) -> Result<&Case, Failure> {
        self.recipe.case_for(self.case.as_deref(), operation, shape).map_err(Failure::usage)
    }

    /// The program for an element of k products, of any shape.
    pub(crate) fn program_of_element(&self, id: &OperationId, k: usize) -> Result<Program, Failure> {
        let case = self.recipe.case_of_element(self.case.as_deref(), Some(id), k).map_err(Failure::usage)?;
        Program::new(&self.recipe, &self.model, case, id, &self.parameters).map_err(Failure::usage)
    }

    /// The program for a shape.
    pub(crate) fn program(&self, id: &OperationId, shape: (usize, usize, usize)) -> Result<Program, Failure> {
        let case = self.case(shape, Some(id))?;
        Program::new(&self.recipe, &self.model, case, id, &self.parameters).map_err(Failure::usage)
    }
}

/// What is given for the inputs of a case: numbers, bits in hexadecimal, or NumPy files.
pub(crate) fn inputs(case: &Case, given: &[(String, String)]) -> Result<BTreeMap<String, Elements>, Failure> {
    let one = |(name, text): &(String, String)| Ok((name.clone(), input(case.inputs.get(name), name, text)?));
    given.iter().map(one).collect()
}

fn input(input: Option<&Input>, name: &str, text: &str) -> Result<Elements, Failure> {
    // A name that the case lacks is refused with those that it has.
    let Some(input) = input else { return Ok(Elements::zeros(Format::F32, 0)) };
    let format = input.format;
    if text.ends_with(".npy") {
        return npy::read(Path::new(text), format, false)?.exactly(format, name).map_err(Failure::usage);
    }
    let bits = if text.starts_with("0x") {
        format.parse_hex(text).map_err(|error| Failure::usage(format!("`--input {name}={text}`: {error}")))?
    } else {
        let number: f64 = text.parse().map_err(|_| {
            Failure::usage(format!(
                "`--input {name}={text}` is neither a number, bits such as 0x3f800000, nor a FILE.npy"
            ))
        })?;
        format.from_f64(number)
    };
    Ok(Elements::from_bits(format, [bits]))
}
