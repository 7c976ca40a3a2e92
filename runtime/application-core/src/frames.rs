//! What the processes of one application send each other.
//!
//! All processes run the same binary, so frames need no version. On a *coordinator session* the member sends
//! [`ToCoordinator`] and gets [`FromCoordinator`]; on a *call session* the caller sends [`ToCallee`] and gets
//! [`ToCaller`].

use bytes::Bytes;
use cohabit_types::{RankId, Rendezvous, Span};
use serde::{Deserialize, Serialize};

use crate::actor_spec::{ActorState, GangSpec};
use crate::descriptions::{MemberDescription, MemberTopic};
use crate::errors::{CallError, CreateError};
use crate::held::HeldId;
use crate::ids::{ActorId, CallNumber, IncarnationNumber, NodeNumber, ObjectId, RequestNumber};
use crate::node_frames::{FromStore, ToStore};
use crate::object_frames::{FromDirectory, ToDirectory};
use crate::object_value::{CallValue, Carried};
use crate::stream_window::StreamPosition;
use crate::task_class::TaskClass;

/// From a member to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// Create actors; answered by `Created`.
    Create {
        /// The number of the question.
        request: RequestNumber,
        /// The actors.
        gang: GangSpec,
        /// The handles in the arguments of each of them, by rank, once for each handle; nothing is lent, the
        /// coordinator takes its own.
        carries: Vec<Vec<Carried>>,
    },
    /// Find a live actor; answered by `Found`.
    Find {
        /// The number of the question.
        request: RequestNumber,
        /// Its name.
        name: String,
    },
    /// Stop an actor; answered by `Stopped` once its process has ended.
    Stop {
        /// The number of the question.
        request: RequestNumber,
        /// The actor.
        actor: ActorId,
    },
    /// Send the state of this actor now and after each change, until it is released.
    Watch {
        /// The actor.
        actor: ActorId,
    },
    /// A handle is on its way to another member. Sent before the frame that carries the handle.
    Lend {
        /// What it stands for.
        held: HeldId,
        /// Who gets the handle.
        to: RankId,
    },
    /// The member holds a thing no longer.
    Release {
        /// The thing.
        held: HeldId,
        /// The lends that arrived since the last release, by lender.
        settled: Vec<(RankId, u64)>,
    },
    /// Nothing that a member which has ended has sent will be read any more.
    Closed {
        /// The member that has ended.
        member: RankId,
        /// What arrived from it and is still held; from now on these lends count as the coordinator's.
        settled: Vec<(HeldId, u64)>,
    },
    /// About an object.
    Object(ToDirectory),
    /// From the store of a further node.
    Store(FromStore),
    /// This process has tasks for so many runners of the class; 0 if it has none. Replaces what it said
    /// before.
    WantRunners {
        /// Which runners.
        class: TaskClass,
        /// How many of them would have something to do.
        runners: u32,
    },
    /// This process runs tasks and has had none for as long as such a process waits.
    Idle,
    /// The task that runs in this process keeps its GPUs, and does not go on before a runner of one of these
    /// classes takes a task. With none it goes on. Said when it changes.
    Blocked {
        /// The classes.
        needs: Vec<TaskClass>,
    },
    /// The answer to `Probe`: since this process said `Blocked`, nothing has changed.
    StillBlocked {
        /// The number of the probe.
        probe: u64,
    },
    /// The actor of this process is constructed and takes calls.
    Constructed {
        /// Its incarnation.
        incarnation: IncarnationNumber,
    },
    /// The answer to `Describe`.
    Description {
        /// The number of the question.
        request: RequestNumber,
        /// What the process knows.
        description: Box<MemberDescription>,
    },
    /// The constructor returned an error or panicked.
    ConstructorFailed {
        /// The text, with causes.
        text: String,
    },
}

/// From the coordinator to a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromCoordinator {
    /// The answer to `Create`; on success a lend of each of the actors to the member.
    Created {
        /// The number of the question.
        request: RequestNumber,
        /// The actor of rank 0, whose number those of the others follow, or why there is none.
        result: Result<ActorId, CreateError>,
    },
    /// The answer to `Find`; on success a lend of the actor to the member.
    Found {
        /// The number of the question.
        request: RequestNumber,
        /// The actor with the name, if one lives.
        actor: Option<ActorId>,
    },
    /// The answer to `Stop`.
    Stopped {
        /// The number of the question.
        request: RequestNumber,
    },
    /// The state of an actor that the member watches.
    State {
        /// The actor.
        actor: ActorId,
        /// Its state.
        state: ActorState,
    },
    /// A member has ended. Read nothing more from it and answer with `Closed`.
    MemberEnded {
        /// The member.
        member: RankId,
    },
    /// Tasks of this class may be sent to this member from now on.
    RunnerJoined {
        /// The class.
        class: TaskClass,
        /// The runner.
        runner: RankId,
    },
    /// Send no more tasks to this runner. Those that it has got end there, or are returned.
    RunnerLeaves {
        /// The runner.
        runner: RankId,
    },
    /// A runner has ended as it was told to: tasks that it has not answered have not started there.
    /// `MemberEnded` follows.
    RunnerEnded {
        /// The runner.
        runner: RankId,
    },
    /// There will be no runner: tasks of this class that no runner has fail.
    NoRunner {
        /// The class.
        class: TaskClass,
        /// Why.
        why: String,
    },
    /// This process runs tasks of this class.
    ServeTasks {
        /// The class.
        class: TaskClass,
    },
    /// Answer with `StillBlocked` if nothing has changed since `Blocked` was said, also below the task.
    Probe {
        /// The number of the probe.
        probe: u64,
    },
    /// The task that runs in this process would wait for ever: the last of the calls that it waits for fails,
    /// its own or of a task below it.
    Deadlock {
        /// What the application has, and who holds it.
        text: String,
    },
    /// About an object.
    Object(FromDirectory),
    /// To the store of this further node, which is in this process.
    Store(ToStore),
    /// The node on which the member runs: the first word to those that do not run on the coordinator's.
    Welcome {
        /// The node.
        node: NodeNumber,
    },
    /// Processes of a node are reached here from now on.
    NodeAt {
        /// The node, which is not that of the member.
        node: NodeNumber,
        /// Where.
        at: Rendezvous,
    },
    /// Another member runs on a node that is not that of this one. Said before anything else names it.
    MemberAt {
        /// The other one.
        member: RankId,
        /// Its node; `NodeAt` came before.
        node: NodeNumber,
    },
    /// Say what this process does; answered by `Description`.
    Describe {
        /// The number of the question.
        request: RequestNumber,
        /// What is asked.
        topic: MemberTopic,
    },
    /// Begin nothing new, end, and exit with code 0.
    End,
    /// Construct the actor of this process; a lend of each actor that the arguments carry.
    Construct(Construction),
}

/// The construction of an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Construction {
    /// The actor.
    pub actor: ActorId,
    /// Index of its type in the registry of the binary.
    pub kind: u32,
    /// The incarnation that this construction makes.
    pub incarnation: IncarnationNumber,
    /// Most `&self` calls at the same time.
    pub concurrency: u32,
    /// What happens after a method has panicked.
    pub on_panic: OnPanic,
    /// Encoded arguments.
    pub arguments: Bytes,
    /// References in the arguments whose values the constructor gets.
    pub needs: Vec<ObjectId>,
    /// The handles in the arguments, once for each.
    pub carries: Vec<Carried>,
}

/// What happens after a method of an actor has panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnPanic {
    /// The actor is constructed again in its process.
    Reconstruct,
    /// Its process ends, and all of its gang begin anew.
    EndProcess,
}

/// From a caller to the process of an actor or of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCallee {
    /// A call.
    Call {
        /// The actor.
        actor: ActorId,
        /// The number of the call.
        call: CallNumber,
        /// What is called.
        request: CallRequest,
        /// The handles in the arguments, once for each.
        carries: Vec<Carried>,
    },
    /// Run a task.
    Run {
        /// The number of the call.
        call: CallNumber,
        /// What is run.
        task: TaskRequest,
        /// The handles in the arguments, once for each.
        carries: Vec<Carried>,
    },
    /// Return this task if it has not started: another runner has nothing to do.
    Recall {
        /// The number of the call.
        call: CallNumber,
    },
    /// Answer with `StillBlocked` if nothing has changed since `Blocked` was said of this task.
    Probe {
        /// The number of the call.
        call: CallNumber,
        /// The number of the probe.
        probe: u64,
    },
    /// This task would wait for ever: it fails if it has not started, else the last call that it waits for.
    Deadlock {
        /// The number of the call.
        call: CallNumber,
        /// What the application has, and who holds it.
        text: String,
    },
    /// Items of the stream of a task were read since the last credit.
    Credit {
        /// The number of the call.
        call: CallNumber,
        /// How many.
        items: u64,
        /// Their size together.
        bytes: u64,
    },
    /// Do not start this call, or interrupt it. It is answered in any case.
    Cancel {
        /// The number of the call.
        call: CallNumber,
    },
}

/// A task as its runner gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRequest {
    /// Index of the function in the registry of the binary.
    pub function: u32,
    /// How many tasks called each other down to this one: 0 if it was called by a main or an actor.
    pub depth: u32,
    /// Encoded arguments.
    pub arguments: Bytes,
    /// References in the arguments whose values the code gets.
    pub needs: Vec<ObjectId>,
    /// Where it goes on, if items of its stream have arrived from an earlier runner.
    pub resume: Option<Box<StreamPosition>>,
    /// It makes a lost object again: its value is stored under this name, whatever its size.
    pub store_as: Option<ObjectId>,
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRequest {
    /// Index of the method in its actor.
    pub method: u32,
    /// Whether it runs alone.
    pub access: MethodAccess,
    /// What happens to it if the process of the actor ends.
    pub on_restart: OnRestart,
    /// Encoded arguments.
    pub arguments: Bytes,
    /// References in the arguments whose values the code gets.
    pub needs: Vec<ObjectId>,
}

/// Whether a method runs beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MethodAccess {
    /// `&self`: beside other `&self` methods.
    Shared,
    /// `&mut self`: alone.
    Exclusive,
}

/// What happens to a call that was handed over to a process which then ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnRestart {
    /// It ends as `CallError::Restarted`.
    Fail,
    /// `#[retry]`: the next incarnation gets it before all later calls.
    Retry,
}

/// From the process of an actor or of tasks to a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCaller {
    /// A call has ended.
    Answer {
        /// The actor.
        actor: ActorId,
        /// The number of the call.
        call: CallNumber,
        /// The value, or why there is none.
        result: Result<CallValue, CallError>,
        /// The handles in the value, once for each.
        carries: Vec<Carried>,
    },
    /// The next item of the stream of a task.
    Item {
        /// The number of the call.
        call: CallNumber,
        /// The number of the item in its stream, from 1.
        number: u64,
        /// The encoded item.
        item: Bytes,
        /// The handles in the item, once for each.
        carries: Vec<Carried>,
    },
    /// A task has ended, and with it its stream if it made items.
    Ran {
        /// The number of the call.
        call: CallNumber,
        /// The value, or why there is none.
        result: Result<CallValue, CallError>,
        /// The handles in the value, once for each.
        carries: Vec<Carried>,
        /// How long the runner worked on it, waiting for calls of its own left out.
        took: Span,
    },
    /// A task waits for calls of its own and keeps its runner from nothing. Said once for each task.
    Parked {
        /// The number of the call.
        call: CallNumber,
    },
    /// A task that was recalled has started, and stays.
    Kept {
        /// The number of the call.
        call: CallNumber,
    },
    /// A task has not started, and will not here: another runner can have it.
    Returned {
        /// The number of the call.
        call: CallNumber,
    },
    /// A task that has started does not go on before a runner of one of these classes takes a task. With none
    /// it goes on. Said when it changes, and when a task with GPUs starts which another one has called.
    Blocked {
        /// The number of the call.
        call: CallNumber,
        /// The classes.
        needs: Vec<TaskClass>,
    },
    /// The answer to `Probe`: since this runner said `Blocked`, nothing has changed.
    StillBlocked {
        /// The number of the call.
        call: CallNumber,
        /// The number of the probe.
        probe: u64,
    },
    /// Send no tasks for now: the one that runs here is blocked. Those that have not started are returned.
    Paused,
    /// Tasks may be sent again.
    Resumed,
}
