//! One simulated process: its core, and what its user's code holds and does.

use std::collections::BTreeMap;

use bytes::Bytes;
use cohabit_application_core::{
    ActorId, CallNumber, HeldId, IncarnationNumber, Member, ObjectId, RequestNumber, Ticket,
};
use cohabit_types::RankId;

use super::object_process::{FailedNeed, OpenedObject, Storing};
use super::open_stream::OpenStream;
use super::payload::Tag;
use super::task_process::{OpenTask, SimulatedTask};

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) core: Member,
    pub(super) code: ProcessCode,
    /// The handles that the user's code has.
    pub(super) handles: Vec<HeldId>,
    /// Calls that have not ended.
    pub(super) calls: BTreeMap<CallNumber, (ActorId, Tag)>,
    /// Questions that were not answered.
    pub(super) requests: BTreeMap<RequestNumber, OpenRequest>,
    /// Steps that the program still does.
    pub(super) steps: u32,
    /// The program goes on when this call has ended.
    pub(super) awaits: Option<CallNumber>,
    pub(super) live: Option<LiveActor>,
    /// Those of the constructor of its actor.
    pub(super) arguments: Bytes,
    pub(super) running: BTreeMap<Ticket, Tag>,
    /// Tasks that it runs.
    pub(super) tasks: BTreeMap<Ticket, SimulatedTask>,
    /// Tasks that it has called and that have not ended.
    pub(super) task_calls: BTreeMap<CallNumber, OpenTask>,
    /// The streams of such tasks, until their readers have seen the end.
    pub(super) streams: BTreeMap<CallNumber, OpenStream>,
    /// The tasks that wait for calls of actors.
    pub(super) task_awaits: BTreeMap<CallNumber, Ticket>,
    /// References of calls that have not ended.
    pub(super) references: BTreeMap<CallNumber, ObjectId>,
    /// Objects on their way into the store.
    pub(super) storing: BTreeMap<ObjectId, Storing>,
    /// References whose objects, which follow, are being read from the store.
    pub(super) reading: Vec<(ObjectId, ObjectId)>,
    /// Objects whose handles were asked for.
    pub(super) opening: BTreeMap<RequestNumber, OpenedObject>,
    /// References that code needs, and whose values were not known when it began.
    pub(super) unread_needs: Vec<(ObjectId, FailedNeed)>,
    /// With what it exits when it is told to end.
    pub(super) exit_code: i32,
    /// Whether it was told which tasks it runs.
    pub(super) serves: bool,
    pub(super) was_told_to_end: bool,
}

/// What a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessCode {
    Main,
    Actor,
    Tasks,
    /// It serves the objects of a further node.
    Store,
}

/// A question to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpenRequest {
    /// With the handles in the arguments.
    Create {
        carries: Vec<HeldId>,
        name: Option<String>,
    },
    Find,
    /// Look up a detached actor and stop it.
    FindToStop,
    Stop,
}

/// The actor of a process, constructed or being constructed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LiveActor {
    pub(super) actor: ActorId,
    pub(super) incarnation: IncarnationNumber,
    pub(super) concurrency: u32,
}

impl Process {
    pub(super) const fn new(own: RankId, coordinator: RankId, code: ProcessCode, steps: u32) -> Process {
        Process {
            core: Member::new(own, coordinator),
            code,
            handles: Vec::new(),
            calls: BTreeMap::new(),
            requests: BTreeMap::new(),
            steps,
            awaits: None,
            live: None,
            arguments: Bytes::new(),
            running: BTreeMap::new(),
            tasks: BTreeMap::new(),
            task_calls: BTreeMap::new(),
            streams: BTreeMap::new(),
            task_awaits: BTreeMap::new(),
            references: BTreeMap::new(),
            storing: BTreeMap::new(),
            reading: Vec::new(),
            opening: BTreeMap::new(),
            unread_needs: Vec::new(),
            exit_code: 0,
            serves: false,
            was_told_to_end: false,
        }
    }

    /// Whether the user's code has a handle, or a call or question that uses one.
    pub(super) fn holds(&self, actor: ActorId) -> bool {
        let held = HeldId::Actor(actor);
        self.handles.contains(&held)
            || self.calls.values().any(|(target, _)| *target == actor)
            || self.tasks.values().any(|it| it.handles.contains(&held) || it.value_handles.contains(&held))
            || self.task_calls.values().any(|open| open.carries.contains(&held))
            || self.streams.values().any(|stream| stream.holds(held))
            || self.storing.values().any(|storing| storing.carries.contains(&held))
            || self
                .requests
                .values()
                .any(|it| matches!(it, OpenRequest::Create { carries, .. } if carries.contains(&held)))
    }
}
