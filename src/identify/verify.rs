//! A device against a model, bit for bit, on as many dots as are asked for.

use std::time::Instant;

use mxprobe_api::{Device, Elements, Error, Format, Operation, TileBatch, execute};
use mxprobe_sim::{Evaluator, Model, ModelDevice};

use crate::{
    dots::{Dot, Draw, Random, pack, seed_of, simplest},
    probes::Subject,
    report::{Evidence, VerifiedOperation},
};

/// Dots of directed classes that come first.
const DIRECTED: u64 = 100_000;
/// Directed dots asked at once.
const AT_ONCE: usize = 8_192;
/// Elements of the operands of one batch of random tiles.
const ELEMENTS: usize = 1 << 20;
/// Mismatches that are made simple and shown.
const SHOWN: usize = 3;

/// What is compared, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Dots, at the least.
    pub count: u64,
    /// What inputs are drawn from.
    pub seed: u64,
}

/// Compares an operation of a device with the model's, directed classes first, then tiles of random values of several
/// spreads; every element of D counts as a dot. `progress` hears how many dots were compared.
///
/// # Errors
/// What the device reports, and if the model has no such operation.
pub fn verify(
    device: &dyn Device,
    operation: &Operation,
    model: &Model,
    comparison: Comparison,
    progress: &dyn Fn(u64),
) -> Result<VerifiedOperation, Error> {
    let start = Instant::now();
    let evaluator = Evaluator::new(model, &operation.id)?;
    let reference = ModelDevice::new(model.clone());
    let mut found = Found { dots: 0, mismatches: 0, first: Vec::new() };
    let mut drawn = Draw::new(&operation.id, seed_of(comparison.seed, 1));
    let directed = DIRECTED.min(comparison.count);
    while found.dots < directed && found.first.len() < SHOWN {
        let dots: Vec<Dot> = drawn.by_ref().take(AT_ONCE).collect();
        let (batch, _) = pack(operation, &dots);
        found.compare(device, operation, &reference, &batch)?;
        progress(found.dots);
    }
    let mut round = 0;
    while found.dots < comparison.count && found.first.len() < SHOWN {
        let batch = random_tiles(operation, seed_of(comparison.seed, 1_000 + round), round);
        found.compare(device, operation, &reference, &batch)?;
        progress(found.dots);
        round += 1;
    }
    let subject = Subject::new(device, operation);
    let first: Vec<Dot> = found.first.drain(..).collect();
    let mut evidence: Vec<Evidence> = Vec::new();
    for dot in first {
        let shown = shown(&subject, &evaluator, &dot)?;
        if !evidence.contains(&shown) {
            evidence.push(shown);
        }
    }
    Ok(VerifiedOperation {
        id: operation.id.clone(),
        dots: found.dots,
        mismatches: found.mismatches,
        evidence,
        failed: None,
        duration_ns: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
    })
}

/// A mismatch made simple, with the bits and the decimals of both.
fn shown(subject: &Subject<'_>, evaluator: &Evaluator, dot: &Dot) -> Result<Evidence, Error> {
    let id = subject.id();
    let model = |dot: &Dot| {
        let scales = dot.scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        evaluator.dot(mxprobe_sim::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales })
    };
    let differs = |dots: &[Dot]| -> Result<Vec<bool>, Error> {
        Ok(dots.iter().zip(subject.ask(dots)?).map(|(dot, d)| model(dot) != d).collect())
    };
    // A mismatch that depends on its place in the tile may be gone when it is asked alone.
    let alone = differs(std::slice::from_ref(dot))?[0];
    let dot = if alone { simplest(id, dot, differs)? } else { dot.clone() };
    let d = subject.ask(std::slice::from_ref(&dot))?[0];
    let wanted = model(&dot);
    let about = if alone {
        format!("the device gives {}, the model {}", decimal(id.d, d), decimal(id.d, wanted))
    } else {
        "the bits differed in a tile, and agree when the dot is asked alone".to_owned()
    };
    Ok(subject.evidence(about, &dot, d, &[("the model".to_owned(), wanted)]))
}

/// The value of bits for people.
#[must_use]
pub fn decimal(format: Format, bits: u64) -> String {
    use mxprobe_api::Decoded;
    match format.decode(bits) {
        Decoded::Nan { .. } => "NaN".into(),
        Decoded::Infinity { negative } => if negative { "-infinity" } else { "infinity" }.into(),
        Decoded::Zero { negative } => if negative { "-0" } else { "0" }.into(),
        Decoded::Finite { negative, significand, .. } if format.is_integer() => {
            format!("{}{significand}", if negative { "-" } else { "" })
        }
        Decoded::Finite { .. } => format!("{:e}", format.to_f64(bits)),
    }
}

struct Found {
    dots: u64,
    mismatches: u64,
    first: Vec<Dot>,
}

impl Found {
    /// The device and the model compute at the same time.
    fn compare(
        &mut self,
        device: &dyn Device,
        operation: &Operation,
        reference: &ModelDevice,
        batch: &TileBatch,
    ) -> Result<(), Error> {
        let (found, wanted) = std::thread::scope(|scope| {
            let modelled = scope.spawn(|| execute(reference, operation, batch));
            let found = execute(device, operation, batch);
            (found, modelled.join().expect("an evaluator does not panic"))
        });
        let (found, wanted) = (found?, wanted?);
        self.dots += found.len() as u64;
        if found.bytes() == wanted.bytes() {
            return Ok(());
        }
        for at in (0..found.len()).filter(|at| found.get(*at) != wanted.get(*at)) {
            self.mismatches += 1;
            if self.first.len() < SHOWN {
                self.first.push(Dot::at(&operation.id, batch, at));
            }
        }
        Ok(())
    }
}

/// Tiles of random values: about 1, of many sizes, or any bits.
fn random_tiles(operation: &Operation, seed: u64, round: u64) -> TileBatch {
    let id = &operation.id;
    let (m, n, k) = id.shape.sizes();
    let tiles = (ELEMENTS / (m * k + k * n + m * n)).max(1);
    let mut batch = TileBatch::zeros(operation, tiles);
    let mut random = Random(seed);
    // Any bits are rare: they hold NaN, which hide the rest, and are slow to model.
    let spread = match round % 16 {
        15 => Spread::Any,
        other if other % 2 == 1 => Spread::Wide,
        _ => Spread::Narrow,
    };
    fill(&mut batch.a, &mut random, spread);
    fill(&mut batch.b, &mut random, spread);
    fill(&mut batch.c, &mut random, if round % 4 == 2 { Spread::Wide } else { spread });
    for scale in [&mut batch.scale_a, &mut batch.scale_b].into_iter().flatten() {
        fill(scale, &mut random, spread);
    }
    batch
}

#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Exponents from −4 to 3.
    Narrow,
    /// Exponents from −16 to 15, or all that the format has.
    Wide,
    /// Any bits.
    Any,
}

/// Fills eight bytes at a time: random bits under a mask, plus the bits of the least exponent.
fn fill(elements: &mut Elements, random: &mut Random, spread: Spread) {
    let format = elements.format();
    let (mask, base) = lane(format, spread);
    let lanes = 8 / format.storage_bytes();
    let repeat = |bits: u64| (0..lanes).fold(0, |all, lane| all | bits << (lane * 8 * format.storage_bytes()));
    let (mask, base) = (repeat(mask), repeat(base));
    let mut chunks = elements.bytes_mut().chunks_exact_mut(8);
    for chunk in &mut chunks {
        chunk.copy_from_slice(&((random.bits() & mask) + base).to_le_bytes());
    }
    let rest = chunks.into_remainder();
    let last = ((random.bits() & mask) + base).to_le_bytes();
    let length = rest.len();
    rest.copy_from_slice(&last[..length]);
}

/// Which bits of one element are random, and what is added to them.
fn lane(format: Format, spread: Spread) -> (u64, u64) {
    let any = (format.mask(), 0);
    let bits = match spread {
        Spread::Narrow => 3,
        Spread::Wide => 5,
        Spread::Any => return any,
    };
    let Some(float) = format.as_float() else { return any };
    if bits >= float.exponent_bits {
        return any;
    }
    let below = float.fraction_bits + float.unread_bits;
    let fraction = (1u64 << below) - 1;
    let sign = if float.is_signed() { 1 << (format.bits() - 1) } else { 0 };
    let exponents = ((1u64 << bits) - 1) << below;
    let least = u64::from((float.bias - (1 << (bits - 1))).max(0).cast_unsigned()) << below;
    (sign | exponents | fraction, least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxprobe_api::Decoded;

    #[test]
    fn random_values_lie_where_they_are_meant_to() {
        for format in [Format::F16, Format::BF16, Format::F32, Format::F64, Format::TF32, Format::E4M3, Format::E5M2] {
            let mut elements = Elements::zeros(format, 999);
            fill(&mut elements, &mut Random(3), Spread::Narrow);
            for bits in elements.iter() {
                match format.decode(bits) {
                    Decoded::Finite { exponent, .. } => assert!((-4..=3).contains(&exponent), "{format} {bits:#x}"),
                    other => panic!("{format} {bits:#x} is {other:?}"),
                }
            }
            assert!(elements.iter().collect::<std::collections::HashSet<_>>().len() > 60, "{format}");
        }
    }

    #[test]
    fn any_bits_stay_within_the_width_of_narrow_formats() {
        for format in Format::ALL {
            let mut elements = Elements::zeros(format, 77);
            fill(&mut elements, &mut Random(3), Spread::Any);
            assert!(elements.iter().all(|bits| bits <= format.mask()), "{format}");
        }
    }
}
