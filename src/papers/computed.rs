//! What was computed.

/// What was computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// In words.
    pub text: String,
    /// Whether it is what is printed.
    pub agrees: bool,
}
