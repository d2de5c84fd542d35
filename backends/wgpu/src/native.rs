//! Facts about an adapter that wgpu does not expose, queried from the driver directly; only for Vulkan.

use mxprobe_api::Refusal;

/// A driver's own description of an adapter.
#[derive(Debug, Default)]
pub(crate) struct Native {
    /// The version of the API that it offers.
    pub(crate) api_version: String,
    /// A short name of the driver, independent of its version: `mesa_radv`.
    pub(crate) driver_word: String,
    /// The device's identity, the same in every API: 16 bytes in hex (*specified*: `VkPhysicalDeviceIDProperties`).
    pub(crate) device_uuid: String,
    /// The feature `cooperativeMatrix`, which wgpu does not check.
    pub(crate) cooperative_matrix: bool,
    /// The number of cooperative matrix configurations that the driver lists.
    pub(crate) configurations: usize,
    /// The configurations that wgpu hides or WGSL cannot express, with the reason.
    pub(crate) hidden: Vec<Refusal>,
}

/// Queries the driver of an adapter; `None` if the adapter does not use Vulkan.
#[cfg(target_vendor = "apple")]
pub(crate) fn native(_: &wgpu::Adapter, _: &str) -> Option<Native> {
    None
}

#[cfg(not(target_vendor = "apple"))]
pub(crate) use vulkan::native;

#[cfg(not(target_vendor = "apple"))]
mod vulkan {
    use ash::{khr, vk};
    use mxprobe_api::{Error, Format, OperationId, Refusal};
    use mxprobe_shaders::wgsl::cannot_say;

    use super::Native;

    /// The values of `VkComponentTypeKHR` (*specified*: Vulkan 1.4) that have a format here.
    const COMPONENTS: [(i32, Format); 11] = [
        (0, Format::F16),
        (1, Format::F32),
        (2, Format::F64),
        (3, Format::S8),
        (4, Format::S16),
        (5, Format::S32),
        (7, Format::U8),
        (9, Format::U32),
        (1_000_141_000, Format::BF16),
        (1_000_491_002, Format::E4M3),
        (1_000_491_003, Format::E5M2),
    ];

    pub(crate) fn native(adapter: &wgpu::Adapter, selector: &str) -> Option<Native> {
        // SAFETY: nothing of the adapter is destroyed here; its handles are used only while the guard lives.
        let hal = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
        let (shared, handle) = (hal.shared_instance(), hal.raw_physical_device());
        let instance = shared.raw_instance();
        // SAFETY: the handle was enumerated from this instance, here and below.
        let basic = unsafe { instance.get_physical_device_properties(handle) };
        let version = basic.api_version;
        let mut found = Native {
            api_version: format!(
                "{}.{}.{}",
                vk::api_version_major(version),
                vk::api_version_minor(version),
                vk::api_version_patch(version)
            ),
            ..Native::default()
        };
        if version < vk::API_VERSION_1_2 {
            return Some(found);
        }
        let mut identity = vk::PhysicalDeviceIDProperties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut identity).push_next(&mut driver);
        // SAFETY: as above; both structures are core in Vulkan 1.2, chained to one that they extend, and outlive the
        // call.
        unsafe { instance.get_physical_device_properties2(handle, &mut all) };
        found.device_uuid = identity.device_uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        found.driver_word = format!("{:?}", driver.driver_id).to_lowercase();

        // SAFETY: as above.
        let extensions = unsafe { instance.enumerate_device_extension_properties(handle) }.unwrap_or_default();
        let name = khr::cooperative_matrix::NAME;
        if !extensions.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name)) {
            return Some(found);
        }
        let mut feature = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
        let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut feature);
        // SAFETY: as above; the extension is present, so its structure may be chained.
        unsafe { instance.get_physical_device_features2(handle, &mut features) };
        found.cooperative_matrix = feature.cooperative_matrix == vk::TRUE;
        let functions = khr::cooperative_matrix::Instance::new(shared.entry(), instance);
        // SAFETY: as above; the extension is present, so its function exists.
        let listed = unsafe { functions.get_physical_device_cooperative_matrix_properties(handle) }.unwrap_or_default();
        found.configurations = listed.len();
        found.hidden = listed.iter().enumerate().filter_map(|(at, each)| hidden(selector, at, each)).collect();
        Some(found)
    }

    /// Returns the refusal of a configuration that wgpu or WGSL does not support; `None` for one that both support.
    fn hidden(selector: &str, at: usize, each: &vk::CooperativeMatrixPropertiesKHR<'_>) -> Option<Refusal> {
        let types = [each.a_type, each.b_type, each.c_type, each.result_type];
        let formats = types.map(|ty| COMPONENTS.iter().find(|(raw, _)| *raw == ty.as_raw()).map(|(_, format)| *format));
        let shape = (each.m_size, each.n_size, each.k_size);
        let saturating = each.saturating_accumulation == vk::TRUE;
        let (what, reason) = match formats {
            [Some(a), Some(b), Some(c), Some(d)] => {
                let mut id = OperationId::new("coopmat", shape, d, a, b, c);
                if saturating {
                    id = id.with("satfinite");
                }
                let scope = (each.scope != vk::ScopeKHR::SUBGROUP).then(|| {
                    id = id.clone().with(&format!("{:?}", each.scope).to_lowercase().replace('_', ""));
                    format!("wgpu shows configurations of subgroup scope alone, and this is {:?}", each.scope)
                });
                (id.to_string(), scope.or_else(|| cannot_say(shape, [a, b, c, d], saturating))?)
            }
            _ => {
                let (m, n, k) = shape;
                let reason =
                    format!("WGSL has cooperative matrices of f16 and f32 alone, not of {types:?} (m{m}n{n}k{k})");
                (format!("cooperative matrix configuration {at}"), reason)
            }
        };
        Some(Refusal {
            what: format!("{selector} {what}"),
            reason: Error::unsupported(reason),
            help: Some("the backend vulkan reaches what the driver lists".to_owned()),
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn configuration(m: u32, types: [i32; 4], scope: vk::ScopeKHR) -> vk::CooperativeMatrixPropertiesKHR<'static> {
            let [a_type, b_type, c_type, result_type] = types.map(vk::ComponentTypeKHR::from_raw);
            let (n_size, k_size) = (16, 16);
            vk::CooperativeMatrixPropertiesKHR {
                m_size: m,
                n_size,
                k_size,
                a_type,
                b_type,
                c_type,
                result_type,
                scope,
                ..Default::default()
            }
        }

        #[test]
        fn what_wgpu_hides_is_named_as_the_backend_vulkan_names_it() {
            let subgroup = vk::ScopeKHR::SUBGROUP;
            for (configuration, what, part) in [
                (configuration(8, [0, 0, 1, 1], subgroup), "coopmat.m8n16k16.f32.f16.f16.f32", "m8n16k16"),
                (configuration(16, [3, 7, 5, 5], subgroup), "coopmat.m16n16k16.s32.s8.u8.s32", "not of s8"),
                (
                    configuration(16, [1_000_141_000, 1_000_141_000, 1, 1], subgroup),
                    "coopmat.m16n16k16.f32.bf16.bf16.f32",
                    "not of bf16",
                ),
                (configuration(16, [0, 0, 0, 1], subgroup), "coopmat.m16n16k16.f32.f16.f16.f16", "C and D agree"),
                (
                    configuration(16, [0, 0, 1, 1], vk::ScopeKHR::WORKGROUP),
                    "coopmat.m16n16k16.f32.f16.f16.f32.workgroup",
                    "this is WORKGROUP",
                ),
                (configuration(16, [77; 4], subgroup), "cooperative matrix configuration 5", "77"),
            ] {
                let refusal = hidden("wgpu:0", 5, &configuration).unwrap();
                assert_eq!(refusal.what, format!("wgpu:0 {what}"));
                assert!(refusal.reason.to_string().contains(part), "{}", refusal.reason);
            }
            assert_eq!(hidden("wgpu:0", 0, &configuration(16, [0, 0, 1, 1], subgroup)), None);
        }
    }
}
