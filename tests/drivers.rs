//! The command on real Vulkan drivers that need no GPU: the findings on lavapipe, the llvmpipe model against the driver
//! on a million dots per configuration, and the reports on the drm shims, which compute nothing.
//!
//! `scripts/vulkan-drivers` unpacks them. If they are missing, every case is reported as ignored, or with
//! `MXPROBE_REQUIRE_VULKAN=1` fails with a message.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

type Case = fn(&Path) -> Result<(), Failed>;

const CASES: [(&str, Case); 9] = [
    ("lavapipe_is_found_to_add_rounded_products_in_order_and_c_last", findings),
    ("lavapipe_f16_equals_the_llvmpipe_model_on_a_million_dots", |run| equal(run, "coopmat.m8n8k8.f16.f16.f16.f16")),
    ("lavapipe_f32_equals_the_llvmpipe_model_on_a_million_dots", |run| equal(run, "coopmat.m8n8k8.f32.f16.f16.f32")),
    ("whole_matrices_on_lavapipe_have_the_bits_of_the_llvmpipe_model", products),
    ("lavapipe_is_identified_up_to_the_bits_of_its_nan", identified),
    ("a_device_that_writes_nothing_is_reported_as_such_and_shows_its_instruction", nothing_written),
    ("a_missing_driver_is_one_error_and_exit_code_3", no_driver),
    ("a_device_without_matrix_units_is_asked_about_its_scalars", no_matrices),
    ("listing_lavapipe_shows_driver_and_operations", listing),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join(".vulkan/run");
    let run = std::env::var_os("MXPROBE_VULKAN_RUN").map_or_else(default, PathBuf::from);
    let there = run.is_file();
    let required = std::env::var_os("MXPROBE_REQUIRE_VULKAN").is_some_and(|value| value == "1");
    let missing = format!("{} is missing: run scripts/vulkan-drivers", run.display());
    let mut trials = vec![Trial::test("the_drivers_are_there_where_they_are_required", move || {
        if required && !there { Err(Failed::from(missing)) } else { Ok(()) }
    })];
    for (name, case) in CASES {
        let run = run.clone();
        let kind = if there { "" } else { "ignored: run scripts/vulkan-drivers first" };
        trials.push(Trial::test(name, move || case(&run)).with_kind(kind).with_ignored_flag(!there));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The command under the drivers' `run` script, without this environment's Vulkan settings.
fn command(run: &Path, driver: &str) -> Command {
    let mut command = Command::new(run);
    for name in
        ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_INSTANCE_LAYERS", "MXPROBE_DEVICE", "LP_NATIVE_VECTOR_WIDTH"]
    {
        command.env_remove(name);
    }
    command.env("MXPROBE_VULKAN_DRIVER", driver).arg(env!("CARGO_BIN_EXE_mxprobe"));
    command
}

fn report(run: &Path, driver: &str, wanted: i32) -> Result<Value, Failed> {
    let output = command(run, driver).args(["run", "--backend", "vulkan", "--format", "json"]).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(wanted) {
        return Err(format!("{:?} instead of {wanted}: {errors}", output.status).into());
    }
    let value: Value = serde_json::from_slice(&output.stdout)?;
    // A report, or a list of one report.
    Ok(match value {
        Value::Array(mut reports) if reports.len() == 1 => reports.remove(0),
        value => value,
    })
}

fn operation<'a>(report: &'a Value, id: &str) -> Result<&'a Value, Failed> {
    let operations = report["operations"].as_array().ok_or("no operations")?;
    operations.iter().find(|operation| operation["id"] == id).ok_or_else(|| format!("no {id}").into())
}

fn finding<'a>(operation: &'a Value, probe: &str) -> Result<&'a Value, Failed> {
    let findings = operation["findings"].as_array().ok_or("no findings")?;
    let finding = findings.iter().find(|finding| finding["probe"] == probe);
    Ok(&finding.ok_or_else(|| format!("no {probe}"))?["value"])
}

fn findings(run: &Path) -> Result<(), Failed> {
    let report = report(run, "lavapipe", 0)?;
    let chain_then_c = serde_json::json!(["c", [7, [6, [5, [4, [3, [2, [0, 1]]]]]]]]);
    for (id, wanted) in [
        (
            "coopmat.m8n8k8.f16.f16.f16.f16",
            vec![
                ("order.tree", chain_then_c.clone()),
                ("products.exact", "rounded to nearest".into()),
                ("products.overflow", true.into()),
                ("rounding.result", "RNE".into()),
                ("subnormals.a", "kept".into()),
                ("subnormals.c", "kept".into()),
                ("subnormals.d", "kept".into()),
            ],
        ),
        (
            "coopmat.m8n8k8.f32.f16.f16.f32",
            vec![
                ("order.tree", chain_then_c),
                ("rounding.result", "RNE".into()),
                ("subnormals.a", "kept".into()),
                ("subnormals.c", "zero".into()),
            ],
        ),
        ("coopmat.m8n8k8.s32.s8.s8.s32", vec![("integers.exact", true.into()), ("integers.overflow", "wraps".into())]),
        ("coopmat.m8n8k8.u32.u8.u8.u32", vec![("integers.exact", true.into()), ("integers.overflow", "wraps".into())]),
    ] {
        let operation = operation(&report, id)?;
        for (probe, value) in wanted {
            let found = finding(operation, probe)?;
            if *found != value {
                return Err(format!("{id}: {probe} is {found}, not {value}").into());
            }
        }
    }
    Ok(())
}

/// Random bits, moderate values, subnormals and cancellations, as lines for `eval`.
fn dots(d_is_f16: bool, count: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = String::new();
    for index in 0..count {
        let kind = index % 4;
        let element = |bits: u64| match kind {
            // Any bits except NaN, whose payload is up to the driver.
            0 => {
                if bits & 0x7c00 == 0x7c00 {
                    bits & 0xfc00
                } else {
                    bits & 0xffff
                }
            }
            1 => 0x3800 + (bits & 0x87ff),
            2 => bits & 0x87ff,
            _ => 0x3c00 | bits & 0x8003,
        };
        let list =
            |values: Vec<u64>| values.iter().map(|bits| format!("\"{bits:#06x}\"")).collect::<Vec<_>>().join(",");
        let a = list((0..8).map(|_| element(next())).collect());
        let b = list((0..8).map(|_| element(next())).collect());
        let c = if d_is_f16 {
            format!("{:#06x}", element(next()))
        } else {
            let bits = next();
            let exponent = if kind == 2 { bits >> 24 & 3 } else { 110 + (bits >> 24 & 31) };
            format!("{:#010x}", bits & 0x807f_ffff | exponent << 23)
        };
        text += &format!("{{\"a\":[{a}],\"b\":[{b}],\"c\":\"{c}\"}}\n");
    }
    text
}

fn eval(mut command: Command, device: &str, operation: &str, input: &str) -> Result<String, Failed> {
    let mut child = command
        .args(["eval", "--device", device, "--op", operation])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or("a pipe")?;
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "the writer panicked")??;
    if !output.status.success() {
        return Err(format!("{device}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn equal(run: &Path, id: &str) -> Result<(), Failed> {
    let d_is_f16 = id.contains(".f16.f16.f16.f16");
    let count = 1_000_000;
    let input = dots(d_is_f16, count);
    let driver = eval(command(run, "lavapipe"), "vulkan:0", id, &input)?;
    let model = eval(Command::new(env!("CARGO_BIN_EXE_mxprobe")), "sim:llvmpipe", id, &input)?;
    if driver.lines().count() != count {
        return Err(format!("{} answers to {count} dots", driver.lines().count()).into());
    }
    let wrong: Vec<_> =
        input.lines().zip(driver.lines().zip(model.lines())).filter(|(_, (driver, model))| driver != model).collect();
    match wrong.first() {
        None => Ok(()),
        Some((dot, (driver, model))) => {
            Err(format!("{} of {count} differ; first {dot}: driver {driver}, model {model}", wrong.len()).into())
        }
    }
}

/// Compares `gemm` on the driver and on its model, for seeded matrices of random sizes.
fn products(run: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut state = 5u64;
    let mut size = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        1 + (state >> 33) % 90
    };
    for (id, words) in [
        ("f16.f16.f16.f16", 1),
        ("f16.f16.f16.f16", 2),
        ("f32.f16.f16.f32", 1),
        ("f32.f16.f16.f32", 3),
        ("s32.s8.s8.s32", 1),
        ("u32.u8.u8.u32", 1),
    ] {
        let (id, sizes) = (format!("coopmat.m8n8k8.{id}"), format!("{},{},{}", size(), size(), size()));
        let interval = if id.contains("u8") { "0,200" } else { "-100,100" };
        let product = |mut command: Command, device: &str| -> Result<Vec<u8>, Failed> {
            let out = folder.path().join(device.replace(':', "-"));
            let output = command
                .args(["gemm", "--device", device, "--op", &id, "--random", &sizes, "--interval", interval, "--bits"])
                .args(["--words", &words.to_string(), "--out"])
                .arg(&out)
                .output()?;
            if !output.status.success() {
                return Err(format!("{device} {id} {sizes}: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
            Ok(std::fs::read(out)?)
        };
        let driver = product(command(run, "lavapipe"), "vulkan:0")?;
        if driver != product(Command::new(env!("CARGO_BIN_EXE_mxprobe")), "sim:llvmpipe")? {
            return Err(format!("{id}, m,n,k = {sizes}, {words} words: driver and model differ").into());
        }
    }
    Ok(())
}

/// Which of two NaN lavapipe keeps depends on the place in the tile. With `--nan any` every operation is identified,
/// and a million dots of each have the bits of the written model; without it, `identify` suggests the option.
fn identified(run: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("lavapipe.toml");
    let said = |arguments: &[&str], code: i32| -> Result<String, Failed> {
        let mut command = command(run, "lavapipe");
        let output = command.args(arguments).args(["--device", "vulkan:0", "-q"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.code() == Some(code) {
            return Ok(text);
        }
        Err(format!("{arguments:?}: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
    };
    let path = model.to_str().expect("a temporary folder's name is text");
    let f32 = ["--op", "coopmat.m8n8k8.f32.f16.f16.f32"];
    let bits = said(&[&["identify", "--out", path], &f32[..]].concat(), 1)?;
    if !bits.contains("`--nan any`") {
        return Err(format!("no hint in {bits}").into());
    }
    let any = said(&["identify", "--out", path, "--nan", "any"], 0)?;
    if !any.contains("6 of 6 operations identified") {
        return Err(any.into());
    }
    let verified = said(&["verify", "--model", path, "--nan", "any", "--count", "1000000"], 0)?;
    if verified.matches("no mismatch").count() != 6 || !verified.contains("NaN of other bits") {
        return Err(verified.into());
    }
    Ok(())
}

fn nothing_written(run: &Path) -> Result<(), Failed> {
    let report = report(run, "radv:gfx1201", 4)?;
    let operation = operation(&report, "coopmat.m16n16k16.f32.f16.f16.f32")?;
    let first = &operation["findings"][0];
    let reason = first["reason"].as_str().unwrap_or_default();
    if first["outcome"] != "failed" || !reason.contains("still hold what was in memory before") {
        return Err(format!("the first finding is {first}").into());
    }
    let instruction = finding(operation, "instruction")?;
    if *instruction != serde_json::json!({ "v_wmma_f32_16x16x16_f16": 1 }) {
        return Err(format!("the instruction is {instruction}").into());
    }
    let measured = report["operations"].as_array().into_iter().flatten().flat_map(|operation| {
        operation["findings"].as_array().into_iter().flatten().filter(|finding| finding["outcome"] == "measured")
    });
    match measured.into_iter().find(|finding| finding["probe"] != "instruction" && finding["probe"] != "emulation") {
        None => Ok(()),
        Some(finding) => Err(format!("something was measured on a device that computes nothing: {finding}").into()),
    }
}

fn no_driver(run: &Path) -> Result<(), Failed> {
    for (driver, part) in [("none", "no Vulkan driver (ICD) was found"), ("radv", "found no device")] {
        let output = command(run, driver).args(["--backend", "vulkan"]).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(3) || !errors.contains(part) || !errors.contains("help: ") {
            return Err(format!("{driver}: {:?}: {errors}", output.status).into());
        }
    }
    Ok(())
}

/// Scalar arithmetic is probed, but this simulated device computes nothing; the report says why it has no matrix
/// operations.
fn no_matrices(run: &Path) -> Result<(), Failed> {
    let output = command(run, "radv:navi21").args(["--backend", "vulkan", "--format", "json"]).output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let operations = report["operations"].as_array().cloned().unwrap_or_default();
    let scalars = operations.iter().filter(|found| found["id"].as_str().is_some_and(|id| id.starts_with("scalar.")));
    let refused = report["refusals"].to_string();
    if output.status.code() != Some(4)
        || operations.is_empty()
        || scalars.count() != operations.len()
        || !refused.contains("has no VK_KHR_cooperative_matrix")
    {
        return Err(format!("{:?}: {report}", output.status).into());
    }
    Ok(())
}

fn listing(run: &Path) -> Result<(), Failed> {
    let output = command(run, "lavapipe").args(["list", "--backend", "vulkan", "--json"]).output()?;
    let listing: Value = serde_json::from_slice(&output.stdout)?;
    let device = &listing["devices"][0];
    let operations = device["operations"].as_array().map_or(0, Vec::len);
    if device["driver"]["name"] != "llvmpipe" || device["kind"] != "software" || operations < 4 {
        return Err(format!("the listing is {listing}").into());
    }
    Ok(())
}
