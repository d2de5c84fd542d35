//! Other names for operations: by format (`fp8`, `f16->f32`), and in PTX with or without its family.

use mxprobe_api::{Format, OperationId};

use crate::glossary::formats_called;

use super::glob;

/// The formats in a name for operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The formats of A and of B.
    operands: [Vec<Format>; 2],
    /// The formats of D, if the name has an arrow.
    result: Option<Vec<Format>>,
}

/// Parses the formats in a name: `fp8`, `e4m3`, `f16→f32`, `bf16->f32`, `e4m3*e5m2->f32`. `None` if it is not such a
/// name.
#[must_use]
pub fn formats(name: &str) -> Option<Named> {
    let name = name.trim().to_lowercase();
    let (operands, result) = match name.split_once('→').or_else(|| name.split_once("->")) {
        Some((operands, result)) => (operands, Some(one(result)?)),
        None => (name.as_str(), None),
    };
    let (a, b) = match operands.split_once('*') {
        Some((a, b)) if result.is_some() => (a, b),
        _ => (operands, operands),
    };
    Some(Named { operands: [one(a)?, one(b)?], result })
}

/// The formats that a word denotes.
fn one(word: &str) -> Option<Vec<Format>> {
    let word = word.trim();
    if let Ok(format) = Format::named(word) {
        return Some(vec![format]);
    }
    let called: Vec<Format> = formats_called(word).iter().filter_map(|name| Format::named(name).ok()).collect();
    (!called.is_empty()).then_some(called)
}

impl Named {
    /// Whether an operation multiplies these formats, and returns the named result formats if there are any.
    #[must_use]
    pub fn fits(&self, id: &OperationId) -> bool {
        let [a, b] = &self.operands;
        let operands = if self.result.is_some() && a != b {
            a.contains(&id.a) && b.contains(&id.b)
        } else {
            a.contains(&id.a) || b.contains(&id.b)
        };
        operands && self.result.as_ref().is_none_or(|result| result.contains(&id.d))
    }

    /// The operand formats in the name, without duplicates.
    #[must_use]
    pub fn operands(&self) -> Vec<Format> {
        let [a, b] = &self.operands;
        let mut all = a.clone();
        all.extend(b.iter().filter(|format| !a.contains(format)));
        all
    }
}

/// PTX words that ids omit.
const SILENT: [&str; 5] = ["sync", "aligned", "row", "col", "mma_async"];

/// Whether a pattern matches an operation as written in PTX: with words that its id omits, or without its family.
pub(super) fn is_ptx(pattern: &str, id: &OperationId) -> bool {
    let lower = pattern.to_lowercase();
    let mut words: Vec<&str> = lower.split('.').filter(|word| !SILENT.contains(word)).collect();
    // PTX clamps before the formats, ids after them; its loads and stores of whole tiles are `wmma` too.
    if let Some(at) = words.iter().position(|word| *word == "satfinite") {
        let clamp = words.remove(at);
        words.push(clamp);
    }
    if words.starts_with(&["wmma", "mma"]) {
        words.remove(1);
    }
    let whole = id.to_string();
    let written = words.join(".");
    let is_shape =
        |word: &str| word.strip_prefix('m').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let tail = whole.split_once('.').map_or("", |(_, tail)| tail);
    match words.first() {
        Some(first) if is_shape(first) => glob::matches(&written, tail) || glob::matches(&written, without_c(tail, id)),
        _ if written != lower => glob::matches(&written, &whole) || glob::matches(&written, without_c(&whole, id)),
        _ => false,
    }
}

/// The text of an id without its last format: `wgmma` omits that of C.
fn without_c<'a>(text: &'a str, id: &OperationId) -> &'a str {
    if id.family != "wgmma" || !id.qualifiers.is_empty() {
        return text;
    }
    text.rsplit_once('.').map_or(text, |(rest, _)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> OperationId {
        text.parse().expect(text)
    }

    #[test]
    fn words_for_formats_mean_the_operations_that_multiply_them() {
        let (fp8, fnuz) = (id("mma.m16n8k32.f32.e4m3.e5m2.f32"), id("mfma.m16n16k32.f32.e4m3fnuz.e4m3fnuz.f32"));
        let (f16, narrow) = (id("mma.m16n8k16.f32.f16.f16.f32"), id("mma.m16n8k16.f16.f16.f16.f16"));
        let integers = id("mma.m16n8k32.s32.u8.s8.s32");
        for (name, meant) in [
            ("fp8", vec![&fp8, &fnuz]),
            ("E4M3", vec![&fp8]),
            ("fp16", vec![&f16, &narrow]),
            ("half", vec![&f16, &narrow]),
            ("f16→f32", vec![&f16]),
            ("fp16->fp32", vec![&f16]),
            ("f16 -> f16", vec![&narrow]),
            ("e4m3*e5m2->f32", vec![&fp8]),
            ("e5m2*e4m3->f32", vec![]),
            ("int8", vec![&integers]),
            ("f32", vec![]),
        ] {
            let named = formats(name).unwrap_or_else(|| panic!("{name}"));
            let all = [&fp8, &fnuz, &f16, &narrow, &integers];
            let found: Vec<_> = all.into_iter().filter(|id| named.fits(id)).collect();
            assert_eq!(found, meant, "{name}");
        }
        for name in ["mma", "f16->", "->f32", "fp17", "*e4m3*", ""] {
            assert_eq!(formats(name), None, "{name}");
        }
    }

    #[test]
    fn ptx_means_the_operation_with_and_without_its_family() {
        for (pattern, of) in [
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.m16n8k16.f32.f16.f16.f32"),
            ("m16n8k16.f32.f16.f16.f32", "mma.m16n8k16.f32.f16.f16.f32"),
            ("m16n8k16.row.col.f32.f16.f16.f32", "mma.m16n8k16.f32.f16.f16.f32"),
            ("m16n8k16.*", "mma.m16n8k16.f32.f16.f16.f32"),
            ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "mma.m16n8k32.s32.s8.s8.s32.satfinite"),
            ("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", "wgmma.m64n8k32.f32.e4m3.e4m3.f32"),
            ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16.f32", "wmma.m16n16k16.f32.f16.f16.f32"),
        ] {
            assert!(is_ptx(pattern, &id(of)), "{pattern} {of}");
        }
        for pattern in ["m16n8k16", "m16n8k8.f32.f16.f16.f32", "mma", "f16", "sync", ""] {
            assert!(!is_ptx(pattern, &id("mma.m16n8k16.f32.f16.f16.f32")), "{pattern}");
        }
    }
}
