//! The format of a result and the NaN it returns: reading, writing and describing them.

use mxprobe_api::{Decoded, Error, Format};

use crate::{
    adder::{Adder, NanCause, NanRules, Output},
    document::{Table, quoted},
};

/// Reads the format. The other properties of the result are read after it.
pub(super) fn read_output(adder: &mut Adder, table: &Table<'_>) -> Result<(), Error> {
    let name = table.required_text("output")?;
    adder.output = Output::Wide;
    if name != "wide" {
        let format = Format::named(name).map_err(|error| table.place_of("output").error(error))?;
        adder.output = Output::in_format(format);
    }
    Ok(())
}

pub(super) fn write_output(adder: &Adder) -> String {
    quoted(adder.output_format().map_or("wide", Format::name))
}

const CAUSES: [(&str, NanCause); 4] =
    [("operand", NanCause::Operand), ("b", NanCause::B), ("value", NanCause::Value), ("invalid", NanCause::Invalid)];

pub(super) fn read_nan(adder: &mut Adder, table: &Table<'_>) -> Result<(), Error> {
    let Some(format) = adder.float_format() else { return Ok(()) };
    let bits = |table: &Table<'_>, key: &'static str, text: &str| {
        let bits = format.parse_hex(text).map_err(|error| table.place_of(key).error(error))?;
        let is_nan = matches!(format.decode(bits), Decoded::Nan { .. });
        is_nan.then_some(bits).ok_or_else(|| table.place_of(key).error(format!("{text} is not a NaN of {format}")))
    };
    let missing = || table.place().error("`nan` is missing: the NaN result");
    if let Ok(text) = table.text("nan") {
        let nan = bits(table, "nan", text.ok_or_else(missing)?)?;
        adder.nan = NanRules { operand: Some(nan), value: Some(nan), invalid: nan, ..NanRules::default() };
        return Ok(());
    }
    let rules = table.table("nan")?.ok_or_else(missing)?;
    let mut order = Vec::new();
    for (name, place) in rules.texts("order")? {
        let cause = CAUSES.iter().find(|(known, _)| *known == name);
        let wrong = || place.error(format!("`{name}` is not one of operand, b, value, invalid"));
        order.push(cause.ok_or_else(wrong)?.1);
    }
    for cause in NanRules::default().order {
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
    adder.nan = NanRules { order, operand, value, invalid };
    rules.finish()
}

/// Whether all NaN results have the same bits.
fn is_one(rules: &NanRules) -> bool {
    rules.operand == Some(rules.invalid) && rules.value == Some(rules.invalid)
}

pub(super) fn write_nan(adder: &Adder) -> String {
    let (Some(format), rules) = (adder.float_format(), &adder.nan) else { return String::new() };
    let hex = |bits: u64| quoted(&format.hex(bits));
    if is_one(rules) {
        return hex(rules.invalid);
    }
    let mut fields = Vec::new();
    if rules.order != NanRules::default().order {
        let name = |cause| CAUSES.iter().find(|(_, known)| *known == cause).map_or("", |(name, _)| name);
        let order: Vec<String> = rules.order.iter().map(|cause| quoted(name(*cause))).collect();
        fields.push(format!("order = [{}]", order.join(", ")));
    }
    for (key, bits) in [("operand", rules.operand), ("value", rules.value)] {
        fields.push(format!("{key} = {}", bits.map_or_else(|| quoted("quiet"), hex)));
    }
    fields.push(format!("invalid = {}", hex(rules.invalid)));
    format!("{{ {} }}", fields.join(", "))
}

pub(super) fn nan_words(rules: &NanRules, format: Format) -> String {
    if is_one(rules) {
        return format!("every NaN result is {}", format.hex(rules.invalid));
    }
    let of = |bits: Option<u64>| bits.map_or("itself, quieted".to_owned(), |bits| format.hex(bits));
    let each = rules.order.iter().map(|cause| match cause {
        NanCause::B => format!("a NaN in b gives {}", of(rules.operand)),
        NanCause::Operand => format!("a NaN in a or b gives {}", of(rules.operand)),
        NanCause::Value => format!("a NaN in c gives {}", of(rules.value)),
        NanCause::Invalid => format!("Inf*0 and Inf-Inf give {}", format.hex(rules.invalid)),
    });
    format!("{}, the first that applies", each.collect::<Vec<_>>().join("; "))
}
