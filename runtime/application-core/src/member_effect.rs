//! What the shell of a member does, in order.

use bytes::Bytes;
use cohabit_types::RankId;

use crate::errors::{CallError, CreateError};
use crate::frames::{ToCallee, ToCaller, ToCoordinator};
use crate::held::HeldId;
use crate::ids::{ActorId, CallNumber, IncarnationNumber, ObjectId, RequestNumber, Ticket};
use crate::node_frames::ToStore;
use crate::object_value::CallValue;

/// What the shell of a member does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEffect {
    /// Send this on the session with the coordinator.
    ToCoordinator(ToCoordinator),
    /// Send this on the session that this process dials to the member.
    ToCallee {
        /// The member.
        to: RankId,
        /// The frame.
        frame: ToCallee,
    },
    /// Send this on the session that the member dialed.
    ToCaller {
        /// The member.
        to: RankId,
        /// The frame.
        frame: ToCaller,
    },
    /// A member has ended: close both call sessions with it, and read nothing more from it.
    Close {
        /// The member.
        member: RankId,
    },
    /// Actors were created, or not; the process holds one handle of each.
    Created {
        /// The question.
        request: RequestNumber,
        /// The actor of rank 0, whose number those of the others follow.
        result: Result<ActorId, CreateError>,
    },
    /// An actor was found, or not; the process holds one handle.
    Found {
        /// The question.
        request: RequestNumber,
        /// The answer.
        actor: Option<ActorId>,
    },
    /// An actor was stopped.
    Stopped {
        /// The question.
        request: RequestNumber,
    },
    /// An item of the stream of a task has arrived: call `read` when its user has taken it.
    Item {
        /// The call.
        call: CallNumber,
        /// The number of the item, from 1 and without gaps.
        number: u64,
        /// The encoded item.
        item: Bytes,
        /// The handles in the item.
        carries: Vec<HeldId>,
    },
    /// A call without a reference has ended; each does so exactly once, after its items.
    Finish {
        /// The call.
        call: CallNumber,
        /// The value, or why there is none.
        result: Result<CallValue, CallError>,
        /// The handles in the value.
        carries: Vec<HeldId>,
    },
    /// The value of a reference is known from now on, or its call has ended.
    ObjectReady {
        /// The reference, which may not be held any more.
        object: ObjectId,
        /// Its call, if it was one of this process.
        call: Option<CallNumber>,
    },
    /// A stored object was opened.
    Opened {
        /// The question.
        request: RequestNumber,
        /// The handles in the object; none if its maker ended before it told which ones there are.
        carries: Vec<HeldId>,
    },
    /// Drop the actor of this process, if there is one, construct it and say so with `constructed`.
    /// The member itself holds the handles in the arguments.
    Construct {
        /// The actor.
        actor: ActorId,
        /// Index of its type in the registry of the binary.
        kind: u32,
        /// Which construction it is.
        incarnation: IncarnationNumber,
        /// Encoded arguments.
        arguments: Bytes,
        /// References in the arguments whose values are to be had first: `ObjectReady` tells of those that
        /// are not known.
        needs: Vec<ObjectId>,
    },
    /// Run this method now; its end is told with `finished` or `panicked`.
    Start {
        /// The call.
        ticket: Ticket,
        /// Index of the method in its actor.
        method: u32,
        /// Encoded arguments.
        arguments: Bytes,
        /// References in the arguments whose values are to be had first: `ObjectReady` tells of those that
        /// are not known.
        needs: Vec<ObjectId>,
        /// The handles in the arguments.
        carries: Vec<HeldId>,
    },
    /// Run this task now; its end is told with `task_ended`.
    StartTask {
        /// The task.
        ticket: Ticket,
        /// Index of the function in the registry of the binary.
        function: u32,
        /// Encoded arguments.
        arguments: Bytes,
        /// References in the arguments whose values are to be had first: `ObjectReady` tells of those that
        /// are not known.
        needs: Vec<ObjectId>,
        /// The handles in the arguments.
        carries: Vec<HeldId>,
    },
    /// This running task may make the next item of its stream, which it might not before.
    MakeMore {
        /// The task.
        ticket: Ticket,
    },
    /// This process of tasks has none: call `rested` with this number when it has waited as long as it
    /// should.
    Rest {
        /// The number of this rest.
        rest: u64,
    },
    /// This process has the store of a further node: a frame for it. What it says is passed on with
    /// `from_store`.
    Store(ToStore),
    /// Begin nothing new, end what runs, and exit. A process of tasks has none when it gets this.
    End,
    /// The actor of this process panicked, and its gang begins anew: exit with an error. Nothing runs.
    Fail,
    /// Stop this running method or task at its next await; its end is told with `finished` or `task_ended`.
    Interrupt {
        /// The call.
        ticket: Ticket,
    },
}
