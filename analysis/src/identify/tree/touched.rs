//! The adders that matter to a dot.

use super::expression::{Expression, is_one};
use crate::{dots::Dot, probes::Leaf};

impl Expression {
    /// Returns a mask of the adders that add at least two nonzero terms of this dot, or that round a single term alone.
    /// Adders from 127 on share a bit.
    pub(in crate::identify) fn busy(&self, dot: &Dot) -> u128 {
        self.busy_below(&|leaf| match leaf {
            Leaf::C => dot.c != 0,
            Leaf::Product(k) => dot.a[k] != 0 && dot.b[k] != 0,
        })
        .1
    }

    fn busy_below(&self, has: &dyn Fn(Leaf) -> bool) -> (bool, u128) {
        match self {
            Self::C => (has(Leaf::C), 0),
            Self::Zero => (false, 0),
            Self::Product(k) => (has(Leaf::Product(*k)), 0),
            Self::Add(adder, arguments) => {
                let (mut count, mut busy) = (0, 0);
                for argument in arguments {
                    let (any, below) = argument.busy_below(has);
                    count += usize::from(any);
                    busy |= below;
                }
                let rounds = count == 1 && is_one(arguments);
                let own = if count > 1 || rounds { 1u128 << (*adder).min(127) } else { 0 };
                (count > 0, busy | own)
            }
        }
    }

    /// Returns the mask of [`Expression::busy`] with the adders that a single term passes if an adder of a narrow
    /// format may change it, which `long` says of each leaf. Unless `alone` is set, the same holds for adders of one
    /// argument.
    pub(in crate::identify) fn touched(&self, dot: &Dot, long: &dyn Fn(Leaf) -> bool, alone: bool) -> u128 {
        self.touched_below(dot, long, alone).1
    }

    /// Returns whether a narrow format may change a term below (`None` if all are zero), and the mask of the adders
    /// that touch any.
    fn touched_below(&self, dot: &Dot, long: &dyn Fn(Leaf) -> bool, alone: bool) -> (Option<bool>, u128) {
        let leaf = |leaf: Leaf, any: bool| (any.then(|| long(leaf)), 0);
        match self {
            Self::C => leaf(Leaf::C, dot.c != 0),
            Self::Zero => (None, 0),
            Self::Product(k) => leaf(Leaf::Product(*k), dot.a[*k] != 0 && dot.b[*k] != 0),
            Self::Add(adder, arguments) => {
                let (mut terms, mut is_long, mut mask) = (0, false, 0);
                for argument in arguments {
                    let (term, below) = argument.touched_below(dot, long, alone);
                    terms += usize::from(term.is_some());
                    is_long |= term.unwrap_or(false);
                    mask |= below;
                }
                let touches = terms > 1 || terms == 1 && (is_long || alone && is_one(arguments));
                let own = if touches { 1u128 << (*adder).min(127) } else { 0 };
                ((terms > 0).then_some(is_long), mask | own)
            }
        }
    }
}
