//! `tolerance`: how far results of a unit may lie from the exact ones.

mod page;

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use mxprobe_api::{Elements, Format, GemmOperands, Operation, OperationId};
use mxprobe_models::threads;

use crate::{
    cli::{
        arguments::{Screen, Tolerance, ToleranceUnit},
        choose::{models, select},
        failure::{Failure, Outcome},
        io::{dot_lines::Dots, npy, output, progress::Progress},
    },
    gemm::Matrix,
    tolerance::{Element, Interval, Tolerance as Bounds},
};
use page::{Bounded, Place};
pub(super) use page::{record, words};

/// Bounds the error of dots of a given length, and computes the interval of each element.
pub(crate) fn tolerance(arguments: &Tolerance, screen: Screen) -> Outcome {
    let unit = Chosen::new(&arguments.unit)?;
    let id = &unit.operation.id;
    arguments.low.iter().chain(&arguments.high).try_for_each(|path| output::can_write(path))?;
    let files = arguments.a.as_deref().zip(arguments.b.as_deref());
    let operands = files.map(|(a, b)| Operands::read(id, a, b, arguments.c.as_deref())).transpose()?;
    let step = id.shape.sizes().2;
    let k = match (&operands, arguments.k) {
        (Some(operands), Some(k)) if operands.k != k as usize => {
            return Err(Failure::usage(format!("A has {} columns, but `--k` is {k}", operands.k)));
        }
        (Some(operands), _) => operands.k,
        (None, k) => k.map_or(step, |k| k as usize),
    };
    let bounds = Bounds::new(&unit.model, id, k, arguments.unit.order.into()).map_err(Failure::usage)?;
    let mut elements = None;
    if let Some(operands) = &operands {
        let found = bounds.elements(&operands.operands(), threads()).map_err(Failure::usage)?;
        for (path, end) in [(&arguments.low, false), (&arguments.high, true)] {
            if let Some(path) = path {
                output::replace_bytes(path, &npy::write(&ends(&found, id.d, end), operands.m, operands.n, false))?;
            }
        }
        let place = |at: usize| Place::Element(at / operands.n, at % operands.n);
        elements = Some(found.into_iter().enumerate().map(|(at, element)| (place(at), element)).collect());
    }
    if let Some(path) = &arguments.dots {
        elements = Some(dots(&bounds, &unit.operation, path)?);
    }
    let progress = Progress::of_one(screen, format!("searching for the worst of {} dots on {id}", arguments.search));
    let worst = bounds.worst(arguments.search, arguments.seed);
    drop(progress);
    let found = Bounded { model: &unit.name, bounds: &bounds, worst, seed: arguments.seed, elements };
    output::show(&found, arguments.format.into(), screen.for_lines())
}

/// A model, and one of its operations.
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) model: mxprobe_models::Model,
    pub(super) operation: Operation,
}

impl Chosen {
    pub(super) fn new(unit: &ToleranceUnit) -> Result<Self, Failure> {
        let models::Chosen { name, model, listed } = models::chosen(&unit.model)?;
        let id = &select::one_operation(&unit.op, &listed)?.id;
        let operation = model.operations.get(id).expect("a model has what it lists").clone();
        Ok(Self { name, model, operation })
    }
}

/// A, B and C of a product, as read from files.
pub(super) struct Operands {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    a: Elements,
    b: Elements,
    c: Elements,
}

impl Operands {
    /// Reads values that are exact in the operation's formats.
    pub(super) fn read(id: &OperationId, a: &Path, b: &Path, c: Option<&Path>) -> Result<Self, Failure> {
        if id.block_scale().is_some() {
            return Err(Failure::usage(format!("{id} has block scales, which A, B and C files cannot hold"))
                .help("`--dots` takes scales"));
        }
        let read = |path: &Path, format: Format, name: &str, is_column: bool| -> Result<(Matrix, Elements), Failure> {
            let matrix = npy::read(path, format, is_column)?;
            let bits = matrix.exactly(format, name).map_err(Failure::usage)?;
            Ok((matrix, bits))
        };
        let (of_a, a) = read(a, id.a, "A", false)?;
        let (of_b, b) = read(b, id.b, "B", true)?;
        let (m, k, n) = (of_a.rows, of_a.columns, of_b.columns);
        if of_b.rows != k {
            return Err(Failure::usage(format!("A is {m}×{k}, but B is {}×{n}", of_b.rows)));
        }
        let c = match c {
            None => Elements::zeros(id.c, m * n),
            Some(path) => {
                let (of_c, c) = read(path, id.c, "C", false)?;
                if (of_c.rows, of_c.columns) != (m, n) {
                    return Err(Failure::usage(format!("C is {}×{}, but A·B is {m}×{n}", of_c.rows, of_c.columns)));
                }
                c
            }
        };
        Ok(Self { m, n, k, a, b, c })
    }

    pub(super) fn operands(&self) -> GemmOperands<'_> {
        let Self { m, n, k, a, b, c } = self;
        GemmOperands { m: *m, n: *n, k: *k, a, b, c, scale_a: None, scale_b: None }
    }
}

/// Returns one end of each interval, as bits.
fn ends(elements: &[Element], format: Format, is_high: bool) -> Elements {
    let nan = format.nan().unwrap_or(0);
    let infinity = |negative: bool| format.infinity(negative).unwrap_or_else(|| format.largest(negative));
    let end = |element: &Element| match element.interval {
        Interval::Within { low, high } => {
            if is_high {
                high
            } else {
                low
            }
        }
        Interval::Nan => nan,
        Interval::Unbounded => infinity(!is_high),
    };
    Elements::from_bits(format, elements.iter().map(end))
}

/// Returns the interval of every dot of a file.
fn dots(bounds: &Bounds, operation: &Operation, path: &Path) -> Result<Vec<(Place, Element)>, Failure> {
    let wrong = |error: std::io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
    let input: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(std::io::stdin()) } else { Box::new(File::open(path).map_err(wrong)?) };
    let mut dots = Dots::new(operation.clone());
    for (number, line) in BufReader::new(input).split(b'\n').enumerate() {
        let line = line.map_err(wrong)?;
        dots.read(&line).map_err(|wrong| wrong.on_line(number + 1, &line, operation))?;
    }
    if let Some(rounded) = &dots.rounded {
        output::note(rounded);
    }
    let id = &operation.id;
    let k = id.shape.sizes().2;
    let mut found = Vec::new();
    for at in 0..dots.count {
        let dot = dots.dot(at);
        let bits = |format: Format, bits: &[u64]| Elements::from_bits(format, bits.iter().copied());
        let (a, b, c) = (bits(id.a, dot.a), bits(id.b, dot.b), bits(id.c, &[dot.c]));
        let scales = id.block_scale().zip(dot.scales);
        let scales = scales.map(|(scale, (a, b))| (bits(scale.format, a), bits(scale.format, b)));
        let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
        let operands = GemmOperands { m: 1, n: 1, k, a: &a, b: &b, c: &c, scale_a, scale_b };
        let elements = bounds.elements(&operands, 1).map_err(Failure::usage)?;
        found.extend(elements.into_iter().map(|element| (Place::Dot(at), element)));
    }
    Ok(found)
}
