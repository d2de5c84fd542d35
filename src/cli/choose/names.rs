//! Names without a backend: `h100`, `RTX 4090`, `7900xtx`.

use mxprobe_models::Model;

use crate::{
    in_order::InOrder,
    report::{DeviceRecord, Kind},
};

use crate::cli::{
    choose::{
        catalog::Found,
        registry::{self, Entry, MODELS},
        selector::{self, Choice, Selector},
        similar::nearest,
        target::Target,
    },
    failure::Failure,
};

/// The property for the name by which a model was chosen, if it is not the model's own.
pub(crate) const CARD: &str = "card";

/// Parses a selector without a backend.
pub(super) fn without_backend(text: &str) -> Result<Selector, Failure> {
    let name = selector::unquoted(text);
    if name.ends_with(".json") {
        return Err(Failure::usage(format!("`{name}` is a file of results, not a device"))
            .help(format!("`mxprobe report {name}` shows it, `mxprobe compare {name} OTHER` compares it")));
    }
    match Entry::named(MODELS) {
        Some(models) if selector::is_path(name) => Ok(Selector::Of(models, Choice::Named(name.to_owned()))),
        _ => Ok(Selector::Name(name.to_owned())),
    }
}

/// Returns the hardware with this name, or else the model; `None` if there is neither. `found` are the devices of
/// `entries`.
///
/// If several backends found a device, the first one with operations is used.
pub(super) fn meant(name: &str, entries: &[&'static Entry], found: &[Found]) -> Result<Option<Vec<Target>>, Failure> {
    let called = |device: &DeviceRecord| {
        let is_name = |other: &str| other.eq_ignore_ascii_case(name);
        device.kind == Kind::Hardware
            && (mxprobe_models::is_called(&device.name, name)
                || is_name(&device.fingerprint)
                || device.aliases.iter().any(|alias| is_name(alias)))
    };
    let of_backend = |(entry, found): (&&'static Entry, &Found)| -> Vec<Target> {
        let devices = found.devices.iter().filter(|listed| entry.name != MODELS && called(&listed.device));
        devices.map(|listed| found.target(entry, listed)).collect()
    };
    let mut by_backend: Vec<Vec<Target>> =
        entries.iter().zip(found).map(of_backend).filter(|targets| !targets.is_empty()).collect();
    // The sort is stable: backends without operations come last.
    by_backend.order_by_key(|targets| targets.iter().all(|target| target.listed.operations.is_empty()));
    match by_backend.into_iter().next() {
        Some(targets) if targets.len() == 1 => return Ok(Some(targets)),
        Some(targets) => return Err(selector::one_of(name, targets.iter().map(|target| &target.listed.device))),
        None => {}
    }
    let Some(models) = entries.iter().position(|entry| entry.name == MODELS) else { return Ok(None) };
    match mxprobe_models::find(name).map_err(Failure::usage)? {
        Some(found_model) => model(entries[models], found_model, name, &found[models]).map(Some),
        None => Ok(None),
    }
}

/// Returns a model chosen by this name: its own, or another one, which is then part of its title.
pub(super) fn model(entry: &'static Entry, model: &Model, name: &str, found: &Found) -> Result<Vec<Target>, Failure> {
    let selector = format!("{}:{}", entry.name, model.name);
    let listed = found.devices.iter().find(|listed| listed.device.selector == selector);
    let listed = listed.ok_or_else(|| Failure::no_device(format!("the model `{}` is not listed", model.name)))?;
    let mut target = found.target(entry, listed);
    if !name.eq_ignore_ascii_case(&model.name) {
        target.listed.device.name = format!("{name} (model {})", model.name);
        target.listed.device.properties.insert(CARD.to_owned(), name.to_owned());
    }
    Ok(vec![target])
}

/// The error for an unknown name.
pub(super) fn no_device(name: &str, entries: &[&'static Entry], found: &[Found]) -> Failure {
    if let Some(near) = nearest(name, registry::names()) {
        return Failure::usage(format!("no device `{name}`; did you mean `{near}:0`?"))
            .help("`mxprobe list` shows the devices");
    }
    let has_models = entries.iter().any(|entry| entry.name == MODELS);
    if let Some(near) = nearest_model(name).filter(|_| has_models) {
        return Failure::usage(format!("no device `{name}`; did you mean `{MODELS}:{near}`?"))
            .help(format!("`mxprobe list` shows the devices, `mxprobe list --backend {MODELS}` the models"));
    }
    let indices = found.iter().flat_map(|found| &found.devices).map(|listed| listed.device.selector.as_str());
    let indices: Vec<String> =
        indices.filter(|selector| selector.split_once(':').is_some_and(|(_, at)| at == name)).map(quoted).collect();
    let is_index = name.len() < 4 && name.bytes().all(|byte| byte.is_ascii_digit());
    let indices = if indices.is_empty() && is_index { vec![format!("`cuda:{name}`")] } else { indices };
    let what = if indices.is_empty() {
        format!("no device and no model `{name}`")
    } else {
        format!("no device `{name}`: a number needs its backend, as in {}", indices.join(" or "))
    };
    Failure::usage(what).help(format!("`mxprobe list` shows the devices, `mxprobe list --backend {MODELS}` the models"))
}

fn quoted(selector: &str) -> String {
    format!("`{selector}`")
}

/// Returns the name of a model, an architecture or a card that is closest to this one.
pub(super) fn nearest_model(name: &str) -> Option<String> {
    let word: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let models = mxprobe_models::shipped().iter();
    let mut names: Vec<String> =
        models.flat_map(|model| std::iter::once(&model.name).chain(&model.aliases)).cloned().collect();
    for card in mxprobe_models::cards() {
        let words: Vec<String> = card.name.split_whitespace().map(str::to_lowercase).collect();
        let ends = (0..words.len()).map(|from| words[from..].concat());
        names.extend(ends.filter(|end| end.len() > 2 && end.bytes().any(|byte| byte.is_ascii_digit())));
    }
    nearest(&word, names.iter().map(String::as_str)).map(str::to_owned)
}
