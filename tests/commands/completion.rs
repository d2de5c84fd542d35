//! Completion, requested as shell scripts do.

use super::{mxprobe, say};

/// The completions that bash gets for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let mut arguments = vec!["--", "mxprobe"];
    arguments.extend(words);
    let mut command = mxprobe(&arguments);
    command.env("MXPROBE_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true").env("_CLAP_IFS", "\n");
    let said: super::Said = command.output().expect("mxprobe starts").into();
    let said = said.ended(0);
    assert_eq!(said.err, "");
    said.out.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn devices_models_operations_probes_and_formats_are_offered_by_name() {
    for (words, wanted) in [
        (&["run", "--device", "mi3"][..], &["mi300x", "mi300a"][..]),
        (&["run", "--device", "sim:h"], &["sim:h100"]),
        (&["--device", "rtx40"], &["rtx4090"]),
        (&["verify", "--model", "a1"], &["a100"]),
        (&["distinguish", "b2"], &["b200"]),
        (&["eval", "--device", "v100", "--op", "mma.m8n8k4.f32"], &["mma.m8n8k4.f32.f16.f16.f32"]),
        (&["distinguish", "recipe:cublaslt-sm90"], &["recipe:cublaslt-sm90-fp8"]),
        (&["gemm", "--recipe", "cublaslt-sm89"], &["cublaslt-sm89-fp8", "cublaslt-sm89-fp8@fast-bf16"]),
        (&["explain", "cubl"], &["cublaslt-sm89-fp8"]),
        (&["run", "--op", "fp"], &["fp8", "fp16"]),
        (&["run", "--probe", "align"], &["alignment", "alignment.below"]),
        (&["run", "--format", "j"], &["json"]),
        (&["explain", "wg"], &["wgmma"]),
        (&["ide"], &["identify"]),
    ] {
        let found = offered(words);
        for name in wanted {
            assert!(found.iter().any(|found| found == name), "{words:?}: {name} is not among {found:?}");
        }
        let typed = words.last().unwrap();
        assert!(found.iter().all(|found| found.starts_with(typed)), "{words:?}: {found:?}");
    }
}

#[test]
fn operations_are_those_of_the_device_that_was_typed() {
    let of_v100 = offered(&["run", "--device", "v100", "--op", "mma."]);
    assert!(!of_v100.is_empty() && of_v100.iter().all(|id| id.starts_with("mma.m8n8k4.")), "{of_v100:?}");
    let of_all = offered(&["run", "--op", "mma."]);
    assert!(of_all.len() > of_v100.len());
}

#[test]
fn each_shell_gets_a_script_that_asks_this_program() {
    for shell in ["bash", "zsh", "fish"] {
        let script = say(&["completions", shell]).ended(0).out;
        assert!(script.contains("MXPROBE_COMPLETE") && script.contains("mxprobe"), "{shell}: {script}");
    }
    let mut command = mxprobe(&["--", "mxprobe", "run", ""]);
    let said: super::Said = command.env("MXPROBE_COMPLETE", "tcsh").output().expect("mxprobe starts").into();
    assert!(said.ended(2).err.contains("`tcsh`"));
}
