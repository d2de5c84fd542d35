use ash::vk;
use mxprobe_api::Format;

/// A component type of a cooperative matrix that has a [`Format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Component {
    F16,
    F32,
    F64,
    Bf16,
    E4m3,
    E5m2,
    S8,
    U8,
    S16,
    S32,
    U32,
}

/// `VkComponentTypeKHR` of `VK_KHR_shader_bfloat16` (*specified*: Vulkan 1.4, `VkComponentTypeKHR`).
const BFLOAT16: i32 = 1_000_141_000;
/// `VkComponentTypeKHR` of `VK_NV_cooperative_vector`; nothing but cooperative vectors takes them.
const SINT8_PACKED: i32 = 1_000_491_000;
const UINT8_PACKED: i32 = 1_000_491_001;
/// `VkComponentTypeKHR` of `VK_EXT_shader_float8`.
const FLOAT8_E4M3: i32 = 1_000_491_002;
const FLOAT8_E5M2: i32 = 1_000_491_003;

impl Component {
    /// The component of a raw `VkComponentTypeKHR`, where it has a format of ours.
    pub(crate) fn of(ty: vk::ComponentTypeKHR) -> Option<Self> {
        Some(match ty {
            vk::ComponentTypeKHR::FLOAT16 => Self::F16,
            vk::ComponentTypeKHR::FLOAT32 => Self::F32,
            vk::ComponentTypeKHR::FLOAT64 => Self::F64,
            vk::ComponentTypeKHR::SINT8 => Self::S8,
            vk::ComponentTypeKHR::UINT8 => Self::U8,
            vk::ComponentTypeKHR::SINT16 => Self::S16,
            vk::ComponentTypeKHR::SINT32 => Self::S32,
            vk::ComponentTypeKHR::UINT32 => Self::U32,
            other => match other.as_raw() {
                BFLOAT16 => Self::Bf16,
                FLOAT8_E4M3 => Self::E4m3,
                FLOAT8_E5M2 => Self::E5m2,
                _ => return None,
            },
        })
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::F16 => Format::F16,
            Self::F32 => Format::F32,
            Self::F64 => Format::F64,
            Self::Bf16 => Format::BF16,
            Self::E4m3 => Format::E4M3,
            Self::E5m2 => Format::E5M2,
            Self::S8 => Format::S8,
            Self::U8 => Format::U8,
            Self::S16 => Format::S16,
            Self::S32 => Format::S32,
            Self::U32 => Format::U32,
        }
    }

    pub(crate) fn bytes(self) -> u32 {
        self.format().bits() / 8
    }

    pub(crate) fn is_signed_integer(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32)
    }
}

/// What the Vulkan specification calls a component type, or its raw value.
pub(crate) fn name_of(ty: vk::ComponentTypeKHR) -> String {
    match ty.as_raw() {
        BFLOAT16 => "BFLOAT16".to_owned(),
        FLOAT8_E4M3 => "FLOAT8_E4M3".to_owned(),
        FLOAT8_E5M2 => "FLOAT8_E5M2".to_owned(),
        SINT8_PACKED => "SINT8_PACKED".to_owned(),
        UINT8_PACKED => "UINT8_PACKED".to_owned(),
        // ash prints the value of a variant it has no name for.
        _ => format!("{ty:?}"),
    }
}

#[cfg(test)]
mod tests {
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
            assert_eq!(Component::of(vk::ComponentTypeKHR::from_raw(raw)).map(Component::format), format, "{raw}");
        }
    }

    #[test]
    fn a_component_type_without_a_format_keeps_its_name_or_number() {
        assert_eq!(name_of(vk::ComponentTypeKHR::UINT64), "UINT64");
        assert_eq!(name_of(vk::ComponentTypeKHR::from_raw(1_000_491_000)), "SINT8_PACKED");
        assert_eq!(name_of(vk::ComponentTypeKHR::from_raw(77)), "77");
    }
}
