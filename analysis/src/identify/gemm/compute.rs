//! Evaluation of candidates by the programs of their recipes.

use std::collections::BTreeMap;

use mxprobe_api::{Elements, Error, Format, GemmOperands};
use mxprobe_models::recipe::{Case, Program, Shapes};

use super::{candidate::Candidate, recipe};

/// Rows of A, columns of B, and c, as bits in row-major order.
#[derive(Clone, Debug)]
pub(super) struct Operands {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Elements,
    pub(super) b: Elements,
    pub(super) c: Elements,
}

impl Candidate {
    /// Compiles the candidate into a program for every shape, with c in the format `c`.
    ///
    /// # Errors
    /// If formats are incompatible.
    pub(super) fn program(&self, c: Format) -> Result<Program, Error> {
        let mut adders = Vec::new();
        let case = recipe::case(self, ("all", Shapes::default()), c, &mut adders);
        Program::with_evaluator(&adders, &Case { c_format: Some(c), ..case }, self.unit.evaluator.clone())
    }
}

impl Operands {
    /// Computes D with a program, in row-major order.
    ///
    /// # Errors
    /// If formats are incompatible.
    pub(super) fn multiply(&self, program: &Program) -> Result<Elements, Error> {
        let Self { m, n, k, a, b, c } = self;
        let operands = GemmOperands { m: *m, n: *n, k: *k, a, b, c, scale_a: None, scale_b: None };
        program.multiply(&operands, &BTreeMap::new(), mxprobe_models::threads())
    }
}
