//! `papers`: the numbers that papers print, next to those computed here.

use std::time::Instant;

use crate::{
    papers::{self, Paper},
    report::{PAPERS_SCHEMA, PapersReport, Verdict, this_tool},
    session::Asked,
};

use crate::cli::{
    arguments::{Papers, Screen, given},
    choose::{
        open::open,
        similar::{did_you_mean, similar},
    },
    failure::{Failure, INTERRUPTED, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// Recomputes the numbers of papers: 0 if every number is equal or explained, else 1.
pub(crate) fn papers(arguments: &Papers, screen: Screen) -> Outcome {
    let paper = arguments.name.as_deref().map(|name| papers::named(name).ok_or_else(|| unknown(name))).transpose()?;
    let device = arguments.device.as_ref().map(|selector| {
        let opened = open(selector, &[], arguments.timeout);
        opened.map(|asked| (selector.clone(), asked)).map_err(Failure::no_device)
    });
    let device = device.transpose()?;
    let Some(report) = computed(paper, device, screen)? else { return Ok(INTERRUPTED) };
    output::show(&report, arguments.format, screen)?;
    let is_open = |verdict| matches!(verdict, Verdict::Differs | Verdict::Failed);
    Ok(u8::from(report.items().any(|item| is_open(item.verdict))))
}

/// Recomputes the numbers of one paper, or of all: on a device, if one is given, and otherwise on models. `None` if
/// interrupted.
pub(super) fn computed(
    paper: Option<&'static Paper>,
    device: Option<(String, Asked)>,
    screen: Screen,
) -> Result<Option<PapersReport>, Failure> {
    let start = Instant::now();
    let chosen = paper.map_or_else(|| papers::all(), std::slice::from_ref);
    let interrupt = Interrupt::listen();
    let mut progress = Progress::new(screen, chosen.iter().map(|paper| paper.item.len()).sum());
    let mut done = 0;
    let mut records = Vec::new();
    for paper in chosen {
        let checked = papers::check(paper, device.as_ref().map(|(_, asked)| asked), &mut |item| {
            progress.advance(done, &format!("{} {}", paper.name, item.place));
            done += 1;
            if interrupt.is_set() { Err(()) } else { Ok(()) }
        });
        let Ok(record) = checked else { return Ok(None) };
        records.push(record);
    }
    drop(progress);
    Ok(Some(PapersReport {
        schema: PAPERS_SCHEMA.into(),
        tool: this_tool(&given()),
        device: device.map(|(selector, _)| selector),
        papers: records,
        duration_ns: crate::clock::elapsed_ns(start),
    }))
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = papers::all().iter().map(|paper| paper.name.as_str()).collect();
    let failure = Failure::usage(format!("no paper `{name}`; the papers are {}", names.join(", ")));
    match did_you_mean(&similar(name, names.iter().copied())) {
        Some(hint) => failure.help(hint),
        None => failure,
    }
}
