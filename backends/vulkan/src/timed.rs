//! Timing of shaders whose operands stay in registers.

use std::time::Instant;

use ash::vk;
use mxprobe_api::{Clock, Elements, Error, Load, Operation, OperationId, Span, TileBatch, Timed};
use mxprobe_shaders::spirv::Kernel;
use mxprobe_shaders::spirv::throughput_loop::{FMA_INVOCATIONS, FMA_SUMS, OPERANDS, SUMS, fma};

use crate::failure::failure;
use crate::session::{Groups, Session};

/// The id of the multiply-add of the scalar units.
pub(crate) const FMA: &str = "fma.m1n1k1.f32.f32.f32.f32";

/// The maximum number of bytes of D of all workgroups.
const OUTPUT_BYTES: usize = 32 << 20;
/// The maximum number of workgroups.
const MOST_GROUPS: u32 = 8192;
/// The minimum duration of a trial with a number of workgroups, if it can be reached.
const TRIAL_NS: f64 = 300_000.0;
/// A trial that takes longer than this ends the search: the device is slow, whatever the number of workgroups.
const LONG_TRIAL_NS: f64 = 50_000_000.0;
/// The search ends after this many numbers of workgroups that were no faster: one that the processors cannot share equally
/// is slower than the one before.
const WITHOUT_GAIN: usize = 6;

/// A shader and its inputs.
struct Work {
    pipeline: vk::Pipeline,
    inputs: [Vec<u8>; 3],
    /// The number of bytes of D of one workgroup.
    group_bytes: usize,
    pattern: Vec<[usize; 3]>,
}

/// Times an operation; if `kernel` is `None`, the multiply-add of the scalar units.
///
/// # Errors
/// [`Error::is_unsupported`] for more steps than a push constant holds; otherwise whatever the driver reports.
pub(crate) fn time(
    session: &mut Session,
    operation: &Operation,
    kernel: Option<&Kernel>,
    load: &Load<'_>,
) -> Result<Timed, Error> {
    let work = match kernel {
        Some(kernel) => matrices(session, operation, kernel, load.operands)?,
        None => scalars(session, operation, load.operands)?,
    };
    let steps = u32::try_from(load.steps)
        .map_err(|_| Error::unsupported(format!("{} steps exceed the 32-bit counter of a shader", load.steps)))?;
    let groups = match load.span {
        Span::One => 1,
        Span::All => fastest(session, &operation.id, &work)?,
    };
    let (elapsed_ns, clock, d) = run(session, &work, groups, steps)?;
    Ok(Timed {
        elapsed_ns,
        clock,
        units: (load.span == Span::One).then_some(1),
        unit: "workgroup".into(),
        frequency_hz: None,
        pattern: work.pattern,
        d: Elements::from_bytes(operation.id.d, d)?,
    })
}

fn matrices(
    session: &mut Session,
    operation: &Operation,
    kernel: &Kernel,
    operands: &TileBatch,
) -> Result<Work, Error> {
    let id = &operation.id;
    let (m, n, k) = id.shape.sizes();
    let pipeline = session.pipeline(&kernel.throughput_words(), Groups::Subgroup)?;
    let place = |at: u32| at as usize % operands.tiles;
    let of = |elements: &Elements, count: u32, size: usize| -> Vec<u8> {
        let bytes = size * elements.format().storage_bytes();
        (0..count).flat_map(|at| &elements.bytes()[place(at) * bytes..][..bytes]).copied().collect()
    };
    let inputs = [of(&operands.a, OPERANDS, m * k), of(&operands.b, OPERANDS, k * n), of(&operands.c, SUMS, m * n)];
    let pattern = (0..SUMS).map(|at| [place(at % OPERANDS), place(at / OPERANDS), place(at)]).collect();
    Ok(Work { pipeline, inputs, group_bytes: SUMS as usize * m * n * id.d.storage_bytes(), pattern })
}

fn scalars(session: &mut Session, operation: &Operation, operands: &TileBatch) -> Result<Work, Error> {
    let pipeline = session.pipeline(&fma(), Groups::Invocations)?;
    let chains = (FMA_INVOCATIONS * FMA_SUMS) as usize;
    let of = |elements: &Elements| -> Vec<u8> {
        let size = elements.format().storage_bytes();
        let tile = |at: usize| &elements.bytes()[at % operands.tiles * size..][..size];
        (0..chains).flat_map(tile).copied().collect()
    };
    let inputs = [of(&operands.a), of(&operands.b), of(&operands.c)];
    // The chains of an invocation have the first of its tiles of A.
    let of_invocation = |at: usize| at - at % FMA_SUMS as usize;
    let pattern = (0..chains).map(|at| [of_invocation(at), at, at].map(|at| at % operands.tiles)).collect();
    Ok(Work { pipeline, inputs, group_bytes: chains * operation.id.d.storage_bytes(), pattern })
}

fn run(session: &mut Session, work: &Work, groups: u32, steps: u32) -> Result<(f64, Clock, Vec<u8>), Error> {
    let inputs = work.inputs.each_ref().map(Vec::as_slice);
    session.time(work.pipeline, inputs, work.group_bytes * groups as usize, groups, steps)
}

/// Finds the number of workgroups that multiplies fastest, once per operation.
fn fastest(session: &mut Session, id: &OperationId, work: &Work) -> Result<u32, Error> {
    if let Some(groups) = session.groups.get(id) {
        return Ok(*groups);
    }
    let most = MOST_GROUPS.min(u32::try_from(OUTPUT_BYTES / work.group_bytes).unwrap_or(1)).max(1);
    let groups = fastest_of(most, |groups, steps| Ok(run(session, work, groups, steps)?.0))?;
    session.groups.insert(id.clone(), groups);
    Ok(groups)
}

/// Finds the fastest number of workgroups up to `most`: tries 1, 2, 3, 4, 6, 8, 12, … while more of them help. `time`
/// returns the nanoseconds that a number of workgroups takes for a number of steps.
fn fastest_of(most: u32, mut time: impl FnMut(u32, u32) -> Result<f64, Error>) -> Result<u32, Error> {
    let counts = std::iter::once(1).chain((0..).flat_map(|power| [2u32 << power, 3 << power]));
    let (mut best, mut steps, mut without_gain) = ((0.0, 1), 1u32, 0);
    for groups in counts.take_while(|groups| *groups <= most) {
        let mut elapsed_ns = time(groups, steps)?;
        while elapsed_ns < TRIAL_NS && steps < 1 << 20 {
            steps *= 2;
            elapsed_ns = time(groups, steps)?;
        }
        elapsed_ns = elapsed_ns.min(time(groups, steps)?);
        let rate = f64::from(groups) * f64::from(steps) / elapsed_ns;
        without_gain += 1;
        if rate > best.0 {
            (best, without_gain) = ((rate, groups), 0);
        }
        if without_gain == WITHOUT_GAIN || elapsed_ns > LONG_TRIAL_NS {
            break;
        }
    }
    Ok(best.1)
}

impl Session {
    /// Runs `groups` workgroups with `steps` in the push constant; returns the elapsed time and the output.
    fn time(
        &mut self,
        pipeline: vk::Pipeline,
        inputs: [&[u8]; 3],
        output_bytes: usize,
        groups: u32,
        steps: u32,
    ) -> Result<(f64, Clock, Vec<u8>), Error> {
        self.alive()?;
        let lengths = [inputs[0].len(), inputs[1].len(), inputs[2].len(), output_bytes];
        self.load(inputs, lengths)?;
        let queries = self.timestamps.map(|_| self.query_pool()).transpose()?;
        let recorded = self.record_timed(pipeline, queries, groups, steps);
        let done = self.remember(recorded.map_err(|(call, result)| failure(call, result))).and_then(|()| {
            let start = Instant::now();
            self.submit(&format!("{groups} workgroups of {steps} steps"))?;
            Ok(start.elapsed())
        });
        let elapsed = match (done, queries) {
            (Ok(host), Some(pool)) => self.between(pool).map(|device_ns| match device_ns {
                Some(device_ns) => (device_ns, Clock::Device),
                None => (host.as_secs_f64() * 1e9, Clock::Host),
            }),
            (Ok(host), None) => Ok((host.as_secs_f64() * 1e9, Clock::Host)),
            (Err(error), _) => Err(error),
        };
        if let Some(pool) = queries.filter(|_| !self.is_in_flight()) {
            // SAFETY: the pool is this device's, and the commands that used it have ended.
            unsafe { self.device.destroy_query_pool(pool, None) };
        }
        let (elapsed_ns, clock) = elapsed?;
        Ok((elapsed_ns, clock, self.output(output_bytes)))
    }

    fn query_pool(&mut self) -> Result<vk::QueryPool, Error> {
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(2);
        // SAFETY: `info` is complete.
        let made = unsafe { self.device.create_query_pool(&info, None) };
        self.remember(made.map_err(|result| failure("vkCreateQueryPool", result)))
    }

    /// Nanoseconds between the two timestamps; `None` if the queue has no timestamps or both are equal.
    fn between(&mut self, pool: vk::QueryPool) -> Result<Option<f64>, Error> {
        let Some((period_ns, valid_bits)) = self.timestamps else { return Ok(None) };
        let mut stamps = [0u64; 2];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: the pool has two queries, which the commands that have ended wrote.
        let read = unsafe { self.device.get_query_pool_results(pool, 0, &mut stamps, flags) };
        self.remember(read.map_err(|result| failure("vkGetQueryPoolResults", result)))?;
        let mask = if valid_bits >= 64 { u64::MAX } else { (1 << valid_bits) - 1 };
        let ticks = stamps[1].wrapping_sub(stamps[0]) & mask;
        #[expect(clippy::cast_precision_loss, reason = "a time has few digits")]
        let elapsed_ns = ticks as f64 * period_ns;
        Ok((ticks > 0).then_some(elapsed_ns))
    }

    fn record_timed(
        &self,
        pipeline: vk::Pipeline,
        queries: Option<vk::QueryPool>,
        groups: u32,
        steps: u32,
    ) -> Result<(), (&'static str, vk::Result)> {
        let (device, commands) = (&self.device, self.commands);
        self.recorded(|| {
            // SAFETY: commands are being recorded; pipeline, layout and set are this device's and fit each other; the
            // pool has two queries; the buffers hold what `groups` workgroups read and write.
            unsafe {
                if let Some(pool) = queries {
                    device.cmd_reset_query_pool(commands, pool, 0, 2);
                }
                self.bind(pipeline);
                let bytes = steps.to_ne_bytes();
                device.cmd_push_constants(commands, self.layout, vk::ShaderStageFlags::COMPUTE, 0, &bytes);
                if let Some(pool) = queries {
                    device.cmd_write_timestamp(commands, vk::PipelineStageFlags::TOP_OF_PIPE, pool, 0);
                }
                device.cmd_dispatch(commands, groups, 1, 1);
                if let Some(pool) = queries {
                    device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, 1);
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workgroups_as_help_are_found() {
        // Of 132 processors with four units each; a step takes 20 ns, and workgroups beyond the units wait.
        let units = 4 * 132;
        let mut tried = Vec::new();
        let found = fastest_of(MOST_GROUPS, |groups, steps| {
            tried.push(groups);
            Ok(20.0 * f64::from(steps) * f64::from(groups.div_ceil(units)))
        });
        let found = found.unwrap();
        assert!(f64::from(found) / f64::from(found.div_ceil(units) * units) > 0.95, "{found}");
        assert!(tried.is_sorted(), "{tried:?}");
    }

    #[test]
    fn a_slow_device_is_not_asked_for_many_workgroups() {
        let mut most = 0;
        let found = fastest_of(MOST_GROUPS, |groups, steps| {
            most = most.max(groups);
            Ok(10e6 * f64::from(groups) * f64::from(steps))
        });
        assert!(found.unwrap() <= 6 && most <= 6, "{most}");
    }
}
