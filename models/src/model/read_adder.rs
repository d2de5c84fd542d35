//! An adder as its file says it.

use std::collections::BTreeMap;

use mxprobe_api::{Decoded, Error, Format, Overflow, Rounding, Subnormals};

use super::{
    Adder, Below, Class, Exponent, GridRule, IgnoredValues, NanCause, NanRules, Output, Provenance, Scale, ZeroSign,
};
use crate::document::Table;

impl Adder {
    pub(super) fn read(name: &str, table: &Table<'_>, sources: &BTreeMap<String, String>) -> Result<Self, Error> {
        if ["c", "acc", "none", "fold", "pairs", "all", "reverse", "every"].contains(&name)
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        {
            return Err(table.place().error(format!(
                "`{name}` is no name of an adder: a word of trees, or not of letters, digits, - and _"
            )));
        }
        let mut grid = Vec::new();
        if let Some(fraction_bits) = table.integer("fraction_bits", 0, 400)? {
            grid.push(GridRule {
                terms: Class::All,
                exponent: exponent(table)?,
                fraction_bits,
                exponent_floor: table.integer("exponent_floor", -5000, 5000)?,
            });
        }
        for rule in table.tables("grid")? {
            let terms = choice(
                &rule,
                "terms",
                &[("all", Class::All), ("products", Class::Products), ("values", Class::Values), ("sums", Class::Sums)],
            )?;
            let missing = || rule.place().error("`fraction_bits` is missing");
            grid.push(GridRule {
                terms: terms.unwrap_or(Class::All),
                exponent: exponent(&rule)?,
                fraction_bits: rule.integer("fraction_bits", 0, 400)?.ok_or_else(missing)?,
                exponent_floor: rule.integer("exponent_floor", -5000, 5000)?,
            });
            rule.finish()?;
        }
        if table.has("fraction_bits") && table.has("grid") {
            return Err(table.place_of("grid").error("`fraction_bits` and `grid` say the same thing; keep one"));
        }
        let below = choice(table, "below", &BELOW)?;
        if below.is_none() && !grid.is_empty() {
            return Err(table.place().error("`below` is missing: what becomes of the bits below the grid"));
        }
        let output_name = table.required_text("output")?;
        let output = match output_name {
            "wide" => Output::Wide,
            name => {
                let format = Format::named(name).map_err(|error| table.place_of("output").error(error))?;
                if format.is_integer() { integer_output(table, format)? } else { float_output(table, format)? }
            }
        };
        let nan_format = match output {
            Output::Float { format, .. } => Some(format),
            Output::Wide | Output::Integer { .. } => None,
        };
        let ignored_values = match table.integer("ignore_values_below", -400, 400)? {
            None => None,
            Some(below_bits) => {
                let unless_grid_at_most = table.integer("ignore_values_unless_grid_at_most", -5000, 5000)?;
                Some(IgnoredValues { below_bits, unless_grid_at_most })
            }
        };
        let carry_bits = table.integer("carry_bits", 0, 64)?.map(i32::unsigned_abs);
        if carry_bits.is_some() && grid.is_empty() {
            return Err(table.place_of("carry_bits").error("an exact sum (no `fraction_bits`) has no carry limit"));
        }
        let adder = Self {
            name: name.to_owned(),
            grid,
            below: below.unwrap_or(Below::Truncate),
            value_cut_bits: table.integer("value_cut_bits", 0, 400)?.unwrap_or(0).unsigned_abs(),
            ignored_values,
            carry_bits,
            normalised_fraction_bits: table.integer("normalised_fraction_bits", 0, 400)?.map(i32::unsigned_abs),
            normalised_exponent_floor: table.integer("normalised_exponent_floor", -5000, 5000)?,
            normalised_below: choice(table, "normalised_below", &BELOW)?.unwrap_or(Below::Truncate),
            scale: choice(table, "scale", &[("products", Scale::Products), ("sum", Scale::Sum)])?
                .unwrap_or(Scale::Products),
            product_overflow: table.boolean("product_overflow")?.unwrap_or(false),
            output,
            zero: choice(table, "zero", &[("ieee", ZeroSign::Ieee), ("positive", ZeroSign::Positive)])?
                .unwrap_or(ZeroSign::Ieee),
            nan: NanRules::read(table, nan_format)?,
            provenance: Provenance::read(table, sources)?,
        };
        table.finish()?;
        Ok(adder)
    }
}

pub(crate) const BELOW: [(&str, Below); 5] = [
    ("truncate", Below::Truncate),
    ("floor", Below::Floor),
    ("ones-complement", Below::OnesComplement),
    ("nearest", Below::Nearest),
    ("sticky", Below::Sticky),
];

fn choice<T: Copy>(table: &Table<'_>, key: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, Error> {
    let Some(text) = table.text(key)? else { return Ok(None) };
    let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.map(Some).ok_or_else(|| table.place_of(key).error(format!("`{text}` is none of {}", names())))
}

fn required_choice<T: Copy>(table: &Table<'_>, key: &'static str, choices: &[(&str, T)]) -> Result<T, Error> {
    choice(table, key, choices)?.ok_or_else(|| table.place().error(format!("`{key}` is missing")))
}

fn exponent(table: &Table<'_>) -> Result<Exponent, Error> {
    let choices = [("operands", Exponent::Operands), ("leading", Exponent::Leading)];
    Ok(choice(table, "exponent", &choices)?.unwrap_or(Exponent::Operands))
}

fn integer_output(table: &Table<'_>, format: Format) -> Result<Output, Error> {
    let saturates = required_choice(table, "overflow", &[("wrap", false), ("saturate", true)])?;
    Ok(Output::Integer { format, saturates })
}

fn float_output(table: &Table<'_>, format: Format) -> Result<Output, Error> {
    let all = format.fraction_bits();
    let fraction_bits = table.integer("output_fraction_bits", 1, i64::from(all))?.map_or(all, i32::unsigned_abs);
    let rounding = required_choice(
        table,
        "rounding",
        &[
            ("nearest-even", Rounding::NearestEven),
            ("toward-zero", Rounding::TowardZero),
            ("down", Rounding::Down),
            ("up", Rounding::Up),
            ("to-odd", Rounding::ToOdd),
        ],
    )?;
    let overflow = choice(
        table,
        "overflow",
        &[
            ("infinity", Overflow::Infinity),
            ("ieee", Overflow::Ieee),
            ("nan", Overflow::Nan),
            ("saturate", Overflow::Saturate),
        ],
    )?;
    let subnormals = choice(
        table,
        "subnormals",
        &[
            ("keep", Subnormals::Keep),
            ("flush-before-rounding", Subnormals::FlushBeforeRounding),
            ("flush-after-rounding", Subnormals::FlushAfterRounding),
            ("flush-to-positive-zero", Subnormals::FlushToPositiveZero),
        ],
    )?;
    Ok(Output::Float {
        format,
        fraction_bits,
        rounding,
        overflow: overflow.unwrap_or(Overflow::Ieee),
        subnormals: subnormals.unwrap_or(Subnormals::Keep),
    })
}

impl NanRules {
    /// `format` is that of the result; an unrounded sum hands on why it is NaN, and integers never are.
    fn read(table: &Table<'_>, format: Option<Format>) -> Result<Self, Error> {
        let default = vec![NanCause::Operand, NanCause::Value, NanCause::Invalid];
        let Some(format) = format else {
            return Ok(Self { order: default, operand: None, value: None, invalid: 0 });
        };
        let bits = |table: &Table<'_>, key: &'static str, text: &str| {
            let bits = format.parse_hex(text).map_err(|error| table.place_of(key).error(error))?;
            let is_nan = matches!(format.decode(bits), Decoded::Nan { .. });
            is_nan.then_some(bits).ok_or_else(|| table.place_of(key).error(format!("{text} is no NaN of {format}")))
        };
        if let Ok(text) = table.text("nan") {
            let text = text.ok_or_else(|| table.place().error("`nan` is missing: which NaN comes out"))?;
            let nan = bits(table, "nan", text)?;
            return Ok(Self { order: default, operand: Some(nan), value: Some(nan), invalid: nan });
        }
        let Some(rules) = table.table("nan")? else { return Err(table.place().error("`nan` is missing")) };
        let mut order = Vec::new();
        for (cause, place) in rules.texts("order")? {
            order.push(match cause {
                "operand" => NanCause::Operand,
                "value" => NanCause::Value,
                "invalid" => NanCause::Invalid,
                other => return Err(place.error(format!("`{other}` is none of operand, value, invalid"))),
            });
        }
        for cause in default {
            if !order.contains(&cause) {
                order.push(cause);
            }
        }
        let quiet_or_bits = |key: &'static str| match rules.text(key)? {
            None | Some("quiet") => Ok(None),
            Some(text) => bits(&rules, key, text).map(Some),
        };
        let (operand, value) = (quiet_or_bits("operand")?, quiet_or_bits("value")?);
        let invalid = bits(&rules, "invalid", rules.required_text("invalid")?)?;
        rules.finish()?;
        Ok(Self { order, operand, value, invalid })
    }
}
