//! Programs over any logic: over values they are computed, over circuits they become formulas.

use mxprobe_api::{Format, OperationId, Overflow, Rounding, Specials, Subnormals};
use mxprobe_models::{Adder, Class, Model, NanRules, Output, Plan, Provenance, Unit};

use super::{
    compute::is_of_a,
    program::{Scalar, Vector},
};
use crate::proof::{
    adder::{NotCovered, add},
    circuit::{Circuit, Signal},
    conditions::{self, Conditions, narrowed},
    dot::{Arithmetic, Inputs, evaluate},
    logic::Logic,
    number::{Finite, Number, Term, product, read},
    parts::{Part, Place, Query, Variable},
    words::{Word, Words as _},
};

/// A value in a format.
type Bits<B> = (Format, Word<B>);

/// The inputs of a question, over a logic.
pub(super) struct Question<'a, B> {
    pub arithmetic: Arithmetic<'a>,
    /// The format of a and b.
    pub inputs: Format,
    pub a: Vec<Word<B>>,
    pub b: Vec<Word<B>>,
    pub c: Word<B>,
    pub conditions: Conditions,
    /// The adders that round exact sums into f32, f64 and the operand formats, or leave them exact.
    pub adders: Adders,
}

/// Adders outside the unit.
pub(super) struct Adders {
    like: Provenance,
}

impl Adders {
    pub(super) fn new(like: &Adder) -> Self {
        Self { like: like.provenance.clone() }
    }

    fn exact(&self) -> Adder {
        let nan = NanRules { operand: Some(0), value: Some(0), ..NanRules::default() };
        Adder { provenance: self.like.clone(), ..Adder::exact("outside", Output::Wide, nan) }
    }

    /// An adder that rounds to nearest into a format.
    fn rounding_into(&self, format: Format) -> Adder {
        let nan = format.nan().unwrap_or_default();
        let overflow = if format.infinity(false).is_some() { Overflow::Ieee } else { Overflow::Saturate };
        let exact = self.exact();
        Adder {
            output: Output::Float {
                format,
                fraction_bits: format.fraction_bits(),
                rounding: Rounding::NearestEven,
                overflow,
                subnormals: Subnormals::Keep,
            },
            nan: NanRules { operand: Some(nan), value: Some(nan), invalid: nan, ..exact.nan.clone() },
            ..exact
        }
    }
}

fn term<L: Logic>(logic: &mut L, number: Number<L::Bit>) -> Term<L::Bit> {
    let no = logic.constant(false);
    Term { place: 0, class: Class::Values, number, operands: Vec::new(), invalid: no }
}

fn negated<L: Logic>(logic: &mut L, number: Number<L::Bit>) -> Number<L::Bit> {
    let negative = logic.not(number.finite.negative);
    Number { finite: Finite { negative, ..number.finite }, ..number }
}

/// Whether the operand format holds every finite value of the inputs, if the vector is an input.
fn is_held(inputs: Format, operand: Format, vector: &Vector) -> bool {
    let (Some(from), Some(to)) = (inputs.as_float(), operand.as_float()) else { return false };
    let ((low, high), (least, most)) = (from.exponents(), to.exponents());
    // A value of the largest exponent may have every fraction bit set.
    let fits = from.fraction_bits <= to.fraction_bits && low >= least && high <= most;
    matches!(vector, Vector::A | Vector::B) && (inputs == operand || fits && to.specials == Specials::Ieee)
}

/// The value times 2^by.
fn scaled<B: Copy + std::fmt::Debug>(number: Number<B>, by: i32) -> Number<B> {
    let finite =
        Finite { lsb: number.finite.lsb.raised(by), exponent: number.finite.exponent.raised(by), ..number.finite };
    Number { bits: None, finite, ..number }
}

impl<B: Copy + std::fmt::Debug> Question<'_, B> {
    fn number<L: Logic<Bit = B>>(&self, logic: &mut L, (format, bits): &Bits<B>) -> Number<B> {
        read(logic, *format, bits)
    }

    /// The sum of numbers, rounded to nearest into a format.
    fn rounded<L: Logic<Bit = B>>(
        &self,
        logic: &mut L,
        format: Format,
        numbers: Vec<Number<B>>,
    ) -> Result<Bits<B>, NotCovered> {
        let terms: Vec<Term<B>> = numbers.into_iter().map(|number| term(logic, number)).collect();
        let sum = add(logic, &self.adders.rounding_into(format), &terms, None, 0)?;
        Ok((format, sum.bits.expect("a rounded sum has bits").1))
    }

    fn vector<L: Logic<Bit = B>>(&self, logic: &mut L, vector: &Vector) -> Result<Vec<Bits<B>>, NotCovered> {
        let id = self.arithmetic.id;
        let operand = if is_of_a(vector) { id.a } else { id.b };
        match vector {
            Vector::A => Ok(self.a.iter().map(|bits| (self.inputs, bits.clone())).collect()),
            Vector::B => Ok(self.b.iter().map(|bits| (self.inputs, bits.clone())).collect()),
            Vector::Narrow(of) => {
                let range = match **of {
                    Vector::A => self.conditions.a,
                    Vector::B => self.conditions.b,
                    _ => None,
                };
                let of = self.vector(logic, of)?;
                of.into_iter()
                    .map(|value| {
                        if value.0 == operand {
                            return Ok(value);
                        }
                        let number = self.number(logic, &value);
                        let number = narrowed(logic, value.0, range, number);
                        self.rounded(logic, operand, vec![number])
                    })
                    .collect()
            }
            // The remainder of a finite value that the operand format holds is +0.
            Vector::Minus(of, less) if **less == Vector::Narrow(of.clone()) && is_held(self.inputs, operand, of) => {
                let zero = (Format::F32, logic.number(0, Format::F32.bits() as usize));
                Ok(vec![zero; self.a.len()])
            }
            Vector::Minus(of, less) => {
                let (of, less) = (self.vector(logic, of)?, self.vector(logic, less)?);
                of.iter()
                    .zip(&less)
                    .map(|(of, less)| {
                        let (of, less) = (self.number(logic, of), self.number(logic, less));
                        let less = negated(logic, less);
                        self.rounded(logic, Format::F32, vec![of, less])
                    })
                    .collect()
            }
            Vector::Scaled(of, by) => {
                let of = self.vector(logic, of)?;
                of.iter()
                    .map(|value| {
                        let number = scaled(self.number(logic, value), *by);
                        self.rounded(logic, Format::F32, vec![number])
                    })
                    .collect()
            }
        }
    }

    /// The result of a program.
    pub(super) fn scalar<L: Logic<Bit = B>>(&self, logic: &mut L, program: &Scalar) -> Result<Bits<B>, NotCovered> {
        match program {
            Scalar::C => Ok((Format::F32, self.c.clone())),
            Scalar::Zero => Ok((Format::F32, logic.number(0, Format::F32.bits() as usize))),
            Scalar::Unit(a, b, c, [from, to]) => {
                let (a, b) = (self.vector(logic, a)?, self.vector(logic, b)?);
                let (_, mut sum) = self.scalar(logic, c)?;
                let k = self.arithmetic.id.shape.sizes().2;
                let nodes: Vec<usize> = (0..self.arithmetic.plan.nodes.len()).collect();
                for first in (*from..*to).step_by(k) {
                    let mut inputs = Inputs { c: Some(sum), ..Inputs::default() };
                    for at in 0..k {
                        let is_in = first + at < *to;
                        let mut of = |values: &[Bits<B>], format: Format| {
                            if is_in { values[first + at].1.clone() } else { logic.number(0, format.bits() as usize) }
                        };
                        inputs.a.insert(at, of(&a, self.arithmetic.id.a));
                        inputs.b.insert(at, of(&b, self.arithmetic.id.b));
                    }
                    sum = evaluate(logic, &self.arithmetic, &nodes, &inputs)?;
                }
                Ok((Format::F32, sum))
            }
            Scalar::Add(format, one, other) => {
                let (one, other) = (self.scalar(logic, one)?, self.scalar(logic, other)?);
                let numbers = vec![self.number(logic, &one), self.number(logic, &other)];
                self.rounded(logic, *format, numbers)
            }
            Scalar::Scaled(of, by) => {
                let of = self.scalar(logic, of)?;
                let number = scaled(self.number(logic, &of), *by);
                self.rounded(logic, Format::F32, vec![number])
            }
            Scalar::Rounded(format, of) => {
                let of = self.scalar(logic, of)?;
                let number = self.number(logic, &of);
                self.rounded(logic, *format, vec![number])
            }
        }
    }

    /// The magnitude of a result's error, and the exponent of its lowest bit.
    fn error<L: Logic<Bit = B>>(&self, logic: &mut L, result: &Bits<B>) -> Result<(Word<B>, i32), NotCovered> {
        let result = self.number(logic, result);
        let mut terms = vec![term(logic, result)];
        let c = read(logic, Format::F32, &self.c);
        let c = narrowed(logic, Format::F32, self.conditions.c, c);
        let c = negated(logic, c);
        terms.push(term(logic, c));
        for (a, b) in self.a.iter().zip(&self.b) {
            let (a, b) = (read(logic, self.inputs, a), read(logic, self.inputs, b));
            let a = narrowed(logic, self.inputs, self.conditions.a, a);
            let b = narrowed(logic, self.inputs, self.conditions.b, b);
            let (number, _) = product(logic, &[&a, &b]);
            let number = negated(logic, number);
            terms.push(term(logic, number));
        }
        let sum = add(logic, &self.adders.exact(), &terms, None, 0)?;
        if sum.finite.lsb.low != sum.finite.lsb.high {
            return Err("an exact sum without a fixed lowest bit".into());
        }
        Ok((sum.finite.magnitude, sum.finite.lsb.low))
    }

    /// Whether the second result has a larger error than the first.
    pub(super) fn is_worse<L: Logic<Bit = B>>(
        &self,
        logic: &mut L,
        one: &Bits<B>,
        other: &Bits<B>,
    ) -> Result<B, NotCovered> {
        let (one, other) = (self.error(logic, one)?, self.error(logic, other)?);
        let lowest = one.1.min(other.1);
        let raised = |logic: &mut L, (word, lsb): &(Word<B>, i32)| {
            logic.raised(word, usize::try_from(lsb - lowest).expect("at least the lowest"))
        };
        let (one, other) = (raised(logic, &one), raised(logic, &other));
        Ok(logic.less(&one, &other))
    }

    /// Whether a result is finite.
    pub(super) fn is_finite<L: Logic<Bit = B>>(&self, logic: &mut L, result: &Bits<B>) -> B {
        let number = self.number(logic, result);
        let special = logic.or(number.nan, number.infinite);
        logic.not(special)
    }
}

/// The question about two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Whether both results are finite and their bits differ.
    Different,
    /// Whether both results are finite and this one (0 or 1) has the larger error.
    Worse(usize),
}

/// The question whether the asked property holds for some input, as a circuit.
///
/// # Errors
/// The part of the model that is not covered, in words.
pub fn query(
    (model, id): (&Model, &OperationId),
    programs: &[Scalar; 2],
    inputs: (Format, usize),
    asked: Asked,
    conditions: &Conditions,
) -> Result<Query, NotCovered> {
    let (unit, plan): (&Unit, Plan) = model.plan(id).ok_or("an operation that the model lacks")?;
    let (format, terms) = inputs;
    let of_dots = question_id(format, terms).map_err(|error| error.to_string())?;
    let mut circuit = Circuit::new();
    let mut variables = Vec::new();
    let mut variable = |circuit: &mut Circuit, place: Place, format: Format| {
        let bits = circuit.inputs(format.bits());
        variables.push(Variable { part: 0, place, format, bits: bits.clone() });
        bits
    };
    let a = (0..terms).map(|k| variable(&mut circuit, Place::A(k), format)).collect();
    let b = (0..terms).map(|k| variable(&mut circuit, Place::B(k), format)).collect();
    let c = variable(&mut circuit, Place::C, Format::F32);
    let arithmetic = Arithmetic { adders: &model.adders, unit, plan: &plan, id, bounds: &[], spare_bits: 0 };
    let adders = Adders::new(&model.adders[plan.nodes[0].adder]);
    let question = Question { arithmetic, inputs: format, a, b, c, conditions: *conditions, adders };
    let [one, other] = programs;
    let (one, other) = (question.scalar(&mut circuit, one)?, question.scalar(&mut circuit, other)?);
    let mut holds = match asked {
        Asked::Different => {
            let bits: Vec<Signal> = one.1.iter().zip(&other.1).map(|(one, other)| circuit.xor(*one, *other)).collect();
            circuit.any(&bits)
        }
        Asked::Worse(1) => question.is_worse(&mut circuit, &one, &other)?,
        Asked::Worse(_) => question.is_worse(&mut circuit, &other, &one)?,
    };
    for result in [&one, &other] {
        let finite = question.is_finite(&mut circuit, result);
        holds = circuit.and(holds, finite);
    }
    for variable in &variables {
        let number = read(&mut circuit, variable.format, &variable.bits);
        let special = circuit.or(number.nan, number.infinite);
        holds = circuit.and_not(holds, special);
        let range = match variable.place {
            Place::A(_) => conditions.a,
            Place::B(_) => conditions.b,
            _ => conditions.c,
        };
        if let Some(range) = range {
            let within = conditions::within(&mut circuit, range, &number);
            holds = circuit.and(holds, within);
        }
    }
    let parts = vec![Part { nodes: Vec::new(), count: 1 }];
    Ok(Query { id: of_dots, circuit, variables, differs: holds, parts, whole: true })
}

/// The operation whose dots are the inputs of a question: `terms` products of a format, and c in f32.
///
/// # Errors
/// If `terms` is not the k of an operation: 0, or more than 65536.
pub fn question_id(format: Format, terms: usize) -> Result<OperationId, mxprobe_api::Error> {
    format!("dot.m1n1k{terms}.f32.{format}.{format}.f32").parse()
}
