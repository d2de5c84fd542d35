//! Circuits: gates over inputs, each function stored once.

use std::collections::HashMap;

use super::{logic::Logic, words::Words};

/// A wire of a circuit, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(u32);

impl Signal {
    /// The wire that is always false.
    pub const FALSE: Self = Self(0);
    /// The wire that is always true.
    pub const TRUE: Self = Self(1);

    /// The index of its gate.
    #[must_use]
    pub fn gate(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether it is the negation of its gate.
    #[must_use]
    pub fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    fn of(gate: usize) -> Self {
        Self(u32::try_from(gate).expect("circuits have fewer than 2^31 gates") << 1)
    }

    fn negated_if(self, negated: bool) -> Self {
        Self(self.0 ^ u32::from(negated))
    }

    fn is_constant(self) -> bool {
        self.gate() == 0
    }
}

impl std::ops::Not for Signal {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// The driver of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The constant false.
    False,
    /// An input.
    Input,
    /// Both are true.
    And(Signal, Signal),
    /// Exactly one is true.
    Xor(Signal, Signal),
    /// The second if the first is true, otherwise the third.
    Choose(Signal, Signal, Signal),
    /// At least two of the three are true.
    Majority(Signal, Signal, Signal),
}

/// Gates in an order in which each reads only earlier ones. Equal gates are stored once, and signals that do not depend
/// on an input are folded into constants.
#[derive(Clone, Debug)]
pub struct Circuit {
    gates: Vec<Gate>,
    known: HashMap<Gate, Signal>,
    products: Vec<Product>,
}

/// A word that is the product of two others.
#[derive(Clone, Debug)]
pub struct Product {
    /// Its bits, lowest first.
    pub bits: Vec<Signal>,
    /// Facts about the bits of every product: it is zero if and only if a factor is; if the top bits of both factors
    /// are set, one of its two top bits is; and its top bits, as many as the longer factor has, are not all set.
    pub facts: Vec<Signal>,
}

impl Default for Circuit {
    fn default() -> Self {
        Self { gates: vec![Gate::False], known: HashMap::new(), products: Vec::new() }
    }
}

impl Circuit {
    /// A circuit without inputs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The gates; a signal refers to one by its index.
    #[must_use]
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// The products in the circuit, with the facts known of each.
    #[must_use]
    pub fn products(&self) -> &[Product] {
        &self.products
    }

    /// Adds an input.
    pub fn input(&mut self) -> Signal {
        self.gates.push(Gate::Input);
        Signal::of(self.gates.len() - 1)
    }

    /// Adds as many inputs as a word has bits, lowest bit first.
    pub fn inputs(&mut self, bits: u32) -> Vec<Signal> {
        (0..bits).map(|_| self.input()).collect()
    }

    fn gate(&mut self, gate: Gate) -> Signal {
        if let Some(known) = self.known.get(&gate) {
            return *known;
        }
        self.gates.push(gate);
        let signal = Signal::of(self.gates.len() - 1);
        self.known.insert(gate, signal);
        signal
    }

    /// Marks the gates that signals depend on, including their own. Gates that are cut off are marked, but not what
    /// they depend on.
    #[must_use]
    pub fn cone(&self, of: &[Signal], is_cut: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let mut needed = vec![false; self.gates.len()];
        of.iter().for_each(|signal| needed[signal.gate()] = true);
        for index in (0..self.gates.len()).rev() {
            if !needed[index] || is_cut(index) {
                continue;
            }
            let (signals, count) = self.gates[index].reads();
            for signal in &signals[..count] {
                needed[signal.gate()] = true;
            }
        }
        needed
    }
}

impl Gate {
    /// The signals that it reads, and how many of the three count.
    #[must_use]
    pub fn reads(self) -> ([Signal; 3], usize) {
        match self {
            Self::False | Self::Input => ([Signal::FALSE; 3], 0),
            Self::And(a, b) | Self::Xor(a, b) => ([a, b, Signal::FALSE], 2),
            Self::Choose(a, b, c) | Self::Majority(a, b, c) => ([a, b, c], 3),
        }
    }
}

impl Logic for Circuit {
    type Bit = Signal;

    fn note_product(&mut self, factors: [&[Signal]; 2], product: &[Signal]) {
        if self.products.iter().any(|known| known.bits == product) {
            return;
        }
        let [one, other] = factors;
        let (any_one, any_other, any) = (self.any(one), self.any(other), self.any(product));
        let both = self.and(any_one, any_other);
        let zero = !self.xor(any, both);
        let mut facts = vec![zero];
        if let (Some(one), Some(other), [.., below, top]) = (one.last(), other.last(), product) {
            let (normal, high) = (self.and(*one, *other), self.or(*top, *below));
            facts.push(self.or(!normal, high));
        }
        let longer = one.len().max(other.len());
        let full = self.all(&product[product.len() - longer..]);
        facts.push(!full);
        self.products.push(Product { bits: product.to_vec(), facts });
    }

    fn constant(&mut self, value: bool) -> Signal {
        Signal::FALSE.negated_if(value)
    }

    fn known(&self, bit: Signal) -> Option<bool> {
        bit.is_constant().then(|| bit.is_negated())
    }

    fn not(&mut self, a: Signal) -> Signal {
        !a
    }

    fn and(&mut self, a: Signal, b: Signal) -> Signal {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        if a == Signal::FALSE || a == !b {
            Signal::FALSE
        } else if a == Signal::TRUE || a == b {
            b
        } else {
            self.gate(Gate::And(a, b))
        }
    }

    fn xor(&mut self, a: Signal, b: Signal) -> Signal {
        let negated = a.is_negated() != b.is_negated();
        let (a, b) = (a.negated_if(a.is_negated()), b.negated_if(b.is_negated()));
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let plain = if a == Signal::FALSE {
            b
        } else if a == b {
            Signal::FALSE
        } else {
            self.gate(Gate::Xor(a, b))
        };
        plain.negated_if(negated)
    }

    fn choose(&mut self, condition: Signal, then: Signal, otherwise: Signal) -> Signal {
        if condition.is_negated() {
            return self.choose(!condition, otherwise, then);
        }
        if condition.is_constant() || then == otherwise {
            return otherwise;
        }
        if then == !otherwise {
            return self.xor(condition, otherwise);
        }
        let then = if then == condition {
            Signal::TRUE
        } else if then == !condition {
            Signal::FALSE
        } else {
            then
        };
        let otherwise = if otherwise == condition {
            Signal::FALSE
        } else if otherwise == !condition {
            Signal::TRUE
        } else {
            otherwise
        };
        if then.is_constant() {
            return if then == Signal::TRUE { self.or(condition, otherwise) } else { self.and(!condition, otherwise) };
        }
        if otherwise.is_constant() {
            return if otherwise == Signal::TRUE { self.or(!condition, then) } else { self.and(condition, then) };
        }
        let negated = then.is_negated();
        let plain = Gate::Choose(condition, then.negated_if(negated), otherwise.negated_if(negated));
        self.gate(plain).negated_if(negated)
    }

    fn majority(&mut self, a: Signal, b: Signal, c: Signal) -> Signal {
        let mut three = [a, b, c];
        three.sort_unstable();
        let [a, b, c] = three;
        // A signal sorts next to its negation, and the constants sort first.
        if a == b || b == c {
            return b;
        }
        if a == !b {
            return c;
        }
        if b == !c {
            return a;
        }
        if a.is_constant() {
            return if a == Signal::TRUE { self.or(b, c) } else { self.and(b, c) };
        }
        let negated = a.is_negated();
        let plain = Gate::Majority(a.negated_if(negated), b.negated_if(negated), c.negated_if(negated));
        self.gate(plain).negated_if(negated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::logic::Values;

    /// The value of a signal for these values of the inputs, in the order in which they were created.
    fn value(circuit: &Circuit, signal: Signal, inputs: &[bool]) -> bool {
        let mut inputs = inputs.iter();
        let mut values: Vec<bool> = Vec::new();
        let mut logic = Values;
        for gate in circuit.gates() {
            let of = |signal: Signal| values[signal.gate()] != signal.is_negated();
            let value = match *gate {
                Gate::False => false,
                Gate::Input => *inputs.next().unwrap(),
                Gate::And(a, b) => of(a) && of(b),
                Gate::Xor(a, b) => of(a) != of(b),
                Gate::Choose(a, b, c) => logic.choose(of(a), of(b), of(c)),
                Gate::Majority(a, b, c) => logic.majority(of(a), of(b), of(c)),
            };
            values.push(value);
        }
        values[signal.gate()] != signal.is_negated()
    }

    #[test]
    fn every_gate_is_its_function_for_all_combinations_of_inputs_negations_and_constants() {
        let mut circuit = Circuit::new();
        let inputs = circuit.inputs(3);
        let mut signals = vec![Signal::FALSE, Signal::TRUE];
        signals.extend(inputs.iter().flat_map(|signal| [*signal, !*signal]));
        let plain = |signal: Signal, row: &[bool]| match signal {
            Signal::FALSE => false,
            Signal::TRUE => true,
            other => row[inputs.iter().position(|input| input.gate() == other.gate()).unwrap()] != other.is_negated(),
        };
        for &a in &signals {
            for &b in &signals {
                for &c in &signals {
                    let made =
                        [circuit.and(a, b), circuit.xor(a, b), circuit.choose(a, b, c), circuit.majority(a, b, c)];
                    for row in 0..8 {
                        let row = [row & 1 == 1, row & 2 == 2, row & 4 == 4];
                        let (x, y, z) = (plain(a, &row), plain(b, &row), plain(c, &row));
                        let mut logic = Values;
                        let wanted = [x && y, x != y, logic.choose(x, y, z), logic.majority(x, y, z)];
                        assert_eq!(made.map(|signal| value(&circuit, signal, &row)), wanted, "{a:?} {b:?} {c:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn equal_functions_written_alike_are_one_gate() {
        let mut circuit = Circuit::new();
        let inputs = circuit.inputs(3);
        let (a, b, c) = (inputs[0], inputs[1], inputs[2]);
        let one = circuit.majority(a, b, c);
        assert_eq!(circuit.majority(c, a, b), one);
        assert_eq!(circuit.majority(!a, !c, !b), !one);
        let gates = circuit.gates().len();
        assert_eq!(circuit.xor(!b, a), !circuit.xor(a, b));
        assert_eq!(circuit.gates().len(), gates + 1);
    }
}
