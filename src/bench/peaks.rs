//! The peak rates that vendors specify.

use std::sync::LazyLock;

use mxprobe_api::OperationId;
use serde::Deserialize;

use crate::{
    contained,
    report::{CyclePeak, DeviceRecord, Peak, ThroughputRun},
};

/// The table of peaks, each line with its source.
const TABLE: &str = include_str!("peaks.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    peak: Vec<Line>,
    chip: Vec<Chip>,
}

/// A whole GPU.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chip {
    /// Like [`Line::names`].
    names: Vec<String>,
    fingerprint: String,
    /// The number of multiprocessors.
    units: u32,
    boost_hz: f64,
    source: String,
}

/// A word in the name of a part of a GPU: `NVIDIA H100 80GB HBM3 MIG 1g.10gb`. The part has fewer multiprocessors than
/// the product, and each has the product's peak.
const PART: &str = "MIG";

/// A dense peak of some devices for some formats.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// The line applies to devices whose name contains one of these as whole words; to all devices if there are none.
    #[serde(default)]
    names: Vec<String>,
    /// A part of the device's fingerprint, whose parts are separated by `+`.
    fingerprint: Option<String>,
    /// Families of operations; all if there are none.
    #[serde(default)]
    families: Vec<String>,
    /// Formats of A.
    operands: Vec<String>,
    /// Formats of D; all if there are none.
    #[serde(default)]
    results: Vec<String>,
    /// The rate of all units together.
    flop_per_s: Option<f64>,
    /// The rate of one unit, for devices whose clock and number of units are measured.
    flop_per_cycle_and_unit: Option<f64>,
    source: String,
}

static ALL: LazyLock<Table> = LazyLock::new(|| contained::table(TABLE));

/// The dense peak of an operation at the boost clock, and its source: units × boost clock × the rate of a unit per
/// cycle. `chip` is a word of the GPU's name: `V100-SXM2-16GB`. `None` if the table does not have both the chip and the
/// rate.
#[must_use]
pub fn boost_peak(chip: &str, id: &OperationId) -> Option<(f64, String)> {
    let Chip { fingerprint, units, boost_hz, source, .. } =
        ALL.chip.iter().find(|of| of.names.iter().any(|name| has_words(chip, name)))?;
    let fits = |line: &&Line| line.flop_per_cycle_and_unit.is_some() && line.is_of(chip, fingerprint, id);
    let line = ALL.peak.iter().find(fits)?;
    let rate = f64::from(*units) * boost_hz * line.flop_per_cycle_and_unit?;
    Some((rate, format!("{source}; {}", line.source)))
}

/// The dense peak of an operation: that of the device if the table has it, otherwise that of its units at the boost
/// clock, otherwise at the measured clock.
pub(super) fn peak(device: &DeviceRecord, id: &OperationId, run: &ThroughputRun) -> Option<Peak> {
    let of_cycle = ALL.peak.iter().filter(|line| line.is_of(&device.name, &device.fingerprint, id)).find_map(|line| {
        let flop_per_cycle_and_unit = line.flop_per_cycle_and_unit?;
        let ratio = run.flop_per_cycle_and_unit? / flop_per_cycle_and_unit;
        Some(CyclePeak { flop_per_cycle_and_unit, ratio, source: line.source.clone() })
    });
    let is_whole = !device.name.split_whitespace().any(|word| word == PART);
    let of_device = ALL.peak.iter().filter(|line| is_whole && line.is_of(&device.name, &device.fingerprint, id));
    let of_device = of_device.filter_map(|line| Some((line.flop_per_s?, line.source.clone()))).next();
    let of_chip = || is_whole.then(|| boost_peak(&device.name, id)).flatten();
    let of_units = || {
        let cycle = of_cycle.as_ref()?;
        let rate = cycle.flop_per_cycle_and_unit * run.frequency_hz? * f64::from(run.units?);
        Some((rate, format!("{}, at the clock measured here", cycle.source)))
    };
    let (flop_per_s, source) = of_device.or_else(of_chip).or_else(of_units)?;
    Some(Peak { flop_per_s, ratio: run.flop_per_s_best / flop_per_s, source, per_cycle: of_cycle })
}

impl Line {
    fn is_of(&self, device: &str, fingerprint: &str, id: &OperationId) -> bool {
        let is_named = |name: &String| has_words(device, name);
        let has_word = |word: &String| fingerprint.split('+').any(|part| part == word);
        (self.names.is_empty() || self.names.iter().any(is_named))
            && self.fingerprint.as_ref().is_none_or(has_word)
            && (self.families.is_empty() || self.families.contains(&id.family))
            && self.operands.contains(&id.a.to_string())
            && self.operands.contains(&id.b.to_string())
            && (self.results.is_empty() || self.results.contains(&id.d.to_string()))
    }
}

/// Whether a name contains words one after another: `RTX 4090` is in `NVIDIA GeForce RTX 4090`, but not in
/// `RTX 4090 D`.
fn has_words(name: &str, words: &str) -> bool {
    let all: Vec<&str> = name.split_whitespace().collect();
    let words: Vec<&str> = words.split_whitespace().collect();
    let Some(at) = all.windows(words.len()).position(|window| window == words) else { return false };
    // Some words after a product's name make it another product; the size of the memory does not.
    !all.get(at + words.len())
        .is_some_and(|next| ["D", "Ti", "SUPER", "Super", "Laptop", "Max-Q", "XT", "GRE"].contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Kind, TimedBy, Units};

    fn device(name: &str, fingerprint: &str) -> DeviceRecord {
        DeviceRecord {
            backend: "cuda".into(),
            selector: "cuda:0".into(),
            name: name.into(),
            fingerprint: fingerprint.into(),
            kind: Kind::Hardware,
            emulated: false,
            aliases: Vec::new(),
            driver: None,
            properties: Default::default(),
        }
    }

    fn run() -> ThroughputRun {
        ThroughputRun {
            span: Units::All,
            units: Some(2),
            unit: "core".into(),
            clock: TimedBy::Host,
            chains: 1,
            steps: 1,
            samples: 7,
            best_ns: 1.0,
            median_ns: 1.0,
            spread_percent: 0.0,
            flop_per_s_best: 1.0,
            flop_per_s_median: 1.0,
            frequency_hz: Some(3e9),
            flop_per_cycle_and_unit: Some(512.0),
        }
    }

    fn of(name: &str, fingerprint: &str, id: &str) -> Option<f64> {
        peak(&device(name, fingerprint), &id.parse().unwrap(), &run()).map(|found| {
            assert!(found.source.len() > 10, "{}", found.source);
            found.flop_per_s
        })
    }

    fn of_cycle(name: &str, fingerprint: &str, id: &str) -> Option<(f64, f64)> {
        let found = peak(&device(name, fingerprint), &id.parse().unwrap(), &run())?.per_cycle?;
        assert!(found.source.len() > 10, "{}", found.source);
        Some((found.flop_per_cycle_and_unit, found.ratio))
    }

    #[test]
    fn peaks_are_those_of_the_device_and_of_the_formats() {
        let f16 = "mma.m16n8k16.f32.f16.f16.f32";
        assert_eq!(of("NVIDIA H100 80GB HBM3", "sm_90a", f16), Some(989.4e12));
        assert_eq!(of("NVIDIA H200", "sm_90a", "wgmma.m64n256k32.f32.e4m3.e4m3.f32"), Some(1978.9e12));
        assert_eq!(of("NVIDIA H100 PCIe", "sm_90a", f16), Some(757e12));
        assert_eq!(of("NVIDIA GeForce RTX 4090", "sm_89", f16), Some(165.2e12));
        assert_eq!(of("NVIDIA GeForce RTX 4090", "sm_89", "mma.m16n8k16.f16.f16.f16.f16"), Some(330.3e12));
        assert_eq!(of("NVIDIA GeForce RTX 4090 D", "sm_89", f16), None);
        assert_eq!(of("NVIDIA GeForce GTX 1", "sm_75", f16), None);
        assert_eq!(
            of("AMD Radeon RX 7900 XTX (RADV NAVI31)", "x", "coopmat.m16n16k16.f32.f16.f16.f32"),
            Some(122.8e12)
        );
    }

    #[test]
    fn a_multiprocessor_has_a_peak_of_a_cycle_whatever_the_clock() {
        let (sxm, hopper) = ("NVIDIA H100 80GB HBM3", "sm_90a");
        for (id, rate) in [
            ("wgmma.m64n256k16.f32.bf16.bf16.f32", 4096.0),
            ("wgmma.m64n256k8.f32.tf32.tf32.f32", 2048.0),
            ("wgmma.m64n256k32.f32.e4m3.e5m2.f32", 8192.0),
            ("wgmma.m64n256k32.s32.s8.s8.s32", 8192.0),
            ("mma.m16n8k16.f64.f64.f64.f64", 256.0),
            ("fma.m1n1k1.f32.f32.f32.f32", 256.0),
        ] {
            assert_eq!(of_cycle(sxm, hopper, id), Some((rate, 512.0 / rate)), "{id}");
        }
        assert_eq!(
            of_cycle("NVIDIA H20", hopper, "wgmma.m64n256k16.f32.bf16.bf16.f32"),
            None,
            "a part that is cut down"
        );
        assert_eq!(
            of_cycle("NVIDIA A100-SXM4-80GB", "sm_80", "mma.m16n8k16.f32.f16.f16.f32").map(|of| of.0),
            Some(2048.0)
        );
        assert_eq!(
            of_cycle("Tesla V100-SXM2-16GB", "sm_70", "mma.m8n8k4.f32.f16.f16.f32").map(|of| of.0),
            Some(1024.0)
        );
        assert_eq!(of(sxm, hopper, "mma.m16n8k16.f64.f64.f64.f64"), Some(66.9e12));
    }

    #[test]
    fn a_part_of_a_gpu_is_not_compared_with_the_whole() {
        let (name, id) = ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "wgmma.m64n256k16.f32.f16.f16.f32");
        assert_eq!(of_cycle(name, "sm_90a", id).map(|of| of.0), Some(4096.0));
        // Two multiprocessors at 3 GHz.
        assert_eq!(of(name, "sm_90a", id), Some(4096.0 * 3e9 * 2.0));
        assert_eq!(of("NVIDIA H200", "sm_90a", id), Some(989.4e12));
    }

    #[test]
    fn a_rate_of_a_cycle_and_a_unit_takes_the_measured_clock() {
        let fingerprint = "genuineintel+amx-bf16+amx-int8+avx512-bf16";
        let of = |id: &str| of("Xeon", fingerprint, id);
        assert_eq!(of("amx.m16n16k32.f32.bf16.bf16.f32"), Some(1024.0 * 3e9 * 2.0));
        assert_eq!(of("amx.m16n16k64.s32.s8.u8.s32"), Some(2048.0 * 3e9 * 2.0));
        assert_eq!(of("dot.m1n1k2.f32.bf16.bf16.f32"), None);
    }

    /// Fasi et al. 2023, Table 4.1, in TFLOP/s.
    #[test]
    fn the_v100_and_the_a100_have_the_peaks_of_table_4_1() {
        let (v100, a100) = ("Tesla V100-SXM2-16GB", "NVIDIA A100-SXM4-80GB");
        for (chip, id, wanted) in [
            (v100, "fma.m1n1k1.f64.f64.f64.f64", 7.8),
            (v100, "fma.m1n1k1.f32.f32.f32.f32", 15.7),
            (v100, "fma.m1n1k1.f16.f16.f16.f16", 31.4),
            (v100, "mma.m8n8k4.f32.f16.f16.f32", 125.0),
            (a100, "fma.m1n1k1.f64.f64.f64.f64", 9.7),
            (a100, "mma.m8n8k4.f64.f64.f64.f64", 19.5),
            (a100, "fma.m1n1k1.f32.f32.f32.f32", 19.5),
            (a100, "mma.m16n8k8.f32.tf32.tf32.f32", 156.0),
            (a100, "fma.m1n1k1.bf16.bf16.bf16.bf16", 39.0),
            (a100, "mma.m16n8k16.f32.bf16.bf16.f32", 312.0),
            (a100, "fma.m1n1k1.f16.f16.f16.f16", 78.0),
            (a100, "mma.m16n8k16.f32.f16.f16.f32", 312.0),
        ] {
            let (rate, source) = boost_peak(chip, &id.parse().unwrap()).unwrap();
            assert!((rate / 1e12 / wanted - 1.0).abs() < 0.006 && source.len() > 20, "{chip} {id}: {rate:e}");
        }
        assert_eq!(boost_peak("NVIDIA H20", &"mma.m16n8k16.f32.f16.f16.f32".parse().unwrap()), None);
        // A part of an A100 has fewer multiprocessors: the peak is that of the measured clock and units.
        let f16 = "mma.m16n8k16.f32.f16.f16.f32";
        assert_eq!(of("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "sm_80", f16), Some(2048.0 * 3e9 * 2.0));
        assert_eq!(of(a100, "sm_80", f16), Some(2048.0 * 108.0 * 1.41e9));
    }
}
