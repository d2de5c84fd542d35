//! Whole kernels through the driver: known answers for each instruction, and matrix products against naive sums.

mod copy;
mod mma;
mod tcgen05;
mod volta;
mod wgmma;
mod wmma;

use mxprobe_api::{Decoded, Format};

use crate::{
    driver::Driver,
    settings::{Fault, Settings},
    status::Status,
};

pub(crate) fn driver(model: &str) -> Driver {
    Driver::new(Settings::of_model(model).unwrap()).unwrap()
}

fn faulty(model: &str, fault: Fault) -> Driver {
    Driver::new(Settings { fault: Some(fault), ..Settings::of_model(model).unwrap() }).unwrap()
}

fn function(driver: &mut Driver, source: &str, name: &str) -> u64 {
    let cubin = driver.link(source, None).unwrap_or_else(|refusal| panic!("{}\n{source}", refusal.log));
    let module = driver.load(&cubin).unwrap();
    driver.function(module, name).unwrap()
}

fn upload(driver: &mut Driver, words: &[u32]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let address = driver.allocate(bytes.len()).unwrap();
    driver.memory.span(address, bytes.len()).unwrap().copy_from_slice(&bytes);
    address
}

fn download(driver: &mut Driver, address: u64, words: usize) -> Vec<u32> {
    let bytes = driver.memory.span(address, words * 4).unwrap();
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Runs `body`, which finds its thread's number in `%thread` and its output's address in `%out`, and stores one or more
/// words there; returns the words of every thread.
fn run(body: &str, threads: u32, words: usize) -> Result<Vec<u32>, Status> {
    let source = format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .b16 %h<8>; .reg .b32 %r<16>; \
         .reg .f32 %f<8>; .reg .f64 %d<8>; .reg .b64 %x<8>, %out; .reg .pred %p<4>; .reg .b32 %thread;\n.shared .align 16 .b8 room[1024];\n\
         mov.u32 %thread, %tid.x; ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;\nmad.wide.u32 %out, %thread, {}, %out;\n{body}\n}}\n",
        words * 4
    );
    let mut driver = driver("a100");
    let kernel = function(&mut driver, &source, "k");
    let count = threads as usize * words;
    let out = upload(&mut driver, &vec![0xdead_beef; count]);
    driver.launch(kernel, [1, 1, 1], [threads, 1, 1], 0, out.to_le_bytes().to_vec())?;
    driver.wait()?;
    Ok(download(&mut driver, out, count))
}

#[test]
fn a_loop_ends_for_each_thread_on_its_own() {
    let body = "mov.u32 %r0, 0; mov.u32 %r1, 0;
        again: setp.ge.u32 %p0, %r0, %thread; @%p0 bra done;
        add.u32 %r1, %r1, %r0; add.u32 %r0, %r0, 1; bra.uni again;
        done: st.global.u32 [%out], %r1; ret;";
    let sums = run(body, 40, 1).unwrap();
    assert!((0u32..).zip(&sums).all(|(n, sum)| *sum == (0..n).sum::<u32>()), "{sums:?}");
}

#[test]
fn a_guard_leaves_the_other_lanes_as_they_were() {
    let body = "mov.u32 %r1, 7; and.b32 %r0, %thread, 1; setp.eq.u32 %p0, %r0, 1;
        @!%p0 mov.u32 %r1, 9; @%p0 st.global.u32 [%out], %r1;";
    let words = run(body, 4, 1).unwrap();
    assert_eq!(words, [0xdead_beef, 7, 0xdead_beef, 7]);
}

#[test]
fn words_go_through_shared_memory_and_a_barrier() {
    let body = "mov.u32 %r0, room; mad.lo.u32 %r1, %thread, 4, %r0; st.shared.u32 [%r1], %thread; bar.sync 0;
        sub.u32 %r2, 63, %thread; mad.lo.u32 %r2, %r2, 4, %r0; ld.shared.u32 %r3, [%r2]; st.global.u32 [%out], %r3; exit;";
    assert_eq!(run(body, 64, 1).unwrap(), (0..64).rev().collect::<Vec<u32>>());
}

#[test]
fn registers_are_packed_and_taken_apart() {
    let body = "mov.b16 %h0, 0x1234; mov.b16 %h1, 0xabcd; mov.b32 %r0, {%h0, %h1};
        mov.b64 %x0, {%r0, %thread}; mov.b64 {%r1, %r2}, %x0; mov.b32 {%h2, %h3}, %r1; cvt.s32.s16 %r3, %h3;
        st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3};";
    assert_eq!(run(body, 2, 4).unwrap()[4..], [0xabcd_1234, 0xabcd_1234, 1, 0xffff_abcd]);
}

#[test]
fn floats_are_rounded_as_asked() {
    let body = "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f0DA24260;
        add.rp.f32 %f2, %f0, %f1; fma.rz.f32 %f3, %f0, %f0, %f1; mov.f64 %d0, 1.0; cvt.f64.f32 %d1, %f1;
        sub.rm.f64 %d2, %d0, %d1; cvt.rn.f32.f64 %f4, %d2; cvt.rn.f16.f32 %h0, %f2; cvt.u32.u16 %r0, %h0;
        st.global.v4.b32 [%out], {%f2, %f3, %f4, %r0};";
    assert_eq!(run(body, 1, 4).unwrap(), [0x3f80_0001, 0x3f80_0000, 0x3f80_0000, 0x3c00]);
}

#[test]
fn narrow_loads_are_extended_and_parameters_have_their_place() {
    let body = "mov.u32 %r0, 0x80ff; st.global.b16 [%out], %r0; ld.global.s8 %r1, [%out+1]; ld.global.u8 %r2, [%out];
        st.global.v2.u32 [%out], {%r1, %r2};";
    assert_eq!(run(body, 1, 2).unwrap(), [0xffff_ff80, 0xff]);
}

#[test]
fn a_bad_access_is_told_at_the_next_call() {
    for (body, status) in [
        ("st.global.u32 [%out+64], %thread;", Status::ILLEGAL_ADDRESS),
        ("st.global.u32 [%out+-4], %thread;", Status::ILLEGAL_ADDRESS),
        ("ld.global.u32 %r0, [%out+2];", Status::MISALIGNED_ADDRESS),
        ("mov.u32 %r0, 0; st.shared.u32 [%r0], %r0;", Status::ILLEGAL_ADDRESS),
        ("mov.u64 %x0, 0; ld.global.u32 %r0, [%x0];", Status::ILLEGAL_ADDRESS),
        (
            "setp.eq.u32 %p0, %thread, 0; @%p0 ret; setp.eq.u32 %p1, %thread, 1; @%p1 bra there; bar.sync 0; there: ret;",
            Status(0),
        ),
    ] {
        let found = run(body, 4, 1).err().unwrap_or(Status(0));
        assert_eq!(found, status, "{body}");
    }
}

#[test]
fn a_warp_that_has_parted_cannot_multiply() {
    let body = "setp.lt.u32 %p0, %thread, 16; @%p0 mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
        {%r0,%r1,%r2,%r3},{%r4,%r5},{%r6},{%r0,%r1,%r2,%r3};";
    assert_eq!(run(body, 32, 1), Err(Status::LAUNCH_FAILED));
    assert_eq!(run(&body.replace("%thread, 16", "%thread, 99"), 32, 1).map(|words| words[0]), Ok(0xdead_beef));
    assert_eq!(run(&body.replace("%thread, 16", "%thread, 99"), 48, 1), Err(Status::LAUNCH_FAILED));
}

#[test]
fn what_the_compiler_would_refuse_is_refused_with_its_line() {
    let driver = driver("a100");
    let head = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<8>; .reg .b64 %x; .reg .pred %p;\n";
    for statement in [
        "frobnicate.u32 %r0, %r1;",
        "add.u32 %r0, %r1;",
        "add.u32 %r0, %r1, %nothing;",
        "add.u32 %x, %r1, %r2;",
        "add.b32 %r0, %r1, %r2;",
        "bra nowhere;",
        "@%r0 ret;",
        "mul.u32 %r0, %r1, %r2;",
        "ld.global.u32 %r0, [%r1];",
        "fma.f32 %r0, %r1, %r2, %r3;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3},{%r0,%r1,%r2},{%r0,%r1},{%r0,%r1,%r2,%r3};",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r0,%r1,%r2,%r3},{%r0,%r1,%r2,%r3},{%r0,%r1},{%r0,%r1,%r2,%r3};",
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%r0,%r1,%r2,%r3},{%r0,%r1,%r2,%r3},{%r0,%r1},{%r0,%r1,%r2,%r3};",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32 {%r0,%r1},{%r0,%r1,%r2,%r3},{%r0,%r1},{%r0,%r1,%r2,%r3};",
        "wgmma.fence.sync.aligned;",
        ".reg .b64 %clock;",
        ".reg .b32 %laneid;",
    ] {
        let refusal = driver.link(&format!("{head}{statement}\n}}\n"), None).unwrap_err();
        assert_eq!(refusal.status, Status::INVALID_PTX, "{statement}");
        assert!(refusal.log.contains("line 7; error"), "{statement}: {}", refusal.log);
    }
}

#[test]
fn versions_and_targets_are_checked_against_the_device() {
    let mut driver = driver("h100");
    let link = |driver: &Driver, version: &str, target: &str| {
        let source =
            format!(".version {version}\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\nret;\n}}\n");
        driver.link(&source, None).err().map(|refusal| refusal.status)
    };
    assert_eq!(link(&driver, "9.0", "sm_90"), None);
    assert_eq!(link(&driver, "9.1", "sm_90"), Some(Status::UNSUPPORTED_PTX_VERSION));
    assert_eq!(link(&driver, "8.0", "sm_90a"), None);
    assert_eq!(link(&driver, "8.6", "sm_100a"), Some(Status::NO_BINARY_FOR_GPU));
    assert_eq!(driver.load(b"\x7fELF no"), Err(Status::INVALID_IMAGE));
}

pub(crate) fn random(state: &mut u64) -> i64 {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    i64::try_from(*state >> 40).unwrap()
}

/// A random small integer that every format can represent.
pub(crate) fn small(state: &mut u64, format: Format) -> u64 {
    let signed = Format::named(format.name()).is_ok() && !["u8", "u4"].contains(&format.name());
    let value = random(state) % if signed { 7 } else { 4 } - if signed { 3 } else { 0 };
    encode(format, value)
}

pub(crate) fn encode(format: Format, value: i64) -> u64 {
    if format.is_integer() { value.cast_unsigned() & format.mask() } else { format.from_f64(value as f64) }
}

pub(crate) fn value(format: Format, bits: u64) -> f64 {
    if let Decoded::Zero { .. } = format.decode(bits) { 0.0 } else { format.to_f64(bits) }
}

#[test]
fn a_product_and_a_sum_without_a_direction_are_contracted() {
    // (1 + 2^-23)² - (1 + 2^-22) is 2^-46 with one rounding, 0 with two (NVIDIA, Precision & Performance, figure 1).
    let start = "mov.f32 %f0, 0f3F800001; mov.f32 %f1, 0fBF800002;";
    let end = "st.global.f32 [%out], %f3;";
    for (body, expected) in [
        ("mul.f32 %f2, %f0, %f0; add.f32 %f3, %f2, %f1;", 0x2880_0000),
        ("mul.f32 %f2, %f0, %f0; add.f32 %f3, %f1, %f2;", 0x2880_0000),
        ("mul.rn.f32 %f2, %f0, %f0; add.f32 %f3, %f2, %f1;", 0),
        ("mul.f32 %f2, %f0, %f0; add.rn.f32 %f3, %f2, %f1;", 0),
        ("mul.f32 %f2, %f0, %f0; add.f32 %f3, %f2, %f1; add.rn.f32 %f4, %f2, %f2;", 0),
    ] {
        assert_eq!(run(&format!("{start} {body} {end}"), 1, 1).unwrap(), [expected], "{body}");
    }
}

#[test]
fn quotients_and_roots_are_rounded_as_asked() {
    let body = "mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40400000; div.rn.f32 %f2, %f0, %f1; div.rz.f32 %f3, %f0, %f1;
        sqrt.rp.f32 %f4, %f1; div.full.f32 %f5, %f1, %f1; mov.f64 %d0, 2.0; sqrt.rn.f64 %d1, %d0; mov.b64 {%r0, %r1}, %d1;
        mov.f32 %f6, 0f40800000; sqrt.approx.ftz.f32 %f6, %f6;
        st.global.v4.b32 [%out], {%f2, %f3, %f4, %f5}; st.global.v4.b32 [%out+16], {%r0, %r1, %f6, %f6};";
    let words = run(body, 1, 8).unwrap();
    assert_eq!(words[..3], [0x3eaa_aaab, 0x3eaa_aaaa, 0x3fdd_b3d8]);
    assert!(words[3].abs_diff(0x3f80_0000) <= 2, "{:x}", words[3]);
    assert_eq!(words[4..6], [0x667f_3bcd, 0x3ff6_a09e]);
    assert!(words[6].abs_diff(0x4000_0000) <= 2, "{:x}", words[6]);
}

#[test]
fn approximations_are_within_an_ulp_and_signs_change_nothing_else() {
    let body =
        "mov.f32 %f0, 0f40800000; rcp.approx.f32 %f1, %f0; rsqrt.approx.ftz.f32 %f2, %f0; ex2.approx.f32 %f3, %f0;
        lg2.approx.f32 %f4, %f0; mov.f32 %f5, 0f00000001; abs.ftz.f32 %f5, %f5; neg.f32 %f6, %f0; rcp.rn.f32 %f7, %f0;
        st.global.v4.b32 [%out], {%f1, %f2, %f3, %f4}; st.global.v4.b32 [%out+16], {%f5, %f6, %f7, %f7};";
    let words = run(body, 1, 8).unwrap();
    assert_eq!(words[..7], [0x3e80_0000, 0x3f00_0000, 0x4180_0000, 0x4000_0000, 0, 0xc080_0000, 0x3e80_0000]);
    let body = "mov.f32 %f0, 0f3F800000; sin.approx.f32 %f1, %f0; cos.approx.f32 %f2, %f0; tanh.approx.f32 %f3, %f0;
        st.global.v4.b32 [%out], {%f1, %f2, %f3, %f3};";
    let words = run(body, 1, 4).unwrap();
    for (word, exact) in words.iter().zip([0x3f57_6aa4_u32, 0x3f0a_5140, 0x3f42_f7d6]) {
        assert!(word.abs_diff(exact) <= 1, "{word:x} {exact:x}");
    }
}
