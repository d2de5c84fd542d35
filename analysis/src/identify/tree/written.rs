//! Writing a summation tree as an expression of a model file, in a short form with the same meaning.

use std::collections::HashMap;

use mxprobe_models::{Plan, Term, plan_of};

use super::expression::Expression;

impl Expression {
    /// Returns the tree as in a model file, over adders of these names, for dots of `k` products.
    pub(in crate::identify) fn text(&self, names: &[&str], k: usize) -> String {
        let plain = self.plain(names, &[]);
        let Some(short) = Writer::new(self, names, k).short(self) else { return plain };
        // The short form is used only if it parses to the same plan.
        let same = plan_of(&short, names, k).is_ok_and(|short| nested(&short) == nested(&self.plan()));
        if same { short } else { plain }
    }

    /// Returns the tree as nested calls without folds. Products are numbered by their place in `scope`, unless that is
    /// empty.
    pub(in crate::identify) fn plain(&self, names: &[&str], scope: &[usize]) -> String {
        let numbered = |k: usize| scope.iter().position(|other| *other == k).unwrap_or(k);
        match self {
            Self::C => "c".into(),
            Self::Zero => "+0".into(),
            // Valid only inside an addition.
            Self::Product(k) => numbered(*k).to_string(),
            Self::Add(adder, arguments) => {
                let mut parts = Vec::new();
                let mut run: Vec<usize> = Vec::new();
                for argument in arguments {
                    if let Self::Product(k) = argument {
                        run.push(numbered(*k));
                    } else {
                        parts.extend(products(&std::mem::take(&mut run), scope.len()));
                        parts.push(argument.plain(names, scope));
                    }
                }
                parts.extend(products(&run, scope.len()));
                format!("{}({})", names[*adder], parts.join(", "))
            }
        }
    }
}

/// Writes a tree in its short form. Additions of the tree are known by their address.
struct Writer<'t> {
    names: &'t [&'t str],
    k: usize,
    /// Whether c is below each addition, and the number of products below it.
    below: HashMap<*const Expression, (bool, usize)>,
    /// The short forms so far, because every step of a chain needs the text below it both as the start of a fold and as
    /// an argument.
    written: HashMap<*const Expression, Option<String>>,
}

impl<'t> Writer<'t> {
    fn new(tree: &'t Expression, names: &'t [&'t str], k: usize) -> Self {
        let mut writer = Self { names, k, below: HashMap::new(), written: HashMap::new() };
        writer.look_below(tree);
        writer
    }

    /// Returns whether c is below an expression, and the number of products there. Notes that of each addition.
    fn look_below(&mut self, tree: &Expression) -> (bool, usize) {
        match tree {
            Expression::C => (true, 0),
            Expression::Zero => (false, 0),
            Expression::Product(_) => (false, 1),
            Expression::Add(_, arguments) => {
                let below = arguments.iter().map(|argument| self.look_below(argument));
                let below = below.fold((false, 0), |(c, count), (other, more)| (c || other, count + more));
                self.below.insert(std::ptr::from_ref(tree), below);
                below
            }
        }
    }

    fn has_c(&self, tree: &Expression) -> bool {
        *tree == Expression::C || self.below.get(&std::ptr::from_ref(tree)).is_some_and(|(has_c, _)| *has_c)
    }

    /// Returns the tree with folds where a pattern repeats along a chain; `None` if this is not an addition.
    fn short(&mut self, tree: &'t Expression) -> Option<String> {
        let Expression::Add(adder, arguments) = tree else { return None };
        if let Some(known) = self.written.get(&std::ptr::from_ref(tree)) {
            return known.clone();
        }
        let all: Vec<usize> = (0..self.k).collect();
        let mut parts = Vec::new();
        let mut run = Vec::new();
        for argument in arguments {
            if let Expression::Product(product) = argument {
                run.push(*product);
                continue;
            }
            parts.extend(products(&std::mem::take(&mut run), all.len()));
            parts.push(self.short(argument).unwrap_or_else(|| argument.plain(self.names, &all)));
        }
        parts.extend(products(&run, all.len()));
        let flat = format!("{}({})", self.names[*adder], parts.join(", "));
        // A fold may be somewhat longer than the nested form: its pattern may repeat for a longer k.
        let fold = self.fold(tree).filter(|fold| fold.len() <= flat.len() + 48);
        let text = Some(fold.unwrap_or(flat));
        self.written.insert(std::ptr::from_ref(tree), text.clone());
        text
    }

    /// Returns the tree as `fold(start, products/n, body)` if every step has the same body.
    fn fold(&mut self, tree: &'t Expression) -> Option<String> {
        let mut steps = Vec::new();
        let mut start = tree;
        let mut body: Option<String> = None;
        // Follow the running sum down from the last step as long as the body is the same.
        while let Some(marked) = self.spine(start) {
            let scope = marked.rest_products();
            if scope.is_empty() {
                break;
            }
            let text = marked.body(self.names, &scope);
            // The last step has fewer products if k is not a multiple of the block.
            if *body.get_or_insert_with(|| text.clone()) != text {
                break;
            }
            steps.push(scope);
            start = marked.below;
        }
        let body = body?;
        // If the first step has the same pattern without a running sum, the fold starts with none.
        let (start, first) = match start {
            Expression::Add(..) => {
                let products = start.products();
                if without_acc(&body).contains(&start.plain(self.names, &products)) {
                    ("none".to_owned(), Some(products))
                } else {
                    (self.short(start)?, None)
                }
            }
            Expression::C => ("c".to_owned(), None),
            Expression::Zero => ("+0".to_owned(), None),
            Expression::Product(_) => return None,
        };
        steps.extend(first);
        steps.reverse();
        let size = steps.iter().map(Vec::len).max()?;
        if size == 0 || steps.len() < 2 && start != "c" {
            return None;
        }
        if steps[..steps.len() - 1].iter().any(|step| step.len() != size) {
            return None;
        }
        let order: Vec<usize> = steps.concat();
        // A single step is not a pattern unless it takes the first products in order.
        if steps.len() == 1 && order.iter().enumerate().any(|(at, product)| at != *product) {
            return None;
        }
        Some(format!("fold({start}, {}/{size}, {body})", order_text(&order, self.k)?))
    }

    /// Finds where the running sum enters: at the only argument that contains c, or, if none does, at the longest sum
    /// by the same adder.
    fn spine(&self, tree: &'t Expression) -> Option<Marked<'t>> {
        let Expression::Add(adder, arguments) = tree else { return None };
        let with_c: Vec<usize> = (0..arguments.len()).filter(|at| self.has_c(&arguments[*at])).collect();
        let at = match with_c[..] {
            [at] => at,
            [] => {
                let sums: Vec<usize> = (0..arguments.len())
                    .filter(|at| match &arguments[*at] {
                        Expression::Add(other, inner) => other == adder && (inner.len() > 1 || arguments.len() > 1),
                        Expression::Zero => true,
                        _ => false,
                    })
                    .collect();
                let count = |at: usize| self.below.get(&std::ptr::from_ref(&arguments[at])).map_or(0, |below| below.1);
                // Of several sums, the one with the most products is the running sum.
                *sums.iter().max_by_key(|at| (count(**at), usize::MAX - **at))?
            }
            _ => return None,
        };
        // The running sum may be the only argument of this addition, which then cuts it: look inside.
        if let (Expression::Add(_, inner), true) = (&arguments[at], arguments.len() == 1)
            && !inner.is_empty()
        {
            let inner = self.spine(&arguments[at])?;
            return Some(Marked { adder: *adder, arguments, at, below: inner.below, inner: Some(Box::new(inner)) });
        }
        Some(Marked { adder: *adder, arguments, at, inner: None, below: &arguments[at] })
    }
}

/// An addition with a mark where the running sum enters.
struct Marked<'t> {
    adder: usize,
    arguments: &'t [Expression],
    at: usize,
    inner: Option<Box<Marked<'t>>>,
    below: &'t Expression,
}

impl Marked<'_> {
    /// Returns the products of this step, which are those outside the running sum.
    fn rest_products(&self) -> Vec<usize> {
        let mut products = Vec::new();
        for (at, argument) in self.arguments.iter().enumerate() {
            if at != self.at {
                products.extend(argument.products());
            } else if let Some(inner) = &self.inner {
                products.extend(inner.rest_products());
            }
        }
        products
    }

    /// Returns the text of the step, with `acc` for the running sum.
    fn body(&self, names: &[&str], scope: &[usize]) -> String {
        let mut parts = Vec::new();
        let mut run = Vec::new();
        for (at, argument) in self.arguments.iter().enumerate() {
            if let Expression::Product(k) = argument {
                run.push(scope.iter().position(|other| other == k).unwrap_or(*k));
                continue;
            }
            parts.extend(products(&std::mem::take(&mut run), scope.len()));
            parts.push(match (&self.inner, at == self.at) {
                (Some(inner), true) => inner.body(names, scope),
                (None, true) => "acc".into(),
                (_, false) => argument.plain(names, scope),
            });
        }
        parts.extend(products(&run, scope.len()));
        format!("{}({})", names[self.adder], parts.join(", "))
    }
}

/// Returns the texts that a body may have without the running sum.
fn without_acc(body: &str) -> Vec<String> {
    ["acc, ", ", acc"].iter().filter(|acc| body.contains(**acc)).map(|acc| body.replacen(acc, "", 1)).collect()
}

/// Returns the selection of products within a scope of this many (0 if unknown), in as few words as possible.
fn products(run: &[usize], scope: usize) -> Vec<String> {
    let Some((first, last)) = run.first().zip(run.last()) else { return Vec::new() };
    let step = run.get(1).map_or(1, |second| second.wrapping_sub(*first));
    let even = run.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step);
    if scope > 0 && run.len() == scope && even && step == 1 && *first == 0 {
        return vec!["all".into()];
    }
    if scope > 1 && run.len() == scope && even && step == usize::MAX {
        return vec!["reverse".into()];
    }
    if run.len() == 1 {
        return vec![first.to_string()];
    }
    if even && step == 1 {
        return vec![format!("{first}..{}", last + 1)];
    }
    if scope > 0
        && let Some(every) = every(run, scope)
    {
        return vec![every];
    }
    run.iter().map(usize::to_string).collect()
}

/// Returns `every(period, …)` with the shortest period that selects exactly these products in this order, if there is
/// one.
fn every(run: &[usize], scope: usize) -> Option<String> {
    for period in (1..=scope).filter(|period| period * 2 <= scope || *period == scope) {
        let offsets: Vec<usize> = run.iter().copied().take_while(|k| *k < period).collect();
        if offsets.is_empty() {
            continue;
        }
        let wanted: Vec<usize> = (0..scope)
            .step_by(period)
            .flat_map(|base| offsets.iter().map(move |offset| base + offset))
            .filter(|k| *k < scope)
            .collect();
        if wanted == run {
            let offsets: Vec<String> = offsets.iter().map(usize::to_string).collect();
            return Some(format!("every({period}, {})", offsets.join(", ")));
        }
    }
    None
}

/// Returns the products of a fold in order, if one word selects them.
fn order_text(order: &[usize], k: usize) -> Option<String> {
    let words = products(order, k);
    match &words[..] {
        [word] => Some(word.clone()),
        _ => None,
    }
}

/// Returns a plan as one nested text that does not depend on the numbers of its nodes.
pub(in crate::identify) fn nested(plan: &Plan) -> String {
    fn node(plan: &Plan, at: usize) -> String {
        let terms = plan.nodes[at].terms.iter().map(|term| match term {
            Term::Node(inner) => node(plan, *inner),
            other => other.to_string(),
        });
        format!("{}({})", plan.nodes[at].adder, terms.collect::<Vec<_>>().join(" "))
    }
    node(plan, plan.nodes.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a text to an expression, by way of its plan.
    fn expression(text: &str, names: &[&str], k: usize) -> Expression {
        fn of(plan: &Plan, at: usize) -> Expression {
            let term = |term: &Term| match term {
                Term::Product(k) => Expression::Product(*k),
                Term::C => Expression::C,
                Term::PositiveZero => Expression::Zero,
                Term::Node(inner) => of(plan, *inner),
            };
            Expression::Add(plan.nodes[at].adder, plan.nodes[at].terms.iter().map(term).collect())
        }
        let plan = plan_of(text, names, k).unwrap();
        of(&plan, plan.nodes.len() - 1)
    }

    /// Every step has a different pattern, so no fold has more than one step. The text of the steps below must not be
    /// written again for every step above them.
    #[test]
    fn a_long_chain_of_steps_that_differ_is_written_at_once() {
        let mut chain = Expression::Add(0, vec![Expression::Product(0), Expression::Product(1)]);
        for product in (2..64).rev() {
            chain = if product % 2 == 0 {
                Expression::Add(0, vec![chain, Expression::Product(product)])
            } else {
                Expression::Add(0, vec![Expression::Product(product), chain])
            };
        }
        let text = Expression::Add(0, vec![chain.clone(), Expression::C]).text(&["f"], 64);
        assert_eq!(expression(&text, &["f"], 64), Expression::Add(0, vec![chain, Expression::C]));
    }

    #[test]
    fn the_trees_of_known_units_come_back_as_they_are_written() {
        for (text, k) in [
            ("fold(c, all/8, f(all, acc))", 16),
            ("fold(c, all/1, f(all, acc))", 4),
            ("fold(c, reverse/1, f(all, acc))", 2),
            ("fold(c, all/8, f(g(all), acc))", 16),
            ("fold(c, all/4, f(g(0..2), g(2..4), acc))", 16),
            ("fold(c, every(16, 0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15)/4, f(all, acc))", 16),
            ("fold(c, all/4, g(f(all, acc)))", 16),
            ("fold(c, all/1, f(acc, g(all)))", 6),
            ("f(all, c)", 8),
            ("f(g(all), c)", 8),
            ("fold(c, all/5, f(all, acc))", 12),
            ("f(fold(none, all/1, f(acc, g(all))), c)", 8),
            ("fold(none, all/4, f(all, acc))", 8),
            ("f(c, fold(+0, all/1, f(all, acc)))", 4),
            ("f(c, f(fold(+0, every(2, 0)/1, f(all, acc)), fold(+0, every(2, 1)/1, f(all, acc))))", 8),
            ("f(g(every(4, 2, 3), g(every(4, 0, 1), +0)), c)", 16),
        ] {
            let found = expression(text, &["f", "g"], k).text(&["f", "g"], k);
            let same =
                nested(&plan_of(&found, &["f", "g"], k).unwrap()) == nested(&plan_of(text, &["f", "g"], k).unwrap());
            assert!(same, "{text} became {found}");
            assert!(found.len() <= text.len() + 48, "{text} became {found}");
        }
    }

    #[test]
    fn a_tree_without_a_pattern_is_nested() {
        let text = "f(0, 3, f(1, c), f(2, 4))";
        let found = expression(text, &["f"], 5).text(&["f"], 5);
        assert_eq!(nested(&plan_of(&found, &["f"], 5).unwrap()), nested(&plan_of(text, &["f"], 5).unwrap()), "{found}");
    }
}
