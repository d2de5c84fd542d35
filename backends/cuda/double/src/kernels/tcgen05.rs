//! `tcgen05.mma`: operands through descriptors, sums in tensor memory, and the rules that hardware does not enforce.

use mxprobe_api::Format;

use super::{download, driver, encode, faulty, function, random, upload, value};
use crate::{driver::Driver, settings::Fault, status::Status};

const N: u32 = 16;

/// Formats of D, A and B, the kind, and the fields of the instruction descriptor that say them.
struct Form {
    formats: [&'static str; 3],
    kind: &'static str,
    fields: u32,
}

const FORMS: [Form; 6] = [
    Form { formats: ["f32", "f16", "f16"], kind: "f16", fields: 1 << 4 },
    Form { formats: ["f32", "bf16", "bf16"], kind: "f16", fields: 1 << 4 | 1 << 7 | 1 << 10 },
    Form { formats: ["f16", "f16", "f16"], kind: "f16", fields: 0 },
    Form { formats: ["f32", "tf32", "tf32"], kind: "tf32", fields: 1 << 4 | 2 << 7 | 2 << 10 },
    Form { formats: ["f32", "e4m3", "e5m2"], kind: "f8f6f4", fields: 1 << 4 | 1 << 10 },
    Form { formats: ["s32", "s8", "u8"], kind: "i8", fields: 2 << 4 | 1 << 7 },
];

impl Form {
    fn format(&self, index: usize) -> Format {
        Format::named(self.formats[index]).unwrap()
    }

    fn k(&self) -> u32 {
        256 / self.format(1).bits()
    }

    fn kernel(&self) -> String {
        // 32 bytes of k a row, in core matrices of 8 rows by 16 bytes.
        let (a_bytes, b_bytes) = (128 * 32, N * 32);
        let constant = |rows: u64| 1 << 46 | rows << 16 | 128 >> 4 << 32;
        let descriptor = self.fields | (N / 8) << 17 | 8 << 24;
        let list = (0..N).map(|at| format!("%x{at}")).collect::<Vec<_>>().join(",");
        let each = |text: &str| {
            (0..N)
                .map(|at| text.replace('#', &at.to_string()).replace('@', &(at * 512).to_string()))
                .collect::<String>()
        };
        let copy = |room: &str, pointer: &str, bytes: u32| {
            let copies = (0..bytes)
                .step_by(512)
                .map(|at| format!("ld.global.b32 %w, [{pointer}+{at}]; st.shared.b32 [%own+{at}], %w;\n"));
            format!("mov.u32 %own, {room}; mad.lo.u32 %own, %t, 4, %own;\n{}", copies.collect::<String>())
        };
        let address = |room: &str, name: &str, rows: u64| {
            format!(
                "mov.u32 %w, {room}; shr.u32 %w, %w, 4; cvt.u64.u32 {name}, %w; or.b64 {name}, {name}, {:#x};\n",
                constant(rows)
            )
        };
        format!(
            ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)\n{{\n\
             .shared .align 128 .b8 rooma[{a_bytes}]; .shared .align 128 .b8 roomb[{b_bytes}];\n\
             .shared .align 8 .b64 bar; .shared .align 4 .b32 slot;\n\
             .reg .b32 %t, %w, %own, %bar, %mem, %rows, %x<{N}>; .reg .b64 %pa, %pb, %pd, %da, %db; .reg .pred %yes, %first, %warp0, %done;\n\
             mov.u32 %t, %tid.x; ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pd, [d];\n\
             mad.wide.u32 %pa, %t, 4, %pa; mad.wide.u32 %pb, %t, 4, %pb; mad.wide.u32 %pd, %t, 4, %pd; mov.u32 %bar, bar;\n\
             setp.eq.u32 %yes, %t, %t; setp.eq.u32 %first, %t, 0; setp.lt.u32 %warp0, %t, 32;\n\
             @%first mbarrier.init.shared::cta.b64 [%bar], 1;\n\
             mov.u32 %w, slot; @%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%w], 32; bar.sync 0;\n\
             ld.shared.b32 %mem, [slot]; and.b32 %rows, %t, 0x60; shl.b32 %rows, %rows, 16; add.u32 %rows, %rows, %mem;\n\
             {}{}{}{}{}\
             tcgen05.st.sync.aligned.32x32b.x{N}.b32 [%rows], {{{list}}};\n\
             tcgen05.wait::st.sync.aligned;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nmov.u32 %w, {descriptor:#x};\n\
             @%first tcgen05.mma.cta_group::1.kind::{} [%mem], %da, %db, %w, %yes;\n\
             @%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar];\n\
             wait: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;\n\
             tcgen05.ld.sync.aligned.32x32b.x{N}.b32 {{{list}}}, [%rows];\ntcgen05.wait::ld.sync.aligned;\n{}bar.sync 0;\n\
             @%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %mem, 32;\nret;\n}}\n",
            copy("rooma", "%pa", a_bytes),
            copy("roomb", "%pb", b_bytes),
            address("rooma", "%da", 128),
            address("roomb", "%db", u64::from(N)),
            each("ld.global.b32 %x#, [%pd+@];\n"),
            self.kind,
            each("st.global.b32 [%pd+@], %x#;\n"),
        )
    }

    fn image(&self, format: Format, rows: u32, elements: &[i64]) -> Vec<u32> {
        let (k, size) = (self.k(), format.bits() / 8);
        let mut bytes = vec![0u8; (rows * 32) as usize];
        for (row, column) in (0..rows).flat_map(|row| (0..k).map(move |column| (row, column))) {
            let byte = column * size;
            let start = (byte / 16 * rows * 16 + row / 8 * 128 + row % 8 * 16 + byte % 16) as usize;
            let bits = encode(format, elements[(row * k + column) as usize]).to_le_bytes();
            bytes[start..start + size as usize].copy_from_slice(&bits[..size as usize]);
        }
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Runs `kernel` on small integers: D as it was found, C, and D as it should be.
    fn run(&self, driver: &mut Driver, kernel: &str) -> Result<[Vec<f64>; 3], Status> {
        let k = self.k();
        let mut state = 5;
        let mut draw =
            |count: u32, low: i64| -> Vec<i64> { (0..count).map(|_| random(&mut state) % 4 + low).collect() };
        let (a, b, c) = (draw(128 * k, -2), draw(N * k, 0), draw(128 * N, -2));
        let d_format = self.format(0);
        let cells = || (0..N).flat_map(|column| (0..128).map(move |row| (row * N + column) as usize));
        let words: Vec<u32> = cells().map(|cell| encode(d_format, c[cell]) as u32).collect();
        let function = function(driver, kernel, "k");
        let images = [self.image(self.format(1), 128, &a), self.image(self.format(2), N, &b), words];
        let addresses = images.map(|words| upload(driver, &words));
        let parameters = addresses.into_iter().flat_map(u64::to_le_bytes).collect();
        driver.launch(function, [1, 1, 1], [128, 1, 1], 0, parameters)?;
        driver.healthy()?;
        let words = download(driver, addresses[2], (128 * N) as usize);
        let mut found = vec![f64::NAN; c.len()];
        for (cell, word) in cells().zip(words) {
            found[cell] = value(d_format, u64::from(word) & d_format.mask());
        }
        let (n, k) = (N as usize, k as usize);
        let wanted = (0..128 * n).map(|cell| {
            let (row, column) = (cell / n, cell % n);
            (0..k).map(|at| a[row * k + at] * b[column * k + at]).sum::<i64>() + c[cell]
        });
        let wanted = wanted.map(|value| value as f64).collect();
        Ok([found, c.iter().map(|value| *value as f64).collect(), wanted])
    }
}

#[test]
fn every_kind_of_small_integers_is_the_naive_product() {
    for form in &FORMS {
        let [found, _, wanted] = form.run(&mut driver("b200"), &form.kernel()).unwrap();
        assert!(found == wanted, "{:?}", form.formats);
        let [found, _, wanted] = form.run(&mut faulty("b200", Fault::Layout), &form.kernel()).unwrap();
        assert!(found != wanted, "{:?} with a wrong layout", form.formats);
    }
}

#[test]
fn sums_are_not_there_before_they_were_waited_for() {
    let form = &FORMS[0];
    let kernel = form.kernel();
    // One question is not enough, and none is not either.
    for missing in ["@!%done bra wait;", "mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;"]
    {
        assert!(kernel.contains(missing));
        let [found, c, _] = form.run(&mut driver("b200"), &kernel.replace(missing, "")).unwrap();
        assert!(found == c, "{missing}");
    }
    let [found, c, _] = form.run(&mut driver("b200"), &kernel.replace("tcgen05.wait::ld.sync.aligned;", "")).unwrap();
    assert!(found == c, "loads that nobody waited for left the registers as they were");
}

#[test]
fn a_kernel_that_breaks_a_rule_is_stopped() {
    let form = &FORMS[0];
    for (right, wrong) in [
        ("tcgen05.wait::st.sync.aligned;", ""),
        ("fence.proxy.async.shared::cta;", ""),
        ("fence.proxy.async.shared::cta;\nbar.sync 0;", "fence.proxy.async.shared::cta;"),
        ("@%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %mem, 32;", ""),
        ("shl.b32 %rows, %rows, 16;", "shl.b32 %rows, %rows, 15;"),
        ("add.u32 %rows, %rows, %mem;", ""),
        ("shr.u32 %w, %w, 4;", ""),
        ("@%warp0 tcgen05.alloc", "tcgen05.alloc"),
    ] {
        let kernel = form.kernel();
        assert!(kernel.contains(right), "{right}");
        let found = form.run(&mut driver("b200"), &kernel.replace(right, wrong));
        assert_eq!(found.err(), Some(Status::LAUNCH_FAILED), "{right}");
    }
}
