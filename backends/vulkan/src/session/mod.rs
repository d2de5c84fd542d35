//! An opened device: its queue, its buffers and its pipelines.

mod buffer;
mod commands;
mod executables;
mod open;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ash::{khr, vk};
use mxprobe_api::{
    Error, OperationId,
    written::{is_all, until_written},
};

use crate::failure::{called, failure};
use crate::instance::Instance;
use crate::physical::{Physical, Subgroup};
use buffer::{Buffer, allocate};
use executables::texts_of;
use open::open_device;

/// The largest buffer of one submission; tiles that do not fit go into the next one.
const CHUNK_BYTES: u64 = 16 << 20;
/// The smallest buffer that is allocated, and the smallest size to which a chunk shrinks when memory runs out.
const SMALLEST_BUFFER_BYTES: u64 = 64 << 10;
/// The number of bytes of push constants: at most two unsigned integers.
const PUSHED_BYTES: u32 = 8;

/// How the invocations of a workgroup compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// One full subgroup of the device's width, together.
    Subgroup,
    /// Each invocation independently.
    Invocations,
}

pub(crate) struct Session {
    pub(crate) device: ash::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    pub(crate) commands: vk::CommandBuffer,
    fence: vk::Fence,
    set_layout: vk::DescriptorSetLayout,
    pub(crate) layout: vk::PipelineLayout,
    descriptors: vk::DescriptorPool,
    set: vk::DescriptorSet,
    buffers: [Buffer; 4],
    /// The pipelines built so far, by their modules.
    pipelines: BTreeMap<Vec<u32>, vk::Pipeline>,
    /// The number of workgroups with which each timed shader multiplies fastest.
    pub(crate) groups: BTreeMap<OperationId, u32>,
    /// Nanoseconds per tick of the device's clock, and the number of valid bits of a timestamp; `None` if the queue has
    /// no timestamps.
    pub(crate) timestamps: Option<(f64, u32)>,
    executables: Option<khr::pipeline_executable_properties::Device>,
    subgroup: Subgroup,
    full_subgroups: bool,
    pub(crate) max_workgroups: u32,
    pub(crate) max_buffer_bytes: u64,
    chunk_bytes: u64,
    memory: vk::PhysicalDeviceMemoryProperties,
    timeout: Duration,
    /// The error that made the session unusable.
    dead: Option<Error>,
    /// Whether a submission was abandoned, so that the device may still be using these resources.
    in_flight: bool,
    /// Dropped last: everything above came from it.
    instance: Arc<Instance>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.in_flight {
            // Objects that a device may still be using must not be destroyed (VUID-vkDestroyDevice-device-05137), and
            // waiting for the device is what failed; so everything is leaked.
            std::mem::forget(Arc::clone(&self.instance));
            return;
        }
        // SAFETY: every handle was created from this device (null ones are allowed), the queue is idle, and nothing
        // refers to them afterwards.
        unsafe {
            for pipeline in self.pipelines.values() {
                self.device.destroy_pipeline(*pipeline, None);
            }
            for buffer in &self.buffers {
                self.device.destroy_buffer(buffer.handle, None);
                self.device.free_memory(buffer.memory, None);
            }
            self.device.destroy_descriptor_pool(self.descriptors, None);
            self.device.destroy_pipeline_layout(self.layout, None);
            self.device.destroy_descriptor_set_layout(self.set_layout, None);
            self.device.destroy_fence(self.fence, None);
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(None);
        }
    }
}

impl Session {
    pub(crate) fn open(physical: &Physical, timeout: Duration) -> Result<Self, Error> {
        let device = open_device(physical)?;
        // From here on, `Drop` destroys whatever exists.
        let mut session = Self {
            queue: vk::Queue::null(),
            pool: vk::CommandPool::null(),
            commands: vk::CommandBuffer::null(),
            fence: vk::Fence::null(),
            set_layout: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            descriptors: vk::DescriptorPool::null(),
            set: vk::DescriptorSet::null(),
            buffers: [Buffer::NONE; 4],
            pipelines: BTreeMap::new(),
            groups: BTreeMap::new(),
            timestamps: physical.timestamps,
            executables: physical
                .features
                .executable_info
                .then(|| khr::pipeline_executable_properties::Device::new(&physical.instance.handle, &device)),
            subgroup: physical.subgroup,
            full_subgroups: physical.features.full_subgroups,
            max_workgroups: physical.max_workgroups.max(1),
            max_buffer_bytes: physical.max_buffer_bytes,
            chunk_bytes: CHUNK_BYTES,
            memory: physical.memory,
            timeout,
            dead: None,
            in_flight: false,
            instance: Arc::clone(&physical.instance),
            device,
        };
        session.prepare(physical.queue_family)?;
        Ok(session)
    }

    fn prepare(&mut self, queue_family: u32) -> Result<(), Error> {
        let device = &self.device;
        let bindings: [_; 4] = std::array::from_fn(|at| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(u32::try_from(at).expect("below 4"))
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        });
        let push = [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(PUSHED_BYTES)];
        let sizes = [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(4)];
        // SAFETY: the queue family was requested when the device was created; every structure lives until its call
        // returns, and every handle in them was created from this device just before.
        unsafe {
            self.queue = device.get_device_queue(queue_family, 0);
            let info = vk::CommandPoolCreateInfo::default()
                .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
                .queue_family_index(queue_family);
            self.pool = called("vkCreateCommandPool", device.create_command_pool(&info, None))?;
            let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
            self.commands = called("vkAllocateCommandBuffers", device.allocate_command_buffers(&info))?[0];
            self.fence = called("vkCreateFence", device.create_fence(&vk::FenceCreateInfo::default(), None))?;
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            self.set_layout = called("vkCreateDescriptorSetLayout", device.create_descriptor_set_layout(&info, None))?;
            let layouts = [self.set_layout];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(&push);
            self.layout = called("vkCreatePipelineLayout", device.create_pipeline_layout(&info, None))?;
            let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
            self.descriptors = called("vkCreateDescriptorPool", device.create_descriptor_pool(&info, None))?;
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(self.descriptors).set_layouts(&layouts);
            self.set = called("vkAllocateDescriptorSets", device.allocate_descriptor_sets(&info))?[0];
        }
        Ok(())
    }

    /// Checks that the session is still usable.
    pub(crate) fn alive(&self) -> Result<(), Error> {
        self.dead.clone().map_or(Ok(()), Err)
    }

    /// Returns the pipeline of a module, which is built once.
    pub(crate) fn pipeline(&mut self, words: &[u32], groups: Groups) -> Result<vk::Pipeline, Error> {
        if let Some(pipeline) = self.pipelines.get(words) {
            return Ok(*pipeline);
        }
        let pipeline = self.compile(words, groups, vk::PipelineCreateFlags::empty())?;
        self.pipelines.insert(words.to_vec(), pipeline);
        Ok(pipeline)
    }

    /// Builds a pipeline and discards it.
    pub(crate) fn try_compile(&mut self, words: &[u32]) -> Result<(), Error> {
        let pipeline = self.compile(words, Groups::Subgroup, vk::PipelineCreateFlags::empty())?;
        // SAFETY: it was created from this device and never used.
        unsafe { self.device.destroy_pipeline(pipeline, None) };
        Ok(())
    }

    fn compile(
        &mut self,
        words: &[u32],
        groups: Groups,
        flags: vk::PipelineCreateFlags,
    ) -> Result<vk::Pipeline, Error> {
        self.alive()?;
        let mut size =
            vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default().required_subgroup_size(self.subgroup.size);
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: the words are a valid module of SPIR-V 1.6 whose capabilities the device has.
        let module = called("vkCreateShaderModule", unsafe { self.device.create_shader_module(&info, None) })?;
        let mut stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let one_subgroup = groups == Groups::Subgroup;
        if one_subgroup && self.full_subgroups {
            stage = stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS);
        }
        if one_subgroup && self.subgroup.required {
            stage = stage.push_next(&mut size);
        }
        let infos = [vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage).layout(self.layout)];
        // SAFETY: module and layout are this device's, and everything in `infos` lives until the call returns; the
        // module may be destroyed as soon as the pipeline is created.
        let made = unsafe {
            let made = self.device.create_compute_pipelines(vk::PipelineCache::null(), &infos, None);
            self.device.destroy_shader_module(module, None);
            made
        };
        let result = made.map_err(|(_, result)| failure("vkCreateComputePipelines", result)).map(|all| all[0]);
        self.remember(result)
    }

    /// Marks the session as dead if the result says that the device is lost.
    pub(crate) fn remember<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result
            && error.is_device_lost()
        {
            self.dead = Some(error.clone());
        }
        result
    }

    /// Computes every tile. `inputs` are the bytes of A, B and C; `tile_bytes` are the sizes of a tile of A, B, C and
    /// D.
    ///
    /// # Errors
    /// [`Error::is_nothing_written`] if the output of a tile still holds its previous content; otherwise whatever the
    /// driver reports.
    pub(crate) fn run(
        &mut self,
        pipeline: vk::Pipeline,
        inputs: [&[u8]; 3],
        tile_bytes: [usize; 4],
        tiles: usize,
    ) -> Result<Vec<u8>, Error> {
        self.alive()?;
        let largest = *tile_bytes.iter().max().expect("four sizes");
        if largest as u64 > self.max_buffer_bytes {
            return Err(Error::out_of_memory(format!(
                "one tile takes {largest} bytes, and a buffer holds {} at most",
                self.max_buffer_bytes
            )));
        }
        let mut output = Vec::with_capacity(tiles * tile_bytes[3]);
        let mut done = 0;
        while done < tiles {
            let per_chunk = (self.chunk_bytes.min(self.max_buffer_bytes) / largest as u64).max(1);
            let count = (tiles - done).min(usize::try_from(per_chunk).unwrap_or(usize::MAX));
            match self.reserve(tile_bytes.map(|bytes| (bytes * count) as u64)) {
                Err(error) if error.is_out_of_memory() && self.chunk_bytes > SMALLEST_BUFFER_BYTES => {
                    self.chunk_bytes /= 2;
                    continue;
                }
                other => other?,
            }
            for ((buffer, input), bytes) in self.buffers.iter_mut().zip(inputs).zip(tile_bytes) {
                buffer.slice(bytes * count).copy_from_slice(&input[done * bytes..][..bytes * count]);
            }
            let attempt = |filling| {
                self.buffers[3].slice(tile_bytes[3] * count).fill(filling);
                self.dispatch(pipeline, count)?;
                let tiles = self.buffers[3].slice(tile_bytes[3] * count).chunks_exact(tile_bytes[3]).enumerate();
                Ok(tiles.filter_map(|(at, tile)| is_all(tile, filling).then_some(at)).collect())
            };
            until_written(attempt, |unwritten| {
                format!(
                    "the device reported that it had finished, and {} of {count} tiles of D still hold what was in \
                     memory before",
                    unwritten.len()
                )
            })?;
            output.extend_from_slice(self.buffers[3].slice(tile_bytes[3] * count));
            done += count;
        }
        Ok(output)
    }

    /// Fills the buffers of A, B and C, after making all four at least as large as `lengths` says.
    pub(crate) fn load(&mut self, inputs: [&[u8]; 3], lengths: [usize; 4]) -> Result<(), Error> {
        self.reserve(lengths.map(|length| length as u64))?;
        for (buffer, input) in self.buffers.iter_mut().zip(inputs) {
            buffer.slice(input.len()).copy_from_slice(input);
        }
        Ok(())
    }

    /// Fills the first `len` bytes of the buffer of D.
    pub(crate) fn fill_output(&mut self, len: usize, filling: u8) {
        self.buffers[3].slice(len).fill(filling);
    }

    /// Reads the first `len` bytes of the buffer of D.
    pub(crate) fn output(&mut self, len: usize) -> Vec<u8> {
        self.buffers[3].slice(len).to_vec()
    }

    /// Whether the device may still be working on an abandoned submission.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Makes each buffer at least `bytes` large.
    fn reserve(&mut self, bytes: [u64; 4]) -> Result<(), Error> {
        let mut changed = false;
        for (at, bytes) in bytes.into_iter().enumerate() {
            if self.buffers[at].bytes >= bytes && self.buffers[at].bytes != 0 {
                continue;
            }
            let old = std::mem::replace(&mut self.buffers[at], Buffer::NONE);
            // SAFETY: the device is idle and nothing else holds the handles.
            unsafe {
                self.device.destroy_buffer(old.handle, None);
                self.device.free_memory(old.memory, None);
            }
            let bytes = bytes.next_power_of_two().max(SMALLEST_BUFFER_BYTES).min(self.max_buffer_bytes.max(bytes));
            self.buffers[at] = allocate(&self.device, &self.memory, bytes, at == 3)?;
            changed = true;
        }
        if changed {
            let infos = self
                .buffers
                .each_ref()
                .map(|buffer| [vk::DescriptorBufferInfo::default().buffer(buffer.handle).range(vk::WHOLE_SIZE)]);
            let writes: [_; 4] = std::array::from_fn(|at| {
                vk::WriteDescriptorSet::default()
                    .dst_set(self.set)
                    .dst_binding(u32::try_from(at).expect("below 4"))
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(&infos[at])
            });
            // SAFETY: set and buffers are this device's, every buffer is bound to memory, and no pending command
            // uses the set.
            unsafe { self.device.update_descriptor_sets(&writes, &[]) };
        }
        Ok(())
    }

    /// Returns every text that the driver keeps for a kernel, with its name; `None` if it keeps none.
    pub(crate) fn representations(&mut self, words: &[u32]) -> Result<Option<Vec<(String, String)>>, Error> {
        self.alive()?;
        if self.executables.is_none() {
            return Ok(None);
        }
        let pipeline =
            self.compile(words, Groups::Subgroup, vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR)?;
        let texts = match &self.executables {
            Some(executables) => texts_of(executables, pipeline),
            None => Ok(Vec::new()),
        };
        // SAFETY: the pipeline was created from this device and never used.
        unsafe { self.device.destroy_pipeline(pipeline, None) };
        self.remember(texts).map(|texts| (!texts.is_empty()).then_some(texts))
    }
}
