//! A computed answer.

/// A computed answer, compared with the printed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// The answer in words.
    pub text: String,
    /// Whether it agrees with what is printed.
    pub agrees: bool,
}
