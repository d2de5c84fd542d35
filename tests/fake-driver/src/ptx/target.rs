//! `.target`: the devices that load it, and the instructions it allows.

/// A target such as `sm_90a`: the number, and the suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub number: u32,
    pub reach: Reach,
}

/// The devices on which a target's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// On every later device too.
    Onward,
    /// On the devices of one family: `f`.
    Family,
    /// On that device only: `a`.
    Exact,
}

impl Target {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("sm_")?;
        let (digits, reach) = match (rest.strip_suffix('a'), rest.strip_suffix('f')) {
            (Some(digits), _) => (digits, Reach::Exact),
            (_, Some(digits)) => (digits, Reach::Family),
            _ => (rest, Reach::Onward),
        };
        let number = digits.parse().ok().filter(|number| (30..1000).contains(number))?;
        Some(Self { number, reach })
    }

    /// Whether it allows instructions that need `sm_NUMBERa` or its family.
    pub(crate) fn has_features_of(self, number: u32) -> bool {
        match self.reach {
            Reach::Onward => false,
            Reach::Exact | Reach::Family => self.number == number,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.reach {
            Reach::Onward => "",
            Reach::Family => "f",
            Reach::Exact => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

/// Whether a device loads PTX of a target. PTX ISA 8.8, 11.1.2 (`.target`): plain targets load on the same or a later
/// capability, `a` on the same only, `f` on the same or a later one of the same major version.
pub(crate) fn loads_on(target: Target, capability: u32) -> bool {
    match target.reach {
        Reach::Onward => target.number <= capability,
        Reach::Exact => target.number == capability,
        Reach::Family => target.number <= capability && target.number / 10 == capability / 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_loads_where_the_driver_would_load_it() {
        let loads = |target: &str, capability| loads_on(Target::parse(target).unwrap(), capability);
        assert!(loads("sm_80", 80) && loads("sm_80", 120) && !loads("sm_80", 75));
        assert!(loads("sm_90a", 90) && !loads("sm_90a", 100) && !loads("sm_120a", 121));
        assert!(loads("sm_120f", 120) && loads("sm_120f", 121) && !loads("sm_120f", 130));
        assert!(loads("sm_100f", 103) && loads("sm_100f", 107) && !loads("sm_100f", 110) && !loads("sm_103f", 100));
        assert_eq!(Target::parse("compute_80"), None);
        assert_eq!(Target::parse("sm_"), None);
    }
}
