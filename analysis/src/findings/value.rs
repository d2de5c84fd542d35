//! The answers to questions, for programs.

use std::{borrow::Cow, collections::BTreeMap};

use mxprobe_api::Format;

/// The answer to a question, for programs. Reports store it as JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A count or an exponent.
    Number(i64),
    /// A mean, which reports store as text with three decimals.
    Decimal(f64),
    /// One of the answers listed in [`Probe::answers`](super::Probe::answers).
    Word(Cow<'static, str>),
    /// The bits of a number in a format.
    Bits(Format, u64),
    /// Several answers in order.
    List(Vec<Value>),
    /// Several answers by name.
    Parts(BTreeMap<Cow<'static, str>, Value>),
}

impl Value {
    /// Builds a value of named parts.
    pub(crate) fn parts<N: Into<Cow<'static, str>>>(parts: impl IntoIterator<Item = (N, Self)>) -> Self {
        Self::Parts(parts.into_iter().map(|(name, part)| (name.into(), part)).collect())
    }

    /// The part with this name.
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
    /// If the count is 2^63 or more, which no memory holds.
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
