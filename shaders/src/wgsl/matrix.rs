//! Cooperative matrices: the configurations that WGSL can express, and their shaders.
//!
//! naga 30 supports `coop_mat8x8` and `coop_mat16x16` of f16 and f32 in the roles A, B and C, so m = n = k. wgpu
//! exposes configurations of subgroup scope with sizes 8 or 16, with one type for A and B and one for C and the result.

use mxprobe_api::Format;

/// A configuration that WGSL can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// m, n and k.
    pub size: u32,
    /// The formats of A and B, and of C and D.
    pub formats: [Format; 2],
    /// The number of invocations in a workgroup: no subgroup is wider.
    pub workgroup_size: u32,
}

/// WGSL's name of a format.
pub(super) fn wgsl_type(format: Format) -> Option<&'static str> {
    [(Format::F16, "f16"), (Format::F32, "f32"), (Format::F64, "f64")]
        .into_iter()
        .find_map(|(each, name)| (each == format).then_some(name))
}

/// Says why WGSL cannot express a configuration with these sizes and formats of A, B, C and D; `None` if it can.
#[must_use]
pub fn cannot_say((m, n, k): (u32, u32, u32), [a, b, c, d]: [Format; 4], saturating: bool) -> Option<String> {
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
    /// The number of bytes in one tile of A, B, C and D.
    #[must_use]
    pub fn tile_bytes(&self) -> [usize; 4] {
        let [ab, cr] = self.formats.map(|format| (self.size * self.size) as usize * format.storage_bytes());
        [ab, ab, cr, cr]
    }

    /// The shader: bindings 0 to 3 hold A, B, C and D of every tile, row-major; one workgroup computes one tile. A
    /// workgroup of several subgroups computes it once in each.
    #[must_use]
    pub fn shader(&self) -> String {
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
