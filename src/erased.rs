//! Types read and written through one table of functions a type, and not by code for each pair of a type and a text. Reports have
//! so many types that the latter is a tenth of the program.

use serde::de::DeserializeOwned;

/// Reads a value.
///
/// # Errors
/// What is wrong with it, in the words of the text's reader.
pub(crate) fn read<'de, T: DeserializeOwned>(
    deserializer: impl serde::Deserializer<'de>,
) -> Result<T, erased_serde::Error> {
    erased_serde::deserialize(&mut <dyn erased_serde::Deserializer>::erase(deserializer))
}

/// A value of the data of this program.
///
/// # Panics
/// If the text is no such value, which the program's tests would have shown.
pub(crate) fn data<T: DeserializeOwned>(toml: &str) -> T {
    let found = toml::Deserializer::parse(toml).map_err(|error| error.to_string());
    found
        .and_then(|deserializer| read(deserializer).map_err(|error| error.to_string()))
        .unwrap_or_else(|error| panic!("data of the program: {error}"))
}
