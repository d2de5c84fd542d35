//! The models that come with the crate.

use std::sync::OnceLock;

use crate::model::Model;

/// File name and text of every file in `units/`, ordered by name.
pub(crate) const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/units.rs"));

/// Every model that comes with the crate, without its variants.
///
/// # Panics
/// If one of the crate's own files is malformed; a test reads them all.
pub fn shipped() -> &'static [Model] {
    static MODELS: OnceLock<Vec<Model>> = OnceLock::new();
    MODELS.get_or_init(|| {
        FILES
            .iter()
            .map(|(file, text)| Model::parse(file, text, None).unwrap_or_else(|error| panic!("{error}")))
            .collect()
    })
}
