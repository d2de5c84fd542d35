//! Runs the SAT solver: the formula is satisfied, refuted with a proof, or undecided at the time limit.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Instant,
};

use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, lbool};

use super::{
    cnf::Cnf,
    rup::{Proof, Step},
};

/// The solver's result for a formula.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Values of the variables that satisfy it, in the order of the variables.
    Satisfied(Vec<bool>),
    /// It is unsatisfiable.
    Refuted(Refutation),
    /// Undecided: the limit of time or of conflicts was reached.
    Unknown,
}

/// The proof that a formula is unsatisfiable.
#[derive(Clone, Debug)]
pub struct Refutation {
    /// The proof: each clause follows from those before it.
    pub proof: Proof,
    /// Conflicts that the solver met.
    pub conflicts: u64,
}

/// The number of the solver's stop checks between two readings of the clock.
const CLOCK_EVERY: u32 = 256;

/// Records what the solver learns and forgets, and stops it in time.
struct Scribe {
    proof: Rc<RefCell<Proof>>,
    end: Instant,
    /// Stop checks until the clock is read again.
    asked: Cell<u32>,
    /// Conflicts until the solver is stopped.
    left: u64,
}

impl Callbacks for Scribe {
    fn on_new_clause(&mut self, clause: &[Lit], kind: ClauseKind) {
        if matches!(kind, ClauseKind::Learnt) {
            self.left = self.left.saturating_sub(1);
            self.proof.borrow_mut().push(Step::Add, &literals(clause));
        }
    }

    fn on_delete_clause(&mut self, clause: &[Lit]) {
        self.proof.borrow_mut().push(Step::Delete, &literals(clause));
    }

    fn stop(&self) -> bool {
        if self.left == 0 {
            return true;
        }
        // Once this returns true it must keep doing so: the solver asks again after it has left its inner loop.
        let asked = self.asked.get();
        if asked == 0 && Instant::now() < self.end {
            self.asked.set(CLOCK_EVERY);
        }
        self.asked.set(self.asked.get().saturating_sub(1));
        asked == 0 && self.asked.get() == 0
    }
}

fn literals(clause: &[Lit]) -> Vec<i32> {
    let literal = |literal: &Lit| {
        let variable = i32::try_from(literal.var().idx()).expect("formulas have fewer than 2^31 variables") + 1;
        if literal.sign() { variable } else { -variable }
    };
    clause.iter().map(literal).collect()
}

/// Solves a formula, until `end` or a number of conflicts is reached.
#[must_use]
pub fn solve(cnf: &Cnf, end: Instant, conflicts: u64) -> Answer {
    let proof = Rc::new(RefCell::new(Proof::default()));
    let scribe = Scribe { proof: Rc::clone(&proof), end, asked: Cell::new(0), left: conflicts };
    let mut solver = Solver::new(SolverOpts::default(), scribe);
    let variables: Vec<_> = (0..cnf.variables).map(|_| solver.new_var_default()).collect();
    let mut consistent = true;
    for clause in cnf.clauses() {
        let index = |literal: i32| literal.unsigned_abs() as usize - 1;
        let mut clause: Vec<Lit> =
            clause.iter().map(|literal| Lit::new(variables[index(*literal)], *literal > 0)).collect();
        consistent = consistent && solver.add_clause_reuse(&mut clause);
    }
    let answer = if consistent { solver.solve_limited(&[]) } else { lbool::FALSE };
    if answer == lbool::TRUE {
        let values = variables.iter().map(|variable| solver.value_var(*variable) == lbool::TRUE);
        return Answer::Satisfied(values.collect());
    }
    if answer != lbool::FALSE {
        return Answer::Unknown;
    }
    let conflicts = solver.num_conflicts();
    drop(solver);
    let mut proof = proof.take();
    proof.push(Step::Add, &[]);
    Answer::Refuted(Refutation { proof, conflicts })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::proof::rup::check;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// The formula that puts each pigeon into a hole of its own: variable `pigeon · holes + hole + 1`.
    fn pigeons(pigeons: i32, holes: i32) -> Cnf {
        let place = |pigeon: i32, hole: i32| pigeon * holes + hole + 1;
        let mut cnf = Cnf::new(pigeons * holes);
        for pigeon in 0..pigeons {
            cnf.add(&(0..holes).map(|hole| place(pigeon, hole)).collect::<Vec<_>>());
            for other in 0..pigeon {
                (0..holes).for_each(|hole| cnf.add(&[-place(pigeon, hole), -place(other, hole)]));
            }
        }
        cnf
    }

    #[test]
    fn a_refutation_has_a_proof_that_the_checker_accepts() {
        let cnf = pigeons(6, 5);
        let Answer::Refuted(refutation) = solve(&cnf, soon(), u64::MAX) else { panic!("six pigeons do not fit") };
        assert_eq!(check(&cnf, &refutation.proof), Ok(()));
        assert!(refutation.conflicts > 10);
        // The same proof does not prove anything about a satisfiable formula.
        assert!(check(&pigeons(5, 5), &refutation.proof).is_err());
    }

    #[test]
    fn a_formula_that_can_be_satisfied_is_given_values_that_do_so() {
        let cnf = pigeons(5, 5);
        let Answer::Satisfied(values) = solve(&cnf, soon(), u64::MAX) else { panic!("five pigeons fit") };
        let holds = |literal: &i32| values[literal.unsigned_abs() as usize - 1] == (*literal > 0);
        assert!(cnf.clauses().all(|clause| clause.iter().any(holds)));
    }

    #[test]
    fn a_formula_whose_clauses_contradict_at_once_is_refuted_at_once() {
        let mut cnf = Cnf::new(1);
        cnf.add(&[1]);
        cnf.add(&[-1]);
        let Answer::Refuted(refutation) = solve(&cnf, soon(), u64::MAX) else { panic!("1 and not 1") };
        assert_eq!(check(&cnf, &refutation.proof), Ok(()));
    }

    #[test]
    fn when_so_many_conflicts_are_met_nothing_is_known() {
        assert!(matches!(solve(&pigeons(8, 7), soon(), 20), Answer::Unknown));
        assert!(matches!(solve(&pigeons(8, 7), soon(), u64::MAX), Answer::Refuted(_)));
    }

    #[test]
    fn when_time_is_up_nothing_is_known() {
        assert!(matches!(solve(&pigeons(12, 11), Instant::now(), u64::MAX), Answer::Unknown));
    }
}
