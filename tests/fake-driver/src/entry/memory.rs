//! Memory: allocations, copies, fills.

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
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| copy_in(driver, to, from, len)))
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| copy_out(driver, to, from, len)))
    }
    fn cuMemsetD8_v2(to: u64, byte: u8, len: usize) {
        context(|driver| set(driver, to, byte, len))
    }
    fn cuMemsetD8Async(to: u64, byte: u8, len: usize, stream: u64) {
        context(|driver| driver.stream(stream).and_then(|()| set(driver, to, byte, len)))
    }
}

fn copy_in(driver: &mut Driver, to: u64, from: *const c_void, len: usize) -> Result<(), Status> {
    driver.healthy()?;
    driver.counts.uploaded_bytes += len as u64;
    driver.memory.span(to, len)?.copy_from_slice(host(from, len)?);
    Ok(())
}

/// Copies to the host. The host waits for copies into memory that is not page-locked, even asynchronous ones.
fn copy_out(driver: &mut Driver, to: *mut c_void, from: u64, len: usize) -> Result<(), Status> {
    driver.wait()?;
    host_mut(to, len)?.copy_from_slice(driver.memory.span(from, len)?);
    Ok(())
}

fn set(driver: &mut Driver, to: u64, byte: u8, len: usize) -> Result<(), Status> {
    driver.healthy()?;
    driver.memory.span(to, len)?.fill(byte);
    Ok(())
}
