//! A quick pass over the text of a document: finds what the types of documents do not refuse, and the evidence of
//! reports, which is not decoded until it is asked for.

use std::{fmt::Write, ops::Range, sync::Arc};

use super::evidence::{EvidenceList, Place, Places};

/// The most keys of one object that are compared with each other; the reports' own have fewer than thirty.
const MOST_KEYS: usize = 64;

/// What a pass found.
pub(super) struct Scanned {
    /// The document without the evidence of reports: instead, each list has one record, whose `about` is an index in
    /// `evidence`.
    pub(super) text: String,
    /// The evidence, in the order of the text.
    pub(super) evidence: Vec<EvidenceList>,
}

/// Scans a document with a schema that `is_known`, or an array of them, nested at most `deepest` deep. `None` if a key
/// has escapes or appears twice in an object, or if the evidence of a report is not in the form that reports are
/// written in. Numbers and words are not checked, nor escapes and control characters in texts other than evidence.
///
/// Evidence is taken out of the text only of reports, which are `shared` with it.
pub(super) fn scan(
    text: &str,
    shared: Option<&Arc<String>>,
    deepest: usize,
    is_known: &dyn Fn(&str) -> bool,
) -> Option<Scanned> {
    u32::try_from(text.len()).ok()?;
    let mut scanner = Scanner {
        text,
        shared,
        bytes: text.as_bytes(),
        at: 0,
        keys: Vec::new(),
        depth: 0,
        deepest,
        is_known,
        kept: String::new(),
        kept_to: 0,
        evidence: Vec::new(),
        dots: Vec::new(),
    };
    match scanner.next()? {
        b'[' => {
            scanner.at += 1;
            scanner.list(Part::Document)?;
        }
        _ => scanner.value(Part::Document)?,
    }
    scanner.space();
    (scanner.at == scanner.bytes.len()).then_some(())?;
    let Scanner { mut kept, kept_to, evidence, .. } = scanner;
    kept.push_str(&text[kept_to..]);
    Some(Scanned { text: kept, evidence })
}

/// A part of a document.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Document,
    Operation,
    Finding,
    Other,
}

struct Scanner<'a> {
    text: &'a str,
    shared: Option<&'a Arc<String>>,
    bytes: &'a [u8],
    at: usize,
    /// The keys of the objects around the current place, those of the innermost last.
    keys: Vec<Range<usize>>,
    depth: usize,
    deepest: usize,
    is_known: &'a dyn Fn(&str) -> bool,
    /// The text up to `kept_to`, without evidence.
    kept: String,
    kept_to: usize,
    evidence: Vec<EvidenceList>,
    /// The dots of the current list.
    dots: Vec<Places>,
}

impl Scanner<'_> {
    #[inline(always)]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
            // Lines start with many spaces.
            while let Some((word, _)) = self.bytes.get(self.at..).and_then(<[u8]>::split_first_chunk) {
                let spaces = (u64::from_le_bytes(*word) ^ u64::from_le_bytes([b' '; 8])).trailing_zeros() as usize / 8;
                self.at += spaces;
                if spaces < 8 {
                    break;
                }
            }
        }
    }

    /// The next byte that is not white space.
    #[inline(always)]
    fn next(&mut self) -> Option<u8> {
        self.space();
        self.bytes.get(self.at).copied()
    }

    /// Whether the next byte is this one; skips it if so.
    #[inline(always)]
    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.next() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Goes on from an opening quote to the next quote, backslash or control character.
    #[inline(always)]
    fn find_special(&mut self) -> Option<u8> {
        self.at += 1;
        while let Some((word, _)) = self.bytes.get(self.at..).and_then(<[u8]>::split_first_chunk) {
            match special(u64::from_le_bytes(*word)) {
                8 => self.at += 8,
                count => {
                    self.at += count;
                    return Some(word[count]);
                }
            }
        }
        let rest = self.bytes.get(self.at..)?;
        self.at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        Some(self.bytes[self.at])
    }

    /// Skips a text without escapes, and returns its place between the quotes.
    fn plain_text(&mut self) -> Option<Range<usize>> {
        (self.next()? == b'"').then_some(())?;
        let start = self.at + 1;
        (self.find_special()? == b'"').then_some(())?;
        self.at += 1;
        Some(start..self.at - 1)
    }

    /// Skips a text.
    fn any_text(&mut self) -> Option<()> {
        loop {
            match self.find_special()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                // The byte after it is not special.
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    /// Skips a value.
    fn value(&mut self, part: Part) -> Option<()> {
        match self.next()? {
            b'"' => self.any_text(),
            b'{' => {
                self.at += 1;
                self.object(part)
            }
            b'[' => {
                // A list of values could be read as a document without names.
                (part != Part::Document).then_some(())?;
                self.at += 1;
                self.list(Part::Other)
            }
            _ => {
                let is_word = |byte: &&u8| !matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
                let length = self.bytes[self.at..].iter().take_while(is_word).count();
                self.at += length;
                (length > 0).then_some(())
            }
        }
    }

    /// Skips the rest of a list, whose elements are such a part.
    fn list(&mut self, part: Part) -> Option<()> {
        self.deeper()?;
        if !self.skip(b']') {
            loop {
                self.value(part)?;
                if self.skip(b']') {
                    break;
                }
                self.skip(b',').then_some(())?;
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= self.deepest).then_some(())
    }

    /// Skips the rest of an object.
    fn object(&mut self, part: Part) -> Option<()> {
        self.deeper()?;
        let first = self.keys.len();
        let mut is_known = part != Part::Document;
        if !self.skip(b'}') {
            loop {
                let key = self.key(first)?;
                let value_of = match (part, key) {
                    (Part::Document, b"schema") => {
                        let schema = self.plain_text()?;
                        is_known = (self.is_known)(&self.text[schema]);
                        None
                    }
                    (Part::Document, b"operations") => Some(Part::Operation),
                    (Part::Operation, b"findings") => Some(Part::Finding),
                    (Part::Finding, b"evidence") => {
                        self.evidence()?;
                        None
                    }
                    _ => {
                        self.value(Part::Other)?;
                        None
                    }
                };
                if let Some(part) = value_of {
                    match self.skip(b'[') {
                        true => self.list(part)?,
                        false => self.value(Part::Other)?,
                    }
                }
                if self.skip(b'}') {
                    break;
                }
                self.skip(b',').then_some(())?;
            }
        }
        self.keys.truncate(first);
        self.depth -= 1;
        is_known.then_some(())
    }

    /// Skips a key and the colon after it; `None` if the object, whose keys start at `first`, has had it.
    fn key(&mut self, first: usize) -> Option<&'static [u8]> {
        let key = self.plain_text()?;
        self.skip(b':').then_some(())?;
        let bytes = &self.bytes[key.clone()];
        let keys = &self.keys[first..];
        let is_new = keys.len() < MOST_KEYS && keys.iter().all(|known| self.bytes[known.clone()] != *bytes);
        let known: [&'static [u8]; 4] = [b"schema", b"operations", b"findings", b"evidence"];
        let known = known.into_iter().find(|known| *known == bytes).unwrap_or_default();
        self.keys.push(key);
        is_new.then_some(known)
    }

    /// Takes the evidence of a finding out of the text.
    fn evidence(&mut self) -> Option<()> {
        let Some(shared) = self.shared else { return self.value(Part::Other) };
        self.skip(b'[').then_some(())?;
        let start = self.at - 1;
        if self.skip(b']') {
            return Some(());
        }
        self.dots.clear();
        loop {
            let dot = self.dot()?;
            self.dots.push(dot);
            if self.skip(b']') {
                break;
            }
            self.skip(b',').then_some(())?;
        }
        self.kept.push_str(&self.text[self.kept_to..start]);
        let _ = write!(self.kept, r#"[{{"about":"{}","a":[],"d":""}}]"#, self.evidence.len());
        self.kept_to = self.at;
        // Of the size that it has: a list that grew may have twice the memory.
        self.evidence.push(EvidenceList::saved(shared, self.dots.clone()));
        Some(())
    }

    /// Reads one dot of evidence.
    fn dot(&mut self) -> Option<Places> {
        const ABOUT: u16 = 1;
        const A: u16 = 1 << 1;
        const D: u16 = 1 << 4;
        self.skip(b'{').then_some(())?;
        let start = self.at - 1;
        let mut dot = Places::default();
        let mut found = 0u16;
        loop {
            let key = self.plain_text()?;
            self.skip(b':').then_some(())?;
            let bit = match &self.bytes[key] {
                b"about" => {
                    self.plain_text()?;
                    ABOUT
                }
                [b'a'] => {
                    dot.a = self.words()?;
                    A
                }
                [b'b'] => {
                    dot.b = self.words()?;
                    1 << 2
                }
                [b'c'] => {
                    dot.c = self.word()?;
                    1 << 3
                }
                [b'd'] => {
                    dot.d = self.word()?;
                    D
                }
                b"rivals" => {
                    self.rivals()?;
                    1 << 5
                }
                b"scale_a" => {
                    dot.scale_a = Some(self.words()?);
                    1 << 6
                }
                b"scale_b" => {
                    dot.scale_b = Some(self.words()?);
                    1 << 7
                }
                b"function" => {
                    dot.function = Some(self.word()?);
                    1 << 8
                }
                _ => return None,
            };
            (found & bit == 0).then_some(())?;
            found |= bit;
            if self.skip(b'}') {
                break;
            }
            self.skip(b',').then_some(())?;
        }
        dot.whole = place(start..self.at);
        (found & (ABOUT | A | D) == ABOUT | A | D).then_some(dot)
    }

    fn word(&mut self) -> Option<Place> {
        self.plain_text().map(place)
    }

    /// Skips a list of texts without escapes, with the usual separator, and returns its place between the brackets.
    fn words(&mut self) -> Option<Place> {
        self.skip(b'[').then_some(())?;
        let start = self.at;
        if self.bytes.get(self.at) != Some(&b']') {
            loop {
                (*self.bytes.get(self.at)? == b'"').then_some(())?;
                (self.find_special()? == b'"').then_some(())?;
                self.at += 1;
                match self.bytes.get(self.at..)? {
                    // As `SEPARATOR` of evidence has it.
                    [b',', b' ', ..] => self.at += 2,
                    [b']', ..] => break,
                    _ => return None,
                }
            }
        }
        self.at += 1;
        Some(place(start..self.at - 1))
    }

    /// Skips a list of rival answers.
    fn rivals(&mut self) -> Option<()> {
        self.skip(b'[').then_some(())?;
        if self.skip(b']') {
            return Some(());
        }
        loop {
            self.skip(b'{').then_some(())?;
            let mut found = 0;
            loop {
                let key = self.plain_text()?;
                self.skip(b':').then_some(())?;
                let bit = match &self.bytes[key] {
                    b"answer" => 1,
                    [b'd'] => 2,
                    _ => return None,
                };
                self.plain_text()?;
                (found & bit == 0).then_some(())?;
                found |= bit;
                if self.skip(b'}') {
                    break;
                }
                self.skip(b',').then_some(())?;
            }
            (found == 3).then_some(())?;
            if self.skip(b']') {
                return Some(());
            }
            self.skip(b',').then_some(())?;
        }
    }
}

/// The place of a range, in a text whose length fits in 32 bits.
fn place(range: Range<usize>) -> Place {
    let short = |at| u32::try_from(at).expect("a text of at most 4 GiB");
    Place { start: short(range.start), end: short(range.end) }
}

/// The index of the first quote, backslash or control character in eight bytes, or 8.
#[inline(always)]
fn special(word: u64) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is 0; above one that is, it may be set wrongly.
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    let found = is_zero(word ^ (ONES * u64::from(b'"'))) | is_zero(word ^ (ONES * u64::from(b'\\'))) | is_control;
    found.trailing_zeros() as usize / 8
}
