//! The trees that a search begins with, and dots about their additions.

use mxprobe_api::Error;

use super::{
    candidates::scored::{self, Scored},
    run::Search,
    tree::{
        expression::Expression,
        focus,
        live::{self, Counts},
        skeleton::{guesses, readings},
        symmetric,
    },
};
use crate::{
    dots::{Random, seed_of},
    probes::{Leaf, Number, Summation, Tree, summation, summation_above_floors},
};

/// Dots of c alone, and the fewest of them that must show that c is changed by itself.
const OF_C: usize = 120;
const CHANGED: usize = 8;

impl Search<'_, '_> {
    /// Searches the order of summation, if it is not `known`. Returns the tree found, or trees to try if it does not show.
    ///
    /// # Errors
    /// Returns the error of the device if it fails.
    pub(super) fn trees(&mut self, known: Option<Summation>) -> Result<Vec<Tree>, Error> {
        let subject = self.experiments.subject;
        let k = subject.k();
        if subject.id().is_integer() {
            return Ok(guesses(k, &[(0..k).collect()]));
        }
        let order = match known {
            Some(order) => order,
            None => {
                (self.progress)("searching for the order of summation");
                summation(subject)?
            }
        };
        self.order = Some(order.statement);
        Ok(match order.tree {
            Some(tree) => vec![tree],
            None => guesses(k, &order.blocks),
        })
    }

    /// Searches the order again with values that count next to a floor below which values are lost. Returns the trees
    /// that are not among the `known` ones.
    ///
    /// # Errors
    /// Returns the error of the device if it fails.
    pub(super) fn shapes_above_floors(
        &mut self,
        known: &[Expression],
        counts: &Counts,
    ) -> Result<Vec<Expression>, Error> {
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let Some(tree) = summation_above_floors(self.subject())? else { return Ok(Vec::new()) };
        let known: Vec<Expression> = known.iter().map(Expression::untied).collect();
        let mut found = self.shapes(&[tree], counts)?;
        found.retain(|shape| !known.contains(&shape.untied()));
        Ok(found)
    }

    /// Returns the trees that agree with the exchanges of products that change no result, without those that are known. If
    /// one of these is `near`, explaining nearly every dot, only trees like it are returned.
    ///
    /// # Errors
    /// Returns the error of the device if it fails.
    pub(super) fn symmetric_shapes(
        &mut self,
        known: &[Expression],
        above_floors: &[Expression],
        near: bool,
    ) -> Result<Vec<Expression>, Error> {
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let known: Vec<Expression> = known.iter().chain(above_floors).map(Expression::untied).collect();
        let found = symmetric::unknown(symmetric::trees(self.subject(), self.effort.seed)?, &known, near);
        let mut random = Random(seed_of(self.effort.seed, 13));
        if let Some(first) = found.first() {
            let dots = focus::dots(self.subject(), first, &mut random);
            let answers = self.experiments.only_ask(&dots)?;
            self.tested += dots.len();
            self.experiments.keep(dots, answers);
        }
        Ok(found)
    }

    /// Runs dots of c alone and adds the results to the experiments. Returns whether the unit changes c by itself, other than
    /// to zero and although d could hold it, and the candidate that explains the most dots, if there is one, does not.
    ///
    /// # Errors
    /// Returns the error of the device if it fails.
    pub(super) fn changes_c_alone(&mut self, tried: &[Scored]) -> Result<bool, Error> {
        let mut random = Random(seed_of(self.effort.seed, 18));
        let dots = focus::single(self.subject(), &[Leaf::C], OF_C, &mut random);
        let answers = self.experiments.only_ask(&dots)?;
        self.tested += dots.len();
        self.experiments.keep(dots, answers);
        let left = match tried.iter().max_by_key(|scored| scored.explained) {
            Some(best) => scored::unexplained(&mut self.experiments, &best.hypothesis),
            None => (0..self.experiments.dots.len()).collect(),
        };
        let subject = self.subject();
        let changed = |at: &&usize| {
            let (dot, answer) = (&self.experiments.dots[**at], self.experiments.answers[**at]);
            let c = Number::decode(subject.id().c, dot.c).filter(|c| subject.d_bits(*c).is_some());
            let is_alone = dot.a.iter().zip(&dot.b).all(|(a, b)| *a == 0 || *b == 0);
            is_alone && c.is_some_and(|c| subject.d_value(answer).is_some_and(|d| d != c && !d.is_zero()))
        };
        Ok(left.iter().filter(changed).count() >= CHANGED)
    }

    /// Returns the trees whose additions are determined one by one, the likeliest first, with leaves left out or added
    /// twice as `counts` says. Also runs dots about each addition of the first of them and adds the results to the
    /// experiments.
    ///
    /// # Errors
    /// Returns the error of the device if it fails.
    pub(super) fn shapes(&mut self, trees: &[Tree], counts: &Counts) -> Result<Vec<Expression>, Error> {
        let id = self.subject().id().clone();
        if id.is_integer() {
            return Ok(Vec::new());
        }
        let mut shapes: Vec<Expression> = Vec::new();
        for tree in trees {
            let plain = match readings(tree, &id).into_iter().next() {
                Some(skeleton) => skeleton.expression.clone(),
                None => continue,
            };
            let mut found = vec![plain];
            for leaf in counts.never.iter().chain(&counts.twice) {
                found = found.iter().filter_map(|tree| tree.without(*leaf)).collect();
            }
            for leaf in &counts.twice {
                found = found.iter().flat_map(|tree| live::twice(tree, *leaf)).collect();
            }
            found.retain(|tree| !shapes.contains(tree));
            shapes.extend(found);
        }
        let mut random = Random(seed_of(self.effort.seed, 11));
        if let Some(first) = shapes.first() {
            let dots = focus::dots(self.subject(), &first.untied(), &mut random);
            let answers = self.experiments.only_ask(&dots)?;
            self.tested += dots.len();
            self.experiments.keep(dots, answers);
        }
        Ok(shapes)
    }
}
