//! What each backend found.

use std::{thread, time::Duration};

use mxprobe::{
    report::{DeviceRecord, ListedDevice, OperationRecord, RefusalRecord},
    scalars,
};
use mxprobe_api::Device;
use serde::{Deserialize, Serialize};

use super::{isolation, registry::Entry};

/// How long a backend may look for its devices.
const LIMIT: Duration = Duration::from_secs(30);

/// What one backend found, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The backend.
    pub(crate) backend: String,
    /// Its devices.
    pub(crate) devices: Vec<ListedDevice>,
    /// What cannot be used.
    pub(crate) refusals: Vec<RefusalRecord>,
}

/// Asks backends for their devices: those with drivers at the same time, each in a process of its own.
///
/// A backend whose process dies or hangs has no device, and a refusal that says so.
pub(crate) fn discover(entries: &[&'static Entry], isolate: bool) -> Vec<Found> {
    thread::scope(|scope| {
        let ask = |entry: &'static Entry| {
            if entry.isolated && isolate { isolation::discover(entry.name, LIMIT) } else { here(entry) }
        };
        let threads: Vec<_> = entries.iter().map(|entry| scope.spawn(move || ask(entry))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a backend does not panic")).collect()
    })
}

/// Asks a backend in this process.
pub(crate) fn here(entry: &Entry) -> Found {
    let found = entry.backend().discover();
    Found {
        backend: entry.name.to_owned(),
        devices: found.devices.iter().map(|device| listed(device.as_ref())).collect(),
        refusals: found.refusals.iter().map(RefusalRecord::from).collect(),
    }
}

/// A device as data.
pub(crate) fn listed(device: &dyn Device) -> ListedDevice {
    ListedDevice {
        device: DeviceRecord::from(device.info()),
        operations: device.operations().values().map(OperationRecord::from).collect(),
        scalars: device.scalars().iter().map(|scalar| OperationRecord::from(&scalars::operation(scalar))).collect(),
        refusals: device.refusals().iter().map(RefusalRecord::from).collect(),
    }
}
