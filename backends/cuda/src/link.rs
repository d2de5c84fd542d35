//! From PTX to machine code, with what the driver's compiler says on the way.

use std::ffi::{CString, c_void};
use std::ptr;

use cudarc::driver::sys::{self, CUjit_option as JitOption};
use mxprobe_api::Error;

use crate::driver::failure;

/// Bytes of each of the compiler's logs.
const LOG_BYTES: usize = 16 << 10;

/// Compiles a module with the driver's compiler, for the device of the current context, and returns the cubin.
///
/// # Errors
/// The driver's error with the compiler's log.
pub(crate) fn link(ptx: &str) -> Result<Vec<u8>, Error> {
    let mut information = vec![0u8; LOG_BYTES];
    let mut errors = vec![0u8; LOG_BYTES];
    let linked = link_into(ptx, &mut information, &mut errors);
    linked.map_err(|error| match text(&errors) {
        log if log.is_empty() => error,
        log => error.detail(log),
    })
}

fn link_into(ptx: &str, information: &mut [u8], errors: &mut [u8]) -> Result<Vec<u8>, Error> {
    let mut options = [
        JitOption::CU_JIT_INFO_LOG_BUFFER,
        JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        JitOption::CU_JIT_ERROR_LOG_BUFFER,
        JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        JitOption::CU_JIT_LOG_VERBOSE,
    ];
    // Sizes and flags are passed by value in the place of a pointer.
    let by_value = |value: usize| ptr::without_provenance_mut::<c_void>(value);
    let mut values = [
        information.as_mut_ptr().cast::<c_void>(),
        by_value(information.len()),
        errors.as_mut_ptr().cast(),
        by_value(errors.len()),
        by_value(1),
    ];
    let source = CString::new(ptx).map_err(|_| Error::invalid("PTX with a zero byte in it"))?;
    let count = u32::try_from(options.len()).expect("five");
    let mut state = ptr::null_mut();
    // SAFETY: both arrays have `count` elements, and the logs outlive `cuLinkDestroy` below.
    let created = unsafe { sys::cuLinkCreate_v2(count, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state) };
    created.result().map_err(|error| failure("cuLinkCreate", error))?;
    let cubin = (|| {
        let bytes = source.as_bytes_with_nul();
        // SAFETY: the text and its name end with a zero and outlive the call, which copies them; no options are given.
        let added = unsafe {
            sys::cuLinkAddData_v2(
                state,
                sys::CUjitInputType::CU_JIT_INPUT_PTX,
                bytes.as_ptr().cast::<c_void>().cast_mut(),
                bytes.len(),
                c"mxprobe.ptx".as_ptr(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        added.result().map_err(|error| failure("cuLinkAddData", error))?;
        let (mut code, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the state is alive; both pointers are to variables that outlive the call.
        unsafe { sys::cuLinkComplete(state, &raw mut code, &raw mut size) }
            .result()
            .map_err(|error| failure("cuLinkComplete", error))?;
        // SAFETY: the driver owns these bytes until `cuLinkDestroy`; they are copied before.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) }.to_vec())
    })();
    // SAFETY: the state was created above and is used no more.
    let destroyed = unsafe { sys::cuLinkDestroy(state) };
    let cubin = cubin?;
    destroyed.result().map_err(|error| failure("cuLinkDestroy", error))?;
    Ok(cubin)
}

/// What stands in a log before its first zero byte.
fn text(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
