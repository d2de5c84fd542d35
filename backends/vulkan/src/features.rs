//! The members of `VkPhysicalDevice…Features` that the shaders here need.

use std::ffi::{CStr, c_void};

use ash::vk;
use mxprobe_shaders::spirv::Component;

use crate::instance::Instance;

pub(crate) const BFLOAT16_EXTENSION: &CStr = c"VK_KHR_shader_bfloat16";
pub(crate) const FLOAT8_EXTENSION: &CStr = c"VK_EXT_shader_float8";

/// `VkPhysicalDeviceShaderBfloat16FeaturesKHR` (*specified*: `VK_KHR_shader_bfloat16`).
#[repr(C)]
pub(crate) struct Bfloat16Features {
    pub(crate) s_type: vk::StructureType,
    pub(crate) p_next: *mut c_void,
    pub(crate) scalar: vk::Bool32,
    pub(crate) dot_product: vk::Bool32,
    pub(crate) cooperative_matrix: vk::Bool32,
}

impl Default for Bfloat16Features {
    fn default() -> Self {
        Self {
            s_type: vk::StructureType::from_raw(1_000_141_000),
            p_next: std::ptr::null_mut(),
            scalar: 0,
            dot_product: 0,
            cooperative_matrix: 0,
        }
    }
}

// SAFETY: the specification allows the structure to extend both; its first two members are those of
// `VkBaseOutStructure`.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for Bfloat16Features {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for Bfloat16Features {}

/// `VkPhysicalDeviceShaderFloat8FeaturesEXT` (*specified*: `VK_EXT_shader_float8`).
#[repr(C)]
pub(crate) struct Float8Features {
    pub(crate) s_type: vk::StructureType,
    pub(crate) p_next: *mut c_void,
    pub(crate) scalar: vk::Bool32,
    pub(crate) cooperative_matrix: vk::Bool32,
}

impl Default for Float8Features {
    fn default() -> Self {
        Self {
            s_type: vk::StructureType::from_raw(1_000_567_000),
            p_next: std::ptr::null_mut(),
            scalar: 0,
            cooperative_matrix: 0,
        }
    }
}

// SAFETY: the specification allows the structure to extend both; its first two members are those of
// `VkBaseOutStructure`.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for Float8Features {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for Float8Features {}

/// The available features; each is enabled when the device is opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) float16: bool,
    pub(crate) float64: bool,
    pub(crate) int8: bool,
    pub(crate) int16: bool,
    pub(crate) storage8: bool,
    pub(crate) storage16: bool,
    pub(crate) bfloat16: bool,
    pub(crate) float8: bool,
    pub(crate) subgroup_size_control: bool,
    pub(crate) full_subgroups: bool,
    pub(crate) executable_info: bool,
    pub(crate) cooperative_matrix: bool,
    pub(crate) memory_model: bool,
}

impl Features {
    /// Returns the first missing feature that a component needs.
    pub(crate) fn missing_for(&self, component: Component) -> Option<&'static str> {
        let needed: &[(bool, &'static str)] = match component {
            Component::F32 | Component::S32 | Component::U32 => &[],
            Component::F16 => &[(self.float16, "shaderFloat16"), (self.storage16, "storageBuffer16BitAccess")],
            Component::F64 => &[(self.float64, "shaderFloat64")],
            Component::S8 | Component::U8 => &[(self.int8, "shaderInt8"), (self.storage8, "storageBuffer8BitAccess")],
            Component::S16 => &[(self.int16, "shaderInt16"), (self.storage16, "storageBuffer16BitAccess")],
            Component::Bf16 => &[
                (self.bfloat16, "shaderBFloat16CooperativeMatrix of VK_KHR_shader_bfloat16"),
                (self.storage16, "storageBuffer16BitAccess"),
            ],
            Component::E4m3 | Component::E5m2 => &[
                (self.float8, "shaderFloat8CooperativeMatrix of VK_EXT_shader_float8"),
                (self.storage8, "storageBuffer8BitAccess"),
            ],
        };
        needed.iter().find(|(there, _)| !there).map(|(_, name)| *name)
    }
}

/// The listed extensions whose features are queried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) matrices: bool,
    pub(crate) bfloat16: bool,
    pub(crate) float8: bool,
    pub(crate) executables: bool,
}

/// Queries which of the features used here are available.
pub(crate) fn features(instance: &Instance, handle: vk::PhysicalDevice, listed: Listed) -> Features {
    let mut vulkan11 = vk::PhysicalDeviceVulkan11Features::default();
    let mut vulkan12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut vulkan13 = vk::PhysicalDeviceVulkan13Features::default();
    let mut matrix = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
    let mut bfloat16 = Bfloat16Features::default();
    let mut float8 = Float8Features::default();
    let mut executables = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default();
    let mut all = vk::PhysicalDeviceFeatures2::default()
        .push_next(&mut vulkan11)
        .push_next(&mut vulkan12)
        .push_next(&mut vulkan13);
    if listed.matrices {
        all = all.push_next(&mut matrix);
    }
    if listed.bfloat16 {
        all = all.push_next(&mut bfloat16);
    }
    if listed.float8 {
        all = all.push_next(&mut float8);
    }
    if listed.executables {
        all = all.push_next(&mut executables);
    }
    // SAFETY: `handle` was enumerated from this instance; every structure is chained to one that it extends.
    unsafe { instance.handle.get_physical_device_features2(handle, &mut all) };
    let base = all.features;
    let there = |feature: vk::Bool32| feature == vk::TRUE;
    Features {
        float16: there(vulkan12.shader_float16),
        float64: there(base.shader_float64),
        int8: there(vulkan12.shader_int8),
        int16: there(base.shader_int16),
        storage8: there(vulkan12.storage_buffer8_bit_access),
        storage16: there(vulkan11.storage_buffer16_bit_access),
        bfloat16: there(bfloat16.scalar) && there(bfloat16.cooperative_matrix),
        float8: there(float8.scalar) && there(float8.cooperative_matrix),
        subgroup_size_control: there(vulkan13.subgroup_size_control),
        full_subgroups: there(vulkan13.compute_full_subgroups),
        executable_info: there(executables.pipeline_executable_info),
        cooperative_matrix: there(matrix.cooperative_matrix),
        memory_model: there(vulkan12.vulkan_memory_model),
    }
}
