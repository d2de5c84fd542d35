//! The description of a question: its name, what it asks and how, what the answers mean, and how reports show them.

use std::any::Any;

use super::Value;

/// A question and its description. `A` is how it is asked, which only the code that asks it needs to know.
#[derive(Clone, Copy)]
pub struct Probe<A: ?Sized = dyn Any> {
    /// The probe's name, which its findings carry.
    pub name: &'static str,
    /// The question in words.
    pub question: &'static str,
    /// The method.
    pub how: &'static str,
    /// The possible values, and what each of them means for somebody who computes with the unit.
    pub answers: &'static [(&'static str, &'static str)],
    /// The source of the question.
    pub source: &'static str,
    /// The operations that it applies to.
    pub applies_to: AppliesTo,
    /// How reports show its findings.
    pub shown: Shown,
    /// The code that asks it.
    pub(crate) ask: A,
}

impl<A: Copy> Probe<A> {
    /// The same question for other operations, asked in another way.
    pub(crate) const fn asked_of<B>(self, applies_to: AppliesTo, ask: B) -> Probe<B> {
        let Self { name, question, how, answers, source, shown, .. } = self;
        Probe { name, question, how, answers, source, applies_to, shown, ask }
    }
}

/// The operations that a question applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliesTo {
    /// Every matrix operation.
    Every,
    /// Matrix operations of floating-point numbers.
    Floating,
    /// Matrix operations of integers.
    Integers,
    /// Matrix operations with block scales.
    BlockScales,
    /// The scalar arithmetic next to the matrix unit.
    Scalars,
}

/// How reports show the findings of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Its column in the summary table, if it has one.
    pub glance: Option<Glance>,
    /// How its answers are compared.
    pub compared: Comparable,
}

impl Shown {
    /// No column in the summary table; answers are compared as they are.
    pub(crate) const PLAIN: Self = Self { glance: None, compared: Comparable::AsIs };

    /// [`Shown::PLAIN`] with a column in the summary table.
    pub(crate) const fn at_a_glance(place: u8, head: &'static str) -> Self {
        Self { glance: Some(Glance { place, head }), ..Self::PLAIN }
    }

    /// Replaces the kind of comparison.
    pub(crate) const fn compared(self, compared: Comparable) -> Self {
        Self { compared, ..self }
    }
}

/// A column of the summary table.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    /// The sort key of the columns, ascending.
    pub place: u8,
    /// The column heading.
    pub head: &'static str,
}

/// How the answers of a probe are compared.
#[derive(Clone, Copy, Debug)]
pub enum Comparable {
    /// Equal values are equal answers.
    AsIs,
    /// Equal parts are equal answers: the function drops the parts that say only how far the probe could see.
    By(fn(&Value) -> Value),
    /// Answers depend on k even if the unit adds in the same way: not compared between different k.
    WithinK,
    /// Answers describe how a device computes, not what: compared only between reports of one device.
    WithinDevice,
    /// Answers are bits of NaN.
    NanBits,
}

/// Sources shared by several probes.
pub(crate) mod source {
    pub(crate) const FASI: &str = "Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores (2021)";
    pub(crate) const SUBNORMALS: &str = "IEEE 754-2019, 7.5 and 3.4; Fasi et al. (2021), section 3.1.1";
    pub(crate) const OWN: &str = "this project: docs/testing.md says how the probe itself is tested";
    pub(crate) const MICROSCALING: &str = "OCP Microscaling Formats Specification 1.0, section 5.4";
    pub(crate) const IEEE: &str = "IEEE 754-2019, 4.3, 5.4 and 6.2";
    pub(crate) const NVIDIA: &str =
        "NVIDIA, Precision and Performance: floating point and IEEE 754 compliance (2011), Figures 1 to 5";
}
