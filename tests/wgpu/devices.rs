//! The cases; each runs in its own process, with the driver it names.

use std::time::Duration;

use mxprobe_api::{Decoded, Device, DeviceKind, Elements, Operation, ScalarFunction, TileBatch, call, execute};
use mxprobe_conformance::{CLASSES, Dot, Maker, Random, check, check_backend, check_device, pack};
use mxprobe_vulkan::{VulkanBackend, VulkanDevice};
use mxprobe_wgpu::{WgpuBackend, WgpuDevice};

use crate::Case;

pub(crate) const CASES: &[Case] = &[
    lavapipe("lavapipe_shows_two_of_its_four_configurations", lists),
    lavapipe("the_backend_and_its_operations_pass_the_conformance_suite", conforms),
    lavapipe("matrices_have_the_bits_that_vulkan_gives_them", same_matrices),
    lavapipe("scalars_have_the_bits_that_vulkan_gives_them", same_scalars),
    lavapipe("batches_beyond_one_grid_and_one_buffer_come_back_in_order", large_batches),
    lavapipe("a_result_equal_to_the_fill_is_returned", fill_values),
    lavapipe("a_time_limit_ends_the_device", time_limit),
    lavapipe("threads_may_share_a_device", threads),
    Case {
        environment: &[("LP_NATIVE_VECTOR_WIDTH", "128")],
        ..lavapipe("an_extension_without_its_feature_leaves_scalar_arithmetic_alone", no_feature)
    },
    Case {
        driver: "radv:gfx1201",
        ..lavapipe("what_wgsl_cannot_say_is_refused_by_the_name_that_vulkan_gives_it", hidden)
    },
    Case { driver: "radv:navi21", ..lavapipe("a_device_that_writes_nothing_computes_no_scalars", no_scalars) },
];

const fn lavapipe(name: &'static str, run: fn()) -> Case {
    Case { name, driver: "lavapipe", environment: &[], run }
}

fn only<D>(found: (Vec<D>, Vec<mxprobe_api::Refusal>)) -> D {
    let (mut devices, refusals) = found;
    assert_eq!(devices.len(), 1, "{refusals:?}");
    devices.pop().unwrap()
}

fn device() -> WgpuDevice {
    only(WgpuBackend::new().devices())
}

fn vulkan() -> VulkanDevice {
    only(VulkanBackend::new().devices())
}

fn operation(device: &dyn Device, id: &str) -> Operation {
    device.operations().get(&id.parse().unwrap()).unwrap_or_else(|| panic!("{id} is not listed")).clone()
}

fn lists() {
    let device = device();
    let info = device.info();
    assert_eq!((info.selector.as_str(), info.backend.as_str(), info.kind), ("wgpu:0", "wgpu", DeviceKind::Software));
    assert_eq!(info.fingerprint, vulkan().info().fingerprint);
    assert_eq!(info.driver, vulkan().info().driver);
    let ids: Vec<String> = device.operations().keys().map(ToString::to_string).collect();
    assert_eq!(ids, ["coopmat.m8n8k8.f16.f16.f16.f16", "coopmat.m8n8k8.f32.f16.f16.f32"]);
    let refused: Vec<&str> = device.refusals().iter().map(|refusal| refusal.what.as_str()).collect();
    assert_eq!(refused, ["wgpu:0 coopmat.m8n8k8.u32.u8.u8.u32", "wgpu:0 coopmat.m8n8k8.s32.s8.s8.s32"]);
    let scalars: Vec<String> = device.scalars().unwrap().members().iter().map(|scalar| scalar.id.to_string()).collect();
    assert_eq!(scalars, ["scalar.f16", "scalar.f32", "scalar.f64"]);
    let hashes: Vec<String> =
        device.operations().values().map(|each| device.code().unwrap().kernel_hash(each).unwrap()).collect();
    assert!(hashes[0] != hashes[1] && hashes.iter().all(|hash| hash.len() == 64), "{hashes:?}");
}

fn conforms() {
    assert_eq!(check_backend(&WgpuBackend::new()), []);
    assert_eq!(check_device(&device(), |_| true), []);
}

/// The first element that differs, apart from the bits of NaN: of two NaNs the one that the driver's compiler puts
/// first survives, which varies between kernels (*measured*: llvmpipe of Mesa 26.1).
fn difference(found: &Elements, wanted: &Elements) -> Option<usize> {
    assert_eq!((found.format(), found.len()), (wanted.format(), wanted.len()));
    let is_nan = |bits| matches!(found.format().decode(bits), Decoded::Nan { .. });
    let differs = |(found, wanted): (u64, u64)| found != wanted && !(is_nan(found) && is_nan(wanted));
    found.iter().zip(wanted.iter()).position(differs)
}

/// Compares directed and random dots of every class, at every element of every tile.
fn same_matrices() {
    let (device, vulkan) = (device(), vulkan());
    for operation in device.operations().values() {
        let (_, n, k) = operation.id.shape.sizes();
        for (class, (name, _)) in CLASSES.iter().enumerate() {
            let mut maker = Maker::new(&operation.id, 1);
            let dots: Vec<Dot> = (0..8192).filter_map(|index| maker.make(class, index)).collect();
            let (batch, _) = pack(operation, &dots);
            let [found, wanted] =
                [&device as &dyn Device, &vulkan].map(|each| execute(each, operation, &batch).unwrap());
            assert!(dots.is_empty() || found.len() >= 8192, "{name}: {} elements", found.len());
            if let Some(at) = difference(&found, &wanted) {
                let hex = |elements: &Elements, at: usize| elements.format().hex(elements.get(at));
                let a: Vec<String> = (0..k).map(|i| hex(&batch.a, at / n * k + i)).collect();
                let (found, wanted, c) = (hex(&found, at), hex(&wanted, at), hex(&batch.c, at));
                panic!("{name}, element {at}, a {a:?}, c {c}: {found} through wgpu, {wanted} through Vulkan");
            }
        }
    }
}

/// Operands of random bits and of moderate values, so that not all results are infinite or NaN. Exponents of `Scale`
/// are small, because the conversion of large ones to integers is not specified.
fn operands(function: ScalarFunction, format: mxprobe_api::Format, calls: usize) -> Elements {
    let mut random = Random(u64::from(format.bits()) + function.arity() as u64);
    let draw = |at: usize| {
        if function == ScalarFunction::Scale && at % 2 == 1 {
            return format.from_f64(random.between(-8, 8).into());
        }
        if (at / function.arity()).is_multiple_of(2) { random.any(format) } else { random.moderate(format) }
    };
    Elements::from_bits(format, (0..calls * function.arity()).map(draw))
}

fn same_scalars() {
    let (device, vulkan) = (device(), vulkan());
    let mut compared = 0;
    for scalar in device.scalars().unwrap().members() {
        for function in scalar.functions.keys() {
            let x = operands(*function, scalar.id.format, 50_021);
            let [found, wanted] =
                [&device as &dyn Device, &vulkan].map(|each| call(each, scalar, *function, &x).unwrap());
            if let Some(at) = difference(&found, &wanted) {
                let (arity, format) = (function.arity(), found.format());
                let call: Vec<String> = (0..arity).map(|i| scalar.id.format.hex(x.get(at * arity + i))).collect();
                let [found, wanted] = [found, wanted].map(|each| format.hex(each.get(at)));
                panic!("{function} of {}: {call:?}: {found} through wgpu, {wanted} through Vulkan", scalar.id);
            }
            compared += found.len();
        }
    }
    // All functions that shaders have for f16 and f32; for f64 only one elementary function.
    assert_eq!(compared, (26 + 26 + 19) * 50_021);
    let empty = call(
        &device,
        &device.scalars().unwrap().members()[0],
        ScalarFunction::Add,
        &Elements::zeros(mxprobe_api::Format::F16, 0),
    );
    assert!(empty.unwrap().is_empty());
}

fn large_batches() {
    let device = device();
    let operation = operation(&device, "coopmat.m8n8k8.f32.f16.f16.f32");
    let mut batch = TileBatch::zeros(&operation, 200_001);
    // C counts the elements, as f32 that are finite and not subnormal; products are zero.
    for (at, bits) in (0..batch.c.len()).zip(0x3f00_0000..) {
        batch.c.set(at, bits);
    }
    assert_eq!(execute(&device, &operation, &batch).unwrap(), batch.c);
    assert!(execute(&device, &operation, &TileBatch::zeros(&operation, 0)).unwrap().is_empty());
}

fn fill_values() {
    let device = device();
    let operation = operation(&device, "coopmat.m8n8k8.f32.f16.f16.f32");
    let mut batch = TileBatch::zeros(&operation, 3);
    for (at, bits) in (0..192).zip([0xaaaa_aaaa_u64, 0x5555_5555, 0].into_iter().flat_map(|bits| [bits; 64])) {
        batch.c.set(at, bits);
    }
    assert_eq!(execute(&device, &operation, &batch).unwrap(), batch.c);
}

fn time_limit() {
    let device = only(WgpuBackend::new().with_timeout(Duration::from_nanos(1)).devices());
    let operation = operation(&device, "coopmat.m8n8k8.f16.f16.f16.f16");
    let batch = TileBatch::zeros(&operation, 60_000);
    // On a loaded machine the work may be done before the wait begins.
    let error = (0..1000).find_map(|_| execute(&device, &operation, &batch).err()).expect("1 ns is not enough");
    assert!(error.is_timed_out() && error.to_string().contains("not finished within 1ns"), "{error}");
    let error = execute(&device, &operation, &batch).unwrap_err();
    assert!(error.is_device_lost() && error.to_string().contains("given up earlier"), "{error}");
}

fn threads() {
    let device = device();
    let operation = operation(&device, "coopmat.m8n8k8.f32.f16.f16.f32");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(check(&device, &operation), []));
        }
    });
}

fn no_feature() {
    let device = device();
    assert!(device.operations().is_empty());
    let first = &device.refusals()[0];
    assert_eq!(first.what, "wgpu:0 cooperative matrices");
    assert!(first.reason.to_string().ends_with("and the feature cooperativeMatrix is false"), "{}", first.reason);
    let scalar = &device.scalars().unwrap().members()[0];
    let x = Elements::from_bits(scalar.id.format, [0x3c00, 0x4000]);
    assert_eq!(call(&device, scalar, ScalarFunction::Add, &x).unwrap().get(0), 0x4200);
}

fn hidden() {
    let (device, vulkan) = (device(), vulkan());
    assert_eq!(device.operations().len(), 2);
    let refused: Vec<&str> = device.refusals().iter().filter_map(|each| each.what.strip_prefix("wgpu:0 ")).collect();
    assert_eq!(refused.len(), 18, "{refused:?}");
    let listed: Vec<String> = vulkan.operations().keys().map(ToString::to_string).collect();
    assert!(refused.iter().all(|id| listed.contains(&(*id).to_owned())), "{refused:?}");
}

fn no_scalars() {
    let device = device();
    assert!(device.operations().is_empty() && !device.refusals().is_empty());
    for scalar in device.scalars().unwrap().members() {
        for function in scalar.functions.keys() {
            let x = Elements::zeros(scalar.id.format, 3 * function.arity());
            let error = call(&device, scalar, *function, &x).unwrap_err();
            // The shim's fences signal without any work, and wgpu may notice it.
            let told = error.is_nothing_written() || error.is_device_lost() && error.to_string().contains("gave up");
            assert!(told, "{function} of {}: {error}", scalar.id);
        }
    }
}
