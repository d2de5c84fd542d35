use std::{collections::BTreeSet, convert::Infallible};

use super::*;

/// The sections, tables and figures of each paper, and the least number of its items.
const CONTENTS: [(&str, &[&str], usize); 5] = [
    (
        "nvidia",
        &[
            "2.1", "2.2", "2.3", "Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5", "4", "4.5", "5.1",
            "Figure 6", "5.2", "5.3", "5.4", "6",
        ],
        44,
    ),
    (
        "fasi-2021",
        &["1", "Table 1", "2", "Table 2", "3.1.1", "Table 3", "3.1.2", "3.1.3", "Figure 1", "3.1.4", "3.2", "4"],
        77,
    ),
    (
        "fasi-2023",
        &[
            "1",
            "2",
            "Table 2.1",
            "3",
            "Figure 3.1",
            "Table 4.1",
            "4",
            "4.1",
            "4.2",
            "4.2.1",
            "Figure 4.1",
            "4.2.2",
            "Figure 4.2",
            "4.3",
            "Figure 4.3",
            "4.4",
            "Figure 4.4",
            "Figure 4.5",
            "5",
        ],
        90,
    ),
    (
        "valpey",
        &[
            "1",
            "2",
            "3",
            "4",
            "4.1",
            "Listing 1",
            "Table 1",
            "Table 2",
            "Property 1",
            "4.2",
            "Table 3",
            "Property 2",
            "Listing 2",
            "4.3",
            "Property 3",
            "Property 4",
            "5",
            "Table 4",
            "Algorithm 1",
            "Figure 1",
            "6",
            "Property 5",
            "Table 5",
            "7",
            "website",
        ],
        41,
    ),
    ("poster", &["Motivation", "Tensor cores", "Findings", "Accuracy of dot products", "Rounding modes"], 16),
];

fn checked(paper: &Paper, device: Option<&Asked>) -> PaperRecord {
    let Ok(record) = check(paper, device, &mut |_| Ok::<(), Infallible>(()));
    record
}

#[test]
fn every_section_table_and_figure_of_a_paper_has_its_numbers_or_says_why_not() {
    let names: BTreeSet<&str> = all().iter().map(|paper| paper.name.as_str()).collect();
    assert_eq!(names, CONTENTS.iter().map(|(name, ..)| *name).collect());
    for (name, places, least) in CONTENTS {
        let paper = named(name).unwrap();
        let wanted: BTreeSet<&str> = places.iter().copied().collect();
        let found: BTreeSet<&str> = paper.section.iter().map(|section| section.place.as_str()).collect();
        assert_eq!(found, wanted, "{name}");
        assert_eq!(paper.section.len(), places.len(), "{name}: a place is said twice");
        assert!(paper.item.len() >= least, "{name} has {} numbers", paper.item.len());
        for item in &paper.item {
            assert!(found.contains(item.place.as_str()), "{name}: {} of `{}`", item.place, item.asked);
        }
        for section in &paper.section {
            let has_items = paper.item.iter().any(|item| item.place == section.place);
            assert_ne!(has_items, section.none.is_some(), "{name}, {}", section.place);
        }
    }
}

#[test]
fn items_come_in_the_order_of_the_file_and_an_error_before_one_ends_the_rest() {
    let paper = named("poster").unwrap();
    let record = checked(paper, None);
    for (section, found) in paper.section.iter().zip(&record.sections) {
        let wanted: Vec<&str> = paper.items(section).map(|item| item.asked.as_str()).collect();
        assert_eq!(found.items.iter().map(|item| item.asked.as_str()).collect::<Vec<_>>(), wanted, "{}", section.place);
    }
    let mut begun = Vec::new();
    let mut before = |item: &Item| {
        begun.push(item.asked.clone());
        if begun.len() < 3 { Ok(()) } else { Err("enough") }
    };
    assert_eq!(check(paper, None, &mut before).err(), Some("enough"));
    assert_eq!(begun.len(), 3);
}

#[test]
fn every_number_is_equal_or_explained_and_what_is_explained_differs() {
    for paper in all() {
        let record = checked(paper, None);
        assert_eq!(record.items().count(), paper.item.len());
        for item in record.items() {
            let is_this =
                |known: &&Item| (&known.asked, &known.unit, &known.printed) == (&item.asked, &item.unit, &item.printed);
            let is_explained = paper.item.iter().find(is_this).is_some_and(|known| known.why.is_some());
            assert!(matches!(item.verdict, Verdict::Equal | Verdict::Explained), "{}: {item:?}", paper.name);
            assert!(item.verdict == Verdict::Explained || !is_explained, "a reason of nothing: {item:?}");
            assert!(!item.computed.is_empty(), "{item:?}");
        }
    }
}

#[test]
fn another_device_is_asked_in_place_of_the_paper_s_and_its_differences_are_not_explained_away() {
    let h100 = Asked::of_model(&mxprobe_models::load("h100").unwrap());
    let paper = named("fasi-2021").unwrap();
    let record = checked(paper, Some(&h100));
    let bits = record.items().find(|item| item.asked.starts_with("T4: fraction bits")).unwrap();
    assert_eq!((bits.verdict, bits.computed.contains("25 fraction bits")), (Verdict::Differs, true), "{bits:?}");
    let subnormal = record.items().find(|item| item.asked.starts_with("c11 = 2^-149")).unwrap();
    assert_eq!(subnormal.verdict, Verdict::Equal, "{subnormal:?}");
    // A unit that does not multiply any of the formats is not a failure.
    let cpu = Asked::of_model(&mxprobe_models::load("arm").unwrap());
    let record = checked(paper, Some(&cpu));
    let subnormal = record.items().find(|item| item.asked.starts_with("c11 = 2^-149")).unwrap();
    assert_eq!(subnormal.verdict, Verdict::Unsupported, "{subnormal:?}");
    assert!(record.items().all(|item| item.verdict != Verdict::Failed));
}
