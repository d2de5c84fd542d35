//! `report` and `compare` for measurements: files of `bench` and of `gemm --experiment growth`.

use std::path::{Path, PathBuf};

use crate::report::{
    BENCH_SCHEMA, BenchReport, Form, GROWTH_SCHEMA, GrowthReport, Throughputs, check, compare_growth,
    compare_throughput,
};
use serde::de::DeserializeOwned;

use crate::cli::{
    commands::gemm::Grown,
    failure::{Failure, NO},
    io::input,
};

/// Measurements of one kind, each with its source.
pub(super) enum Measured {
    Throughput(Vec<(String, BenchReport)>),
    Growth(Vec<(String, GrowthReport)>),
}

/// Reads measurements; `None` if none of the files has any, so that they are read as reports.
///
/// # Errors
/// If a file is of another kind than those before it, or cannot be read.
pub(super) fn read(paths: &[PathBuf]) -> Result<Option<Measured>, Failure> {
    // A path that does not exist may be the name of a device, and standard input can only be read once.
    let is_file = |path: &&PathBuf| *path != Path::new("-") && path.exists();
    if input::start_as_reports(paths.iter().filter(is_file).map(PathBuf::as_path)) {
        return Ok(None);
    }
    let mut texts = Vec::new();
    for path in paths.iter().filter(is_file) {
        for path in input::files(path)? {
            let text = input::read(&path)?;
            let kind = check::kind(&text);
            texts.push((path, text, kind));
        }
    }
    let kinds = [BENCH_SCHEMA, GROWTH_SCHEMA].map(check::kind_of_schema);
    if !texts.iter().any(|(_, _, kind)| kinds.contains(kind)) {
        return Ok(None);
    }
    let first = texts[0].2.unwrap_or("a report");
    if let Some((path, _, kind)) = texts.iter().find(|(_, _, kind)| *kind != Some(first)) {
        let is = kind.map_or_else(|| "not a file of mxprobe".to_owned(), |kind| format!("{kind}, not {first}"));
        return Err(Failure::usage(format!("`{}` is {is}", path.display()))
            .help("only files of the same kind can be shown or compared together"));
    }
    if let Some(path) = paths.iter().find(|path| !is_file(path)) {
        return Err(Failure::usage(format!("`{}` is not {first}", path.display()))
            .help("only files of the same kind can be shown or compared together"));
    }
    Ok(Some(if kinds[0] == Some(first) {
        Measured::Throughput(all(&texts, BENCH_SCHEMA)?)
    } else {
        Measured::Growth(all(&texts, GROWTH_SCHEMA)?)
    }))
}

fn all<T: DeserializeOwned>(
    texts: &[(PathBuf, String, Option<&str>)],
    schema: &str,
) -> Result<Vec<(String, T)>, Failure> {
    let mut found = Vec::new();
    for (path, text, kind) in texts {
        let source = path.display().to_string();
        let kind = kind.unwrap_or("a file of mxprobe");
        let values = check::read_all(text, schema)
            .map_err(|problem| Failure::usage(format!("`{source}` is not {kind}: {problem}")))?;
        found.extend(values.into_iter().map(|value| (source.clone(), value)));
    }
    Ok(found)
}

impl Measured {
    /// Renders all of them, as the commands that made them do.
    pub(super) fn text(self, form: Form) -> String {
        match self {
            Self::Throughput(all) => {
                let all: Vec<BenchReport> = all.into_iter().map(|(_, report)| report).collect();
                form.text(&Throughputs(&all))
            }
            Self::Growth(all) => {
                let all: Vec<GrowthReport> = all.into_iter().map(|(_, report)| report).collect();
                form.text(&Grown { reports: &all, saved: None })
            }
        }
    }

    /// Returns the comparison as a text, and the exit code.
    ///
    /// # Errors
    /// If there is only one measurement.
    pub(super) fn compared(self, form: Form) -> Result<(String, u8), Failure> {
        let (count, kind) = match &self {
            Self::Throughput(all) => (all.len(), "bench file"),
            Self::Growth(all) => (all.len(), "growth file"),
        };
        if count < 2 {
            return Err(Failure::usage(format!("only one {kind}: a comparison takes two or more")));
        }
        let (text, differ) = match &self {
            Self::Throughput(all) => {
                let found = compare_throughput(all);
                (form.text(&found), found.differ)
            }
            Self::Growth(all) => {
                let found = compare_growth(all);
                (form.text(&found), found.differ)
            }
        };
        Ok((text, if differ { NO } else { 0 }))
    }
}
