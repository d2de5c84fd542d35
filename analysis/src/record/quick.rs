//! Reads documents straight into their types, if nothing is wrong with them. Whatever is wrong is said by
//! [`check`](super::check), which reads a document into a tree of values first and so knows where a problem is.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::{
    report::Report,
    scan::{Scanned, scan},
};

/// Reads a document with a schema that `is_known`, or an array of them, nested at most `deepest` deep. `None` if a key
/// appears twice in an object, or anything else is wrong.
pub(super) fn documents<T: DeserializeOwned>(
    text: &str,
    deepest: usize,
    is_known: &dyn Fn(&str) -> bool,
) -> Option<Vec<T>> {
    scan(text, None, deepest, is_known)?;
    typed(text)
}

/// Like [`documents`], for reports, whose evidence is not decoded but stays in the text.
pub(super) fn reports(text: &Arc<String>, deepest: usize, is_known: &dyn Fn(&str) -> bool) -> Option<Vec<Report>> {
    let Scanned { text: without, evidence } = scan(text, Some(text), deepest, is_known)?;
    let mut reports: Vec<Report> = typed(&without)?;
    let mut left = evidence.len();
    let mut evidence: Vec<_> = evidence.into_iter().map(Some).collect();
    let operations = reports.iter_mut().flat_map(|report| &mut report.operations);
    for finding in operations.flat_map(|operation| &mut operation.findings) {
        if let [stand_in] = &*finding.evidence {
            let at: usize = stand_in.about.parse().ok()?;
            finding.evidence = evidence.get_mut(at)?.take()?;
            left -= 1;
        }
    }
    (left == 0).then_some(reports)
}

fn typed<T: DeserializeOwned>(text: &str) -> Option<Vec<T>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let found = match text.trim_start().starts_with('[') {
        true => serde::Deserialize::deserialize(&mut reader).ok()?,
        false => vec![T::deserialize(&mut reader).ok()?],
    };
    reader.end().ok()?;
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::record::{DotText, FindingRecord};

    #[derive(serde::Deserialize, PartialEq, Debug)]
    struct One {
        schema: String,
        tree: serde_json::Value,
    }

    fn read(text: &str) -> Option<usize> {
        let found: Vec<One> = documents(text, 5, &|schema| schema == "a/1.0")?;
        assert!(found.iter().all(|one| one.schema == "a/1.0"));
        Some(found.len())
    }

    #[test]
    fn whole_documents_of_the_schema_are_read() {
        assert_eq!(read(r#"{"schema": "a/1.0", "tree": [1, [2.5, [true, "x"]]], "unknown": null}"#), Some(1));
        assert_eq!(read(r#" [{"schema": "a/1.0", "tree": {}}, {"tree": -3, "schema": "a/1.0"}] "#), Some(2));
        assert_eq!(read("[]"), Some(0));
    }

    #[test]
    fn whatever_is_wrong_is_left_to_the_reader_that_says_it() {
        for wrong in [
            r#"{"schema": "a/2.0", "tree": 1}"#,
            r#"{"tree": 1}"#,
            r#"{"schema": 1, "tree": 1}"#,
            r#"{"schema": "a/1.0"}"#,
            r#"{"schema": "a/1.0", "tree": 1} x"#,
            r#"{"schema": "a/1.0", "tree": 1"#,
            r#"{"schema": "a/1.0", "tree": {"x": 1, "y": 2, "x": 1}}"#,
            r#"{"schema": "a/1.0", "tree": 1, "unknown": {"x": 1, "\u0078": 2}}"#,
            r#"{"schema": "a/1.0", "tree": [[[[[1]]]]]}"#,
            r#"[{"schema": "a/1.0", "tree": 1}, {"schema": "b/1.0", "tree": 1}]"#,
            r#"[[{"schema": "a/1.0", "tree": 1}]]"#,
            r#"[["a/1.0", 1]]"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    /// A report with this evidence.
    fn report(evidence: &str) -> Arc<String> {
        Arc::new(format!(
            r#"{{"schema": "mxprobe-report/1.4",
            "tool": {{"name": "x", "version": "1", "target": "x", "rustc": "x", "arguments": []}},
            "time": {{"start": "2026-01-01T00:00:00Z", "duration_ns": 1, "interrupted": false}},
            "host": {{"os": "x"}}, "refusals": [], "evidence": [3],
            "device": {{"backend": "sim", "selector": "sim:x", "name": "x", "fingerprint": "x", "kind": "model", "properties": {{}}}},
            "operations": [{{"id": "dot.m1n1k2.f32.bf16.bf16.f32", "scope": "thread", "dots": 1, "duration_ns": 1, "findings": [
              {{"probe": "none", "outcome": "measured", "value": {{"evidence": [1]}}, "statement": "\"evidence\":[{{", "evidence": []}},
              {{"probe": "p", "outcome": "measured", "value": 1, "statement": "s", "evidence": {evidence}}},
              {{"evidence": [{{"about": "0", "a": ["]}}"], "d": ""}}], "probe": "q", "outcome": "measured", "statement": ""}}]}}]}}"#
        ))
    }

    #[test]
    fn evidence_is_found_in_the_text_as_it_would_be_read() {
        for evidence in [
            "[]",
            r#"[{"about": "é, a tie", "a": ["0x1", "0x2"], "b": ["0x3", "0x4"], "c": "0x5", "d": "0x6"}]"#,
            r#"[{"d":"0x6","rivals":[],"c":"","a":[],"about":""}, {"about": "x", "function": "sqrt", "a": ["0x1234567890"],
                "d": "1", "scale_a": ["a", "b"], "scale_b": [], "rivals": [{"answer": "x", "d": "y"}, {"d":"z","answer":"w"}]}]"#,
        ] {
            let text = report(evidence);
            let found = reports(&text, 100, &|_| true).expect("the usual form");
            let wanted: Report = serde_json::from_str(&text).unwrap();
            assert_eq!(found[0].operations, wanted.operations, "{evidence}");
            for (found, wanted) in found[0].operations[0].findings.iter().zip(&wanted.operations[0].findings) {
                let texts = |finding: &FindingRecord| {
                    let text = |dot: DotText<'_>| {
                        let scales = dot.scales.map(|scales| scales.map(Cow::into_owned));
                        [dot.function, &dot.a, &dot.b, dot.c, dot.d]
                            .map(str::to_owned)
                            .map(Some)
                            .into_iter()
                            .chain(scales)
                    };
                    finding.evidence.texts().flat_map(text).collect::<Vec<_>>()
                };
                assert_eq!(texts(found), texts(wanted), "{evidence}");
                assert_eq!(found.evidence.len(), wanted.evidence.len());
                for (at, record) in wanted.evidence.iter().enumerate() {
                    assert_eq!(found.evidence.record(at), *record);
                }
            }
        }
    }

    #[test]
    fn evidence_in_another_form_is_left_to_the_other_reader() {
        for evidence in [
            "null",
            "3",
            "[3]",
            "[{}]",
            r#"[{"about": "x", "a": ["0x1","0x2"], "d": "0x6"}]"#,
            r#"[{"about": "x", "a": [ "0x1"], "d": "0x6"}]"#,
            r#"[{"about": "x", "a": ["0x1", ], "d": "0x6"}]"#,
            r#"[{"about": "x", "a": ["\u0031"], "d": "0x6"}]"#,
            r#"[{"about": "\u0031", "a": ["0x1"], "d": "0x6"}]"#,
            r#"[{"about": "x", "a": ["0x1"]}]"#,
            r#"[{"about": "x", "a": ["0x1"], "a": ["0x1"], "d": "0x6"}]"#,
            r#"[{"about": "x", "a": ["0x1"], "d": "0x6", "new": 1}]"#,
            r#"[{"about": "x", "a": ["0x1"], "d": "0x6", "function": null}]"#,
            r#"[{"about": "x", "a": ["0x1"], "d": "0x6", "rivals": [{"answer": "x"}]}]"#,
            r#"[{"about": "x", "a": ["0x1"], "d": "0x6"},]"#,
            r#"[{"about": "x", "a": ["0x1"], "d": "0x6"}"#,
            "[{\"about\": \"x\u{1}\", \"a\": [\"0x1\"], \"d\": \"0x6\"}]",
        ] {
            assert!(reports(&report(evidence), 100, &|_| true).is_none(), "{evidence}");
        }
    }
}
