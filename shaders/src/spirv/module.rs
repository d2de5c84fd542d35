//! A SPIR-V module under construction, word by word.
//!
//! The order of sections is *specified* by the SPIR-V specification 1.6 (2.3 and 2.4); the numbers come from the
//! `spirv` crate.

use std::collections::HashMap;

use ::spirv::{
    AddressingModel, BuiltIn, Capability, CooperativeMatrixUse, Decoration, ExecutionMode, ExecutionModel, FPEncoding,
    GlslStd450Op, MAGIC_NUMBER, MemoryModel, Op, Scope, StorageClass,
};

use super::component::Component;
use super::float_mode::Asked;

/// The requirements of a component: capabilities and an extension.
fn requirements(component: Component) -> (&'static [Capability], Option<&'static str>) {
    match component {
        Component::F16 => (&[Capability::Float16, Capability::StorageBuffer16BitAccess], None),
        Component::F32 | Component::S32 | Component::U32 => (&[], None),
        Component::F64 => (&[Capability::Float64], None),
        Component::S8 | Component::U8 => (&[Capability::Int8, Capability::StorageBuffer8BitAccess], None),
        Component::S16 => (&[Capability::Int16, Capability::StorageBuffer16BitAccess], None),
        Component::Bf16 => (
            &[
                Capability::BFloat16TypeKHR,
                Capability::BFloat16CooperativeMatrixKHR,
                Capability::StorageBuffer16BitAccess,
            ],
            Some("SPV_KHR_bfloat16"),
        ),
        Component::E4m3 | Component::E5m2 => (
            &[Capability::Float8EXT, Capability::Float8CooperativeMatrixEXT, Capability::StorageBuffer8BitAccess],
            Some("SPV_EXT_float8"),
        ),
    }
}

/// The sections of a module under construction; types and constants are declared once each.
#[derive(Default)]
pub(super) struct Module {
    bound: u32,
    capabilities: Vec<Capability>,
    extensions: Vec<&'static str>,
    annotations: Vec<u32>,
    globals: Vec<u32>,
    interface: Vec<u32>,
    pub(super) code: Vec<u32>,
    declared: HashMap<(Op, Vec<u32>), u32>,
    blocks: HashMap<u32, u32>,
    /// The id of `GLSL.std.450`, if it is used.
    glsl: Option<u32>,
}

/// The common parts of every kernel here: `main`, the index of its workgroup, and unsigned integers as push constants.
/// The first of these is the index of the tile that workgroup 0 computes, unless the kernel uses it otherwise.
pub(super) struct Entry {
    pub(super) main: u32,
    pub(super) uint: u32,
    main_type: u32,
    void: u32,
    uint3: u32,
    workgroup: u32,
    uint_pointer: u32,
    constants: u32,
}

/// A storage buffer: its variable, and the type of a pointer to its elements.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    variable: u32,
    pointer: u32,
}

pub(super) fn op(section: &mut Vec<u32>, opcode: Op, operands: &[u32]) {
    let count = u32::try_from(operands.len() + 1).expect("an instruction of a few words");
    section.push(count << 16 | opcode as u32);
    section.extend_from_slice(operands);
}

/// The text as UTF-8, little-endian in words, with at least one null byte at the end.
pub(super) fn literal(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))).collect()
}

impl Module {
    pub(super) fn id(&mut self) -> u32 {
        self.bound += 1;
        self.bound
    }

    pub(super) fn capability(&mut self, capability: Capability) {
        if !self.capabilities.contains(&capability) {
            self.capabilities.push(capability);
        }
    }

    /// Declares the requirements of a component.
    pub(super) fn needs(&mut self, component: Component) {
        let (capabilities, extension) = requirements(component);
        capabilities.iter().for_each(|capability| self.capability(*capability));
        extension.into_iter().for_each(|extension| self.extension(extension));
    }

    pub(super) fn extension(&mut self, extension: &'static str) {
        if !self.extensions.contains(&extension) {
            self.extensions.push(extension);
        }
    }

    pub(super) fn ty(&mut self, opcode: Op, operands: &[u32]) -> u32 {
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

    /// The type of a pointer to `ty`.
    fn pointer_to(&mut self, storage_class: StorageClass, ty: u32) -> u32 {
        self.ty(Op::TypePointer, &[storage_class as u32, ty])
    }

    pub(super) fn decorate(&mut self, id: u32, decoration: Decoration, operands: &[u32]) {
        let all: Vec<u32> = [id, decoration as u32].into_iter().chain(operands.iter().copied()).collect();
        op(&mut self.annotations, Op::Decorate, &all);
    }

    /// Sets the byte offset of a block's member.
    fn place_member(&mut self, block: u32, member: u32, offset: u32) {
        op(&mut self.annotations, Op::MemberDecorate, &[block, member, Decoration::Offset as u32, offset]);
    }

    pub(super) fn constant(&mut self, value: u32) -> u32 {
        let uint = self.ty(Op::TypeInt, &[32, 0]);
        let key = (Op::Constant, vec![uint, value]);
        if let Some(id) = self.declared.get(&key) {
            return *id;
        }
        let id = self.id();
        op(&mut self.globals, Op::Constant, &[uint, id, value]);
        self.declared.insert(key, id);
        id
    }

    /// A constant of a component with at least 32 bits, or of f16, from its bits.
    pub(super) fn number(&mut self, component: Component, bits: u64) -> u32 {
        let ty = self.component(component);
        let low = u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0);
        let high = u32::try_from(bits >> 32).unwrap_or(0);
        let words = if component.format().bits() > 32 { vec![low, high] } else { vec![low] };
        let key = (Op::Constant, [vec![ty], words.clone()].concat());
        if let Some(id) = self.declared.get(&key) {
            return *id;
        }
        let id = self.id();
        op(&mut self.globals, Op::Constant, &[vec![ty, id], words].concat());
        self.declared.insert(key, id);
        id
    }

    /// The zero of a type.
    pub(super) fn null(&mut self, ty: u32) -> u32 {
        let key = (Op::ConstantNull, vec![ty]);
        if let Some(id) = self.declared.get(&key) {
            return *id;
        }
        let id = self.id();
        op(&mut self.globals, Op::ConstantNull, &[ty, id]);
        self.declared.insert(key, id);
        id
    }

    pub(super) fn component(&mut self, component: Component) -> u32 {
        match component {
            Component::F16 => self.ty(Op::TypeFloat, &[16]),
            Component::F32 => self.ty(Op::TypeFloat, &[32]),
            Component::F64 => self.ty(Op::TypeFloat, &[64]),
            Component::Bf16 => self.ty(Op::TypeFloat, &[16, FPEncoding::BFloat16KHR as u32]),
            Component::E4m3 => self.ty(Op::TypeFloat, &[8, FPEncoding::Float8E4M3EXT as u32]),
            Component::E5m2 => self.ty(Op::TypeFloat, &[8, FPEncoding::Float8E5M2EXT as u32]),
            Component::S8 => self.ty(Op::TypeInt, &[8, 1]),
            Component::U8 => self.ty(Op::TypeInt, &[8, 0]),
            Component::S16 => self.ty(Op::TypeInt, &[16, 1]),
            Component::S32 => self.ty(Op::TypeInt, &[32, 1]),
            Component::U32 => self.ty(Op::TypeInt, &[32, 0]),
        }
    }

    /// A buffer block: one runtime array of `element`.
    pub(super) fn array(&mut self, element: u32, stride_bytes: u32) -> u32 {
        if let Some(block) = self.blocks.get(&element) {
            return *block;
        }
        let array = self.ty(Op::TypeRuntimeArray, &[element]);
        self.decorate(array, Decoration::ArrayStride, &[stride_bytes]);
        let block = self.ty(Op::TypeStruct, &[array]);
        self.decorate(block, Decoration::Block, &[]);
        self.place_member(block, 0, 0);
        self.blocks.insert(element, block);
        block
    }

    pub(super) fn matrix(&mut self, component: Component, rows: u32, columns: u32, usage: CooperativeMatrixUse) -> u32 {
        let component = self.component(component);
        let [scope, rows, columns, usage] =
            [Scope::Subgroup as u32, rows, columns, usage as u32].map(|value| self.constant(value));
        self.ty(Op::TypeCooperativeMatrixKHR, &[component, scope, rows, columns, usage])
    }

    pub(super) fn variable(&mut self, pointer: u32, storage_class: StorageClass) -> u32 {
        let id = self.id();
        op(&mut self.globals, Op::Variable, &[pointer, id, storage_class as u32]);
        self.interface.push(id);
        id
    }

    pub(super) fn result(&mut self, opcode: Op, ty: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        let all: Vec<u32> = [ty, id].into_iter().chain(operands.iter().copied()).collect();
        op(&mut self.code, opcode, &all);
        id
    }

    /// Declares the parts of an [`Entry`], with this many push constants.
    pub(super) fn entry(&mut self, constants: usize) -> Entry {
        let main = self.id();
        let void = self.ty(Op::TypeVoid, &[]);
        let main_type = self.ty(Op::TypeFunction, &[void]);
        let uint = self.ty(Op::TypeInt, &[32, 0]);
        let uint3 = self.ty(Op::TypeVector, &[uint, 3]);
        let workgroup = self.built_in(uint3, BuiltIn::WorkgroupId);
        let block = self.ty(Op::TypeStruct, &vec![uint; constants]);
        self.decorate(block, Decoration::Block, &[]);
        for (member, offset) in (0..).zip((0..).step_by(4)).take(constants) {
            self.place_member(block, member, offset);
        }
        let block_pointer = self.pointer_to(StorageClass::PushConstant, block);
        let uint_pointer = self.pointer_to(StorageClass::PushConstant, uint);
        let constants = self.variable(block_pointer, StorageClass::PushConstant);
        Entry { main, uint, main_type, void, uint3, workgroup, uint_pointer, constants }
    }

    fn built_in(&mut self, uint3: u32, built_in: BuiltIn) -> u32 {
        let pointer = self.pointer_to(StorageClass::Input, uint3);
        let variable = self.variable(pointer, StorageClass::Input);
        self.decorate(variable, Decoration::BuiltIn, &[built_in as u32]);
        variable
    }

    /// A storage buffer of set 0.
    pub(super) fn buffer(&mut self, binding: u32, component: Component, writable: bool) -> Buffer {
        let element = self.component(component);
        let array = self.array(element, component.bytes());
        let pointer = self.pointer_to(StorageClass::StorageBuffer, array);
        let variable = self.variable(pointer, StorageClass::StorageBuffer);
        self.decorate(variable, Decoration::DescriptorSet, &[0]);
        self.decorate(variable, Decoration::Binding, &[binding]);
        if !writable {
            self.decorate(variable, Decoration::NonWritable, &[]);
        }
        Buffer { variable, pointer: self.pointer_to(StorageClass::StorageBuffer, element) }
    }

    /// The buffers of A, B, C and D: bindings 0 to 3 of set 0.
    pub(super) fn buffers(&mut self, components: [Component; 4]) -> [Buffer; 4] {
        let mut binding = 0..;
        components.map(|component| {
            let at = binding.next().expect("endless");
            self.buffer(at, component, at == 3)
        })
    }

    /// A pointer to an element of a buffer.
    pub(super) fn element(&mut self, buffer: Buffer, at: u32) -> u32 {
        let zero = self.constant(0);
        self.result(Op::AccessChain, buffer.pointer, &[buffer.variable, zero, at])
    }

    /// Begins `main` and returns the index of the tile that the workgroup computes.
    pub(super) fn begin(&mut self, entry: &Entry) -> u32 {
        let (_, group, first) = self.begin_with(entry, &[]);
        self.result(Op::IAdd, entry.uint, &[first, group])
    }

    /// Begins `main` with variables of these types; returns them, the index of the workgroup and the first push
    /// constant.
    pub(super) fn begin_with(&mut self, entry: &Entry, types: &[u32]) -> (Vec<u32>, u32, u32) {
        let pointers: Vec<u32> = types.iter().map(|ty| self.pointer_to(StorageClass::Function, *ty)).collect();
        let label = self.id();
        op(&mut self.code, Op::Function, &[entry.void, entry.main, 0, entry.main_type]);
        op(&mut self.code, Op::Label, &[label]);
        // Variables come first (SPIR-V 1.6, 2.4).
        let variables = pointers
            .into_iter()
            .map(|pointer| self.result(Op::Variable, pointer, &[StorageClass::Function as u32]))
            .collect();
        let group = self.first_of(entry, entry.workgroup);
        let pushed = self.pushed(entry, 0);
        (variables, group, pushed)
    }

    /// Loads a push constant; call it after the function has begun.
    pub(super) fn pushed(&mut self, entry: &Entry, index: u32) -> u32 {
        let index = self.constant(index);
        let pointer = self.result(Op::AccessChain, entry.uint_pointer, &[entry.constants, index]);
        self.result(Op::Load, entry.uint, &[pointer])
    }

    /// Declares the input whose first component is the index of an invocation in its workgroup.
    pub(super) fn invocations(&mut self, entry: &Entry) -> u32 {
        self.built_in(entry.uint3, BuiltIn::LocalInvocationId)
    }

    /// The first component of an input.
    pub(super) fn first_of(&mut self, entry: &Entry, variable: u32) -> u32 {
        let all = self.result(Op::Load, entry.uint3, &[variable]);
        self.result(Op::CompositeExtract, entry.uint, &[all, 0])
    }

    /// An instruction of `GLSL.std.450`.
    pub(super) fn glsl(&mut self, ty: u32, instruction: GlslStd450Op, operands: &[u32]) -> u32 {
        let set = match self.glsl {
            Some(set) => set,
            None => self.id(),
        };
        self.glsl = Some(set);
        let all: Vec<u32> = [set, instruction as u32].into_iter().chain(operands.iter().copied()).collect();
        self.result(Op::ExtInst, ty, &all)
    }

    /// Finishes the module of `main` with `local_size` invocations per workgroup, and a float-controls mode for its
    /// widths.
    pub(super) fn finish(mut self, entry: &Entry, local_size: u32, mode: Option<&Asked>) -> Vec<u32> {
        op(&mut self.code, Op::Return, &[]);
        op(&mut self.code, Op::FunctionEnd, &[]);
        let main = entry.main;
        let mut modes = Vec::new();
        op(&mut modes, Op::ExecutionMode, &[main, ExecutionMode::LocalSize as u32, local_size, 1, 1]);
        if let Some((mode, widths)) = mode {
            self.capability(mode.capability());
            for width in widths {
                op(&mut modes, Op::ExecutionMode, &[main, mode.execution_mode() as u32, *width]);
            }
        }
        // Version 1.6, an unregistered generator, the bound, schema 0.
        let mut words = vec![MAGIC_NUMBER, 0x0001_0600, 0, self.bound + 1, 0];
        let is_vulkan = self.capabilities.contains(&Capability::VulkanMemoryModel);
        let memory_model = if is_vulkan { MemoryModel::Vulkan } else { MemoryModel::GLSL450 };
        for capability in self.capabilities {
            op(&mut words, Op::Capability, &[capability as u32]);
        }
        for extension in self.extensions {
            op(&mut words, Op::Extension, &literal(extension));
        }
        if let Some(set) = self.glsl {
            let operands: Vec<u32> = [set].into_iter().chain(literal("GLSL.std.450")).collect();
            op(&mut words, Op::ExtInstImport, &operands);
        }
        op(&mut words, Op::MemoryModel, &[AddressingModel::Logical as u32, memory_model as u32]);
        let mut entry = vec![ExecutionModel::GLCompute as u32, main];
        entry.extend(literal("main"));
        entry.extend(self.interface);
        op(&mut words, Op::EntryPoint, &entry);
        for section in [&modes, &self.annotations, &self.globals, &self.code] {
            words.extend_from_slice(section);
        }
        words
    }
}
