//! The JSON Schemas of documents, as published in `results/schema`.
//!
//! A test derives them from the types and compares them with the files, which the program contains as text: to derive
//! them whenever it is built would take each build longer.

/// Declares a function for each schema: its description, name, file and type.
macro_rules! published {
    ($(#[doc = $about:literal] $name:ident $file:literal $of:ty;)*) => {
        $(
            #[doc = $about]
            #[must_use]
            pub fn $name() -> serde_json::Value {
                let published = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/results/schema/", $file));
                serde_json::from_str(published).expect("a published schema is JSON")
            }
        )*

        #[test]
        fn published_schemas_are_those_of_the_types() {
            $(
                let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results/schema/", $file);
                let mut schema = schemars::schema_for!($of).to_value();
                // For jsonschema, which only tests depend on, serde_json keeps keys in the order in which they are added.
                schema.sort_all_objects();
                let wanted = crate::report::to_json(&schema);
                if std::env::var_os("MXPROBE_BLESS").is_some() {
                    std::fs::write(path, wanted).expect("the schema is writable");
                } else {
                    let published = std::fs::read_to_string(path).expect("the schema is published");
                    assert!(published == wanted, "{} is not current; MXPROBE_BLESS=1 rewrites it:\n{wanted}", $file);
                }
            )*
        }
    };
}
pub(crate) use published;

published! {
    /// Returns the JSON Schema of reports.
    schema "report-1.json" super::Report;
    /// Returns the JSON Schema of listings.
    list_schema "list-1.json" super::Listing;
    /// Returns the JSON Schema of comparisons.
    comparison_schema "comparison-1.json" super::Comparison;
    /// Returns the JSON Schema of identifications.
    identification_schema "identification-1.json" super::IdentificationReport;
    /// Returns the JSON Schema of verifications.
    verification_schema "verification-1.json" super::VerificationReport;
    /// Returns the JSON Schema of throughput measurements.
    bench_schema "bench-1.json" super::BenchReport;
    /// Returns the JSON Schema of experiments on the growth of errors.
    growth_schema "growth-1.json" super::GrowthReport;
    /// Returns the JSON Schema of comparisons of throughput.
    bench_comparison_schema "bench-comparison-1.json" super::BenchComparison;
    /// Returns the JSON Schema of comparisons of growing errors.
    growth_comparison_schema "growth-comparison-1.json" super::GrowthComparison;
    /// Returns the JSON Schema of distinctions.
    distinction_schema "distinction-1.json" super::DistinctionReport;
    /// Returns the JSON Schema of classes of models.
    classes_schema "classes-1.json" super::ClassesReport;
    /// Returns the JSON Schema of properties of a model.
    properties_schema "properties-1.json" super::PropertiesReport;
    /// Returns the JSON Schema of comparisons of two algorithms.
    algorithms_schema "algorithms-1.json" super::AlgorithmsReport;
    /// Returns the JSON Schema of screens.
    screen_schema "screen-1.json" super::ScreenReport;
    /// Returns the JSON Schema of fleets.
    fleet_schema "fleet-1.json" super::FleetReport;
    /// Returns the JSON Schema of results of `papers`.
    papers_schema "papers-1.json" super::PapersReport;
}
