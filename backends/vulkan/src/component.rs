//! Translation of Vulkan component types to the components of shaders.

use ash::vk;
use mxprobe_shaders::spirv::Component;

/// `VkComponentTypeKHR` of `VK_KHR_shader_bfloat16` (*specified*: Vulkan 1.4, `VkComponentTypeKHR`).
const BFLOAT16: i32 = 1_000_141_000;
/// `VkComponentTypeKHR` of `VK_NV_cooperative_vector`; only cooperative vectors use them.
const SINT8_PACKED: i32 = 1_000_491_000;
const UINT8_PACKED: i32 = 1_000_491_001;
/// `VkComponentTypeKHR` of `VK_EXT_shader_float8`.
const FLOAT8_E4M3: i32 = 1_000_491_002;
const FLOAT8_E5M2: i32 = 1_000_491_003;

/// The component for a `VkComponentTypeKHR`; `None` if it has no format here.
pub(crate) fn component(ty: vk::ComponentTypeKHR) -> Option<Component> {
    Some(match ty {
        vk::ComponentTypeKHR::FLOAT16 => Component::F16,
        vk::ComponentTypeKHR::FLOAT32 => Component::F32,
        vk::ComponentTypeKHR::FLOAT64 => Component::F64,
        vk::ComponentTypeKHR::SINT8 => Component::S8,
        vk::ComponentTypeKHR::UINT8 => Component::U8,
        vk::ComponentTypeKHR::SINT16 => Component::S16,
        vk::ComponentTypeKHR::SINT32 => Component::S32,
        vk::ComponentTypeKHR::UINT32 => Component::U32,
        other => match other.as_raw() {
            BFLOAT16 => Component::Bf16,
            FLOAT8_E4M3 => Component::E4m3,
            FLOAT8_E5M2 => Component::E5m2,
            _ => return None,
        },
    })
}

/// The name of a component type in the Vulkan specification, or its raw value.
pub(crate) fn name_of(ty: vk::ComponentTypeKHR) -> String {
    match ty.as_raw() {
        BFLOAT16 => "BFLOAT16".to_owned(),
        FLOAT8_E4M3 => "FLOAT8_E4M3".to_owned(),
        FLOAT8_E5M2 => "FLOAT8_E5M2".to_owned(),
        SINT8_PACKED => "SINT8_PACKED".to_owned(),
        UINT8_PACKED => "UINT8_PACKED".to_owned(),
        // ash prints the value of a variant that it has no name for.
        _ => format!("{ty:?}"),
    }
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Format;

    use super::*;

    #[test]
    fn raw_values_of_later_extensions_are_known() {
        for (raw, format) in [
            (0, Some(Format::F16)),
            (1_000_141_000, Some(Format::BF16)),
            (1_000_491_002, Some(Format::E4M3)),
            (1_000_491_003, Some(Format::E5M2)),
            (1_000_491_000, None),
            (77, None),
        ] {
            assert_eq!(component(vk::ComponentTypeKHR::from_raw(raw)).map(Component::format), format, "{raw}");
        }
    }

    #[test]
    fn a_component_type_without_a_format_keeps_its_name_or_number() {
        assert_eq!(name_of(vk::ComponentTypeKHR::UINT64), "UINT64");
        assert_eq!(name_of(vk::ComponentTypeKHR::from_raw(1_000_491_000)), "SINT8_PACKED");
        assert_eq!(name_of(vk::ComponentTypeKHR::from_raw(77)), "77");
    }
}
