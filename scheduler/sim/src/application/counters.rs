//! What happened in a run, in numbers.

use serde::Serialize;

/// What happened in a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ApplicationCounters {
    /// Events of the simulation.
    pub events: u64,
    /// Processes that were started.
    pub processes: u64,
    /// Processes that faults killed.
    pub kills: u64,
    /// Connections that faults broke.
    pub breaks: u64,
    /// Connections that were dialed.
    pub dials: u64,
    /// Actors that were created.
    pub actors: u64,
    /// Constructions of actors.
    pub constructions: u64,
    /// Calls that were made.
    pub calls: u64,
    /// Methods that started.
    pub starts: u64,
    /// Calls that ended.
    pub finished: u64,
    /// Calls that ended with a value.
    pub values: u64,
    /// Calls that ended because the process of the actor did.
    pub restarted: u64,
    /// Runs that ended with nothing left, and not by the end of the coordinator or of all mains.
    pub rests: u64,
}

impl ApplicationCounters {
    /// Adds the numbers of another run.
    pub(super) fn add(&mut self, other: &ApplicationCounters) {
        let ApplicationCounters { events, processes, kills, breaks, dials, actors, constructions, .. } =
            other;
        let ApplicationCounters { calls, starts, finished, values, restarted, rests, .. } = other;
        for (total, more) in [
            (&mut self.events, events),
            (&mut self.processes, processes),
            (&mut self.kills, kills),
            (&mut self.breaks, breaks),
            (&mut self.dials, dials),
            (&mut self.actors, actors),
            (&mut self.constructions, constructions),
            (&mut self.calls, calls),
            (&mut self.starts, starts),
            (&mut self.finished, finished),
            (&mut self.values, values),
            (&mut self.restarted, restarted),
            (&mut self.rests, rests),
        ] {
            *total += more;
        }
    }
}
