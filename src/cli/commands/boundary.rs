//! The smallest shape at which a recipe changes, between two shapes that differ in one dimension.

use crate::identify::{Found, GemmEffort, explains};
use mxprobe_api::{Device, Operation, OperationId, Shape};
use serde::Serialize;

use crate::cli::{
    commands::shapes::{Open, of_shape},
    failure::Failure,
};

/// The point where the recipe of one shape ceases to explain the product, on the way to another shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Boundary {
    /// The two shapes, the smaller one first.
    from: String,
    to: String,
    /// The largest shape found that the recipe of `from` explains.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    /// The next shape, which it does not explain; absent if it explains `to`.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    /// Whether the recipe of `to` explains `first`: if not, the recipe changes more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    explained_by_to: Option<bool>,
    /// Why a shape between them could not be asked, if one could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// A shape's three sizes.
fn sizes(shape: Shape) -> [u32; 3] {
    [shape.m, shape.n, shape.k]
}

/// Formats a shape.
pub(super) fn text(shape: Shape) -> String {
    format!("{}x{}x{}", shape.m, shape.n, shape.k)
}

/// Returns the one dimension in which two shapes differ, if it is only one.
fn dimension(one: Shape, other: Shape) -> Option<usize> {
    let differ = |at: &usize| sizes(one)[*at] != sizes(other)[*at];
    let mut dimensions = (0..3).filter(differ);
    dimensions.next().filter(|_| dimensions.next().is_none())
}

/// A question about a sequence of shapes.
pub(super) struct Bisection<'a> {
    pub(super) open: &'a Open<'a>,
    pub(super) id: &'a OperationId,
    pub(super) effort: GemmEffort,
}

impl Bisection<'_> {
    /// Bisects between two shapes, each with its recipe, assuming that the shapes a recipe explains have no gaps.
    /// `None` if they differ in more than one dimension; the inner `None` if interrupted.
    pub(super) fn between(
        &self,
        one: (Shape, &Found),
        other: (Shape, &Found),
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Option<Boundary>>, Failure> {
        let Some(dimension) = dimension(one.0, other.0) else { return Ok(None) };
        let is_ascending = sizes(one.0)[dimension] < sizes(other.0)[dimension];
        let ((low, of_low), (high, of_high)) = if is_ascending { (one, other) } else { (other, one) };
        let at = |size: u32| {
            let mut shape = low;
            *[&mut shape.m, &mut shape.n, &mut shape.k][dimension] = size;
            shape
        };
        let mut found =
            Boundary { from: text(low), to: text(high), last: None, first: None, explained_by_to: None, failed: None };
        let mut ask = |recipe: &Found, shape: Shape| -> Result<Option<Result<bool, String>>, Failure> {
            progress(&format!("checking whether the recipe of another shape explains {}", text(shape)));
            let (recipe, effort) = (recipe.clone(), self.effort);
            let ask = move |device: &dyn Device, operation: &Operation, progress: &dyn Fn(&str)| {
                explains(device, operation, &recipe, effort, progress)
            };
            self.open.ask(&of_shape(self.id, shape), ask, progress)
        };
        let (mut explained, mut unexplained) = (sizes(low)[dimension], sizes(high)[dimension]);
        // The far end is asked first: a recipe with slices of k becomes another one before the second slice begins.
        let mut next = unexplained;
        loop {
            match ask(of_low, at(next))? {
                None => return Ok(Some(None)),
                Some(Err(reason)) => {
                    found.failed = Some(format!("{}: {reason}", text(at(next))));
                    return Ok(Some(Some(found)));
                }
                Some(Ok(true)) => explained = next,
                Some(Ok(false)) => unexplained = next,
            }
            if unexplained <= explained + 1 || explained == sizes(high)[dimension] {
                break;
            }
            next = explained + (unexplained - explained) / 2;
        }
        found.last = Some(text(at(explained)));
        if explained < sizes(high)[dimension] {
            found.first = Some(text(at(unexplained)));
            found.explained_by_to = match ask(of_high, at(unexplained))? {
                None => return Ok(Some(None)),
                Some(answer) => answer.ok(),
            };
        }
        Ok(Some(Some(found)))
    }
}

impl Boundary {
    /// Describes the boundary in one sentence.
    pub(super) fn words(&self) -> String {
        let Self { from, to, last, first, explained_by_to, failed } = self;
        if let Some(reason) = failed {
            return format!("no boundary between {from} and {to}: {reason}");
        }
        let (Some(last), Some(first)) = (last, first) else {
            return format!("the recipe of {from} explains {to} as well");
        };
        let more = match explained_by_to {
            Some(true) => format!("that of {to} does"),
            Some(false) => format!("nor does that of {to}"),
            None => format!("that of {to} could not be compared"),
        };
        format!("between {from} and {to}: {last} has the recipe of {from}; {first} does not, {more}")
    }
}
