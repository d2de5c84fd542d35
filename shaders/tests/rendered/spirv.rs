//! The SPIR-V shaders that are shown, disassembled.

use std::collections::BTreeMap;

use mxprobe_api::{Format, OperationId, ScalarFunction, ScalarId};
use mxprobe_shaders::spirv::{Asked, Component, FloatMode, Kernel, scalar, throughput_loop};
use rspirv::binary::{Assemble as _, Disassemble as _};
use sha2::{Digest, Sha256};

use crate::{Files, add, compare};

/// The assembly of a module. Types, constants, variables and functions have names; the digest, that of the words, is
/// the `kernel_sha256` of reports.
fn disassembled(words: &[u32]) -> String {
    let module = rspirv::dr::load_words(words).unwrap_or_else(|error| panic!("{error}"));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let assembly = module.disassemble();
    let lines: Vec<Vec<&str>> =
        assembly.lines().filter(|line| !line.starts_with(';')).map(|line| line.split_whitespace().collect()).collect();
    let names = names(&lines);
    let mut text = String::from("; SPIR-V 1.6\n");
    for line in lines {
        let words: Vec<&str> = line.iter().map(|word| names.get(word).map_or(*word, String::as_str)).collect();
        text.push_str(&words.join(" "));
        text.push('\n');
    }
    text + &format!("; {} words, SHA-256 {digest}\n", words.len())
}

/// Names of ids, from the instructions that define and decorate them; ids of values in the code remain numbers.
fn names<'a>(lines: &[Vec<&'a str>]) -> BTreeMap<&'a str, String> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for line in lines {
        let named = |id: &str| names.get(id).map_or(id, String::as_str).trim_start_matches('%').to_owned();
        let (id, name) = match line[..] {
            ["OpEntryPoint", _, id, ..] => (id, "main".to_owned()),
            ["OpDecorate", id, "BuiltIn", what] => (id, what.to_owned()),
            ["OpDecorate", id, "Binding", binding] => (id, format!("binding_{binding}")),
            [id, "=", "OpExtInstImport", _] => (id, "glsl".to_owned()),
            [id, "=", "OpTypeVoid"] => (id, "void".to_owned()),
            [id, "=", "OpTypeBool"] => (id, "bool".to_owned()),
            [id, "=", "OpTypeFunction", _] => (id, "function".to_owned()),
            [id, "=", "OpTypeInt", width, sign] => (id, format!("{}{width}", if sign == "0" { 'u' } else { 's' })),
            [id, "=", "OpTypeFloat", width] => (id, format!("f{width}")),
            [id, "=", "OpTypeFloat", _, encoding] => (id, encoding.to_owned()),
            [id, "=", "OpTypeVector", element, count] => (id, format!("{}x{count}", named(element))),
            [id, "=", "OpTypeRuntimeArray", element] => (id, format!("array_{}", named(element))),
            [id, "=", "OpTypeStruct", ref members @ ..] => {
                let members: Vec<String> = members.iter().map(|member| named(member)).collect();
                (id, format!("struct_{}", members.join("_")))
            }
            [id, "=", "OpTypePointer", class, to] => (id, format!("{class}_{}", named(to))),
            [id, "=", "OpTypeCooperativeMatrixKHR", component, _, rows, columns, usage] => {
                let number = |id| named(id).trim_start_matches("u32_").to_owned();
                let usage = ["A", "B", "Accumulator"][number(usage).parse::<usize>().expect("a use")];
                (id, format!("{usage}_{}x{}_{}", number(rows), number(columns), named(component)))
            }
            [id, "=", "OpConstant", ty, value] => (id, format!("{}_{value}", named(ty))),
            [id, "=", "OpConstantNull", ty] => (id, format!("{}_null", named(ty))),
            [id, "=", "OpVariable", _, "PushConstant"] => (id, "pushed".to_owned()),
            _ => continue,
        };
        let name = format!("%{name}");
        assert!(!names.values().any(|known| *known == name), "{name} twice");
        names.insert(id, name);
    }
    names
}

/// A configuration with its id.
fn configuration(shape: (u32, u32, u32), components: [Component; 4], saturating: bool) -> (OperationId, Kernel) {
    let [a, b, c, d] = components.map(Component::format);
    let id = OperationId::new("coopmat", shape, d, a, b, c);
    let id = if saturating { id.with("satfinite") } else { id };
    (id, Kernel { shape, components, saturating, subgroup_size: 32, mode: None })
}

/// Every component, with signs and saturation, with sums in C's format and in another, and with a mode.
fn configurations() -> Vec<(OperationId, Kernel)> {
    use Component::{Bf16, E4m3, E5m2, F16, F32, F64, S8, S16, S32, U8, U32};
    let shape = (16, 16, 16);
    let mut all: Vec<(OperationId, Kernel)> = [
        [F16, F16, F16, F16],
        [F16, F16, F32, F32],
        [F16, F16, F16, F32],
        [Bf16, Bf16, F32, F32],
        [E4m3, E5m2, F32, F32],
        [F64, F64, F64, F64],
        [S8, S8, S32, S32],
        [U8, S8, S32, S32],
        [U8, U8, U32, U32],
        [S16, S16, S32, S32],
    ]
    .map(|components| configuration(shape, components, false))
    .into();
    all.push(configuration((16, 8, 32), [S8, S8, S32, S32], true));
    let (id, kernel) = configuration(shape, [F16, F16, F32, F32], false);
    let mode = (FloatMode::RoundTowardZero, vec![16, 32]);
    all.push((id.with(mode.0.qualifier()), Kernel { mode: Some(mode), ..kernel }));
    all
}

/// Every function of f32, one of every other format, and one in every mode.
fn scalars(files: &mut Files) {
    let formats = scalar::COMPONENTS.map(Component::format);
    let mut show = |id: ScalarId, function: ScalarFunction, mode: Option<&Asked>| {
        let words = scalar::words(id.format, function, mode).expect("a scalar format");
        add(files, &format!("scalars/{id}.{function}.spvasm"), disassembled(&words));
    };
    for format in formats {
        let functions = ScalarFunction::of_shaders(format, &formats);
        let functions = functions.filter(|function| format == Format::F32 || *function == ScalarFunction::Add);
        functions.for_each(|function| show(ScalarId::new(format), function, None));
    }
    for mode in FloatMode::ALL {
        let id = mode.words().iter().fold(ScalarId::new(Format::F32), |id, word| id.with(word));
        show(id, ScalarFunction::Add, Some(&(mode, vec![32])));
    }
}

#[test]
fn every_form_of_spirv_is_as_rendered() {
    let mut files = Files::new();
    for (id, kernel) in configurations() {
        add(&mut files, &format!("tiles/{id}.spvasm"), disassembled(&kernel.words(1)));
    }
    for (id, kernel) in configurations().into_iter().filter(|(id, _)| id.c == id.d).take(2) {
        add(&mut files, &format!("chains/{id}.steps2.spvasm"), disassembled(&kernel.words(2)));
        add(&mut files, &format!("products/{id}.spvasm"), disassembled(&kernel.product_words()));
        add(&mut files, &format!("throughput/{id}.spvasm"), disassembled(&kernel.throughput_words()));
    }
    add(&mut files, "throughput/fma.m1n1k1.f32.f32.f32.f32.spvasm", disassembled(&throughput_loop::fma()));
    scalars(&mut files);
    compare("spirv", &files);
}

#[test]
fn a_disassembly_leaves_no_word_out() {
    for (id, kernel) in configurations() {
        for words in [kernel.words(2), kernel.product_words(), kernel.throughput_words()] {
            let mut again = rspirv::dr::load_words(&words).unwrap().assemble();
            // The generator's number: rspirv writes its own.
            again[2] = words[2];
            assert_eq!(again, words, "{id}");
        }
    }
}
