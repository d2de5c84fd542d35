//! The conformance suite on the units of this CPU.
#![allow(missing_docs)]

use mxprobe_api::Backend;
use mxprobe_conformance::{check_backend, check_device};
use mxprobe_cpu::CpuBackend;

#[test]
fn every_operation_and_ability_of_this_cpu_holds_what_is_asked_of_every_device() {
    assert_eq!(check_backend(&CpuBackend::new()), []);
    for device in CpuBackend::new().discover().devices {
        assert!(device.scalars().is_some() && device.timing().is_some() && device.matrices().is_some());
        assert_eq!(check_device(device.as_ref(), |_| true), []);
    }
}
