//! Damaged files, the same ones in every run, and a check that readers survive them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mxprobe_api::Random;

/// The default number of files that are read, all kinds together.
const FILES: u64 = 20_000;

/// The number of files that an ignored test reads, all kinds together.
pub(crate) const MANY: u64 = 100_000;

/// A reader that has not returned after this long hangs.
const LONGEST: Duration = Duration::from_secs(600);

/// The number of files to read, all kinds together, from `MXPROBE_MUTATIONS` if set.
pub(crate) fn files() -> u64 {
    std::env::var("MXPROBE_MUTATIONS").ok().map_or(FILES, |text| text.parse().expect("MXPROBE_MUTATIONS is a number"))
}

/// Reads `count` damaged files, made from these in turn. Fails if a reader panics or does not return, with the number
/// that reproduces the file. The stack is that of a thread, a quarter of the main thread's.
pub(crate) fn survives(count: u64, whole: Vec<Vec<u8>>, read: impl Fn(&[u8]) + Send + 'static) {
    let now = Arc::new(AtomicU64::new(0));
    let seed = Arc::clone(&now);
    let reader = thread::spawn(move || {
        for number in 0..count {
            seed.store(number, Ordering::SeqCst);
            let at = usize::try_from(number).unwrap() % whole.len();
            read(&mutated(number, &whole[at]));
        }
    });
    let (mut last, mut since) = (0, Instant::now());
    while !reader.is_finished() {
        thread::sleep(Duration::from_millis(20));
        let number = now.load(Ordering::SeqCst);
        if number != last {
            (last, since) = (number, Instant::now());
        }
        assert!(since.elapsed() < LONGEST, "file {number} is still being read after {LONGEST:?}");
    }
    assert!(reader.join().is_ok(), "the reader of file {} panicked", now.load(Ordering::SeqCst));
}

/// A text with one to three random changes, seeded by `number`.
pub(crate) fn mutated(number: u64, whole: &[u8]) -> Vec<u8> {
    let mut changes = Changes(Random(number));
    let mut text = whole.to_vec();
    for _ in 0..=changes.below(3) {
        changes.change(&mut text);
    }
    text
}

struct Changes(Random);

impl Changes {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    fn one_of<'a>(&mut self, all: &[&'a [u8]]) -> &'a [u8] {
        all[self.below(all.len())]
    }

    fn change(&mut self, text: &mut Vec<u8>) {
        let at = self.below(text.len() + 1);
        match self.below(10) {
            0 if at < text.len() => text[at] ^= 1 << self.below(8),
            1 if at < text.len() => text[at] = u8::try_from(self.below(256)).unwrap(),
            2 => text.truncate(at),
            3 => {
                let part = self.part(text, 400);
                let copy = text[part].to_vec();
                text.splice(at..at, copy);
            }
            4 => {
                let part = self.part(text, 40);
                text.drain(part);
            }
            5 => self.swap_words(text),
            6 => {
                let numbers = words(text, |byte| byte.is_ascii_digit());
                let huge: &[&[u8]] = &[
                    b"0",
                    b"-1",
                    b"65536",
                    b"99999",
                    b"2147483648",
                    b"4294967296",
                    b"18446744073709551616",
                    b"1e999",
                    b"-0.0",
                    b"nan",
                    b"340282366920938463463374607431768211456",
                    &[b'9'; 400],
                ];
                let huge = self.one_of(huge);
                if let Some(number) = numbers.get(self.below(numbers.len())) {
                    text.splice(number.clone(), huge.iter().copied());
                }
            }
            7 => self.nest(text, at),
            8 => {
                let bytes: &[&[u8]] = &[
                    b"\xff",
                    b"\xc0\xaf",
                    b"\xed\xa0\x80",
                    b"\xf4\x90\x80\x80",
                    b"\0",
                    b"\xef\xbb\xbf",
                    b"\r\n",
                    b"\\u0000",
                    b"\\ud800",
                ];
                text.splice(at..at, self.one_of(bytes).iter().copied());
            }
            _ => {
                let marks: &[&[u8]] =
                    &[b"\"", b"[", b"]", b"{", b"}", b"(", b")", b",", b":", b"=", b"/", b"\\", b"#", b"'''", b"."];
                text.splice(at..at, self.one_of(marks).iter().copied());
            }
        }
    }

    /// A random part of a text, shorter than `longest`.
    fn part(&mut self, text: &[u8], longest: usize) -> std::ops::Range<usize> {
        let from = self.below(text.len());
        from..(from + self.below(longest)).min(text.len())
    }

    fn swap_words(&mut self, text: &mut Vec<u8>) {
        let words = words(text, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let (one, other) = (self.below(words.len()), self.below(words.len()));
        if let (Some(first), Some(second)) = (words.get(one.min(other)), words.get(one.max(other)))
            && one != other
        {
            let (head, tail) = (text[first.clone()].to_vec(), text[second.clone()].to_vec());
            text.splice(second.clone(), head);
            text.splice(first.clone(), tail);
        }
    }

    /// Opens a bracket or call many times, and closes it as often or not at all.
    fn nest(&mut self, text: &mut Vec<u8>, at: usize) {
        let times = [3, 60, 200, 1100, 20_000][self.below(5)];
        let calls = words(text, |byte| byte.is_ascii_alphanumeric() || b"_-(".contains(&byte));
        let calls: Vec<_> = calls.into_iter().filter(|call| text[call.clone()].ends_with(b"(")).collect();
        let call = calls.get(self.below(calls.len())).map_or(b"f(".to_vec(), |call| text[call.clone()].to_vec());
        let (open, close, at): (Vec<u8>, &[u8], usize) = match self.below(5) {
            0 => (b"[".to_vec(), b"]", at),
            1 => (b"{\"a\":".to_vec(), b"}", at),
            2 => (b"(".to_vec(), b")", at),
            3 => (b"a.".to_vec(), b"", at),
            _ => (call, b")", calls.get(self.below(calls.len())).map_or(at, |call| call.start)),
        };
        let mut nested = open.repeat(times);
        if self.below(2) == 0 {
            nested.extend(close.repeat(times));
        }
        text.splice(at..at, nested);
    }
}

/// The positions of runs of such bytes.
fn words(text: &[u8], is_part: impl Fn(u8) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match found.last_mut() {
            _ if !is_part(*byte) => {}
            Some(last) if last.end == at => last.end = at + 1,
            _ => found.push(at..at + 1),
        }
    }
    found
}
