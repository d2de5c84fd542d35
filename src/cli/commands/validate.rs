//! `schema` prints JSON Schemas, and `validate` checks saved documents.

use crate::glossary::explanation_schema;
use crate::plain;
use crate::report::{
    algorithms_schema, bench_comparison_schema, bench_schema, check, classes_schema, comparison_schema,
    distinction_schema, fleet_schema, growth_comparison_schema, growth_schema, identification_schema, list_schema,
    papers_schema, properties_schema, schema as report_schema, screen_schema, verification_schema,
};

use crate::cli::{
    arguments::{Schema, SchemaOf, Screen, Validate},
    failure::{Failure, Outcome},
    io::{input, output},
};

/// Prints a JSON Schema.
pub(crate) fn schema(arguments: &Schema) -> Outcome {
    output::print_json(&match arguments.of {
        SchemaOf::Report => report_schema(),
        SchemaOf::List => list_schema(),
        SchemaOf::Comparison => comparison_schema(),
        SchemaOf::Identification => identification_schema(),
        SchemaOf::Verification => verification_schema(),
        SchemaOf::Bench => bench_schema(),
        SchemaOf::Growth => growth_schema(),
        SchemaOf::BenchComparison => bench_comparison_schema(),
        SchemaOf::GrowthComparison => growth_comparison_schema(),
        SchemaOf::Distinction => distinction_schema(),
        SchemaOf::Classes => classes_schema(),
        SchemaOf::Algorithms => algorithms_schema(),
        SchemaOf::Properties => properties_schema(),
        SchemaOf::Screen => screen_schema(),
        SchemaOf::Fleet => fleet_schema(),
        SchemaOf::Explanation => explanation_schema(),
        SchemaOf::Papers => papers_schema(),
    })
}

/// Checks a saved document. The exit code is 0 if it is valid, 1 if it is not.
pub(crate) fn validate(arguments: &Validate, screen: Screen) -> Outcome {
    let text = input::read(&arguments.file)?;
    let name = arguments.file.display();
    match check::check(&text) {
        Ok(summary) => {
            if !screen.quiet {
                output::print(format!("{name}: valid: {summary}\n").as_bytes())?;
            }
            Ok(0)
        }
        Err(problems) => {
            let mut lines = String::new();
            for problem in &problems {
                lines += &format!("{name}: {}\n", plain::lines(&problem.to_string()));
            }
            output::print(lines.as_bytes())?;
            Err(Failure::no(format!("`{name}` is not valid")))
        }
    }
}
