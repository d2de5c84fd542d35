//! Every parameter of an adder, defined once: its key, how it is read and written, its words, its default and its
//! neighbours.
//!
//! Only its effect on a sum is defined elsewhere: in the exact evaluator, the fast one and the proving one.

use mxprobe_api::{Format, Overflow, Rounding, Subnormals};

use super::{
    choices::Choices,
    parameter::{
        Parameter, Setting,
        Setting::{Absent, Flag, Whole},
        Takes, Tried, Turn, nth,
    },
    result::{nan_words, read_nan, read_output, write_nan, write_output},
};
use crate::adder::{Adder, Below, Class, Exponent, GridRule, IgnoredValues, Output, Scale, ZeroSign};

/// A parameter that is a choice, stored in a field of its own.
macro_rules! choice {
    ($key:literal, $kind:ty, $of:ident => $place:expr, { $($rest:tt)* }) => {
        Parameter {
            get: |$of| Setting::of($place),
            set: |$of, to| $place = to.chosen::<$kind>(),
            $($rest)*
            ..Parameter::new($key, Takes::Choice(nth::<$kind>))
        }
    };
}

/// A choice that applies to floating results.
macro_rules! of_float {
    ($key:literal, $kind:ty, $field:ident, { $($rest:tt)* }) => {
        Parameter {
            applies: |adder| adder.float_format().is_some(),
            get: |adder| if let Output::Float { $field, .. } = adder.output { Setting::of($field) } else { Absent },
            set: |adder, to| {
                if let Output::Float { $field, .. } = &mut adder.output {
                    *$field = to.chosen::<$kind>();
                }
            },
            near: |_| every::<$kind>(),
            $($rest)*
            ..Parameter::new($key, Takes::Choice(nth::<$kind>))
        }
    };
}

fn every<E: Choices>() -> Vec<Setting> {
    E::values().map(Setting::of).collect()
}

fn whole(bits: Option<u32>) -> Setting {
    bits.map_or(Absent, |bits| Whole(bits.cast_signed()))
}

fn exponent(at: Option<i32>) -> Setting {
    at.map_or(Absent, Whole)
}

/// One bit more and one bit fewer.
fn beside(bits: u32) -> [Setting; 2] {
    [bits + 1, bits.saturating_sub(1)].map(|bits| Whole(bits.cast_signed()))
}

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

pub(crate) fn counted_bits(bits: i32) -> String {
    if bits == 1 { "1 bit".into() } else { format!("{bits} bits") }
}

/// The parameters of one rule of a grid, in the order of their keys in an array of rules.
pub static RULE: [Parameter<GridRule>; 4] = [
    choice!("terms", Class, rule => rule.terms, {
        meaning: "in `grid` only: the terms that the rule looks at",
        turn: Turn::Grid(1),
        near: |_| every::<Class>(),
    }),
    choice!("exponent", Exponent, rule => rule.exponent, {
        meaning: "how a term's exponent is taken. `operands`: of a product, the sum of its operands' exponents, a \
                  subnormal counting as the smallest normal one; of a sum, the exponent its own grid was laid by. \
                  `leading`: the place of its leading one. A zero has none",
        turn: Turn::Grid(2),
        near: |_| every::<Exponent>(),
        label: "exponent:",
        proved: |_| true,
    }),
    Parameter {
        absent: "no grid",
        meaning: "the lowest bit kept lies so many places below the largest exponent of the terms",
        required: |_| true,
        get: |rule| Whole(rule.fraction_bits),
        set: |rule, to| rule.fraction_bits = to.number().unwrap_or(0),
        turn: Turn::Grid(0),
        near: |rule| [-1, 1].map(|by| Whole(rule.fraction_bits + by)).to_vec(),
        label: "fraction bits",
        proved: |_| true,
        ..Parameter::new("fraction_bits", Takes::Bits(0, 400))
    },
    Parameter {
        absent: "none",
        meaning: "the largest exponent counts as no less than this. Sources call it the exponent of a zero term",
        get: |rule| exponent(rule.exponent_floor),
        set: |rule, to| rule.exponent_floor = to.number(),
        words: |rule| {
            let floor = rule.exponent_floor?;
            Some(format!("that exponent counts as no less than {floor}, as if zero had it"))
        },
        counts: |_| true,
        ..Parameter::new("exponent_floor", Takes::Exponent)
    },
];

/// The other parameters of an adder, in the order of their keys in a file.
pub static PARAMETERS: [Parameter<Adder>; 18] = [
    choice!("below", Below, adder => adder.below, {
        absent: "required with a grid",
        meaning: "what becomes of the bits below the grid",
        required: |adder| !adder.grid.is_empty(),
        words: |adder| (!adder.grid.is_empty()).then(|| format!("lower bits are {}", adder.below.choice().words)),
        brief: |adder| said(adder.below.choice().brief).filter(|_| !adder.grid.is_empty()),
        counts: |adder| !adder.grid.is_empty(),
        turn: Turn::Below,
        near: |_| every::<Below>(),
        label: "bits below the grid:",
        proved: |to| to != Setting::of(Below::OnesComplement),
    }),
    Parameter {
        absent: "0",
        meaning: "so many more bits are lost of a value than of a product or a sum",
        get: |adder| if adder.value_cut_bits == 0 { Absent } else { whole(Some(adder.value_cut_bits)) },
        set: |adder, to| adder.value_cut_bits = to.bits().unwrap_or(0),
        words: |adder| match adder.value_cut_bits {
            0 => None,
            bits => Some(format!("c and rounded results lose {bits} bits more than products")),
        },
        brief: |adder| match adder.value_cut_bits {
            0 => None,
            bits => Some(format!("{bits} bits fewer of c")),
        },
        counts: |_| true,
        turn: Turn::Grid(0),
        tried: Tried::Bits(1, 16),
        near: |adder| {
            let [more, fewer] = beside(adder.value_cut_bits);
            vec![more, Whole(adder.value_cut_bits.cast_signed() + 2), fewer]
        },
        ..Parameter::new("value_cut_bits", Takes::Bits(0, 400))
    },
    Parameter {
        absent: "none",
        meaning: "a value counts as 0 if its leading bit lies more than this many places below the lowest bit kept of \
                  it; with 0, if no bit of it is kept",
        get: |adder| exponent(adder.ignored_values.map(|rule| rule.below_bits)),
        set: |adder, to| {
            let unless_grid_at_most = adder.ignored_values.and_then(|rule| rule.unless_grid_at_most);
            adder.ignored_values = to.number().map(|below_bits| IgnoredValues { below_bits, unless_grid_at_most });
        },
        words: |adder| {
            let rule = adder.ignored_values?;
            let unless = rule.unless_grid_at_most;
            let unless = unless.map(|limit| format!(", unless the grid is at 2^{limit} or lower")).unwrap_or_default();
            Some(match rule.below_bits {
                0 => format!("a c of which no bit is left counts as 0{unless}"),
                bits => {
                    format!("a c whose leading bit is more than {bits} below its lowest bit kept counts as 0{unless}")
                }
            })
        },
        brief: |adder| {
            let bits = adder.ignored_values?.below_bits;
            Some(format!("leaves c out where it lies more than {bits} bits below the grid"))
        },
        counts: |_| true,
        turn: Turn::Grid(2),
        tried: Tried::Absent,
        ..Parameter::new("ignore_values_below", Takes::Bits(-400, 400))
    },
    Parameter {
        absent: "none",
        meaning: "the rule above holds only where the lowest bit kept is above this",
        applies: |adder| adder.ignored_values.is_some(),
        get: |adder| exponent(adder.ignored_values.and_then(|rule| rule.unless_grid_at_most)),
        set: |adder, to| {
            if let Some(rule) = &mut adder.ignored_values {
                rule.unless_grid_at_most = to.number();
            }
        },
        counts: |_| true,
        turn: Turn::Grid(3),
        tried: Tried::Exponents,
        ..Parameter::new("ignore_values_unless_grid_at_most", Takes::Exponent)
    },
    Parameter {
        meaning: "a product of magnitude 2^128 or more is an infinity",
        get: |adder| Flag(adder.product_overflow),
        set: |adder, to| adder.product_overflow = to == Flag(true),
        words: |adder| adder.product_overflow.then(|| "a product of magnitude 2^128 or more is an infinity".to_owned()),
        brief: |adder| adder.product_overflow.then(|| "products of 2^128 and more are infinite".to_owned()),
        counts: |_| true,
        turn: Turn::Result(1),
        near: |adder| vec![Flag(!adder.product_overflow)],
        ..Parameter::new("product_overflow", Takes::Flag)
    },
    choice!("scale", Scale, adder => adder.scale, {
        meaning: "block scales multiply each product, whose exponent they join; or the exact sum of a node of products \
                  of one block, whose exponent is then that of the scales alone (none, if every product or a scale is 0)",
        words: |adder| said(adder.scale.choice().words),
        brief: |adder| said(adder.scale.choice().brief),
        turn: Turn::Scales,
    }),
    Parameter {
        absent: "enough",
        meaning: "the sum wraps, in two's complement, beyond so many bits above the bit of the largest exponent",
        applies: |adder| !adder.grid.is_empty(),
        refused: Some("an exact sum (no `fraction_bits`) has no carry limit"),
        get: |adder| whole(adder.carry_bits),
        set: |adder, to| adder.carry_bits = to.bits(),
        words: |adder| Some(format!("the sum wraps beyond {} carry bits", adder.carry_bits?)),
        brief: |adder| Some(format!("wraps beyond {} carry bits", adder.carry_bits?)),
        counts: |_| true,
        turn: Turn::Grid(1),
        tried: Tried::Bits(0, 8),
        near: |adder| match adder.carry_bits {
            Some(bits) => std::iter::once(Absent).chain(beside(bits)).collect(),
            None => std::iter::once(Absent).chain((1..=6).map(Whole)).collect(),
        },
        label: "carry bits",
        proved: |to| to != Absent,
        ..Parameter::new("carry_bits", Takes::Bits(0, 64))
    },
    Parameter {
        absent: "none",
        meaning: "once normalised, the sum is cut to so many fraction bits, before it is rounded",
        get: |adder| whole(adder.normalised_fraction_bits),
        set: |adder, to| {
            adder.normalised_fraction_bits = to.bits();
            if to == Absent {
                (adder.normalised_exponent_floor, adder.normalised_below) = (None, Below::Truncate);
            }
        },
        words: |adder| {
            let (bits, below) = (adder.normalised_fraction_bits?, adder.normalised_below.choice().words);
            Some(format!("once normalised, bits below {bits} fraction bits are {below}"))
        },
        brief: |adder| {
            let (bits, below) = (adder.normalised_fraction_bits?, adder.normalised_below.choice().brief);
            Some(format!("cuts the normalised sum to {bits} bits, {below}"))
        },
        counts: |_| true,
        turn: Turn::Normalised(0),
        tried: Tried::Absent,
        near: |adder| {
            let bits = adder.normalised_fraction_bits;
            let beside = bits.map(|bits| [bits - 1, bits + 1].map(|bits| Whole(bits.cast_signed())));
            std::iter::once(Absent).chain(beside.into_iter().flatten()).collect()
        },
        ..Parameter::new("normalised_fraction_bits", Takes::Bits(0, 400))
    },
    Parameter {
        absent: "none",
        meaning: "its exponent counts as no less than this there",
        matters: |adder| adder.normalised_fraction_bits.is_some(),
        get: |adder| exponent(adder.normalised_exponent_floor),
        set: |adder, to| adder.normalised_exponent_floor = to.number(),
        counts: |_| true,
        turn: Turn::Normalised(2),
        tried: Tried::Exponents,
        ..Parameter::new("normalised_exponent_floor", Takes::Exponent)
    },
    choice!("normalised_below", Below, adder => adder.normalised_below, {
        meaning: "what becomes of the bits cut there",
        matters: |adder| adder.normalised_fraction_bits.is_some(),
        counts: |_| true,
        turn: Turn::Normalised(1),
        near: |_| [Below::Truncate, Below::Floor].map(Setting::of).to_vec(),
    }),
    Parameter {
        absent: "required",
        meaning: "what the sum is rounded into; `wide`: nothing, it is handed to another adder as it is",
        words: |adder| (adder.output == Output::Wide).then(|| "the sum is handed on unrounded".to_owned()),
        brief: |adder| (adder.output == Output::Wide).then(|| "hands the sum on unrounded".to_owned()),
        ..Parameter::new("output", Takes::Other("a format, or `wide`", read_output, write_output))
    },
    Parameter {
        absent: "all",
        meaning: "fraction bits kept of a floating format; the rest are 0",
        applies: |adder| adder.float_format().is_some(),
        get: |adder| match adder.output {
            Output::Float { format, fraction_bits, .. } if fraction_bits != format.fraction_bits() => {
                whole(Some(fraction_bits))
            }
            _ => Absent,
        },
        set: |adder, to| {
            if let Output::Float { format, fraction_bits, .. } = &mut adder.output {
                *fraction_bits = to.bits().unwrap_or(format.fraction_bits());
            }
        },
        counts: |_| true,
        turn: Turn::Result(5),
        tried: Tried::FormatBits,
        near: |adder| match adder.output {
            Output::Float { format, fraction_bits, .. } => {
                let [more, fewer] = [fraction_bits + 1, fraction_bits.saturating_sub(1)];
                [fewer.max(1), more.min(format.fraction_bits())].map(|bits| whole(Some(bits))).to_vec()
            }
            _ => Vec::new(),
        },
        ..Parameter::new(
            "output_fraction_bits",
            Takes::FormatBits(|adder| adder.float_format().map_or(0, Format::fraction_bits)),
        )
    },
    of_float!("rounding", Rounding, rounding, {
        absent: "required for a floating format",
        meaning: "how the result is rounded",
        required: |_| true,
        words: |adder| {
            let Output::Float { format, fraction_bits, rounding, .. } = adder.output else { return None };
            let cut = if fraction_bits < format.fraction_bits() {
                format!(" of {fraction_bits} fraction bits")
            } else {
                String::new()
            };
            Some(format!("normalised and rounded once, {}, to {format}{cut}", rounding.choice().words))
        },
        brief: |adder| {
            let Output::Float { format, fraction_bits, rounding, .. } = adder.output else { return None };
            let cut = if fraction_bits == format.fraction_bits() {
                String::new()
            } else {
                format!(" cut to {fraction_bits} fraction bits")
            };
            Some(format!("{format}{cut}, {}", rounding.choice().brief))
        },
        turn: Turn::Result(2),
        label: "results rounded",
        proved: |to| to != Setting::of(Rounding::ToOdd),
    }),
    of_float!("overflow", Overflow, overflow, {
        meaning: "floating results beyond the range. `ieee`: infinity or the largest finite value as the rounding says. \
                  `infinity`: infinity once the rounded magnitude is above the largest finite value, so toward-zero \
                  gives it from 2^128 on",
        words: |adder| {
            let Output::Float { overflow, .. } = adder.output else { return None };
            Some(format!("results beyond its range become {}", overflow.choice().words))
        },
        brief: |adder| {
            if let Output::Float { overflow, .. } = adder.output { said(overflow.choice().brief) } else { None }
        },
        counts: |_| true,
        turn: Turn::Result(3),
    }),
    Parameter {
        absent: "required for integers",
        meaning: "integer results beyond the range",
        applies: |adder| matches!(adder.output, Output::Integer { .. }),
        required: |_| true,
        get: |adder| if let Output::Integer { saturates, .. } = adder.output { Setting::of(saturates) } else { Absent },
        set: |adder, to| {
            if let Output::Integer { saturates, .. } = &mut adder.output {
                *saturates = to.chosen();
            }
        },
        words: |adder| {
            let Output::Integer { format, saturates } = adder.output else { return None };
            Some(format!("the result is {format}; sums beyond its range {}", saturates.choice().words))
        },
        brief: |adder| {
            let Output::Integer { format, saturates } = adder.output else { return None };
            Some(format!("{format}, {}", saturates.choice().brief))
        },
        ..Parameter::new("overflow", Takes::Choice(nth::<bool>))
    },
    of_float!("subnormals", Subnormals, subnormals, {
        meaning: "results below the normal range. `flush-after-rounding` and `flush-before-rounding` keep the sign; \
                  `before` looks at the exact sum, the others at the sum rounded with an unbounded exponent",
        words: |adder| {
            if let Output::Float { subnormals, .. } = adder.output { said(subnormals.choice().words) } else { None }
        },
        brief: |adder| {
            if let Output::Float { subnormals, .. } = adder.output { said(subnormals.choice().brief) } else { None }
        },
        counts: |_| true,
        turn: Turn::Result(4),
        label: "subnormal results:",
        proved: |to| to == Setting::of(Subnormals::FlushBeforeRounding),
    }),
    choice!("zero", ZeroSign, adder => adder.zero, {
        meaning: "the sign of a zero result: IEEE 754-2019, 6.3, or always +0",
        words: |adder| said(adder.zero.choice().words).filter(|_| adder.float_format().is_some()),
        brief: |adder| said(adder.zero.choice().brief),
        counts: |_| true,
        turn: Turn::Result(0),
        near: |_| every::<ZeroSign>(),
    }),
    Parameter {
        absent: "required for a floating format",
        meaning: "which NaN comes out. Bits such as `\"0x7fffffff\"`: every NaN result. A table: `order`, the causes \
                  from the first that decides, out of `operand`, `value`, `invalid` (in that order by default), and \
                  `b`, a NaN in b, which otherwise counts as an operand after a; \
                  `operand` and `value`: bits, or `quiet` (default), the NaN itself with its quiet bit set and its \
                  payload at the top; `invalid`: bits, required, for Inf·0 and Inf − Inf",
        applies: |adder| adder.float_format().is_some(),
        words: |adder| Some(nan_words(&adder.nan, adder.float_format()?)),
        ..Parameter::new("nan", Takes::Other("bits or a table", read_nan, write_nan))
    },
];
