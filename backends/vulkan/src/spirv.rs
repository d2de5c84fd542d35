//! The SPIR-V of one cooperative-matrix multiply-add, for every configuration a driver can list.
//!
//! One workgroup of one subgroup computes one tile: load A, B and C, multiply-add, store D. Encodings are *specified* by
//! the SPIR-V specification 1.6 (2.3 and 3), `SPV_KHR_cooperative_matrix`, `SPV_KHR_bfloat16` and `SPV_EXT_float8`.

pub(crate) mod resident;

use std::collections::HashMap;

use crate::component::Component;

/// One configuration as its shader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// m, n, k of one multiply-add.
    pub(crate) shape: (u32, u32, u32),
    /// Components of A, B, C and D.
    pub(crate) components: [Component; 4],
    /// Whether the accumulation saturates.
    pub(crate) saturating: bool,
    /// The invocations of the one subgroup that computes a tile.
    pub(crate) subgroup_size: u32,
    /// A float-controls mode and the widths that it is asked for.
    pub(crate) mode: Option<(FloatMode, Vec<u32>)>,
}

/// An execution mode of `SPV_KHR_float_controls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatMode {
    DenormPreserve,
    DenormFlush,
    RoundToNearestEven,
    RoundTowardZero,
}

impl FloatMode {
    pub(crate) const ALL: [Self; 4] =
        [Self::DenormPreserve, Self::DenormFlush, Self::RoundToNearestEven, Self::RoundTowardZero];

    /// The qualifier in an operation's id.
    pub(crate) fn qualifier(self) -> &'static str {
        match self {
            Self::DenormPreserve => "denormpreserve",
            Self::DenormFlush => "denormflush",
            Self::RoundToNearestEven => "rte",
            Self::RoundTowardZero => "rtz",
        }
    }

    fn execution_mode(self) -> u32 {
        match self {
            Self::DenormPreserve => 4459,
            Self::DenormFlush => 4460,
            Self::RoundToNearestEven => 4462,
            Self::RoundTowardZero => 4463,
        }
    }

    fn capability(self) -> u32 {
        match self {
            Self::DenormPreserve => 4464,
            Self::DenormFlush => 4465,
            Self::RoundToNearestEven => 4467,
            Self::RoundTowardZero => 4468,
        }
    }
}

/// What a component needs in a module: capabilities and extension.
fn requirements(component: Component) -> (&'static [u32], Option<&'static str>) {
    match component {
        Component::F16 => (&[FLOAT16, STORAGE_BUFFER_16BIT], None),
        Component::F32 | Component::S32 | Component::U32 => (&[], None),
        Component::F64 => (&[FLOAT64], None),
        Component::S8 | Component::U8 => (&[INT8, STORAGE_BUFFER_8BIT], None),
        Component::S16 => (&[INT16, STORAGE_BUFFER_16BIT], None),
        Component::Bf16 => {
            (&[BFLOAT16_TYPE, BFLOAT16_COOPERATIVE_MATRIX, STORAGE_BUFFER_16BIT], Some("SPV_KHR_bfloat16"))
        }
        Component::E4m3 | Component::E5m2 => {
            (&[FLOAT8, FLOAT8_COOPERATIVE_MATRIX, STORAGE_BUFFER_8BIT], Some("SPV_EXT_float8"))
        }
    }
}

// Capabilities.
const SHADER: u32 = 1;
const FLOAT16: u32 = 9;
const FLOAT64: u32 = 10;
const INT16: u32 = 22;
const INT8: u32 = 39;
const FLOAT8: u32 = 4212;
const FLOAT8_COOPERATIVE_MATRIX: u32 = 4213;
const STORAGE_BUFFER_16BIT: u32 = 4433;
const STORAGE_BUFFER_8BIT: u32 = 4448;
const BFLOAT16_TYPE: u32 = 5116;
const BFLOAT16_COOPERATIVE_MATRIX: u32 = 5118;
const VULKAN_MEMORY_MODEL: u32 = 5345;
const COOPERATIVE_MATRIX: u32 = 6022;

// Opcodes.
const OP_EXTENSION: u32 = 10;
const OP_MEMORY_MODEL: u32 = 14;
const OP_ENTRY_POINT: u32 = 15;
const OP_EXECUTION_MODE: u32 = 16;
const OP_CAPABILITY: u32 = 17;
const OP_TYPE_VOID: u32 = 19;
const OP_TYPE_INT: u32 = 21;
const OP_TYPE_FLOAT: u32 = 22;
const OP_TYPE_VECTOR: u32 = 23;
const OP_TYPE_RUNTIME_ARRAY: u32 = 29;
const OP_TYPE_STRUCT: u32 = 30;
const OP_TYPE_POINTER: u32 = 32;
const OP_TYPE_FUNCTION: u32 = 33;
const OP_CONSTANT: u32 = 43;
const OP_FUNCTION: u32 = 54;
const OP_FUNCTION_END: u32 = 56;
const OP_VARIABLE: u32 = 59;
const OP_LOAD: u32 = 61;
const OP_ACCESS_CHAIN: u32 = 65;
const OP_DECORATE: u32 = 71;
const OP_MEMBER_DECORATE: u32 = 72;
const OP_COMPOSITE_EXTRACT: u32 = 81;
const OP_I_ADD: u32 = 128;
const OP_I_MUL: u32 = 132;
const OP_LABEL: u32 = 248;
const OP_RETURN: u32 = 253;
const OP_TYPE_COOPERATIVE_MATRIX: u32 = 4456;
const OP_COOPERATIVE_MATRIX_LOAD: u32 = 4457;
const OP_COOPERATIVE_MATRIX_STORE: u32 = 4458;
const OP_COOPERATIVE_MATRIX_MUL_ADD: u32 = 4459;

// Storage classes, decorations, built-ins and the rest.
const INPUT: u32 = 1;
const PUSH_CONSTANT: u32 = 9;
const STORAGE_BUFFER: u32 = 12;
const BLOCK: u32 = 2;
const ARRAY_STRIDE: u32 = 6;
const BUILT_IN: u32 = 11;
const NON_WRITABLE: u32 = 24;
const BINDING: u32 = 33;
const DESCRIPTOR_SET: u32 = 34;
const OFFSET: u32 = 35;
const WORKGROUP_ID: u32 = 26;
const LOCAL_INVOCATION_ID: u32 = 27;
const SCOPE_SUBGROUP: u32 = 3;
const USE_A: u32 = 0;
const USE_B: u32 = 1;
const USE_ACCUMULATOR: u32 = 2;
const ROW_MAJOR: u32 = 0;
const SATURATING_ACCUMULATION: u32 = 16;

impl Kernel {
    /// The module, with entry point `main`: set 0 bindings 0 to 3 hold A, B, C and D of every tile, row-major; a push
    /// constant holds the tile of workgroup 0.
    ///
    /// `steps` multiply-adds are chained: a tile of A is m×(k·steps), of B (k·steps)×n, and the accumulator of one step
    /// is C of the next, in the order of k.
    pub(crate) fn words(&self, steps: u32) -> Vec<u32> {
        let (m, n, k) = self.shape;
        let all_k = k * steps;
        let mut module = Module::default();
        for capability in [SHADER, COOPERATIVE_MATRIX, VULKAN_MEMORY_MODEL] {
            module.capability(capability);
        }
        module.extension("SPV_KHR_cooperative_matrix");
        for component in self.components {
            let (capabilities, extension) = requirements(component);
            capabilities.iter().for_each(|capability| module.capability(*capability));
            extension.into_iter().for_each(|extension| module.extension(extension));
        }

        let main = module.id();
        let void = module.ty(OP_TYPE_VOID, &[]);
        let main_type = module.ty(OP_TYPE_FUNCTION, &[void]);
        let uint = module.ty(OP_TYPE_INT, &[32, 0]);
        let (workgroup, uint3) = module.workgroup();
        let uint_pointer = module.ty(OP_TYPE_POINTER, &[PUSH_CONSTANT, uint]);
        let first = module.push_constant();
        let buffers = module.buffers(self.components);
        let [a, b, c, d] = self.components;
        let matrix_a = module.matrix(a, m, k, USE_A);
        let matrix_b = module.matrix(b, k, n, USE_B);
        let matrix_c = module.matrix(c, m, n, USE_ACCUMULATOR);
        let matrix_d = module.matrix(d, m, n, USE_ACCUMULATOR);
        let [zero, row_major] = [module.constant(0), module.constant(ROW_MAJOR)];

        let label = module.id();
        op(&mut module.code, OP_FUNCTION, &[void, main, 0, main_type]);
        op(&mut module.code, OP_LABEL, &[label]);
        let group = module.result(OP_LOAD, uint3, &[workgroup]);
        let group_x = module.result(OP_COMPOSITE_EXTRACT, uint, &[group, 0]);
        let base_pointer = module.result(OP_ACCESS_CHAIN, uint_pointer, &[first, zero]);
        let base = module.result(OP_LOAD, uint, &[base_pointer]);
        let tile = module.result(OP_I_ADD, uint, &[base, group_x]);
        // The element of `buffer` at `offset` in this tile.
        let element_of = |module: &mut Module, buffer: (u32, u32), per_tile: u32, offset: u32| {
            let per_tile = module.constant(per_tile);
            let mut at = module.result(OP_I_MUL, uint, &[tile, per_tile]);
            if offset != 0 {
                let offset = module.constant(offset);
                at = module.result(OP_I_ADD, uint, &[at, offset]);
            }
            module.result(OP_ACCESS_CHAIN, buffer.1, &[buffer.0, zero, at])
        };
        let [stride_a, stride_n] = [module.constant(all_k), module.constant(n)];
        let pointer_c = element_of(&mut module, buffers[2], m * n, 0);
        let mut sum = module.result(OP_COOPERATIVE_MATRIX_LOAD, matrix_c, &[pointer_c, row_major, stride_n]);
        for step in 0..steps {
            let pointer_a = element_of(&mut module, buffers[0], m * all_k, step * k);
            let tile_a = module.result(OP_COOPERATIVE_MATRIX_LOAD, matrix_a, &[pointer_a, row_major, stride_a]);
            let pointer_b = element_of(&mut module, buffers[1], all_k * n, step * k * n);
            let tile_b = module.result(OP_COOPERATIVE_MATRIX_LOAD, matrix_b, &[pointer_b, row_major, stride_n]);
            let mut operands = vec![tile_a, tile_b, sum];
            match self.operand_flags() {
                0 => {}
                flags => operands.push(flags),
            }
            sum = module.result(OP_COOPERATIVE_MATRIX_MUL_ADD, matrix_d, &operands);
        }
        let pointer_d = element_of(&mut module, buffers[3], m * n, 0);
        op(&mut module.code, OP_COOPERATIVE_MATRIX_STORE, &[pointer_d, sum, row_major, stride_n]);
        op(&mut module.code, OP_RETURN, &[]);
        op(&mut module.code, OP_FUNCTION_END, &[]);

        let mut modes = Vec::new();
        op(&mut modes, OP_EXECUTION_MODE, &[main, 17, self.subgroup_size, 1, 1]); // LocalSize
        if let Some((mode, widths)) = &self.mode {
            module.capability(mode.capability());
            for width in widths {
                op(&mut modes, OP_EXECUTION_MODE, &[main, mode.execution_mode(), *width]);
            }
        }
        module.finish(main, &modes)
    }

    /// The Cooperative Matrix Operands: which operands are signed, and whether the sum saturates. They have to be those
    /// of the configuration listed (*specified*: `VUID-RuntimeSpirv-OpCooperativeMatrixMulAddKHR-10060`).
    fn operand_flags(&self) -> u32 {
        let signed = (0..).zip(self.components).map(|(bit, component)| u32::from(component.is_signed_integer()) << bit);
        signed.sum::<u32>() | if self.saturating { SATURATING_ACCUMULATION } else { 0 }
    }
}

/// The sections of a module under construction; types and constants are declared once each.
#[derive(Default)]
struct Module {
    bound: u32,
    capabilities: Vec<u32>,
    extensions: Vec<&'static str>,
    /// Sets of extended instructions, each with its id.
    imports: Vec<(u32, &'static str)>,
    annotations: Vec<u32>,
    globals: Vec<u32>,
    interface: Vec<u32>,
    code: Vec<u32>,
    declared: HashMap<(u32, Vec<u32>), u32>,
    blocks: HashMap<u32, u32>,
}

fn op(section: &mut Vec<u32>, opcode: u32, operands: &[u32]) {
    let count = u32::try_from(operands.len() + 1).expect("an instruction of a few words");
    section.push(count << 16 | opcode);
    section.extend_from_slice(operands);
}

/// UTF-8, little-endian in words, with at least one null byte at the end.
fn literal(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

impl Module {
    fn id(&mut self) -> u32 {
        self.bound += 1;
        self.bound
    }

    fn capability(&mut self, capability: u32) {
        if !self.capabilities.contains(&capability) {
            self.capabilities.push(capability);
        }
    }

    fn extension(&mut self, extension: &'static str) {
        if !self.extensions.contains(&extension) {
            self.extensions.push(extension);
        }
    }

    fn ty(&mut self, opcode: u32, operands: &[u32]) -> u32 {
        let key = (opcode, operands.to_vec());
        if let Some(id) = self.declared.get(&key) {
            return *id;
        }
        let id = self.id();
        let with_result: Vec<u32> = std::iter::once(id).chain(operands.iter().copied()).collect();
        op(&mut self.globals, opcode, &with_result);
        self.declared.insert(key, id);
        id
    }

    fn constant(&mut self, value: u32) -> u32 {
        let uint = self.ty(OP_TYPE_INT, &[32, 0]);
        let key = (OP_CONSTANT, vec![uint, value]);
        if let Some(id) = self.declared.get(&key) {
            return *id;
        }
        let id = self.id();
        op(&mut self.globals, OP_CONSTANT, &[uint, id, value]);
        self.declared.insert(key, id);
        id
    }

    fn component(&mut self, component: Component) -> u32 {
        match component {
            Component::F16 => self.ty(OP_TYPE_FLOAT, &[16]),
            Component::F32 => self.ty(OP_TYPE_FLOAT, &[32]),
            Component::F64 => self.ty(OP_TYPE_FLOAT, &[64]),
            Component::Bf16 => self.ty(OP_TYPE_FLOAT, &[16, 0]),
            Component::E4m3 => self.ty(OP_TYPE_FLOAT, &[8, 4214]),
            Component::E5m2 => self.ty(OP_TYPE_FLOAT, &[8, 4215]),
            Component::S8 => self.ty(OP_TYPE_INT, &[8, 1]),
            Component::U8 => self.ty(OP_TYPE_INT, &[8, 0]),
            Component::S16 => self.ty(OP_TYPE_INT, &[16, 1]),
            Component::S32 => self.ty(OP_TYPE_INT, &[32, 1]),
            Component::U32 => self.ty(OP_TYPE_INT, &[32, 0]),
        }
    }

    /// A buffer block: one runtime array of `element`.
    fn array(&mut self, element: u32, stride_bytes: u32) -> u32 {
        if let Some(block) = self.blocks.get(&element) {
            return *block;
        }
        let array = self.ty(OP_TYPE_RUNTIME_ARRAY, &[element]);
        op(&mut self.annotations, OP_DECORATE, &[array, ARRAY_STRIDE, stride_bytes]);
        let block = self.ty(OP_TYPE_STRUCT, &[array]);
        op(&mut self.annotations, OP_DECORATE, &[block, BLOCK]);
        op(&mut self.annotations, OP_MEMBER_DECORATE, &[block, 0, OFFSET, 0]);
        self.blocks.insert(element, block);
        block
    }

    /// The built-in number of the workgroup, and its type.
    fn workgroup(&mut self) -> (u32, u32) {
        let uint = self.ty(OP_TYPE_INT, &[32, 0]);
        let uint3 = self.ty(OP_TYPE_VECTOR, &[uint, 3]);
        let uint3_input = self.ty(OP_TYPE_POINTER, &[INPUT, uint3]);
        let workgroup = self.variable(uint3_input, INPUT);
        op(&mut self.annotations, OP_DECORATE, &[workgroup, BUILT_IN, WORKGROUP_ID]);
        (workgroup, uint3)
    }

    /// A push constant that holds one unsigned integer.
    fn push_constant(&mut self) -> u32 {
        let uint = self.ty(OP_TYPE_INT, &[32, 0]);
        let block = self.ty(OP_TYPE_STRUCT, &[uint]);
        op(&mut self.annotations, OP_DECORATE, &[block, BLOCK]);
        op(&mut self.annotations, OP_MEMBER_DECORATE, &[block, 0, OFFSET, 0]);
        let pointer = self.ty(OP_TYPE_POINTER, &[PUSH_CONSTANT, block]);
        self.variable(pointer, PUSH_CONSTANT)
    }

    /// The buffers of A, B, C and D, each with the type of a pointer to one of its elements.
    fn buffers(&mut self, components: [Component; 4]) -> [(u32, u32); 4] {
        let mut buffers = [(0, 0); 4];
        for (binding, (component, buffer)) in (0..).zip(components.into_iter().zip(&mut buffers)) {
            let element = self.component(component);
            let array = self.array(element, component.bytes());
            let pointer = self.ty(OP_TYPE_POINTER, &[STORAGE_BUFFER, array]);
            let variable = self.variable(pointer, STORAGE_BUFFER);
            op(&mut self.annotations, OP_DECORATE, &[variable, DESCRIPTOR_SET, 0]);
            op(&mut self.annotations, OP_DECORATE, &[variable, BINDING, binding]);
            if binding < 3 {
                op(&mut self.annotations, OP_DECORATE, &[variable, NON_WRITABLE]);
            }
            *buffer = (variable, self.ty(OP_TYPE_POINTER, &[STORAGE_BUFFER, element]));
        }
        buffers
    }

    fn matrix(&mut self, component: Component, rows: u32, columns: u32, usage: u32) -> u32 {
        let component = self.component(component);
        let [scope, rows, columns, usage] = [SCOPE_SUBGROUP, rows, columns, usage].map(|value| self.constant(value));
        self.ty(OP_TYPE_COOPERATIVE_MATRIX, &[component, scope, rows, columns, usage])
    }

    fn variable(&mut self, pointer: u32, storage_class: u32) -> u32 {
        let id = self.id();
        op(&mut self.globals, OP_VARIABLE, &[pointer, id, storage_class]);
        self.interface.push(id);
        id
    }

    fn result(&mut self, opcode: u32, ty: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        let all: Vec<u32> = [ty, id].into_iter().chain(operands.iter().copied()).collect();
        op(&mut self.code, opcode, &all);
        id
    }

    fn finish(self, main: u32, modes: &[u32]) -> Vec<u32> {
        // Magic number, version 1.6, generator unregistered, bound, schema.
        let mut words = vec![0x0723_0203, 0x0001_0600, 0, self.bound + 1, 0];
        for capability in self.capabilities {
            op(&mut words, OP_CAPABILITY, &[capability]);
        }
        for extension in self.extensions {
            op(&mut words, OP_EXTENSION, &literal(extension));
        }
        for (id, name) in self.imports {
            let operands: Vec<u32> = std::iter::once(id).chain(literal(name)).collect();
            op(&mut words, resident::OP_EXT_INST_IMPORT, &operands);
        }
        op(&mut words, OP_MEMORY_MODEL, &[0, 3]); // Logical, Vulkan
        let mut entry = vec![5, main]; // GLCompute
        entry.extend(literal("main"));
        entry.extend(self.interface);
        op(&mut words, OP_ENTRY_POINT, &entry);
        for section in [modes, &self.annotations, &self.globals, &self.code] {
            words.extend_from_slice(section);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(components: [Component; 4], saturating: bool) -> Kernel {
        Kernel { shape: (16, 8, 32), components, saturating, subgroup_size: 32, mode: None }
    }

    /// Opcode and operands of each instruction.
    fn instructions(words: &[u32]) -> Vec<(u32, Vec<u32>)> {
        let mut rest = &words[5..];
        let mut all = Vec::new();
        while let [first, ..] = rest {
            let (now, next) = rest.split_at((first >> 16) as usize);
            all.push((first & 0xffff, now[1..].to_vec()));
            rest = next;
        }
        all
    }

    #[test]
    fn the_header_is_that_of_spirv_1_6_and_the_instructions_fill_the_module() {
        let words = kernel([Component::F16, Component::F16, Component::F32, Component::F32], false).words(1);
        assert_eq!(words[..3], [0x0723_0203, 0x0001_0600, 0]);
        let all = instructions(&words);
        assert_eq!(all.first().unwrap().0, OP_CAPABILITY);
        assert_eq!(all.last().unwrap().0, OP_FUNCTION_END);
        assert_eq!(all.iter().map(|(_, operands)| operands.len() + 1).sum::<usize>() + 5, words.len());
    }

    #[test]
    fn a_type_or_constant_is_declared_once() {
        let words = kernel([Component::S8; 4], false).words(3);
        let mut declared: Vec<_> = instructions(&words)
            .into_iter()
            .filter(|(opcode, _)| {
                (OP_TYPE_VOID..=OP_TYPE_FUNCTION).contains(opcode) || *opcode == OP_TYPE_COOPERATIVE_MATRIX
            })
            .map(|(opcode, operands)| (opcode, operands[1..].to_vec()))
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
                instructions(&words).iter().filter(|(opcode, _)| *opcode == OP_COOPERATIVE_MATRIX_MUL_ADD).count();
            assert_eq!(found, steps as usize);
        }
    }

    /// What an id of the shader stands for.
    #[derive(Clone, Debug)]
    enum Value {
        Integer(usize),
        Buffer(u32, usize),
        Matrix(Vec<i64>),
    }

    /// Runs the shader of workgroup `group` behind tile `first` on integers: `buffers` are A, B, C and D.
    fn interpret(words: &[u32], group: usize, first: usize, buffers: &mut [Vec<i64>; 4]) {
        let all = instructions(words);
        let found = |wanted: u32| all.iter().filter(move |(opcode, _)| *opcode == wanted).map(|(_, operands)| operands);
        let constants: HashMap<u32, usize> = found(OP_CONSTANT).map(|of| (of[1], of[2] as usize)).collect();
        // Rows and columns by the id of the type.
        let sizes: HashMap<u32, (usize, usize)> =
            found(OP_TYPE_COOPERATIVE_MATRIX).map(|of| (of[0], (constants[&of[3]], constants[&of[4]]))).collect();
        let decorations: Vec<_> = found(OP_DECORATE).collect();
        let binding: HashMap<u32, u32> =
            decorations.iter().filter(|of| of[1] == BINDING).map(|of| (of[0], of[2])).collect();
        let built_in = decorations.iter().find(|of| of[1] == BUILT_IN).unwrap()[0];
        let mut values: HashMap<u32, Value> = constants.iter().map(|(id, at)| (*id, Value::Integer(*at))).collect();
        let mut shapes: HashMap<u32, (usize, usize)> = HashMap::new();
        for (opcode, of) in &all {
            let integer = |id: u32| match &values[&id] {
                Value::Integer(value) => *value,
                other => panic!("{other:?} is no integer"),
            };
            let place = |id: u32| match &values[&id] {
                Value::Buffer(buffer, at) => (*buffer as usize, *at),
                other => panic!("{other:?} is no element of a buffer"),
            };
            let matrix = |id: u32| match &values[&id] {
                Value::Matrix(matrix) => matrix.clone(),
                other => panic!("{other:?} is no matrix"),
            };
            let value = match *opcode {
                OP_LOAD if of[2] == built_in => Value::Integer(group),
                OP_LOAD => Value::Integer(first),
                OP_COMPOSITE_EXTRACT => values[&of[2]].clone(),
                OP_I_ADD => Value::Integer(integer(of[2]) + integer(of[3])),
                OP_I_MUL => Value::Integer(integer(of[2]) * integer(of[3])),
                OP_ACCESS_CHAIN => match binding.get(&of[2]) {
                    Some(buffer) => Value::Buffer(*buffer, integer(of[4])),
                    None => Value::Integer(first),
                },
                OP_COOPERATIVE_MATRIX_LOAD => {
                    let ((rows, columns), (buffer, at), stride) = (sizes[&of[0]], place(of[2]), integer(of[4]));
                    assert_eq!(integer(of[3]), ROW_MAJOR as usize);
                    shapes.insert(of[1], (rows, columns));
                    let element = |index: usize| buffers[buffer][at + index / columns * stride + index % columns];
                    Value::Matrix((0..rows * columns).map(element).collect())
                }
                OP_COOPERATIVE_MATRIX_MUL_ADD => {
                    let ((m, k), (_, n)) = (shapes[&of[2]], shapes[&of[3]]);
                    assert_eq!((shapes[&of[3]].0, shapes[&of[4]]), (k, (m, n)));
                    shapes.insert(of[1], (m, n));
                    let (a, b, c) = (matrix(of[2]), matrix(of[3]), matrix(of[4]));
                    let dot =
                        |row: usize, column: usize| (0..k).map(|at| a[row * k + at] * b[at * n + column]).sum::<i64>();
                    Value::Matrix((0..m * n).map(|at| dot(at / n, at % n) + c[at]).collect())
                }
                OP_COOPERATIVE_MATRIX_STORE => {
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
                // Tile 0 alone, then the others from a base.
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
