//! Models named on the command line, for arguments that take no other device.

use crate::report::ListedDevice;
use mxprobe_models::Model;

use crate::cli::{
    choose::{
        names,
        registry::{Entry, MODELS},
        select, selector,
        target::{PROGRAMS, Search},
    },
    failure::Failure,
};

/// A model, with its listing as a device.
pub(crate) struct Chosen {
    /// The model's name, including the variant: `h100`, `./mine.toml`.
    pub(crate) name: String,
    /// The model.
    pub(crate) model: Model,
    /// The model's operations.
    pub(crate) listed: ListedDevice,
}

/// Checks that a name is not that of a device, whose arithmetic is not known.
fn is_no_device(name: &str) -> Result<(), Failure> {
    let backend = name.split_once(':').map(|(backend, _)| backend).filter(|backend| *backend != MODELS);
    if backend.is_some_and(|backend| backend == PROGRAMS || Entry::named(backend).is_some()) {
        return Err(Failure::usage(format!("`{name}` is a device, and only models can be used here")).help(format!(
            "`mxprobe list --backend {MODELS}` shows the models; `mxprobe identify` makes the model of a device"
        )));
    }
    Ok(())
}

/// Reads a model by name, with or without the prefix `sim:`: a shipped one, a card, or a file.
pub(crate) fn load(name: &str) -> Result<Model, Failure> {
    is_no_device(name)?;
    let bare = name.strip_prefix(MODELS).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name);
    mxprobe_models::load(bare).map_err(|error| match names::nearest_model(bare) {
        Some(near) if !selector::is_path(bare) && !matches!(mxprobe_models::find(bare), Ok(Some(_)) | Err(_)) => {
            Failure::usage(format!("no model `{bare}`; did you mean `{near}`?"))
                .help(format!("`mxprobe list --backend {MODELS}` shows the models"))
        }
        _ => Failure::usage(error).help(format!("`mxprobe list --backend {MODELS}` shows the models")),
    })
}

/// Reads a model by name, with or without the prefix `sim:`, together with its listing.
pub(crate) fn chosen(name: &str) -> Result<Chosen, Failure> {
    is_no_device(name)?;
    let prefix = format!("{MODELS}:");
    let bare = name.strip_prefix(&prefix).unwrap_or(name);
    let selector = format!("{prefix}{bare}");
    let (targets, _) = select::named(&[selector], &[], &Search::new(false, None, &[]))?;
    let [target] = targets.as_slice() else {
        return Err(Failure::usage(format!("`{name}` matches {} models", targets.len())).help("name one of them"));
    };
    let name = target.selector.strip_prefix(&prefix).unwrap_or(&target.selector).to_owned();
    let model = mxprobe_models::load(&name).map_err(Failure::usage)?;
    Ok(Chosen { name, model, listed: target.listed.clone() })
}
