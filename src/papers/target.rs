//! The unit or device that computes what a paper prints.

use mxprobe_api::{Error, Operation, execute};
use mxprobe_models::Model;

use crate::{
    dots::{Dot, pack},
    session::{Asked, matches},
};

/// The unit that a paper asks about, or a device in its place.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The model of the unit.
    pub unit: Option<&'a str>,
    /// The device to use instead.
    pub device: Option<&'a Asked>,
}

impl Target<'_> {
    /// The device to ask, which may be a model.
    ///
    /// # Errors
    /// If the model does not exist, or neither a unit nor a device is named.
    pub fn asked(&self) -> Result<Asked, Error> {
        if let Some(device) = self.device {
            return Ok(device.clone());
        }
        self.model().map(|model| Asked::of_model(&model))
    }

    /// The model of the unit that the paper asks about.
    ///
    /// # Errors
    /// If no unit is named, or the model does not exist.
    pub fn model(&self) -> Result<Model, Error> {
        let name = self.unit.ok_or_else(|| Error::invalid("no unit is named"))?;
        mxprobe_models::load(name)
    }

    /// The operation that matches a pattern and takes at least `products` products. If another device than the paper's
    /// has none, returns the first operation with the pattern's formats (of D, A, B and C).
    ///
    /// # Errors
    /// `Unsupported` if no operation fits.
    pub fn operation(&self, asked: &Asked, pattern: &str, products: usize) -> Result<Operation, Error> {
        let operations = asked.device.operations();
        let fits = |operation: &&Operation| operation.id.shape.sizes().2 >= products;
        let is_meant = |operation: &&Operation| matches(pattern, &operation.id.to_string());
        let found = operations.values().filter(fits).find(is_meant).or_else(|| {
            // The formats follow the shape: `*m16n8k8.f32.f16.f16.f32`.
            let formats = pattern.split_once('.')?.1;
            let same = |operation: &&Operation| matches(&format!("*.{formats}"), &operation.id.to_string());
            self.device.and_then(|_| operations.values().filter(fits).find(same))
        });
        let many = if products > 0 { format!(" of {products} products") } else { String::new() };
        let none = || Error::unsupported(format!("no operation `{pattern}`{many}"));
        found.cloned().ok_or_else(none)
    }

    /// The results of these dots.
    ///
    /// # Errors
    /// The errors of the device.
    pub fn dots(&self, asked: &Asked, operation: &Operation, dots: &[Dot]) -> Result<Vec<u64>, Error> {
        let (batch, places) = pack(operation, dots);
        let d = execute(asked.device.as_ref(), operation, &batch)?;
        Ok(places.into_iter().map(|place| d.get(place)).collect())
    }
}
