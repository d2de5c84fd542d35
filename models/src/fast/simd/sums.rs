//! The kernel of sums on grids, columns in lanes of 64 bits.
//!
//! It follows the exact evaluator term by term, eight columns at a time; loops over eight lanes become vector
//! instructions if they are compiled for a processor that shifts each lane by its own count. The plan guarantees that
//! no sum is wider than 51 bits, so a leading one is found in an f64 that holds the magnitude exactly. The scalar
//! evaluator takes over results that are subnormal if those are flushed, results out of range, and results with a
//! product of 2^127 or more if that matters.

use super::{Job, Lanes};
use crate::{
    adder::Below,
    fast::{
        sums::{ABSENT, Context, SumNode, SumOutput, SumTerm},
        tree::Flush,
    },
};

const N: usize = 8;
type Eight = [i64; N];

#[inline(always)]
fn each(f: impl Fn(usize) -> i64) -> Eight {
    let mut out = [0; N];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = f(lane);
    }
    out
}

/// Eight terms: `±magnitude · 2^lsb`, aligned by `exponent`; `negative` is −1 or 0.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    magnitude: Eight,
    lsb: Eight,
    exponent: Eight,
    negative: Eight,
}

pub(super) const NO_TERMS: Terms = Terms { magnitude: [0; N], lsb: [0; N], exponent: [0; N], negative: [0; N] };

/// Several rows through several operations, for the columns of one panel.
pub(super) struct Sums<'a> {
    pub nodes: &'a [SumNode],
    pub context: &'a Context,
    pub steps: usize,
    pub rows: usize,
    /// Significands, exponents and signs of A, and those of its scales.
    pub a: [*const i32; 3],
    pub a_scales: [*const i32; 3],
    pub a_stride: usize,
    pub a_blocks: usize,
    pub b: [*const i32; 3],
    pub b_scales: [*const i32; 3],
    pub panel: usize,
    /// Memory for the terms of the widest node and for the results of all nodes.
    pub terms: *mut Terms,
    pub results: *mut Terms,
    pub accumulators: *mut f32,
    pub left: *mut u64,
}

impl Job for Sums<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes, const NG: usize>(&self) {
        let _ = V::WIDTH;
        for from in (0..self.panel).step_by(N) {
            for row in 0..self.rows {
                // SAFETY: upheld by the caller.
                unsafe { self.one_row(row, from) };
            }
        }
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]
fn leading(terms: &Terms) -> Eight {
    // The sum 2^52 + magnitude, written as the bits of an f64; minus 2^52 it is the magnitude.
    each(|lane| {
        let biased = f64::from_bits(terms.magnitude[lane] as u64 | 0x4330 << 48) - 4_503_599_627_370_496.0;
        let exponent = (biased.to_bits() >> 52) as i64 - 1023 + terms.lsb[lane];
        if terms.magnitude[lane] == 0 { ABSENT } else { exponent }
    })
}

/// Terms in whole units of `2^unit`, signed: truncated in magnitude, or rounded down.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn aligned(terms: &Terms, unit: &Eight, floor: bool) -> Eight {
    each(|lane| {
        let shift = terms.lsb[lane] - unit[lane];
        let (up, down) = (shift.clamp(0, 63), (-shift).clamp(0, 63));
        let negative = terms.negative[lane];
        if floor {
            let signed = (terms.magnitude[lane] ^ negative) - negative;
            signed.wrapping_shl(up as u32) >> down
        } else {
            let magnitude = terms.magnitude[lane].wrapping_shl(up as u32) >> down;
            (magnitude ^ negative) - negative
        }
    })
}

impl Sums<'_> {
    #[inline(always)]
    unsafe fn one_row(&self, row: usize, from: usize) {
        let context = self.context;
        let words = |of: &[*const i32; 3], at: usize| {
            // SAFETY: the callers below stay within the packed operands.
            unsafe {
                let eight = |word: *const i32| word.add(at).cast::<[i32; N]>().read();
                (eight(of[0]), eight(of[1]), eight(of[2]))
            }
        };
        let word = |of: &[*const i32; 3], at: usize| {
            // SAFETY: likewise.
            unsafe { [0, 1, 2].map(|part| i64::from(of[part].add(at).read())) }
        };
        // SAFETY: rows, columns, products and nodes are within the bounds of the task.
        unsafe {
            let accumulators = self.accumulators.add(row * self.panel + from).cast::<[f32; N]>();
            let mut acc = accumulators.read();
            let mut bad = [0i64; N];
            for step in 0..self.steps {
                let a_at = row * self.a_stride + step * context.len;
                let a_scale_at = row * self.a_blocks + step * context.blocks;
                let scales_of = |block: usize| {
                    let a = word(&self.a_scales, a_scale_at + block);
                    let b = words(&self.b_scales, (step * context.blocks + block) * self.panel + from);
                    (a, b)
                };
                let c = read_value(&acc, context);
                for (index, node) in self.nodes.iter().enumerate() {
                    let mut any = [0i64; N];
                    let mut all_negative_zero = [-1i64; N];
                    for (at, term) in node.terms.iter().enumerate() {
                        let terms = match *term {
                            SumTerm::Product(k) => {
                                let a = word(&self.a, a_at + k);
                                let b = words(&self.b, (step * context.len + k) * self.panel + from);
                                let mut product = Terms {
                                    magnitude: each(|lane| a[0] * i64::from(b.0[lane])),
                                    lsb: each(|lane| a[1] + i64::from(b.1[lane]) - context.fraction_bits),
                                    exponent: each(|lane| a[1] + i64::from(b.1[lane])),
                                    negative: each(|lane| a[2] ^ i64::from(b.2[lane])),
                                };
                                if node.scales_products {
                                    let (a, b) = scales_of(k / context.block);
                                    product = Terms {
                                        magnitude: each(|lane| product.magnitude[lane] * (a[0] * i64::from(b.0[lane]))),
                                        lsb: each(|lane| {
                                            product.lsb[lane] + a[1] + i64::from(b.1[lane])
                                                - context.scale_fraction_bits
                                        }),
                                        exponent: each(|lane| product.exponent[lane] + a[1] + i64::from(b.1[lane])),
                                        negative: each(|lane| product.negative[lane] ^ a[2] ^ i64::from(b.2[lane])),
                                    };
                                }
                                if node.product_overflow {
                                    bad = each(|lane| bad[lane] | -i64::from(product.exponent[lane] > 125));
                                }
                                product
                            }
                            SumTerm::C => c,
                            SumTerm::Node(index, _) => self.results.add(index).read(),
                        };
                        any = each(|lane| any[lane] | terms.magnitude[lane]);
                        all_negative_zero = each(|lane| all_negative_zero[lane] & terms.negative[lane]);
                        self.terms.add(at).write(terms);
                    }
                    let terms = std::slice::from_raw_parts(self.terms, node.terms.len());
                    let result = sum(node, terms, &any, &scales_of, context);
                    let result = match node.output {
                        SumOutput::Wide => result,
                        SumOutput::Float { fraction_bits, least, most, nearest, flush, positive_zero } => {
                            let (rounded, out) = rounded(&result, fraction_bits, least, nearest, flush, most);
                            bad = each(|lane| bad[lane] | out[lane]);
                            let negative = each(|lane| {
                                let zero = -i64::from(rounded.magnitude[lane] == 0);
                                let exact_zero = -i64::from(result.magnitude[lane] == 0);
                                let of_zeros = all_negative_zero[lane] & -i64::from(any[lane] == 0);
                                let sign = (exact_zero & of_zeros) | (!exact_zero & rounded.negative[lane]);
                                if positive_zero { sign & !zero } else { sign }
                            });
                            Terms { negative, ..rounded }
                        }
                    };
                    self.results.add(index).write(result);
                }
                acc = written_value(&self.results.add(self.nodes.len() - 1).read());
            }
            accumulators.write(acc);
            let mut left = 0;
            for (lane, bad) in bad.iter().enumerate() {
                left |= u64::from(*bad < 0) << (from + lane);
            }
            *self.left.add(row) |= left;
        }
    }
}

/// Reads f32 values as terms.
#[inline(always)]
fn read_value(values: &[f32; N], context: &Context) -> Terms {
    let mut magnitude = each(|lane| {
        let bits = i64::from(values[lane].to_bits() & 0x7fff_ffff);
        let normal = i64::from(bits >> 23 != 0) << 23;
        (bits & 0x7f_ffff) | normal
    });
    let mut negative = each(|lane| -i64::from(values[lane].to_bits() >> 31));
    let field = each(|lane| i64::from(values[lane].to_bits() >> 23 & 0xff).max(1) - 127);
    if context.flush_c != Flush::None {
        let flushed = each(|lane| -i64::from(magnitude[lane] >> 23 == 0) & -i64::from(magnitude[lane] != 0));
        magnitude = each(|lane| magnitude[lane] & !flushed[lane]);
        if context.flush_c == Flush::Positive {
            negative = each(|lane| negative[lane] & !flushed[lane]);
        }
    }
    let exponent = each(|lane| if magnitude[lane] == 0 { ABSENT } else { field[lane].max(context.least) });
    Terms { magnitude, lsb: each(|lane| field[lane] - 23), exponent, negative }
}

/// Writes terms that fit f32 as f32.
#[inline(always)]
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn written_value(terms: &Terms) -> [f32; N] {
    let mut out = [0.0; N];
    for (lane, out) in out.iter_mut().enumerate() {
        // At most 25 bits. In a lane that is left, the exponent may be anything.
        let magnitude = f64::from_bits(terms.magnitude[lane] as u64 | 0x4330 << 48) - 4_503_599_627_370_496.0;
        let scale = f64::from_bits(((terms.lsb[lane].clamp(-1000, 1000) + 1023) as u64) << 52);
        let sign = (terms.negative[lane] as u64) & (1 << 63);
        *out = f64::from_bits((magnitude * scale).to_bits() | sign) as f32;
    }
    out
}

/// The sum of a node before rounding.
#[inline(always)]
fn sum(
    node: &SumNode,
    terms: &[Terms],
    any: &Eight,
    scales_of: &impl Fn(usize) -> ([i64; 3], ([i32; N], [i32; N], [i32; N])),
    context: &Context,
) -> Terms {
    if let ([one], true) = (terms, node.rules.is_empty() && !node.scales_sum) {
        return *one;
    }
    let mut unit = [node.unit; N];
    let mut exponent = [2 * ABSENT; N];
    if !node.rules.is_empty() {
        unit = [4 * ABSENT; N];
    }
    for rule in &node.rules {
        let mut most = [rule.floor; N];
        for at in &rule.terms {
            let of = if rule.leading { leading(&terms[*at]) } else { terms[*at].exponent };
            most = each(|lane| most[lane].max(of[lane]));
        }
        unit = each(|lane| unit[lane].max(most[lane] - rule.fraction_bits));
        exponent = each(|lane| exponent[lane].max(most[lane]));
    }
    let is_value = |at: usize| matches!(node.terms[at], SumTerm::C | SumTerm::Node(_, true));
    let mut total = [0i64; N];
    let mut reference = [0i64; N];
    if node.below == Below::OnesComplement {
        for (at, terms) in terms.iter().enumerate() {
            if is_value(at) {
                reference = terms.negative;
            }
        }
    }
    for (at, term) in terms.iter().enumerate() {
        let cut = if is_value(at) { node.value_cut_bits } else { 0 };
        let at_unit = each(|lane| unit[lane] + cut);
        let mut part = aligned(term, &at_unit, node.below == Below::Floor);
        if cut != 0 {
            part = each(|lane| part[lane] << cut);
        }
        if node.below == Below::OnesComplement {
            // One unit toward the other sign, if the signs differ and not all terms are zero.
            part = each(|lane| {
                let differs = (term.negative[lane] ^ reference[lane]) & -i64::from(any[lane] != 0);
                let one = (reference[lane] & 2) - 1;
                part[lane] + (differs & one)
            });
        }
        if let (true, Some((below_bits, unless))) = (is_value(at), node.ignored) {
            let leading = leading(term);
            part = each(|lane| {
                let applies = unless.is_none_or(|at_most| unit[lane] > at_most);
                // A zero counts: as a complement it is one unit.
                let small = term.magnitude[lane] != 0 && leading[lane] < unit[lane] + cut - below_bits;
                if applies & small { 0 } else { part[lane] }
            });
        }
        total = each(|lane| total[lane] + part[lane]);
    }
    let negative = each(|lane| total[lane] >> 63);
    let mut result = Terms {
        magnitude: each(|lane| (total[lane] ^ negative[lane]) - negative[lane]),
        lsb: unit,
        exponent,
        negative,
    };
    if node.scales_sum
        && let SumTerm::Product(k) = node.terms[0]
    {
        let (a, b) = scales_of(k / context.block);
        let some = each(|lane| -i64::from(any[lane] != 0) & -i64::from(a[0] * i64::from(b.0[lane]) != 0));
        result.magnitude = each(|lane| result.magnitude[lane] * (a[0] * i64::from(b.0[lane])));
        result.lsb = each(|lane| result.lsb[lane] + a[1] + i64::from(b.1[lane]) - context.scale_fraction_bits);
        result.exponent = each(|lane| (some[lane] & (a[1] + i64::from(b.1[lane]))) | (!some[lane] & (2 * ABSENT)));
    }
    if let Some((bits, floor)) = node.normalised {
        let leading = leading(&result);
        let unit = each(|lane| (leading[lane].max(floor) - bits).max(result.lsb[lane]));
        let cut = aligned(&result, &unit, node.normalised_floors);
        let negative = each(|lane| cut[lane] >> 63);
        result.magnitude = each(|lane| (cut[lane] ^ negative[lane]) - negative[lane]);
        result.lsb = unit;
        result.negative = negative;
    }
    result
}

/// Rounds the sum to `fraction_bits`; the second result is −1 where it is out of range.
#[inline(always)]
#[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
fn rounded(sum: &Terms, fraction_bits: i64, least: i64, nearest: bool, flush: bool, most: i64) -> (Terms, Eight) {
    let leading_one = leading(sum);
    let unit = each(|lane| leading_one[lane].max(least) - fraction_bits);
    let kept = each(|lane| {
        let shift = sum.lsb[lane] - unit[lane];
        // Beyond 62 bits nothing is left, not even half a unit.
        let (up, down) = (shift.clamp(0, 62) as u32, (-shift).clamp(0, 62) as u32);
        let magnitude = sum.magnitude[lane];
        let half = (1i64 << down) >> 1;
        let odd = magnitude >> down & 1;
        let add = if nearest { (half - 1 + odd).max(0) } else { 0 };
        let add = if down == 0 { 0 } else { add };
        ((magnitude + add) >> down) << up
    });
    let rounded = Terms { magnitude: kept, lsb: unit, exponent: [0; N], negative: sum.negative };
    let top = leading(&rounded);
    let exponent = each(|lane| if kept[lane] == 0 { ABSENT } else { top[lane].max(least) });
    let out = each(|lane| {
        let beyond = -i64::from(top[lane] > most);
        let tiny = -i64::from(leading_one[lane] < least) & -i64::from(sum.magnitude[lane] != 0);
        beyond | if flush { tiny } else { 0 }
    });
    (Terms { exponent, ..rounded }, out)
}
