//! `list`: devices and operations, and those that cannot be used, with the reasons.

use crate::report::{LIST_SCHEMA, Listing, Listings, this_tool};

use crate::cli::{
    arguments::{Format, List, Screen, given},
    choose::{catalog, select, target::Search},
    failure::Outcome,
    io::{output, progress::Progress},
};

/// Lists devices.
pub(crate) fn list(arguments: &List, screen: Screen) -> Outcome {
    let search = Search::of(&arguments.devices, &[]);
    let progress = Progress::of_one(screen, "searching for devices".to_owned());
    let found = if arguments.devices.device.is_empty() {
        catalog::discover(&select::entries(&arguments.devices.backend)?, &search)
    } else {
        let (targets, mut found) = select::named(&arguments.devices.device, &arguments.devices.backend, &search)?;
        for found in &mut found {
            let chosen = targets.iter().filter(|target| target.backend() == found.backend);
            found.devices = chosen.map(|target| target.listed.clone()).collect();
        }
        found
    };
    drop(progress);
    let tried = catalog::tried(&found);
    let refused: Vec<_> = found.iter().map(|found| (found.backend.as_str(), found.refusals.clone())).collect();
    let listing = Listing {
        schema: LIST_SCHEMA.into(),
        tool: this_tool(&given()),
        refusals: refused.iter().flat_map(|(_, refusals)| refusals.clone()).collect(),
        devices: found.iter().flat_map(|found| found.devices.clone()).collect(),
    };
    let chosen = !arguments.devices.device.is_empty();
    let shown = Listings { found: &listing, verbose: screen.verbose, chosen, refused: &refused, tried: &tried };
    let format = if arguments.json { Format::Json } else { arguments.format };
    output::show(&shown, format, screen.for_lines())
}
