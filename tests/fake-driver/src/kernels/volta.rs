//! `mma.sync` of m8n8k4 with f16: four multiplies per warp, each operand by rows or by columns.

use mxprobe_api::Format;

use super::{download, driver, encode, function, random, upload, value};

/// Random matrices, one for each of the four multiplies.
fn matrices(elements: usize, state: &mut u64) -> Vec<Vec<i64>> {
    (0..4).map(|_| (0..elements).map(|_| random(state) % 7 - 3).collect()).collect()
}

/// The multiply that a lane belongs to, and the offset of its half of the warp: 0 or 4.
fn quad_pair(lane: u32) -> (usize, u32) {
    ((lane / 4 % 4) as usize, lane / 16 * 4)
}

/// Packs an operand of f16, two elements in a register, into words by register and lane.
fn pack(elements: u32, place: impl Fn(u32, u32) -> i64) -> Vec<u32> {
    let mut words = Vec::new();
    for (register, lane) in (0..elements / 2).flat_map(|register| (0..32).map(move |lane| (register, lane))) {
        let half = |at: u32| encode(Format::F16, place(lane, 2 * register + at)) as u32;
        words.push(half(0) | half(1) << 16);
    }
    words
}

fn kernel(layouts: &str, d: &str, c: &str) -> String {
    let count = |format: &str| if format == "f32" { 8 } else { 4 };
    let mut body = String::new();
    let mut lists = Vec::new();
    for (name, count) in [("a", 2), ("b", 2), ("c", count(c)), ("d", count(d))] {
        body += &format!(".reg .b32 %{name}<{count}>; .reg .b64 %p{name}; ld.param.u64 %p{name}, [{name}];\n");
        body += &format!("mad.wide.u32 %p{name}, %tid.x, 4, %p{name};\n");
        let names: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
        for (at, register) in names.iter().enumerate().filter(|_| name != "d") {
            body += &format!("ld.global.b32 {register}, [%p{name}+{}];\n", at * 128);
        }
        lists.push(names.join(","));
    }
    body += &format!(
        "mma.sync.aligned.m8n8k4.{layouts}.{d}.f16.f16.{c} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n",
        lists[3], lists[0], lists[1], lists[2]
    );
    for at in 0..count(d) {
        body += &format!("st.global.b32 [%pd+{}], %d{at};\n", at * 128);
    }
    format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n\
         {{\n{body}ret;\n}}\n"
    )
}

/// The row and column of element `i` of an accumulator of f32.
fn wide(lane: u32, i: u32) -> (u32, u32) {
    ((lane & 1) + (i & 2) + quad_pair(lane).1, (i & 4) + (lane & 2) + (i & 1))
}

#[test]
fn four_multiplies_of_small_integers_are_the_naive_products() {
    let mut state = 3;
    let (a, b, c) = (matrices(32, &mut state), matrices(32, &mut state), matrices(64, &mut state));
    for layouts in ["row.col", "row.row", "col.col", "col.row"] {
        for (d_format, c_format) in [("f32", "f32"), ("f32", "f16"), ("f16", "f16")] {
            let (a_rows, b_rows) = (layouts.starts_with("row"), layouts.ends_with("row"));
            let a_words = pack(4, |lane, i| {
                let (which, upper) = quad_pair(lane);
                let (row, k) = if a_rows { (lane % 4 + upper, i) } else { (i + upper, lane % 4) };
                a[which][(row * 4 + k) as usize]
            });
            let b_words = pack(4, |lane, i| {
                let (which, upper) = quad_pair(lane);
                let (k, column) = if b_rows { (lane % 4, i + upper) } else { (i, lane % 4 + upper) };
                b[which][(k * 8 + column) as usize]
            });
            let c_words = if c_format == "f16" {
                pack(8, |lane, i| c[quad_pair(lane).0][((lane % 4 + quad_pair(lane).1) * 8 + i) as usize])
            } else {
                let places = (0..8).flat_map(|i| (0..32).map(move |lane| (lane, wide(lane, i))));
                let bits = places.map(|(lane, (row, column))| {
                    encode(Format::F32, c[quad_pair(lane).0][(row * 8 + column) as usize]) as u32
                });
                bits.collect()
            };
            let mut driver = driver("v100");
            let function = function(&mut driver, &kernel(layouts, d_format, c_format), "k");
            let addresses = [&a_words, &b_words, &c_words, &vec![0; 256]].map(|words| upload(&mut driver, words));
            let parameters = addresses.into_iter().flat_map(u64::to_le_bytes).collect();
            driver.launch(function, [1, 1, 1], [32, 1, 1], 0, parameters).unwrap();
            driver.wait().unwrap();
            let words = download(&mut driver, addresses[3], 256);
            for (lane, i) in (0..32).flat_map(|lane| (0..8).map(move |i| (lane, i))) {
                let (which, upper) = quad_pair(lane);
                let ((row, column), found) = if d_format == "f32" {
                    (wide(lane, i), value(Format::F32, u64::from(words[(i * 32 + lane) as usize])))
                } else {
                    let word = words[(i / 2 * 32 + lane) as usize] >> (i % 2 * 16) & 0xffff;
                    ((lane % 4 + upper, i), value(Format::F16, u64::from(word)))
                };
                let products = (0..4).map(|k| a[which][(row * 4 + k) as usize] * b[which][(k * 8 + column) as usize]);
                let wanted = c[which][(row * 8 + column) as usize] + products.sum::<i64>();
                assert!(
                    found.to_bits() == (wanted as f64).to_bits(),
                    "{layouts} {d_format} {c_format} lane {lane} element {i}: {found}, not {wanted}"
                );
            }
        }
    }
}
