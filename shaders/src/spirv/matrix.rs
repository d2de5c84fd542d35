//! One cooperative-matrix multiply-add, for every configuration that a driver can list.
//!
//! One workgroup of one subgroup computes one tile: load A, B and C, multiply-add, store D. Encodings are *specified*
//! by the SPIR-V specification 1.6 (2.3 and 3), `SPV_KHR_cooperative_matrix`, `SPV_KHR_bfloat16` and `SPV_EXT_float8`.

use ::spirv::{Capability, CooperativeMatrixLayout, CooperativeMatrixOperands, CooperativeMatrixUse, Op};

use super::component::Component;
use super::float_mode::Asked;
use super::module::{Buffer, Module, op};

/// One configuration as its shader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// m, n, k of one multiply-add.
    pub shape: (u32, u32, u32),
    /// Components of A, B, C and D.
    pub components: [Component; 4],
    /// Whether the accumulation saturates.
    pub saturating: bool,
    /// The number of invocations in the subgroup that computes a tile.
    pub subgroup_size: u32,
    /// A float-controls mode and the widths for which it is requested.
    pub mode: Option<Asked>,
}

impl Kernel {
    /// The module, with entry point `main`: set 0 bindings 0 to 3 hold A, B, C and D of every tile, row-major; a push
    /// constant holds the index of the tile that workgroup 0 computes.
    ///
    /// `steps` multiply-adds are chained: a tile of A is m×(k·steps), one of B (k·steps)×n, and the accumulator of one
    /// step is C of the next, in the order of k.
    #[must_use]
    pub fn words(&self, steps: u32) -> Vec<u32> {
        let (m, n, k) = self.shape;
        let all_k = k * steps;
        let mut module = Module::default();
        for capability in [Capability::Shader, Capability::CooperativeMatrixKHR, Capability::VulkanMemoryModel] {
            module.capability(capability);
        }
        module.extension("SPV_KHR_cooperative_matrix");
        self.components.into_iter().for_each(|component| module.needs(component));

        let entry = module.entry(1);
        let buffers = module.buffers(self.components);
        let [a, b, c, d] = self.components;
        let matrix_a = module.matrix(a, m, k, CooperativeMatrixUse::MatrixAKHR);
        let matrix_b = module.matrix(b, k, n, CooperativeMatrixUse::MatrixBKHR);
        let matrix_c = module.matrix(c, m, n, CooperativeMatrixUse::MatrixAccumulatorKHR);
        let matrix_d = module.matrix(d, m, n, CooperativeMatrixUse::MatrixAccumulatorKHR);
        let row_major = module.constant(CooperativeMatrixLayout::RowMajorKHR as u32);

        let tile = module.begin(&entry);
        // The element of `buffer` at `offset` in this tile.
        let element_of = |module: &mut Module, buffer: Buffer, per_tile: u32, offset: u32| {
            let per_tile = module.constant(per_tile);
            let mut at = module.result(Op::IMul, entry.uint, &[tile, per_tile]);
            if offset != 0 {
                let offset = module.constant(offset);
                at = module.result(Op::IAdd, entry.uint, &[at, offset]);
            }
            module.element(buffer, at)
        };
        let [stride_a, stride_n] = [module.constant(all_k), module.constant(n)];
        let pointer_c = element_of(&mut module, buffers[2], m * n, 0);
        let mut sum = module.result(Op::CooperativeMatrixLoadKHR, matrix_c, &[pointer_c, row_major, stride_n]);
        for step in 0..steps {
            let pointer_a = element_of(&mut module, buffers[0], m * all_k, step * k);
            let tile_a = module.result(Op::CooperativeMatrixLoadKHR, matrix_a, &[pointer_a, row_major, stride_a]);
            let pointer_b = element_of(&mut module, buffers[1], all_k * n, step * k * n);
            let tile_b = module.result(Op::CooperativeMatrixLoadKHR, matrix_b, &[pointer_b, row_major, stride_n]);
            sum = self.multiply_add(&mut module, matrix_d, [tile_a, tile_b, sum]);
        }
        let pointer_d = element_of(&mut module, buffers[3], m * n, 0);
        op(&mut module.code, Op::CooperativeMatrixStoreKHR, &[pointer_d, sum, row_major, stride_n]);
        module.finish(&entry, self.subgroup_size, self.mode.as_ref())
    }

    /// Multiplies and adds; returns the sum.
    pub(super) fn multiply_add(&self, module: &mut Module, matrix_d: u32, operands: [u32; 3]) -> u32 {
        let flags = self.operand_flags();
        let mut operands = operands.to_vec();
        operands.extend((flags != 0).then_some(flags));
        module.result(Op::CooperativeMatrixMulAddKHR, matrix_d, &operands)
    }

    /// The Cooperative Matrix Operands: which operands are signed, and whether the sum saturates. They must be those of
    /// the listed configuration (*specified*: `VUID-RuntimeSpirv-OpCooperativeMatrixMulAddKHR-10060`).
    fn operand_flags(&self) -> u32 {
        let signed = (0..).zip(self.components).map(|(bit, component)| u32::from(component.is_signed_integer()) << bit);
        signed.sum::<u32>()
            | if self.saturating { CooperativeMatrixOperands::SATURATING_ACCUMULATION_KHR.bits() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use ::spirv::{BuiltIn, Decoration};

    use super::*;
    use crate::spirv::module::literal;

    fn kernel(components: [Component; 4], saturating: bool) -> Kernel {
        Kernel { shape: (16, 8, 32), components, saturating, subgroup_size: 32, mode: None }
    }

    /// Opcode and operands of each instruction.
    fn instructions(words: &[u32]) -> Vec<(Op, Vec<u32>)> {
        let mut rest = &words[5..];
        let mut all = Vec::new();
        while let [first, ..] = rest {
            let (now, next) = rest.split_at((first >> 16) as usize);
            all.push((Op::from_u32(first & 0xffff).expect("an opcode"), now[1..].to_vec()));
            rest = next;
        }
        all
    }

    #[test]
    fn the_header_is_that_of_spirv_1_6_and_the_instructions_fill_the_module() {
        let words = kernel([Component::F16, Component::F16, Component::F32, Component::F32], false).words(1);
        assert_eq!(words[..3], [0x0723_0203, 0x0001_0600, 0]);
        let all = instructions(&words);
        assert_eq!(all.first().unwrap().0, Op::Capability);
        assert_eq!(all.last().unwrap().0, Op::FunctionEnd);
        assert_eq!(all.iter().map(|(_, operands)| operands.len() + 1).sum::<usize>() + 5, words.len());
    }

    #[test]
    fn a_type_or_constant_is_declared_once() {
        let words = kernel([Component::S8; 4], false).words(3);
        let mut declared: Vec<_> = instructions(&words)
            .into_iter()
            .filter(|(opcode, _)| format!("{opcode:?}").starts_with("Type"))
            .map(|(opcode, operands)| (opcode as u32, operands[1..].to_vec()))
            .collect();
        let count = declared.len();
        declared.sort();
        declared.dedup();
        assert_eq!(declared.len(), count);
    }

    #[test]
    fn the_operands_say_which_are_signed_and_whether_the_sum_saturates() {
        use Component::{F16, S8, S32, U8, U32};
        for (components, saturating, flags) in [
            ([F16; 4], false, 0),
            ([U8, U8, U32, U32], false, 0),
            ([S8, S8, S32, S32], false, 1 | 2 | 4 | 8),
            ([U8, S8, S32, S32], true, 2 | 4 | 8 | 16),
        ] {
            assert_eq!(kernel(components, saturating).operand_flags(), flags, "{components:?}");
        }
    }

    #[test]
    fn chained_steps_are_as_many_multiply_adds() {
        for steps in [1, 2, 5] {
            let words = kernel([Component::F16; 4], false).words(steps);
            let found =
                instructions(&words).iter().filter(|(opcode, _)| *opcode == Op::CooperativeMatrixMulAddKHR).count();
            assert_eq!(found, steps as usize);
        }
    }

    /// The value of an id of the shader.
    #[derive(Clone, Debug)]
    enum Value {
        Integer(usize),
        Buffer(u32, usize),
        Matrix(Vec<i64>),
    }

    /// Interprets the shader on integers, for workgroup `group` with `first` as the tile of workgroup 0. `buffers` are
    /// A, B, C and D.
    fn interpret(words: &[u32], group: usize, first: usize, buffers: &mut [Vec<i64>; 4]) {
        let all = instructions(words);
        let found = |wanted: Op| all.iter().filter(move |(opcode, _)| *opcode == wanted).map(|(_, operands)| operands);
        let constants: HashMap<u32, usize> = found(Op::Constant).map(|of| (of[1], of[2] as usize)).collect();
        // Rows and columns by the id of the type.
        let sizes: HashMap<u32, (usize, usize)> =
            found(Op::TypeCooperativeMatrixKHR).map(|of| (of[0], (constants[&of[3]], constants[&of[4]]))).collect();
        let decorations: Vec<_> = found(Op::Decorate).collect();
        let binding: HashMap<u32, u32> =
            decorations.iter().filter(|of| of[1] == Decoration::Binding as u32).map(|of| (of[0], of[2])).collect();
        let built_in = decorations
            .iter()
            .find(|of| of[1] == Decoration::BuiltIn as u32 && of[2] == BuiltIn::WorkgroupId as u32)
            .unwrap()[0];
        let mut values: HashMap<u32, Value> = constants.iter().map(|(id, at)| (*id, Value::Integer(*at))).collect();
        let mut shapes: HashMap<u32, (usize, usize)> = HashMap::new();
        for (opcode, of) in &all {
            let integer = |id: u32| match &values[&id] {
                Value::Integer(value) => *value,
                other => panic!("{other:?} is not an integer"),
            };
            let place = |id: u32| match &values[&id] {
                Value::Buffer(buffer, at) => (*buffer as usize, *at),
                other => panic!("{other:?} is not an element of a buffer"),
            };
            let matrix = |id: u32| match &values[&id] {
                Value::Matrix(matrix) => matrix.clone(),
                other => panic!("{other:?} is not a matrix"),
            };
            let value = match *opcode {
                Op::Load if of[2] == built_in => Value::Integer(group),
                Op::Load => Value::Integer(first),
                Op::CompositeExtract => values[&of[2]].clone(),
                Op::IAdd => Value::Integer(integer(of[2]) + integer(of[3])),
                Op::IMul => Value::Integer(integer(of[2]) * integer(of[3])),
                Op::AccessChain => match binding.get(&of[2]) {
                    Some(buffer) => Value::Buffer(*buffer, integer(of[4])),
                    None => Value::Integer(first),
                },
                Op::CooperativeMatrixLoadKHR => {
                    let ((rows, columns), (buffer, at), stride) = (sizes[&of[0]], place(of[2]), integer(of[4]));
                    assert_eq!(integer(of[3]), CooperativeMatrixLayout::RowMajorKHR as usize);
                    shapes.insert(of[1], (rows, columns));
                    let element = |index: usize| buffers[buffer][at + index / columns * stride + index % columns];
                    Value::Matrix((0..rows * columns).map(element).collect())
                }
                Op::CooperativeMatrixMulAddKHR => {
                    let ((m, k), (_, n)) = (shapes[&of[2]], shapes[&of[3]]);
                    assert_eq!((shapes[&of[3]].0, shapes[&of[4]]), (k, (m, n)));
                    shapes.insert(of[1], (m, n));
                    let (a, b, c) = (matrix(of[2]), matrix(of[3]), matrix(of[4]));
                    let dot =
                        |row: usize, column: usize| (0..k).map(|at| a[row * k + at] * b[at * n + column]).sum::<i64>();
                    Value::Matrix((0..m * n).map(|at| dot(at / n, at % n) + c[at]).collect())
                }
                Op::CooperativeMatrixStoreKHR => {
                    let ((buffer, start), (_, columns), stride) = (place(of[0]), shapes[&of[1]], integer(of[3]));
                    for (at, element) in matrix(of[1]).into_iter().enumerate() {
                        buffers[buffer][start + at / columns * stride + at % columns] = element;
                    }
                    continue;
                }
                _ => continue,
            };
            values.insert(of[1], value);
        }
    }

    #[test]
    fn the_shader_multiplies_row_major_tiles_of_any_shape_and_number_of_steps() {
        for shape in [(16, 8, 32), (8, 16, 4), (4, 2, 3), (8, 8, 8)] {
            for steps in [1, 3] {
                let (m, n, k) = (shape.0 as usize, shape.1 as usize, (shape.2 * steps) as usize);
                let tiles = 4;
                let numbers = |len: usize, factor: i64| (1..).map(|at: i64| at * factor % 23 - 11).take(len).collect();
                let mut buffers: [Vec<i64>; 4] = [
                    numbers(tiles * m * k, 7),
                    numbers(tiles * k * n, 5),
                    numbers(tiles * m * n, 3),
                    vec![99; tiles * m * n],
                ];
                let kernel = Kernel {
                    shape,
                    ..kernel([Component::F16, Component::Bf16, Component::F32, Component::F32], false)
                };
                // Tile 0 alone, then the others relative to a base.
                interpret(&kernel.words(steps), 0, 0, &mut buffers);
                for group in 0..tiles - 1 {
                    interpret(&kernel.words(steps), group, 1, &mut buffers);
                }
                let [a, b, c, d] = &buffers;
                for at in 0..tiles * m * n {
                    let (tile, row, column) = (at / (m * n), at / n % m, at % n);
                    let products = (0..k).map(|i| a[(tile * m + row) * k + i] * b[(tile * k + i) * n + column]);
                    assert_eq!(d[at], products.sum::<i64>() + c[at], "{shape:?}, {steps} steps, element {at}");
                }
            }
        }
    }

    #[test]
    fn a_literal_ends_in_a_null_byte() {
        assert_eq!(literal("main"), [u32::from_le_bytes(*b"main"), 0]);
        assert_eq!(literal("abc"), [u32::from_le_bytes(*b"abc\0")]);
    }
}
