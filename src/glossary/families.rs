//! Families of operations: the first word of an id.

use super::entry::Text;

const PTX: &str = "PTX ISA, section 9.7 (matrix multiply-accumulate instructions)";
const ARM: &str = "Arm Architecture Reference Manual for A-profile, Advanced SIMD dot and matrix instructions";

pub(super) const TEXTS: &[Text] = &[
    Text {
        name: "scalar",
        about: "The scalar arithmetic beside the matrix unit, in one format and mode, as a multiply-add of one element.",
        how: "scalar.m1n1k1.F.F.F.F, or scalar.F for short; then what is asked of it: rne, rz, rd or ru for the rounding, \
              ftz (subnormal results become zero), daz (subnormal inputs are zero), preserve (both are kept), approx or \
              full for approximations. Without a word it is what the device gives unasked. `--op 'scalar.*'` asks every mode.",
        answers: &[],
        source: "IEEE 754-2019; NVIDIA, Precision and Performance: floating point and IEEE 754 compliance (2011)",
    },
    Text {
        name: "fma",
        about: "The scalar or vector units beside the matrix units: what `bench` holds those against.",
        how: "fma.m1n1k1.f32.f32.f32.f32 is d = a·b + c; .ymm says vectors of 256 bits. No operation of `list`.",
        answers: &[],
        source: "IEEE 754-2019, 5.4.1; GLSL.std.450 Fma; PTX ISA, fma",
    },
    Text {
        name: "mma",
        about: "NVIDIA's mma.sync: one warp multiplies one small tile held in its registers.",
        how: "mma.mMnNkK.D.A.B.C is mma.sync.aligned with that shape; .satfinite clamps integer sums, .blockN and a \
              format stand for block scales, .rm .rp .rz for the rounding of f64.",
        answers: &[],
        source: PTX,
    },
    Text {
        name: "wgmma",
        about: "NVIDIA's wgmma.mma_async (Hopper, sm_90a): four warps multiply tiles that lie in shared memory.",
        how: "The same formats as mma may compute differently: compare them, as the e4m3 of both on one device.",
        answers: &[],
        source: PTX,
    },
    Text {
        name: "wmma",
        about: "Whole tiles loaded, multiplied and stored by a warp or wave: NVIDIA's wmma, AMD's WMMA of RDNA 3 and 4.",
        how: "On NVIDIA the compiler turns it into mma instructions. On AMD it is V_WMMA; .wave32 and .wave64 say how \
              many lanes share the tile, which on RDNA 4 changes the order of the sum.",
        answers: &[],
        source: "PTX ISA, wmma instructions; AMD RDNA 3 and RDNA 4 instruction set architecture guides, WMMA",
    },
    Text {
        name: "tcgen05",
        about: "NVIDIA's tcgen05.mma (Blackwell, sm_100a): the fifth generation, with sums in tensor memory.",
        how: "One thread starts it for a CTA; kinds f16, tf32, f8f6f4, i8 and the block-scaled ones.",
        answers: &[],
        source: "PTX ISA, section 9.7, tcgen05 instructions",
    },
    Text {
        name: "mfma",
        about: "AMD's V_MFMA of CDNA: a wave of 64 lanes multiplies one tile, or several at once.",
        how: "A suffix such as .4b says that four independent tiles are multiplied by one instruction; .1k is the later \
              bf16 variant with twice the k.",
        answers: &[],
        source: "AMD Instinct MI100, MI200 and MI300 instruction set architecture guides, VOP3P-MAI",
    },
    Text {
        name: "coopmat",
        about: "Vulkan's cooperative matrix: what a driver offers to shaders, whatever unit lies below.",
        how: "The shape is the one the driver lists. The finding `instruction` says what the driver made of it, and \
              `emulation` whether that is the matrix unit, where the driver shows its code. .rte and .rtz ask for a \
              rounding by float controls; .satfinite for saturating integer sums.",
        answers: &[],
        source: "VK_KHR_cooperative_matrix; SPV_KHR_cooperative_matrix",
    },
    Text {
        name: "amx",
        about: "Intel AMX: the tile instructions TDP* of Xeon CPUs from Sapphire Rapids on.",
        how: "TDPBF16PS and TDPFP16PS for floating point, TDPBSSD, TDPBSUD, TDPBUSD and TDPBUUD for 8-bit integers; k \
              counts elements, not the pairs or quadruples in which they are stored.",
        answers: &[],
        source: "Intel 64 and IA-32 Architectures Software Developer's Manual, volumes 1 and 2",
    },
    Text {
        name: "dot",
        about: "Dot-product instructions of vector units: k products and c in one lane, beside the matrix unit.",
        how: "m and n are 1. VDPBF16PS and VPDPBUSD on x86, BFDOT on Arm, V_DOT2 and V_DOT4 on AMD; in models of \
              reference arithmetic, a plain loop of the named kind.",
        answers: &[],
        source: "the vendors' instruction set manuals; the file of each model names its own",
    },
    Text {
        name: "bfmmla",
        about: "Arm's BFMMLA: a 2×4 by 4×2 product of bf16 with sums in f32.",
        how: "Without FEAT_EBF16, or with FPCR.EBF = 0, sums round to odd and subnormals are flushed; .ebf is the mode \
              with FPCR.EBF = 1, which flushes subnormals only if FPCR.FZ is 1 too: .ebf.fz.",
        answers: &[],
        source: ARM,
    },
    Text {
        name: "smmla",
        about: "Arm's SMMLA: a 2×8 by 8×2 product of signed 8-bit integers with sums in s32.",
        how: "Sums wrap modulo 2^32.",
        answers: &[],
        source: ARM,
    },
    Text {
        name: "ummla",
        about: "Arm's UMMLA: a 2×8 by 8×2 product of unsigned 8-bit integers with sums in u32.",
        how: "Sums wrap modulo 2^32.",
        answers: &[],
        source: ARM,
    },
    Text {
        name: "usmmla",
        about: "Arm's USMMLA: a 2×8 by 8×2 product of unsigned by signed 8-bit integers with sums in s32.",
        how: "Sums wrap modulo 2^32.",
        answers: &[],
        source: ARM,
    },
];
