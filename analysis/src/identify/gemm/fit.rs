//! The parameters of a recipe: the unit, the formats in which partial sums are rounded and merged, and the epilogue.

use std::sync::Arc;

use mxprobe_api::{Error, Format, OperationId, Random, Rounding};
use mxprobe_models::{
    Adder,
    recipe::{MergeOrder, Start},
};

use super::{
    candidate::{Candidate, Merge, Stored, Unit, nearest, rounded},
    levels::{Split, is_chain, slices},
    pool::{Pool, line, shared},
    product::{Line, Product},
    stored::{Weights, epilogues},
    tree::Tree,
    values::{scaled, value},
};

/// Half the number of dots in the pool over all of k.
const DOTS: usize = 96;
/// Number of dots in the pool within one slice; there are more of them because coarse partial sums hide much of the
/// unit.
const SLICE_DOTS: usize = 320;

/// Maximum number of parameters that differ from the usual ones.
const CHANGES: usize = 3;

/// Maximum number of candidates with c = +0 for one unit of a reading, before the next one's turn.
const CANDIDATES: usize = 2_500;

/// Maximum number of candidates in all; beyond it the shape is refused.
const IN_ALL: usize = 30_000;

/// Maximum number of units that explain one slice and are tried on all of k.
const UNITS: usize = 12;

/// The search for the parameters of one shape's recipe.
pub(super) struct Fit<'p, 'd> {
    pub(super) product: &'p Product<'d>,
    pub(super) units: Vec<Unit>,
    pub(super) tree: Option<Tree>,
    pub(super) weights: Weights,
    pub(super) seed: u64,
    /// Number of candidates that were computed.
    pub(super) tried: usize,
    /// The candidate that came farthest, with the stage it reached and the number of dots it explained there.
    pub(super) nearest: Option<(Candidate, (usize, usize))>,
    /// Dots that were asked because an earlier candidate failed on them.
    pub(super) failed: Vec<Pool>,
    /// Candidates that explained a slice, as rivals of the nearest one.
    pub(super) kept: Vec<Candidate>,
}

/// The dots for one reading: within one slice of the innermost level, over all of k, and with c.
struct Pools {
    slice: Pool,
    whole: Pool,
    with_c: Vec<Pool>,
}

impl Fit<'_, '_> {
    fn id(&self) -> &OperationId {
        &self.product.operation.id
    }

    /// Searches for a candidate with these levels that explains every dot asked. With `strictly`, tries only units
    /// whose chains match the tree, otherwise only the others.
    ///
    /// # Errors
    /// Any error that the device reports.
    pub(super) fn reading(&mut self, levels: &[Split], strictly: bool) -> Result<Option<Candidate>, Error> {
        let fits = |unit: &Unit| {
            let of =
                self.tree.as_ref().map(|tree| is_chain(tree, levels, unit.evaluator.plan(), unit.id.shape.sizes().2));
            of.unwrap_or(true) == strictly
        };
        let units: Vec<Unit> = self.units.iter().filter(|unit| fits(unit)).cloned().collect();
        if units.is_empty() {
            return Ok(None);
        }
        let pools = self.pools(levels)?;
        let mut starts = Vec::new();
        for unit in units {
            for narrowed in narrowings(unit.id.d, self.id().d) {
                let Some(candidate) = self.usual(&unit, levels, narrowed) else { continue };
                self.tried += 1;
                let explained = pools.slice.explained(&candidate, self.id().d);
                if explained == pools.slice.lines.len() {
                    starts.push(candidate);
                    break;
                }
                self.note(candidate, (0, explained));
            }
            if starts.len() >= UNITS {
                break;
            }
        }
        for start in starts {
            if self.tried > IN_ALL {
                break;
            }
            if let Some(found) = self.numbers(start, &pools)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the pools of the first two readings, in which a dot that no candidate explains may be found.
    ///
    /// # Errors
    /// Any error that the device reports.
    pub(super) fn witnesses(&self, readings: &[Vec<Split>]) -> Result<Vec<Pool>, Error> {
        let mut found = Vec::new();
        for levels in readings.iter().take(2) {
            let Pools { slice, whole, with_c } = self.pools(levels)?;
            found.extend([slice, whole]);
            found.extend(with_c);
        }
        Ok(found)
    }

    /// Records how far a candidate came: the stage, and the number of dots explained there.
    fn note(&mut self, candidate: Candidate, came: (usize, usize)) {
        if self.nearest.as_ref().is_none_or(|(_, best)| came > *best) {
            self.nearest = Some((candidate.clone(), came));
        }
        if came.0 > 0 && self.kept.len() < 64 {
            self.kept.push(candidate);
        }
    }

    /// Makes a candidate from a unit and levels with the usual parameters. Partial sums of the outermost level are
    /// rounded to `narrowed`, if given; `None` if that level or an epilogue is missing.
    fn usual(&self, unit: &Unit, levels: &[Split], narrowed: Option<Format>) -> Option<Candidate> {
        let acc = unit.id.d;
        let mut merges: Vec<Merge> = levels
            .iter()
            .map(|split| Merge { split: split.clone(), partial: None, start: first(split), add: nearest(acc) })
            .collect();
        if let Some(format) = narrowed {
            merges.first_mut()?.partial = Some(nearest(format));
        }
        let stored = self.without_c(acc).into_iter().next()?;
        Some(Candidate { unit: unit.clone(), from_c: false, merges, stored })
    }

    /// Returns the possible epilogues if c is +0.
    fn without_c(&self, acc: Format) -> Vec<Option<Stored>> {
        epilogues(acc, self.id().d, self.id().c, Weights { beta: 0.0, ..self.weights })
    }

    /// Asks the device for the dots of one reading.
    fn pools(&self, levels: &[Split]) -> Result<Pools, Error> {
        let mut random = Random(self.seed ^ 0x706f_6f6c);
        let (shared_by, varied) = self.formats();
        let k = self.product.k();
        let fixed = shared(shared_by, k, &mut random);
        let within = |random: &mut Random, depth: usize, style: usize| {
            line(varied, &fixed, &some_slice(levels, k, depth, random), style, random)
        };
        let slice: Vec<Line> = (0..SLICE_DOTS).map(|dot| within(&mut random, levels.len(), dot)).collect();
        let whole: Vec<Line> =
            (0..2 * DOTS).map(|dot| within(&mut random, dot / 4 % (levels.len() + 1), dot)).collect();
        let c = self.id().c;
        let of_c: Vec<u64> = (0..whole.len())
            .map(|dot| {
                let spread = [0, 4, 16][dot % 3];
                let value = value(c, &mut random);
                scaled(c, value, random.between(-spread, spread))
            })
            .collect();
        let mut all = vec![(slice, vec![0]), (whole.clone(), vec![0])];
        if self.weights.beta.to_bits() != 0 {
            all.push((whole, of_c));
        }
        all.push((self.zeros(varied), vec![0]));
        all.extend(c.negative_zero().map(|negative| (self.zeros(varied), vec![negative])));
        let mut asked = Pool::ask_all(self.product, &fixed, all)?.into_iter();
        let (Some(slice), Some(whole)) = (asked.next(), asked.next()) else { unreachable!("two pools and more") };
        Ok(Pools { slice, whole, with_c: asked.collect() })
    }

    /// Makes lines of zeros of either sign, one of them of negative zeros only.
    fn zeros(&self, format: Format) -> Vec<Line> {
        let k = self.product.k();
        let negative = format.negative_zero().unwrap_or(0);
        let mut first = vec![negative; k];
        first[0] = 0;
        [vec![0; k], vec![negative; k], first].into_iter().map(|base| Line::plain(base.into())).collect()
    }

    /// Returns the formats of the shared and of the varied operand.
    pub(super) fn formats(&self) -> (Format, Format) {
        let id = self.id();
        if self.product.places.in_a_row { (id.a, id.b) } else { (id.b, id.a) }
    }

    /// Searches for the parameters of a candidate that explains the dots within one slice: first with c = +0, then with
    /// other c.
    fn numbers(&mut self, start: Candidate, pools: &Pools) -> Result<Option<Candidate>, Error> {
        let d = self.id().d;
        let acc = start.unit.id.d;
        let mut budget = CANDIDATES.min(IN_ALL.saturating_sub(self.tried)) + 1;
        let before = budget;
        let slots = self.slots(&start, acc);
        let mut inner = Vec::new();
        for changes in 0..=CHANGES {
            each(&start, &slots, changes, &mut |candidate| {
                budget = budget.saturating_sub(1);
                if budget == 0 {
                    return true;
                }
                let explained = pools.whole.explained(candidate, d);
                if explained < pools.whole.lines.len() {
                    self.note(candidate.clone(), (1, explained));
                } else if self.failed.iter().all(|pool| pool.c != [0] || pool.is_explained(candidate, d)) {
                    inner.push(candidate.clone());
                }
                inner.len() >= 4
            });
            if !inner.is_empty() {
                break;
            }
        }
        self.tried += before - budget;
        for candidate in inner {
            let slots = self.slots_with_c(&candidate);
            let mut found = None;
            for changes in 0..=CHANGES {
                each(&candidate, &slots, changes, &mut |candidate| {
                    self.tried += 1;
                    if self.tried > IN_ALL {
                        return true;
                    }
                    let pools = pools.with_c.iter().chain([&pools.whole]).chain(&self.failed);
                    let (mut all, mut explained) = (0, 0);
                    for pool in pools {
                        let here = pool.explained(candidate, d);
                        (all, explained) = (all + pool.lines.len(), explained + here);
                        if here < pool.lines.len() {
                            break;
                        }
                    }
                    if explained < all {
                        self.note(candidate.clone(), (2, explained));
                        return false;
                    }
                    found = Some(candidate.clone());
                    true
                });
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// Returns the alternatives for each parameter that shows while c is zero.
    fn slots(&self, start: &Candidate, acc: Format) -> Vec<Vec<Change>> {
        let mut slots = Vec::new();
        if !acc.is_integer() {
            let formats = [Format::F32, Format::BF16, Format::F16, Format::F64];
            for level in 0..start.merges.len() {
                let mut adds: Vec<Adder> =
                    formats.iter().filter(|format| **format != acc).map(|f| nearest(*f)).collect();
                let others = [Rounding::TowardZero, Rounding::Down, Rounding::Up, Rounding::ToOdd];
                adds.extend(others.map(|rounding| rounded(acc, rounding)));
                slots.push(adds.into_iter().map(|adder| Change::Add(level, adder)).collect());
                let narrower = formats.iter().filter(|format| **format != acc);
                let mut partial = vec![Change::Partial(level, None)];
                partial.extend(narrower.clone().map(|format| Change::Partial(level, Some(nearest(*format)))));
                partial.extend(
                    [Format::BF16, Format::F16]
                        .map(|format| Change::Partial(level, Some(rounded(format, Rounding::TowardZero)))),
                );
                slots.push(partial);
            }
        }
        slots.push(Vec::new());
        let at = slots.len() - 1;
        for format in [acc, Format::F32, Format::BF16, Format::F16, Format::F64] {
            let changes = self.without_c(format).into_iter().map(Change::Stored);
            for change in changes {
                if !slots[at].contains(&change) {
                    slots[at].push(change);
                }
            }
        }
        slots
    }

    /// Returns the alternatives for each parameter that shows only with a nonzero c, or in the signs of zeros.
    fn slots_with_c(&self, start: &Candidate) -> Vec<Vec<Change>> {
        let acc =
            start.merges.first().map_or(start.unit.id.d, |merge| merge.add.output_format().unwrap_or(Format::F32));
        let mut stored: Vec<Change> =
            epilogues(acc, self.id().d, self.id().c, self.weights).into_iter().map(Change::Stored).collect();
        // The epilogues above add c to a sum in the format of the outermost merge.
        let mut from_c = Vec::new();
        if self.weights.alpha.to_bits() == 1.0_f64.to_bits() && self.id().c == start.unit.id.c {
            from_c.push(Change::FromC);
        }
        let mut starts = vec![Vec::new(); start.merges.len()];
        for (level, starts) in starts.iter_mut().enumerate() {
            if first(&start.merges[level].split) == Start::First {
                continue;
            }
            starts.push(Change::Start(level, Start::First));
            if self.weights.alpha.to_bits() == 1.0_f64.to_bits() && level == 0 {
                starts.push(Change::Start(level, Start::C));
            }
        }
        stored.retain(|change| *change != Change::Stored(start.stored.clone()));
        let mut slots = vec![stored, from_c];
        slots.extend(starts);
        slots.retain(|slot| !slot.is_empty());
        slots
    }
}

/// Returns the usual start of a merge: +0 if it is a chain, else its first partial sums, which is the only possibility.
fn first(split: &Split) -> Start {
    if matches!(split.merge, MergeOrder::Serial | MergeOrder::Reverse) { Start::Zero } else { Start::First }
}

/// A parameter with another than the usual value.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    Add(usize, Adder),
    Partial(usize, Option<Adder>),
    Start(usize, Start),
    Stored(Option<Stored>),
    FromC,
}

impl Change {
    fn apply(&self, candidate: &mut Candidate) {
        match self {
            Self::Add(level, adder) => candidate.merges[*level].add = adder.clone(),
            Self::Partial(level, adder) => candidate.merges[*level].partial.clone_from(adder),
            Self::Start(level, start) => candidate.merges[*level].start = *start,
            Self::Stored(stored) => candidate.stored.clone_from(stored),
            Self::FromC => candidate.from_c = true,
        }
    }
}

/// Calls `visit` with every variant of the candidate that has exactly `changes` changes, each in a different slot,
/// until `visit` returns true. Returns whether it did.
fn each(start: &Candidate, slots: &[Vec<Change>], changes: usize, visit: &mut dyn FnMut(&Candidate) -> bool) -> bool {
    if changes == 0 {
        return visit(start);
    }
    for (at, slot) in slots.iter().enumerate() {
        for change in slot {
            let mut changed = start.clone();
            change.apply(&mut changed);
            if each(&changed, &slots[at + 1..], changes - 1, visit) {
                return true;
            }
        }
    }
    false
}

/// Returns the formats to which a unit's partial sum may be rounded on its way to d; `None` leaves it unrounded.
fn narrowings(acc: Format, d: Format) -> Vec<Option<Format>> {
    let mut found = vec![None];
    if !d.is_integer() {
        for format in [Format::BF16, Format::F16, Format::F32] {
            if format != acc && format.fraction_bits() < acc.fraction_bits() {
                found.push(Some(format));
            }
        }
    }
    found
}

/// Returns the products of a random slice `depth` levels down.
fn some_slice(levels: &[Split], k: usize, depth: usize, random: &mut Random) -> Vec<usize> {
    let mut products: Vec<usize> = (0..k).collect();
    for level in &levels[..depth] {
        let (mut parts, rest) = slices(level, &products);
        if !rest.is_empty() {
            parts.push(rest);
        }
        if parts.is_empty() {
            break;
        }
        products = parts.swap_remove(random.below(parts.len()));
    }
    products
}

/// Measures the weights of the sum and of c: D for one product of 1, and D for c = 1.
///
/// # Errors
/// Any error that the device reports.
pub(super) fn weights(product: &Product<'_>) -> Result<Weights, Error> {
    let id = &product.operation.id;
    let (shared, varied) = if product.places.in_a_row { (id.a, id.b) } else { (id.b, id.a) };
    let one = |format: Format| if format.is_integer() { 1 } else { format.one() };
    let fixed: Arc<[u64]> = vec![one(shared); product.k()].into();
    let mut alone = vec![0; product.k()];
    alone[0] = one(varied);
    let lines = [Line::plain(alone.into()), Line::plain(vec![0; product.k()].into())];
    let d = product.ask(&fixed, &lines, &[0, one(id.c)])?;
    Ok(Weights { alpha: id.d.to_f64(d[0]), beta: id.d.to_f64(d[1]) })
}
