//! Every shader compiles for Vulkan, Metal and Direct3D 12 in the way that wgpu compiles it, without a GPU.
#![allow(missing_docs)]

use mxprobe_api::Format;
use mxprobe_shaders::wgsl::{Kernel, scalar};
use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Compiles a shader as wgpu would, for each API whose shading language has the formats.
fn compile(source: &str, formats: [Format; 2]) {
    let capabilities = Capabilities::SHADER_FLOAT16 | Capabilities::FLOAT64 | Capabilities::COOPERATIVE_MATRIX;
    let options = naga::front::wgsl::Options { capabilities, ..naga::front::wgsl::Options::new() };
    let module = naga::front::wgsl::Frontend::new_with_options(options).parse(source);
    let module = module.unwrap_or_else(|error| panic!("{}\n{source}", error.emit_to_string(source)));
    let info = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
    let info = info.unwrap_or_else(|error| panic!("{}\n{source}", error.emit_to_string(source)));

    let words = spv::write_vec(&module, &info, &spv::Options::default(), None).expect("SPIR-V");
    if source.contains("coop_mat") {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let name = b"SPV_KHR_cooperative_matrix";
        let extension = bytes.windows(name.len()).any(|window| window == name);
        assert!(extension, "the SPIR-V does not declare its extension:\n{source}");
    }
    // Metal has no f64, and HLSL has no cooperative matrices.
    if !formats.contains(&Format::F64) {
        let options = msl::Options { lang_version: (2, 3), fake_missing_bindings: true, ..msl::Options::default() };
        let text = msl::write_string(&module, &info, &options, &msl::PipelineOptions::default());
        text.unwrap_or_else(|error| panic!("Metal: {error}\n{source}"));
    }
    if !source.contains("coop_mat") {
        let options = hlsl::Options { shader_model: hlsl::ShaderModel::V6_2, ..hlsl::Options::default() };
        let pipeline = hlsl::PipelineOptions::default();
        let mut text = String::new();
        hlsl::Writer::new(&mut text, &options, &pipeline)
            .write(&module, &info, None)
            .unwrap_or_else(|error| panic!("HLSL: {error}\n{source}"));
    }
}

#[test]
fn every_configuration_that_can_be_said_compiles() {
    for size in [8, 16] {
        for ab in [Format::F16, Format::F32] {
            for cr in [Format::F16, Format::F32] {
                let kernel = Kernel { size, formats: [ab, cr], workgroup_size: 32 };
                compile(&kernel.shader(), kernel.formats);
            }
        }
    }
}

#[test]
fn every_function_compiles_for_every_api_that_has_its_formats() {
    let formats = [Format::F16, Format::F32, Format::F64];
    let mut compiled = 0;
    for scalar in scalar::scalars(&formats) {
        for function in scalar.functions.keys() {
            let format = scalar.id.format;
            compile(&scalar::shader(format, *function), [format, function.result(format)]);
            compiled += 1;
        }
    }
    // All functions of shaders for f16 and f32; only one elementary function for f64.
    assert_eq!(compiled, 26 + 26 + 19);
}
