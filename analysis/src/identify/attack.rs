//! Attacks on a candidate that explains every dot so far, with dots that it has not seen.

use std::collections::HashSet;

use mxprobe_api::Error;
use mxprobe_models::{Basis, Origin, Output};

use super::{
    candidates::{
        directed::{alone, cancelling, far_apart, groups, near_limits, scaled, specials, thinned, whole_range},
        hypothesis::Hypothesis,
        scored::{self, Scored},
        ties::{carrying, halves},
    },
    document,
    dots::experiments,
    fitting::{
        payloads,
        refine::refine,
        rejoined::{passed_on, rejoined},
    },
    outcome::{Arithmetic, Outcome},
    refute::{rivals, simplify, tried::Tried},
    run::Search,
};
use crate::{
    dots::{Dot, Edges, Sparse, draw, seed_of, simplest},
    nan_bits::NanBits,
    probes::Subject,
};

/// Number of consecutive attacks with drawn dots that must find nothing: `DRAWN` for a candidate with at most `SIMPLE`
/// values that differ from the simplest, one more for every two values beyond, and at most `MOST_DRAWN`.
const DRAWN: usize = 2;
const SIMPLE: usize = 5;
const MOST_DRAWN: usize = 5;

/// Per cent of [`Effort::attack`](super::outcome::Effort) that an attack with drawn dots has, and one after another that
/// found nothing (`LATER`). The latter has `OF_CLASSES` per cent of the other's dots of every class, `OF_FEW_TERMS` per cent
/// of those of few terms, `OF_OTHERS` per cent of those of other forms, and mixtures of extremes: of 16 later attacks that
/// found something, in some 950 units drawn from seeds, 11 found it by extremes, 3 by classes and 2 by few terms.
const FIRST: usize = 90;
const LATER: usize = 44;
const OF_CLASSES: usize = 75;
const OF_FEW_TERMS: usize = 25;
const OF_OTHERS: usize = 12;

/// Maximum number of attacks after those, with dots that tell the candidate from its rivals.
const AGAINST_RIVALS: usize = 3;

/// One in this many dots of an attack is asked again at another place.
const ASKED_TWICE: usize = 16;

/// An attack of more than `MANY` dots asks one in `SOME` of them first, and no others if `ENOUGH` of those differ.
const MANY: usize = 4_000;
const SOME: usize = 8;
const ENOUGH: usize = 8;

/// The most dots left unexplained after an attack around which others are asked at once: a few dots hardly tell the value
/// that is wrong.
const FEW: usize = 8;
/// Per cent of the term budget for changing values after an attack.
const AFTER_AN_ATTACK: u64 = 20;

/// How the attacks on a candidate ended.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Attacked {
    /// The candidate is the answer, or the unit does not repeat itself.
    Ended(Outcome),
    /// Some dot is not explained, and no change of the candidate explains it.
    Fails(Scored),
}

/// What is known of an adder that a single addition has for itself in a candidate under attack, and of a format of more
/// bits than d on the way.
enum Single {
    /// Nothing, or there is none.
    Unknown,
    /// It was given up. The candidate before that is kept.
    GivenUp(Box<Scored>),
    /// It is needed.
    Needed,
}

/// Dots, the unit's answers, and the indices of the dots on which a candidate differs.
struct Asked {
    dots: Vec<Dot>,
    answers: Vec<u64>,
    wrong: Vec<usize>,
}

impl Search<'_, '_> {
    /// Attacks a candidate that explains every dot so far; before that, fits the payloads of NaN if it differs in
    /// nothing else. A candidate that does not explain every dot, or that fails an attack, is added to `tried`.
    pub(super) fn settle(&mut self, scored: Option<Scored>, tried: &mut Vec<Scored>) -> Result<Option<Outcome>, Error> {
        let Some(mut scored) = scored else { return Ok(None) };
        if scored.explained < self.experiments.dots.len() {
            let wrong = scored::unexplained(&mut self.experiments, &scored.hypothesis);
            if self.only_nan(&scored, &wrong)?
                && let Some(better) = payloads::fitted(&mut self.experiments, &scored)
            {
                scored = better;
            }
        }
        let (tree, explained) = (scored.hypothesis.skeleton.text(self.subject().k()), scored.explained);
        (self.progress)(&format!("{tree}: explains {explained} of {} dots", self.experiments.dots.len()));
        match self.attack(scored)? {
            Attacked::Ended(outcome) => Ok(Some(outcome)),
            Attacked::Fails(scored) => {
                tried.push(scored);
                Ok(None)
            }
        }
    }

    /// Attacks a candidate with new inputs until enough consecutive attacks find nothing (see [`DRAWN`]), and then with
    /// inputs on which it differs from its nearest rivals. The candidate is refined with the dots that an attack finds.
    fn attack(&mut self, scored: Scored) -> Result<Attacked, Error> {
        let mut now = scored;
        // A candidate that explains everything so far may spend the whole budget.
        let stage = self.experiments.whole_stage();
        let mut single = Single::Unknown;
        self.rejoin(&mut now, &mut single);
        let drawn = (DRAWN + now.hypothesis.complexity().saturating_sub(SIMPLE) / 2).min(MOST_DRAWN);
        let mut quiet = 0;
        let mut every_form = true;
        let mut tried = Tried::default();
        while now.explained == self.experiments.dots.len() {
            let over = self.experiments.rounds >= self.effort.rounds + self.around || quiet == drawn + AGAINST_RIVALS;
            if over || quiet >= drawn {
                let adders = now.hypothesis.merged().adders.len();
                now.hypothesis = simplify::simplify(&mut self.experiments, &now.hypothesis);
                // Few dots tell adders apart that share most values, so a model with fewer of them is attacked again.
                if now.hypothesis.adders.len() < adders && !over {
                    quiet = drawn - 1;
                    every_form = true;
                }
            }
            let seed = seed_of(self.effort.seed, 100 + self.experiments.rounds as u64);
            let dots = match quiet {
                _ if over => Vec::new(),
                asked if asked < drawn => {
                    drawn_dots(self.subject(), self.effort.attack, &now.hypothesis, every_form, seed)
                }
                _ => rivals::splitting(&mut self.experiments, &now.hypothesis, &mut tried, seed),
            };
            let (dots, over) = match dots.is_empty() {
                false => (dots, false),
                true => match self.every_place(&now.hypothesis)? {
                    Err(outcome) => return Ok(Attacked::Ended(outcome)),
                    Ok(odd) => (odd, true),
                },
            };
            if dots.is_empty() {
                return Ok(Attacked::Ended(Outcome::Identified(self.arithmetic(&now.hypothesis))));
            }
            let Asked { dots, answers, wrong } = self.asked(&now.hypothesis, dots)?;
            if over && wrong.is_empty() {
                return Ok(Attacked::Ended(Outcome::Identified(self.arithmetic(&now.hypothesis))));
            }
            // Ask the dots that differ and a sample of the rest again, at other places and next to other dots.
            let again: Vec<usize> =
                wrong.iter().copied().take(600).chain((0..dots.len()).step_by(ASKED_TWICE)).collect();
            let (some, theirs): (Vec<Dot>, Vec<u64>) = again.iter().map(|at| (dots[*at].clone(), answers[*at])).unzip();
            if let Some(outcome) = self.elsewhere(&some, &theirs, 1 + self.experiments.rounds)? {
                return Ok(Attacked::Ended(outcome));
            }
            let kept_in = if quiet < drawn { 24 } else { 1 };
            if !wrong.is_empty() {
                (self.progress)(&format!("  an attack finds {} of {} dots that differ", wrong.len(), dots.len()));
                let at = wrong[0];
                let evidence = self.subject().evidence("not explained so far", &dots[at], answers[at], &[]);
                self.counterexamples.push(evidence);
            }
            self.keep_some(dots, answers, &wrong, kept_in);
            every_form = !wrong.is_empty();
            if wrong.is_empty() {
                quiet += 1;
                now.explained = self.experiments.dots.len();
                continue;
            }
            quiet = 0;
            let left = scored::unexplained(&mut self.experiments, &now.hypothesis);
            if self.only_nan(&now, &left)?
                && let Some(better) = payloads::fitted(&mut self.experiments, &now)
            {
                now = better;
                continue;
            }
            if left.len() <= FEW {
                let before = self.around;
                self.ask_around(&now.hypothesis, &left)?;
                self.around_attacks += self.around - before;
            }
            let stage = self.experiments.at_most(AFTER_AN_ATTACK);
            let better = refine(&mut self.experiments, vec![now.clone()], 1, self.pairs);
            self.experiments.back_to(stage);
            let Some(better) = better else { break };
            now = better;
            if now.explained < self.experiments.dots.len()
                && let Single::GivenUp(before) = std::mem::replace(&mut single, Single::Needed)
                && let Some(better) = refine(&mut self.experiments, vec![*before], 1, self.pairs)
            {
                now = better;
            }
            self.rejoin(&mut now, &mut single);
        }
        self.experiments.back_to(stage);
        Ok(Attacked::Fails(now))
    }

    /// Gives up an adder of a single addition in a candidate that explains every dot, if that of others will do, and a
    /// wider format on the way, if sums that are not rounded will do, unless either was given up before.
    fn rejoin(&mut self, scored: &mut Scored, single: &mut Single) {
        if !matches!(single, Single::Unknown) || scored.explained < self.experiments.dots.len() {
            return;
        }
        let passed = passed_on(&mut self.experiments, &scored.hypothesis);
        let from = passed.as_ref().unwrap_or(scored);
        let fewer = rejoined(&mut self.experiments, &from.hypothesis);
        if let Some(simpler) = fewer.or(passed) {
            *single = Single::GivenUp(Box::new(std::mem::replace(scored, simpler)));
        }
    }

    /// Asks the unit for these dots, and finds those on which the candidate differs. A wrong candidate usually shows in
    /// a sample, which is asked first; the other dots are then not asked.
    fn asked(&mut self, candidate: &Hypothesis, dots: Vec<Dot>) -> Result<Asked, Error> {
        let mut asked = Asked { dots: Vec::new(), answers: Vec::new(), wrong: Vec::new() };
        // Dots of one kind are adjacent, so the sample is spread over all of them.
        let step = if dots.len() > MANY { SOME } else { 1 };
        let (mut some, mut rest) = (Vec::new(), Vec::new());
        for (at, dot) in dots.into_iter().enumerate() {
            if at.is_multiple_of(step) { &mut some } else { &mut rest }.push(dot);
        }
        for dots in [some, rest] {
            if asked.wrong.len() >= ENOUGH {
                break;
            }
            let answers = self.subject().ask(&dots)?;
            let from = asked.dots.len();
            asked.wrong.extend(self.compare(candidate, &dots, &answers)?.into_iter().map(|at| from + at));
            asked.dots.extend(dots);
            asked.answers.extend(answers);
        }
        self.experiments.rounds += 1;
        Ok(asked)
    }

    /// Returns the indices of the dots on which the candidate does not give the unit's answer.
    pub(super) fn compare(
        &mut self,
        hypothesis: &Hypothesis,
        dots: &[Dot],
        answers: &[u64],
    ) -> Result<Vec<usize>, Error> {
        let modelled = scored::modelled_by_all(&mut self.experiments, hypothesis, dots)?;
        Ok((0..dots.len()).filter(|at| modelled[*at] != answers[*at]).collect())
    }

    /// Keeps the dots that differ, up to 600 of them, and one in `one_in` of all dots, so that the search continues
    /// with both.
    fn keep_some(&mut self, dots: Vec<Dot>, answers: Vec<u64>, wrong: &[usize], one_in: usize) {
        self.tested += dots.len();
        let wrong: HashSet<usize> = wrong.iter().copied().take(600).collect();
        let kept: Vec<(Dot, u64)> = dots
            .into_iter()
            .zip(answers)
            .enumerate()
            .filter(|(at, _)| wrong.contains(at) || at.is_multiple_of(one_in))
            .map(|(_, pair)| pair)
            .collect();
        let (dots, answers) = kept.into_iter().unzip();
        self.experiments.keep(dots, answers);
    }

    /// Returns the outcome if no candidate explains every dot: the best candidate, and the simplest dot that it does
    /// not explain.
    pub(super) fn outside(&mut self, best: &Scored) -> Result<Outcome, Error> {
        let of = self.experiments.dots.len();
        let wrong = scored::unexplained(&mut self.experiments, &best.hypothesis);
        let mut evidence = None;
        let only_nan = self.only_nan(best, &wrong)?;
        if let Some(at) = wrong.first() {
            let subject = self.experiments.subject;
            let id = subject.id();
            let evaluator = best.hypothesis.evaluator(id)?;
            let model = |dot: &Dot| {
                let scales = dot.scale_slices();
                evaluator
                    .dot(mxprobe_models::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales })
                    .expect("a dot of the operation")
            };
            let dot = simplest(id, &self.experiments.dots[*at], |dots: &[Dot]| {
                let answers = subject.ask(dots)?;
                Ok::<_, Error>(dots.iter().zip(answers).map(|(dot, d)| model(dot) != d).collect())
            })?;
            let d = subject.ask(std::slice::from_ref(&dot))?[0];
            let rivals = [("the nearest candidate".to_owned(), model(&dot))];
            evidence = Some(subject.evidence("no candidate explains this", &dot, d, &rivals));
        }
        let nearest = self.arithmetic(&best.hypothesis);
        Ok(Outcome::Outside { evidence, nearest, explained: of - wrong.len(), of, only_nan })
    }

    /// Whether the unit and the candidate both return NaN on each of these dots; false if there are none.
    pub(super) fn only_nan(&self, best: &Scored, wrong: &[usize]) -> Result<bool, Error> {
        let d = self.subject().id().d;
        let evaluator = best.hypothesis.evaluator(self.subject().id())?;
        let alike = |at: &usize| {
            let dot = &self.experiments.dots[*at];
            let scales = dot.scale_slices();
            let modelled = evaluator.dot(mxprobe_models::Dot { a: &dot.a, b: &dot.b, c: dot.c, scales });
            modelled.is_ok_and(|modelled| NanBits::Any.alike(d, modelled, self.experiments.answers[*at]))
        };
        Ok(!wrong.is_empty() && wrong.iter().all(alike))
    }

    /// Returns the arithmetic of a hypothesis, with equal adders merged. Its rules for NaN are marked as assumed if the
    /// bits of NaN were not compared.
    pub(super) fn arithmetic(&self, hypothesis: &Hypothesis) -> Arithmetic {
        let id = self.subject().id();
        let hypothesis = &hypothesis.merged();
        let mut adders = hypothesis.adders.to_vec();
        if self.effort.nan == NanBits::Any {
            // Nothing is known about the bits of NaN.
            let assumed = Origin { basis: Basis::Assumed, source: document::SOURCE.into() };
            for adder in adders.iter_mut().filter(|adder| matches!(adder.output, Output::Float { .. })) {
                adder.provenance.exceptions.insert("nan".into(), assumed.clone());
            }
        }
        let tree = hypothesis.skeleton.text(id.shape.sizes().2);
        Arithmetic { operation: id.clone(), tree, adders, flush: hypothesis.flush }
    }
}

/// Draws the dots of one attack with drawn dots, either of every form or mostly of extremes (see [`LATER`]); `most` is
/// [`Effort::attack`](super::outcome::Effort). Of every form: some 18 % are of every class, as many have few terms at every
/// distance, and up to 44 % have forms that drawn dots rarely hold (see [`directed`](super::directed)); the remainder holds
/// zeros, subnormals and the largest values in each group of products that the candidate adds first. Integer operations get
/// dots of every class, and others with terms near the limits of intermediate sums.
fn drawn_dots(subject: &Subject<'_>, most: usize, hypothesis: &Hypothesis, every_form: bool, seed: u64) -> Vec<Dot> {
    let id = subject.id();
    let all = experiments::fewer(most, subject.k());
    if id.is_integer() {
        return [near_limits(subject, seed, all / 4), draw(id, seed, all - all / 4)].concat();
    }
    let per_cent = if every_form { [FIRST, 100, 100, 100] } else { [LATER, OF_CLASSES, OF_FEW_TERMS, OF_OTHERS] };
    let [count, of_classes, of_few_terms, of_others] = per_cent.map(|per_cent| all * per_cent / 100);
    let (groups, nodes) = (groups(hypothesis), hypothesis.skeleton.nodes());
    let ends = [alone(subject, seed), far_apart(subject, &groups, seed)].concat();
    let mut dots = thinned(ends, of_others / 12, seed);
    dots.extend(thinned(scaled(subject, seed), of_others / 24, seed));
    dots.extend(cancelling(subject, &groups, seed, of_others / 12));
    dots.extend(halves(subject, &nodes, seed, of_others / 12));
    dots.extend(carrying(subject, &nodes, seed, of_others / 24));
    dots.extend(specials(subject, &groups, seed, of_others / 24));
    dots.extend(whole_range(subject, &groups, seed, of_others / 48));
    dots.extend(draw(id, seed, of_classes / 6));
    dots.extend(Sparse::new(id, seed).take(of_few_terms / 6));
    dots.extend(Edges::new(id, seed).with_groups(groups).take(count - dots.len()));
    dots
}

#[cfg(test)]
mod tests {
    use mxprobe_api::{Device, OperationId};
    use mxprobe_models::{Adder, Flush, NanRules};
    use mxprobe_sim::ModelDevice;

    use super::*;
    use crate::identify::{candidates::hypothesis::float, tree::guessed::Guessed};

    #[test]
    fn a_later_attack_is_mostly_of_extremes_and_has_fewer_dots_of_every_other_form() {
        let model = mxprobe_models::shipped().iter().find(|model| model.name == "h100").unwrap();
        let device = ModelDevice::new(model.clone());
        let id: OperationId = "mma.m16n8k16.f32.f16.f16.f32".parse().unwrap();
        let subject = Subject::new(&device, &device.operations()[&id]);
        let skeleton = Guessed::new(&id).skeletons().next().unwrap();
        let output = float(id.d, id.d.fraction_bits(), mxprobe_api::Rounding::NearestEven);
        let adders = vec![Adder::exact("sum", output, NanRules::default())];
        let hypothesis = Hypothesis { skeleton, adders: adders.into(), flush: Flush::default() };
        let drawn = |every_form: bool| drawn_dots(&subject, 10_000, &hypothesis, every_form, 1);
        let (first, later) = (drawn(true), drawn(false));
        assert_eq!((first.len(), later.len()), (9_000, 4_400));
        let count_of = |form: &[Dot], dots: &[Dot]| {
            let form: HashSet<&Dot> = form.iter().collect();
            dots.iter().filter(|dot| form.contains(dot)).count()
        };
        let extremes: Vec<Dot> = Edges::new(&id, 1).with_groups(groups(&hypothesis)).take(9_000).collect();
        let (of_first, of_later) = (count_of(&extremes, &first), count_of(&extremes, &later));
        assert!(of_first >= 1_700 && 2 * of_later > later.len(), "{of_first} {of_later}");
        for (form, wanted) in [
            (draw(&id, 1, 9_000), (1_666, 1_250)),
            (Sparse::new(&id, 1).take(9_000).collect(), (1_666, 416)),
            (specials(&subject, &groups(&hypothesis), 1, 416), (300, 30)),
        ] {
            let (of_first, of_later) = (count_of(&form, &first), count_of(&form, &later));
            assert!(
                of_first >= wanted.0 && (wanted.1..of_first).contains(&of_later),
                "{of_first} {of_later} {wanted:?}"
            );
        }
    }
}
