//! A rival of the model found.

use crate::{
    dots::Dot,
    identify::{
        candidates::{
            hypothesis::Hypothesis,
            scored::{explained_of, modelled},
        },
        dots::experiments::Answered,
    },
};

/// A neighbour of the hypothesis, and where inputs that tell it apart may lie.
pub(super) struct Rival {
    pub(super) hypothesis: Hypothesis,
    /// The exponent about which it differs, if it changes a floor.
    pub(super) floor: Option<i32>,
    /// The product that it treats differently, if it is one.
    pub(super) product: Option<usize>,
    /// The adder that it changes, if it is one.
    pub(super) adder: Option<usize>,
    /// How far below the largest term it differs, if that does not follow from its values.
    pub(super) depths: Vec<i32>,
    /// Whether it differs from the hypothesis only where the rival before it does.
    pub(super) follows: bool,
}

impl Rival {
    /// Returns whether it explains every dot so far, as the hypothesis does. `others` are those that they read differently.
    pub(super) fn explains(
        &self,
        spent: &mut u64,
        answered: Answered<'_>,
        all: &[usize],
        others: Option<&[usize]>,
    ) -> bool {
        let Some(others) = others else {
            return explained_of(spent, answered, &self.hypothesis, all, 0).is_some();
        };
        let dots: Vec<Dot> = others.iter().map(|at| answered.dots[*at].clone()).collect();
        let found = modelled(answered.id, &self.hypothesis, &dots);
        found.is_ok_and(|found| found.iter().zip(others).all(|(d, at)| *d == answered.answers[*at]))
    }
}
