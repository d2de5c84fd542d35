@group(0) @binding(0) var<storage, read> operands: array<f32>;
@group(0) @binding(1) var<storage, read_write> results: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x0 = operands[id.x * 8u + 0u];
    let x1 = operands[id.x * 8u + 1u];
    let x2 = operands[id.x * 8u + 2u];
    let x3 = operands[id.x * 8u + 3u];
    let x4 = operands[id.x * 8u + 4u];
    let x5 = operands[id.x * 8u + 5u];
    let x6 = operands[id.x * 8u + 6u];
    let x7 = operands[id.x * 8u + 7u];
    var zero = f32(0);
    results[id.x] = fma(x3, x7, fma(x2, x6, fma(x1, x5, fma(x0, x4, zero))));
}
