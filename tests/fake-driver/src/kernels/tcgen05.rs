//! `tcgen05.mma`: operands through descriptors, sums in tensor memory, and the rules that hardware does not enforce.

use mxprobe_api::Format;

use super::{download, driver, encode, faulty, function, random, upload, value};
use crate::{driver::Driver, settings::Fault, status::Status};

const N: u32 = 16;

/// The formats of D, A and B, the kind, and their fields in the instruction descriptor.
struct Form {
    formats: [&'static str; 3],
    kind: &'static str,
    fields: u32,
    scales: Option<Scales>,
}

/// The number of scales of a row or column, their format, and the first byte of a word that is used of A's and of B's.
#[derive(Clone, Copy)]
struct Scales {
    count: usize,
    format: Format,
    bytes: (usize, usize),
}

const fn plain(formats: [&'static str; 3], kind: &'static str, fields: u32) -> Form {
    Form { formats, kind, fields, scales: None }
}

const fn scaled(
    a: &'static str,
    b: &'static str,
    kind: &'static str,
    fields: u32,
    (count, format, bytes): (usize, Format, (usize, usize)),
) -> Form {
    Form { formats: ["f32", a, b], kind, fields, scales: Some(Scales { count, format, bytes }) }
}

/// Bit 23 of the instruction descriptor: scales are ue8m0.
const UE8M0: u32 = 1 << 23;

const FORMS: [Form; 15] = [
    plain(["f32", "f16", "f16"], "f16", 1 << 4),
    plain(["f32", "bf16", "bf16"], "f16", 1 << 4 | 1 << 7 | 1 << 10),
    plain(["f16", "f16", "f16"], "f16", 0),
    plain(["f32", "tf32", "tf32"], "tf32", 1 << 4 | 2 << 7 | 2 << 10),
    plain(["f32", "e4m3", "e5m2"], "f8f6f4", 1 << 4 | 1 << 10),
    plain(["s32", "s8", "u8"], "i8", 2 << 4 | 1 << 7),
    plain(["f32", "e2m3", "e3m2"], "f8f6f4", 1 << 4 | 3 << 7 | 4 << 10),
    plain(["f16", "e2m1", "e4m3"], "f8f6f4", 5 << 7),
    plain(["f32", "e5m2", "e2m1"], "f8f6f4", 1 << 4 | 1 << 7 | 5 << 10),
    scaled("e4m3", "e2m1", "mxf8f6f4.block_scale.scale_vec::1X", UE8M0 | 5 << 10, (1, Format::UE8M0, (2, 1))),
    scaled("e3m2", "e5m2", "mxf8f6f4.block_scale", UE8M0 | 4 << 7 | 1 << 10, (1, Format::UE8M0, (0, 3))),
    scaled("e2m1", "e2m1", "mxf4.block_scale.scale_vec::2X", UE8M0 | 1 << 7 | 1 << 10, (2, Format::UE8M0, (0, 2))),
    scaled("e2m1", "e2m1", "mxf4nvf4.block_scale.scale_vec::2X", UE8M0 | 1 << 7 | 1 << 10, (2, Format::UE8M0, (2, 0))),
    scaled("e2m1", "e2m1", "mxf4nvf4.block_scale.scale_vec::4X", UE8M0 | 1 << 7 | 1 << 10, (4, Format::UE8M0, (0, 0))),
    scaled("e2m1", "e2m1", "mxf4nvf4.block_scale.scale_vec::4X", 1 << 7 | 1 << 10, (4, Format::UE4M3, (0, 0))),
];

/// The scale of a block of a row or column: a small power of two.
fn scale(line: usize, block: usize) -> f64 {
    [0.5, 1.0, 2.0, 4.0][(line * 3 + line / 32 + block) % 4]
}

impl Form {
    fn format(&self, index: usize) -> Format {
        Format::named(self.formats[index]).unwrap()
    }

    /// Whether each 16 bytes hold 16 elements, whatever their width.
    fn mixes_widths(&self) -> bool {
        self.kind.contains("f8f6f4")
    }

    fn k(&self) -> u32 {
        if self.mixes_widths() { 32 } else { 256 / self.format(1).bits() }
    }

    /// The words of scales by column and thread: four columns of A's, then one of B's. Bytes that are not selected hold
    /// 0x55.
    fn scale_words(&self) -> Vec<u32> {
        let Some(Scales { count, format, bytes }) = self.scales else { return Vec::new() };
        let word = |line: usize, first: usize| {
            let byte = |at: usize| match at.checked_sub(first).filter(|block| *block < count) {
                Some(block) => format.from_f64(scale(line, block)) as u32,
                None => 0x55,
            };
            (0..4).map(|at| byte(at) << (8 * at)).sum()
        };
        let of_a = (0..4).flat_map(|column| (0..128).map(move |thread| column * 32 + thread % 32));
        let of_b = (0..128).map(|thread| thread % 32 + 5);
        of_a.map(|line| word(line, bytes.0)).chain(of_b.map(|line| word(line, bytes.1))).collect()
    }

    fn kernel(&self) -> String {
        // A row has 32 bytes, in core matrices of 8 rows by 16 bytes.
        let (a_bytes, b_bytes) = (128 * 32, N * 32);
        let constant = |rows: u64| 1 << 46 | rows << 16 | 128 >> 4 << 32;
        let mut descriptor = self.fields | (N / 8) << 17;
        let (mut stores, mut operands) = (String::new(), "");
        if let Some(Scales { bytes, .. }) = self.scales {
            descriptor |= 1 << 27 | (bytes.0 as u32) << 29 | (bytes.1 as u32) << 4;
            for column in 0..5 {
                stores += &format!(
                    "ld.global.b32 %w, [%ps+{}]; add.u32 %own, %rows, {};\n\
                     tcgen05.st.sync.aligned.32x32b.x1.b32 [%own], {{%w}};\n",
                    column * 512,
                    N + column
                );
            }
            stores += &format!("add.u32 %sa, %mem, {N}; add.u32 %sb, %mem, {};\n", N + 4);
            operands = " [%sa], [%sb],";
        } else {
            descriptor |= 8 << 24;
        }
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
            ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d, .param .u64 s)\n{{\n\
             .shared .align 128 .b8 rooma[{a_bytes}]; .shared .align 128 .b8 roomb[{b_bytes}];\n\
             .shared .align 8 .b64 bar; .shared .align 4 .b32 slot;\n\
             .reg .b32 %t, %w, %own, %bar, %mem, %rows, %sa, %sb, %x<{N}>; .reg .b64 %pa, %pb, %pd, %ps, %da, %db; .reg .pred %yes, %first, %warp0, %done;\n\
             mov.u32 %t, %tid.x; ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pd, [d]; ld.param.u64 %ps, [s];\n\
             mad.wide.u32 %pa, %t, 4, %pa; mad.wide.u32 %pb, %t, 4, %pb; mad.wide.u32 %pd, %t, 4, %pd; mad.wide.u32 %ps, %t, 4, %ps; mov.u32 %bar, bar;\n\
             setp.eq.u32 %yes, %t, %t; setp.eq.u32 %first, %t, 0; setp.lt.u32 %warp0, %t, 32;\n\
             @%first mbarrier.init.shared::cta.b64 [%bar], 1;\n\
             mov.u32 %w, slot; @%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%w], 32; bar.sync 0;\n\
             ld.shared.b32 %mem, [slot]; and.b32 %rows, %t, 0x60; shl.b32 %rows, %rows, 16; add.u32 %rows, %rows, %mem;\n\
             {}{}{}{}{}{stores}\
             tcgen05.st.sync.aligned.32x32b.x{N}.b32 [%rows], {{{list}}};\n\
             tcgen05.wait::st.sync.aligned;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nmov.u32 %w, {descriptor:#x};\n\
             @%first tcgen05.mma.cta_group::1.kind::{} [%mem], %da, %db, %w,{operands} %yes;\n\
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
        // Core matrices of 8 rows by 16 bytes, with the elements of each 16 bytes packed from the lowest bit on.
        let (k, bits) = (self.k(), format.bits());
        let in_sixteen_bytes = if self.mixes_widths() { 16 } else { 128 / bits };
        let mut bytes = vec![0u8; (rows * 32) as usize];
        for (row, column) in (0..rows).flat_map(|row| (0..k).map(move |column| (row, column))) {
            let start = (column / in_sixteen_bytes * rows * 16 + row / 8 * 128 + row % 8 * 16) as usize;
            let sixteen: &mut [u8; 16] = bytes[start..].first_chunk_mut().unwrap();
            let element = u128::from(encode(format, elements[(row * k + column) as usize]));
            let shift = column % in_sixteen_bytes * bits;
            *sixteen = (u128::from_le_bytes(*sixteen) | element << shift).to_le_bytes();
        }
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Runs `kernel` on small integers. Returns the kernel's D, C, and the right D.
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
        let scales = if self.scales.is_some() { upload(driver, &self.scale_words()) } else { addresses[0] };
        let parameters = addresses.into_iter().chain([scales]).flat_map(u64::to_le_bytes).collect();
        driver.launch(function, [1, 1, 1], [128, 1, 1], 0, parameters)?;
        driver.wait()?;
        let words = download(driver, addresses[2], (128 * N) as usize);
        let mut found = vec![f64::NAN; c.len()];
        for (cell, word) in cells().zip(words) {
            found[cell] = value(d_format, u64::from(word) & d_format.mask());
        }
        let (n, k) = (N as usize, k as usize);
        let wanted = (0..128 * n).map(|cell| {
            let (row, column) = (cell / n, cell % n);
            let products = (0..k).map(|at| {
                let product = (a[row * k + at] * b[column * k + at]) as f64;
                self.scales.map_or(product, |Scales { count, .. }| {
                    let block = at * count / k;
                    product * scale(row, block) * scale(column + 5, block)
                })
            });
            products.sum::<f64>() + c[cell] as f64
        });
        let wanted = wanted.collect();
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
fn scales_are_needed_in_every_quarter_and_begin_where_their_kind_allows() {
    let form = &FORMS[11];
    let kernel = form.kernel();
    // Only the first warp stores: the other quarters keep their old content.
    let store = "tcgen05.st.sync.aligned.32x32b.x1.b32";
    let wrong = kernel.replace(store, &format!("@%warp0 {store}"));
    assert!(wrong != kernel);
    assert_eq!(form.run(&mut driver("b200"), &wrong).err(), Some(Status::LAUNCH_FAILED));
    let odd = Form { scales: form.scales.map(|scales| Scales { bytes: (1, 0), ..scales }), ..FORMS[11] };
    assert_eq!(odd.run(&mut driver("b200"), &odd.kernel()).err(), Some(Status::LAUNCH_FAILED));
    let without = kernel.replace("add.u32 %sa, %mem, 16;", "add.u32 %sa, %mem, 64;");
    assert!(without != kernel);
    assert_eq!(form.run(&mut driver("b200"), &without).err(), Some(Status::LAUNCH_FAILED));
}

#[test]
fn a_kind_that_is_not_there_is_refused() {
    let driver = driver("b200");
    for (form, right, wrong) in [
        (11, "mxf4.block_scale.scale_vec::2X", "mxf4.block_scale.scale_vec::4X"),
        (11, "mxf4.block_scale.scale_vec::2X", "mxf4"),
        (12, "mxf4nvf4.block_scale.scale_vec::2X", "mxf4nvf4.block_scale"),
        (12, ".version 8.7", ".version 8.6"),
        (11, " [%sa], [%sb],", ""),
    ] {
        let kernel = FORMS[form].kernel();
        assert!(kernel.contains(right), "{right}");
        let refusal = driver.link(&kernel.replace(right, wrong), None).unwrap_err();
        assert_eq!(refusal.status, Status::INVALID_PTX, "{wrong}");
    }
}

#[test]
fn sums_are_not_there_before_they_were_waited_for() {
    let form = &FORMS[0];
    let kernel = form.kernel();
    // Polling the barrier once is not enough, and neither is not polling at all.
    for missing in ["@!%done bra wait;", "mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;"]
    {
        assert!(kernel.contains(missing));
        let [found, c, _] = form.run(&mut driver("b200"), &kernel.replace(missing, "")).unwrap();
        assert!(found == c, "{missing}");
    }
    let [found, c, _] = form.run(&mut driver("b200"), &kernel.replace("tcgen05.wait::ld.sync.aligned;", "")).unwrap();
    assert!(found == c, "loads without a wait leave the registers unchanged");
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
