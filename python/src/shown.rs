//! Results in every output format.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use mxprobe::{
    proof::{
        conditions::Conditions,
        decide::{Comparison as ModelComparison, Effort, Verdict},
    },
    report::{self, Comparisons, Form, IdentificationReport, Report, Reports, Show, Style, VerificationReport, check},
    session::Distinction,
};
use mxprobe_api::{Error, OperationId};

use crate::{error::raise, model::Model, wait::interruptibly};

/// The number of dots that the search of `distinguish` tries.
const TRIES: u64 = 1_000_000;

/// A result.
pub(crate) enum What {
    Report(Box<Report>),
    Identification(Box<IdentificationReport>),
    Verification(Box<VerificationReport>),
    Comparison(Box<report::Comparison>, bool),
    Distinction(Box<Distinct>),
}

/// A verdict on two models, and its subject.
pub(crate) struct Distinct {
    names: [String; 2],
    models: [mxprobe_models::Model; 2],
    id: OperationId,
    conditions: Conditions,
    verdict: Verdict,
    took: Duration,
}

/// A result that can be shown in every format.
#[pyclass(frozen, module = "mxprobe._mxprobe")]
pub(crate) struct Shown(pub(crate) What);

impl Shown {
    fn with<T>(&self, show: impl FnOnce(&dyn Show) -> T) -> T {
        match &self.0 {
            What::Report(report) => show(&Reports { reports: std::slice::from_ref(report), listed: true }),
            What::Identification(report) => show(report.as_ref()),
            What::Verification(report) => show(report.as_ref()),
            What::Comparison(found, all) => show(&Comparisons { found, reports: &[], listed: true, all: *all }),
            What::Distinction(found) => show(&Distinction {
                names: found.names.each_ref().map(String::as_str),
                models: found.models.each_ref(),
                id: &found.id,
                counterpart: None,
                conditions: found.conditions,
                verdict: &found.verdict,
                checked: None,
                took: found.took,
                arguments: vec!["distinguish".to_owned()],
            }),
        }
    }
}

#[pymethods]
impl Shown {
    /// The text in an output format: `table`, `json`, `markdown`, `csv` or `html`.
    fn text(&self, py: Python<'_>, form: &str, columns: usize, evidence: bool) -> PyResult<String> {
        let form = match form {
            "table" => Form::Table(Style { width: columns, evidence, color: false }),
            "json" => Form::Json,
            "markdown" => Form::Markdown { evidence },
            "csv" => Form::Csv,
            "html" => Form::Html,
            other => {
                let words = format!("`{other}` is not a form; the forms are table, json, markdown, csv and html");
                return Err(raise(py, Error::invalid(words)));
            }
        };
        Ok(self.with(|show| form.text(show)))
    }
}

/// Reads the reports in a file's text.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, text: &str, name: &str) -> PyResult<Vec<Shown>> {
    let reports = check::read_reports(text)
        .map_err(|problem| raise(py, Error::invalid(format!("`{name}` is not a report: {problem}"))))?;
    Ok(reports.into_iter().map(|report| Shown(What::Report(Box::new(report)))).collect())
}

/// Compares reports, each with the name of its source.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, reports: Vec<(String, PyRef<'_, Shown>)>, all: bool) -> PyResult<(Shown, bool)> {
    let mut found = Vec::new();
    for (name, shown) in &reports {
        let What::Report(report) = &shown.0 else {
            return Err(raise(py, Error::invalid(format!("`{name}` is not the report of a run"))));
        };
        found.push((name.clone(), report.as_ref().clone()));
    }
    if found.len() < 2 {
        let words = format!("a comparison takes two reports or more, not {}", found.len());
        return Err(raise(py, Error::invalid(words)));
    }
    let comparison = py.detach(|| report::compare(&found));
    let differ = comparison.differ;
    Ok((Shown(What::Comparison(Box::new(comparison), all)), differ))
}

/// Finds a dot on which two models differ, or a proof that there is none.
#[pyfunction]
#[pyo3(signature = (one, other, id, seed, finite, budget))]
pub(crate) fn distinguish(
    py: Python<'_>,
    one: &Model,
    other: &Model,
    id: &str,
    seed: u64,
    finite: bool,
    budget: f64,
) -> PyResult<(Shown, &'static str)> {
    let models = [one, other].map(|model| model.model.clone());
    let id = models[0].operation_named(id).map_err(|error| raise(py, error))?.id.clone();
    let names = [one.name.clone(), other.name.clone()];
    if !models[1].operations.contains_key(&id) {
        return Err(raise(py, Error::invalid(format!("the model `{}` has no operation {id}", names[1]))));
    }
    let budget = Duration::try_from_secs_f64(budget)
        .map_err(|_| raise(py, Error::invalid(format!("a budget of {budget} s is not a time"))))?;
    let work = move || -> Result<Distinct, Error> {
        let start = Instant::now();
        let conditions = Conditions { finite, ..Conditions::ANY };
        let effort = Effort { seed, tries: TRIES, conditions, closed_form: true, end: start + budget };
        let verdict = ModelComparison::new(models.each_ref(), &id)?.decide(&effort);
        Ok(Distinct { names, models, id, conditions, verdict, took: start.elapsed() })
    };
    // It ends with its budget, even if nobody waits.
    let found = interruptibly(py, work, || ())?.map_err(|error| raise(py, error))?;
    let verdict = match found.verdict {
        Verdict::Differ(..) => "differ",
        Verdict::Equal(_) => "equal",
        Verdict::Undecided(_) => "undecided",
    };
    Ok((Shown(What::Distinction(Box::new(found))), verdict))
}
