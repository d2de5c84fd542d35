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
        if std::path::Path::new(base).is_file() {
            return Err(Error::invalid(format!(
                "no model `{base}`, but a file of that name: a model file ends in `.toml`, or is given with its \
                 directory, as in `./{base}`"
            )));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_named_as_a_model_file_is_told_from_an_unknown_model() {
        // Tests run in the folder of their crate.
        let words = load("build.rs").expect_err("not a model").to_string();
        assert!(words.contains("a file of that name") && words.contains("`./build.rs`"), "{words}");
        let words = load("nosuch").expect_err("not a model").to_string();
        assert!(words.contains("unknown model `nosuch`; the models are a100"), "{words}");
    }
}
