//! Screening: repeated computation of the same tiles on every core, by a thread pinned to it.

use mxprobe_api::{Drill, Elements, Error, Operation, Screened, TileBatch, go_over};

use crate::cores;

/// Returns one logical processor of each core that this process may use; the threads of a core share its units.
pub(crate) fn units() -> Vec<u32> {
    cores::one_of_each_core().into_iter().filter_map(|core| u32::try_from(core).ok()).collect()
}

/// Screens one core, or all simultaneously. The kernel is that of [`Device::execute`](mxprobe_api::Device::execute);
/// results are digested on the core that computed them.
///
/// # Errors
/// If a thread cannot be started.
pub(crate) fn screen(
    operation: &Operation,
    drill: &Drill<'_>,
    kernel: impl Fn(&TileBatch, &mut Elements) + Sync,
) -> Result<Vec<Screened>, Error> {
    let cores: Vec<Option<u32>> = match drill.unit {
        Some(unit) => vec![Some(unit)],
        None => match units() {
            units if units.is_empty() => vec![None],
            units => units.into_iter().map(Some).collect(),
        },
    };
    let blocks = drill.blocks();
    std::thread::scope(|scope| {
        let threads: Vec<_> = cores
            .iter()
            .map(|core| {
                let (blocks, kernel) = (&blocks, &kernel);
                std::thread::Builder::new().spawn_scoped(scope, move || {
                    let pinned = core.is_some_and(|core| cores::stay_on(core as usize));
                    go_over(&operation.id, drill, blocks, (*core, pinned), |block, d| {
                        kernel(block, d);
                        Ok(())
                    })
                })
            })
            .collect();
        let failed = |error| Error::driver(format!("cannot start a thread for a core: {error}"));
        let threads = threads.into_iter().map(|thread| thread.map_err(failed)).collect::<Result<Vec<_>, _>>()?;
        threads.into_iter().map(|thread| thread.join().expect("a kernel does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use mxprobe_api::{Injection, digest};

    /// A kernel that uses no special instruction: D is C.
    fn copy(batch: &TileBatch, d: &mut Elements) {
        d.bytes_mut().copy_from_slice(batch.c.bytes());
    }

    #[test]
    fn the_core_that_computes_wrongly_is_the_one_that_is_named() {
        let operation = Operation::new("dot.m1n1k2.f32.bf16.bf16.f32".parse().expect("an id"), "thread");
        let mut operands = TileBatch::zeros(&operation, 64);
        (0..64).for_each(|at| operands.c.set(at, 0x3f80_0000 + at as u64));
        let digests: Vec<u64> = operands.c.bytes().chunks(128).map(digest).collect();
        let unit = *units().last().expect("a core");
        let inject = Injection { unit: Some(unit), lane: Some(3), bit: 7, ..Injection::default() };
        for inject in [None, Some(inject)] {
            let drill = Drill {
                operands: &operands,
                digests: &digests,
                duration: Duration::ZERO,
                passes: 2,
                steps: 1,
                unit: None,
                inject,
            };
            let found = screen(&operation, &drill, copy).expect("threads start");
            assert_eq!(found.iter().filter_map(|unit| unit.unit).collect::<Vec<_>>(), units());
            for screened in found {
                let is_wrong = inject.is_some() && screened.unit == Some(unit);
                assert_eq!((screened.blocks, screened.wrong), (2, if is_wrong { 2 } else { 0 }), "{screened:?}");
                assert_eq!(
                    screened.kept.iter().map(|kept| kept.block).collect::<Vec<_>>(),
                    if is_wrong { vec![0, 1] } else { vec![] }
                );
            }
        }
    }
}
