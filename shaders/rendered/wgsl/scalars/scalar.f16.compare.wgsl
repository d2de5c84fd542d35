enable f16;
@group(0) @binding(0) var<storage, read> operands: array<f16>;
@group(0) @binding(1) var<storage, read_write> results: array<i32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x0 = operands[id.x * 2u + 0u];
    let x1 = operands[id.x * 2u + 1u];
    results[id.x] = select(select(select(2, 0, x0 == x1), 1, x0 > x1), -1, x0 < x1);
}
