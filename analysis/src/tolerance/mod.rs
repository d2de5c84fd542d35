//! How far a unit's result may lie from the exact one: bounds proved from the unit's adders; docs/tolerance.md derives
//! them.
//!
//! A [`Bound`] holds for every dot of one length in every admissible [`Order`]; [`Tolerance`] turns it into an
//! [`Interval`] for each element of a product, and finds the elements that lie outside.

mod bound;
mod check;
mod exact;
mod interval;
mod lossless;
mod node;
mod plan;
mod search;
mod sides;
mod terms;

use mxprobe_api::{Elements, Error, Format, GemmOperands, OperationId, Rounding};
use mxprobe_models::{Evaluator, Model, Output};

pub use bound::{Bound, Order};
pub use check::{Checked, Outside};
pub use interval::{Element, Interval};
pub use search::Found;
pub use sides::{Sides, Signs};

use exact::Exact;
use plan::Operation;
use terms::{Adder, Reads, Terms};

/// The tolerance of dots of one length on one operation, in one order.
pub struct Tolerance {
    evaluator: Evaluator,
    operation: Operation,
    order: Order,
    k: usize,
    /// Without a c, and with one; `None` for integers.
    bounds: Option<[Bound; 2]>,
    /// Whether integer results out of range saturate instead of wrapping.
    saturates: bool,
}

impl Tolerance {
    /// The tolerance of dots of `k` products of an operation of a model.
    ///
    /// ```
    /// use mxprobe_analysis::tolerance::{Order, Signs, Tolerance};
    ///
    /// let model = mxprobe_models::load("h100")?;
    /// let id = "mma.m16n8k16.f32.f16.f16.f32".parse()?;
    /// let tolerance = Tolerance::new(&model, &id, 16, Order::Given)?;
    /// let bound = tolerance.bound(true).expect("it adds floating numbers");
    /// // Sixteen terms lose less than 2^-25 each, and the result less than 2^-23; nothing is ever rounded up.
    /// let lost = bound.relative(Signs::Positive);
    /// assert!((lost.down - (16.0 / 4.0 + 1.0) * 2f64.powi(-23)).abs() < 1e-12 && lost.up == 0.0);
    /// # Ok::<(), mxprobe_api::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the model does not have this operation. [`Error::is_unsupported`] if its sums may wrap,
    /// or if `k` takes more than one operation and results cannot be passed on as c.
    pub fn new(model: &Model, id: &OperationId, k: usize, order: Order) -> Result<Self, Error> {
        let evaluator = Evaluator::new(model, id)?;
        let operation = Operation::new(model, id)?;
        let bounds = if id.is_integer() {
            None
        } else {
            Some([Bound::of(&operation, k, order, false)?, Bound::of(&operation, k, order, true)?])
        };
        let last = evaluator.plan().nodes.last().map(|node| evaluator.adders()[node.adder].output);
        let saturates = matches!(last, Some(Output::Integer { saturates: true, .. }));
        Ok(Self { evaluator, operation, order, k, bounds, saturates })
    }

    /// The operation whose dots are bounded.
    #[must_use]
    pub fn id(&self) -> &OperationId {
        self.evaluator.id()
    }

    /// The orders of summation for which the bounds hold.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// The number of products of a dot.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The bound of dots with or without c; `None` for integers, whose sums are exact until they overflow.
    #[must_use]
    pub fn bound(&self, has_c: bool) -> Option<&Bound> {
        self.bounds.as_ref().map(|bounds| &bounds[usize::from(has_c)])
    }

    /// The tolerance of every element of D, row-major. In the given order, the only admissible result is the model's
    /// own.
    ///
    /// `threads` threads share the rows; with 0 or 1, only the calling thread is used. The result does not depend on
    /// it.
    ///
    /// # Errors
    /// As [`GemmOperands::validate`]; [`Error::is_invalid`] if k differs from this tolerance's.
    pub fn elements(&self, operands: &GemmOperands<'_>, threads: usize) -> Result<Vec<Element>, Error> {
        operands.validate(self.id())?;
        if operands.k != self.k {
            return Err(Error::invalid(format!("A has {} columns; the tolerance is that of {}", operands.k, self.k)));
        }
        let reads = Reads::new(self.id(), self.evaluator.flush(), operands);
        let rows = reads.rows();
        let height = rows.div_ceil(threads.max(1)).max(1);
        let part = |first: usize| self.rows(&reads, first..(first + height).min(rows));
        let mut found = if height >= rows {
            part(0)
        } else {
            std::thread::scope(|scope| {
                let part = &part;
                let parts: Vec<_> = (0..rows).step_by(height).map(|first| scope.spawn(move || part(first))).collect();
                parts.into_iter().flat_map(|part| part.join().expect("sums do not panic")).collect()
            })
        };
        if self.order == Order::Given {
            let d = self.evaluator.multiply(operands, threads)?;
            for (element, bits) in found.iter_mut().zip(d.iter()) {
                let is_nan = self.id().d.to_f64(bits).is_nan();
                element.interval = if is_nan { Interval::Nan } else { Interval::Within { low: bits, high: bits } };
            }
        }
        Ok(found)
    }

    fn rows(&self, reads: &Reads, rows: std::ops::Range<usize>) -> Vec<Element> {
        let (overflows, scales_sums) = (self.operation.has_product_overflow(), self.operation.scales_sums());
        let mut adder = Adder::new(self.id(), reads, overflows, scales_sums);
        let places = rows.flat_map(|row| (0..reads.columns()).map(move |column| (row, column)));
        places.map(|(row, column)| self.element(&adder.element(row, column))).collect()
    }

    /// The terms of the first element of a product whose operands are valid for the operation.
    fn terms(&self, operands: &GemmOperands<'_>) -> Terms {
        let reads = Reads::new(self.id(), self.evaluator.flush(), operands);
        let (overflows, scales_sums) = (self.operation.has_product_overflow(), self.operation.scales_sums());
        Adder::new(self.id(), &reads, overflows, scales_sums).element(0, 0)
    }

    fn element(&self, terms: &Terms) -> Element {
        let format = self.id().d;
        let has_c = matches!(terms, Terms::Sums(sums) if sums.has_c);
        match &self.bounds {
            Some(bounds) => bounds[usize::from(has_c)].element(terms, format),
            None => self.whole(terms, format),
        }
    }

    /// The tolerance of a sum of integers: exact in every order while no partial sum can leave the range; modulo 2^bits
    /// if the sum wraps.
    fn whole(&self, terms: &Terms, format: Format) -> Element {
        let Terms::Sums(sums) = terms else { return Element::nan() };
        let exact = sums.exact();
        let end = |negative: bool| Exact::of_bits(format, format.largest(negative)).expect("integers are finite");
        let least = Exact::zero().minus(&sums.negative);
        if sums.positive <= end(false) && least >= end(true) {
            return Element::exactly(exact.to_f64(), exact.rounded(format, Rounding::NearestEven));
        }
        if self.saturates {
            return Element { down: f64::INFINITY, up: f64::INFINITY, interval: Interval::Unbounded, ..Element::nan() };
        }
        Element::exactly(exact.to_f64(), exact.wrapped(format.bits()))
    }

    /// Compares a product with its tolerance.
    ///
    /// # Errors
    /// As [`elements`](Self::elements); [`Error::is_invalid`] if D has the wrong format or length.
    pub fn check(&self, operands: &GemmOperands<'_>, d: &Elements, threads: usize) -> Result<Checked, Error> {
        let (GemmOperands { m, n, .. }, id) = (*operands, self.id());
        if d.format() != id.d || d.len() != m * n {
            return Err(Error::invalid(format!(
                "D holds {} elements of {}, {m}×{n} of {} are expected",
                d.len(),
                d.format(),
                id.d
            )));
        }
        Ok(Checked::new(d, self.elements(operands, threads)?, n))
    }
}
