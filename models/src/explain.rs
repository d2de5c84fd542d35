//! A model in plain words.

use std::fmt::Write as _;

use crate::{
    model::{Model, Unit},
    tree::{Argument, Plan, Products, Term, Tree},
};

/// The number of a unit's operations that are listed.
const OPERATIONS_SHOWN: usize = 8;

impl Model {
    /// The model in plain words: for each unit its operations, how many products are added at once and in which order
    /// blocks and c join; for each adder its grid, the bits lost, rounding, subnormals, NaN and the sign of zero, each
    /// with its basis and source; then the variants and the sources.
    ///
    /// ```
    /// let text = mxprobe_models::load("v100")?.explain();
    /// assert!(text.contains("4 products are added at once"));
    /// # Ok::<(), mxprobe_api::Error>(())
    /// ```
    #[must_use]
    pub fn explain(&self) -> String {
        let variant = self.variant.as_ref().map(|name| format!("@{name}")).unwrap_or_default();
        let mut text = format!("{}{variant}: {} ({}, {})\n", self.name, self.title, self.vendor, self.fingerprint);
        if !self.aliases.is_empty() {
            text += &format!("also called {}\n", self.aliases.join(", "));
        }
        text += "\nUnits\n";
        for unit in &self.units {
            text += "\n";
            self.explain_unit(unit, &mut text);
        }
        text += "\nAdders\n";
        for adder in &self.adders {
            text += &format!("\n  {}\n", adder.name);
            for (field, words) in adder.facts() {
                text += &format!("    - {words} {}\n", adder.provenance.cited(field));
            }
        }
        if !self.variants.is_empty() {
            text += "\nVariants\n\n";
            for (name, variant) in &self.variants {
                text += &format!("  {}@{name}: {} [{}]\n", self.name, variant.about, variant.source);
            }
        }
        text += "\nSources\n\n";
        for (key, source) in &self.sources {
            text += &format!("  [{key}] {source}\n");
        }
        text
    }

    fn explain_unit(&self, unit: &Unit, text: &mut String) {
        let ids: Vec<String> = unit.operations.iter().take(OPERATIONS_SHOWN).map(ToString::to_string).collect();
        let more = unit.operations.len().saturating_sub(OPERATIONS_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "  {}{more}", ids.join(", "));
        let names: Vec<&str> = self.adders.iter().map(|adder| adder.name.as_str()).collect();
        let tree = unit.provenance.cited("tree");
        let longest = unit.operations.iter().map(|id| id.shape.k).max().unwrap_or(0);
        if let Some(plan) = unit.plan(longest as usize) {
            let _ = writeln!(text, "    - of {}, {} {tree}", counted(longest as usize, "product"), shape(&plan));
        }
        let _ = writeln!(text, "    - d is {} {tree}", phrase(&unit.parsed, &names, false));
        let flush = unit.flush;
        let flushed: Vec<&str> = [("a", flush.a), ("b", flush.b), ("c", flush.c)]
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| name)
            .collect();
        if !flushed.is_empty() {
            let to = if flush.to_positive { "+0" } else { "a zero of their sign" };
            let cited = unit.provenance.cited("flush");
            let _ = writeln!(text, "    - subnormals of {} are read as {to} {cited}", listed(&flushed, "and"));
        }
        if let Some(format) = flush.converted {
            let cited = unit.provenance.cited("convert_to");
            let _ = writeln!(text, "    - a and b are converted to {format} before they are multiplied {cited}");
        }
        if let Some(note) = &unit.note {
            let _ = writeln!(text, "    - note: {note} {}", unit.provenance.cited("note"));
        }
    }
}

fn listed(words: &[&str], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A plan at a glance: its widest addition, the number of additions, and where c joins.
fn shape(plan: &Plan) -> String {
    let products = |terms: &[Term]| terms.iter().filter(|term| matches!(term, Term::Product(_))).count();
    let widest = plan.nodes.iter().map(|node| products(&node.terms)).max().unwrap_or(0);
    let joins = plan.nodes.iter().position(|node| node.terms.contains(&Term::C));
    let last = plan.nodes.len() - 1;
    let c = match joins {
        None => "c is not used".to_owned(),
        Some(0) if last == 0 => "c is one of the terms".to_owned(),
        Some(at) if at == last => "c joins last".to_owned(),
        Some(at) => format!("c joins with {}", below_node(plan, at)),
    };
    let are = if widest == 1 { "is" } else { "are" };
    format!("{} {are} added at once, in {}; {c}", counted(widest, "product"), counted(last + 1, "addition"))
}

/// The products below a node, in words.
fn below_node(plan: &Plan, node: usize) -> String {
    let mut products = Vec::new();
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        for term in &plan.nodes[node].terms {
            match term {
                Term::Product(k) => products.push(*k),
                Term::Node(node) => waiting.push(*node),
                Term::C | Term::PositiveZero => {}
            }
        }
    }
    products.sort_unstable();
    match products.as_slice() {
        [one] => format!("product {one}"),
        [first, .., last] if last - first + 1 == products.len() => format!("products {first} to {last}"),
        many => format!("products {}", numbers(many)),
    }
}

/// A tree as a noun phrase.
fn phrase(tree: &Tree, names: &[&str], in_group: bool) -> String {
    match tree {
        Tree::C => "c".into(),
        Tree::Acc => "the result so far".into(),
        Tree::PositiveZero => "+0".into(),
        Tree::None => "nothing".into(),
        Tree::Add { adder, arguments } => {
            let words: Vec<String> = arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Tree(tree) => phrase(tree, names, in_group),
                    Argument::Products(products) => products_phrase(products, in_group),
                })
                .collect();
            format!("{}({})", names[*adder], words.join(" + "))
        }
        Tree::Fold { start, products, group, body } => {
            let groups = group_phrase(products, *group, in_group);
            let body = phrase(body, names, true);
            match **start {
                Tree::None => format!("[the first of {groups}, and then, for each, {body}]"),
                ref start => format!("[from {}, for {groups}, {body}]", phrase(start, names, in_group)),
            }
        }
        Tree::Pairs { products, group, leaf, adder } => format!(
            "[{} of {}, added two by two by {} until one is left]",
            phrase(leaf, names, true),
            group_phrase(products, *group, in_group),
            names[*adder]
        ),
    }
}

fn group_phrase(products: &Products, group: usize, in_group: bool) -> String {
    let of = products_phrase(products, in_group);
    if group == 1 { format!("each one of {of}") } else { format!("each {group} of {of}") }
}

fn products_phrase(products: &Products, in_group: bool) -> String {
    let whole = if in_group { "the group" } else { "all products" };
    match products {
        Products::All => whole.into(),
        Products::Reverse => format!("{whole}, last first"),
        Products::Range(from, to) if *to == from + 1 => format!("product {from}"),
        Products::Range(from, to) => format!("products {from} to {}", to - 1),
        Products::Every(period, offsets) if offsets.len() == *period => {
            format!("{whole}, in each {period} in the order {}", numbers(offsets))
        }
        Products::Every(period, offsets) => format!("the products whose k modulo {period} is {}", numbers(offsets)),
    }
}

fn numbers(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::load;

    #[test]
    fn the_words_say_how_many_are_added_and_where_c_joins() {
        let h100 = load("h100").unwrap().explain();
        for part in [
            "h100: NVIDIA H100, H200 and GH200 (NVIDIA, sm_90a)",
            "of 16 products, 16 products are added at once, in 1 addition; c is one of the terms [measured: km-h100]",
            "d is [from c, for each 16 of all products, f32(the group + the result so far)] [measured: km-h100]",
            "25 bits are kept below the largest exponent (a product's is the sum of its operands', not normalised) of any \
             term [measured: km-h100]",
            "that exponent counts as no less than -133, as if zero had it [measured: h200]",
            "normalised and rounded once, toward zero, to f32 of 13 fraction bits [measured: km-h100]",
            "every NaN result is 0x7fffffff [measured: h200]",
            "fadd(f32(the products whose k modulo 4 is 2, 3 + f32(the products whose k modulo 4 is 0, 1 + +0)) + c)",
            "h100@zero-exponent-mmasim-1: every zero term has the exponent -126 [mmasim-1]",
        ] {
            assert!(h100.contains(part), "`{part}` is not in\n{h100}");
        }
    }

    #[test]
    fn chains_flushing_and_one_s_complement_have_words() {
        for (model, part) in [
            ("amx", "of 32 products, 1 product is added at once, in 34 additions; c joins last [measured: measured]"),
            ("rdna4", "c joins with products 0 to 3 [measured: r9700]"),
            ("amx", "subnormals of a, b and c are read as a zero of their sign"),
            ("rdna3", "added as its one's complement"),
            ("rdna4", "in each 16 in the order 0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15"),
            ("mi300x", "once normalised, bits below 31 fraction bits are floored"),
            ("mi300x@second-level-31", "of any term [assumed: mmasim-1]"),
            ("pairwise", "added two by two by f32 until one is left"),
            ("arm", "rounded once, to odd, to f32"),
        ] {
            let text = load(model).unwrap().explain();
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
    }
}
