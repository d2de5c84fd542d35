//! Answers for programs.

use std::{borrow::Cow, collections::BTreeMap};

use mxprobe_api::Format;

/// The answer to a question, for programs. Reports have it as JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// How many, or an exponent.
    Number(i64),
    /// A mean, which reports have as text of three decimals.
    Decimal(f64),
    /// One of the answers that [`Probe::answers`](super::Probe::answers) explains.
    Word(Cow<'static, str>),
    /// Bits of a number in a format.
    Bits(Format, u64),
    /// Several answers in their order.
    List(Vec<Value>),
    /// Several answers by their names.
    Parts(BTreeMap<Cow<'static, str>, Value>),
}

impl Value {
    /// Several answers by their names.
    pub(crate) fn parts<N: Into<Cow<'static, str>>>(parts: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self::Parts(parts.into_iter().map(|(name, part)| (name.into(), part)).collect())
    }

    /// The part of a name.
    pub(crate) fn part(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Parts(parts) => parts.get(name),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Value {
    /// # Panics
    /// If there are more than 2^63, which no memory holds.
    fn from(count: usize) -> Self {
        Self::Number(i64::try_from(count).expect("a count of things in memory"))
    }
}

impl From<&'static str> for Value {
    fn from(word: &'static str) -> Self {
        Self::Word(word.into())
    }
}

impl From<String> for Value {
    fn from(word: String) -> Self {
        Self::Word(word.into())
    }
}

impl<V: Into<Value>> From<Vec<V>> for Value {
    fn from(values: Vec<V>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}
