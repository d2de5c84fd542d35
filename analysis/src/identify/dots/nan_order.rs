//! The order in which a unit looks for a NaN among its products, which decides the NaN that it returns.

use mxprobe_api::{Decoded, Error, Format};

use crate::{dots::Dot, probes::Subject};

/// The most products of which every pair is asked.
const MOST: usize = 64;

/// A NaN in one of the operands.
#[derive(Clone, Copy)]
struct Nan {
    in_b: bool,
    bits: u64,
}

/// Returns, for each product, how many others come before it if both are NaN, from dots of two NaN that give results that
/// differ: both in A, both in B, or one in each if a format has a single NaN. `None` if there are no two such NaN, or if the
/// products have no order.
///
/// # Errors
/// Returns the error of the device if it fails.
pub(in crate::identify) fn ranks(subject: &Subject<'_>) -> Result<Option<Vec<usize>>, Error> {
    let (id, k) = (subject.id(), subject.k());
    if !(2..=MOST).contains(&k) || id.is_integer() {
        return Ok(None);
    }
    let with = |those: &[(usize, Nan)]| {
        let mut dot = subject.zeros();
        for (at, Nan { in_b, bits }) in those {
            (dot.a[*at], dot.b[*at]) = if *in_b { (id.a.one(), *bits) } else { (*bits, id.b.one()) };
        }
        dot
    };
    let of = |format: Format, in_b: bool| nans(format).into_iter().map(move |bits| Nan { in_b, bits });
    let nans: Vec<Nan> = of(id.a, false).chain(of(id.b, true)).collect();
    let alone: Vec<Dot> = nans.iter().map(|nan| with(&[(0, *nan)])).collect();
    let is_nan = |d: u64| matches!(id.d.decode(d), Decoded::Nan { .. });
    let told = nans.into_iter().zip(subject.ask(&alone)?).filter(|(_, d)| is_nan(*d));
    let told: Vec<(Nan, u64)> = told.collect();
    let two = told.iter().enumerate().flat_map(|(at, first)| told[at + 1..].iter().map(move |second| (first, second)));
    let differ = two.filter(|(first, second)| first.1 != second.1);
    // Two NaN of one operand, if there are such.
    let chosen = differ.min_by_key(|(first, second)| first.0.in_b != second.0.in_b);
    let Some((&(one, of_one), &(other, of_other))) = chosen else { return Ok(None) };
    let pairs: Vec<(usize, usize)> = (0..k).flat_map(|low| (low + 1..k).map(move |high| (low, high))).collect();
    let dots: Vec<Dot> = pairs.iter().map(|(low, high)| with(&[(*low, one), (*high, other)])).collect();
    let mut ranks = vec![0; k];
    for ((low, high), d) in pairs.into_iter().zip(subject.ask(&dots)?) {
        match d {
            d if d == of_one => ranks[high] += 1,
            d if d == of_other => ranks[low] += 1,
            _ => return Ok(None),
        }
    }
    let mut seen = vec![false; k];
    ranks.iter().for_each(|rank| seen[*rank] = true);
    Ok(seen.into_iter().all(|seen| seen).then_some(ranks))
}

/// Returns NaN of a format that may give results that differ: of either sign, with the first and the last bit set.
pub(super) fn nans(format: Format) -> Vec<u64> {
    let sign = format.negative_zero().unwrap_or(0);
    let quiet = format.nan().into_iter().flat_map(|nan| [nan, nan | sign]);
    let unread = format.as_float().map_or(0, |float| float.unread_bits);
    let signalling = format.infinity(false).map(|infinity| infinity | 1 << unread);
    quiet.chain(signalling).chain(signalling.map(|nan| nan | sign)).collect()
}
