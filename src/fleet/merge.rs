//! The merge of all files.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    answers::{Answers, Known},
    read::{Read, Source, What, read},
};
use crate::{
    aside::divided,
    report::{
        Change, Counted, Drift, EarlierFleet, FLEET_SCHEMA, FleetClass, FleetKind, FleetReport, Health, Member,
        SkippedFile, Unhealthy, now, this_tool,
    },
};

/// The most machines of the largest class that are listed.
const NAMED: usize = 8;

/// The devices of a fleet, each with its last report and its last screen.
#[derive(Default)]
pub struct Merged {
    devices: BTreeMap<(String, String), Device>,
    reports: u64,
    screens: u64,
    skipped: Vec<SkippedFile>,
}

/// A device of a machine.
struct Device {
    backend: String,
    fingerprint: String,
    name: String,
    driver: Option<String>,
    /// The start of its newest report or screen, RFC 3339.
    start: String,
    report: Option<(String, Arc<Answers>)>,
    screen: Option<(String, Health, Vec<String>)>,
}

impl Merged {
    /// Reads files on this many threads. The result does not depend on the order of the files.
    #[must_use]
    pub fn read(sources: &[Source], threads: usize) -> Self {
        let known = Known::default();
        let parts = divided(sources.len(), threads, |places| {
            let mut part = Self::default();
            places.for_each(|place| part.file(&sources[place], &known));
            part
        });
        let mut merged = Self::default();
        for part in parts {
            merged.reports += part.reports;
            merged.screens += part.screens;
            merged.skipped.extend(part.skipped);
            for ((node, selector), device) in part.devices {
                merged.put(node, selector, device);
            }
        }
        // Sorted by name, whichever thread read them.
        let skipped: BTreeMap<String, String> = merged.skipped.drain(..).map(|file| (file.path, file.reason)).collect();
        merged.skipped = skipped.into_iter().map(|(path, reason)| SkippedFile { path, reason }).collect();
        merged
    }

    fn file(&mut self, source: &Source, known: &Known) {
        match read(source, known) {
            Ok(found) => found.into_iter().for_each(|read| self.one(read)),
            Err(reason) => self.skipped.push(SkippedFile { path: source.path.display().to_string(), reason }),
        }
    }

    fn one(&mut self, read: Read) {
        let Read { node, selector, backend, fingerprint, name, driver, start, what } = read;
        let mut device = Device { backend, fingerprint, name, driver, start, report: None, screen: None };
        match what {
            What::Report(answers) => {
                self.reports += 1;
                device.report = Some((device.start.clone(), answers));
            }
            What::Screen(verdict, said) => {
                self.screens += 1;
                device.screen = Some((device.start.clone(), verdict, said));
            }
        }
        self.put(node, selector, device);
    }

    /// Adds a device, and keeps the newer report and the newer screen of each. Of two from the same second, the worse
    /// verdict or the later class wins.
    fn put(&mut self, node: String, selector: String, device: Device) {
        use std::collections::btree_map::Entry;
        let mut entry = match self.devices.entry((node, selector)) {
            Entry::Vacant(vacant) => {
                vacant.insert(device);
                return;
            }
            Entry::Occupied(entry) => entry,
        };
        let before = entry.get_mut();
        let of_report = |report: &Option<(String, Arc<Answers>)>| {
            report.as_ref().map(|(start, answers)| (start.clone(), answers.class.clone()))
        };
        let report = if of_report(&before.report) >= of_report(&device.report) {
            before.report.take()
        } else {
            device.report.clone()
        };
        let screen = before.screen.take().max(device.screen.clone());
        let order = |device: &Device| {
            (device.start.clone(), device.driver.clone(), device.name.clone(), device.fingerprint.clone())
        };
        if order(&device) > order(before) {
            *before = device;
        }
        (before.report, before.screen) = (report, screen);
    }

    /// The report: machines by kinds of devices, classes and verdicts. `arguments` are those of the program.
    #[must_use]
    pub fn report(self, arguments: &[String]) -> FleetReport {
        let mut kinds: BTreeMap<(&str, &str), Vec<(&str, &Device)>> = BTreeMap::new();
        for ((node, _), device) in &self.devices {
            kinds.entry((&device.backend, &device.fingerprint)).or_default().push((node, device));
        }
        let kinds = kinds.into_iter().map(|(names, devices)| kind(names, &devices));
        let kinds = most_first(kinds, |kind: &FleetKind| kind.devices);
        let nodes: BTreeSet<&String> = self.devices.keys().map(|(node, _)| node).collect();
        let unhealthy = self.devices.iter().filter_map(|((node, selector), device)| {
            let (start, verdict, what) = device.screen.clone().filter(|(_, verdict, _)| *verdict != Health::Healthy)?;
            Some(Unhealthy { node: node.clone(), selector: selector.clone(), verdict, start, what })
        });
        let members = self.devices.iter().map(|((node, selector), device)| Member {
            node: node.clone(),
            selector: selector.clone(),
            backend: device.backend.clone(),
            fingerprint: device.fingerprint.clone(),
            driver: device.driver.clone(),
            class: device.report.as_ref().map(|(_, answers)| answers.class.clone()),
            verdict: device.screen.as_ref().map(|(_, verdict, _)| *verdict),
        });
        FleetReport {
            schema: FLEET_SCHEMA.into(),
            tool: this_tool(arguments),
            time: now(),
            reports: self.reports,
            screens: self.screens,
            nodes: nodes.len() as u64,
            kinds,
            unhealthy: unhealthy.collect(),
            since: None,
            members: members.collect(),
            skipped: self.skipped,
        }
    }
}

/// Sorts items by descending count; items with equal counts keep their order. Quadratic, for short lists.
fn most_first<T, C: Ord>(items: impl Iterator<Item = T>, count: impl Fn(&T) -> C) -> Vec<T> {
    let mut ordered: Vec<T> = Vec::new();
    for item in items {
        let at = ordered.iter().position(|before| count(before) < count(&item)).unwrap_or(ordered.len());
        ordered.insert(at, item);
    }
    ordered
}

fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Counted> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    let counted = counts.into_iter().map(|(name, count)| Counted { name: name.to_owned(), count });
    most_first(counted, |counted| counted.count)
}

fn drivers(devices: &[(&str, &Device)]) -> Vec<Counted> {
    counted(devices.iter().filter_map(|(_, device)| device.driver.as_deref()))
}

fn kind((backend, fingerprint): (&str, &str), devices: &[(&str, &Device)]) -> FleetKind {
    let names: BTreeSet<String> = devices.iter().map(|(_, device)| device.name.clone()).collect();
    let mut by_class: BTreeMap<&str, Vec<(&str, &Device)>> = BTreeMap::new();
    for (node, device) in devices {
        if let Some((_, answers)) = &device.report {
            by_class.entry(&answers.class).or_default().push((node, device));
        }
    }
    // Of two classes of one size, the one with more answers is the usual one: a report of a single probe is a class of
    // its own.
    let by_class = most_first(by_class.into_iter(), |(_, devices)| {
        let answers = devices.first().and_then(|(_, device)| device.report.as_ref());
        (devices.len(), answers.map_or(0, |(_, answers)| answers.len()))
    });
    let answers = |devices: &[(&str, &Device)]| devices.first().and_then(|(_, device)| device.report.clone());
    let usual = by_class.first().and_then(|(_, devices)| answers(devices));
    let classes = by_class.iter().enumerate().map(|(at, (class, devices))| {
        let shown = if at == 0 { NAMED } else { usize::MAX };
        let differs = match (&usual, answers(devices)) {
            (Some((_, usual)), Some((_, here))) => usual.differences(&here),
            _ => Vec::new(),
        };
        FleetClass {
            class: (*class).to_owned(),
            devices: devices.len() as u64,
            nodes: devices.iter().map(|(node, _)| (*node).to_owned()).take(shown).collect(),
            drivers: drivers(devices),
            differs,
        }
    });
    FleetKind {
        backend: backend.to_owned(),
        fingerprint: fingerprint.to_owned(),
        names: names.into_iter().collect(),
        devices: devices.len() as u64,
        classes: classes.collect(),
        drivers: drivers(devices),
    }
}

/// Lists what changed since an earlier fleet.
#[must_use]
pub fn drift(before: &EarlierFleet, now: &FleetReport) -> Drift {
    fn by_place(members: &[Member]) -> BTreeMap<(&str, &str), &Member> {
        members.iter().map(|member| ((member.node.as_str(), member.selector.as_str()), member)).collect()
    }
    let (old, new) = (by_place(&before.members), by_place(&now.members));
    let only = |one: &BTreeMap<(&str, &str), &Member>, other: &BTreeMap<(&str, &str), &Member>| {
        let only = one.keys().filter(|key| !other.contains_key(*key));
        only.map(|(node, selector)| format!("{node} {selector}")).collect()
    };
    let mut changed = Vec::new();
    for ((node, selector), now) in &new {
        let Some(was) = old.get(&(*node, *selector)) else { continue };
        let verdict = |member: &Member| member.verdict.map(|verdict| verdict.name().to_owned());
        let parts = [
            ("kind", Some(was.fingerprint.clone()), Some(now.fingerprint.clone())),
            ("behaviour", was.class.clone(), now.class.clone()),
            ("driver", was.driver.clone(), now.driver.clone()),
            ("verdict", verdict(was), verdict(now)),
        ];
        for (what, before, now) in parts {
            // A device without a new report or screen has not changed.
            let (Some(before), Some(now)) = (before, now) else { continue };
            if before != now {
                let (node, selector) = ((*node).to_owned(), (*selector).to_owned());
                changed.push(Change { node, selector, what: what.to_owned(), before, now });
            }
        }
    }
    Drift { time: before.time.clone(), new: only(&new, &old), gone: only(&old, &new), changed }
}
