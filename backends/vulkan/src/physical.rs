//! What a physical device says of itself, and which of its configurations can be run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use ash::{khr, vk};
use mxprobe_api::{DeviceInfo, DeviceKind, Driver, Error, Operation, OperationId, OperationSet, Refusal};

use crate::component::{Component, name_of};
use crate::failure::failure;
use crate::instance::{Instance, version_text};
use crate::spirv::{FloatMode, Kernel};

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

// SAFETY: the specification lets the structure extend both; its first two members are those of `VkBaseOutStructure`.
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

// SAFETY: the specification lets the structure extend both; its first two members are those of `VkBaseOutStructure`.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for Float8Features {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for Float8Features {}

/// The features that are there, each enabled when the device is opened.
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
}

impl Features {
    /// The feature that a component needs and that is missing.
    fn missing_for(&self, component: Component) -> Option<&'static str> {
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

/// How wide a subgroup is, and what has to be said to get it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subgroup {
    pub(crate) size: u32,
    /// Ask for the size: there is a choice, and compute stages may make it
    /// (VUID-VkPipelineShaderStageCreateInfo-pNext-02755).
    pub(crate) required: bool,
}

/// A device that can be opened.
pub(crate) struct Physical {
    pub(crate) instance: Arc<Instance>,
    pub(crate) handle: vk::PhysicalDevice,
    pub(crate) queue_family: u32,
    pub(crate) features: Features,
    pub(crate) subgroup: Subgroup,
    pub(crate) max_workgroups: u32,
    pub(crate) max_buffer_bytes: u64,
    pub(crate) memory: vk::PhysicalDeviceMemoryProperties,
    /// Nanoseconds of a tick of the device's clock, and how many bits count ticks; `None` where the queue has no timestamps.
    pub(crate) timestamps: Option<(f64, u32)>,
}

/// A device that can be opened, and everything that is known about it without opening it.
pub(crate) struct Found {
    pub(crate) physical: Physical,
    pub(crate) info: DeviceInfo,
    pub(crate) operations: OperationSet,
    pub(crate) kernels: BTreeMap<OperationId, Kernel>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Asks one physical device everything.
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
    let has_matrices = has(khr::cooperative_matrix::NAME);
    let (has_bfloat16, has_float8) = (has(BFLOAT16_EXTENSION), has(FLOAT8_EXTENSION));
    let has_executables = has(khr::pipeline_executable_properties::NAME);

    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
    let mut controls = vk::PhysicalDeviceFloatControlsProperties::default();
    let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixPropertiesKHR::default();
    let mut properties = vk::PhysicalDeviceProperties2::default()
        .push_next(&mut driver)
        .push_next(&mut subgroup)
        .push_next(&mut sizes)
        .push_next(&mut controls)
        .push_next(&mut maintenance3);
    if has_matrices {
        properties = properties.push_next(&mut matrices);
    }
    // SAFETY: as above; every structure is chained to one that it extends, and lives until after the call.
    unsafe { vulkan.get_physical_device_properties2(handle, &mut properties) };
    let limits = properties.properties.limits;

    let driver_name = text(driver.driver_name_as_c_str());
    let driver_version = text(driver.driver_info_as_c_str());
    let driver_text = format!("driver {driver_name} {driver_version}");
    if !has_matrices {
        let older =
            if has(c"VK_NV_cooperative_matrix") { ", only VK_NV_cooperative_matrix, its predecessor" } else { "" };
        return Err(refuse(
            Error::unsupported(format!("{driver_text} has no VK_KHR_cooperative_matrix{older}")),
            Some("a newer driver may offer it, if the device has matrix units"),
        ));
    }

    let (features, matrix_feature, memory_model) =
        features(instance, handle, [has_bfloat16, has_float8, has_executables]);
    let functions = khr::cooperative_matrix::Instance::new(&instance.entry, vulkan);
    // SAFETY: as above; the extension is there, so its function is.
    let listed = unsafe { functions.get_physical_device_cooperative_matrix_properties(handle) }
        .map_err(|result| refuse(failure("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", result), None))?;
    if !matrix_feature {
        let help = (driver.driver_id == vk::DriverId::MESA_LLVMPIPE).then_some(
            "llvmpipe enables it with vectors of 256 bits: on a CPU with AVX, and with LP_NATIVE_VECTOR_WIDTH unset",
        );
        return Err(refuse(
            Error::unsupported(format!(
                "{driver_text} lists VK_KHR_cooperative_matrix and {} configurations, and its feature \
                 cooperativeMatrix is false",
                listed.len()
            )),
            help,
        ));
    }
    if !memory_model {
        return Err(refuse(
            Error::unsupported(format!(
                "{driver_text} has VK_KHR_cooperative_matrix without the feature vulkanMemoryModel, which its shaders need"
            )),
            None,
        ));
    }
    if !matrices.cooperative_matrix_supported_stages.contains(vk::ShaderStageFlags::COMPUTE) {
        return Err(refuse(
            Error::unsupported(format!(
                "{driver_text} has VK_KHR_cooperative_matrix in stages {:?}, without COMPUTE",
                matrices.cooperative_matrix_supported_stages
            )),
            None,
        ));
    }
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
        // Intel's drivers report 32 and run matrices in their smallest subgroup (*assumed*); else the reported size.
        size: if chooses && basic.vendor_id == 0x8086 { sizes.min_subgroup_size } else { subgroup.subgroup_size },
        required: chooses,
    };
    let mut refusals = Vec::new();
    for (there, usable, extension, feature) in [
        (has_bfloat16, features.bfloat16, "VK_KHR_shader_bfloat16", "shaderBFloat16CooperativeMatrix"),
        (has_float8, features.float8, "VK_EXT_shader_float8", "shaderFloat8CooperativeMatrix"),
    ] {
        if there && !usable {
            refusals.push(Refusal {
                what: format!("{selector} {extension}"),
                reason: Error::unsupported(format!("the extension is listed and its feature {feature} is false")),
                help: None,
            });
        }
    }
    let mut operations = OperationSet::new();
    let mut kernels = BTreeMap::new();
    for (at, configuration) in listed.iter().enumerate() {
        let (id, mut kernel) = match usable(configuration, &features, width.size) {
            Ok(usable) => usable,
            Err((what, reason)) => {
                let what = what.unwrap_or_else(|| format!("cooperative matrix configuration {at}"));
                refusals.push(Refusal { what: format!("{selector} {what}"), reason, help: None });
                continue;
            }
        };
        for mode in FloatMode::ALL {
            if let Some(widths) = mode_widths(mode, kernel.components, &controls) {
                let id = id.clone().with(mode.qualifier());
                operations.insert(id.clone(), Operation::new(id.clone(), "subgroup"));
                kernels.insert(id, Kernel { mode: Some((mode, widths)), ..kernel.clone() });
            }
        }
        kernel.mode = None;
        operations.insert(id.clone(), Operation::new(id.clone(), "subgroup"));
        kernels.insert(id, kernel);
    }

    let mut values = BTreeMap::new();
    let mut keep = |key: &str, value: String| values.insert(key.to_owned(), value);
    keep("vendor_id", format!("{:#06x}", basic.vendor_id));
    keep("device_id", format!("{:#06x}", basic.device_id));
    keep("device_type", format!("{:?}", basic.device_type));
    keep("driver_id", format!("{:?}", driver.driver_id));
    let conformance = driver.conformance_version;
    keep(
        "conformance_version",
        format!("{}.{}.{}.{}", conformance.major, conformance.minor, conformance.subminor, conformance.patch),
    );
    keep("subgroup_size", subgroup.subgroup_size.to_string());
    keep("subgroup_size_min", sizes.min_subgroup_size.to_string());
    keep("subgroup_size_max", sizes.max_subgroup_size.to_string());
    keep("subgroup_size_used", width.size.to_string());
    keep("denorm_behavior_independence", format!("{:?}", controls.denorm_behavior_independence));
    keep("rounding_mode_independence", format!("{:?}", controls.rounding_mode_independence));
    let signed_zero_inf_nan = [
        controls.shader_signed_zero_inf_nan_preserve_float16,
        controls.shader_signed_zero_inf_nan_preserve_float32,
        controls.shader_signed_zero_inf_nan_preserve_float64,
    ];
    keep("signed_zero_inf_nan_preserve_bits", width_list(signed_zero_inf_nan));
    for (key, mode) in [
        ("denorm_preserve_bits", FloatMode::DenormPreserve),
        ("denorm_flush_to_zero_bits", FloatMode::DenormFlush),
        ("rounding_mode_rte_bits", FloatMode::RoundToNearestEven),
        ("rounding_mode_rtz_bits", FloatMode::RoundTowardZero),
    ] {
        keep(key, width_list(supported(mode, &controls)));
    }
    keep("configurations_listed", listed.len().to_string());
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
        subgroup: width,
        max_workgroups: limits.max_compute_work_group_count[0],
        max_buffer_bytes: u64::from(limits.max_storage_buffer_range).min(maintenance3.max_memory_allocation_size),
        // SAFETY: as above.
        memory: unsafe { vulkan.get_physical_device_memory_properties(handle) },
        timestamps: Some((f64::from(limits.timestamp_period), families[queue_family as usize].timestamp_valid_bits))
            .filter(|(period_ns, bits)| *period_ns > 0.0 && *bits > 0),
    };
    Ok(Found { physical, info, operations, kernels, refusals })
}

/// The features used here, and whether `cooperativeMatrix` and `vulkanMemoryModel` are among those there.
fn features(instance: &Instance, handle: vk::PhysicalDevice, has: [bool; 3]) -> (Features, bool, bool) {
    let [has_bfloat16, has_float8, has_executables] = has;
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
        .push_next(&mut vulkan13)
        .push_next(&mut matrix);
    if has_bfloat16 {
        all = all.push_next(&mut bfloat16);
    }
    if has_float8 {
        all = all.push_next(&mut float8);
    }
    if has_executables {
        all = all.push_next(&mut executables);
    }
    // SAFETY: `handle` was enumerated from this instance; every structure is chained to one that it extends.
    unsafe { instance.handle.get_physical_device_features2(handle, &mut all) };
    let base = all.features;
    let there = |feature: vk::Bool32| feature == vk::TRUE;
    let features = Features {
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
    };
    (features, there(matrix.cooperative_matrix), there(vulkan12.vulkan_memory_model))
}

/// The operation of a configuration and its kernel; else what it is, as far as it has a name, and why it cannot be run.
fn usable(
    configuration: &vk::CooperativeMatrixPropertiesKHR<'_>,
    features: &Features,
    subgroup_size: u32,
) -> Result<(OperationId, Kernel), (Option<String>, Error)> {
    let &vk::CooperativeMatrixPropertiesKHR { m_size, n_size, k_size, a_type, b_type, c_type, result_type, .. } =
        configuration;
    let types = [a_type, b_type, c_type, result_type];
    let components = types.map(Component::of);
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

/// Whether a mode can be asked for at 16, 32 and 64 bits.
fn supported(mode: FloatMode, controls: &vk::PhysicalDeviceFloatControlsProperties<'_>) -> [vk::Bool32; 3] {
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
    }
}

/// The widths at which a mode is asked for in a floating configuration, or `None` where it cannot be.
///
/// 16 and 32 bits both, whatever the operands, because the accumulation may be wider than they are; 64 where an operand
/// is, or where it has to be the same as 16 (*specified*: `VUID-RuntimeSpirv-denormBehaviorIndependence-06289` and
/// `-06290`, `VUID-RuntimeSpirv-roundingModeIndependence-06291` and `-06292`).
fn mode_widths(
    mode: FloatMode,
    components: [Component; 4],
    controls: &vk::PhysicalDeviceFloatControlsProperties<'_>,
) -> Option<Vec<u32>> {
    if components[3].format().is_integer() {
        return None;
    }
    let independence = match mode {
        FloatMode::DenormPreserve | FloatMode::DenormFlush => controls.denorm_behavior_independence,
        FloatMode::RoundToNearestEven | FloatMode::RoundTowardZero => controls.rounding_mode_independence,
    };
    let [has16, has32, has64] = supported(mode, controls).map(|there| there == vk::TRUE);
    let wants64 = components.contains(&Component::F64);
    let [use16, use32, use64] = match independence {
        vk::ShaderFloatControlsIndependence::ALL => [has16, has32, has64 && wants64],
        vk::ShaderFloatControlsIndependence::TYPE_32_ONLY => [has16 && has64, has32, has16 && has64],
        _ => [has16 && has32 && has64; 3],
    };
    let widths: Vec<u32> =
        [(16, use16), (32, use32), (64, use64)].into_iter().filter_map(|(width, used)| used.then_some(width)).collect();
    (!widths.is_empty()).then_some(widths)
}

fn width_list(there: [vk::Bool32; 3]) -> String {
    let widths: Vec<&str> = ["16", "32", "64"]
        .into_iter()
        .zip(there)
        .filter_map(|(width, there)| (there == vk::TRUE).then_some(width))
        .collect();
    if widths.is_empty() { "none".to_owned() } else { widths.join(" ") }
}

fn text<E>(name: Result<&CStr, E>) -> String {
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A short name of a driver that does not change with its version: `mesa_radv`, `nvidia_proprietary`.
fn driver_word(id: vk::DriverId) -> String {
    let word = format!("{id:?}").to_lowercase();
    if word.bytes().all(|byte| byte.is_ascii_digit()) { format!("driver{word}") } else { word }
}

/// What else selects the device: its driver's name, and the architecture that Mesa puts in brackets.
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

    #[test]
    fn modes_of_16_and_64_bits_are_asked_for_together_where_they_have_to_agree() {
        type Independence = vk::ShaderFloatControlsIndependence;
        let floats = [Component::F16, Component::F16, Component::F32, Component::F32];
        for (independence, there, expected) in [
            (Independence::ALL, [1, 1, 1], Some(vec![16, 32])),
            (Independence::ALL, [0, 1, 1], Some(vec![32])),
            (Independence::ALL, [0, 0, 1], None),
            (Independence::TYPE_32_ONLY, [1, 1, 1], Some(vec![16, 32, 64])),
            (Independence::TYPE_32_ONLY, [1, 1, 0], Some(vec![32])),
            (Independence::TYPE_32_ONLY, [1, 0, 0], None),
            (Independence::NONE, [1, 1, 1], Some(vec![16, 32, 64])),
            (Independence::NONE, [1, 1, 0], None),
        ] {
            let controls = vk::PhysicalDeviceFloatControlsProperties {
                rounding_mode_independence: independence,
                shader_rounding_mode_rte_float16: there[0],
                shader_rounding_mode_rte_float32: there[1],
                shader_rounding_mode_rte_float64: there[2],
                ..Default::default()
            };
            assert_eq!(
                mode_widths(FloatMode::RoundToNearestEven, floats, &controls),
                expected,
                "{independence:?} {there:?}"
            );
            assert_eq!(mode_widths(FloatMode::RoundToNearestEven, [Component::S32; 4], &controls), None);
        }
    }

    #[test]
    fn aliases_are_the_driver_and_the_architecture() {
        assert_eq!(aliases("AMD Radeon RX 9070 XT (RADV GFX1201)", vk::DriverId::MESA_RADV), ["radv", "gfx1201"]);
        assert_eq!(aliases("llvmpipe (LLVM 21.1.8, 256 bits)", vk::DriverId::MESA_LLVMPIPE), ["lavapipe"]);
        assert_eq!(driver_word(vk::DriverId::MESA_RADV), "mesa_radv");
        assert_eq!(driver_word(vk::DriverId::from_raw(9999)), "driver9999");
    }
}
