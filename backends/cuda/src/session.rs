//! An open device: its context, its memory, its clock, and the loading of kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtrMut, DriverError, LaunchConfig, result, sys,
};
use cudarc::nvrtc::Ptx;
use mxprobe_api::Error;
use mxprobe_shaders::ptx::{Capability, ENTRY};

use crate::driver::{failure, failure_in_context};
use crate::link::{accelerated_target, link};

/// The maximum number of bytes of one operand in a launch.
pub(crate) const BYTES_PER_LAUNCH: usize = 64 << 20;

/// A kernel's entry, and its machine code or the reason why the driver does not show it.
pub(crate) struct Loaded {
    pub(crate) function: CudaFunction,
    pub(crate) cubin: Result<Vec<u8>, Error>,
}

/// A device's context.
pub(crate) struct Session {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) multiprocessors: u32,
    pub(crate) capability: Capability,
    /// The run time of all kernels launched between [`started`](Self::started) and [`ended`](Self::ended).
    kernel_ns: AtomicU64,
}

/// The time before a kernel, on the device's clock.
pub(crate) struct Started(CudaEvent);

/// Converts the error of a driver call in the device's context.
pub(crate) fn called(call: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| failure_in_context(call, error)
}

/// A launch of `blocks` blocks of `threads` threads.
pub(crate) fn grid(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

impl Session {
    /// Opens the context of a device.
    pub(crate) fn open(ordinal: usize, multiprocessors: u32, capability: Capability) -> Result<Self, Error> {
        let context = CudaContext::new(ordinal).map_err(|error| failure("cuDevicePrimaryCtxRetain", error))?;
        // SAFETY: all work here is on one stream, and no buffer outlives the session.
        unsafe { context.disable_event_tracking() };
        keep_freed_memory(&context);
        let stream = context.default_stream();
        Ok(Self { context, stream, multiprocessors, capability, kernel_ns: AtomicU64::new(0) })
    }

    /// Compiles and loads a kernel's text, using the driver's linker, which returns the machine code. If that refuses a
    /// target that ends in `a`, the driver loads the text directly, without showing machine code. `name` is the base
    /// name of the files in `MXPROBE_DUMP`.
    ///
    /// # Errors
    /// That of the linker.
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

    /// Records the time before a launch, on the device's clock.
    pub(crate) fn started(&self) -> Result<Started, Error> {
        self.event().map(Started)
    }

    /// Waits for the kernels launched since, and adds their run time to [`kernel_ns`](Self::kernel_ns).
    pub(crate) fn ended(&self, started: &Started) -> Result<(), Error> {
        let milliseconds = started.0.elapsed_ms(&self.event()?).map_err(called("cuEventElapsedTime"))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time is positive and short")]
        self.kernel_ns.fetch_add((f64::from(milliseconds) * 1e6) as u64, Ordering::Relaxed);
        Ok(())
    }

    /// The run time of all timed kernels, in nanoseconds.
    pub(crate) fn kernel_ns(&self) -> u64 {
        self.kernel_ns.load(Ordering::Relaxed)
    }

    /// Records an event with a timestamp.
    pub(crate) fn event(&self) -> Result<CudaEvent, Error> {
        let event =
            self.context.new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).map_err(called("cuEventCreate"))?;
        event.record(&self.stream).map_err(called("cuEventRecord"))?;
        Ok(event)
    }

    /// Copies bytes to new device memory.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Result<CudaSlice<u8>, Error> {
        self.stream.clone_htod(bytes).map_err(called("cuMemcpyHtoDAsync"))
    }

    /// Reads `len` bytes of device memory after all launched work has finished.
    pub(crate) fn download(&self, memory: &CudaSlice<u8>, len: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; len];
        self.stream.memcpy_dtoh(memory, &mut bytes).map_err(called("cuMemcpyDtoHAsync"))?;
        self.stream.synchronize().map_err(called("cuStreamSynchronize"))?;
        Ok(bytes)
    }

    /// Allocates device memory filled with a byte.
    pub(crate) fn filled(&self, filling: u8, len: usize) -> Result<CudaSlice<u8>, Error> {
        // SAFETY: all of the allocation is written below.
        let mut memory = unsafe { self.stream.alloc::<u8>(len) }.map_err(called("cuMemAllocAsync"))?;
        self.fill(&mut memory, filling)?;
        Ok(memory)
    }

    /// Fills device memory with a byte.
    pub(crate) fn fill(&self, memory: &mut CudaSlice<u8>, filling: u8) -> Result<(), Error> {
        let len = memory.num_bytes();
        let (start, _guard) = memory.device_ptr_mut(&self.stream);
        // SAFETY: the allocation has `len` bytes, and the stream orders this before everything that uses them.
        unsafe { result::memset_d8_async(start, filling, len, self.stream.cu_stream()) }
            .map_err(called("cuMemsetD8Async"))
    }

    fn entry(&self, image: Ptx) -> Result<CudaFunction, Error> {
        let module = self.context.load_module(image).map_err(called("cuModuleLoadData"))?;
        module.load_function(ENTRY).map_err(called("cuModuleGetFunction"))
    }
}

/// Makes the device's memory pool keep freed memory. By default it returns memory to the operating system at every
/// synchronisation, and every launch here allocates and synchronises. If the device refuses, it is merely slower.
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
