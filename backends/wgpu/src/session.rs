//! An opened adapter: its queue, its buffers and its pipelines.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use mxprobe_api::{
    Error,
    written::{is_all, until_written},
};
use wgpu::{BufferUsages, PollType};

use crate::failure::{failure, not_opened};

/// The largest buffer of one submission; tiles that do not fit go into the next one.
const CHUNK_BYTES: u64 = 16 << 20;
/// The smallest buffer that is allocated, and the smallest size to which a chunk shrinks when memory runs out.
const SMALLEST_BUFFER_BYTES: u64 = 64 << 10;

/// The size of the witness, a value whose copy shows that the device moved memory at all.
const WITNESS_BYTES: u64 = 4;

/// Errors that wgpu reports through callbacks.
#[derive(Default)]
struct Reports {
    /// The first error not yet handled.
    error: Option<wgpu::Error>,
    /// The reason why the device is lost.
    lost: Option<String>,
}

/// A shader and its inputs.
pub(crate) struct Work<'a> {
    /// The shader.
    pub(crate) source: &'a str,
    /// The content of all bindings but the last, which is the output.
    pub(crate) inputs: &'a [&'a [u8]],
    /// The number of bytes of one tile in each binding, the output's last; multiples of 4.
    pub(crate) tile_bytes: &'a [usize],
    /// The number of tiles.
    pub(crate) tiles: usize,
}

pub(crate) struct Session {
    device: wgpu::Device,
    queue: wgpu::Queue,
    /// The pipelines built so far, by their source.
    pipelines: BTreeMap<String, wgpu::ComputePipeline>,
    /// The buffers of the shader's bindings, followed by the one that the host reads.
    buffers: Vec<Option<wgpu::Buffer>>,
    /// A four-byte buffer that is read back like any output, with fresh content each time.
    witness: wgpu::Buffer,
    passes: u32,
    reports: Arc<Mutex<Reports>>,
    max_workgroups: usize,
    max_buffer_bytes: u64,
    chunk_bytes: u64,
    timeout: Duration,
    /// The error that made the session unusable.
    dead: Option<Error>,
    /// Whether a submission was abandoned, so that the device may still be using these resources.
    in_flight: bool,
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.in_flight {
            // Dropping the last owner of a device waits for the device, which is what failed; so it is leaked.
            std::mem::forget((self.device.clone(), self.queue.clone()));
        }
    }
}

impl Session {
    pub(crate) fn open(adapter: &wgpu::Adapter, features: wgpu::Features, timeout: Duration) -> Result<Self, Error> {
        let limits = adapter.limits();
        let (max_workgroups, binding) =
            (limits.max_compute_workgroups_per_dimension, limits.max_storage_buffer_binding_size);
        let max_buffer_bytes = binding.min(limits.max_buffer_size);
        // SAFETY: the only experimental feature requested is cooperative matrices; the shaders that use it are compiled
        // and checked by naga, read and write whole tiles within their buffers, and are tested on each available
        // driver.
        let experimental_features = unsafe { wgpu::ExperimentalFeatures::enabled() };
        let asked = adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("mxprobe"),
            required_features: features,
            required_limits: limits,
            experimental_features,
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Off,
        });
        let (device, queue) = pollster::block_on(asked).map_err(|error| not_opened(&error))?;
        let reports = Arc::new(Mutex::new(Reports::default()));
        let heard = Arc::clone(&reports);
        device.on_uncaptured_error(Arc::new(move |error| {
            held(&heard).error.get_or_insert(error);
        }));
        let heard = Arc::clone(&reports);
        device.set_device_lost_callback(move |reason, text| {
            held(&heard).lost = Some(format!("{reason:?}: {text}"));
        });
        let witness = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: WITNESS_BYTES,
            usage: BufferUsages::COPY_DST | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let session = Self {
            device,
            queue,
            witness,
            passes: 0,
            pipelines: BTreeMap::new(),
            buffers: Vec::new(),
            reports,
            max_workgroups: usize::try_from(max_workgroups).unwrap_or(usize::MAX).max(1),
            max_buffer_bytes,
            chunk_bytes: CHUNK_BYTES,
            timeout,
            dead: None,
            in_flight: false,
        };
        session.checked("a buffer")?;
        Ok(session)
    }

    /// Computes every tile, one workgroup each.
    ///
    /// # Errors
    /// [`Error::is_nothing_written`] if the output of a tile still holds its previous content. After
    /// [`Error::is_device_lost`], and after a time limit has passed, every call fails.
    pub(crate) fn run(&mut self, work: &Work<'_>) -> Result<Vec<u8>, Error> {
        if let Some(error) = &self.dead {
            return Err(error.clone());
        }
        // wgpu panics on caller errors, and unexpected behaviour of a driver may look like one.
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_chunks(work)));
        let result =
            ran.unwrap_or_else(|payload| Err(Error::device_lost(format!("wgpu gave up: {}", crate::said(&*payload)))));
        if let Err(error) = &result
            && error.is_device_lost()
        {
            self.dead.get_or_insert_with(|| error.clone());
        }
        result
    }

    fn run_chunks(&mut self, work: &Work<'_>) -> Result<Vec<u8>, Error> {
        let &Work { source, inputs, tile_bytes, tiles } = work;
        let largest = *tile_bytes.iter().max().expect("an output at least");
        let output_bytes = *tile_bytes.last().expect("an output at least");
        if largest as u64 > self.max_buffer_bytes {
            let most = self.max_buffer_bytes;
            return Err(Error::out_of_memory(format!(
                "one tile takes {largest} bytes, and a buffer holds {most} at most"
            )));
        }
        let pipeline = self.pipeline(source)?;
        let mut output = Vec::with_capacity(tiles * output_bytes);
        let mut done = 0;
        while done < tiles {
            let per_chunk = (self.chunk_bytes.min(self.max_buffer_bytes) / largest as u64).max(1);
            let count = (tiles - done).min(self.max_workgroups).min(usize::try_from(per_chunk).unwrap_or(usize::MAX));
            match self.reserve(tile_bytes, count) {
                Err(error) if error.is_out_of_memory() && self.chunk_bytes > SMALLEST_BUFFER_BYTES => {
                    self.chunk_bytes /= 2;
                    continue;
                }
                other => other?,
            }
            for ((buffer, input), bytes) in self.buffers.iter().flatten().zip(inputs).zip(tile_bytes) {
                self.queue.write_buffer(buffer, 0, &input[done * bytes..(done + count) * bytes]);
            }
            output.extend(self.chunk(&pipeline, tile_bytes, count)?);
            done += count;
        }
        Ok(output)
    }

    /// Computes the tiles whose inputs are in the buffers.
    fn chunk(
        &mut self,
        pipeline: &wgpu::ComputePipeline,
        tile_bytes: &[usize],
        count: usize,
    ) -> Result<Vec<u8>, Error> {
        let output_bytes = *tile_bytes.last().expect("an output at least");
        let mut d = Vec::new();
        let attempt = |filling| {
            let output = self.buffers[tile_bytes.len() - 1].as_ref().expect("reserved");
            self.queue.write_buffer(output, 0, &vec![filling; count * output_bytes]);
            d = self.dispatch(pipeline, tile_bytes, count)?;
            let tiles = d.chunks_exact(output_bytes).enumerate();
            Ok(tiles.filter_map(|(at, tile)| is_all(tile, filling).then_some(at)).collect())
        };
        until_written(attempt, |unwritten| {
            format!(
                "the device reported that it had finished, and {} of {count} tiles of the output still hold what was \
                 in memory before",
                unwritten.len()
            )
        })?;
        Ok(d)
    }

    /// Runs `count` workgroups on the content of the buffers, waits for them, and reads the output.
    fn dispatch(
        &mut self,
        pipeline: &wgpu::ComputePipeline,
        tile_bytes: &[usize],
        count: usize,
    ) -> Result<Vec<u8>, Error> {
        let bytes: Vec<u64> = tile_bytes.iter().map(|bytes| (bytes * count) as u64).collect();
        let output_bytes = *bytes.last().expect("an output at least");
        let bound = |at: usize| self.buffers[at].as_ref().expect("reserved");
        let entries: Vec<wgpu::BindGroupEntry<'_>> = (0..bytes.len())
            .map(|at| wgpu::BindGroupEntry {
                binding: u32::try_from(at).expect("a few bindings"),
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: bound(at),
                    offset: 0,
                    size: wgpu::BufferSize::new(bytes[at]),
                }),
            })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(u32::try_from(count).expect("a chunk of tiles"), 1, 1);
        }
        let (output, read_back) = (bound(bytes.len() - 1), bound(bytes.len()).clone());
        encoder.copy_buffer_to_buffer(output, 0, &read_back, 0, output_bytes);
        // The filled buffer is not the one that is read: if no copy is made, the fill is not seen, but neither is the
        // witness. A Weyl sequence does not repeat within 2^32 passes.
        self.passes = self.passes.wrapping_add(0x9e37_79b9);
        let witness = self.passes.to_le_bytes();
        self.queue.write_buffer(&self.witness, 0, &witness);
        encoder.copy_buffer_to_buffer(&self.witness, 0, &read_back, output_bytes, WITNESS_BYTES);
        let all_bytes = output_bytes + WITNESS_BYTES;
        let commands = encoder.finish();
        self.checked("the commands")?;
        let submission = self.queue.submit([commands]);
        self.checked("the submission")?;
        let (sender, mapped) = mpsc::channel();
        read_back.map_async(wgpu::MapMode::Read, ..all_bytes, move |result| drop(sender.send(result)));
        let waited =
            self.device.poll(PollType::Wait { submission_index: Some(submission), timeout: Some(self.timeout) });
        self.checked("waiting for the device")?;
        match (waited, mapped.try_recv()) {
            (Ok(_), Ok(Ok(()))) => {}
            (Err(wgpu::PollError::Timeout), _) => {
                let text = format!("{count} tiles were not finished within {:?}", self.timeout);
                self.in_flight = true;
                self.dead = Some(Error::device_lost(format!("the device was given up earlier: {text}")));
                return Err(Error::timed_out(text));
            }
            (Err(error), _) => return Err(Error::driver(format!("waiting for the device: {error}"))),
            (Ok(_), other) => {
                return Err(Error::driver(format!("the output was not mapped: {other:?}")));
            }
        }
        let view = read_back.get_mapped_range(..all_bytes);
        let view = view.map_err(|error| Error::driver(format!("the output was not mapped: {error}")))?;
        let mut written = view.to_vec();
        drop(view);
        read_back.unmap();
        if written.split_off(written.len() - witness.len()) == witness {
            Ok(written)
        } else {
            Err(Error::nothing_written(
                "the device reported that it had finished, and what it was to copy still holds what was in memory before",
            ))
        }
    }

    /// Returns the pipeline of a shader, which is built once.
    fn pipeline(&mut self, source: &str) -> Result<wgpu::ComputePipeline, Error> {
        if let Some(pipeline) = self.pipelines.get(source) {
            return Ok(pipeline.clone());
        }
        let shader = wgpu::ShaderSource::Wgsl(source.into());
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source: shader });
        self.checked("the shader")?;
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        self.checked("the pipeline")?;
        self.pipelines.insert(source.to_owned(), pipeline.clone());
        Ok(pipeline)
    }

    /// Makes each buffer large enough for `count` tiles.
    fn reserve(&mut self, tile_bytes: &[usize], count: usize) -> Result<(), Error> {
        let last = tile_bytes.len() - 1;
        let sizes = tile_bytes.iter().map(|bytes| (bytes * count) as u64);
        let sizes = sizes.chain([(tile_bytes[last] * count) as u64 + WITNESS_BYTES]);
        for (at, needed) in sizes.enumerate() {
            if self.buffers.len() <= at {
                self.buffers.push(None);
            }
            let usage = match at {
                // A kernel with other bindings may have used this buffer for another purpose.
                at if at == last + 1 => BufferUsages::MAP_READ | BufferUsages::COPY_DST,
                _ => BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC,
            };
            if self.buffers[at].as_ref().is_some_and(|buffer| buffer.size() >= needed && buffer.usage() == usage) {
                continue;
            }
            self.buffers[at] = None;
            let size = needed.next_power_of_two().max(SMALLEST_BUFFER_BYTES).min(self.max_buffer_bytes.max(needed));
            let info = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
            let buffer = self.device.create_buffer(&info);
            self.checked("a buffer")?;
            self.buffers[at] = Some(buffer);
        }
        Ok(())
    }

    /// Returns the error that wgpu reported since the last check, if any.
    fn checked(&self, what: &str) -> Result<(), Error> {
        let mut reports = held(&self.reports);
        if let Some(lost) = &reports.lost {
            return Err(Error::device_lost(format!("{what}: the device was lost: {lost}")));
        }
        reports.error.take().map_or(Ok(()), |error| Err(failure(what, &error)))
    }
}

fn held(reports: &Mutex<Reports>) -> std::sync::MutexGuard<'_, Reports> {
    // A panic while the lock was held leaves two values, both valid.
    reports.lock().unwrap_or_else(PoisonError::into_inner)
}
