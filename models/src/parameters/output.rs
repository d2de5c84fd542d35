//! The format of a result, read and written.

use mxprobe_api::{Error, Format, Overflow, Rounding, Subnormals};

use crate::{
    adder::{Adder, Output},
    document::{Table, quoted},
};

/// Reads the format; what else there is to say of the result is read after it.
pub(super) fn read_output(adder: &mut Adder, table: &Table<'_>) -> Result<(), Error> {
    let name = table.required_text("output")?;
    adder.output = Output::Wide;
    if name != "wide" {
        let format = Format::named(name).map_err(|error| table.place_of("output").error(error))?;
        adder.output = if format.is_integer() {
            Output::Integer { format, saturates: false }
        } else {
            Output::Float {
                format,
                fraction_bits: format.fraction_bits(),
                rounding: Rounding::NearestEven,
                overflow: Overflow::Ieee,
                subnormals: Subnormals::Keep,
            }
        };
    }
    Ok(())
}

pub(super) fn write_output(adder: &Adder) -> String {
    quoted(adder.output_format().map_or("wide", Format::name))
}
