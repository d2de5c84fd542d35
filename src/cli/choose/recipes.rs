//! Recipes named on the command line: `NAME[@CASE][,NUMBER=4]`, a shipped recipe or a file.

use std::{collections::BTreeMap, path::Path};

use mxprobe_api::{Elements, Format, OperationId};
use mxprobe_models::{
    Model,
    recipe::{Case, Input, Program, Recipe, load},
};

use crate::cli::{failure::Failure, io::npy};

/// The prefix of recipes where models and devices can be named too.
pub(crate) const PREFIX: &str = "recipe:";

/// A recipe with its case and parameters.
pub(crate) struct Chosen {
    /// The full text of the argument, without the prefix.
    pub(crate) name: String,
    /// The recipe.
    pub(crate) recipe: Recipe,
    /// The recipe's model.
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
    /// Returns the operations of the named case, or of all cases.
    pub(crate) fn operations(&self) -> Vec<&OperationId> {
        self.recipe.operations(self.case.as_deref())
    }

    /// Returns the named operation, or the only one.
    pub(crate) fn operation(&self, op: Option<&str>) -> Result<OperationId, Failure> {
        let known = self.operations();
        if known.is_empty() {
            // The error for a missing case lists the existing cases.
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

    /// Returns the case for a shape.
    pub(crate) fn case(&self, shape: (usize, usize, usize), operation: Option<&OperationId>) -> Result<&Case, Failure> {
        self.recipe.case_for(self.case.as_deref(), operation, shape).map_err(Failure::usage)
    }

    /// Returns the program for an element with k products, for any shape.
    pub(crate) fn program_of_element(&self, id: &OperationId, k: usize) -> Result<Program, Failure> {
        let case = self.recipe.case_of_element(self.case.as_deref(), Some(id), k).map_err(Failure::usage)?;
        Program::new(&self.recipe, &self.model, case, id, &self.parameters).map_err(Failure::usage)
    }

    /// Returns the program for a shape.
    pub(crate) fn program(&self, id: &OperationId, shape: (usize, usize, usize)) -> Result<Program, Failure> {
        let case = self.case(shape, Some(id))?;
        Program::new(&self.recipe, &self.model, case, id, &self.parameters).map_err(Failure::usage)
    }
}

/// Parses the values given for the inputs of a case: numbers, bits in hexadecimal, or NumPy files.
pub(crate) fn inputs(case: &Case, given: &[(String, String)]) -> Result<BTreeMap<String, Elements>, Failure> {
    let one = |(name, text): &(String, String)| Ok((name.clone(), input(case.inputs.get(name), name, text)?));
    given.iter().map(one).collect()
}

fn input(input: Option<&Input>, name: &str, text: &str) -> Result<Elements, Failure> {
    // A name that the case lacks is rejected later, with the names that it has.
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
