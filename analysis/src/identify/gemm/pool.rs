//! Dots that distinguish candidates, with the device's answers.

use std::sync::Arc;

use mxprobe_api::{Elements, Error, Format, Random};

use super::{
    candidate::Candidate,
    compute::Operands,
    product::{Line, Product},
    values::{negated, scaled, value},
};

/// Number of dots that a candidate computes in one call.
const CHUNK: usize = 16;

/// Dots that share one operand, and the device's answers.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    in_a_row: bool,
    pub(super) fixed: Arc<[u64]>,
    pub(super) lines: Vec<Line>,
    pub(super) c: Vec<u64>,
    pub(super) answers: Vec<u64>,
    chunks: Vec<Operands>,
}

impl Pool {
    /// Asks for dots. `c` has a value for each dot, or one for all.
    ///
    /// # Errors
    /// Any error that the device reports.
    pub(super) fn ask(product: &Product<'_>, fixed: &Arc<[u64]>, lines: Vec<Line>, c: Vec<u64>) -> Result<Self, Error> {
        let answers = product.ask(fixed, &lines, &c)?;
        Ok(Self::answered(product, fixed, (lines, c), answers))
    }

    /// Asks for several pools with as few requests as for one: every request computes whole products, however few of
    /// their elements are used.
    ///
    /// # Errors
    /// Any error that the device reports.
    pub(super) fn ask_all(
        product: &Product<'_>,
        fixed: &Arc<[u64]>,
        pools: Vec<(Vec<Line>, Vec<u64>)>,
    ) -> Result<Vec<Self>, Error> {
        let lines: Vec<Line> = pools.iter().flat_map(|(lines, _)| lines).cloned().collect();
        let of_each = |(lines, c): &(Vec<Line>, Vec<u64>)| {
            let c = c.clone();
            (0..lines.len()).map(move |at| c[if c.len() == 1 { 0 } else { at }]).collect::<Vec<u64>>()
        };
        let c: Vec<u64> = pools.iter().flat_map(of_each).collect();
        let mut answers = product.ask(fixed, &lines, &c)?;
        Ok(pools
            .into_iter()
            .map(|pool| {
                let rest = answers.split_off(pool.0.len());
                Self::answered(product, fixed, pool, std::mem::replace(&mut answers, rest))
            })
            .collect())
    }

    /// Makes a pool of dots that have been answered.
    fn answered(
        product: &Product<'_>,
        fixed: &Arc<[u64]>,
        (lines, c): (Vec<Line>, Vec<u64>),
        answers: Vec<u64>,
    ) -> Self {
        let id = &product.operation.id;
        let in_a_row = product.places.in_a_row;
        let all: Vec<usize> = (0..lines.len()).collect();
        let mut pool = Self { in_a_row, fixed: fixed.clone(), lines, c, answers, chunks: Vec::new() };
        pool.chunks = all.chunks(CHUNK).map(|dots| pool.operands((id.a, id.b, id.c), dots)).collect();
        pool
    }

    /// Returns some dots of the pool as matrices.
    pub(super) fn operands(&self, (a, b, c): (Format, Format, Format), dots: &[usize]) -> Operands {
        let k = self.fixed.len();
        let lines: Vec<Vec<u64>> = dots.iter().map(|dot| self.lines[*dot].bits()).collect();
        let c = Elements::from_bits(c, dots.iter().map(|dot| self.c[if self.c.len() == 1 { 0 } else { *dot }]));
        if self.in_a_row {
            let of_b = (0..k).flat_map(|at| lines.iter().map(move |line| line[at]));
            let a = Elements::from_bits(a, self.fixed.iter().copied());
            Operands { m: 1, n: dots.len(), k, a, b: Elements::from_bits(b, of_b), c }
        } else {
            let a = Elements::from_bits(a, lines.iter().flatten().copied());
            let b = Elements::from_bits(b, self.fixed.iter().copied());
            Operands { m: dots.len(), n: 1, k, a, b, c }
        }
    }

    /// Counts the dots that a candidate explains before the first one that it does not explain. A candidate whose
    /// result has another format explains none.
    pub(super) fn explained(&self, candidate: &Candidate, d: Format) -> usize {
        let Some(first) = self.chunks.first() else { return 0 };
        let Ok(program) = candidate.program(first.c.format()) else { return 0 };
        let mut explained = 0;
        for (operands, answers) in self.chunks.iter().zip(self.answers.chunks(CHUNK)) {
            let Ok(found) = operands.multiply(&program) else { return 0 };
            if found.format() != d {
                return 0;
            }
            let same = found.iter().zip(answers).take_while(|(found, answer)| alike(d, *found, **answer)).count();
            explained += same;
            if same < answers.len() {
                break;
            }
        }
        explained
    }

    /// Whether a candidate explains every dot.
    pub(super) fn is_explained(&self, candidate: &Candidate, d: Format) -> bool {
        self.explained(candidate, d) == self.lines.len()
    }
}

/// Whether two results are the same: equal bits, or two NaN of any bits.
pub(super) fn alike(d: Format, one: u64, other: u64) -> bool {
    one == other || (d.to_f64(one).is_nan() && d.to_f64(other).is_nan())
}

/// Draws the shared operand: k values of which at most three are distinct, so that products with them can cancel.
pub(super) fn shared(format: Format, k: usize, random: &mut Random) -> Arc<[u64]> {
    // In formats with a small range, both operands are needed for sums that lose bits.
    let spread = if format.bits() <= 8 { 5 } else { 0 };
    let some: Vec<u64> = (0..3)
        .map(|_| {
            let value = value(format, random);
            if spread == 0 { value } else { scaled(format, value, random.between(-spread, spread)) }
        })
        .collect();
    (0..k).map(|_| some[random.below(some.len())]).collect()
}

/// Draws a line with values in some of these places: near 1, far apart, or such that much of the sum cancels. `style`
/// determines in how many places.
pub(super) fn line(format: Format, fixed: &Arc<[u64]>, places: &[usize], style: usize, random: &mut Random) -> Line {
    let mut base = vec![0; fixed.len()];
    let most = match style % 4 {
        0 => places.len(),
        1 => 2,
        2 => 5,
        _ => places.len().div_ceil(4),
    };
    let chosen: Vec<usize> = if most >= places.len() {
        places.to_vec()
    } else {
        // Half the time, near one another.
        let width = if random.flip() { places.len() } else { (4 * most).min(places.len()) };
        let start = random.below(places.len() - width + 1);
        super::scale::some(random, width, most).into_iter().map(|at| places[start + at]).collect()
    };
    let spread = [0, 0, 6, 20][random.below(4)];
    for at in &chosen {
        base[*at] = scaled(format, value(format, random), random.between(-spread, spread));
    }
    if random.flip() {
        // The second half cancels the first where the shared operand is the same, so that little but rounding errors is
        // left.
        let (first, second) = chosen.split_at(chosen.len() / 2);
        let is_all = random.flip();
        for (one, other) in first.iter().zip(second) {
            if fixed[*one] == fixed[*other] {
                base[*other] = negated(format, base[*one]);
            } else if is_all {
                (base[*one], base[*other]) = (0, 0);
            }
        }
    }
    Line::plain(base.into())
}
