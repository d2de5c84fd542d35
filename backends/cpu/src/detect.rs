//! Detection of what this CPU, its kernel and this process allow. Values are read once, and every decision is a pure
//! function of them.

mod read;

pub(crate) use read::hypervisor;

/// The four registers of one CPUID leaf; all 0 if the CPU does not have the leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) eax: u32,
    pub(crate) ebx: u32,
    pub(crate) ecx: u32,
    pub(crate) edx: u32,
}

/// The kernel's answer to the request for tile registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TilePermission {
    /// Not requested, because an earlier step failed.
    #[default]
    NotAsked,
    /// The return value of `arch_prctl(ARCH_REQ_XCOMP_PERM, 18)`: 0, or a negated error number.
    Returned(i64),
    /// This kernel grants tile registers without a request, or in a way that is not known here.
    NotLinux,
}

/// All values that decisions are based on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readings {
    /// The vendor in leaf 0: `GenuineIntel`, `AuthenticAMD`.
    pub(crate) vendor: String,
    /// The brand string; empty if there is none.
    pub(crate) brand: String,
    /// Leaf 1: signature, OSXSAVE.
    pub(crate) leaf_1: Leaf,
    /// Leaf 7, subleaf 0: AMX, AVX-512.
    pub(crate) leaf_7_0: Leaf,
    /// Leaf 7, subleaf 1: AVX-VNNI, AVX512-BF16.
    pub(crate) leaf_7_1: Leaf,
    /// Leaf 0x1d, subleaf 1: the sizes of palette 1.
    pub(crate) leaf_1d_1: Leaf,
    /// Leaf 0x1e, subleaf 0: the sizes of the matrix unit.
    pub(crate) leaf_1e_0: Leaf,
    /// The register state that the kernel enables; `None` without OSXSAVE.
    pub(crate) xcr0: Option<u64>,
    /// The kernel's answer to the request for tile registers.
    pub(crate) tile_permission: TilePermission,
}

/// An instruction set extension with instructions that this backend uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extension {
    AmxBf16,
    AmxInt8,
    Avx512Bf16,
    Avx512Vnni,
    AvxVnni,
    Fma,
    F16c,
    Avx512Fp16,
}

impl Extension {
    /// Its name in fingerprints.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::AmxBf16 => "amx-bf16",
            Self::AmxInt8 => "amx-int8",
            Self::Avx512Bf16 => "avx512-bf16",
            Self::Avx512Vnni => "avx512-vnni",
            Self::AvxVnni => "avx-vnni",
            Self::Fma => "fma",
            Self::F16c => "f16c",
            Self::Avx512Fp16 => "avx512-fp16",
        }
    }
}

/// The detection step that ruled out an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The step and the value that it read.
    pub(crate) reason: String,
    /// One fact and one action, if any.
    pub(crate) help: Option<&'static str>,
}

impl Refused {
    fn new(reason: String, help: Option<&'static str>) -> Self {
        Self { reason, help }
    }
}

const HELP_CPUID: &str =
    "this CPU has no such instruction, or the hypervisor hides it; the CPU model given to a guest decides";
const HELP_XCR0: &str = "the kernel does not enable these registers; Linux enables tile registers from 5.16 on";
const HELP_PERMISSION: &str = "Linux grants tile registers to a process that asks, from 5.16 on; a seccomp filter may \
                               forbid arch_prctl";

/// XCR0: SSE and AVX state (*specified*: Intel SDM volume 1, 13.3, like the masks below).
const AVX_STATE: u64 = 0x6;
/// XCR0: SSE, AVX, opmask, the upper halves of zmm0 to zmm15, and zmm16 to zmm31.
const AVX512_STATE: u64 = 0xe6;
/// XCR0: tile configuration (bit 17) and tile data (bit 18).
const TILE_STATE: u64 = 0x6_0000;

impl Readings {
    /// Checks that an extension can be used in this process; the error is the first step that fails.
    pub(crate) fn extension(&self, extension: Extension) -> Result<(), Refused> {
        match extension {
            Extension::AmxBf16 => {
                self.leaf_7_0_edx(24, "AMX-TILE")?;
                self.leaf_7_0_edx(22, "AMX-BF16")?;
                self.tile_state()?;
                self.tile_permission()
            }
            Extension::AmxInt8 => {
                self.leaf_7_0_edx(24, "AMX-TILE")?;
                self.leaf_7_0_edx(25, "AMX-INT8")?;
                self.tile_state()?;
                self.tile_permission()
            }
            Extension::Avx512Bf16 => {
                bit("CPUID.7.0:EBX", self.leaf_7_0.ebx, 16, "AVX512F")?;
                bit("CPUID.7.1:EAX", self.leaf_7_1.eax, 5, "AVX512-BF16")?;
                self.state(AVX512_STATE)
            }
            Extension::Avx512Vnni => {
                bit("CPUID.7.0:EBX", self.leaf_7_0.ebx, 16, "AVX512F")?;
                bit("CPUID.7.0:ECX", self.leaf_7_0.ecx, 11, "AVX512-VNNI")?;
                self.state(AVX512_STATE)
            }
            Extension::AvxVnni => {
                bit("CPUID.1:ECX", self.leaf_1.ecx, 28, "AVX")?;
                bit("CPUID.7.1:EAX", self.leaf_7_1.eax, 4, "AVX-VNNI")?;
                self.state(AVX_STATE)
            }
            Extension::Fma => {
                bit("CPUID.1:ECX", self.leaf_1.ecx, 12, "FMA")?;
                self.state(AVX_STATE)
            }
            Extension::F16c => {
                bit("CPUID.1:ECX", self.leaf_1.ecx, 29, "F16C")?;
                self.state(AVX_STATE)
            }
            Extension::Avx512Fp16 => {
                self.leaf_7_0_edx(23, "AVX512-FP16")?;
                self.state(AVX512_STATE)
            }
        }
    }

    /// Whether to request tile registers from the kernel: all earlier steps succeeded.
    pub(crate) fn may_ask_for_tiles(&self) -> bool {
        self.leaf_7_0_edx(24, "AMX-TILE").and_then(|()| self.tile_state()).is_ok()
    }

    fn leaf_7_0_edx(&self, number: u32, name: &str) -> Result<(), Refused> {
        bit("CPUID.7.0:EDX", self.leaf_7_0.edx, number, name)
    }

    fn tile_state(&self) -> Result<(), Refused> {
        self.state(TILE_STATE)?;
        // *Specified*: Intel SDM volume 2, CPUID, leaves 0x1d and 0x1e. The code in this crate relies on these sizes.
        let palette = self.leaf_1d_1;
        let (tile_bytes, row_bytes) = (palette.eax >> 16, palette.ebx & 0xffff);
        let (tiles, rows) = (palette.ebx >> 16, palette.ecx & 0xffff);
        if tile_bytes < 1024 || row_bytes < 64 || tiles < 8 || rows < 16 {
            return Err(Refused::new(
                format!(
                    "CPUID.1D.1 gives palette 1 {tiles} tiles of {tile_bytes} bytes, {rows} rows of {row_bytes} bytes; \
                     8 tiles of 1024 bytes, 16 rows of 64 bytes are used"
                ),
                None,
            ));
        }
        let (max_k, max_n) = (self.leaf_1e_0.ebx & 0xff, self.leaf_1e_0.ebx >> 8 & 0xffff);
        if max_k < 16 || max_n < 64 {
            return Err(Refused::new(
                format!("CPUID.1E.0 gives {max_k} rows and {max_n} bytes a row of B; 16 and 64 are used"),
                None,
            ));
        }
        Ok(())
    }

    fn tile_permission(&self) -> Result<(), Refused> {
        let call = "arch_prctl(ARCH_REQ_XCOMP_PERM, 18)";
        match self.tile_permission {
            TilePermission::Returned(0) => Ok(()),
            TilePermission::Returned(code) => {
                Err(Refused::new(format!("{call} returned {code}{}", error_name(code)), Some(HELP_PERMISSION)))
            }
            TilePermission::NotAsked => Err(Refused::new(format!("{call} was not called"), None)),
            TilePermission::NotLinux => Err(Refused::new(
                format!(
                    "only Linux is known to be asked for tile registers, by {call}; this is {}",
                    std::env::consts::OS
                ),
                None,
            )),
        }
    }

    fn state(&self, wanted: u64) -> Result<(), Refused> {
        bit("CPUID.1:ECX", self.leaf_1.ecx, 27, "OSXSAVE")?;
        let xcr0 = self.xcr0.unwrap_or(0);
        let missing: Vec<String> =
            (0..64).filter(|number| wanted & !xcr0 & (1 << number) != 0).map(|number| number.to_string()).collect();
        match missing.split_last() {
            None => Ok(()),
            Some((last, [])) => Err(Refused::new(format!("XCR0 is {xcr0:#x}, bit {last} is not set"), Some(HELP_XCR0))),
            Some((last, rest)) => Err(Refused::new(
                format!("XCR0 is {xcr0:#x}, bits {} and {last} are not set", rest.join(", ")),
                Some(HELP_XCR0),
            )),
        }
    }

    /// Family, model and stepping of leaf 1 (*specified*: Intel SDM volume 2, CPUID, figure 3-6; AMD APM volume 3,
    /// E.3.2).
    ///
    /// Only for reports: a hypervisor may return any numbers here, so no decision depends on them.
    pub(crate) fn signature(&self) -> (u32, u32, u32) {
        let eax = self.leaf_1.eax;
        let (family, model, stepping) = (eax >> 8 & 0xf, eax >> 4 & 0xf, eax & 0xf);
        let model = if family == 0x6 || family == 0xf { (eax >> 16 & 0xf) << 4 | model } else { model };
        let family = if family == 0xf { family + (eax >> 20 & 0xff) } else { family };
        (family, model, stepping)
    }
}

fn bit(register: &str, value: u32, number: u32, name: &str) -> Result<(), Refused> {
    if value >> number & 1 == 1 {
        Ok(())
    } else {
        Err(Refused::new(format!("{register} bit {number} ({name}) is 0"), Some(HELP_CPUID)))
    }
}

/// The name of a negated Linux error number that this call is known to return.
fn error_name(code: i64) -> &'static str {
    match code {
        -1 => " (EPERM)",
        -22 => " (EINVAL)",
        -28 => " (ENOSPC)",
        -38 => " (ENOSYS)",
        -95 => " (EOPNOTSUPP)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Extension; 5] =
        [Extension::AmxBf16, Extension::AmxInt8, Extension::Avx512Bf16, Extension::Avx512Vnni, Extension::AvxVnni];

    /// Values read on a Xeon with AMX (*measured*: KVM guest, Linux 6.18).
    fn xeon() -> Readings {
        Readings {
            vendor: "GenuineIntel".to_owned(),
            brand: "Intel(R) Xeon(R) Processor".to_owned(),
            leaf_1: Leaf { eax: 0x000a_0671, ecx: 0x1800_0000, ..Leaf::default() },
            leaf_7_0: Leaf { eax: 2, ebx: 0xf1bf_2ffb, ecx: 0x1a41_5f46, edx: 0x23c1_4010 },
            leaf_7_1: Leaf { eax: 0x0000_1c30, edx: 0x0008_4000, ..Leaf::default() },
            leaf_1d_1: Leaf { eax: 1024 << 16 | 8192, ebx: 8 << 16 | 64, ecx: 16, edx: 0 },
            leaf_1e_0: Leaf { ebx: 64 << 8 | 16, ..Leaf::default() },
            xcr0: Some(0x0006_00e7),
            tile_permission: TilePermission::Returned(0),
        }
    }

    fn reason(readings: &Readings, extension: Extension) -> String {
        readings.extension(extension).unwrap_err().reason
    }

    #[test]
    fn a_xeon_with_amx_can_use_everything() {
        for extension in ALL {
            assert_eq!(xeon().extension(extension), Ok(()), "{extension:?}");
        }
        assert!(xeon().may_ask_for_tiles());
    }

    #[test]
    fn each_missing_cpuid_bit_is_named() {
        use Extension::{AmxBf16, AmxInt8, Avx512Bf16, Avx512Vnni, AvxVnni};
        type Clear = fn(&mut Readings);
        let cases: [(Clear, &[Extension], &str); 9] = [
            (|r| r.leaf_7_0.edx &= !(1 << 24), &[AmxBf16, AmxInt8], "CPUID.7.0:EDX bit 24 (AMX-TILE) is 0"),
            (|r| r.leaf_7_0.edx &= !(1 << 22), &[AmxBf16], "CPUID.7.0:EDX bit 22 (AMX-BF16) is 0"),
            (|r| r.leaf_7_0.edx &= !(1 << 25), &[AmxInt8], "CPUID.7.0:EDX bit 25 (AMX-INT8) is 0"),
            (|r| r.leaf_7_0.ebx &= !(1 << 16), &[Avx512Bf16, Avx512Vnni], "CPUID.7.0:EBX bit 16 (AVX512F) is 0"),
            (|r| r.leaf_7_0.ecx &= !(1 << 11), &[Avx512Vnni], "CPUID.7.0:ECX bit 11 (AVX512-VNNI) is 0"),
            (|r| r.leaf_7_1.eax &= !(1 << 5), &[Avx512Bf16], "CPUID.7.1:EAX bit 5 (AVX512-BF16) is 0"),
            (|r| r.leaf_7_1.eax &= !(1 << 4), &[AvxVnni], "CPUID.7.1:EAX bit 4 (AVX-VNNI) is 0"),
            (|r| r.leaf_1.ecx &= !(1 << 28), &[AvxVnni], "CPUID.1:ECX bit 28 (AVX) is 0"),
            (|r| r.leaf_1.ecx &= !(1 << 27), &ALL, "CPUID.1:ECX bit 27 (OSXSAVE) is 0"),
        ];
        for (clear, refused, text) in cases {
            let mut readings = xeon();
            clear(&mut readings);
            for extension in ALL {
                if refused.contains(&extension) {
                    assert_eq!(reason(&readings, extension), text);
                } else {
                    assert_eq!(readings.extension(extension), Ok(()), "{extension:?} with {text}");
                }
            }
        }
    }

    #[test]
    fn each_missing_bit_of_xcr0_is_named_with_the_value() {
        let cases = [
            (0x7, Extension::AmxBf16, "XCR0 is 0x7, bits 17 and 18 are not set"),
            (0x2_00e7, Extension::AmxInt8, "XCR0 is 0x200e7, bit 18 is not set"),
            (0x7, Extension::Avx512Bf16, "XCR0 is 0x7, bits 5, 6 and 7 are not set"),
            (0x67, Extension::Avx512Vnni, "XCR0 is 0x67, bit 7 is not set"),
            (0x3, Extension::AvxVnni, "XCR0 is 0x3, bit 2 is not set"),
        ];
        for (xcr0, extension, text) in cases {
            let readings = Readings { xcr0: Some(xcr0), ..xeon() };
            assert_eq!(reason(&readings, extension), text);
        }
    }

    #[test]
    fn the_kernel_is_not_asked_for_tiles_when_an_earlier_step_says_no() {
        for readings in [
            Readings::default(),
            Readings { xcr0: Some(0x2e7), ..xeon() },
            Readings { leaf_7_0: Leaf { edx: 0x1000_0010, ..xeon().leaf_7_0 }, ..xeon() },
            Readings { leaf_1d_1: Leaf::default(), ..xeon() },
        ] {
            assert!(!readings.may_ask_for_tiles(), "{readings:?}");
        }
    }

    #[test]
    fn what_the_kernel_answered_is_named() {
        let cases = [
            (TilePermission::Returned(-22), "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) returned -22 (EINVAL)"),
            (TilePermission::Returned(-1), "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) returned -1 (EPERM)"),
            (TilePermission::Returned(-28), "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) returned -28 (ENOSPC)"),
            (TilePermission::Returned(-38), "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) returned -38 (ENOSYS)"),
            (TilePermission::Returned(-95), "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) returned -95 (EOPNOTSUPP)"),
            (TilePermission::Returned(-7), "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) returned -7"),
            (TilePermission::NotAsked, "arch_prctl(ARCH_REQ_XCOMP_PERM, 18) was not called"),
        ];
        for (tile_permission, text) in cases {
            let readings = Readings { tile_permission, ..xeon() };
            assert_eq!(reason(&readings, Extension::AmxBf16), text);
            assert_eq!(reason(&readings, Extension::AmxInt8), text);
            assert_eq!(readings.extension(Extension::Avx512Bf16), Ok(()));
        }
        let elsewhere = Readings { tile_permission: TilePermission::NotLinux, ..xeon() };
        assert!(reason(&elsewhere, Extension::AmxBf16).starts_with("only Linux is known to be asked"));
    }

    #[test]
    fn smaller_tiles_than_the_kernels_use_are_refused() {
        let palette = Readings { leaf_1d_1: Leaf { ecx: 8, ..xeon().leaf_1d_1 }, ..xeon() };
        assert_eq!(
            reason(&palette, Extension::AmxBf16),
            "CPUID.1D.1 gives palette 1 8 tiles of 1024 bytes, 8 rows of 64 bytes; \
             8 tiles of 1024 bytes, 16 rows of 64 bytes are used"
        );
        let unit = Readings { leaf_1e_0: Leaf { ebx: 64 << 8 | 8, ..Leaf::default() }, ..xeon() };
        assert_eq!(
            reason(&unit, Extension::AmxInt8),
            "CPUID.1E.0 gives 8 rows and 64 bytes a row of B; 16 and 64 are used"
        );
    }

    #[test]
    fn a_cpu_that_reports_nothing_refuses_everything() {
        for extension in ALL {
            assert!(Readings::default().extension(extension).is_err(), "{extension:?}");
        }
    }

    #[test]
    fn the_signature_is_read_with_its_extended_fields() {
        let signature = |eax| Readings { leaf_1: Leaf { eax, ..Leaf::default() }, ..Readings::default() }.signature();
        assert_eq!(signature(0x000a_0671), (6, 167, 1));
        assert_eq!(signature(0x00b0_0f21), (26, 2, 1));
        assert_eq!(signature(0x000c_06f2), (6, 207, 2));
    }
}
