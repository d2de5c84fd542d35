//! Adders drawn from everything that a model file can express.

use mxprobe::dots::Random;
use mxprobe_api::Format;

/// Draws one entry of a list.
pub(super) fn one_of<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len())]
}

/// Returns true once in this many `times` on average.
pub(super) fn seldom(random: &mut Random, times: usize) -> bool {
    random.below(times) == 0
}

const ROUNDINGS: [&str; 5] = ["nearest-even", "toward-zero", "down", "up", "to-odd"];
const BELOWS: [&str; 5] = ["truncate", "floor", "nearest", "sticky", "ones-complement"];

/// The properties of d that the adders of one unit depend on.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// The smallest normal exponent of d.
    pub(super) least: i32,
    /// Fraction bits of d.
    pub(super) bits: i32,
}

impl Kind {
    pub(super) fn of(d: &str) -> Self {
        let format = Format::named(d).unwrap();
        let float = format.as_float().unwrap();
        Self { least: float.min_exponent(), bits: float.fraction_bits.cast_signed() }
    }
}

/// Draws the lines of a grid.
pub(super) fn grid(random: &mut Random, kind: Kind) -> String {
    let bits = |random: &mut Random| match random.below(8) {
        0 => random.between(5, 12),
        1 => random.between(40, 90),
        _ => kind.bits + random.between(-3, 6),
    };
    let floor = |random: &mut Random| match random.below(9) {
        0 | 1 => format!("exponent_floor = {}", kind.least - random.between(0, 12)),
        2 => format!("exponent_floor = {}", random.between(kind.least / 2, 4)),
        _ => String::new(),
    };
    let exponent = |random: &mut Random| one_of(random, &["operands", "operands", "leading"]);
    let below = if random.flip() { "truncate" } else { one_of(random, &BELOWS) };
    if seldom(random, 10) {
        let rules: Vec<String> = ["products", "values"]
            .iter()
            .map(|terms| {
                let bits = bits(random).clamp(4, 60);
                format!("{{ terms = \"{terms}\", exponent = \"{}\", fraction_bits = {bits} }}", exponent(random))
            })
            .collect();
        return format!("grid = [{}]\nbelow = \"{below}\"", rules.join(", "));
    }
    let mut lines = format!(
        "fraction_bits = {}\nexponent = \"{}\"\n{}\nbelow = \"{below}\"",
        bits(random).max(4),
        exponent(random),
        floor(random)
    );
    if seldom(random, 12) {
        lines += &format!("\nvalue_cut_bits = {}", random.between(1, 6));
    }
    if seldom(random, 14) {
        lines += &format!("\nignore_values_below = {}", random.between(0, 3));
    }
    if seldom(random, 10) {
        lines += &format!("\ncarry_bits = {}", random.between(1, 5));
    }
    lines
}

/// Draws the lines of an adder that rounds to a format.
pub(super) fn rounded(random: &mut Random, format: &str, grid: &str) -> String {
    let of = Format::named(format).unwrap();
    let rounding = if seldom(random, 3) { one_of(random, &ROUNDINGS) } else { one_of(random, &ROUNDINGS[..2]) };
    let mut lines = format!("output = \"{format}\"\nrounding = \"{rounding}\"\n{grid}");
    if seldom(random, 10) && of.fraction_bits() > 9 {
        lines += &format!("\noutput_fraction_bits = {}", of.fraction_bits().cast_signed() - random.between(1, 8));
    }
    if seldom(random, 8) {
        lines += &format!("\noverflow = \"{}\"", one_of(random, &["infinity", "nan", "saturate"]));
    }
    if seldom(random, 6) {
        let rules = ["flush-before-rounding", "flush-after-rounding", "flush-to-positive-zero"];
        lines += &format!("\nsubnormals = \"{}\"", one_of(random, &rules));
    }
    if seldom(random, 4) {
        lines += "\nzero = \"positive\"";
    }
    if !grid.is_empty() && seldom(random, 12) {
        lines += &format!("\nnormalised_fraction_bits = {}", of.fraction_bits().cast_signed() + random.between(1, 8));
        lines += &format!("\nnormalised_below = \"{}\"", one_of(random, &["truncate", "floor", "sticky"]));
    }
    lines + "\n" + &nan(random, of)
}

/// Returns the lines of an adder that does not round its sum.
pub(super) fn wide(grid: &str) -> String {
    format!("output = \"wide\"\n{grid}")
}

/// Draws the line of the rules for NaN; empty if the format does not have a NaN.
fn nan(random: &mut Random, format: Format) -> String {
    let Some(quiet) = format.nan() else { return String::new() };
    let sign = 1u64 << (format.bits() - 1);
    let ones = format.infinity(false).map_or(quiet, |infinity| infinity | ((quiet ^ infinity) * 2 - 1));
    let bits = one_of(random, &[quiet, quiet, ones]);
    if !seldom(random, 4) || format.infinity(false).is_none() {
        return format!("nan = \"{}\"", format.hex(bits));
    }
    let order = one_of(random, &["\"operand\", \"value\"", "\"value\", \"operand\"", "\"invalid\", \"operand\""]);
    let operand = if random.flip() { String::new() } else { format!("operand = \"{}\", ", format.hex(bits)) };
    format!("nan = {{ order = [{order}], {operand}invalid = \"{}\" }}", format.hex(quiet | sign))
}
