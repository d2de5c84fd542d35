//! Progress on standard error: at a terminal, and in a pipe.

use std::{fs::File, io::Read, process::Stdio, thread};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use super::{mxprobe, say};

/// The text that a command writes to standard error if that is a terminal of this many columns.
fn at_terminal(arguments: &[&str], columns: u16) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = File::options().read(true).write(true).open(name).unwrap();
    let mut child = mxprobe(arguments).env("TERM", "xterm").stdout(Stdio::null()).stderr(side).spawn().unwrap();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // Reading from a terminal ends with an error once the last writer has closed it.
        let _ = File::from(terminal).read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    });
    child.wait().unwrap();
    reader.join().unwrap()
}

/// The lines, drawn one over the other, as a terminal shows them.
fn drawn(text: &str) -> Vec<String> {
    let plain = |line: &str| {
        let mut parts = line.split('\u{1b}');
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str(
                part.trim_start_matches('[').trim_start_matches(|c: char| c.is_ascii_digit()).get(1..).unwrap_or(""),
            );
        }
        out
    };
    text.split(['\r', '\n']).map(plain).filter(|line| !line.trim().is_empty()).collect()
}

#[test]
fn a_terminal_shows_one_line_with_a_bar_that_never_wraps_and_is_gone_at_the_end() {
    for columns in [80, 30] {
        let text = at_terminal(&["run", "--device", "sim:amx", "--device", "sim:v100", "--probe", "order"], columns);
        let lines = drawn(&text);
        assert!(lines.len() > 1, "{text:?}");
        let begins = if columns < 60 { "0123456789" } else { "[" };
        for line in &lines {
            assert!(
                line.starts_with(|first| begins.contains(first)) && line.chars().count() <= usize::from(columns),
                "{line:?} in {text:?}"
            );
        }
        assert!(lines.iter().any(|line| line.contains("0/")), "{lines:?}");
        assert!(!text.contains('\n'), "{text:?}");
        assert!(text.trim_end_matches('\r').ends_with("\u{1b}[2K"), "the line is cleared: {text:?}");
        assert_eq!(at_terminal(&["run", "--device", "sim:amx", "--probe", "order", "-q"], columns), "");
    }
}

#[test]
fn every_command_that_works_for_long_says_so_at_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (model, d) = (path("m.toml"), path("d.npy"));
    let op = "dot.m1n1k4.s32.u8.s8.s32";
    let commands: [&[&str]; 9] = [
        &["run", "--device", "sim:avx512", "--probe", "order"],
        &["identify", "--device", "sim:avx512", "--op", op, "--out", &model],
        &["verify", "--device", "sim:avx512", "--model", "avx512", "--count", "1000"],
        &["conformance", "--device", "sim:avx512", "--op", op],
        &["distinguish", "v100", "a100", "--op", "mma.m8n8k4.f32.f16.f16.f32"],
        &["gemm", "--device", "sim:v100", "--experiment", "growth", "--exponents", "4,5"],
        &["gemm", "--device", "sim:amx", "--experiment", "yardstick", "--size", "16", "--rounds", "1"],
        &["gemm", "--device", "sim:v100", "--experiment", "smallest-block", "--exponents", "6,6"],
        &["gemm", "--device", "sim:amx", "--op", "TDPBF16PS", "--random", "32,32,32", "--out", &d],
    ];
    for arguments in commands {
        let text = at_terminal(arguments, 80);
        assert!(text.contains("[....................] 0/"), "{arguments:?}: {text:?}");
        assert_eq!(at_terminal(&[arguments, &["-q"]].concat(), 80), "", "{arguments:?}");
    }
}

#[test]
fn the_page_that_grows_above_the_bar_does_not_say_that_the_run_was_interrupted() {
    let text = at_terminal(&["run", "--device", "sim:amx"], 120);
    let lines = drawn(&text);
    assert!(lines.iter().any(|line| line.contains("sums of")), "no page was drawn: {lines:?}");
    assert!(!text.contains("interrupted"), "{text:?}");
}

#[test]
fn a_pipe_gets_no_line_for_what_takes_a_moment() {
    let run = ["run", "--device", "sim:avx512", "--op", "*.s8.s32*", "--probe", "self_test"];
    assert_eq!(say(&run).ended(0).err, "");
}
