//! Every kernel assembles for every architecture it is offered on, and lowers to the instructions listed in
//! `backends/cuda/lowering.tsv`. Uses NVIDIA's own assembler; needs no GPU.
//!
//! `scripts/cuda-tools` fetches the assembler. Without it these tests are ignored, or fail if
//! `MXPROBE_REQUIRE_PTXAS=1`. `MXPROBE_BLESS=1` rewrites the table.
//!
//! The table contains a digest of the kernels and assemblers. If that is unchanged, only one kernel of each lowering is
//! assembled again, on one architecture of each major version; otherwise, and with `-- --ignored`, every kernel on
//! every architecture, which takes minutes.
#![allow(missing_docs, clippy::print_stderr)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

#[path = "lowering/loops.rs"]
mod loops;
#[path = "lowering/scalars.rs"]
mod scalars;
#[path = "lowering/screening.rs"]
mod screening;

use mxprobe_api::Issued;
use mxprobe_shaders::ptx::{Capability, KernelText};
use sha2::{Digest, Sha256};

/// Compute capabilities with matrix units, of devices that are in use.
const CAPABILITIES: [(u32, u32); 12] =
    [(7, 0), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)];

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A tool that `scripts/cuda-tools` fetched.
fn tool(name: &str) -> PathBuf {
    let folder = std::env::var_os("MXPROBE_CUDA_TOOLS").map_or_else(|| manifest().join("../../.cuda"), PathBuf::from);
    let path = folder.join(name);
    assert!(path.exists(), "{} is missing; scripts/cuda-tools fetches it", path.display());
    path
}

/// Assembles a kernel for a capability.
fn assemble(kernel: &KernelText, capability: Capability, folder: &Path) -> Result<Vec<u8>, String> {
    let is_specific = kernel.target.name.ends_with('a');
    let architecture = if is_specific { capability.fingerprint() } else { capability.architecture() };
    assemble_text(&kernel.ptx, &architecture, &kernel.id.to_string(), folder)
}

/// Assembles a text for an architecture.
fn assemble_text(ptx: &str, architecture: &str, name: &str, folder: &Path) -> Result<Vec<u8>, String> {
    // Several tests assemble the single-tile kernels.
    static ASSEMBLED: Mutex<BTreeMap<(String, String), Vec<u8>>> = Mutex::new(BTreeMap::new());
    let key = (architecture.to_owned(), ptx.to_owned());
    if let Some(code) = ASSEMBLED.lock().unwrap().get(&key) {
        return Ok(code.clone());
    }
    // Only the older assembler supports sm_70.
    let ptxas = tool(if architecture == "sm_70" { "ptxas-12" } else { "ptxas" });
    let at = |extension: &str| folder.join(format!("{architecture}-{name}.{extension}"));
    let (source, code) = (at("ptx"), at("cubin"));
    fs::write(&source, ptx).unwrap();
    let said =
        Command::new(ptxas).arg(format!("-arch={architecture}")).arg(&source).arg("-o").arg(&code).output().unwrap();
    let words = String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
    // ptxas only warns about serialised `wgmma`.
    if !said.status.success() || words.contains("serialized") {
        return Err(words);
    }
    let code = fs::read(&code).unwrap();
    ASSEMBLED.lock().unwrap().insert(key, code.clone());
    Ok(code)
}

/// Formats the instructions of a kernel: `emulated HMMA*2 F2FP*8 call:NAME`.
fn words(issued: &Issued) -> String {
    let counts = issued.matrix.iter().chain(&issued.others).map(|(name, count)| format!("{name}*{count}"));
    let routines = issued.routines.iter().map(|name| format!("call:{name}"));
    let verdict = if issued.is_emulated() { "emulated" } else { "native" };
    std::iter::once(verdict.to_owned()).chain(counts).chain(routines).collect::<Vec<_>>().join(" ")
}

/// The lowering of each operation's kernel on each capability that has it.
type Lowered = BTreeMap<String, Vec<(Capability, String)>>;

/// Every kernel on every capability that has it.
fn every_kernel() -> Vec<(Capability, KernelText)> {
    let capabilities = CAPABILITIES.iter().map(|(major, minor)| Capability::new(*major, *minor));
    capabilities
        .flat_map(|capability| KernelText::all(capability).into_iter().map(move |kernel| (capability, kernel)))
        .collect()
}

/// A line that changes with the kernels and the assemblers.
fn digest(kernels: &[(Capability, KernelText)]) -> String {
    let mut digest = Sha256::new();
    for name in ["ptxas-12", "ptxas"] {
        digest.update(Command::new(tool(name)).arg("--version").output().unwrap().stdout);
    }
    for (capability, kernel) in kernels {
        digest.update(format!("{capability} {} {}\n{}", kernel.id, kernel.target.name, kernel.ptx));
    }
    let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("# SHA-256 of kernels and assemblers: {hex}\n")
}

/// Assembles kernels and collects their lowerings, on as many threads as there are cores.
fn lower(kernels: &[(Capability, KernelText)]) -> Lowered {
    let folder = tempfile::tempdir().unwrap();
    let found: Mutex<BTreeMap<(usize, Capability), (String, String)>> = Mutex::default();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((at, (capability, kernel))) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    kernels.get(at).map(|kernel| (at, kernel))
                } {
                    let cubin = assemble(kernel, *capability, folder.path())
                        .unwrap_or_else(|said| panic!("{} on {capability}: {said}\n{}", kernel.id, kernel.ptx));
                    let issued = mxprobe_cuda::issued(kernel.unit, &cubin, *capability).unwrap();
                    found.lock().unwrap().insert((at, *capability), (kernel.id.to_string(), words(&issued)));
                }
            });
        }
    });
    let mut by_id = Lowered::new();
    for ((_, capability), (id, words)) in found.into_inner().unwrap() {
        by_id.entry(id).or_default().push((capability, words));
    }
    by_id
}

/// Formats one line for each operation and set of architectures that lower it alike.
fn table(lowered: &Lowered) -> String {
    lines("# operation\tarchitectures\twhat the assembler makes of its kernel\n", lowered)
}

/// Formats a heading, and one line for each name and set of architectures with the same lowering.
fn lines(heading: &str, lowered: &Lowered) -> String {
    let mut text = String::from(heading);
    for (id, on) in lowered {
        let mut alike: Vec<(&str, Vec<String>)> = Vec::new();
        for (capability, words) in on {
            match alike.iter_mut().find(|(known, _)| known == words) {
                Some((_, list)) => list.push(capability.architecture()),
                None => alike.push((words, vec![capability.architecture()])),
            }
        }
        for (words, architectures) in alike {
            text.push_str(&format!("{id}\t{}\t{words}\n", architectures.join(" ")));
        }
    }
    text
}

/// An instruction, its registers (D, A, B, C, then one for the metadata of a sparse form), the first capability that
/// has it, and the target and version it needs.
type Form = (&'static str, [usize; 5], (u32, u32), &'static str, &'static str);

/// Forms of the PTX ISA that are not operations here (1-bit operands, sparse A), whose lowering is recorded
/// nevertheless.
const OTHER_FORMS: &[Form] = &[
    ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", [2, 1, 1, 2, 0], (7, 5), "sm_75", "7.0"),
    ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc", [2, 1, 1, 2, 0], (8, 0), "sm_80", "7.1"),
    ("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc", [4, 2, 1, 4, 0], (8, 0), "sm_80", "7.0"),
    ("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc", [4, 2, 1, 4, 0], (8, 0), "sm_80", "7.1"),
    ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", [4, 4, 2, 4, 0], (8, 0), "sm_80", "7.0"),
    ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", [4, 4, 2, 4, 0], (8, 0), "sm_80", "7.1"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [4, 2, 2, 4, 1], (8, 0), "sm_80", "8.5"),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", [4, 4, 4, 4, 1], (8, 0), "sm_80", "8.5"),
    (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
        [4, 4, 4, 4, 1],
        (8, 0),
        "sm_80",
        "8.5",
    ),
    (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
        [4, 4, 4, 4, 1],
        (8, 0),
        "sm_80",
        "8.5",
    ),
    ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", [4, 4, 4, 4, 1], (8, 0), "sm_80", "8.5"),
    (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32",
        [4, 4, 4, 4, 1],
        (8, 9),
        "sm_89",
        "8.5",
    ),
];

/// Writes a kernel for one such form, which loads every operand and stores the result.
fn other_form(form: &Form) -> String {
    let (instruction, counts, _, target, version) = *form;
    let list = |name: char, count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let mut body = String::new();
    let mut offset = 0;
    for (name, count) in ['a', 'b', 'c', 'e'].into_iter().zip(&counts[1..]) {
        for at in 0..*count {
            body += &format!("ld.global.b32 %{name}{at}, [%p+{offset}];\n");
            offset += 128;
        }
    }
    let [d, a, b, c] =
        [('d', counts[0]), ('a', counts[1]), ('b', counts[2]), ('c', counts[3])].map(|(n, k)| list(n, k));
    let metadata = if counts[4] > 0 { ", %e0, 0x0" } else { "" };
    body += &format!("{instruction} {d}, {a}, {b}, {c}{metadata};\n");
    for at in 0..counts[0] {
        body += &format!("st.global.b32 [%p+{}], %d{at};\n", at * 128);
    }
    format!(
        ".version {version}\n.target {target}\n.address_size 64\n.visible .entry tiles(.param .u64 p)\n{{\n\
         .reg .b32 %a<8>, %b<8>, %c<8>, %d<8>, %e<2>, %lane;\n.reg .b64 %p;\nld.param.u64 %p, [p];\n\
         mov.u32 %lane, %tid.x;\nmad.wide.u32 %p, %lane, 4, %p;\n{body}ret;\n}}\n"
    )
}

/// The lowerings of the other forms on every architecture that has them.
fn other_lowerings() -> Lowered {
    let folder = tempfile::tempdir().unwrap();
    let mut by_form: Lowered = BTreeMap::new();
    for form in OTHER_FORMS {
        for (major, minor) in CAPABILITIES.into_iter().filter(|capability| *capability >= form.2) {
            let capability = Capability::new(major, minor);
            let cubin = assemble_text(&other_form(form), &capability.architecture(), "form", folder.path());
            let cubin = cubin.unwrap_or_else(|said| panic!("{} on {capability}: {said}", form.0));
            let unit = match form.0 {
                name if name.contains(".b1.") => "BMMA",
                name if name.contains(".s8.") => "IMMA",
                name if name.contains(".e4m3.") => "QMMA",
                _ => "HMMA",
            };
            let issued = mxprobe_cuda::issued(unit, &cubin, capability).unwrap();
            by_form.entry(form.0.to_owned()).or_default().push((capability, words(&issued)));
        }
    }
    by_form
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn kernels_lower_as_the_table_says() {
    let kernels = every_kernel();
    let stored = fs::read_to_string(manifest().join("lowering.tsv")).unwrap_or_default();
    if !stored.starts_with(&digest(&kernels)) || std::env::var_os("MXPROBE_BLESS").is_some() {
        return compare_all(&kernels);
    }
    // The first operation of each lowering, on the first architecture of each major version that lowers it so.
    let mut seen = BTreeSet::new();
    let mut chosen = BTreeSet::new();
    for line in stored.lines().filter(|line| !line.starts_with('#')) {
        let [id, architectures, words] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if seen.insert((architectures, words)) {
            let mut majors = BTreeSet::new();
            let first = architectures.split(' ').filter(|name| majors.insert(&name[..name.len() - 1]));
            chosen.extend(first.map(|architecture| (id.to_owned(), architecture.to_owned())));
        }
    }
    let is_chosen = |(capability, kernel): &(Capability, KernelText)| {
        chosen.contains(&(kernel.id.to_string(), capability.architecture()))
    };
    let sample: Vec<_> = kernels.into_iter().filter(is_chosen).collect();
    assert!(sample.len() > 100, "{} kernels", sample.len());
    for (id, on) in lower(&sample) {
        for (capability, words) in on {
            let says = |line: &str| {
                let fields: Vec<&str> = line.split('\t').collect();
                fields.len() == 3
                    && fields[0] == id
                    && fields[1].split(' ').any(|name| name == capability.architecture())
                    && fields[2] == words
            };
            assert!(stored.lines().any(says), "{id} on {capability} lowers to {words}");
        }
    }
}

#[test]
#[ignore = "takes minutes: every kernel on every architecture"]
fn every_kernel_lowers_as_the_table_says() {
    compare_all(&every_kernel());
}

fn compare_all(kernels: &[(Capability, KernelText)]) {
    let mut now = digest(kernels) + &table(&lower(kernels));
    now += "# forms that are not operations here\n";
    now += table(&other_lowerings()).split_once('\n').expect("a heading").1;
    is_stored("lowering.tsv", &now);
}

/// Checks that a table equals the stored one; `MXPROBE_BLESS=1` stores it instead.
fn is_stored(name: &str, now: &str) {
    let path = manifest().join(name);
    if std::env::var_os("MXPROBE_BLESS").is_some() {
        fs::write(&path, now).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let differing: Vec<&str> = now.lines().filter(|line| !stored.lines().any(|known| known == *line)).take(5).collect();
    assert!(now == stored, "MXPROBE_BLESS=1 rewrites {}; differing lines:\n{}", path.display(), differing.join("\n"));
}

/// Counts the mnemonics in a disassembly: each instruction's first word after a predicate, without modifiers other than
/// `884` and `SF`.
fn mnemonics(listing: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in listing.lines() {
        let Some((_, code)) = line.split_once("*/") else { continue };
        let mut words = code.split_whitespace().filter(|word| !word.starts_with('@'));
        let Some(word) = words.next().map(|word| word.trim_end_matches(';')) else { continue };
        let (base, modifiers) = word.split_once('.').unwrap_or((word, ""));
        let name = match base {
            _ if base.starts_with("UTC") && base.ends_with("MMA") => "UTCMMA".to_owned(),
            "HMMA" if modifiers.contains("STEP") || modifiers.starts_with("884") => "HMMA.884".to_owned(),
            "QMMA" | "OMMA" if modifiers.starts_with("SF") => format!("{base}.SF"),
            _ => base.to_owned(),
        };
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

#[test]
#[cfg_attr(not(cuda_tools), ignore = "scripts/cuda-tools fetches the assembler")]
fn opcodes_are_read_as_the_disassembler_reads_them() {
    let disassembler = tool("nvdisasm");
    let folder = tempfile::tempdir().unwrap();
    // One kernel of each lowering in the table; the disassembler supports sm_75 and later.
    let stored = fs::read_to_string(manifest().join("lowering.tsv")).unwrap();
    let mut seen = BTreeMap::new();
    let operations = stored.lines().take_while(|line| !line.starts_with("# forms"));
    for line in operations.filter(|line| !line.starts_with('#')) {
        let [id, architectures, words] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        if let Some(last) = architectures.split(' ').rfind(|name| *name != "sm_70") {
            seen.entry(words.to_owned()).or_insert((id.to_owned(), last.to_owned()));
        }
    }
    assert!(seen.len() > 15, "{seen:?}");
    for (id, architecture) in seen.values() {
        let digits = architecture.strip_prefix("sm_").unwrap();
        let (major, minor) = digits.split_at(digits.len() - 1);
        let capability = Capability::new(major.parse().unwrap(), minor.parse().unwrap());
        let kernels = KernelText::all(capability);
        let kernel = kernels.iter().find(|kernel| kernel.id.to_string() == *id).unwrap();
        let cubin = assemble(kernel, capability, folder.path()).unwrap();
        let file = folder.path().join("code.cubin");
        fs::write(&file, &cubin).unwrap();
        let said = Command::new(&disassembler).arg("-c").arg(&file).output().unwrap();
        assert!(said.status.success(), "{id}: {}", String::from_utf8_lossy(&said.stderr));
        let theirs = mnemonics(&String::from_utf8_lossy(&said.stdout));
        let ours = mxprobe_cuda::issued(kernel.unit, &cubin, capability).unwrap();
        for (name, count) in ours.matrix.iter().chain(&ours.others) {
            assert_eq!(theirs.get(name), Some(count), "{id} on {architecture}: {name} in {theirs:?}");
        }
        let unread = theirs.keys().filter(|name| name.contains("MMA") && !ours.matrix.contains_key(*name));
        assert_eq!(unread.filter(|name| *name != "FFMA" && *name != "HFMA2").count(), 0, "{id}: {theirs:?}");
    }
}
