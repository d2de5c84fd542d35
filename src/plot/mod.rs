//! Plots as SVG, in light and dark: [`Bars`], [`Strips`] of bits and summation [`Trees`] as parts of a page, and a
//! [`Chart`] of curves as part of a page or a file.
//!
//! The plots are data; one module draws scales, ticks and texts for all of them. Texts may come from anywhere, so they
//! are escaped, and control characters are written out.

mod bars;
mod chart;
mod scale;
mod strips;
mod sum;
mod svg;
mod trees;

pub use bars::{Bar, Bars, Length};
pub use chart::{Chart, Curve, Panel};
pub use scale::Scale;
pub use strips::{Ends, Kept, Strip, Strips};
pub use sum::Sum;
pub use trees::{Tree, Trees};

/// The colours of everything shown in a browser, as CSS variables, for light and dark.
pub const PALETTE: &str = include_str!("palette.css");

/// The style of plots, in terms of [`PALETTE`].
pub const STYLE: &str = include_str!("plot.css");
