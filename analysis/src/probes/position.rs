//! Question 10: does the same dot give the same bits repeatedly, at every position, and whatever the other rows and
//! columns hold?

use std::iter::repeat_n;

use mxprobe_api::{Elements, Error, Format, Random, TileBatch, execute};

use super::{Ask, Probe, Subject, facts::Facts};
use crate::findings::{AppliesTo, Finding, Shown, source};

pub(crate) const DETERMINISM: Probe = Probe {
    name: "determinism",
    question: "Does the same input give the same bits again?",
    how: "The same tiles twice.",
    answers: &[
        ("true", "repeating a multiply repeats its bits"),
        ("false", "results vary by themselves: no other finding can be trusted, and none was asked"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Every,
    shown: Shown::PLAIN,
    ask: Ask::Question(ask),
};

pub(crate) const POSITION: Probe = Probe {
    name: "position",
    question: "Does the same dot give the same bits at every position of the tile?",
    how: "One dot at every row and column of several tiles.",
    answers: &[
        ("true", "every element of D is computed alike"),
        ("false", "a result depends on its position: padding or transposing a matrix changes bits"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Every,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

pub(crate) const INDEPENDENCE: Probe = Probe {
    name: "independence",
    question: "Do other rows and columns leave a result alone?",
    how: "One dot at one position in eight rows and columns of a tile, everything else random.",
    answers: &[
        ("true", "an element depends on its own row and column alone"),
        ("false", "neighbours change a result, as where a block shares an exponent"),
    ],
    source: source::OWN,
    applies_to: AppliesTo::Every,
    shown: Shown::PLAIN,
    ask: Ask::Along,
};

/// The moderate values of a format.
struct Moderate {
    format: Format,
    /// Indexed by fraction, exponent and sign.
    floats: Vec<u64>,
}

impl Moderate {
    fn of(format: Format) -> Self {
        let float = |at: u32| {
            let (fraction, exponent) = (f64::from(at & 0xff) / 256.0, f64::from(at >> 8 & 3) - 2.0);
            let value = (1.0 + fraction) * exponent.exp2();
            format.from_f64(if at >> 10 == 1 { -value } else { value })
        };
        Self { format, floats: if format.is_integer() { Vec::new() } else { (0..1 << 11).map(float).collect() } }
    }

    /// Draws the bits of a moderate value: finite, with an exponent around 0.
    fn draw(&self, random: &mut Random) -> u64 {
        let bits = random.bits();
        if self.format.is_integer() {
            return bits & self.format.mask();
        }
        let at = bits >> 32 & 0xff | (bits & 3) << 8 | (bits >> 8 & 1) << 10;
        self.floats[usize::try_from(at).expect("11 bits")]
    }
}

fn ask(subject: &Subject<'_>, facts: &mut Facts, found: &mut Vec<Finding>) -> Result<(), Error> {
    let asked = steadiness(subject, found);
    facts.is_unsteady = found.iter().any(|finding| finding.is(false));
    asked
}

/// Asks for one dot repeatedly, at every position, and with other rows and columns.
pub(super) fn steadiness(subject: &Subject<'_>, found: &mut Vec<Finding>) -> Result<(), Error> {
    let id = subject.id();
    let (m, n, k) = id.shape.sizes();
    let mut random = Random(1);
    let (values_a, values_b, values_c) = (Moderate::of(id.a), Moderate::of(id.b), Moderate::of(id.c));
    let a: Vec<u64> = (0..k).map(|_| values_a.draw(&mut random)).collect();
    let b: Vec<u64> = (0..k).map(|_| values_b.draw(&mut random)).collect();
    let c = values_c.draw(&mut random);
    let mut dot = subject.zeros();
    (dot.a, dot.b, dot.c) = (a.clone(), b.clone(), c);

    // First, every position of every tile holds the same dot; later, one in eight rows and columns, with everything
    // else random. A unit that computes one dot per tile computes many tiles side by side: use as many as any lane
    // count.
    let tiles = 64usize.div_ceil(m * n).max(2);
    let mut same = TileBatch::zeros(subject.operation(), tiles);
    let columns_of_b: Vec<u64> = b.iter().flat_map(|b| repeat_n(*b, n)).collect();
    same.a = Elements::from_slices(id.a, repeat_n(&a[..], tiles * m));
    same.b = Elements::from_slices(id.b, repeat_n(&columns_of_b[..], tiles));
    same.c = Elements::from_slices(id.c, repeat_n(&vec![c; m * n][..], tiles));
    let positions: Vec<(usize, usize)> = (0..m.max(n)).map(|at| (at % m, at % n)).collect();
    let each = (m.min(n) / 8).max(1);
    let mut others = TileBatch::zeros(subject.operation(), positions.len().div_ceil(each));
    // All tiles hold the same values: drawing costs more than a model takes to compute a tile.
    let of_tile = [(&mut others.a, &values_a), (&mut others.b, &values_b), (&mut others.c, &values_c)];
    for (elements, values) in of_tile {
        let one = elements.len() / others.tiles;
        (0..one).for_each(|at| elements.set(at, values.draw(&mut random)));
        let length = elements.bytes().len() / others.tiles;
        let (first, rest) = elements.bytes_mut().split_at_mut(length);
        rest.chunks_exact_mut(length).for_each(|tile| tile.copy_from_slice(first));
    }
    for (at, (row, column)) in positions.iter().enumerate() {
        let tile = at / each;
        (0..k).for_each(|index| others.a.set((tile * m + row) * k + index, a[index]));
        (0..k).for_each(|index| others.b.set((tile * k + index) * n + column, b[index]));
        others.c.set((tile * m + row) * n + column, c);
    }
    let first = execute(subject.device(), subject.operation(), &same)?;
    let again = execute(subject.device(), subject.operation(), &same)?;
    let reference = first.get(0);

    let repeated = if first == again {
        Finding::measured(DETERMINISM.name, true, format!("{} results repeat bit for bit", first.len()))
    } else {
        Finding::measured(DETERMINISM.name, false, "a second run gave other bits")
    };
    let shown = vec![subject.evidence("the dot that was repeated", &dot, reference, &[])];
    found.push(repeated.with(shown.clone()));
    let odd = first.iter().position(|d| d != reference);
    let uniform = match odd {
        None => {
            let places = match m * n {
                1 => format!("at its one position, in {tiles} tiles"),
                count => format!("at all {count} positions of {tiles} tiles"),
            };
            Finding::measured(POSITION.name, true, format!("the same dot gives the same bits {places}"))
        }
        Some(at) => {
            let (tile, row, column) = (at / (m * n), at % (m * n) / n, at % n);
            let words = format!("tile {tile}, row {row}, column {column} gives {} instead", id.d.hex(first.get(at)));
            Finding::measured(POSITION.name, false, words)
        }
    };
    found.push(uniform.with(shown.clone()));
    let beside = execute(subject.device(), subject.operation(), &others)?;
    let mut of_others =
        positions.iter().enumerate().map(|(at, (row, column))| beside.get((at / each * m + row) * n + column));
    let independent = if of_others.all(|d| d == reference) {
        Finding::measured(INDEPENDENCE.name, true, "other rows and columns do not matter")
    } else {
        Finding::measured(INDEPENDENCE.name, false, "other rows or columns change the result")
    };
    found.push(independent.with(shown));
    Ok(())
}
