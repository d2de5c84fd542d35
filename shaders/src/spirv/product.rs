//! The shader of whole matrices: one workgroup per tile of D, along all of k.

use ::spirv::{CooperativeMatrixLayout, CooperativeMatrixUse, Op};

use super::matrix::Kernel;
use super::module::op;
use super::throughput_loop::Shader;

impl Kernel {
    /// Multiplies matrices that consist of whole tiles: set 0 bindings 0 to 3 hold A, B, C and D, row-major; the push
    /// constants are the number of operations along k and of tiles across. Workgroup i computes tile i of D, counted
    /// row by row, with k ascending and the sum of one operation being C of the next.
    #[must_use]
    pub fn product_words(&self) -> Vec<u32> {
        let (m, n, k) = self.shape;
        let mut shader = Shader::of_matrices(self.components, 2);
        let [a, b, _, d] = self.components;
        let matrix_a = shader.module.matrix(a, m, k, CooperativeMatrixUse::MatrixAKHR);
        let matrix_b = shader.module.matrix(b, k, n, CooperativeMatrixUse::MatrixBKHR);
        let matrix_d = shader.module.matrix(d, m, n, CooperativeMatrixUse::MatrixAccumulatorKHR);
        let uint = shader.entry.uint;
        let (variables, group, steps) = shader.begin(&[uint, matrix_d]);
        let (counter, sum) = (variables[0], variables[1]);
        let across = shader.module.pushed(&shader.entry, 1);
        let [buffer_a, buffer_b, buffer_c, buffer_d] = shader.buffers;
        let module = &mut shader.module;
        let [m, n, k, row_major] =
            [m, n, k, CooperativeMatrixLayout::RowMajorKHR as u32].map(|value| module.constant(value));
        let row = module.result(Op::UDiv, uint, &[group, across]);
        let column = module.result(Op::UMod, uint, &[group, across]);
        let stride_a = module.result(Op::IMul, uint, &[steps, k]);
        let stride_n = module.result(Op::IMul, uint, &[across, n]);
        let first_row = module.result(Op::IMul, uint, &[row, m]);
        let start_a = module.result(Op::IMul, uint, &[first_row, stride_a]);
        let first_column = module.result(Op::IMul, uint, &[column, n]);
        let start_d = module.result(Op::IMul, uint, &[first_row, stride_n]);
        let start_d = module.result(Op::IAdd, uint, &[start_d, first_column]);
        let of_c = module.element(buffer_c, start_d);
        let start = module.result(Op::CooperativeMatrixLoadKHR, matrix_d, &[of_c, row_major, stride_n]);
        op(&mut module.code, Op::Store, &[sum, start]);
        shader.repeat(counter, steps, |module| {
            let step = module.result(Op::Load, uint, &[counter]);
            let along = module.result(Op::IMul, uint, &[step, k]);
            let at_a = module.result(Op::IAdd, uint, &[start_a, along]);
            let of_a = module.element(buffer_a, at_a);
            let tile_a = module.result(Op::CooperativeMatrixLoadKHR, matrix_a, &[of_a, row_major, stride_a]);
            let at_b = module.result(Op::IMul, uint, &[along, stride_n]);
            let at_b = module.result(Op::IAdd, uint, &[at_b, first_column]);
            let of_b = module.element(buffer_b, at_b);
            let tile_b = module.result(Op::CooperativeMatrixLoadKHR, matrix_b, &[of_b, row_major, stride_n]);
            let before = module.result(Op::Load, matrix_d, &[sum]);
            let after = self.multiply_add(module, matrix_d, [tile_a, tile_b, before]);
            op(&mut module.code, Op::Store, &[sum, after]);
        });
        let module = &mut shader.module;
        let last = module.result(Op::Load, matrix_d, &[sum]);
        let of_d = module.element(buffer_d, start_d);
        op(&mut module.code, Op::CooperativeMatrixStoreKHR, &[of_d, last, row_major, stride_n]);
        shader.end(self.subgroup_size, self.mode.as_ref())
    }
}
