//! The part of cuBLAS that a product of f32 matrices needs, so that the code that calls it can be tested.

use super::*;

/// The number of scalar products that a matrix product computes per cycle.
const PRODUCTS_OF_CYCLE: usize = 1024;

/// The only handle.
const HANDLE: usize = 0x200;

/// Reads an f32 that the caller points to.
fn single(pointer: *const f32) -> Result<f32, Status> {
    let bytes = host(pointer.cast(), 4)?;
    Ok(f32::from_le_bytes(bytes.try_into().map_err(|_| Status::INVALID_VALUE)?))
}

/// Reads columns of a column-major matrix on the device.
fn columns(driver: &mut Driver, start: u64, count: usize, stride: usize) -> Result<Vec<f32>, Status> {
    let bytes = driver.memory.span(start, count * stride * 4)?;
    Ok(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

entries! {
    fn cublasCreate_v2(handle: Out<usize>) {
        context(|_| handle.put(HANDLE))
    }
    fn cublasDestroy_v2(handle: usize) {
        if handle == HANDLE { Ok(()) } else { Err(Status::INVALID_HANDLE) }
    }
    fn cublasGetVersion_v2(_handle: usize, version: Out<c_int>) {
        version.put(120_300)
    }
    fn cublasSgemm_v2(
        handle: usize,
        transposed_a: c_int,
        transposed_b: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: *const f32,
        a: u64,
        stride_a: c_int,
        b: u64,
        stride_b: c_int,
        beta: *const f32,
        c: u64,
        stride_c: c_int,
    ) {
        if handle != HANDLE || (transposed_a, transposed_b) != (0, 0) || (single(alpha)?, single(beta)?) != (1.0, 0.0) {
            return Err(Status::INVALID_VALUE);
        }
        let size = |value: c_int| usize::try_from(value).map_err(|_| Status::INVALID_VALUE);
        let (m, n, k) = (size(m)?, size(n)?, size(k)?);
        let (stride_a, stride_b, stride_c) = (size(stride_a)?, size(stride_b)?, size(stride_c)?);
        context(|driver| {
            driver.wait()?;
            let (a, b) = (columns(driver, a, k, stride_a)?, columns(driver, b, n, stride_b)?);
            let target = driver.memory.span(c, n * stride_c * 4)?;
            for (at, word) in target.chunks_exact_mut(4).enumerate().filter(|(at, _)| at % stride_c < m) {
                let (row, column) = (at % stride_c, at / stride_c);
                let sum: f32 = (0..k).map(|l| a[l * stride_a + row] * b[column * stride_b + l]).sum();
                word.copy_from_slice(&sum.to_le_bytes());
            }
            driver.work(1 + (m * n * k / PRODUCTS_OF_CYCLE) as u64);
            Ok(())
        })
    }
}
