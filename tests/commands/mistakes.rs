//! A newcomer's mistakes: each is answered by one sentence that names the right thing.

use std::{fs, path::Path};

use super::{model_file, say, say_to};

/// A command line, its standard input, its exit code, and text that its first line contains. `{}` is a folder of files.
struct Mistake {
    line: &'static str,
    input: &'static str,
    code: i32,
    says: &'static str,
}

const fn mistake(line: &'static str, says: &'static str) -> Mistake {
    Mistake { line, input: "", code: 2, says }
}

const fn with_input(line: &'static str, input: &'static str, says: &'static str) -> Mistake {
    Mistake { line, input, code: 2, says }
}

const F16: &str = "mma.m16n8k16.f32.f16.f16.f32";

const MISTAKES: [Mistake; 64] = [
    // A device, or something else, in place of a command.
    mistake("h100", "no command `h100`; did you mean `mxprobe run --device h100`?"),
    mistake("'RTX 4090'", "no command `RTX 4090`; did you mean `mxprobe run --device 'RTX 4090'`?"),
    mistake("{}/report.json", "did you mean `mxprobe report {}/report.json`?"),
    mistake("rum", "no command `rum`; did you mean `run`?"),
    mistake("benchmark", "no command `benchmark`; the commands are run, list"),
    mistake("man rnu", "no command `rnu`; the commands are run, list"),
    // Options.
    mistake("--gpu 0", "no option `--gpu`; did you mean `--device cuda:0`?"),
    mistake("run --devcie h100", "no option `--devcie`; did you mean `--device`?"),
    mistake("run --output x.json", "no option `--output`; did you mean `--out`?"),
    mistake("identify --device h100 -o x.toml", "no option `-o`; did you mean `--out`?"),
    mistake("run --json", "no option `--json`; did you mean `--format json`?"),
    mistake("run h100", "`run` takes a device as an option: `--device h100`"),
    mistake("run --device h100 fp8", "`run` takes an operation as an option: `--op fp8`"),
    mistake("list now", "`list` takes no argument `now`"),
    mistake("--device h100 list", "options of `run` and of devices go after the command"),
    mistake("run --device", "`--device SELECTOR` has no value"),
    // Devices and models.
    mistake("run --device h10", "no device `h10`; did you mean `sim:h100`?"),
    mistake("run --device sim:h10", "no model `h10`; did you mean `sim:h100`?"),
    mistake("run --device quantum", "no device and no model `quantum`"),
    mistake("run --device 99", "no device `99`: a number needs its backend, as in `cuda:99`"),
    mistake("run --device 4000", "`4000` matches `Quadro RTX 4000` (model t4) and `RTX PRO 4000` (model rtx5090)"),
    mistake("run --device gpu:0", "no backend `gpu`; the backends are"),
    mistake("run --backend amd", "no backend `amd`; the backends are"),
    mistake("run --device sim:", "`sim:` names no device after the colon"),
    mistake("run --device {}/report.json", "`{}/report.json` is a file of results, not a device"),
    mistake("run --device {}/missing.toml", "cannot read the model file `{}/missing.toml`"),
    mistake("run --device {}/wrong.toml", "{}/wrong.toml:1"),
    mistake("run --device exec:no-such-program", "the program `no-such-program` cannot be started"),
    mistake("verify --device h100 --model h10", "no model `h10`; did you mean `h100`?"),
    mistake("distinguish h100 h10 --op fp16", "no model `h10`; did you mean `sim:h100`?"),
    mistake("verify --device h100 --model exec:python3", "`exec:python3` is a device, and only models can be used"),
    mistake("distinguish h100 cpu:0 --op fp16", "`cpu:0` is a device, and only models can be used here"),
    with_input("explain --trace --device cuda:0 --op fp16", "", "`cuda:0` is a device, and only models can be used"),
    mistake("distinguish h100 nosuch:x --op fp16", "unknown model `nosuch:x`"),
    // Missing arguments.
    mistake("verify --device h100", "`--model MODEL` is missing (the model)"),
    mistake("identify", "`--device SELECTOR` and `--out MODEL.toml` are missing"),
    mistake("identify --device h100", "`--out MODEL.toml` is missing (the model file to write)"),
    mistake("distinguish h100 --op fp16", "only one model, `h100`: a comparison takes two or more"),
    mistake("gemm --device a100 --op fp16*fp16 --random 4,4,4", "a100 has no operation `fp16*fp16`"),
    mistake("gemm --device a100 --op m16n8k16.f32.f16.f16.f32 --random 4,4,4", "`--out FILE.npy` is missing"),
    mistake("compare {}/report.json", "but a comparison takes two or more"),
    // Operations, formats and probes.
    mistake("run --device v100 --op fp8", "sim:v100 has no operation of `fp8` (e4m3, e5m2, e4m3fnuz, e5m2fnuz)"),
    mistake("eval --device h100 --op mma*", "`mma*` matches 91 operations; name one"),
    mistake("run --device amx --op TDPBF16SP", "sim:amx has no operation `TDPBF16SP`; did you mean `tdpbf16ps`?"),
    mistake("distinguish h100 mi300x --op fp8", "h100 and mi300x have no operation `fp8` of the same formats and k"),
    mistake("run --device amx --probe order.tre", "no probe `order.tre`; did you mean `order.tree`?"),
    mistake(
        "run --device amx --probe nosuch",
        "unknown probe `nosuch`; the probes are self_test, determinism, position",
    ),
    mistake("explain RMZ", "no entry for `RMZ`"),
    mistake("explain alingment", "no entry for `alingment`; did you mean `alignment`?"),
    mistake("run --device a100 --shape 16x16x16", "`--shape`: sim:a100 has no operation with free sizes"),
    // Values.
    mistake("run --device amx --format yaml", "`yaml` is not a value of `--format`: table, json, markdown, csv, html"),
    mistake("schema reports", "`reports` is not a value of `OF`; did you mean `report`?"),
    mistake("completions powershel", "did you mean `powershell`?"),
    mistake("run --device amx --timeout 0", "`--timeout`: `0` is not above 0 and at most 86400 seconds"),
    mistake("verify --device amx --model amx --count 0", "`--count`: 0 is not in 1.."),
    mistake("verify --device amx --model amx --count x", "`--count`: `x` is not a whole number"),
    mistake("gemm --device a100 --op fp16 --random 4,4", "`--random`: `4,4` is not 3 numbers separated by commas"),
    // Dots.
    with_input("eval --device h100 --op F16", r#"{"a":[1,2],"b":[1],"c":0}"#, "line 1: a has 2 elements and b has 1"),
    with_input("eval --device h100 --op F16", r#"{"a":["0x03c00"],"b":[1],"c":0}"#, "a[0]: `0x03c00` is not valid f16"),
    with_input("eval --device amx --op TDPBSSD", r#"{"a":[1.5],"b":[1],"c":0}"#, "a[0]: `1.5` is not an integer"),
    with_input(
        "eval --device h100 --op F16",
        "1.5,2,0",
        "line 1: invalid type: floating point `1.5`, expected an object",
    ),
    // Files.
    mistake("report {}/missing.json", "`{}/missing.json` cannot be read"),
    mistake("run --device amx --resume {}/foreign.json", "`{}/foreign.json` cannot be resumed"),
    mistake("identify --device amx --out {}", "`{}` "),
];

fn files(folder: &Path) {
    let report = folder.join("report.json");
    let arguments = ["run", "--device", "amx", "--op", "TDPBSSD", "--probe", "determinism", "-q", "--out"];
    say(&[&arguments[..], &[report.to_str().expect("UTF-8")]].concat()).ended(0);
    fs::write(folder.join("foreign.json"), r#"{"name":"a package","version":"1.0"}"#).expect("it is written");
    fs::write(folder.join("wrong.toml"), "schema = [").expect("it is written");
    assert!(Path::new(&model_file("amx.toml")).exists());
}

#[test]
fn each_mistake_of_a_newcomer_is_answered_by_one_sentence_that_names_the_right_thing() {
    let folder = tempfile::tempdir().expect("a folder");
    files(folder.path());
    let place = folder.path().to_str().expect("UTF-8");
    let mut wrong = Vec::new();
    for Mistake { line, input, code, says } in MISTAKES {
        let words: Vec<String> = shlex::split(&line.replace("{}", place)).expect(line);
        let words: Vec<&str> = words.iter().map(|word| if word == "F16" { F16 } else { word }).collect();
        let said = say_to(&words, input.as_bytes());
        let first = said.err.lines().next().unwrap_or_default();
        let says = says.replace("{}", place);
        let is_sentence = first.strip_prefix("error: ").is_some_and(|sentence| sentence.contains(&says));
        // The longest one lists all commands.
        let short = first.replace(place, "").len() <= 240;
        if !is_sentence || !short || said.code != Some(code) || !said.out.is_empty() {
            wrong.push(format!(
                "mxprobe {line}\n  wanted {code}: {says}\n  said {:?}: {}\n{}",
                said.code, said.err, said.out
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), MISTAKES.len(), wrong.join("\n"));
}

#[test]
fn the_example_under_an_error_has_the_option_that_is_missing_or_there_is_none() {
    let help = |arguments: &[&str]| say(arguments).ended(2).err;
    assert!(help(&["distinguish", "h100"]).contains("help: for example `mxprobe distinguish a100 h100 --op "));
    let trace = help(&["explain", "--trace"]);
    assert!(trace.contains("help: `mxprobe explain --help` shows the options"), "{trace}");
    assert!(help(&["validate"]).contains("help: for example `mxprobe validate "));
}

#[test]
fn a_list_of_probes_names_a_group_once() {
    let words = say(&["run", "--device", "amx", "--probe", "nosuch"]).ended(2).err;
    assert_eq!(words.matches("alignment.*").count(), 1, "{words}");
    assert!(!words.contains("alignment.below") && words.contains(" and 1"), "{words}");
}
