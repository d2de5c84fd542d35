enable f16;
enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> c: array<f16>;
@group(0) @binding(3) var<storage, read_write> d: array<f16>;
@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) group: vec3<u32>) {
    let at = group.x * 64u;
    let tile_a = coopLoadT<coop_mat8x8<f32, A>>(&a[at], 8u);
    let tile_b = coopLoadT<coop_mat8x8<f32, B>>(&b[at], 8u);
    var sum = coopLoadT<coop_mat8x8<f16, C>>(&c[at], 8u);
    sum = coopMultiplyAdd(tile_a, tile_b, sum);
    coopStoreT(sum, &d[at], 8u);
}
