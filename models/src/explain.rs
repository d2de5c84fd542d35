//! A model in plain words.

use std::fmt::Write as _;

use mxprobe_api::{Overflow, Rounding, Subnormals};

use crate::{
    model::{
        Adder, Basis, Below, Class, Exponent, GridRule, Model, NanCause, Output, Provenance, Scale, Unit, ZeroSign,
    },
    tree::{Argument, Plan, Products, Term, Tree},
};

/// How many operations of a unit are written out.
const OPERATIONS_SHOWN: usize = 8;

impl Model {
    /// What the model says, in plain words: for each unit its operations, how many products are added at once and in
    /// which order blocks and c join; for each adder its grid, the bits lost, rounding, subnormals, NaN and the sign of
    /// zero, each with its basis and source; then the variants and the sources.
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
                text += &format!("    - {words} {}\n", cited(&adder.provenance, field));
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
        let tree = cited(&unit.provenance, "tree");
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
            let cited = cited(&unit.provenance, "flush");
            let _ = writeln!(text, "    - subnormals of {} are read as {to} {cited}", listed(&flushed, "and"));
        }
        if let Some(note) = &unit.note {
            let _ = writeln!(text, "    - note: {note} {}", cited(&unit.provenance, "note"));
        }
    }
}

/// `[measured: key]`.
fn cited(provenance: &Provenance, field: &str) -> String {
    let origin = provenance.of(field);
    let basis = match origin.basis {
        Basis::Specified => "specified",
        Basis::Measured => "measured",
        Basis::Assumed => "assumed",
    };
    format!("[{basis}: {}]", origin.source)
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

/// What a plan shows at a glance: the widest addition, how many there are, and where c joins.
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

/// A tree as a noun.
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

impl Adder {
    /// What it does, with the field of the file that says so.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if self.grid.is_empty() {
            facts.push(("output", "no bit is lost at alignment: the sum is exact".to_owned()));
        }
        let field = if self.grid.len() > 1 || self.grid.iter().any(|rule| rule.terms != Class::All) {
            "grid"
        } else {
            "fraction_bits"
        };
        for rule in &self.grid {
            facts.push((field, rule.words()));
            if let Some(floor) = rule.exponent_floor {
                let field = if field == "grid" { field } else { "exponent_floor" };
                facts.push((field, format!("that exponent counts as no less than {floor}, as if zero had it")));
            }
        }
        if !self.grid.is_empty() {
            facts.push(("below", format!("lower bits are {}", below(self.below))));
        }
        if self.value_cut_bits > 0 {
            let bits = self.value_cut_bits;
            facts.push(("value_cut_bits", format!("c and rounded results lose {bits} bits more than products")));
        }
        if let Some(rule) = self.ignored_values {
            let unless = rule
                .unless_grid_at_most
                .map(|limit| format!(", unless the grid is at 2^{limit} or lower"))
                .unwrap_or_default();
            let words = match rule.below_bits {
                0 => format!("a c of which no bit is left counts as 0{unless}"),
                bits => {
                    format!("a c whose leading bit is more than {bits} below its lowest bit kept counts as 0{unless}")
                }
            };
            facts.push(("ignore_values_below", words));
        }
        if self.scale == Scale::Sum {
            let words = "block scales multiply the sum, whose exponent is that of the scales alone";
            facts.push(("scale", words.to_owned()));
        }
        if self.product_overflow {
            let words = "a product of magnitude 2^128 or more is an infinity";
            facts.push(("product_overflow", words.to_owned()));
        }
        if let Some(bits) = self.carry_bits {
            facts.push(("carry_bits", format!("the sum wraps beyond {bits} carry bits")));
        }
        if let Some(bits) = self.normalised_fraction_bits {
            let words =
                format!("once normalised, bits below {bits} fraction bits are {}", below(self.normalised_below));
            facts.push(("normalised_fraction_bits", words));
        }
        self.output_facts(&mut facts);
        facts
    }

    fn output_facts(&self, facts: &mut Vec<(&'static str, String)>) {
        match self.output {
            Output::Wide => facts.push(("output", "the sum is handed on unrounded".to_owned())),
            Output::Integer { format, saturates } => {
                let beyond = if saturates { "are clamped to it" } else { "wrap" };
                facts.push(("overflow", format!("the result is {format}; sums beyond its range {beyond}")));
            }
            Output::Float { format, fraction_bits, rounding, overflow, subnormals } => {
                let cut = if fraction_bits < format.fraction_bits() {
                    format!(" of {fraction_bits} fraction bits")
                } else {
                    String::new()
                };
                let direction = direction(rounding);
                facts.push(("rounding", format!("normalised and rounded once, {direction}, to {format}{cut}")));
                let beyond = match overflow {
                    Overflow::Ieee => "what IEEE 754 says for its rounding",
                    Overflow::Infinity => "infinity",
                    Overflow::Nan => "NaN",
                    Overflow::Saturate => "the largest finite value",
                };
                facts.push(("overflow", format!("results beyond its range become {beyond}")));
                let tiny = match subnormals {
                    Subnormals::Keep => "subnormal results are kept",
                    Subnormals::FlushBeforeRounding => {
                        "results that are subnormal before rounding become zeros of their sign"
                    }
                    Subnormals::FlushAfterRounding => {
                        "results that are subnormal after rounding become zeros of their sign"
                    }
                    Subnormals::FlushToPositiveZero => "results that are subnormal after rounding become +0",
                };
                facts.push(("subnormals", tiny.to_owned()));
                let zero = match self.zero {
                    ZeroSign::Ieee => "a zero result has the sign IEEE 754 gives it",
                    ZeroSign::Positive => "a zero result is always +0",
                };
                facts.push(("zero", zero.to_owned()));
                let nan = &self.nan;
                let of = |bits: Option<u64>| bits.map_or("itself, quieted".to_owned(), |bits| format.hex(bits));
                let words: Vec<String> = nan
                    .order
                    .iter()
                    .map(|cause| match cause {
                        NanCause::Operand => format!("a NaN in a or b gives {}", of(nan.operand)),
                        NanCause::Value => format!("a NaN in c gives {}", of(nan.value)),
                        NanCause::Invalid => format!("Inf*0 and Inf-Inf give {}", format.hex(nan.invalid)),
                    })
                    .collect();
                let words = if nan.operand == Some(nan.invalid) && nan.value == Some(nan.invalid) {
                    format!("every NaN result is {}", format.hex(nan.invalid))
                } else {
                    format!("{}, the first that applies", words.join("; "))
                };
                facts.push(("nan", words));
            }
        }
    }
}

impl GridRule {
    fn words(&self) -> String {
        let terms = match self.terms {
            Class::All => "any term",
            Class::Products => "the products",
            Class::Values => "c and rounded results",
            Class::Sums => "the unrounded sums",
        };
        let exponent = match self.exponent {
            Exponent::Operands => "exponent (a product's is the sum of its operands', not normalised)",
            Exponent::Leading => "leading bit",
        };
        format!("{} are kept below the largest {exponent} of {terms}", counted_bits(self.fraction_bits))
    }
}

pub(crate) fn counted_bits(bits: i32) -> String {
    if bits == 1 { "1 bit".into() } else { format!("{bits} bits") }
}

pub(crate) fn below(below: Below) -> &'static str {
    match below {
        Below::Truncate => "truncated: dropped from the magnitude, with no sticky bit",
        Below::Floor => "floored, toward minus infinity",
        Below::OnesComplement => "truncated, and a term of the other sign than c is added as its one's complement",
        Below::Nearest => "rounded to nearest, ties to even",
        Below::Sticky => "or-ed into the lowest bit kept",
    }
}

pub(crate) fn direction(rounding: Rounding) -> &'static str {
    match rounding {
        Rounding::NearestEven => "to nearest, ties to even",
        Rounding::TowardZero => "toward zero",
        Rounding::Down => "down",
        Rounding::Up => "up",
        Rounding::ToOdd => "to odd",
    }
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
            "that exponent counts as no less than -133, as if zero had it [assumed: mmasim]",
            "normalised and rounded once, toward zero, to f32 of 13 fraction bits [measured: km-h100]",
            "every NaN result is 0x7fffffff [assumed: smt]",
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
