//! Looking up models by name or file.

use mxprobe_api::Error;

use crate::{
    cards::find,
    model::Model,
    shipped::{FILES, shipped},
};

/// Loads the model with this name, alias, card (see [`find`]) or file; `NAME@VARIANT` selects a variant.
///
/// # Errors
/// If no model or several match, or the file cannot be read or is malformed.
pub fn load(name: &str) -> Result<Model, Error> {
    let (base, variant) = match name.rsplit_once('@') {
        Some((base, variant)) if !variant.contains(['/', '.']) => (base, Some(variant)),
        _ => (name, None),
    };
    if base.contains(['/', '\\']) || base.ends_with(".toml") {
        let text = std::fs::read_to_string(base)
            .map_err(|error| Error::invalid(format!("cannot read the model file `{base}`: {error}")))?;
        return Model::parse(base, &text, variant);
    }
    let found = find(base)?;
    let index = found.and_then(|found| shipped().iter().position(|model| model.name == found.name));
    let Some(index) = index else {
        let names: Vec<&str> = shipped().iter().map(|model| model.name.as_str()).collect();
        return Err(Error::invalid(format!(
            "unknown model `{base}`; the models are {}, or a path to a model file",
            names.join(", ")
        )));
    };
    let (file, text) = FILES[index];
    match variant {
        None => Ok(shipped()[index].clone()),
        Some(_) => Model::parse(file, text, variant),
    }
}
