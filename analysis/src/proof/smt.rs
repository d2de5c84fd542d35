//! Writes a question as an SMT-LIB 2 file, for solvers of bit vectors.

use std::fmt::Write as _;

use super::{
    circuit::{Gate, Signal},
    parts::Query,
};

/// The question whether a part differs, in the logic `QF_BV`: inputs are bit vectors, gates are Boolean definitions.
/// `sat` means that the models' parts differ, `unsat` that they are equal.
#[must_use]
pub fn smt2(query: &Query, comments: &[String]) -> String {
    let mut text = String::new();
    for comment in comments {
        let _ = writeln!(text, "; {comment}");
    }
    text += "(set-logic QF_BV)\n(set-option :produce-models true)\n";
    let needed = query.circuit.cone(&[query.differs], &|_| false);
    let mut names = vec![String::new(); query.circuit.gates().len()];
    for variable in &query.variables {
        let name = variable.name();
        let _ = writeln!(text, "(declare-const {name} (_ BitVec {}))", variable.format.bits());
        for (place, bit) in variable.bits.iter().enumerate() {
            names[bit.gate()] = format!("(= ((_ extract {place} {place}) {name}) #b1)");
        }
    }
    for (index, gate) in query.circuit.gates().iter().enumerate().filter(|(index, _)| needed[*index]) {
        let of = |signal: Signal| {
            let name = &names[signal.gate()];
            if signal.is_negated() { format!("(not {name})") } else { name.clone() }
        };
        let meaning = match *gate {
            Gate::False => "false".to_owned(),
            Gate::Input => names[index].clone(),
            Gate::And(a, b) => format!("(and {} {})", of(a), of(b)),
            Gate::Xor(a, b) => format!("(xor {} {})", of(a), of(b)),
            Gate::Choose(c, t, e) => format!("(ite {} {} {})", of(c), of(t), of(e)),
            Gate::Majority(a, b, c) => {
                let (a, b, c) = (of(a), of(b), of(c));
                format!("(or (and {a} {b}) (and {c} (or {a} {b})))")
            }
        };
        let _ = writeln!(text, "(define-fun g{index} () Bool {meaning})");
        names[index] = format!("g{index}");
    }
    let differs = &names[query.differs.gate()];
    let differs = if query.differs.is_negated() { format!("(not {differs})") } else { differs.clone() };
    let _ = writeln!(text, "(assert {differs})\n(check-sat)");
    text
}
