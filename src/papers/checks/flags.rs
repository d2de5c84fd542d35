//! Whether status flags can be read.

use mxprobe_api::{Error, Flag, Flags, flags_of, scalars_of};
use serde::Deserialize;

use crate::papers::Target;
use crate::papers::computed::Computed;

/// Whether a device has status flags.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusFlags {
    /// The expected answer.
    are_there: bool,
}

impl StatusFlags {
    pub(super) fn compute(&self, target: &Target<'_>) -> Result<Computed, Error> {
        let asked = target.asked()?;
        let device = asked.device.as_ref();
        let is_read = flags_of(device).is_some() && !scalars_of(device).is_empty();
        let text = if is_read {
            format!("flags can be read: {}", Flags::of(&Flag::ALL))
        } else {
            "no flags can be read".to_owned()
        };
        Ok(Computed { text, agrees: is_read == self.are_there })
    }
}
