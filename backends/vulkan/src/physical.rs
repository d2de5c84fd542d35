//! Physical devices: their properties, and which of their configurations can run.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;

use ash::{ext, khr, vk};
use mxprobe_api::{DeviceInfo, DeviceKind, Driver, Error, OperationId, OperationSet, Refusal, Scalar, ScalarId};
use mxprobe_shaders::spirv::{Asked, Kernel};

use crate::failure::failure;
use crate::features::{BFLOAT16_EXTENSION, FLOAT8_EXTENSION, Features, Listed, features};
use crate::float_mode::{self, Controls};
use crate::instance::{Instance, version_text};
use crate::matrices::{About, Matrices, matrices};
use crate::scalar::scalars;

/// The subgroup size, and whether it must be requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subgroup {
    pub(crate) size: u32,
    /// Whether to request the size: there is a choice, and compute stages may make it
    /// (VUID-VkPipelineShaderStageCreateInfo-pNext-02755).
    pub(crate) required: bool,
}

/// A device that can be opened.
pub(crate) struct Physical {
    pub(crate) instance: Arc<Instance>,
    pub(crate) handle: vk::PhysicalDevice,
    pub(crate) queue_family: u32,
    pub(crate) features: Features,
    /// Whether cooperative matrices can be enabled.
    pub(crate) has_matrices: bool,
    pub(crate) subgroup: Subgroup,
    pub(crate) max_workgroups: u32,
    pub(crate) max_buffer_bytes: u64,
    pub(crate) memory: vk::PhysicalDeviceMemoryProperties,
    /// Nanoseconds per tick of the device's clock, and the number of valid bits of a timestamp; `None` if the queue has
    /// no timestamps.
    pub(crate) timestamps: Option<(f64, u32)>,
}

/// A device that can be opened, and everything known about it without opening it.
pub(crate) struct Found {
    pub(crate) physical: Physical,
    pub(crate) info: DeviceInfo,
    pub(crate) operations: OperationSet,
    pub(crate) kernels: BTreeMap<OperationId, Kernel>,
    pub(crate) scalars: Vec<Scalar>,
    /// The modes of those scalars that request one.
    pub(crate) modes: BTreeMap<ScalarId, Asked>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Queries everything about one physical device.
pub(crate) fn examine(instance: &Arc<Instance>, index: usize, handle: vk::PhysicalDevice) -> Result<Found, Refusal> {
    let vulkan = &instance.handle;
    let selector = format!("vulkan:{index}");
    // SAFETY: `handle` was enumerated from this instance, here and in every call below.
    let basic = unsafe { vulkan.get_physical_device_properties(handle) };
    let name = text(basic.device_name_as_c_str());
    let refuse = |reason: Error, help: Option<&str>| Refusal {
        what: format!("{selector} ({name})"),
        reason,
        help: help.map(str::to_owned),
    };
    if basic.api_version < vk::API_VERSION_1_3 {
        let version = version_text(basic.api_version);
        return Err(refuse(
            Error::unsupported(format!("its driver offers Vulkan {version}, below 1.3")),
            Some("a newer driver may offer it"),
        ));
    }

    // SAFETY: as above.
    let extensions = unsafe { vulkan.enumerate_device_extension_properties(handle) }
        .map_err(|result| refuse(failure("vkEnumerateDeviceExtensionProperties", result), None))?;
    let has = |name: &CStr| extensions.iter().any(|found| found.extension_name_as_c_str() == Ok(name));
    let listed = Listed {
        matrices: has(khr::cooperative_matrix::NAME),
        bfloat16: has(BFLOAT16_EXTENSION),
        float8: has(FLOAT8_EXTENSION),
        executables: has(khr::pipeline_executable_properties::NAME),
    };
    let has_pci = has(ext::pci_bus_info::NAME);

    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
    let mut controls = Controls::default();
    let mut identity = vk::PhysicalDeviceIDProperties::default();
    let mut pci = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
    let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
    let mut matrix_properties = vk::PhysicalDeviceCooperativeMatrixPropertiesKHR::default();
    let mut properties = vk::PhysicalDeviceProperties2::default()
        .push_next(&mut driver)
        .push_next(&mut subgroup)
        .push_next(&mut sizes)
        .push_next(&mut controls)
        .push_next(&mut maintenance3)
        .push_next(&mut identity);
    if listed.matrices {
        properties = properties.push_next(&mut matrix_properties);
    }
    if has_pci {
        properties = properties.push_next(&mut pci);
    }
    // SAFETY: as above; every structure is chained to one that it extends, and lives until after the call.
    unsafe { vulkan.get_physical_device_properties2(handle, &mut properties) };
    let limits = properties.properties.limits;

    let driver_name = text(driver.driver_name_as_c_str());
    let driver_version = text(driver.driver_info_as_c_str());
    let driver_text = format!("driver {driver_name} {driver_version}");
    let features = features(instance, handle, listed);
    // SAFETY: as above.
    let families = unsafe { vulkan.get_physical_device_queue_family_properties(handle) };
    let queue_family = families.iter().position(|family| family.queue_flags.contains(vk::QueueFlags::COMPUTE));
    let Some(queue_family) = queue_family.and_then(|at| u32::try_from(at).ok()) else {
        return Err(refuse(Error::unsupported(format!("{driver_text} has no queue that computes")), None));
    };

    let chooses = features.subgroup_size_control
        && sizes.min_subgroup_size != sizes.max_subgroup_size
        && sizes.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE);
    let width = Subgroup {
        // Intel's drivers report 32 but run matrices in their smallest subgroup (*assumed*); for others, the reported
        // size.
        size: if chooses && basic.vendor_id == 0x8086 { sizes.min_subgroup_size } else { subgroup.subgroup_size },
        required: chooses,
    };
    let about = About {
        selector: &selector,
        driver: &driver_text,
        driver_id: driver.driver_id,
        features: &features,
        controls: &controls,
        stages: matrix_properties.cooperative_matrix_supported_stages,
        subgroup_size: width.size,
    };
    let found = if listed.matrices {
        matrices(instance, handle, &about)
    } else {
        let older =
            if has(c"VK_NV_cooperative_matrix") { ", only VK_NV_cooperative_matrix, its predecessor" } else { "" };
        Err((
            Error::unsupported(format!("{driver_text} has no VK_KHR_cooperative_matrix{older}")),
            Some("a newer driver may offer it, if the device has matrix units"),
        ))
    };
    // A device without matrices still has scalar arithmetic.
    let has_matrices = found.is_ok();
    let Matrices { operations, kernels, mut refusals, listed: configurations } =
        found.unwrap_or_else(|(reason, help)| {
            let what = format!("{selector} VK_KHR_cooperative_matrix");
            Matrices { refusals: vec![Refusal { what, reason, help: help.map(str::to_owned) }], ..Matrices::default() }
        });
    for (there, usable, extension, feature) in [
        (listed.bfloat16, features.bfloat16, "VK_KHR_shader_bfloat16", "shaderBFloat16CooperativeMatrix"),
        (listed.float8, features.float8, "VK_EXT_shader_float8", "shaderFloat8CooperativeMatrix"),
    ] {
        if has_matrices && there && !usable {
            refusals.push(Refusal {
                what: format!("{selector} {extension}"),
                reason: Error::unsupported(format!("the extension is listed and its feature {feature} is false")),
                help: None,
            });
        }
    }

    let mut values = BTreeMap::new();
    let mut keep = |key: &str, value: String| values.insert(key.to_owned(), value);
    keep("vendor_id", format!("{:#06x}", basic.vendor_id));
    keep("device_id", format!("{:#06x}", basic.device_id));
    keep("device_type", format!("{:?}", basic.device_type));
    keep("driver_version_raw", format!("{:#010x}", basic.driver_version));
    keep("kernel_form", "SPIR-V".to_owned());
    keep("loader_version", version_text(instance.version));
    // SAFETY: as above.
    let memory = unsafe { vulkan.get_physical_device_memory_properties(handle) };
    let own =
        memory.memory_heaps_as_slice().iter().filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    keep("memory_bytes", own.map(|heap| heap.size).sum::<u64>().to_string());
    keep("driver_id", format!("{:?}", driver.driver_id));
    if let Some(library) = library_name(driver.driver_id).and_then(mxprobe_api::loaded_library) {
        keep("driver_library", library);
    }
    let conformance = driver.conformance_version;
    keep(
        "conformance_version",
        format!("{}.{}.{}.{}", conformance.major, conformance.minor, conformance.subminor, conformance.patch),
    );
    keep("subgroup_size", subgroup.subgroup_size.to_string());
    keep("subgroup_size_min", sizes.min_subgroup_size.to_string());
    keep("subgroup_size_max", sizes.max_subgroup_size.to_string());
    keep("subgroup_size_used", width.size.to_string());
    // Identifies the same device in another backend (*specified*: `VkPhysicalDeviceIDProperties`).
    keep("device_uuid", identity.device_uuid.iter().map(|byte| format!("{byte:02x}")).collect());
    if has_pci {
        let vk::PhysicalDevicePCIBusInfoPropertiesEXT { pci_domain, pci_bus, pci_device, pci_function, .. } = pci;
        keep("pci_bus_id", format!("{pci_domain:04x}:{pci_bus:02x}:{pci_device:02x}.{pci_function:x}"));
    }
    keep("configurations_listed", configurations.to_string());
    let known = [
        c"VK_KHR_cooperative_matrix",
        BFLOAT16_EXTENSION,
        FLOAT8_EXTENSION,
        c"VK_NV_cooperative_matrix2",
        c"VK_NV_cooperative_matrix",
        c"VK_NV_cooperative_vector",
        c"VK_KHR_pipeline_executable_properties",
    ];
    let present: Vec<_> = known.into_iter().filter(|name| has(name)).map(CStr::to_string_lossy).collect();
    keep("extensions", present.join(" "));
    values.extend(float_mode::properties(&controls));
    let (scalars, asked): (Vec<Scalar>, Vec<_>) = scalars(&features, &controls).into_iter().unzip();
    let modes = scalars.iter().zip(asked).filter_map(|(scalar, mode)| Some((scalar.id.clone(), mode?))).collect();

    let driver_word = driver_word(driver.driver_id);
    let info = DeviceInfo {
        backend: "vulkan".to_owned(),
        selector,
        fingerprint: format!("{:04x}-{:04x}-{driver_word}", basic.vendor_id, basic.device_id),
        kind: if basic.device_type == vk::PhysicalDeviceType::CPU {
            DeviceKind::Software
        } else {
            DeviceKind::Hardware
        },
        emulated: false,
        aliases: aliases(&name, driver.driver_id),
        name,
        driver: Some(Driver {
            name: driver_name,
            version: driver_version,
            api_version: version_text(basic.api_version),
        }),
        properties: values,
    };
    let physical = Physical {
        instance: Arc::clone(instance),
        handle,
        queue_family,
        features,
        has_matrices,
        subgroup: width,
        max_workgroups: limits.max_compute_work_group_count[0],
        max_buffer_bytes: u64::from(limits.max_storage_buffer_range).min(maintenance3.max_memory_allocation_size),
        memory,
        timestamps: Some((f64::from(limits.timestamp_period), families[queue_family as usize].timestamp_valid_bits))
            .filter(|(period_ns, bits)| *period_ns > 0.0 && *bits > 0),
    };
    Ok(Found { physical, info, operations, kernels, scalars, modes, refusals })
}

fn text<E>(name: Result<&CStr, E>) -> String {
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A short name of a driver, independent of its version: `mesa_radv`, `nvidia_proprietary`.
fn driver_word(id: vk::DriverId) -> String {
    let word = format!("{id:?}").to_lowercase();
    if word.bytes().all(|byte| byte.is_ascii_digit()) { format!("driver{word}") } else { word }
}

/// The beginning of a driver's file name, as in its own manifest.
fn library_name(driver: vk::DriverId) -> Option<&'static str> {
    Some(match driver {
        vk::DriverId::MESA_LLVMPIPE => "libvulkan_lvp",
        vk::DriverId::MESA_RADV => "libvulkan_radeon",
        vk::DriverId::MESA_NVK => "libvulkan_nouveau",
        vk::DriverId::INTEL_OPEN_SOURCE_MESA => "libvulkan_intel",
        vk::DriverId::NVIDIA_PROPRIETARY => "libGLX_nvidia",
        vk::DriverId::AMD_PROPRIETARY | vk::DriverId::AMD_OPEN_SOURCE => "amdvlk",
        _ => return None,
    })
}

/// Other selectors of the device: its driver's name, and the architecture that Mesa's RADV gives in parentheses.
fn aliases(name: &str, driver: vk::DriverId) -> Vec<String> {
    let short = match driver {
        vk::DriverId::MESA_LLVMPIPE => Some("lavapipe"),
        vk::DriverId::MESA_RADV => Some("radv"),
        vk::DriverId::MESA_NVK => Some("nvk"),
        vk::DriverId::NVIDIA_PROPRIETARY => Some("nvidia"),
        vk::DriverId::AMD_PROPRIETARY => Some("amd"),
        vk::DriverId::AMD_OPEN_SOURCE => Some("amdvlk"),
        vk::DriverId::INTEL_OPEN_SOURCE_MESA => Some("anv"),
        vk::DriverId::INTEL_PROPRIETARY_WINDOWS => Some("intel"),
        _ => None,
    };
    let bracketed = name.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    let architecture = bracketed.and_then(|inner| inner.strip_prefix("RADV ")).map(str::to_lowercase);
    short.map(str::to_owned).into_iter().chain(architecture).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_the_driver_and_the_architecture() {
        assert_eq!(aliases("AMD Radeon RX 9070 XT (RADV GFX1201)", vk::DriverId::MESA_RADV), ["radv", "gfx1201"]);
        assert_eq!(aliases("llvmpipe (LLVM 21.1.8, 256 bits)", vk::DriverId::MESA_LLVMPIPE), ["lavapipe"]);
        assert_eq!(driver_word(vk::DriverId::MESA_RADV), "mesa_radv");
        assert_eq!(driver_word(vk::DriverId::from_raw(9999)), "driver9999");
    }
}
