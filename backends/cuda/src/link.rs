//! Compilation of PTX to machine code by the driver, with the compiler's log.

use std::ffi::{CString, c_void};
use std::fmt::Write as _;
use std::ptr;

use cudarc::driver::sys::{self, CUjit_option as JitOption};
use mxprobe_api::Error;

use crate::driver::failure_in_context;
use crate::dump;

/// The size of each of the compiler's logs, in bytes.
const LOG_BYTES: usize = 16 << 10;

/// `CU_COMPUTE_ACCELERATED_TARGET_BASE` of cuda.h: `CU_TARGET_COMPUTE_90A` is 90 more.
const ACCELERATED_TARGET_BASE: usize = 0x10000;

/// Compiles a module with the driver's compiler, for the device of the current context, and returns the cubin.
///
/// The first attempt is for the current device and does not name a target, because some drivers were seen to refuse
/// one. If it fails and the text's target ends in `a`, a second attempt names that target: a driver may treat `sm_90a`
/// as an architecture distinct from `sm_90`. `name` is the base name of the files in `MXPROBE_DUMP`.
///
/// # Errors
/// That of the first attempt, with the compiler's log.
pub(crate) fn link(name: &str, ptx: &str) -> Result<Vec<u8>, Error> {
    let mut log = String::new();
    let mut attempt = |target| attempt(ptx, target, &mut log);
    let mut linked = attempt(None);
    if let (Err(error), Some(target)) = (&linked, accelerated_target(ptx))
        && !error.is_device_lost()
        && !error.is_missing_driver()
    {
        linked = attempt(Some(target)).or(linked);
    }
    dump::keep(name, ptx, linked.as_deref().ok(), &log);
    linked
}

/// The number of a target that ends in `a`, such as `CU_TARGET_COMPUTE_90A`; `None` for other targets.
pub(crate) fn accelerated_target(ptx: &str) -> Option<usize> {
    let target = ptx.lines().find_map(|line| line.trim().strip_prefix(".target"))?.trim();
    let number: usize = target.strip_prefix("sm_")?.strip_suffix('a')?.parse().ok()?;
    Some(ACCELERATED_TARGET_BASE + number)
}

/// Links once, for a target or for the current device, and appends the compiler's output to `log`.
fn attempt(ptx: &str, target: Option<usize>, log: &mut String) -> Result<Vec<u8>, Error> {
    let mut information = vec![0u8; LOG_BYTES];
    let mut errors = vec![0u8; LOG_BYTES];
    let linked = link_into(ptx, target, &mut information, &mut errors);
    let [information, errors] = [information, errors].map(|log| text(&log));
    let asked = target.map_or_else(String::new, |target| format!(" with CU_JIT_TARGET {target}"));
    let outcome = linked.as_ref().map_or_else(ToString::to_string, |cubin| format!("{} bytes", cubin.len()));
    writeln!(log, "cuLink{asked}: {outcome}\n{information}{errors}").expect("a string takes it");
    let errors = errors.lines().collect::<Vec<_>>().join("; ");
    match linked {
        // "Return status can be CUDA_SUCCESS with error in the log" (openxla/xla, driver_compilation.cc).
        Ok(_) if is_error(&errors) => {
            Err(Error::driver(format!("cuLink succeeded with an error in its log: {errors}")))
        }
        Err(error) if !errors.is_empty() => Err(error.detail(errors)),
        linked => linked,
    }
}

/// Whether a log reports more than warnings.
fn is_error(log: &str) -> bool {
    let log = log.to_ascii_lowercase();
    log.contains("error") || log.contains("fatal")
}

fn link_into(ptx: &str, target: Option<usize>, information: &mut [u8], errors: &mut [u8]) -> Result<Vec<u8>, Error> {
    // Sizes, flags and targets are passed by value in place of a pointer.
    let by_value = |value: usize| ptr::without_provenance_mut::<c_void>(value);
    let mut options = vec![
        (JitOption::CU_JIT_INFO_LOG_BUFFER, information.as_mut_ptr().cast::<c_void>()),
        (JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, by_value(information.len())),
        (JitOption::CU_JIT_ERROR_LOG_BUFFER, errors.as_mut_ptr().cast()),
        (JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, by_value(errors.len())),
        (JitOption::CU_JIT_LOG_VERBOSE, by_value(1)),
    ];
    options.extend(target.map(|target| (JitOption::CU_JIT_TARGET, by_value(target))));
    let (mut options, mut values): (Vec<_>, Vec<_>) = options.into_iter().unzip();
    let source = CString::new(ptx).map_err(|_| Error::invalid("the PTX contains a zero byte"))?;
    let count = u32::try_from(options.len()).expect("six at most");
    let mut state = ptr::null_mut();
    // SAFETY: both arrays have `count` elements, and the logs outlive `cuLinkDestroy` below.
    let created = unsafe { sys::cuLinkCreate_v2(count, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state) };
    created.result().map_err(|error| failure_in_context("cuLinkCreate", error))?;
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
        added.result().map_err(|error| failure_in_context("cuLinkAddData", error))?;
        let (mut code, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the state is alive; both pointers are to variables that outlive the call.
        unsafe { sys::cuLinkComplete(state, &raw mut code, &raw mut size) }
            .result()
            .map_err(|error| failure_in_context("cuLinkComplete", error))?;
        // SAFETY: the driver owns these bytes until `cuLinkDestroy`; they are copied before.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) }.to_vec())
    })();
    // SAFETY: the state was created above and is not used again.
    let destroyed = unsafe { sys::cuLinkDestroy(state) };
    let cubin = cubin?;
    destroyed.result().map_err(|error| failure_in_context("cuLinkDestroy", error))?;
    Ok(cubin)
}

/// Returns the non-empty lines of a log before its first zero byte.
fn text(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).fold(String::new(), |all, line| all + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_ends_in_a_has_a_number_of_its_own() {
        let of = |target: &str| accelerated_target(&format!(".version 8.0\n.target {target}\n.address_size 64\n"));
        assert_eq!([of("sm_90a"), of("sm_120a")], [Some(65626), Some(65656)]);
        assert_eq!([of("sm_90"), of("sm_100f")], [None, None]);
    }

    #[test]
    fn warnings_are_no_errors() {
        assert!(!is_error("ptxas warning : Value of threads per SM is out of range"));
        assert!(is_error("ptxas fatal   : register allocation failed") && is_error("error   : no"));
    }
}
