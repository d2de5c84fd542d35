//! `cp.async`: copies arrive in shared memory when they are waited for, and not before.

use super::{
    launch::Trap,
    under_way::{Copies, Copy},
    wave::Wave,
};
use crate::ptx::{CopyStep, Space, Step};

impl Wave<'_> {
    pub(super) fn copy_async(&mut self, step: &Step, copy: &CopyStep, lanes: &[u32]) -> Result<(), Trap> {
        if self.copies.is_empty() {
            self.copies = vec![Copies::default(); self.lanes];
        }
        for lane in lanes {
            match copy {
                CopyStep::Copy { bytes, to, from } => {
                    let to = self.checked_address(step, *lane, *to, *bytes)?;
                    let from = self.checked_address(step, *lane, *from, *bytes)?;
                    let mut one = Copy { group: None, to, len: *bytes, bytes: [0; 16] };
                    one.bytes[..*bytes].copy_from_slice(self.bytes(step, Space::Global, *lane, from, *bytes)?);
                    self.bytes(step, Space::Shared, *lane, to, *bytes)?;
                    self.check_not_read(step, *lane, to, *bytes)?;
                    self.copies[*lane as usize].under_way.push(one);
                }
                CopyStep::Commit => {
                    let Copies { committed, under_way } = &mut self.copies[*lane as usize];
                    under_way.iter_mut().for_each(|one| {
                        one.group.get_or_insert(*committed);
                    });
                    *committed += 1;
                }
                CopyStep::Wait(pending) => self.land(step, *lane, *pending)?,
            }
        }
        Ok(())
    }

    /// Writes all but the latest `pending` groups of a lane's copies to shared memory.
    fn land(&mut self, step: &Step, lane: u32, pending: u64) -> Result<(), Trap> {
        let Copies { committed, under_way } = &mut self.copies[lane as usize];
        let before = committed.saturating_sub(pending);
        let has_arrived = |one: &Copy| one.group.is_some_and(|group| group < before);
        let (arrived, left): (Vec<Copy>, Vec<Copy>) = std::mem::take(under_way).into_iter().partition(has_arrived);
        *under_way = left;
        for one in arrived {
            self.bytes(step, Space::Shared, lane, one.to, one.len)?.copy_from_slice(&one.bytes[..one.len]);
            self.unfenced[lane as usize] = true;
            self.unsynchronised[lane as usize] = true;
        }
        Ok(())
    }
}
