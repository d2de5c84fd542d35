//! Number formats, described from their encodings.

use mxprobe_api::{Encoding, FloatEncoding, Format, Specials};

use super::{Entry, Kind};

/// One entry per format.
pub(super) fn entries() -> impl Iterator<Item = Entry> {
    Format::ALL.into_iter().map(|format| match format.encoding() {
        Encoding::Float(float) => floating(format, float),
        Encoding::Integer { bits, signed } => integer(format, bits, signed),
    })
}

/// The formats that a common name such as `fp8` or `bfloat16` may refer to; ignores case. `fp8` refers to several
/// formats.
#[must_use]
pub fn called(word: &str) -> &'static [&'static str] {
    match word.to_lowercase().as_str() {
        "fp64" | "float64" | "double" => &["f64"],
        "fp32" | "float32" | "float" | "single" => &["f32"],
        "fp16" | "float16" | "half" => &["f16"],
        "bfloat16" | "bfloat" => &["bf16"],
        "tensorfloat32" | "tensorfloat" => &["tf32"],
        "fp8" | "float8" => &["e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz"],
        "fp6" | "float6" => &["e2m3", "e3m2"],
        "fp4" | "float4" | "mxfp4" | "nvfp4" => &["e2m1"],
        "e4m3fn" | "float8_e4m3fn" => &["e4m3"],
        "e8m0" | "float8_e8m0fnu" => &["ue8m0"],
        "int8" | "i8" => &["s8"],
        "uint8" => &["u8"],
        "int4" | "i4" => &["s4"],
        "uint4" => &["u4"],
        "int32" | "int" | "i32" => &["s32"],
        "uint32" => &["u32"],
        _ => &[],
    }
}

fn integer(format: Format, bits: u32, signed: bool) -> Entry {
    let sign = if signed { "signed, two's complement" } else { "unsigned" };
    let range =
        if signed { format!("−2^{} to 2^{} − 1", bits - 1, bits - 1) } else { format!("0 to 2^{bits} − 1") };
    Entry {
        name: format.name().to_owned(),
        kind: Kind::Format,
        about: format!("An integer of {bits} bits, {sign}."),
        how: format!("Values from {range}; one element takes {} in evidence.", digits(format)),
        answers: Vec::new(),
        source: "PTX ISA, fundamental types".to_owned(),
    }
}

fn floating(format: Format, float: FloatEncoding) -> Entry {
    let FloatEncoding { exponent_bits, fraction_bits, bias, unread_bits, .. } = float;
    let sign = if float.is_signed() { "a sign, " } else { "no sign, " };
    let mut how = format!("{sign}{exponent_bits} exponent bits of bias {bias}, {fraction_bits} fraction bits");
    if unread_bits > 0 {
        how.push_str(&format!(", in a 32-bit register whose low {unread_bits} bits the unit does not read"));
    }
    how.push_str(&format!("; one element takes {} in evidence.", digits(format)));
    let mut answers = vec![(
        "largest".to_owned(),
        format!("{} ({:e})", hex(format, format.largest(false)), value(format.largest(false), format)),
    )];
    if fraction_bits > 0 {
        answers.push(("smallest normal".to_owned(), format!("2^{}", float.min_exponent())));
        answers.push(("smallest subnormal".to_owned(), format!("2^{}", float.exponents().0)));
    }
    answers.push(("NaN and infinity".to_owned(), specials(float.specials).to_owned()));
    Entry {
        name: format.name().to_owned(),
        kind: Kind::Format,
        about: about(format).to_owned(),
        how,
        answers,
        source: source(format, float.specials).to_owned(),
    }
}

fn digits(format: Format) -> String {
    format!("{} hex digits", format.hex(0).len() - 2)
}

fn hex(format: Format, bits: u64) -> String {
    format.hex(bits)
}

fn value(bits: u64, format: Format) -> f64 {
    format.to_f64(bits)
}

fn about(format: Format) -> &'static str {
    match format.name() {
        "f64" => "IEEE 754 binary64, double precision.",
        "f32" => "IEEE 754 binary32, single precision: the usual format of sums.",
        "tf32" => "NVIDIA's TensorFloat-32: the exponent range of f32 with the fraction bits of f16.",
        "xf32" => "AMD's xf32 of CDNA 3: the exponent range of f32 with the fraction bits of f16.",
        "bf16" => "bfloat16: the upper half of an f32.",
        "f16" => "IEEE 754 binary16, half precision.",
        "e4m3" => "The 8-bit format of OCP with more fraction bits. It has no infinity.",
        "e5m2" => "The 8-bit format of OCP with more range: the upper half of an f16.",
        "e4m3fnuz" => "An 8-bit format of AMD's CDNA 3: like OCP's e4m3, but with another bias and no −0.",
        "e5m2fnuz" => "An 8-bit format of AMD's CDNA 3: like OCP's e5m2, but with another bias, no infinity and no −0.",
        "e3m2" => "The 6-bit microscaling format of OCP with more range.",
        "e2m3" => "The 6-bit microscaling format of OCP with more fraction bits.",
        "e2m1" => "The 4-bit element format of OCP's microscaling and of NVFP4.",
        "ue8m0" => "A power of two: the block scale of OCP's microscaling formats.",
        "ue4m3" => "The block scale of NVFP4: e4m3 whose sign bit is not read.",
        _ => "A floating-point format.",
    }
}

fn specials(specials: Specials) -> &'static str {
    match specials {
        Specials::Ieee => "the highest exponent is infinity with fraction 0, and NaN with any other fraction",
        Specials::AllOnesNan => "no infinity; NaN is every exponent and fraction bit set",
        Specials::NegativeZeroNan => "no infinity and no −0; NaN is the code that −0 has elsewhere",
        Specials::None => "neither",
        Specials::UnsignedAllOnesNan => "no infinity; NaN is every bit but the sign set",
        Specials::PowerOfTwo => "no infinity and no zero; NaN is every bit set",
    }
}

fn source(format: Format, specials: Specials) -> &'static str {
    match (format.name(), specials) {
        ("tf32", _) => "PTX ISA, alternate floating-point formats",
        ("xf32", _) => "AMD Instinct MI300 instruction set architecture guide",
        ("bf16", _) => "Intel, BFLOAT16 hardware numerics definition; PTX ISA, alternate floating-point formats",
        ("e5m2", _) | (_, Specials::AllOnesNan) => "OCP 8-bit Floating Point Specification 1.0",
        (_, Specials::Ieee) => "IEEE 754-2019, 3.6",
        (_, Specials::NegativeZeroNan) => "arXiv:2206.02915; AMD Instinct MI300 instruction set architecture guide",
        (_, Specials::UnsignedAllOnesNan) => "PTX ISA 8.7, 5.2.3",
        (_, Specials::None | Specials::PowerOfTwo) => "OCP Microscaling Formats Specification 1.0, section 5",
    }
}
