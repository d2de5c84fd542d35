//! The entry points of the CUDA driver API, as `cuda.h` declares them.
//!
//! Each reads its arguments, calls the [`Driver`], and returns a `CUresult`; a panic becomes `CUDA_ERROR_UNKNOWN`.
//! The caller must pass valid pointers, as to the real driver.

use std::{
    cell::Cell,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    attributes,
    driver::{Driver, say},
    settings::Settings,
    status::Status,
};

/// The one context of the one device.
const CONTEXT: usize = 0x100;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: c_int = 4;

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// A pointer to which a result is written; null is an invalid value.
#[repr(transparent)]
struct Out<T>(*mut T);

impl<T> Out<T> {
    fn put(self, value: T) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: the caller of the driver API gives a pointer to a variable of this type.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }
}

/// Host memory to read.
fn host<'a>(start: *const c_void, len: usize) -> Result<&'a [u8], Status> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller of the driver API gives `len` bytes that do not change during the call.
    Ok(unsafe { slice::from_raw_parts(start.cast(), len) })
}

/// Host memory to write.
fn host_mut<'a>(start: *mut c_void, len: usize) -> Result<&'a mut [u8], Status> {
    if len == 0 {
        return Ok(&mut []);
    }
    if start.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller of the driver API gives `len` bytes that nobody else uses during the call.
    Ok(unsafe { slice::from_raw_parts_mut(start.cast(), len) })
}

/// An array of `len` values, such as pointers.
fn array<'a, T>(start: *const T, len: usize) -> Result<&'a [T], Status> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller of the driver API gives an aligned array of that length.
    Ok(unsafe { slice::from_raw_parts(start, len) })
}

fn text<'a>(start: *const c_char) -> Result<&'a str, Status> {
    if start.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller of the driver API gives text that ends with a NUL.
    unsafe { CStr::from_ptr(start) }.to_str().map_err(|_| Status::INVALID_VALUE)
}

fn locked() -> MutexGuard<'static, Option<Driver>> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `ask` with the driver, which must be initialized.
fn driver<T>(ask: impl FnOnce(&mut Driver) -> Result<T, Status>) -> Result<T, Status> {
    ask(locked().as_mut().ok_or(Status::NOT_INITIALIZED)?)
}

/// As [`driver`], for a thread that must have a current context.
fn context<T>(ask: impl FnOnce(&mut Driver) -> Result<T, Status>) -> Result<T, Status> {
    if CURRENT.get() == 0 {
        return Err(Status::INVALID_CONTEXT);
    }
    driver(ask)
}

fn device<T>(ordinal: c_int, ask: impl FnOnce(&mut Driver) -> Result<T, Status>) -> Result<T, Status> {
    driver(|driver| if ordinal == 0 { ask(driver) } else { Err(Status::INVALID_DEVICE) })
}

fn guarded(name: &str, call: impl FnOnce() -> Result<(), Status>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => 0,
        Ok(Err(status)) => status.0,
        Err(_) => {
            say(&format!("a panic in {name}"));
            Status::UNKNOWN.0
        }
    }
}

macro_rules! entries {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind),*) -> c_int {
            guarded(stringify!($name), || $body)
        }
    )*};
}

mod cublas;
mod cublaslt;
mod link;
mod memory;

/// Shows that this library is not the driver of a GPU.
#[unsafe(no_mangle)]
extern "C" fn mxprobe_fake_driver() -> c_int {
    1
}

/// A counter since `cuInit`, by number: 0 counts bytes copied from the host, 1 bytes that the memory pool keeps; others
/// are 0.
#[unsafe(no_mangle)]
extern "C" fn mxprobe_fake_driver_count(which: c_int) -> u64 {
    let counts = locked().as_ref().map(|driver| driver.counts).unwrap_or_default();
    match which {
        0 => counts.uploaded_bytes,
        1 => counts.release_threshold,
        _ => 0,
    }
}

entries! {
    fn cuInit(_flags: c_uint) {
        let mut driver = locked();
        if driver.is_none() {
            let settings = Settings::from_environment().map_err(|error| {
                say(&error);
                Status::NO_DEVICE
            })?;
            *driver = Some(Driver::new(settings)?);
        }
        Ok(())
    }
    fn cuDriverGetVersion(version: Out<c_int>) {
        // Programs may call this before cuInit.
        let asked = locked().as_ref().map(|driver| driver.settings().driver_version);
        let found = asked.or_else(|| Settings::from_environment().ok().map(|settings| settings.driver_version));
        version.put(found.ok_or(Status::NOT_INITIALIZED)?)
    }
    fn cuDeviceGetCount(count: Out<c_int>) {
        driver(|_| count.put(1))
    }
    fn cuDeviceGet(found: Out<c_int>, ordinal: c_int) {
        device(ordinal, |_| found.put(ordinal))
    }
    fn cuDeviceGetName(name: *mut c_char, len: c_int, ordinal: c_int) {
        device(ordinal, |driver| put_text(name, len, &driver.name()))
    }
    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, ordinal: c_int) {
        device(ordinal, |_| uuid.put(*b"mxprobe  double "))
    }
    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, ordinal: c_int) {
        device(ordinal, |driver| value.put(attributes::attribute(driver.settings(), attribute)))
    }
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, ordinal: c_int) {
        device(ordinal, |driver| bytes.put(driver.memory.capacity()))
    }
    fn cuDeviceGetDefaultMemPool(pool: Out<usize>, ordinal: c_int) {
        device(ordinal, |_| pool.put(CONTEXT))
    }
    fn cuMemPoolSetAttribute(pool: usize, attribute: c_int, value: *mut c_void) {
        let value = u64::from_le_bytes(host(value, 8)?.try_into().map_err(|_| Status::INVALID_VALUE)?);
        driver(|driver| {
            if (pool, attribute) != (CONTEXT, RELEASE_THRESHOLD) {
                return Err(Status::INVALID_VALUE);
            }
            driver.counts.release_threshold = value;
            Ok(())
        })
    }
    fn cuDevicePrimaryCtxRetain(found: Out<usize>, ordinal: c_int) {
        device(ordinal, |driver| {
            driver.retained += 1;
            found.put(CONTEXT)
        })
    }
    fn cuDevicePrimaryCtxRelease_v2(ordinal: c_int) {
        device(ordinal, |driver| {
            driver.retained = driver.retained.checked_sub(1).ok_or(Status::INVALID_CONTEXT)?;
            Ok(())
        })
    }
    fn cuDevicePrimaryCtxReset_v2(ordinal: c_int) {
        device(ordinal, |driver| {
            driver.reset();
            Ok(())
        })
    }
    fn cuCtxGetCurrent(found: Out<usize>) {
        driver(|_| found.put(CURRENT.get()))
    }
    fn cuCtxSetCurrent(wanted: usize) {
        driver(|_| Ok(()))?;
        if wanted != 0 && wanted != CONTEXT {
            return Err(Status::INVALID_CONTEXT);
        }
        CURRENT.set(wanted);
        Ok(())
    }
    fn cuCtxSynchronize() {
        context(Driver::wait)
    }
    fn cuStreamCreate(stream: Out<u64>, _flags: c_uint) {
        context(|driver| stream.put(driver.new_stream()?))
    }
    fn cuStreamSynchronize(stream: u64) {
        context(|driver| driver.wait().and_then(|()| driver.stream(stream)))
    }
    fn cuStreamWaitEvent(stream: u64, event: u64, _flags: c_uint) {
        context(|driver| {
            driver.stream(stream)?;
            driver.event(event).map(|_| ())
        })
    }
    fn cuStreamDestroy_v2(stream: u64) {
        context(|driver| driver.destroy_stream(stream))
    }
    fn cuEventCreate(event: Out<u64>, _flags: c_uint) {
        context(|driver| event.put(driver.new_event()?))
    }
    fn cuEventRecord(event: u64, stream: u64) {
        context(|driver| {
            driver.stream(stream)?;
            driver.record(event)
        })
    }
    fn cuEventSynchronize(event: u64) {
        context(|driver| driver.wait().and_then(|()| driver.event(event).map(|_| ())))
    }
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) {
        context(|driver| milliseconds.put(driver.elapsed_ms(start, end)?))
    }
    fn cuEventDestroy_v2(event: u64) {
        context(|driver| driver.destroy_event(event))
    }
    fn cuModuleGetFunction(function: Out<u64>, module: u64, name: *const c_char) {
        context(|driver| function.put(driver.function(module, text(name)?)?))
    }
    fn cuModuleUnload(module: u64) {
        context(|driver| driver.unload(module))
    }
    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_int, function: u64) {
        context(|driver| value.put(driver.function_attribute(function, attribute)?))
    }
    fn cuLaunchKernel(
        function: u64,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: u64,
        parameters: *const *const c_void,
        extra: *const c_void,
    ) {
        if !extra.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        context(|driver| {
            driver.stream(stream)?;
            let wanted = driver.parameters(function)?;
            let mut packed = Vec::new();
            for ((offset, size), pointer) in wanted.iter().zip(array(parameters, wanted.len())?) {
                packed.resize(*offset, 0);
                packed.extend(host(*pointer, *size)?);
            }
            let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
            driver.launch(function, grid, block, shared_bytes as usize, packed)
        })
    }
    fn cuGetErrorName(code: c_int, name: Out<*const c_char>) {
        name.put(Status::describe(code).ok_or(Status::INVALID_VALUE)?.0.as_ptr())
    }
    fn cuGetErrorString(code: c_int, description: Out<*const c_char>) {
        description.put(Status::describe(code).ok_or(Status::INVALID_VALUE)?.1.as_ptr())
    }
}

/// Copies text into a buffer, cut to the buffer's length and terminated by a NUL.
fn put_text(buffer: *mut c_char, len: c_int, text: &str) -> Result<(), Status> {
    let buffer = host_mut(buffer.cast(), usize::try_from(len).map_err(|_| Status::INVALID_VALUE)?)?;
    let Some(room) = buffer.len().checked_sub(1) else { return Err(Status::INVALID_VALUE) };
    let count = room.min(text.len());
    buffer[..count].copy_from_slice(&text.as_bytes()[..count]);
    buffer[count] = 0;
    Ok(())
}
