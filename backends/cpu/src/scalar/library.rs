//! The C library that this program is linked with, whose elementary functions Rust's standard library calls.

#[cfg_attr(all(unix, not(target_vendor = "apple")), link(name = "m"))]
unsafe extern "C" {
    pub(super) safe fn remainder(a: f64, b: f64) -> f64;
    pub(super) safe fn remainderf(a: f32, b: f32) -> f32;
    pub(super) safe fn scalbn(a: f64, exponent: i32) -> f64;
    pub(super) safe fn scalbnf(a: f32, exponent: i32) -> f32;
}

/// The library's name and version.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn name() -> String {
    use std::ffi::{CStr, c_char};

    unsafe extern "C" {
        safe fn gnu_get_libc_version() -> *const c_char;
    }
    // SAFETY: glibc returns a string that ends in zero and lives as long as the program.
    let version = unsafe { CStr::from_ptr(gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

/// The library's name.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn name() -> String {
    let name = if cfg!(target_env = "musl") {
        "musl"
    } else if cfg!(target_vendor = "apple") {
        "Apple's libm"
    } else if cfg!(windows) {
        "the C runtime of Windows"
    } else {
        "the platform's C library"
    };
    name.to_owned()
}
