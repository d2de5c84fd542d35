//! The part of cuBLASLt that a product of matrices needs, so that the code that calls it can be tested.
//!
//! Statuses are those of `cublasStatus_t`, and attributes and types have the numbers of NVIDIA's headers. Columns of
//! matrices follow one another without gaps.

use std::collections::BTreeMap;

use mxprobe_api::{Elements, Format};

use super::*;
use crate::{
    products::{Offered, Wanted, offered},
    settings::Fault,
};

/// The only handle.
const HANDLE: usize = 0x300;
/// Every matrix has to begin at a multiple of this many bytes, as the real library's algorithms may assume.
const ALIGNMENT: u64 = 256;
/// The number of scalar products that the library computes per cycle.
const PRODUCTS_OF_CYCLE: usize = 1024;

const NOT_INITIALIZED: Status = Status(1);
const INVALID_VALUE: Status = Status(7);
const EXECUTION_FAILED: Status = Status(13);
const NOT_SUPPORTED: Status = Status(15);

/// `CUBLAS_COMPUTE_32F_FAST_TF32`.
const FAST_TF32: c_int = 77;

/// Something that the caller created.
#[derive(Clone, Copy, Debug)]
enum Made {
    Product { compute: c_int, scale: c_int, transposed: bool, fast: bool },
    Layout { kind: c_int, rows: usize, columns: usize },
    Preference { workspace_bytes: usize },
}

/// What exists, by its address, and the products that the heuristic offered, by their position.
static MADE: Mutex<BTreeMap<usize, Made>> = Mutex::new(BTreeMap::new());
static OFFERED: Mutex<Vec<(Offered, Wanted)>> = Mutex::new(Vec::new());

fn made() -> MutexGuard<'static, BTreeMap<usize, Made>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make(place: Out<usize>, one: Made) -> Result<(), Status> {
    let mut made = made();
    let address = made.last_key_value().map_or(HANDLE, |(last, _)| *last) + 0x10;
    made.insert(address, one);
    place.put(address)
}

fn destroy(address: usize) -> Result<(), Status> {
    made().remove(&address).map(drop).ok_or(INVALID_VALUE)
}

/// The format of a `cudaDataType_t` in a computation of this type.
fn format(kind: c_int, compute: c_int) -> Result<Format, Status> {
    match kind {
        0 if compute == FAST_TF32 => Ok(Format::TF32),
        0 => Ok(Format::F32),
        1 => Ok(Format::F64),
        2 => Ok(Format::F16),
        3 => Ok(Format::S8),
        10 => Ok(Format::S32),
        14 => Ok(Format::BF16),
        28 => Ok(Format::E4M3),
        29 => Ok(Format::E5M2),
        _ => Err(INVALID_VALUE),
    }
}

/// Reads what a caller describes: the library's A, B, C and D, column-major, as the row-major product of B by A. Also
/// returns whether the library's A is transposed, and the type of alpha and beta.
fn described(product: usize, layouts: [usize; 4]) -> Result<(Wanted, bool, c_int), Status> {
    let made = made();
    let Some(Made::Product { compute, scale, transposed, fast }) = made.get(&product).copied() else {
        return Err(INVALID_VALUE);
    };
    let mut found = [(0, 0, 0); 4];
    for (place, layout) in found.iter_mut().zip(layouts) {
        let Some(Made::Layout { kind, rows, columns }) = made.get(&layout).copied() else { return Err(INVALID_VALUE) };
        *place = (kind, rows, columns);
    }
    let [a, b, c, d] = found;
    let (n, k) = if transposed { (a.2, a.1) } else { (a.1, a.2) };
    let m = b.2;
    if b.1 != k || (c.1, c.2) != (n, m) || d != c {
        return Err(INVALID_VALUE);
    }
    let operands = (format(b.0, compute)?, format(a.0, compute)?);
    let result = format(d.0, 0)?;
    Ok((Wanted { operands, result, fast, sizes: (m, n, k) }, transposed, scale))
}

/// Whether the host memory holds 1 in the type of alpha and beta.
fn is_one(pointer: *const c_void, scale: c_int) -> Result<bool, Status> {
    let one: &[u8] = match scale {
        0 => &1f32.to_le_bytes(),
        1 => &1f64.to_le_bytes(),
        10 => &1i32.to_le_bytes(),
        _ => return Err(INVALID_VALUE),
    };
    Ok(host(pointer, one.len())? == one)
}

/// The version of the library that this one stands in for.
#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    120_803
}

entries! {
    fn cublasLtCreate(handle: Out<usize>) {
        context(|driver| if driver.settings().fails(Fault::NoHandle) { Err(NOT_INITIALIZED) } else { Ok(()) })?;
        handle.put(HANDLE)
    }
    fn cublasLtDestroy(handle: usize) {
        if handle != HANDLE {
            return Err(INVALID_VALUE);
        }
        let left = made().len();
        if left > 0 {
            say(&format!("{left} descriptors were never destroyed"));
        }
        Ok(())
    }
    fn cublasLtMatmulDescCreate(place: Out<usize>, compute: c_int, scale: c_int) {
        make(place, Made::Product { compute, scale, transposed: false, fast: false })
    }
    fn cublasLtMatmulDescDestroy(address: usize) {
        destroy(address)
    }
    fn cublasLtMatmulDescSetAttribute(address: usize, attribute: c_int, value: *const c_void, len: usize) {
        let value = host(value, len)?;
        let mut made = made();
        let Some(Made::Product { transposed, fast, .. }) = made.get_mut(&address) else { return Err(INVALID_VALUE) };
        match (attribute, value) {
            // CUBLASLT_MATMUL_DESC_TRANSA, an int32_t, and CUBLASLT_MATMUL_DESC_FAST_ACCUM, an int8_t.
            (3, [operation @ 0..=1, 0, 0, 0]) => *transposed = *operation == 1,
            (25, [accumulation @ 0..=1]) => *fast = *accumulation == 1,
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
    fn cublasLtMatrixLayoutCreate(place: Out<usize>, kind: c_int, rows: u64, columns: u64, stride: i64) {
        if stride.cast_unsigned() != rows {
            return Err(INVALID_VALUE);
        }
        make(place, Made::Layout { kind, rows: rows as usize, columns: columns as usize })
    }
    fn cublasLtMatrixLayoutDestroy(address: usize) {
        destroy(address)
    }
    fn cublasLtMatmulPreferenceCreate(place: Out<usize>) {
        make(place, Made::Preference { workspace_bytes: 0 })
    }
    fn cublasLtMatmulPreferenceDestroy(address: usize) {
        destroy(address)
    }
    fn cublasLtMatmulPreferenceSetAttribute(address: usize, attribute: c_int, value: *const c_void, len: usize) {
        let value = host(value, len)?;
        let mut made = made();
        let Some(Made::Preference { workspace_bytes }) = made.get_mut(&address) else { return Err(INVALID_VALUE) };
        // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, a uint64_t.
        if attribute != 1 {
            return Err(INVALID_VALUE);
        }
        *workspace_bytes = u64::from_le_bytes(value.try_into().map_err(|_| INVALID_VALUE)?) as usize;
        Ok(())
    }
    fn cublasLtMatmulAlgoGetHeuristic(
        handle: usize,
        product: usize,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        preference: usize,
        most: c_int,
        results: *mut c_void,
        count: Out<c_int>,
    ) {
        let (wanted, transposed, _) = described(product, [a, b, c, d])?;
        let Some(Made::Preference { workspace_bytes }) = made().get(&preference).copied() else {
            return Err(INVALID_VALUE);
        };
        if handle != HANDLE || most < 1 {
            return Err(INVALID_VALUE);
        }
        // Operands of eight bits have no other layout.
        if (wanted.operands.0.bits() == 8) != transposed {
            return Err(NOT_SUPPORTED);
        }
        let found = driver(|driver| Ok(offered(driver.settings(), wanted, workspace_bytes)))?.ok_or(NOT_SUPPORTED)?;
        // cublasLtMatmulHeuristicResult_t: the algorithm, the workspace, the status, the waves and four reserved ints.
        let result = host_mut(results, 96)?;
        result.fill(0);
        result[64..72].copy_from_slice(&(found.workspace_bytes as u64).to_le_bytes());
        let mut all = OFFERED.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((found, wanted));
        result[..8].copy_from_slice(&(all.len() as u64).to_le_bytes());
        count.put(1)
    }
    fn cublasLtMatmul(
        handle: usize,
        product: usize,
        alpha: *const c_void,
        a: u64,
        layout_a: usize,
        b: u64,
        layout_b: usize,
        beta: *const c_void,
        c: u64,
        layout_c: usize,
        d: u64,
        layout_d: usize,
        algorithm: *const u64,
        workspace: u64,
        workspace_bytes: usize,
        stream: u64,
    ) {
        let (wanted, transposed, scale) = described(product, [layout_a, layout_b, layout_c, layout_d])?;
        let is_aligned = [a, b, c, d].iter().all(|address| address % ALIGNMENT == 0);
        if handle != HANDLE || !is_aligned || !is_one(alpha, scale)? || !is_one(beta, scale)? {
            return Err(INVALID_VALUE);
        }
        let all = OFFERED.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = array(algorithm, 8)?[0].checked_sub(1).and_then(|at| all.get(at as usize));
        let Some((offered, meant)) = chosen else { return Err(INVALID_VALUE) };
        if meant.sizes != wanted.sizes || offered.workspace_bytes > workspace_bytes {
            return Err(INVALID_VALUE);
        }
        context(|driver| {
            driver.stream(stream)?;
            driver.memory.span(workspace, offered.workspace_bytes)?;
            let computes = driver.strike("cublasLtMatmul").map_err(|_| EXECUTION_FAILED)?;
            if computes {
                multiply(driver, offered, wanted, transposed, [a, b, c, d])?;
            }
            Ok(())
        })
    }
}

/// Computes D on the device.
fn multiply(
    driver: &mut Driver,
    offered: &Offered,
    wanted: Wanted,
    transposed: bool,
    [a, b, c, d]: [u64; 4],
) -> Result<(), Status> {
    let (m, n, k) = wanted.sizes;
    let mut read = |format: Format, address: u64, len: usize| {
        let bytes = driver.memory.span(address, len * format.storage_bytes())?.to_vec();
        Elements::from_bytes(format, bytes).map_err(|_| INVALID_VALUE)
    };
    // The library's B is the row-major A, and its A the row-major B, or that transposed.
    let (left, right) = (read(wanted.operands.0, b, m * k)?, read(wanted.operands.1, a, k * n)?);
    let right = if transposed {
        let bits = (0..k * n).map(|at| right.get(at % n * k + at / n));
        Elements::from_bits(wanted.operands.1, bits)
    } else {
        right
    };
    let of_c = read(wanted.result, c, m * n)?;
    let product = offered.multiply(wanted, [&left, &right, &of_c]);
    driver.memory.span(d, product.bytes().len())?.copy_from_slice(product.bytes());
    driver.work(1 + (m * n * k / PRODUCTS_OF_CYCLE) as u64);
    Ok(())
}
