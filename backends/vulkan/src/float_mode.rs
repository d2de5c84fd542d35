//! The modes of `SPV_KHR_float_controls`, and which of them a driver has.

use std::collections::BTreeMap;

use ash::vk;

/// An execution mode of `SPV_KHR_float_controls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FloatMode {
    DenormPreserve,
    DenormFlush,
    RoundToNearestEven,
    RoundTowardZero,
    SignedZeroInfNanPreserve,
}

impl FloatMode {
    /// Those that a matrix operation is offered in.
    pub(crate) const OF_MATRICES: [Self; 4] =
        [Self::DenormPreserve, Self::DenormFlush, Self::RoundToNearestEven, Self::RoundTowardZero];

    pub(crate) const ALL: [Self; 5] = [
        Self::DenormPreserve,
        Self::DenormFlush,
        Self::RoundToNearestEven,
        Self::RoundTowardZero,
        Self::SignedZeroInfNanPreserve,
    ];

    /// The qualifier in an operation's id.
    pub(crate) fn qualifier(self) -> &'static str {
        match self {
            Self::DenormPreserve => "denormpreserve",
            Self::DenormFlush => "denormflush",
            Self::RoundToNearestEven => "rte",
            Self::RoundTowardZero => "rtz",
            Self::SignedZeroInfNanPreserve => "szinfnan",
        }
    }

    /// The words in the id of scalar arithmetic.
    ///
    /// `DenormFlushToZero` is of every value that goes into a shader or is made by an instruction (*specified*:
    /// `SPV_KHR_float_controls`), so of operands and results.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::DenormPreserve => &["preserve"],
            Self::DenormFlush => &["ftz", "daz"],
            Self::RoundToNearestEven => &["rne"],
            Self::RoundTowardZero => &["rz"],
            Self::SignedZeroInfNanPreserve => &["szinfnan"],
        }
    }

    /// The key among a device's properties of the widths that the driver has it for.
    fn property(self) -> &'static str {
        match self {
            Self::DenormPreserve => "denorm_preserve_bits",
            Self::DenormFlush => "denorm_flush_to_zero_bits",
            Self::RoundToNearestEven => "rounding_mode_rte_bits",
            Self::RoundTowardZero => "rounding_mode_rtz_bits",
            Self::SignedZeroInfNanPreserve => "signed_zero_inf_nan_preserve_bits",
        }
    }

    /// The SPIR-V execution mode; the capability that it needs is 5 above it.
    pub(crate) fn execution_mode(self) -> u32 {
        match self {
            Self::DenormPreserve => 4459,
            Self::DenormFlush => 4460,
            Self::SignedZeroInfNanPreserve => 4461,
            Self::RoundToNearestEven => 4462,
            Self::RoundTowardZero => 4463,
        }
    }

    /// The SPIR-V capability.
    pub(crate) fn capability(self) -> u32 {
        self.execution_mode() + 5
    }

    /// Whether a driver has it at 16, 32 and 64 bits.
    fn supported(self, controls: &Controls) -> [bool; 3] {
        match self {
            Self::DenormPreserve => [
                controls.shader_denorm_preserve_float16,
                controls.shader_denorm_preserve_float32,
                controls.shader_denorm_preserve_float64,
            ],
            Self::DenormFlush => [
                controls.shader_denorm_flush_to_zero_float16,
                controls.shader_denorm_flush_to_zero_float32,
                controls.shader_denorm_flush_to_zero_float64,
            ],
            Self::RoundToNearestEven => [
                controls.shader_rounding_mode_rte_float16,
                controls.shader_rounding_mode_rte_float32,
                controls.shader_rounding_mode_rte_float64,
            ],
            Self::RoundTowardZero => [
                controls.shader_rounding_mode_rtz_float16,
                controls.shader_rounding_mode_rtz_float32,
                controls.shader_rounding_mode_rtz_float64,
            ],
            Self::SignedZeroInfNanPreserve => [
                controls.shader_signed_zero_inf_nan_preserve_float16,
                controls.shader_signed_zero_inf_nan_preserve_float32,
                controls.shader_signed_zero_inf_nan_preserve_float64,
            ],
        }
        .map(|there| there == vk::TRUE)
    }

    /// The widths in bits at which it is asked for, of those `wanted` of 16, 32 and 64; none where it cannot be.
    ///
    /// 16 and 64 are asked for both or not at all where they have to agree (*specified*:
    /// `VUID-RuntimeSpirv-denormBehaviorIndependence-06289` and `-06290`,
    /// `VUID-RuntimeSpirv-roundingModeIndependence-06291` and `-06292`).
    pub(crate) fn widths(self, wanted: [bool; 3], controls: &Controls) -> Vec<u32> {
        type Independence = vk::ShaderFloatControlsIndependence;
        let independence = match self {
            Self::DenormPreserve | Self::DenormFlush => controls.denorm_behavior_independence,
            Self::RoundToNearestEven | Self::RoundTowardZero => controls.rounding_mode_independence,
            Self::SignedZeroInfNanPreserve => Independence::ALL,
        };
        let [has16, has32, has64] = self.supported(controls);
        let [use16, use32, use64] = match independence {
            Independence::ALL => [has16 && wanted[0], has32 && wanted[1], has64 && wanted[2]],
            Independence::TYPE_32_ONLY => [has16 && has64, has32 && wanted[1], has16 && has64],
            _ => [has16 && has32 && has64; 3],
        };
        let used = [(16, use16), (32, use32), (64, use64)].into_iter();
        used.filter_map(|(width, used)| used.then_some(width)).collect()
    }
}

/// A mode, and the widths in bits that a kernel asks for it at.
pub(crate) type Asked = (FloatMode, Vec<u32>);

/// What a driver says of its float controls.
pub(crate) type Controls = vk::PhysicalDeviceFloatControlsProperties<'static>;

/// The same as properties of a device, to set findings against.
pub(crate) fn properties(controls: &Controls) -> BTreeMap<String, String> {
    let widths = |mode: FloatMode| {
        let there = ["16", "32", "64"].into_iter().zip(mode.supported(controls));
        let widths: Vec<&str> = there.filter_map(|(width, there)| there.then_some(width)).collect();
        if widths.is_empty() { "none".to_owned() } else { widths.join(" ") }
    };
    let modes = FloatMode::ALL.map(|mode| (mode.property().to_owned(), widths(mode)));
    let independence = [
        ("denorm_behavior_independence", controls.denorm_behavior_independence),
        ("rounding_mode_independence", controls.rounding_mode_independence),
    ];
    let independence = independence.map(|(key, value)| (key.to_owned(), format!("{value:?}")));
    modes.into_iter().chain(independence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_of_16_and_64_bits_are_asked_for_together_where_they_have_to_agree() {
        type Independence = vk::ShaderFloatControlsIndependence;
        for (independence, there, expected) in [
            (Independence::ALL, [1, 1, 1], vec![16, 32]),
            (Independence::ALL, [0, 1, 1], vec![32]),
            (Independence::ALL, [0, 0, 1], vec![]),
            (Independence::TYPE_32_ONLY, [1, 1, 1], vec![16, 32, 64]),
            (Independence::TYPE_32_ONLY, [1, 1, 0], vec![32]),
            (Independence::TYPE_32_ONLY, [1, 0, 0], vec![]),
            (Independence::NONE, [1, 1, 1], vec![16, 32, 64]),
            (Independence::NONE, [1, 1, 0], vec![]),
        ] {
            let controls = Controls {
                rounding_mode_independence: independence,
                shader_rounding_mode_rte_float16: there[0],
                shader_rounding_mode_rte_float32: there[1],
                shader_rounding_mode_rte_float64: there[2],
                ..Default::default()
            };
            let found = FloatMode::RoundToNearestEven.widths([true, true, false], &controls);
            assert_eq!(found, expected, "{independence:?} {there:?}");
        }
    }

    #[test]
    fn properties_name_the_widths_of_each_mode() {
        let controls = Controls {
            shader_rounding_mode_rte_float16: vk::TRUE,
            shader_rounding_mode_rte_float64: vk::TRUE,
            ..Default::default()
        };
        let found = properties(&controls);
        assert_eq!(found["rounding_mode_rte_bits"], "16 64");
        assert_eq!(found["denorm_preserve_bits"], "none");
        assert_eq!(found.len(), 7);
    }
}
