//! Device discovery by all backends.

use std::thread;

use crate::{
    isolate::Described,
    report::{ListedDevice, RefusalRecord},
    session::listed,
};

use crate::cli::choose::{
    process,
    registry::{Entry, MODELS},
};

/// The results of one backend, as data.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The backend.
    pub(crate) backend: String,
    /// Its devices.
    pub(crate) devices: Vec<ListedDevice>,
    /// Devices and drivers that cannot be used.
    pub(crate) refusals: Vec<RefusalRecord>,
}

/// Asks backends for their devices concurrently, those with drivers each in a process of its own.
///
/// A backend whose process dies or hangs has no devices, and a refusal that says so.
pub(crate) fn discover(entries: &[&'static Entry], isolate: bool) -> Vec<Found> {
    thread::scope(|scope| {
        let ask = |entry: &'static Entry| if entry.isolated && isolate { apart(entry) } else { here(entry) };
        let threads: Vec<_> = entries.iter().map(|entry| scope.spawn(move || ask(entry))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a backend does not panic")).collect()
    })
}

/// Asks a backend in a process of its own.
fn apart(entry: &Entry) -> Found {
    let backend = entry.name.to_owned();
    match process::discover(entry) {
        Ok(found) => Found {
            backend,
            devices: found.devices.iter().map(listed).collect(),
            refusals: found.refusals.iter().map(RefusalRecord::from).collect(),
        },
        Err(error) => {
            let refusal = RefusalRecord {
                what: format!("the search for {backend} devices"),
                reason: error.to_string(),
                help: Some(format!("`mxprobe list --backend {backend} --no-isolation` repeats it in one process")),
            };
            Found { backend, devices: Vec::new(), refusals: vec![refusal] }
        }
    }
}

/// Asks a backend in this process.
fn here(entry: &Entry) -> Found {
    let found = entry.backend().discover();
    Found {
        backend: entry.name.to_owned(),
        devices: found.devices.iter().map(|device| listed(&Described::of(device.as_ref()))).collect(),
        refusals: found.refusals.iter().map(RefusalRecord::from).collect(),
    }
}

/// Lists the backends that were tried, with their results.
pub(crate) fn tried(found: &[Found]) -> String {
    let words: Vec<String> = found
        .iter()
        .map(|found| {
            let noun = if found.backend == MODELS { "model" } else { "device" };
            let result = match found.devices.len() {
                0 => format!("no {noun}"),
                1 => format!("1 {noun}"),
                count => format!("{count} {noun}s"),
            };
            format!("{} ({result})", found.backend)
        })
        .collect();
    format!("tried {}", words.join(", "))
}
