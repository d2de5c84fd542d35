//! Formats of 8 bits or fewer: every code, every midpoint, every rounding, every policy.

use mxprobe_api::{Decoded, Encoded, Format, Overflow, Rounding, Subnormals};

use super::naive::{NARROW, OVERFLOWS, ROUNDINGS, SUBNORMALS, Spec, exact, power_of_two, same};

fn codes(format: Format) -> impl Iterator<Item = u64> {
    0..1 << format.bits()
}

/// All codes of a format, without those that differ only in an unread bit.
fn distinct_codes(spec: Spec) -> impl Iterator<Item = u64> {
    codes(spec.format).filter(move |code| spec.format != Format::UE4M3 || *code < 0x80)
}

fn encode_nearest(format: Format, negative: bool, magnitude: u128, lsb: i32) -> Encoded {
    format.encode(negative, magnitude, lsb, Rounding::NearestEven, Overflow::Infinity, Subnormals::Keep)
}

#[test]
fn every_narrow_floating_format_is_tested_here() {
    let narrow = Format::ALL.into_iter().filter(|format| format.bits() <= 8 && !format.is_integer());
    assert!(narrow.eq(Format::ALL.into_iter().filter(|format| NARROW.iter().any(|spec| spec.format == *format))));
    assert_eq!(NARROW.len(), 9);
}

#[test]
fn every_code_has_the_value_its_specification_gives() {
    for spec in NARROW {
        for code in codes(spec.format) {
            let read = if spec.format == Format::UE4M3 { code & 0x7f } else { code };
            let given = spec.format.decode(code);
            let name = format!("{} {code:#04x}: {given:?}", spec.format);
            let value = spec.format.to_f64(code);
            if (spec.nan)(read) {
                assert!(matches!(given, Decoded::Nan { .. }) && value.is_nan(), "{name}");
                continue;
            }
            if spec.infinity.is_some_and(|infinity| code & 0x7f == infinity) {
                assert_eq!(given, Decoded::Infinity { negative: code >> 7 == 1 }, "{name}");
                assert_eq!(value.to_bits(), if code >> 7 == 1 { f64::NEG_INFINITY } else { f64::INFINITY }.to_bits());
                continue;
            }
            let expected = spec.value(read);
            assert_eq!(value.to_bits(), expected.to_bits(), "{name} is {value:e}, expected {expected:e}");
            match given {
                Decoded::Zero { negative } => {
                    assert_eq!(expected.to_bits(), if negative { -0.0f64 } else { 0.0 }.to_bits(), "{name}");
                }
                Decoded::Finite { negative, significand, exponent } => {
                    let fraction_bits = spec.fraction_bits;
                    assert_eq!(negative, expected.is_sign_negative(), "{name}");
                    let is_normal = significand >> fraction_bits == 1;
                    assert!(is_normal || significand < 1 << fraction_bits, "{name}");
                    assert_eq!(is_normal, expected.abs() >= spec.smallest_normal, "{name}");
                    let significand = f64::from(u32::try_from(significand).expect("few bits"));
                    assert!(same(significand * power_of_two(exponent - fraction_bits), expected.abs()), "{name}");
                }
                _ => panic!("{name}"),
            }
        }
    }
}

#[test]
fn bits_above_the_width_are_not_read() {
    for format in Format::ALL.into_iter().filter(|format| format.bits() < 64) {
        for code in (0..=255).chain([format.mask(), format.largest(true), format.largest(false)]) {
            let code = code & format.mask();
            assert_eq!(format.decode(code | 1 << format.bits()), format.decode(code), "{format} {code:#x}");
            assert_eq!(format.decode(code | !format.mask()), format.decode(code), "{format} {code:#x}");
        }
    }
}

#[test]
fn the_extreme_values_are_those_of_the_specification() {
    for spec in NARROW {
        let format = spec.format;
        let finite: Vec<f64> = distinct_codes(spec)
            .filter(|code| !(spec.nan)(*code) && spec.infinity.is_none_or(|infinity| code & 0x7f != infinity))
            .map(|code| format.to_f64(code))
            .collect();
        let positive = || finite.iter().copied().filter(|value| *value > 0.0);
        let (largest, smallest) = (positive().fold(0.0, f64::max), positive().fold(f64::MAX, f64::min));
        assert!(same(largest, spec.largest), "{format}: {largest:e}");
        assert!(same(smallest, spec.smallest), "{format}: {smallest:e}");
        assert!(same(format.to_f64(format.largest(false)), spec.largest), "{format}");
        let most_negative = if spec.has_sign { -spec.largest } else { spec.largest };
        assert!(same(format.to_f64(format.largest(true)), most_negative), "{format}");
        let float = format.as_float().expect("floating");
        assert!(same(power_of_two(float.min_exponent()), spec.smallest_normal), "{format}");
        assert!(power_of_two(float.max_exponent()) <= spec.largest, "{format}");
        assert!(power_of_two(float.max_exponent() + 1) > spec.largest, "{format}");
        assert_eq!(format.infinity(false), spec.infinity, "{format}");
        assert_eq!(format.infinity(true), spec.infinity.map(|infinity| infinity | 0x80), "{format}");
        assert!(same(format.to_f64(format.one()), 1.0), "{format}");
        match format.nan() {
            Some(nan) => assert!((spec.nan)(nan) && Some(nan) == spec.overflow_nan.map(|nan| nan[0]), "{format}"),
            None => assert!(spec.overflow_nan.is_none() && distinct_codes(spec).all(|code| !(spec.nan)(code))),
        }
    }
}

/// One line per format: the codes and decimals of the values that people look up first.
#[test]
fn well_known_codes_have_their_well_known_values() {
    let table: [(Format, u64, f64); 34] = [
        (Format::E4M3, 0x7e, 448.0),
        (Format::E4M3, 0xfe, -448.0),
        (Format::E4M3, 0x38, 1.0),
        (Format::E4M3, 0x08, 0.015625),
        (Format::E4M3, 0x07, 0.013671875),
        (Format::E4M3, 0x01, 0.001953125),
        (Format::E4M3, 0x80, -0.0),
        (Format::E5M2, 0x7b, 57344.0),
        (Format::E5M2, 0x7c, f64::INFINITY),
        (Format::E5M2, 0xfc, f64::NEG_INFINITY),
        (Format::E5M2, 0x3c, 1.0),
        (Format::E5M2, 0x01, 0.0000152587890625),
        (Format::E4M3FNUZ, 0x7f, 240.0),
        (Format::E4M3FNUZ, 0x40, 1.0),
        (Format::E4M3FNUZ, 0x01, 0.0009765625),
        (Format::E5M2FNUZ, 0x7f, 57344.0),
        (Format::E5M2FNUZ, 0x40, 1.0),
        (Format::E5M2FNUZ, 0x01, 0.00000762939453125),
        (Format::E3M2, 0x1f, 28.0),
        (Format::E3M2, 0x3f, -28.0),
        (Format::E3M2, 0x01, 0.0625),
        (Format::E2M3, 0x1f, 7.5),
        (Format::E2M3, 0x3f, -7.5),
        (Format::E2M3, 0x01, 0.125),
        (Format::E2M1, 0x7, 6.0),
        (Format::E2M1, 0xf, -6.0),
        (Format::E2M1, 0x1, 0.5),
        (Format::E2M1, 0x2, 1.0),
        (Format::UE4M3, 0x7e, 448.0),
        (Format::UE4M3, 0xfe, 448.0),
        (Format::UE4M3, 0x38, 1.0),
        (Format::UE8M0, 0x7f, 1.0),
        (Format::UE8M0, 0x80, 2.0),
        (Format::UE8M0, 0x7e, 0.5),
    ];
    for (format, code, value) in table {
        assert_eq!(format.to_f64(code).to_bits(), value.to_bits(), "{format} {code:#04x}");
    }
}

#[test]
fn decode_then_encode_is_the_identity() {
    for spec in NARROW {
        for code in distinct_codes(spec).filter(|code| !(spec.nan)(*code)) {
            let format = spec.format;
            assert_eq!(format.from_f64(format.to_f64(code)), code, "{format} {code:#04x} through f64");
            let (negative, magnitude, lsb) = match format.decode(code) {
                Decoded::Zero { negative } => (negative, 0, 0),
                Decoded::Finite { negative, significand, exponent } => {
                    (negative, u128::from(significand), exponent - spec.fraction_bits)
                }
                _ => continue,
            };
            for rounding in ROUNDINGS {
                for overflow in OVERFLOWS {
                    // The same value written with more and more low zeros.
                    for shift in [0, 1, 7, 64, 120] {
                        let given = format.encode(
                            negative,
                            magnitude << shift,
                            lsb - shift,
                            rounding,
                            overflow,
                            Subnormals::Keep,
                        );
                        let expected = Encoded { bits: code, inexact: false, overflow: false, underflow: false };
                        assert_eq!(given, expected, "{format} {code:#04x} {rounding:?} {overflow:?} shifted {shift}");
                    }
                }
            }
        }
    }
}

/// Every value, every midpoint between neighbours, and a tiny amount to either side of both; up to four times the
/// largest.
fn interesting(spec: Spec) -> Vec<f64> {
    let mut values: Vec<f64> = distinct_codes(spec)
        .filter(|code| !(spec.nan)(*code) && spec.infinity != Some(*code))
        .map(|code| spec.value(code))
        .filter(|value| *value > 0.0)
        .collect();
    values.sort_by(f64::total_cmp);
    // The value that would follow the largest, and those below the smallest.
    let last_step = spec.largest - values[values.len() - 2];
    if spec.fraction_bits > 0 {
        values.extend([1.0, 2.0, 3.0].map(|steps| spec.largest + steps * last_step));
    }
    values.extend([2.0, 3.0, 4.0].map(|times| spec.largest * times));
    if spec.has_zero {
        values.insert(0, 0.0);
    } else {
        values.insert(0, spec.smallest / 2.0);
    }
    let mut points = Vec::new();
    for pair in values.windows(2) {
        let step = pair[1] - pair[0];
        for base in [pair[0], pair[0] + step / 2.0, pair[1]] {
            points.extend([-1.0, 0.0, 1.0].map(|sign| base + sign * step * power_of_two(-24)));
        }
        points.extend([pair[0] + step / 4.0, pair[0] + step * 0.75]);
    }
    points.extend([-1, -2, -3, -10, -100].map(|exponent| spec.smallest * power_of_two(exponent)));
    points.retain(|point| *point > 0.0);
    points
}

#[test]
fn every_midpoint_and_its_surroundings_round_as_the_definitions_say() {
    for spec in NARROW {
        let signs: &[bool] = if spec.has_sign { &[false, true] } else { &[false] };
        for x in interesting(spec) {
            let (magnitude, lsb) = exact(x);
            for &negative in signs {
                for rounding in ROUNDINGS {
                    for overflow in OVERFLOWS {
                        for subnormals in SUBNORMALS {
                            let given = spec.format.encode(negative, magnitude, lsb, rounding, overflow, subnormals);
                            let expected = spec.encode(negative, x, rounding, overflow, subnormals);
                            assert_eq!(
                                given, expected,
                                "{} negative {negative} {x:e} {rounding:?} {overflow:?} {subnormals:?}",
                                spec.format
                            );
                            let shifted =
                                spec.format.encode(negative, magnitude << 70, lsb - 70, rounding, overflow, subnormals);
                            assert_eq!(shifted, expected, "{} {x:e} written with 70 low zeros", spec.format);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn ties_of_the_largest_values_go_to_even() {
    // 464 lies between 448 (1.110b · 2^8, even) and 480 (1.111b · 2^8); 61440 between 57344 (1.11b · 2^15, odd) and
    // 65536.
    let table: [(Format, u128, u64, bool); 13] = [
        (Format::E4M3, 464, 0x7e, false),
        (Format::E4M3, 463, 0x7e, false),
        (Format::E4M3, 465, 0x7f, true),
        (Format::UE4M3, 464, 0x7e, false),
        (Format::UE4M3, 465, 0x7f, true),
        (Format::E5M2, 61439, 0x7b, false),
        (Format::E5M2, 61440, 0x7c, true),
        (Format::E4M3FNUZ, 247, 0x7f, false),
        (Format::E4M3FNUZ, 248, 0x80, true),
        (Format::E5M2FNUZ, 61440, 0x80, true),
        (Format::E3M2, 30, 0x1f, true),
        (Format::E2M1, 7, 0x7, true),
        (Format::E2M1, 5, 0x6, false),
    ];
    for (format, magnitude, bits, overflow) in table {
        let given = encode_nearest(format, false, magnitude, 0);
        assert_eq!((given.bits, given.overflow), (bits, overflow), "{format} {magnitude}");
        if format.as_float().is_some_and(|float| float.is_signed()) {
            let given = encode_nearest(format, true, magnitude, 0);
            let sign = if bits == 0x80 { 0 } else { 1 << (format.bits() - 1) };
            assert_eq!((given.bits, given.overflow), (bits | sign, overflow), "{format} -{magnitude}");
        }
    }
}

#[test]
fn a_tie_of_ue8m0_goes_to_the_larger_power() {
    // IEEE 754-2019, 4.3.1: if precision is one digit, the tie goes to the one larger in magnitude. 3 · 2^-1 is 1.5.
    assert_eq!(encode_nearest(Format::UE8M0, false, 3, -1).bits, 0x80);
    assert_eq!(encode_nearest(Format::UE8M0, false, (3 << 40) - 1, -41).bits, 0x7f);
}

#[test]
fn a_zero_keeps_its_sign_where_the_format_has_one() {
    for spec in NARROW {
        for rounding in ROUNDINGS {
            for subnormals in SUBNORMALS {
                for negative in [false, true] {
                    for lsb in [-1000, -127, 0, 127, 1000] {
                        let given = spec.format.encode(negative, 0, lsb, rounding, Overflow::Ieee, subnormals);
                        let keeps = negative && spec.has_sign && spec.has_negative_zero;
                        let bits = if keeps { 1 << (spec.format.bits() - 1) } else { 0 };
                        let expected = Encoded { bits, inexact: false, overflow: false, underflow: false };
                        assert_eq!(given, expected, "{} negative {negative}", spec.format);
                    }
                }
            }
        }
    }
}

#[test]
fn values_far_out_of_range_round_like_values_just_out_of_range() {
    for spec in NARROW {
        for rounding in ROUNDINGS {
            for overflow in OVERFLOWS {
                for subnormals in SUBNORMALS {
                    let format = spec.format;
                    let far = spec.encode(false, spec.largest * 4.0, rounding, overflow, subnormals);
                    let near = spec.encode(false, spec.smallest / 8.0, rounding, overflow, subnormals);
                    for magnitude in [1, 3, u128::from(u64::MAX), 1 << 127, u128::MAX] {
                        for lsb in [140, 1000, 1 << 20] {
                            let given = format.encode(false, magnitude, lsb, rounding, overflow, subnormals);
                            assert_eq!(given, far, "{format} {magnitude:#x} · 2^{lsb} {rounding:?} {overflow:?}");
                        }
                        for lsb in [-270, -1000, -(1 << 20)] {
                            let given = format.encode(false, magnitude, lsb, rounding, overflow, subnormals);
                            assert_eq!(given, near, "{format} {magnitude:#x} · 2^{lsb} {rounding:?} {subnormals:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn from_f64_turns_nan_and_infinity_into_what_the_format_has() {
    for spec in NARROW {
        let format = spec.format;
        assert_eq!(format.from_f64(f64::NAN), format.nan().unwrap_or(0), "{format}");
        for (value, negative) in [(f64::INFINITY, false), (f64::NEG_INFINITY, true)] {
            let expected = format.infinity(negative).or(format.nan()).unwrap_or(format.largest(negative));
            assert_eq!(format.from_f64(value), expected, "{format}");
        }
    }
}
