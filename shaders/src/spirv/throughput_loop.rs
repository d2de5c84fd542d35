//! Throughput shaders: the multiply-add in a loop over operands held in registers. Shaders of whole matrices use the
//! same loop.

use ::spirv::{Capability, CooperativeMatrixLayout, CooperativeMatrixUse, Decoration, GlslStd450Op, Op};

use super::component::Component;
use super::float_mode::Asked;
use super::matrix::Kernel;
use super::module::{Buffer, Entry, Module, op};

/// The number of matrices of A, and of B, that a workgroup holds.
pub const OPERANDS: u32 = 2;
/// The number of sums that a workgroup holds: sum `i` adds products of A `i` modulo 2 and B `i / 2`.
pub const SUMS: u32 = 4;
/// The number of sums in an invocation of the shader of [`fma`], each with its own b, and with the a of the first.
pub const FMA_SUMS: u32 = 8;
/// The number of invocations in a workgroup of that shader.
pub const FMA_INVOCATIONS: u32 = 64;

/// The number of steps in one iteration of the loop, so that counting, and moving sums to where an iteration expects them,
/// do not displace multiplying.
const UNROLLED: u32 = 8;

/// The common beginning of these shaders: module, entry point and buffers, and a loop for the steps.
pub(super) struct Shader {
    pub(super) module: Module,
    pub(super) entry: Entry,
    pub(super) buffers: [Buffer; 4],
}

impl Shader {
    /// A shader with this many push constants, the first being the number of steps.
    pub(super) fn new(components: [Component; 4], constants: usize) -> Self {
        let mut module = Module::default();
        module.capability(Capability::Shader);
        components.into_iter().for_each(|component| module.needs(component));
        let entry = module.entry(constants);
        let buffers = module.buffers(components);
        Self { module, entry, buffers }
    }

    /// The same, for cooperative matrices.
    pub(super) fn of_matrices(components: [Component; 4], constants: usize) -> Self {
        let mut shader = Self::new(components, constants);
        shader.module.capability(Capability::CooperativeMatrixKHR);
        shader.module.capability(Capability::VulkanMemoryModel);
        shader.module.extension("SPV_KHR_cooperative_matrix");
        shader
    }

    /// Begins the function, with variables of these types; returns them, the index of the workgroup and the number of
    /// steps.
    pub(super) fn begin(&mut self, types: &[u32]) -> (Vec<u32>, u32, u32) {
        self.module.begin_with(&self.entry, types)
    }

    /// Repeats `step` `steps` times; `counter` is a variable for the count.
    pub(super) fn repeat(&mut self, counter: u32, steps: u32, step: impl FnOnce(&mut Module)) {
        let (module, uint) = (&mut self.module, &self.entry.uint);
        let boolean = module.ty(Op::TypeBool, &[]);
        let [zero, one] = [module.constant(0), module.constant(1)];
        let [header, test, body, next, merge] = std::array::from_fn(|_| module.id());
        let code = &mut module.code;
        op(code, Op::Store, &[counter, zero]);
        op(code, Op::Branch, &[header]);
        op(code, Op::Label, &[header]);
        op(code, Op::LoopMerge, &[merge, next, 0]);
        op(code, Op::Branch, &[test]);
        op(code, Op::Label, &[test]);
        let count = module.result(Op::Load, *uint, &[counter]);
        let goes_on = module.result(Op::ULessThan, boolean, &[count, steps]);
        op(&mut module.code, Op::BranchConditional, &[goes_on, body, merge]);
        op(&mut module.code, Op::Label, &[body]);
        step(module);
        op(&mut module.code, Op::Branch, &[next]);
        op(&mut module.code, Op::Label, &[next]);
        let count = module.result(Op::Load, *uint, &[counter]);
        let count = module.result(Op::IAdd, *uint, &[count, one]);
        op(&mut module.code, Op::Store, &[counter, count]);
        op(&mut module.code, Op::Branch, &[header]);
        op(&mut module.code, Op::Label, &[merge]);
    }

    /// Performs `steps` steps, each of which replaces the value `at` of every one of the variables `sums` by what `add`
    /// makes of it; [`UNROLLED`] of them in an iteration, then the rest one by one.
    fn accumulate(
        &mut self,
        counter: u32,
        steps: u32,
        ty: u32,
        sums: &[u32],
        add: impl Fn(&mut Module, usize, u32) -> u32,
    ) {
        let uint = self.entry.uint;
        let unrolled = self.module.constant(UNROLLED);
        let [rounds, rest] = [Op::UDiv, Op::UMod].map(|part| self.module.result(part, uint, &[steps, unrolled]));
        for (iterations, of_iteration) in [(rounds, UNROLLED), (rest, 1)] {
            self.repeat(counter, iterations, |module| {
                let mut values: Vec<u32> = sums.iter().map(|sum| module.result(Op::Load, ty, &[*sum])).collect();
                for _ in 0..of_iteration {
                    for (at, value) in values.iter_mut().enumerate() {
                        *value = add(module, at, *value);
                    }
                }
                for (sum, value) in sums.iter().zip(values) {
                    op(&mut module.code, Op::Store, &[*sum, value]);
                }
            });
        }
    }

    /// The element `at` of a buffer.
    fn element(&mut self, buffer: usize, at: u32) -> u32 {
        self.module.element(self.buffers[buffer], at)
    }

    /// Computes a·factor + offset.
    fn scaled(&mut self, a: u32, factor: u32, offset: u32) -> u32 {
        let [factor, offset] = [factor, offset].map(|value| self.module.constant(value));
        let product = self.module.result(Op::IMul, self.entry.uint, &[a, factor]);
        self.module.result(Op::IAdd, self.entry.uint, &[product, offset])
    }

    pub(super) fn end(self, invocations: u32, mode: Option<&Asked>) -> Vec<u32> {
        self.module.finish(&self.entry, invocations, mode)
    }
}

impl Kernel {
    /// A shader with workgroups of one subgroup that hold [`OPERANDS`] matrices of A and of B and [`SUMS`] sums, and
    /// perform as many steps as the push constant says; each step adds a product to every sum. Set 0 bindings 0 to 2
    /// hold those matrices, row-major, the same for every workgroup; binding 3 receives the sums of one workgroup after
    /// another.
    #[must_use]
    pub fn throughput_words(&self) -> Vec<u32> {
        let (m, n, k) = self.shape;
        let mut shader = Shader::of_matrices(self.components, 1);
        let [a, b, _, d] = self.components;
        let matrix_a = shader.module.matrix(a, m, k, CooperativeMatrixUse::MatrixAKHR);
        let matrix_b = shader.module.matrix(b, k, n, CooperativeMatrixUse::MatrixBKHR);
        let matrix_d = shader.module.matrix(d, m, n, CooperativeMatrixUse::MatrixAccumulatorKHR);
        let mut types = vec![shader.entry.uint];
        types.extend(std::iter::repeat_n(matrix_d, SUMS as usize));
        let (variables, group, steps) = shader.begin(&types);
        let [row_major, stride_k, stride_n] =
            [CooperativeMatrixLayout::RowMajorKHR as u32, k, n].map(|value| shader.module.constant(value));
        let load = |shader: &mut Shader, buffer: usize, ty: u32, at: u32, stride: u32| {
            let at = shader.module.constant(at);
            let pointer = shader.element(buffer, at);
            shader.module.result(Op::CooperativeMatrixLoadKHR, ty, &[pointer, row_major, stride])
        };
        let of_a: Vec<u32> = (0..OPERANDS).map(|at| load(&mut shader, 0, matrix_a, at * m * k, stride_k)).collect();
        let of_b: Vec<u32> = (0..OPERANDS).map(|at| load(&mut shader, 1, matrix_b, at * k * n, stride_n)).collect();
        for (at, sum) in (0..SUMS).zip(&variables[1..]) {
            let start = load(&mut shader, 2, matrix_d, at * m * n, stride_n);
            op(&mut shader.module.code, Op::Store, &[*sum, start]);
        }
        let count = OPERANDS as usize;
        shader.accumulate(variables[0], steps, matrix_d, &variables[1..], |module, at, before| {
            self.multiply_add(module, matrix_d, [of_a[at % count], of_b[at / count], before])
        });
        for (at, sum) in (0..SUMS).zip(&variables[1..]) {
            let last = shader.module.result(Op::Load, matrix_d, &[*sum]);
            let place = shader.scaled(group, SUMS * m * n, at * m * n);
            let pointer = shader.element(3, place);
            op(&mut shader.module.code, Op::CooperativeMatrixStoreKHR, &[pointer, last, row_major, stride_n]);
        }
        shader.end(self.subgroup_size, self.mode.as_ref())
    }
}

/// The same with `Fma` of GLSL.std.450 on f32: [`FMA_INVOCATIONS`] invocations per workgroup, [`FMA_SUMS`] sums each, with
/// one factor in common: registers may not deliver three operands in every cycle.
#[must_use]
pub fn fma() -> Vec<u32> {
    let mut shader = Shader::new([Component::F32; 4], 1);
    let float = shader.module.component(Component::F32);
    let uint = shader.entry.uint;
    let invocations = shader.module.invocations(&shader.entry);
    let mut types = vec![uint];
    types.extend([float; FMA_SUMS as usize]);
    let (variables, group, steps) = shader.begin(&types);
    let lane = shader.module.first_of(&shader.entry, invocations);
    let load = |shader: &mut Shader, buffer: usize, at: u32| {
        let place = shader.scaled(lane, FMA_SUMS, at);
        let pointer = shader.element(buffer, place);
        shader.module.result(Op::Load, float, &[pointer])
    };
    let common = load(&mut shader, 0, 0);
    let factors: Vec<u32> = (0..FMA_SUMS).map(|at| load(&mut shader, 1, at)).collect();
    for (at, sum) in (0..FMA_SUMS).zip(&variables[1..]) {
        let start = load(&mut shader, 2, at);
        op(&mut shader.module.code, Op::Store, &[*sum, start]);
    }
    shader.accumulate(variables[0], steps, float, &variables[1..], |module, at, before| {
        let after = module.glsl(float, GlslStd450Op::Fma, &[common, factors[at], before]);
        // Otherwise a driver may add the products of several steps first.
        module.decorate(after, Decoration::NoContraction, &[]);
        after
    });
    let first = shader.scaled(group, FMA_INVOCATIONS, 0);
    let own = shader.module.result(Op::IAdd, uint, &[first, lane]);
    for (at, sum) in (0..FMA_SUMS).zip(&variables[1..]) {
        let last = shader.module.result(Op::Load, float, &[*sum]);
        let place = shader.scaled(own, FMA_SUMS, at);
        let pointer = shader.element(3, place);
        op(&mut shader.module.code, Op::Store, &[pointer, last]);
    }
    shader.end(FMA_INVOCATIONS, None)
}
