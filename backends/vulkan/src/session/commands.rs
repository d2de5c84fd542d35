//! Recording commands, submitting them and waiting for them.

use ash::vk;
use mxprobe_api::Error;

use super::Session;
use crate::failure::{called, failure};

impl Session {
    /// Runs `tiles` workgroups on the content of the buffers, and waits for them.
    pub(super) fn dispatch(&mut self, pipeline: vk::Pipeline, tiles: usize) -> Result<(), Error> {
        let result = self.record(pipeline, u32::try_from(tiles).expect("a chunk of tiles"));
        self.remember(result.map_err(|(call, result)| failure(call, result)))?;
        self.submit(&format!("{tiles} tiles"))
    }

    /// Runs the recorded commands and waits for them; `what` describes them in the error if they take too long.
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
                // The device may still be working, unless it is lost.
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

    /// Binds a pipeline and the buffers, while commands are being recorded.
    pub(crate) fn bind(&self, pipeline: vk::Pipeline) {
        let compute = vk::PipelineBindPoint::COMPUTE;
        // SAFETY: pipeline, layout and set are this device's and fit each other.
        unsafe {
            self.device.cmd_bind_pipeline(self.commands, compute, pipeline);
            self.device.cmd_bind_descriptor_sets(self.commands, compute, self.layout, 0, &[self.set], &[]);
        }
    }

    /// Records the commands that `commands` adds, followed by a barrier that makes their writes visible to the host.
    pub(crate) fn recorded(&self, commands: impl FnOnce()) -> Result<(), (&'static str, vk::Result)> {
        let device = &self.device;
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        let to_host = [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::SHADER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ)];
        // SAFETY: the command buffer is not pending and its pool allows resets; host writes before the submission are
        // visible without a barrier.
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
}
