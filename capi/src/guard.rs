//! The boundary to C: keeps errors for `mxprobe_last_error`, and catches panics.

use std::{
    any::Any,
    cell::RefCell,
    ffi::{CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use mxprobe_api::Error;

thread_local! {
    static LAST: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Why the last guarded call of this thread failed; null if it succeeded.
pub(crate) fn last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ref().map_or(ptr::null(), |text| text.as_ptr()))
}

/// Runs a call and returns its result; after an error or a panic, which is kept, returns `failed`.
pub(crate) fn guarded<T>(failed: T, call: impl FnOnce() -> Result<T, Error>) -> T {
    // A call owns its operands, so that a panic leaves nothing half changed.
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(Error::driver(words(panic.as_ref()))));
    let (found, error) = match result {
        Ok(found) => (found, None),
        Err(error) => (failed, Some(error.to_string())),
    };
    let text = error.map(|error| CString::new(error.replace('\0', "\u{fffd}")).unwrap_or_default());
    LAST.with(|last| *last.borrow_mut() = text);
    found
}

/// Runs a call without touching the last error.
pub(crate) fn quietly(call: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(call));
}

fn words(panic: &(dyn Any + Send)) -> String {
    let known = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = known.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    format!("mxprobe panicked: {text}")
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last() -> Option<String> {
        let pointer = last_error();
        // SAFETY: the text belongs to this thread, which makes no other call meanwhile.
        (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_panic_is_an_error_and_a_success_clears_it() {
        assert_eq!(guarded(-1, || panic!("at {}", 7)), -1);
        assert_eq!(last().as_deref(), Some("mxprobe panicked: at 7"));
        assert_eq!(guarded(-1, || Ok(3)), 3);
        assert_eq!(last(), None);
        assert_eq!(guarded(-1, || Err(Error::invalid("a\0b"))), -1);
        assert_eq!(last().as_deref(), Some("a\u{fffd}b"));
        // Errors of another thread are not visible.
        std::thread::spawn(|| assert_eq!(last(), None)).join().unwrap();
    }
}
