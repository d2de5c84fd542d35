//! An opened device: its queue, its buffers and its pipelines.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

use ash::{khr, vk};
use mxprobe_api::{Error, OperationId};

use crate::failure::failure;
use crate::features::{BFLOAT16_EXTENSION, Bfloat16Features, FLOAT8_EXTENSION, Float8Features};
use crate::instance::Instance;
use crate::physical::{Physical, Subgroup};

/// The largest buffer of one submission; more tiles than fit go in another one.
const CHUNK_BYTES: u64 = 16 << 20;
/// The smallest buffer that memory is taken for, and the least that a chunk shrinks to when memory runs out.
const SMALLEST_BUFFER_BYTES: u64 = 64 << 10;
/// Bytes of push constants, at the most: two unsigned integers.
const PUSHED_BYTES: u32 = 8;
/// What the output holds before the device writes it; twice, because a result may be one of them.
pub(crate) const SENTINELS: [u8; 2] = [0xaa, 0x55];

/// One host-visible buffer, mapped as long as it lives.
struct Buffer {
    handle: vk::Buffer,
    memory: vk::DeviceMemory,
    mapped: *mut u8,
    bytes: u64,
}

// SAFETY: the mapping belongs to the buffer alone and is reached through `&mut Session` only.
unsafe impl Send for Buffer {}

impl Buffer {
    const NONE: Self =
        Self { handle: vk::Buffer::null(), memory: vk::DeviceMemory::null(), mapped: std::ptr::null_mut(), bytes: 0 };

    /// The first `len` bytes of the mapping. The device must not be using the buffer.
    fn slice(&mut self, len: usize) -> &mut [u8] {
        assert!(len as u64 <= self.bytes, "{len} bytes of a buffer of {}", self.bytes);
        if len == 0 {
            return &mut [];
        }
        // SAFETY: `mapped` points to `bytes` mapped bytes, host-coherent, that nothing else refers to; the device is
        // idle: every submission is waited for before `&mut self` can be had again, or the session is dead.
        unsafe { std::slice::from_raw_parts_mut(self.mapped, len) }
    }
}

/// Who computes in a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Groups {
    /// One full subgroup of the device's width, together.
    Subgroup,
    /// Each invocation by itself.
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
    /// By their modules.
    pipelines: BTreeMap<Vec<u32>, vk::Pipeline>,
    /// The number of workgroups with which a shader that is timed multiplies fastest.
    pub(crate) groups: BTreeMap<OperationId, u32>,
    /// Nanoseconds of a tick of the device's clock, and how many bits count ticks; `None` where the queue has no timestamps.
    pub(crate) timestamps: Option<(f64, u32)>,
    executables: Option<khr::pipeline_executable_properties::Device>,
    subgroup: Subgroup,
    full_subgroups: bool,
    pub(crate) max_workgroups: u32,
    pub(crate) max_buffer_bytes: u64,
    chunk_bytes: u64,
    memory: vk::PhysicalDeviceMemoryProperties,
    timeout: Duration,
    /// Why nothing more can be asked of it.
    dead: Option<Error>,
    /// A submission was given up on: the device may still use everything here.
    in_flight: bool,
    /// Dropped last: everything above came from it.
    instance: Arc<Instance>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.in_flight {
            // What a device may still be using must not be destroyed (VUID-vkDestroyDevice-device-05137), and waiting
            // for it is what failed: it is left to the end of the process.
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
        // From here on `Drop` destroys whatever exists.
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
        // SAFETY: the queue family was asked for when the device was created; every structure lives until its call
        // returns, and every handle in one was created from this device just before.
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

    /// Whether the session is still worth keeping.
    pub(crate) fn alive(&self) -> Result<(), Error> {
        self.dead.clone().map_or(Ok(()), Err)
    }

    /// The pipeline of a module, built once.
    pub(crate) fn pipeline(&mut self, words: &[u32], groups: Groups) -> Result<vk::Pipeline, Error> {
        if let Some(pipeline) = self.pipelines.get(words) {
            return Ok(*pipeline);
        }
        let pipeline = self.compile(words, groups, vk::PipelineCreateFlags::empty())?;
        self.pipelines.insert(words.to_vec(), pipeline);
        Ok(pipeline)
    }

    /// Builds a pipeline and throws it away.
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
        // module may be destroyed as soon as the pipeline is made.
        let made = unsafe {
            let made = self.device.create_compute_pipelines(vk::PipelineCache::null(), &infos, None);
            self.device.destroy_shader_module(module, None);
            made
        };
        let result = made.map_err(|(_, result)| failure("vkCreateComputePipelines", result)).map(|all| all[0]);
        self.remember(result)
    }

    /// A lost device stays lost.
    pub(crate) fn remember<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result
            && error.is_device_lost()
        {
            self.dead = Some(error.clone());
        }
        result
    }

    /// Computes every tile: `inputs` are the bytes of A, B and C, `tile_bytes` those of one tile of A, B, C and D.
    ///
    /// # Errors
    /// Also if the output of a tile still holds what was there before.
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
            let mut suspects: Vec<usize> = Vec::new();
            for (attempt, sentinel) in SENTINELS.into_iter().enumerate() {
                self.buffers[3].slice(tile_bytes[3] * count).fill(sentinel);
                self.dispatch(pipeline, count)?;
                let written = self.buffers[3].slice(tile_bytes[3] * count);
                let untouched = |tile: &[u8]| tile.iter().all(|byte| *byte == sentinel);
                if attempt == 0 {
                    let tiles = written.chunks_exact(tile_bytes[3]).enumerate();
                    suspects = tiles.filter_map(|(at, tile)| untouched(tile).then_some(at)).collect();
                } else {
                    suspects.retain(|at| untouched(&written[at * tile_bytes[3]..][..tile_bytes[3]]));
                }
                if suspects.is_empty() {
                    output.extend_from_slice(written);
                    break;
                }
            }
            if !suspects.is_empty() {
                return Err(Error::nothing_written(format!(
                    "the device reported that it had finished, and {} of {count} tiles of D still hold what was in \
                     memory before",
                    suspects.len()
                )));
            }
            done += count;
        }
        Ok(output)
    }

    /// Fills the buffers of A, B and C, and makes room for so many bytes in each and in that of D.
    pub(crate) fn load(&mut self, inputs: [&[u8]; 3], lengths: [usize; 4]) -> Result<(), Error> {
        self.reserve(lengths.map(|length| length as u64))?;
        for (buffer, input) in self.buffers.iter_mut().zip(inputs) {
            buffer.slice(input.len()).copy_from_slice(input);
        }
        Ok(())
    }

    /// Fills so much of the buffer of D.
    pub(crate) fn fill_output(&mut self, len: usize, filling: u8) {
        self.buffers[3].slice(len).fill(filling);
    }

    /// What stands in the buffer of D.
    pub(crate) fn output(&mut self, len: usize) -> Vec<u8> {
        self.buffers[3].slice(len).to_vec()
    }

    /// Whether the device may still be at work on something that was given up.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Makes each buffer at least so large.
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
            self.buffers[at] = self.allocate(bytes, at == 3)?;
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

    fn allocate(&self, bytes: u64, read_back: bool) -> Result<Buffer, Error> {
        let info = vk::BufferCreateInfo::default().size(bytes).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        // SAFETY: `info` is complete; see the calls below for the rest.
        let handle = called("vkCreateBuffer", unsafe { self.device.create_buffer(&info, None) })?;
        // SAFETY: the handle was just made.
        let needs = unsafe { self.device.get_buffer_memory_requirements(handle) };
        let attempt = || {
            let ty = memory_type(&self.memory, needs.memory_type_bits, read_back).ok_or_else(|| {
                Error::unsupported("no memory of the device is both host-visible and host-coherent".to_owned())
            })?;
            let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(ty);
            // SAFETY: the type is one of the device's and of those the buffer takes.
            called("vkAllocateMemory", unsafe { self.device.allocate_memory(&info, None) })
        };
        let memory = attempt().inspect_err(|_| {
            // SAFETY: the buffer was never used.
            unsafe { self.device.destroy_buffer(handle, None) };
        })?;
        // SAFETY: the memory is large enough, of a type the buffer takes, host-visible and not mapped; offset 0 fits
        // any alignment.
        let mapped = unsafe {
            self.device
                .bind_buffer_memory(handle, memory, 0)
                .and_then(|()| self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()))
        };
        let mapped = called("vkMapMemory", mapped).inspect_err(|_| {
            // SAFETY: neither was ever used by the device.
            unsafe {
                self.device.destroy_buffer(handle, None);
                self.device.free_memory(memory, None);
            }
        })?;
        Ok(Buffer { handle, memory, mapped: mapped.cast(), bytes })
    }

    /// Runs `tiles` workgroups over what is in the buffers, and waits for them.
    fn dispatch(&mut self, pipeline: vk::Pipeline, tiles: usize) -> Result<(), Error> {
        let result = self.record(pipeline, u32::try_from(tiles).expect("a chunk of tiles"));
        self.remember(result.map_err(|(call, result)| failure(call, result)))?;
        self.submit(&format!("{tiles} tiles"))
    }

    /// Runs what was recorded, and waits for it; `what` it was, for the message where it takes too long.
    pub(crate) fn submit(&mut self, what: &str) -> Result<(), Error> {
        let commands = [self.commands];
        let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
        // SAFETY: fence and commands are this device's and not in use; the queue is used under `&mut self` only.
        let submitted = unsafe {
            self.device
                .reset_fences(&[self.fence])
                .and_then(|()| self.device.queue_submit(self.queue, &submits, self.fence))
        };
        self.remember(called("vkQueueSubmit", submitted))?;
        let limit = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the fence was just submitted.
        match unsafe { self.device.wait_for_fences(&[self.fence], true, limit) } {
            Ok(()) => Ok(()),
            Err(vk::Result::TIMEOUT) => {
                self.in_flight = true;
                let text = format!("{what} were not finished within {:?}", self.timeout);
                self.dead = Some(Error::device_lost(format!("the device was given up earlier: {text}")));
                Err(Error::timed_out(text))
            }
            Err(other) => {
                // What the device still does is not known, unless it is lost for good.
                self.in_flight = other != vk::Result::ERROR_DEVICE_LOST;
                let error = failure("vkWaitForFences", other);
                self.dead = Some(error.clone());
                Err(error)
            }
        }
    }

    fn record(&self, pipeline: vk::Pipeline, tiles: u32) -> Result<(), (&'static str, vk::Result)> {
        let (device, commands) = (&self.device, self.commands);
        self.recorded(|| {
            self.bind(pipeline);
            let mut first = 0;
            while first < tiles {
                let count = (tiles - first).min(self.max_workgroups);
                let bytes = first.to_ne_bytes();
                // SAFETY: commands are being recorded; the layout is that of the pipeline; each dispatch has between 1
                // and `max_workgroups` workgroups, and the buffers hold all of their tiles.
                unsafe {
                    device.cmd_push_constants(commands, self.layout, vk::ShaderStageFlags::COMPUTE, 0, &bytes);
                    device.cmd_dispatch(commands, count, 1, 1);
                }
                first += count;
            }
        })
    }

    /// Binds a pipeline and the buffers; commands are being recorded.
    pub(crate) fn bind(&self, pipeline: vk::Pipeline) {
        let compute = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: pipeline, layout and set are this device's and fit each other.
        unsafe {
            self.device.cmd_bind_pipeline(self.commands, compute, pipeline);
            self.device.cmd_bind_descriptor_sets(self.commands, compute, self.layout, 0, &[self.set], &[]);
        }
    }

    /// Records what `commands` puts into the command buffer, and then that the host reads what was written.
    pub(crate) fn recorded(&self, commands: impl FnOnce()) -> Result<(), (&'static str, vk::Result)> {
        let device = &self.device;
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        let to_host = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        // SAFETY: the command buffer is not pending and its pool allows resets; writes of the host before the submission
        // are visible without a barrier.
        unsafe {
            device.begin_command_buffer(self.commands, &begin).map_err(|result| ("vkBeginCommandBuffer", result))?;
            commands();
            device.cmd_pipeline_barrier(
                self.commands,
                vk::PipelineStageFlags::COMPUTE_SHADER,
                vk::PipelineStageFlags::HOST,
                vk::DependencyFlags::empty(),
                &to_host,
                &[],
                &[],
            );
            device.end_command_buffer(self.commands).map_err(|result| ("vkEndCommandBuffer", result))
        }
    }

    /// Every text the driver keeps of a kernel, with its name; `None` where it keeps none.
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
        // SAFETY: it was created from this device and never used.
        unsafe { self.device.destroy_pipeline(pipeline, None) };
        self.remember(texts).map(|texts| (!texts.is_empty()).then_some(texts))
    }
}

fn texts_of(
    executables: &khr::pipeline_executable_properties::Device,
    pipeline: vk::Pipeline,
) -> Result<Vec<(String, String)>, Error> {
    let info = vk::PipelineInfoKHR::default().pipeline(pipeline);
    // SAFETY: the feature pipelineExecutableInfo is enabled, and the pipeline is the device's.
    let count = unsafe { executables.get_pipeline_executable_properties(&info) };
    let count = called("vkGetPipelineExecutablePropertiesKHR", count)?.len();
    let mut texts = Vec::new();
    for index in 0..u32::try_from(count).unwrap_or(u32::MAX) {
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline).executable_index(index);
        let call = "vkGetPipelineExecutableInternalRepresentationsKHR";
        // SAFETY: as above, and the pipeline was made with CAPTURE_INTERNAL_REPRESENTATIONS
        // (VUID-vkGetPipelineExecutableInternalRepresentationsKHR-pipeline-03278). Without data pointers this fetches
        // names and sizes.
        let found = unsafe { executables.get_pipeline_executable_internal_representations(&info) };
        let mut found = called(call, found)?;
        let mut data: Vec<Vec<u8>> = found.iter().map(|text| vec![0; text.data_size]).collect();
        for (text, data) in found.iter_mut().zip(&mut data) {
            text.p_data = data.as_mut_ptr().cast();
        }
        let mut count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        // SAFETY: as above; every data pointer refers to `data_size` bytes that live until after the call.
        let result = unsafe {
            (executables.fp().get_pipeline_executable_internal_representations_khr)(
                executables.device(),
                &info,
                &mut count,
                found.as_mut_ptr(),
            )
        };
        if result != vk::Result::SUCCESS {
            return Err(failure(call, result));
        }
        for (text, data) in found.iter().zip(data).filter(|(text, _)| text.is_text == vk::TRUE) {
            // SAFETY: the driver null-terminated the name within its array, as specified.
            let name = unsafe { CStr::from_ptr(text.name.as_ptr()) }.to_string_lossy().into_owned();
            let data = &data[..text.data_size.min(data.len())];
            let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
            texts.push((name, String::from_utf8_lossy(&data[..end]).into_owned()));
        }
    }
    Ok(texts)
}

/// The type of memory for a buffer: host-visible and coherent always; cached to be read from.
fn memory_type(memory: &vk::PhysicalDeviceMemoryProperties, allowed: u32, read_back: bool) -> Option<u32> {
    let needed = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let types = memory.memory_types_as_slice();
    let fits = |(at, ty): &(u32, &vk::MemoryType)| allowed >> at & 1 == 1 && ty.property_flags.contains(needed);
    let cached = |(_, ty): &(u32, &vk::MemoryType)| ty.property_flags.contains(vk::MemoryPropertyFlags::HOST_CACHED);
    let all = || (0..).zip(types).filter(fits);
    let preferred = all().find(|candidate| cached(candidate) == read_back);
    preferred.or_else(|| all().next()).map(|(at, _)| at)
}

fn open_device(physical: &Physical) -> Result<ash::Device, Error> {
    let features = &physical.features;
    let mut extensions = Vec::new();
    let mut vulkan11 = vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(features.storage16);
    let mut vulkan12 = vk::PhysicalDeviceVulkan12Features::default()
        .shader_float16(features.float16)
        .shader_int8(features.int8)
        .storage_buffer8_bit_access(features.storage8)
        .vulkan_memory_model(features.memory_model);
    let mut vulkan13 = vk::PhysicalDeviceVulkan13Features::default()
        .subgroup_size_control(features.subgroup_size_control)
        .compute_full_subgroups(features.full_subgroups);
    let mut matrix = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
    let mut bfloat16 =
        Bfloat16Features { scalar: vk::TRUE, cooperative_matrix: vk::TRUE, ..Bfloat16Features::default() };
    let mut float8 = Float8Features { scalar: vk::TRUE, cooperative_matrix: vk::TRUE, ..Float8Features::default() };
    let mut executables =
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
    let base = vk::PhysicalDeviceFeatures::default().shader_float64(features.float64).shader_int16(features.int16);
    let priorities = [1.0];
    let queues =
        [vk::DeviceQueueCreateInfo::default().queue_family_index(physical.queue_family).queue_priorities(&priorities)];
    if physical.has_matrices {
        extensions.push(khr::cooperative_matrix::NAME.as_ptr());
    }
    if features.bfloat16 {
        extensions.push(BFLOAT16_EXTENSION.as_ptr());
    }
    if features.float8 {
        extensions.push(FLOAT8_EXTENSION.as_ptr());
    }
    if features.executable_info {
        extensions.push(khr::pipeline_executable_properties::NAME.as_ptr());
    }
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&extensions)
        .enabled_features(&base)
        .push_next(&mut vulkan11)
        .push_next(&mut vulkan12)
        .push_next(&mut vulkan13);
    if physical.has_matrices {
        info = info.push_next(&mut matrix);
    }
    if features.bfloat16 {
        info = info.push_next(&mut bfloat16);
    }
    if features.float8 {
        info = info.push_next(&mut float8);
    }
    if features.executable_info {
        info = info.push_next(&mut executables);
    }
    // SAFETY: the device was enumerated from this instance; extensions and features were listed by it; everything in
    // `info` lives until the call returns.
    called("vkCreateDevice", unsafe { physical.instance.handle.create_device(physical.handle, &info, None) })
}

fn called<T>(call: &str, result: Result<T, vk::Result>) -> Result<T, Error> {
    result.map_err(|result| failure(call, result))
}
