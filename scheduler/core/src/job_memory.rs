//! Memory that a job does not need: its lists grow by doubling, and a decoder begins each with room for four.

use cohabit_types::JobEventKind;

use crate::job::Job;

impl Job {
    /// Gives back memory that only a job needs to which more will happen.
    pub(crate) fn shrink(&mut self) {
        self.ended_attempts.shrink_to_fit();
        for ended in &mut self.ended_attempts {
            let attempt = &mut ended.attempt;
            attempt.ranks.shrink_to_fit();
            attempt.ranks.iter_mut().for_each(|rank| rank.devices.shrink_to_fit());
            attempt.placement.parts.shrink_to_fit();
            attempt.placement.parts.iter_mut().for_each(|part| part.devices.shrink_to_fit());
        }
        self.events.shrink_to_fit();
        for event in &mut self.events {
            if let JobEventKind::Placed { nodes, devices, .. } = &mut event.kind {
                nodes.shrink_to_fit();
                devices.shrink_to_fit();
            }
        }
    }
}
