//! The adders of a tree one addition at a time, from the one that gives d downward.
//!
//! Each addition is told from dots in which it alone joins terms, or those above it, which are known by then. An adder that is
//! known already is taken where it explains them; else it is changed so that it explains these dots and those of the additions
//! it stood for before; else the addition gets an adder of its own.

use std::rc::Rc;

use mxprobe_api::{Format, Rounding};
use mxprobe_models::{Adder, Flush, NanRules, Output};

use super::{
    experiments::Experiments,
    expression::Expression,
    fit::Fit,
    hypothesis::{Hypothesis, float},
    moderate::{is_long, is_moderate},
    nan,
    skeleton::Role,
};

/// Additions of one tree at the most.
const NODES: usize = 120;
/// So many dots about an addition are enough to leave out those in which a term passes an addition that is not known yet.
const ENOUGH: usize = 40;
/// Per cent of the dots about what gives d that one adder in the place of all that is not known has to explain before others are
/// tried there.
const FAR: usize = 80;

/// How far telling a tree's additions came.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The candidate, where every addition was told.
    pub(super) hypothesis: Option<Hypothesis>,
    /// Additions told, and dots of the next one explained, in per cent.
    pub(super) progress: (usize, usize),
}

/// The adders of a tree as far as they explain dots about single additions.
pub(super) fn by_nodes(experiments: &mut Experiments<'_, '_>, tree: &Expression, bits: u32) -> Told {
    let tree = tree.untied();
    let count = tree.arguments_by_adder().len();
    let mut told = Told { hypothesis: None, progress: (0, 0) };
    if count == 0 || count > NODES {
        return told;
    }
    let id = experiments.subject.id();
    let wide = Adder::exact("neutral", Output::Wide, NanRules::default());
    let format = if id.d.bits() < 32 { Format::F32 } else { id.d };
    let output = float(format, format.fraction_bits(), Rounding::NearestEven);
    let rounding = Adder::exact("neutral", output, nan::seen(experiments, format));
    let busy: Vec<u128> = experiments.dots.iter().map(|dot| tree.busy(dot)).collect();
    let touched: Vec<u128> =
        experiments.dots.iter().map(|dot| tree.touched(dot, &|leaf| is_long(id, dot, leaf))).collect();
    let moderate: Rc<[bool]> = experiments.dots.iter().map(|dot| is_moderate(id, dot)).collect();
    let given =
        Given { unary: tree.of_one_argument(), count, busy, touched, moderate, plain: rounding.clone(), bits, tree };
    if count == 1 {
        given.told(experiments, Start { neutral: None, sure: false, exactly: false }, &mut told);
        return told;
    }
    // What is not known yet is as the addition that gives d, or only rounds, or hands on what it has: first that with which
    // all is explained of what gives d, then by how much is.
    let start = |neutral: Option<Adder>, sure: bool| Start { neutral, sure, exactly: true };
    let mut later: Vec<(usize, Option<Adder>)> = Vec::new();
    for start in [start(None, false), start(None, true), start(Some(rounding), true), start(Some(wide), true)] {
        let (neutral, sure) = (start.neutral.clone(), start.sure);
        match given.told(experiments, start, &mut told) {
            Ended::Whole => return told,
            Ended::Inexact(right) if sure && right < FAR => break,
            Ended::Inexact(right) if sure => later.push((right, neutral)),
            Ended::Inexact(_) | Ended::Partly => {}
        }
    }
    later.sort_by_key(|(right, _)| std::cmp::Reverse(*right));
    for (_, neutral) in later {
        if matches!(given.told(experiments, Start { neutral, sure: true, exactly: false }, &mut told), Ended::Whole) {
            break;
        }
    }
    told
}

/// One way to tell a tree's additions.
struct Start {
    /// What stands for those that are not known yet.
    neutral: Option<Adder>,
    /// Only from dots in which nothing passes one of those that it may change, if there are enough.
    sure: bool,
    /// Goes on only if all is explained of what gives d.
    exactly: bool,
}

/// How telling a tree with one neutral adder ended.
enum Ended {
    /// Every addition was told.
    Whole,
    /// Some were not.
    Partly,
    /// Of what gives d so many per cent were explained, and nothing else was looked at.
    Inexact(usize),
}

/// What telling a tree's additions begins with.
struct Given {
    tree: Expression,
    count: usize,
    unary: Vec<usize>,
    /// For each dot the additions that join terms, and those which something else passes that they may change.
    busy: Vec<u128>,
    touched: Vec<u128>,
    moderate: Rc<[bool]>,
    plain: Adder,
    bits: u32,
}

impl Given {
    /// Tells the additions from d downward, as far as that goes; what gives d alone, if it is to be exact and is not.
    fn told(&self, experiments: &mut Experiments<'_, '_>, start: Start, told: &mut Told) -> Ended {
        let mut fit = Fit {
            experiments,
            tree: self.tree.clone(),
            of: vec![None; self.count],
            adders: Vec::new(),
            roles: Vec::new(),
            neutral: start.neutral,
            plain: self.plain.clone(),
            told: vec![Vec::new(); self.count],
            about: vec![Vec::new(); self.count],
            moderate: Rc::clone(&self.moderate),
            bits: self.bits,
            flush: Flush::default(),
            nearest: 100,
        };
        let mut known = 0u128;
        for node in 0..self.count {
            known |= 1 << node;
            let about = |masks: &[u128]| -> Vec<usize> {
                (0..masks.len()).filter(|at| masks[*at] & !known == 0 && masks[*at] >> node & 1 == 1).collect()
            };
            let sure = if start.sure { about(&self.touched) } else { Vec::new() };
            let which = if sure.len() < ENOUGH { about(&self.busy) } else { sure };
            let role = match (node, self.unary.contains(&node)) {
                (0, _) => Role::Root,
                (_, true) => Role::Product,
                _ => Role::Inner,
            };
            let good = fit.node(node, role, &which);
            if node == 0 && start.exactly && fit.nearest < 100 {
                told.progress = told.progress.max((0, fit.nearest));
                return Ended::Inexact(fit.nearest);
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
