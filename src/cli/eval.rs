//! `eval`: computes dots, given as JSON lines, on any device or model.

use std::{
    io::{self, BufRead, Write},
    ops::Range,
};

use mxprobe_api::{Device, Elements, Format, Operation, OperationId, TileBatch, execute};
use mxprobe_sim::{Dot, Evaluator};
use serde::Deserialize;

use super::{
    Outcome,
    arguments::Eval,
    failure::Failure,
    output,
    registry::MODELS,
    select::{self, Target},
};

/// A line may not be longer than this.
const LONGEST_LINE_BYTES: usize = 16 << 20;

/// How much is read at once where a file or a full pipe allows it.
const READ_BYTES: usize = 1 << 18;

/// Answers every line of standard input.
pub(crate) fn eval(arguments: &Eval) -> Outcome {
    let (targets, _) = select::named(std::slice::from_ref(&arguments.device), &[], false)?;
    let [target] = targets.as_slice() else {
        let mut failure = Failure::usage(format!("`{}` means {} devices", arguments.device, targets.len()));
        for target in &targets {
            failure = failure.cause(format!("{}  {}", target.selector, target.listed.device.name));
        }
        return Err(failure.help("`eval` computes on one device: name one of them"));
    };
    let id = &select::one_operation(&arguments.op, &target.listed)?.id;
    let unit = Unit::open(target, id)?;
    let operation = unit.operation();
    let mut stdin = io::BufReader::with_capacity(READ_BYTES, io::stdin().lock());
    let mut stdout = io::stdout().lock();
    let mut answers = Vec::new();
    let mut line_number = 0;
    let mut begun = Vec::new(); // a line whose end has not come yet
    loop {
        let chunk = match stdin.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::usage(format!("standard input cannot be read: {error}"))),
        };
        let over = chunk.is_empty();
        let complete = if over { 0 } else { chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1) };
        let length = chunk.len();
        let mut dots = Dots::new(operation);
        let mut read = |text: &[u8]| -> Result<(), Failure> {
            text.split(|&byte| byte == b'\n').try_for_each(|line| {
                line_number += 1;
                dots.read(line).map_err(|error| error.on_line(line_number, line, operation))
            })
        };
        let mut result = Ok(());
        if over {
            if !begun.is_empty() {
                result = read(&begun);
            }
        } else if complete > 0 {
            begun.extend_from_slice(&chunk[..complete - 1]);
            result = read(&begun);
            begun.clear();
        }
        begun.extend_from_slice(&chunk[complete..]);
        let too_long = begun.len() > LONGEST_LINE_BYTES;
        stdin.consume(length);
        dots.answer(&unit, &mut answers)?;
        stdout.write_all(&answers).and_then(|()| stdout.flush()).map_err(|error| Failure::output(&error))?;
        answers.clear();
        result?;
        if too_long {
            return Err(Failure::usage(format!("line {} is longer than {LONGEST_LINE_BYTES} bytes", line_number + 1)));
        }
        if over {
            return output::print(b"");
        }
    }
}

/// One line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    a: Vec<&'a str>,
    #[serde(borrow)]
    b: Vec<&'a str>,
    c: &'a str,
    #[serde(borrow, default)]
    scale_a: Option<Vec<&'a str>>,
    #[serde(borrow, default)]
    scale_b: Option<Vec<&'a str>>,
}

/// What is wrong with a line.
struct Wrong(String);

impl Wrong {
    fn on_line(self, number: usize, line: &[u8], operation: &Operation) -> Failure {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        let shown: String = text.chars().take(100).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        let mut example = format!(
            r#"{{"a":["{}"],"b":["{}"],"c":"{}""#,
            operation.id.a.hex(operation.id.a.one()),
            operation.id.b.hex(operation.id.b.one()),
            operation.id.c.hex(0)
        );
        if let Some(scale) = operation.id.block_scale() {
            let one = scale.format.hex(scale.format.one());
            example += &format!(r#","scale_a":["{one}"],"scale_b":["{one}"]"#);
        }
        Failure::usage(format!("line {number}: {}", self.0))
            .cause(format!("{shown}{more}"))
            .help(format!("a line of {} is such as {example}}}", operation.id))
    }
}

/// Dots of one operation, as bits.
struct Dots<'a> {
    operation: &'a Operation,
    count: usize,
    a: Vec<u64>,
    b: Vec<u64>,
    c: Vec<u64>,
    scale_a: Vec<u64>,
    scale_b: Vec<u64>,
}

impl<'a> Dots<'a> {
    fn new(operation: &'a Operation) -> Self {
        let (a, b, c) = (Vec::new(), Vec::new(), Vec::new());
        Self { operation, count: 0, a, b, c, scale_a: Vec::new(), scale_b: Vec::new() }
    }

    /// Reads one line; an empty one is none.
    fn read(&mut self, line: &[u8]) -> Result<(), Wrong> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let line: Line = serde_json::from_slice(line).map_err(|error| Wrong(describe(&error)))?;
        let id = &self.operation.id;
        let k = id.shape.sizes().2;
        if line.a.len() != line.b.len() {
            return Err(Wrong(format!("a has {} elements and b has {}", line.a.len(), line.b.len())));
        }
        if line.a.len() > k {
            return Err(Wrong(format!("a and b have {} elements, and k of {id} is {k}", line.a.len())));
        }
        let kept = self.marks();
        let result = self.append(&line, k);
        match result {
            Ok(()) => self.count += 1,
            Err(_) => self.cut(kept),
        }
        result
    }

    fn append(&mut self, line: &Line, k: usize) -> Result<(), Wrong> {
        let id = &self.operation.id;
        numbers(&mut self.a, "a", id.a, &line.a, k, 0)?;
        numbers(&mut self.b, "b", id.b, &line.b, k, 0)?;
        numbers(&mut self.c, "c", id.c, &[line.c], 1, 0)?;
        let Some(scale) = id.block_scale() else {
            return match (&line.scale_a, &line.scale_b) {
                (None, None) => Ok(()),
                _ => Err(Wrong(format!("{id} takes no scale_a and no scale_b"))),
            };
        };
        let (Some(scale_a), Some(scale_b)) = (&line.scale_a, &line.scale_b) else {
            return Err(Wrong(format!(
                "scale_a and scale_b are wanted: one {} for each {} elements",
                scale.format, scale.block
            )));
        };
        let (least, most) = (line.a.len().div_ceil(scale.block), k.div_ceil(scale.block));
        for (name, scales) in [("scale_a", scale_a), ("scale_b", scale_b)] {
            if !(least..=most).contains(&scales.len()) {
                return Err(Wrong(format!(
                    "{name} has {} elements, and {} elements of a in blocks of {} take from {least} to {most}",
                    scales.len(),
                    line.a.len(),
                    scale.block
                )));
            }
        }
        let one = scale.format.one();
        numbers(&mut self.scale_a, "scale_a", scale.format, scale_a, most, one)?;
        numbers(&mut self.scale_b, "scale_b", scale.format, scale_b, most, one)
    }

    fn marks(&self) -> [usize; 5] {
        [self.a.len(), self.b.len(), self.c.len(), self.scale_a.len(), self.scale_b.len()]
    }

    fn cut(&mut self, marks: [usize; 5]) {
        let all = [&mut self.a, &mut self.b, &mut self.c, &mut self.scale_a, &mut self.scale_b];
        for (numbers, mark) in all.into_iter().zip(marks) {
            numbers.truncate(mark);
        }
    }

    /// Computes every dot and appends one line for each.
    fn answer(&self, unit: &Unit, answers: &mut Vec<u8>) -> Result<(), Failure> {
        let digits = self.operation.id.d.bits().div_ceil(4);
        answers.reserve(self.count * (digits as usize + 12));
        for bits in unit.compute(self)? {
            answers.extend_from_slice(b"{\"d\":\"0x");
            for digit in (0..digits).rev() {
                answers.push(b"0123456789abcdef"[(bits >> (4 * digit) & 15) as usize]);
            }
            answers.extend_from_slice(b"\"}\n");
        }
        Ok(())
    }
}

/// What computes: a device, or, dot by dot, a model.
enum Unit {
    Device(Box<dyn Device>, Operation),
    Model(Box<Evaluator>, Operation),
}

impl Unit {
    fn open(target: &Target, id: &OperationId) -> Result<Self, Failure> {
        let device = target.entry.open(&target.selector).map_err(Failure::no_device)?;
        let missing = || Failure::no_device(format!("{} has no operation {id} any more", target.selector));
        let operation = device.operations().get(id).ok_or_else(missing)?.clone();
        if target.entry.name != MODELS {
            return Ok(Self::Device(device, operation));
        }
        // The elements of a model's tile do not depend on each other: no need to compute those that nobody asked for.
        let name = target.selector.split_once(':').map_or(target.selector.as_str(), |(_, name)| name);
        let model = mxprobe_sim::load(name).map_err(Failure::usage)?;
        Ok(Self::Model(Box::new(Evaluator::new(&model, id).map_err(Failure::usage)?), operation))
    }

    fn operation(&self) -> &Operation {
        match self {
            Self::Device(_, operation) | Self::Model(_, operation) => operation,
        }
    }

    fn compute(&self, dots: &Dots) -> Result<Vec<u64>, Failure> {
        match self {
            Self::Device(device, operation) => on_diagonals(device.as_ref(), operation, dots),
            Self::Model(evaluator, operation) => {
                let k = operation.id.shape.sizes().2;
                let blocks = operation.id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
                let dot = |at: usize| Dot {
                    a: &dots.a[of(at, k)],
                    b: &dots.b[of(at, k)],
                    c: dots.c[at],
                    scales: (blocks > 0).then(|| (&dots.scale_a[of(at, blocks)], &dots.scale_b[of(at, blocks)])),
                };
                Ok((0..dots.count).map(|at| evaluator.dot(dot(at))).collect())
            }
        }
    }
}

/// The elements of the `at`th dot, where each has `length`.
fn of(at: usize, length: usize) -> Range<usize> {
    at * length..(at + 1) * length
}

/// Computes dots that lie on the diagonals of tiles, so that each has a row of A and a column of B of its own.
fn on_diagonals(device: &dyn Device, operation: &Operation, dots: &Dots) -> Result<Vec<u64>, Failure> {
    if dots.count == 0 {
        return Ok(Vec::new());
    }
    let (m, n, k) = operation.id.shape.sizes();
    let in_tile = m.min(n);
    let mut batch = TileBatch::zeros(operation, dots.count.div_ceil(in_tile));
    let blocks = operation.id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
    for dot in 0..dots.count {
        let (tile, lane) = (dot / in_tile, dot % in_tile);
        set_row(&mut batch.a, (tile * m + lane) * k, &dots.a[of(dot, k)]);
        set_column(&mut batch.b, tile * k * n + lane, n, &dots.b[of(dot, k)]);
        batch.c.set((tile * m + lane) * n + lane, dots.c[dot]);
        if let (Some(scale_a), Some(scale_b)) = (&mut batch.scale_a, &mut batch.scale_b) {
            set_row(scale_a, (tile * m + lane) * blocks, &dots.scale_a[of(dot, blocks)]);
            set_column(scale_b, tile * blocks * n + lane, n, &dots.scale_b[of(dot, blocks)]);
        }
    }
    let d = execute(device, operation, &batch)
        .map_err(|error| Failure::incomplete(error).help("answers to the lines before are written"))?;
    Ok((0..dots.count).map(|dot| d.get(((dot / in_tile) * m + dot % in_tile) * n + dot % in_tile)).collect())
}

fn set_row(elements: &mut Elements, at: usize, numbers: &[u64]) {
    for (index, bits) in numbers.iter().enumerate() {
        elements.set(at + index, *bits);
    }
}

fn set_column(elements: &mut Elements, at: usize, stride: usize, numbers: &[u64]) {
    for (index, bits) in numbers.iter().enumerate() {
        elements.set(at + index * stride, *bits);
    }
}

/// Appends `wanted` numbers: those of the text, then as often as needed `rest`.
fn numbers(
    into: &mut Vec<u64>,
    name: &str,
    format: Format,
    texts: &[&str],
    wanted: usize,
    rest: u64,
) -> Result<(), Wrong> {
    for (at, text) in texts.iter().enumerate() {
        let bits = format.parse_hex(text).map_err(|error| {
            let place = if name == "c" { name.to_owned() } else { format!("{name}[{at}]") };
            Wrong(format!("{place}: {error}"))
        })?;
        into.push(bits);
    }
    into.extend(std::iter::repeat_n(rest, wanted - texts.len()));
    Ok(())
}

/// The parser's words, without the number of the line, which it does not know.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let words = text.rsplit_once(" at line ").map_or(text.as_str(), |(words, _)| words);
    let words = words.replace("a borrowed string", "a text of hexadecimal digits");
    if error.is_data() { words } else { format!("not JSON: {words} at column {}", error.column()) }
}

#[cfg(test)]
#[path = "../../tests/mutation/mod.rs"]
#[allow(dead_code)]
mod mutation;

#[cfg(test)]
mod tests {
    use mxprobe_api::Backend;

    use super::{
        mutation::{MANY, files, survives},
        *,
    };

    fn read(text: &[u8], operation: &Operation) {
        let mut dots = Dots::new(operation);
        for line in text.split(|&byte| byte == b'\n') {
            let read = dots.read(line);
            let k = operation.id.shape.sizes().2;
            assert_eq!((dots.a.len(), dots.b.len(), dots.c.len()), (dots.count * k, dots.count * k, dots.count));
            if let Err(wrong) = read {
                assert!(!wrong.0.is_empty());
            }
        }
    }

    fn changed(count: u64) {
        let device = mxprobe_sim::SimBackend.open("rtx5090").expect("a model");
        let scaled = |operation: &&Operation| operation.id.block_scale().is_some();
        let operation = device.operations().values().find(scaled).expect("one has block scales").clone();
        let (a, b, c) = (operation.id.a.hex(1), operation.id.b.hex(2), operation.id.c.hex(3));
        let scale = operation.id.block_scale().expect("it was chosen so").format;
        let scale = scale.hex(scale.one());
        let line =
            format!(r#"{{"a":["{a}","{a}"],"b":["{b}","{b}"],"c":"{c}","scale_a":["{scale}"],"scale_b":["{scale}"]}}"#);
        read(line.as_bytes(), &operation);
        survives(count, vec![format!("{line}\n{line}\n").into_bytes()], move |text| read(text, &operation));
    }

    #[test]
    fn changed_dots_are_read_or_refused() {
        changed(files() / 3);
    }

    #[test]
    #[ignore = "100 000 files with those of the other kinds: cargo test --release -- --ignored changed"]
    fn many_changed_dots_are_read_or_refused() {
        changed(MANY / 3);
    }
}
