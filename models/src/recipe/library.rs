//! Looking up recipes by name or file, and the case that applies to a product.

use std::{path::Path, sync::OnceLock};

use mxprobe_api::{Error, OperationId};

use super::types::{Case, Recipe};
use crate::{library, model::Model};

/// File name and text of every file in `recipes/`, ordered by name.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/recipes.rs"));

/// Every recipe that comes with the crate.
///
/// # Panics
/// If one of the crate's own files is malformed; a test reads them all.
pub fn shipped() -> &'static [Recipe] {
    static RECIPES: OnceLock<Vec<Recipe>> = OnceLock::new();
    RECIPES.get_or_init(|| {
        FILES.iter().map(|(file, text)| Recipe::parse(file, text).unwrap_or_else(|error| panic!("{error}"))).collect()
    })
}

/// Loads a recipe by name, alias or file, and its model.
///
/// A recipe file may name a model file: a relative path starts at the recipe's folder.
///
/// # Errors
/// If no recipe has this name, the file cannot be read or is malformed, or the model lacks an operation of the recipe.
pub fn load(name: &str) -> Result<(Recipe, Model), Error> {
    if name.contains(['/', '\\']) || name.ends_with(".toml") {
        let text = std::fs::read_to_string(name)
            .map_err(|error| Error::invalid(format!("cannot read the recipe file `{name}`: {error}")))?;
        let recipe = Recipe::parse(name, &text)?;
        let model = recipe.open_model(Path::new(name).parent())?;
        return Ok((recipe, model));
    }
    let called = |recipe: &&Recipe| {
        let mut names = recipe.aliases.iter().chain([&recipe.name]);
        names.any(|known| known.eq_ignore_ascii_case(name))
    };
    let Some(recipe) = shipped().iter().find(called) else {
        let names: Vec<&str> = shipped().iter().map(|recipe| recipe.name.as_str()).collect();
        return Err(Error::invalid(format!(
            "unknown recipe `{name}`; the recipes are {}, or a path to a recipe file",
            names.join(", ")
        )));
    };
    Ok((recipe.clone(), recipe.open_model(None)?))
}

impl Recipe {
    /// Loads the recipe's model; a relative path starts at `folder`.
    ///
    /// # Errors
    /// If the model does not exist, or lacks an operation of the recipe.
    pub fn open_model(&self, folder: Option<&Path>) -> Result<Model, Error> {
        let is_file = self.model.contains(['/', '\\']) || self.model.ends_with(".toml");
        let model = match folder.filter(|_| is_file) {
            Some(folder) => library::load(&folder.join(&self.model).to_string_lossy())?,
            None => library::load(&self.model)?,
        };
        for case in &self.cases {
            if let Some(id) = case.operations.iter().find(|id| !model.operations.contains_key(*id)) {
                return Err(Error::invalid(format!("recipe {}: {} has no operation {id}", self.name, self.model)));
            }
        }
        Ok(model)
    }

    /// The operations of the cases with this name, or of all cases, sorted and without duplicates.
    #[must_use]
    pub fn operations(&self, case: Option<&str>) -> Vec<&OperationId> {
        let is_meant = |one: &&Case| case.is_none_or(|name| one.name == name);
        let mut known: Vec<&OperationId> =
            self.cases.iter().filter(is_meant).flat_map(|case| &case.operations).collect();
        known.sort();
        known.dedup();
        known
    }

    /// Finds the operation of [`operations`](Self::operations) that `op` names in the recipe's model: an id, or an
    /// alias, which also matches another shape of the same arithmetic. `None` if the recipe does not have it.
    ///
    /// # Errors
    /// If the model has no operation of that name.
    pub fn operation_named(&self, model: &Model, case: Option<&str>, op: &str) -> Result<Option<&OperationId>, Error> {
        let id = &model.operation_named(op)?.id;
        let formats = |id: &OperationId| (id.family.clone(), [id.a, id.b, id.c, id.d], id.qualifiers.clone());
        let is_meant = |known: &&OperationId| *known == id || (id.to_string() != op && formats(known) == formats(id));
        Ok(self.operations(case).into_iter().find(is_meant))
    }

    /// The first case that has this name, covers the operation and applies to `k` for some m and n. `None` matches any
    /// name or operation.
    ///
    /// # Errors
    /// If no case matches.
    pub fn case_of_element(
        &self,
        name: Option<&str>,
        operation: Option<&OperationId>,
        k: usize,
    ) -> Result<&Case, Error> {
        let of_k = |case: &Case| {
            let is_for = operation.is_none_or(|id| case.operations.contains(id));
            is_for && name.is_none_or(|name| case.name == name) && case.shapes.k.contains(k)
        };
        self.cases.iter().find(|case| of_k(case)).map_or_else(|| self.case_for(name, operation, (1, 1, k)), Ok)
    }

    /// The first case that has this name, covers the operation and applies to the shape (m, n, k). `None` matches any
    /// name or operation.
    ///
    /// # Errors
    /// If no case matches.
    pub fn case_for(
        &self,
        name: Option<&str>,
        operation: Option<&OperationId>,
        shape: (usize, usize, usize),
    ) -> Result<&Case, Error> {
        let called = |case: &&Case| name.is_none_or(|name| case.name == name);
        if !self.cases.iter().any(|case| called(&case)) {
            let mut names: Vec<&str> = self.cases.iter().map(|case| case.name.as_str()).collect();
            names.dedup();
            let (name, known) = (name.unwrap_or_default(), names.join(", "));
            return Err(Error::invalid(format!("recipe {} has no case `{name}`; its cases are {known}", self.name)));
        }
        let holds = |case: &&Case| {
            let is_for = operation.is_none_or(|id| case.operations.contains(id));
            called(case) && is_for && case.shapes.contains(shape)
        };
        self.cases.iter().find(holds).ok_or_else(|| {
            let (m, n, k) = shape;
            let operation = operation.map(|id| format!(" of {id}")).unwrap_or_default();
            let case = name.map_or_else(|| "no case".to_owned(), |name| format!("no case `{name}`"));
            Error::invalid(format!("{case} of recipe {} holds for {m}×{n}×{k}{operation}", self.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_recipe_has_its_model_and_is_written_as_it_is_read() {
        assert!(!shipped().is_empty());
        for recipe in shipped() {
            let (again, _) = load(&recipe.name.to_uppercase()).unwrap();
            assert_eq!(again, *recipe);
            assert_eq!(Recipe::parse(&recipe.name, &recipe.to_toml()).unwrap(), *recipe);
            assert!(recipe.aliases.iter().all(|alias| load(alias).unwrap().0 == *recipe));
        }
        let missing = load("no-such").map(|_| ()).unwrap_err().to_string();
        assert!(missing.starts_with("unknown recipe `no-such`; the recipes are "), "{missing}");
    }
}
