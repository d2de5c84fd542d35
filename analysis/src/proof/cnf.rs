//! Clauses that are equivalent to a circuit.

use std::fmt::Write as _;

use super::circuit::{Circuit, Gate, Signal};

/// A formula in conjunctive normal form. Literals are as in DIMACS files: variables count from 1, and negations are
/// negative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cnf {
    /// The number of variables.
    pub variables: i32,
    /// The literals of all clauses, one clause after another.
    literals: Vec<i32>,
    /// The end of each clause in `literals`.
    ends: Vec<usize>,
}

impl Cnf {
    /// A formula without clauses.
    #[must_use]
    pub fn new(variables: i32) -> Self {
        Self { variables, ..Self::default() }
    }

    /// Adds a clause, given by its literals.
    pub fn add(&mut self, clause: &[i32]) {
        self.literals.extend_from_slice(clause);
        self.ends.push(self.literals.len());
    }

    /// The number of clauses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the formula has no clauses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The clauses, each as its literals, in the order in which they were added.
    pub fn clauses(&self) -> impl Iterator<Item = &[i32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.literals[start..*end])
    }

    /// The formula as a DIMACS file, with each comment on its own line.
    #[must_use]
    pub fn dimacs(&self, comments: &[String]) -> String {
        let mut text = String::new();
        for comment in comments {
            let _ = writeln!(text, "c {comment}");
        }
        let _ = writeln!(text, "p cnf {} {}", self.variables, self.len());
        for clause in self.clauses() {
            for literal in clause {
                let _ = write!(text, "{literal} ");
            }
            text += "0\n";
        }
        text
    }
}

/// A circuit's formula and the variable of each gate.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The clauses: satisfied by exactly the inputs for which the asserted signal holds.
    pub cnf: Cnf,
    variables: Vec<i32>,
}

impl Encoded {
    /// Encodes the assertion that a signal holds.
    #[must_use]
    pub fn of(circuit: &Circuit, holds: Signal) -> Self {
        Self::cut(circuit, &[holds], &|_| false)
    }

    /// Encodes the assertion that a signal holds if products may have any value that satisfies the facts known of all
    /// products; `None` without products. If the formula is unsatisfiable, so is the signal.
    #[must_use]
    pub fn with_any_products(circuit: &Circuit, holds: Signal) -> Option<Self> {
        let mut is_cut = vec![false; circuit.gates().len()];
        let mut asserted = vec![holds];
        for product in circuit.products() {
            // The lowest bit is a single gate.
            for signal in product.bits.iter().skip(1) {
                is_cut[signal.gate()] = !matches!(circuit.gates()[signal.gate()], Gate::False | Gate::Input);
            }
            asserted.extend(&product.facts);
        }
        is_cut.contains(&true).then(|| Self::cut(circuit, &asserted, &|gate| is_cut[gate]))
    }

    /// Encodes the assertion that signals hold if gates that are cut off may have any value.
    fn cut(circuit: &Circuit, hold: &[Signal], is_cut: &dyn Fn(usize) -> bool) -> Self {
        let needed = circuit.cone(hold, is_cut);
        let mut encoded = Self { cnf: Cnf::default(), variables: vec![0; circuit.gates().len()] };
        for (index, gate) in circuit.gates().iter().enumerate().filter(|(index, _)| needed[*index]) {
            encoded.cnf.variables += 1;
            encoded.variables[index] = encoded.cnf.variables;
            encoded.gate(encoded.cnf.variables, if is_cut(index) { Gate::Input } else { *gate });
        }
        for signal in hold {
            let literal = encoded.literal(*signal);
            encoded.cnf.add(&[literal]);
        }
        encoded
    }

    /// The literal of a signal, or 0 if the asserted signal does not depend on it.
    #[must_use]
    pub fn literal(&self, signal: Signal) -> i32 {
        let variable = self.variables[signal.gate()];
        if signal.is_negated() { -variable } else { variable }
    }

    fn gate(&mut self, g: i32, gate: Gate) {
        match gate {
            Gate::False => self.cnf.add(&[-g]),
            Gate::Input => {}
            Gate::And(a, b) => {
                let (a, b) = (self.literal(a), self.literal(b));
                for clause in [&[-g, a][..], &[-g, b], &[g, -a, -b]] {
                    self.cnf.add(clause);
                }
            }
            Gate::Xor(a, b) => {
                let (a, b) = (self.literal(a), self.literal(b));
                for clause in [[-g, a, b], [-g, -a, -b], [g, -a, b], [g, a, -b]] {
                    self.cnf.add(&clause);
                }
            }
            Gate::Choose(condition, then, otherwise) => {
                let (c, t, e) = (self.literal(condition), self.literal(then), self.literal(otherwise));
                // The last two follow from the others, and let a solver propagate more.
                for clause in [[-c, -t, g], [-c, t, -g], [c, -e, g], [c, e, -g], [-t, -e, g], [t, e, -g]] {
                    self.cnf.add(&clause);
                }
            }
            Gate::Majority(a, b, c) => {
                let (a, b, c) = (self.literal(a), self.literal(b), self.literal(c));
                for clause in [[-a, -b, g], [-a, -c, g], [-b, -c, g], [a, b, -g], [a, c, -g], [b, c, -g]] {
                    self.cnf.add(&clause);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::logic::Logic;

    #[test]
    fn a_gate_s_clauses_hold_for_its_function_alone() {
        let mut circuit = Circuit::new();
        let inputs = circuit.inputs(3);
        let (a, b, c) = (inputs[0], inputs[1], inputs[2]);
        let gates = [circuit.and(a, !b), circuit.xor(a, b), circuit.choose(a, b, c), circuit.majority(a, b, c)];
        let functions: [fn(bool, bool, bool) -> bool; 4] = [
            |a, b, _| a && !b,
            |a, b, _| a != b,
            |a, b, c| if a { b } else { c },
            |a, b, c| u8::from(a) + u8::from(b) + u8::from(c) > 1,
        ];
        for (gate, function) in gates.into_iter().zip(functions) {
            let encoded = Encoded::of(&circuit, gate);
            for row in 0..16 {
                let (a_is, b_is, c_is, g_is) = (row & 1 == 1, row & 2 == 2, row & 4 == 4, row & 8 == 8);
                let true_of = |literal: i32| {
                    let signals = [(a, a_is), (b, b_is), (c, c_is), (gate, g_is)];
                    let variable = signals.iter().find(|(signal, _)| encoded.literal(*signal).abs() == literal.abs());
                    let (signal, value) = variable.expect("it stands for one of these");
                    if encoded.literal(*signal) == literal { *value } else { !value }
                };
                let satisfied = encoded.cnf.clauses().all(|clause| clause.iter().any(|literal| true_of(*literal)));
                assert_eq!(satisfied, g_is && function(a_is, b_is, c_is), "{gate:?} {row:04b}");
            }
        }
    }

    #[test]
    fn a_formula_is_written_as_dimacs() {
        let mut cnf = Cnf::new(3);
        cnf.add(&[1, -3]);
        cnf.add(&[]);
        assert_eq!(cnf.dimacs(&["two clauses".into()]), "c two clauses\np cnf 3 2\n1 -3 0\n0\n");
    }
}
