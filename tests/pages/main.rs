//! Pages in a browser: headless Chromium lays them out for desk, phone and paper, light and dark, and checks layout and
//! contrast. `MXPROBE_CHROMIUM` names a browser other than `chromium`.
#![allow(missing_docs)]

use std::{fs, path::Path, process::Command};

/// Runs the command and returns its standard output; a comparison ends with 1.
fn said(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mxprobe")).args(arguments).output().expect("mxprobe starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code < 2), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("a page is UTF-8")
}

/// A page: its name, its HTML, and whether to check it also with every fold opened.
type Sheet<'a> = (&'a str, String, bool);

/// The faults of these pages, one sentence each. The browser starts once.
fn wrong(pages: &[Sheet<'_>]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("check.html");
    // Escape `<`, because `</script>` in a page would end the script.
    let pages = serde_json::to_string(pages).unwrap().replace('<', "\\u003c");
    let check = include_str!("check.js");
    let html = format!(
        "<!doctype html><meta charset=utf-8><body><pre id=found>not run</pre><script>const pages = {pages};\n{check}</script>"
    );
    fs::write(&page, html).unwrap();
    let browser = std::env::var_os("MXPROBE_CHROMIUM").unwrap_or_else(|| "chromium".into());
    let output = Command::new(&browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", Path::new(&browser).display()));
    let dom = String::from_utf8_lossy(&output.stdout);
    let found = dom.split("<pre id=\"found\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let found = found.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&output.stderr)));
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"))
}

#[track_caller]
fn is_right(pages: &[Sheet<'_>]) {
    let found = wrong(pages);
    assert!(found.is_empty(), "{} complaints:\n{}", found.len(), found.join("\n"));
}

#[test]
#[cfg_attr(not(chromium), ignore = "Chromium was not found")]
fn a_page_that_overlaps_overflows_cuts_or_fades_its_text_is_found() {
    let broken = |body: &str| format!("<!doctype html><style>body {{ margin: 0 }}</style><body>{body}</body>");
    for (what, body) in [
        ("overlap", "<p style='position:absolute;top:9px'>below</p><p style='position:absolute;top:12px'>above</p>"),
        ("overlap", "<svg width=90 height=40><text x=5 y=20>one</text><text x=9 y=22>other</text></svg>"),
        ("wider than its window", "<p>as it is</p><div style='width:1500px;height:1px'></div>"),
        ("cut", "<div style='width:4em;overflow:hidden;white-space:nowrap'>longer than its box</div>"),
        ("cut", "<svg width=40 height=40><text x=20 y=20>longer than its drawing</text></svg>"),
        ("beside the page", "<p style='position:absolute;left:-20px'>begins outside</p>"),
        ("contrast", "<p style='color:#999'>pale</p>"),
        ("contrast", "<svg width=90 height=40><text x=5 y=20 fill='#aaa'>pale</text></svg>"),
        ("the first fold begins too far down", "<div style='height:3100px'>long</div><details>folded</details>"),
        ("empty", "<details><p>folded</p></details>"),
    ] {
        let found = wrong(&[("broken", broken(body), false)]);
        let is_found = found.iter().any(|complaint| complaint.contains(what));
        // A fold without a summary gets one from the browser, which is not part of the page's text.
        assert!(is_found, "{what} in {body}: {found:?}");
    }
    is_right(&[(
        "plain",
        broken("<p>nothing is wrong</p><svg width=90 height=40><text x=5 y=20>here</text></svg>"),
        true,
    )]);
}

#[test]
#[cfg_attr(not(chromium), ignore = "Chromium was not found")]
fn pages_are_readable_on_a_desk_a_phone_and_paper_in_light_and_dark() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let reports: Vec<String> = ["v100", "a100", "h100", "mi300x", "rdna3", "rdna4"]
        .map(|unit| {
            let (device, out) = (format!("sim:{unit}"), path(&format!("{unit}.json")));
            said(&["run", "--device", &device, "--out", &out]);
            out
        })
        .into();
    let html = |arguments: &[&str]| said(&[arguments, &["--format", "html"]].concat());
    let several: Vec<&str> = ["compare"].into_iter().chain(reports.iter().map(String::as_str)).collect();
    let golden = |name: &str| format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let growth = ["gemm", "--device", "sim:h100", "--experiment", "growth", "--exponents", "5,7"];
    is_right(&[
        ("a report of an H100", html(&["report", &reports[2]]), false),
        ("a report of an RX 9070 XT", html(&["report", &reports[5]]), false),
        ("two reports", html(&["report", &golden("a100.json"), &golden("llvmpipe-newer.json")]), true),
        ("a comparison of six", html(&several), false),
        (
            "a comparison of three",
            html(&["compare", &golden("a100.json"), &golden("rdna4.json"), &golden("llvmpipe.json")]),
            true,
        ),
        ("growth", html(&growth), true),
        ("the listing of models", html(&["list", "--device", "sim:h100"]), false),
        ("what a paper prints", html(&["papers", "fasi-2021"]), false),
        ("an explanation", html(&["explain", "order.tree"]), true),
    ]);
}

/// The targets of a page's links, and the ids of its elements.
fn links(page: &str) -> (Vec<&str>, Vec<&str>) {
    let of = |attribute: &str| -> Vec<&str> {
        let parts = page.split(attribute).skip(1);
        parts.map(|part| part.split('"').next().unwrap_or_default()).collect()
    };
    (of(" href=\""), of(" id=\""))
}

#[test]
fn every_link_of_a_site_leads_somewhere_and_every_unit_and_format_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let golden = |name: &str| format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let reports = [golden("llvmpipe.json"), golden("llvmpipe-newer.json")];
    said(&["site", out, &reports[1], &reports[0], "--without-models"]);
    let pages: std::collections::BTreeMap<String, String> = fs::read_dir(out)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect();
    for (name, page) in pages.iter().filter(|(name, _)| name.ends_with(".html")) {
        let (to, _) = links(page);
        assert!(!to.is_empty(), "{name} has no links");
        for link in to {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = pages.get(if file.is_empty() { name.as_str() } else { file });
            let target = target.unwrap_or_else(|| panic!("{name} links to {link}, which does not exist"));
            assert!(anchor.is_empty() || links(target).1.contains(&anchor), "{name}: {link} does not exist");
        }
        assert!(!page.contains("<script"), "{name}");
        assert!(
            name == "index.html" || pages["index.html"].contains(&format!("href=\"{name}\"")),
            "nothing links to {name}"
        );
    }
    assert!(pages.contains_key("format-f16.html") && pages.contains_key("bits.svg"), "{:?}", pages.keys());
    // Two reports of one device are one unit, with the older one first and the changes of the driver.
    let unit: Vec<&String> = pages.keys().filter(|name| name.starts_with("vulkan-")).collect();
    let [unit] = unit[..] else { panic!("{:?}", pages.keys()) };
    let timeline = pages[unit].split("Over drivers</h2>").nth(1).unwrap();
    assert!(timeline.find("first report") < timeline.find(" differ"), "{timeline}");
}

#[test]
#[cfg_attr(not(chromium), ignore = "Chromium was not found")]
fn a_site_of_models_is_readable() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    // All models would take a minute.
    let models = ["v100", "a100", "h100", "l40s", "mi300x", "rdna3", "rdna4", "amx"];
    said(&[&["site", out][..], &models.map(|name| ["--model", name]).concat()].concat());
    let page = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    is_right(&[
        ("the matrix of all units", page("index.html"), false),
        ("fp8", page("format-fp8.html"), true),
        ("f16", page("format-f16.html"), false),
        ("int8", page("format-int8.html"), false),
        ("an H100", page("h100.html"), true),
        ("an RX 7900 XTX", page("rdna3.html"), false),
    ]);
    // Ada keeps 13 fraction bits of fp8, as Hopper does; the pages name both.
    let fp8 = page("format-fp8.html");
    assert!(fp8.contains("from 13 fraction bits below the largest term (NVIDIA"), "{fp8}");
    assert!(page("h100.html").contains("Same arithmetic as"));
}
