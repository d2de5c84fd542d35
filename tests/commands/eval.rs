//! `eval`: bits in, bits out, one line of output for each line of input.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
};

use super::{gemm::npy, model_file, mxprobe, say, say_to};

const AMX: [&str; 5] = ["eval", "--device", "sim:amx", "--op", "TDPBF16PS"];

#[test]
fn short_vectors_are_padded_with_zeros() {
    let input = concat!(
        r#"{"a":[],"b":[],"c":"0x3f800000"}"#,
        "\n",
        r#"{"a":["0x3f80","0x4000"],"b":["0x3f80","0x4000"],"c":"0x3f800000"}"#,
        "\n",
        r#"{ "c": "0xBF800000", "b": ["0x3F80"], "a": ["0x3f80"] }"#,
        "\n"
    );
    let said = say_to(&AMX, input.as_bytes()).ended(0);
    assert_eq!(said.out, "{\"d\":\"0x3f800000\"}\n{\"d\":\"0x40c00000\"}\n{\"d\":\"0x00000000\"}\n");
    assert_eq!(said.err, "");
}

#[test]
fn line_ends_of_every_kind_and_empty_lines_are_read() {
    let dot = r#"{"a":["0x3f80"],"b":["0x4000"],"c":"0x00000000"}"#;
    for input in [dot.to_owned(), format!("{dot}\r\n"), format!("\n\r\n  \n{dot}\n\n"), format!("{dot}\n")] {
        let said = say_to(&AMX, input.as_bytes()).ended(0);
        assert_eq!(said.out, "{\"d\":\"0x40000000\"}\n", "{input:?}");
    }
    assert_eq!(say_to(&AMX, b"").ended(0).out, "");
}

#[test]
fn many_dots_keep_their_order() {
    // Each of 4096 consecutive lines has a different answer.
    let dots = 20_000_u32;
    let mut input = String::new();
    let mut wanted = String::new();
    for at in 0..dots {
        let c = (at % 4096) << 12 | 0x3f80_0000;
        input += &format!("{{\"a\":[\"0x0000\"],\"b\":[\"0x3f80\"],\"c\":\"{c:#010x}\"}}\n");
        wanted += &format!("{{\"d\":\"{c:#010x}\"}}\n");
    }
    assert_eq!(say_to(&AMX, input.as_bytes()).ended(0).out, wanted);
}

#[test]
fn each_line_is_answered_before_the_next_one_is_asked() {
    let mut child = mxprobe(&AMX).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for c in ["0x3f800000", "0x40000000"] {
        writeln!(stdin, r#"{{"a":[],"b":[],"c":"{c}"}}"#).unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("{{\"d\":\"{c}\"}}\n"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_model_file_is_a_device() {
    let device = format!("sim:{}", model_file("amx.toml"));
    let dot = br#"{"a":["0x3f80"],"b":["0x4000"],"c":"0x3f800000"}"#;
    let said = say_to(&["eval", "--device", &device, "--op", "tdpbf16ps"], dot).ended(0);
    assert_eq!(said.out, "{\"d\":\"0x40400000\"}\n");
}

#[test]
fn integers_and_narrow_formats_have_their_own_width() {
    let said = say_to(
        &["eval", "--device", "sim:amx", "--op", "TDPBSSD"],
        br#"{"a":["0xff","0x02"],"b":["0x03","0x02"],"c":"0x00000000"}"#,
    )
    .ended(0);
    assert_eq!(said.out, "{\"d\":\"0x00000001\"}\n");
    let said = say_to(
        &["eval", "--device", "sim:rtx5090", "--op", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"],
        concat!(
            r#"{"a":["0x2"],"b":["0x4"],"c":"0x00000000","scale_a":["0x38"],"scale_b":["0x40"]}"#,
            "\n",
            r#"{"a":["0x2"],"b":["0x02"],"c":"0x00000000","scale_a":["0x38"],"scale_b":["0x40"]}"#
        )
        .as_bytes(),
    )
    .ended(2);
    assert_eq!(said.out, "{\"d\":\"0x40800000\"}\n");
    assert!(said.err.starts_with("error: line 2: b[0]: `0x02`"), "{}", said.err);
}

#[test]
fn scales_are_wanted_where_the_operation_has_them() {
    let arguments = ["eval", "--device", "sim:rtx5090", "--op", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"];
    let said = say_to(&arguments, br#"{"a":["0x2"],"b":["0x4"],"c":"0x00000000"}"#).ended(2);
    assert!(said.err.contains("scale_a and scale_b are missing"), "{}", said.err);
    let said =
        say_to(&arguments, br#"{"a":["0x2"],"b":["0x4"],"c":"0x00000000","scale_a":[],"scale_b":["0x40"]}"#).ended(2);
    assert!(said.err.contains("scale_a has 0 elements"), "{}", said.err);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = mxprobe(&AMX).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let _ = stdin.write_all(b"{\"a\":[],\"b\":[],\"c\":\"0x3f800000\"}\n");
    drop(stdin);
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!((child.wait().unwrap().code(), words.as_str()), (Some(0), ""));
}

#[test]
#[cfg_attr(not(amx_bf16), ignore = "this CPU has no AMX-BF16")]
fn amx_computes_what_its_model_computes() {
    computes_as("amx.m16n16k32.f32.bf16.bf16.f32", "sim:amx");
}

#[test]
#[cfg_attr(not(avx512_bf16), ignore = "this CPU has no AVX512-BF16")]
fn avx512_computes_what_its_model_computes() {
    computes_as("dot.m1n1k2.f32.bf16.bf16.f32", "sim:avx512");
}

/// Checks that the CPU gives the bits of a model for 2,000 dots of an operation.
#[track_caller]
fn computes_as(op: &str, model: &str) {
    let mut input = String::new();
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    for _ in 0..2_000 {
        let pair: Vec<u64> = (0..5).map(|_| next()).collect();
        let half = |bits: u64| format!("\"{:#06x}\"", bits & 0xffff);
        let (a, b) = (format!("{},{}", half(pair[0]), half(pair[1])), format!("{},{}", half(pair[2]), half(pair[3])));
        input += &format!("{{\"a\":[{a}],\"b\":[{b}],\"c\":\"{:#010x}\"}}\n", pair[4] & 0xffff_ffff);
    }
    let on_cpu = say_to(&["eval", "--device", "cpu:0", "--op", op], input.as_bytes()).ended(0);
    let by_model = say_to(&["eval", "--device", model, "--op", op], input.as_bytes()).ended(0);
    assert!(on_cpu.out == by_model.out, "{op}");
}

#[test]
fn values_are_read_beside_bits_as_texts_and_as_numbers() {
    let f16 = ["eval", "--device", "sim:h100", "--op", "mma.m16n8k16.f32.f16.f16.f32"];
    for (line, d) in [
        (r#"{"a":["1.0"],"b":["2^-24"],"c":"-0"}"#, "0x33800000"),
        (r#"{"a":[1.0],"b":[2],"c":0}"#, "0x40000000"),
        (r#"{"a":["0x3c00",1.5],"b":["1.5*2^-3","-2"],"c":"inf"}"#, "0x7f800000"),
        (r#"{"a":["nan"],"b":[1],"c":0}"#, "0x7fffffff"),
        (r#"{"a":[-1.5e0],"b":["1"],"c":"0x3f800000"}"#, "0xbf000000"),
    ] {
        let said = say_to(&f16, line.as_bytes()).ended(0);
        assert_eq!((said.out, said.err), (format!("{{\"d\":\"{d}\"}}\n"), String::new()), "{line}");
    }
    let integers = ["eval", "--device", "sim:amx", "--op", "TDPBSSD"];
    let said = say_to(&integers, br#"{"a":[-1,2],"b":[3,"0x02"],"c":100}"#).ended(0);
    assert_eq!(said.out, "{\"d\":\"0x00000065\"}\n");
}

#[test]
fn a_value_that_is_not_exact_is_rounded_to_nearest_even_and_told_once() {
    let f16 = ["eval", "--device", "sim:h100", "--op", "mma.m16n8k16.f32.f16.f16.f32"];
    let dots = "{\"a\":[1],\"b\":[0.1],\"c\":0}\n{\"a\":[1],\"b\":[0.2],\"c\":0.3}\n";
    let said = say_to(&f16, dots.as_bytes()).ended(0);
    assert_eq!(said.out.lines().next(), Some("{\"d\":\"0x3dccc000\"}"));
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    let told = "note: b[0]: `0.1` is not exact in f16: rounded to nearest even, 0.0999755859375 (0x2e66)";
    assert!(said.err.starts_with(told), "{}", said.err);
    let quiet = say_to(&[&f16[..], &["-q"]].concat(), dots.as_bytes()).ended(0);
    assert_eq!((quiet.out, quiet.err), (said.out, String::new()));
}

#[test]
fn a_value_that_the_format_lacks_is_refused() {
    for (op, line, words) in [
        ("TDPBSSD", r#"{"a":[1.5],"b":[1],"c":0}"#, "a[0]: `1.5` is not an integer, and s8 has only integers"),
        ("TDPBSSD", r#"{"a":[1],"b":["200"],"c":0}"#, "b[0]: `200` is out of range: s8 goes from -128 to 127"),
        ("TDPBF16PS", r#"{"a":["one"],"b":[1],"c":0}"#, "a[0]: `one`"),
        ("TDPBF16PS", r#"{"a":[1],"b":[1],"c":null}"#, "c: `null` is neither a number nor a text"),
    ] {
        let said = say_to(&["eval", "--device", "sim:amx", "--op", op], line.as_bytes()).ended(2);
        assert!(said.err.contains(words), "{line}: {}", said.err);
    }
}

#[test]
fn arrays_have_the_answers_of_lines() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, c, d] = ["a.npy", "b.npy", "c.npy", "d.npy"].map(|name| folder.path().join(name));
    let [a, b, c, d] = [&a, &b, &c, &d].map(|path| path.to_str().unwrap());
    // More than are computed in one call.
    let dots = 140_000_u32;
    let half = |at: u32| u16::try_from(0x3c00 + at % 0x5a3).unwrap();
    let (mut of_a, mut of_b, mut of_c, mut lines) = (Vec::new(), Vec::new(), Vec::new(), String::new());
    for at in 0..dots {
        let (x, y) = ([half(at), half(at * 7), half(at * 11)], [half(at * 3), half(at * 5), half(at * 13)]);
        let z = 0x4000_0000 + at * 97;
        of_a.extend(x.iter().flat_map(|bits| bits.to_le_bytes()));
        of_b.extend(y.iter().flat_map(|bits| bits.to_le_bytes()));
        of_c.extend(z.to_le_bytes());
        let list = |bits: [u16; 3]| bits.map(|bits| format!("\"{bits:#06x}\"")).join(",");
        lines += &format!("{{\"a\":[{}],\"b\":[{}],\"c\":\"{z:#010x}\"}}\n", list(x), list(y));
    }
    let op = ["eval", "--device", "h100", "--op", "mma.m16n8k8.f32.f16.f16.f32"];
    std::fs::write(a, npy("<u2", "(140000, 3)", &of_a)).unwrap();
    std::fs::write(b, npy("<f2", "(140000, 3)", &of_b)).unwrap();
    std::fs::write(c, npy("<f4", "(140000,)", &of_c)).unwrap();
    let files = ["--a", a, "--b", b, "--c", c, "--out", d, "--bits"];
    let said = say(&[&op[..], &files].concat()).ended(0);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("", ""));
    let answered = std::fs::read(d).unwrap();
    let header = answered.len() - 4 * dots as usize;
    assert!(String::from_utf8_lossy(&answered[..header]).contains("(140000,)"));
    let bits = answered[header..].as_chunks().0.iter().map(|bits| u32::from_le_bytes(*bits));
    let found: String = bits.map(|bits| format!("{{\"d\":\"{bits:#010x}\"}}\n")).collect();
    assert!(say_to(&op, lines.as_bytes()).ended(0).out == found);
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, descr: &str, shape: &str, length: usize| -> String {
        let path = folder.path().join(name);
        std::fs::write(&path, npy(descr, shape, &vec![0; length])).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let d = folder.path().join("d.npy").to_str().unwrap().to_owned();
    let two = write("two.npy", "<f2", "(2, 8)", 32);
    let three = write("three.npy", "<f2", "(3, 8)", 48);
    let wide = write("wide.npy", "<f2", "(2, 9)", 36);
    let row = write("row.npy", "<f2", "(16,)", 32);
    let words = write("words.npy", "<u4", "(2, 8)", 64);
    let complex = write("complex.npy", "<c8", "(2, 8)", 128);
    let cut = write("cut.npy", "<f2", "(2, 8)", 30);
    let op = ["eval", "--device", "h100", "--op", "mma.m16n8k8.f32.f16.f16.f32"];
    for (a, b, c, wanted) in [
        (&two, &three, None, "three.npy` has 3"),
        (&wide, &two, None, "rows of 9 elements, but k of mma.m16n8k8.f32.f16.f16.f32 is 8"),
        (&row, &two, None, "shape 16, but 2 dimensions are needed: n×k"),
        (&two, &words, None, "unsigned integers of 4 bytes, but the bits of f16 take 2"),
        (&two, &complex, None, "unsupported element type"),
        (&two, &cut, None, "it ends before element 16: 15 were read"),
        (&two, &two, Some(&two), "shape 2×8, but 1 dimension is needed: n"),
        (&two, &two, Some(&row), "row.npy` has 16"),
    ] {
        let c = c.map_or(Vec::new(), |c| vec!["--c", c.as_str()]);
        let said = say(&[&op[..], &["--a", a, "--b", b, "--out", &d], &c].concat()).ended(2);
        assert!(said.err.starts_with("error: ") && said.err.contains(wanted), "{wanted}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    let scaled = ["eval", "--device", "rtx5090", "--op", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"];
    let said = say(&[&scaled[..], &["--a", &two, "--b", &two, "--out", &d]].concat()).ended(2);
    assert!(said.err.contains("takes block scales"), "{}", said.err);
    say(&[&op[..], &["--a", &two]].concat()).ended(2);
}
