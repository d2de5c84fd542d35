//! Kinds of inputs: readers' names for the formats of an operation.

use mxprobe_api::{Format, OperationId};

use crate::{in_order::InOrder, record::Unit};

/// Kinds of inputs, in the order of tables.
const ORDER: [&str; 12] =
    ["f16", "bf16", "tf32", "xf32", "fp8", "fp8 fnuz", "fp6", "fp4", "f32", "f64", "int8", "int4"];

/// Formats of results, in the order of tables.
const RESULTS: [&str; 4] = ["f32", "f16", "bf16", "f64"];

/// Returns a reader's name for a format of A or B.
fn kind(format: Format) -> &'static str {
    match format.name() {
        "e4m3" | "e5m2" => "fp8",
        "e4m3fnuz" | "e5m2fnuz" => "fp8 fnuz",
        "e2m3" | "e3m2" => "fp6",
        "e2m1" => "fp4",
        "s8" | "u8" => "int8",
        "s4" | "u4" => "int4",
        "s16" => "int16",
        name => name,
    }
}

/// Returns the kinds of A and B, only one if they are the same: `fp8`, `mxfp4`, `fp8` and `fp4`.
///
/// Block-scaled formats are named after their specification, which the format of the scales determines: ue8m0 is that
/// of OCP Microscaling 1.0 (`mx`), ue4m3 that of NVIDIA's NVFP4 (`nv`).
pub(super) fn inputs(id: &OperationId) -> Vec<String> {
    let mut kinds = vec![kind(id.a), kind(id.b)];
    kinds.order_by_key(|kind| place(kind));
    kinds.dedup();
    let scaled = |kind: &str| match id.block_scale() {
        None => kind.to_owned(),
        Some(scale) => match scale.format.name() {
            "ue8m0" => format!("mx{kind}"),
            "ue4m3" => format!("nv{kind}"),
            format => format!("{kind}·{format}"),
        },
    };
    kinds.into_iter().map(scaled).collect()
}

/// Joins kinds, with common beginnings written once: `f16 bf16`, `fp8/6/4`, `int8/4`.
pub(super) fn label(inputs: &[String]) -> String {
    let mut words: Vec<String> = Vec::new();
    for kind in inputs {
        let cut = kind.len() - kind.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (stem, digits) = kind.split_at(cut);
        let counts = stem.ends_with("fp") || stem == "int";
        match words.last_mut().filter(|last| counts && !digits.is_empty() && last.starts_with(stem)) {
            Some(last) if last[stem.len()..].bytes().all(|byte| byte.is_ascii_digit() || byte == b'/') => {
                last.push('/');
                last.push_str(digits);
            }
            _ => words.push(kind.clone()),
        }
    }
    words.join(" ")
}

/// Returns the sort key of a kind in tables.
pub fn place(kind: &str) -> (bool, usize) {
    let plain = kind.strip_prefix("mx").or_else(|| kind.strip_prefix("nv")).unwrap_or(kind);
    let plain = plain.split_once('·').map_or(plain, |(kind, _)| kind);
    (plain != kind, ORDER.iter().position(|known| *known == plain).unwrap_or(ORDER.len()))
}

/// Returns the sort key of a result's format in tables; integers come last.
pub fn result_place(result: &str) -> usize {
    RESULTS.iter().position(|known| *known == result).unwrap_or(RESULTS.len())
}

/// Whether these are all formats of at most 8 bits, which a unit mixes freely and which hide part of the answers.
pub(super) fn is_narrow(inputs: &[String]) -> bool {
    inputs.iter().all(|kind| kind.contains("fp8") || kind.contains("fp6") || kind.contains("fp4"))
}

/// Returns the kind of unit that computes an operation.
pub(super) fn unit(id: &OperationId) -> Unit {
    if id.shape.m == 1 && id.shape.n == 1 { Unit::Vector } else { Unit::Matrix }
}

/// Whether a qualifier only names the scope, or the number of tiles, and does not affect how a dot is computed:
/// `wave32`, `workgroup`, `4b`, `1k`.
///
/// ```
/// use mxprobe_analysis::summary::is_layout;
///
/// assert!(is_layout("wave64") && !is_layout("satfinite"));
/// ```
#[must_use]
pub fn is_layout(word: &str) -> bool {
    let counted = |unit: char| word.strip_suffix(unit).is_some_and(|count| count.parse::<u32>().is_ok());
    ["wave32", "wave64", "subgroup", "workgroup", "device", "queuefamily"].contains(&word)
        || counted('b')
        || counted('k')
}

/// Returns the qualifiers that change the result: all but layouts and block scales.
pub(super) fn modes(id: &OperationId) -> Vec<String> {
    let mut words = id.qualifiers.iter().peekable();
    let mut modes = Vec::new();
    while let Some(word) = words.next() {
        if word.strip_prefix("block").is_some_and(|count| count.parse::<u32>().is_ok()) {
            words.next();
        } else if !is_layout(word) {
            modes.push(word.clone());
        }
    }
    modes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_called_by_the_names_of_their_formats_specifications() {
        let said = |id: &str| {
            let id: OperationId = id.parse().unwrap();
            (inputs(&id).join(" "), modes(&id).join(" "))
        };
        for (id, kinds, asks) in [
            ("mma.m16n8k32.f32.e4m3.e5m2.f32", "fp8", ""),
            ("mfma.m16n16k32.f32.e4m3fnuz.e5m2fnuz.f32", "fp8 fnuz", ""),
            ("tcgen05.m64n8k32.f32.e2m1.e4m3.f32", "fp8 fp4", ""),
            ("tcgen05.m128n8k64.f32.e2m1.e2m1.f32.block16.ue4m3", "nvfp4", ""),
            ("tcgen05.m128n8k64.f32.e2m1.e2m1.f32.block32.ue8m0", "mxfp4", ""),
            ("tcgen05.m128n8k64.f32.e2m1.e2m1.f32.block16.ue8m0", "mxfp4", ""),
            ("wmma.m16n16k16.s32.s8.u8.s32.satfinite.wave32", "int8", "satfinite"),
        ] {
            assert_eq!(said(id), (kinds.to_owned(), asks.to_owned()), "{id}");
        }
        let words = |kinds: &[&str]| label(&kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["f16", "bf16"]), "f16 bf16");
        assert_eq!(words(&["fp8", "fp6", "fp4"]), "fp8/6/4");
        assert_eq!(words(&["fp8", "fp8 fnuz", "mxfp8", "mxfp4"]), "fp8 fp8 fnuz mxfp8/4");
        assert_eq!(words(&["int8", "int4"]), "int8/4");
        assert!(place("mxfp4") > place("fp4") && place("fp6") > place("fp8"));
    }
}
