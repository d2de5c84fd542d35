//! Fields of the report. The schema has one sentence for each field; these say what to make of it.

use super::entry::Text;

const SCHEMA: &str = "docs/reports.md; `mxprobe schema report`";

const fn field(
    name: &'static str,
    about: &'static str,
    how: &'static str,
    answers: &'static [(&'static str, &'static str)],
) -> Text {
    Text { name, about, how, answers, source: SCHEMA }
}

/// A field of what `bench` prints.
const fn bench_field(name: &'static str, about: &'static str, how: &'static str) -> Text {
    Text { name, about, how, answers: &[], source: "docs/bench.md; `mxprobe schema bench`" }
}

pub(super) const TEXTS: &[Text] = &[
    field(
        "schema",
        "The version of the form of the report, mxprobe-report/MAJOR.MINOR.",
        "A reader ignores fields that it does not know, and refuses another major version.",
        &[],
    ),
    field(
        "tool",
        "The program that made the report: version, commit, compiler, backends, arguments.",
        "`dirty` says that the source differed from the commit; such a report is not one to publish.",
        &[],
    ),
    field(
        "time",
        "When the report was made, when its last finding was written, and how long it took.",
        "`interrupted` is true until the run has come to its end: operations are missing then.",
        &[],
    ),
    field(
        "host",
        "The machine, as far as it matters: system, kernel, CPU, memory, whether it is virtual, and the variables of the \
         environment that change what drivers do.",
        "No name of the machine or of a user, no serial number: of paths the last part, of a UUID a digest.",
        &[],
    ),
    field(
        "device",
        "Who was asked.",
        "Backend and fingerprint are what a comparison takes for the same device. The driver is data: a baseline \
         survives its update, and the change shows.",
        &[],
    ),
    field(
        "conditions",
        "What the system said of the device before the first question and after the last: clocks, temperature, power, its limit, \
         whether a GPU is divided (`mig`).",
        "Read from files of the kernel, and from nvidia-smi where a GPU of NVIDIA has a place on the bus. What neither says is \
         missing: nothing is missing because it is zero.",
        &[],
    ),
    field(
        "notes",
        "What has to be known before the findings, such as that a model stood in for a device.",
        "Empty in most reports of hardware.",
        &[],
    ),
    field(
        "plan",
        "What the run was to ask: operations, and what `--op` and `--probe` named where only some were wanted.",
        "What is missing against it, `mxprobe run --resume FILE` asks.",
        &[],
    ),
    field(
        "resumed",
        "When the run was gone on with, by which version, and how many operations were left.",
        "Absent where the run ended at once.",
        &[],
    ),
    field(
        "refusals",
        "What was listed or looked for and could not be used, and why.",
        "An operation that is missing among `operations` is here if the driver names it.",
        &[],
    ),
    field(
        "operations",
        "What was learnt, one entry an operation.",
        "Each has its id, FAMILY.mMnNkK.D.A.B.C, and its findings in the order of the questions.",
        &[],
    ),
    field(
        "emulated",
        "A double of the device, made for tests, answered.",
        "Nothing was measured on a device. Absent means false.",
        &[],
    ),
    field(
        "kernel_sha256",
        "A digest of the kernel that was handed to the driver.",
        "Two reports with the same digest asked by the same code; the driver may still compile it differently.",
        &[],
    ),
    field(
        "dots",
        "How many dots were asked to answer the questions of an operation.",
        "A dot is k products and c.",
        &[],
    ),
    field(
        "findings",
        "The answers about an operation.",
        "The key of a finding is backend, fingerprint, operation and probe.",
        &[],
    ),
    field("probe", "The question that a finding answers.", "`mxprobe explain` lists them all.", &[]),
    field(
        "outcome",
        "How a question ended.",
        "Only `measured` has a value; every other one has a reason. No outcome stands for another.",
        &[
            ("measured", "answered; the evidence tells the answer from its rivals"),
            ("unsupported", "the question does not arise for this operation"),
            ("skipped", "not asked in this run"),
            ("inconclusive", "asked, and nothing that can be sent tells the answers apart, or none of them fits"),
            ("failed", "the device or its driver failed while it was asked"),
        ],
    ),
    field("reason", "Why a finding has no value.", "Present exactly where the outcome is not `measured`.", &[]),
    field(
        "value",
        "The answer for programs.",
        "`mxprobe explain PROBE` says which values a probe has. Numbers count bits; bits are text in hexadecimal.",
        &[],
    ),
    field("statement", "The answer in words.", "For people; programs read `value`.", &[]),
    field(
        "evidence",
        "The dots that prove an answer: input bits, output bits, and what each rival answer would have returned.",
        "Each can be computed again, on this device or any model, with `mxprobe eval`.",
        &[],
    ),
    field(
        "function",
        "The function of scalar arithmetic that was called: its operands stand in `a`, its result in `d`.",
        "It stands only in evidence about scalar arithmetic, which has no `b` and no `c`.",
        &[],
    ),
    field(
        "rivals",
        "Other answers to the question, and what each would have returned for the same input.",
        "An answer is proved where the device returned none of them.",
        &[],
    ),
    bench_field(
        "yardstick",
        "It is no operation of a matrix unit, but the scalar units that those are held against.",
        "The first of a report is what `ratio_to_yardstick` is of.",
    ),
    bench_field(
        "runs",
        "What was measured of an operation: on one unit (`span` one), and on all.",
        "Empty exactly where the outcome is not `measured`.",
    ),
    bench_field(
        "clock",
        "Which clock measured: the device's timestamps, or the host's.",
        "Starting the work is in what the host's clock says.",
    ),
    bench_field(
        "flop_per_s_best",
        "The rate of the shortest sample; a multiplication and an addition are two, of integers too.",
        "Others may use the machine, and only ever make a sample longer: the best is nearest to the unit.",
    ),
    bench_field(
        "flop_per_s_median",
        "The rate of the middle of the samples.",
        "Far below the best, and with a large `spread_percent`, the machine was not idle, or the clock changed.",
    ),
    bench_field(
        "flop_per_cycle_and_unit",
        "The best rate over the clock while it was measured and the units that worked.",
        "The number to compare with an architecture's: 1024 for AMX and bf16, 4096 for a multiprocessor of Hopper and f16.",
    ),
    bench_field(
        "frequency_hz",
        "Cycles a second of a unit while the shortest sample ran.",
        "Measured, not read from a table; absent where it cannot be.",
    ),
    bench_field(
        "ratio_to_yardstick",
        "The best rate of all units over that of the scalar units.",
        "Below 1, and with no code to read, an operation is taken for an emulation.",
    ),
    bench_field(
        "peak",
        "What the vendor promises, dense, with its source, and the share of it that was reached.",
        "Absent where the table has no number for the device: that is no judgement.",
    ),
];
