//! Scales: the position of a value on an axis, and the values that are labelled there.

/// The range of an axis, and how values are spread over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Linear, from zero.
    FromZero {
        /// The largest value, above zero.
        to: f64,
    },
    /// Logarithmic, in powers of ten.
    Decades {
        /// The exponent at the beginning.
        from: i32,
        /// The exponent at the end, larger.
        to: i32,
    },
    /// Logarithmic, in powers of two.
    Octaves {
        /// The exponent at the beginning.
        from: i32,
        /// The exponent at the end.
        to: i32,
    },
}

/// A labelled value on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Its position, from 0 to 1.
    pub(super) at: f64,
    pub(super) label: String,
}

/// The most steps between the labelled values of an axis.
const STEPS: i32 = 6;

impl Scale {
    /// The position of a value: 0 at the beginning of the axis, 1 at its end; `None` if the value has no logarithm.
    #[must_use]
    pub fn at(self, value: f64) -> Option<f64> {
        let at = match self {
            Self::FromZero { to } => value / to,
            Self::Decades { from, to } => spread(value.log10(), from, to),
            Self::Octaves { from, to } => spread(value.log2(), from, to),
        };
        at.is_finite().then_some(at)
    }

    /// The labelled values: round numbers, or every power, every second power, …
    pub(super) fn ticks(self) -> Vec<Tick> {
        match self {
            Self::FromZero { to } => {
                let step = round_step(to);
                let shown = |digits: &u8| step * 10f64.powi((*digits).into()) > 1.0 - 1e-9;
                let digits: usize = (0..12).find(shown).unwrap_or(0).into();
                let values = (0..).map(|count| f64::from(count) * step).take_while(|value| *value <= to * (1.0 + 1e-9));
                values.map(|value| Tick { at: value / to, label: format!("{value:.digits$}") }).collect()
            }
            Self::Decades { from, to } => powers(from, to, "10"),
            Self::Octaves { from, to } => powers(from, to, "2"),
        }
    }
}

fn spread(exponent: f64, from: i32, to: i32) -> f64 {
    (exponent - f64::from(from)) / f64::from((to - from).max(1))
}

fn powers(from: i32, to: i32, base: &str) -> Vec<Tick> {
    let step = ((to - from) / STEPS + i32::from((to - from) % STEPS != 0)).max(1);
    let exponents = (from..=to).step_by(usize::try_from(step).unwrap_or(1));
    exponents
        .map(|exponent| Tick { at: spread(f64::from(exponent), from, to), label: format!("{base}^{exponent}") })
        .collect()
}

/// The smallest step that is 1, 2 or 5 times a power of ten and divides `to` into at most [`STEPS`] steps.
fn round_step(to: f64) -> f64 {
    let least = to / f64::from(STEPS);
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= least * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale) -> String {
        let ticks = scale.ticks();
        assert!(ticks.iter().all(|tick| (0.0..=1.000_001).contains(&tick.at)), "{ticks:?}");
        ticks.into_iter().map(|tick| tick.label).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn round_values_are_named_and_never_many() {
        for (scale, named) in [
            (Scale::FromZero { to: 23.0 }, "0 5 10 15 20"),
            (Scale::FromZero { to: 53.0 }, "0 10 20 30 40 50"),
            (Scale::FromZero { to: 1.0 }, "0.0 0.2 0.4 0.6 0.8 1.0"),
            (Scale::FromZero { to: 2.019 }, "0.0 0.5 1.0 1.5 2.0"),
            (Scale::FromZero { to: 0.07 }, "0.00 0.02 0.04 0.06"),
            (Scale::FromZero { to: 10_000.0 }, "0 2000 4000 6000 8000 10000"),
            (Scale::Decades { from: -8, to: -3 }, "10^-8 10^-7 10^-6 10^-5 10^-4 10^-3"),
            (Scale::Decades { from: -17, to: -3 }, "10^-17 10^-14 10^-11 10^-8 10^-5"),
            (Scale::Octaves { from: 5, to: 9 }, "2^5 2^6 2^7 2^8 2^9"),
            (Scale::Octaves { from: 12, to: 12 }, "2^12"),
        ] {
            assert_eq!(labels(scale), named, "{scale:?}");
        }
    }

    #[test]
    fn values_stand_where_their_ticks_do() {
        let scale = Scale::Decades { from: -4, to: 0 };
        assert!((scale.at(0.01).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(scale.at(0.0), None);
        assert_eq!(scale.at(f64::NAN), None);
        assert_eq!(Scale::FromZero { to: 8.0 }.at(2.0), Some(0.25));
    }
}
