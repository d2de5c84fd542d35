//! Identification of one shape, from the elements that are computed alike to a recipe that has been compared with the
//! device.

use mxprobe_api::{Device, Error, Operation, OperationId};
use mxprobe_models::{
    Adder, Model,
    recipe::{Case, Lengths, Shapes},
};

use super::{
    candidate::Candidate,
    check::check,
    fit::{Fit, weights},
    levels::{Split, readings_of},
    own,
    product::Product,
    recipe,
    regions::{Region, Regions, regions},
    scale::Scale,
    smallest::{Unexplained, smallest},
    tree::discover,
    units::units,
};

/// The effort of an identification.
#[derive(Clone, Copy, Debug)]
pub struct GemmEffort {
    /// The seed of drawn inputs.
    pub seed: u64,
    /// Minimum number of random elements on which a recipe is compared.
    pub elements: u64,
}

/// The result of identifying one shape.
#[derive(Clone, Debug)]
pub struct GemmIdentification {
    /// The operation, with its sizes.
    pub operation: Operation,
    /// Parts of D that are computed differently, the largest first.
    pub parts: Vec<Part>,
    /// Number of elements asked.
    pub elements: u64,
    /// Number of requests that they took.
    pub requests: u64,
}

/// Elements of D that are computed alike, and how.
#[derive(Clone, Debug)]
pub struct Part {
    /// Number of elements.
    pub elements: usize,
    /// The first and the last row.
    pub rows: (usize, usize),
    /// The first and the last column.
    pub columns: (usize, usize),
    /// How they are computed.
    pub outcome: GemmOutcome,
}

/// How the identification of one part ended.
#[allow(clippy::large_enum_variant, reason = "there are few")]
#[derive(Clone, Debug)]
pub enum GemmOutcome {
    /// A recipe explains every element asked.
    Identified(Found),
    /// No recipe was found.
    Refused {
        /// Why, in one sentence.
        reason: String,
        /// The smallest input found that no candidate explains.
        unexplained: Option<Unexplained>,
        /// The nearest candidate, in words.
        nearest: Vec<String>,
    },
}

/// A recipe of one shape.
#[derive(Clone, Debug)]
pub struct Found {
    pub(super) candidate: Candidate,
    /// Number of random elements on which it was compared without a mismatch.
    pub verified: u64,
    /// Number of candidates that were computed.
    pub tried: usize,
    /// Whether the order of the sum was seen. If not, it is assumed to be one chain of the unit's operations, and no
    /// element that was compared contradicts it.
    pub shows_order: bool,
}

impl Found {
    /// Returns the name of the model that describes the unit.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.candidate.unit.model
    }

    /// Returns the model of the unit, if no shipped model describes it and it was identified through this product.
    #[must_use]
    pub fn own_model(&self) -> Option<&Model> {
        self.candidate.unit.own.as_deref()
    }

    /// Converts the recipe to a case for the shape of an operation, with c in that operation's format. Its adders are
    /// added to `adders` unless they are there already.
    #[must_use]
    pub fn case(&self, of: &OperationId, adders: &mut Vec<Adder>) -> Case {
        let (m, n, k) = of.shape.sizes();
        let exactly = |length: usize| Lengths { from: length, to: Some(length), multiple_of: 1 };
        let shapes = Shapes { m: exactly(m), n: exactly(n), k: exactly(k) };
        recipe::case(&self.candidate, (&format!("m{m}n{n}k{k}"), shapes), of.c, adders)
    }

    /// Describes the recipe in words: the levels, outermost first, then the unit, then what is stored.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = recipe::words(&self.candidate);
        if !self.shows_order {
            words.push("the order of the sum does not show: no value is large enough for others to vanish".to_owned());
        }
        words
    }

    /// Whether another recipe is the same, however many candidates were tried and elements compared.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (&self.candidate, &other.candidate);
        one.unit.model == other.unit.model
            && one.unit.id == other.unit.id
            && one.from_c == other.from_c
            && one.merges == other.merges
            && one.stored == other.stored
    }
}

/// Number of parts of D that are identified, the largest first; the elements of the others are only counted.
const PARTS: usize = 3;

/// Minimum number of units that a dot has to count.
const FEWEST: usize = 8;

/// The factor by which fewer units are counted if no candidate explains the order.
const FEWER: usize = 4;

/// The stage of the search from which on candidates are computed with c.
const WITH_C: usize = 2;

/// Number of comparisons that may fail before the search is abandoned.
const ATTEMPTS: usize = 4;

/// Identifies how a device computes one shape.
///
/// # Errors
/// Any error that the device reports.
pub fn identify_gemm(
    device: &dyn Device,
    operation: &Operation,
    effort: GemmEffort,
    progress: &dyn Fn(&str),
) -> Result<GemmIdentification, Error> {
    let product = Product::new(device, operation);
    progress("determining which elements are computed alike");
    let (alike, again) = regions(&product, effort.seed)?;
    let mut found = GemmIdentification { operation: operation.clone(), parts: Vec::new(), elements: 0, requests: 0 };
    let count = alike.regions.len();
    let (mut elements, mut requests) = product.counts();
    for (number, region) in alike.regions.iter().take(PARTS).enumerate() {
        let outcome = if !alike.is_same(&again) {
            refused("the same product gives other bits when it is asked again")
        } else {
            let mut product = Product::new(device, operation);
            product.places = region.places.clone();
            let told = |words: &str| {
                let part = if count > 1 { format!("part {} of {count}: ", number + 1) } else { String::new() };
                progress(&format!("{part}{words}"));
            };
            let outcome = part(&product, (&alike, region), effort, &told)?;
            let (more, requested) = product.counts();
            (elements, requests) = (elements + more, requests + requested);
            outcome
        };
        let Region { elements, rows, columns, .. } = region;
        found.parts.push(Part { elements: *elements, rows: *rows, columns: *columns, outcome });
    }
    for region in alike.regions.iter().skip(PARTS) {
        let Region { elements, rows, columns, .. } = region;
        let outcome = refused(&format!("it is one of {count} parts, of which the largest {PARTS} are identified"));
        found.parts.push(Part { elements: *elements, rows: *rows, columns: *columns, outcome });
    }
    (found.elements, found.requests) = (elements, requests);
    Ok(found)
}

fn refused(reason: &str) -> GemmOutcome {
    GemmOutcome::Refused { reason: reason.to_owned(), unexplained: None, nearest: Vec::new() }
}

/// Identifies how the elements of one region are computed.
fn part(
    product: &Product<'_>,
    (regions, region): (&Regions, &Region),
    effort: GemmEffort,
    progress: &dyn Fn(&str),
) -> Result<GemmOutcome, Error> {
    let id = &product.operation.id;
    if id.block_scale().is_some() {
        return Ok(refused("recipes of products with block scales are not identified"));
    }
    let weights = weights(product)?;
    let seed = effort.seed;
    let has_order = !id.is_integer() && product.k() > 1;
    let mut scale = if has_order { Scale::find(product, weights.alpha, seed)? } else { None };
    let mut tree = None;
    // A sum of few bits counts fewer units if they meet in one slice than if they lie at random places.
    while let Some(counts) = &mut scale {
        tree = discover(product, counts, seed, progress)?;
        if tree.is_some() {
            break;
        }
        counts.capacity /= 2;
        if counts.capacity < FEWEST {
            return Ok(refused("a sum of units beside a large value is not a count, so the order does not show"));
        }
    }
    let shows_order = !has_order || tree.is_some();
    let mut readings = tree.as_ref().map_or_else(|| vec![Vec::new()], readings_of);
    let (failed, kept) = (Vec::new(), Vec::new());
    let mut fit = Fit {
        product,
        units: units(id, &product.device().info().name),
        tree,
        weights,
        seed,
        tried: 0,
        nearest: None,
        failed,
        kept,
    };
    let compared = |fit: &mut Fit<'_, '_>, readings: &[Vec<Split>], own: bool| {
        let found = attempts(fit, readings, (regions, region), effort, own, progress)?;
        Ok::<_, Error>(found.map(|found| GemmOutcome::Identified(Found { shows_order, ..found })))
    };
    if let Some(found) = compared(&mut fit, &readings, false)? {
        return Ok(found);
    }
    // A partial sum of few bits may have held the counts of some slices by chance: fewer units show the order then.
    let fewer = scale.map(|scale| Scale { capacity: scale.capacity / FEWER, ..scale });
    if let Some(fewer) = fewer.filter(|fewer| fewer.capacity >= FEWEST)
        && let Some(tree) = discover(product, &fewer, seed, progress)?
        && fit.tree.as_ref().is_some_and(|seen| !seen.is_same(&tree))
    {
        readings = readings_of(&tree);
        (fit.tree, fit.tried) = (Some(tree), 0);
        if let Some(found) = compared(&mut fit, &readings, false)? {
            return Ok(found);
        }
    }
    let own = match &fit.tree {
        Some(tree) => own::units(product, (tree, &readings), seed, progress)?,
        None => Vec::new(),
    };
    if !own.is_empty() {
        fit.units = own;
        fit.tried = 0;
        if let Some(found) = compared(&mut fit, &readings, true)? {
            return Ok(found);
        }
    }
    refusal(fit, &readings, shows_order, progress)
}

/// Refuses the elements of a region, with the smallest input that no candidate explains.
fn refusal(
    mut fit: Fit<'_, '_>,
    readings: &[Vec<Split>],
    shows_order: bool,
    progress: &dyn Fn(&str),
) -> Result<GemmOutcome, Error> {
    progress("searching for the smallest input that no candidate explains");
    let came = fit.nearest.as_ref().map_or(0, |(_, (stage, _))| *stage);
    let nearest = fit.nearest.take().map(|(candidate, _)| candidate);
    let mut rivals: Vec<Candidate> = nearest.iter().cloned().collect();
    rivals.extend(std::mem::take(&mut fit.kept));
    let mut pools = std::mem::take(&mut fit.failed);
    pools.extend(fit.witnesses(readings)?);
    // A candidate that was not tried with c would not explain any.
    pools.retain(|pool| came >= WITH_C || pool.c.iter().all(|c| *c == 0));
    let mut unexplained = None;
    // If each dot is explained by some candidate, the nearest one alone is contradicted.
    for rivals in [&rivals[..], &rivals[..rivals.len().min(1)]] {
        for pool in &pools {
            if unexplained.is_none() {
                unexplained = smallest(fit.product, pool, rivals)?;
            }
        }
    }
    let order = if shows_order {
        format!("{} candidates with {} readings of the order", fit.tried, readings.len())
    } else {
        format!("{} candidates, whose order does not show,", fit.tried)
    };
    let reason = format!("none of {order} explains every element");
    Ok(GemmOutcome::Refused { reason, unexplained, nearest: nearest.iter().flat_map(recipe::words).collect() })
}

/// Searches for a recipe with one of the search's units that explains everything on which it is compared. With
/// `strictly`, tries only units whose chains match the tree.
fn attempts(
    fit: &mut Fit<'_, '_>,
    readings: &[Vec<Split>],
    (regions, region): (&Regions, &Region),
    effort: GemmEffort,
    strictly: bool,
    progress: &dyn Fn(&str),
) -> Result<Option<Found>, Error> {
    for _ in 0..ATTEMPTS {
        let Some(candidate) = first_that_fits(fit, readings, strictly, progress)? else { break };
        let checked = check(fit.product, &candidate, (regions, region), (effort.elements, effort.seed), progress)?;
        if checked.mismatches == 0 {
            return Ok(Some(Found { candidate, verified: checked.elements, tried: fit.tried, shows_order: true }));
        }
        fit.nearest = Some((candidate.clone(), (3, usize::try_from(checked.elements).unwrap_or(usize::MAX))));
        fit.kept.insert(0, candidate);
        fit.failed.extend(checked.failed);
    }
    Ok(None)
}

/// Returns the first candidate that explains every dot asked: of units whose chains match the tree, then, unless
/// `only_strictly`, of the others.
fn first_that_fits(
    fit: &mut Fit<'_, '_>,
    readings: &[Vec<Split>],
    only_strictly: bool,
    progress: &dyn Fn(&str),
) -> Result<Option<Candidate>, Error> {
    for strictly in [true, false].into_iter().take(2 - usize::from(only_strictly)) {
        for (at, levels) in readings.iter().enumerate() {
            progress(&format!("reading {} of {}: {} levels", at + 1, readings.len(), levels.len()));
            if let Some(candidate) = fit.reading(levels, strictly)? {
                return Ok(Some(candidate));
            }
        }
    }
    Ok(None)
}
