//! The device's attributes.

use crate::settings::Settings;

/// Bytes of shared memory of a block, static and dynamic.
pub(crate) const SHARED_BYTES: usize = 227 << 10;

/// The value of a `CUdevice_attribute`; 0 for those that nothing here depends on.
pub(crate) fn attribute(settings: &Settings, attribute: i32) -> i32 {
    let capability = settings.capability.cast_signed();
    match attribute {
        // The threads of a block, and its extents.
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        // Shared memory of a block, of a multiprocessor, and of a block that opts in to more.
        8 => 48 << 10,
        81 => 228 << 10,
        97 => SHARED_BYTES as i32,
        9 => 64 << 10,
        10 => 32,
        12 | 82 => 65536,
        // Clock rates in kHz; bus width in bits.
        13 | 36 => 1_000_000,
        37 => 512,
        16 => settings.multiprocessors,
        // Mapped host memory, concurrent kernels, unified addressing, memory pools.
        19 | 31 | 41 | 115 => 1,
        38 => 4 << 20,
        39 => 2048,
        75 => capability / 10,
        76 => capability % 10,
        106 => 32,
        _ => 0,
    }
}
