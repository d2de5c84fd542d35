//! Devices in other processes: the answers of programs, and the handling of programs that break the protocol.
#![cfg(unix)]
#![allow(missing_docs)]

use std::{process::Command, time::Duration};

use mxprobe::isolate::{PATIENCE, Program, RemoteDevice};
use mxprobe_api::{Backend, Device, Error, Operation, OperationSet, Sizes, Span, TileBatch, execute};
use mxprobe_dots::Random;
use mxprobe_sim::SimBackend;

const OPERATION: &str = "dot.m1n1k2.f32.bf16.bf16.f32";
const SECOND: &str = "dot.m1n1k4.f32.bf16.bf16.f32";

/// A time limit for what might otherwise wait forever.
const LIMIT: Duration = Duration::from_secs(600);

/// A shell script as a program: it answers one request per line, and does not read operands.
fn script(text: &str, limit: Duration) -> Program {
    let text = text.to_owned();
    Program {
        command: Box::new(move || {
            let mut command = Command::new("sh");
            command.args(["-c", &text]);
            command
        }),
        limit,
        stop: Box::new(|| None),
        listener: None,
    }
}

/// The answer to `open`: a device with two operations.
fn opened() -> String {
    format!(
        r#"{{"answer":"opened","device":{{"backend":"x","selector":"x:0","name":"X","fingerprint":"x","kind":"hardware",
            "operations":[{{"id":"{OPERATION}","scope":"thread"}},{{"id":"{SECOND}","scope":"thread"}}]}}}}"#
    )
    .replace('\n', " ")
}

/// A device that answers `execute` with these lines and bytes, as `printf` writes them.
fn answers(execute: &str, limit: Duration) -> RemoteDevice {
    let script = format!(
        r#"while read -r line; do
             case $line in
               *'"ask":"open"'*) echo '{}';;
               *) printf '{execute}';;
             esac
           done"#,
        opened()
    );
    RemoteDevice::open(self::script(&script, limit), "x:0", &Sizes::default()).unwrap()
}

fn ask(device: &dyn Device, id: &str) -> Result<Vec<u64>, Error> {
    let operation = &device.operations()[&id.parse().unwrap()];
    execute(device, operation, &TileBatch::zeros(operation, 1)).map(|d| d.iter().collect())
}

#[test]
fn any_program_that_speaks_the_protocol_is_a_device() {
    let device = answers(r#"driver 1.0 loaded\n{"answer":"done","bytes":[4],"later":1}\n\001\002\003\004"#, LIMIT);
    assert_eq!(device.info().name, "X");
    assert_eq!(ask(&device, OPERATION), Ok(vec![0x0403_0201]));
    assert!(device.timing().is_none() && device.scalars().is_none());
}

#[test]
fn a_program_that_lies_about_sizes_is_caught() {
    for (answer, words) in [
        (r#"{"answer":"done","bytes":[5]}\n12345"#, "announced 5 bytes, at most 4 can follow"),
        (r#"{"answer":"done","bytes":[9999999999]}\n"#, "announced 9999999999 bytes"),
        (r#"{"answer":"done","bytes":[3]}\n123"#, "3 bytes are not a whole number of f32 elements"),
        (r#"{"answer":"done","bytes":[2,2]}\n1234"#, "returned 2 parts instead of one"),
        (r#"{"answer":"done"}\n"#, "returned 0 parts instead of one"),
        (r#"{"answer":"done","bytes":[0]}\n"#, "returned 0 elements of f32 for 1 tiles"),
        (r#"{"answer":"tile_by_tile"}\n"#, "answered something else"),
    ] {
        let error = ask(&answers(answer, LIMIT), OPERATION).unwrap_err();
        assert!(error.to_string().contains(words), "{answer}: {error}");
    }
}

#[test]
fn an_error_of_the_device_keeps_its_kind_and_costs_nothing() {
    let device = answers(r#"{"answer":"failed","kind":"out_of_memory","message":"no room for %%d"}\n"#, LIMIT);
    for _ in 0..5 {
        let error = ask(&device, OPERATION).unwrap_err();
        assert!(error.is_out_of_memory() && error.to_string() == "no room for %d", "{error}");
    }
    assert_eq!((device.health().falls(), device.health().gave_up()), (0, None));
}

#[test]
fn a_program_that_never_answers_is_ended() {
    let device = answers("", Duration::from_millis(300));
    let error = ask(&device, OPERATION).unwrap_err();
    assert!(error.is_timed_out() && error.to_string() == "timed out after 0.3 s", "{error}");
    assert_eq!(ask(&device, OPERATION), Err(error), "it is not asked again");
    assert_eq!(device.health().falls(), 1);
}

#[test]
fn a_program_that_ends_is_started_again_for_the_next_operation() {
    let script = format!(
        r#"while read -r line; do
             case $line in
               *'"ask":"open"'*) echo '{}';;
               *k2*) echo out of luck >&2; exit 7;;
               *) printf '{{"answer":"done","bytes":[4]}}\n\001\002\003\004';;
             esac
           done"#,
        opened()
    );
    let device = RemoteDevice::open(self::script(&script, LIMIT), "x:0", &Sizes::default()).unwrap();
    let error = ask(&device, OPERATION).unwrap_err();
    assert!(error.is_device_lost(), "{error}");
    assert_eq!(error.to_string(), "the device's process ended with exit code 7; it last said: out of luck");
    assert_eq!(ask(&device, SECOND), Ok(vec![0x0403_0201]));
    assert_eq!((device.health().falls(), device.health().gave_up()), (1, None));
}

#[test]
fn what_a_program_says_as_it_ends_is_waited_for() {
    let script = format!(
        r#"read -r line; echo '{}'; read -r line
           (sleep 0.1; echo out of luck >&2) >/dev/null &
           exit 7"#,
        opened()
    );
    let device = RemoteDevice::open(self::script(&script, LIMIT), "x:0", &Sizes::default()).unwrap();
    let error = ask(&device, OPERATION).unwrap_err();
    assert_eq!(error.to_string(), "the device's process ended with exit code 7; it last said: out of luck");
}

#[test]
fn nothing_is_asked_of_a_device_that_fell_at_several_operations_in_a_row() {
    let ids: Vec<String> = (1..=4).map(|k| format!("dot.m1n1k{k}.f32.bf16.bf16.f32")).collect();
    let operations: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}","scope":"thread"}}"#)).collect();
    let opened = opened();
    let (head, _) = opened.split_once("\"operations\"").unwrap();
    let script = format!(
        r#"read -r line
           case $line in *'"ask":"open"'*) echo '{head}"operations":[{}]}}}}'; read -r line;; esac
           exit 1"#,
        operations.join(",")
    );
    let device = RemoteDevice::open(self::script(&script, LIMIT), "x:0", &Sizes::default()).unwrap();
    for id in &ids[..PATIENCE] {
        assert!(ask(&device, id).is_err_and(|error| error.is_device_lost()), "{id}");
    }
    let reason = device.health().gave_up().expect("it gave up");
    assert_eq!(reason, "3 operations before in a row lost the device, ended its process or hung");
    assert_eq!(ask(&device, &ids[PATIENCE]).unwrap_err().to_string(), reason);
}

#[test]
fn a_program_that_does_not_start_or_speaks_another_version_is_named() {
    let missing = Program { command: Box::new(|| Command::new("/nonexistent/worker")), ..script("", LIMIT) };
    let error = missing.discover(None).err().unwrap();
    assert!(error.to_string().contains("/nonexistent/worker: No such file"), "{error}");
    let other = script(r#"echo '{"answer":"found","protocol":"mxprobe-device/9"}'; read -r line"#, LIMIT);
    let error = other.discover(None).err().unwrap();
    assert_eq!(error.to_string(), "the program speaks `mxprobe-device/9`, not mxprobe-device/1");
    let silent = script("exit 3", LIMIT).discover(None).err().unwrap();
    assert!(silent.to_string().contains("ended with exit code 3"), "{silent}");
}

/// `mxprobe worker`, this project's own device process.
fn own() -> Program {
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mxprobe"));
        command.arg("worker");
        command
    };
    Program { command: Box::new(command), ..script("", LIMIT) }
}

#[test]
fn a_device_in_another_process_gives_the_same_bits() {
    for (name, count) in [("avx512", 3), ("h100", 40), ("b200", 400)] {
        let here = SimBackend.open(name).unwrap();
        let there = RemoteDevice::open(own(), &format!("sim:{name}"), &Sizes::default()).unwrap();
        assert_eq!(there.info(), here.info());
        assert_eq!(there.operations(), here.operations());
        let step = (here.operations().len() / count).max(1);
        for operation in here.operations().values().step_by(step) {
            let batch = random(operation, 3);
            let bits = |device: &dyn Device| execute(device, operation, &batch).unwrap();
            assert_eq!(bits(&there), bits(here.as_ref()), "{}", operation.id);
        }
    }
}

#[test]
#[cfg(feature = "fault-devices")]
fn a_device_in_another_process_has_every_ability_of_the_device_there_but_dots_one_by_one() {
    let device = RemoteDevice::open(own(), "fault:able", &Sizes::default()).unwrap();
    // The protocol has no message for single dots: a tile gives the same bits.
    assert_eq!(mxprobe_conformance::dropped(&device), ["Matrices::dots"]);
}

/// Tiles of random bits, with scales of 1.
fn random(operation: &Operation, tiles: usize) -> TileBatch {
    let mut random = Random(1);
    let mut batch = TileBatch::zeros(operation, tiles);
    for elements in [&mut batch.a, &mut batch.b, &mut batch.c] {
        (0..elements.len()).for_each(|at| elements.set(at, random.bits()));
    }
    batch
}

#[test]
fn what_a_device_cannot_do_is_said_with_its_kind() {
    let device = RemoteDevice::open(own(), "sim:amx", &Sizes::default()).unwrap();
    let operation = device.operations().values().next().unwrap();
    let operands = TileBatch::zeros(operation, 1);
    let load = mxprobe_api::Load { operands: &operands, steps: 1, span: Span::One };
    assert!(mxprobe_api::time(&device, operation, &load).is_err_and(|error| error.is_unsupported()));
    assert!(device.timing().is_none());
    let none = OperationSet::new();
    assert_ne!(*device.operations(), none);
    let error = RemoteDevice::open(own(), "sim:nosuch", &Sizes::default()).err().unwrap();
    assert!(error.is_invalid() && error.to_string().contains("nosuch"), "{error}");
}
