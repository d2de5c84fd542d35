//! An operation to be probed: builds dots whose leaves hold chosen values, and asks for them in batches.

use std::cell::{Cell, RefCell};

use mxprobe_api::{
    Decoded, Device, DotOperands, Elements, Error, FloatEncoding, Format, GemmOperands, Operation, OperationId,
    Overflow, Rounding, Subnormals, execute,
};

use super::number::Number;
use crate::{
    dots::{Dot, pack_from},
    findings::Evidence,
};

/// A leaf of the summation tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaf {
    /// The product at this k.
    Product(usize),
    /// c.
    C,
}

/// An operation of a device, and the state of the questions about it.
pub struct Subject<'a> {
    device: &'a dyn Device,
    operation: &'a Operation,
    asked: Cell<u64>,
    subnormal_operands: Cell<bool>,
    /// The operands of recent products, each in the slot of its number.
    splits: RefCell<Vec<Slot>>,
    unscaled: Cell<Option<(i32, i32)>>,
    left_out: RefCell<Vec<Leaf>>,
    /// Whether the device computes elements only in tiles.
    in_tiles: Cell<bool>,
}

/// Bits for A and for B: the operands of a product, or two scales.
type Bits = (u64, u64);

/// A product and its operands, if it has any; `None` for an empty slot.
type Slot = Option<(Number, Option<Bits>)>;

/// The number of products whose operands are kept.
const SLOTS: usize = 1 << 10;

/// The limit below which factors of a significand are sought.
const LARGEST_FACTOR: u64 = 1 << 13;

/// The most elements of A in a batch, so that it stays within some tens of megabytes.
const ELEMENTS_PER_BATCH: usize = 1 << 22;

impl<'a> Subject<'a> {
    /// Creates a subject for an operation of a device.
    #[must_use]
    pub fn new(device: &'a dyn Device, operation: &'a Operation) -> Self {
        Self {
            device,
            operation,
            asked: Cell::new(0),
            subnormal_operands: Cell::new(false),
            splits: RefCell::default(),
            unscaled: Cell::new(None),
            left_out: RefCell::default(),
            in_tiles: Cell::new(false),
        }
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'a dyn Device {
        self.device
    }

    /// The operation.
    #[must_use]
    pub fn operation(&self) -> &'a Operation {
        self.operation
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &'a OperationId {
        &self.operation.id
    }

    /// The number of products in a dot.
    #[must_use]
    pub fn k(&self) -> usize {
        self.id().shape.sizes().2
    }

    /// Every leaf except those left out: the products, then c.
    #[must_use]
    pub fn leaves(&self) -> Vec<Leaf> {
        let left_out = self.left_out.borrow();
        (0..self.k()).map(Leaf::Product).chain([Leaf::C]).filter(|leaf| !left_out.contains(leaf)).collect()
    }

    /// Makes [`Subject::leaves`] omit these leaves from now on, because they are not added, or more than once.
    pub fn leave_out(&self, leaves: Vec<Leaf>) {
        *self.left_out.borrow_mut() = leaves;
    }

    /// The number of dots asked so far.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.get()
    }

    /// Allows building leaves from subnormal operands from now on; call it once the unit is known to read them.
    pub fn allow_subnormal_operands(&self) {
        self.subnormal_operands.set(true);
        self.splits.borrow_mut().clear();
        self.unscaled.set(None);
    }

    /// The dot whose operands are all +0 and whose scales are 1.
    #[must_use]
    pub fn zeros(&self) -> Dot {
        Dot::zeros(self.id())
    }

    /// The bits of an exact value; `None` if the format cannot hold it (as a normal value, if `normal`).
    fn bits(format: Format, value: Number, normal: bool) -> Option<u64> {
        let (negative, magnitude, exponent) = value.parts();
        let encoded =
            format.encode(negative, magnitude, exponent, Rounding::TowardZero, Overflow::Saturate, Subnormals::Keep);
        if encoded.inexact || encoded.overflow {
            return None;
        }
        let is_normal = match (format.decode(encoded.bits), format.as_float()) {
            (Decoded::Finite { significand, .. }, Some(float)) => significand >> float.fraction_bits != 0,
            _ => true,
        };
        (is_normal || !normal).then_some(encoded.bits)
    }

    /// The bits of c for a value.
    #[must_use]
    pub fn c_bits(&self, value: Number) -> Option<u64> {
        Self::bits(self.id().c, value, !value.is_zero())
    }

    /// The bits of d for a value; `None` if d cannot hold it exactly.
    #[must_use]
    pub fn d_bits(&self, value: Number) -> Option<u64> {
        Self::bits(self.id().d, value, false)
    }

    /// The exact value of bits of d; `None` for NaN and infinities.
    #[must_use]
    pub fn d_value(&self, bits: u64) -> Option<Number> {
        Number::decode(self.id().d, bits)
    }

    /// Operands whose product is the value: the significand in A, a power of two in B, and the exponent split between
    /// them.
    #[must_use]
    pub fn product_bits(&self, value: Number) -> Option<(u64, u64)> {
        let mut splits = self.splits.borrow_mut();
        splits.resize(SLOTS, None);
        match &mut splits[value.slot(SLOTS)] {
            Some((of, known)) if *of == value => *known,
            other => other.insert((value, self.split(value, !self.subnormal_operands.get()))).1,
        }
    }

    fn split(&self, value: Number, normal: bool) -> Option<(u64, u64)> {
        if value.is_zero() {
            return Some((0, 0));
        }
        let (a, b) = (self.id().a, self.id().b);
        let leading = value.leading()?;
        let bias = |format: Format| format.as_float().map_or(0, |float| float.bias);
        let may_hold = |format: Format, leading: i32| {
            let exponents = format.as_float().map(FloatEncoding::exponents);
            exponents.is_none_or(|(least, most)| (least..=most).contains(&leading))
        };
        // No exponent makes room for a longer significand.
        let (_, magnitude, _) = value.parts();
        if a.as_float().is_some_and(|float| magnitude >> float.fraction_bits >> 1 != 0) {
            return None;
        }
        // Starts at the middle of B's share and moves outward; with wide formats the first try succeeds.
        let middle = leading * (bias(b) + 1) / (bias(a) + bias(b) + 2);
        (0..=2 * (bias(a).max(bias(b)) + 64)).find_map(|step| {
            let exponent = middle + if step % 2 == 0 { step / 2 } else { -(step + 1) / 2 };
            if !may_hold(b, exponent) || !may_hold(a, leading - exponent) {
                return None;
            }
            let b_bits = Self::bits(b, Number::power(exponent), normal)?;
            let a_bits = Self::bits(a, value.scaled(-exponent), normal)?;
            Some((a_bits, b_bits))
        })
    }

    /// Like [`product_bits`](Self::product_bits), but also for values whose significand is longer than A's, if it is
    /// the product of one of A's and one of B's.
    pub(super) fn factored_bits(&self, value: Number) -> Option<(u64, u64)> {
        if let Some(bits) = self.product_bits(value) {
            return Some(bits);
        }
        let (negative, magnitude, exponent) = value.parts();
        let magnitude = u64::try_from(magnitude).ok()?;
        let longest = |format: Format| 1u64 << (format.fraction_bits() + 1).min(63);
        let (of_a, of_b) = (longest(self.id().a), longest(self.id().b));
        let is_normal = !self.subnormal_operands.get();
        // The mantissa is odd, so its factors are; one of two factors is short enough to be found.
        let factors = (3..of_a.min(LARGEST_FACTOR)).step_by(2).filter(|a| magnitude.is_multiple_of(*a));
        factors.filter(|a| magnitude / a < of_b).find_map(|a| {
            let (a, b) = (i128::from(a), i128::from(magnitude / a));
            // Starts with the leading bit of B at 0 and moves outward.
            let middle = b.ilog2().cast_signed();
            (0..=80).find_map(|step| {
                let shift = if step % 2 == 0 { step / 2 } else { -(step + 1) / 2 } - middle;
                let b = Self::bits(self.id().b, Number::new(b, shift), is_normal)?;
                let a = if negative { -a } else { a };
                Some((Self::bits(self.id().a, Number::new(a, exponent - shift), is_normal)?, b))
            })
        })
    }

    /// A dot whose leaves hold these values and whose other leaves are +0.
    ///
    /// `None` if the formats, or a block scale that two leaves share, cannot hold them.
    #[must_use]
    pub fn dot(&self, leaves: &[(Leaf, Number)]) -> Option<Dot> {
        let mut dot = self.zeros();
        let Some(scale) = self.id().block_scale() else {
            for (leaf, value) in leaves {
                match leaf {
                    Leaf::C => dot.c = self.c_bits(*value)?,
                    Leaf::Product(k) => (dot.a[*k], dot.b[*k]) = self.product_bits(*value)?,
                }
            }
            return Some(dot);
        };
        for (leaf, value) in leaves {
            if *leaf == Leaf::C {
                dot.c = self.c_bits(*value)?;
            }
        }
        let scales = dot.scales.as_mut()?;
        for block in 0..scales.0.len() {
            let inside: Vec<(usize, Number)> = leaves
                .iter()
                .filter_map(|(leaf, value)| match leaf {
                    Leaf::Product(k) if k / scale.block == block && !value.is_zero() => Some((*k, *value)),
                    _ => None,
                })
                .collect();
            let (exponent, operands) = self.scaled_block(scale.format, &inside)?;
            scales.0[block] = exponent.0;
            scales.1[block] = exponent.1;
            for ((k, _), bits) in inside.iter().zip(operands) {
                (dot.a[*k], dot.b[*k]) = bits;
            }
        }
        Some(dot)
    }

    /// Finds one scale for a block (as two power-of-two scales), and operands for each of its values.
    fn scaled_block(&self, scale: Format, values: &[(usize, Number)]) -> Option<(Bits, Vec<Bits>)> {
        let limit = if scale == Format::UE8M0 { 250 } else { 18 };
        let (low, high) = self.unscaled_exponents();
        let leading = || values.iter().filter_map(|(_, value)| value.leading());
        // Other scales cannot bring both the largest and the smallest value into the range of a product.
        let least = leading().max().map_or(0, |most| most - high - 1).max(-limit);
        let most = leading().min().map_or(0, |least| least - low + 1).min(limit);
        // Those next to 0 come first: 0, -1, 1, -2, ….
        let exponents = (0..=limit).flat_map(|distance| [-distance, distance]).skip(1);
        exponents.filter(|exponent| (least..=most).contains(exponent)).find_map(|exponent| {
            let scale_a = Self::bits(scale, Number::power(exponent / 2), false)?;
            let scale_b = Self::bits(scale, Number::power(exponent - exponent / 2), false)?;
            let operands: Option<Vec<_>> =
                values.iter().map(|(_, value)| self.product_bits(value.scaled(-exponent))).collect();
            Some(((scale_a, scale_b), operands?))
        })
    }

    /// The lowest and the highest exponent of powers of two that a product holds without a block scale.
    fn unscaled_exponents(&self) -> (i32, i32) {
        let known = self.unscaled.get();
        known.unwrap_or_else(|| {
            let holds = |exponent: i32| self.product_bits(Number::power(exponent)).is_some();
            let low = (-64..=0).find(|exponent| holds(*exponent)).unwrap_or(0);
            let high = (0..=64).rev().find(|exponent| holds(*exponent)).unwrap_or(0);
            self.unscaled.set(Some((low, high)));
            (low, high)
        })
    }

    /// The lowest and the highest exponent of powers of two that a leaf holds, within d's normal range.
    #[must_use]
    pub fn exponents(&self, leaf: Leaf) -> (i32, i32) {
        let id = self.id();
        let holds = |exponent: i32| self.dot(&[(leaf, Number::power(exponent))]).is_some();
        let (low, high) = id.d.as_float().map_or((0, 0), |float| (float.min_exponent(), float.max_exponent()));
        // The exponents that a leaf holds form an interval around 0.
        let search = |from: i32, to: i32| {
            let (mut good, mut bad) = (from, to);
            while (bad - good).abs() > 1 {
                let middle = i32::midpoint(good, bad);
                if holds(middle) { good = middle } else { bad = middle }
            }
            good
        };
        (search(0, low - 1), search(0, high + 1))
    }

    /// Computes dots, each with its own rows and columns; returns the answers in the same order.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn ask(&self, dots: &[Dot]) -> Result<Vec<u64>, Error> {
        self.ask_from(dots, 0)
    }

    /// Like [`Subject::ask`], but with every dot shifted by this many rows or columns: the same dots at other
    /// positions.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn ask_from(&self, dots: &[Dot], shift: usize) -> Result<Vec<u64>, Error> {
        let mut answers = Vec::with_capacity(dots.len());
        self.asked.set(self.asked.get() + dots.len() as u64);
        if shift == 0 && !self.in_tiles.get() {
            // Single dots, if the device has a faster way for them.
            for dots in dots.chunks((ELEMENTS_PER_BATCH / self.k()).max(1)) {
                if !self.ask_alone(dots, &mut answers)? {
                    self.in_tiles.set(true);
                    break;
                }
            }
        }
        let dots = &dots[answers.len()..];
        let (m, n, k) = self.id().shape.sizes();
        let tiles = (ELEMENTS_PER_BATCH / (m * k).max(k * n)).max(1);
        for dots in dots.chunks(tiles * m.min(n)) {
            self.ask_batch(dots, shift, &mut answers)?;
        }
        Ok(answers)
    }

    /// Computes single dots, not tiles; returns false if the device has no way to do so.
    fn ask_alone(&self, dots: &[Dot], answers: &mut Vec<u64>) -> Result<bool, Error> {
        if self.device.matrices().is_none() {
            return Ok(false);
        }
        let id = self.id();
        let (a, b) = (
            Elements::from_slices(id.a, dots.iter().map(|dot| &dot.a[..])),
            Elements::from_slices(id.b, dots.iter().map(|dot| &dot.b[..])),
        );
        let c = Elements::from_bits(id.c, dots.iter().map(|dot| dot.c));
        let scales = id.block_scale().map(|scale| {
            let pairs = || dots.iter().filter_map(|dot| dot.scales.as_ref());
            (
                Elements::from_slices(scale.format, pairs().map(|(a, _)| &a[..])),
                Elements::from_slices(scale.format, pairs().map(|(_, b)| &b[..])),
            )
        });
        let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
        let operands = DotOperands { count: dots.len(), a: &a, b: &b, c: &c, scale_a, scale_b };
        let Some(d) = mxprobe_api::dots(self.device, self.operation, &operands)? else { return Ok(false) };
        answers.extend(d.iter());
        Ok(true)
    }

    /// Multiplies whole matrices of m×k and k×n elements and adds C, chaining operations along k; `None` if the device
    /// does not. The elements of the diagonal count as asked.
    ///
    /// # Errors
    /// Errors of the device.
    pub(super) fn multiply(
        &self,
        (m, n, k): (usize, usize, usize),
        (a, b, c): (&Elements, &Elements, &Elements),
    ) -> Result<Option<Elements>, Error> {
        self.asked.set(self.asked.get() + (m.min(n) * k.div_ceil(self.k())) as u64);
        let operands = GemmOperands { m, n, k, a, b, c, scale_a: None, scale_b: None };
        mxprobe_api::multiply(self.device, self.operation, &operands)
    }

    fn ask_batch(&self, dots: &[Dot], shift: usize, answers: &mut Vec<u64>) -> Result<(), Error> {
        let (batch, places) = pack_from(self.operation, dots, shift);
        let d: Elements = execute(self.device, self.operation, &batch)?;
        answers.extend(places.into_iter().map(|place| d.get(place)));
        Ok(())
    }

    /// Records a dot and its answer as evidence.
    #[must_use]
    pub fn evidence(&self, about: impl Into<String>, dot: &Dot, d: u64, rivals: &[(String, u64)]) -> Evidence {
        Evidence::of_dot(about, dot, d, rivals)
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_sim::ModelDevice;

    use super::*;
    use crate::dots::draw;

    #[test]
    fn dots_one_by_one_have_the_bits_that_they_have_in_tiles() {
        for (model, id) in [
            ("h100", "mma.m16n8k16.f32.f16.f16.f32"),
            ("mi300x", "mfma.m32n32k8.f32.f16.f16.f32"),
            ("amx", "amx.m16n16k64.s32.s8.u8.s32"),
            ("h100", "mma.m8n8k4.f64.f64.f64.f64"),
            ("rtx5090", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"),
        ] {
            let device = ModelDevice::new(mxprobe_models::load(model).expect("a shipped model"));
            let operation = &device.operations()[&id.parse::<OperationId>().expect("an id")];
            let dots = draw(&operation.id, 5, 2_000);
            let subject = Subject::new(&device, operation);
            let alone = subject.ask(&dots).expect("answers");
            assert_eq!(subject.asked(), 2_000, "{id}");
            assert!(!subject.in_tiles.get(), "{id}");
            let in_tiles = subject.ask_from(&dots, 1).expect("answers");
            assert_eq!(alone, in_tiles, "{id}");
        }
    }
}
