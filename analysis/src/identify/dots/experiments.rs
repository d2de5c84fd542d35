//! The experiments on an operation: dots, their answers, and what the search has spent.

use std::{
    cell::OnceCell,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use mxprobe_api::{Decoded, Error, Format, OperationId};
use mxprobe_models::{Flush, Sample};

use super::{
    nan_order,
    nan_seen::NanSeen,
    operands::{Operands, Readings, subnormal},
};
use crate::{dots::Dot, identify::outcome::Effort, probes::Subject};

/// The experiments of one operation.
pub(in crate::identify) struct Experiments<'a, 's> {
    pub(in crate::identify) subject: &'a Subject<'s>,
    pub(in crate::identify) dots: Vec<Dot>,
    pub(in crate::identify) answers: Vec<u64>,
    /// The indices of the dots that were asked around others.
    around: Vec<Range<usize>>,
    /// Indices of the dots of ordinary values: none is subnormal, special, near an end of a range or a negative zero.
    pub(in crate::identify) ordinary: Vec<usize>,
    /// Batches asked since the tree was known.
    pub(in crate::identify) rounds: usize,
    /// When the search stops, whatever it has spent.
    pub(in crate::identify) deadline: Instant,
    /// The search's budget, in terms that candidates add up, and how much of it is spent.
    pub(in crate::identify) allowed: u64,
    pub(in crate::identify) spent: u64,
    /// The amount of `spent` at which the current stage ends.
    stage: u64,
    /// The most threads on which candidates are computed.
    threads: usize,
    /// The dots as read under each flush rule.
    readings: Readings,
    /// The operands of each dot that hold a subnormal.
    subnormal: Vec<Operands>,
    /// The NaN among the answers.
    pub(in crate::identify) nan: NanSeen,
    /// The order in which products are looked at for a NaN, once it has been asked: see [`nan_order::ranks`].
    nan_order: OnceCell<Option<Arc<[usize]>>>,
}

/// The dots so far and their answers, as threads share them.
#[derive(Clone, Copy)]
pub(in crate::identify) struct Answered<'e> {
    pub(in crate::identify) id: &'e OperationId,
    pub(in crate::identify) dots: &'e [Dot],
    pub(in crate::identify) answers: &'e [u64],
    readings: &'e Readings,
}

impl<'e> Answered<'e> {
    /// Returns the dots as an evaluator with this flush rule reads them.
    pub(in crate::identify) fn sample(self, flush: Flush) -> &'e Sample {
        self.readings.sample(self.id, self.dots, flush)
    }
}

/// Whether items are left out after the budget of the stage is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::identify) enum Limit {
    Stage,
    None,
}

/// What candidates cost, in terms that they add: making one, and each addition of a dot besides its terms. A term takes
/// some 4 ns.
const PER_CANDIDATE: u64 = 400;
const PER_ADDITION: u64 = 4;
/// How many terms one of f64 counts for, and how many of integers count for one.
const WIDE: u64 = 2;
const INTEGERS: u64 = 3;

/// Returns the cost of evaluating a candidate with this many additions on `dots` dots. It is the same on every processor,
/// so it does not count which dots take longer there.
pub(in crate::identify) fn cost(id: &OperationId, additions: usize, dots: usize) -> u64 {
    let of_a_dot = id.shape.sizes().2 as u64 + PER_ADDITION * additions as u64;
    let terms = PER_CANDIDATE + dots as u64 * of_a_dot;
    if id.is_integer() {
        terms / INTEGERS
    } else if id.d.bits() > 32 {
        terms * WIDE
    } else {
        terms
    }
}

/// Number of products in a dot above which fewer dots are drawn.
const LONG: usize = 32;

/// Reduces the number of dots to draw if each has many products (`k`), since their cost grows with their length. At
/// least an eighth is left.
pub(in crate::identify) fn fewer(count: usize, k: usize) -> usize {
    (count * LONG / k).clamp(count / 8, count)
}

impl<'a, 's> Experiments<'a, 's> {
    pub(in crate::identify) fn new(subject: &'a Subject<'s>, effort: Effort) -> Self {
        let Effort { time, terms: allowed, threads, .. } = effort;
        Self {
            deadline: Instant::now() + time,
            allowed,
            threads,
            spent: 0,
            stage: allowed,
            subject,
            dots: Vec::new(),
            answers: Vec::new(),
            around: Vec::new(),
            ordinary: Vec::new(),
            rounds: 0,
            readings: Readings::new(),
            subnormal: Vec::new(),
            nan: NanSeen::default(),
            nan_order: OnceCell::new(),
        }
    }

    /// Whether the current stage has spent its budget, or the deadline has passed.
    pub(in crate::identify) fn is_late(&self) -> bool {
        is_over(self.spent, Some((self.stage, self.deadline)))
    }

    /// Begins a stage of the search that ends when `per_cent` of the whole budget is spent.
    pub(in crate::identify) fn stage(&mut self, per_cent: u64) {
        self.stage = self.allowed / 100 * per_cent;
    }

    /// Extends the current stage to the whole budget. Returns its previous end for [`Experiments::back_to`].
    pub(in crate::identify) fn whole_stage(&mut self) -> u64 {
        std::mem::replace(&mut self.stage, self.allowed)
    }

    /// Ends the current stage after another `per_cent` of the whole budget, if it does not end before. Returns its
    /// previous end for [`Experiments::back_to`].
    pub(in crate::identify) fn at_most(&mut self, per_cent: u64) -> u64 {
        let end = self.stage.min(self.spent + self.allowed / 100 * per_cent);
        std::mem::replace(&mut self.stage, end)
    }

    /// Lets the current stage go on for another `per_cent` of the whole budget, as far as that goes.
    pub(in crate::identify) fn at_least(&mut self, per_cent: u64) {
        self.stage = self.stage.max(self.spent + self.allowed / 100 * per_cent).min(self.allowed);
    }

    /// Adds `per_cent` of the whole budget to it, and begins the last stage.
    pub(in crate::identify) fn extend(&mut self, per_cent: u64) {
        self.allowed += self.allowed / 100 * per_cent;
        self.stage = self.allowed;
    }

    /// Restores the end of a stage. Returns the end of the one within it.
    pub(in crate::identify) fn back_to(&mut self, stage: u64) -> u64 {
        std::mem::replace(&mut self.stage, stage)
    }

    /// Calls `of` with each of these items on several threads, which take `at_once` of them at a time, and returns the
    /// results in the order of the items. `of` adds what candidates cost to its first argument. With [`Limit::Stage`],
    /// items after the one at which the budget is spent are left out. So the results do not depend on the threads.
    pub(in crate::identify) fn each<T: Sync, R: Send + Sync>(
        &mut self,
        limit: Limit,
        at_once: usize,
        items: &[T],
        of: impl Fn(&mut u64, Answered<'_>, &T) -> R + Sync,
    ) -> Vec<R> {
        let answered = self.answered();
        let computed: Vec<OnceLock<(R, u64)>> = items.iter().map(|_| OnceLock::new()).collect();
        let compute = |at: usize| {
            let mut cost = 0;
            let result = of(&mut cost, answered, &items[at]);
            drop(computed[at].set((result, cost)));
            cost
        };
        // Those of long dots take longer, so that a thread takes fewer of them.
        let at_once = (at_once * LONG / self.subject.k().max(LONG)).max(1);
        let of_stage = (limit == Limit::Stage).then_some((self.stage, self.deadline));
        in_threads(self.threads, (at_once, items.len()), (self.spent, of_stage), &compute);
        let mut results = Vec::with_capacity(items.len());
        for (result, cost) in computed.into_iter().map_while(OnceLock::into_inner) {
            if is_over(self.spent, of_stage) {
                break;
            }
            self.spent += cost;
            results.push(result);
        }
        results
    }

    /// Returns the dots so far and their answers.
    pub(in crate::identify) fn answered(&self) -> Answered<'_> {
        Answered { id: self.subject.id(), dots: &self.dots, answers: &self.answers, readings: &self.readings }
    }

    /// Asks one round of dots without keeping them.
    pub(in crate::identify) fn only_ask(&mut self, dots: &[Dot]) -> Result<Vec<u64>, Error> {
        self.rounds += 1;
        self.subject.ask(dots)
    }

    /// Returns the order in which products are looked at for a NaN, as [`nan_order::ranks`] does. `None` also if the device
    /// fails, which the next dots will show.
    pub(in crate::identify) fn nan_order(&self) -> Option<Arc<[usize]>> {
        self.nan_order.get_or_init(|| nan_order::ranks(self.subject).ok().flatten().map(Arc::from)).clone()
    }

    /// Keeps dots and their answers.
    pub(in crate::identify) fn keep(&mut self, dots: Vec<Dot>, answers: Vec<u64>) {
        self.readings.extend(&dots);
        for (dot, answer) in dots.into_iter().zip(answers) {
            if is_ordinary(self.subject, &dot, answer) {
                self.ordinary.push(self.dots.len());
            }
            self.subnormal.push(subnormal(self.subject.id(), &dot));
            self.nan.note(self.subject.id(), &dot, answer);
            self.dots.push(dot);
            self.answers.push(answer);
        }
    }

    /// Keeps dots around others, and their answers.
    pub(in crate::identify) fn keep_around(&mut self, dots: Vec<Dot>, answers: Vec<u64>) {
        let from = self.dots.len();
        self.keep(dots, answers);
        self.around.push(from..self.dots.len());
    }

    /// Returns how many of these dots were not asked around others. One wrong value leaves many of those unexplained, so
    /// they do not tell how near a candidate is.
    pub(in crate::identify) fn not_around(&self, which: &[usize]) -> usize {
        which.iter().filter(|at| !self.around.iter().any(|around| around.contains(at))).count()
    }

    /// Returns those of these dots that two flush rules read differently.
    pub(in crate::identify) fn read_otherwise(&self, one: Flush, other: Flush, which: &[usize]) -> Vec<usize> {
        let changed = Operands::read_otherwise(self.subject.id(), one, other);
        which.iter().copied().filter(|at| self.subnormal[*at].share(changed)).collect()
    }
}

/// Whether a stage is over that ends when so much is spent, or at this time, if it ends.
fn is_over(spent: u64, end: Option<(u64, Instant)>) -> bool {
    end.is_some_and(|(stage, deadline)| spent > stage || Instant::now() > deadline)
}

/// Calls `compute`, which returns a cost, with numbers below `count` on several threads, in ascending order and `at_once`
/// at a time, until the stage is over. What is computed are then the first numbers, and perhaps more than the stage pays
/// for.
fn in_threads(
    threads: usize,
    (at_once, count): (usize, usize),
    (spent, end): (u64, Option<(u64, Instant)>),
    compute: &(dyn Fn(usize) -> u64 + Sync),
) {
    let (next, spent) = (AtomicUsize::new(0), AtomicU64::new(spent));
    let threads = threads.min(count.div_ceil(at_once));
    // A single thread takes one at a time, and so computes none that is not paid for.
    let at_once = if threads > 1 { at_once } else { 1 };
    let work = || {
        while !is_over(spent.load(Ordering::Relaxed), end) {
            let from = next.fetch_add(at_once, Ordering::Relaxed);
            if from >= count {
                break;
            }
            let cost = (from..count.min(from + at_once)).map(compute).sum();
            spent.fetch_add(cost, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}

/// Returns the exponent of a normal value, `None` for +0, `Err` for anything else.
fn normal(format: Format, bits: u64) -> Result<Option<i32>, ()> {
    match format.decode(bits) {
        Decoded::Zero { negative: false } => Ok(None),
        Decoded::Finite { significand, exponent, .. } if significand >> format.fraction_bits() != 0 => {
            Ok(Some(exponent))
        }
        _ => Err(()),
    }
}

/// Whether the terms of a dot and its answer are ordinary: normal or +0, and away from the ends of the range of d.
fn is_ordinary(subject: &Subject<'_>, dot: &Dot, answer: u64) -> bool {
    let id = subject.id();
    let (Some(d), Ok(Some(of_answer))) = (id.d.as_float(), normal(id.d, answer)) else { return false };
    let room = if id.d.bits() < 32 { 2 } else { 8 };
    let (low, high) = (d.min_exponent() + room, d.max_exponent() - room);
    let mut top = None;
    let mut within = |exponent: Option<i32>| {
        top = top.max(exponent);
        exponent.is_none_or(|exponent| exponent <= high && (id.d.bits() < 32 || exponent >= low))
    };
    let Ok(of_c) = normal(id.c, dot.c) else { return false };
    if !within(of_c) {
        return false;
    }
    for (k, (a, b)) in dot.a.iter().zip(&dot.b).enumerate() {
        let (Ok(of_a), Ok(of_b)) = (normal(id.a, *a), normal(id.b, *b)) else { return false };
        let mut scaled = 0;
        if let (Some(scale), Some((scale_a, scale_b))) = (id.block_scale(), &dot.scales) {
            let of = |bits: u64| normal(scale.format, bits).ok().flatten();
            let (Some(of_a), Some(of_b)) = (of(scale_a[k / scale.block]), of(scale_b[k / scale.block])) else {
                return false;
            };
            scaled = of_a + of_b;
        }
        if !within(of_a.zip(of_b).map(|(x, y)| x + y + scaled)) {
            return false;
        }
    }
    of_answer >= low && of_answer <= high && top.is_some_and(|top| top >= low + 2)
}
