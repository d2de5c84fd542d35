//! Tables of data that are part of the program.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a TOML file of the program.
///
/// A table becomes a tree of JSON values first, because those are read into a type by far less code than TOML is.
///
/// # Panics
/// If the file is not of this type.
pub fn table<T: DeserializeOwned>(toml: &str) -> T {
    let value: Value = toml::from_str(toml).unwrap_or_else(|error| panic!("a table of the program: {error}"));
    T::deserialize(value).unwrap_or_else(|error| panic!("a table of the program: {error}"))
}
