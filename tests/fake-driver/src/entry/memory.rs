//! Memory: allocations, copies, fills.

use std::collections::BTreeMap;

use super::*;

entries! {
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
}

fn copy_in(driver: &mut Driver, to: u64, from: *const c_void, len: usize) -> Result<(), Status> {
    driver.healthy()?;
    driver.counts.uploaded_bytes += len as u64;
    driver.memory.span(to, len)?.copy_from_slice(host(from, len)?);
    Ok(())
}

/// The host waits for a copy into memory that is not page-locked, asynchronous or not.
fn copy_out(driver: &mut Driver, to: *mut c_void, from: u64, len: usize) -> Result<(), Status> {
    driver.wait()?;
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
