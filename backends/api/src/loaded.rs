//! Finds the file that a driver was loaded from.

/// Returns the file name, without directories, of a library in this process whose name starts with `beginning`.
/// Symbolic links are resolved, so the name includes the version (`libcuda.so.570.86.10`).
///
/// `None` if no such library is loaded, or if the system has no `/proc/self/maps`.
#[must_use]
pub fn loaded_library(beginning: &str) -> Option<String> {
    named(&std::fs::read_to_string("/proc/self/maps").ok()?, beginning)
}

/// Searches text in the form of `/proc/self/maps` (proc_pid_maps(5)): six columns, the last of which is a path.
fn named(maps: &str, beginning: &str) -> Option<String> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let names = paths.filter_map(|path| path.trim_end_matches(" (deleted)").rsplit('/').next());
    names.into_iter().find(|name| name.starts_with(beginning)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_the_beginning_of_its_name() {
        let maps = "00400000-0040b000 r-xp 00000000 fe:01 123 /usr/bin/libfake.so/program\n\
                    7f00-7f01 rw-p 00000000 00:00 0 \n\
                    7f01-7f02 r-xp 00000000 fe:01 124    /usr/lib/a folder/libcuda.so.570.86.10\n\
                    7f02-7f03 r-xp 00000000 fe:01 124    /usr/lib/libcudart.so.12 (deleted)\n\
                    7ffc-7ffd r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(named(maps, "libcuda.so").as_deref(), Some("libcuda.so.570.86.10"));
        assert_eq!(named(maps, "libcudart.so").as_deref(), Some("libcudart.so.12"));
        assert_eq!(named(maps, "libfake.so"), None);
        assert_eq!(named("", "lib"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_a_c_library_and_no_driver() {
        assert!(loaded_library("lib").is_some() || loaded_library("ld-").is_some());
        assert_eq!(loaded_library("libcuda.so"), None);
    }
}
