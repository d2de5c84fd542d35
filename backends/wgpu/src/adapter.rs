//! Adapters: their description, and what can run on them.

use std::collections::BTreeMap;

use mxprobe_api::{
    DeviceInfo, DeviceKind, Driver, Error, Format, Operation, OperationId, OperationSet, Refusal, Scalar,
};
use mxprobe_shaders::wgsl::Kernel;
use mxprobe_shaders::wgsl::scalar::scalars;
use wgpu::{Backends, Features};

use crate::matrix;
use crate::native::native;

/// The APIs that are searched. OpenGL is excluded, because its drivers do not compile the shaders as written.
pub(crate) const APIS: Backends = Backends::VULKAN.union(Backends::METAL).union(Backends::DX12);

/// The version of wgpu and of naga, which compiles the shaders; a test compares it with the lock file.
pub(crate) const WGPU_VERSION: &str = "30.0.1";

/// Everything known about an adapter without opening it.
pub(crate) struct Found {
    pub(crate) adapter: wgpu::Adapter,
    /// The features to request when opening it.
    pub(crate) features: Features,
    pub(crate) info: DeviceInfo,
    pub(crate) operations: OperationSet,
    pub(crate) kernels: BTreeMap<OperationId, Kernel>,
    pub(crate) scalars: Vec<Scalar>,
    pub(crate) refusals: Vec<Refusal>,
}

/// Queries everything about one adapter.
pub(crate) fn examine(index: usize, adapter: wgpu::Adapter) -> Result<Found, Refusal> {
    let selector = format!("wgpu:{index}");
    let basic = adapter.get_info();
    let api = basic.backend.to_str();
    if !adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
        return Err(Refusal {
            what: format!("{selector} ({})", basic.name),
            reason: Error::unsupported(format!("the adapter has no compute shaders through {api}")),
            help: None,
        });
    }
    let native = native(&adapter, &selector);
    let has = adapter.features();
    let mut features = has & (Features::SHADER_F16 | Features::SHADER_F64);
    let mut refusals = Vec::new();
    let mut kernels = BTreeMap::new();
    let shown = adapter.cooperative_matrix_properties();
    let matrices = match &native {
        // wgpu checks only the extension, but a driver may list that without the feature (*measured*: llvmpipe 26.1
        // with vectors of 128 bits); opening a device that requests it then fails.
        Some(native) if native.configurations > 0 && !native.cooperative_matrix => {
            Err(format!("{} configurations are listed, and the feature cooperativeMatrix is false", shown.len()))
        }
        _ if !has.contains(Features::EXPERIMENTAL_COOPERATIVE_MATRIX) => match native.as_ref() {
            Some(native) if native.configurations > 0 => {
                Err(format!("the driver lists {} configurations, and wgpu shows none of them", native.configurations))
            }
            _ => Err(format!("the adapter has no cooperative matrices through {api}")),
        },
        _ => Ok(()),
    };
    match matrices {
        Ok(()) => {
            features |= Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
            for configuration in &shown {
                let has_f16 = has.contains(Features::SHADER_F16);
                // No workgroup may be narrower than a subgroup (*specified*:
                // VUID-VkPipelineShaderStageCreateInfo-module-08987), and wgpu does not say how wide the driver makes
                // one.
                match matrix::operation(configuration, has_f16, basic.subgroup_max_size) {
                    (id, Ok(kernel)) => drop(kernels.insert(id, kernel)),
                    // Covered by the driver's own list below.
                    (_, Err(_)) if native.is_some() => {}
                    (id, Err(reason)) => {
                        refusals.push(Refusal { what: format!("{selector} {id}"), reason, help: None });
                    }
                }
            }
        }
        Err(reason) => refusals.push(Refusal {
            what: format!("{selector} cooperative matrices"),
            reason: Error::unsupported(reason),
            help: None,
        }),
    }
    let mut values = properties(&basic, has, api);
    let mut keep = |key: &str, value: String| values.insert(key.to_owned(), value);
    keep("configurations_shown", shown.len().to_string());
    let mut driver = Driver {
        name: if basic.driver.is_empty() { api.to_owned() } else { basic.driver.clone() },
        version: basic.driver_info.clone(),
        api_version: api.to_owned(),
    };
    let mut driver_word = api.to_owned();
    if let Some(native) = native {
        keep("configurations_listed", native.configurations.to_string());
        keep("device_uuid", native.device_uuid);
        driver.api_version = native.api_version;
        driver_word = native.driver_word;
        refusals.extend(native.hidden);
    }
    let operations: OperationSet =
        kernels.keys().map(|id| (id.clone(), Operation::new(id.clone(), "subgroup"))).collect();
    let formats: Vec<Format> =
        [(Features::SHADER_F16, Format::F16), (Features::empty(), Format::F32), (Features::SHADER_F64, Format::F64)]
            .into_iter()
            .filter_map(|(needed, format)| features.contains(needed).then_some(format))
            .collect();
    let info = DeviceInfo {
        backend: "wgpu".to_owned(),
        selector,
        fingerprint: fingerprint(&basic, &driver_word),
        kind: if basic.device_type == wgpu::DeviceType::Cpu { DeviceKind::Software } else { DeviceKind::Hardware },
        emulated: false,
        aliases: aliases(&basic.driver, api),
        name: basic.name,
        driver: Some(driver),
        properties: values,
    };
    Ok(Found { adapter, features, info, operations, kernels, scalars: scalars(&formats), refusals })
}

/// The properties for reports, some of them under the same keys as in the Vulkan backend, which show that both backends
/// reach the same device.
fn properties(basic: &wgpu::AdapterInfo, has: Features, api: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut keep = |key: &str, value: String| values.insert(key.to_owned(), value);
    keep("api", api.to_owned());
    keep("kernel_form", "WGSL".to_owned());
    keep("wgpu_version", WGPU_VERSION.to_owned());
    keep("vendor_id", format!("{:#06x}", basic.vendor));
    keep("device_id", format!("{:#06x}", basic.device));
    keep("device_type", format!("{:?}", basic.device_type));
    if !basic.device_pci_bus_id.is_empty() {
        keep("pci_bus_id", basic.device_pci_bus_id.clone());
    }
    keep("subgroup_size_min", basic.subgroup_min_size.to_string());
    keep("subgroup_size_max", basic.subgroup_max_size.to_string());
    let known = [
        (Features::SHADER_F16, "SHADER_F16"),
        (Features::SHADER_F64, "SHADER_F64"),
        (Features::EXPERIMENTAL_COOPERATIVE_MATRIX, "EXPERIMENTAL_COOPERATIVE_MATRIX"),
    ];
    let there: Vec<&str> = known.into_iter().filter_map(|(each, name)| has.contains(each).then_some(name)).collect();
    keep("features", there.join(" "));
    values
}

/// The fingerprint: vendor, device and driver, or the name instead of the numbers if the API has none (Metal).
fn fingerprint(basic: &wgpu::AdapterInfo, driver_word: &str) -> String {
    if basic.vendor == 0 && basic.device == 0 {
        let words = basic.name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name: Vec<String> = words.map(str::to_lowercase).collect();
        return format!("{}-{driver_word}", name.join("_"));
    }
    format!("{:04x}-{:04x}-{driver_word}", basic.vendor, basic.device)
}

/// Other selectors of the device: its driver and its API. Mesa's llvmpipe is commonly called `lavapipe` for Vulkan.
fn aliases(driver: &str, api: &str) -> Vec<String> {
    let short = match driver {
        "llvmpipe" => "lavapipe".to_owned(),
        other => other.to_lowercase().replace(' ', "-"),
    };
    [short, api.to_owned()].into_iter().filter(|alias| !alias.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_named_in_reports_is_that_of_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        for name in ["wgpu", "naga"] {
            let entry = format!("name = \"{name}\"\nversion = \"{WGPU_VERSION}\"\n");
            assert!(lock.contains(&entry), "{name} in Cargo.lock is not {WGPU_VERSION}");
        }
    }

    #[test]
    fn a_fingerprint_is_made_of_numbers_where_there_are_any() {
        let mut basic = wgpu::AdapterInfo::new(wgpu::DeviceType::IntegratedGpu, wgpu::Backend::Metal);
        basic.name = "Apple M2 Pro".to_owned();
        assert_eq!(fingerprint(&basic, "metal"), "apple_m2_pro-metal");
        (basic.vendor, basic.device) = (0x1002, 0x7550);
        assert_eq!(fingerprint(&basic, "mesa_radv"), "1002-7550-mesa_radv");
    }
}
