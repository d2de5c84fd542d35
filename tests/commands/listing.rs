//! `list`, `explain`, `completions`, and the options common to all commands.

use std::{io::Read, process::Stdio};

use super::{mxprobe, say};

#[test]
fn a_listing_shows_devices_operations_and_what_was_tried() {
    let said = say(&["list"]).ended(0);
    assert!(said.out.contains("sim:v100"), "{}", said.out);
    let last = said.out.lines().last().unwrap();
    assert!(last.starts_with("tried ") && last.contains("sim ("), "{last}");
    let said = say(&["list", "--device", "sim:amx"]).ended(0);
    assert!(said.out.contains("amx.m16n16k32.f32.bf16.bf16.f32  TDPBF16PS"), "{}", said.out);
    assert!(!said.out.contains("sim:v100"), "{}", said.out);
}

#[test]
fn a_device_is_found_by_alias_and_by_a_part_of_its_name() {
    for device in ["sim:SapphireRapids", "sim:spr", "sim:AMX", "sim:\"Intel AMX\"", "sim:Sapphire Rapids"] {
        let said = say(&["list", "--device", device]).ended(0);
        assert!(said.out.starts_with("sim:amx"), "{device}: {}", said.out);
    }
    let said = say(&["list", "--device", "sim:nvidia"]).ended(2);
    assert!(said.err.contains("` matches ") && said.err.contains("sim:v100"), "{}", said.err);
}

#[test]
fn a_pipe_gets_no_escapes_unless_it_asks_for_them() {
    assert!(!say(&["list", "--backend", "sim"]).ended(0).out.contains('\x1b'));
    assert!(say(&["list", "--backend", "sim", "--color", "always"]).ended(0).out.contains('\x1b'));
    let said: super::Said =
        mxprobe(&["list", "--backend", "sim", "--color", "never"]).env("CLICOLOR_FORCE", "1").output().unwrap().into();
    assert!(!said.ended(0).out.contains('\x1b'));
}

#[test]
fn a_closed_pipe_is_no_error() {
    for arguments in [&["schema"][..], &["list", "-v"], &["list", "--json"], &["run", "--device", "sim:avx512", "-q"]] {
        let mut child = mxprobe(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut words = String::new();
        child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        assert_eq!((child.wait().unwrap().code(), words.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn names_are_explained() {
    assert!(say(&["explain"]).ended(0).out.contains("order.tree"));
    let said = say(&["explain", "subnormals"]).ended(0);
    assert!(said.out.contains("subnormals.a ") && !said.out.contains("order"), "{}", said.out);
    assert!(say(&["explain", "sim:v100"]).ended(0).out.contains("4 products are added at once"));
    assert!(say(&["explain", "kernel_sha256"]).ended(0).out.contains("kernel"));
    let said = say(&["explain", "alignment.below"]).ended(0).out;
    for part in ["What becomes of the bits that are shifted out", "how: ", "truncate: ", "source: "] {
        assert!(said.contains(part), "{said}");
    }
    assert!(say(&["explain", "E4M3"]).ended(0).out.contains("largest: 0x7e (4.48e2)"));
    assert!(say(&["explain", "ue8m0"]).ended(0).out.contains("NaN is every bit set"));
    // Names as printed in reports: of a function, of an operation.
    assert!(say(&["explain", "function.dot4.serial"]).ended(0).out.starts_with("function.dot4 (probe)"));
    let said = say(&["explain", "coopmat.m8n8k8.f16.f16.f16.f16"]).ended(0).out;
    assert!(said.starts_with("coopmat.m8n8k8.f16.f16.f16.f16 (operation)\n"), "{said}");
    assert!(said.contains("\ncoopmat (family of operations)\n"), "{said}");
    // A family and a model of one name are both explained.
    let said = say(&["explain", "amx"]).ended(0).out;
    assert!(said.contains("amx (family of operations)") && said.contains("amx: Intel AMX"), "{said}");
}

#[test]
fn every_command_has_a_manual_page() {
    let page = say(&["man"]).ended(0).out;
    assert!(page.contains(".TH mxprobe 1") && page.contains("130 interrupted"), "{page}");
    let commands = [
        "run",
        "list",
        "eval",
        "report",
        "compare",
        "explain",
        "schema",
        "validate",
        "completions",
        "conformance",
        "worker",
    ];
    for command in commands {
        assert!(page.contains(&format!("mxprobe\\-{command}(1)")), "{command} is not in {page}");
        let own = say(&["man", command]).ended(0).out;
        assert!(own.contains(&format!(".TH mxprobe-{command} 1")), "{own}");
    }
    let said = say(&["man", "nope"]).ended(2);
    assert!(said.err.contains("`nope`") && said.err.contains("compare"), "{}", said.err);
}

#[test]
fn help_names_the_exit_codes_and_completions_are_scripts() {
    assert!(say(&["--help"]).ended(0).out.contains("130 interrupted"));
    assert!(say(&["completions", "bash"]).ended(0).out.contains("complete "));
    assert!(say(&["--version"]).ended(0).out.starts_with(concat!("mxprobe ", env!("CARGO_PKG_VERSION"))));
}
