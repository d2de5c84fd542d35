//! Whether the recipe of one shape explains another: if it no longer does, the library has switched to other code.

use mxprobe_api::{Device, Error, Operation};

use super::{
    check::check,
    product::Product,
    regions::regions,
    run::{Found, GemmEffort},
};

/// Whether a recipe reproduces the bits of a product's largest part on random elements. Also `false` if the same
/// product returns other bits when it is asked again.
///
/// # Errors
/// Any error that the device reports.
pub fn explains(
    device: &dyn Device,
    operation: &Operation,
    recipe: &Found,
    effort: GemmEffort,
    progress: &dyn Fn(&str),
) -> Result<bool, Error> {
    let mut product = Product::new(device, operation);
    let (alike, again) = regions(&product, effort.seed)?;
    let Some(region) = alike.regions.first().filter(|_| alike.is_same(&again)) else { return Ok(false) };
    product.places = region.places.clone();
    let size = (effort.elements, effort.seed);
    Ok(check(&product, &recipe.candidate, (&alike, region), size, progress)?.mismatches == 0)
}
