//! Devices that fail, so that what becomes of it can be tested: `fault:crash`, `fault:hang`, `fault:lost`, `fault:once`.

use std::{collections::BTreeMap, thread, time::Duration};

use mxprobe_api::{
    Backend, Device, DeviceInfo, DeviceKind, Discovery, Elements, Error, Operation, OperationSet, TileBatch,
};
use mxprobe_sim::SimBackend;

/// The backend of the devices that fail.
pub(crate) struct FaultBackend;

/// A model whose operations fail in the way that the device's name says: all of them, or, with `once`, only the first.
struct FaultDevice {
    fault: &'static str,
    info: DeviceInfo,
    inner: Box<dyn Device>,
}

impl Backend for FaultBackend {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn discover(&self) -> Discovery {
        let devices = ["crash", "hang", "lost", "once"].into_iter().map(|fault| {
            let inner = SimBackend.open("fma-chain").expect("the model comes with the program");
            let info = DeviceInfo {
                backend: "fault".into(),
                selector: format!("fault:{fault}"),
                name: format!("device that fails: {fault}"),
                fingerprint: format!("fault-{fault}"),
                kind: DeviceKind::Software,
                emulated: false,
                aliases: Vec::new(),
                driver: None,
                properties: BTreeMap::new(),
            };
            Box::new(FaultDevice { fault, info, inner }) as Box<dyn Device>
        });
        Discovery { devices: devices.collect(), refusals: Vec::new() }
    }
}

impl Device for FaultDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn operations(&self) -> &OperationSet {
        self.inner.operations()
    }

    fn execute(&self, operation: &Operation, batch: &TileBatch) -> Result<Elements, Error> {
        let first = self.operations().keys().next() == Some(&operation.id);
        match self.fault {
            "crash" => std::process::abort(),
            "once" if first => std::process::abort(),
            "hang" => loop {
                thread::sleep(Duration::from_secs(1));
            },
            "lost" => Err(Error::device_lost("the device was lost (VK_ERROR_DEVICE_LOST)")),
            _ => self.inner.execute(operation, batch),
        }
    }
}
