//! The evidence of a finding, with bits as full-width hexadecimal: records, or the text of a saved report that is decoded
//! when it is asked for.

use std::{
    borrow::Cow,
    fmt,
    ops::{Deref, Range},
    sync::{Arc, OnceLock},
};

use mxprobe_api::{Format, OperationId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::findings::{Evidence, Input};

/// One dot that was computed, with the predictions of rival answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Evidence"))]
pub struct EvidenceRecord {
    /// The purpose of the input.
    pub about: String,
    /// The scalar function that was called: its operands are in `a`, and `b` and `c` are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The k elements of A, as full-width hexadecimal.
    pub a: Vec<String>,
    /// The k elements of B.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub b: Vec<String>,
    /// The element of C.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub c: String,
    /// Scales of A, if the operation has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_a: Option<Vec<String>>,
    /// Scales of B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_b: Option<Vec<String>>,
    /// The result of the device.
    pub d: String,
    /// The results that other answers to the question predict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<RivalRecord>,
}

/// A rival answer and its prediction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Rival"))]
pub struct RivalRecord {
    /// The rival answer.
    pub answer: String,
    /// The predicted d.
    pub d: String,
}

impl EvidenceRecord {
    /// Converts evidence of an operation; its bits have the formats of the operation, or of the function that was
    /// called.
    #[must_use]
    pub fn new(evidence: &Evidence, id: &OperationId) -> Self {
        let hex = |format: Format, bits: &[u64]| bits.iter().map(|bits| format.hex(*bits)).collect::<Vec<_>>();
        let d_format = match &evidence.input {
            Input::Dot(_) => id.d,
            Input::Call(function, _) => function.result(id.a),
        };
        let rival = |(answer, d): &(String, u64)| RivalRecord { answer: answer.clone(), d: d_format.hex(*d) };
        let mut record = Self {
            about: evidence.about.clone(),
            function: None,
            a: Vec::new(),
            b: Vec::new(),
            c: String::new(),
            scale_a: None,
            scale_b: None,
            d: d_format.hex(evidence.d),
            rivals: evidence.rivals.iter().map(rival).collect(),
        };
        match &evidence.input {
            Input::Dot(dot) => {
                (record.a, record.b, record.c) = (hex(id.a, &dot.a), hex(id.b, &dot.b), id.c.hex(dot.c));
                let scales = id.block_scale().zip(dot.scales.as_ref());
                (record.scale_a, record.scale_b) =
                    scales.map(|(scale, (a, b))| (hex(scale.format, a), hex(scale.format, b))).unzip();
            }
            Input::Call(function, operands) => {
                (record.function, record.a) = (Some(function.to_string()), hex(id.a, operands));
            }
        }
        record
    }

    /// Converts several, as [`EvidenceRecord::new`] does for one.
    #[must_use]
    pub fn all<'e>(evidence: impl IntoIterator<Item = &'e Evidence>, id: &OperationId) -> Vec<Self> {
        evidence.into_iter().map(|evidence| Self::new(evidence, id)).collect()
    }
}

/// The dots that prove an answer: a list of [`EvidenceRecord`]s. Those of a saved report are decoded when they are
/// first asked for.
#[derive(Clone)]
pub struct EvidenceList(Kept);

#[derive(Clone)]
enum Kept {
    Records(Vec<EvidenceRecord>),
    Text(Saved),
}

/// Evidence in the text of a report.
#[derive(Clone)]
struct Saved {
    text: Arc<String>,
    dots: Vec<Places>,
    records: OnceLock<Vec<EvidenceRecord>>,
}

/// The places of one dot in a text. A list is the text between its brackets, as [`to_json`](super::to_json)
/// formats it; it is empty if the key is absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// The whole record.
    pub(super) whole: Place,
    pub(super) function: Option<Place>,
    pub(super) a: Place,
    pub(super) b: Place,
    pub(super) c: Place,
    pub(super) scale_a: Option<Place>,
    pub(super) scale_b: Option<Place>,
    pub(super) d: Place,
}

/// A range of bytes of a text, whose length fits in 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Place {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The input of a dot and its result, in the form in which reports are compared: each list as JSON without its
/// brackets. Two texts are equal if and only if their elements are.
pub struct DotText<'a> {
    /// The scalar function; empty for a dot.
    pub function: &'a str,
    /// The elements of a.
    pub a: Cow<'a, str>,
    /// The elements of b.
    pub b: Cow<'a, str>,
    /// The c.
    pub c: &'a str,
    /// The scales of a and of b, if there are any.
    pub scales: [Option<Cow<'a, str>>; 2],
    /// The result.
    pub d: &'a str,
}

impl EvidenceList {
    /// Evidence at these places of a text, each of which is the JSON of a record.
    pub(super) fn saved(text: &Arc<String>, dots: Vec<Places>) -> Self {
        Self(Kept::Text(Saved { text: text.clone(), dots, records: OnceLock::new() }))
    }

    /// The number of dots.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kept::Records(records) => records.len(),
            Kept::Text(saved) => saved.dots.len(),
        }
    }

    /// Whether there is no evidence.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of the record at an index, without decoding the others.
    pub fn record(&self, at: usize) -> EvidenceRecord {
        match &self.0 {
            Kept::Records(records) => records[at].clone(),
            Kept::Text(saved) => saved.decode(at),
        }
    }

    /// Iterates over the dots in the form in which reports are compared.
    pub fn texts(&self) -> impl Iterator<Item = DotText<'_>> {
        (0..self.len()).map(|at| match &self.0 {
            Kept::Records(records) => DotText::of(&records[at]),
            Kept::Text(saved) => saved.dot(at),
        })
    }

    /// Whether these are the same bytes of saved reports: then all dots are equal. The same dots may be written in other
    /// bytes.
    pub fn is_same_text(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kept::Text(saved), Kept::Text(other)) => saved.written() == other.written(),
            _ => false,
        }
    }
}

impl Saved {
    /// All records, from the first to the last.
    fn written(&self) -> &str {
        let start = self.dots.first().map_or(0, |dot| dot.whole.start);
        let end = self.dots.last().map_or(0, |dot| dot.whole.end);
        &self.text[Place { start, end }.range()]
    }

    fn decode(&self, at: usize) -> EvidenceRecord {
        serde_json::from_str(&self.text[self.dots[at].whole.range()]).expect("it was checked when it was read")
    }

    fn dot(&self, at: usize) -> DotText<'_> {
        let dot = &self.dots[at];
        let text = |place: Place| &self.text[place.range()];
        DotText {
            function: dot.function.map(text).unwrap_or_default(),
            a: Cow::Borrowed(text(dot.a)),
            b: Cow::Borrowed(text(dot.b)),
            c: text(dot.c),
            scales: [dot.scale_a, dot.scale_b].map(|place| Some(Cow::Borrowed(text(place?)))),
            d: text(dot.d),
        }
    }
}

impl<'a> DotText<'a> {
    fn of(record: &'a EvidenceRecord) -> Self {
        let text = |words: &Vec<String>| {
            let words = words.iter().map(|word| serde_json::to_string(word).expect("a text is JSON"));
            Cow::Owned(words.collect::<Vec<_>>().join(SEPARATOR))
        };
        Self {
            function: record.function.as_deref().unwrap_or_default(),
            a: text(&record.a),
            b: text(&record.b),
            c: &record.c,
            scales: [&record.scale_a, &record.scale_b].map(|scales| scales.as_ref().map(text)),
            d: &record.d,
        }
    }
}

/// What separates the elements of a list of texts in a report.
const SEPARATOR: &str = ", ";

impl Deref for EvidenceList {
    type Target = [EvidenceRecord];

    fn deref(&self) -> &[EvidenceRecord] {
        match &self.0 {
            Kept::Records(records) => records,
            Kept::Text(saved) => {
                saved.records.get_or_init(|| (0..saved.dots.len()).map(|at| saved.decode(at)).collect())
            }
        }
    }
}

impl<'a> IntoIterator for &'a EvidenceList {
    type Item = &'a EvidenceRecord;
    type IntoIter = std::slice::Iter<'a, EvidenceRecord>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Vec<EvidenceRecord>> for EvidenceList {
    fn from(records: Vec<EvidenceRecord>) -> Self {
        Self(Kept::Records(records))
    }
}

impl Default for EvidenceList {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl PartialEq for EvidenceList {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for EvidenceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for EvidenceList {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(to)
    }
}

impl<'de> Deserialize<'de> for EvidenceList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::deserialize(from).map(Self::from)
    }
}
