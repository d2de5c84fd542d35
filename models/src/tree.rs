//! The tree of a unit: a small expression, and the flat plan it becomes for one k.
//!
//! ```text
//! expression = "c" | "acc" | "+0" | "none" | ADDER "(" argument {"," argument} ")"
//!            | "fold(" expression "," products "/" NUMBER "," expression ")"
//!            | "pairs(" products "/" NUMBER "," expression "," ADDER ")"
//! argument   = expression | products
//! products   = "all" | "reverse" | NUMBER | NUMBER ".." NUMBER | "every(" PERIOD {"," OFFSET} ")"
//! ```
//!
//! `fold(start, products/n, body)` takes the products in groups of n: `acc` is `start`, then `body` of each group in
//! turn. `pairs(products/n, leaf, adder)` adds the leaves of the groups two by two, neighbours first, until one is
//! left; an odd one is carried to the next level. Inside a body or a leaf, products are numbered within the group.
//! `every(4, 2, 3)` takes those whose index modulo 4 is 2 or 3, in the order written within each period. Expressions
//! are nested at most 64 deep.

use std::fmt;

/// The origin of a node's term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// The product of a and b at this k.
    Product(usize),
    /// The operation's c.
    C,
    /// The result of an earlier node.
    Node(usize),
    /// The constant +0.
    PositiveZero,
}

/// One fused addition: an adder and its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanNode {
    /// The index of the unit's adder.
    pub adder: usize,
    /// The terms, in order.
    pub terms: Vec<Term>,
}

/// The fused additions of one dot in evaluation order; the last one gives d.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The nodes; a node refers to earlier ones only.
    pub nodes: Vec<PlanNode>,
}

/// A parsed tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    C,
    Acc,
    PositiveZero,
    None,
    Add { adder: usize, arguments: Vec<Argument> },
    Fold { start: Box<Tree>, products: Products, group: usize, body: Box<Tree> },
    Pairs { products: Products, group: usize, leaf: Box<Tree>, adder: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Tree(Tree),
    Products(Products),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    All,
    Reverse,
    Range(usize, usize),
    Every(usize, Vec<usize>),
}

impl Products {
    fn select(&self, scope: &[usize]) -> Vec<usize> {
        match self {
            Self::All => scope.to_vec(),
            Self::Reverse => scope.iter().rev().copied().collect(),
            Self::Range(from, to) => scope[(*from).min(scope.len())..(*to).min(scope.len())].to_vec(),
            Self::Every(period, offsets) => (0..scope.len())
                .step_by(*period)
                .flat_map(|base| offsets.iter().map(move |offset| base + offset))
                .filter_map(|index| scope.get(index).copied())
                .collect(),
        }
    }
}

impl Tree {
    /// The plan of this tree for dots of `k` products.
    pub(crate) fn plan(&self, k: usize) -> Result<Plan, String> {
        let mut nodes = Vec::new();
        let scope: Vec<usize> = (0..k).collect();
        match self.unroll(&scope, None, &mut nodes)? {
            Some(Term::Node(_)) => Ok(Plan { nodes }),
            _ => Err("the tree adds nothing".into()),
        }
    }

    fn unroll(&self, scope: &[usize], acc: Option<Term>, nodes: &mut Vec<PlanNode>) -> Result<Option<Term>, String> {
        match self {
            Self::C => Ok(Some(Term::C)),
            Self::Acc => Ok(acc),
            Self::PositiveZero => Ok(Some(Term::PositiveZero)),
            Self::None => Ok(None),
            Self::Add { adder, arguments } => {
                let mut terms = Vec::new();
                for argument in arguments {
                    match argument {
                        Argument::Tree(tree) => terms.extend(tree.unroll(scope, acc, nodes)?),
                        Argument::Products(products) => {
                            terms.extend(products.select(scope).into_iter().map(Term::Product));
                        }
                    }
                }
                if terms.is_empty() {
                    // A group shorter than the tree's, such as the last one of an odd k.
                    return Ok(None);
                }
                nodes.push(PlanNode { adder: *adder, terms });
                Ok(Some(Term::Node(nodes.len() - 1)))
            }
            Self::Fold { start, products, group, body } => {
                let mut value = start.unroll(scope, acc, nodes)?;
                for group in products.select(scope).chunks(*group) {
                    value = body.unroll(group, value, nodes)?;
                }
                Ok(value)
            }
            Self::Pairs { products, group, leaf, adder } => {
                let mut level = Vec::new();
                for group in products.select(scope).chunks(*group) {
                    level.extend(leaf.unroll(group, acc, nodes)?);
                }
                while level.len() > 1 {
                    let mut next = Vec::new();
                    for pair in level.chunks(2) {
                        if let [waits] = pair {
                            next.push(*waits);
                        } else {
                            nodes.push(PlanNode { adder: *adder, terms: pair.to_vec() });
                            next.push(Term::Node(nodes.len() - 1));
                        }
                    }
                    level = next;
                }
                Ok(level.pop())
            }
        }
    }

    pub(crate) fn parse(text: &str, adders: &[&str]) -> Result<Self, String> {
        let mut parser = Parser { rest: text, adders, in_fold: false, depth: 0 };
        let tree = parser.tree()?;
        parser.skip_space();
        if parser.rest.is_empty() { Ok(tree) } else { Err(format!("unexpected `{}` at the end", parser.rest)) }
    }
}

struct Parser<'a> {
    rest: &'a str,
    adders: &'a [&'a str],
    in_fold: bool,
    depth: usize,
}

/// The maximum nesting depth of trees, chosen so that every stack holds it.
const DEEPEST: usize = 64;

impl<'a> Parser<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(format!("expected `{token}` before `{}`", self.rest)) }
    }

    fn word(&mut self) -> &'a str {
        self.skip_space();
        let end =
            self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn number(&mut self) -> Result<usize, String> {
        let word = self.word();
        word.parse().ok().filter(|number| *number <= 4096).ok_or_else(|| format!("`{word}` is not a number up to 4096"))
    }

    fn products(&mut self) -> Result<Option<Products>, String> {
        let start = self.rest;
        self.skip_space();
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            let from = self.number()?;
            let to = if self.take("..") { self.number()? } else { from + 1 };
            if to <= from {
                return Err(format!("the range {from}..{to} is empty"));
            }
            return Ok(Some(Products::Range(from, to)));
        }
        match self.word() {
            "all" => Ok(Some(Products::All)),
            "reverse" => Ok(Some(Products::Reverse)),
            "every" => {
                self.expect("(")?;
                let period = self.number()?;
                let mut offsets = Vec::new();
                while self.take(",") {
                    offsets.push(self.number()?);
                }
                self.expect(")")?;
                if period == 0 || offsets.is_empty() || offsets.iter().any(|offset| *offset >= period) {
                    return Err(format!("every({period}, …) needs offsets from 0 to {}", period.saturating_sub(1)));
                }
                Ok(Some(Products::Every(period, offsets)))
            }
            _ => {
                self.rest = start;
                Ok(None)
            }
        }
    }

    fn groups(&mut self) -> Result<(Products, usize), String> {
        let products = self.products()?.ok_or_else(|| format!("expected products before `{}`", self.rest))?;
        self.expect("/")?;
        match self.number()? {
            0 => Err("a group has at least one product".into()),
            group => Ok((products, group)),
        }
    }

    fn adder(&self, word: &str) -> Result<usize, String> {
        self.adders.iter().position(|name| *name == word).ok_or_else(|| {
            format!("`{word}` is neither c, acc, +0, none, fold, pairs nor an adder ({})", self.adders.join(", "))
        })
    }

    fn tree(&mut self) -> Result<Tree, String> {
        if self.depth == DEEPEST {
            return Err(format!("expressions are nested deeper than {DEEPEST}"));
        }
        self.depth += 1;
        let tree = self.expression();
        self.depth -= 1;
        tree
    }

    fn expression(&mut self) -> Result<Tree, String> {
        if self.take("+0") {
            return Ok(Tree::PositiveZero);
        }
        match self.word() {
            "c" => Ok(Tree::C),
            "none" => Ok(Tree::None),
            "acc" if self.in_fold => Ok(Tree::Acc),
            "acc" => Err("`acc` is used outside a fold".into()),
            "fold" => {
                self.expect("(")?;
                let start = Box::new(self.tree()?);
                self.expect(",")?;
                let (products, group) = self.groups()?;
                self.expect(",")?;
                let outer = std::mem::replace(&mut self.in_fold, true);
                let body = Box::new(self.tree()?);
                self.in_fold = outer;
                self.expect(")")?;
                Ok(Tree::Fold { start, products, group, body })
            }
            "pairs" => {
                self.expect("(")?;
                let (products, group) = self.groups()?;
                self.expect(",")?;
                let leaf = Box::new(self.tree()?);
                self.expect(",")?;
                let word = self.word();
                let adder = self.adder(word)?;
                self.expect(")")?;
                Ok(Tree::Pairs { products, group, leaf, adder })
            }
            word => {
                let adder = self.adder(word)?;
                self.expect("(")?;
                let mut arguments = Vec::new();
                loop {
                    match self.products()? {
                        Some(products) => arguments.push(Argument::Products(products)),
                        None => arguments.push(Argument::Tree(self.tree()?)),
                    }
                    if !self.take(",") {
                        break;
                    }
                }
                self.expect(")")?;
                Ok(Tree::Add { adder, arguments })
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Product(k) => write!(f, "p{k}"),
            Self::C => f.write_str("c"),
            Self::Node(node) => write!(f, "n{node}"),
            Self::PositiveZero => f.write_str("+0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str, k: usize) -> String {
        let plan = Tree::parse(text, &["sum", "join"]).unwrap().plan(k).unwrap();
        let nodes = plan.nodes.iter().map(|node| {
            let terms: Vec<String> = node.terms.iter().map(Term::to_string).collect();
            format!("{}({})", ["sum", "join"][node.adder], terms.join(" "))
        });
        nodes.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_fold_chains_blocks_through_acc() {
        assert_eq!(plan("fold(c, all/2, sum(all, acc))", 4), "sum(p0 p1 c); sum(p2 p3 n0)");
        assert_eq!(plan("fold(c, reverse/1, sum(all, acc))", 2), "sum(p1 c); sum(p0 n0)");
        assert_eq!(plan("fold(c, all/4, sum(all, acc))", 6), "sum(p0 p1 p2 p3 c); sum(p4 p5 n0)");
    }

    #[test]
    fn even_and_odd_chains_are_joined_with_c_last() {
        let text = "join(c, join(fold(+0, every(2,0)/1, sum(all, acc)), fold(+0, every(2,1)/1, sum(all, acc))))";
        assert_eq!(plan(text, 4), "sum(p0 +0); sum(p2 n0); sum(p1 +0); sum(p3 n2); join(n1 n3); join(c n4)");
    }

    #[test]
    fn products_can_be_picked_by_residue_and_by_number() {
        assert_eq!(
            plan("join(sum(every(4,2,3), sum(every(4,0,1))), c)", 8),
            "sum(p0 p1 p4 p5); sum(p2 p3 p6 p7 n0); join(n1 c)"
        );
        assert_eq!(
            plan("fold(c, all/4, join(acc, sum(sum(0), sum(1..3))))", 4),
            "sum(p0); sum(p1 p2); sum(n0 n1); join(c n2)"
        );
        assert_eq!(plan("fold(none, all/1, join(acc, sum(all)))", 2), "sum(p0); join(n0); sum(p1); join(n1 n2)");
    }

    #[test]
    fn pairs_join_neighbours_level_by_level() {
        assert_eq!(
            plan("join(pairs(all/1, sum(all), join), c)", 3),
            "sum(p0); sum(p1); sum(p2); join(n0 n1); join(n3 n2); join(n4 c)"
        );
        assert_eq!(plan("pairs(reverse/2, sum(all), join)", 4), "sum(p3 p2); sum(p1 p0); join(n0 n1)");
    }

    #[test]
    fn what_is_wrong_with_a_tree_is_said() {
        for (text, part) in [
            ("sum(all, acc)", "outside a fold"),
            ("fold(c, all/0, sum(all, acc))", "at least one product"),
            ("pairs(all/1, sum(all), total)", "`total` is neither"),
            ("fold(c, all/4, total(all, acc))", "`total` is neither"),
            ("sum(all, c", "expected `)`"),
            ("sum(every(2,2), c)", "offsets from 0 to 1"),
            ("sum(all, c) c", "unexpected `c` at the end"),
            ("sum(4..4)", "is empty"),
            (&"sum(".repeat(20_000), "nested deeper than 64"),
        ] {
            let error = Tree::parse(text, &["sum", "join"]).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
