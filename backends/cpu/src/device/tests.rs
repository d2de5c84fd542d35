//! Tests of every instruction with integers, against integer sums.

use mxprobe_api::{Encoding, Format, Random, execute};

use super::*;

/// The actual device, and the same without AVX-512, so that the VEX encodings are tested too.
fn devices() -> Vec<Box<dyn Device>> {
    let here = Readings::here();
    let mut without = here.clone();
    without.leaf_7_0.ebx &= !(1 << 16);
    let found: Vec<_> = [here, without].iter().flat_map(|readings| discover(readings).devices).collect();
    for device in &found {
        println!("{}", device.info().fingerprint);
        device.operations().values().for_each(|it| println!("  {} {:?}", it.id, it.instruction));
        device.refusals().iter().for_each(|it| println!("  {}: {}", it.what, it.reason));
    }
    if found.is_empty() {
        println!("this CPU has none of the instructions: nothing ran");
    }
    found
}

/// The value of an element: an integer, or a small integer in a floating format.
fn integer(format: Format, bits: u64) -> i64 {
    match format.encoding() {
        Encoding::Integer { bits: width, signed: true } => (bits << (64 - width)).cast_signed() >> (64 - width),
        Encoding::Integer { signed: false, .. } => bits.cast_signed(),
        #[expect(clippy::cast_possible_truncation)]
        Encoding::Float(_) => format.to_f64(bits) as i64,
    }
}

/// D by the definition of a matrix product, in integers wide enough for every sum.
fn reference(id: &OperationId, batch: &TileBatch) -> Vec<i64> {
    let (m, n, k) = id.shape.sizes();
    let mut d = Vec::new();
    for tile in 0..batch.tiles {
        for row in 0..m {
            for column in 0..n {
                let products = (0..k).map(|l| {
                    let a = integer(id.a, batch.a.get((tile * m + row) * k + l));
                    a * integer(id.b, batch.b.get((tile * k + l) * n + column))
                });
                d.push(integer(id.c, batch.c.get((tile * m + row) * n + column)) + products.sum::<i64>());
            }
        }
    }
    d
}

fn fill(elements: &mut Elements, mut bits: impl FnMut(Format) -> u64) {
    let format = elements.format();
    for at in 0..elements.len() {
        elements.set(at, bits(format));
    }
}

/// Small integers of either sign, so that every product and sum is exact in every format.
fn small(random: &mut Random) -> impl FnMut(Format) -> u64 {
    |format| {
        let magnitude = random.bits() >> 32 & 7;
        let is_signed = format.largest(true) != 0;
        let negative = is_signed && random.bits() & 1 == 1 && magnitude != 0;
        #[expect(clippy::cast_precision_loss)]
        let value = if negative { -(magnitude as f64) } else { magnitude as f64 };
        format.from_f64(value)
    }
}

#[test]
fn small_integers_are_multiplied_exactly_in_every_place() {
    for device in devices() {
        for operation in device.operations().values() {
            let mut random = Random(1);
            // Whole and partial registers, whole and partial rounds of packed tiles.
            for tiles in (0..=40).chain([255, 256, 257]) {
                let mut batch = TileBatch::zeros(operation, tiles);
                fill(&mut batch.a, small(&mut random));
                fill(&mut batch.b, small(&mut random));
                fill(&mut batch.c, small(&mut random));
                let d = execute(device.as_ref(), operation, &batch).expect("the device computes");
                let given: Vec<i64> = d.iter().map(|bits| integer(operation.id.d, bits)).collect();
                assert_eq!(given, reference(&operation.id, &batch), "{} of {tiles} tiles", operation.id);
            }
        }
    }
}

#[test]
fn one_product_arrives_at_its_row_and_column_only() {
    for device in devices() {
        for operation in device.operations().values() {
            let id = &operation.id;
            let (m, n, k) = id.shape.sizes();
            // One tile for each position in A, with a single 1 there, and 1 + column in the corresponding row of B.
            let mut batch = TileBatch::zeros(operation, m * k);
            for (tile, (row, l)) in (0..m).flat_map(|row| (0..k).map(move |l| (row, l))).enumerate() {
                batch.a.set(tile * m * k + row * k + l, id.a.one());
                for column in 0..n {
                    #[expect(clippy::cast_precision_loss)]
                    batch.b.set(tile * k * n + l * n + column, id.b.from_f64((column + 1) as f64));
                }
            }
            let d = execute(device.as_ref(), operation, &batch).expect("the device computes");
            for (at, bits) in d.iter().enumerate() {
                let (tile, row, column) = (at / (m * n), at / n % m, at % n);
                let expected = if tile / k == row { column + 1 } else { 0 };
                assert_eq!(
                    usize::try_from(integer(id.d, bits)),
                    Ok(expected),
                    "{id} with 1 in row {}, k {} of A, at row {row}, column {column}",
                    tile / k,
                    tile % k
                );
            }
        }
    }
}

#[test]
fn integers_of_the_whole_range_wrap_or_saturate_once_at_the_end() {
    let limits = i64::from(i32::MIN)..=i64::from(i32::MAX);
    for device in devices() {
        for operation in device.operations().values().filter(|operation| operation.id.is_integer()) {
            let id = &operation.id;
            let (m, n, _) = id.shape.sizes();
            let tiles = 200_000 / (m * n);
            let mut random = Random(2);
            let mut beyond = 0;
            // Uniform bits; extreme values, which overflow; c near its limits.
            for kind in 0..3 {
                let mut batch = TileBatch::zeros(operation, tiles);
                for elements in [&mut batch.a, &mut batch.b] {
                    fill(elements, |format| match kind {
                        0 => random.bits(),
                        _ => format.largest(random.bits() & 3 == 0),
                    });
                }
                fill(&mut batch.c, |_| match kind {
                    2 => (i64::from(i32::MAX) + (random.bits() >> 50).cast_signed() - (1 << 13)).cast_unsigned(),
                    _ => random.bits(),
                });
                let d = execute(device.as_ref(), operation, &batch).expect("the device computes");
                for (at, (bits, exact)) in d.iter().zip(reference(id, &batch)).enumerate() {
                    beyond += usize::from(!limits.contains(&exact));
                    let expected = if id.has("satfinite") {
                        exact.clamp(*limits.start(), *limits.end())
                    } else {
                        (exact << 32) >> 32
                    };
                    assert_eq!(integer(id.d, bits), expected, "{id}, element {at}, whose exact value is {exact}");
                }
            }
            assert!(beyond > 1000, "{id}: {beyond} sums leave the range, too few to see what becomes of them");
        }
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    for device in devices() {
        std::thread::scope(|scope| {
            for seed in 0..8 {
                let device = device.as_ref();
                scope.spawn(move || {
                    let mut random = Random(seed);
                    for operation in device.operations().values() {
                        let mut batch = TileBatch::zeros(operation, 19);
                        fill(&mut batch.a, small(&mut random));
                        fill(&mut batch.b, small(&mut random));
                        let d = execute(device, operation, &batch).expect("the device computes");
                        let given: Vec<i64> = d.iter().map(|bits| integer(operation.id.d, bits)).collect();
                        assert_eq!(given, reference(&operation.id, &batch), "{} seed {seed}", operation.id);
                    }
                });
            }
        });
    }
}

/// The prefix of refusals of scalar instructions.
const SCALARS: &str = "scalar arithmetic by ";

#[test]
fn a_cpu_without_any_matrix_unit_is_scalar_arithmetic_and_a_refusal_for_each_instruction() {
    let found = discover(&Readings::default());
    let [device] = &found.devices[..] else { panic!("{} devices", found.devices.len()) };
    assert!(device.operations().is_empty() && found.refusals.is_empty());
    // Every x86-64 CPU has SSE2; this one lacks FMA3.
    let named = |text: &str| device.scalars().unwrap().members().iter().find(|scalar| scalar.id.to_string() == text);
    assert_eq!(named("scalar.f32").map(|scalar| scalar.functions.len()), Some(28));
    assert!(named("scalar.f64.ru.daz").is_some_and(|scalar| !scalar.functions.contains_key(&ScalarFunction::Fma)));
    let refusals = device.refusals();
    let lines: Vec<String> = refusals.iter().map(|it| format!("{}: {}", it.what, it.reason)).collect();
    let of_scalars = lines.iter().filter(|line| line.starts_with(SCALARS)).count();
    assert!(of_scalars > 0, "{lines:#?}");
    assert_eq!(lines.len(), INSTRUCTIONS.len() + of_scalars);
    for line in [
        "amx.m16n16k32.f32.bf16.bf16.f32 (TDPBF16PS): CPUID.7.0:EDX bit 24 (AMX-TILE) is 0",
        "dot.m1n1k2.f32.bf16.bf16.f32 (VDPBF16PS): CPUID.7.0:EBX bit 16 (AVX512F) is 0",
        "dot.m1n1k4.s32.u8.s8.s32 (VPDPBUSD): CPUID.7.0:EBX bit 16 (AVX512F) is 0, and CPUID.1:ECX bit 28 (AVX) is 0",
    ] {
        assert!(lines.iter().any(|it| it == line), "{line} is not among {lines:#?}");
    }
    assert!(refusals.iter().all(|refusal| refusal.reason.is_unsupported()));
}

#[test]
fn every_instruction_is_an_operation_or_a_refusal() {
    let found = discover(&Readings::here());
    let operations: usize = found.devices.iter().map(|device| device.operations().len()).sum();
    let refusals = found.devices.iter().flat_map(|device| device.refusals()).chain(&found.refusals);
    let refusals = refusals.filter(|refusal| !refusal.what.starts_with(SCALARS)).count();
    assert_eq!(operations + refusals, INSTRUCTIONS.len());
}

#[test]
fn ids_of_the_table_are_canonical_and_differ() {
    let mut ids: Vec<String> = INSTRUCTIONS
        .iter()
        .map(|instruction| instruction.id.parse::<OperationId>().expect("an operation id").to_string())
        .collect();
    assert!(ids.iter().zip(&INSTRUCTIONS).all(|(id, instruction)| id == instruction.id));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), INSTRUCTIONS.len());
}
