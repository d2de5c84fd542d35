//! Checks that every device must pass, whatever its arithmetic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mxprobe_api::{
    Device, Elements, Encoding, Format, Operation, OperationId, Overflow, Rounding, Subnormals, TileBatch, execute,
};
use mxprobe_dots::{Dot, Random, pack, place};

use crate::Violation;

/// The checks of an operation: the name that a violation carries, and the requirement.
pub const CHECKS: &[(&str, &str)] = &[
    ("id", "the device lists the operation under its id, which survives printing and parsing"),
    ("layout", "small integers at every place of several tiles give the integers of a matrix product"),
    ("sums", "every k is counted once, with its sign, and c once"),
    ("written", "every element of D is written by this call, none left over from another call or from allocation"),
    ("batches", "an empty batch gives no elements, and a tile gives the same alone as among many"),
    ("determinism", "the same batch gives the same bits again"),
    ("threads", "simultaneous calls from two threads do not disturb each other"),
    ("position", "the same dot gives the same bits at every position of every tile"),
    ("independence", "other rows, columns and tiles do not affect an element, even if they hold NaN and infinities"),
    ("inputs", "the inputs are not changed"),
    ("refusals", "an unclaimed operation and a batch that does not fit are refused as invalid"),
];

type Run = fn(&Bench<'_>) -> Result<(), String>;

const RUNS: [Run; CHECKS.len()] =
    [id, layout, sums, written, batches, determinism, threads, position, independence, inputs, refusals];

/// Runs [`CHECKS`] on an operation of a device; returns at most one violation for each, and none for a right device.
///
/// Floating results of small integers may be wrong by less than a half: RDNA3 makes 1 − 1 slightly less than 0. A panic
/// of the device is a violation of the check that caused it, if panics unwind. A device that never returns blocks the
/// suite, and one that aborts ends the process: run untrusted devices in a process of their own.
#[must_use]
pub fn check(device: &dyn Device, operation: &Operation) -> Vec<Violation> {
    let bench = Bench { device, operation };
    CHECKS
        .iter()
        .zip(RUNS)
        .filter_map(|((name, _), run)| {
            let found = caught(|| run(&bench)).err()?;
            Some(Violation { check: name, operation: Some(operation.id.clone()), found })
        })
        .collect()
}

/// Runs a check and turns a panic into an error with its message.
pub(crate) fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", text.unwrap_or("it does not say why")))
    })
}

/// The approximate number of elements of D in a batch of the larger checks.
const ELEMENTS: usize = 2048;

struct Bench<'a> {
    device: &'a dyn Device,
    operation: &'a Operation,
}

impl Bench<'_> {
    fn id(&self) -> &OperationId {
        &self.operation.id
    }

    fn sizes(&self) -> (usize, usize, usize) {
        self.id().shape.sizes()
    }

    /// The number of tiles that keeps a batch small; at most 67, so that the last vector of lanes is not full.
    fn tiles(&self) -> usize {
        let (m, n, _) = self.sizes();
        (ELEMENTS / (m * n)).clamp(2, 67)
    }

    fn run(&self, batch: &TileBatch) -> Result<Elements, String> {
        execute(self.device, self.operation, batch)
            .map_err(|error| format!("{} tiles were not computed: {error}", batch.tiles))
    }

    fn filled(&self, tiles: usize, seed: u64, draw: fn(&mut Random, Format) -> u64) -> TileBatch {
        let mut random = Random(seed);
        let mut batch = TileBatch::zeros(self.operation, tiles);
        let operands = [Some(&mut batch.a), Some(&mut batch.b), Some(&mut batch.c)];
        let scales = [batch.scale_a.as_mut(), batch.scale_b.as_mut()];
        operands.into_iter().chain(scales).flatten().for_each(|elements| random.fill(elements, draw));
        batch
    }

    fn is(&self, bits: u64, wanted: i64) -> bool {
        let format = self.id().d;
        if format.is_integer() {
            bits == integer(format, wanted)
        } else {
            (format.to_f64(bits) - wanted as f64).abs() < 0.5
        }
    }

    /// Reports the first wrong element.
    fn compare(&self, d: &Elements, wanted: impl Fn(usize) -> i64) -> Result<(), String> {
        match (0..d.len()).find(|at| !self.is(d.get(*at), wanted(*at))) {
            None => Ok(()),
            Some(at) => {
                let wanted = wanted(at);
                let bits = self.id().d.hex(integer(self.id().d, wanted));
                Err(format!("{}, but {wanted} ({bits}) was expected", self.element(d, at)))
            }
        }
    }

    /// Reports the first element whose bits differ.
    fn same(&self, d: &Elements, other: &Elements, what: &str) -> Result<(), String> {
        match (0..d.len()).find(|at| d.get(*at) != other.get(*at)) {
            None => Ok(()),
            Some(at) => Err(format!("{}, and {} {what}", self.element(d, at), self.id().d.hex(other.get(at)))),
        }
    }

    fn element(&self, d: &Elements, at: usize) -> String {
        let (tile, row, column) = place(self.id(), at);
        format!("row {row}, column {column} of tile {tile} is {}", self.id().d.hex(d.get(at)))
    }
}

/// The bits of a small integer in any format.
fn integer(format: Format, value: i64) -> u64 {
    let magnitude = u128::from(value.unsigned_abs());
    format.encode(value < 0, magnitude, 0, Rounding::NearestEven, Overflow::Saturate, Subnormals::Keep).bits
}

fn is_signed(format: Format) -> bool {
    match format.encoding() {
        Encoding::Integer { signed, .. } => signed,
        Encoding::Float(float) => float.is_signed(),
    }
}

fn id(bench: &Bench<'_>) -> Result<(), String> {
    let id = bench.id();
    let text = id.to_string();
    match text.parse::<OperationId>() {
        Ok(parsed) if parsed == *id => {}
        Ok(parsed) => return Err(format!("`{text}` reads as `{parsed}`")),
        Err(error) => return Err(format!("its id does not parse: {error}")),
    }
    match bench.device.operations().get(id) {
        None => Err(format!("{text} is not among the operations of {}", bench.device.info().selector)),
        Some(listed) if listed.id != *id => Err(format!("{text} is listed as {}", listed.id)),
        Some(_) => Ok(()),
    }
}

/// Multiplies small integers that vary by row, column and tile, with enough zeros that every partial sum is exact in
/// eight bits.
fn layout(bench: &Bench<'_>) -> Result<(), String> {
    let id = bench.id();
    let (m, n, k) = bench.sizes();
    for (tiles, seed) in [(1, 11), (bench.tiles(), 12)] {
        let mut random = Random(seed);
        let mut value = |format: Format, chance: usize| match random.below(chance) {
            0 => 1,
            1 if is_signed(format) => -1,
            2 => 2,
            _ => 0,
        };
        let chance = (k / 4).max(4);
        let mut batch = TileBatch::zeros(bench.operation, tiles);
        let mut fill = |elements: &mut Elements, chance: usize, times: i64| -> Vec<i64> {
            let format = elements.format();
            let values: Vec<i64> = (0..elements.len()).map(|_| value(format, chance) * times).collect();
            values.iter().enumerate().for_each(|(at, value)| elements.set(at, integer(format, *value)));
            values
        };
        let (a, b, c) = (fill(&mut batch.a, chance, 1), fill(&mut batch.b, 4, 1), fill(&mut batch.c, 4, 3));
        let d = bench.run(&batch)?;
        let d_of = |at: usize| {
            let (tile, row, column) = place(id, at);
            let products = (0..k).map(|index| a[(tile * m + row) * k + index] * b[(tile * k + index) * n + column]);
            products.sum::<i64>() + c[at]
        };
        bench.compare(&d, d_of)?;
    }
    Ok(())
}

/// Computes dots of one product at each k plus c, of a pair that cancels, and of many ones.
fn sums(bench: &Bench<'_>) -> Result<(), String> {
    let id = bench.id();
    let k = bench.sizes().2;
    let mut dots = Vec::new();
    let mut wanted = Vec::new();
    let mut ask = |products: &[(usize, i64)], c: i64| {
        let mut dot = Dot::zeros(id);
        for (at, value) in products {
            // The value in whichever operand has a sign.
            let (a, b) = if is_signed(id.a) { (*value, 1) } else { (1, *value) };
            (dot.a[*at], dot.b[*at]) = (integer(id.a, a), integer(id.b, b));
        }
        dot.c = integer(id.c, c);
        dots.push(dot);
        wanted.push(products.iter().map(|(_, value)| value).sum::<i64>() + c);
    };
    let with_sign = is_signed(id.a) || is_signed(id.b);
    for at in 0..k {
        ask(&[(at, 2)], 5);
        if with_sign {
            ask(&[(at, -2)], 5);
            ask(&[(at, 2), ((at + 1) % k, -2)][..k.min(2)], 7);
        }
    }
    for ones in 1..=k.min(60) {
        let products: Vec<(usize, i64)> = (0..ones).map(|index| (index * k / ones, 1)).collect();
        ask(&products, 3);
    }
    let (batch, places) = pack(bench.operation, &dots);
    let d = bench.run(&batch)?;
    let wrong = places.iter().zip(&wanted).zip(&dots).find(|((at, wanted), _)| !bench.is(d.get(**at), **wanted));
    match wrong {
        None => Ok(()),
        Some(((at, wanted), dot)) => {
            Err(format!("{}, but {wanted} was expected: {}", bench.element(&d, *at), dot.show(id)))
        }
    }
}

/// With zero products D is C: computes batches of several sizes whose elements all differ from the previous content.
fn written(bench: &Bench<'_>) -> Result<(), String> {
    let many = bench.tiles();
    for (tiles, shift) in [(many, 1), (many, 40), (1, 80), (many, 2), (2, 41), (many, 79)] {
        let mut batch = TileBatch::zeros(bench.operation, tiles);
        let c_of = |at: usize| i64::try_from((at * 7 + shift) % 113 + 1).unwrap_or(1);
        (0..batch.c.len()).for_each(|at| batch.c.set(at, integer(bench.id().c, c_of(at))));
        let d = bench.run(&batch)?;
        bench.compare(&d, c_of)?;
    }
    Ok(())
}

fn batches(bench: &Bench<'_>) -> Result<(), String> {
    let none = bench.run(&TileBatch::zeros(bench.operation, 0))?;
    if !none.is_empty() {
        return Err(format!("an empty batch gave {} elements", none.len()));
    }
    let tiles = bench.tiles();
    let (m, n, _) = bench.sizes();
    let batch = bench.filled(tiles, 21, Random::moderate);
    let all = bench.run(&batch)?;
    for tile in [0, tiles / 2, tiles - 1] {
        let part = |elements: &Elements| {
            let one = elements.len() / tiles;
            Elements::from_bits(elements.format(), (tile * one..(tile + 1) * one).map(|at| elements.get(at)))
        };
        let alone = TileBatch {
            tiles: 1,
            a: part(&batch.a),
            b: part(&batch.b),
            c: part(&batch.c),
            scale_a: batch.scale_a.as_ref().map(part),
            scale_b: batch.scale_b.as_ref().map(part),
        };
        let d = bench.run(&alone)?;
        let first = tile * m * n;
        if let Some(at) = (0..m * n).find(|at| d.get(*at) != all.get(first + at)) {
            let alone = bench.id().d.hex(d.get(at));
            return Err(format!("{} among {tiles} tiles, and {alone} alone", bench.element(&all, first + at)));
        }
    }
    Ok(())
}

fn determinism(bench: &Bench<'_>) -> Result<(), String> {
    for draw in [Random::moderate, Random::any] {
        let batch = bench.filled(bench.tiles(), 31, draw);
        let first = bench.run(&batch)?;
        for again in 2..=3 {
            bench.same(&first, &bench.run(&batch)?, &format!("in run {again} of the same batch"))?;
        }
    }
    Ok(())
}

fn threads(bench: &Bench<'_>) -> Result<(), String> {
    let of = |seed: u64| bench.filled(2, seed, Random::moderate);
    let (left, right) = (of(41), of(42));
    let alone = [bench.run(&left)?, bench.run(&right)?];
    let run = |batch: &TileBatch| caught(|| (0..4).map(|_| bench.run(batch)).collect::<Result<Vec<_>, _>>());
    let together = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(&left));
        let own = run(&right);
        let other = other.join().unwrap_or_else(|_| Err("the thread panicked".into()));
        [other, own]
    });
    for (alone, together) in alone.iter().zip(together) {
        for d in together? {
            bench.same(alone, &d, "while another thread computes")?;
        }
    }
    Ok(())
}

/// Draws a dot of moderate values, or of any bits.
fn dot_of(bench: &Bench<'_>, random: &mut Random, draw: fn(&mut Random, Format) -> u64) -> Dot {
    let id = bench.id();
    let mut dot = Dot::zeros(id);
    dot.a.iter_mut().for_each(|bits| *bits = draw(random, id.a));
    dot.b.iter_mut().for_each(|bits| *bits = draw(random, id.b));
    dot.c = draw(random, id.c);
    dot
}

fn position(bench: &Bench<'_>) -> Result<(), String> {
    let id = bench.id();
    let (m, n, _) = bench.sizes();
    let mut random = Random(51);
    for draw in [Random::moderate, Random::moderate, Random::any] {
        let dot = dot_of(bench, &mut random, draw);
        let mut batch = TileBatch::zeros(bench.operation, bench.tiles());
        for tile in 0..batch.tiles {
            for at in 0..m.max(n) {
                dot.put(id, &mut batch, tile, at % m, at % n);
            }
        }
        (0..batch.c.len()).for_each(|at| batch.c.set(at, dot.c));
        let d = bench.run(&batch)?;
        if let Some(at) = (0..d.len()).find(|at| d.get(*at) != d.get(0)) {
            let first = id.d.hex(d.get(0));
            return Err(format!("{}, and {first} at the first position: {}", bench.element(&d, at), dot.show(id)));
        }
    }
    Ok(())
}

fn independence(bench: &Bench<'_>) -> Result<(), String> {
    let id = bench.id();
    let (m, n, _) = bench.sizes();
    let mut random = Random(61);
    let dot = dot_of(bench, &mut random, Random::moderate);
    let (alone, places) = pack(bench.operation, std::slice::from_ref(&dot));
    let wanted = bench.run(&alone)?.get(places[0]);
    let tiles = bench.tiles();
    for draw in [Random::moderate, Random::any] {
        let mut batch = bench.filled(tiles, random.bits(), draw);
        let at = |tile: usize| ((tile * 7 + 1) % m, (tile * 5 + 1) % n);
        for tile in 0..tiles {
            let (row, column) = at(tile);
            dot.put(id, &mut batch, tile, row, column);
        }
        let d = bench.run(&batch)?;
        for tile in 0..tiles {
            let (row, column) = at(tile);
            let element = (tile * m + row) * n + column;
            if d.get(element) != wanted {
                let alone = id.d.hex(wanted);
                let found = bench.element(&d, element);
                return Err(format!("{found} next to other values, and {alone} next to zeros: {}", dot.show(id)));
            }
        }
    }
    Ok(())
}

fn inputs(bench: &Bench<'_>) -> Result<(), String> {
    let batch = bench.filled(bench.tiles(), 71, Random::any);
    let before = batch.clone();
    bench.run(&batch)?;
    if batch == before { Ok(()) } else { Err("the call changed the bits of the batch".into()) }
}

fn refusals(bench: &Bench<'_>) -> Result<(), String> {
    let right = TileBatch::zeros(bench.operation, 2);
    let one_short = |elements: &Elements| {
        let fewer = elements.len() - 1;
        Elements::from_bits(elements.format(), elements.iter().take(fewer))
    };
    let other = |elements: &Elements| {
        let format = if elements.format() == Format::F64 { Format::F32 } else { Format::F64 };
        Elements::zeros(format, elements.len())
    };
    let mut cases: Vec<(&str, Operation, TileBatch)> = Vec::new();
    let mut unclaimed = bench.operation.clone();
    unclaimed.id.family = "unclaimed".into();
    cases.push(("an operation that the device does not claim", unclaimed, right.clone()));
    let mut wrong = |what: &'static str, change: &dyn Fn(&mut TileBatch)| {
        let mut batch = right.clone();
        change(&mut batch);
        cases.push((what, bench.operation.clone(), batch));
    };
    wrong("an A one element short", &|batch| batch.a = one_short(&batch.a));
    wrong("a B one element short", &|batch| batch.b = one_short(&batch.b));
    wrong("a C one element short", &|batch| batch.c = one_short(&batch.c));
    wrong("an A of another format", &|batch| batch.a = other(&batch.a));
    wrong("a B of another format", &|batch| batch.b = other(&batch.b));
    wrong("a C of another format", &|batch| batch.c = other(&batch.c));
    wrong("a tile more than there are elements of", &|batch| batch.tiles += 1);
    if right.scale_a.is_some() {
        wrong("no scales of A", &|batch| batch.scale_a = None);
        wrong("no scales of B", &|batch| batch.scale_b = None);
    } else {
        wrong("scales of A that the operation does not take", &|batch| {
            batch.scale_a = Some(Elements::zeros(Format::UE8M0, 1));
        });
    }
    for (what, operation, batch) in cases {
        match execute(bench.device, &operation, &batch) {
            Err(error) if error.is_invalid() => {}
            Err(error) => return Err(format!("{what} is refused, but not as invalid: {error}")),
            Ok(_) => return Err(format!("{what} was computed")),
        }
    }
    Ok(())
}
