//! The dots of the first round.

use super::nan_order::nans;
use crate::{
    dots::{Dot, draw},
    probes::{Leaf, Number, Subject},
};

/// Makes the dots of the first round: two and three terms at every distance and level, special values, and `drawn` dots
/// of every class. Integer operations get the last only.
pub(in crate::identify) fn first_dots(subject: &Subject<'_>, drawn: usize, seed: u64) -> Vec<Dot> {
    let mut dots = Vec::new();
    if !subject.id().is_integer() {
        ladders(subject, &mut dots);
        specials(subject, &mut dots);
    }
    dots.extend(draw(subject.id(), seed, drawn));
    dots
}

/// Significands of the large term, and of the small ones.
const LARGE: [i128; 3] = [4, 5, 7];
const SMALL: [i128; 4] = [4, 6, 7, 5];

/// Adds dots of a large term and smaller ones at every distance up to 68 bits below it, at the top, the middle and the
/// bottom of the range.
fn ladders(subject: &Subject<'_>, dots: &mut Vec<Dot>) {
    let k = subject.k();
    let product = Leaf::Product;
    let mut places = vec![(Leaf::C, product(0), product(k - 1)), (product(0), Leaf::C, product(k - 1))];
    if k > 1 {
        places.extend([
            (product(0), product(1), Leaf::C),
            (product(k - 1), product(0), product(k / 2)),
            (product(k / 2), product(k - 1), product(0)),
            (product(1), product(0), product(k / 2)),
        ]);
    }
    let (low, high) = subject.exponents(product(0));
    let (c_low, c_high) = subject.exponents(Leaf::C);
    let d = subject.id().d.as_float();
    let (lowest, least) = d.map_or((0, 0), |d| (d.exponents().0, d.min_exponent()));
    let tops = [0, (high.min(c_high) - 3).max(0), least, lowest + 3, i32::midpoint(low.max(c_low), 0)];
    let mut turn = 0usize;
    for (large, small, third) in &places {
        for top in tops {
            for distance in 0..=68 {
                turn += 1;
                let value = Number::new(LARGE[turn % 3], top - 2);
                let step = Number::new(SMALL[turn / 3 % 4], top - 2 - distance);
                let signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)];
                let (of_large, of_small) = signs[turn % 4];
                let mut leaves = vec![(*large, value.times(of_large)), (*small, step.times(of_small))];
                dots.extend(subject.dot(&leaves));
                // The same with a third term that cancels the large one, or is as small as the second.
                if third != large && third != small {
                    let other = if turn.is_multiple_of(2) { value.times(-of_large) } else { step.times(of_small) };
                    leaves.push((*third, other));
                    dots.extend(subject.dot(&leaves));
                }
                leaves.truncate(1);
                leaves.push((*small, step.times(-of_small)));
                dots.extend(subject.dot(&leaves));
            }
        }
    }
}

/// Adds dots of NaN with payloads of either sign in each operand, next to zeros, 1, Inf·0 and other NaN; Inf·0, Inf·1
/// and Inf − Inf.
fn specials(subject: &Subject<'_>, dots: &mut Vec<Dot>) {
    let id = subject.id();
    let zeros = subject.zeros();
    let k = subject.k();
    for at in [0, k / 2, k - 1] {
        for nan in nans(id.a) {
            let mut dot = zeros.clone();
            (dot.a[at], dot.b[at]) = (nan, id.b.one());
            dots.push(dot.clone());
            dot.c = id.c.one();
            dots.push(dot);
        }
        for nan in nans(id.b) {
            let mut dot = zeros.clone();
            (dot.a[at], dot.b[at]) = (id.a.one(), nan);
            dots.push(dot);
        }
        if let Some(infinity) = id.a.infinity(false) {
            let mut dot = zeros.clone();
            (dot.a[at], dot.b[at]) = (infinity, 0);
            dots.push(dot.clone());
            dot.b[at] = id.b.one();
            dots.push(dot.clone());
            if let Some(minus) = id.c.infinity(true) {
                dots.push(Dot { c: minus, ..dot });
            }
        }
    }
    for nan in nans(id.c) {
        let mut dot = Dot { c: nan, ..zeros.clone() };
        dots.push(dot.clone());
        (dot.a[0], dot.b[0]) = (id.a.one(), id.b.one());
        dots.push(dot.clone());
        if let Some(infinity) = id.a.infinity(false) {
            (dot.a[0], dot.b[0]) = (infinity, 0);
            dots.push(dot.clone());
        }
        for other in nans(id.a) {
            (dot.a[0], dot.b[0]) = (other, id.b.one());
            dots.push(dot.clone());
        }
    }
}
