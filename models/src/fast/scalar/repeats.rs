//! Nodes whose results are known without adding: most products of many dots are +0.
//!
//! A node that adds nothing but +0 has the result of every other one like it. A node that adds only +0 to the result of
//! another one, which did the same and changed nothing, changes nothing either.

use crate::tree::Term;

/// What is known about a node from the plan alone.
#[derive(Clone, Copy)]
struct Likeness {
    /// The number that it has in common with all nodes that add the same, but for the numbers of products. `None` if c is
    /// among what they add.
    kind: Option<u32>,
    /// The node whose result it adds to terms like those of that node, and where among its terms that result is.
    like: Option<(u32, u32)>,
}

/// What is known about a node from the products too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It adds nothing but +0.
    Constant,
    /// It adds +0 to the result of another node, and that is its result.
    Unchanged,
    Other,
}

/// How the result of a node is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Known,
    /// By adding. If it is that of this node, so are those of nodes like it.
    Compare(usize),
    Add,
}

/// The nodes of a plan during an evaluation.
#[derive(Clone)]
pub(super) struct Repeats {
    nodes: Vec<Likeness>,
    states: Vec<State>,
    /// The node that has the result of each.
    places: Vec<u32>,
    /// A node of each kind that adds nothing but +0, and whose result is known.
    constants: Vec<Option<u32>>,
}

/// The adder and the terms of a node.
type Node<'a> = (usize, &'a [Term]);

/// Whether two nodes add the same, but for the numbers of products and for the terms at `apart`, if they have some.
fn are_alike(nodes: &[Likeness], one: Node<'_>, other: Node<'_>, apart: Option<usize>) -> bool {
    let kind = |node: &usize| nodes[*node].kind;
    one.0 == other.0
        && one.1.len() == other.1.len()
        && one.1.iter().zip(other.1).enumerate().all(|(at, pair)| match pair {
            (Term::Product(_), Term::Product(_)) | (Term::PositiveZero, Term::PositiveZero) => true,
            (Term::Node(_), Term::Node(_)) if apart == Some(at) => true,
            (Term::Node(one), Term::Node(other)) => kind(one).is_some() && kind(one) == kind(other),
            _ => false,
        })
}

#[allow(clippy::cast_possible_truncation)]
fn number(index: usize) -> u32 {
    index as u32
}

impl Repeats {
    /// Compares the nodes of a plan, given by their adders and terms.
    pub(super) fn of<'a>(plan: impl ExactSizeIterator<Item = Node<'a>>) -> Self {
        let mut all: Vec<Node<'_>> = Vec::with_capacity(plan.len());
        let mut nodes: Vec<Likeness> = Vec::with_capacity(plan.len());
        // A node of each kind.
        let mut kinds: Vec<Node<'_>> = Vec::new();
        for node in plan {
            let terms = node.1;
            let has_kind = terms.iter().all(|term| match term {
                Term::Node(index) => nodes[*index].kind.is_some(),
                Term::C => false,
                Term::Product(_) | Term::PositiveZero => true,
            });
            let kind = has_kind.then(|| {
                // The last ones are the likeliest.
                let known = kinds.iter().rposition(|kind| are_alike(&nodes, node, *kind, None));
                known.unwrap_or_else(|| {
                    kinds.push(node);
                    kinds.len() - 1
                })
            });
            let like = terms.iter().enumerate().find_map(|(at, term)| match term {
                Term::Node(index) => {
                    let is_like = are_alike(&nodes, node, all[*index], Some(at));
                    is_like.then(|| (number(*index), number(at)))
                }
                _ => None,
            });
            nodes.push(Likeness { kind: kind.map(number), like });
            all.push(node);
        }
        let count = nodes.len();
        let (states, places) = (vec![State::Other; count], (0..).take(count).collect());
        Self { nodes, states, places, constants: vec![None; kinds.len()] }
    }

    /// Begins an evaluation.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.constants.fill(None);
    }

    /// The node that has the result of this one.
    #[inline(always)]
    pub(super) fn place(&self, node: usize) -> usize {
        self.places[node] as usize
    }

    /// The node that has the result of the one that a node is like.
    #[inline(always)]
    pub(super) fn like(&self, node: usize) -> Option<usize> {
        self.nodes[node].like.map(|(other, _)| self.place(other as usize))
    }

    /// Returns how the result of node `index`, which has these terms, is found. `is_quiet` says which products are +0.
    #[inline(always)]
    pub(super) fn step(&mut self, index: usize, terms: &[Term], is_quiet: impl Fn(usize) -> bool) -> Step {
        let Likeness { kind, like } = self.nodes[index];
        (self.states[index], self.places[index]) = (State::Other, number(index));
        // The last result is read as bits.
        if index + 1 == self.nodes.len() {
            return Step::Add;
        }
        let mut other = None;
        for term in terms {
            let adds_zero = match term {
                Term::Product(k) => is_quiet(*k),
                Term::PositiveZero => true,
                Term::C => false,
                Term::Node(of) => self.states[*of] == State::Constant || other.replace(*of).is_none(),
            };
            if !adds_zero {
                return Step::Add;
            }
        }
        match (other, kind, like) {
            (None, Some(kind), _) => {
                self.states[index] = State::Constant;
                match self.constants[kind as usize] {
                    Some(known) => {
                        self.places[index] = known;
                        Step::Known
                    }
                    None => {
                        self.constants[kind as usize] = Some(number(index));
                        Step::Add
                    }
                }
            }
            (Some(other), _, Some((node, at))) if node as usize == other => {
                let of_other = self.nodes[other].like;
                if self.states[other] == State::Unchanged && of_other.is_some_and(|(_, place)| place == at) {
                    self.unchanged(index, other);
                    Step::Known
                } else {
                    Step::Compare(other)
                }
            }
            _ => Step::Add,
        }
    }

    /// Compares the result of a node, if its step asks for that. Returns whether it is that of the other node, which
    /// `is_same` finds from where that result is.
    #[inline(always)]
    pub(super) fn is_unchanged(&mut self, step: Step, index: usize, is_same: impl FnOnce(usize) -> bool) -> bool {
        let Step::Compare(other) = step else { return false };
        let is_same = is_same(self.place(other));
        if is_same {
            self.unchanged(index, other);
        }
        is_same
    }

    #[inline(always)]
    fn unchanged(&mut self, index: usize, of: usize) {
        self.states[index] = State::Unchanged;
        self.places[index] = self.places[of];
    }
}
