//! `mma.sync` of every shape: operands are packed by one rule, and D is compared with naive sums.

use mxprobe_api::{Format, OperationId};

use super::{download, driver, faulty, function, small, upload, value};
use crate::{driver::Driver, settings::Fault};

/// One `mma` of a warp: a model, the text after `mma.sync.aligned.`, the target, and the bits of an operand's element.
struct Form {
    model: &'static str,
    text: &'static str,
    target: &'static str,
    container_bits: u32,
}

const fn form(model: &'static str, target: &'static str, container_bits: u32, text: &'static str) -> Form {
    Form { model, text, target, container_bits }
}

const FORMS: [Form; 25] = [
    form("a100", "7.0 sm_80", 16, "m16n8k8.row.col.f32.f16.f16.f32"),
    form("a100", "7.0 sm_80", 16, "m16n8k8.row.col.f16.f16.f16.f16"),
    form("a100", "7.0 sm_80", 16, "m16n8k8.row.col.f32.bf16.bf16.f32"),
    form("a100", "7.0 sm_80", 16, "m16n8k16.row.col.f32.f16.f16.f32"),
    form("a100", "7.0 sm_80", 16, "m16n8k16.row.col.f16.f16.f16.f16"),
    form("a100", "7.0 sm_80", 32, "m16n8k4.row.col.f32.tf32.tf32.f32"),
    form("a100", "7.0 sm_80", 32, "m16n8k8.row.col.f32.tf32.tf32.f32"),
    form("a100", "7.0 sm_80", 64, "m8n8k4.row.col.f64.f64.f64.f64"),
    form("a100", "7.0 sm_80", 64, "m8n8k4.row.col.f64.f64.f64.f64.rz"),
    form("h100", "7.8 sm_90", 64, "m16n8k4.row.col.f64.f64.f64.f64"),
    form("h100", "7.8 sm_90", 64, "m16n8k8.row.col.f64.f64.f64.f64"),
    form("h100", "7.8 sm_90", 64, "m16n8k16.row.col.f64.f64.f64.f64"),
    form("t4", "6.5 sm_75", 8, "m8n8k16.row.col.s32.s8.u8.s32"),
    form("a100", "7.0 sm_80", 8, "m16n8k16.row.col.s32.s8.s8.s32"),
    form("a100", "7.0 sm_80", 8, "m16n8k32.row.col.satfinite.s32.u8.s8.s32"),
    form("t4", "6.5 sm_75", 4, "m8n8k32.row.col.s32.s4.s4.s32"),
    form("a100", "7.0 sm_80", 4, "m16n8k32.row.col.s32.s4.u4.s32"),
    form("a100", "7.0 sm_80", 4, "m16n8k64.row.col.s32.s4.s4.s32"),
    form("l40s", "8.7 sm_89", 8, "m16n8k16.row.col.f32.e4m3.e5m2.f32"),
    form("l40s", "8.7 sm_89", 8, "m16n8k32.row.col.f16.e4m3.e4m3.f16"),
    form("rtx5090", "8.7 sm_120a", 8, "m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32"),
    form("rtx5090", "8.7 sm_120a", 8, "m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32"),
    form(
        "rtx5090",
        "8.7 sm_120a",
        8,
        "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0",
    ),
    form("rtx5090", "8.7 sm_120a", 4, "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"),
    form(
        "rtx5090",
        "8.7 sm_120a",
        4,
        "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
];

impl Form {
    fn id(&self) -> OperationId {
        let words: Vec<&str> = self.text.split('.').filter(|word| !["row", "col"].contains(word)).collect();
        let formats: Vec<&str> = words[1..].iter().copied().filter(|word| Format::named(word).is_ok()).collect();
        format!("mma.{}.{}", words[0], formats[..4].join(".")).parse().unwrap()
    }

    /// The number of scales of a row, and their format.
    fn scales(&self) -> Option<(u32, Format)> {
        let count = match self.text {
            text if text.contains("4X") => 4,
            text if text.contains("mxf4.") => 2,
            text if text.contains("1X") => 1,
            _ => return None,
        };
        Some((count, Format::named(self.text.rsplit('.').next().unwrap()).unwrap()))
    }

    fn kernel(&self, registers: &[usize; 4], widths: &[u32; 4]) -> String {
        let (version, target) = self.target.split_once(' ').unwrap();
        let mut body = String::new();
        let mut lists = Vec::new();
        for (name, (count, width)) in "abcd".chars().zip(registers.iter().zip(widths)) {
            body +=
                &format!(".reg .b{width} %{name}<{count}>; .reg .b64 %p{name};\nld.param.u64 %p{name}, [{name}];\n");
            body += &format!("mad.wide.u32 %p{name}, %tid.x, {}, %p{name};\n", width / 8);
            lists.push((0..*count).map(|at| format!("%{name}{at}")).collect::<Vec<_>>().join(","));
        }
        for (name, (count, width)) in "abc".chars().zip(registers.iter().zip(widths)) {
            for at in 0..*count {
                body += &format!("ld.global.b{width} %{name}{at}, [%p{name}+{}];\n", at as u32 * 4 * width);
            }
        }
        let scales = if self.scales().is_some() { ", {%s0}, {%z, %z}, {%s1}, {0, 3}" } else { "" };
        body += ".reg .b32 %s<2>; .reg .b16 %z; .reg .b64 %ps; mov.u16 %z, 0;\nld.param.u64 %ps, [s];\n\
                 mad.wide.u32 %ps, %tid.x, 4, %ps;\nld.global.b32 %s0, [%ps];\nld.global.b32 %s1, [%ps+128];\n";
        let [a, b, c, d] = &lists[..] else { unreachable!() };
        body += &format!("mma.sync.aligned.{} {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}{scales};\n", self.text);
        for at in 0..registers[3] {
            body += &format!("st.global.b{} [%pd+{}], %d{at};\n", widths[3], at as u32 * 4 * widths[3]);
        }
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, \
             .param .u64 d, .param .u64 s)\n{{\n{body}ret;\n}}\n"
        )
    }
}

/// The row and column of sub-element `s` of register `r` in `lane`, by the one rule of all layouts except Volta's.
fn rule(operand: char, m: u32, e: u32, wide: bool, lane: u32, r: u32, s: u32) -> (u32, u32) {
    let (g, t) = (lane / 4, lane % 4);
    match operand {
        'a' if m == 16 => (g + 8 * (r % 2), t * e + s + 4 * e * (r / 2)),
        'a' => (g, t * e + s + 4 * e * r),
        'b' => (t * e + s + 4 * e * r, g),
        _ if wide => (g + 8 * (r / 2), 2 * t + r % 2),
        _ => (g + 8 * r, 2 * t + s),
    }
}

/// The registers of a warp for a matrix, as 32-bit words by register and lane; 64-bit registers are two words.
fn pack(operand: char, form: &Form, format: Format, bits: u32, elements: &[u64], columns: u32) -> Vec<u32> {
    let m = form.id().shape.m;
    let e = (32 / bits).max(1);
    let registers = elements.len() as u32 / 32 / e;
    let mut words = Vec::new();
    for (r, lane) in (0..registers).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
        let mut word = 0;
        for s in 0..e {
            let (row, column) = rule(operand, m, e, format.bits() >= 32, lane, r, s);
            let inset = if format == Format::E2M1 && bits == 8 { 2 } else { 0 };
            word |= elements[(row * columns + column) as usize] << (s * bits + inset);
        }
        words.push(word as u32);
        if bits == 64 {
            words.push((word >> 32) as u32);
        }
    }
    words
}

fn product(form: &Form, driver: &mut Driver) -> (Vec<f64>, Vec<f64>) {
    let id = form.id();
    let (m, n, k) = (id.shape.m, id.shape.n, id.shape.k);
    let mut state = 7;
    let mut draw = |format: Format, len: u32| (0..len).map(|_| small(&mut state, format)).collect::<Vec<u64>>();
    let (a, b, c) = (draw(id.a, m * k), draw(id.b, k * n), draw(id.c, m * n));
    let bits = [form.container_bits, form.container_bits, id.c.bits(), id.d.bits()];
    let count = |elements: u32, bits: u32| (elements / 32 / (32 / bits).max(1)) as usize;
    let registers = [count(m * k, bits[0]), count(k * n, bits[1]), count(m * n, bits[2]), count(m * n, bits[3])];
    let widths = bits.map(|bits| bits.max(32));
    let scale = |row: u32, chunk: u32| [1.0, 2.0, 0.5, 4.0][((row + 3 * chunk) % 4) as usize];
    let mut scale_words = vec![0u32; 64];
    if let Some((count, format)) = form.scales() {
        for lane in 0..32u32 {
            // Rows g and g + 8 are in threads 0 and 1 of a quad, columns in thread 3; the others have zeros.
            let a_row = match lane % 4 {
                0 => Some(lane / 4),
                1 => Some(lane / 4 + 8),
                _ => None,
            };
            let byte = |row: u32, chunk: u32| (format.from_f64(scale(row, chunk)) as u32) << (8 * chunk);
            scale_words[lane as usize] = a_row.map_or(0, |row| (0..count).map(|chunk| byte(row, chunk)).sum());
            let column = (lane % 4 == 3).then_some(lane / 4);
            scale_words[32 + lane as usize] =
                column.map_or(0, |column| (0..count).map(|chunk| byte(column + 1, chunk)).sum());
        }
    }
    let kernel = function(driver, &form.kernel(&registers, &widths), "k");
    let a_address = upload(driver, &pack('a', form, id.a, bits[0], &a, k));
    let b_address = upload(driver, &pack('b', form, id.b, bits[1], &b, n));
    let c_address = upload(driver, &pack('c', form, id.c, bits[2], &c, n));
    let d_words = registers[3] * 32 * widths[3] as usize / 32;
    let d_address = upload(driver, &vec![0xffff_ffff; d_words]);
    let s_address = upload(driver, &scale_words);
    let parameters =
        [a_address, b_address, c_address, d_address, s_address].into_iter().flat_map(|word| word.to_le_bytes());
    driver.launch(kernel, [1, 1, 1], [32, 1, 1], 0, parameters.collect()).unwrap();
    driver.wait().unwrap();
    let words = download(driver, d_address, d_words);
    let mut wanted = Vec::new();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let products = (0..k).map(|at| {
            let product = value(id.a, a[(row * k + at) as usize]) * value(id.b, b[(at * n + column) as usize]);
            form.scales()
                .map_or(product, |(count, _)| product * scale(row, at * count / k) * scale(column + 1, at * count / k))
        });
        wanted.push(value(id.c, c[(row * n + column) as usize]) + products.sum::<f64>());
    }
    // Unpack D by the same rule that packs operands.
    let places: Vec<u64> = (0..u64::from(m * n)).collect();
    let e = (32 / bits[3]).max(1);
    let mut found = vec![f64::NAN; places.len()];
    for (r, lane) in (0..registers[3] as u32).flat_map(|r| (0..32).map(move |lane| (r, lane))) {
        for s in 0..e {
            let (row, column) = rule('d', m, e, id.d.bits() >= 32, lane, r, s);
            let at = (r * 32 + lane) as usize;
            let word = if bits[3] == 64 {
                u64::from(words[2 * at]) | u64::from(words[2 * at + 1]) << 32
            } else {
                u64::from(words[at])
            };
            found[(row * n + column) as usize] = value(id.d, word >> (s * bits[3]) & id.d.mask());
        }
    }
    (found, wanted)
}

#[test]
fn every_mma_of_small_integers_is_the_naive_product() {
    for form in &FORMS {
        let (found, wanted) = product(form, &mut driver(form.model));
        assert!(found == wanted, "{}\n{found:?}\n{wanted:?}", form.text);
        assert!(wanted.iter().any(|value| *value != 0.0));
    }
}

#[test]
fn a_wrong_layout_shows_in_every_mma() {
    for form in &FORMS {
        let (found, wanted) = product(form, &mut faulty(form.model, Fault::Layout));
        assert!(found != wanted, "{}", form.text);
    }
}
