//! Reads CPUID and XCR0, and requests permission to use the tile registers.

use std::arch::{asm, x86_64::__cpuid_count};

use super::{Leaf, Readings, TilePermission};

impl Readings {
    /// Reads this CPU, and requests tile registers from the kernel if all earlier steps succeed.
    ///
    /// Permission applies to the whole process; requesting it again is harmless.
    pub(crate) fn here() -> Self {
        let leaf_0 = cpuid(0, 0);
        // For a leaf above the highest, Intel CPUs return the registers of another leaf, so it is not read.
        let leaf = |number, subleaf| if number <= leaf_0.eax { cpuid(number, subleaf) } else { Leaf::default() };
        let leaf_1 = leaf(1, 0);
        let leaf_7_0 = leaf(7, 0);
        let has_tiles = leaf_7_0.edx >> 24 & 1 == 1;
        let mut readings = Self {
            vendor: text(&[leaf_0.ebx, leaf_0.edx, leaf_0.ecx]),
            brand: brand(),
            leaf_1,
            leaf_7_0,
            leaf_7_1: if leaf_7_0.eax >= 1 { leaf(7, 1) } else { Leaf::default() },
            leaf_1d_1: if has_tiles && leaf(0x1d, 0).eax >= 1 { leaf(0x1d, 1) } else { Leaf::default() },
            leaf_1e_0: if has_tiles { leaf(0x1e, 0) } else { Leaf::default() },
            xcr0: (leaf_1.ecx >> 27 & 1 == 1).then(xcr0),
            tile_permission: TilePermission::NotAsked,
        };
        if readings.may_ask_for_tiles() {
            readings.tile_permission = ask_for_tiles();
        }
        readings
    }
}

fn cpuid(leaf: u32, subleaf: u32) -> Leaf {
    // Rust made this function safe after the minimum version of this crate.
    // SAFETY: every x86-64 CPU has CPUID.
    #[allow(unused_unsafe)]
    let read = unsafe { __cpuid_count(leaf, subleaf) };
    Leaf { eax: read.eax, ebx: read.ebx, ecx: read.ecx, edx: read.edx }
}

fn brand() -> String {
    if cpuid(0x8000_0000, 0).eax < 0x8000_0004 {
        return String::new();
    }
    let words: Vec<u32> = (0x8000_0002..=0x8000_0004)
        .flat_map(|number| {
            let Leaf { eax, ebx, ecx, edx } = cpuid(number, 0);
            [eax, ebx, ecx, edx]
        })
        .collect();
    text(&words)
}

/// The vendor of the hypervisor, if this is a guest and the hypervisor says so.
pub(crate) fn hypervisor(readings: &Readings) -> Option<String> {
    (readings.leaf_1.ecx >> 31 == 1).then(|| {
        let Leaf { ebx, ecx, edx, .. } = cpuid(0x4000_0000, 0);
        text(&[ebx, ecx, edx])
    })
}

fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads XCR0; only valid if OSXSAVE is set.
fn xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: XGETBV of register 0 is defined if OSXSAVE is set, which the only caller checks; it writes edx and eax
    // and nothing else.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

fn ask_for_tiles() -> TilePermission {
    if !cfg!(target_os = "linux") {
        return TilePermission::NotLinux;
    }
    const SYS_ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let returned: i64;
    // SAFETY: a system call of the Linux x86-64 ABI: number in rax, arguments in rdi and rsi, rcx and r11
    // overwritten. This one takes two numbers and touches no memory of the process.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") SYS_ARCH_PRCTL => returned,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") TILE_DATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    TilePermission::Returned(returned)
}
