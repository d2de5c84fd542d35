//! Rivals: neighbours of the model found that explain every dot so far, and inputs on which they differ from it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use mxprobe_models::{Adder, Flush, GridRule, PARAMETERS, Parameter, RULE, Setting, Turn};

use super::{
    aim::Aim,
    alike::is_alike,
    pool::Pool,
    rival::Rival,
    thresholds::{self, Threshold},
    tried::{State, Tried},
};
use crate::{
    dots::{Dot, Random, Sparse, draw, seed_of},
    identify::{
        candidates::{
            hypothesis::Hypothesis,
            moves::{Change, Move},
        },
        dots::{
            experiments::{Experiments, Limit, fewer},
            operands::{Operands, conversions},
        },
    },
};

/// Dots on which rivals are compared: `POOL` for all of them together, then multiples of `AIMED` for each. Fewer if
/// dots are long.
const POOL: usize = 12_000;
const AIMED: usize = 4_000;
/// How many times as many dots are drawn for all rivals that change one adder, and for rivals that may differ anywhere.
const OF_AN_ADDER: usize = 2;
const MORE: usize = 2;
/// The most products that get rivals of their own, in which the product is rounded alone, or no longer is.
const OF_ONE_PRODUCT: usize = 12;

/// The adder that rivals change, the exponent about which they differ, and how far below the largest term.
type Place<'a> = (Option<usize>, Option<i32>, &'a [i32]);

/// A rival, and what is known of it.
struct Known {
    rival: Rival,
    /// The dots so far that it reads in another way, if its flush rule differs.
    others: Option<Vec<usize>>,
    state: State,
}

/// Returns a few inputs for each neighbour that explains every dot so far, on which it differs from the hypothesis.
pub(in crate::identify) fn splitting(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    tried: &mut Tried,
    seed: u64,
) -> Vec<Dot> {
    let subject = experiments.subject;
    if subject.id().is_integer() {
        return Vec::new();
    }
    let all: Vec<usize> = (0..experiments.dots.len()).collect();
    let mut random = Random(seed_of(seed, 3));
    let aim = Aim::of(subject, hypothesis);
    let (pool, aimed) = (fewer(POOL, subject.k()), fewer(AIMED, subject.k()));
    let mut shared = aim.dots(subject, &mut random, pool / 3);
    shared.extend(draw(subject.id(), seed_of(seed, 4), pool / 3));
    shared.extend(Sparse::new(subject.id(), seed_of(seed, 5)).take(pool / 3));
    let id = subject.id();
    let shared = Pool::new(experiments, shared, hypothesis);
    // Dots about each adder and each floor, and arbitrary others, drawn when the first rival needs them.
    let mut about: BTreeMap<Place<'_>, Pool> = BTreeMap::new();
    let mut sparse: Option<Pool> = None;
    let mut found = Vec::new();
    tried.begin();
    let rivals = neighbours(experiments, hypothesis, tried, &mut random);
    let known = |rival: Rival| {
        let flush = rival.hypothesis.flush;
        let others = (flush != hypothesis.flush).then(|| experiments.read_otherwise(flush, hypothesis.flush, &all));
        let state = tried.state(&rival.hypothesis);
        Known { rival, others, state }
    };
    let rivals: Vec<Known> = rivals.into_iter().map(known).collect();
    let families: Vec<&[Known]> = rivals.chunk_by(|_, next| next.rival.follows).collect();
    // For each rival of a family, up to the first that no dot splits: the dots, or none if it is refuted.
    let by_shared = experiments.each(Limit::None, 1, &families, |spent, answered, family| {
        let mut told = Vec::new();
        for Known { rival, others, state } in *family {
            let explains = match *state {
                State::Explains(known) => rival.explains(spent, answered, &all[known..], others.as_deref()),
                State::Refuted => false,
            };
            let split = explains.then(|| shared.split(id, &rival.hypothesis));
            let is_last = split.as_ref().is_some_and(Vec::is_empty);
            told.push(split);
            if is_last {
                break;
            }
        }
        told
    });
    for (family, told) in families.iter().zip(by_shared) {
        for (known, told) in family.iter().zip(&told) {
            let state = if told.is_some() { State::Explains(all.len()) } else { State::Refuted };
            tried.set(&known.rival.hypothesis, state);
        }
        let mut told = told.into_iter();
        for Known { rival, .. } in *family {
            let Some(mut split) = told.next().unwrap_or_else(|| Some(Vec::new())) else { continue };
            if split.is_empty() {
                let mut drawn = |times: usize| {
                    let read = Operands::read_otherwise(id, rival.hypothesis.flush, hypothesis.flush);
                    let dots = aim.at(subject, rival, read).dots(subject, &mut random, times * aimed);
                    Pool::new(experiments, dots, hypothesis)
                };
                let of_one = rival.product.is_some() || rival.hypothesis.flush != hypothesis.flush;
                let of_several = (rival.adder, rival.floor, &rival.depths[..]);
                split = if of_one {
                    drawn(1).split_by_all(experiments, &rival.hypothesis)
                } else {
                    let pool = &*about.entry(of_several).or_insert_with(|| drawn(OF_AN_ADDER));
                    pool.split_by_all(experiments, &rival.hypothesis)
                };
            }
            if split.is_empty() {
                let others = sparse.get_or_insert_with(|| {
                    let dots = Sparse::new(subject.id(), random.bits()).take(MORE * aimed).collect();
                    Pool::new(experiments, dots, hypothesis)
                });
                split = others.split_by_all(experiments, &rival.hypothesis);
            }
            if split.is_empty() {
                break;
            }
            found.extend(split);
        }
    }
    let mut seen = HashSet::new();
    found.retain(|dot| seen.insert(dot.clone()));
    found
}

/// Returns at most `OF_ONE_PRODUCT` of these, chosen at random.
fn some(mut products: Vec<usize>, random: &mut Random) -> Vec<usize> {
    while products.len() > OF_ONE_PRODUCT {
        products.swap_remove(random.below(products.len()));
    }
    products
}

/// Returns the rivals in which one value is replaced by its nearest other choice, in both directions if it is a number.
fn neighbours(
    experiments: &mut Experiments<'_, '_>,
    hypothesis: &Hypothesis,
    tried: &mut Tried,
    random: &mut Random,
) -> Vec<Rival> {
    let mut moves: Vec<Move> = Vec::new();
    let Flush { a, b, c, .. } = hypothesis.flush;
    moves.extend([
        Move::Flush(Flush { a: !a, ..hypothesis.flush }),
        Move::Flush(Flush { b: !b, ..hypothesis.flush }),
        Move::Flush(Flush { c: !c, ..hypothesis.flush }),
    ]);
    if a || b || c {
        moves.push(Move::Flush(Flush { to_positive: !hypothesis.flush.to_positive, ..hypothesis.flush }));
    }
    moves.extend(conversions(experiments.subject.id(), hypothesis.flush).into_iter().map(Move::Flush));
    let (joining, alone) = (hypothesis.skeleton.joining_one(), hypothesis.skeleton.rounded_alone());
    moves.extend(some(joining, random).into_iter().map(|product| Move::Alone(vec![product])));
    moves.extend(some(alone, random).into_iter().map(Move::Together));
    for (at, adder) in hypothesis.adders.iter().enumerate() {
        let mut changes = Vec::new();
        let near = |turn: fn(Turn) -> bool| {
            let of = |parameter: &'static Parameter<Adder>| {
                (parameter.near)(adder).into_iter().map(move |to| Change::Set(vec![(parameter, to)]))
            };
            Parameter::by_turn(&PARAMETERS, turn).into_iter().filter(|parameter| parameter.applies(adder)).flat_map(of)
        };
        changes.extend(near(|turn| matches!(turn, Turn::Result(_))));
        if !adder.grid.is_empty() {
            changes.extend(near(|turn| turn == Turn::Below));
            of_grid(adder, &mut changes);
            changes.extend(near(|turn| matches!(turn, Turn::Normalised(_))));
            changes.extend(near(|turn| matches!(turn, Turn::Grid(_))));
        }
        moves.extend(changes.into_iter().map(|change| Move::Adder(at, change)));
    }
    let of_moves = moves.iter().filter_map(|change| {
        let (product, adder) = match change {
            Move::Alone(products) => (products.first().copied(), None),
            Move::Together(product) => (Some(*product), None),
            Move::Adder(at, _) => (None, Some(*at)),
            _ => (None, None),
        };
        let hypothesis = change.apply(hypothesis)?;
        Some(Rival { hypothesis, floor: None, product, adder, depths: Vec::new(), follows: false })
    });
    let of_moves: Vec<Rival> = of_moves.collect();
    let of_thresholds = thresholds::all(experiments, hypothesis, tried).into_iter().map(|threshold| {
        let Threshold { hypothesis, floor, adder, depths, follows } = threshold;
        Rival { hypothesis, floor, product: None, adder: Some(adder), depths, follows }
    });
    let mut found: Vec<Rival> = of_moves.into_iter().chain(of_thresholds).collect();
    let id = experiments.subject.id();
    let is_in_place = |rival: &Rival| Arc::ptr_eq(&rival.hypothesis.skeleton, &hypothesis.skeleton);
    found.retain(|rival| {
        let at = rival.adder.filter(|_| is_in_place(rival));
        at.is_none_or(|at| !is_alike(id, hypothesis, at, &rival.hypothesis.adders[at]))
    });
    found
}

/// Adds changes of each rule of a grid to the nearest values, and of the width of the grid.
fn of_grid(adder: &Adder, changes: &mut Vec<Change>) {
    for at in 0..adder.grid.len() {
        let mut with = |parameter: &Parameter<GridRule>, to: Setting| {
            let mut grid = adder.grid.clone();
            (parameter.set)(&mut grid[at], to);
            changes.push(Change::Grid(grid));
        };
        for parameter in Parameter::by_turn(&RULE, |turn| matches!(turn, Turn::Grid(_))) {
            for to in (parameter.near)(&adder.grid[at]) {
                with(parameter, to);
            }
        }
    }
    changes.extend([-1, 1].map(Change::Widen));
    changes.extend([1, 2].map(Change::CutLater));
}
