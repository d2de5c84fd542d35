//! Compiling, linking and loading.

use std::collections::BTreeMap;

use super::*;
use crate::{cubin, driver::Refusal, settings::Fault};

/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: c_uint = 1;

static LINKS: Mutex<BTreeMap<usize, Link>> = Mutex::new(BTreeMap::new());

/// A `CUlinkState`.
#[derive(Default)]
struct Link {
    /// The address and length of the caller's buffer.
    information_log: (usize, usize),
    error_log: (usize, usize),
    /// `CU_JIT_TARGET`.
    target: Option<usize>,
    cubin: Vec<u8>,
}

fn links() -> MutexGuard<'static, BTreeMap<usize, Link>> {
    LINKS.lock().unwrap_or_else(PoisonError::into_inner)
}

entries! {
    fn cuModuleLoadData(module: Out<u64>, image: *const c_void) {
        context(|driver| module.put(load(driver, image)?))
    }
    fn cuLinkCreate_v2(count: c_uint, options: *const c_uint, values: *const usize, state: Out<usize>) {
        context(|driver| driver.healthy())?;
        let link = Link::new(count, options, values)?;
        let mut links = links();
        let handle = 0x10 + links.last_key_value().map_or(0, |(last, _)| *last);
        state.put(handle)?;
        links.insert(handle, link);
        Ok(())
    }
    fn cuLinkAddData_v2(
        state: usize,
        kind: c_uint,
        data: *const c_void,
        len: usize,
        _name: *const c_char,
        _count: c_uint,
        _options: *const c_uint,
        _values: *const usize,
    ) {
        let mut links = links();
        let link = links.get_mut(&state).ok_or(Status::INVALID_HANDLE)?;
        let bytes = host(data, len)?;
        let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        let source = std::str::from_utf8(bytes).map_err(|_| Status::INVALID_PTX)?;
        if kind != INPUT_PTX {
            return Err(Status::INVALID_VALUE);
        }
        let target = link.target;
        match context(|driver| Ok(driver.link(source, target)))? {
            Ok(cubin) => {
                link.cubin = cubin;
                if driver(|driver| Ok(driver.settings().fails(Fault::ErrorInLog)))? {
                    put_log(link.error_log, "error   : the fake driver succeeds with an error in its log")?;
                }
                put_log(link.information_log, "ptxas info    : compiled by mxprobe's fake driver")
            }
            Err(Refusal { status, log }) => {
                put_log(link.error_log, &log)?;
                Err(status)
            }
        }
    }
    fn cuLinkComplete(state: usize, cubin: Out<*const u8>, len: Out<usize>) {
        context(|driver| driver.healthy())?;
        let links = links();
        let link = links.get(&state).ok_or(Status::INVALID_HANDLE)?;
        if link.cubin.is_empty() {
            return Err(Status::INVALID_IMAGE);
        }
        cubin.put(link.cubin.as_ptr())?;
        len.put(link.cubin.len())
    }
    fn cuLinkDestroy(state: usize) {
        links().remove(&state).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }
}

/// As [`put_text`], if the caller gave a buffer.
fn put_log((start, len): (usize, usize), log: &str) -> Result<(), Status> {
    if start == 0 || len == 0 {
        return Ok(());
    }
    let len = c_int::try_from(len).unwrap_or(c_int::MAX);
    put_text(std::ptr::with_exposed_provenance_mut(start), len, log)
}

impl Link {
    /// Reads `CU_JIT_INFO_LOG_BUFFER` (3), its size (4), the same for errors (5, 6), and `CU_JIT_TARGET` (9); ignores
    /// other options.
    fn new(count: c_uint, options: *const c_uint, values: *const usize) -> Result<Self, Status> {
        let mut link = Self::default();
        let count = count as usize;
        for (option, value) in array(options, count)?.iter().zip(array(values, count)?) {
            match option {
                3 => link.information_log.0 = *value,
                4 => link.information_log.1 = *value as u32 as usize,
                5 => link.error_log.0 = *value,
                6 => link.error_log.1 = *value as u32 as usize,
                9 => link.target = Some(*value as u32 as usize),
                _ => {}
            }
        }
        for log in [link.information_log, link.error_log] {
            put_log(log, "")?;
        }
        Ok(link)
    }
}

/// Loads a module from a cubin that this library wrote, or from PTX that ends with a NUL.
fn load(driver: &mut Driver, image: *const c_void) -> Result<u64, Status> {
    if host(image, 4)? != b"\x7fELF" {
        return driver.load(text(image.cast())?.as_bytes());
    }
    let header: &[u8; 64] = host(image, 64)?.try_into().map_err(|_| Status::INVALID_IMAGE)?;
    let len = cubin::length(header).ok_or(Status::INVALID_IMAGE)?;
    driver.load(host(image, len)?)
}
