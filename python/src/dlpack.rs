//! DLPack (version 0.8 and 1, the unversioned capsule `dltensor`): tensors of other libraries, in formats that NumPy
//! lacks.

use std::{
    ffi::{c_char, c_void},
    ptr::NonNull,
};

use pyo3::{
    exceptions::PyTypeError,
    ffi,
    prelude::*,
    types::{PyBytes, PyTuple},
};

/// `DLDevice` of dlpack.h.
#[repr(C)]
struct DlDevice {
    kind: i32,
    id: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    dimensions: i32,
    data_type: DlDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct DlManagedTensor {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `kDLCPU`, `kDLCUDAHost`, `kDLROCMHost`: memory that this process can read.
const READABLE: [i32; 3] = [1, 3, 11];

const FRESH: *const c_char = c"dltensor".as_ptr();
const USED: *const c_char = c"used_dltensor".as_ptr();

/// The name in NumPy or `ml_dtypes` of a DLPack type (dlpack.h 1.1, `DLDataTypeCode`).
fn dtype(data_type: DlDataType) -> Option<&'static str> {
    (data_type.lanes == 1).then_some(())?;
    Some(match (data_type.code, data_type.bits) {
        (0, 4) => "int4",
        (0, 8) => "int8",
        (0, 16) => "int16",
        (0, 32) => "int32",
        (0, 64) => "int64",
        (1, 4) => "uint4",
        (1, 8) => "uint8",
        (1, 16) => "uint16",
        (1, 32) => "uint32",
        (1, 64) => "uint64",
        (2, 16) => "float16",
        (2, 32) => "float32",
        (2, 64) => "float64",
        (4, 16) => "bfloat16",
        (10, 8) => "float8_e4m3fn",
        (11, 8) => "float8_e4m3fnuz",
        (12, 8) => "float8_e5m2",
        (13, 8) => "float8_e5m2fnuz",
        (14, 8) => "float8_e8m0fnu",
        _ => return None,
    })
}

/// Calls the deleter of an acquired tensor once.
struct Taken(NonNull<DlManagedTensor>);

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: the tensor is ours since its capsule was renamed, and is deleted only here.
        unsafe {
            if let Some(deleter) = self.0.as_ref().deleter {
                deleter(self.0.as_ptr());
            }
        }
    }
}

/// Reads a capsule that `__dlpack__` returned: the name of the type, the shape, and the elements, row-major. `name` is
/// what errors call it.
#[pyfunction]
pub(crate) fn dlpack<'py>(
    py: Python<'py>,
    capsule: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<(&'static str, Bound<'py, PyTuple>, Bound<'py, PyBytes>)> {
    let wrong = |what: String| PyTypeError::new_err(format!("{name} {what}"));
    // SAFETY: `capsule` is an object of the interpreter whose lock is held; the call checks whether it is such a
    // capsule.
    let fresh = unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), FRESH) } == 1;
    if !fresh {
        return Err(wrong("has a `__dlpack__` that does not return a fresh capsule `dltensor`".to_owned()));
    }
    // SAFETY: the capsule is valid under this name; renaming it takes ownership of the tensor, as DLPack's protocol
    // requires.
    let pointer = unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), FRESH);
        ffi::PyCapsule_SetName(capsule.as_ptr(), USED);
        pointer
    };
    let taken = Taken(NonNull::new(pointer.cast()).ok_or_else(|| wrong("has an empty DLPack capsule".to_owned()))?);
    // SAFETY: DLPack defines what a capsule of this name points to; it lives until `taken` is dropped.
    let tensor = unsafe { &taken.0.as_ref().tensor };
    if !READABLE.contains(&tensor.device.kind) {
        let kind = tensor.device.kind;
        return Err(wrong(format!("is on another device (DLPack kind {kind}); move it to the host first")));
    }
    let data_type = tensor.data_type;
    let DlDataType { code, bits, lanes } = data_type;
    let named = dtype(data_type).ok_or_else(|| {
        wrong(format!("has the DLPack type code {code} of {bits} bits and {lanes} lanes, which matches no format"))
    })?;
    let dimensions =
        usize::try_from(tensor.dimensions).map_err(|_| wrong("has a negative number of dimensions".to_owned()))?;
    let list = |pointer: *const i64| -> &[i64] {
        if dimensions == 0 || pointer.is_null() {
            return &[];
        }
        // SAFETY: DLPack guarantees that `shape` and, if present, `strides` have `dimensions` elements.
        unsafe { std::slice::from_raw_parts(pointer, dimensions) }
    };
    let shape = list(tensor.shape);
    let lengths: Option<Vec<usize>> = shape.iter().map(|length| usize::try_from(*length).ok()).collect();
    let lengths = lengths.ok_or_else(|| wrong(format!("has the DLPack shape {shape:?}")))?;
    let count = lengths.iter().try_fold(1usize, |count, length| count.checked_mul(*length));
    let count = count.filter(|count| lengths.len() == dimensions && (*count == 0 || !tensor.data.is_null()));
    let count = count.ok_or_else(|| wrong(format!("has the DLPack shape {shape:?} without elements")))?;
    let size = usize::from(data_type.bits.div_ceil(8));
    if data_type.bits < 8 {
        return Err(wrong(format!("has packed elements of {bits} bits, which are not supported")));
    }
    let mut bytes = Vec::with_capacity(count * size);
    if count > 0 {
        let strides: Vec<i64> = if tensor.strides.is_null() {
            let mut strides = vec![1; dimensions];
            (1..dimensions).rev().for_each(|at| strides[at - 1] = strides[at] * shape[at]);
            strides
        } else {
            list(tensor.strides).to_vec()
        };
        let mut index = vec![0i64; dimensions];
        for _ in 0..count {
            let at: i64 = index.iter().zip(&strides).map(|(index, stride)| index * stride).sum();
            let at = isize::try_from(at).expect("memory is addressed by isize") * isize::try_from(size).expect("few");
            let offset = usize::try_from(tensor.byte_offset).expect("memory is addressed by usize");
            // SAFETY: the exporter guarantees that every element addressed by shape, strides and offset can be read.
            let element = unsafe {
                std::slice::from_raw_parts(tensor.data.cast::<u8>().add(offset).offset(at).cast_const(), size)
            };
            bytes.extend_from_slice(element);
            for place in (0..dimensions).rev() {
                index[place] += 1;
                if index[place] < shape[place] {
                    break;
                }
                index[place] = 0;
            }
        }
    }
    Ok((named, PyTuple::new(py, &lengths)?, PyBytes::new(py, &bytes)))
}
