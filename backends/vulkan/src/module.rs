//! A SPIR-V module under construction, word by word.
//!
//! Encodings are *specified* by the SPIR-V specification 1.6 (2.3 and 3), `SPV_KHR_cooperative_matrix`, `SPV_KHR_bfloat16`
//! and `SPV_EXT_float8`.

use std::collections::HashMap;

use crate::component::Component;
use crate::float_mode::Asked;

// Capabilities.
pub(crate) const SHADER: u32 = 1;
pub(crate) const FLOAT16: u32 = 9;
const FLOAT64: u32 = 10;
pub(crate) const INT16: u32 = 22;
pub(crate) const INT8: u32 = 39;
pub(crate) const FLOAT8: u32 = 4212;
pub(crate) const FLOAT8_COOPERATIVE_MATRIX: u32 = 4213;
pub(crate) const STORAGE_BUFFER_16BIT: u32 = 4433;
pub(crate) const STORAGE_BUFFER_8BIT: u32 = 4448;
pub(crate) const BFLOAT16_TYPE: u32 = 5116;
pub(crate) const BFLOAT16_COOPERATIVE_MATRIX: u32 = 5118;
pub(crate) const VULKAN_MEMORY_MODEL: u32 = 5345;
pub(crate) const COOPERATIVE_MATRIX: u32 = 6022;

// Opcodes.
pub(crate) const OP_EXTENSION: u32 = 10;
const OP_EXT_INST_IMPORT: u32 = 11;
pub(crate) const OP_EXT_INST: u32 = 12;
pub(crate) const OP_MEMORY_MODEL: u32 = 14;
pub(crate) const OP_ENTRY_POINT: u32 = 15;
pub(crate) const OP_EXECUTION_MODE: u32 = 16;
pub(crate) const OP_CAPABILITY: u32 = 17;
pub(crate) const OP_TYPE_VOID: u32 = 19;
pub(crate) const OP_TYPE_INT: u32 = 21;
pub(crate) const OP_TYPE_FLOAT: u32 = 22;
pub(crate) const OP_TYPE_VECTOR: u32 = 23;
pub(crate) const OP_TYPE_RUNTIME_ARRAY: u32 = 29;
pub(crate) const OP_TYPE_STRUCT: u32 = 30;
pub(crate) const OP_TYPE_POINTER: u32 = 32;
pub(crate) const OP_TYPE_FUNCTION: u32 = 33;
pub(crate) const OP_CONSTANT: u32 = 43;
pub(crate) const OP_CONSTANT_NULL: u32 = 46;
pub(crate) const OP_FUNCTION: u32 = 54;
pub(crate) const OP_FUNCTION_END: u32 = 56;
pub(crate) const OP_VARIABLE: u32 = 59;
pub(crate) const OP_LOAD: u32 = 61;
pub(crate) const OP_STORE: u32 = 62;
pub(crate) const OP_ACCESS_CHAIN: u32 = 65;
pub(crate) const OP_DECORATE: u32 = 71;
pub(crate) const OP_MEMBER_DECORATE: u32 = 72;
pub(crate) const OP_COMPOSITE_EXTRACT: u32 = 81;
pub(crate) const OP_F_CONVERT: u32 = 115;
pub(crate) const OP_I_ADD: u32 = 128;
pub(crate) const OP_F_ADD: u32 = 129;
pub(crate) const OP_F_SUB: u32 = 131;
pub(crate) const OP_I_MUL: u32 = 132;
pub(crate) const OP_U_DIV: u32 = 134;
pub(crate) const OP_F_MUL: u32 = 133;
pub(crate) const OP_F_DIV: u32 = 136;
pub(crate) const OP_U_MOD: u32 = 137;
pub(crate) const OP_LABEL: u32 = 248;
pub(crate) const OP_RETURN: u32 = 253;
pub(crate) const OP_TYPE_COOPERATIVE_MATRIX: u32 = 4456;
pub(crate) const OP_COOPERATIVE_MATRIX_LOAD: u32 = 4457;
pub(crate) const OP_COOPERATIVE_MATRIX_STORE: u32 = 4458;
pub(crate) const OP_COOPERATIVE_MATRIX_MUL_ADD: u32 = 4459;

/// Instructions of `GLSL.std.450`.
pub(crate) const GLSL_SQRT: u32 = 31;
pub(crate) const GLSL_FMA: u32 = 50;

// Storage classes, decorations, built-ins and the rest.
pub(crate) const INPUT: u32 = 1;
const FUNCTION: u32 = 7;
pub(crate) const PUSH_CONSTANT: u32 = 9;
pub(crate) const STORAGE_BUFFER: u32 = 12;
pub(crate) const BLOCK: u32 = 2;
pub(crate) const ARRAY_STRIDE: u32 = 6;
pub(crate) const BUILT_IN: u32 = 11;
pub(crate) const NON_WRITABLE: u32 = 24;
pub(crate) const BINDING: u32 = 33;
pub(crate) const DESCRIPTOR_SET: u32 = 34;
pub(crate) const OFFSET: u32 = 35;
pub(crate) const NO_CONTRACTION: u32 = 42;
const WORKGROUP_ID: u32 = 26;
pub(crate) const LOCAL_INVOCATION_ID: u32 = 27;
pub(crate) const SCOPE_SUBGROUP: u32 = 3;
pub(crate) const USE_A: u32 = 0;
pub(crate) const USE_B: u32 = 1;
pub(crate) const USE_ACCUMULATOR: u32 = 2;
pub(crate) const ROW_MAJOR: u32 = 0;
pub(crate) const SATURATING_ACCUMULATION: u32 = 16;

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

/// The sections of a module under construction; types and constants are declared once each.
#[derive(Default)]
pub(crate) struct Module {
    bound: u32,
    capabilities: Vec<u32>,
    extensions: Vec<&'static str>,
    pub(crate) annotations: Vec<u32>,
    globals: Vec<u32>,
    interface: Vec<u32>,
    pub(crate) code: Vec<u32>,
    declared: HashMap<(u32, Vec<u32>), u32>,
    blocks: HashMap<u32, u32>,
    /// `GLSL.std.450`, where it is used.
    glsl: Option<u32>,
}

/// What every kernel here has: `main`, the number of its workgroup, and unsigned integers as push constants, the first the
/// tile of workgroup 0, or what the kernel makes of it.
pub(crate) struct Entry {
    pub(crate) main: u32,
    pub(crate) uint: u32,
    main_type: u32,
    void: u32,
    uint3: u32,
    workgroup: u32,
    uint_pointer: u32,
    constants: u32,
}

/// A storage buffer: its variable, and the type of a pointer to its elements.
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    variable: u32,
    pointer: u32,
}

pub(crate) fn op(section: &mut Vec<u32>, opcode: u32, operands: &[u32]) {
    let count = u32::try_from(operands.len() + 1).expect("an instruction of a few words");
    section.push(count << 16 | opcode);
    section.extend_from_slice(operands);
}

/// UTF-8, little-endian in words, with at least one null byte at the end.
pub(crate) fn literal(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

impl Module {
    pub(crate) fn id(&mut self) -> u32 {
        self.bound += 1;
        self.bound
    }

    pub(crate) fn capability(&mut self, capability: u32) {
        if !self.capabilities.contains(&capability) {
            self.capabilities.push(capability);
        }
    }

    /// Declares what a component needs.
    pub(crate) fn needs(&mut self, component: Component) {
        let (capabilities, extension) = requirements(component);
        capabilities.iter().for_each(|capability| self.capability(*capability));
        extension.into_iter().for_each(|extension| self.extension(extension));
    }

    pub(crate) fn extension(&mut self, extension: &'static str) {
        if !self.extensions.contains(&extension) {
            self.extensions.push(extension);
        }
    }

    pub(crate) fn ty(&mut self, opcode: u32, operands: &[u32]) -> u32 {
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

    pub(crate) fn constant(&mut self, value: u32) -> u32 {
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

    /// The zero of a type.
    pub(crate) fn null(&mut self, ty: u32) -> u32 {
        let key = (OP_CONSTANT_NULL, vec![ty]);
        if let Some(id) = self.declared.get(&key) {
            return *id;
        }
        let id = self.id();
        op(&mut self.globals, OP_CONSTANT_NULL, &[ty, id]);
        self.declared.insert(key, id);
        id
    }

    pub(crate) fn component(&mut self, component: Component) -> u32 {
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
    pub(crate) fn array(&mut self, element: u32, stride_bytes: u32) -> u32 {
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

    pub(crate) fn matrix(&mut self, component: Component, rows: u32, columns: u32, usage: u32) -> u32 {
        let component = self.component(component);
        let [scope, rows, columns, usage] = [SCOPE_SUBGROUP, rows, columns, usage].map(|value| self.constant(value));
        self.ty(OP_TYPE_COOPERATIVE_MATRIX, &[component, scope, rows, columns, usage])
    }

    pub(crate) fn variable(&mut self, pointer: u32, storage_class: u32) -> u32 {
        let id = self.id();
        op(&mut self.globals, OP_VARIABLE, &[pointer, id, storage_class]);
        self.interface.push(id);
        id
    }

    pub(crate) fn result(&mut self, opcode: u32, ty: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        let all: Vec<u32> = [ty, id].into_iter().chain(operands.iter().copied()).collect();
        op(&mut self.code, opcode, &all);
        id
    }

    /// Declares what [`Entry`] holds, with so many push constants.
    pub(crate) fn entry(&mut self, constants: usize) -> Entry {
        let main = self.id();
        let void = self.ty(OP_TYPE_VOID, &[]);
        let main_type = self.ty(OP_TYPE_FUNCTION, &[void]);
        let uint = self.ty(OP_TYPE_INT, &[32, 0]);
        let uint3 = self.ty(OP_TYPE_VECTOR, &[uint, 3]);
        let workgroup = self.built_in(uint3, WORKGROUP_ID);
        let block = self.ty(OP_TYPE_STRUCT, &vec![uint; constants]);
        op(&mut self.annotations, OP_DECORATE, &[block, BLOCK]);
        for (member, offset) in (0..).zip((0..).step_by(4)).take(constants) {
            op(&mut self.annotations, OP_MEMBER_DECORATE, &[block, member, OFFSET, offset]);
        }
        let block_pointer = self.ty(OP_TYPE_POINTER, &[PUSH_CONSTANT, block]);
        let uint_pointer = self.ty(OP_TYPE_POINTER, &[PUSH_CONSTANT, uint]);
        let constants = self.variable(block_pointer, PUSH_CONSTANT);
        Entry { main, uint, main_type, void, uint3, workgroup, uint_pointer, constants }
    }

    fn built_in(&mut self, uint3: u32, built_in: u32) -> u32 {
        let pointer = self.ty(OP_TYPE_POINTER, &[INPUT, uint3]);
        let variable = self.variable(pointer, INPUT);
        op(&mut self.annotations, OP_DECORATE, &[variable, BUILT_IN, built_in]);
        variable
    }

    /// A storage buffer of set 0.
    pub(crate) fn buffer(&mut self, binding: u32, component: Component, writable: bool) -> Buffer {
        let element = self.component(component);
        let array = self.array(element, component.bytes());
        let pointer = self.ty(OP_TYPE_POINTER, &[STORAGE_BUFFER, array]);
        let variable = self.variable(pointer, STORAGE_BUFFER);
        op(&mut self.annotations, OP_DECORATE, &[variable, DESCRIPTOR_SET, 0]);
        op(&mut self.annotations, OP_DECORATE, &[variable, BINDING, binding]);
        if !writable {
            op(&mut self.annotations, OP_DECORATE, &[variable, NON_WRITABLE]);
        }
        Buffer { variable, pointer: self.ty(OP_TYPE_POINTER, &[STORAGE_BUFFER, element]) }
    }

    /// The buffers of A, B, C and D: bindings 0 to 3 of set 0.
    pub(crate) fn buffers(&mut self, components: [Component; 4]) -> [Buffer; 4] {
        let mut binding = 0..;
        components.map(|component| {
            let at = binding.next().expect("endless");
            self.buffer(at, component, at == 3)
        })
    }

    /// A pointer to an element of a buffer.
    pub(crate) fn element(&mut self, buffer: Buffer, at: u32) -> u32 {
        let zero = self.constant(0);
        self.result(OP_ACCESS_CHAIN, buffer.pointer, &[buffer.variable, zero, at])
    }

    /// Begins `main`; the number of the tile that the workgroup computes.
    pub(crate) fn begin(&mut self, entry: &Entry) -> u32 {
        let (_, group, first) = self.begin_with(entry, &[]);
        self.result(OP_I_ADD, entry.uint, &[first, group])
    }

    /// Begins `main` with variables of these types; returns them, the number of the workgroup and the first push constant.
    pub(crate) fn begin_with(&mut self, entry: &Entry, types: &[u32]) -> (Vec<u32>, u32, u32) {
        let pointers: Vec<u32> = types.iter().map(|ty| self.ty(OP_TYPE_POINTER, &[FUNCTION, *ty])).collect();
        let label = self.id();
        op(&mut self.code, OP_FUNCTION, &[entry.void, entry.main, 0, entry.main_type]);
        op(&mut self.code, OP_LABEL, &[label]);
        // Variables stand first (SPIR-V 1.6, 2.4).
        let variables = pointers.into_iter().map(|pointer| self.result(OP_VARIABLE, pointer, &[FUNCTION])).collect();
        let group = self.first_of(entry, entry.workgroup);
        let pushed = self.pushed(entry, 0);
        (variables, group, pushed)
    }

    /// A push constant; the function has begun.
    pub(crate) fn pushed(&mut self, entry: &Entry, index: u32) -> u32 {
        let index = self.constant(index);
        let pointer = self.result(OP_ACCESS_CHAIN, entry.uint_pointer, &[entry.constants, index]);
        self.result(OP_LOAD, entry.uint, &[pointer])
    }

    /// Declares the input whose first component is the number of an invocation in its workgroup.
    pub(crate) fn invocations(&mut self, entry: &Entry) -> u32 {
        self.built_in(entry.uint3, LOCAL_INVOCATION_ID)
    }

    /// The first component of an input.
    pub(crate) fn first_of(&mut self, entry: &Entry, variable: u32) -> u32 {
        let all = self.result(OP_LOAD, entry.uint3, &[variable]);
        self.result(OP_COMPOSITE_EXTRACT, entry.uint, &[all, 0])
    }

    /// An instruction of `GLSL.std.450`.
    pub(crate) fn glsl(&mut self, ty: u32, instruction: u32, operands: &[u32]) -> u32 {
        let set = match self.glsl {
            Some(set) => set,
            None => self.id(),
        };
        self.glsl = Some(set);
        let all: Vec<u32> = [set, instruction].into_iter().chain(operands.iter().copied()).collect();
        self.result(OP_EXT_INST, ty, &all)
    }

    /// The module of `main` with `local_size` invocations a workgroup, and a float-controls mode at its widths.
    pub(crate) fn finish(mut self, entry: &Entry, local_size: u32, mode: Option<&Asked>) -> Vec<u32> {
        op(&mut self.code, OP_RETURN, &[]);
        op(&mut self.code, OP_FUNCTION_END, &[]);
        let main = entry.main;
        let mut modes = Vec::new();
        op(&mut modes, OP_EXECUTION_MODE, &[main, 17, local_size, 1, 1]); // LocalSize
        if let Some((mode, widths)) = mode {
            self.capability(mode.capability());
            for width in widths {
                op(&mut modes, OP_EXECUTION_MODE, &[main, mode.execution_mode(), *width]);
            }
        }
        // Magic number, version 1.6, generator unregistered, bound, schema.
        let mut words = vec![0x0723_0203, 0x0001_0600, 0, self.bound + 1, 0];
        let memory_model = if self.capabilities.contains(&VULKAN_MEMORY_MODEL) { 3 } else { 1 }; // Vulkan, GLSL450
        for capability in self.capabilities {
            op(&mut words, OP_CAPABILITY, &[capability]);
        }
        for extension in self.extensions {
            op(&mut words, OP_EXTENSION, &literal(extension));
        }
        if let Some(set) = self.glsl {
            let operands: Vec<u32> = [set].into_iter().chain(literal("GLSL.std.450")).collect();
            op(&mut words, OP_EXT_INST_IMPORT, &operands);
        }
        op(&mut words, OP_MEMORY_MODEL, &[0, memory_model]); // Logical
        let mut entry = vec![5, main]; // GLCompute
        entry.extend(literal("main"));
        entry.extend(self.interface);
        op(&mut words, OP_ENTRY_POINT, &entry);
        for section in [&modes, &self.annotations, &self.globals, &self.code] {
            words.extend_from_slice(section);
        }
        words
    }
}
