//! Dots whose answers are known from measurements, from papers, or by hand; a suite with teeth of its own.

mod common;

use common::{dot, scaled_dot, times};
use mxprobe_models::{Model, load};

const V100: &str = "mma.m8n8k4.f32.f16.f16.f32";
const A100: &str = "mma.m16n8k8.f32.f16.f16.f32";
const H100: &str = "mma.m16n8k16.f32.f16.f16.f32";

/// Model, operation, products, c, d.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for (name, operation, products, c, expected) in rows {
        let d = dot(&load(name).unwrap(), operation, products, c);
        if d != *expected {
            wrong.push(format!("{name} {operation} {products} + {c}: {d} and not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The inputs that Valpey et al. (arXiv:2502.15999) found by SMT, decoded from their tables.
#[test]
fn smt_inputs_have_the_answers_of_silicon() {
    let f16 = "mma.m8n8k4.f16.f16.f16.f16";
    check(&[
        // 265·2^-24 times 1.3681640625·2^-1: the product is exact.
        ("v100", V100, "0109*3979", "00000000", "37354820"),
        ("a100", A100, "0109*3979", "00000000", "37354820"),
        ("v100", V100, "bbff*bbff bbff*39ff", "00000000", "3e7fe000"),
        // Rounding to f16 is to nearest: −1.99951…·2^-13, 1.99951…·2^-9, and 985·2^-24 times −1.7744140625·2^-9.
        ("v100", f16, "0955*ba00", "0000", "8800"),
        ("v100", f16, "1955*3a00", "0000", "1800"),
        ("v100", f16, "03d9*9b19", "0000", "8003"),
        // Rounding to f32 is toward zero.
        ("v100", V100, "7a00*7600", "c7006000", "4e8ffeff"),
        ("v100", V100, "781f*7afe", "43c02000", "4ee68613"),
        ("v100", V100, "7b12*f875", "40d26000", "cefc19d0"),
        ("v100", V100, "3321*0005", "3bff6000", "3bff608e"),
        ("v100", V100, "7ad3*f30f", "43ffa000", "ce40ad6c"),
        // −2^13 + 2·1.9990234375·2^-9: as many bits as are kept.
        ("v100", V100, "4000*1bff", "c6000000", "c5fffff2"),
        ("a100", A100, "4000*1bff", "c6000000", "c5fffff1"),
        ("h100", H100, "4000*1bff", "c6000000", "c5fffff0"),
        // Products in either order; one bit more on Ampere.
        ("v100", V100, "1bff*3bff 3bff*3bff", "47004605", "47004704"),
        ("v100", V100, "3bff*3bff 1bff*3bff", "47004605", "47004704"),
        ("a100", A100, "1bff*3bff 3bff*3bff", "47004605", "47004705"),
        ("h100", H100, "1bff*3bff 3bff*3bff", "47004605", "47004705"),
        // No normalisation between the additions.
        ("v100", V100, "021f*138b 0400*0001", "3ee7fee8", "3ee7fee8"),
        // Three carry bits: 2^7.
        ("v100", V100, "2a98*603f 3310*57ef 7a00*1155 6400*2000", "41fff500", "43000000"),
        // 2 − 2^-40 is 2: lost bits leave no trace.
        ("v100", V100, "4000*3c00", "ab800000", "40000000"),
        ("h100", H100, "4000*3c00", "ab800000", "40000000"),
        // c inside the sum.
        ("v100", V100, "1c01*5bfe 054e*21c7 0c00*0c00 0c00*0c00", "33800000", "3f800001"),
    ]);
}

/// Fasi et al. (2021) and what follows from the number of fraction bits.
#[test]
fn extra_bits_rounding_and_block_sizes_are_those_of_each_generation() {
    let bf16 = "mma.m16n8k8.f32.bf16.bf16.f32";
    check(&[
        // 1 − (1 − 2^-24): no extra bit on Volta, one later.
        ("v100", V100, "3c00*3c00", "bf7fffff", "34000000"),
        ("a100", A100, "3c00*3c00", "bf7fffff", "33800000"),
        ("t4", "mma.m16n8k8.f32.f16.f16.f32", "3c00*3c00", "bf7fffff", "33800000"),
        ("t4", V100, "3c00*3c00", "bf7fffff", "34000000"),
        // 2 + 3·2^-24 is truncated, and −2 too.
        ("a100", A100, "4000*3c00 0003*3c00", "00000000", "40000000"),
        ("a100", A100, "c000*3c00 8003*3c00", "00000000", "c0000000"),
        // 1 − 1 + 2^-25 is kept with 25 bits, and 2^-26 is not.
        ("rtx5090", H100, "3c00*3c00 bc00*3c00 0c00*0800", "00000000", "33000000"),
        ("rtx5090", H100, "3c00*3c00 bc00*3c00 0800*0800", "00000000", "00000000"),
        ("a100", A100, "3c00*3c00 bc00*3c00 0c00*0800", "00000000", "00000000"),
        // 1 + 8·2^-24 in one block; the ninth 2^-24 is alone in a second block of 8.
        ("a100", "mma.m16n8k16.f32.f16.f16.f32", "0001*3c00 0001*3c00 0001*3c00 k8:0001*3c00", "3f800000", "3f800001"),
        ("h100", H100, "0001*3c00 0001*3c00 0001*3c00 k8:0001*3c00", "3f800000", "3f800002"),
        // Subnormals in and out.
        ("a100", A100, "0001*4400", "00000000", "34800000"),
        ("a100", A100, "", "00000001", "00000001"),
        ("a100", bf16, "0001*4300", "00000000", "00800000"),
        ("a100", bf16, "0080*3f00", "00000000", "00400000"),
        // An overflow on the way is none: 2^254 − 2^254 + 1.
        ("a100", bf16, "7f00*7f00 ff00*7f00", "3f800000", "00000000"),
        ("a100", bf16, "7f00*7f00", "3f800000", "7f800000"),
        // −0 is never given.
        ("h100", H100, "8000*3c00", "80000000", "00000000"),
        // Every NaN is the same.
        ("h100", H100, "7e01*3c00", "00000000", "7fffffff"),
        ("h100", H100, "7c00*0000", "00000000", "7fffffff"),
        ("h100", H100, "7c00*3c00 fc00*3c00", "00000000", "7fffffff"),
        ("h100", H100, "", "ff812345", "7fffffff"),
        ("a100", "mma.m16n8k8.f16.f16.f16.f16", "", "fc01", "7fff"),
        // tf32: 13 bits are not read, so that a NaN may be an infinity.
        ("a100", "mma.m16n8k4.f32.tf32.tf32.f32", "7f801fff*3f800000", "00000000", "7f800000"),
        ("a100", "mma.m16n8k4.f32.tf32.tf32.f32", "3f801fff*3f800000", "00000000", "3f800000"),
        // f16 results overflow at 65520.
        ("a100", "mma.m16n8k8.f16.f16.f16.f16", "4b80*3c00", "7bff", "7bff"),
        ("a100", "mma.m16n8k8.f16.f16.f16.f16", "4c00*3c00", "7bff", "7c00"),
    ]);
}

/// Inputs that need every carry bit, and what comes out with one fewer: the sum wraps.
#[test]
fn carry_bits_are_enough_and_one_fewer_would_show() {
    let full = |count| times(count, "3fff*3fff");
    for (name, operation, count, carry_bits, correct, wrapped) in [
        ("v100", V100, 4, 4, "418fe001", "c1603ffc"),
        ("a100", A100, 8, 5, "4207e001", "c1f03ffc"),
        ("h100", H100, 16, 6, "4283e001", "c2783ffc"),
    ] {
        let model = load(name).unwrap();
        assert_eq!(dot(&model, operation, &full(count), "3fffffff"), correct, "{name}");
        let with = |bits| {
            let mut model: Model = model.clone();
            for adder in &mut model.adders {
                adder.carry_bits = Some(bits);
            }
            dot(&model, operation, &full(count), "3fffffff")
        };
        assert_eq!(with(carry_bits), correct, "{name} with {carry_bits} carry bits");
        assert_eq!(with(carry_bits - 1), wrapped, "{name} with {} carry bits", carry_bits - 1);
    }
    check(&[
        (
            "a100",
            A100,
            "3f80*3c00 3f80*3c00 3f80*3c00 3f80*3c00 3f80*3c00 3f80*3c00 3f80*3c00 3f80*3c00",
            "3ff00000",
            "41870000",
        ),
        (
            "a100",
            A100,
            "3fff*3fff 3fff*3fff 3fff*3fff 3fff*3fff 3fff*3fff 3fff*3fff 3fff*3fff 3fff*3fff",
            "3d000000",
            "42000002",
        ),
        (
            "a100",
            A100,
            "13ff*6bfe 13ff*6bfe 13ff*6bfe 13ff*6bfe 13ff*6bfe 13ff*6bfe 13ff*6bfe 13ff*6bfe",
            "3ff00000",
            "42075004",
        ),
        ("v100", V100, "3f00*3c00 3f00*3c00 3f00*3c00 3f00*3c00", "3fe00000", "410c0000"),
    ]);
}

#[test]
fn fp8_is_cut_on_its_own_unit_and_rounded_where_it_is_emulated() {
    let mma = "mma.m16n8k32.f32.e4m3.e4m3.f32";
    let wgmma = "wgmma.m64n8k32.f32.e4m3.e4m3.f32";
    check(&[
        // 128 + 1.5·2^-17: FADD rounds up to 128 + 2^-16; QGMMA and QMMA keep 13 bits.
        ("h100", mma, "01*03", "43000000", "43000001"),
        ("b200", mma, "01*03", "43000000", "43000001"),
        ("h100", wgmma, "01*03", "43000000", "43000000"),
        ("l40s", mma, "01*03", "43000000", "43000000"),
        // c is cut to 13 fraction bits there, and is not where it is added outside.
        ("h100", wgmma, "", "3f8003ff", "3f800000"),
        ("h100", wgmma, "", "3f800400", "3f800400"),
        ("h100", mma, "", "3f8003ff", "3f8003ff"),
        ("l40s", mma, "", "bf8007ff", "bf800400"),
        // 256·256 − 256·256 + 2^-9: cancelled in the first of the two instructions (k mod 4 in {0, 1}), and not where
        // the pair is split between them, 2^-9·1 being below 25 bits of 2^16.
        ("h100", mma, "78*78 f8*78 01*38", "00000000", "3b000000"),
        ("h100", mma, "78*78 01*08 f8*78", "00000000", "00000000"),
        // sm_120 has the unit, with 25 bits.
        ("rtx5090", mma, "", "3f8003ff", "3f8003ff"),
        ("rtx5090", mma, "01*03", "43000000", "43000000"),
    ]);
}

#[test]
fn m8n8k4_is_a_chain_of_fmas_where_no_tensor_core_runs_it() {
    check(&[
        // ((2^-24 + 2^-24) + 1), with c last: the chain keeps both; then RNE of 1 + 2^-23.
        ("a100", V100, "0001*3c00 0001*3c00", "3f800000", "3f800001"),
        // c last: 1 + 2^-24 in the chain ties to 1, and 1 − 1 is 0; a unit that starts from c gives 2^-24.
        ("a100", V100, "3c00*3c00 0001*3c00", "bf800000", "00000000"),
        ("v100", V100, "3c00*3c00 0001*3c00", "bf800000", "00000000"),
        ("h100", V100, "3c00*3c00 0003*3c00", "bf800000", "34800000"),
        // −0·1 + +0 is +0, and so is −0 + +0.
        ("a100", V100, "8000*3c00", "80000000", "00000000"),
        // f16: (c + (p0 + p1)) + (p2 + p3) in f32.
        ("a100", "mma.m8n8k4.f16.f16.f16.f16", "3c00*3c00 3c00*3c00 3c00*3c00 3c00*3c00", "3c00", "4500"),
        ("a100", "mma.m8n8k4.f16.f16.f16.f16", "7bff*7bff k2:fbff*7bff", "3c00", "0000"),
    ]);
}

#[test]
fn block_scales_join_exponents_and_groups_keep_theirs() {
    let nvf4 = "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue4m3";
    let mxf4 = "mma.m16n8k64.f32.e2m1.e2m1.f32.block16.ue8m0";
    let mxf8 = "mma.m16n8k32.f32.e4m3.e4m3.f32.block32.ue8m0";
    for (operation, products, c, scale_a, scale_b, expected) in [
        // 1·1 with scales 2 and 4; ue4m3's sign is not read.
        (mxf8, "38*38", "00000000", "80", "81", "41000000"),
        (nvf4, "2*2", "00000000", "40 38 38 38", "c8 38 38 38", "41000000"),
        // 1.125·1 as scale, times 1.5: significands multiply.
        (nvf4, "3*2", "00000000", "39 38 38 38", "38 38 38 38", "3fd80000"),
        // A NaN scale.
        (mxf8, "38*38", "00000000", "ff", "7f", "7fffffff"),
        (nvf4, "2*2", "00000000", "38 38 38 7f", "38 38 38 38", "7fffffff"),
        (mxf4, "2*2", "00000000", "7f ff 7f 7f", "7f 7f 7f 7f", "7fffffff"),
        // A group that cancels keeps the exponent of its scales, 36 above the other group; a group of zeros does not.
        (mxf4, "2*2 a*2 k16:2*2", "00000000", "a3 7f 7f 7f", "7f 7f 7f 7f", "00000000"),
        (mxf4, "k16:2*2", "00000000", "a3 7f 7f 7f", "7f 7f 7f 7f", "3f800000"),
        (mxf4, "2*2 a*2 k16:2*2", "00000000", "a2 7f 7f 7f", "7f 7f 7f 7f", "3f800000"),
        // The exact sum of a group: 16·36 = 576 = 1.125·2^9.
        (mxf4, &times(16, "7*7"), "00000000", "7f 7f 7f 7f", "7f 7f 7f 7f", "44100000"),
    ] {
        let model = load("rtx5090").unwrap();
        let d = scaled_dot(&model, operation, products, c, scale_a, scale_b);
        assert_eq!(d, expected, "{operation} {products} + {c}, scales {scale_a} and {scale_b}");
    }
}

#[test]
fn integers_wrap_or_clamp() {
    let (s8, clamped) = ("mma.m16n8k16.s32.s8.s8.s32", "mma.m16n8k16.s32.s8.s8.s32.satfinite");
    check(&[
        ("a100", s8, "7f*7f", "7fffffff", "80003f00"),
        ("a100", clamped, "7f*7f", "7fffffff", "7fffffff"),
        ("a100", s8, "80*7f", "80000000", "7fffc080"),
        ("a100", clamped, "80*7f", "80000000", "80000000"),
        // Clamped once, at the end: what goes over on the way comes back.
        ("a100", clamped, "7f*7f 81*7f", "7fffffff", "7fffffff"),
        ("a100", "mma.m16n8k32.s32.s4.u4.s32", "8*f", "00000000", "ffffff88"),
        ("h100", "wgmma.m64n8k32.s32.u8.s8.s32", "ff*80", "00000000", "ffff8080"),
        ("avx512", "dot.m1n1k4.s32.u8.s8.s32", "ff*7f ff*7f ff*7f ff*7f", "7fffffff", "8001fa03"),
        ("avx512", "dot.m1n1k4.s32.u8.s8.s32.satfinite", "ff*7f ff*7f ff*7f ff*7f", "7fffffff", "7fffffff"),
        ("avx512", "dot.m1n1k2.s32.s16.s16.s32", "8000*8000 8000*8000", "00000000", "80000000"),
        ("avx512", "dot.m1n1k2.s32.s16.s16.s32.satfinite", "8000*8000 8000*8000", "00000000", "7fffffff"),
        ("rdna3", "wmma.m16n16k16.s32.u8.s8.s32.satfinite", "ff*80", "80000000", "80000000"),
        ("rdna4", "wmma.m16n16k16.s32.u8.s8.s32.wave32", "ff*80", "80000000", "7fff8080"),
    ]);
}

/// Measured on a Xeon: TDPBF16PS, and VDPBF16PS beside it where the two differ.
#[test]
fn amx_and_avx512_differ_where_silicon_does() {
    let amx = "amx.m16n16k32.f32.bf16.bf16.f32";
    let avx = "dot.m1n1k2.f32.bf16.bf16.f32";
    let rows: [(&str, &str, &str, Option<&str>); 36] = [
        ("3380*3f80", "3f800000", "3f800000", Some("3f800000")),
        ("3380*3f80", "3f800001", "3f800002", Some("3f800002")),
        ("3381*3f80", "3f800000", "3f800001", Some("3f800001")),
        ("3f80*3f80 k2:3380*3f80 k4:3380*3f80", "00000000", "3f800000", None),
        ("3380*3f80 3380*3f80", "3f800000", "3f800001", Some("3f800000")),
        ("3f80*3f80 3380*3f80", "33800000", "3f800000", Some("3f800001")),
        ("3f80*3f80 ce80*3f80", "4e800000", "00000000", Some("3f800000")),
        ("ce80*3f80 3f80*3f80", "4e800000", "00000000", Some("00000000")),
        ("0380*3f80 k2:1c80*1c80", "00000000", "03800008", None),
        ("1c80*1c80", "03800000", "03800000", Some("03800008")),
        ("ff00*3f80 k2:5f80*5f80", "00000000", "7f000000", None),
        ("5f80*5f80", "ff000000", "7f800000", Some("7f000000")),
        ("7f00*3f80 k2:7f00*3f80 k4:ff00*3f80", "00000000", "7f800000", None),
        ("0001*7f00", "00000000", "00000000", Some("00000000")),
        ("0001*7f80", "00000000", "ffc00000", Some("ffc00000")),
        ("", "00000001", "00000000", Some("00000000")),
        ("", "007fffff", "00000000", Some("00000000")),
        ("", "80000001", "00000000", Some("00000000")),
        ("a000*1f80", "00000000", "00000000", Some("80000000")),
        ("0080*3f80 k2:9a00*1980", "00000000", "00800000", None),
        ("0080*3f80 k2:9a00*1a00", "00000000", "00000000", None),
        ("k1:9a00*1980", "00800000", "00800000", Some("00800000")),
        ("80c0*3f80", "00800000", "80000000", Some("80000000")),
        ("", "80000000", "00000000", None),
        ("7f80*0000", "00000000", "ffc00000", Some("ffc00000")),
        ("7f80*3f80 ff80*3f80", "00000000", "ffc00000", Some("ffc00000")),
        ("7300*3f80", "7f7fffff", "7f800000", Some("7f800000")),
        ("7f81*3f80", "00000000", "7fc10000", Some("7fc10000")),
        ("ff85*3f80", "00000000", "ffc50000", Some("ffc50000")),
        ("7fc1*7fc2", "00000000", "7fc10000", Some("7fc10000")),
        ("7fc1*3f80", "7fc12345", "7fc12345", Some("7fc10000")),
        ("7fc1*3f80 k2:7fc2*3f80", "00000000", "7fc20000", None),
        ("7fc1*3f80 7fc2*3f80", "00000000", "7fc10000", Some("7fc10000")),
        ("7f80*0000 7fc2*3f80", "00000000", "ffc00000", Some("7fc20000")),
        ("7f80*0000", "7fc12345", "7fc12345", Some("7fc12345")),
        ("8000*3f80 8000*3f80", "80000000", "00000000", Some("80000000")),
    ];
    for (products, c, tdp, vdp) in rows {
        assert_eq!(dot(&load("amx").unwrap(), amx, products, c), tdp, "TDPBF16PS {products} + {c}");
        if let Some(vdp) = vdp {
            assert_eq!(dot(&load("avx512").unwrap(), avx, products, c), vdp, "VDPBF16PS {products} + {c}");
        }
    }
    check(&[
        // f16 subnormals are read as they are: 2^-24·1.
        ("amx", "amx.m16n16k32.f32.f16.f16.f32", "0001*3c00", "00000000", "33800000"),
        ("amx", "amx.m16n16k32.f32.f16.f16.f32", "7c01*3c00", "00000000", "7fc02000"),
        ("amx", "amx.m16n16k64.s32.u8.u8.s32", "ff*ff", "7fffffff", "8000fe00"),
    ]);
}

#[test]
fn arm_rounds_to_odd_unless_it_is_told_otherwise() {
    let (odd, ebf) = ("bfmmla.m2n2k4.f32.bf16.bf16.f32", "bfmmla.m2n2k4.f32.bf16.bf16.f32.ebf");
    check(&[
        ("arm", odd, "3080*3f80", "3f800000", "3f800001"),
        ("arm", odd, "4e80*3f80 3f80*3f80 ce80*3f80", "00000000", "43000000"),
        ("arm", odd, "3f80*3f80 3080*3f80", "bf800000", "34000000"),
        ("arm", odd, "2000*1f80 2000*1f80", "00000000", "00000000"),
        ("arm", odd, "5f80*5f80 ff00*3f80", "00000000", "7f800000"),
        ("arm", odd, "8000*3f80 8000*3f80 8000*3f80 8000*3f80", "80000000", "80000000"),
        ("arm", odd, "7f81*3f80", "00000000", "7fc00000"),
        ("arm", ebf, "3080*3f80", "3f800000", "3f800000"),
        ("arm", ebf, "0001*7f00", "00000000", "3c800000"),
        ("arm", ebf, "2000*1f80 2000*1f80", "00000000", "00800000"),
        ("arm", ebf, "5f80*5f80 ff00*3f80", "00000000", "7f000000"),
    ]);
}

#[test]
fn arm_flushes_subnormals_under_ebf_where_fz_is_set() {
    let (keeps, flushes) = ("dot.m1n1k2.f32.bf16.bf16.f32.ebf", "dot.m1n1k2.f32.bf16.bf16.f32.ebf.fz");
    // QEMU 10.0.13, BFDOT with FPCR = 0x2000 and 0x1002000.
    for (products, c, kept, flushed) in [
        // A subnormal of A, of B and of C.
        ("0001*7f00", "00000000", "3c800000", "00000000"),
        ("7f00*8001", "00000000", "bc800000", "00000000"),
        ("802c*d0ce 9ece*0a85", "807fffff", "110da000", "80000000"),
        ("0080*c1d9 010e*0000", "003b0f9d", "82d54f06", "82d90000"),
        // A sum of products just below 2^-126, which rounding alone would bring to it.
        ("2000*2000 9980*1980", "00000000", "00800000", "00000000"),
        // A NaN, whatever its payload, is the default NaN.
        ("7f81*3f80", "00000000", "7fc00000", "7fc00000"),
        ("3f80*3f80", "ffc12345", "7fc00000", "7fc00000"),
    ] {
        check(&[("arm", keeps, products, c, kept), ("arm", flushes, products, c, flushed)]);
    }
    let arm = load("arm").unwrap();
    for adder in arm.adders.iter().filter(|adder| adder.name.starts_with("ebf")) {
        assert_eq!(adder.provenance.of("nan").basis, mxprobe_models::Basis::Specified, "{}", adder.name);
    }
}

#[test]
fn llvmpipe_rounds_every_product_and_adds_c_last() {
    let (f16, f32) = ("coopmat.m8n8k8.f16.f16.f16.f16", "coopmat.m8n8k8.f32.f16.f16.f32");
    check(&[
        // 256·256 is an infinity in f16; 65504 + 15 is not, and 65504 + 16 is.
        ("llvmpipe", f16, "5c00*5c00", "0000", "7c00"),
        ("llvmpipe", f16, "5c00*5c00 dc00*5c00", "0000", "fe00"),
        ("llvmpipe", f16, "7bff*3c00", "4b80", "7bff"),
        ("llvmpipe", f16, "7bff*3c00", "4c00", "7c00"),
        ("llvmpipe", f16, "0001*3c00", "0000", "0001"),
        ("llvmpipe", f16, "7c01*3c00", "0000", "7e01"),
        // 2048 + 1 + 1 stays 2048 in f16, and c = −2048 leaves 0; from c it would be 2.
        ("llvmpipe", f16, "6800*3c00 3c00*3c00 3c00*3c00", "e800", "0000"),
        ("llvmpipe", f32, "", "000116c2", "00000000"),
        ("llvmpipe", f32, "7c00*0000", "00000000", "ffc00000"),
        (
            "llvmpipe",
            f32,
            "8000*3c00 8000*3c00 8000*3c00 8000*3c00 8000*3c00 8000*3c00 8000*3c00 8000*3c00",
            "80000000",
            "80000000",
        ),
        ("llvmpipe", f32, "", "80000000", "00000000"),
        ("llvmpipe", "coopmat.m8n8k8.u32.u8.u8.u32", "ff*ff", "ffffffff", "0000fe00"),
    ]);
}

#[test]
fn rdna3_adds_ones_complements_and_rdna4_floors() {
    let (f16, bf16) = ("dot.m1n1k2.f32.f16.f16.f32", "dot.m1n1k2.f32.bf16.bf16.f32");
    check(&[
        // 1 + 1 − 1: each product of the other sign than c adds one unit of 2^-24.
        ("rdna3", f16, "3c00*3c00 3c00*3c00", "bf800000", "3f800001"),
        ("rdna4", f16, "3c00*3c00 3c00*3c00", "bf800000", "3f800000"),
        // 2^254 − 2^254: one unit of it is left, of the sign that c has not.
        ("rdna3", bf16, "7f00*7f00 ff00*7f00", "00000000", "ff800000"),
        ("rdna3", bf16, "7f00*7f00 ff00*7f00", "80000000", "7f800000"),
        ("rdna4", bf16, "7f00*7f00 ff00*7f00", "3f800000", "00000000"),
        // Zeros alone are +0.
        ("rdna3", f16, "8000*3c00", "80000000", "00000000"),
        ("rdna3", "dot.m1n1k2.f16.f16.f16.f16", "8000*3c00", "0000", "0000"),
        // bf16 subnormals: flushed, and kept.
        ("rdna3", bf16, "0001*7f00", "00000000", "00000000"),
        ("rdna4", bf16, "0001*7f00", "00000000", "3c800000"),
        ("rdna3", bf16, "0001*7f80", "00000000", "ffc00000"),
        ("rdna3", f16, "", "00000001", "00000000"),
        ("rdna4", f16, "", "00000001", "00000001"),
        // A floor below 1: 1 − 2^-30 is 1 − 2^-24 as a product, 1 as a c whose bits are all lost.
        ("rdna4", f16, "3c00*3c00 8400*0001", "00000000", "3f7fffff"),
        ("rdna4", f16, "3c00*3c00", "b0800000", "3f800000"),
        // NaN: an operand, then an invalid product, then c.
        ("rdna4", f16, "7c01*3c00", "7f812345", "ffc00a3d"),
        ("rdna4", f16, "7c00*0000", "7f812345", "ffc00000"),
        ("rdna4", f16, "", "7f812345", "7fc12345"),
        ("rdna4", f16, "7c00*0000 7c01*3c00", "00000000", "ffc00a3d"),
        // Across the pairs of a block: the operand of the second pair goes before the invalid product of the first.
        ("rdna4", "wmma.m16n16k16.f32.f16.f16.f32.wave64", "7c00*0000 k2:7c01*3c00", "00000000", "ffc00a3d"),
        ("rdna4", "wmma.m16n16k16.f32.f16.f16.f32.wave64", "7c00*3c00 k2:fc00*3c00", "7f812345", "ffc00000"),
        ("rdna3", "wmma.m16n16k16.f16.f16.f16.f16", "7c01*3c00", "0000", "fe3d"),
        ("rdna4", "dot.m1n1k2.bf16.bf16.bf16.bf16", "7fc1*3f80", "0000", "fffd"),
        ("rdna4", "dot.m1n1k4.f32.e5m2.e4m3.f32", "7c*00", "00000000", "ffc00a3d"),
        // Packed bf16 is cut after every step: 1 + 2^-8 + 2^-8 with the two in different steps, and in one.
        ("rdna3", "wmma.m16n16k16.bf16.bf16.bf16.bf16", "3b80*3f80 k2:3b80*3f80", "3f80", "3f80"),
        ("rdna3", "wmma.m16n16k16.bf16.bf16.bf16.bf16", "3b80*3f80 3b80*3f80", "3f80", "3f81"),
        // k = 0 to 3 and 8 to 11 come before 4 to 7 in wave32: 1 is lost beside 2^30 unless that is gone.
        (
            "rdna4",
            "wmma.m16n16k16.f32.bf16.bf16.f32.wave32",
            "4e80*3f80 k4:3f80*3f80 k8:ce80*3f80",
            "00000000",
            "3f800000",
        ),
        (
            "rdna4",
            "wmma.m16n16k16.f32.bf16.bf16.f32.wave64",
            "4e80*3f80 k4:3f80*3f80 k8:ce80*3f80",
            "00000000",
            "00000000",
        ),
    ]);
}

#[test]
fn cdna_generations_are_exact_flushed_and_floored() {
    let f16 = "mfma.m16n16k16.f32.f16.f16.f32";
    let fp8 = "mfma.m16n16k32.f32.e4m3fnuz.e4m3fnuz.f32";
    check(&[
        // 1 + 2^-24 + 2^-48: above the tie, if the sum of a block is exact.
        ("mi100", f16, "3c00*3c00 0001*3c00 0001*0001", "00000000", "3f800001"),
        ("mi210", f16, "3c00*3c00 0001*3c00 0001*0001", "00000000", "3f800000"),
        ("mi100", f16, "", "00000001", "00000001"),
        // f16 subnormals and f32 ones are +0 on CDNA2.
        ("mi210", f16, "0001*3c00", "80000001", "00000000"),
        ("mi210", f16, "0400*0400", "80000001", "31800000"),
        ("mi210", "mfma.m16n16k16.f32.bf16.bf16.f32.1k", "8080*3f00", "80000000", "00000000"),
        // (p0 + p1) + (p2 + p3), then c: 1 + 2^-24 ties to 1, twice.
        ("mi210", f16, "3c00*3c00 0400*1400 3c00*3c00 0400*1400", "00000000", "40000000"),
        // CDNA3: c = −2^-30 beside 1 is floored to −2^-24; so is a dot beside a c, at 2^-32.
        ("mi300x", f16, "3c00*3c00", "b0800000", "3f7fffff"),
        ("mi300x", f16, "bc00*3c00", "30800000", "bf800000"),
        // fp8: a c 2^-26 beside 1 counts as nothing, at 2^-25 it is floored.
        ("mi300x", fp8, "40*40", "b2800000", "3f800000"),
        ("mi300x", fp8, "40*40", "b3000000", "3f7fffff"),
        // A product of 2^128 is an infinity even if the next would take it back.
        ("mi300x", "mfma.m16n16k16.f32.bf16.bf16.f32", "5f80*5f80 df00*5f80", "00000000", "7f800000"),
        ("mi300x", "mfma.m16n16k16.f32.bf16.bf16.f32", "df80*5f80", "00000000", "ff800000"),
        ("mi100", "mfma.m16n16k8.f32.bf16.bf16.f32", "5f80*5f80 df00*5f80", "00000000", "7f000000"),
    ]);
}

#[test]
fn the_three_plain_loops_differ() {
    let operation = "dot.m1n1k4.f32.f32.f32.f32";
    check(&[
        // (1 + 2^-12)² − 1 − 2^-11 = 2^-24, lost if the product is rounded.
        ("fma-chain", operation, "3f800800*3f800800", "bf801000", "33800000"),
        ("serial", operation, "3f800800*3f800800", "bf801000", "00000000"),
        // 1 + 2^-24 + 2^-24: c first, or the small ones first.
        ("serial", operation, "33800000*3f800000 33800000*3f800000", "3f800000", "3f800000"),
        ("pairwise", operation, "33800000*3f800000 33800000*3f800000", "3f800000", "3f800001"),
        ("pairwise", operation, "3f800000*3f800000 33800000*3f800000 33800000*3f800000", "00000000", "3f800000"),
        ("pairwise", operation, "3f800000*3f800000 k2:33800000*3f800000 k3:33800000*3f800000", "00000000", "3f800001"),
    ]);
}
