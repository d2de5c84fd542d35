//! A summation tree as an expression of a model file, in the shortest form that means the same.

use std::collections::HashMap;

use mxprobe_models::{Plan, Term, plan_of};

use super::expression::Expression;

/// Expressions in their short form.
type Written = HashMap<Expression, Option<String>>;

impl Expression {
    /// As a model file has it, over adders of these names, for dots of `k` products.
    pub(super) fn text(&self, names: &[&str], k: usize) -> String {
        let plain = self.plain(names, &[]);
        let Some(short) = self.short(names, k, &mut Written::new()) else { return plain };
        // The short form is taken only if it is seen to mean the same.
        let same = plan_of(&short, names, k).is_ok_and(|short| nested(&short) == nested(&self.plan()));
        if same { short } else { plain }
    }

    /// Nested to the last product; products are numbered by their place in `scope`, unless that is empty.
    fn plain(&self, names: &[&str], scope: &[usize]) -> String {
        let numbered = |k: usize| scope.iter().position(|other| *other == k).unwrap_or(k);
        match self {
            Self::C => "c".into(),
            Self::Zero => "+0".into(),
            // Only inside of an addition.
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

    /// With folds where a pattern repeats along a chain. `written` holds what was written of expressions below: a chain is
    /// the start of a fold and an argument, at every step.
    fn short(&self, names: &[&str], k: usize, written: &mut Written) -> Option<String> {
        let Self::Add(adder, arguments) = self else { return None };
        if let Some(known) = written.get(self) {
            return known.clone();
        }
        let all: Vec<usize> = (0..k).collect();
        let mut parts = Vec::new();
        let mut run = Vec::new();
        for argument in arguments {
            if let Self::Product(product) = argument {
                run.push(*product);
                continue;
            }
            parts.extend(products(&std::mem::take(&mut run), all.len()));
            parts.push(argument.short(names, k, written).unwrap_or_else(|| argument.plain(names, &all)));
        }
        parts.extend(products(&run, all.len()));
        let flat = format!("{}({})", names[*adder], parts.join(", "));
        // A fold of one step is worth it only where it is a block that might repeat for a longer k.
        let fold = self.fold(names, k, written).filter(|fold| fold.len() <= flat.len() + 48);
        let text = Some(fold.unwrap_or(flat));
        written.insert(self.clone(), text.clone());
        text
    }

    /// `fold(start, products/n, body)`, where the same body comes again and again.
    fn fold(&self, names: &[&str], k: usize, written: &mut Written) -> Option<String> {
        let mut steps = Vec::new();
        let mut at = self.clone();
        let mut body: Option<String> = None;
        // From the last step down the spine, as long as the body stays the same.
        let start = loop {
            let Some((below, with_acc, scope)) = at.step() else { break Some(at) };
            let text = with_acc.body(names, &scope);
            match &body {
                None => body = Some(text),
                Some(known) if *known == text => {}
                // The last step of a dot whose k is no multiple of the block has fewer products.
                Some(_) => break Some(at),
            }
            steps.push(scope);
            match below {
                Some(below) => at = below,
                None => break None,
            }
        };
        let body = body?;
        // A first step without a sum below it, of the same pattern: the fold starts with none.
        let (start, first) = match start {
            Some(Self::Add(adder, arguments)) => {
                let first = Self::Add(adder, arguments);
                let mut scope = first.products();
                scope.sort_by_key(|product| steps.last().map_or(*product, |_| *product));
                let pattern = first.body(names, &first.products());
                if without_acc(&body).contains(&pattern) {
                    ("none".to_owned(), Some(first.products()))
                } else {
                    (first.short(names, k, written)?, None)
                }
            }
            Some(Self::C) => ("c".to_owned(), None),
            Some(Self::Zero) => ("+0".to_owned(), None),
            Some(Self::Product(_)) | None => return None,
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
        // One step of picked products is no pattern.
        if steps.len() == 1 && order.iter().enumerate().any(|(at, product)| at != *product) {
            return None;
        }
        Some(format!("fold({start}, {}/{size}, {body})", order_text(&order, k)?))
    }

    /// The sum below this step, the step with a mark in its place, and its products in order.
    fn step(&self) -> Option<(Option<Self>, Marked, Vec<usize>)> {
        let mark = self.spine()?;
        let scope = mark.rest_products();
        if scope.is_empty() {
            return None;
        }
        Some((Some(mark.below.clone()), mark, scope))
    }

    /// Where the running sum enters: the one argument that holds c, or the first that is a sum as this one is.
    fn spine(&self) -> Option<Marked> {
        let Self::Add(adder, arguments) = self else { return None };
        let with_c: Vec<usize> = (0..arguments.len()).filter(|at| arguments[*at].has_c()).collect();
        let at = match with_c[..] {
            [at] => at,
            [] => {
                let sums: Vec<usize> = (0..arguments.len())
                    .filter(|at| match &arguments[*at] {
                        Self::Add(other, inner) => other == adder && (inner.len() > 1 || arguments.len() > 1),
                        Self::Zero => true,
                        _ => false,
                    })
                    .collect();
                // Of several sums the longest is the running one.
                *sums.iter().max_by_key(|at| (arguments[**at].products().len(), usize::MAX - **at))?
            }
            _ => return None,
        };
        // The running sum may enter through a cut: one addition of nothing else.
        if let (Self::Add(_, inner), true) = (&arguments[at], arguments.len() == 1)
            && !inner.is_empty()
        {
            let inner = arguments[at].spine()?;
            return Some(Marked {
                adder: *adder,
                arguments: arguments.clone(),
                at,
                inner: Some(Box::new(inner.clone())),
                below: inner.below,
            });
        }
        Some(Marked { adder: *adder, arguments: arguments.clone(), at, inner: None, below: arguments[at].clone() })
    }
    /// The text of a first step, products numbered within it.
    fn body(&self, names: &[&str], scope: &[usize]) -> String {
        self.plain(names, scope)
    }
}
/// An addition with a mark where the running sum enters.
#[derive(Clone, Debug)]
struct Marked {
    adder: usize,
    arguments: Vec<Expression>,
    at: usize,
    inner: Option<Box<Marked>>,
    below: Expression,
}

impl Marked {
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

/// The texts of a body that has no running sum yet.
fn without_acc(body: &str) -> Vec<String> {
    ["acc, ", ", acc"].iter().filter(|acc| body.contains(**acc)).map(|acc| body.replacen(acc, "", 1)).collect()
}

/// Products within a scope of so many (0: of unknown length), as few words as possible.
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

/// Products picked by residue: the shortest period that gives just these, in this order.
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

/// The products of a fold in order.
fn order_text(order: &[usize], k: usize) -> Option<String> {
    let words = products(order, k);
    match &words[..] {
        [word] => Some(word.clone()),
        _ => None,
    }
}

/// A plan as one nested text, however its nodes are numbered.
pub(super) fn nested(plan: &Plan) -> String {
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

    /// The expression of a text, by way of its plan.
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

    /// Each step is another pattern, so that no fold goes further than one: the text of what is below must not be made again
    /// for every step above it.
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
