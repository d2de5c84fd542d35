//! `mma` and `wmma.mma` of whole warps, with the scales of block-scaled ones.

use mxprobe_api::{Elements, TileBatch};

use super::{launch::Trap, wave::Wave};
use crate::ptx::{Multiply, Scales, Source, Step};

impl Wave<'_> {
    pub(super) fn multiply(&mut self, at: usize, step: &Step, multiply: &Multiply, lanes: &[u32]) -> Result<(), Trap> {
        let warps = self.together(step, lanes, 32)?;
        let plan = &self.launch.plans[&(self.launch.kernel_index, at)];
        let mut batch = plan.gather(multiply, self, &warps);
        if let Some(scales) = &multiply.scales {
            self.gather_scales(step, scales, &warps, &mut batch)?;
        }
        let d = self.launch.unit.compute(&plan.operation, &batch);
        let mut d = d.map_err(|error| Trap::failure(step, error.to_string()))?;
        if self.launch.unit.flips() {
            let (each, all): (_, Vec<u64>) = (d.len() / warps.len(), d.iter().collect());
            let of_warp = |(warp, d): (&u32, &[u64])| {
                self.launch.unit.flipped(&multiply.id, self.multiprocessor(*warp), d.to_vec())
            };
            d = Elements::from_bits(d.format(), warps.iter().zip(all.chunks(each)).flat_map(of_warp));
        }
        plan.scatter(multiply, self, &warps, &d);
        Ok(())
    }

    /// Collects scales by PTX ISA 8.7, 9.7.14.3 (block scaling): the pair of threads `thread-id-a` of each quad holds
    /// those of rows groupID and groupID + 8, thread `thread-id-b` those of column groupID, from byte `byte-id` on.
    fn gather_scales(&self, step: &Step, scales: &Scales, warps: &[u32], batch: &mut TileBatch) -> Result<(), Trap> {
        let count = scales.count;
        let (Some(scale_a), Some(scale_b)) = (&mut batch.scale_a, &mut batch.scale_b) else { return Ok(()) };
        for (tile, warp) in warps.iter().enumerate() {
            let select = |(byte, thread): (Source, Source), threads: u64| {
                let (byte, thread) = (self.value(byte, *warp), self.value(thread, *warp));
                let fits = byte < 4 && byte.is_multiple_of(u64::from(count)) && thread < threads;
                let text = format!("{{{byte}, {thread}}} selects no scales of `.scale_vec::{count}X`");
                fits.then_some((byte as u32, thread as u32)).ok_or_else(|| Trap::failure(step, text))
            };
            let (byte_a, thread_a) = select(scales.a_select, 2)?;
            let (byte_b, thread_b) = select(scales.b_select, 4)?;
            for chunk in 0..count {
                for row in 0..16 {
                    let lane = warp + row % 8 * 4 + thread_a * 2 + row / 8;
                    let bits = self.register(scales.a, lane) >> (8 * (byte_a + chunk));
                    scale_a.set(tile * 16 * count as usize + (row * count + chunk) as usize, bits);
                }
                for column in 0..8 {
                    let lane = warp + column * 4 + thread_b;
                    let bits = self.register(scales.b, lane) >> (8 * (byte_b + chunk));
                    scale_b.set(tile * 8 * count as usize + (chunk * 8 + column) as usize, bits);
                }
            }
        }
        Ok(())
    }
}
