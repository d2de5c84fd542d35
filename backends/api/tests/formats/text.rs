//! Names and hexadecimal.

use mxprobe_api::Format;

#[test]
fn every_format_is_found_by_its_name() {
    for format in Format::ALL {
        assert_eq!(Format::named(format.name()), Ok(format));
        assert_eq!(format.to_string(), format.name());
    }
    for name in ["", "fp8", "F32", "e4m3fn", "f32 ", "e4"] {
        let error = Format::named(name).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(&format!("`{name}`")), "{error}");
        assert!(error.to_string().contains("e4m3fnuz"), "the formats are listed: {error}");
    }
}

#[test]
fn names_widths_and_sizes_are_those_of_the_formats() {
    let table = [
        ("f64", 64, 8),
        ("f32", 32, 4),
        ("tf32", 32, 4),
        ("xf32", 32, 4),
        ("bf16", 16, 2),
        ("f16", 16, 2),
        ("e4m3", 8, 1),
        ("e5m2", 8, 1),
        ("e4m3fnuz", 8, 1),
        ("e5m2fnuz", 8, 1),
        ("e3m2", 6, 1),
        ("e2m3", 6, 1),
        ("e2m1", 4, 1),
        ("ue8m0", 8, 1),
        ("ue4m3", 8, 1),
        ("s8", 8, 1),
        ("u8", 8, 1),
        ("s4", 4, 1),
        ("u4", 4, 1),
        ("s16", 16, 2),
        ("s32", 32, 4),
        ("u32", 32, 4),
    ];
    let given = Format::ALL.map(|format| (format.name(), format.bits(), format.storage_bytes()));
    assert_eq!(given, table);
}

#[test]
fn hexadecimal_is_read_as_it_is_written() {
    for format in Format::ALL {
        let some = [0, 1, format.mask(), format.mask() >> 1, format.one(), format.largest(true), format.largest(false)];
        let all: Vec<u64> = if format.bits() <= 16 { (0..=format.mask()).collect() } else { some.to_vec() };
        for bits in all {
            let text = format.hex(bits);
            assert_eq!(text.len(), 2 + format.bits().div_ceil(4) as usize, "{format} {text}");
            assert_eq!(format.parse_hex(&text), Ok(bits), "{format} {text}");
            let upper = format!("0x{}", text[2..].to_uppercase());
            assert_eq!(format.parse_hex(&upper), Ok(bits), "{format} {upper}");
        }
    }
}

#[test]
fn hexadecimal_has_full_width_and_lower_case() {
    let table = [
        (Format::F64, 0x3ff0_0000_0000_000a, "0x3ff000000000000a"),
        (Format::F32, 0x1, "0x00000001"),
        (Format::BF16, 0xffc0, "0xffc0"),
        (Format::E4M3, 0x7e, "0x7e"),
        (Format::E3M2, 0x3f, "0x3f"),
        (Format::E2M1, 0x9, "0x9"),
        (Format::S4, 0xf, "0xf"),
    ];
    for (format, bits, text) in table {
        assert_eq!(format.hex(bits), text);
    }
    // Bits above the width are not written.
    assert_eq!(Format::E2M1.hex(0x39), "0x9");
}

#[test]
fn malformed_hexadecimal_is_refused_with_the_text() {
    let table = [
        (Format::F32, ""),
        (Format::F32, "3f800000"),
        (Format::F32, "0X3f800000"),
        (Format::F32, "0x"),
        (Format::F32, "0x3f80"),
        (Format::F32, "0x3f8000000"),
        (Format::F32, "0x3f80000g"),
        (Format::F32, "0x+3f80000"),
        (Format::F32, "0x-3f80000"),
        (Format::F32, "0x3f8_0000"),
        (Format::F32, " 0x3f800000"),
        (Format::F32, "0x3f800000 "),
        (Format::F32, "0x３f80000"),
        (Format::E3M2, "0x40"),
        (Format::E2M3, "0xff"),
        (Format::E2M1, "0x09"),
        (Format::F64, "0x3ff00000000000000"),
    ];
    for (format, text) in table {
        let error = format.parse_hex(text).unwrap_err();
        assert!(error.is_invalid(), "{error}");
        assert!(error.to_string().starts_with(&format!("`{text}` is not valid {format}: ")), "{error}");
    }
}
