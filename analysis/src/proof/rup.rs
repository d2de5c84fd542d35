//! Proofs that a formula is unsatisfiable, and a checker that shares no code with the solver.
//!
//! A proof is a list of clauses, each of which follows from the formula and the clauses before it by reverse unit
//! propagation: assume that all its literals are false, set what single-literal clauses force, and reach a
//! contradiction. The last clause is empty. Clauses may be deleted on the way. Its text form is the DRAT format, as
//! `drat-trim` reads it (Wetzler, Heule, Hunt, SAT 2014).

use std::{collections::HashMap, fmt::Write as _};

use super::cnf::Cnf;

/// The kind of a step of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Adds a clause that follows.
    Add,
    /// Deletes a clause that is no longer needed.
    Delete,
}

/// The steps of a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    literals: Vec<i32>,
    steps: Vec<(Step, usize)>,
}

impl Proof {
    /// Appends a step, which adds or deletes a clause.
    pub fn push(&mut self, step: Step, clause: &[i32]) {
        self.literals.extend_from_slice(clause);
        self.steps.push((step, self.literals.len()));
    }

    /// The number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether the proof has no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps, each with the literals of its clause, in order.
    pub fn steps(&self) -> impl Iterator<Item = (Step, &[i32])> {
        let starts = std::iter::once(0).chain(self.steps.iter().map(|(_, end)| *end));
        starts.zip(&self.steps).map(|(start, (step, end))| (*step, &self.literals[start..*end]))
    }

    /// The proof in the text form of DRAT.
    #[must_use]
    pub fn drat(&self) -> String {
        let mut text = String::new();
        for (step, clause) in self.steps() {
            if step == Step::Delete {
                text += "d ";
            }
            for literal in clause {
                let _ = write!(text, "{literal} ");
            }
            text += "0\n";
        }
        text
    }

    /// Parses the text form of DRAT.
    ///
    /// # Errors
    /// The first line that is not a step, with its number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut proof = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('c') {
                continue;
            }
            let (step, rest) = match line.strip_prefix("d ") {
                Some(rest) => (Step::Delete, rest),
                None => (Step::Add, line),
            };
            let wrong = || format!("line {}: `{line}` is not a step of a proof", number + 1);
            let mut clause = rest.split_whitespace().map(str::parse::<i32>).collect::<Result<Vec<_>, _>>();
            match clause.as_mut().map(|clause| clause.pop()) {
                Ok(Some(0)) => {}
                _ => return Err(wrong()),
            }
            let clause = clause.map_err(|_| wrong())?;
            if clause.contains(&0) {
                return Err(wrong());
            }
            proof.push(step, &clause);
        }
        Ok(proof)
    }
}

/// Checks that a proof refutes a formula.
///
/// Ignores the deletion of a clause that does not exist: this only leaves more clauses to propagate.
///
/// # Errors
/// The first step that does not follow, or the lack of an empty clause.
pub fn check(cnf: &Cnf, proof: &Proof) -> Result<(), String> {
    let mut checker = Checker::new(usize::try_from(cnf.variables).unwrap_or(0));
    for clause in cnf.clauses() {
        checker.insert(clause)?;
    }
    for (number, (step, clause)) in proof.steps().enumerate() {
        match step {
            Step::Delete => checker.delete(clause),
            Step::Add => {
                if !checker.follows(clause)? {
                    return Err(format!("step {}: the clause {clause:?} does not follow", number + 1));
                }
                if clause.is_empty() {
                    return Ok(());
                }
                checker.insert(clause)?;
            }
        }
    }
    Err("the proof has no empty clause".into())
}

/// The index of a literal in tables: 2·(variable − 1), plus one for its negation.
fn index(literal: i32) -> usize {
    (literal.unsigned_abs() as usize - 1) * 2 + usize::from(literal < 0)
}

struct Checker {
    /// The clauses; those with two literals or more are watched at the first two. Deleted clauses are empty.
    clauses: Vec<Vec<i32>>,
    watchers: Vec<Vec<usize>>,
    /// Whether each literal is known to hold, by its index.
    holds: Vec<bool>,
    trail: Vec<i32>,
    propagated: usize,
    contradiction: bool,
    places: HashMap<Vec<i32>, Vec<usize>>,
}

impl Checker {
    fn new(variables: usize) -> Self {
        Self {
            clauses: Vec::new(),
            watchers: vec![Vec::new(); variables * 2],
            holds: vec![false; variables * 2],
            trail: Vec::new(),
            propagated: 0,
            contradiction: false,
            places: HashMap::new(),
        }
    }

    fn is_false(&self, literal: i32) -> bool {
        self.holds[index(-literal)]
    }

    fn set(&mut self, literal: i32) {
        self.holds[index(literal)] = true;
        self.trail.push(literal);
    }

    /// Adds a clause permanently, and what it forces.
    fn insert(&mut self, clause: &[i32]) -> Result<(), String> {
        let mut clause = clause.to_vec();
        clause.sort_unstable();
        clause.dedup();
        if let Some(literal) = clause.iter().find(|literal| **literal == 0 || index(**literal) >= self.holds.len()) {
            return Err(format!("the formula has no literal {literal}"));
        }
        let number = self.clauses.len();
        self.places.entry(clause.clone()).or_default().push(number);
        // Literals that are not false come first, to be watched.
        clause.sort_by_key(|literal| self.is_false(*literal));
        match clause.as_slice() {
            [] => self.contradiction = true,
            [first, ..] if self.is_false(*first) => self.contradiction = true,
            [only] if !self.holds[index(*only)] => self.set(*only),
            [first, second, ..] if self.is_false(*second) && !self.holds[index(*first)] => self.set(*first),
            _ => {}
        }
        if let [first, second, ..] = clause.as_slice() {
            self.watchers[index(*first)].push(number);
            self.watchers[index(*second)].push(number);
        }
        self.clauses.push(clause);
        self.contradiction = self.contradiction || !self.propagate();
        Ok(())
    }

    /// Deletes one clause of these literals, if there is one. Literals that it has forced stay: they follow from the
    /// formula.
    fn delete(&mut self, clause: &[i32]) {
        let mut clause = clause.to_vec();
        clause.sort_unstable();
        clause.dedup();
        if let Some(number) = self.places.get_mut(&clause).and_then(Vec::pop) {
            self.clauses[number].clear();
        }
    }

    /// Whether a clause follows by reverse unit propagation.
    fn follows(&mut self, clause: &[i32]) -> Result<bool, String> {
        if self.contradiction {
            return Ok(true);
        }
        if let Some(literal) = clause.iter().find(|literal| **literal == 0 || index(**literal) >= self.holds.len()) {
            return Err(format!("the formula has no literal {literal}"));
        }
        let before = self.trail.len();
        let mut met = false;
        for literal in clause {
            if self.holds[index(*literal)] {
                met = true;
            } else if !self.is_false(*literal) {
                self.set(-*literal);
            }
        }
        met = met || !self.propagate();
        for literal in self.trail.drain(before..) {
            self.holds[index(literal)] = false;
        }
        self.propagated = before;
        Ok(met)
    }

    /// Sets everything that follows by single-literal clauses; returns false on a contradiction.
    fn propagate(&mut self) -> bool {
        while let Some(&literal) = self.trail.get(self.propagated) {
            self.propagated += 1;
            let fell = -literal;
            let mut watchers = std::mem::take(&mut self.watchers[index(fell)]);
            let mut kept = 0;
            let mut consistent = true;
            let mut at = 0;
            while at < watchers.len() {
                let number = watchers[at];
                at += 1;
                let clause = &mut self.clauses[number];
                if clause.is_empty() {
                    continue; // deleted: no longer watched
                }
                if clause[0] == fell {
                    clause.swap(0, 1);
                }
                let other = clause[0];
                if self.holds[index(other)] {
                    watchers[kept] = number;
                    kept += 1;
                    continue;
                }
                let holds = &self.holds;
                if let Some(place) = (2..clause.len()).find(|place| !holds[index(-clause[*place])]) {
                    clause.swap(1, place);
                    let watched = clause[1];
                    self.watchers[index(watched)].push(number);
                    continue;
                }
                watchers[kept] = number;
                kept += 1;
                if self.holds[index(-other)] {
                    consistent = false;
                    break;
                }
                self.set(other);
            }
            while at < watchers.len() {
                watchers[kept] = watchers[at];
                kept += 1;
                at += 1;
            }
            watchers.truncate(kept);
            self.watchers[index(fell)] = watchers;
            if !consistent {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a∨b, a∨¬b, ¬a∨c, ¬a∨¬c.
    fn formula() -> Cnf {
        let mut cnf = Cnf::new(3);
        for clause in [[1, 2], [1, -2], [-1, 3], [-1, -3]] {
            cnf.add(&clause);
        }
        cnf
    }

    fn proof(text: &str) -> Proof {
        Proof::parse(text).unwrap()
    }

    #[test]
    fn a_proof_whose_steps_follow_is_accepted() {
        assert_eq!(check(&formula(), &proof("1 0\n0\n")), Ok(()));
        assert_eq!(check(&formula(), &proof("1 0\nd 1 2 0\nd 7 0\n0\n")), Ok(()));
    }

    #[test]
    fn a_step_that_does_not_follow_is_refused_with_its_number() {
        let mut weaker = Cnf::new(3);
        weaker.add(&[1, 2]);
        weaker.add(&[-1, 3]);
        assert_eq!(check(&weaker, &proof("2 3 0\n3 0\n0\n")), Err("step 2: the clause [3] does not follow".into()));
        assert_eq!(check(&weaker, &proof("1 2 3 0\n")), Err("the proof has no empty clause".into()));
        assert!(check(&weaker, &proof("9 0\n")).unwrap_err().contains("literal 9"));
    }

    #[test]
    fn what_is_deleted_does_not_help_any_more() {
        assert_eq!(
            check(&formula(), &proof("d 1 2 0\n1 0\n0\n")),
            Err("step 2: the clause [1] does not follow".into())
        );
    }

    #[test]
    fn proofs_read_as_they_were_written() {
        let text = "1 -2 0\nd 1 2 0\n0\n";
        assert_eq!(proof(text).drat(), text);
        for wrong in ["1 2", "x 0", "1 0 2 0", "d"] {
            assert!(Proof::parse(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
