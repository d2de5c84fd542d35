//! The smallest input that no candidate explains.

use mxprobe_api::Error;

use super::{
    candidate::Candidate,
    pool::{Pool, alike},
    product::{Line, Product},
};

/// One dot that no candidate explains.
#[derive(Clone, Debug)]
pub struct Unexplained {
    /// The products that are not zero: k, and the bits of A and of B.
    pub products: Vec<(usize, u64, u64)>,
    /// The bits of c.
    pub c: u64,
    /// The bits that the device returns.
    pub d: u64,
    /// The bits that the nearest candidate returns, if there is one.
    pub expected: Option<u64>,
}

/// Maximum number of candidates that the smaller input has to contradict.
const RIVALS: usize = 24;

/// Maximum number of requests.
const REQUESTS: usize = 48;

/// Removes products from a dot of the pool for as long as no candidate returns the device's result. The first candidate
/// is the nearest. Returns `None` if every dot of the pool is explained by some candidate.
///
/// # Errors
/// Any error that the device reports.
pub(super) fn smallest(
    product: &Product<'_>,
    pool: &Pool,
    candidates: &[Candidate],
) -> Result<Option<Unexplained>, Error> {
    let candidates = &candidates[..candidates.len().min(RIVALS)];
    let Some(first) = worst(pool, candidates, product) else { return Ok(None) };
    let (mut line, mut c) = (pool.lines[first].bits(), pool.c[if pool.c.len() == 1 { 0 } else { first }]);
    let differs = |lines: Vec<Vec<u64>>, c: u64| -> Result<Vec<bool>, Error> {
        let lines = lines.into_iter().map(|line| Line::plain(line.into())).collect();
        let pool = Pool::ask(product, &pool.fixed, lines, vec![c])?;
        Ok(unexplained(&pool, candidates, product))
    };
    if c != 0 && differs(vec![line.clone()], 0)?[0] {
        c = 0;
    }
    let (mut pieces, mut requests) = (2, 0);
    loop {
        let places: Vec<usize> = (0..line.len()).filter(|at| line[*at] != 0).collect();
        if places.len() < 2 || requests == REQUESTS {
            break;
        }
        let length = places.len().div_ceil(pieces);
        let smaller: Vec<Vec<u64>> = places
            .chunks(length)
            .flat_map(|piece| {
                let mut without = line.clone();
                piece.iter().for_each(|at| without[*at] = 0);
                let mut alone = vec![0; line.len()];
                piece.iter().for_each(|at| alone[*at] = line[*at]);
                [alone, without]
            })
            .collect();
        requests += 1;
        let shown = differs(smaller.clone(), c)?;
        let size = |line: &[u64]| line.iter().filter(|bits| **bits != 0).count();
        let best = smaller.iter().zip(&shown).filter(|(_, shown)| **shown).min_by_key(|(line, _)| size(line));
        match best {
            Some((smaller, _)) => {
                line.clone_from(smaller);
                pieces = 2;
            }
            None if length == 1 => break,
            None => pieces *= 2,
        }
    }
    let last = Pool::ask(product, &pool.fixed, vec![Line::plain(line.clone().into())], vec![c])?;
    let id = &product.operation.id;
    let nearest = candidates.first().and_then(|candidate| {
        let computed = last.operands((id.a, id.b, id.c), &[0]).multiply(&candidate.program(id.c).ok()?).ok()?;
        computed.iter().next()
    });
    let in_a_row = product.places.in_a_row;
    let of = |at: usize| if in_a_row { (at, pool.fixed[at], line[at]) } else { (at, line[at], pool.fixed[at]) };
    let products = (0..line.len()).filter(|at| line[*at] != 0).map(of).collect();
    Ok(Some(Unexplained { products, c, d: last.answers[0], expected: nearest }))
}

/// Returns the dot of a pool that no candidate explains, with the fewest nonzero elements.
fn worst(pool: &Pool, candidates: &[Candidate], product: &Product<'_>) -> Option<usize> {
    let unexplained = unexplained(pool, candidates, product);
    let size = |dot: &usize| pool.lines[*dot].bits().iter().filter(|bits| **bits != 0).count();
    (0..pool.lines.len()).filter(|dot| unexplained[*dot]).min_by_key(size)
}

/// Returns, for each dot, whether no candidate gives the device's result.
fn unexplained(pool: &Pool, candidates: &[Candidate], product: &Product<'_>) -> Vec<bool> {
    let id = &product.operation.id;
    let all: Vec<usize> = (0..pool.lines.len()).collect();
    let operands = pool.operands((id.a, id.b, id.c), &all);
    let mut found = vec![true; all.len()];
    for candidate in candidates {
        let Ok(computed) = candidate.program(id.c).and_then(|program| operands.multiply(&program)) else { continue };
        for (at, unexplained) in found.iter_mut().enumerate() {
            *unexplained &= computed.format() != id.d || !alike(id.d, computed.get(at), pool.answers[at]);
        }
    }
    found
}
