//! A fast check in f64 of all dots of a product, which accounts for the errors of f64 itself: it accepts most dots
//! beyond doubt, and only the others need exact sums.

use mxprobe::tolerance::{Bound, Sides, Signs, Tolerance};
use mxprobe_api::{Decoded, Elements, Format};
use mxprobe_models::{Below, Evaluator};

/// The number of columns summed side by side.
const WIDTH: usize = 8;

/// An element as a unit reads it.
#[derive(Clone, Copy, Default)]
struct Read {
    value: f64,
    /// 2^(place of its lowest bit); infinite for 0.
    lowest: f64,
    /// 2^(exponent that it is aligned by); 0 for 0.
    aligned: f64,
}

impl Read {
    fn new(format: Format, bits: u64, flush: bool) -> Self {
        let zero = Self { value: 0.0, lowest: f64::INFINITY, aligned: 0.0 };
        match format.decode(bits) {
            Decoded::Zero { .. } => zero,
            Decoded::Finite { significand, exponent, .. } => {
                let fraction_bits = format.fraction_bits();
                if flush && significand >> fraction_bits == 0 {
                    return zero;
                }
                let lsb = exponent - fraction_bits.cast_signed() + significand.trailing_zeros().cast_signed();
                Self { value: format.to_f64(bits), lowest: power(lsb), aligned: power(exponent) }
            }
            Decoded::Nan { .. } | Decoded::Infinity { .. } => {
                Self { value: f64::NAN, lowest: 0.0, aligned: f64::INFINITY }
            }
        }
    }
}

/// Reads the elements of a format: from a table, if the format is narrow.
struct Reader {
    format: Format,
    flush: bool,
    table: Vec<Read>,
}

impl Reader {
    fn new(format: Format, flush: bool) -> Self {
        let codes = if format.bits() <= 16 { 0..1 << format.bits() } else { 0..0 };
        Self { format, flush, table: codes.map(|bits| Read::new(format, bits, flush)).collect() }
    }

    fn read(&self, bits: u64) -> Read {
        let bits_at = usize::try_from(bits).expect("at most 32 bits");
        self.table.get(bits_at).copied().unwrap_or_else(|| Read::new(self.format, bits, self.flush))
    }
}

/// How far a dot, with or without a c, may be off.
struct Limits {
    /// For dots without negative terms, without positive ones, and with both.
    relative: [Sides; 3],
    split: [[Sides; 2]; 3],
    absolute: f64,
    along: f64,
    least: f64,
    largest: f64,
}

impl Limits {
    fn new(bound: &Bound) -> Self {
        Self {
            relative: [Signs::Positive, Signs::Negative, Signs::Mixed].map(|signs| bound.relative(signs)),
            split: [Signs::Positive, Signs::Negative, Signs::Mixed].map(|signs| bound.split(signs)),
            absolute: bound.absolute(Signs::Mixed).most(),
            along: bound.along(),
            least: f64::from(bound.least_exponent()).exp2(),
            largest: bound.largest(),
        }
    }
}

/// The verdict on a dot without exact sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Inside,
    /// A partial sum may overflow: every value is admissible.
    Unbounded,
    Doubtful,
}

/// Sums of a dot in f64.
struct Sums {
    sum: f64,
    /// The rounding error of the sum, if known: to be added to it.
    rest: f64,
    magnitudes: f64,
    /// Upper bounds on the errors of the sum with its rest, and of the magnitudes.
    errors: [f64; 2],
    /// The power of two that products are aligned by, if it is known to be above their values.
    aligned: f64,
    /// The additional weight of small products that are aligned by more than their values.
    more: f64,
    /// Whether there are terms above zero, and below zero; if not known, whether the sums show any.
    has: [bool; 2],
    /// The lowest bit of all terms, or a higher one.
    lowest: f64,
}

/// a + b rounded, and its rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

impl Sums {
    /// Sums term by term, with the error of each addition.
    fn closely(row: &[Read], column: &[Read], c: Read) -> Self {
        let (mut sum, mut rest, mut magnitudes, mut all_lost) = (c.value, 0.0, c.value.abs(), 0.0);
        let (mut lowest, mut aligned, mut small): (f64, f64, usize) = (c.lowest, 0.0, 0);
        let mut has = [c.value > 0.0, c.value < 0.0];
        for (x, y) in row.iter().zip(column) {
            let product = x.value * y.value;
            has = [has[0] || product > 0.0, has[1] || product < 0.0];
            let (next, lost) = two_sum(sum, product);
            (sum, rest, all_lost) = (next, rest + lost, all_lost + lost.abs());
            magnitudes += product.abs();
            if product != 0.0 {
                lowest = lowest.min(x.lowest * y.lowest);
                let of_both = x.aligned * y.aligned;
                aligned = aligned.max(of_both);
                small += usize::from(product.abs() < of_both);
            }
        }
        let terms = (row.len() + 2) as f64;
        // The sum and the losses together are exact, up to the rounding errors in the sum of the losses.
        let of_magnitudes = if magnitudes <= lowest * 2f64.powi(53) { 0.0 } else { magnitudes };
        let errors = [all_lost, of_magnitudes].map(|of| of * terms * 2f64.powi(-51));
        let more = aligned * small as f64;
        Self { sum, rest, magnitudes, errors, aligned, more, has, lowest }
    }
}

/// 2^exponent, which must be a normal value.
fn power(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(exponent + 1023).expect("a normal value") << 52)
}

/// The power of two at or below a positive normal value.
fn power_below(value: f64) -> f64 {
    f64::from_bits(value.to_bits() & 0xfff0_0000_0000_0000)
}

/// The lowest bit of a normal value.
fn lowest_bit(value: f64) -> f64 {
    let place = (value.to_bits() | 1 << 52).trailing_zeros();
    power_below(value.abs()) * power(place.cast_signed() - 52)
}

/// Judges products of one operation against a tolerance.
pub(crate) struct Judge {
    readers: [Reader; 4],
    limits: [Limits; 2],
    /// 2^(fraction bits that every addition keeps below its largest exponent, at least); 0 if a sum may lose something
    /// even if it keeps every bit.
    kept: f64,
    /// Whether a product of magnitude 2^128 or more is an infinity.
    overflows: bool,
}

/// The verdicts on the dots of a product.
#[derive(Default)]
pub(crate) struct Judged {
    /// The number of dots for which every value is admissible.
    pub(crate) unbounded: usize,
    /// The dots that exact sums have to judge.
    pub(crate) doubtful: Vec<usize>,
}

impl Judge {
    pub(crate) fn new(tolerance: &Tolerance, evaluator: &Evaluator) -> Self {
        let (id, flush) = (tolerance.id(), evaluator.flush());
        let adders = evaluator.plan().nodes.iter().map(|node| &evaluator.adders()[node.adder]);
        let overflows = adders.clone().any(|adder| adder.product_overflow);
        // Ones' complements of negative terms and of zeros lie beside them, on any grid.
        let complements =
            adders.clone().any(|adder| [adder.below, adder.normalised_below].contains(&Below::OnesComplement));
        let of_grids = adders.flat_map(|adder| &adder.grid).map(|rule| rule.fraction_bits);
        let kept = of_grids.chain([id.d.fraction_bits().cast_signed()]).min().unwrap();
        Self {
            readers: [(id.a, flush.a), (id.b, flush.b), (id.c, flush.c), (id.d, false)]
                .map(|(format, flush)| Reader::new(format, flush)),
            limits: [false, true].map(|has_c| Limits::new(tolerance.bound(has_c).unwrap())),
            kept: if complements { 0.0 } else { f64::from(kept).exp2() },
            overflows,
        }
    }

    /// Judges dots of `k` products: A row by row, B column by column, C and D row by row.
    pub(crate) fn judge(&self, k: usize, a: &[u64], b: &[u64], c: &Elements, d: &Elements) -> Judged {
        let [of_a, of_b, of_c, of_d] = &self.readers;
        let rows: Vec<Read> = a.iter().map(|bits| of_a.read(*bits)).collect();
        let columns: Vec<Read> = b.iter().map(|bits| of_b.read(*bits)).collect();
        let n = b.len() / k;
        let lines = |of: &[Read]| {
            let lowest = |line: &[Read]| line.iter().map(|read| read.lowest).fold(f64::INFINITY, f64::min);
            of.chunks(k).map(lowest).collect::<Vec<_>>()
        };
        let (of_rows, of_columns) = (lines(&rows), lines(&columns));
        // Eight columns side by side, product by product.
        let panels: Vec<[f64; WIDTH]> = (0..n / WIDTH)
            .flat_map(|panel| (0..k).map(move |at| (panel, at)))
            .map(|(panel, at)| std::array::from_fn(|column| columns[(panel * WIDTH + column) * k + at].value))
            .collect();
        let mut judged = Judged::default();
        let values: Vec<f64> = rows.iter().map(|read| read.value).collect();
        for (row, values) in values.chunks(k).enumerate() {
            for (panel, products) in panels.chunks(k).enumerate() {
                let first = row * n + panel * WIDTH;
                let own: [Read; WIDTH] = std::array::from_fn(|column| of_c.read(c.get(first + column)));
                let mut sums = own.map(|read| read.value);
                let mut magnitudes = sums.map(f64::abs);
                for (x, ys) in values.iter().zip(products) {
                    for column in 0..WIDTH {
                        let product = x * ys[column];
                        sums[column] += product;
                        magnitudes[column] += product.abs();
                    }
                }
                for column in 0..WIDTH {
                    let line = panel * WIDTH + column;
                    let grid = (of_rows[row] * of_columns[line]).min(own[column].lowest);
                    // All sums are multiples of the grid, of at most 53 bits.
                    let is_exact = magnitudes[column] <= grid * 2f64.powi(53);
                    let error = if is_exact { 0.0 } else { magnitudes[column] * (k + 2) as f64 * 2f64.powi(-51) };
                    let (sum, magnitudes) = (sums[column], magnitudes[column]);
                    // If all terms were on a coarser grid, so would their sums in f64 be.
                    let lowest = lowest_bit(magnitudes).min(if sum == 0.0 { f64::INFINITY } else { lowest_bit(sum) });
                    let errors = [error; 2];
                    let has = [-sum, sum].map(|of_one_sign| magnitudes.to_bits() != of_one_sign.to_bits());
                    let sums = Sums { sum, rest: 0.0, magnitudes, errors, aligned: 0.0, more: 0.0, has, lowest };
                    let value = of_d.read(d.get(first + column)).value;
                    let has_c = own[column].value != 0.0;
                    let mut seen = self.see(&sums, has_c, value);
                    if seen == Seen::Doubtful {
                        let closely = Sums::closely(&rows[row * k..][..k], &columns[line * k..][..k], own[column]);
                        seen = self.see(&closely, has_c, value);
                    }
                    match seen {
                        Seen::Inside => {}
                        Seen::Unbounded => judged.unbounded += 1,
                        Seen::Doubtful => judged.doubtful.push(first + column),
                    }
                }
            }
        }
        judged
    }

    fn see(&self, sums: &Sums, has_c: bool, d: f64) -> Seen {
        let Sums { sum, rest, magnitudes, errors: [error, of_magnitudes], aligned, more, has, lowest } = *sums;
        let limits = &self.limits[usize::from(has_c)];
        if !(magnitudes > 1e-250 && magnitudes < 1e250) {
            return if magnitudes == 0.0 && d == 0.0 { Seen::Inside } else { Seen::Doubtful };
        }
        let larger = (0.5 * (magnitudes + sum)).max(0.5 * (magnitudes - sum));
        let at_least = if of_magnitudes == 0.0 { larger } else { larger * (1.0 - 2f64.powi(-40)) };
        if at_least > limits.largest {
            // A product that is an infinity is one in every order of summation.
            let is_infinite = self.overflows && magnitudes >= 2f64.powi(127);
            return if is_infinite { Seen::Doubtful } else { Seen::Unbounded };
        }
        let signs = if has[1] { 1 + usize::from(has[0]) } else { 0 };
        let (relative, [beside, of_products]) = (limits.relative[signs], limits.split[signs]);
        let most = limits.relative[2].most();
        let grown = magnitudes.max(aligned).max(limits.least) * (1.0 + 4.0 * most) + limits.absolute;
        if most > 0.25 || grown > limits.largest || !d.is_finite() {
            return Seen::Doubtful;
        }
        let off = (d - sum) - rest;
        if off == 0.0 && error == 0.0 {
            return Seen::Inside;
        }
        let unit = power_below(at_least).max(aligned).max(limits.least);
        // Terms on a grid that every sum keeps are added without loss.
        let is_off_grid = lowest < unit / self.kept;
        let within = |off: f64, [side, beside, of_products]: [f64; 3]| {
            let along = limits.along * (magnitudes + more) + side * limits.least;
            // The sum of the powers that products are aligned by is at least the largest of them.
            let uniform = (side * unit).min(beside * unit + of_products * aligned);
            off + error <= uniform.min(along) * (1.0 - 2f64.powi(-40))
        };
        if is_off_grid
            && within(-off, [relative.down, beside.down, of_products.down])
            && within(off, [relative.up, beside.up, of_products.up])
        {
            Seen::Inside
        } else {
            Seen::Doubtful
        }
    }
}
