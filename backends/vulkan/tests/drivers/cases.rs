//! The test cases; each runs in a process of its own, with the driver that it names.

use std::time::{Duration, Instant};

use mxprobe_api::{
    Backend, Clock, Decoded, Device, DeviceKind, Elements, Load, Operation, OperationId, Random, Span, TileBatch,
    execute, time,
};
use mxprobe_conformance::check_device;
use mxprobe_vulkan::{VulkanBackend, VulkanDevice};

use crate::{
    compiled::{instructions, timed_instructions, validates},
    model::{Inputs, batch, lavapipe},
    products, scalars,
};

/// One case.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The value of `MXPROBE_VULKAN_DRIVER` for the drivers' `run`.
    pub(crate) driver: &'static str,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    /// Whether it runs only on request, and shows its output.
    pub(crate) manual: bool,
    pub(crate) run: Box<dyn Fn() + Send>,
}

const LAVAPIPE: &str = "lavapipe";
const LAVAPIPE_CONFIGURATIONS: [&str; 4] = [
    "coopmat.m8n8k8.f16.f16.f16.f16",
    "coopmat.m8n8k8.f32.f16.f16.f32",
    "coopmat.m8n8k8.s32.s8.s8.s32",
    "coopmat.m8n8k8.u32.u8.u8.u32",
];
/// Drivers that compile for absent hardware, and the names of their golden files.
const SHIMS: [(&str, &str); 7] = [
    ("radv:gfx1201", "radv-gfx1201"),
    ("radv:navi31", "radv-navi31"),
    ("radv:navi33", "radv-navi33"),
    ("radv:strix1", "radv-strix1"),
    ("nvk:162", "nvk-162"),
    ("nvk:172", "nvk-172"),
    ("nvk:176", "nvk-176"),
];
/// Drivers whose devices have no matrix units.
const WITHOUT_MATRICES: [(&str, &str); 2] = [("radv:navi21", "radv"), ("nvk:140", "NVK")];

pub(crate) fn all() -> Vec<Case> {
    let case = |name: &str, driver: &'static str, run: Box<dyn Fn() + Send>| Case {
        name: name.to_owned(),
        driver,
        environment: Vec::new(),
        manual: false,
        run,
    };
    let mut cases = vec![
        case("lavapipe_lists_four_configurations_and_nearest_even", LAVAPIPE, Box::new(lists)),
        case("lavapipe_passes_the_self_test_in_every_operation", LAVAPIPE, Box::new(self_tests)),
        case("chained_steps_are_calls_in_the_order_of_k", LAVAPIPE, Box::new(chains)),
        case("batches_beyond_one_grid_and_one_buffer_come_back_in_order", LAVAPIPE, Box::new(large_batches)),
        case("a_result_equal_to_the_fill_is_returned", LAVAPIPE, Box::new(fill_values)),
        case("a_time_limit_ends_the_device", LAVAPIPE, Box::new(time_limit)),
        case("kernels_have_hashes_of_their_own", LAVAPIPE, Box::new(hashes)),
        case("lavapipe_holds_what_is_asked_of_every_device", LAVAPIPE, Box::new(conforms)),
        case("lavapipe_has_scalar_arithmetic_in_three_formats", LAVAPIPE, Box::new(|| scalars::lists(&device()))),
        case(
            "lavapipe_computes_scalars_as_the_host_does",
            LAVAPIPE,
            Box::new(|| scalars::agrees_with_the_host(&device())),
        ),
        case(
            "lavapipe_scalars_keep_what_its_float_controls_promise",
            LAVAPIPE,
            Box::new(|| scalars::keeps_its_float_controls(&device())),
        ),
        case("no_loader_is_a_refusal", "none", Box::new(no_loader)),
        case("no_driver_is_a_refusal_that_says_where_was_searched", "none", Box::new(no_driver)),
        Case {
            environment: vec![("LP_NATIVE_VECTOR_WIDTH", "128")],
            ..case("an_extension_without_its_feature_leaves_scalar_arithmetic_alone", LAVAPIPE, Box::new(no_feature))
        },
        Case {
            environment: vec![("MXPROBE_VULKAN_VALIDATION", "1"), ("VK_LAYER_PATH", "/nonexistent")],
            ..case("missing_validation_layers_are_a_refusal", LAVAPIPE, Box::new(no_layers))
        },
        case("what_is_timed_is_what_is_computed", LAVAPIPE, Box::new(timed)),
        case("whole_matrices_have_the_bits_of_tiles", LAVAPIPE, Box::new(|| products::agree(&device()))),
        case(
            "what_no_shader_of_whole_matrices_takes_is_left_to_tiles",
            LAVAPIPE,
            Box::new(|| products::others_are_left_to_tiles(&device())),
        ),
        Case { manual: true, ..case("speed_of_products", LAVAPIPE, Box::new(|| products::speed(&device()))) },
        Case { manual: true, ..case("speed", LAVAPIPE, Box::new(speed)) },
    ];
    for id in LAVAPIPE_CONFIGURATIONS {
        let name = format!("lavapipe_agrees_with_its_model_bit_for_bit::{id}");
        cases.push(case(&name, LAVAPIPE, Box::new(move || agrees(id))));
    }
    for driver in ["radv", "nvk", "anv"] {
        let name = format!("a_driver_without_hardware_is_no_device::{driver}");
        cases.push(case(&name, driver, Box::new(no_hardware)));
    }
    for (driver, word) in WITHOUT_MATRICES {
        let name = format!("a_device_without_the_extension_has_scalar_arithmetic_alone::{driver}");
        cases.push(case(&name, driver, Box::new(move || no_extension(word))));
    }
    let layers = vec![("MXPROBE_VULKAN_VALIDATION", "1")];
    for (driver, golden) in SHIMS {
        let name = format!("operations_and_instructions_are_those_of_the_golden_file::{golden}");
        cases.push(case(&name, driver, Box::new(move || instructions(golden))));
        let name = format!("what_is_timed_is_the_unit::{golden}");
        cases.push(case(&name, driver, Box::new(timed_instructions)));
        let name = format!("a_device_that_writes_nothing_is_found_out::{golden}");
        cases.push(case(&name, driver, Box::new(nothing_written)));
        let name = format!("validation_layers_are_content::{golden}");
        cases.push(Case { environment: layers.clone(), ..case(&name, driver, Box::new(|| validates(false))) });
    }
    let name = format!("validation_layers_are_content::{LAVAPIPE}");
    cases.push(Case { environment: layers, ..case(&name, LAVAPIPE, Box::new(|| validates(true))) });
    cases
}

pub(crate) fn only_device(backend: &VulkanBackend) -> VulkanDevice {
    let (mut devices, refusals) = backend.devices();
    let refused: Vec<String> = refusals.iter().map(|refusal| format!("{}: {}", refusal.what, refusal.reason)).collect();
    assert_eq!(devices.len(), 1, "{refused:?}");
    devices.pop().unwrap()
}

pub(crate) fn device() -> VulkanDevice {
    only_device(&VulkanBackend::new())
}

/// The only refusal in an environment without a device.
fn only_refusal(backend: &VulkanBackend) -> mxprobe_api::Refusal {
    let found = backend.discover();
    assert!(found.devices.is_empty());
    let mut refusals: Vec<_> =
        found.refusals.into_iter().filter(|refusal| !refusal.what.starts_with("/dev/dri")).collect();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    refusals.pop().unwrap()
}

fn operation(device: &VulkanDevice, id: &str) -> Operation {
    let id: OperationId = id.parse().unwrap();
    device.operations().get(&id).unwrap_or_else(|| panic!("{id} is not listed")).clone()
}

fn conforms() {
    let violations = check_device(&device(), |_| true);
    assert!(violations.is_empty(), "{violations:#?}");
}

fn lists() {
    let device = device();
    let info = device.info();
    assert_eq!((info.selector.as_str(), info.backend.as_str()), ("vulkan:0", "vulkan"));
    assert_eq!(info.kind, DeviceKind::Software);
    assert_eq!(info.fingerprint, "10005-0000-mesa_llvmpipe");
    assert_eq!(info.aliases, ["lavapipe"]);
    let driver = info.driver.as_ref().unwrap();
    assert!(driver.name == "llvmpipe" && driver.version.starts_with("Mesa "), "{driver:?}");
    assert_eq!(info.properties["subgroup_size"], "8");
    assert_eq!(info.properties["denorm_preserve_bits"], "none");
    assert_eq!(info.properties["rounding_mode_rte_bits"], "16 32 64");
    let ids: Vec<String> = device.operations().keys().map(ToString::to_string).collect();
    assert_eq!(
        ids,
        [
            "coopmat.m8n8k8.f16.f16.f16.f16",
            "coopmat.m8n8k8.f16.f16.f16.f16.rte",
            "coopmat.m8n8k8.f32.f16.f16.f32",
            "coopmat.m8n8k8.f32.f16.f16.f32.rte",
            "coopmat.m8n8k8.s32.s8.s8.s32",
            "coopmat.m8n8k8.u32.u8.u8.u32",
        ]
    );
    assert!(device.refusals().is_empty(), "{:?}", device.refusals());
}

fn self_tests() {
    let device = device();
    for operation in device.operations().values() {
        let passed = device.self_test(operation).unwrap();
        assert_eq!(passed.elements, passed.tiles * 64, "{}", operation.id);
        assert_eq!(device.code().unwrap().issued(operation), Ok(None));
    }
}

/// Compares more than 100 000 outputs for each kind of input.
fn agrees(id: &str) {
    let device = device();
    for id in [id.to_owned(), format!("{id}.rte")] {
        let Some(operation) = device.operations().get(&id.parse().unwrap()) else { continue };
        let mut random = Random(7);
        for inputs in Inputs::ALL {
            let operands = batch(&mut random, &operation.id, 1600, inputs);
            let got = execute(&device, operation, &operands).unwrap();
            assert_equal(&operation.id, &got, &lavapipe(&operation.id, &operands), &format!("{inputs:?}"));
        }
    }
}

/// Compares bit for bit, except for the bits of a NaN.
fn assert_equal(id: &OperationId, got: &Elements, expected: &Elements, what: &str) {
    assert_eq!(got.len(), expected.len());
    if got == expected {
        return;
    }
    for (at, (got, expected)) in got.iter().zip(expected.iter()).enumerate() {
        let both_nan = [got, expected].iter().all(|bits| matches!(id.d.decode(*bits), Decoded::Nan { .. }));
        let (hex_got, hex_expected) = (id.d.hex(got), id.d.hex(expected));
        assert!(got == expected || both_nan, "{id} {what}: element {at} is {hex_got}, expected {hex_expected}");
    }
}

fn chains() {
    const STEPS: u32 = 3;
    let device = device();
    for id in LAVAPIPE_CONFIGURATIONS {
        let operation = operation(&device, id);
        let (m, n, k) = operation.id.shape.sizes();
        let steps = STEPS as usize;
        let mut wide = operation.id.clone();
        wide.shape.k *= STEPS;
        let long = batch(&mut Random(11), &wide, 100, Inputs::Moderate);
        let chained = device.execute_chained(&operation, &long, STEPS).unwrap();
        let mut c = long.c.clone();
        for step in 0..steps {
            let a = (0..100 * m * k).map(|at| long.a.get(at / k * k * steps + step * k + at % k));
            let b = (0..100 * k * n).map(|at| long.b.get(at / (k * n) * k * n * steps + step * k * n + at % (k * n)));
            let batch = TileBatch {
                tiles: 100,
                a: Elements::from_bits(operation.id.a, a),
                b: Elements::from_bits(operation.id.b, b),
                c,
                scale_a: None,
                scale_b: None,
            };
            c = execute(&device, &operation, &batch).unwrap();
        }
        assert_eq!(chained, c, "{id}");
        assert!(device.execute_chained(&operation, &long, 2).unwrap_err().is_invalid());
        assert!(device.execute_chained(&operation, &long, 0).unwrap_err().is_invalid());
    }
}

fn large_batches() {
    let device = device();
    for id in ["coopmat.m8n8k8.u32.u8.u8.u32", "coopmat.m8n8k8.f32.f16.f16.f32"] {
        let operation = operation(&device, id);
        let mut batch = TileBatch::zeros(&operation, 200_001);
        // C is the number of the element and the products are zero; as an f32, C is finite and not subnormal.
        for (at, bits) in (0..batch.c.len()).zip(0x3f00_0000..) {
            batch.c.set(at, bits);
        }
        assert_eq!(execute(&device, &operation, &batch).unwrap(), batch.c, "{id}");
    }
}

fn fill_values() {
    let device = device();
    let operation = operation(&device, "coopmat.m8n8k8.u32.u8.u8.u32");
    let mut batch = TileBatch::zeros(&operation, 3);
    for (at, bits) in (0..192).zip([0xaaaa_aaaa_u64, 0x5555_5555, 0].into_iter().flat_map(|bits| [bits; 64])) {
        batch.c.set(at, bits);
    }
    assert_eq!(execute(&device, &operation, &batch).unwrap(), batch.c);
}

fn time_limit() {
    let device = only_device(&VulkanBackend::new().with_timeout(Duration::from_nanos(1)));
    let operation = operation(&device, "coopmat.m8n8k8.f16.f16.f16.f16");
    let batch = TileBatch::zeros(&operation, 100_000);
    // On a loaded machine the work may finish before the wait for it starts.
    let error = (0..1000).find_map(|_| execute(&device, &operation, &batch).err()).expect("1 ns is not enough");
    assert!(error.is_timed_out() && error.to_string().contains("not finished within 1ns"), "{error}");
    let error = execute(&device, &operation, &batch).unwrap_err();
    assert!(error.is_device_lost() && error.to_string().contains("given up earlier"), "{error}");
}

fn hashes() {
    let device = device();
    let hashes: std::collections::BTreeSet<String> =
        device.operations().values().map(|operation| device.code().unwrap().kernel_hash(operation).unwrap()).collect();
    assert_eq!(hashes.len(), device.operations().len());
    assert!(hashes.iter().all(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())));
}

fn no_loader() {
    let refusal = only_refusal(&VulkanBackend::new().with_loader("/nonexistent/libvulkan.so.1"));
    assert!(refusal.reason.is_missing_driver());
    let text = refusal.reason.to_string();
    assert!(text.starts_with("not found: /nonexistent/libvulkan.so.1: cannot open"), "{text}");
    assert!(refusal.help.unwrap().contains("/nonexistent/libvulkan.so.1"));
    let junk = only_refusal(&VulkanBackend::new().with_loader(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")));
    assert!(junk.reason.is_missing_driver(), "{}", junk.reason);
}

fn no_driver() {
    let refusal = only_refusal(&VulkanBackend::new());
    assert!(refusal.reason.is_missing_driver());
    let text = refusal.reason.to_string();
    assert!(text.starts_with("no Vulkan driver (ICD) was found; VK_DRIVER_FILES is set, and only "), "{text}");
    assert!(text.ends_with("none_icd.json was searched"), "{text}");
    assert!(refusal.help.is_some());
}

fn no_hardware() {
    let refusal = only_refusal(&VulkanBackend::new());
    assert!(refusal.reason.is_missing_driver());
    let text = refusal.reason.to_string();
    assert_eq!(text, "the Vulkan drivers found no device (ERROR_INITIALIZATION_FAILED)");
    assert!(refusal.help.is_some());
}

/// The only refusal of a device with scalar arithmetic but no matrices.
fn without_matrices() -> mxprobe_api::Refusal {
    let device = device();
    assert!(device.operations().is_empty());
    assert!(
        device.scalars().unwrap().members().iter().any(|scalar| scalar.id.to_string() == "scalar.f32"),
        "{:?}",
        device.scalars().unwrap().members()
    );
    let [refusal] = device.refusals() else { panic!("{:?}", device.refusals()) };
    assert!(refusal.reason.is_unsupported());
    assert_eq!(refusal.what, "vulkan:0 VK_KHR_cooperative_matrix");
    refusal.clone()
}

fn no_extension(driver: &str) {
    let refusal = without_matrices();
    let text = refusal.reason.to_string();
    assert!(text.starts_with(&format!("driver {driver} Mesa ")), "{text}");
    assert!(text.ends_with("has no VK_KHR_cooperative_matrix"), "{text}");
}

fn no_feature() {
    let refusal = without_matrices();
    let text = refusal.reason.to_string();
    assert!(
        text.ends_with(
            "lists VK_KHR_cooperative_matrix and 4 configurations, and its feature cooperativeMatrix is false"
        ),
        "{text}"
    );
    assert!(refusal.help.unwrap().contains("LP_NATIVE_VECTOR_WIDTH"));
}

fn no_layers() {
    let (devices, refusals) = VulkanBackend::new().devices();
    assert_eq!((devices.len(), refusals.len()), (1, 1));
    assert_eq!(refusals[0].reason.to_string(), "the Vulkan validation layers are not installed");
}

fn nothing_written() {
    let device = device();
    for operation in device.operations().values() {
        let error = execute(&device, operation, &TileBatch::zeros(operation, 3)).unwrap_err();
        assert!(error.is_nothing_written(), "{error}");
        assert!(error.to_string().starts_with(&operation.id.to_string()), "{error}");
        assert!(device.self_test(operation).unwrap_err().is_nothing_written());
    }
}

/// Chains end in the same bits as that many executions, on one workgroup and on the fastest number of workgroups.
fn timed() {
    let device = device();
    let mut random = Random(7);
    for operation in device.operations().values().filter(|operation| operation.id.c == operation.id.d) {
        let (m, n, k) = operation.id.shape.sizes();
        for (tiles, steps, span) in [(1, 1, Span::One), (5, 11, Span::One), (64, 16, Span::All)] {
            let operands = batch(&mut random, &operation.id, tiles, Inputs::Moderate);
            let timed = time(&device, operation, &Load { operands: &operands, steps, span }).unwrap();
            let mut batch = TileBatch::zeros(operation, timed.pattern.len());
            let copy = |to: &mut Elements, from: &Elements, at: usize, tile: usize, size: usize| {
                (0..size).for_each(|i| to.set(at * size + i, from.get(tile * size + i)));
            };
            for (at, [a, b, c]) in timed.pattern.iter().enumerate() {
                copy(&mut batch.a, &operands.a, at, *a, m * k);
                copy(&mut batch.b, &operands.b, at, *b, k * n);
                copy(&mut batch.c, &operands.c, at, *c, m * n);
            }
            for _ in 0..steps {
                batch.c = execute(&device, operation, &batch).unwrap();
            }
            assert_eq!(timed.clock, Clock::Device, "lavapipe has timestamps");
            assert!(timed.elapsed_ns > 0.0 && timed.chains(&operation.id) >= timed.pattern.len());
            for at in 0..timed.d.len() {
                assert_eq!(timed.d.get(at), batch.c.get(at % batch.c.len()), "{}: element {at}", operation.id);
            }
        }
    }
}

fn speed() {
    let start = Instant::now();
    let device = device();
    println!("discovery: {:.3} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let operation = operation(&device, LAVAPIPE_CONFIGURATIONS[1]);
    device.self_test(&operation).unwrap();
    println!("open, compile and self-test: {:.3} s", start.elapsed().as_secs_f64());
    for operation in device.operations().values() {
        let operands = batch(&mut Random(1), &operation.id, 1 << 19, Inputs::Moderate);
        execute(&device, operation, &operands).unwrap();
        let best = (0..3)
            .map(|_| {
                let start = Instant::now();
                execute(&device, operation, &operands).unwrap();
                start.elapsed()
            })
            .min()
            .unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = operands.tiles as f64 / best.as_secs_f64() / 1e6;
        println!("{}: {rate:.2} million tiles/s", operation.id);
    }
}
