//! The adders of a hypothesis.

use std::{
    ops::{Index, IndexMut},
    sync::Arc,
};

use mxprobe_models::Adder;

/// Adders, each shared with the hypotheses that this one was made from until it is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::identify) struct Adders(Vec<Arc<Adder>>);

impl Adders {
    pub(in crate::identify) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::identify) fn iter(&self) -> impl DoubleEndedIterator<Item = &Adder> + ExactSizeIterator + Clone {
        self.0.iter().map(|adder| &**adder)
    }

    /// Each that this yields is shared no more, whether it is changed or not.
    pub(in crate::identify) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Adder> {
        self.0.iter_mut().map(Arc::make_mut)
    }

    pub(in crate::identify) fn push(&mut self, adder: Adder) {
        self.0.push(Arc::new(adder));
    }

    pub(in crate::identify) fn pop(&mut self) {
        self.0.pop();
    }

    pub(in crate::identify) fn set(&mut self, at: usize, adder: Adder) {
        self.0[at] = Arc::new(adder);
    }

    pub(in crate::identify) fn to_vec(&self) -> Vec<Adder> {
        self.iter().cloned().collect()
    }

    /// For an evaluator.
    pub(in crate::identify) fn shared(&self) -> impl Iterator<Item = Arc<Adder>> {
        self.0.iter().cloned()
    }
}

impl Index<usize> for Adders {
    type Output = Adder;

    fn index(&self, at: usize) -> &Adder {
        &self.0[at]
    }
}

impl IndexMut<usize> for Adders {
    fn index_mut(&mut self, at: usize) -> &mut Adder {
        Arc::make_mut(&mut self.0[at])
    }
}

impl FromIterator<Adder> for Adders {
    fn from_iter<I: IntoIterator<Item = Adder>>(adders: I) -> Self {
        Self(adders.into_iter().map(Arc::new).collect())
    }
}

impl From<Vec<Adder>> for Adders {
    fn from(adders: Vec<Adder>) -> Self {
        adders.into_iter().collect()
    }
}
