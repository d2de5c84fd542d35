//! The model that a device is compared with.

use mxprobe_models::{Model, find, shipped};

use crate::report::{DeviceRecord, OperationRecord};

/// The shipped model of an operation of a device: the model of its fingerprint or name, the one that is called as its
/// name begins, or the only one that has the same operation by the same instruction.
#[must_use]
pub fn model_of(device: &DeviceRecord, operation: &OperationRecord) -> Option<&'static Model> {
    let has = |model: &&'static Model| model.operations.contains_key(&operation.id);
    let named = shipped().iter().find(|model| model.fingerprint == device.fingerprint);
    let named = named.or_else(|| find(&device.name).ok().flatten());
    if let Some(model) = named {
        return Some(model).filter(has);
    }
    let first = device.name.split(' ').next().and_then(|word| find(word).ok().flatten());
    if let Some(model) = first.filter(has) {
        return Some(model);
    }
    let mnemonic = |text: &Option<String>| {
        let word = text.as_deref()?.split([' ', ',']).next()?;
        Some(word.to_ascii_lowercase())
    };
    let wanted = mnemonic(&operation.instruction)?;
    let is_same = |model: &&'static Model| {
        let known = model.operations.get(&operation.id);
        known.is_some_and(|known| mnemonic(&known.instruction).as_ref() == Some(&wanted))
    };
    only(shipped().iter().filter(is_same))
}

/// The item, if there is exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use mxprobe_api::Operation;

    use super::*;

    fn device(name: &str, fingerprint: &str) -> DeviceRecord {
        let mut device =
            DeviceRecord::from(mxprobe_api::Device::info(&mxprobe_sim::ModelDevice::new(shipped()[0].clone())));
        (device.name, device.fingerprint) = (name.into(), fingerprint.into());
        device
    }

    fn of(device: &DeviceRecord, id: &str, instruction: Option<&str>) -> Option<&'static str> {
        let mut operation = Operation::new(id.parse().expect("an id"), "thread");
        operation.instruction = instruction.map(str::to_owned);
        model_of(device, &OperationRecord::from(&operation)).map(|model| model.name.as_str())
    }

    #[test]
    fn a_model_is_known_by_the_device_or_by_the_instruction() {
        let (cpu, gpu) = (device("Some CPU", "x+avx512_bf16"), device("NVIDIA H100 80GB HBM3", "sm_90a"));
        let bf16 = "dot.m1n1k2.f32.bf16.bf16.f32";
        assert_eq!(of(&cpu, bf16, Some("VDPBF16PS zmm, zmm, zmm")), Some("avx512"));
        assert_eq!(of(&cpu, bf16, Some("BFDOT")), Some("arm"));
        assert_eq!(of(&cpu, bf16, None), None);
        assert_eq!(of(&cpu, "amx.m16n16k32.f32.bf16.bf16.f32", Some("TDPBF16PS tmm, tmm, tmm")), Some("amx"));
        assert_eq!(of(&gpu, "mma.m16n8k16.f32.f16.f16.f32", None), Some("h100"));
        let software = device("llvmpipe (LLVM 21.1.8, 256 bits)", "10005-0000-mesa_llvmpipe");
        assert_eq!(of(&software, "coopmat.m8n8k8.f32.f16.f16.f32", None), Some("llvmpipe"));
        assert_eq!(of(&software, "coopmat.m8n8k8.f32.f16.f16.f32.rte", None), None);
        assert_eq!(of(&gpu, bf16, Some("VDPBF16PS zmm, zmm, zmm")), None);
    }
}
