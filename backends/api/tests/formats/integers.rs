//! Integer formats: saturation and rounding.

use mxprobe_api::{Decoded, Encoded, Format, Overflow, Rounding, Subnormals};

use super::naive::{OVERFLOWS, ROUNDINGS, SUBNORMALS};

/// Format, smallest, largest.
const INTEGERS: [(Format, i128, i128); 7] = [
    (Format::S4, -8, 7),
    (Format::U4, 0, 15),
    (Format::S8, -128, 127),
    (Format::U8, 0, 255),
    (Format::S16, -32_768, 32_767),
    (Format::S32, -2_147_483_648, 2_147_483_647),
    (Format::U32, 0, 4_294_967_295),
];

fn code(format: Format, value: i128) -> u64 {
    u64::try_from(value.rem_euclid(1 << format.bits())).expect("at most 32 bits")
}

fn encode(format: Format, negative: bool, magnitude: u128, lsb: i32, rounding: Rounding) -> Encoded {
    format.encode(negative, magnitude, lsb, rounding, Overflow::Ieee, Subnormals::Keep)
}

#[test]
fn every_integer_format_is_tested_here() {
    let integers: Vec<Format> = Format::ALL.into_iter().filter(|format| format.is_integer()).collect();
    assert_eq!(integers.len(), INTEGERS.len());
    assert!(INTEGERS.iter().all(|(format, ..)| integers.contains(format)));
}

/// Every value of formats of 16 bits or fewer; of 32-bit formats those near the ends, near 0 and some between.
fn values(smallest: i128, largest: i128) -> Vec<i128> {
    if largest - smallest < 1 << 16 {
        return (smallest..=largest).collect();
    }
    let mut values: Vec<i128> = (0..300).flat_map(|step| [smallest + step, largest - step]).collect();
    values.extend((-300..300).filter(|value| (smallest..=largest).contains(value)));
    values.extend((0..10_000).map(|step| smallest + step * ((largest - smallest) / 10_000)));
    values
}

#[test]
fn every_value_decodes_and_encodes_to_itself() {
    for (format, smallest, largest) in INTEGERS {
        for value in values(smallest, largest) {
            let bits = code(format, value);
            let expected = if value == 0 {
                Decoded::Zero { negative: false }
            } else {
                let significand = u64::try_from(value.unsigned_abs()).expect("at most 32 bits");
                Decoded::Finite { negative: value < 0, significand, exponent: 0 }
            };
            assert_eq!(format.decode(bits), expected, "{format} {value}");
            for rounding in ROUNDINGS {
                let given = encode(format, value < 0, value.unsigned_abs(), 0, rounding);
                let expected = Encoded { bits, inexact: false, overflow: false, underflow: false };
                assert_eq!(given, expected, "{format} {value}");
            }
            assert_eq!(format.from_f64(format.to_f64(bits)), bits, "{format} {value} through f64");
        }
        assert_eq!(format.largest(false), code(format, largest), "{format}");
        assert_eq!(format.largest(true), code(format, smallest), "{format}");
        assert_eq!(format.one(), 1, "{format}");
        assert_eq!((format.nan(), format.infinity(false), format.as_float()), (None, None, None), "{format}");
        assert_eq!(format.fraction_bits(), 0, "{format}");
    }
}

#[test]
fn a_magnitude_that_lies_wholly_below_one_is_compared_with_a_half() {
    let half = 1u128 << 127;
    // The lowest bit weighs 2^-128, so 2^127 is a half.
    for (magnitude, nearest) in [(half - 1, 0), (half, 0), (half + 1, 1), (3 << 126, 1), (u128::MAX, 1)] {
        for (format, ..) in INTEGERS {
            let given = encode(format, false, magnitude, -128, Rounding::NearestEven);
            let expected = Encoded { bits: nearest, inexact: true, overflow: false, underflow: false };
            assert_eq!(given, expected, "{format} {magnitude:#x} · 2^-128");
        }
    }
}

/// value / 8 rounded, in integers.
fn eighths(value: i128, rounding: Rounding) -> i128 {
    let (below, rest) = (value.div_euclid(8), value.rem_euclid(8));
    let up = match rounding {
        Rounding::NearestEven => rest > 4 || (rest == 4 && below % 2 != 0),
        Rounding::TowardZero => value < 0 && rest > 0,
        Rounding::Down => false,
        Rounding::Up => rest > 0,
        Rounding::ToOdd => rest > 0 && below % 2 == 0,
    };
    below + i128::from(up)
}

#[test]
fn eighths_round_in_every_direction_and_saturate() {
    for (format, smallest, largest) in INTEGERS {
        let near = |middle: i128| (8 * middle - 40)..=(8 * middle + 40);
        for value in near(smallest).chain(near(0)).chain(near(largest)) {
            for rounding in ROUNDINGS {
                let rounded = eighths(value, rounding);
                let kept = rounded.clamp(smallest, largest);
                let expected = Encoded {
                    bits: code(format, kept),
                    inexact: kept * 8 != value,
                    overflow: kept != rounded,
                    underflow: false,
                };
                for overflow in OVERFLOWS {
                    for subnormals in SUBNORMALS {
                        for shift in [0, 60] {
                            let given = format.encode(
                                value < 0,
                                value.unsigned_abs() << shift,
                                -3 - shift,
                                rounding,
                                overflow,
                                subnormals,
                            );
                            assert_eq!(given, expected, "{format} {value}/8 {rounding:?} {overflow:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn huge_and_tiny_magnitudes_saturate_and_round() {
    for (format, smallest, largest) in INTEGERS {
        for rounding in ROUNDINGS {
            for (magnitude, lsb) in [(1, 32), (1, 127), (1, 128), (1, 1 << 20), (u128::MAX, 0), (u128::MAX, 5)] {
                for (negative, limit) in [(false, largest), (true, smallest)] {
                    let given = encode(format, negative, magnitude, lsb, rounding);
                    let expected =
                        Encoded { bits: code(format, limit), inexact: true, overflow: true, underflow: false };
                    assert_eq!(given, expected, "{format} {negative} {magnitude:#x} · 2^{lsb} {rounding:?}");
                }
            }
            for (magnitude, lsb) in [(1, -2), (1, -127), (1, -128), (1, -129), (u128::MAX, -130), (1, -(1 << 20))] {
                let up = matches!(rounding, Rounding::Up | Rounding::ToOdd);
                let given = encode(format, false, magnitude, lsb, rounding);
                let expected = Encoded { bits: u64::from(up), inexact: true, overflow: false, underflow: false };
                assert_eq!(given, expected, "{format} {magnitude:#x} · 2^{lsb} {rounding:?}");
            }
            for lsb in [-1000, -128, 0, 127, 128, 1000] {
                for negative in [false, true] {
                    let given = encode(format, negative, 0, lsb, rounding);
                    let expected = Encoded { bits: 0, inexact: false, overflow: false, underflow: false };
                    assert_eq!(given, expected, "{format} 0 · 2^{lsb}");
                }
            }
        }
    }
}
