//! `papers`: what papers print beside what is computed here.

use std::time::Instant;

use crate::{
    papers::{self, Paper},
    report::{PAPERS_SCHEMA, PapersReport, Tool, Verdict},
};

use crate::cli::{
    arguments::{Papers, Screen, given},
    choose::similar::{did_you_mean, similar},
    failure::{Failure, INTERRUPTED, Outcome},
    io::{interrupt::Interrupt, output, progress::Progress},
};

/// Computes what papers print: 0 if every number is equal or explained, else 1.
pub(crate) fn papers(arguments: &Papers, screen: Screen) -> Outcome {
    let start = Instant::now();
    let chosen: Vec<&Paper> = match &arguments.name {
        Some(name) => vec![papers::named(name).ok_or_else(|| unknown(name))?],
        None => papers::all().iter().collect(),
    };
    let device = arguments
        .device
        .as_deref()
        .map(|selector| crate::cli::open(selector, &[], arguments.timeout).map_err(Failure::no_device));
    let device = device.transpose()?;
    let interrupt = Interrupt::listen();
    let mut progress = Progress::new(screen, chosen.iter().map(|paper| paper.item.len()).sum());
    let mut done = 0;
    let mut records = Vec::new();
    for paper in chosen {
        let checked = papers::check(paper, device.as_ref(), &mut |item| {
            progress.advance(done, &format!("{} {}", paper.name, item.place));
            done += 1;
            if interrupt.is_set() { Err(()) } else { Ok(()) }
        });
        let Ok(record) = checked else { return Ok(INTERRUPTED) };
        records.push(record);
    }
    drop(progress);
    let report = PapersReport {
        schema: PAPERS_SCHEMA.into(),
        tool: Tool::this(given()),
        device: arguments.device.clone(),
        papers: records,
        duration_ns: u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
    };
    output::show(&report, arguments.format.into(), screen)?;
    let is_open = |verdict| matches!(verdict, Verdict::Differs | Verdict::Failed);
    Ok(u8::from(report.items().any(|item| is_open(item.verdict))))
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = papers::all().iter().map(|paper| paper.name.as_str()).collect();
    let failure = Failure::usage(format!("there is no paper `{name}`; the papers are {}", names.join(", ")));
    match did_you_mean(&similar(name, names.iter().copied())) {
        Some(hint) => failure.help(hint),
        None => failure,
    }
}
