use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Device, Elements, Error, Format, StatusFlags};

/// The name of a device's scalar arithmetic in one format and one mode: `scalar.FORMAT` and the words of the mode.
///
/// These words mean the same in every backend: `rne`, `rz`, `rd` and `ru` request a rounding direction; `ftz` requests
/// that subnormal results be flushed to zero, `daz` that subnormal inputs be read as zero, `preserve` that both be
/// kept. Without any word, the device's default applies.
///
/// ```
/// let id: mxprobe_api::ScalarId = "scalar.f32.rz.ftz".parse()?;
/// assert!(id.has("rz") && !id.has("daz"));
/// assert_eq!(id.to_string(), "scalar.f32.rz.ftz");
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScalarId {
    /// The format of every operand, and of every result except that of a conversion.
    pub format: Format,
    /// The words of the mode.
    pub mode: Vec<String>,
}

impl ScalarId {
    /// Creates the id of a format's arithmetic in the device's default mode.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, mode: Vec::new() }
    }

    /// Returns the same id with one more word in the mode.
    #[must_use]
    pub fn with(mut self, word: &str) -> Self {
        self.mode.push(word.to_owned());
        self
    }

    /// Whether `word` is part of the mode.
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.mode.iter().any(|each| each == word)
    }
}

impl fmt::Display for ScalarId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scalar.{}", self.format)?;
        self.mode.iter().try_for_each(|word| write!(f, ".{word}"))
    }
}

impl FromStr for ScalarId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |what: &str| {
            Error::invalid(format!(
                "`{text}` is not a scalar id: {what}; the form is scalar.FORMAT and words such as rne, ftz"
            ))
        };
        let mut words = text.split('.');
        if words.next() != Some("scalar") {
            return Err(wrong("it does not begin with `scalar.`"));
        }
        let format = Format::named(words.next().unwrap_or_default()).map_err(|error| wrong(&error.to_string()))?;
        let mode: Vec<String> = words.map(str::to_owned).collect();
        if mode.iter().any(String::is_empty) {
            return Err(wrong("an empty word between two dots"));
        }
        Ok(Self { format, mode })
    }
}

impl TryFrom<String> for ScalarId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ScalarId> for String {
    fn from(id: ScalarId) -> Self {
        id.to_string()
    }
}

/// The order in which source code adds four products (NVIDIA, Precision & Performance, Figures 2 to 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DotOrder {
    /// `t = 0; t = t + a[i]*b[i]`, each product and each sum rounded.
    Serial,
    /// `t = 0; t = fma(a[i], b[i], t)`.
    Fma,
    /// `(a[0]*b[0] + a[1]*b[1]) + (a[2]*b[2] + a[3]*b[3])`: the tree of a parallel sum.
    Pairwise,
}

impl DotOrder {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Serial, Self::Fma, Self::Pairwise];
}

/// A function that IEEE 754 recommends, with no requirement of correct rounding (IEEE 754-2019, 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Elementary {
    /// `1 / √a`.
    ReciprocalSquareRoot,
    /// `e^a`.
    Exp,
    /// `2^a`.
    Exp2,
    /// The natural logarithm of `a`.
    Log,
    /// The logarithm of `a` to the base 2.
    Log2,
    /// The sine of `a` radians.
    Sin,
    /// The cosine of `a` radians.
    Cos,
    /// The hyperbolic tangent of `a`.
    Tanh,
}

impl Elementary {
    /// Every function.
    pub const ALL: [Self; 8] =
        [Self::ReciprocalSquareRoot, Self::Exp, Self::Exp2, Self::Log, Self::Log2, Self::Sin, Self::Cos, Self::Tanh];

    /// Its name, as in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReciprocalSquareRoot => "reciprocal_square_root",
            Self::Exp => "exp",
            Self::Exp2 => "exp2",
            Self::Log => "log",
            Self::Log2 => "log2",
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::Tanh => "tanh",
        }
    }
}

/// One function of scalar arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ScalarFunction {
    /// `a + b`.
    Add,
    /// `a − b`.
    Subtract,
    /// `a · b`.
    Multiply,
    /// `a / b`.
    Divide,
    /// `√a`.
    SquareRoot,
    /// `a · b + c` by the function that is explicitly fused.
    Fma,
    /// `a * b + c` as written in source code, with the compiler's defaults: a compiler may contract it.
    MultiplyAdd,
    /// `a` in another format.
    Convert {
        /// The format of the result.
        to: Format,
    },
    /// A dot product of four terms as written in source code, with the compiler's defaults. Operands:
    /// `a0 a1 a2 a3 b0 b1 b2 b3`.
    Dot4 {
        /// The order of its sum.
        order: DotOrder,
    },
    /// `1 / a`.
    Reciprocal,
    /// `a − n·b`, where n is the integer nearest to a / b, ties to even (IEEE 754-2019, 5.3.1).
    Remainder,
    /// `a − n·b`, where n is a / b without its fraction, like C's `fmod`.
    TruncatedRemainder,
    /// `a · 2^b` for an integer `b`.
    Scale,
    /// `−a`.
    Negate,
    /// `|a|`.
    Abs,
    /// `a` with the sign of `b`.
    CopySign,
    /// The comparison of `a` with `b`, as an s32: −1 less, 0 equal, 1 greater, 2 unordered.
    Compare,
    /// A function whose rounding is not specified.
    Elementary(Elementary),
}

impl ScalarFunction {
    /// Sums, products, quotients and roots, and a multiply-add, explicitly fused and as written in source code.
    pub const ARITHMETIC: [Self; 7] =
        [Self::Add, Self::Subtract, Self::Multiply, Self::Divide, Self::SquareRoot, Self::Fma, Self::MultiplyAdd];

    /// The other functions that IEEE 754 requires of a format; the reciprocal counts as a division.
    pub const FURTHER: [Self; 8] = [
        Self::Reciprocal,
        Self::Remainder,
        Self::TruncatedRemainder,
        Self::Scale,
        Self::Negate,
        Self::Abs,
        Self::CopySign,
        Self::Compare,
    ];

    /// The functions that a shading language has for a format: arithmetic, conversions to the other formats in
    /// `formats`, the dot products, the reciprocal, the remainder of a truncated quotient, products with powers of two,
    /// negation and the absolute value, comparisons, and the elementary functions (for f64 only the reciprocal square
    /// root).
    ///
    /// ```
    /// use mxprobe_api::{Format, ScalarFunction};
    /// let functions: Vec<_> = ScalarFunction::of_shaders(Format::F32, &[Format::F16, Format::F32]).collect();
    /// assert_eq!(functions.len(), 7 + 1 + 3 + 6 + 8);
    /// assert!(functions.contains(&ScalarFunction::Convert { to: Format::F16 }));
    /// ```
    pub fn of_shaders(format: Format, formats: &[Format]) -> impl Iterator<Item = Self> {
        let conversions = formats.iter().filter(move |to| **to != format).map(|to| Self::Convert { to: *to });
        let dots = DotOrder::ALL.map(|order| Self::Dot4 { order });
        let further = [Self::Reciprocal, Self::TruncatedRemainder, Self::Scale, Self::Negate, Self::Abs, Self::Compare];
        let of_format = move |each: &Elementary| format.bits() <= 32 || *each == Elementary::ReciprocalSquareRoot;
        let elementary = Elementary::ALL.into_iter().filter(of_format).map(Self::Elementary);
        Self::ARITHMETIC.into_iter().chain(conversions).chain(dots).chain(further).chain(elementary)
    }

    /// The number of operands of one call.
    #[must_use]
    pub fn arity(self) -> usize {
        match self {
            Self::SquareRoot
            | Self::Convert { .. }
            | Self::Reciprocal
            | Self::Negate
            | Self::Abs
            | Self::Elementary(_) => 1,
            Self::Add
            | Self::Subtract
            | Self::Multiply
            | Self::Divide
            | Self::Remainder
            | Self::TruncatedRemainder
            | Self::Scale
            | Self::CopySign
            | Self::Compare => 2,
            Self::Fma | Self::MultiplyAdd => 3,
            Self::Dot4 { .. } => 8,
        }
    }

    /// The format of the result for operands of `format`.
    #[must_use]
    pub fn result(self, format: Format) -> Format {
        match self {
            Self::Convert { to } => to,
            Self::Compare => Format::S32,
            _ => format,
        }
    }
}

impl fmt::Display for ScalarFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Add => "add",
            Self::Subtract => "subtract",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::SquareRoot => "square_root",
            Self::Fma => "fma",
            Self::MultiplyAdd => "multiply_add",
            Self::Convert { to } => return write!(f, "convert.{to}"),
            Self::Dot4 { order: DotOrder::Serial } => "dot4.serial",
            Self::Dot4 { order: DotOrder::Fma } => "dot4.fma",
            Self::Dot4 { order: DotOrder::Pairwise } => "dot4.pairwise",
            Self::Reciprocal => "reciprocal",
            Self::Remainder => "remainder",
            Self::TruncatedRemainder => "remainder.truncated",
            Self::Scale => "scale",
            Self::Negate => "negate",
            Self::Abs => "abs",
            Self::CopySign => "copy_sign",
            Self::Compare => "compare",
            Self::Elementary(function) => function.name(),
        };
        f.write_str(name)
    }
}

impl FromStr for ScalarFunction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let elementary = Elementary::ALL.map(Self::Elementary);
        let mut plain = Self::of_shaders(Format::F32, &[]).chain(Self::FURTHER).chain(elementary);
        if let Some(function) = plain.find(|function| function.to_string() == text) {
            return Ok(function);
        }
        let to = text.strip_prefix("convert.").and_then(|format| Format::named(format).ok());
        to.map(|to| Self::Convert { to }).ok_or_else(|| Error::invalid(format!("`{text}` is not a scalar function")))
    }
}

impl TryFrom<String> for ScalarFunction {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ScalarFunction> for String {
    fn from(function: ScalarFunction) -> Self {
        function.to_string()
    }
}

/// The scalar arithmetic of a device in one format and mode: plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scalar {
    /// Its name, unique within its device.
    pub id: ScalarId,
    /// Its functions, each with the instruction or the call behind it, if that is known without running it.
    pub functions: BTreeMap<ScalarFunction, Option<String>>,
}

/// A device whose scalar arithmetic can be called; [`Device::scalars`] returns it.
pub trait Scalars: Send + Sync {
    /// The arithmetic as data: one member for each format and mode.
    fn members(&self) -> &[Scalar];

    /// Calls a function once for every `function.arity()` operands, and returns one element per call.
    ///
    /// Call [`call`] instead, which validates. An implementation may rely on `scalar` being one of the
    /// [`members`](Self::members), on `function` being one of that member's, and on the operands being whole calls.
    ///
    /// # Errors
    /// Whatever the driver or the device reports.
    fn call(&self, scalar: &Scalar, function: ScalarFunction, operands: &Elements) -> Result<Elements, Error>;

    /// The status flags that calls raise, if they can be read.
    fn flags(&self) -> Option<&dyn StatusFlags> {
        None
    }
}

/// The scalar arithmetic of a device; empty if it cannot be called.
#[must_use]
pub fn scalars_of(device: &dyn Device) -> &[Scalar] {
    device.scalars().map_or(&[], |scalars| scalars.members())
}

/// Calls a scalar function: validates, computes, and checks the shape of the result. The only way to call one.
///
/// `operands` holds the operands of one call next to each other, call after call; the result has one element per call.
///
/// # Errors
/// [`Error::is_invalid`] if the device does not claim the function in that mode, if the operands are of another format,
/// or if they are not a whole number of calls; otherwise what the device reports.
pub fn call(
    device: &dyn Device,
    scalar: &Scalar,
    function: ScalarFunction,
    operands: &Elements,
) -> Result<Elements, Error> {
    let (scalars, calls) = claimed(device, scalar, function, operands)?;
    let (selector, id) = (&device.info().selector, &scalar.id);
    let results = scalars.call(scalar, function, operands)?;
    if results.format() != function.result(id.format) || results.len() != calls {
        return Err(Error::driver(format!(
            "{selector} returned {} elements of {} for {calls} calls of {function} of {id}",
            results.len(),
            results.format()
        )));
    }
    Ok(results)
}

/// Returns the arithmetic of a device that claims a function, and the number of calls that the operands make.
///
/// # Errors
/// As [`call`].
pub(crate) fn claimed<'d>(
    device: &'d dyn Device,
    scalar: &Scalar,
    function: ScalarFunction,
    operands: &Elements,
) -> Result<(&'d dyn Scalars, usize), Error> {
    let (selector, id) = (&device.info().selector, &scalar.id);
    let claims = |each: &Scalar| each.id == *id && each.functions.contains_key(&function);
    let scalars = device.scalars().filter(|scalars| scalars.members().iter().any(claims));
    let Some(scalars) = scalars else {
        return Err(Error::invalid(format!("{selector} has no {function} of {id}")));
    };
    if operands.format() != id.format {
        return Err(Error::invalid(format!("operands of {} were given to {function} of {id}", operands.format())));
    }
    let arity = function.arity();
    if !operands.len().is_multiple_of(arity) {
        let given = operands.len();
        return Err(Error::invalid(format!(
            "{given} operands are not a whole number of calls of {function}, which takes {arity}"
        )));
    }
    Ok((scalars, operands.len() / arity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_as_they_were_parsed() {
        for text in ["scalar.f32", "scalar.f64.ru", "scalar.f16.rne.ftz.daz"] {
            assert_eq!(text.parse::<ScalarId>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn functions_print_as_they_were_parsed() {
        let elementary = Elementary::ALL.map(Elementary::name);
        let further = ScalarFunction::FURTHER.map(|function| function.to_string());
        let named = ["add", "square_root", "multiply_add", "convert.f16", "convert.s32", "dot4.pairwise"];
        for text in named.into_iter().chain(elementary).chain(further.iter().map(String::as_str)) {
            assert_eq!(text.parse::<ScalarFunction>().unwrap().to_string(), text);
        }
        for text in ["", "convert", "convert.f33", "dot4", "Add"] {
            let error = text.parse::<ScalarFunction>().unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn malformed_ids_are_refused_with_the_text() {
        for text in ["", "scalar", "scalar.f33", "mma.f32", "scalar.f32..ftz"] {
            let error = text.parse::<ScalarId>().unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }
}
