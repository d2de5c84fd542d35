//! `eval`: computes dots, given as JSON lines or in NumPy files, on any device or model.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    ops::Range,
    path::Path,
    sync::Arc,
};

use mxprobe_api::{
    Device, DotOperands, Elements, Error, GemmOperands, Operation, OperationId, TileBatch, execute, multiply,
};
use mxprobe_dots::write_answers;

use crate::cli::{
    arguments::{Eval, Screen},
    choose::{
        limits::Limits,
        reach::{Isolation, Reached, reach},
        select,
        target::{Search, Target},
    },
    failure::{Failure, Outcome},
    io::{
        dot_lines::{Dots, example, range_of},
        interrupt::Interrupt,
        npy, output,
        progress::Progress,
    },
};

/// The maximum length of a line.
const LONGEST_LINE_BYTES: usize = 16 << 20;

/// The size of the read buffer.
const READ_BYTES: usize = 1 << 18;

/// Answers every line of standard input, or every row of arrays.
pub(crate) fn eval(arguments: &Eval, screen: Screen) -> Outcome {
    let isolate = !arguments.reach.no_isolation;
    let search = Search::by(&arguments.reach, std::slice::from_ref(&arguments.op));
    let (targets, _) = select::named(std::slice::from_ref(&arguments.device), &[], &search)?;
    let [target] = targets.as_slice() else {
        let mut failure = Failure::usage(format!("`{}` matches {} devices", arguments.device, targets.len()));
        for target in &targets {
            failure = failure.cause(format!("{}  {}", target.selector, target.listed.device.name));
        }
        return Err(failure.help("`eval` computes on one device: name one of them"));
    };
    let id = &select::one_operation(&arguments.op, &target.listed)?.id;
    let limits = Limits::new(arguments.reach.timeout, None, Interrupt::default());
    let isolation = Isolation { wanted: isolate, forward_stderr: false };
    let opened = Opened::new(target, id, reach(target, isolation, &limits))?;
    let operation = &opened.operation;
    if let (Some(a), Some(b), Some(out)) = (&arguments.a, &arguments.b, &arguments.out) {
        let files = Files { a, b, c: arguments.c.as_deref(), out, as_bits: arguments.bits };
        return opened.answer_files(&files, screen, Progress::of_one(screen, format!("{} {id}", target.selector)));
    }
    if let Some(words) = hint(operation, io::stdin().is_terminal() && !screen.quiet) {
        output::note(words);
    }
    let mut stdin = io::BufReader::with_capacity(READ_BYTES, io::stdin().lock());
    let mut stdout = io::stdout().lock();
    let mut answers = Vec::new();
    let mut line_number = 0;
    let mut progress = Answered::new(screen, &target.selector, id);
    let mut told = screen.quiet; // that a value was rounded
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
            let mut left = Some(text);
            while let Some(text) = left {
                line_number += 1;
                left = dots.read_first(text).map_err(|(error, line)| error.on_line(line_number, line, operation))?;
            }
            Ok(())
        };
        let mut result = Ok(());
        if over {
            if !begun.is_empty() {
                result = read(&begun);
            }
        } else if complete > 0 {
            if begun.is_empty() {
                result = read(&chunk[..complete - 1]);
            } else {
                begun.extend_from_slice(&chunk[..complete - 1]);
                result = read(&begun);
                begun.clear();
            }
        }
        begun.extend_from_slice(&chunk[complete..]);
        let too_long = begun.len() > LONGEST_LINE_BYTES;
        stdin.consume(length);
        progress.read(length, line_number);
        if let Some(rounded) = dots.rounded.take().filter(|_| !told) {
            output::note(format!("note: {rounded}; further rounded values are not reported"));
            told = true;
        }
        dots.answer(&opened, &mut answers)?;
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

/// Says what to type, for people whose standard input is a terminal.
fn hint(operation: &Operation, is_typed: bool) -> Option<String> {
    is_typed
        .then(|| format!("note: reading one dot per line until end of file (Ctrl-D), such as {}", example(operation)))
}

/// How much of standard input was answered.
struct Answered {
    /// Absent if the user watches the answers themselves, or types the lines.
    progress: Option<Progress>,
    /// The size of standard input, if it is a file.
    length: Option<u64>,
    done: u64,
}

impl Answered {
    fn new(screen: Screen, selector: &str, id: &OperationId) -> Self {
        let is_watched = io::stdin().is_terminal() || io::stdout().is_terminal();
        let progress = (!is_watched).then(|| Progress::at_terminal(screen, format!("{selector} {id}")));
        Self { progress, length: stdin_bytes(), done: 0 }
    }

    fn read(&mut self, bytes: usize, lines: usize) {
        self.done += bytes as u64;
        let part = self.length.filter(|length| *length > 0).map_or(0.0, |length| self.done as f64 / length as f64);
        if let Some(progress) = &mut self.progress {
            progress.part(&format!("{lines} lines"), part);
        }
    }
}

/// Returns the size of standard input, if it is a file.
fn stdin_bytes() -> Option<u64> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let file = std::fs::File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        file.metadata().ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
    }
    #[cfg(not(unix))]
    None
}

impl Dots<'_> {
    /// Computes every dot and appends one line for each.
    fn answer(&self, opened: &Opened, answers: &mut Vec<u8>) -> Result<(), Failure> {
        write_answers(self.operation.id.d, &opened.compute(self)?, answers);
        Ok(())
    }
}

/// The files of dots, and that of their results.
struct Files<'a> {
    a: &'a Path,
    b: &'a Path,
    c: Option<&'a Path>,
    out: &'a Path,
    as_bits: bool,
}

/// Dots from arrays, as elements of the operation's formats.
struct Arrays {
    count: usize,
    a: Elements,
    b: Elements,
    c: Elements,
}

impl Arrays {
    /// Reads the files. Rows shorter than k are padded with +0.
    fn read(files: &Files, operation: &Operation, screen: Screen) -> Result<Self, Failure> {
        let id = &operation.id;
        if id.block_scale().is_some() {
            return Err(Failure::usage(format!("{id} takes block scales, which `--a` and `--b` do not have"))
                .help("standard input takes dots with scales: one JSON object per line"));
        }
        let k = id.shape.sizes().2;
        let mut lengths: Vec<(&Path, usize)> = Vec::new();
        let mut read = |name: &str, path, format, dimensions| -> Result<Elements, Failure> {
            let npy::Rows { elements, rows, columns, rounded } = npy::read_rows(path, format, dimensions)?;
            if rounded > 0 && !screen.quiet {
                let count = elements.len();
                output::note(format!("note: {rounded} of {count} elements of {name} were rounded to {format}"));
            }
            lengths.push((path, rows));
            if dimensions == 1 {
                return Ok(elements);
            }
            if columns > k {
                let path = path.display();
                return Err(Failure::usage(format!("`{path}`: rows of {columns} elements, but k of {id} is {k}")));
            }
            Ok(padded(elements, rows, columns, k))
        };
        let (a, b) = (read("A", files.a, id.a, 2)?, read("B", files.b, id.b, 2)?);
        let c = files.c.map(|path| read("C", path, id.c, 1)).transpose()?;
        let (first, count) = lengths[0];
        if let Some((other, found)) = lengths.iter().find(|(_, found)| *found != count) {
            let (first, other) = (first.display(), other.display());
            return Err(Failure::usage(format!("`{first}` has {count} dots, and `{other}` has {found}")));
        }
        Ok(Self { count, a, b, c: c.unwrap_or_else(|| Elements::zeros(id.c, count)) })
    }

    /// Dots of a range, k elements of A and B each.
    fn part(&self, dots: &Range<usize>, k: usize) -> Self {
        let part = |elements: &Elements, of_each: usize| {
            let size = of_each * elements.format().storage_bytes();
            let bytes = elements.bytes()[dots.start * size..dots.end * size].to_vec();
            Elements::from_bytes(elements.format(), bytes).expect("whole elements")
        };
        Self { count: dots.len(), a: part(&self.a, k), b: part(&self.b, k), c: part(&self.c, 1) }
    }
}

/// Pads rows with +0 to k elements.
fn padded(elements: Elements, rows: usize, columns: usize, k: usize) -> Elements {
    if columns == k {
        return elements;
    }
    let mut padded = Elements::zeros(elements.format(), rows * k);
    let size = elements.format().storage_bytes();
    let found = elements.bytes().chunks_exact((columns * size).max(1));
    let places = padded.bytes_mut().chunks_exact_mut(k * size);
    found.zip(places).for_each(|(row, place)| place[..row.len()].copy_from_slice(row));
    padded
}

/// Dots that are computed in one call.
const DOTS_AT_ONCE: usize = 1 << 17;

/// The device and operation that compute.
struct Opened {
    device: Arc<dyn Device>,
    operation: Operation,
}

impl Opened {
    fn new(target: &Target, id: &OperationId, reached: Result<Reached, Error>) -> Result<Self, Failure> {
        let device = reached.map_err(Failure::no_device)?.device;
        let missing = || Failure::no_device(format!("{} has no operation {id} any more", target.selector));
        let operation = device.operations().get(id).ok_or_else(missing)?.clone();
        Ok(Self { device, operation })
    }

    /// Computes the dots of files.
    fn answer_files(&self, files: &Files, screen: Screen, mut progress: Progress) -> Outcome {
        let arrays = Arrays::read(files, &self.operation, screen)?;
        // Fail before the computation, not after it.
        output::can_write(files.out)?;
        let k = self.operation.id.shape.sizes().2;
        let mut d = Elements::zeros(self.operation.id.d, arrays.count);
        let size = d.format().storage_bytes();
        for first in (0..arrays.count).step_by(DOTS_AT_ONCE) {
            let dots = first..(first + DOTS_AT_ONCE).min(arrays.count);
            let Arrays { count, a, b, c } = &arrays.part(&dots, k);
            let operands = DotOperands { count: *count, a, b, c, scale_a: None, scale_b: None };
            let found = match mxprobe_api::dots(self.device.as_ref(), &self.operation, &operands) {
                Ok(Some(found)) => found,
                Ok(None) => {
                    let bits = Elements::to_bits;
                    let dots = Dots { count: *count, a: bits(a), b: bits(b), c: bits(c), ..Dots::new(&self.operation) };
                    Elements::from_bits(self.operation.id.d, self.compute(&dots)?)
                }
                Err(error) => return Err(Failure::of_device(error)),
            };
            d.bytes_mut()[dots.start * size..dots.end * size].copy_from_slice(found.bytes());
            progress.part(&format!("{} dots", dots.end), dots.end as f64 / arrays.count as f64);
        }
        drop(progress);
        output::replace_bytes(files.out, &npy::write_shaped(&d, &[arrays.count as u64], files.as_bits))?;
        output::print(b"")
    }

    /// Computes d of every dot: one at a time if the device can do so for less than a tile, and otherwise on the
    /// diagonals of tiles.
    fn compute(&self, dots: &Dots) -> Result<Vec<u64>, Failure> {
        let (device, operation) = (self.device.as_ref(), &self.operation);
        let of_device = |error| Failure::incomplete(error).help("the lines before have been answered");
        if let Some(all) = together(device, operation, dots).map_err(of_device)? {
            return Ok(all.to_bits());
        }
        if device.matrices().is_some_and(|matrices| !matrices.has_tiles()) {
            let all = (0..dots.count).map(|dot| alone(device, operation, dots, dot));
            if let Some(all) = all.collect::<Result<Option<_>, _>>().map_err(of_device)? {
                return Ok(all);
            }
        }
        on_diagonals(device, operation, dots).map_err(of_device)
    }
}

/// Computes all dots in one call, if the device has a faster way for single dots than whole tiles.
fn together(device: &dyn Device, operation: &Operation, dots: &Dots) -> Result<Option<Elements>, Error> {
    let id = &operation.id;
    let elements = |format, bits: &[u64]| Elements::from_slices(format, [bits]);
    let (a, b, c) = (elements(id.a, &dots.a), elements(id.b, &dots.b), elements(id.c, &dots.c));
    let scales =
        id.block_scale().map(|scale| (elements(scale.format, &dots.scale_a), elements(scale.format, &dots.scale_b)));
    let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
    let operands = DotOperands { count: dots.count, a: &a, b: &b, c: &c, scale_a, scale_b };
    mxprobe_api::dots(device, operation, &operands)
}

/// Computes one dot as a product of 1×k and k×1 matrices, if the device multiplies matrices in this operation.
fn alone(device: &dyn Device, operation: &Operation, dots: &Dots, dot: usize) -> Result<Option<u64>, Error> {
    let id = &operation.id;
    let k = id.shape.sizes().2;
    let elements = |format, bits: &[u64]| Elements::from_bits(format, bits.iter().copied());
    let (a, b) = (elements(id.a, &dots.a[range_of(dot, k)]), elements(id.b, &dots.b[range_of(dot, k)]));
    let c = elements(id.c, &[dots.c[dot]]);
    let scales = id.block_scale().map(|scale| {
        let blocks = range_of(dot, k.div_ceil(scale.block));
        (elements(scale.format, &dots.scale_a[blocks.clone()]), elements(scale.format, &dots.scale_b[blocks]))
    });
    let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
    let operands = GemmOperands { m: 1, n: 1, k, a: &a, b: &b, c: &c, scale_a, scale_b };
    Ok(multiply(device, operation, &operands)?.map(|d| d.get(0)))
}

/// Computes dots on the diagonals of tiles, so that each has a row of A and a column of B of its own.
fn on_diagonals(device: &dyn Device, operation: &Operation, dots: &Dots) -> Result<Vec<u64>, Error> {
    if dots.count == 0 {
        return Ok(Vec::new());
    }
    let (m, n, k) = operation.id.shape.sizes();
    let in_tile = m.min(n);
    let mut batch = TileBatch::zeros(operation, dots.count.div_ceil(in_tile));
    let blocks = operation.id.block_scale().map_or(0, |scale| k.div_ceil(scale.block));
    for dot in 0..dots.count {
        let (tile, lane) = (dot / in_tile, dot % in_tile);
        set_row(&mut batch.a, (tile * m + lane) * k, &dots.a[range_of(dot, k)]);
        set_column(&mut batch.b, tile * k * n + lane, n, &dots.b[range_of(dot, k)]);
        batch.c.set((tile * m + lane) * n + lane, dots.c[dot]);
        if let (Some(scale_a), Some(scale_b)) = (&mut batch.scale_a, &mut batch.scale_b) {
            set_row(scale_a, (tile * m + lane) * blocks, &dots.scale_a[range_of(dot, blocks)]);
            set_column(scale_b, tile * blocks * n + lane, n, &dots.scale_b[range_of(dot, blocks)]);
        }
    }
    let d = execute(device, operation, &batch)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_who_type_dots_see_a_line_that_is_read() {
        for id in ["mma.m16n8k16.f32.f16.f16.f32", "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3"] {
            let operation = Operation::new(id.parse().expect("an id"), "warp");
            let words = hint(&operation, true).expect("words");
            let (_, line) = words.split_once("such as ").expect("an example");
            let mut dots = Dots::new(&operation);
            assert!(dots.read(line.as_bytes()).is_ok(), "{line}");
            assert_eq!(dots.count, 1);
            assert_eq!(hint(&operation, false), None);
        }
    }
}
