//! `wmma`: the device loads, multiplies and stores matrices, so that only the matrices in memory can be checked.

use mxprobe_api::Format;

use super::{driver, encode, faulty, function, random, value};
use crate::{driver::Driver, settings::Fault, status::Status};

/// One `wmma`: a model that has it, its version and target, its shape, and the formats and numbers of registers of D, A
/// and B.
struct Form {
    model: &'static str,
    head: &'static str,
    shape: (usize, usize, usize),
    formats: [&'static str; 3],
    registers: [usize; 3],
}

const SHAPES: [(usize, usize, usize); 3] = [(16, 16, 16), (8, 32, 16), (32, 8, 16)];

/// Every form, with the registers that PTX ISA 9.0, 9.7.14.4.1, lists.
fn forms() -> Vec<Form> {
    let form = |model, head, shape, formats, registers| Form { model, head, shape, formats, registers };
    let mut forms = vec![
        form("a100", "7.0 sm_80", (16, 16, 8), ["f32", "tf32", "tf32"], [8, 4, 4]),
        form("a100", "7.0 sm_80", (8, 8, 4), ["f64", "f64", "f64"], [2, 1, 1]),
        form("t4", "6.3 sm_75", (8, 8, 32), ["s32", "s4", "s4"], [2, 1, 1]),
        form("t4", "6.3 sm_75", (8, 8, 32), ["s32", "u4", "u4"], [2, 1, 1]),
    ];
    for (shape, [of_a, of_b]) in SHAPES.into_iter().zip([[4, 4], [2, 8], [8, 2]]) {
        forms.push(form("v100", "6.3 sm_70", shape, ["f32", "f16", "f16"], [8, 8, 8]));
        forms.push(form("v100", "6.3 sm_70", shape, ["f16", "f16", "f16"], [4, 8, 8]));
        forms.push(form("a100", "7.0 sm_80", shape, ["f32", "bf16", "bf16"], [8, of_a, of_b]));
        forms.push(form("t4", "6.3 sm_75", shape, ["s32", "s8", "s8"], [8, of_a / 2, of_b / 2]));
        forms.push(form("t4", "6.3 sm_75", shape, ["s32", "u8", "u8"], [8, of_a / 2, of_b / 2]));
    }
    forms
}

/// The layout of a matrix in memory: by rows or columns, and the distance of its lines.
#[derive(Clone, Copy)]
struct Lie {
    order: &'static str,
    stride: usize,
}

impl Form {
    fn format(&self, index: usize) -> Format {
        Format::named(self.formats[index]).unwrap()
    }

    /// The rows and columns of A, B, and C or D.
    fn sizes(&self) -> [(usize, usize); 3] {
        let (m, n, k) = self.shape;
        [(m, k), (k, n), (m, n)]
    }

    fn formats(&self) -> [Format; 3] {
        [self.format(1), self.format(2), self.format(0)]
    }

    /// Layouts with contiguous lines, or with room between them.
    fn lies(&self, orders: [&'static str; 3], room: usize) -> [Lie; 3] {
        let sizes = self.sizes();
        std::array::from_fn(|at| {
            let (rows, columns) = sizes[at];
            let line = if orders[at] == "row" { columns } else { rows };
            // Lines begin at multiples of 32 elements, so that they are aligned in every format.
            let stride = if room > 0 { (line + room).next_multiple_of(32) } else { line };
            Lie { order: orders[at], stride }
        })
    }

    fn kernel(&self, lies: [Lie; 3]) -> String {
        let [d, a, b] = self.formats;
        let (m, n, k) = self.shape;
        let shape = format!("m{m}n{n}k{k}");
        let (version, target) = self.head.split_once(' ').unwrap();
        let list = |name: char, count: usize| (0..count).map(|at| format!("%{name}{at}")).collect::<Vec<_>>().join(",");
        let [of_d, of_a, of_b] = self.registers;
        let width = self.format(0).bits().max(32);
        let load = |name: char, count: usize, format: &str, lie: Lie| {
            let Lie { order, stride } = lie;
            format!(
                "ld.param.u64 %p{name}, [{name}];\n\
                 wmma.load.{name}.sync.aligned.{order}.{shape}.global.{format} {{{}}}, [%p{name}], {stride};\n",
                list(name, count)
            )
        };
        let formats = if a == "f16" { format!("{d}.{d}") } else { format!("{d}.{a}.{b}.{d}") };
        format!(
            ".version {version}\n.target {target}\n.address_size 64\n\
             .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{{\n\
             .reg .b{} %a<8>, %b<8>; .reg .b{width} %c<8>, %d<8>; .reg .b64 %pa, %pb, %pc, %pd;\n{}{}{}\
             wmma.mma.sync.aligned.{}.{}.{shape}.{formats} {{{}}}, {{{}}}, {{{}}}, {{{}}};\nld.param.u64 %pd, [d];\n\
             wmma.store.d.sync.aligned.{}.{shape}.global.{d} [%pd], {{{}}}, {};\nret;\n}}\n",
            self.format(1).bits().max(32),
            load('a', of_a, a, lies[0]),
            load('b', of_b, b, lies[1]),
            load('c', of_d, d, lies[2]),
            lies[0].order,
            lies[1].order,
            list('d', of_d),
            list('a', of_a),
            list('b', of_b),
            list('c', of_d),
            lies[2].order,
            list('d', of_d),
            lies[2].stride,
        )
    }

    /// Runs `kernel` on small integers in these layouts. Returns the kernel's D and the right one.
    fn run(&self, driver: &mut Driver, kernel: &str, lies: [Lie; 3]) -> Result<[Vec<f64>; 2], Status> {
        let mut state = 11;
        let (sizes, formats) = (self.sizes(), self.formats());
        let elements: [Vec<i64>; 3] = std::array::from_fn(|at| {
            let low = if ["u8", "u4"].contains(&formats[at].name()) { 0 } else { -2 };
            (0..sizes[at].0 * sizes[at].1).map(|_| random(&mut state) % 5 + low).collect()
        });
        let address = |driver: &mut Driver, image: &[u8]| {
            let address = driver.allocate(image.len()).unwrap();
            driver.memory.span(address, image.len()).unwrap().copy_from_slice(image);
            address
        };
        let mut addresses = Vec::new();
        for at in 0..3 {
            let image = image(&elements[at], sizes[at], formats[at], lies[at]);
            addresses.push(address(driver, &image));
        }
        let room = image(&vec![0; elements[2].len()], sizes[2], formats[2], lies[2]);
        addresses.push(address(driver, &room));
        let kernel = function(driver, kernel, "k");
        let parameters = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        driver.launch(kernel, [1, 1, 1], [32, 1, 1], 0, parameters)?;
        driver.wait()?;
        let (m, n, k) = self.shape;
        let bytes = driver.memory.span(addresses[3], room.len()).unwrap();
        let size = formats[2].bits() as usize / 8;
        let mut found = Vec::new();
        let mut wanted = Vec::new();
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let start = lies[2].place(row, column) * size;
            let mut word = [0; 8];
            word[..size].copy_from_slice(&bytes[start..start + size]);
            let bits = u64::from_le_bytes(word);
            found.push(value(formats[2], bits));
            let products = (0..k).map(|at| elements[0][row * k + at] * elements[1][at * n + column]);
            wanted.push((products.sum::<i64>() + elements[2][row * n + column]) as f64);
        }
        Ok([found, wanted])
    }
}

impl Lie {
    fn place(self, row: usize, column: usize) -> usize {
        if self.order == "row" { row * self.stride + column } else { column * self.stride + row }
    }
}

/// A matrix of integers in memory.
fn image(elements: &[i64], (rows, columns): (usize, usize), format: Format, lie: Lie) -> Vec<u8> {
    let lines = if lie.order == "row" { rows } else { columns };
    let bits = format.bits() as usize;
    let mut bytes = vec![0u8; (lines * lie.stride * bits).div_ceil(8)];
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let bit = lie.place(row, column) * bits;
        let element = encode(format, elements[row * columns + column]) << (bit % 8);
        for (byte, part) in bytes[bit / 8..].iter_mut().zip(element.to_le_bytes()).take(bits.div_ceil(8)) {
            *byte |= part;
        }
    }
    bytes
}

const USUAL: [&str; 3] = ["row", "col", "row"];

#[test]
fn every_shape_of_small_integers_is_the_naive_product() {
    for form in forms() {
        let lies = form.lies(USUAL, 0);
        let kernel = form.kernel(lies);
        let [found, wanted] = form.run(&mut driver(form.model), &kernel, lies).unwrap();
        assert!(found == wanted, "{:?} {:?}", form.shape, form.formats);
        let [found, wanted] = form.run(&mut faulty(form.model, Fault::Layout), &kernel, lies).unwrap();
        assert!(found != wanted, "{:?} {:?} with a wrong layout", form.shape, form.formats);
    }
}

#[test]
fn matrices_lie_by_rows_or_columns_and_with_room_between_their_lines() {
    let all = forms();
    for form in all.iter().filter(|form| form.format(1).bits() >= 8) {
        for a in ["row", "col"] {
            for b in ["row", "col"] {
                for c in ["row", "col"] {
                    let lies = form.lies([a, b, c], 32);
                    let [found, wanted] = form.run(&mut driver(form.model), &form.kernel(lies), lies).unwrap();
                    assert!(found == wanted, "{:?} {:?} {a} {b} {c}", form.shape, form.formats);
                }
            }
        }
    }
}

#[test]
fn a_fragment_fits_the_order_it_was_loaded_in_alone() {
    let form = &forms()[4];
    let lies = form.lies(USUAL, 0);
    let kernel = form.kernel(lies);
    let wrong = kernel.replace("wmma.mma.sync.aligned.row.col", "wmma.mma.sync.aligned.col.col");
    assert!(wrong != kernel);
    let [found, wanted] = form.run(&mut driver(form.model), &wrong, lies).unwrap();
    assert!(found != wanted);
}

#[test]
fn lines_that_are_not_aligned_or_overlap_stop_the_kernel() {
    let form = &forms()[4];
    let lies = form.lies(USUAL, 0);
    let kernel = form.kernel(lies);
    for (right, wrong, status) in [
        ("[%pa], 16", "[%pa+16], 16", Status::MISALIGNED_ADDRESS),
        ("[%pa], 16", "[%pa], 24", Status::MISALIGNED_ADDRESS),
        ("%d7}, 16", "%d7}, 0", Status::LAUNCH_FAILED),
        ("[%pa], 16", "[%pa+32], 16", Status::ILLEGAL_ADDRESS),
        ("[%pd]", "[%pd+32]", Status::ILLEGAL_ADDRESS),
    ] {
        assert!(kernel.contains(right), "{right}");
        let found = form.run(&mut driver(form.model), &kernel.replace(right, wrong), lies);
        assert_eq!(found.err(), Some(status), "{wrong}");
    }
}

#[test]
fn what_is_no_wmma_is_refused() {
    let link = |model: &str, head: &str, statement: &str| {
        let (version, target) = head.split_once(' ').unwrap();
        let source = format!(
            ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n\
             .reg .b32 %r<8>, %q<4>; .reg .b64 %p;\n{statement}\n}}\n"
        );
        driver(model).link(&source, None).err().map(|refusal| refusal.status)
    };
    let eight = "{%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}";
    let four = "{%r0,%r1,%r2,%r3}";
    let right = format!("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {eight}, [%p], 16;");
    assert_eq!(link("t4", "6.3 sm_70", &right), None);
    for (head, statement) in [
        ("6.3 sm_70", format!("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {four}, [%p], 16;")),
        ("6.3 sm_70", format!("wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {eight}, [%p], 16;")),
        ("6.3 sm_70", format!("wmma.load.a.sync.aligned.m16n16k16.global.f16 {eight}, [%p], 16;")),
        ("6.2 sm_70", right.clone()),
        ("6.3 sm_70", "wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r0,%r1}, [%p], 16;".into()),
        ("6.3 sm_75", "wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r0}, [%p], 32;".into()),
        ("6.3 sm_75", "wmma.load.b.sync.aligned.row.m8n8k32.global.s4 {%r0}, [%p], 32;".into()),
        ("6.3 sm_75", format!("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 {eight}, {eight}, {eight}, {four};")),
        ("6.3 sm_75", "wmma.mma.sync.aligned.row.row.m8n8k32.s32.s4.s4.s32 {%r0,%r1}, {%r2}, {%r3}, {%r0,%r1};".into()),
        ("6.3 sm_75", "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.u4.s32 {%r0,%r1}, {%r2}, {%r3}, {%r0,%r1};".into()),
        (
            "6.3 sm_75",
            format!("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite {eight}, {eight}, {eight}, {eight};"),
        ),
    ] {
        assert_eq!(link("t4", head, &statement), Some(Status::INVALID_PTX), "{head}: {statement}");
    }
}
