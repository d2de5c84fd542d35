//! Choosing the file of the driver library.
//!
//! cudarc tries `libcuda.so` before `libcuda.so.1`. The driver installs one file under both names; the toolkit installs
//! a stub as `libcuda.so` only, which would be loaded if its `stubs` folder is in `LD_LIBRARY_PATH`.

/// Makes cudarc use `libcuda.so.1`, the driver's soname, if `libcuda.so` is a different file. If that is not possible,
/// cudarc's order applies.
pub(crate) fn prefer_soname() {
    #[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
    alias::prefer_soname();
}

#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod alias {
    use std::ffi::{CStr, c_char, c_int, c_uint};
    use std::fs::File;
    use std::io::{self, Write as _};
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    use std::sync::Once;

    use libloading::os::unix::Library;

    /// The soname of the driver library.
    const SONAME: &str = "libcuda.so.1";
    /// The name that cudarc opens.
    const ASKED: &str = "libcuda.so";

    unsafe extern "C" {
        /// Creates a file in memory (memfd_create(2), glibc 2.27).
        fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    }

    pub(super) fn prefer_soname() {
        static DONE: Once = Once::new();
        DONE.call_once(|| {
            if are_different_files() {
                // Without the alias cudarc opens the toolkit's stub, and the refusal says so.
                let _ = open_alias();
            }
        });
    }

    fn are_different_files() -> bool {
        // SAFETY: loading a library runs its initialisers; the driver's and the stub's are designed for that.
        let open = |name| unsafe { Library::new(name) }.map(Library::into_raw).ok();
        let (Some(soname), Some(asked)) = (open(SONAME), open(ASKED)) else { return false };
        // SAFETY: both handles were just opened, and each is closed once.
        drop(unsafe { (Library::from_raw(soname), Library::from_raw(asked)) });
        soname != asked
    }

    /// Loads a library without code whose soname is the name that cudarc opens and which depends on the driver library.
    /// From then on the dynamic loader resolves that name to it, and finds the driver's functions through it.
    fn open_alias() -> io::Result<()> {
        const NAME: &CStr = c"libcuda.so";
        // SAFETY: the name ends with a zero.
        let descriptor = unsafe { memfd_create(NAME.as_ptr(), 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let mut file = unsafe { File::from_raw_fd(descriptor) };
        file.write_all(&image(ASKED, SONAME))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the library has no initialisers; those of the one it needs are the driver's.
        let library = unsafe { Library::new(path) }.map_err(io::Error::other)?;
        // The library stays loaded.
        let _ = library.into_raw();
        Ok(())
    }

    const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    const HEADER_BYTES: u64 = 64;
    const SEGMENT_BYTES: u64 = 56;
    const SYMBOL_BYTES: u64 = 24;

    /// Builds a shared library that has only a name and a dependency (System V ABI, chapters 4 and 5).
    pub(super) fn image(soname: &str, needed: &str) -> Vec<u8> {
        let strings = format!("\0{soname}\0{needed}\0");
        let dynamic_at = HEADER_BYTES + 3 * SEGMENT_BYTES;
        const ENTRIES: u64 = 7;
        let symbols_at = dynamic_at + ENTRIES * 16;
        let strings_at = symbols_at + SYMBOL_BYTES;
        let bytes = strings_at + strings.len() as u64;
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // ET_DYN.
        file.extend([3u16, MACHINE].map(u16::to_le_bytes).concat());
        file.extend(1u32.to_le_bytes());
        file.extend([0, HEADER_BYTES, 0].map(u64::to_le_bytes).concat());
        file.extend(0u32.to_le_bytes());
        file.extend([64, 56, 3, 64, 0, 0].map(u16::to_le_bytes).concat());
        // PT_LOAD, PT_DYNAMIC and PT_GNU_STACK, readable and writable; without the last, stacks would become
        // executable.
        for (kind, start, len, alignment) in
            [(1u32, 0, bytes, 0x1_0000), (2, dynamic_at, ENTRIES * 16, 8), (0x6474_e551, 0, 0, 16)]
        {
            file.extend([kind, 6].map(u32::to_le_bytes).concat());
            file.extend([start, start, start, len, len, alignment].map(u64::to_le_bytes).concat());
        }
        let needed_at = soname.len() as u64 + 2;
        // DT_NEEDED, DT_SONAME, DT_STRTAB, DT_STRSZ, DT_SYMTAB, DT_SYMENT, DT_NULL.
        for entry in [
            [1, needed_at],
            [14, 1],
            [5, strings_at],
            [10, strings.len() as u64],
            [6, symbols_at],
            [11, SYMBOL_BYTES],
            [0, 0],
        ] {
            file.extend(entry.map(u64::to_le_bytes).concat());
        }
        // The null symbol that every symbol table starts with.
        file.extend([0; 24]);
        file.extend(strings.as_bytes());
        file
    }
}
