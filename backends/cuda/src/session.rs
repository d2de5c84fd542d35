//! An open device: its context, compiled kernels, and launches.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtrMut, DriverError, LaunchConfig,
    PushKernelArg, result, sys,
};
use cudarc::nvrtc::Ptx;
use mxprobe_api::{Elements, Error, GemmOperands, Issued, OperationId, ScalarFunction, ScalarId, TileBatch};
use mxprobe_shaders::ptx::layout::{Layout, Layouts};
use mxprobe_shaders::ptx::scalar::{self, ScalarKernel};
use mxprobe_shaders::ptx::{Capability, ENTRY, Instruction, Kernel, Target};

use crate::driver::{failure, failure_in_context};
use crate::link::{accelerated_target, link};
use crate::opcodes::Code;
use crate::product;
use crate::timed::Resident;

/// The most bytes of one operand that a launch takes.
const BYTES_PER_LAUNCH: usize = 64 << 20;

/// What output memory holds before a launch, and before the second one that decides whether anything was written.
pub(crate) const FILLINGS: [u8; 2] = [0xa5, 0x5a];

/// A compiled kernel.
pub(crate) struct Compiled {
    function: CudaFunction,
    kernel: Kernel,
    layouts: Layouts,
    /// What its machine code consists of, or why that is not known.
    pub(crate) issued: Result<Issued, Error>,
}

/// A kernel's entry, and its machine code, or why the driver shows none.
pub(crate) struct Loaded {
    pub(crate) function: CudaFunction,
    pub(crate) cubin: Result<Vec<u8>, Error>,
}

/// A compiled kernel that is timed.
pub(crate) struct Timeable {
    pub(crate) function: CudaFunction,
    pub(crate) kernel: Kernel,
    /// Of an instruction's operands; `None` for the scalar units' kernel.
    pub(crate) layouts: Option<Layouts>,
}

/// A device's context and what was compiled for it.
pub(crate) struct Session {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) multiprocessors: u32,
    capability: Capability,
    compiled: HashMap<OperationId, Compiled>,
    timeable: HashMap<OperationId, Arc<Timeable>>,
    /// `None` of operations whose whole matrices no kernel multiplies.
    products: HashMap<OperationId, Option<product::Kernels>>,
    scalars: HashMap<(ScalarId, ScalarFunction), CudaFunction>,
    /// The operands of the operation that was timed last.
    pub(crate) resident: Option<Resident>,
    /// How long kernels ran that were launched between [`started`](Self::started) and [`ended`](Self::ended).
    kernel_ns: AtomicU64,
}

/// The moment before a kernel, on the device's clock.
pub(crate) struct Started(CudaEvent);

/// What a call in the device's context ends with.
pub(crate) fn called(call: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| failure_in_context(call, error)
}

impl Session {
    /// Opens the context of a device.
    pub(crate) fn open(ordinal: usize, multiprocessors: u32, capability: Capability) -> Result<Self, Error> {
        let context = CudaContext::new(ordinal).map_err(|error| failure("cuDevicePrimaryCtxRetain", error))?;
        // SAFETY: everything here is on one stream, and no buffer outlives the session.
        unsafe { context.disable_event_tracking() };
        keep_freed_memory(&context);
        let stream = context.default_stream();
        Ok(Self {
            context,
            stream,
            multiprocessors,
            capability,
            compiled: HashMap::new(),
            timeable: HashMap::new(),
            products: HashMap::new(),
            scalars: HashMap::new(),
            resident: None,
            kernel_ns: AtomicU64::new(0),
        })
    }

    /// The kernel of an instruction, compiled at its first use.
    pub(crate) fn compiled(
        &mut self,
        instruction: &Instruction,
        make: impl FnOnce() -> (Layouts, Kernel),
    ) -> Result<&Compiled, Error> {
        if !self.compiled.contains_key(&instruction.id) {
            let compiled = self.compile(instruction, make()).map_err(|error| error.context(&instruction.id))?;
            self.compiled.insert(instruction.id.clone(), compiled);
        }
        Ok(&self.compiled[&instruction.id])
    }

    fn compile(&self, instruction: &Instruction, (layouts, kernel): (Layouts, Kernel)) -> Result<Compiled, Error> {
        let Loaded { function, cubin } = self.load(&instruction.id.to_string(), &kernel.text)?;
        let issued = match cubin {
            Ok(cubin) => Ok(Code::of(&cubin, self.capability)?.issued(instruction.unit, &cubin)),
            Err(error) => Err(error),
        };
        Ok(Compiled { function, kernel, layouts, issued })
    }

    /// Compiles a text and loads it. The driver's linker does so, and shows the machine code; if it refuses a target that ends
    /// in `a`, the driver is given the text itself, and shows none. `name` is what the files of `MXPROBE_DUMP` are called.
    ///
    /// # Errors
    /// The linker's.
    pub(crate) fn load(&self, name: &str, ptx: &str) -> Result<Loaded, Error> {
        self.context.bind_to_thread().map_err(called("cuCtxSetCurrent"))?;
        let error = match link(name, ptx) {
            Ok(cubin) => {
                return Ok(Loaded { function: self.entry(Ptx::from_binary(cubin.clone()))?, cubin: Ok(cubin) });
            }
            Err(error) => error,
        };
        if accelerated_target(ptx).is_none() || error.is_device_lost() || error.is_missing_driver() {
            return Err(error);
        }
        match self.entry(Ptx::from_src(ptx)) {
            Ok(function) => {
                let words = format!("the driver loaded the PTX itself, which shows no machine code: {error}");
                Ok(Loaded { function, cubin: Err(Error::unsupported(words)) })
            }
            Err(_) => Err(error),
        }
    }

    /// The kernel that is timed in the place of an operation's, compiled at its first use.
    pub(crate) fn timeable(
        &mut self,
        id: &OperationId,
        make: impl FnOnce() -> (Option<Layouts>, Kernel),
    ) -> Result<Arc<Timeable>, Error> {
        if let Some(known) = self.timeable.get(id) {
            return Ok(Arc::clone(known));
        }
        let (layouts, kernel) = make();
        let loaded = self.load(&format!("{id}.timed"), &kernel.text).map_err(|error| error.context(id))?;
        let function = loaded.function;
        let made = Arc::new(Timeable { function, kernel, layouts });
        self.timeable.insert(id.clone(), Arc::clone(&made));
        Ok(made)
    }

    /// D = A·B + C with a kernel for whole matrices, compiled at its first use; `None` where that is not to be had.
    ///
    /// # Errors
    /// As [`product::multiply`], and what the driver's compiler says.
    pub(crate) fn multiply(
        &mut self,
        (instruction, target): (&Instruction, Target),
        product: &GemmOperands<'_>,
    ) -> Result<Option<Elements>, Error> {
        let id = &instruction.id;
        if !self.products.contains_key(id) {
            self.products.insert(id.clone(), product::Kernels::new(instruction));
        }
        let Some(kernels) = &self.products[id] else { return Ok(None) };
        let block = kernels.block(id, product, self.multiprocessors);
        if !kernels.has(block) {
            let compiled = kernels.compile(self, (instruction, target), block)?;
            if let Some(Some(kernels)) = self.products.get_mut(id) {
                kernels.insert(block, compiled);
            }
        }
        self.products[id].as_ref().map_or(Ok(None), |kernels| product::multiply(self, kernels, block, id, product))
    }

    /// Notes the time before a launch, on the device's clock.
    pub(crate) fn started(&self) -> Result<Started, Error> {
        self.event().map(Started)
    }

    /// Waits for what was launched since, and adds the time it took to [`kernel_ns`](Self::kernel_ns).
    pub(crate) fn ended(&self, started: &Started) -> Result<(), Error> {
        let milliseconds = started.0.elapsed_ms(&self.event()?).map_err(called("cuEventElapsedTime"))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time is positive and short")]
        self.kernel_ns.fetch_add((f64::from(milliseconds) * 1e6) as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Nanoseconds that kernels ran, of those that were timed.
    pub(crate) fn kernel_ns(&self) -> u64 {
        self.kernel_ns.load(Ordering::Relaxed)
    }

    /// An event with a time, recorded now.
    fn event(&self) -> Result<CudaEvent, Error> {
        let event =
            self.context.new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).map_err(called("cuEventCreate"))?;
        event.record(&self.stream).map_err(called("cuEventRecord"))?;
        Ok(event)
    }

    /// Memory of the device that holds these bytes.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<CudaSlice<u8>, Error> {
        self.stream.clone_htod(bytes).map_err(called("cuMemcpyHtoDAsync"))
    }

    /// What so many bytes of the device's memory hold, once all that was started has ended.
    pub(crate) fn download(&self, memory: &CudaSlice<u8>, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; len];
        self.stream.memcpy_dtoh(memory, &mut bytes).map_err(called("cuMemcpyDtoHAsync"))?;
        self.stream.synchronize().map_err(called("cuStreamSynchronize"))?;
        Ok(bytes)
    }

    /// Memory of the device that holds this byte everywhere.
    pub(crate) fn filled(&self, filling: u8, len: usize) -> Result<CudaSlice<u8>, Error> {
        // SAFETY: what is allocated is written below, all of it.
        let mut memory = unsafe { self.stream.alloc::<u8>(len) }.map_err(called("cuMemAllocAsync"))?;
        {
            let (start, _guard) = memory.device_ptr_mut(&self.stream);
            // SAFETY: the allocation has `len` bytes, and the stream orders this before everything that uses them.
            unsafe { result::memset_d8_async(start, filling, len, self.stream.cu_stream()) }
                .map_err(called("cuMemsetD8Async"))?;
        }
        Ok(memory)
    }

    fn entry(&self, image: Ptx) -> Result<CudaFunction, Error> {
        let module = self.context.load_module(image).map_err(called("cuModuleLoadData"))?;
        module.load_function(ENTRY).map_err(called("cuModuleGetFunction"))
    }

    /// Calls a scalar function once for each of its operands' whole calls; its kernel is compiled at its first use.
    ///
    /// # Errors
    /// What the driver reports; [`Error::is_nothing_written`] with the first call whose result no launch wrote.
    pub(crate) fn compute(&mut self, kernel: &ScalarKernel, operands: &Elements) -> Result<Elements, Error> {
        let (key, name) = ((kernel.id.clone(), kernel.function), format!("{} of {}", kernel.function, kernel.id));
        if !self.scalars.contains_key(&key) {
            let loaded = self.load(&format!("{}.{}", kernel.id, kernel.function), &kernel.text(ENTRY));
            self.scalars.insert(key.clone(), loaded.map_err(|error| error.context(&name))?.function);
        }
        let function = &self.scalars[&key];
        let to = kernel.function.result(kernel.id.format);
        let bytes_of_call = operands.format().storage_bytes() * kernel.function.arity();
        let mut results = Vec::new();
        for part in operands.bytes().chunks((BYTES_PER_LAUNCH / bytes_of_call).max(1) * bytes_of_call) {
            let calls = part.len() / bytes_of_call;
            let launch = |filling| self.launch_scalar(function, part, calls, to.storage_bytes(), filling);
            let unwritten = |results: &[u8], filling: u8| -> Vec<usize> {
                let elements = results.chunks_exact(to.storage_bytes()).enumerate();
                elements.filter(|(_, one)| one.iter().all(|byte| *byte == filling)).map(|(at, _)| at).collect()
            };
            let mut found = launch(FILLINGS[0])?;
            let suspects = unwritten(&found, FILLINGS[0]);
            if !suspects.is_empty() {
                found = launch(FILLINGS[1])?;
                let still = unwritten(&found, FILLINGS[1]);
                if let Some(call) = suspects.iter().find(|call| still.contains(call)) {
                    return Err(Error::nothing_written(format!(
                        "{name}: the launch succeeded and the result of call {call} of {calls} was never written"
                    )));
                }
            }
            results.extend_from_slice(&found);
        }
        Elements::from_bytes(to, results)
    }

    fn launch_scalar(
        &self,
        function: &CudaFunction,
        operands: &[u8],
        calls: usize,
        result_bytes: usize,
        filling: u8,
    ) -> Result<Vec<u8>, Error> {
        let a = self.upload(operands)?;
        let mut d_device = self.filled(filling, calls * result_bytes)?;
        let count = u32::try_from(calls).expect("a launch has few calls");
        let grid = count.div_ceil(scalar::THREADS);
        let configuration =
            LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (scalar::THREADS, 1, 1), shared_mem_bytes: 0 };
        let mut builder = self.stream.launch_builder(function);
        builder.arg(&a).arg(&mut d_device).arg(&count);
        // SAFETY: the parameters are those of the kernel's text, two pointers then a count; the buffers hold the operands
        // and the results of `count` calls, and both outlive the synchronisation below.
        unsafe { builder.launch(configuration) }.map_err(called("cuLaunchKernel"))?;
        self.download(&d_device, calls * result_bytes)
    }

    /// Computes every tile of a batch with a kernel that [`compiled`](Self::compiled) made.
    ///
    /// # Errors
    /// What the driver reports; [`Error::is_nothing_written`] with the first tile that no launch wrote.
    pub(crate) fn run(&self, id: &OperationId, batch: &TileBatch) -> Result<Elements, Error> {
        let compiled = &self.compiled[id];
        let layouts = &compiled.layouts;
        let group = layouts.c.group();
        let widest = [&layouts.a, &layouts.b, &layouts.c, &layouts.d].map(Layout::bytes).into_iter().max();
        let groups_per_launch = (BYTES_PER_LAUNCH / widest.expect("four operands")).max(1);
        let mut d = Vec::new();
        let mut tile = 0;
        while tile < batch.tiles {
            let tiles = (batch.tiles - tile).min(groups_per_launch * group);
            let launch = Launch { compiled, batch, first: tile, tiles, groups: tiles.div_ceil(group) };
            d.extend_from_slice(self.launch_checked(id, &launch)?.bytes());
            tile += tiles;
        }
        Elements::from_bytes(id.d, d)
    }

    /// Launches; where a tile still holds what was there before, launches once more over another filling.
    fn launch_checked(&self, id: &OperationId, launch: &Launch<'_>) -> Result<Elements, Error> {
        let layout = &launch.compiled.layouts.d;
        let unwritten = |d: &[u8], filling: u8| {
            let mut tiles = layout.tiles_where(d, |word| word.iter().all(|byte| *byte == filling));
            tiles.retain(|tile| *tile < launch.tiles);
            tiles
        };
        let mut d = self.launch(launch, FILLINGS[0])?;
        let suspects = unwritten(&d, FILLINGS[0]);
        if !suspects.is_empty() {
            d = self.launch(launch, FILLINGS[1])?;
            let still = unwritten(&d, FILLINGS[1]);
            if let Some(tile) = suspects.iter().find(|tile| still.contains(tile)) {
                return Err(Error::nothing_written(format!(
                    "{id}: the launch succeeded and {} of {} tiles were never written, tile {} first",
                    suspects.iter().filter(|tile| still.contains(tile)).count(),
                    launch.tiles,
                    launch.first + tile
                )));
            }
        }
        Ok(layout.unpack(&d, id.d, launch.tiles))
    }

    fn launch(&self, launch: &Launch<'_>, filling: u8) -> Result<Vec<u8>, Error> {
        let Launch { compiled: Compiled { function, kernel, layouts, .. }, batch, first, groups, .. } = launch;
        let upload = |layout: &Layout, elements: &Elements| self.upload(&layout.pack(elements, *first, *groups));
        let a = upload(&layouts.a, &batch.a)?;
        let b = upload(&layouts.b, &batch.b)?;
        let c = upload(&layouts.c, &batch.c)?;
        let d_bytes = groups * layouts.d.bytes();
        let mut d_device = self.filled(filling, d_bytes)?;
        let scales = match (&layouts.scales, &batch.scale_a, &batch.scale_b) {
            (Some((of_a, of_b)), Some(a), Some(b)) => Some((upload(of_a, a)?, upload(of_b, b)?)),
            _ => None,
        };
        let count = u32::try_from(*groups).expect("a launch has few groups");
        let blocks = count.div_ceil(kernel.groups_at_once).min(8 * self.multiprocessors).max(1);
        let configuration =
            LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (kernel.threads, 1, 1), shared_mem_bytes: 0 };
        let mut builder = self.stream.launch_builder(function);
        builder.arg(&a).arg(&b).arg(&c).arg(&mut d_device);
        if let Some((of_a, of_b)) = &scales {
            builder.arg(of_a).arg(of_b);
        }
        builder.arg(&count);
        // SAFETY: the parameters are those of the kernel's text, pointers then a count; every buffer holds `groups`
        // groups of the layouts that the text was made for, and all outlive the synchronisation below.
        unsafe { builder.launch(configuration) }.map_err(called("cuLaunchKernel"))?;
        self.download(&d_device, d_bytes)
    }
}

/// Has the device's memory pool keep what is freed: by default it gives memory back to the operating system at every
/// synchronisation, and every launch here allocates and synchronises. A device that refuses is slower, and no worse.
fn keep_freed_memory(context: &CudaContext) {
    if !context.has_async_alloc() {
        return;
    }
    let (mut pool, mut threshold) = (std::ptr::null_mut(), u64::MAX);
    // SAFETY: the pointer is to a variable that outlives the call, and the device is the context's.
    let found = unsafe { sys::cuDeviceGetDefaultMemPool(&raw mut pool, context.cu_device()) };
    if found == sys::CUresult::CUDA_SUCCESS {
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the driver returned the pool; this attribute's value is a 64-bit integer, which the call copies.
        let _ = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()) };
    }
}

/// Some consecutive tiles of a batch.
struct Launch<'a> {
    compiled: &'a Compiled,
    batch: &'a TileBatch,
    first: usize,
    tiles: usize,
    groups: usize,
}
