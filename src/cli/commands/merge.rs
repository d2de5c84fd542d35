//! `merge`: the shards of a job as one report.

use std::path::Path;

use crate::{
    report::{
        GROWTH_SCHEMA, GrowthReport, Health, IDENTIFICATION_SCHEMA, IdentificationReport, SCREEN_SCHEMA, ScreenReport,
        Screens, Show, VERIFICATION_SCHEMA, VerificationReport, check,
    },
    shards::{Part, merge_growth, merge_identifications, merge_screens, merge_verifications},
};
use serde::de::DeserializeOwned;

use crate::cli::{
    arguments::{Merge, Screen},
    commands::{gemm::Grown, identified, identify, screen, verify},
    failure::{Failure, Outcome},
    io::{input, output},
};

/// Merges the shards of one job; the exit code is that of the run that they are shares of.
pub(crate) fn merge(arguments: &Merge, screen: Screen) -> Outcome {
    let out = &arguments.out;
    output::is_for_json(out)?;
    output::is_none_of(out, &arguments.files)?;
    output::can_write(out)?;
    let texts = Texts::read(arguments)?;
    let name = out.display().to_string();
    if arguments.model.is_some() && texts.kind != IDENTIFICATION_SCHEMA {
        return Err(Failure::usage(format!("`--model`: `{}` is not a shard of `identify`", texts.first())));
    }
    match texts.kind {
        VERIFICATION_SCHEMA => {
            let report = merge_verifications(texts.one_each::<VerificationReport>()?, &name).map_err(Failure::usage)?;
            finish(&report, arguments, screen)?;
            Ok(verify::code(&report))
        }
        GROWTH_SCHEMA => {
            let report = merge_growth(texts.one_each::<GrowthReport>()?, &name).map_err(Failure::usage)?;
            let reports = std::slice::from_ref(&report);
            finish(&Grown { reports, saved: None }, arguments, screen)
        }
        SCREEN_SCHEMA => {
            let reports = merge_screens(texts.several_each::<ScreenReport>()?, &name).map_err(Failure::usage)?;
            finish(&Screens(&reports), arguments, screen)?;
            Ok(screen::code(reports.iter().map(|report| report.verdict).max().unwrap_or(Health::Unknown)))
        }
        _ => identifications(&texts, arguments, screen),
    }
}

fn identifications(texts: &Texts<'_>, arguments: &Merge, screen: Screen) -> Outcome {
    let Some(path) = &arguments.model else {
        return Err(Failure::usage("`--model MODEL.toml` is missing, the model file that `identify` writes"));
    };
    output::can_write(path)?;
    let (out, model) = (arguments.out.display().to_string(), path.display().to_string());
    let parts = texts.one_each::<IdentificationReport>()?;
    let (report, whole) =
        merge_identifications(parts, &out, &model, &identified::model_name(path)?).map_err(Failure::usage)?;
    if let Some(whole) = whole {
        output::replace(path, &whole.to_toml())?;
    }
    finish(&report, arguments, screen)?;
    Ok(identify::code(&report))
}

/// Writes and shows a result.
fn finish(result: &dyn Show, arguments: &Merge, screen: Screen) -> Outcome {
    output::replace(&arguments.out, &result.json())?;
    output::show(result, arguments.format, screen)
}

/// The texts of all files, and the schema that they have.
struct Texts<'a> {
    kind: &'static str,
    files: Vec<(&'a Path, String)>,
}

impl<'a> Texts<'a> {
    fn read(arguments: &'a Merge) -> Result<Self, Failure> {
        input::reads_once(&arguments.files)?;
        let files: Result<Vec<_>, Failure> =
            arguments.files.iter().map(|path| Ok((path.as_path(), input::read(path)?))).collect();
        let files = files?;
        let kinds = [VERIFICATION_SCHEMA, GROWTH_SCHEMA, SCREEN_SCHEMA, IDENTIFICATION_SCHEMA];
        let is = files.first().and_then(|(_, text)| check::kind(text));
        let kind = kinds.into_iter().find(|schema| is.is_some() && is == check::kind_of_schema(schema));
        match kind {
            Some(kind) => Ok(Self { kind, files }),
            None => {
                let name = files.first().map(|(path, _)| path.display().to_string()).unwrap_or_default();
                let is = is.unwrap_or("not a file of this program");
                Err(Failure::usage(format!("`{name}` is {is}, and has no shards"))
                    .help("`verify`, `screen`, `identify` and `gemm --experiment growth` take `--shard I/N`"))
            }
        }
    }

    fn first(&self) -> String {
        self.files.first().map(|(path, _)| path.display().to_string()).unwrap_or_default()
    }

    /// One report of each file.
    fn one_each<T: DeserializeOwned>(&self) -> Result<Vec<Part<T>>, Failure> {
        self.parts(|text| check::read_as(text, self.kind))
    }

    /// The reports of each file, one or an array.
    fn several_each<T: DeserializeOwned>(&self) -> Result<Vec<Part<Vec<T>>>, Failure> {
        self.parts(|text| check::read_all(text, self.kind))
    }

    fn parts<T>(&self, read: impl Fn(&str) -> Result<T, check::Problem>) -> Result<Vec<Part<T>>, Failure> {
        let part = |(path, text): &(&Path, String)| {
            let name = path.display().to_string();
            match read(text) {
                Ok(report) => Ok(Part { name, report }),
                Err(problem) => Err(Failure::usage(format!("`{name}` cannot be merged: {problem}"))),
            }
        };
        self.files.iter().map(part).collect()
    }
}
