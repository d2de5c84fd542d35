//! `tolerance` and `check`: bounds, intervals, elements outside of them, exit codes, and errors.
#![allow(
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    reason = "ends of intervals are exact, and values that f32 holds"
)]

use super::{
    gemm::{file, npy},
    say, say_to,
};

const H100: [&str; 4] = ["--model", "h100", "--op", "mma.m16n8k16.f32.f16.f16.f32"];

fn json(arguments: &[&str]) -> serde_json::Value {
    let said = say(&[&["tolerance", "--format", "json"], arguments].concat()).ended(0);
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn a_bound_counts_what_is_truncated_and_says_how_near_the_worst_input_comes() {
    let found = json(&[&H100[..], &["--k", "16", "--order", "chain", "--search", "5000"]].concat());
    // Sixteen terms below the grid lose less than 2^-25 each, and the result less than 2^-23.
    let gamma = found["bound"]["relative_to_magnitudes"].as_f64().unwrap();
    assert!((gamma * 2f64.powi(23) - 5.0).abs() < 1e-6, "{gamma:e}");
    let positive = &found["bound"]["by_signs"][0];
    assert_eq!((&positive["signs"], &positive["above_relative"]), (&"positive".into(), &0.0.into()));
    let within = found["worst"]["within"].as_f64().unwrap();
    assert!((1.0..4.0).contains(&within), "{within}");
    let said = say(&[&["tolerance", "--k", "16", "--order", "chain", "--search", "5000"], &H100[..]].concat()).ended(0);
    assert!(said.out.contains("the worst of 5000 inputs comes within "), "{}", said.out);
    // The bound of longer sums is larger, and that of any order larger still.
    let of = |more: &[&str]| {
        let found = json(&[&H100[..], &["--search", "0"], more].concat());
        found["bound"]["relative_to_magnitudes"].as_f64().unwrap()
    };
    let (chain, any) = (of(&["--k", "4096", "--order", "chain"]), of(&["--k", "4096"]));
    assert!(gamma < chain && chain < any && of(&["--order", "chain"]) == gamma, "{chain} {any}");
}

fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn elements_outside_of_their_intervals_are_named_with_their_distance() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b, d, low, high] = ["a.npy", "b.npy", "d.npy", "low.npy", "high.npy"].map(|name| file(&folder, name));
    // A has a row of 32 thirds and a row of alternating 1 and -1, B a column of ones and a column of thirds.
    let thirds: Vec<u8> = [0x3555u16; 32].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let signs: Vec<u8> = [0x3c00u16, 0xbc00].iter().cycle().take(32).flat_map(|bits| bits.to_le_bytes()).collect();
    std::fs::write(&a, npy("<f2", "(2, 32)", &[thirds, signs].concat())).unwrap();
    let columns: Vec<u8> = (0..32).flat_map(|_| [0x3c00u16, 0x3555]).flat_map(u16::to_le_bytes).collect();
    std::fs::write(&b, npy("<f2", "(32, 2)", &columns)).unwrap();
    let files = ["--a", &a, "--b", &b];
    let found = json(&[&H100[..], &files, &["--search", "0", "--low", &low, "--high", &high]].concat());
    let elements = found["elements"].as_array().unwrap();
    assert_eq!(elements.len(), 4);
    // Sums of 32 thirds are exact in any order, as all fit into the bits that are kept; those of their squares do not.
    let third = 1365.0 / 4096.0;
    let (of_thirds, of_squares) = (32.0 * third, 32.0 * third * third);
    let end = |at: usize, name: &str| elements[at][name].as_f64().unwrap();
    assert_eq!([end(0, "low"), end(0, "exact"), end(0, "high")], [of_thirds; 3], "{elements:?}");
    assert_eq!(end(1, "exact"), of_squares);
    assert!(end(1, "low") < of_squares && end(1, "high") >= of_squares, "{elements:?}");
    assert_eq!(std::fs::read(&low).unwrap().len(), std::fs::read(&high).unwrap().len());
    let judge = |values: &[f32], more: &[&str], code: i32| {
        std::fs::write(&d, npy("<f4", "(2, 2)", &singles(values))).unwrap();
        say(&[&["check", "--d", &d], &H100[..], &files, more].concat()).ended(code)
    };
    let right = [of_thirds as f32, of_squares as f32, 0.0, 0.0];
    assert!(judge(&right, &[], 0).out.contains("outside their intervals: 0 of 4 elements"));
    let zeros = judge(&[0.0; 4], &["--format", "json"], 1);
    let zeros: serde_json::Value = serde_json::from_str(&zeros.out).unwrap();
    let outside = zeros["outside"].as_array().unwrap();
    assert_eq!(outside.len(), 2);
    assert_eq!((&outside[0]["row"], &outside[1]["column"]), (&0.into(), &1.into()));
    // If only one value is admissible, the distance cannot be counted in tolerances.
    assert!(outside[0]["beyond"].as_f64().unwrap() > 10.0 && outside[0]["times_tolerance"].is_null(), "{outside:?}");
    assert!(outside[1]["times_tolerance"].as_f64().unwrap() > 1e3, "{outside:?}");
    let said = judge(&[right[0], 4.0, 0.0, f32::NAN], &[], 1).out;
    assert!(
        said.contains("outside their intervals: 2 of 4 elements")
            && said.contains("D[0, 1]")
            && said.contains("D[1, 1]"),
        "{said}"
    );
    // In the given order only the unit's own bits are right.
    judge(&right, &["--order", "given"], 0);
    judge(&[f32::from_bits(right[0].to_bits() + 1), right[1], 0.0, 0.0], &["--order", "given"], 1);
}

#[test]
fn dots_have_intervals_too_and_specials_are_said() {
    let lines = br#"{"a":[1,1],"b":[1,-1],"c":0.5}
{"a":["0x7c00"],"b":[0],"c":0}
{"a":["0x7c00"],"b":[1],"c":0}
"#;
    let more = ["tolerance", "--dots", "-", "--search", "0", "--format", "json"];
    let said = say_to(&[&more, &H100[..]].concat(), lines).ended(0);
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let elements = found["elements"].as_array().unwrap();
    let kinds: Vec<_> = elements.iter().map(|element| element["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["within", "nan", "within"]);
    assert_eq!(elements[0]["exact"].as_f64().unwrap(), 0.5);
    assert_eq!(elements[2]["low_bits"], "0x7f800000");
}

#[test]
fn what_cannot_be_bounded_or_read_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.npy", "b.npy"].map(|name| file(&folder, name));
    std::fs::write(&a, npy("<f4", "(1, 2)", &singles(&[1.0, 0.1]))).unwrap();
    std::fs::write(&b, npy("<f4", "(3, 1)", &singles(&[1.0, 1.0, 1.0]))).unwrap();
    for (more, what) in [
        (&["--a", &a, "--b", &b][..], "A[0, 1] is 1.0000000149011612e-1, which f16 does not hold exactly"),
        (&["--a", &b, "--b", &b], "A is 3×1, but B is 3×1"),
        (&["--order", "every"], "every"),
        (&["--k", "0"], "0"),
    ] {
        let said = say(&[&["tolerance"], &H100[..], more].concat()).ended(2);
        assert!(said.err.contains(what) && said.out.is_empty(), "{more:?}: {}", said.err);
    }
    let said = say(&["tolerance", "--model", "v100", "--op", "mma.m8n8k4.f32.f16.f16.f16", "--k", "8"]).ended(2);
    assert!(said.err.contains("cannot be the next one's c"), "{}", said.err);
    let said = say(&["tolerance", "--model", "h100", "--op", "mma.m16n8k32.s32.s8.s8.s32"]).ended(0);
    assert!(said.out.contains("exact in every order"), "{}", said.out);
}
