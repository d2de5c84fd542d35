//! Speed and error of products in words on a unit, compared with a library's product of f32 matrices on the same
//! device.

use std::{ops::ControlFlow, time::Instant};

use mxprobe_api::{DeviceInfo, DeviceKind, Elements, Error, Library, OperationId, multiply_with};
use serde::{Deserialize, Serialize};

use super::{
    Interval, Matrix, Uniform, Unit, Variant,
    growth::algorithm,
    multiply::{fits, join, words_of_in},
    reference::Reference,
    unit::Lengths,
    words::Spare,
};

/// The speed and the error of one way to multiply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Way {
    /// The way: `triple-bf16`, or the library's name.
    pub name: String,
    /// The operation; missing for a library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The shortest time from the f32 matrices to D, including splitting, packing and starting threads.
    pub best_ns: u64,
    /// The median of the times.
    pub median_ns: u64,
    /// 2·n³ over the shortest time, regardless of the number of products of words.
    pub flop_per_s: f64,
    /// The mean of the times.
    #[serde(default)]
    pub mean_ns: f64,
    /// The mean time of the products of words alone, without splitting A and B: what Fasi et al. 2023 time in section
    /// 4.2.1. For a library, its whole time.
    #[serde(default)]
    pub products_mean_ns: f64,
    /// 2·n³ over the mean time of the products: the effective rate of their equation (4.1).
    #[serde(default)]
    pub effective_flop_per_s: f64,
    /// The shortest time of the kernels alone, without copies and packing, if the device's clock measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_best_ns: Option<u64>,
    /// The median of the kernels' times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_median_ns: Option<u64>,
    /// 2·n³ over the shortest time of the kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_flop_per_s: Option<f64>,
    /// 2·n³ over the mean time of the kernels: equation (4.1) without copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_effective_flop_per_s: Option<f64>,
    /// max |D − A·B| / (|A|·|B|).
    pub componentwise: f64,
    /// ‖D − A·B‖ / ‖A·B‖, Frobenius.
    pub normwise: f64,
}

/// Ways to multiply the same two matrices, timed in turn in every round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Yardstick {
    /// Rows and columns of A and B.
    pub n: u64,
    /// The seed of the elements.
    pub seed: u32,
    /// The interval that elements are drawn from.
    pub interval: Interval,
    /// How often each way was timed.
    pub rounds: u64,
    /// A description of what was timed: a unit, or the processor that runs a model of it.
    #[serde(default)]
    pub timed: String,
    /// The reason why the library is missing, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_library: Option<String>,
    /// The library first, then the words on the unit.
    pub ways: Vec<Way>,
}

/// The matrices to compare on, and the number of rounds.
#[derive(Clone, Copy, Debug)]
pub struct Race {
    /// Rows and columns of A and B.
    pub n: usize,
    /// The seed of the elements.
    pub seed: u32,
    /// The interval that elements are drawn from.
    pub interval: Interval,
    /// How often each way is timed, after one run that is not timed.
    pub rounds: usize,
}

/// Times each way on the same f32 matrices, in turn, and compares each D with compensated dot products.
///
/// `unit` opens the unit of an operation; variants without one are left out. `said` is called after each round; if it
/// returns `Break`, no further round is run, and ways that were not timed by then are left out.
///
/// # Errors
/// The errors of the unit or the library.
pub fn compare(
    race: &Race,
    library: Result<&dyn Library, Error>,
    variants: &[Variant],
    unit: &dyn Fn(&OperationId) -> Result<Unit, Error>,
    said: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Yardstick, Error> {
    let &Race { n, seed, interval, rounds } = race;
    let (low, high) = interval.ends();
    let mut uniform = Uniform::new(seed);
    let a = uniform.matrix(n, n, low, high, true);
    let b = uniform.matrix(n, n, low, high, true);
    let mut runners = Vec::new();
    let no_library = match library {
        Ok(library) => {
            let operands = (a.exactly(mxprobe_api::Format::F32, "A")?, b.exactly(mxprobe_api::Format::F32, "B")?);
            runners.push(Runner {
                name: library.name(),
                times_ns: Vec::new(),
                products_ns: Vec::new(),
                kernels_ns: Vec::new(),
                d: None,
                with: With::Library(library, operands),
            });
            None
        }
        Err(error) => Some(error.to_string()),
    };
    let mut timed = None;
    for variant in variants {
        if let Some(id) = &variant.operation {
            let unit = unit(id)?;
            fits(&unit, &algorithm(variant))?;
            timed.get_or_insert_with(|| what_is_timed(unit.device().info()));
            let with = With::Unit(unit, variant);
            let (times_ns, products_ns, kernels_ns) = (Vec::new(), Vec::new(), Vec::new());
            runners.push(Runner { name: &variant.name, times_ns, products_ns, kernels_ns, d: None, with });
        }
    }
    let mut run = 0;
    let mut spare = Spare::default();
    for round in 0..=rounds {
        runners.iter_mut().try_for_each(|runner| runner.run(n, &a, &b, &mut spare))?;
        run = round;
        if said(round).is_break() {
            break;
        }
    }
    runners.retain(|runner| !runner.times_ns.is_empty());
    let reference = Reference::new(&a, &b);
    let ways = runners.into_iter().map(|runner| runner.way(n, &reference)).collect();
    Ok(Yardstick {
        n: n as u64,
        seed,
        interval,
        rounds: run as u64,
        timed: timed.unwrap_or_default(),
        no_library,
        ways,
    })
}

/// A description of what is timed.
fn what_is_timed(info: &DeviceInfo) -> String {
    match info.kind {
        DeviceKind::Model => "a model, computed by this machine's processor: its times are of no unit",
        DeviceKind::Software => "a driver that computes in software on this machine's processor, from matrices to D",
        DeviceKind::Hardware => {
            "the device, from matrices in this machine's memory to D; kernels by the device's clock, if it has one"
        }
    }
    .to_owned()
}

enum With<'a> {
    Library(&'a dyn Library, (Elements, Elements)),
    Unit(Unit, &'a Variant),
}

struct Runner<'a> {
    name: &'a str,
    with: With<'a>,
    times_ns: Vec<u64>,
    /// The times of the same rounds without splitting.
    products_ns: Vec<u64>,
    /// The kernel times of the same rounds; empty if the device does not measure them.
    kernels_ns: Vec<u64>,
    d: Option<Elements>,
}

impl Runner<'_> {
    fn run(&mut self, n: usize, a: &Matrix, b: &Matrix, spare: &mut Spare) -> Result<(), Error> {
        let before = self.kernel_ns();
        let started = Instant::now();
        let ns = |since: Instant| u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (d, products_ns) = match &self.with {
            With::Library(library, (a, b)) => {
                let d = multiply_with(*library, (n, n, n), a, b)?;
                (d, ns(started))
            }
            With::Unit(unit, variant) => {
                let algorithm = algorithm(variant);
                let mut words = |matrix, of_a| words_of_in(spare, matrix, unit.id(), &algorithm.split, of_a);
                let (of_a, of_b) = (words(a, true), words(b, false));
                let (start, lengths) = (Elements::zeros(unit.id().c, n * n), Lengths { m: n, n, k: n });
                let split = Instant::now();
                let d = join(unit, lengths, (&of_a, &of_b), start, &algorithm)?.d;
                let products_ns = ns(split);
                spare.keep(of_a);
                spare.keep(of_b);
                (d, products_ns)
            }
        };
        let taken_ns = ns(started);
        // The first round warms up.
        if self.d.replace(d).is_some() {
            self.times_ns.push(taken_ns);
            self.products_ns.push(products_ns);
            // A product that was computed tile by tile had no kernel of its own.
            let kernels_ns = self.kernel_ns().zip(before).map(|(after, before)| after.saturating_sub(before));
            self.kernels_ns.extend(kernels_ns.filter(|kernels_ns| *kernels_ns > 0));
        }
        Ok(())
    }

    fn kernel_ns(&self) -> Option<u64> {
        match &self.with {
            With::Library(library, _) => library.kernel_ns(),
            With::Unit(unit, _) => unit.kernel_ns(),
        }
    }

    fn way(mut self, n: usize, reference: &Reference) -> Way {
        let best_and_median = |times_ns: &mut Vec<u64>| {
            times_ns.sort_unstable();
            Some((*times_ns.first()?, times_ns[times_ns.len() / 2]))
        };
        let mean = |times_ns: &[u64]| {
            let count = times_ns.len() as f64;
            (count > 0.0).then(|| times_ns.iter().map(|ns| *ns as f64).sum::<f64>() / count)
        };
        let [mean_ns, products_mean_ns, kernel_mean_ns] =
            [&self.times_ns, &self.products_ns, &self.kernels_ns].map(|times_ns| mean(times_ns));
        let (best_ns, median_ns) = best_and_median(&mut self.times_ns).expect("at least two rounds ran");
        let kernel = best_and_median(&mut self.kernels_ns);
        let flop = 2.0 * (n as f64).powi(3);
        let (rate, rate_of_mean) = (|ns: u64| flop / ns.max(1) as f64 * 1e9, |ns: f64| flop / ns.max(1.0) * 1e9);
        let products_mean_ns = products_mean_ns.unwrap_or_default();
        let errors = reference.errors(&self.d.expect("at least two rounds ran"));
        let operation = match &self.with {
            With::Library(..) => None,
            With::Unit(unit, _) => Some(unit.id().to_string()),
        };
        Way {
            name: self.name.to_owned(),
            operation,
            best_ns,
            median_ns,
            flop_per_s: rate(best_ns),
            mean_ns: mean_ns.unwrap_or_default(),
            products_mean_ns,
            effective_flop_per_s: rate_of_mean(products_mean_ns),
            kernel_best_ns: kernel.map(|(best_ns, _)| best_ns),
            kernel_median_ns: kernel.map(|(_, median_ns)| median_ns),
            kernel_flop_per_s: kernel.map(|(best_ns, _)| rate(best_ns)),
            kernel_effective_flop_per_s: kernel_mean_ns.map(rate_of_mean),
            componentwise: errors.componentwise,
            normwise: errors.normwise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Accumulation, Products};
    use mxprobe_api::Format;
    use mxprobe_models::shipped;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A library that multiplies in f64 and rounds once, and whose kernels take 1 µs by its own clock.
    #[derive(Default)]
    struct Exact {
        calls: AtomicU64,
    }

    impl Library for Exact {
        fn name(&self) -> &'static str {
            "exact"
        }

        fn multiply(&self, (m, n, k): (usize, usize, usize), a: &Elements, b: &Elements) -> Result<Elements, Error> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            let value = |of: &Elements, at: usize| Format::F32.to_f64(of.get(at));
            let dot = |at: usize| (0..k).map(|l| value(a, at / n * k + l) * value(b, l * n + at % n)).sum::<f64>();
            Ok(Elements::from_bits(Format::F32, (0..m * n).map(|at| Format::F32.from_f64(dot(at)))))
        }

        fn kernel_ns(&self) -> Option<u64> {
            Some(1_000 * self.calls.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn the_library_stands_beside_the_words_with_times_and_errors() {
        let model = shipped().iter().find(|model| model.name == "amx").unwrap();
        let id: OperationId = "amx.m16n16k32.f32.bf16.bf16.f32".parse().unwrap();
        let of = |words| Variant {
            name: format!("{words} words"),
            operation: Some(id.clone()),
            words,
            products: Products::Significant,
            accumulation: Accumulation::Unit,
        };
        let race = Race { n: 40, seed: 1, interval: Interval::Centred, rounds: 3 };
        let unit = |id: &OperationId| Unit::of_model(model, id);
        let found =
            compare(&race, Ok(&Exact::default()), &[of(1), of(3)], &unit, &mut |_| ControlFlow::Continue(())).unwrap();
        let names: Vec<&str> = found.ways.iter().map(|way| way.name.as_str()).collect();
        assert_eq!(names, ["exact", "1 words", "3 words"]);
        assert!(found.ways.iter().all(|way| way.best_ns > 0 && way.best_ns <= way.median_ns));
        let kernels: Vec<_> = found.ways.iter().map(|way| (way.kernel_best_ns, way.kernel_median_ns)).collect();
        assert_eq!(kernels, [(Some(1_000), Some(1_000)), (None, None), (None, None)], "a model has no clock");
        assert_eq!(found.ways[0].kernel_flop_per_s, Some(2.0 * 40f64.powi(3) / 1e-6));
        assert_eq!(found.ways[0].kernel_effective_flop_per_s, found.ways[0].kernel_flop_per_s);
        for way in &found.ways {
            let rate = 2.0 * 40f64.powi(3) / way.products_mean_ns * 1e9;
            assert!((way.effective_flop_per_s / rate - 1.0).abs() < 1e-12, "{way:?}");
            assert!(way.products_mean_ns <= way.mean_ns && way.best_ns as f64 <= way.mean_ns, "{way:?}");
        }
        assert!(found.timed.contains("a model"), "{}", found.timed);
        let [exact, one, three] = [0, 1, 2].map(|at: usize| found.ways[at].componentwise);
        assert!(exact < 1e-7 && one > 1e-4 && three < 1e-6, "{exact} {one} {three}");
        for most in 0..3 {
            let mut stop =
                |round: usize| if round == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            let stopped = compare(&race, Ok(&Exact::default()), &[of(1)], &unit, &mut stop).unwrap();
            assert_eq!((stopped.rounds, stopped.ways.len()), (most as u64, if most == 0 { 0 } else { 2 }));
        }
        let alone =
            compare(&race, Err(Error::missing_driver("no BLAS")), &[of(1)], &unit, &mut |_| ControlFlow::Continue(()))
                .unwrap();
        assert_eq!((alone.no_library.as_deref(), alone.ways.len()), (Some("no BLAS"), 1));
    }
}
