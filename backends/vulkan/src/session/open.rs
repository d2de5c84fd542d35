//! Opening of the logical device, with the features and extensions that the shaders here need.

use ash::{khr, vk};
use mxprobe_api::Error;

use crate::failure::called;
use crate::features::{BFLOAT16_EXTENSION, Bfloat16Features, FLOAT8_EXTENSION, Float8Features};
use crate::physical::Physical;

/// Opens a device.
///
/// # Errors
/// Whatever the driver reports.
pub(super) fn open_device(physical: &Physical) -> Result<ash::Device, Error> {
    let features = &physical.features;
    let mut extensions = Vec::new();
    let mut vulkan11 = vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(features.storage16);
    let mut vulkan12 = vk::PhysicalDeviceVulkan12Features::default()
        .shader_float16(features.float16)
        .shader_int8(features.int8)
        .storage_buffer8_bit_access(features.storage8)
        .vulkan_memory_model(features.memory_model);
    let mut vulkan13 = vk::PhysicalDeviceVulkan13Features::default()
        .subgroup_size_control(features.subgroup_size_control)
        .compute_full_subgroups(features.full_subgroups);
    let mut matrix = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let mut bfloat16 =
        Bfloat16Features { scalar: vk::TRUE, cooperative_matrix: vk::TRUE, ..Bfloat16Features::default() };
    let mut float8 = Float8Features { scalar: vk::TRUE, cooperative_matrix: vk::TRUE, ..Float8Features::default() };
    let mut executables =
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
    let base = vk::PhysicalDeviceFeatures::default().shader_float64(features.float64).shader_int16(features.int16);
    let priorities = [1.0];
    let queues =
        [vk::DeviceQueueCreateInfo::default().queue_family_index(physical.queue_family).queue_priorities(&priorities)];
    if physical.has_matrices {
        extensions.push(khr::cooperative_matrix::NAME.as_ptr());
    }
    if features.bfloat16 {
        extensions.push(BFLOAT16_EXTENSION.as_ptr());
    }
    if features.float8 {
        extensions.push(FLOAT8_EXTENSION.as_ptr());
    }
    if features.executable_info {
        extensions.push(khr::pipeline_executable_properties::NAME.as_ptr());
    }
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .enabled_features(&base)
        .push_next(&mut vulkan11)
        .push_next(&mut vulkan12)
        .push_next(&mut vulkan13);
    if physical.has_matrices {
        info = info.push_next(&mut matrix);
    }
    if features.bfloat16 {
        info = info.push_next(&mut bfloat16);
    }
    if features.float8 {
        info = info.push_next(&mut float8);
    }
    if features.executable_info {
        info = info.push_next(&mut executables);
    }
    // SAFETY: the device was enumerated from this instance; extensions and features were listed by it; everything in
    // `info` lives until the call returns.
    called("vkCreateDevice", unsafe { physical.instance.handle.create_device(physical.handle, &info, None) })
}
