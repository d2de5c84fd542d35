//! The order in which a unit looks for a NaN among its products, which decides the NaN that it returns.

use mxprobe_api::{Decoded, Error, Format};

use crate::{dots::Dot, probes::Subject};

/// The most products of which every pair is asked.
const MOST: usize = 64;

/// Returns, for each product, how many others come before it if both are NaN, from dots of two NaN that differ. `None` if
/// no two NaN in A give results that differ, or if the products have no order.
///
/// # Errors
/// Returns the error of the device if it fails.
pub(in crate::identify) fn ranks(subject: &Subject<'_>) -> Result<Option<Vec<usize>>, Error> {
    let (id, k) = (subject.id(), subject.k());
    if !(2..=MOST).contains(&k) || id.is_integer() {
        return Ok(None);
    }
    let with = |those: &[(usize, u64)]| {
        let mut dot = subject.zeros();
        for (at, nan) in those {
            (dot.a[*at], dot.b[*at]) = (*nan, id.b.one());
        }
        dot
    };
    let nans = nans(id.a);
    let alone: Vec<Dot> = nans.iter().map(|nan| with(&[(0, *nan)])).collect();
    let answers = subject.ask(&alone)?;
    let told: Vec<(u64, u64)> = nans.into_iter().zip(answers).collect();
    let Some([(one, of_one), (other, of_other)]) = told.iter().enumerate().find_map(|(at, first)| {
        let is_nan = |d: u64| matches!(id.d.decode(d), Decoded::Nan { .. });
        let second = told[at + 1..].iter().find(|second| second.1 != first.1 && is_nan(second.1))?;
        is_nan(first.1).then_some([*first, *second])
    }) else {
        return Ok(None);
    };
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
