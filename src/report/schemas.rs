//! The JSON Schemas of documents, as `results/schema` publishes them; a test of `mxprobe-analysis` derives them from the
//! types.

/// Declares a function for each schema: its description, name and file.
macro_rules! published {
    ($(#[doc = $about:literal] $name:ident $file:literal;)*) => {
        $(
            #[doc = $about]
            #[must_use]
            pub fn $name() -> serde_json::Value {
                let published = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/results/schema/", $file));
                serde_json::from_str(published).expect("a published schema is JSON")
            }
        )*
    };
}

published! {
    /// Returns the JSON Schema of reports.
    schema "report-1.json";
    /// Returns the JSON Schema of listings.
    list_schema "list-1.json";
    /// Returns the JSON Schema of comparisons.
    comparison_schema "comparison-1.json";
    /// Returns the JSON Schema of identifications.
    identification_schema "identification-1.json";
    /// Returns the JSON Schema of verifications.
    verification_schema "verification-1.json";
    /// Returns the JSON Schema of throughput measurements.
    bench_schema "bench-1.json";
    /// Returns the JSON Schema of experiments on the growth of errors.
    growth_schema "growth-1.json";
    /// Returns the JSON Schema of comparisons of throughput.
    bench_comparison_schema "bench-comparison-1.json";
    /// Returns the JSON Schema of comparisons of growing errors.
    growth_comparison_schema "growth-comparison-1.json";
    /// Returns the JSON Schema of distinctions.
    distinction_schema "distinction-1.json";
    /// Returns the JSON Schema of classes of models.
    classes_schema "classes-1.json";
    /// Returns the JSON Schema of properties of a model.
    properties_schema "properties-1.json";
    /// Returns the JSON Schema of comparisons of two algorithms.
    algorithms_schema "algorithms-1.json";
    /// Returns the JSON Schema of screens.
    screen_schema "screen-1.json";
    /// Returns the JSON Schema of fleets.
    fleet_schema "fleet-1.json";
    /// Returns the JSON Schema of results of `papers`.
    papers_schema "papers-1.json";
    /// Returns the JSON Schema of explanations.
    explanation_schema "explanation-1.json";
}
