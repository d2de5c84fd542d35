//! Determines the adders of a tree one addition at a time, from the one that gives d downward.
//!
//! Each addition is determined from dots in which only it and the additions above it, which are known by then, join
//! terms. If a known adder explains those dots, the addition shares it. If not, that adder is changed so that it
//! explains these dots and those of the additions that use it already. If that fails too, the addition gets an adder of
//! its own.

use std::sync::Arc;

use mxprobe_api::{Format, Rounding};
use mxprobe_models::{Adder, Flush, NanRules, Output};

use super::fit::{Fit, TELLING};
use crate::{
    dots::Dot,
    identify::{
        candidates::{
            adders::Adders,
            hypothesis::{Hypothesis, float},
            nan,
        },
        dots::{
            experiments::Experiments,
            moderate::{is_long, is_longer_than_few_bits, is_moderate, is_negative},
        },
        tree::{expression::Expression, focus::NODES, skeleton::Role},
    },
    in_order::InOrder,
};

/// From this many dots about an addition, dots in which a term passes through an addition that is not known yet are
/// left out.
const ENOUGH: usize = 40;
/// Per cent of the dots about the addition that gives d that one neutral adder must explain. If it explains fewer, no
/// other neutral adder is tried.
const FAR: usize = 80;

/// How far the additions of a tree were determined.
#[derive(Clone, Debug)]
pub(in crate::identify) struct Told {
    /// The candidate, if every addition was determined.
    pub(in crate::identify) hypothesis: Option<Hypothesis>,
    /// The number of additions determined, and the dots of the next one that are explained, in per cent.
    pub(in crate::identify) progress: (usize, usize),
}

/// Determines the adders of a tree from dots about single additions, as far as they explain those dots. `bits` are the
/// fraction bits of d that are ever set.
pub(in crate::identify) fn by_nodes(experiments: &mut Experiments<'_, '_>, tree: &Expression, bits: u32) -> Told {
    by_adders(experiments, tree.untied(), bits, None)
}

/// Determines the adders of a tree as [`by_nodes`] does, but each from the dots about all its additions. The adders are
/// numbered from d downward. The one that gives d may be known (`last`).
pub(in crate::identify) fn by_adders(
    experiments: &mut Experiments<'_, '_>,
    tree: Expression,
    bits: u32,
    last: Option<Adder>,
) -> Told {
    let count = tree.arguments_by_adder().len();
    let known = usize::from(last.is_some());
    let mut told = Told { hypothesis: None, progress: (0, 0) };
    if count <= known || count > NODES {
        return told;
    }
    let id = experiments.subject.id();
    let wide = Adder::exact("neutral", Output::Wide, NanRules::default());
    let format = if id.d.bits() < 32 { Format::F32 } else { id.d };
    let output = float(format, format.fraction_bits(), Rounding::NearestEven);
    let rounding = Adder::exact("neutral", output, nan::seen(experiments, format));
    let busy: Vec<u128> = experiments.dots.iter().map(|dot| tree.busy(dot)).collect();
    let touched: Vec<u128> =
        experiments.dots.iter().map(|dot| tree.touched(dot, &|leaf| is_long(id, dot, leaf), true)).collect();
    let unary = tree.of_one_argument();
    let changed: Vec<u128> = if unary.is_empty() {
        Vec::new()
    } else {
        let long = |dot, leaf| is_longer_than_few_bits(id, dot, leaf);
        experiments.dots.iter().map(|dot| tree.touched(dot, &|leaf| long(dot, leaf), false)).collect()
    };
    let moderate: Arc<[bool]> = experiments.dots.iter().map(|dot| is_moderate(id, dot)).collect();
    let mut given = Given { unary, count, last, busy, touched, changed, moderate, plain: rounding.clone(), bits, tree };
    if count == known + 1 {
        given.told(experiments, Start { neutral: None, sure: false, exactly: false }, None, &mut told);
        return told;
    }
    // An addition that is not known yet acts like the one that gives d, or only rounds, or passes its sum on unrounded.
    // First comes the choice that explains every dot about the first addition that is determined, then the others by how
    // many they explain. A known adder that gives d is not like any other.
    let start = |neutral: Option<Adder>, sure: bool| Start { neutral, sure, exactly: true };
    let mut later: Vec<(Option<Adder>, Begun)> = Vec::new();
    let starts = [start(None, false), start(None, true), start(Some(rounding), true), start(Some(wide), true)];
    for start in starts.into_iter().skip(2 * known) {
        let (neutral, sure) = (start.neutral.clone(), start.sure);
        match given.told(experiments, start, None, &mut told) {
            Ended::Whole => return told,
            Ended::Inexact(begun) if sure && begun.nearest < FAR => break,
            Ended::Inexact(begun) if sure => later.push((neutral, *begun)),
            Ended::Inexact(_) | Ended::Partly => {}
        }
    }
    if later.is_empty() && told.progress.0 == 0 {
        // An addition in one's complement changes every negative term that passes it.
        let id = experiments.subject.id();
        let changes = |dot: &Dot, leaf| is_long(id, dot, leaf) || is_negative(id, dot, leaf);
        let touched = experiments.dots.iter().map(|dot| given.tree.touched(dot, &|leaf| changes(dot, leaf), true));
        given.touched = touched.collect();
        given.told(experiments, start(Some(given.plain.clone()), true), None, &mut told);
        return told;
    }
    later.order_by_key(|(_, begun)| std::cmp::Reverse(begun.nearest));
    for (neutral, begun) in later {
        let start = Start { neutral, sure: true, exactly: false };
        if matches!(given.told(experiments, start, Some(begun), &mut told), Ended::Whole) {
            break;
        }
    }
    told
}

/// One way to determine the additions of a tree.
struct Start {
    /// The adder of additions that are not known yet; if `None`, they share the adder that gives d.
    neutral: Option<Adder>,
    /// Uses only dots in which no term passes through an unknown addition that may change it, if there are enough.
    sure: bool,
    /// Goes on only if every dot about the addition that gives d is explained.
    exactly: bool,
}

/// How determining a tree with one neutral adder ended.
enum Ended {
    /// Every addition was determined.
    Whole,
    /// Some were not.
    Partly,
    /// Not every dot about the first addition that was determined was explained, and the search stopped there.
    Inexact(Box<Begun>),
}

/// What is known after the first addition has been determined, so that it need not be determined again.
struct Begun {
    /// Per cent of the dots about it that are explained.
    nearest: usize,
    /// Whether that is enough for the additions below it to be determined.
    good: bool,
    of: Vec<Option<usize>>,
    adders: Adders,
    roles: Vec<Role>,
    told: Vec<Vec<usize>>,
    about: Vec<Vec<usize>>,
    flush: Flush,
}

/// The input for determining the additions of a tree.
struct Given {
    tree: Expression,
    count: usize,
    /// The adder that gives d, if it is known.
    last: Option<Adder>,
    unary: Vec<usize>,
    /// For each dot a bit mask of the additions that join terms (`busy`), and a mask that also has the additions
    /// through which a single term passes that they may change (`touched`).
    busy: Vec<u128>,
    touched: Vec<u128>,
    /// The same mask with the additions of one argument only if they may change it; empty if there are none. Without
    /// it, no dot would show an addition all of whose terms pass one of those.
    changed: Vec<u128>,
    moderate: Arc<[bool]>,
    plain: Adder,
    bits: u32,
}

impl Given {
    /// Determines the additions from d downward, as far as dots explain them, and goes on from what was begun with the same
    /// neutral adder. Stops after the first addition if `start.exactly` is set and some of its dots remain unexplained.
    fn told(
        &self,
        experiments: &mut Experiments<'_, '_>,
        start: Start,
        begun: Option<Begun>,
        told: &mut Told,
    ) -> Ended {
        let first = usize::from(self.last.is_some());
        let mut fit = Fit {
            experiments,
            tree: self.tree.clone(),
            of: (0..self.count).map(|node| (node < first).then_some(0)).collect(),
            adders: self.last.iter().cloned().collect(),
            roles: vec![Role::Root; first],
            neutral: start.neutral,
            plain: self.plain.clone(),
            told: vec![Vec::new(); self.count],
            about: vec![Vec::new(); self.count],
            moderate: Arc::clone(&self.moderate),
            bits: self.bits,
            flush: Flush::default(),
            nearest: 100,
        };
        let mut good_before = None;
        if let Some(Begun { nearest, good, of, adders, roles, told, about, flush }) = begun {
            good_before = Some(good);
            fit = Fit { nearest, of, adders, roles, told, about, flush, ..fit };
        }
        let mut known = (1u128 << first) - 1;
        for node in first..self.count {
            known |= 1 << node;
            if let Some(good) = good_before.take() {
                if good {
                    continue;
                }
                told.progress = told.progress.max((node, fit.nearest));
                return Ended::Partly;
            }
            let about = |masks: &[u128]| -> Vec<usize> {
                (0..masks.len()).filter(|at| masks[*at] & !known == 0 && masks[*at] >> node & 1 == 1).collect()
            };
            let sure = if start.sure { about(&self.touched) } else { Vec::new() };
            let mut which = if sure.len() < ENOUGH { about(&self.busy) } else { sure };
            if which.len() < TELLING {
                which = about(&self.changed);
            }
            let role = match (node, self.unary.contains(&node)) {
                (0, _) => Role::Root,
                (_, true) => Role::Product,
                _ => Role::Inner,
            };
            let good = fit.node(node, role, &which);
            if node == first && start.exactly && fit.nearest < 100 {
                told.progress = told.progress.max((node, fit.nearest));
                let Fit { nearest, of, adders, roles, told, about, flush, .. } = fit;
                return Ended::Inexact(Box::new(Begun { nearest, good, of, adders, roles, told, about, flush }));
            }
            if !good || fit.experiments.is_late() {
                told.progress = told.progress.max((node, fit.nearest));
                return Ended::Partly;
            }
        }
        fit.at_the_ends(&self.unary);
        told.progress = told.progress.max((self.count, 0));
        told.hypothesis = Some(fit.hypothesis());
        Ended::Whole
    }
}
