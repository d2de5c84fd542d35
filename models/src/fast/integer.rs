//! Integer plans: one exact sum, wrapped or clamped once.

use std::sync::Arc;

use mxprobe_api::{Elements, Encoding, Format, OperationId};

use super::{
    drive::{Kernel, Source},
    operand::bits_of,
    simd::{self, Clamp, Packed, Piece},
};
use crate::{
    adder::{Adder, Below, Output, Scale},
    model::Unit,
    tree::{Plan, Term},
};

/// A plan that sums products of integers in 32 bits.
#[derive(Clone, Debug)]
pub(super) struct IntegerPlan {
    /// The number of products in one operation, and the same rounded up to whole pairs.
    len: usize,
    padded: usize,
    a: Format,
    b: Format,
    clamp: Clamp,
}

/// A factor as 16 bits, sign-extended.
fn sixteen_bits(format: Format, bits: u32) -> u32 {
    let Encoding::Integer { bits: width, signed } = format.encoding() else { return 0 };
    let up = 32 - width;
    let extended = if signed { ((bits << up).cast_signed() >> up).cast_unsigned() } else { bits };
    extended & 0xffff
}

impl IntegerPlan {
    /// Compiles a plan to one sum, if it has that form and 32 bits are enough.
    pub(super) fn of(adders: &[Arc<Adder>], unit: &Unit, plan: &Plan, id: &OperationId) -> Option<Self> {
        let [node] = &plan.nodes[..] else { return None };
        let adder = &adders[node.adder];
        let Output::Integer { format, saturates } = adder.output else { return None };
        let width = |format: Format| match format.encoding() {
            Encoding::Integer { bits, signed } => Some((bits, signed)),
            Encoding::Float(_) => None,
        };
        let ((a_bits, a_signed), (b_bits, b_signed), (c_bits, _)) = (width(id.a)?, width(id.b)?, width(id.c)?);
        let (_, d_signed) = width(format)?;
        let len = id.shape.sizes().2;
        // Pairs of 16-bit factors are multiplied as signed ones.
        let fits = |bits: u32, signed: bool| bits < 16 || (bits == 16 && signed);
        // To be clamped once, the products alone must not overflow. Signed factors may add up to 2^31 itself.
        let most = (len as u64) << (a_bits + b_bits - u32::from(a_signed) - u32::from(b_signed));
        let clamp = match most {
            _ if !saturates => Some(Clamp::Wraps),
            most if most < 1 << 31 => Some(Clamp::Sum),
            most if most == 1 << 31 && a_signed && b_signed => Some(Clamp::SumToTop),
            _ => None,
        };
        let products = node.terms.iter().filter(|term| matches!(term, Term::Product(_))).count();
        let once = products == len
            && node.terms.len() == len + 1
            && node.terms.contains(&Term::C)
            && (0..len).all(|k| node.terms.contains(&Term::Product(k)));
        let is_sum = once
            && adder.grid.is_empty()
            && adder.below != Below::OnesComplement
            && adder.value_cut_bits == 0
            && adder.ignored_values.is_none()
            && adder.normalised_fraction_bits.is_none()
            && adder.scale == Scale::Products
            && !adder.product_overflow
            && unit.flush == crate::model::Flush::default()
            && id.block_scale().is_none()
            && id.c == id.d
            && c_bits == 32;
        let clamp = clamp.filter(|clamp| *clamp == Clamp::Wraps || d_signed)?;
        (is_sum && fits(a_bits, a_signed) && fits(b_bits, b_signed)).then_some(Self {
            len,
            padded: len.next_multiple_of(2),
            a: id.a,
            b: id.b,
            clamp,
        })
    }
}

impl Kernel for IntegerPlan {
    type Accumulator = i32;
    type A = Packed<u32>;
    type B = Packed<u32>;

    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (Packed<u32>, Vec<bool>) {
        let k = from.matrices.k;
        let pairs = self.padded / 2;
        let mut bits = vec![0; steps * self.len];
        let mut packed = Packed { values: Vec::with_capacity(rows * steps * pairs), k: steps * pairs, panel: 0 };
        for row in 0..rows {
            bits_of(from.matrices.a, from.row_of_a(first + row), &mut bits[..k]);
            for step in bits.chunks_exact(self.len) {
                packed.values.extend(step.chunks(2).map(|pair| {
                    let high = pair.get(1).map_or(0, |bits| sixteen_bits(self.a, *bits));
                    sixteen_bits(self.a, pair[0]) | high << 16
                }));
            }
        }
        (packed, vec![false; rows])
    }

    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Packed<u32>) -> u64 {
        let (k, n) = (from.matrices.k, from.matrices.n);
        let columns = panel.min(n - first);
        let pairs = self.padded / 2;
        (into.k, into.panel) = (steps * pairs, panel);
        into.values.clear();
        into.values.resize(into.k * panel, 0);
        let mut bits = vec![0; columns];
        for at in 0..k {
            bits_of(from.matrices.b, from.row_of_b(at) + first, &mut bits);
            let (step, within) = (at / self.len, at % self.len);
            let up = 16 * (within % 2);
            let row = &mut into.values[(step * pairs + within / 2) * panel..][..columns];
            for (slot, bits) in row.iter_mut().zip(&bits) {
                *slot |= sixteen_bits(self.b, *bits) << up;
            }
        }
        0
    }

    fn load_c(&self, from: &Elements, start: usize, into: &mut [i32]) -> u64 {
        let words = &from.bytes().as_chunks::<4>().0[start..];
        into.iter_mut().zip(words).for_each(|(slot, word)| *slot = i32::from_le_bytes(*word));
        0
    }

    fn store_d(&self, from: &[i32], into: &mut [u8]) {
        from.iter().zip(into.as_chunks_mut::<4>().0).for_each(|(value, slot)| *slot = value.to_le_bytes());
    }

    fn run(&self, piece: Piece<'_, Packed<u32>, Packed<u32>, i32>) {
        simd::run_integers(self.padded / 2, self.clamp, piece);
    }
}
