//! `--help`: two examples of each command. Tests in `src/cli/arguments/examples.rs` check that each of them parses.

use super::{say, say_to};

const COMMANDS: [&str; 21] = [
    "run",
    "list",
    "identify",
    "verify",
    "eval",
    "gemm",
    "tolerance",
    "check",
    "bench",
    "screen",
    "conformance",
    "distinguish",
    "report",
    "compare",
    "fleet",
    "explain",
    "schema",
    "validate",
    "completions",
    "man",
    "worker",
];

/// The command lines below `Examples:`.
fn examples(help: &str) -> Vec<String> {
    let (_, below) = help.split_once("Examples:\n").expect("there are examples");
    let calls = below.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    calls.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn the_help_of_each_command_shows_two_examples() {
    for command in COMMANDS {
        let calls = examples(&say(&[command, "--help"]).ended(0).out);
        assert_eq!(calls.len(), 2, "{command}: {calls:?}");
        assert!(calls.iter().all(|call| call.contains("mxprobe ")), "{command}: {calls:?}");
    }
    let whole = say(&["--help"]).ended(0).out;
    assert_eq!(examples(&whole).len(), 2, "{whole}");
    for command in COMMANDS {
        assert!(whole.contains(&format!("\n  {command} ")), "{command} is not in the list");
    }
}

#[test]
fn examples_that_need_neither_hardware_nor_files_run() {
    let mut ran = 0;
    for command in ["list", "explain", "schema"] {
        for call in examples(&say(&[command, "--help"]).ended(0).out) {
            let words = shlex::split(&call).expect("words");
            let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            assert!(!say(&words).ended(0).out.is_empty(), "{call}");
            ran += 1;
        }
    }
    let calls = examples(&say(&["eval", "--help"]).ended(0).out);
    let words = shlex::split(&calls[0]).expect("words");
    let (echo, rest) = words.split_at(2);
    assert_eq!((echo[0].as_str(), &rest[..2]), ("echo", &["|".to_owned(), "mxprobe".to_owned()][..]));
    let rest: Vec<&str> = rest[2..].iter().map(String::as_str).collect();
    assert_eq!(say_to(&rest, echo[1].as_bytes()).ended(0).out, "{\"d\":\"0x40400000\"}\n");
    assert_eq!(ran, 6);
}
