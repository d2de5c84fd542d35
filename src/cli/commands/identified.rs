//! The model file of `identify`, which grows during the run.

use std::path::{Path, PathBuf};

use crate::{report::IdentifiedOperation, session::IdentifiedModel};

use crate::cli::{choose::target::Target, failure::Failure, io::output};

/// The model of every operation identified so far, and its file.
pub(crate) struct ModelFile {
    path: PathBuf,
    model: IdentifiedModel,
}

impl ModelFile {
    /// Creates a model file, which is written once the first operation is identified.
    ///
    /// # Errors
    /// If the path does not name a file.
    pub(crate) fn new(target: &Target, path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), model: IdentifiedModel::new(&target.listed, &model_name(path)?) })
    }

    /// Adds the operations that an earlier run identified, and writes the file if there are any.
    ///
    /// # Errors
    /// If the file cannot be written, or a model of those operations cannot be read.
    pub(crate) fn restore(&mut self, found: &[IdentifiedOperation]) -> Result<(), Failure> {
        for operation in found {
            self.model.add(operation).map_err(Failure::incomplete)?;
        }
        if self.model.is_empty() { Ok(()) } else { self.write() }
    }

    /// Whether an operation was identified, so that the file was written.
    pub(crate) fn is_written(&self) -> bool {
        !self.model.is_empty()
    }

    /// Writes the file again if the operation was identified.
    ///
    /// # Errors
    /// If the file cannot be written, or the model of the operation cannot be read.
    pub(crate) fn add(&mut self, found: &IdentifiedOperation) -> Result<(), Failure> {
        if !self.model.add(found).map_err(Failure::incomplete)? {
            return Ok(());
        }
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
        let model = self.model.model().map_err(Failure::incomplete)?;
        output::replace(&self.path, &model.to_toml())
    }
}

/// Returns the name of the file without its extension, restricted to the characters that a model's name may have.
pub(crate) fn model_name(path: &Path) -> Result<String, Failure> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = stem.chars().map(plain).collect();
    if name.is_empty() {
        return Err(Failure::usage(format!("`{}` is not the name of a file", path.display())));
    }
    Ok(name)
}
