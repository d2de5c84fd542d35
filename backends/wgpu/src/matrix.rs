//! The cooperative matrix configurations that wgpu reports and that WGSL can express.

use mxprobe_api::{Error, Format, OperationId};
use mxprobe_shaders::wgsl::{Kernel, cannot_say};
use wgpu::CooperativeScalarType as Type;

/// Returns the operation of a configuration that wgpu reports, and its kernel or the reason why WGSL cannot express it.
pub(crate) fn operation(
    shown: &wgpu::CooperativeMatrixProperties,
    has_f16: bool,
    workgroup_size: u32,
) -> (OperationId, Result<Kernel, Error>) {
    let [ab, cr] = [shown.ab_type, shown.cr_type].map(|ty| match ty {
        Type::F16 => Format::F16,
        Type::F32 => Format::F32,
        Type::I32 => Format::S32,
        Type::U32 => Format::U32,
    });
    let (m, n, k) = (shown.m_size, shown.n_size, shown.k_size);
    let mut id = OperationId::new("coopmat", (m, n, k), cr, ab, ab, cr);
    if shown.saturating_accumulation {
        id = id.with("satfinite");
    }
    let kernel = match cannot_say((m, n, k), [ab, ab, cr, cr], shown.saturating_accumulation) {
        Some(reason) => Err(Error::unsupported(reason)),
        None if !has_f16 && [ab, cr].contains(&Format::F16) => {
            Err(Error::unsupported("the configuration is listed and the adapter has no SHADER_F16"))
        }
        None => Ok(Kernel { size: m, formats: [ab, cr], workgroup_size }),
    };
    (id, kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sizes: (u32, u32, u32), ab_type: Type, cr_type: Type) -> wgpu::CooperativeMatrixProperties {
        let (m_size, n_size, k_size) = sizes;
        wgpu::CooperativeMatrixProperties { m_size, n_size, k_size, ab_type, cr_type, saturating_accumulation: false }
    }

    #[test]
    fn a_configuration_has_the_formats_of_its_kernel() {
        for size in [8, 16] {
            for ab in [Type::F16, Type::F32] {
                for cr in [Type::F16, Type::F32] {
                    let (id, kernel) = operation(&shown((size, size, size), ab, cr), true, 32);
                    let Kernel { size: of_kernel, formats, .. } = kernel.unwrap();
                    assert_eq!((id.a, id.b, id.c, id.d), (formats[0], formats[0], formats[1], formats[1]));
                    assert_eq!(of_kernel, size);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused_with_the_value_that_decided_it() {
        for (sizes, ab, cr, part) in [
            ((16, 8, 16), Type::F16, Type::F32, "and this is m16n8k16"),
            ((16, 16, 16), Type::I32, Type::I32, "not of s32"),
            ((8, 8, 8), Type::U32, Type::U32, "not of u32"),
        ] {
            let reason = operation(&shown(sizes, ab, cr), true, 32).1.unwrap_err();
            assert!(reason.is_unsupported() && reason.to_string().contains(part), "{reason}");
        }
        let without_f16 = operation(&shown((8, 8, 8), Type::F16, Type::F32), false, 8).1.unwrap_err();
        assert!(without_f16.to_string().contains("SHADER_F16"), "{without_f16}");
        let saturating = wgpu::CooperativeMatrixProperties {
            saturating_accumulation: true,
            ..shown((8, 8, 8), Type::F16, Type::F16)
        };
        let (id, kernel) = operation(&saturating, true, 8);
        assert_eq!(id.to_string(), "coopmat.m8n8k8.f16.f16.f16.f16.satfinite");
        assert!(kernel.unwrap_err().to_string().contains("saturate"));
    }
}
