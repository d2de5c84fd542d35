//! The result codes of the CUDA driver API that the fake driver returns.

use std::ffi::CStr;

/// A `CUresult` other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = $text] pub const $name: Self = Self($code);)*

            /// The name and description of a code; `None` for codes that the fake driver never returns.
            #[must_use]
            pub fn describe(code: i32) -> Option<(&'static CStr, &'static CStr)> {
                match code {
                    0 => Some((c"CUDA_SUCCESS", c"no error")),
                    $($code => Some((
                        CStr::from_bytes_with_nul(concat!("CUDA_ERROR_", stringify!($name), "\0").as_bytes()).ok()?,
                        CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()).ok()?,
                    )),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "initialization error";
    STUB_LIBRARY = 34, "CUDA driver is a stub library";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    INVALID_IMAGE = 200, "device kernel image is invalid";
    INVALID_CONTEXT = 201, "invalid device context";
    NO_BINARY_FOR_GPU = 209, "no kernel image is available for execution on the device";
    INVALID_PTX = 218, "a PTX JIT compilation failed";
    JIT_COMPILER_NOT_FOUND = 221, "PTX JIT compiler library not found";
    UNSUPPORTED_PTX_VERSION = 222, "the provided PTX was compiled with an unsupported toolchain.";
    CONTAINED = 226, "Invalid access of peer GPU memory over nvlink or a hardware error";
    INVALID_HANDLE = 400, "invalid resource handle";
    NOT_FOUND = 500, "named symbol not found";
    ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, "the launch timed out and was terminated";
    ASSERT = 710, "device-side assert triggered";
    ILLEGAL_INSTRUCTION = 715, "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716, "misaligned address";
    LAUNCH_FAILED = 719, "unspecified launch failure";
    TENSOR_MEMORY_LEAK = 721, "tensor memory not completely freed";
    SYSTEM_DRIVER_MISMATCH = 803, "system has unsupported display driver / cuda driver combination";
    EXTERNAL_DEVICE = 911, "operation failed in an external device";
    UNKNOWN = 999, "unknown error";
}
