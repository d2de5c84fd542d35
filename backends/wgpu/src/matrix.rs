//! Cooperative matrices in WGSL: which configurations it can say, and their shaders.
//!
//! naga 30 knows `coop_mat8x8` and `coop_mat16x16` of f16 and f32 in the roles A, B and C, so that m = n = k; wgpu shows
//! configurations of subgroup scope whose sizes are 8 or 16, whose A and B have one type and C and the result another.

use mxprobe_api::{Error, Format, OperationId};
use wgpu::CooperativeScalarType as Type;

/// One configuration that WGSL can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// m, n and k.
    pub(crate) size: u32,
    /// The formats of A and B, and of C and D.
    pub(crate) formats: [Format; 2],
    /// The invocations of a workgroup: no subgroup is wider.
    pub(crate) workgroup_size: u32,
}

/// WGSL's name of a format.
pub(crate) fn wgsl_type(format: Format) -> Option<&'static str> {
    [(Format::F16, "f16"), (Format::F32, "f32"), (Format::F64, "f64")]
        .into_iter()
        .find_map(|(each, name)| (each == format).then_some(name))
}

/// The operation of a configuration that wgpu shows, and its kernel where WGSL can say it.
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

/// Why WGSL cannot say a configuration of these sizes and of these formats of A, B, C and D.
pub(crate) fn cannot_say((m, n, k): (u32, u32, u32), [a, b, c, d]: [Format; 4], saturating: bool) -> Option<String> {
    let all = [a, b, c, d];
    if let Some(format) = all.into_iter().find(|format| ![Format::F16, Format::F32].contains(format)) {
        return Some(format!("WGSL has cooperative matrices of f16 and f32 alone, not of {format}"));
    }
    if m != n || n != k || ![8, 16].contains(&m) {
        return Some(format!("WGSL has cooperative matrices of 8x8 and 16x16 alone, and this is m{m}n{n}k{k}"));
    }
    if a != b || c != d {
        return Some(format!("wgpu shows configurations alone whose A and B, C and D agree: {a} {b}, {c} {d}"));
    }
    saturating.then(|| "WGSL cannot ask that the sum saturate".to_owned())
}

impl Kernel {
    /// Bytes of one tile of A, B, C and D.
    pub(crate) fn tile_bytes(&self) -> [usize; 4] {
        let [ab, cr] = self.formats.map(|format| (self.size * self.size) as usize * format.storage_bytes());
        [ab, ab, cr, cr]
    }

    /// The shader: bindings 0 to 3 hold A, B, C and D of every tile, row-major; one workgroup computes one tile. A
    /// workgroup of several subgroups computes it once in each.
    pub(crate) fn shader(&self) -> String {
        let Self { size, workgroup_size, .. } = self;
        let [ab, cr] = self.formats.map(|format| wgsl_type(format).expect("a format of WGSL"));
        let enable = if self.formats.contains(&Format::F16) { "enable f16;\n" } else { "" };
        let elements = size * size;
        // `coopLoadT` and `coopStoreT` are row-major. The sum has to be a `var`: without a variable of a matrix type
        // naga 30.0.1 declares neither the extension nor the memory model in the SPIR-V that it writes (*measured*).
        format!(
            "{enable}enable wgpu_cooperative_matrix;\n\
             @group(0) @binding(0) var<storage, read> a: array<{ab}>;\n\
             @group(0) @binding(1) var<storage, read> b: array<{ab}>;\n\
             @group(0) @binding(2) var<storage, read> c: array<{cr}>;\n\
             @group(0) @binding(3) var<storage, read_write> d: array<{cr}>;\n\
             @compute @workgroup_size({workgroup_size})\n\
             fn main(@builtin(workgroup_id) group: vec3<u32>) {{\n    \
                 let at = group.x * {elements}u;\n    \
                 let tile_a = coopLoadT<coop_mat{size}x{size}<{ab}, A>>(&a[at], {size}u);\n    \
                 let tile_b = coopLoadT<coop_mat{size}x{size}<{ab}, B>>(&b[at], {size}u);\n    \
                 var sum = coopLoadT<coop_mat{size}x{size}<{cr}, C>>(&c[at], {size}u);\n    \
                 sum = coopMultiplyAdd(tile_a, tile_b, sum);\n    \
                 coopStoreT(sum, &d[at], {size}u);\n\
             }}\n"
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use naga::back::{hlsl, msl, spv};
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    /// Compiles a shader as wgpu would, for each API whose shading language has the formats.
    pub(crate) fn compile(source: &str, formats: [Format; 2]) {
        let capabilities = Capabilities::SHADER_FLOAT16 | Capabilities::FLOAT64 | Capabilities::COOPERATIVE_MATRIX;
        let options = naga::front::wgsl::Options { capabilities, ..naga::front::wgsl::Options::new() };
        let module = naga::front::wgsl::Frontend::new_with_options(options).parse(source);
        let module = module.unwrap_or_else(|error| panic!("{}\n{source}", error.emit_to_string(source)));
        let info = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
        let info = info.unwrap_or_else(|error| panic!("{}\n{source}", error.emit_to_string(source)));

        let words = spv::write_vec(&module, &info, &spv::Options::default(), None).expect("SPIR-V");
        if source.contains("coop_mat") {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let name = b"SPV_KHR_cooperative_matrix";
            let extension = bytes.windows(name.len()).any(|window| window == name);
            assert!(extension, "the SPIR-V does not declare its extension:\n{source}");
        }
        // Neither Metal nor the HLSL of matrices: Metal has no f64, HLSL no cooperative matrix.
        if !formats.contains(&Format::F64) {
            let options = msl::Options { lang_version: (2, 3), fake_missing_bindings: true, ..msl::Options::default() };
            let text = msl::write_string(&module, &info, &options, &msl::PipelineOptions::default());
            text.unwrap_or_else(|error| panic!("Metal: {error}\n{source}"));
        }
        if !source.contains("coop_mat") {
            let options = hlsl::Options { shader_model: hlsl::ShaderModel::V6_2, ..hlsl::Options::default() };
            let pipeline = hlsl::PipelineOptions::default();
            let mut text = String::new();
            hlsl::Writer::new(&mut text, &options, &pipeline)
                .write(&module, &info, None)
                .unwrap_or_else(|error| panic!("HLSL: {error}\n{source}"));
        }
    }

    fn shown(sizes: (u32, u32, u32), ab_type: Type, cr_type: Type) -> wgpu::CooperativeMatrixProperties {
        let (m_size, n_size, k_size) = sizes;
        wgpu::CooperativeMatrixProperties { m_size, n_size, k_size, ab_type, cr_type, saturating_accumulation: false }
    }

    #[test]
    fn every_configuration_that_can_be_said_compiles() {
        for size in [8, 16] {
            for ab in [Type::F16, Type::F32] {
                for cr in [Type::F16, Type::F32] {
                    let (id, kernel) = operation(&shown((size, size, size), ab, cr), true, 32);
                    let kernel = kernel.unwrap();
                    assert_eq!(
                        (id.a, id.b, id.c, id.d),
                        (kernel.formats[0], kernel.formats[0], kernel.formats[1], id.c)
                    );
                    compile(&kernel.shader(), kernel.formats);
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
