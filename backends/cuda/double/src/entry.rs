//! The entry points of the CUDA driver API, as `cuda.h` declares them.
//!
//! Each reads its arguments, asks the [`Driver`], and gives back a `CUresult`; a panic becomes `CUDA_ERROR_UNKNOWN`.
//! Whether pointers are good is the caller's word, as with the real driver.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{
    cubin,
    driver::{Driver, Refusal, say},
    settings::Settings,
    status::Status,
};

/// The one context of the one device.
const CONTEXT: usize = 0x100;
/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: c_uint = 1;

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
static LINKS: Mutex<BTreeMap<usize, Link>> = Mutex::new(BTreeMap::new());

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// A `CUlinkState`.
#[derive(Default)]
struct Link {
    /// Address and length of the caller's buffers.
    information_log: (usize, usize),
    error_log: (usize, usize),
    cubin: Vec<u8>,
}

/// Where a result is to be put; null is an invalid value.
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

/// Host memory that is read.
fn host<'a>(start: *const c_void, len: usize) -> Result<&'a [u8], Status> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: the caller of the driver API gives `len` bytes that stay as they are during the call.
    Ok(unsafe { slice::from_raw_parts(start.cast(), len) })
}

/// Host memory that is written.
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

/// An array of `len` pointers, or whatever has their size.
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
    // SAFETY: the caller of the driver API gives text that ends with a zero.
    unsafe { CStr::from_ptr(start) }.to_str().map_err(|_| Status::INVALID_VALUE)
}

fn locked() -> MutexGuard<'static, Option<Driver>> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn links() -> MutexGuard<'static, BTreeMap<usize, Link>> {
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the driver, if there is one.
fn driver<T>(ask: impl FnOnce(&mut Driver) -> Result<T, Status>) -> Result<T, Status> {
    ask(locked().as_mut().ok_or(Status::NOT_INITIALIZED)?)
}

/// As [`driver`], in a thread that has a context.
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

/// Says that this library is no driver of a GPU.
#[unsafe(no_mangle)]
extern "C" fn mxprobe_cuda_double() -> c_int {
    1
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
        // May be asked before cuInit.
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
    fn cuDeviceGetPCIBusId(name: *mut c_char, len: c_int, ordinal: c_int) {
        device(ordinal, |_| put_text(name, len, "0000:00:00.0"))
    }
    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, ordinal: c_int) {
        device(ordinal, |_| uuid.put(*b"mxprobe  double "))
    }
    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, ordinal: c_int) {
        device(ordinal, |_| uuid.put(*b"mxprobe  double "))
    }
    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, ordinal: c_int) {
        device(ordinal, |driver| value.put(driver.attribute(attribute)))
    }
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, ordinal: c_int) {
        device(ordinal, |driver| bytes.put(driver.memory.capacity()))
    }
    fn cuDeviceGetDefaultMemPool(pool: Out<usize>, ordinal: c_int) {
        device(ordinal, |_| pool.put(CONTEXT))
    }
    fn cuMemPoolSetAttribute(_pool: usize, _attribute: c_int, _value: *mut c_void) {
        driver(|_| Ok(()))
    }
    fn cuDevicePrimaryCtxRetain(found: Out<usize>, ordinal: c_int) {
        device(ordinal, |_| found.put(CONTEXT))
    }
    fn cuDevicePrimaryCtxRelease_v2(ordinal: c_int) {
        device(ordinal, |_| Ok(()))
    }
    fn cuDevicePrimaryCtxSetFlags_v2(ordinal: c_int, _flags: c_uint) {
        device(ordinal, |_| Ok(()))
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
    fn cuCtxGetDevice(found: Out<c_int>) {
        context(|_| found.put(0))
    }
    fn cuCtxSynchronize() {
        context(|driver| driver.healthy())
    }
    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        context(|_| least.put(0).and_then(|()| greatest.put(0)))
    }
    fn cuStreamCreate(stream: Out<u64>, _flags: c_uint) {
        context(|driver| stream.put(driver.new_stream()?))
    }
    fn cuStreamCreateWithPriority(stream: Out<u64>, _flags: c_uint, _priority: c_int) {
        context(|driver| stream.put(driver.new_stream()?))
    }
    fn cuStreamSynchronize(stream: u64) {
        context(|driver| driver.stream(stream))
    }
    fn cuStreamQuery(stream: u64) {
        context(|driver| driver.stream(stream))
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
            *driver.event(event)? = Some(Instant::now());
            Ok(())
        })
    }
    fn cuEventSynchronize(event: u64) {
        context(|driver| driver.event(event).map(|_| ()))
    }
    fn cuEventQuery(event: u64) {
        context(|driver| driver.event(event).map(|_| ()))
    }
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) {
        context(|driver| milliseconds.put(driver.elapsed_ms(start, end)?))
    }
    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) {
        context(|driver| milliseconds.put(driver.elapsed_ms(start, end)?))
    }
    fn cuEventDestroy_v2(event: u64) {
        context(|driver| driver.destroy_event(event))
    }
    fn cuMemAlloc_v2(address: Out<u64>, len: usize) {
        context(|driver| address.put(driver.allocate(len)?))
    }
    fn cuMemAllocAsync(address: Out<u64>, len: usize, stream: u64) {
        context(|driver| {
            driver.stream(stream)?;
            address.put(driver.allocate(len)?)
        })
    }
    fn cuMemFree_v2(address: u64) {
        context(|driver| driver.memory.release(address))
    }
    fn cuMemFreeAsync(address: u64, _stream: u64) {
        context(|driver| driver.memory.release(address))
    }
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        context(|driver| {
            free.put(driver.memory.free_bytes())?;
            total.put(driver.memory.capacity())
        })
    }
    fn cuMemHostAlloc(start: Out<*mut c_void>, len: usize, _flags: c_uint) {
        context(|_| start.put(host_allocation(len)?))
    }
    fn cuMemAllocHost_v2(start: Out<*mut c_void>, len: usize) {
        context(|_| start.put(host_allocation(len)?))
    }
    fn cuMemFreeHost(start: *mut c_void) {
        context(|_| release_host_allocation(start))
    }
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, len: usize) {
        context(|driver| copy_in(driver, to, from, len))
    }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| copy_in(driver, to, from, len)))
    }
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, len: usize) {
        context(|driver| copy_out(driver, to, from, len))
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| copy_out(driver, to, from, len)))
    }
    fn cuMemcpyDtoD_v2(to: u64, from: u64, len: usize) {
        context(|driver| copy_within(driver, to, from, len))
    }
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| copy_within(driver, to, from, len)))
    }
    fn cuMemsetD8_v2(to: u64, byte: u8, len: usize) {
        context(|driver| set(driver, to, &[byte], len))
    }
    fn cuMemsetD8Async(to: u64, byte: u8, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| set(driver, to, &[byte], len)))
    }
    fn cuMemsetD32_v2(to: u64, word: c_uint, len: usize) {
        context(|driver| set(driver, to, &word.to_le_bytes(), len))
    }
    fn cuMemsetD32Async(to: u64, word: c_uint, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| set(driver, to, &word.to_le_bytes(), len)))
    }
    fn cuModuleLoadData(module: Out<u64>, image: *const c_void) {
        context(|driver| module.put(load(driver, image)?))
    }
    fn cuModuleLoadDataEx(
        module: Out<u64>,
        image: *const c_void,
        count: c_uint,
        options: *const c_uint,
        values: *const usize,
    ) {
        let link = Link::new(count, options, values)?;
        context(|driver| {
            let loaded = load(driver, image);
            if loaded.is_err()
                && let Some(refusal) = text(image.cast()).ok().and_then(|source| driver.link(source).err())
            {
                put_log(link.error_log, &refusal.log)?;
            }
            module.put(loaded?)
        })
    }
    fn cuModuleGetFunction(function: Out<u64>, module: u64, name: *const c_char) {
        context(|driver| function.put(driver.function(module, text(name)?)?))
    }
    fn cuModuleUnload(module: u64) {
        context(|driver| driver.unload(module))
    }
    fn cuLinkCreate_v2(count: c_uint, options: *const c_uint, values: *const usize, state: Out<usize>) {
        context(|driver| driver.healthy())?;
        let link = Link::new(count, options, values)?;
        let mut links = links();
        let handle = 0x10 + links.last_key_value().map_or(0, |(last, _)| *last);
        state.put(handle)?;
        links.insert(handle, link);
        Ok(())
    }
    fn cuLinkAddData_v2(
        state: usize,
        kind: c_uint,
        data: *const c_void,
        len: usize,
        _name: *const c_char,
        _count: c_uint,
        _options: *const c_uint,
        _values: *const usize,
    ) {
        let mut links = links();
        let link = links.get_mut(&state).ok_or(Status::INVALID_HANDLE)?;
        let bytes = host(data, len)?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        let source = std::str::from_utf8(bytes).map_err(|_| Status::INVALID_PTX)?;
        if kind != INPUT_PTX {
            return Err(Status::INVALID_VALUE);
        }
        match context(|driver| Ok(driver.link(source)))? {
            Ok(cubin) => {
                link.cubin = cubin;
                put_log(link.information_log, "ptxas info    : compiled by mxprobe's test double")
            }
            Err(Refusal { status, log }) => {
                put_log(link.error_log, &log)?;
                Err(status)
            }
        }
    }
    fn cuLinkComplete(state: usize, cubin: Out<*const u8>, len: Out<usize>) {
        context(|driver| driver.healthy())?;
        let links = links();
        let link = links.get(&state).ok_or(Status::INVALID_HANDLE)?;
        if link.cubin.is_empty() {
            return Err(Status::INVALID_IMAGE);
        }
        cubin.put(link.cubin.as_ptr())?;
        len.put(link.cubin.len())
    }
    fn cuLinkDestroy(state: usize) {
        links().remove(&state).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }
    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_int, function: u64) {
        context(|driver| value.put(driver.function_attribute(function, attribute)?))
    }
    fn cuFuncSetAttribute(function: u64, attribute: c_int, _value: c_int) {
        context(|driver| driver.function_attribute(function, attribute).map(|_| ()))
    }
    fn cuFuncSetCacheConfig(function: u64, _config: c_int) {
        context(|driver| driver.parameters(function).map(|_| ()))
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

/// Text into a buffer, cut to its length, with a zero at its end.
fn put_text(buffer: *mut c_char, len: c_int, text: &str) -> Result<(), Status> {
    let buffer = host_mut(buffer.cast(), usize::try_from(len).map_err(|_| Status::INVALID_VALUE)?)?;
    let Some(room) = buffer.len().checked_sub(1) else { return Err(Status::INVALID_VALUE) };
    let count = room.min(text.len());
    buffer[..count].copy_from_slice(&text.as_bytes()[..count]);
    buffer[count] = 0;
    Ok(())
}

/// As [`put_text`], where the caller gave a buffer.
fn put_log((start, len): (usize, usize), log: &str) -> Result<(), Status> {
    if start == 0 || len == 0 {
        return Ok(());
    }
    let len = c_int::try_from(len).unwrap_or(c_int::MAX);
    put_text(std::ptr::with_exposed_provenance_mut(start), len, log)
}

impl Link {
    /// Reads `CU_JIT_INFO_LOG_BUFFER` (3), its size (4), and the same of errors (5, 6); other options change nothing.
    fn new(count: c_uint, options: *const c_uint, values: *const usize) -> Result<Self, Status> {
        let mut link = Self::default();
        let count = count as usize;
        for (option, value) in array(options, count)?.iter().zip(array(values, count)?) {
            match option {
                3 => link.information_log.0 = *value,
                4 => link.information_log.1 = *value as u32 as usize,
                5 => link.error_log.0 = *value,
                6 => link.error_log.1 = *value as u32 as usize,
                _ => {}
            }
        }
        for log in [link.information_log, link.error_log] {
            put_log(log, "")?;
        }
        Ok(link)
    }
}

/// A module from a file that this library wrote, or from PTX that ends with a zero.
fn load(driver: &mut Driver, image: *const c_void) -> Result<u64, Status> {
    if host(image, 4)? != b"\x7fELF" {
        return driver.load(text(image.cast())?.as_bytes());
    }
    let header: &[u8; 64] = host(image, 64)?.try_into().map_err(|_| Status::INVALID_IMAGE)?;
    let len = cubin::length(header).ok_or(Status::INVALID_IMAGE)?;
    driver.load(host(image, len)?)
}

fn copy_in(driver: &mut Driver, to: u64, from: *const c_void, len: usize) -> Result<(), Status> {
    driver.healthy()?;
    driver.memory.span(to, len)?.copy_from_slice(host(from, len)?);
    Ok(())
}

fn copy_out(driver: &mut Driver, to: *mut c_void, from: u64, len: usize) -> Result<(), Status> {
    driver.healthy()?;
    host_mut(to, len)?.copy_from_slice(driver.memory.span(from, len)?);
    Ok(())
}

fn copy_within(driver: &mut Driver, to: u64, from: u64, len: usize) -> Result<(), Status> {
    driver.healthy()?;
    let bytes = driver.memory.span(from, len)?.to_vec();
    driver.memory.span(to, len)?.copy_from_slice(&bytes);
    Ok(())
}

/// `len` copies of `pattern`.
fn set(driver: &mut Driver, to: u64, pattern: &[u8], len: usize) -> Result<(), Status> {
    driver.healthy()?;
    let bytes = driver.memory.span(to, len.checked_mul(pattern.len()).ok_or(Status::INVALID_VALUE)?)?;
    bytes.chunks_exact_mut(pattern.len()).for_each(|chunk| chunk.copy_from_slice(pattern));
    Ok(())
}

/// Page-locked memory is memory: the blocks by their address.
static HOST_BLOCKS: Mutex<BTreeMap<usize, Box<[u64]>>> = Mutex::new(BTreeMap::new());

fn host_allocation(len: usize) -> Result<*mut c_void, Status> {
    if len == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let mut block = vec![0u64; len.div_ceil(8)].into_boxed_slice();
    let start: *mut c_void = block.as_mut_ptr().cast();
    HOST_BLOCKS.lock().unwrap_or_else(PoisonError::into_inner).insert(start.expose_provenance(), block);
    Ok(start)
}

fn release_host_allocation(start: *mut c_void) -> Result<(), Status> {
    let mut blocks = HOST_BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    blocks.remove(&start.expose_provenance()).map(|_| ()).ok_or(Status::INVALID_VALUE)
}
