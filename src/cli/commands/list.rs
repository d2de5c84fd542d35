//! `list`: devices, operations, and what cannot be used and why.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use mxprobe::plain::one_line;
use mxprobe::report::{Kind, LIST_SCHEMA, ListedDevice, Listing, Tool, grouped};

use crate::cli::{
    arguments::{List, Screen, given},
    choose::{
        catalog::{self, Found},
        select,
    },
    failure::Outcome,
    io::output,
};

/// Lists devices.
pub(crate) fn list(arguments: &List, screen: Screen) -> Outcome {
    let isolate = !arguments.devices.no_isolation;
    let mut found = if arguments.devices.device.is_empty() {
        catalog::discover(&select::entries(&arguments.devices.backend)?, isolate)
    } else {
        let (targets, mut found) = select::named(&arguments.devices.device, &arguments.devices.backend, isolate)?;
        for found in &mut found {
            let chosen = targets.iter().filter(|target| target.entry.name == found.backend);
            found.devices = chosen.map(|target| target.listed.clone()).collect();
        }
        found
    };
    if arguments.json {
        let refusals = found.iter_mut().flat_map(|found| found.refusals.drain(..)).collect();
        return output::print_json(&Listing {
            schema: LIST_SCHEMA.into(),
            tool: Tool::this(given()),
            refusals,
            devices: found.into_iter().flat_map(|found| found.devices).collect(),
        });
    }
    output::print(table(&found, screen, !arguments.devices.device.is_empty()).as_bytes())
}

fn table(found: &[Found], screen: Screen, chosen: bool) -> String {
    let paint = |style: Style, text: &str| {
        let text = one_line(text);
        if screen.style.color { format!("{style}{text}{style:#}") } else { text.into_owned() }
    };
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let yellow = AnsiColor::Yellow.on_default();
    let mut text = String::new();
    let all = || found.iter().flat_map(|found| &found.devices);
    let width = all().map(|device| device.device.selector.chars().count()).max().unwrap_or(0);
    for listed in all() {
        let device = &listed.device;
        let selector = format!("{:width$}", device.selector);
        let _ = writeln!(text, "{}  {}", paint(bold, &selector), one_line(&summary(listed)));
        if screen.verbose {
            if let Some(driver) = &device.driver {
                let words = format!("driver {} {}; API {}", driver.name, driver.version, driver.api_version);
                let _ = writeln!(text, "    {}", one_line(&words));
            }
            let _ = writeln!(text, "    fingerprint {}", one_line(&device.fingerprint));
            if !device.aliases.is_empty() {
                let _ = writeln!(text, "    also {}", one_line(&device.aliases.join(", ")));
            }
            for (key, value) in &device.properties {
                let _ = writeln!(text, "    {}", paint(dim, &format!("{key}: {value}")));
            }
        }
        if device.kind != Kind::Model || screen.verbose || chosen {
            for operation in &listed.operations {
                let mut line = operation.id.to_string();
                for word in operation.instruction.iter().chain(operation.aliases.iter().filter(|_| screen.verbose)) {
                    line.push_str("  ");
                    line.push_str(word);
                }
                let _ = writeln!(text, "    {}", one_line(&line));
            }
        }
        if let Some(line) = scalars(listed) {
            let _ = writeln!(text, "    {}", one_line(&line));
        }
        for (what, refusal) in grouped(&listed.refusals) {
            let _ = writeln!(text, "    {}", paint(yellow, &format!("not used: {what}: {}", refusal.reason)));
            if let Some(help) = refusal.help.as_ref().filter(|_| screen.verbose) {
                let _ = writeln!(text, "        {}", one_line(help));
            }
        }
    }
    for found in found {
        for (what, refusal) in grouped(&found.refusals) {
            let line = format!("not used: {}: {what}: {}", found.backend, refusal.reason);
            let _ = writeln!(text, "{}", paint(yellow, &line));
            if let Some(help) = &refusal.help {
                let _ = writeln!(text, "    {}", one_line(help));
            }
        }
    }
    let _ = writeln!(text, "{}", paint(dim, &catalog::tried(found)));
    text
}

/// The scalar arithmetic: what is asked without a mode by its name, the modes by their number.
fn scalars(listed: &ListedDevice) -> Option<String> {
    let (plain, modes): (Vec<_>, Vec<_>) = listed.scalars.iter().partition(|scalar| scalar.id.qualifiers.is_empty());
    let names: Vec<&str> = plain.iter().flat_map(|scalar| &scalar.aliases).map(String::as_str).collect();
    match (names.is_empty(), modes.len()) {
        (true, 0) => None,
        (_, 0) => Some(names.join(", ")),
        (true, count) => Some(format!("scalar arithmetic in {count} modes")),
        (false, count) => Some(format!("{}, and {count} modes of them", names.join(", "))),
    }
}

fn summary(listed: &ListedDevice) -> String {
    let kind = match listed.device.kind {
        _ if listed.device.emulated => "a double, ",
        Kind::Hardware => "",
        Kind::Software => "software, ",
        Kind::Model => "",
    };
    let count = listed.operations.len();
    format!("{} ({kind}{count} operation{})", listed.device.name, if count == 1 { "" } else { "s" })
}
