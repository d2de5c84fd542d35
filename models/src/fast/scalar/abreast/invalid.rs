//! The NaN of sums of infinities of both signs.

use super::super::{compiled::Compiled, output::Causes};
use crate::{fast::unpack::NAN, tree::Term};

/// The bits of d of a dot without a NaN, in some nodes of which infinities of both signs are added, found when they
/// are first needed.
#[derive(Default)]
pub(super) struct Nan(Option<Option<u64>>);

impl Nan {
    /// The bits, unless they depend on the nodes.
    #[inline(always)]
    pub(super) fn of(&mut self, compiled: &Compiled) -> Option<u64> {
        *self.0.get_or_insert_with(|| nan(compiled))
    }
}

#[cold]
#[inline(never)]
fn nan(compiled: &Compiled) -> Option<u64> {
    let of = |adder: usize| {
        let adder = &compiled.adders[adder];
        // An unrounded sum has no bits: it passes on why it is NaN.
        adder.float.as_ref()?;
        let bits = adder.nan_bits(&Causes { invalid: true, ..Causes::default() });
        let read = adder.read(bits);
        (read.kind & NAN != 0).then_some((bits, read))
    };
    // Two adders of which the first takes the result of the second.
    let mut last = None;
    for node in &compiled.nodes {
        for term in compiled.terms_of(node) {
            let Term::Node(index) = *term else { continue };
            let pair = (node.adder, compiled.nodes[index].adder);
            if last.replace(pair) == Some(pair) {
                continue;
            }
            let ((bits, _), (_, from)) = (of(pair.0)?, of(pair.1)?);
            let value = Some((compiled.adders[pair.1].format, from));
            let is_same = |invalid| {
                let causes = Causes { value, invalid, ..Causes::default() };
                compiled.adders[pair.0].nan_bits(&causes) == bits
            };
            if ![false, true].into_iter().all(is_same) {
                return None;
            }
        }
    }
    of(compiled.nodes.last()?.adder).map(|(bits, _)| bits)
}
