//! The JSON Schemas of documents, derived from the types and compared with those that `results/schema` publishes.
//!
//! The program contains the published ones as text: to derive them whenever it is built would take each build longer.

use std::{env, fs, path::Path};

use serde_json::Value;

use super::{
    AlgorithmsReport, BenchComparison, BenchReport, ClassesReport, Comparison, DistinctionReport, FleetReport,
    GrowthComparison, GrowthReport, IdentificationReport, Listing, PapersReport, PropertiesReport, Report,
    ScreenReport, VerificationReport, explanation::Explanation, to_json,
};

#[test]
fn published_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/schema");
    let schemas = [
        ("report-1.json", schemars::schema_for!(Report)),
        ("list-1.json", schemars::schema_for!(Listing)),
        ("comparison-1.json", schemars::schema_for!(Comparison)),
        ("identification-1.json", schemars::schema_for!(IdentificationReport)),
        ("verification-1.json", schemars::schema_for!(VerificationReport)),
        ("bench-1.json", schemars::schema_for!(BenchReport)),
        ("growth-1.json", schemars::schema_for!(GrowthReport)),
        ("bench-comparison-1.json", schemars::schema_for!(BenchComparison)),
        ("growth-comparison-1.json", schemars::schema_for!(GrowthComparison)),
        ("distinction-1.json", schemars::schema_for!(DistinctionReport)),
        ("classes-1.json", schemars::schema_for!(ClassesReport)),
        ("properties-1.json", schemars::schema_for!(PropertiesReport)),
        ("algorithms-1.json", schemars::schema_for!(AlgorithmsReport)),
        ("screen-1.json", schemars::schema_for!(ScreenReport)),
        ("fleet-1.json", schemars::schema_for!(FleetReport)),
        ("papers-1.json", schemars::schema_for!(PapersReport)),
        ("explanation-1.json", schemars::schema_for!(Explanation)),
    ];
    let published = fs::read_dir(&folder).expect("schemas are published");
    let mut published: Vec<String> = published.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    published.sort_unstable();
    let mut derived = schemas.each_ref().map(|(name, _)| *name);
    derived.sort_unstable();
    assert_eq!(published, derived);
    for (name, schema) in schemas {
        let mut schema: Value = schema.to_value();
        // For jsonschema, which only tests depend on, serde_json keeps keys in the order in which they are added.
        schema.sort_all_objects();
        let wanted = to_json(&schema);
        let path = folder.join(name);
        if env::var_os("MXPROBE_BLESS").is_some() {
            fs::write(path, wanted).expect("the schema is writable");
        } else {
            let published = fs::read_to_string(path).expect("the schema is published");
            assert!(published == wanted, "{name} is not current; MXPROBE_BLESS=1 rewrites it:\n{wanted}");
        }
    }
}
