//! Packing factors as significands and exponents, and the kernel's entry points.

use mxprobe_api::Elements;

use super::{GridWidth, GridsPlan};
use crate::fast::{
    drive::{Kernel, OfDots, Source},
    floats::{load_floats, store_floats},
    operand::{ABSENT, INFINITE, NAN, Operand, bits_of},
    simd::{self, Factors, Forms, Piece, Vectorised, vectorised},
    unpack::{self, Reader, SPECIAL},
};

impl GridsPlan {
    /// Whether factors are packed as values without exponents.
    fn packs_values(&self) -> bool {
        self.context.masks > 0
    }

    /// Unpacks factors: values and whether they are not zero, values and exponents, or significands and exponents.
    #[inline(always)]
    fn unpack(&self, operand: Operand, bits: &[u32], values: &mut [f32], exponents: &mut [i32]) {
        let slots = bits.iter().zip(values).zip(exponents);
        if self.packs_values() {
            slots.for_each(|((bits, value), exponent)| {
                *value = operand.value(*bits);
                *exponent = i32::from(value.to_bits() << 1 != 0);
            });
        } else if self.context.plain_products {
            slots.for_each(|((bits, value), exponent)| {
                (*value, *exponent) = operand.parts(*bits);
                *value = if *exponent < INFINITE { operand.value(*bits) } else { *value };
            });
        } else {
            slots.for_each(|((bits, value), exponent)| (*value, *exponent) = operand.parts(*bits));
        }
    }

    fn scale_parts(reader: Reader, bits: u64) -> (f32, i32) {
        let unpack::Unpacked { significand, exponent, kind } = reader.read(bits);
        if kind & SPECIAL != 0 {
            return (1.0, if kind & unpack::NAN != 0 { NAN } else { INFINITE });
        }
        // The significand has at most four bits.
        #[allow(clippy::cast_precision_loss)]
        let value = significand as f32 / f32::from_bits((127 + reader.format.fraction_bits()) << 23);
        let value = if kind & unpack::NEGATIVE != 0 { -value } else { value };
        (value, if kind & unpack::ZERO != 0 { ABSENT } else { exponent })
    }

    #[inline(always)]
    fn pack_rows(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> Factors {
        let k = from.matrices.k;
        let mut packed = Factors {
            k: steps * self.context.len,
            blocks: steps * self.context.blocks,
            masks_each: steps * self.context.masks,
            ..Factors::default()
        };
        let mut bits = vec![0; packed.k];
        packed.significands.resize(rows * packed.k, 0.0);
        packed.exponents.resize(rows * packed.k, 0);
        for row in 0..rows {
            bits_of(from.matrices.a, from.row_of_a(first + row), &mut bits[..k]);
            let significands = &mut packed.significands[row * packed.k..][..packed.k];
            let exponents = &mut packed.exponents[row * packed.k..][..packed.k];
            self.unpack(self.a, &bits, significands, exponents);
            if self.folds.is_some() {
                packed.largest.push(largest(exponents));
            }
            for step in 0..steps {
                for node in self.nodes.iter().filter(|node| node.width == GridWidth::Exact) {
                    let of = &exponents[step * self.context.len..];
                    let mask = node.products.iter().enumerate().fold(0, |mask, (at, k)| mask | of[*k] << at);
                    packed.masks.push(mask);
                }
            }
            if self.exact.is_some() {
                packed.push_doubles(row * packed.k..(row + 1) * packed.k, self.context.plain_products);
            }
            if let Some((reader, _)) = self.scale {
                for index in 0..packed.blocks {
                    let bits = from.scale_of_a(first + row, index).unwrap_or(reader.format.one());
                    packed.push_scale(Self::scale_parts(reader, bits));
                }
            }
        }
        packed
    }

    /// Packs columns of B; `operand` reads them.
    #[inline(always)]
    fn pack_panel(
        &self,
        operand: Operand,
        from: &Source<'_>,
        (first, panel): (usize, usize),
        steps: usize,
        into: &mut Factors,
    ) {
        let (k, n) = (from.matrices.k, from.matrices.n);
        let columns = panel.min(n - first);
        into.clear();
        (into.k, into.panel) = (steps * self.context.len, panel);
        (into.blocks, into.masks_each) = (steps * self.context.blocks, steps * self.context.masks);
        into.significands.resize(into.k * panel, 0.0);
        into.exponents.resize(into.k * panel, 0);
        let mut bits = vec![0; panel];
        for row in 0..into.k {
            if row < k {
                bits_of(from.matrices.b, from.row_of_b(row) + first, &mut bits[..columns]);
            } else {
                bits.fill(0);
            }
            let significands = &mut into.significands[row * panel..][..panel];
            let exponents = &mut into.exponents[row * panel..][..panel];
            self.unpack(operand, &bits, significands, exponents);
        }
        if self.folds.is_some() {
            into.largest.push(largest(&into.exponents));
        }
        if self.exact.is_some() {
            into.push_doubles(0..into.significands.len(), self.context.plain_products);
        }
        for step in 0..steps {
            for node in self.nodes.iter().filter(|node| node.width == GridWidth::Exact) {
                let at = into.masks.len();
                into.masks.resize(at + panel, 0);
                for (place, k) in node.products.iter().enumerate() {
                    let of = &into.exponents[(step * self.context.len + k) * panel..][..panel];
                    for (mask, some) in into.masks[at..].iter_mut().zip(of) {
                        *mask |= some << place;
                    }
                }
            }
        }
        if let Some((reader, _)) = self.scale {
            for index in 0..into.blocks {
                for column in 0..panel {
                    let bits = from.scale_of_b(index, first + column).unwrap_or(reader.format.one());
                    into.push_scale(Self::scale_parts(reader, bits));
                }
            }
        }
    }
}

/// The largest exponent of some factors.
#[inline(always)]
fn largest(exponents: &[i32]) -> i32 {
    exponents.iter().fold(2 * ABSENT, |most, exponent| most.max(*exponent))
}

/// The work of packing rows of A.
struct PackRows<'a>(&'a GridsPlan, &'a Source<'a>, usize, usize, usize);

impl Vectorised for PackRows<'_> {
    type Output = Factors;

    #[inline(always)]
    fn run(self) -> Factors {
        self.0.pack_rows(self.1, self.2, self.3, self.4)
    }
}

/// The work of packing a panel of B: its first column and its width, and the number of operations.
struct PackPanel<'a>(&'a GridsPlan, &'a Source<'a>, (usize, usize), usize, &'a mut Factors);

impl Vectorised for PackPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.pack_panel(self.0.b, self.1, self.2, self.3, self.4);
    }
}

/// The work of packing products of dots.
struct PackProducts<'a> {
    plan: &'a GridsPlan,
    factors: (&'a Source<'a>, &'a Source<'a>),
    panel: usize,
    of_a: &'a mut Factors,
    into: &'a mut Factors,
}

impl Vectorised for PackProducts<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let Self { plan, factors: (a, b), panel, of_a, into } = self;
        plan.pack_panel(plan.a, a, (0, panel), 1, of_a);
        plan.pack_panel(plan.b, b, (0, panel), 1, into);
        into.significands.iter_mut().zip(&of_a.significands).for_each(|(product, of_a)| *product *= of_a);
        into.exponents.iter_mut().zip(&of_a.exponents).for_each(|(exponent, of_a)| *exponent += of_a);
        if plan.folds.is_some() {
            into.largest = vec![largest(&into.exponents)];
        }
        // The kernel of exact folds takes no dots.
        into.spans.clear();
        if !plan.nodes.iter().any(|node| node.quiet_operands) {
            return 0;
        }
        // A product does not show which NaN it is of.
        let is_nan = |column: usize| into.exponents[column..].iter().step_by(panel).any(|exponent| *exponent > NAN / 2);
        (0..panel).fold(0, |special, column| special | u64::from(is_nan(column)) << column)
    }
}

impl Kernel for GridsPlan {
    type Accumulator = f32;
    type A = Factors;
    type B = Factors;

    fn pack_a(&self, from: &Source<'_>, first: usize, rows: usize, steps: usize) -> (Factors, Vec<bool>) {
        (vectorised(PackRows(self, from, first, rows, steps)), vec![false; rows])
    }

    fn pack_b(&self, from: &Source<'_>, first: usize, panel: usize, steps: usize, into: &mut Factors) -> u64 {
        vectorised(PackPanel(self, from, (first, panel), steps, into));
        0
    }

    fn load_c(&self, from: &Elements, start: usize, into: &mut [f32]) -> u64 {
        load_floats(self.c, from, start, into);
        0
    }

    fn store_d(&self, from: &[f32], into: &mut [u8]) {
        store_floats(self.d, from, into);
    }

    fn run(&self, piece: Piece<'_, Factors, Factors, f32>) {
        let forms = Forms { nodes: &self.nodes, folds: self.folds.as_ref(), exact: self.exact.as_ref() };
        simd::run_grids(forms, &self.context, piece);
    }
}

impl OfDots for GridsPlan {
    fn ones(&self) -> Option<Factors> {
        let k = self.context.len;
        let is_plain = self.scale.is_none() && self.context.masks == 0;
        is_plain.then(|| Factors {
            significands: vec![1.0; k],
            exponents: vec![0; k],
            largest: vec![0],
            k,
            ..Factors::default()
        })
    }

    fn pack_products(
        &self,
        factors: (&Source<'_>, &Source<'_>),
        panel: usize,
        of_a: &mut Factors,
        into: &mut Factors,
    ) -> u64 {
        vectorised(PackProducts { plan: self, factors, panel, of_a, into })
    }
}
