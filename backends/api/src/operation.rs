use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Error, Format};

/// The shape of one multiply: A is m×k, B is k×n, C and D are m×n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Rows of A, C and D.
    pub m: u32,
    /// Columns of B, C and D.
    pub n: u32,
    /// Products in one dot.
    pub k: u32,
}

impl Shape {
    /// Returns m, n and k as lengths.
    #[must_use]
    pub fn sizes(self) -> (usize, usize, usize) {
        (self.m as usize, self.n as usize, self.k as usize)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}n{}k{}", self.m, self.n, self.k)
    }
}

/// The block scaling of an operation: one scale of `format` for every `block` consecutive k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockScale {
    /// The format of a scale.
    pub format: Format,
    /// The number of consecutive k that share one scale.
    pub block: usize,
}

/// The canonical name of an operation: `FAMILY.mMnNkK.D.A.B.C`, followed by any qualifiers that the family needs.
///
/// ```
/// let id: mxprobe_api::OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse()?;
/// assert_eq!(id.shape.k, 16);
/// assert_eq!(id.to_string(), "mma.m16n8k16.f32.f16.f16.f32");
/// # Ok::<(), mxprobe_api::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OperationId {
    /// The family of instructions: `mma`, `wgmma`, `coopmat`, `amx`, `dot`, …
    pub family: String,
    /// The shape.
    pub shape: Shape,
    /// The format of D.
    pub d: Format,
    /// The format of A.
    pub a: Format,
    /// The format of B.
    pub b: Format,
    /// The format of C.
    pub c: Format,
    /// The qualifiers: `satfinite`, `block32` and its scale format, a float-controls mode, a scope.
    pub qualifiers: Vec<String>,
}

impl OperationId {
    /// Creates an id without qualifiers; formats are in PTX order, D first.
    #[must_use]
    pub fn new(family: &str, shape: (u32, u32, u32), d: Format, a: Format, b: Format, c: Format) -> Self {
        let (m, n, k) = shape;
        Self { family: family.to_owned(), shape: Shape { m, n, k }, d, a, b, c, qualifiers: Vec::new() }
    }

    /// Returns the same id with one more qualifier.
    #[must_use]
    pub fn with(mut self, qualifier: &str) -> Self {
        self.qualifiers.push(qualifier.to_owned());
        self
    }

    /// Whether `qualifier` is one of the qualifiers.
    #[must_use]
    pub fn has(&self, qualifier: &str) -> bool {
        self.qualifiers.iter().any(|word| word == qualifier)
    }

    /// The block scale, read from the qualifiers `blockN` and the format after it.
    #[must_use]
    pub fn block_scale(&self) -> Option<BlockScale> {
        let at = self.qualifiers.iter().position(|word| block_of(word).is_some())?;
        let block = block_of(&self.qualifiers[at])?;
        let format = Format::named(self.qualifiers.get(at + 1)?).ok()?;
        Some(BlockScale { format, block })
    }

    /// Whether D and C are integers.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        self.d.is_integer()
    }
}

fn block_of(word: &str) -> Option<usize> {
    let block = word.strip_prefix("block")?.parse().ok()?;
    (block > 0).then_some(block)
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, shape, d, a, b, c, qualifiers } = self;
        write!(f, "{family}.{shape}.{d}.{a}.{b}.{c}")?;
        qualifiers.iter().try_for_each(|word| write!(f, ".{word}"))
    }
}

impl FromStr for OperationId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |what: &str| {
            Error::invalid(format!("`{text}` is not an operation id: {what}; the form is FAMILY.mMnNkK.D.A.B.C"))
        };
        let mut words = text.split('.');
        let family = words.next().filter(|word| !word.is_empty()).ok_or_else(|| wrong("no family"))?;
        let shape = words.next().and_then(parse_shape).ok_or_else(|| wrong("no shape such as m16n8k16"))?;
        let mut format = || -> Result<Format, Error> {
            let word = words.next().ok_or_else(|| wrong("fewer than four formats"))?;
            Format::named(word).map_err(|error| wrong(&error.to_string()))
        };
        let (d, a, b, c) = (format()?, format()?, format()?, format()?);
        let qualifiers: Vec<String> = words.map(str::to_owned).collect();
        if qualifiers.iter().any(String::is_empty) {
            return Err(wrong("an empty word between two dots"));
        }
        for (at, word) in qualifiers.iter().enumerate() {
            if block_of(word).is_some() && qualifiers.get(at + 1).is_none_or(|next| Format::named(next).is_err()) {
                return Err(wrong(&format!("`{word}` is not followed by the format of the scales")));
            }
        }
        Ok(Self { family: family.to_owned(), shape, d, a, b, c, qualifiers })
    }
}

fn parse_shape(word: &str) -> Option<Shape> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let size = |digits: &str| digits.parse::<u32>().ok().filter(|size| (1..=1 << 16).contains(size));
    Some(Shape { m: size(m)?, n: size(n)?, k: size(k)? })
}

impl TryFrom<String> for OperationId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<OperationId> for String {
    fn from(id: OperationId) -> Self {
        id.to_string()
    }
}

/// One matrix multiply-add that a device claims: plain data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The canonical name, unique within its device.
    pub id: OperationId,
    /// The group of threads that computes one tile together: `thread`, `warp`, `warpgroup`, `subgroup`, `workgroup`, …
    pub scope: String,
    /// The mnemonic of the single instruction behind it, with operands if an assembler takes them; `None` if there is
    /// no such instruction, or if it cannot be known without running the operation. Remarks belong elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Other common names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl Operation {
    /// Creates an operation without a known instruction or aliases.
    #[must_use]
    pub fn new(id: OperationId, scope: &str) -> Self {
        Self { id, scope: scope.to_owned(), instruction: None, aliases: Vec::new() }
    }

    /// Whether `name` is the id or one of the aliases.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        self.id.to_string() == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The operations of a device, ordered by id.
pub type OperationSet = BTreeMap<OperationId, Operation>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_as_they_were_parsed() {
        for text in [
            "mma.m16n8k16.f32.f16.f16.f32",
            "wgmma.m64n8k32.f32.e4m3.e4m3.f32",
            "mma.m16n8k32.s32.s8.u8.s32.satfinite",
            "mma.m16n8k32.f32.e5m2.e4m3.f32.block32.ue8m0",
            "dot.m1n1k2.f32.bf16.bf16.f32",
        ] {
            assert_eq!(text.parse::<OperationId>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_block_scale_is_read_from_the_qualifiers() {
        let id: OperationId = "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3".parse().unwrap();
        let scale = id.block_scale().unwrap();
        assert_eq!((scale.block, scale.format), (16, Format::UE4M3));
    }

    #[test]
    fn malformed_ids_are_refused_with_the_text() {
        for text in [
            "",
            "mma",
            "mma.m16n8.f32.f16.f16.f32",
            "mma.m0n8k4.f32.f16.f16.f32",
            "mma.m16n8k16.f32.f16.f16",
            "mma.m16n8k16.f32.f16.f17.f32",
            "mma.m16n8k16.f32.f16.f16.f32.",
            "mma.m16n8k16.f32.e4m3.e4m3.f32.block32",
            ".m16n8k16.f32.f16.f16.f32",
        ] {
            let error = text.parse::<OperationId>().unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }
}
