//! Tests of how drivers compile kernels, whether or not they can run them: instructions and validation messages.

use std::{fmt::Write as _, path::Path};

use mxprobe_api::{
    Device, DeviceKind, Elements, GemmOperands, Load, Operation, Span, TileBatch, call, execute, multiply, time,
};
use mxprobe_vulkan::VulkanBackend;

use crate::cases::{device, only_device};

/// Compares every operation, the matrix instructions of its kernel, and the refusals with a golden file.
pub(crate) fn instructions(golden: &str) {
    let device = device();
    let info = device.info();
    assert_eq!(info.kind, DeviceKind::Hardware);
    let mut text =
        format!("{} {} {}\n", info.fingerprint, info.aliases.join(" "), info.properties["subgroup_size_used"]);
    for key in ["denorm_preserve_bits", "denorm_flush_to_zero_bits", "rounding_mode_rte_bits", "rounding_mode_rtz_bits"]
    {
        writeln!(text, "{key}: {}", info.properties[key]).unwrap();
    }
    writeln!(text, "configurations listed: {}", info.properties["configurations_listed"]).unwrap();
    for refusal in device.refusals() {
        writeln!(text, "refused: {}: {}", refusal.what, refusal.reason).unwrap();
    }
    for operation in device.operations().values() {
        let issued = device.code().unwrap().issued(operation).unwrap().expect("a driver that shows its assembly");
        let (found, assembly) = (issued.matrix, issued.listing.expect("an assembly"));
        let found: Vec<String> =
            found.iter().map(|(name, count)| format!("{count} {name}{}", modifiers(&assembly, name))).collect();
        assert!(!found.is_empty(), "{} has no matrix instruction:\n{assembly}", operation.id);
        writeln!(text, "{}: {}", operation.id, found.join(", ")).unwrap();
    }
    let version = &info.driver.as_ref().unwrap().version;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{golden}.txt"));
    if std::env::var_os("MXPROBE_BLESS").is_some() {
        std::fs::write(&path, format!("written with {version}\n{text}")).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let (written_with, expected) = stored.split_once('\n').unwrap_or_default();
    assert!(
        text == expected,
        "{} was {written_with} and differs with {version}; MXPROBE_BLESS=1 rewrites it. Now:\n{text}",
        path.display()
    );
}

/// The modifiers of RDNA instructions: which integers are signed, and whether the sum saturates.
fn modifiers(assembly: &str, name: &str) -> String {
    let line = assembly.lines().find(|line| line.contains(name)).expect("found before");
    let words = line.split_whitespace().filter(|word| word.starts_with("neg_") || *word == "clamp");
    words.map(|word| format!(" {word}")).collect()
}

/// Checks that the layers do not report any operation, but do report a wrong kernel, which proves that the layers are
/// active.
pub(crate) fn validates(computes: bool) {
    let backend = VulkanBackend::new();
    let device = only_device(&backend);
    for operation in device.operations().values() {
        device.compile(operation).unwrap();
        device.code().unwrap().issued(operation).unwrap();
        let result = execute(&device, operation, &TileBatch::zeros(operation, 100));
        assert_eq!(result.is_ok(), computes);
        if operation.id.c == operation.id.d {
            device.issued_when_timed(operation).unwrap();
            let (a, b) = (Elements::zeros(operation.id.a, 100), Elements::zeros(operation.id.b, 100));
            let c = Elements::zeros(operation.id.c, 100);
            let product = GemmOperands { m: 10, n: 10, k: 10, a: &a, b: &b, c: &c, scale_a: None, scale_b: None };
            assert_eq!(multiply(&device, operation, &product).is_ok(), computes);
            // Absent hardware writes no timestamps.
            for span in [Span::One, Span::All].into_iter().filter(|_| computes) {
                let operands = TileBatch::zeros(operation, 3);
                time(&device, operation, &Load { operands: &operands, steps: 2, span }).unwrap();
            }
            let mut wide = operation.id.clone();
            wide.shape.k *= 2;
            let batch = TileBatch::zeros(&Operation::new(wide, "subgroup"), 2);
            assert_eq!(device.execute_chained(operation, &batch, 2).is_ok(), computes);
        }
        assert_eq!(backend.validation_messages(), Vec::<String>::new(), "{}", operation.id);
    }
    for scalar in device.scalars().unwrap().members() {
        for function in scalar.functions.keys() {
            let operands = Elements::zeros(scalar.id.format, 100 * function.arity());
            match call(&device, scalar, *function, &operands) {
                Ok(_) => assert!(computes),
                Err(error) => assert!(!computes && error.is_nothing_written(), "{error}"),
            }
            assert_eq!(backend.validation_messages(), Vec::<String>::new(), "{function} of {}", scalar.id);
        }
    }
    let unsigned = |operation: &&Operation| operation.id.to_string().ends_with(".u32.u8.u8.u32");
    let operation = device.operations().values().find(unsigned).expect("every driver here has it").clone();
    device.compile_with_other_saturation(&operation).ok();
    let messages = backend.validation_messages();
    assert!(messages.iter().any(|message| message.contains("MulAddKHR-10060")), "{messages:?}");
    drop(device);
    assert_eq!(backend.validation_messages(), messages, "destroying the device");
}

/// The timing shader has four sums, and contains the unit's instructions at least four times as often as a single tile.
pub(crate) fn timed_instructions() {
    let device = device();
    for operation in device.operations().values().filter(|operation| operation.id.c == operation.id.d) {
        let once = device.code().unwrap().issued(operation).unwrap().expect("this driver shows its code");
        let timed = device.issued_when_timed(operation).unwrap().expect("this driver shows its code");
        for (name, count) in &once.matrix {
            // A driver may unroll the loop, but must not drop a sum.
            let there = timed.matrix.get(name).copied().unwrap_or(0);
            assert!(there >= 4 * count && there.is_multiple_of(4), "{}: {name} {there} times", operation.id);
        }
    }
}
