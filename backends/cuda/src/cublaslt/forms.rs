//! The products that cuBLASLt offers, by the formats of their operands.

use std::ffi::c_int;

use mxprobe_api::{Format, FreeOperation, Operation, OperationId};
use mxprobe_shaders::ptx::Capability;

/// The qualifier of fp8 products with fast accumulation.
const FAST: &str = "fast";

/// How a product is described to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// `cublasComputeType_t`.
    pub(super) compute: c_int,
    /// `cudaDataType_t` of alpha and beta.
    pub(super) scale: c_int,
    /// 1 in that type, little-endian.
    pub(super) one: [u8; 8],
    /// Whether both operands are passed with consecutive elements along k, the only layout that the library has for
    /// operands of eight bits.
    pub(super) k_major: bool,
    /// Whether fp8 products accumulate fast; `None` for other formats.
    pub(super) fast: Option<bool>,
    /// The first compute capability with these products.
    pub(super) first: Capability,
}

/// Pairs of formats of A and B, and the formats of C and D.
const FORMATS: &[(Format, Format, &[Format])] = &[
    (Format::F16, Format::F16, &[Format::F32, Format::F16]),
    (Format::BF16, Format::BF16, &[Format::F32, Format::BF16]),
    (Format::TF32, Format::TF32, &[Format::F32]),
    (Format::F32, Format::F32, &[Format::F32]),
    (Format::F64, Format::F64, &[Format::F64]),
    (Format::E4M3, Format::E4M3, FROM_FP8),
    (Format::E4M3, Format::E5M2, FROM_FP8),
    (Format::E5M2, Format::E4M3, FROM_FP8),
    (Format::S8, Format::S8, &[Format::S32]),
];

const FROM_FP8: &[Format] = &[Format::F32, Format::F16, Format::BF16];

/// `cublasComputeType_t` (cublas_api.h).
mod compute {
    use std::ffi::c_int;

    pub(super) const F32: c_int = 68;
    pub(super) const F64: c_int = 70;
    pub(super) const I32: c_int = 72;
    pub(super) const FAST_TF32: c_int = 77;
}

/// `cudaDataType_t` of a format (library_types.h).
pub(super) fn data_type(format: Format) -> c_int {
    match format {
        Format::F64 => 1,
        Format::F16 => 2,
        Format::S8 => 3,
        Format::S32 => 10,
        Format::BF16 => 14,
        Format::E4M3 => 28,
        Format::E5M2 => 29,
        // f32, and tf32, which is stored as f32.
        _ => 0,
    }
}

impl Form {
    /// The form of an operation, which must be one of [`operations`].
    pub(super) fn of(id: &OperationId) -> Self {
        let is_fp8 = |format| [Format::E4M3, Format::E5M2].contains(&format);
        let (compute, scale, one) = match id.a {
            Format::F64 => (compute::F64, Format::F64, 1f64.to_bits()),
            Format::S8 => (compute::I32, Format::S32, 1),
            Format::TF32 => (compute::FAST_TF32, Format::F32, 1f32.to_bits().into()),
            _ => (compute::F32, Format::F32, 1f32.to_bits().into()),
        };
        let first = match id.a {
            format if is_fp8(format) => Capability::new(8, 9),
            // Without the unit the library may compute tf32 and bf16 with other means.
            Format::TF32 | Format::BF16 => Capability::new(8, 0),
            _ => Capability::new(0, 0),
        };
        Self {
            compute,
            scale: data_type(scale),
            one: one.to_le_bytes(),
            k_major: id.a.bits() == 8,
            fast: is_fp8(id.a).then(|| id.has(FAST)),
            first,
        }
    }
}

/// Every product of the library that a device may have, with open sizes.
pub(super) fn operations() -> impl Iterator<Item = FreeOperation> {
    FORMATS.iter().flat_map(|(a, b, results)| results.iter().map(move |d| (*a, *b, *d))).flat_map(|(a, b, d)| {
        let id = OperationId::new("gemm", (1, 1, 1), d, a, b, d);
        let fast = Form::of(&id).fast.is_some().then(|| id.clone().with(FAST));
        std::iter::once(id).chain(fast).map(|id| {
            let pattern = id.to_string().replacen("m1n1k1", "m*n*k*", 1);
            let open = FreeOperation::read(&pattern).ok().flatten().expect("it leaves sizes open");
            open.described(|operation: &mut Operation| {
                "library".clone_into(&mut operation.scope);
                operation.instruction = Some("cublasLtMatmul".to_owned());
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_is_listed_once_and_fp8_with_and_without_fast_accumulation() {
        let patterns: Vec<String> = operations().map(|free| free.pattern().to_owned()).collect();
        let distinct: std::collections::BTreeSet<&String> = patterns.iter().collect();
        assert_eq!((patterns.len(), distinct.len()), (26, 26), "{patterns:?}");
        for wanted in [
            "gemm.m*n*k*.f32.e4m3.e4m3.f32",
            "gemm.m*n*k*.bf16.e4m3.e5m2.bf16.fast",
            "gemm.m*n*k*.f16.f16.f16.f16",
            "gemm.m*n*k*.f32.tf32.tf32.f32",
            "gemm.m*n*k*.s32.s8.s8.s32",
            "gemm.m*n*k*.f64.f64.f64.f64",
        ] {
            assert!(patterns.iter().any(|pattern| pattern == wanted), "{wanted}");
        }
        assert!(!patterns.iter().any(|pattern| pattern.contains("e5m2.e5m2")), "the library has none of both e5m2");
    }

    #[test]
    fn an_operation_is_described_in_the_numbers_of_the_headers() {
        let form = |id: &str| Form::of(&id.parse().unwrap());
        let fp8 = form("gemm.m16n16k64.f32.e4m3.e5m2.f32.fast");
        assert_eq!((fp8.compute, fp8.scale, fp8.k_major, fp8.fast), (68, 0, true, Some(true)));
        assert_eq!(fp8.one[..4], [0, 0, 0x80, 0x3f]);
        let tf32 = form("gemm.m16n16k64.f32.tf32.tf32.f32");
        assert_eq!((tf32.compute, tf32.k_major, tf32.fast), (77, false, None));
        let bytes = form("gemm.m16n16k64.s32.s8.s8.s32");
        assert_eq!((bytes.compute, bytes.scale, bytes.one[..4].to_vec()), (72, 10, vec![1, 0, 0, 0]));
        assert_eq!([Format::TF32, Format::BF16, Format::E5M2].map(data_type), [0, 14, 29]);
    }
}
