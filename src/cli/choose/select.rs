//! Selects devices and operations from their names.

use crate::{
    isolate::Described,
    report::{DeviceRecord, RefusalRecord},
    session,
};
use mxprobe_api::Error;

use crate::cli::{
    choose::{
        catalog::{self, Found},
        model_file, names, process, program,
        registry::{self, Entry, MODELS},
        selector::{Choice, Selector, is_path, one_of, unquoted},
        target::{Origin, PROGRAMS, Search, Target},
    },
    failure::Failure,
};

pub(crate) use crate::cli::choose::operation::{no_operation, one_operation};
pub(crate) use crate::session::patterns::{asked, is_wanted, operations};

fn parse(text: &str) -> Result<Selector, Failure> {
    if text == "all" {
        return Ok(Selector::All);
    }
    let (backend, name) = match text.split_once(':') {
        Some((backend, name)) => (backend, Some(name)),
        None => (text, None),
    };
    if backend == PROGRAMS {
        return name.map(|command| Selector::Program(command.to_owned())).ok_or_else(|| program::no_command(text));
    }
    let Some(entry) = Entry::named(backend) else {
        if name.is_none() && !registry::LEFT_OUT.contains(&backend) {
            return names::without_backend(text);
        }
        return Err(match name {
            Some(_) => no_backend(backend).cause(format!("in the device `{text}`")),
            _ => no_backend(backend),
        });
    };
    match name {
        None | Some("all") => Ok(Selector::Of(entry, Choice::All)),
        Some("") => Err(Failure::usage(format!("`{text}` names no device after the colon"))
            .help(format!("`mxprobe list --backend {backend}` shows the devices; `{backend}:all` means every one"))),
        Some(name) => Ok(Selector::Of(entry, Choice::Named(unquoted(name).to_owned()))),
    }
}

fn no_backend(name: &str) -> Failure {
    not_among(name, registry::LEFT_OUT)
}

/// Like [`no_backend`], with an explicit list of the backends that this program was built without.
fn not_among(name: &str, left_out: &[&str]) -> Failure {
    if left_out.contains(&name) {
        return Failure::usage(format!("this program was built without the backend `{name}`"))
            .help(format!("its cargo feature adds it: `cargo build --release --features {name}`"));
    }
    Failure::usage(format!("no backend `{name}`; the backends are {}", registry::names().join(", ")))
        .help("`mxprobe list` shows what each backend finds on this machine")
}

/// Returns the backends named by `--backend`; all that are not hidden if it names none.
pub(crate) fn entries(names: &[String]) -> Result<Vec<&'static Entry>, Failure> {
    if names.is_empty() {
        return Ok(registry::entries().iter().filter(|entry| !entry.hidden).collect());
    }
    let mut entries: Vec<&'static Entry> = Vec::new();
    for name in names {
        let entry = Entry::named(name).ok_or_else(|| no_backend(name))?;
        if !entries.iter().any(|known| known.name == entry.name) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Returns the devices named by `--device`, in that order and without duplicates, and everything found on the way.
pub(crate) fn named(
    selectors: &[String],
    backends: &[String],
    search: &Search,
) -> Result<(Vec<Target>, Vec<Found>), Failure> {
    let allowed = entries(backends)?;
    let mut parsed = Vec::new();
    for text in selectors {
        let selector = parse(text)?;
        let of_another = match &selector {
            Selector::All => false,
            Selector::Of(entry, _) => !allowed.iter().any(|known| known.name == entry.name),
            Selector::Program(_) => true,
            Selector::Name(_) => false,
        };
        if of_another && !backends.is_empty() {
            return Err(Failure::usage(format!("`{text}` is not a device of the backend given with `--backend`"))
                .help("omit `--backend`: a device already names its backend"));
        }
        parsed.push((text, selector));
    }
    let meant = |entry: &Entry| {
        parsed.iter().any(|(_, selector)| match selector {
            Selector::All => entry.name != MODELS && !entry.hidden,
            Selector::Of(of, _) => of.name == entry.name,
            Selector::Program(_) => false,
            Selector::Name(_) => !entry.hidden && allowed.iter().any(|known| known.name == entry.name),
        })
    };
    let asked: Vec<&'static Entry> = registry::entries().iter().filter(|entry| meant(entry)).collect();
    let mut found = catalog::discover(&asked, search);
    let mut of_programs: Option<Found> = None;
    let mut targets: Vec<Target> = Vec::new();
    for (text, selector) in &parsed {
        let chosen = match selector {
            Selector::All => {
                let devices = asked.iter().zip(&found).filter(|(entry, _)| entry.name != MODELS && !entry.hidden);
                let devices: Vec<Target> = devices
                    .flat_map(|(entry, found)| found.devices.iter().map(|device| found.target(entry, device)))
                    .collect();
                if devices.is_empty() {
                    return Err(no_usable(&found, &format!("`--device {text}`")));
                }
                devices
            }
            Selector::Of(entry, choice) => {
                let at = asked.iter().position(|known| known.name == entry.name).expect("it was asked");
                resolve(entry, choice, text, &found[at], search)?
            }
            Selector::Name(name) => {
                names::meant(name, &asked, &found)?.ok_or_else(|| names::no_device(name, &asked, &found))?
            }
            Selector::Program(command) => {
                let (devices, refusals) = program::devices(command, &search.sizes)?;
                let all = of_programs.get_or_insert_with(|| Found::nothing(PROGRAMS));
                all.devices.extend(devices.iter().map(|target| target.listed.clone()));
                all.refusals.extend(refusals);
                devices
            }
        };
        for target in chosen {
            if !targets.iter().any(|known| known.selector == target.selector) {
                targets.push(target);
            }
        }
    }
    // Backends that were only searched for a bare name are not reported.
    let has_selector = |found: &Found| {
        parsed.iter().any(|(_, selector)| match selector {
            Selector::All => found.backend != MODELS,
            Selector::Of(entry, _) => entry.name == found.backend,
            Selector::Program(_) | Selector::Name(_) => false,
        })
    };
    found.retain(|found| has_selector(found) || targets.iter().any(|target| target.backend() == found.backend));
    found.extend(of_programs);
    if search.sizes.shape.is_some() && !targets.iter().any(Target::has_free_sizes) {
        let names: Vec<&str> = targets.iter().map(|target| target.selector.as_str()).collect();
        return Err(Failure::usage(format!("`--shape`: {} has no operation with free sizes", names.join(", ")))
            .help("`--op` chooses among the operations of a device; `mxprobe list -v` shows them"));
    }
    Ok((targets, found))
}

/// Returns the devices or the model that a name selects, in the syntax of `--device`; `None` if nothing has that name.
///
/// A name without a backend (`h100`, `RTX 4090`) selects hardware on this machine, or else a model. `all` and `cuda`
/// select several devices.
///
/// # Errors
/// If the name matches several devices but must match one, or selects a device or a model file that cannot be used.
pub(crate) fn find(name: &str, search: &Search) -> Result<Option<Vec<Target>>, Failure> {
    match parse(name)? {
        Selector::Name(bare) => {
            let asked = entries(&[])?;
            names::meant(&bare, &asked, &catalog::discover(&asked, search))
        }
        _ => named(&[name.to_owned()], &[], search).map(|(targets, _)| Some(targets)),
    }
}

pub(super) fn resolve(
    entry: &'static Entry,
    choice: &Choice,
    text: &str,
    found: &Found,
    search: &Search,
) -> Result<Vec<Target>, Failure> {
    let name = match choice {
        Choice::All if found.devices.is_empty() => {
            return Err(no_usable(std::slice::from_ref(found), &format!("`--device {text}`")));
        }
        Choice::All => {
            return Ok(found.devices.iter().map(|device| found.target(entry, device)).collect());
        }
        Choice::Named(name) if entry.name == MODELS && !is_path(name) => {
            if let Some(model) = mxprobe_models::find(name).map_err(Failure::usage)? {
                return names::model(entry, model, name, found);
            }
            name
        }
        Choice::Named(name) => name,
    };
    let records: Vec<&DeviceRecord> = found.devices.iter().map(|device| &device.device).collect();
    match matching(entry.name, name, &records).as_slice() {
        [one] => Ok(vec![found.target(entry, &found.devices[*one])]),
        [] => match describe(entry, name, search.isolate) {
            Ok(described) => {
                let sizes = (!described.free.is_empty()).then(|| search.sizes.clone());
                let mut listed = session::listed(&described.with(&search.sizes));
                listed.device.selector = text.to_owned();
                if entry.name == MODELS {
                    model_file::sign(&mut listed, name);
                }
                Ok(vec![Target { origin: Origin::Backend(entry), selector: text.to_owned(), listed, sizes }])
            }
            Err(_) if found.devices.is_empty() => {
                Err(no_usable(std::slice::from_ref(found), &format!("`--device {text}`")))
            }
            Err(error) => {
                if let Some(near) = Some(name)
                    .filter(|name| entry.name == MODELS && !is_path(name))
                    .and_then(|name| names::nearest_model(name))
                {
                    return Err(Failure::usage(format!("no model `{name}`; did you mean `{MODELS}:{near}`?"))
                        .help(format!("`mxprobe list --backend {MODELS}` shows the models")));
                }
                Err(Failure::usage(error).help(format!("`mxprobe list --backend {}` shows the devices", entry.name)))
            }
        },
        several => Err(one_of(text, several.iter().map(|at| records[*at]))),
    }
}

/// Opens and describes a device that discovery does not list.
fn describe(entry: &Entry, name: &str, isolate: bool) -> Result<Described, Error> {
    if entry.isolated && isolate {
        return process::describe(&format!("{}:{name}", entry.name));
    }
    entry.backend().open(name).map(|device| Described::of(device.as_ref()))
}

/// Returns the devices that a name may select: by selector or alias, or else by a part of the device's name. Case is
/// ignored.
fn matching(backend: &str, name: &str, devices: &[&DeviceRecord]) -> Vec<usize> {
    let selector = format!("{backend}:{name}");
    let exact = |device: &DeviceRecord| {
        device.selector.eq_ignore_ascii_case(&selector)
            || device.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    };
    let all = |test: &dyn Fn(&DeviceRecord) -> bool| -> Vec<usize> {
        devices.iter().enumerate().filter(|(_, device)| test(device)).map(|(at, _)| at).collect()
    };
    let found = all(&exact);
    // An index without a device must not match a digit in some device's name.
    let is_part = !name.is_empty() && !name.bytes().all(|byte| byte.is_ascii_digit()) && !is_path(name);
    if !found.is_empty() || !is_part {
        return found;
    }
    let part = name.to_lowercase();
    all(&|device| {
        let name = device.name.to_lowercase();
        // For models, only whole words match: `h10` does not match H100.
        let is_border = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric());
        name.match_indices(&part).any(|(at, _)| {
            let (before, after) = (name[..at].chars().next_back(), name[at + part.len()..].chars().next());
            backend != MODELS || (is_border(before) && is_border(after))
        })
    })
}

/// The error that no device can be used, with the reasons and a remedy.
pub(crate) fn no_usable(found: &[Found], asked: &str) -> Failure {
    let mut failure = Failure::no_device(format!("no usable device for {asked}"));
    let mut help = None;
    for found in found {
        if found.refusals.is_empty() && found.devices.is_empty() {
            failure = failure.cause(format!("{}: nothing was found", found.backend));
        }
        for refusal in &found.refusals {
            failure = failure.cause(reason(&found.backend, refusal));
            help = help.or_else(|| refusal.help.clone());
        }
    }
    let models = "`mxprobe run --device sim:v100` probes a model, without hardware";
    failure.help(help.map_or_else(|| models.to_owned(), |help| format!("{help}; {models}")))
}

/// A refusal in one line.
pub(crate) fn reason(backend: &str, refusal: &RefusalRecord) -> String {
    // If the reason, or the backend's own name, already says what was refused, it is not repeated.
    if refusal.reason.starts_with(&refusal.what) || refusal.what.eq_ignore_ascii_case(backend) {
        format!("{backend}: {}", refusal.reason)
    } else {
        format!("{backend}: {}: {}", refusal.what, refusal.reason)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::report::Kind;

    use super::*;

    fn device(selector: &str, name: &str, aliases: &[&str]) -> DeviceRecord {
        DeviceRecord {
            backend: "vulkan".into(),
            selector: selector.into(),
            name: name.into(),
            fingerprint: "x".into(),
            kind: Kind::Hardware,
            emulated: false,
            aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
            driver: None,
            properties: BTreeMap::new(),
        }
    }

    #[test]
    fn a_backend_that_was_left_out_is_refused_with_its_feature() {
        let left_out = format!("{:?}", not_among("wgpu", &["cpu", "wgpu"]));
        assert!(left_out.contains("this program was built without the backend `wgpu`"), "{left_out}");
        assert!(left_out.contains("`cargo build --release --features wgpu`"), "{left_out}");
        assert_eq!(not_among("nope", &["wgpu"]).to_string().find("no backend `nope`; "), Some(0));
    }

    #[test]
    fn a_device_is_known_by_selector_alias_and_a_part_of_its_name() {
        let devices = [
            device("vulkan:0", "NVIDIA GeForce RTX 4090", &["AD102"]),
            device("vulkan:1", "AMD Radeon RX 7900 XTX", &[]),
            device("vulkan:10", "llvmpipe (LLVM 20, 256 bits)", &[]),
        ];
        let devices: Vec<&DeviceRecord> = devices.iter().collect();
        for (name, meant) in [
            ("0", vec![0]),
            ("1", vec![1]),
            ("2", vec![]),
            ("rtx 4090", vec![0]),
            ("ad102", vec![0]),
            ("R", vec![0, 1]),
            ("20", vec![]),
            ("intel", vec![]),
        ] {
            assert_eq!(matching("vulkan", name, &devices), meant, "{name}");
        }
    }
}
