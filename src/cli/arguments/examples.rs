//! Examples for the help of each command.

use clap::Command;

/// A command, with example calls and the purpose of each.
type Examples = (&'static str, [(&'static str, &'static str); 2]);

/// Two example calls for each command, in the order of the help.
const EXAMPLES: [Examples; 26] = [
    (
        "mxprobe",
        [
            ("mxprobe", "probe every matrix unit of this machine"),
            (
                "mxprobe run --device 'RTX 4090' --op fp8",
                "how a card multiplies fp8: the card itself if present, otherwise its model",
            ),
        ],
    ),
    (
        "run",
        [
            ("mxprobe run --device cuda:0 --out gpu.json", "probe a GPU and save the report"),
            (
                "mxprobe run --device h100 --op 'f16->f32' --probe alignment",
                "one question about some operations of a model",
            ),
        ],
    ),
    (
        "list",
        [
            ("mxprobe list", "the devices of this machine, and why others cannot be used"),
            ("mxprobe list -v --device mi300x", "every operation of a model"),
        ],
    ),
    (
        "identify",
        [
            ("mxprobe identify --device cuda:0 --op fp8 --out mine.toml", "write the model of a GPU's fp8 units"),
            ("mxprobe identify --device 'exec:python3 worker.py' --out mine.toml", "the same for a program"),
        ],
    ),
    (
        "verify",
        [
            ("mxprobe verify --device cuda:0 --model h100", "a GPU against a shipped model, bit for bit"),
            (
                "mxprobe verify --device a100 --model ./mine.toml --op fp16 --count 100000",
                "a model against a model file",
            ),
        ],
    ),
    (
        "eval",
        [
            (
                "echo '{\"a\":[1.5],\"b\":[2],\"c\":0}' | mxprobe eval --device h100 --op m16n8k16.f32.f16.f16.f32",
                "one dot, given as values",
            ),
            (
                "mxprobe eval --device cuda:0 --op m16n8k16.f32.f16.f16.f32 < dots.jsonl",
                "every line of a file, on a GPU",
            ),
        ],
    ),
    (
        "gemm",
        [
            (
                "mxprobe gemm --device h100 --op m16n8k16.f32.f16.f16.f32 --a a.npy --b b.npy --out d.npy",
                "multiply two NumPy matrices as an H100 does",
            ),
            (
                "mxprobe gemm --device h100 --experiment growth --exponents 6,10 --svg growth.svg",
                "how the error grows with the length of sums",
            ),
        ],
    ),
    (
        "invariance",
        [
            (
                "mxprobe invariance --device 'exec:python3 matmul.py' --shapes 1x64x256,16x64x256",
                "is row 0 the same alone and in a batch of 16?",
            ),
            (
                "mxprobe invariance --device 'exec:python3 matmul.py' --shapes 1x64x256,16x64x256 --recipes",
                "the same, and which recipe makes it so",
            ),
        ],
    ),
    (
        "tolerance",
        [
            (
                "mxprobe tolerance --model h100 --op m16n8k16.f32.f16.f16.f32 --k 4096 --order chain",
                "how far a sum of 4,096 products may be off",
            ),
            (
                "mxprobe tolerance --model l40s --op m16n8k16.f32.f16.f16.f32 --a a.npy --b b.npy",
                "the interval that each element of a product must fall in",
            ),
        ],
    ),
    (
        "check",
        [
            (
                "mxprobe check --model l40s --op m16n8k16.f32.f16.f16.f32 --a a.npy --b b.npy --d d.npy",
                "is this what such a unit gives, in any order?",
            ),
            (
                "mxprobe check --model fma-chain --op dot.m1n1k4.f32.f32.f32.f32 --a a.npy --b b.npy --d d.npy",
                "the same for a product on a CPU",
            ),
        ],
    ),
    (
        "bench",
        [
            ("mxprobe bench --device cuda:0 --out bench.json", "the throughput of every operation"),
            ("mxprobe bench --device cpu:0 --op int8", "that of a few operations"),
        ],
    ),
    (
        "screen",
        [
            ("mxprobe screen --budget 5s", "every unit of this machine, each core separately"),
            (
                "mxprobe screen --device h100 --op f16 --budget 1s --error-inject bit=0,lane=5",
                "what a fault looks like: one bit of one lane of a model",
            ),
        ],
    ),
    (
        "conformance",
        [
            (
                "mxprobe conformance --device 'exec:python3 worker.py'",
                "check a program that speaks the device protocol",
            ),
            ("mxprobe conformance --device cuda:0 --op fp8", "check a driver"),
        ],
    ),
    (
        "distinguish",
        [
            (
                "mxprobe distinguish a100 h100 --op m16n8k16.f32.f16.f16.f32",
                "a dot on which two units differ, or the proof that none exists",
            ),
            (
                "mxprobe distinguish h100 mi300x --op mma.m16n8k16.f32.f16.f16.f32 --finite",
                "across vendors, matched by formats and k, on finite inputs",
            ),
        ],
    ),
    (
        "report",
        [
            ("mxprobe report gpu.json", "a saved report as a table"),
            ("mxprobe report gpu.json --format html --out gpu.html", "the same as a web page"),
        ],
    ),
    (
        "compare",
        [
            ("mxprobe compare a100 h100 mi300x", "how three units add, by their models"),
            ("mxprobe compare before.json after.json", "did a driver change a result?"),
        ],
    ),
    (
        "fleet",
        [
            ("mxprobe fleet reports/", "classes of equal behaviour, and the machines that deviate"),
            ("mxprobe fleet reports/ --since last.json --out now.json", "also what changed since the last time"),
        ],
    ),
    (
        "merge",
        [
            ("mxprobe merge 0.json 1.json 2.json --out all.json", "three shards as the report of one run"),
            ("mxprobe merge 0.json 1.json --out all.json --model mine.toml", "shards of identify, and its model"),
        ],
    ),
    (
        "site",
        [
            ("mxprobe site pages", "pages about every model, with the matrix of all units"),
            ("mxprobe site pages results", "the same with the reports of a directory"),
        ],
    ),
    (
        "papers",
        [
            ("mxprobe papers", "every number of every paper, and why some differ"),
            ("mxprobe papers fasi-2021 --device cuda:0", "the tests of one paper, on a GPU"),
        ],
    ),
    ("explain", [("mxprobe explain RNE", "a term"), ("mxprobe explain '13 bits'", "a phrase from the literature")]),
    (
        "schema",
        [
            ("mxprobe schema", "the JSON Schema of reports"),
            ("mxprobe schema bench", "that of the output of `bench --format json`"),
        ],
    ),
    (
        "validate",
        [
            ("mxprobe validate gpu.json", "check a saved report"),
            ("mxprobe run --device a100 --format json | mxprobe validate -", "check one without saving it"),
        ],
    ),
    (
        "completions",
        [
            ("mxprobe completions bash > ~/.local/share/bash-completion/completions/mxprobe", "for bash"),
            ("mxprobe completions zsh > ~/.zfunc/_mxprobe", "for zsh"),
        ],
    ),
    (
        "man",
        [
            ("mxprobe man > mxprobe.1", "the manual page of mxprobe"),
            ("mxprobe man eval | man -l -", "read the page of a command"),
        ],
    ),
    (
        "worker",
        [
            ("mxprobe run --device 'exec:ssh HOST mxprobe worker'", "probe the hardware of another machine"),
            ("mxprobe worker --backend cuda", "offer the devices of one backend"),
        ],
    ),
];

/// Returns the example calls of a command.
pub(crate) fn examples(command: &str) -> impl Iterator<Item = &'static str> {
    let found = EXAMPLES.iter().find(|(name, _)| *name == command);
    found.into_iter().flat_map(|(_, calls)| calls.iter().map(|(call, _)| *call))
}

/// Puts the examples of each command into its help, before the existing text after it.
pub(super) fn shown(command: Command) -> Command {
    let mut command = below(command, "mxprobe");
    for (name, _) in EXAMPLES {
        if command.find_subcommand(name).is_some() {
            command = command.mut_subcommand(name, |command| below(command, name));
        }
    }
    command
}

fn below(command: Command, name: &str) -> Command {
    let Some((_, calls)) = EXAMPLES.iter().find(|(known, _)| *known == name) else { return command };
    let mut text = "Examples:".to_owned();
    for (call, purpose) in calls {
        text += &format!("\n  {call}\n      {purpose}");
    }
    if let Some(more) = command.get_after_help() {
        text += &format!("\n\n{more}");
    }
    command.after_help(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments;

    #[test]
    fn every_command_has_two_examples_that_its_help_shows() {
        let command = arguments::command();
        let of_whole = command.get_after_help().expect("examples").to_string();
        assert!(of_whole.contains("Examples:\n  mxprobe\n") && of_whole.contains("Exit codes:"), "{of_whole}");
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            assert_eq!(examples(name).count(), 2, "{name}");
            let help = command.get_after_help().expect(name).to_string();
            assert!(examples(name).all(|call| help.contains(&format!("\n  {call}\n"))), "{name}: {help}");
        }
    }

    #[test]
    fn every_example_is_a_call_that_is_understood() {
        for (name, calls) in EXAMPLES {
            for (call, _) in calls {
                assert!(call.len() <= 96, "{name}: `{call}` would be wrapped");
                let call = call.split(" > ").flat_map(|part| part.split(" < ")).next().unwrap_or(call);
                // `man` itself is not a call of this program.
                let parts = call.split(" | ").filter(|part| part.starts_with("mxprobe"));
                let mut understood = 0;
                for part in parts {
                    let words = shlex::split(part).expect(part);
                    arguments::command().try_get_matches_from(words).unwrap_or_else(|error| panic!("{part}: {error}"));
                    understood += 1;
                }
                assert!(understood > 0 && call.contains("mxprobe"), "{name}: {call}");
            }
        }
    }
}
