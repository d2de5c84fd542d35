//! The driver behind the entry points: handles, modules, memory, launches.

use std::{collections::BTreeMap, sync::Arc, thread, time::Duration};

use mxprobe_api::OperationId;

use crate::{
    attributes::SHARED_BYTES,
    cubin::{self, Code},
    issued::multiplies,
    lowering::{FFMA, Lowering, UTCMMA, lowering},
    machine::{self, Launch, Plans, Unit},
    memory::Memory,
    ptx::{self, Fault as PtxFault, Kernel, Module, Reach, Target},
    settings::{Fault, Jit, Settings},
    status::Status,
};

/// The size of the device's memory.
const MEMORY_BYTES: usize = 4 << 30;
/// Cycles in a millisecond of the device's clock.
const CYCLES_PER_MS: f64 = 500.0;
/// `CU_COMPUTE_ACCELERATED_TARGET_BASE` of cuda.h: with 90 on top, `sm_90a`.
const ACCELERATED_TARGET_BASE: usize = 0x10000;

/// A module that can be launched from.
#[derive(Debug)]
pub(crate) struct Program {
    module: Module,
    plans: Plans,
}

/// The status and error log of PTX that does not compile.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub status: Status,
    pub log: String,
}

/// The driver.
#[derive(Debug)]
pub(crate) struct Driver {
    settings: Settings,
    unit: Unit,
    pub memory: Memory,
    modules: BTreeMap<u64, Arc<Program>>,
    functions: BTreeMap<u64, (Arc<Program>, usize)>,
    /// The device's cycle count when each event was recorded.
    events: BTreeMap<u64, Option<u64>>,
    /// The device's cycle count. It has no other clock, so that timings do not depend on the load of the machine.
    cycles: u64,
    streams: Vec<u64>,
    next_handle: u64,
    /// The error of a kernel that no call has returned yet; the first call that waits returns it.
    pending: Option<Status>,
    /// The error of a kernel that was returned; every later call in the context returns it too.
    sticky: Option<Status>,
    launches: u64,
    /// How often the primary context was retained without being released.
    pub retained: usize,
    pub counts: Counts,
}

/// Counters for tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Bytes copied from the host.
    pub uploaded_bytes: u64,
    /// Bytes that the memory pool keeps.
    pub release_threshold: u64,
}

impl Driver {
    /// Creates a driver.
    ///
    /// # Errors
    /// The status that `cuInit` returns instead of success.
    pub(crate) fn new(settings: Settings) -> Result<Self, Status> {
        match settings.fault {
            Some(Fault::NoDevice) => return Err(Status::NO_DEVICE),
            Some(Fault::Stub) => return Err(Status::STUB_LIBRARY),
            Some(Fault::Mismatch) => return Err(Status::SYSTEM_DRIVER_MISMATCH),
            _ => {}
        }
        let unit = Unit::new(settings.model.clone(), settings.fails(Fault::Layout), settings.flip);
        Ok(Self {
            settings,
            unit,
            memory: Memory::new(MEMORY_BYTES),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            events: BTreeMap::new(),
            cycles: 0,
            streams: Vec::new(),
            next_handle: 0x1000,
            pending: None,
            sticky: None,
            launches: 0,
            retained: 0,
            counts: Counts::default(),
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The device's name.
    pub(crate) fn name(&self) -> String {
        format!("mxprobe test double of {} (PTX interpreter, no GPU)", self.settings.model_name)
    }

    /// Whether the context still works, as far as a call can tell that does not wait for launched kernels.
    pub(crate) fn healthy(&self) -> Result<(), Status> {
        self.sticky.map_or(Ok(()), Err)
    }

    /// Waits for the launched kernels. If one failed, the context is lost from then on.
    pub(crate) fn wait(&mut self) -> Result<(), Status> {
        self.sticky = self.sticky.or_else(|| self.pending.take());
        self.healthy()
    }

    /// Destroys the primary context with everything in it; the next one works again.
    pub(crate) fn reset(&mut self) {
        self.memory = Memory::new(MEMORY_BYTES);
        self.modules.clear();
        self.functions.clear();
        self.events.clear();
        self.streams.clear();
        (self.pending, self.sticky) = (None, None);
    }

    fn handle(&mut self) -> u64 {
        self.next_handle += 16;
        self.next_handle
    }

    pub(crate) fn allocate(&mut self, len: usize) -> Result<u64, Status> {
        self.healthy()?;
        if self.settings.fails(Fault::OutOfMemory) {
            return Err(Status::OUT_OF_MEMORY);
        }
        self.memory.allocate(len)
    }

    /// Compiles PTX into a cubin; `target` is the value of `CU_JIT_TARGET`, if it was given.
    pub(crate) fn link(&self, source: &str, target: Option<usize>) -> Result<Vec<u8>, Refusal> {
        let compiled = self.compile(source)?;
        self.targets(compiled.module.target, target)?;
        let kernels: Vec<Code> = compiled.module.kernels.iter().map(|kernel| self.code(kernel)).collect();
        Ok(cubin::write(self.settings.capability, &kernels, source, self.settings.linker))
    }

    /// Checks that the linker accepts PTX of this target for the device it was asked to compile for.
    fn targets(&self, of_text: Target, asked: Option<usize>) -> Result<(), Refusal> {
        let capability = self.settings.capability;
        let accelerated = ACCELERATED_TARGET_BASE + capability as usize;
        let is_exact = of_text.reach == Reach::Exact;
        let refused = match (self.settings.jit, asked) {
            (_, Some(asked)) if ![capability as usize, accelerated].contains(&asked) => true,
            (Jit::Any, _) => false,
            (Jit::ExplicitTarget, asked) => is_exact && asked != Some(accelerated),
            (Jit::LoadOnly, _) => is_exact,
        };
        if !refused {
            return Ok(());
        }
        // The wording of ptxas (openxla/xla, pull request 4970).
        let text = format!("PTX with .target '{of_text}' cannot be compiled for architecture 'sm_{capability}'");
        Err(Refusal { status: Status::INVALID_PTX, log: PtxFault::new(1, text).to_string() })
    }

    /// Compiles PTX as far as is needed to run it.
    fn compile(&self, source: &str) -> Result<Program, Refusal> {
        let refusal = |status, log: String| Err(Refusal { status, log });
        if self.settings.fails(Fault::NoJit) {
            return refusal(Status::JIT_COMPILER_NOT_FOUND, String::new());
        }
        if self.settings.fails(Fault::InvalidPtx) {
            let fault = PtxFault::new(1, "this double refuses all PTX");
            return refusal(Status::INVALID_PTX, fault.to_string());
        }
        let module = match ptx::compile(source) {
            Ok(module) => module,
            Err(fault) => return refusal(Status::INVALID_PTX, fault.to_string()),
        };
        let limit = self.settings.ptx_version();
        if module.version > limit {
            let text = format!(
                "Unsupported .version {}.{}; current version is '{}.{}'",
                module.version / 10,
                module.version % 10,
                limit / 10,
                limit % 10
            );
            return refusal(Status::UNSUPPORTED_PTX_VERSION, PtxFault::new(1, text).to_string());
        }
        if !ptx::loads_on(module.target, self.settings.capability) {
            let text = format!("{} does not run on a device of sm_{}", module.target, self.settings.capability);
            return refusal(Status::NO_BINARY_FOR_GPU, text);
        }
        let plans = self
            .unit
            .plans(&module)
            .map_err(|fault| Refusal { status: Status::INVALID_PTX, log: fault.to_string() })?;
        Ok(Program { module, plans })
    }

    fn code(&self, kernel: &Kernel) -> Code {
        let lower = |id: Option<OperationId>| match id {
            Some(_) if self.settings.fails(Fault::WrongOpcode) => {
                Lowering { opcodes: vec![(FFMA, 32)], routines: Vec::new() }
            }
            Some(id) => lowering(&id, self.settings.capability),
            // The machine instruction does not depend on the descriptor.
            None => Lowering { opcodes: vec![(UTCMMA, 1)], routines: Vec::new() },
        };
        Code { name: kernel.name.clone(), operations: multiplies(kernel).map(lower).collect() }
    }

    /// Whether launch faults apply to this kernel.
    fn is_struck(&self, kernel: &Kernel) -> bool {
        let Some(only) = &self.settings.only else { return true };
        multiplies(kernel).flatten().any(|id| id.to_string().starts_with(only.as_str()))
    }

    /// Counts a launch and applies the launch fault, if it is `struck`. Returns whether anything is computed.
    fn fault(&mut self, struck: bool) -> Result<bool, Status> {
        self.launches += 1;
        if self.pending.is_some() {
            // Nothing runs after a kernel that failed.
            return Ok(false);
        }
        let error = self.settings.error;
        match self.settings.fault.filter(|_| struck) {
            Some(Fault::Launch) => return Err(error),
            Some(Fault::LaunchAsync) => {
                self.pending = Some(error);
                return Ok(false);
            }
            Some(Fault::DeviceLost) if self.launches > self.settings.after => {
                self.sticky = Some(error);
                return Err(error);
            }
            Some(Fault::Silent) => return Ok(false),
            Some(Fault::Abort) => std::process::abort(),
            Some(Fault::Hang) => loop {
                thread::sleep(Duration::from_secs(60));
            },
            _ => {}
        }
        Ok(true)
    }

    /// Applies launch faults to a library's kernel, which `MXPROBE_FAKE_ONLY` may name.
    pub(crate) fn strike(&mut self, name: &str) -> Result<bool, Status> {
        self.healthy()?;
        let struck = self.settings.only.as_ref().is_none_or(|only| name.starts_with(only.as_str()));
        self.fault(struck)
    }

    /// Loads the output of [`link`](Self::link), or PTX.
    pub(crate) fn load(&mut self, image: &[u8]) -> Result<u64, Status> {
        self.healthy()?;
        let source = if image.starts_with(b"\x7fELF") {
            let (capability, source) = cubin::read(image).ok_or(Status::INVALID_IMAGE)?;
            if capability != self.settings.capability {
                return Err(Status::NO_BINARY_FOR_GPU);
            }
            source
        } else {
            std::str::from_utf8(image).map_err(|_| Status::INVALID_IMAGE)?
        };
        let program = self.compile(source).map_err(|refusal| refusal.status)?;
        let handle = self.handle();
        self.modules.insert(handle, Arc::new(program));
        Ok(handle)
    }

    pub(crate) fn unload(&mut self, module: u64) -> Result<(), Status> {
        self.modules.remove(&module).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn function(&mut self, module: u64, name: &str) -> Result<u64, Status> {
        self.healthy()?;
        let program = Arc::clone(self.modules.get(&module).ok_or(Status::INVALID_HANDLE)?);
        let index = program.module.kernels.iter().position(|kernel| kernel.name == name).ok_or(Status::NOT_FOUND)?;
        let handle = self.handle();
        self.functions.insert(handle, (program, index));
        Ok(handle)
    }

    fn kernel(&self, function: u64) -> Result<(Arc<Program>, usize), Status> {
        self.functions
            .get(&function)
            .map(|(program, index)| (Arc::clone(program), *index))
            .ok_or(Status::INVALID_HANDLE)
    }

    /// The value of a `CUfunction_attribute`.
    pub(crate) fn function_attribute(&self, function: u64, attribute: i32) -> Result<i32, Status> {
        let (program, index) = self.kernel(function)?;
        let kernel = &program.module.kernels[index];
        let value = match attribute {
            0 => kernel.maximum_threads as i32,
            1 => kernel.shared_bytes as i32,
            4 => kernel.register_masks.len().clamp(16, 255) as i32,
            5 => program.module.version as i32,
            6 => self.settings.capability.cast_signed(),
            8 => (SHARED_BYTES - kernel.shared_bytes) as i32,
            _ => 0,
        };
        Ok(value)
    }

    /// The offset and size in bytes of each parameter of a kernel.
    pub(crate) fn parameters(&self, function: u64) -> Result<Vec<(usize, usize)>, Status> {
        let (program, index) = self.kernel(function)?;
        Ok(program.module.kernels[index].parameters.clone())
    }

    /// Runs a kernel to its end. If it fails, the next call that waits returns the error.
    pub(crate) fn launch(
        &mut self,
        function: u64,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared_bytes: usize,
        parameters: Vec<u8>,
    ) -> Result<(), Status> {
        self.healthy()?;
        let (program, kernel_index) = self.kernel(function)?;
        let kernel = &program.module.kernels[kernel_index];
        let product = |sizes: [u32; 3]| sizes.iter().try_fold(1u32, |product, size| product.checked_mul(*size));
        let threads = product(block).filter(|threads| (1..=1024).contains(threads)).ok_or(Status::INVALID_VALUE)?;
        product(grid).filter(|blocks| *blocks > 0).ok_or(Status::INVALID_VALUE)?;
        if kernel.required_threads.is_some_and(|required| required != threads) {
            return Err(Status::INVALID_VALUE);
        }
        if threads > kernel.maximum_threads || kernel.shared_bytes + dynamic_shared_bytes > SHARED_BYTES {
            return Err(Status::LAUNCH_OUT_OF_RESOURCES);
        }
        if !self.fault(self.is_struck(kernel))? {
            return Ok(());
        }
        let (plans, unit) = (&program.plans, &self.unit);
        let multiprocessors = self.settings.multiprocessors.unsigned_abs();
        let launch = Launch {
            kernel,
            kernel_index,
            plans,
            unit,
            grid,
            block,
            multiprocessors,
            dynamic_shared_bytes,
            parameters,
        };
        match machine::run(&launch, &mut self.memory) {
            Ok(cycles) => self.work(cycles),
            Err(trap) => {
                say(&format!("kernel `{}`, line {}: {}", kernel.name, trap.line, trap.text));
                self.pending = Some(trap.status);
            }
        }
        Ok(())
    }

    pub(crate) fn new_stream(&mut self) -> Result<u64, Status> {
        self.healthy()?;
        let handle = self.handle();
        self.streams.push(handle);
        Ok(handle)
    }

    /// Checks that a stream exists; 0, 1 and 2 are the default streams.
    pub(crate) fn stream(&self, stream: u64) -> Result<(), Status> {
        self.healthy()?;
        if stream <= 2 || self.streams.contains(&stream) { Ok(()) } else { Err(Status::INVALID_HANDLE) }
    }

    pub(crate) fn destroy_stream(&mut self, stream: u64) -> Result<(), Status> {
        let at = self.streams.iter().position(|one| *one == stream).ok_or(Status::INVALID_HANDLE)?;
        self.streams.swap_remove(at);
        Ok(())
    }

    pub(crate) fn new_event(&mut self) -> Result<u64, Status> {
        self.healthy()?;
        let handle = self.handle();
        self.events.insert(handle, None);
        Ok(handle)
    }

    pub(crate) fn event(&mut self, event: u64) -> Result<&mut Option<u64>, Status> {
        self.healthy()?;
        self.events.get_mut(&event).ok_or(Status::INVALID_HANDLE)
    }

    /// Records the current cycle count in an event.
    pub(crate) fn record(&mut self, event: u64) -> Result<(), Status> {
        let now = self.cycles;
        *self.event(event)? = Some(now);
        Ok(())
    }

    /// Advances the device's clock by this many cycles.
    pub(crate) fn work(&mut self, cycles: u64) {
        self.cycles += cycles;
    }

    pub(crate) fn destroy_event(&mut self, event: u64) -> Result<(), Status> {
        self.events.remove(&event).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }

    /// Milliseconds from one event to another.
    pub(crate) fn elapsed_ms(&mut self, start: u64, end: u64) -> Result<f32, Status> {
        let start = self.event(start)?.ok_or(Status::INVALID_HANDLE)?;
        let end = self.event(end)?.ok_or(Status::INVALID_HANDLE)?;
        let cycles = end.saturating_sub(start);
        #[expect(clippy::cast_precision_loss, reason = "the driver's own type")]
        Ok((cycles as f64 / CYCLES_PER_MS) as f32)
    }
}

/// Prints what no result code can convey to standard error, the only way for a driver to reach a person.
#[allow(clippy::print_stderr)]
pub(crate) fn say(text: &str) {
    eprintln!("mxprobe test double: {text}");
}
