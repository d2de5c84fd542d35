//! The cooperative matrix configurations that a driver lists, and which of them can run.

use std::collections::{BTreeMap, BTreeSet};

use ash::{khr, vk};
use mxprobe_api::{Error, Operation, OperationId, OperationSet, Refusal};
use mxprobe_shaders::spirv::{Component, FloatMode, Kernel};

use crate::component::{component, name_of};
use crate::failure::failure;
use crate::features::Features;
use crate::float_mode::{Controls, widths};
use crate::instance::Instance;

/// The matrix operations of a device.
#[derive(Default)]
pub(crate) struct Matrices {
    pub(crate) operations: OperationSet,
    pub(crate) kernels: BTreeMap<OperationId, Kernel>,
    /// Configurations that cannot run, with the reason.
    pub(crate) refusals: Vec<Refusal>,
    /// The number of configurations that the driver lists.
    pub(crate) listed: usize,
}

/// A device's properties that decide which configurations can run.
pub(crate) struct About<'a> {
    pub(crate) selector: &'a str,
    /// The driver's name and version.
    pub(crate) driver: &'a str,
    pub(crate) driver_id: vk::DriverId,
    pub(crate) features: &'a Features,
    pub(crate) controls: &'a Controls,
    pub(crate) stages: vk::ShaderStageFlags,
    /// The number of invocations of the subgroup that computes a tile.
    pub(crate) subgroup_size: u32,
}

/// Collects every configuration that a driver with `VK_KHR_cooperative_matrix` lists.
///
/// # Errors
/// The reason why none can run, and advice if there is any.
pub(crate) fn matrices(
    instance: &Instance,
    handle: vk::PhysicalDevice,
    about: &About<'_>,
) -> Result<Matrices, (Error, Option<&'static str>)> {
    let &About { selector, driver, features, .. } = about;
    let functions = khr::cooperative_matrix::Instance::new(&instance.entry, &instance.handle);
    // SAFETY: the device was enumerated from this instance; its extension is present, so its function exists.
    let listed = unsafe { functions.get_physical_device_cooperative_matrix_properties(handle) }
        .map_err(|result| (failure("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", result), None))?;
    if !features.cooperative_matrix {
        let help = (about.driver_id == vk::DriverId::MESA_LLVMPIPE).then_some(
            "llvmpipe enables it with vectors of 256 bits: on a CPU with AVX, and with LP_NATIVE_VECTOR_WIDTH unset",
        );
        let reason = format!(
            "{driver} lists VK_KHR_cooperative_matrix and {} configurations, and its feature cooperativeMatrix is false",
            listed.len()
        );
        return Err((Error::unsupported(reason), help));
    }
    if !features.memory_model {
        return Err((
            Error::unsupported(format!(
                "{driver} has VK_KHR_cooperative_matrix without the feature vulkanMemoryModel, which its shaders need"
            )),
            None,
        ));
    }
    if !about.stages.contains(vk::ShaderStageFlags::COMPUTE) {
        let stages = about.stages;
        let reason = format!("{driver} has VK_KHR_cooperative_matrix in stages {stages:?}, without COMPUTE");
        return Err((Error::unsupported(reason), None));
    }
    let mut found = Matrices { listed: listed.len(), ..Matrices::default() };
    let mut insert = |id: OperationId, kernel: Kernel| {
        found.operations.insert(id.clone(), Operation::new(id.clone(), "subgroup"));
        found.kernels.insert(id, kernel);
    };
    for (at, configuration) in listed.iter().enumerate() {
        let (id, kernel) = match usable(configuration, features, about.subgroup_size) {
            Ok(usable) => usable,
            Err((what, reason)) => {
                let what = what.unwrap_or_else(|| format!("cooperative matrix configuration {at}"));
                found.refusals.push(Refusal { what: format!("{selector} {what}"), reason, help: None });
                continue;
            }
        };
        for mode in FloatMode::OF_MATRICES {
            let widths = mode_widths(mode, kernel.components, about.controls);
            if !widths.is_empty() {
                insert(id.clone().with(mode.qualifier()), Kernel { mode: Some((mode, widths)), ..kernel.clone() });
            }
        }
        insert(id, kernel);
    }
    Ok(found)
}

/// Returns the widths at which to request a mode for a configuration; empty if it is not possible. 16 and 32 bits are
/// both requested, whatever the operands, because the accumulation may be wider than they are; 64 only if an operand
/// has 64.
fn mode_widths(mode: FloatMode, components: [Component; 4], controls: &Controls) -> Vec<u32> {
    if components[3].format().is_integer() {
        return Vec::new();
    }
    widths(mode, [true, true, components.contains(&Component::F64)], controls)
}

/// Returns the operation of a configuration and its kernel; otherwise its name, if it has one, and why it cannot run.
fn usable(
    configuration: &vk::CooperativeMatrixPropertiesKHR<'_>,
    features: &Features,
    subgroup_size: u32,
) -> Result<(OperationId, Kernel), (Option<String>, Error)> {
    let &vk::CooperativeMatrixPropertiesKHR { m_size, n_size, k_size, a_type, b_type, c_type, result_type, .. } =
        configuration;
    let types = [a_type, b_type, c_type, result_type];
    let components = types.map(component);
    let [Some(a), Some(b), Some(c), Some(d)] = components else {
        let names = types.map(name_of);
        let unknown: BTreeSet<&str> =
            names.iter().zip(components).filter(|(_, known)| known.is_none()).map(|(name, _)| name.as_str()).collect();
        let unknown = unknown.into_iter().collect::<Vec<_>>().join(", ");
        let [a, b, c, d] = &names;
        let reason = Error::unsupported(format!(
            "component type {unknown} is unknown here (m{m_size}n{n_size}k{k_size}, A {a}, B {b}, C {c}, result {d})"
        ));
        return Err((None, reason));
    };
    let saturating = configuration.saturating_accumulation == vk::TRUE;
    let [format_a, format_b, format_c, format_d] = [a, b, c, d].map(Component::format);
    let mut id = OperationId::new("coopmat", (m_size, n_size, k_size), format_d, format_a, format_b, format_c);
    if saturating {
        id = id.with("satfinite");
    }
    match configuration.scope {
        vk::ScopeKHR::SUBGROUP => {}
        vk::ScopeKHR::WORKGROUP => id = id.with("workgroup"),
        vk::ScopeKHR::DEVICE => id = id.with("device"),
        vk::ScopeKHR::QUEUE_FAMILY => id = id.with("queuefamily"),
        other => id = id.with(&format!("scope{}", other.as_raw())),
    }
    let refuse = |reason: String| (Some(id.to_string()), Error::unsupported(reason));
    if configuration.scope != vk::ScopeKHR::SUBGROUP {
        return Err(refuse(format!("scope {:?} is listed, and only SUBGROUP can be run", configuration.scope)));
    }
    if [m_size, n_size, k_size].iter().any(|size| !(1..=1 << 12).contains(size)) {
        return Err(refuse(format!("m{m_size}n{n_size}k{k_size} has a size outside 1 to {}", 1 << 12)));
    }
    if let Some(missing) = [a, b, c, d].into_iter().find_map(|component| features.missing_for(component)) {
        return Err(refuse(format!("the configuration is listed and the feature {missing} is false")));
    }
    let kernel =
        Kernel { shape: (m_size, n_size, k_size), components: [a, b, c, d], saturating, subgroup_size, mode: None };
    Ok((id, kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(a: i32, scope: vk::ScopeKHR) -> vk::CooperativeMatrixPropertiesKHR<'static> {
        vk::CooperativeMatrixPropertiesKHR {
            m_size: 16,
            n_size: 8,
            k_size: 32,
            a_type: vk::ComponentTypeKHR::from_raw(a),
            b_type: vk::ComponentTypeKHR::from_raw(a),
            c_type: vk::ComponentTypeKHR::FLOAT32,
            result_type: vk::ComponentTypeKHR::FLOAT32,
            scope,
            ..Default::default()
        }
    }

    #[test]
    fn an_unknown_component_type_is_refused_with_its_number() {
        let (what, reason) =
            usable(&configuration(1_000_999_000, vk::ScopeKHR::SUBGROUP), &Features::default(), 32).unwrap_err();
        assert_eq!(what, None);
        assert!(reason.is_unsupported());
        assert_eq!(
            reason.to_string(),
            "component type 1000999000 is unknown here (m16n8k32, A 1000999000, B 1000999000, C FLOAT32, \
             result FLOAT32)"
        );
    }

    #[test]
    fn a_configuration_without_its_feature_is_refused_with_the_feature() {
        for (raw, feature) in [
            (0, "shaderFloat16"),
            (1_000_141_000, "shaderBFloat16CooperativeMatrix of VK_KHR_shader_bfloat16"),
            (1_000_491_002, "shaderFloat8CooperativeMatrix of VK_EXT_shader_float8"),
        ] {
            let (what, reason) =
                usable(&configuration(raw, vk::ScopeKHR::SUBGROUP), &Features::default(), 32).unwrap_err();
            assert!(what.unwrap().starts_with("coopmat.m16n8k32.f32."));
            assert_eq!(reason.to_string(), format!("the configuration is listed and the feature {feature} is false"));
        }
    }

    #[test]
    fn another_scope_is_named_in_the_id_and_refused() {
        let features = Features { float16: true, storage16: true, ..Features::default() };
        for (scope, word) in [
            (vk::ScopeKHR::WORKGROUP, "workgroup"),
            (vk::ScopeKHR::QUEUE_FAMILY, "queuefamily"),
            (vk::ScopeKHR::DEVICE, "device"),
        ] {
            let (what, _) = usable(&configuration(0, scope), &features, 32).unwrap_err();
            assert_eq!(what.unwrap(), format!("coopmat.m16n8k32.f32.f16.f16.f32.{word}"));
        }
        let (id, _) = usable(&configuration(0, vk::ScopeKHR::SUBGROUP), &features, 32).unwrap();
        assert_eq!(id.to_string(), "coopmat.m16n8k32.f32.f16.f16.f32");
    }
}
