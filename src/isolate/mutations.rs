//! Fuzz tests of the reader: corrupted answers never make it panic, hang or read more than it asked for.

use std::{fs, process::Command, time::Duration};

use mxprobe_api::{Device, Format, Random, Sizes, TileBatch, execute};

use super::{
    Program, RemoteDevice,
    protocol::{Answer, Frame, Next, PROTOCOL, read},
    remote::one_part,
};

/// The most bytes that parts may have in these tests.
const MOST_BYTES: usize = 64;

/// Answers of every kind, as a program sends them.
fn answers() -> Vec<Vec<u8>> {
    let device = r#"{"name":"X","selector":"x:0","kind":"hardware","driver":{"name":"d","version":"1"},
        "operations":["gemm.m*n*k*.f32.bf16.bf16.f32",{"id":"mma.m16n8k32.f32.e5m2.e4m3.f32.block32.ue8m0",
        "scope":"warp","instruction":"QMMA","aliases":["q"]}],"matrices":{"has_tiles":false},"code":true,"flags":true,
        "refusals":[{"what":"y","reason":{"kind":"unsupported","message":"m"}}],
        "yardsticks":[{"id":"dot.m1n1k1.f32.f32.f32.f32","scope":"thread"}]}"#
        .replace('\n', " ");
    let lines = [
        format!(r#"{{"answer":"found","protocol":"{PROTOCOL}","devices":[{device}],"refusals":[]}}"#),
        format!(r#"{{"answer":"opened","device":{device}}}"#),
        r#"{"answer":"done","bytes":[16]}"#.to_owned(),
        r#"{"answer":"done","kernel_ns":12,"bytes":[8,8]}"#.to_owned(),
        r#"{"answer":"timed","elapsed_ns":1e3,"clock":"device","unit":"core","pattern":[[0,1,2]],"bytes":[16]}"#
            .to_owned(),
        r#"{"answer":"code","issued":{"matrix":{"HMMA":2},"others":{"MOV":1},"listing":"x"}}"#.to_owned(),
        r#"{"answer":"failed","kind":"device_lost","message":"gone"}"#.to_owned(),
        "a driver says hello".to_owned(),
    ];
    lines
        .into_iter()
        .map(|line| {
            let has_parts = line.contains("\"bytes\"");
            let mut text = line.into_bytes();
            text.push(b'\n');
            text.extend(has_parts.then_some([0x3f; 16]).into_iter().flatten());
            text
        })
        .collect()
}

/// Fragments that a broken writer may send.
const PIECES: [&[u8]; 12] =
    [b"{", b"}", b"[", b"\"", b"\n", b"\0", b"*", b"-1", b"99999999999999999999", b"1e999", b"\xff\xfe", b"null"];

/// Changes a text in one to four places.
fn mutated(random: &mut Random, text: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut text = text.to_vec();
    for _ in 0..=random.below(4) {
        let (at, end) = (random.below(text.len() + 1), random.below(text.len() + 1));
        let (from, to) = (at.min(end), at.max(end));
        match random.below(7) {
            0 if at < text.len() => text[at] ^= 1 << random.below(8),
            1 => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
            2 => drop(text.drain(from..to.min(from + 20))),
            3 => text.truncate(at),
            4 => {
                let digits: Vec<usize> = (0..text.len()).filter(|at| text[*at].is_ascii_digit()).collect();
                if !digits.is_empty() {
                    let at = digits[random.below(digits.len())];
                    drop(text.splice(at..at, b"9999"[..=random.below(4)].iter().copied()));
                }
            }
            5 => {
                let other = &others[random.below(others.len())];
                text.splice(at..at, other.iter().copied().skip(random.below(other.len())));
            }
            _ => {
                let copied = text[from..to.min(from + 40)].to_vec();
                text.splice(at..at, copied);
            }
        }
    }
    text
}

#[test]
fn a_hundred_thousand_changed_answers_are_read_or_refused() {
    let (answers, mut random) = (answers(), Random(1));
    let mut met = [0_usize; 4];
    for case in 0..100_000 {
        let text = mutated(&mut random, &answers[case % answers.len()], &answers);
        let mut stream = &text[..];
        loop {
            let before = stream.len();
            let kind = match read::<Answer>(&mut stream, || MOST_BYTES) {
                Err(_) | Ok(Next::End) => break,
                Ok(Next::Stray(_)) => 0,
                Ok(Next::Wrong(_, why)) => {
                    assert!(!why.is_empty());
                    1
                }
                Ok(Next::TooLong(bytes)) => {
                    assert!(bytes > MOST_BYTES);
                    2
                }
                Ok(Next::Message(Frame { message, parts })) => {
                    assert!(parts.iter().map(Vec::len).sum::<usize>() <= MOST_BYTES);
                    if let Answer::Found { devices, .. } = message {
                        devices.into_iter().for_each(|device| drop(device.with(&Sizes::default())));
                    }
                    let _ = [Format::F32, Format::E2M1].map(|format| one_part(format, parts.clone()));
                    3
                }
            };
            met[kind] += 1;
            assert!(stream.len() < before, "the reader advances");
        }
    }
    assert!(met.iter().all(|count| *count > 500), "every kind is met: {met:?}");
}

#[cfg(unix)]
#[test]
fn a_program_that_sends_changed_answers_costs_an_error_at_the_most() {
    let (answers, mut random) = (answers(), Random(2));
    let folder = tempfile::tempdir().unwrap();
    let mut answered = 0;
    for case in 0..300 {
        let path = folder.path().join(case.to_string());
        let mut text = answers[0].clone();
        // Half of them describe themselves correctly before anything goes wrong.
        if case % 2 == 0 {
            text = mutated(&mut random, &text, &answers);
        }
        text.extend(mutated(&mut random, &answers[2], &answers));
        fs::write(&path, text).unwrap();
        let command = Box::new(move || {
            let mut command = Command::new("cat");
            command.arg(&path);
            command
        });
        // A hang would last ten minutes.
        let limit = Duration::from_secs(600);
        let program = Program { command, limit, stop: Box::new(|| None), listener: None };
        let Ok(device) = RemoteDevice::of_program(program, "x:0", &Sizes::default(), "x") else { continue };
        for operation in device.operations().values() {
            let batch = TileBatch::zeros(operation, 1);
            answered += usize::from(execute(&device, operation, &batch).is_ok());
        }
    }
    // 64 results take 256 bytes, but these answers contain 16.
    assert_eq!(answered, 0);
}
