//! The expression of an epilogue: adders over products of the case's values.
//!
//! ```text
//! expression = ADDER "(" term {"," term} ")"
//! term       = factor ["*" factor]
//! factor     = "acc" | "c" | "+0" | INPUT | expression | FUNCTION "(" factor ")"
//! ```

use std::fmt::Write as _;

use mxprobe_api::{Decoded, Format};

use crate::adder::Adder;

/// One addition of an epilogue, rounded once by its adder. A term of two factors is their exact product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The index of the adder in the recipe.
    pub adder: usize,
    /// The terms, in order.
    pub terms: Vec<(Factor, Option<Factor>)>,
}

/// An operand of an epilogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Factor {
    /// The sum of the levels.
    Acc,
    /// c.
    C,
    /// The constant +0.
    PositiveZero,
    /// An input, by name.
    Input(String),
    /// The result of another addition.
    Sum(Box<Expression>),
    /// A function of a factor, computed without rounding.
    Call(Function, Box<Factor>),
}

/// A function that changes a factor without rounding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// An infinity becomes the largest finite value of its sign and format.
    Finite,
    /// Values below zero, and −0, become +0; NaN is unchanged (max(x, +0) of IEEE 754-2019, 9.6, `maximum`).
    Relu,
}

impl Function {
    /// All functions, with their names in files.
    pub const ALL: [(&'static str, Self); 2] = [("finite", Self::Finite), ("relu", Self::Relu)];

    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, other)| *other == self).map_or("", |(name, _)| name)
    }

    /// Applies the function to bits of a floating format.
    #[must_use]
    pub fn of(self, format: Format, bits: u64) -> u64 {
        match (self, format.decode(bits)) {
            (Self::Finite, Decoded::Infinity { negative }) => format.largest(negative),
            (
                Self::Relu,
                Decoded::Infinity { negative: true }
                | Decoded::Zero { negative: true }
                | Decoded::Finite { negative: true, .. },
            ) => 0,
            _ => bits,
        }
    }
}

/// The maximum nesting depth of expressions.
const DEEPEST: usize = 64;

impl Expression {
    /// Parses an expression over adders and inputs of these names.
    ///
    /// # Errors
    /// If it is malformed: a message for people.
    pub fn parse(text: &str, adders: &[&str], inputs: &[&str]) -> Result<Self, String> {
        let mut parser = Parser { rest: text, adders, inputs };
        let factor = parser.factor(0)?;
        if !parser.rest.trim_start().is_empty() {
            return Err(format!("unexpected `{}` after the end of the expression", parser.rest.trim()));
        }
        match factor {
            Factor::Sum(sum) => Ok(*sum),
            _ => Err(format!("`{}` is not an addition: an adder and its terms in parentheses", text.trim())),
        }
    }

    /// The expression as written in a recipe file.
    ///
    /// # Panics
    /// If it refers to an adder that `adders` lacks.
    #[must_use]
    pub fn text(&self, adders: &[Adder]) -> String {
        let factor = |factor: &Factor| factor.text(adders);
        let mut text = format!("{}(", adders[self.adder].name);
        for (at, (one, other)) in self.terms.iter().enumerate() {
            let _ = write!(text, "{}{}", if at == 0 { "" } else { ", " }, factor(one));
            if let Some(other) = other {
                let _ = write!(text, "*{}", factor(other));
            }
        }
        text + ")"
    }

    /// Calls `visit` with this addition and every one inside it, inner ones first.
    pub fn visit(&self, visit: &mut impl FnMut(&Self)) {
        for factor in self.factors() {
            if let Factor::Sum(sum) = factor {
                sum.visit(visit);
            }
        }
        visit(self);
    }

    /// The factors of its own terms, without the functions around them.
    pub fn factors(&self) -> impl Iterator<Item = &Factor> {
        self.terms.iter().flat_map(|(one, other)| std::iter::once(one).chain(other)).map(|factor| {
            let mut factor = factor;
            while let Factor::Call(_, of) = factor {
                factor = of;
            }
            factor
        })
    }

    /// Whether it reads c.
    #[must_use]
    pub fn reads_c(&self) -> bool {
        let mut reads = false;
        self.visit(&mut |addition| reads |= addition.factors().any(|factor| *factor == Factor::C));
        reads
    }
}

impl Factor {
    fn text(&self, adders: &[Adder]) -> String {
        match self {
            Self::Acc => "acc".to_owned(),
            Self::C => "c".to_owned(),
            Self::PositiveZero => "+0".to_owned(),
            Self::Input(name) => name.clone(),
            Self::Sum(sum) => sum.text(adders),
            Self::Call(function, of) => {
                format!("{}({})", function.name(), of.text(adders))
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    adders: &'a [&'a str],
    inputs: &'a [&'a str],
}

impl<'a> Parser<'a> {
    /// Consumes the next character if it is `sign`, and says whether it was.
    fn eat(&mut self, sign: char) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(sign) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn factor(&mut self, depth: usize) -> Result<Factor, String> {
        if depth > DEEPEST {
            return Err(format!("additions are nested more than {DEEPEST} deep"));
        }
        if self.eat('+') {
            return match self.word() {
                "0" => Ok(Factor::PositiveZero),
                word => Err(format!("`+{word}` is not +0, the only constant")),
            };
        }
        let word = self.word();
        if self.eat('(') {
            if let Some((_, function)) = Function::ALL.iter().find(|(name, _)| *name == word) {
                let of = self.factor(depth + 1)?;
                if !self.eat(')') {
                    return Err(format!("`{word}(` takes one factor and a closing `)`"));
                }
                return Ok(Factor::Call(*function, Box::new(of)));
            }
            let adder = self.adders.iter().position(|name| *name == word);
            let adder = adder
                .ok_or_else(|| format!("`{word}` is not an adder of this recipe; it has {}", listed(self.adders)))?;
            let mut terms = Vec::new();
            loop {
                let one = self.factor(depth + 1)?;
                let other = if self.eat('*') { Some(self.factor(depth + 1)?) } else { None };
                terms.push((one, other));
                if self.eat(')') {
                    return Ok(Factor::Sum(Box::new(Expression { adder, terms })));
                }
                if !self.eat(',') {
                    return Err(match self.rest.trim_start().chars().next() {
                        Some('*') => "a product has more than two factors".to_owned(),
                        Some(sign) => format!("expected `,`, `*` or `)`, found `{sign}`"),
                        None => format!("`{word}(` is not closed"),
                    });
                }
            }
        }
        match word {
            "" => Err(match self.rest.trim_start().chars().next() {
                Some(sign) => format!("expected acc, c, +0, an input or an adder, found `{sign}`"),
                None => "expected acc, c, +0, an input or an adder, found the end of the expression".to_owned(),
            }),
            "acc" => Ok(Factor::Acc),
            "c" => Ok(Factor::C),
            name if self.inputs.contains(&name) => Ok(Factor::Input(name.to_owned())),
            name => {
                Err(format!("`{name}` is neither acc, c, +0 nor an input of this case; it has {}", listed(self.inputs)))
            }
        }
    }
}

/// The names with commas, or `none`.
fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDERS: [&str; 2] = ["f32", "to-bf16"];

    #[test]
    fn what_is_read_is_written_again() {
        let adders: Vec<Adder> = ADDERS
            .iter()
            .map(|name| Adder::exact(name, crate::Output::in_format(mxprobe_api::Format::F32), Default::default()))
            .collect();
        for text in [
            "f32(acc)",
            "to-bf16(f32(acc*f32(alpha*beta), +0))",
            "f32(acc*alpha, c*beta, acc)",
            "f32(finite(relu(acc)), relu(f32(c)))",
        ] {
            assert_eq!(Expression::parse(text, &ADDERS, &["alpha", "beta"]).unwrap().text(&adders), text);
        }
        let spaced = Expression::parse(" f32 ( acc * alpha ,c ) ", &ADDERS, &["alpha"]).unwrap();
        assert_eq!(spaced.text(&adders), "f32(acc*alpha, c)");
        assert!(spaced.reads_c());
    }

    #[test]
    fn functions_round_nothing() {
        for (function, of, gives) in [
            (Function::Finite, 0x7f80_0000, 0x7f7f_ffff),
            (Function::Finite, 0xff80_0000, 0xff7f_ffff),
            (Function::Finite, 0x7fc0_0001, 0x7fc0_0001),
            (Function::Finite, 0x8000_0000, 0x8000_0000),
            (Function::Relu, 0x8000_0000, 0),
            (Function::Relu, 0x8000_0001, 0),
            (Function::Relu, 0xff80_0000, 0),
            (Function::Relu, 0xffc0_0000, 0xffc0_0000),
            (Function::Relu, 0x0000_0001, 0x0000_0001),
        ] {
            assert_eq!(function.of(Format::F32, of), gives, "{function:?} {of:#x}");
        }
    }

    #[test]
    fn each_fault_is_said() {
        for (text, said) in [
            ("", "expected acc, c, +0, an input or an adder, found the end of the expression"),
            ("acc", "`acc` is not an addition: an adder and its terms in parentheses"),
            ("f64(acc)", "`f64` is not an adder of this recipe; it has f32, to-bf16"),
            ("f32(gamma)", "`gamma` is neither acc, c, +0 nor an input of this case; it has alpha"),
            ("f32(acc", "`f32(` is not closed"),
            ("f32(acc; c)", "expected `,`, `*` or `)`, found `;`"),
            ("f32(acc*alpha*c)", "a product has more than two factors"),
            ("f32(acc) c", "unexpected `c` after the end of the expression"),
            ("f32(+1)", "`+1` is not +0, the only constant"),
            ("f32(relu(acc, c))", "`relu(` takes one factor and a closing `)`"),
            ("relu(acc)", "`relu(acc)` is not an addition: an adder and its terms in parentheses"),
            ("f32(/)", "expected acc, c, +0, an input or an adder, found `/`"),
        ] {
            assert_eq!(Expression::parse(text, &ADDERS, &["alpha"]).unwrap_err(), said, "{text}");
        }
        let deep = "f32(".repeat(100) + "acc" + &")".repeat(100);
        assert_eq!(Expression::parse(&deep, &ADDERS, &[]).unwrap_err(), "additions are nested more than 64 deep");
    }
}
