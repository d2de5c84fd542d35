//! The formats and modes of a device's scalar arithmetic.

use std::collections::BTreeMap;

use mxprobe_api::{Format, Scalar, ScalarFunction, ScalarId};
use mxprobe_shaders::spirv::scalar::{COMPONENTS, instructions};
use mxprobe_shaders::spirv::{Asked, Component, FloatMode};

use crate::features::Features;
use crate::float_mode::{Controls, widths};

/// The scalar arithmetic of a device, each member with the mode that its kernels request.
pub(crate) fn scalars(features: &Features, controls: &Controls) -> Vec<(Scalar, Option<Asked>)> {
    let there: Vec<Component> =
        COMPONENTS.into_iter().filter(|component| features.missing_for(*component).is_none()).collect();
    let mut all = Vec::new();
    let formats: Vec<Format> = there.iter().map(|component| component.format()).collect();
    for component in &there {
        let functions = ScalarFunction::of_shaders(component.format(), &formats);
        let functions: BTreeMap<_, _> =
            functions.map(|function| (function, Some(instructions(function).to_owned()))).collect();
        let mut offer = |id: ScalarId, mode| all.push((Scalar { id, functions: functions.clone() }, mode));
        let id = ScalarId::new(component.format());
        offer(id.clone(), None);
        for mode in FloatMode::ALL {
            // Every width that is possible, whatever the format: a conversion has two.
            let widths = widths(mode, [true; 3], controls);
            if widths.contains(&component.format().bits()) {
                offer(mode.words().iter().fold(id.clone(), |id, word| id.with(word)), Some((mode, widths)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_features() -> Features {
        Features { float16: true, float64: true, storage16: true, ..Features::default() }
    }

    #[test]
    fn formats_are_those_of_the_features_and_modes_those_of_the_float_controls() {
        let controls = Controls {
            denorm_behavior_independence: ash::vk::ShaderFloatControlsIndependence::ALL,
            rounding_mode_independence: ash::vk::ShaderFloatControlsIndependence::ALL,
            shader_denorm_flush_to_zero_float32: 1,
            shader_rounding_mode_rtz_float16: 1,
            shader_rounding_mode_rtz_float32: 1,
            ..Default::default()
        };
        let ids = |features: &Features| -> Vec<String> {
            scalars(features, &controls).iter().map(|(scalar, _)| scalar.id.to_string()).collect()
        };
        assert_eq!(ids(&Features::default()), ["scalar.f32", "scalar.f32.ftz.daz", "scalar.f32.rz"]);
        let all = ["scalar.f16", "scalar.f16.rz", "scalar.f32", "scalar.f32.ftz.daz", "scalar.f32.rz", "scalar.f64"];
        assert_eq!(ids(&all_features()), all);
    }

    #[test]
    fn a_conversion_is_offered_where_both_formats_are() {
        let of = |features: &Features| {
            let found = scalars(features, &Controls::default());
            let count = |function: &&ScalarFunction| matches!(function, ScalarFunction::Convert { .. });
            found.iter().map(|(scalar, _)| scalar.functions.keys().filter(count).count()).collect::<Vec<_>>()
        };
        assert_eq!(of(&Features::default()), [0]);
        assert_eq!(of(&all_features()), [2, 2, 2]);
    }
}
