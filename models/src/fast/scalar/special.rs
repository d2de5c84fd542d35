//! Results of nodes with a NaN or an infinity among their terms.

use mxprobe_api::Format;

use super::{
    compiled::{Compiled, Node, Room, UnpackedDot},
    output::{Causes, infinity},
    word::{NONE, Number, Word, leading},
};
use crate::{
    adder::{Output, Scale},
    fast::unpack::{INFINITE, NAN, NEGATIVE, Reader, Unpacked, ZERO},
    tree::Term,
};

impl Compiled {
    /// Computes the result of a node with a NaN or an infinity among its terms.
    #[cold]
    #[inline(never)]
    pub(super) fn special<W: Word>(
        &self,
        node: &Node,
        dot: UnpackedDot<'_>,
        c: &Number<W>,
        room: &mut Room<W>,
        place: impl Fn(usize) -> usize,
    ) -> Option<Number<W>> {
        let adder = &self.adders[node.adder];
        let scales_products = adder.rules.scale == Scale::Products;
        let mut causes = Causes::default();
        let mut infinities = [false, false];
        let scales_of = |k: usize| {
            let reader = self.scale?;
            let index = k / self.scale_block;
            Some([(reader.format, dot.scale_a[index]), (reader.format, dot.scale_b[index])])
        };
        for (term, aligned) in self.terms_of(node).iter().zip(&room.terms) {
            match *term {
                Term::Product(k) => {
                    let (a, b) = (dot.a[k], dot.b[k]);
                    let scales = if scales_products { scales_of(k) } else { None };
                    let kind = a.kind | b.kind | scales.map_or(0, |[(_, a), (_, b)]| a.kind | b.kind);
                    if kind & NAN != 0 {
                        let factors = [(self.a.format, a), (self.b.format, b)].into_iter();
                        let is_nan = |(_, one): &(Format, Unpacked)| one.kind & NAN != 0;
                        causes.b = causes.b.or(Some((self.b.format, b)).filter(is_nan));
                        let nan = factors.chain(scales.into_iter().flatten()).find(is_nan);
                        causes.operand = causes.operand.or(nan);
                    } else if kind & INFINITE != 0 {
                        if kind & ZERO != 0 {
                            causes.invalid = true;
                        } else {
                            infinities[usize::from(aligned.negative)] = true;
                        }
                    } else if adder.rules.product_overflow && leading(aligned).is_some_and(|at| at >= 128) {
                        infinities[usize::from(aligned.negative)] = true;
                    }
                }
                Term::PositiveZero => {}
                Term::C | Term::Node(_) => {
                    let (number, format) = match *term {
                        Term::Node(index) => (&room.results[place(index)], self.adders[self.nodes[index].adder].format),
                        _ => (c, self.c.format),
                    };
                    if number.kind & NAN != 0 {
                        if number.wide {
                            // An unrounded sum passes its causes on.
                            let earlier = room.causes[usize::try_from(number.bits).unwrap_or(0)];
                            causes.operand = causes.operand.or(earlier.operand);
                            causes.b = causes.b.or(earlier.b);
                            causes.value = causes.value.or(earlier.value);
                            causes.invalid |= earlier.invalid;
                        } else {
                            let significand = number.magnitude.low_u64();
                            let nan = Unpacked { significand, exponent: 0, kind: number.kind };
                            causes.value = causes.value.or(Some((format, nan)));
                        }
                    } else if number.kind & INFINITE != 0 {
                        infinities[usize::from(number.kind & NEGATIVE != 0)] = true;
                    }
                }
            }
        }
        if adder.rules.scale == Scale::Sum
            && let Some(Term::Product(k)) = self.flat.terms.get(node.from)
            && let Some(scales) = scales_of(*k)
        {
            let nan = scales.into_iter().find(|(_, scale)| scale.kind & NAN != 0);
            causes.value = causes.value.or(nan);
        }
        causes.invalid |= infinities == [true, true];
        let blank = Number { kind: 0, wide: true, magnitude: W::ZERO, lsb: 0, exponent: NONE, bits: 0 };
        if causes.operand.is_some() || causes.value.is_some() || causes.invalid {
            let Output::Float { .. } = adder.rules.output else {
                room.causes.push(causes);
                let bits = u64::try_from(room.causes.len() - 1).unwrap_or(0);
                return Some(Number { kind: NAN, bits, ..blank });
            };
            let bits = adder.nan_bits(&causes);
            // The exact evaluator treats the result as a NaN whatever its bits are.
            let read = Reader::new(adder.format, false, false).read(bits);
            if read.kind & NAN == 0 {
                return None;
            }
            let magnitude = W::from_u64(read.significand);
            return Some(Number { kind: read.kind, wide: false, magnitude, bits, ..blank });
        }
        if infinities == [false, false] {
            return None;
        }
        let negative = infinities[1];
        let kind = INFINITE | if negative { NEGATIVE } else { 0 };
        Some(match adder.rules.output {
            Output::Float { format, .. } => {
                let bits = infinity(format, negative);
                Number { kind, wide: false, bits, ..blank }
            }
            _ => Number { kind, ..blank },
        })
    }
}
