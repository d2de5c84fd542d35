//! The WGSL shaders that are shown: every configuration that it can express, and every function of every format.

use mxprobe_api::{Format, OperationId};
use mxprobe_shaders::wgsl::{Kernel, scalar};

use crate::{Files, add, compare};

#[test]
fn every_form_of_wgsl_is_as_rendered() {
    let mut files = Files::new();
    for size in [8, 16] {
        for ab in [Format::F16, Format::F32] {
            for cd in [Format::F16, Format::F32] {
                let id = OperationId::new("coopmat", (size, size, size), cd, ab, ab, cd);
                let kernel = Kernel { size, formats: [ab, cd], workgroup_size: 32 };
                add(&mut files, &format!("tiles/{id}.wgsl"), kernel.shader());
            }
        }
    }
    for scalar in scalar::scalars(&[Format::F16, Format::F32, Format::F64]) {
        for function in scalar.functions.keys() {
            let name = format!("scalars/{}.{function}.wgsl", scalar.id);
            add(&mut files, &name, scalar::shader(scalar.id.format, *function));
        }
    }
    compare("wgsl", &files);
}
