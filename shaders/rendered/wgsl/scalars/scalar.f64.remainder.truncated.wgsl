@group(0) @binding(0) var<storage, read> operands: array<f64>;
@group(0) @binding(1) var<storage, read_write> results: array<f64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x0 = operands[id.x * 2u + 0u];
    let x1 = operands[id.x * 2u + 1u];
    results[id.x] = x0 % x1;
}
