//! `wgmma`: operands through descriptors, D against naive sums, and the rules that hardware does not enforce.

use mxprobe_api::Format;

use super::{download, driver, encode, faulty, function, random, upload, value};
use crate::{driver::Driver, settings::Fault, status::Status};

/// One form of `wgmma`, and the kernel around it.
#[derive(Clone)]
struct Form {
    formats: [&'static str; 3],
    n: u32,
    k: u32,
    /// The text after the operands: scale-d and the flags.
    flags: String,
    fences: &'static str,
    /// The text after the multiply.
    ends: &'static str,
    a_in_registers: bool,
    times: usize,
}

const FENCES: &str = "fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;";
const ENDS: &str = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;";

impl Form {
    fn new(formats: [&'static str; 3], n: u32, k: u32, flags: &str) -> Self {
        Self { formats, n, k, flags: flags.to_owned(), fences: FENCES, ends: ENDS, a_in_registers: false, times: 1 }
    }

    fn format(&self, index: usize) -> Format {
        Format::named(self.formats[index]).unwrap()
    }

    fn registers(&self) -> u32 {
        self.n * self.format(0).bits() / 64
    }

    fn kernel(&self) -> String {
        let Self { n, k, .. } = *self;
        let bytes = |rows: u32| rows * k * self.format(1).bits() / 8;
        let registers = self.registers();
        let list = (0..registers).map(|at| format!("%d{at}")).collect::<Vec<_>>().join(",");
        let mut body = format!(
            ".reg .b32 %d<{registers}>, %a<4>, %t, %w, %s; .reg .b64 %x, %pa, %pb, %pd, %da, %db; .reg .pred %yes, %copies;\n\
             .shared .align 128 .b8 rooma[{}]; .shared .align 128 .b8 roomb[{}];\n\
             mov.u32 %t, %tid.x; ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pd, [d];\n\
             mad.wide.u32 %pa, %t, 4, %pa; mad.wide.u32 %pb, %t, 4, %pb; mad.wide.u32 %pd, %t, 4, %pd;\n\
             setp.eq.u32 %yes, %t, %t;\n",
            bytes(64),
            bytes(n)
        );
        for (room, pointer, rows) in [("rooma", "%pa", 64), ("roomb", "%pb", n)] {
            body += &format!("mov.u32 %s, {room}; mad.lo.u32 %s, %t, 4, %s;\n");
            for start in (0..bytes(rows)).step_by(512) {
                let left = (bytes(rows) - start) / 4;
                body += &format!("setp.lt.u32 %copies, %t, {left};\n");
                body += &format!(
                    "@%copies ld.global.b32 %w, [{pointer}+{start}]; @%copies st.shared.b32 [%s+{start}], %w;\n"
                );
            }
            let descriptor = u64::from(rows * 16) >> 4 << 16 | 128 >> 4 << 32;
            let name = if rows == 64 && room == "rooma" { "%da" } else { "%db" };
            body += &format!(
                "mov.u32 %w, {room}; shr.u32 %w, %w, 4; cvt.u64.u32 %x, %w; or.b64 {name}, %x, {descriptor:#x};\n"
            );
        }
        for at in 0..registers {
            body += &format!("ld.global.b32 %d{at}, [%pd+{}];\n", at * 512);
        }
        for at in 0..4 {
            body += &format!("ld.global.b32 %a{at}, [%pa+{}];\n", at * 512);
        }
        body += self.fences;
        let a = if self.a_in_registers { "{%a0,%a1,%a2,%a3}" } else { "%da" };
        let [d_name, a_name, b_name] = self.formats;
        for _ in 0..self.times {
            body += &format!(
                "\nwgmma.mma_async.sync.aligned.m64n{n}k{k}.{d_name}.{a_name}.{b_name} {{{list}}}, {a}, %db, {};\n",
                self.flags
            );
        }
        body += self.ends;
        for at in 0..registers {
            body += &format!("\nst.global.b32 [%pd+{}], %d{at};", at * 512);
        }
        format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)\n{{\n{body}\nret;\n}}\n"
        )
    }

    /// Packs a matrix into core matrices of 8 rows by 16 bytes, those of the same k one after another.
    fn image(&self, format: Format, rows: u32, elements: &[i64]) -> Vec<u32> {
        let size = format.bits() / 8;
        let mut bytes = vec![0u8; (rows * self.k * size) as usize];
        for (row, column) in (0..rows).flat_map(|row| (0..self.k).map(move |column| (row, column))) {
            let byte = column * size;
            let start = (byte / 16 * rows * 16 + row / 8 * 128 + row % 8 * 16 + byte % 16) as usize;
            let bits = encode(format, elements[(row * self.k + column) as usize]).to_le_bytes();
            bytes[start..start + size as usize].copy_from_slice(&bits[..size as usize]);
        }
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Packs A into registers: 16 rows for each warp, as for `mma`.
    fn fragments(&self, elements: &[i64]) -> Vec<u32> {
        let format = self.format(1);
        let each = 32 / format.bits();
        let mut words = Vec::new();
        for (register, thread) in (0..4).flat_map(|register| (0..128).map(move |thread| (register, thread))) {
            let (g, t) = (thread % 32 / 4, thread % 4);
            let mut word = 0;
            for s in 0..each {
                let row = thread / 32 * 16 + g + 8 * (register % 2);
                let column = t * each + s + 4 * each * (register / 2);
                word |= encode(format, elements[(row * self.k + column) as usize]) << (s * format.bits());
            }
            words.push(word as u32);
        }
        words
    }

    /// Runs the kernel on small integers. Returns the values of D, and A, B and C.
    fn run(&self, driver: &mut Driver) -> Result<(Vec<f64>, [Vec<i64>; 3]), Status> {
        let Self { n, k, .. } = *self;
        let mut state = 11;
        let unsigned = self.formats[1] == "u8";
        let mut draw = |count: u32| -> Vec<i64> {
            (0..count).map(|_| random(&mut state) % 4 - if unsigned { 0 } else { 2 }).collect()
        };
        // B is stored column by column.
        let (a, b, c) = (draw(64 * k), draw(n * k), draw(64 * n));
        let d_format = self.format(0);
        let each = 32 / d_format.bits();
        let places = |register: u32, thread: u32, s: u32| {
            let i = register * each + s;
            let (g, t) = (thread % 32 / 4, thread % 4);
            ((16 * (thread / 32) + g + 8 * (i / 2 % 2)) * n + 8 * (i / 4) + 2 * t + i % 2) as usize
        };
        let threads = (0..self.registers()).flat_map(|register| (0..128).map(move |thread| (register, thread)));
        let words = threads.clone().map(|(register, thread)| {
            (0..each).map(|s| encode(d_format, c[places(register, thread, s)]) << (s * d_format.bits())).sum::<u64>()
                as u32
        });
        let words: Vec<u32> = words.collect();
        let mut a_words = if self.a_in_registers { self.fragments(&a) } else { self.image(self.format(1), 64, &a) };
        a_words.resize(a_words.len().max(512), 0);
        let function = function(driver, &self.kernel(), "k");
        let addresses = [&a_words, &self.image(self.format(2), n, &b), &words].map(|words| upload(driver, words));
        let parameters = addresses.into_iter().flat_map(u64::to_le_bytes).collect();
        driver.launch(function, [1, 1, 1], [128, 1, 1], 0, parameters)?;
        driver.wait()?;
        let found = download(driver, addresses[2], words.len());
        let mut d = vec![f64::NAN; c.len()];
        for ((register, thread), word) in threads.zip(found) {
            for s in 0..each {
                let bits = u64::from(word) >> (s * d_format.bits()) & d_format.mask();
                d[places(register, thread, s)] = value(d_format, bits);
            }
        }
        Ok((d, [a, b, c]))
    }

    /// `sign · A·B · times`, plus C if `adds`.
    fn wanted(&self, [a, b, c]: &[Vec<i64>; 3], sign: i64, adds: bool) -> Vec<f64> {
        let (n, k) = (self.n as usize, self.k as usize);
        let cells = (0..64).flat_map(|row| (0..n).map(move |column| (row, column)));
        let value = |(row, column): (usize, usize)| {
            let product: i64 = (0..k).map(|at| a[row * k + at] * b[column * k + at]).sum();
            let times = i64::try_from(self.times).unwrap();
            (sign * times * product + if adds { c[row * n + column] } else { 0 }) as f64
        };
        cells.map(value).collect()
    }

    fn check(&self, sign: i64, adds: bool) {
        let (found, operands) = self.run(&mut driver("h100")).unwrap();
        assert!(found == self.wanted(&operands, sign, adds), "{:?} n{} {}", self.formats, self.n, self.flags);
        assert!(found.iter().any(|value| *value != 0.0));
    }
}

#[test]
fn every_form_of_small_integers_is_the_naive_product() {
    for (formats, k, flags) in [
        (["f32", "f16", "f16"], 16, "%yes, 1, 1, 0, 0"),
        (["f32", "bf16", "bf16"], 16, "1, 1, 1, 0, 0"),
        (["f16", "f16", "f16"], 16, "%yes, 1, 1, 0, 0"),
        (["f32", "tf32", "tf32"], 8, "%yes, 1, 1"),
        (["f32", "e4m3", "e5m2"], 32, "%yes, 1, 1"),
        (["f16", "e5m2", "e5m2"], 32, "%yes, 1, 1"),
        (["s32", "s8", "s8"], 32, "%yes"),
        (["s32", "u8", "u8"], 32, "%yes"),
    ] {
        for n in [8, 16, 64] {
            Form::new(formats, n, k, flags).check(1, true);
        }
    }
    Form::new(["f32", "f16", "f16"], 256, 16, "%yes, 1, 1, 0, 0").check(1, true);
}

#[test]
fn signs_and_the_accumulator_can_be_turned_off() {
    let form = |flags| Form::new(["f32", "f16", "f16"], 8, 16, flags);
    form("0, 1, 1, 0, 0").check(1, false);
    form("%yes, -1, 1, 0, 0").check(-1, true);
    form("%yes, 1, -1, 0, 0").check(-1, true);
    form("%yes, -1, -1, 0, 0").check(1, true);
}

#[test]
fn a_comes_from_registers_too() {
    for (formats, k, flags) in [
        (["f32", "f16", "f16"], 16, "%yes, 1, 1, 0"),
        (["f32", "tf32", "tf32"], 8, "%yes, 1, 1"),
        (["f32", "e4m3", "e4m3"], 32, "%yes, 1, 1"),
        (["s32", "s8", "s8"], 32, "%yes"),
    ] {
        Form { a_in_registers: true, ..Form::new(formats, 8, k, flags) }.check(1, true);
    }
}

#[test]
fn multiplies_in_a_row_add_up_before_they_are_waited_for() {
    Form { times: 3, ..Form::new(["f32", "f16", "f16"], 8, 16, "%yes, 1, 1, 0, 0") }.check(1, true);
}

#[test]
fn results_that_nobody_waited_for_are_not_there() {
    for ends in [
        "",
        "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;",
    ] {
        let form = Form { ends, ..Form::new(["f32", "f16", "f16"], 8, 16, "%yes, 1, 1, 0, 0") };
        let (found, [_, _, c]) = form.run(&mut driver("h100")).unwrap();
        assert!(found.iter().zip(&c).all(|(found, c)| found.to_bits() == (*c as f64).to_bits()), "{ends}");
    }
}

#[test]
fn a_missing_fence_or_barrier_stops_the_kernel() {
    for fences in [
        "bar.sync 0; wgmma.fence.sync.aligned;",
        "fence.proxy.async.shared::cta; wgmma.fence.sync.aligned;",
        "fence.proxy.async.shared::cta; bar.sync 0;",
    ] {
        let form = Form { fences, ..Form::new(["f32", "f16", "f16"], 8, 16, "%yes, 1, 1, 0, 0") };
        assert_eq!(form.run(&mut driver("h100")).err(), Some(Status::LAUNCH_FAILED), "{fences}");
    }
}

#[test]
fn shared_memory_may_not_be_written_while_it_is_read() {
    let copy = "setp.eq.u32 %copies, %t, 0; @%copies cp.async.ca.shared.global [%s], [%pa], 4;";
    let [commit, wait] = ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"];
    for (ends, stopped) in [(format!("{commit} {copy} {wait}"), true), (format!("{commit} {wait} {copy}"), false)] {
        let ends: &'static str = ends.leak();
        let form = Form { ends, ..Form::new(["f32", "f16", "f16"], 8, 16, "%yes, 1, 1, 0, 0") };
        assert_eq!(form.run(&mut driver("h100")).err(), stopped.then_some(Status::LAUNCH_FAILED), "{ends}");
    }
}

#[test]
fn a_wrong_layout_shows() {
    let form = Form::new(["f32", "f16", "f16"], 8, 16, "%yes, 1, 1, 0, 0");
    let (found, operands) = form.run(&mut faulty("h100", Fault::Layout)).unwrap();
    assert!(found != form.wanted(&operands, 1, true));
}
