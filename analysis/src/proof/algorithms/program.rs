//! Algorithms over a unit as data: splits, calls of the unit, scalings by powers of two, and additions outside it.

use mxprobe_api::Format;

/// A value for each element of a row of A, or of a column of B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vector {
    /// The row of A.
    A,
    /// The column of B.
    B,
    /// Each element rounded to nearest into the unit's operand format.
    Narrow(Box<Self>),
    /// Each difference, rounded to nearest in f32.
    Minus(Box<Self>, Box<Self>),
    /// Each element times 2^by, rounded to nearest in f32.
    Scaled(Box<Self>, i32),
}

/// An expression for one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// c.
    C,
    /// +0.
    Zero,
    /// The unit's products of two narrow vectors, added to a value, over a range of elements; in several calls, one
    /// after another, if the range is longer than the unit's k.
    Unit(Vector, Vector, Box<Self>, [usize; 2]),
    /// A sum, rounded to nearest in a format.
    Add(Format, Box<Self>, Box<Self>),
    /// A value times 2^by, rounded to nearest in f32.
    Scaled(Box<Self>, i32),
    /// A value rounded to nearest into a format.
    Rounded(Format, Box<Self>),
}

/// A way to compute a dot of wide inputs with a unit whose operands are narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// One word of the operand format.
    Single,
    /// Markidis et al., IPDPSW 2018.
    Markidis,
    /// Ootomo and Yokota, IJHPCA 2022, as Valpey et al. state it.
    Ootomo,
    /// Fasi et al., SISC 2023, Algorithm 4.1.
    Multiword,
    /// Fasi et al., Algorithm 4.2.
    FabsumV1,
    /// Fasi et al., Algorithm 4.3.
    FabsumV2,
    /// Fasi et al., Algorithm 4.4 with Algorithm 4.2.
    MultiwordFabsumV1,
    /// Fasi et al., Algorithm 4.4 with Algorithm 4.3.
    MultiwordFabsumV2,
}

/// Bits by which Ootomo and Yokota scale the remainders of the first word.
const LIFT: i32 = 11;

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 8] = [
        Self::Single,
        Self::Markidis,
        Self::Ootomo,
        Self::Multiword,
        Self::FabsumV1,
        Self::FabsumV2,
        Self::MultiwordFabsumV1,
        Self::MultiwordFabsumV2,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Markidis => "markidis",
            Self::Ootomo => "ootomo",
            Self::Multiword => "multiword",
            Self::FabsumV1 => "fabsum-v1",
            Self::FabsumV2 => "fabsum-v2",
            Self::MultiwordFabsumV1 => "multiword-fabsum-v1",
            Self::MultiwordFabsumV2 => "multiword-fabsum-v2",
        }
    }

    /// Its source and a short description.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Single => "A and B rounded to the operand format, C in the unit",
            Self::Markidis => {
                "Markidis et al., IPDPSW 2018: residuals of A and B, four products, C chained in the unit"
            }
            Self::Ootomo => "Ootomo and Yokota, IJHPCA 2022: residuals times 2^11, sums outside the unit, to nearest",
            Self::Multiword => "Fasi et al., SISC 2023, Algorithm 4.1: three products, C chained in the unit",
            Self::FabsumV1 => "Fasi et al., SISC 2023, Algorithm 4.2 (FABsum-v1): blocks in the unit, joined in f32",
            Self::FabsumV2 => "Fasi et al., SISC 2023, Algorithm 4.3 (FABsum-v2): blocks in the unit, joined in f64",
            Self::MultiwordFabsumV1 => "Fasi et al., SISC 2023, Algorithm 4.4 with Algorithm 4.2 for A1·B1",
            Self::MultiwordFabsumV2 => "Fasi et al., SISC 2023, Algorithm 4.4 with Algorithm 4.3 for A1·B1",
        }
    }

    /// The algorithm with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The program for `terms` products, in blocks of `block` products if the algorithm has blocks.
    #[must_use]
    pub fn program(self, terms: usize, block: usize) -> Scalar {
        let all = [0, terms];
        let unit = |a: &Vector, b: &Vector, c: Scalar| Scalar::Unit(a.clone(), b.clone(), Box::new(c), all);
        let (a, b) = (narrow(Vector::A), narrow(Vector::B));
        let rest = |of: Vector, by: i32| {
            let rest = Vector::Minus(Box::new(of.clone()), Box::new(narrow(of)));
            narrow(if by == 0 { rest } else { Vector::Scaled(Box::new(rest), by) })
        };
        let (rest_a, rest_b) = (rest(Vector::A, 0), rest(Vector::B, 0));
        match self {
            Self::Single => unit(&a, &b, Scalar::C),
            Self::Markidis => {
                let sum = unit(&a, &rest_b, unit(&rest_a, &rest_b, Scalar::C));
                unit(&a, &b, unit(&rest_a, &b, sum))
            }
            Self::Ootomo => {
                let (rest_a, rest_b) = (rest(Vector::A, LIFT), rest(Vector::B, LIFT));
                let both = scaled(unit(&rest_a, &rest_b, Scalar::Zero), -2 * LIFT);
                let one = scaled(unit(&rest_a, &b, unit(&a, &rest_b, Scalar::Zero)), -LIFT);
                let sum = add(Format::F32, add(Format::F32, both, one), unit(&a, &b, Scalar::Zero));
                add(Format::F32, sum, Scalar::C)
            }
            Self::Multiword => unit(&a, &b, unit(&a, &rest_b, unit(&rest_a, &b, Scalar::C))),
            Self::FabsumV1 => blocks(Format::F32, &a, &b, Scalar::C, terms, block),
            Self::FabsumV2 => blocks(Format::F64, &a, &b, Scalar::C, terms, block),
            Self::MultiwordFabsumV1 | Self::MultiwordFabsumV2 => {
                let start = unit(&a, &rest_b, unit(&rest_a, &b, Scalar::C));
                let format = if self == Self::MultiwordFabsumV1 { Format::F32 } else { Format::F64 };
                blocks(format, &a, &b, start, terms, block)
            }
        }
    }
}

fn narrow(of: Vector) -> Vector {
    Vector::Narrow(Box::new(of))
}

fn scaled(of: Scalar, by: i32) -> Scalar {
    Scalar::Scaled(Box::new(of), by)
}

fn add(format: Format, one: Scalar, other: Scalar) -> Scalar {
    Scalar::Add(format, Box::new(one), Box::new(other))
}

/// Blocks of products, each computed from +0 in the unit, added to a value in a format; f32 at the end.
fn blocks(format: Format, a: &Vector, b: &Vector, start: Scalar, terms: usize, block: usize) -> Scalar {
    let block = block.max(1);
    let sum = (0..terms).step_by(block).fold(start, |sum, first| {
        let range = [first, terms.min(first + block)];
        add(format, sum, Scalar::Unit(a.clone(), b.clone(), Box::new(Scalar::Zero), range))
    });
    if format == Format::F32 { sum } else { Scalar::Rounded(Format::F32, Box::new(sum)) }
}

impl std::fmt::Display for Vector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::A => formatter.write_str("a"),
            Self::B => formatter.write_str("b"),
            Self::Narrow(of) => write!(formatter, "fl({of})"),
            Self::Minus(of, less) => write!(formatter, "{of} - {less}"),
            Self::Scaled(of, by) => write!(formatter, "2^{by}·({of})"),
        }
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::C => formatter.write_str("c"),
            Self::Zero => formatter.write_str("0"),
            Self::Unit(a, b, c, [from, to]) => write!(formatter, "unit[{from}..{to}]({a}, {b}, {c})"),
            Self::Add(format, one, other) => write!(formatter, "{format}({one} + {other})"),
            Self::Scaled(of, by) => write!(formatter, "2^{by}·{of}"),
            Self::Rounded(format, of) => write!(formatter, "{format}({of})"),
        }
    }
}
