//! What is said of a question, once: its name, what it asks and how, what the answers mean, where reports show them.

use std::any::Any;

use super::Value;

/// A question and what is said of it. `A` is how it is asked, which only those who ask it need to know.
#[derive(Clone, Copy)]
pub struct Probe<A: ?Sized = dyn Any> {
    /// The name that its findings carry.
    pub name: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// How it finds out.
    pub how: &'static str,
    /// Values, and what each of them means for who computes with the unit.
    pub answers: &'static [(&'static str, &'static str)],
    /// Where the question is from.
    pub source: &'static str,
    /// The operations that it is asked of.
    pub applies_to: AppliesTo,
    /// How reports show its findings.
    pub shown: Shown,
    /// How it is asked.
    pub(crate) ask: A,
}

impl<A: Copy> Probe<A> {
    /// The same question, asked of other operations in another way.
    pub(crate) const fn asked_of<B>(self, applies_to: AppliesTo, ask: B) -> Probe<B> {
        let Self { name, question, how, answers, source, shown, .. } = self;
        Probe { name, question, how, answers, source, applies_to, shown, ask }
    }
}

/// The operations that a question is asked of.
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
    /// The scalar arithmetic beside the matrix unit.
    Scalars,
}

/// How reports show the findings of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Its column in the table at a glance.
    pub glance: Option<Glance>,
    /// What a comparison makes of its answers.
    pub compared: Comparable,
}

impl Shown {
    /// In no column at a glance, and compared as it is.
    pub(crate) const PLAIN: Self = Self { glance: None, compared: Comparable::AsIs };

    /// As [`Shown::PLAIN`], with a column at a glance.
    pub(crate) const fn at_a_glance(place: u8, head: &'static str) -> Self {
        Self { glance: Some(Glance { place, head }), ..Self::PLAIN }
    }

    /// Comparable in another way.
    pub(crate) const fn compared(self, compared: Comparable) -> Self {
        Self { compared, ..self }
    }
}

/// A column of the table at a glance.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    /// Columns stand in ascending order of this.
    pub place: u8,
    /// Its head.
    pub head: &'static str,
}

/// What a comparison makes of the answers of a probe.
#[derive(Clone, Copy, Debug)]
pub enum Comparable {
    /// Equal values are equal answers.
    AsIs,
    /// Equal parts are equal answers: what says only how far the probe could see is left out.
    By(fn(&Value) -> Value),
    /// Answers differ with k by themselves, although the unit adds alike: not compared between different k.
    WithinK,
    /// Answers say how a device computes, not what: compared between reports of one device only.
    WithinDevice,
    /// Answers are bits of NaN.
    NanBits,
}

/// Sources that several probes are from.
pub(crate) mod source {
    pub(crate) const FASI: &str = "Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores (2021)";
    pub(crate) const SUBNORMALS: &str = "IEEE 754-2019, 7.5 and 3.4; Fasi et al. (2021), section 3.1.1";
    pub(crate) const OWN: &str = "this project: docs/testing.md says how the probe itself is tested";
    pub(crate) const MICROSCALING: &str = "OCP Microscaling Formats Specification 1.0, section 5.4";
    pub(crate) const IEEE: &str = "IEEE 754-2019, 4.3, 5.4 and 6.2";
    pub(crate) const NVIDIA: &str =
        "NVIDIA, Precision and Performance: floating point and IEEE 754 compliance (2011), Figures 1 to 5";
}
