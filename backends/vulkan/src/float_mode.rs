//! The modes of `SPV_KHR_float_controls` that a driver supports.

use std::collections::BTreeMap;

use ash::vk;
use mxprobe_shaders::spirv::FloatMode;

/// The key of the device property that lists the widths at which the driver supports a mode.
fn property(mode: FloatMode) -> &'static str {
    match mode {
        FloatMode::DenormPreserve => "denorm_preserve_bits",
        FloatMode::DenormFlush => "denorm_flush_to_zero_bits",
        FloatMode::RoundToNearestEven => "rounding_mode_rte_bits",
        FloatMode::RoundTowardZero => "rounding_mode_rtz_bits",
        FloatMode::SignedZeroInfNanPreserve => "signed_zero_inf_nan_preserve_bits",
    }
}

/// Whether a driver supports a mode at 16, 32 and 64 bits.
fn supported(mode: FloatMode, controls: &Controls) -> [bool; 3] {
    match mode {
        FloatMode::DenormPreserve => [
            controls.shader_denorm_preserve_float16,
            controls.shader_denorm_preserve_float32,
            controls.shader_denorm_preserve_float64,
        ],
        FloatMode::DenormFlush => [
            controls.shader_denorm_flush_to_zero_float16,
            controls.shader_denorm_flush_to_zero_float32,
            controls.shader_denorm_flush_to_zero_float64,
        ],
        FloatMode::RoundToNearestEven => [
            controls.shader_rounding_mode_rte_float16,
            controls.shader_rounding_mode_rte_float32,
            controls.shader_rounding_mode_rte_float64,
        ],
        FloatMode::RoundTowardZero => [
            controls.shader_rounding_mode_rtz_float16,
            controls.shader_rounding_mode_rtz_float32,
            controls.shader_rounding_mode_rtz_float64,
        ],
        FloatMode::SignedZeroInfNanPreserve => [
            controls.shader_signed_zero_inf_nan_preserve_float16,
            controls.shader_signed_zero_inf_nan_preserve_float32,
            controls.shader_signed_zero_inf_nan_preserve_float64,
        ],
    }
    .map(|there| there == vk::TRUE)
}

/// Returns the widths in bits at which to request a mode, among those `wanted` of 16, 32 and 64; empty if it is not
/// possible.
///
/// If 16 and 64 have to agree, both are requested or neither is (*specified*:
/// `VUID-RuntimeSpirv-denormBehaviorIndependence-06289` and `-06290`,
/// `VUID-RuntimeSpirv-roundingModeIndependence-06291` and `-06292`).
pub(crate) fn widths(mode: FloatMode, wanted: [bool; 3], controls: &Controls) -> Vec<u32> {
    type Independence = vk::ShaderFloatControlsIndependence;
    let independence = match mode {
        FloatMode::DenormPreserve | FloatMode::DenormFlush => controls.denorm_behavior_independence,
        FloatMode::RoundToNearestEven | FloatMode::RoundTowardZero => controls.rounding_mode_independence,
        FloatMode::SignedZeroInfNanPreserve => Independence::ALL,
    };
    let [has16, has32, has64] = supported(mode, controls);
    let [use16, use32, use64] = match independence {
        Independence::ALL => [has16 && wanted[0], has32 && wanted[1], has64 && wanted[2]],
        Independence::TYPE_32_ONLY => [has16 && has64, has32 && wanted[1], has16 && has64],
        _ => [has16 && has32 && has64; 3],
    };
    let used = [(16, use16), (32, use32), (64, use64)].into_iter();
    used.filter_map(|(width, used)| used.then_some(width)).collect()
}

/// A driver's float controls.
pub(crate) type Controls = vk::PhysicalDeviceFloatControlsProperties<'static>;

/// Formats float controls as device properties, to compare findings with.
pub(crate) fn properties(controls: &Controls) -> BTreeMap<String, String> {
    let listed = |mode: FloatMode| {
        let there = ["16", "32", "64"].into_iter().zip(supported(mode, controls));
        let widths: Vec<&str> = there.filter_map(|(width, there)| there.then_some(width)).collect();
        if widths.is_empty() { "none".to_owned() } else { widths.join(" ") }
    };
    let modes = FloatMode::ALL.map(|mode| (property(mode).to_owned(), listed(mode)));
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
            let found = widths(FloatMode::RoundToNearestEven, [true, true, false], &controls);
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
