//! Device discovery by all backends.

use std::{collections::BTreeSet, thread};

use crate::{
    isolate::Described,
    report::{ListedDevice, RefusalRecord},
    session::listed,
};

use mxprobe_api::Sizes;

use crate::cli::choose::{
    process,
    registry::{Entry, MODELS},
    target::{Origin, Search, Target},
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
    /// The selectors of devices with operations that leave sizes open.
    free: BTreeSet<String>,
    /// The sizes given to those operations.
    sizes: Sizes,
}

impl Found {
    /// The results of a search that found nothing.
    pub(crate) fn nothing(backend: &str) -> Self {
        Self {
            backend: backend.to_owned(),
            devices: Vec::new(),
            refusals: Vec::new(),
            free: BTreeSet::new(),
            sizes: Sizes::default(),
        }
    }

    fn of(entry: &Entry, devices: Vec<Described>, refusals: Vec<RefusalRecord>, sizes: &Sizes) -> Self {
        let free = devices.iter().filter(|device| !device.free.is_empty());
        let free = free.map(|device| device.info.selector.clone()).collect();
        let devices = devices.into_iter().map(|device| listed(&device.with(sizes))).collect();
        Self { backend: entry.name.to_owned(), devices, refusals, free, sizes: sizes.clone() }
    }

    /// Chooses one of its devices, which `entry` found.
    pub(crate) fn target(&self, entry: &'static Entry, listed: &ListedDevice) -> Target {
        let selector = listed.device.selector.clone();
        let sizes = self.free.contains(&selector).then(|| self.sizes.clone());
        Target { origin: Origin::Backend(entry), selector, listed: listed.clone(), sizes }
    }
}

/// Asks backends for their devices concurrently, those with drivers each in a process of its own.
///
/// A backend whose process dies or hangs has no devices, and a refusal that says so.
pub(crate) fn discover(entries: &[&'static Entry], search: &Search) -> Vec<Found> {
    let (isolate, sizes) = (search.isolate, &search.sizes);
    thread::scope(|scope| {
        let ask =
            |entry: &'static Entry| if entry.isolated && isolate { apart(entry, sizes) } else { here(entry, sizes) };
        let threads: Vec<_> = entries.iter().map(|entry| scope.spawn(move || ask(entry))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a backend does not panic")).collect()
    })
}

/// Asks a backend in a process of its own.
fn apart(entry: &Entry, sizes: &Sizes) -> Found {
    match process::discover(entry) {
        Ok(found) => {
            let refusals = found.refusals.iter().map(RefusalRecord::from).collect();
            Found::of(entry, found.devices, refusals, sizes)
        }
        Err(error) => {
            let backend = entry.name;
            let refusal = RefusalRecord {
                what: format!("the search for {backend} devices"),
                reason: error.to_string(),
                help: Some(format!("`mxprobe list --backend {backend} --no-isolation` repeats it in one process")),
            };
            Found { refusals: vec![refusal], ..Found::nothing(backend) }
        }
    }
}

/// Asks a backend in this process.
fn here(entry: &Entry, sizes: &Sizes) -> Found {
    let found = entry.backend().discover();
    let devices = found.devices.iter().map(|device| Described::of(device.as_ref())).collect();
    Found::of(entry, devices, found.refusals.iter().map(RefusalRecord::from).collect(), sizes)
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
