//! The messages of the device protocol, as `docs/protocol.md` describes it.
//!
//! A message is one line of JSON. Its key `bytes`, if present, lists the lengths of the raw parts that follow the line:
//! operands of a request, or results of an answer; elements are little-endian and not padded.

use std::io::{self, BufRead, Read, Write};

use mxprobe_api::{
    Clock, Elements, Error, ErrorKind, Format, Issued, Load, Operation, OperationId, Refusal, ScalarFunction, ScalarId,
    Span, TileBatch, Timed,
};
use serde::{Deserialize, Serialize};

use super::{
    described::Described,
    screening::{ScreenRecord, ScreenedRecord},
};

/// The version of the protocol: programs with the same version understand each other.
pub const PROTOCOL: &str = "mxprobe-device/1";

/// The longest line of JSON accepted: enough to list a device with tens of thousands of operations.
pub(super) const LONGEST_LINE_BYTES: usize = 64 << 20;

/// A request to a device's process. Each request has one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// List the devices.
    Discover {
        /// [`PROTOCOL`], so that a program can refuse another version.
        protocol: String,
        /// The backend whose devices are wanted; absent for a program that has only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backend: Option<String>,
    },
    /// Open a device that discovery does not list, and describe it.
    Open {
        /// Its selector.
        device: String,
    },
    /// Compute D of a batch of tiles. Parts: A, B, C, and the scales of A and of B if the operation has block scales.
    Execute {
        /// The device's selector, as discovery gave it.
        device: String,
        /// The operation.
        operation: OperationId,
        /// The number of tiles.
        tiles: usize,
    },
    /// Call a scalar function. One part: the operands of each call side by side.
    Call {
        /// The device's selector.
        device: String,
        /// The format and mode.
        scalar: ScalarId,
        /// The function.
        function: ScalarFunction,
    },
    /// Like [`Call`](Self::Call), but also returns the status flags of each call.
    CallWithFlags {
        /// The device's selector.
        device: String,
        /// The format and mode.
        scalar: ScalarId,
        /// The function.
        function: ScalarFunction,
    },
    /// Compute D of whole matrices. Parts: A m×k, B k×n, C m×n, row-major, and the scales of A and of B if the
    /// operation has block scales.
    Multiply {
        /// The device's selector.
        device: String,
        /// The operation that is chained along k.
        operation: OperationId,
        /// m, n and k.
        sizes: [usize; 3],
    },
    /// Time chains of an operation. Parts as for [`Execute`](Self::Execute).
    Time {
        /// The device's selector.
        device: String,
        /// The operation, or a yardstick of the device.
        operation: OperationId,
        /// The number of tiles sent.
        tiles: usize,
        /// Dependent multiply-adds in each chain.
        steps: u64,
        /// How much of the device works.
        span: Span,
    },
    /// Compute blocks of tiles repeatedly on each unit, and compare digests. Parts as for [`Execute`](Self::Execute).
    Screen(ScreenRecord),
    /// Show the code that the driver runs for an operation.
    Code {
        /// The device's selector.
        device: String,
        /// The operation.
        operation: OperationId,
    },
    /// Return the SHA-256 of the kernel passed to the driver for an operation.
    Kernel {
        /// The device's selector.
        device: String,
        /// The operation.
        operation: OperationId,
    },
    /// Open the library that multiplies f32 matrices on a device.
    Library {
        /// The device's selector.
        device: String,
    },
    /// Multiply f32 matrices with that library. Parts: A m×k and B k×n, row-major.
    MultiplyWithLibrary {
        /// The device's selector.
        device: String,
        /// m, n and k.
        sizes: [usize; 3],
    },
}

/// An answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To `discover`.
    Found {
        /// [`PROTOCOL`].
        protocol: String,
        /// The devices.
        #[serde(default)]
        devices: Vec<Described>,
        /// Devices that were found or searched for but cannot be used.
        #[serde(default)]
        refusals: Vec<Refusal>,
    },
    /// To `open`.
    Opened {
        /// The device.
        device: Box<Described>,
    },
    /// To `execute`, `call`, `multiply` and `multiply_with_library`; one part: the elements. To `call_with_flags`, with
    /// a second part: a byte of flags for each call.
    Done {
        /// Nanoseconds that product kernels have run since the device or the library was opened, by the device's own
        /// clock; absent if it cannot tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel_ns: Option<u64>,
    },
    /// To `multiply`, if the device has no faster way than tile by tile for this operation.
    TileByTile,
    /// To `time`; one part: the last D of every chain.
    Timed(TimedRecord),
    /// To `screen`; one part for each wrong block that is kept, in order: D of the block.
    Screened {
        /// The results of each unit.
        units: Vec<ScreenedRecord>,
    },
    /// To `code`.
    Code {
        /// The code that the driver shows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issued: Option<Issued>,
    },
    /// To `kernel`.
    Kernel {
        /// In hex; absent if no kernel is passed to a driver.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// To `library`.
    Library {
        /// The library's own name.
        name: String,
    },
    /// To any request: it failed.
    Failed {
        /// The kind of error; `driver` if absent or unknown.
        #[serde(default)]
        kind: ErrorKind,
        /// The error, in one line.
        message: String,
    },
}

/// [`Timed`] without its elements, which follow as the message's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedRecord {
    /// How long the chains took, in nanoseconds.
    pub elapsed_ns: f64,
    /// The clock that measured this.
    pub clock: Clock,
    /// The number of units that worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<u32>,
    /// The name for a unit.
    pub unit: String,
    /// Cycles per second of a unit while it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_hz: Option<f64>,
    /// The tiles of A, B and C that each chain uses.
    pub pattern: Vec<[usize; 3]>,
}

impl From<&Timed> for TimedRecord {
    fn from(timed: &Timed) -> Self {
        Self {
            elapsed_ns: timed.elapsed_ns,
            clock: timed.clock,
            units: timed.units,
            unit: timed.unit.clone(),
            frequency_hz: timed.frequency_hz,
            pattern: timed.pattern.clone(),
        }
    }
}

impl TimedRecord {
    /// Completes the measurement with the elements that followed it.
    #[must_use]
    pub fn with(self, d: Elements) -> Timed {
        let Self { elapsed_ns, clock, units, unit, frequency_hz, pattern } = self;
        Timed { elapsed_ns, clock, units, unit, frequency_hz, pattern, d }
    }
}

/// A message, recognised by one of its keys.
pub(super) trait Message: for<'de> Deserialize<'de> {
    /// The key that marks a line as a message.
    const KEY: &'static str;
}

impl Message for Request {
    const KEY: &'static str = "ask";
}

impl Message for Answer {
    const KEY: &'static str = "answer";
}

/// A message and its parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame<M, P = Vec<u8>> {
    pub(super) message: M,
    pub(super) parts: Vec<P>,
}

/// The JSON line of a message.
#[derive(Serialize, Deserialize)]
struct Line<M> {
    #[serde(flatten)]
    message: M,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bytes: Vec<usize>,
}

impl<M: Serialize, P: AsRef<[u8]>> Frame<M, P> {
    /// Writes the message to a stream.
    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let bytes = self.parts.iter().map(|part| part.as_ref().len()).collect();
        let mut line = serde_json::to_vec(&Line { message: &self.message, bytes })?;
        line.push(b'\n');
        stream.write_all(&line)?;
        self.parts.iter().try_for_each(|part| stream.write_all(part.as_ref()))?;
        stream.flush()
    }
}

/// The next item on a stream.
#[derive(Debug, PartialEq)]
pub(super) enum Next<M> {
    /// A message.
    Message(Frame<M>),
    /// A line that is not a message, such as what a driver prints.
    Stray(Vec<u8>),
    /// A line that was meant as a message but is malformed: the line and the error.
    Wrong(Vec<u8>, String),
    /// A message whose parts are longer than the reader allows: the number of bytes announced.
    TooLong(usize),
    /// The end.
    End,
}

/// Reads the next message; its parts may have `most_bytes` in total.
///
/// # Errors
/// Those of the stream, and an unexpected end within a part.
pub(super) fn read<M: Message>(stream: &mut impl BufRead, most_bytes: impl Fn() -> usize) -> io::Result<Next<M>> {
    let mut line = Vec::new();
    if stream.take(LONGEST_LINE_BYTES as u64).read_until(b'\n', &mut line)? == 0 {
        return Ok(Next::End);
    }
    let text = line.strip_suffix(b"\n").unwrap_or(&line);
    let is_object = text.trim_ascii_start().first() == Some(&b'{');
    // The parser's limit of 128 levels exceeds the depth of any message.
    let Line { message, bytes } = match is_object.then(|| serde_json::from_slice(text)) {
        Some(Ok(line)) => line,
        None if is_begun::<M>(text) => {
            return Ok(Next::Wrong(text.to_owned(), "other text precedes it on its line".to_owned()));
        }
        None => return Ok(Next::Stray(text.to_owned())),
        Some(Err(_)) if !is_meant::<M>(text) => return Ok(Next::Stray(text.to_owned())),
        Some(Err(error)) => return Ok(Next::Wrong(text.to_owned(), error.to_string())),
    };
    let total = bytes.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length)).unwrap_or(usize::MAX);
    if total > most_bytes() {
        return Ok(Next::TooLong(total));
    }
    let mut parts = Vec::with_capacity(bytes.len().min(8));
    for length in bytes {
        // Memory that is about to be overwritten is not zeroed first.
        let mut part = Vec::with_capacity(length);
        if stream.take(length as u64).read_to_end(&mut part)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        parts.push(part);
    }
    Ok(Next::Message(Frame { message, parts }))
}

/// Whether a line that did not parse is meant as a message: an object with the key of messages, or a text that starts
/// like one.
fn is_meant<M: Message>(text: &[u8]) -> bool {
    match serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(text) {
        Ok(object) => object.contains_key(M::KEY),
        Err(_) => {
            let begin: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(16).collect();
            begin.starts_with(format!("{{\"{}\":", M::KEY).as_bytes())
        }
    }
}

/// Whether a message starts somewhere within a line: the text sent before it was not terminated, or was longer than
/// announced.
fn is_begun<M: Message>(text: &[u8]) -> bool {
    let begin = format!("{{\"{}\":", M::KEY);
    text.windows(begin.len()).any(|window| window == begin.as_bytes())
}

/// The operands of a batch as parts: A, B, C and the scales.
pub(super) fn parts_of_batch(batch: &TileBatch) -> Vec<&[u8]> {
    let operands = [Some(&batch.a), Some(&batch.b), Some(&batch.c), batch.scale_a.as_ref(), batch.scale_b.as_ref()];
    operands.into_iter().flatten().map(Elements::bytes).collect()
}

/// Builds the batch of an operation from its parts.
///
/// # Errors
/// [`Error::is_invalid`] if a part is missing, superfluous or of the wrong length.
pub(super) fn batch_of_parts(operation: &Operation, tiles: usize, parts: Vec<Vec<u8>>) -> Result<TileBatch, Error> {
    let id = &operation.id;
    let (given, scale) = (parts.len(), id.block_scale());
    let wanted = if scale.is_some() { 5 } else { 3 };
    if given != wanted {
        return Err(Error::invalid(format!("{given} operands were sent for {id}, which takes {wanted}")));
    }
    let mut parts = parts.into_iter();
    let mut next = |format: Format| Elements::from_bytes(format, parts.next().unwrap_or_default());
    let mut batch = TileBatch { tiles, a: next(id.a)?, b: next(id.b)?, c: next(id.c)?, scale_a: None, scale_b: None };
    if let Some(scale) = scale {
        batch.scale_a = Some(next(scale.format)?);
        batch.scale_b = Some(next(scale.format)?);
    }
    batch.validate(operation)?;
    Ok(batch)
}

/// Builds a request to time a load.
pub(super) fn time_request(device: &str, operation: &Operation, load: &Load<'_>) -> Request {
    let (steps, span, tiles) = (load.steps, load.span, load.operands.tiles);
    Request::Time { device: device.to_owned(), operation: operation.id.clone(), tiles, steps, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(text: &[u8], most_bytes: usize) -> Next<Request> {
        read(&mut &text[..], || most_bytes).unwrap()
    }

    #[test]
    fn a_request_reads_as_it_was_written() {
        let operation: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        let message = Request::Execute { device: "x:0".into(), operation, tiles: 2 };
        let frame = Frame { message, parts: vec![vec![1, 2, 3], Vec::new(), vec![b'\n', b'{']] };
        let mut text = Vec::new();
        frame.write(&mut text).unwrap();
        let line = "{\"ask\":\"execute\",\"device\":\"x:0\",\"operation\":\"mma.m16n8k16.f32.f16.f16.f32\",\
                    \"tiles\":2,\"bytes\":[3,0,2]}\n";
        assert!(text.starts_with(line.as_bytes()), "{}", String::from_utf8_lossy(&text));
        assert_eq!(next(&text, 5), Next::Message(frame));
        assert_eq!(next(&text, 4), Next::TooLong(5));
    }

    #[test]
    fn what_is_not_a_message_is_stray() {
        for line in ["", "loading driver …", "{", "{}", "{\"answer\":\"done\"}", "{\"asks\":1", "[1]"] {
            assert_eq!(next(format!("{line}\n").as_bytes(), 9), Next::Stray(line.as_bytes().to_owned()), "{line}");
        }
        assert_eq!(next(b"", 9), Next::End);
        assert!(read::<Request>(&mut &b"{\"ask\":\"library\",\"device\":\"x\",\"bytes\":[2]}\n1"[..], || 9).is_err());
    }

    #[test]
    fn what_is_meant_as_a_message_and_is_none_comes_with_the_reason() {
        for (line, reason) in [
            (r#"{"ask":"nothing"}"#, "unknown variant `nothing`"),
            (r#"{"ask":"library"}"#, "missing field `device`"),
            (r#"{"ask":"library","device":"x","bytes":[-1]}"#, "invalid value: integer `-1`"),
            (r#" { "ask" : "library", "device": NaN}"#, "expected value"),
            (r#"loading … {"ask":"library","device":"x"}"#, "other text precedes it on its line"),
        ] {
            match next(format!("{line}\n").as_bytes(), 9) {
                Next::Wrong(text, said) => {
                    assert_eq!(text, line.as_bytes());
                    assert!(said.contains(reason), "{line}: {said}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn lengths_that_overflow_are_too_long() {
        let line = format!("{{\"ask\":\"library\",\"device\":\"x\",\"bytes\":[{0},{0}]}}\n", usize::MAX);
        assert_eq!(next(line.as_bytes(), usize::MAX - 1), Next::TooLong(usize::MAX));
    }

    #[test]
    fn errors_of_kinds_that_nobody_knows_are_the_drivers() {
        let read = |text: &str| serde_json::from_str::<Answer>(text).unwrap();
        let failed = |kind| Answer::Failed { kind, message: "m".into() };
        assert_eq!(read(r#"{"answer":"failed","message":"m"}"#), failed(ErrorKind::Driver));
        assert_eq!(read(r#"{"answer":"failed","kind":"odd","message":"m"}"#), failed(ErrorKind::Driver));
        assert_eq!(read(r#"{"answer":"failed","kind":"timed_out","message":"m"}"#), failed(ErrorKind::TimedOut));
    }
}
