//! The C interface to the models: loads them, and computes dots and whole matrices bit for bit.
//!
//! `include/mxprobe.h` documents each function for callers. In C, one dot of the fp8 instruction of an H100:
//!
//! ```c
//! mxprobe_model *h100 = mxprobe_model_load("h100");
//! uint8_t a[32] = {0x38, 0x04}; /* 1 and 2^-7 in e4m3 */
//! uint32_t d;
//! if (!h100 || mxprobe_dot(h100, "wgmma.m64n8k32.f32.e4m3.e4m3.f32", a, a, NULL, NULL, NULL, &d) != 0)
//!     fprintf(stderr, "%s\n", mxprobe_last_error());
//! mxprobe_model_free(h100);
//! ```
//!
//! Panics do not unwind into C: they are reported as errors. The last error is kept per thread.

mod guard;

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
};

use mxprobe_api::{Elements, Error, Format, GemmOperands, Operation};
use mxprobe_models::{Dot, Evaluator, Model, load};

use guard::guarded;

/// A model behind C's pointer.
pub struct LoadedModel {
    model: Model,
}

/// One operation, laid out like `mxprobe_operation` in the header.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct OperationRecord {
    /// Rows of A, C and D.
    pub m: u32,
    /// Columns of B, C and D.
    pub n: u32,
    /// Products of a dot.
    pub k: u32,
    /// Bytes of an element of A.
    pub a_bytes: u32,
    /// Bytes of an element of B.
    pub b_bytes: u32,
    /// Bytes of an element of C.
    pub c_bytes: u32,
    /// Bytes of an element of D.
    pub d_bytes: u32,
    /// Consecutive k that share a scale; 0 without block scales.
    pub block: u32,
    /// Bytes of a scale; 0 without block scales.
    pub scale_bytes: u32,
    /// The format of A.
    pub a: [c_char; 16],
    /// The format of B.
    pub b: [c_char; 16],
    /// The format of C.
    pub c: [c_char; 16],
    /// The format of D.
    pub d: [c_char; 16],
    /// The format of scales; empty without block scales.
    pub scale: [c_char; 16],
    /// The id.
    pub id: [c_char; 128],
}

impl OperationRecord {
    fn of(operation: &Operation) -> Result<Self, Error> {
        let id = &operation.id;
        let bytes = |format: Format| u32::try_from(format.storage_bytes()).expect("a few");
        let scale = id.block_scale();
        Ok(Self {
            m: id.shape.m,
            n: id.shape.n,
            k: id.shape.k,
            a_bytes: bytes(id.a),
            b_bytes: bytes(id.b),
            c_bytes: bytes(id.c),
            d_bytes: bytes(id.d),
            block: scale.map_or(0, |scale| u32::try_from(scale.block).unwrap_or(u32::MAX)),
            scale_bytes: scale.map_or(0, |scale| bytes(scale.format)),
            a: text(id.a.name())?,
            b: text(id.b.name())?,
            c: text(id.c.name())?,
            d: text(id.d.name())?,
            scale: text(scale.map_or("", |scale| scale.format.name()))?,
            id: text(&id.to_string())?,
        })
    }
}

/// Copies a text into an array and terminates it with a zero.
fn text<const N: usize>(words: &str) -> Result<[c_char; N], Error> {
    if words.len() >= N {
        return Err(Error::invalid(format!("`{words}` is longer than {} bytes", N - 1)));
    }
    let mut found = [0; N];
    found.iter_mut().zip(words.bytes()).for_each(|(place, byte)| *place = byte.cast_signed() as c_char);
    Ok(found)
}

/// Reads a C string; `name` is what errors call it.
///
/// # Safety
/// `pointer` is null or points to a zero-terminated string.
unsafe fn words<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Error> {
    if pointer.is_null() {
        return Err(Error::invalid(format!("{name} is NULL")));
    }
    // SAFETY: not null, and as the caller promises.
    let found = unsafe { CStr::from_ptr(pointer) };
    found.to_str().map_err(|_| Error::invalid(format!("{name} is not UTF-8: {}", found.to_string_lossy())))
}

/// The model behind a pointer.
///
/// # Safety
/// `model` is null or came from [`mxprobe_model_load`] and was not freed.
unsafe fn model_of<'a>(model: *const LoadedModel) -> Result<&'a Model, Error> {
    // SAFETY: as the caller promises.
    unsafe { model.as_ref() }.map(|loaded| &loaded.model).ok_or_else(|| Error::invalid("the model is NULL"))
}

/// Copies `count` elements of a format; null gives +0 for `c`, and for other operands if `count` is 0.
///
/// # Safety
/// `pointer` is null or points to `count` elements.
unsafe fn elements(pointer: *const c_void, name: &str, format: Format, count: usize) -> Result<Elements, Error> {
    let length = count
        .checked_mul(format.storage_bytes())
        .filter(|length| isize::try_from(*length).is_ok())
        .ok_or_else(|| Error::invalid(format!("{name} has {count} elements, which do not fit in memory")))?;
    if pointer.is_null() {
        return if name == "c" || count == 0 {
            Ok(Elements::zeros(format, count))
        } else {
            Err(Error::invalid(format!("{name} is NULL")))
        };
    }
    // SAFETY: as the caller promises; bytes need no alignment.
    let bytes = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) };
    Elements::from_bytes(format, bytes.to_vec()).map_err(|error| error.context(name))
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn mxprobe_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Why the last call of this thread failed.
#[unsafe(no_mangle)]
pub extern "C" fn mxprobe_last_error() -> *const c_char {
    guard::last_error()
}

/// Loads a model by name.
///
/// # Safety
/// `name` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mxprobe_model_load(name: *const c_char) -> *mut LoadedModel {
    guarded(ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let model = load(unsafe { words(name, "the name")? })?;
        Ok(Box::into_raw(Box::new(LoadedModel { model })))
    })
}

/// Frees a model.
///
/// # Safety
/// `model` is null or came from [`mxprobe_model_load`] and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mxprobe_model_free(model: *mut LoadedModel) {
    if !model.is_null() {
        // SAFETY: as the caller promises.
        let model = unsafe { Box::from_raw(model) };
        // The last error is kept, so that it can be shown after the model is gone.
        guard::quietly(|| drop(model));
    }
}

/// The number of operations of a model.
///
/// # Safety
/// As for [`mxprobe_model_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mxprobe_model_operation_count(model: *const LoadedModel) -> usize {
    // SAFETY: as the caller promises.
    guarded(0, || Ok(unsafe { model_of(model)? }.operations.len()))
}

/// Writes an operation to C's memory.
///
/// # Safety
/// `into` is null or has room for one.
unsafe fn put(operation: &Operation, into: *mut OperationRecord) -> Result<c_int, Error> {
    if into.is_null() {
        return Err(Error::invalid("the operation to be written is NULL"));
    }
    // SAFETY: as the caller promises; C aligns its own structure in the same way.
    unsafe { into.write(OperationRecord::of(operation)?) };
    Ok(0)
}

/// Looks up an operation by index.
///
/// # Safety
/// As for [`mxprobe_model_free`]; `operation` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mxprobe_model_operation(
    model: *const LoadedModel,
    index: usize,
    operation: *mut OperationRecord,
) -> c_int {
    guarded(-1, || {
        // SAFETY: as the caller promises.
        let model = unsafe { model_of(model)? };
        let count = model.operations.len();
        let missing = || Error::invalid(format!("{} has {count} operations and none of the index {index}", model.name));
        let found = model.operations.values().nth(index).ok_or_else(missing)?;
        // SAFETY: as the caller promises.
        unsafe { put(found, operation) }
    })
}

/// Looks up an operation by name.
///
/// # Safety
/// As for [`mxprobe_model_operation`]; `name` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mxprobe_model_find(
    model: *const LoadedModel,
    name: *const c_char,
    operation: *mut OperationRecord,
) -> c_int {
    guarded(-1, || {
        // SAFETY: as the caller promises.
        let found = unsafe { model_of(model)?.operation_named(words(name, "the name of the operation")?)? };
        // SAFETY: as the caller promises.
        unsafe { put(found, operation) }
    })
}

/// The operands shared by both kinds of products.
struct Given {
    evaluator: Evaluator,
    sizes: (usize, usize, usize),
    a: Elements,
    b: Elements,
    c: Elements,
    scales: Option<(Elements, Elements)>,
}

/// Reads the operands of an operation.
///
/// # Safety
/// Pointers are null or as the header requires; if `sizes` is `None`, they describe one dot of the operation.
#[allow(clippy::too_many_arguments, reason = "one for each parameter in C")]
unsafe fn given(
    model: *const LoadedModel,
    operation: *const c_char,
    sizes: Option<(usize, usize, usize)>,
    a: *const c_void,
    b: *const c_void,
    c: *const c_void,
    scale_a: *const c_void,
    scale_b: *const c_void,
) -> Result<Given, Error> {
    // SAFETY: as the caller promises.
    let (model, name) = unsafe { (model_of(model)?, words(operation, "the name of the operation")?) };
    let id = &model.operation_named(name)?.id;
    let (m, n, k) = sizes.unwrap_or((1, 1, id.shape.sizes().2));
    let count = |rows: usize, columns: usize| {
        let too_many = || Error::invalid(format!("{rows} times {columns} elements do not fit in memory"));
        rows.checked_mul(columns).ok_or_else(too_many)
    };
    // SAFETY: as the caller promises.
    let (a, b, c) = unsafe {
        (
            elements(a, "a", id.a, count(m, k)?)?,
            elements(b, "b", id.b, count(k, n)?)?,
            elements(c, "c", id.c, count(m, n)?)?,
        )
    };
    let scales = match id.block_scale() {
        None if scale_a.is_null() && scale_b.is_null() => None,
        None => return Err(Error::invalid(format!("{id} takes no block scales"))),
        Some(scale) => {
            let blocks = k.div_ceil(scale.block);
            // SAFETY: as the caller promises.
            Some(unsafe {
                (
                    elements(scale_a, "scale_a", scale.format, count(m, blocks)?)?,
                    elements(scale_b, "scale_b", scale.format, count(blocks, n)?)?,
                )
            })
        }
    };
    Ok(Given { evaluator: Evaluator::new(model, id)?, sizes: (m, n, k), a, b, c, scales })
}

/// Copies a result to C's memory.
///
/// # Safety
/// `d` is null or has room for it.
unsafe fn give(found: &Elements, d: *mut c_void) -> Result<c_int, Error> {
    if d.is_null() && !found.is_empty() {
        return Err(Error::invalid("d is NULL"));
    }
    // SAFETY: as the caller promises; the operands were copied, so that nothing overlaps.
    unsafe { ptr::copy_nonoverlapping(found.bytes().as_ptr(), d.cast::<u8>(), found.bytes().len()) };
    Ok(0)
}

/// D = A·B + C.
///
/// # Safety
/// Pointers are null or as the header requires.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "as in the header")]
pub unsafe extern "C" fn mxprobe_matmul(
    model: *const LoadedModel,
    operation: *const c_char,
    m: usize,
    n: usize,
    k: usize,
    a: *const c_void,
    b: *const c_void,
    c: *const c_void,
    scale_a: *const c_void,
    scale_b: *const c_void,
    d: *mut c_void,
    threads: usize,
) -> c_int {
    guarded(-1, || {
        // SAFETY: as the caller promises.
        let given = unsafe { given(model, operation, Some((m, n, k)), a, b, c, scale_a, scale_b)? };
        let Given { evaluator, sizes: (m, n, k), a, b, c, scales } = &given;
        let (scale_a, scale_b) = (scales.as_ref().map(|(a, _)| a), scales.as_ref().map(|(_, b)| b));
        let operands = GemmOperands { m: *m, n: *n, k: *k, a, b, c, scale_a, scale_b };
        let found = evaluator.multiply(&operands, if threads == 0 { mxprobe_models::threads() } else { threads })?;
        // SAFETY: as the caller promises.
        unsafe { give(&found, d) }
    })
}

/// Computes one dot.
///
/// # Safety
/// Pointers are null or as the header requires.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "as in the header")]
pub unsafe extern "C" fn mxprobe_dot(
    model: *const LoadedModel,
    operation: *const c_char,
    a: *const c_void,
    b: *const c_void,
    c: *const c_void,
    scale_a: *const c_void,
    scale_b: *const c_void,
    d: *mut c_void,
) -> c_int {
    guarded(-1, || {
        // SAFETY: as the caller promises.
        let given = unsafe { given(model, operation, None, a, b, c, scale_a, scale_b)? };
        let bits = |elements: &Elements| elements.iter().collect::<Vec<u64>>();
        let (a, b) = (bits(&given.a), bits(&given.b));
        let scales = given.scales.as_ref().map(|(a, b)| (bits(a), bits(b)));
        let scales = scales.as_ref().map(|(a, b)| (&a[..], &b[..]));
        let found = given.evaluator.dot(Dot { a: &a, b: &b, c: given.c.get(0), scales })?;
        // SAFETY: as the caller promises.
        unsafe { give(&Elements::from_bits(given.evaluator.id().d, [found]), d) }
    })
}
