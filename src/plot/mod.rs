//! Plots as SVG, in light and dark: [`Bars`] as a part of a page, a [`Chart`] of curves as a file.
//!
//! What is drawn is data; one module draws scales, ticks, legends and texts for both. Texts may come from anywhere: they are
//! escaped, and characters that would act are written out.

mod bars;
mod chart;
mod scale;
mod svg;

pub use bars::{Bar, Bars, Length};
pub use chart::{Chart, Curve, Panel};
pub use scale::Scale;

/// The colours of everything that is shown in a browser, as CSS variables, for light and dark.
pub const PALETTE: &str = include_str!("palette.css");

/// How plots look, in terms of [`PALETTE`].
pub const STYLE: &str = include_str!("plot.css");
