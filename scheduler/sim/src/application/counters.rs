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
    /// Gangs of more than one actor that were submitted.
    pub gangs: u64,
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
    /// Runners of tasks that were submitted.
    pub task_runners: u64,
    /// Tasks that were called.
    pub tasks: u64,
    /// Functions of tasks that started.
    pub task_starts: u64,
    /// How many of them for a task that had started before.
    pub task_repeats: u64,
    /// Tasks that were parked.
    pub parked: u64,
    /// Tasks that runners gave back.
    pub returned: u64,
    /// Tasks that ended at their callers.
    pub tasks_ended: u64,
    /// Tasks that ended with a value.
    pub task_values: u64,
    /// Tasks that ended because their processes did.
    pub task_losses: u64,
    /// Tasks that ended because nothing could run them.
    pub no_runners: u64,
    /// Tasks that would have waited for ever for GPUs of their own application.
    pub deadlocks: u64,
    /// Tasks that ended because they were cancelled.
    pub cancelled_tasks: u64,
    /// Tasks that were called and are streams.
    pub streams: u64,
    /// Items of streams that were read.
    pub items: u64,
    /// How often makers of streams had to wait until items were read.
    pub pauses: u64,
    /// How often a stream was sent to a further runner after items of it had arrived.
    pub resumed_streams: u64,
    /// Objects that were made by users' code.
    pub puts: u64,
    /// Calls with a reference that ended.
    pub references: u64,
    /// Arguments whose values came by reference.
    pub needs: u64,
    /// Objects that were read from the store.
    pub reads: u64,
    /// Objects that the store spilled.
    pub spills: u64,
    /// Objects for which the store had no room in time.
    pub full_stores: u64,
    /// How often nodes did not reach each other for some time.
    pub cuts: u64,
    /// Nodes of which all processes ended at once.
    pub lost_nodes: u64,
    /// Stores of further nodes that faults killed.
    pub store_kills: u64,
    /// Members of which the coordinator heard nothing for too long.
    pub silences: u64,
    /// Objects that stores fetched from each other.
    pub fetches: u64,
    /// How many of them did not arrive.
    pub failed_fetches: u64,
    /// Copies that stores dropped to have room.
    pub dropped_copies: u64,
    /// Objects that were made again.
    pub remakes: u64,
    /// Objects that processes could not read any more.
    pub lost_objects: u64,
    /// Processes that ended without a task that did not end.
    pub abandoned: u64,
    /// Processes that ended because they were told to.
    pub orderly_ends: u64,
    /// Runs that ended with nothing left, and not by the end of the coordinator or of all mains.
    pub rests: u64,
}

impl ApplicationCounters {
    /// Adds the numbers of another run.
    pub(super) fn add(&mut self, other: &ApplicationCounters) {
        let ApplicationCounters { events, processes, kills, breaks, dials, actors, gangs, .. } = other;
        let ApplicationCounters { constructions, calls, starts, finished, values, restarted, rests, .. } =
            other;
        let ApplicationCounters { task_runners, tasks, task_starts, task_repeats, parked, returned, .. } =
            other;
        let ApplicationCounters { tasks_ended, task_values, task_losses, no_runners, .. } = other;
        let ApplicationCounters { streams, items, pauses, resumed_streams, .. } = other;
        let ApplicationCounters { puts, references, needs, reads, spills, full_stores, .. } = other;
        let ApplicationCounters { deadlocks, cancelled_tasks, abandoned, orderly_ends, .. } = other;
        let ApplicationCounters { cuts, lost_nodes, store_kills, silences, fetches, .. } = other;
        let ApplicationCounters { failed_fetches, dropped_copies, remakes, lost_objects, .. } = other;
        for (total, more) in [
            (&mut self.events, events),
            (&mut self.processes, processes),
            (&mut self.kills, kills),
            (&mut self.breaks, breaks),
            (&mut self.dials, dials),
            (&mut self.actors, actors),
            (&mut self.gangs, gangs),
            (&mut self.constructions, constructions),
            (&mut self.calls, calls),
            (&mut self.starts, starts),
            (&mut self.finished, finished),
            (&mut self.values, values),
            (&mut self.restarted, restarted),
            (&mut self.rests, rests),
            (&mut self.task_runners, task_runners),
            (&mut self.tasks, tasks),
            (&mut self.task_starts, task_starts),
            (&mut self.task_repeats, task_repeats),
            (&mut self.parked, parked),
            (&mut self.returned, returned),
            (&mut self.tasks_ended, tasks_ended),
            (&mut self.task_values, task_values),
            (&mut self.task_losses, task_losses),
            (&mut self.no_runners, no_runners),
            (&mut self.deadlocks, deadlocks),
            (&mut self.cancelled_tasks, cancelled_tasks),
            (&mut self.streams, streams),
            (&mut self.items, items),
            (&mut self.pauses, pauses),
            (&mut self.resumed_streams, resumed_streams),
            (&mut self.puts, puts),
            (&mut self.references, references),
            (&mut self.needs, needs),
            (&mut self.reads, reads),
            (&mut self.spills, spills),
            (&mut self.full_stores, full_stores),
            (&mut self.abandoned, abandoned),
            (&mut self.orderly_ends, orderly_ends),
            (&mut self.cuts, cuts),
            (&mut self.lost_nodes, lost_nodes),
            (&mut self.store_kills, store_kills),
            (&mut self.silences, silences),
            (&mut self.fetches, fetches),
            (&mut self.failed_fetches, failed_fetches),
            (&mut self.dropped_copies, dropped_copies),
            (&mut self.remakes, remakes),
            (&mut self.lost_objects, lost_objects),
        ] {
            *total += more;
        }
    }
}
