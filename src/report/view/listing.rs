//! The output of `list`: devices and operations, and those that cannot be used with the reasons.

use super::{
    csv::Rows,
    form::Show,
    groups::grouped,
    page::{Block, Cell, Layout, Page, Row, Tone},
    words,
};
use crate::{
    plain::counted,
    report::{Kind, ListedDevice, Listing, RefusalRecord, to_json},
};

/// A listing with its display options.
#[derive(Clone, Copy, Debug)]
pub struct Listings<'a> {
    /// The listing.
    pub found: &'a Listing,
    /// Whether to also show drivers, properties, aliases and the operations of every model.
    pub verbose: bool,
    /// Whether the devices were named: their operations are shown, even those of models.
    pub chosen: bool,
    /// The refusals of each backend, by the backend's name.
    pub refused: &'a [(&'a str, Vec<RefusalRecord>)],
    /// The backends that were tried, in words.
    pub tried: &'a str,
}

/// The fields of the rows.
const COLUMNS: &str = "schema tool_version backend selector fingerprint device kind emulated operation scope instruction \
     aliases";

impl Show for Listings<'_> {
    fn page(&self, _: bool) -> Page {
        let title = counted(self.found.devices.len(), "device");
        Page { blocks: vec![Block::Screen(self.screen()), Block::Paper(self.paper(&title))], title }
    }

    fn rows(&self) -> Rows {
        let mut rows = Vec::new();
        for listed in &self.found.devices {
            let device = &listed.device;
            for operation in listed.operations.iter().chain(&listed.scalars) {
                rows.push(vec![
                    self.found.schema.clone(),
                    self.found.tool.version.clone(),
                    device.backend.clone(),
                    device.selector.clone(),
                    device.fingerprint.clone(),
                    device.name.clone(),
                    words::kind_name(device.kind).to_owned(),
                    device.emulated.to_string(),
                    operation.id.to_string(),
                    operation.scope.clone(),
                    operation.instruction.clone().unwrap_or_default(),
                    operation.aliases.join(" "),
                ]);
            }
        }
        Rows::new(COLUMNS, rows)
    }

    fn json(&self) -> String {
        to_json(self.found)
    }
}

impl Listings<'_> {
    fn screen(&self) -> Vec<Block> {
        let rows = self.found.devices.iter().map(|listed| {
            let mut summary = Cell::words(summary(listed));
            summary.more.push(Block::Inset(self.below(listed)));
            Row::plain(vec![Cell::words(&listed.device.selector).tone(Tone::Strong), summary])
        });
        let mut blocks = vec![Block::laid_out(Layout::Hanging, ["selector", "device"], rows)];
        for (backend, refusals) in self.refused {
            for (what, refusal) in grouped(refusals) {
                let line = format!("not used: {backend}: {what}: {}", refusal.reason);
                blocks.push(Block::List(vec![(Tone::Warning, line)]));
                blocks
                    .extend(refusal.help.iter().map(|help| Block::Inset(vec![Block::Inset(vec![Block::words(help)])])));
            }
        }
        blocks.push(Block::Words(Tone::Muted, self.tried.to_owned()));
        blocks
    }

    /// The blocks below a device on a terminal.
    fn below(&self, listed: &ListedDevice) -> Vec<Block> {
        let device = &listed.device;
        let mut blocks = Vec::new();
        if self.verbose {
            let driver = device.driver.as_ref();
            blocks.extend(driver.map(|driver| Block::words(format!("driver {}", words::driver(driver)))));
            blocks.push(Block::words(format!("fingerprint {}", device.fingerprint)));
            if !device.aliases.is_empty() {
                blocks.push(Block::words(format!("also {}", device.aliases.join(", "))));
            }
            let properties = device.properties.iter();
            blocks.extend(properties.map(|(key, value)| Block::Words(Tone::Muted, format!("{key}: {value}"))));
        }
        if device.kind != Kind::Model || self.verbose || self.chosen {
            // Aliases are instructions of a hundred characters, so each has a line of its own.
            let lines = listed.operations.iter().flat_map(|operation| {
                let instruction = operation.instruction.iter().map(|instruction| format!("  {instruction}"));
                let first = std::iter::once(operation.id.to_string()).chain(instruction).collect();
                let aliases = operation.aliases.iter().filter(|_| self.verbose).map(|alias| format!("    {alias}"));
                std::iter::once(first).chain(aliases)
            });
            blocks.push(Block::Lines(lines.collect()));
        }
        blocks.extend(scalars(listed).map(Block::words));
        for (what, refusal) in grouped(&listed.refusals) {
            blocks.push(Block::List(vec![(Tone::Warning, format!("not used: {what}: {}", refusal.reason))]));
            let help = refusal.help.iter().filter(|_| self.verbose);
            blocks.extend(help.map(|help| Block::Inset(vec![Block::Inset(vec![Block::words(help)])])));
        }
        blocks
    }

    fn paper(&self, title: &str) -> Vec<Block> {
        let anchor = |at: usize| format!("device-{}", at + 1);
        let rows = self.found.devices.iter().enumerate().map(|(at, listed)| {
            let device = &listed.device;
            let name = Cell { link: Some(format!("#{}", anchor(at))), ..Cell::code(&device.selector) };
            let driver = device.driver.as_ref().map(words::driver).unwrap_or_default();
            let cells =
                [device.name.clone(), words::kind(device).to_owned(), listed.operations.len().to_string(), driver];
            Row::plain(std::iter::once(name).chain(cells.map(Cell::words)).collect())
        });
        let mut blocks = vec![Block::heading(1, title), Block::words(self.tried)];
        blocks.push(Block::table(["selector", "device", "kind", "operations", "driver"], rows));
        let all = self.refused.iter().flat_map(|(backend, refusals)| {
            grouped(refusals).into_iter().map(move |(what, refusal)| (format!("{backend}: {what}"), refusal))
        });
        blocks.extend(not_used(all));
        for (at, listed) in self.found.devices.iter().enumerate() {
            blocks.push(Block::Heading { level: 2, text: listed.device.selector.clone(), anchor: Some(anchor(at)) });
            let mut facts = vec![("fingerprint".to_owned(), listed.device.fingerprint.clone())];
            if !listed.device.aliases.is_empty() {
                facts.push(("also".to_owned(), listed.device.aliases.join(", ")));
            }
            facts.extend(scalars(listed).map(|words| ("scalars".to_owned(), words)));
            facts.extend(listed.device.properties.clone());
            blocks.push(Block::Facts(facts));
            blocks.extend(operations(listed));
            blocks.extend(not_used(grouped(&listed.refusals)));
        }
        blocks
    }
}

fn operations(listed: &ListedDevice) -> Option<Block> {
    let rows = listed.operations.iter().map(|operation| {
        let instruction = Cell::words(operation.instruction.as_deref().unwrap_or_default());
        let aliases = Cell::words(operation.aliases.join("\n"));
        Row::plain(vec![Cell::code(operation.id.to_string()), Cell::words(&operation.scope), instruction, aliases])
    });
    let table = Block::table(["operation", "scope", "instruction", "also"], rows);
    let summary = counted(listed.operations.len(), "operation");
    (!listed.operations.is_empty()).then(|| Block::Details { summary, blocks: vec![table] })
}

fn not_used<'a>(refusals: impl IntoIterator<Item = (String, &'a RefusalRecord)>) -> Option<Block> {
    let cells = |(what, refusal): (String, &RefusalRecord)| {
        Row::plain([what, refusal.reason.clone(), refusal.help.clone().unwrap_or_default()].map(Cell::words).into())
    };
    let rows: Vec<Row> = refusals.into_iter().map(cells).collect();
    (!rows.is_empty()).then(|| Block::table(["not used", "why not", "help"], rows))
}

/// Describes the scalar arithmetic: operations without a mode by name, modes by their number.
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
        Kind::Software => "software, ",
        Kind::Hardware | Kind::Model => "",
    };
    format!("{} ({kind}{})", listed.device.name, counted(listed.operations.len(), "operation"))
}
