//! An application with its actors and tasks as state machines. They decide who is called, constructed, run,
//! kept and ended, and do none of it: effects are data that the shells of processes, or the simulator, carry
//! out. They read no clock, draw no random numbers and know no sockets.
//!
//! # Processes
//!
//! Each process is a *member*, named by its job, attempt and rank. Each member has one *coordinator session*;
//! a caller has one *call session* with each member whose actor it calls or to which it sends tasks. A member
//! that calls another one and is called by it has two call sessions with it. All of them are [`Session`]s:
//! frames arrive exactly once and in order as long as both processes live.
//!
//! ```text
//!                     reports of jobs, answers to submissions
//!                                    |
//!                                    v
//!   Submit, CancelRunner, Exit <- Coordinator          (names, ceiling, restarts, holders, runners of tasks)
//!                                 ^         |
//!                   ToCoordinator |         | FromCoordinator
//!                  (member dials) |         v
//!        +------------------------+---------+------------------------+
//!        |                                                           |
//!      Member (main, or an actor or task that calls)               Member (holds an actor, or runs tasks)
//!        |  queues of calls and tasks, local holds                   |  gates, local holds
//!        |                                                           |
//!        +---------------- ToCallee (caller dials) ----------------->+
//!        +<--------------- ToCaller ---------------------------------+
//! ```
//!
//! | Session | Who dials | The dialing end sends | The other end sends | Opened |
//! |---|---|---|---|---|
//! | coordinator session | the member | [`ToCoordinator`] | [`FromCoordinator`] | when the process starts |
//! | call session | the caller | [`ToCallee`] | [`ToCaller`] | at the first `ToCallee` effect to the member |
//!
//! # Tasks
//!
//! A *runner of tasks* is a process that runs tasks of one [`TaskClass`], one at a time. Callers tell the
//! coordinator how many runners of a class they could use ([`ToCoordinator::WantRunners`]) and are told of
//! all runners of the class that live ([`FromCoordinator::RunnerJoined`]). They send tasks straight to
//! runners, so many ahead that a runner does not wait for the next one, and it queues what comes. A task that
//! waits for calls of its own is *parked*, and others start: so trees of any depth end on a single runner. A
//! runner without tasks says so, and ends.
//!
//! A task keeps its GPUs while it waits. If all tasks with GPUs wait for further ones that cannot start
//! because of that, one of them is told ([`FromCoordinator::Deadlock`]): runners report what blocked tasks
//! need, and those that seem stuck are asked whether anything has changed since.
//!
//! A task may return a stream: its maker sends each item as soon as it is made, until 8 items or 64 MiB are
//! unread. After the death of a runner the next one makes the stream anew, and leaves out what has arrived.
//!
//! # Objects
//!
//! A call can have a *reference* to its value, and a process can make one of any value. References are held
//! like handles of actors, and travel in arguments, values and items. What one stands for is known at once,
//! or when its call has ended:
//!
//! - a small value without handles travels with the reference, and nobody else hears of it;
//! - a larger value lies in the store of a node, an [`ObjectStore`], under a name that its maker gave it. The
//!   store keeps it as long as the coordinator counts a holder, also when its maker has ended;
//! - everything else is *shared* when it is passed on: the coordinator keeps what is known of it in its
//!   directory, and tells those who watch it ([`ToDirectory`], [`FromDirectory`]).
//!
//! Arguments may *need* the value of a reference: such a call is sent when the value is known, and ends as
//! [`CallError::Dependency`] if there is none. Dropping the last reference of a call that has not ended
//! cancels it.
//!
//! # Nodes
//!
//! The coordinator numbers the nodes on which processes run; its own is 0. The store of that one is in its
//! process. A further node gets a *store process* when the first member from there connects
//! ([`CoordinatorEffect::SubmitStore`]), and its members begin when the store has said where they are reached
//! ([`FromStore::Listens`]). Members are told who is on another node, and where that is:
//! [`Member::place_of`]. Nothing of this is sent while all processes run on one node.
//!
//! A process asks the store of its own node alone. What that does not have, it wants from the coordinator
//! ([`FromStore::Wants`]), which knows the *places* of each object and answers with one of them
//! ([`ToStore::Fetch`]) or that there is none ([`ToStore::Lost`]). A source serves two fetches at a time.
//! Each `Fetch` is reported once ([`FromStore::Fetched`]). One that names the store's own node is a question:
//! a process there has said that it stored the object.
//!
//! - A store that is not heard for some time ([`Coordinator::member_silent`]) is lost with its node: runners
//!   of tasks there are treated as ended and are let in no more, actors end when the head says so. If
//!   members of the node come back, it gets another store.
//! - A store whose attempt the head reports as ended loses its objects alone; the next attempt follows. What
//!   processes may have put into that one already is *expected* there.
//! - A node whose stores fail three times in a row is given up: processes there are ended.
//! - Callers tell how a value on a further node was made ([`ToDirectory::Made`]). If no node has it any more,
//!   a process that holds it calls its task again ([`FromDirectory::Remake`]), whose runner stores the value
//!   under the old name ([`Member::store_as`]). Arguments that are lost are made again the same way. Before
//!   an object is given up, those who may know more are asked ([`FromDirectory::Inquire`]).
//! - A task that needs stored objects goes to the runner where it starts earliest: behind what is in flight
//!   there, and after what has to be fetched.
//!
//! # A connection
//!
//! 1. The dialing end makes or finds its [`Session`], calls [`Session::dial`] and sends the [`SessionHello`]
//!    (besides the application's secret, which the shell checks): who it is, whom it wants, which connection
//!    of the session this is, and the number of the last frame that it has received.
//! 2. The accepting end checks `to`, asks [`Coordinator::admits`] or [`Member::admits`] whether `from` still
//!    lives, makes or finds the session, and calls [`Session::accept`]. It sends the hello that it gets, then
//!    the packets. With no hello it closes the connection: a newer one came first. If there is an older
//!    connection of the session, it closes that. A coordinator then calls [`Coordinator::connected`].
//! 3. The dialing end gets that hello, calls [`Session::opened`] and sends the packets.
//! 4. Now both send what [`Session::send`] returns, pass what comes to [`Session::receive`], carry out the
//!    effects of a batch of frames, and then send [`Session::acknowledgement`] if there is one.
//! 5. When the connection breaks, both call [`Session::closed`]; the dialing end dials again, for as long as
//!    it has not been told that the other end has ended. A [`SessionError`] cannot be repaired: the process
//!    that finds one ends.
//!
//! # The shell of a member
//!
//! One [`Member`], one coordinator session, a call session for each member that it calls (made at the first
//! effect [`MemberEffect::ToCallee`]) and for each that calls it (made when it connects).
//!
//! - Effects are carried out in order. What a method adds while they are carried out comes after them: a
//!   release must not overtake the lend before it.
//! - A frame from a session: [`Member::receive`], [`Member::receive_from_caller`],
//!   [`Member::receive_from_callee`].
//! - [`MemberEffect::Close`]: drop both call sessions with the member and read nothing more from it. A shell
//!   that reads a connection at its end before it passes `MemberEnded` on saves answers that were sent.
//! - An actor may call itself: the session is one from the process to itself.
//! - A handle or reference is cloned or decoded: [`Member::hold`]; dropped: [`Member::release`]. Effects with
//!   `carries` give the shell one handle of each to release after decoding, also if nobody waits for the
//!   value.
//! - A call: [`Member::call`], whose number comes back in [`MemberEffect::Finish`]. A dropped future or a
//!   deadline: [`Member::cancel`].
//! - A call with a reference: [`Member::call_for_reference`], [`Member::run_task_for_reference`]. Its end is
//!   [`MemberEffect::ObjectReady`]; a deadline is [`Member::fail_reference`].
//! - A value becomes an object: a small one by [`Member::keep_inline`]. For a larger one the shell takes a
//!   name from [`Member::new_object`], fills memory of the node's store, and says so with [`Member::stored`].
//! - A reader asks [`Member::object_value`]. A stored object is read from the store; if it has handles,
//!   [`Member::open_object`] comes first, and [`MemberEffect::Opened`] brings them.
//! - What is in `needs` of an effect is read before the user's code begins.
//! - In the process of an actor: [`MemberEffect::Construct`] is answered with [`Member::constructed`] and
//!   [`MemberEffect::Start`] with [`Member::finished`] or [`Member::panicked`].
//! - A task: [`Member::run_task`], with [`TaskSpec::caller`] if a running task calls it. A dropped future:
//!   [`Member::cancel_task`]. The number comes back in [`MemberEffect::Finish`].
//! - In a process of tasks [`MemberEffect::StartTask`] is answered with [`Member::task_ended`]. The shell
//!   says [`Member::task_waits`] when the future of a task is pending while calls of its own have not ended,
//!   and [`Member::task_goes_on`] before it polls it again, which it does whenever a call of the task ends.
//!   [`MemberEffect::Interrupt`] drops the future at
//!   its next await, and with it all calls that the task has made; a task that does not end then leads to
//!   [`Member::abandon`] and the end of the process.
//! - The maker of a stream asks [`Member::may_make`] before each item and tells it with [`Member::item`].
//!   If it may not, it waits as for calls of its own, until [`MemberEffect::MakeMore`]. The end of a stream
//!   is an empty value in [`Member::task_ended`].
//! - The reader of a stream gets [`MemberEffect::Item`] for each item, and calls [`Member::read`] when its
//!   user has taken it: that is what the maker waits for.
//! - [`MemberEffect::Rest`] is answered with [`Member::rested`] after the time that a runner waits for a
//!   task.
//! - When the function of a task has returned, [`Member::store_as`] may name the object that its value is to
//!   be stored as, whatever its size.
//! - The process of a store passes [`MemberEffect::Store`] to it, and what it says to [`Member::from_store`];
//!   it fetches from [`Member::address_of`].
//! - [`MemberEffect::End`]: the actor's `stopping` runs, or no task is left; sessions are given time to
//!   deliver what was sent, and the process exits.
//!
//! If the coordinator session cannot be opened again because the coordinator has ended, the process ends.
//!
//! # The shell of the coordinator
//!
//! It submits the first main and calls [`Coordinator::main`] with its job and with that of each other main
//! that the head lists. Each change of a child's job becomes a [`RunnerReport`] for [`Coordinator::report`],
//! each frame goes to [`Coordinator::received`], and each answer to a [`CoordinatorEffect::Submit`] to
//! [`Coordinator::submitted`], to a [`CoordinatorEffect::SubmitTaskRunner`] to
//! [`Coordinator::task_runner_submitted`]. When the head cannot be reached, the shell tries again until it
//! has an answer. [`CoordinatorEffect::AwaitEnd`] is answered with [`Coordinator::patience_over`] after some
//! time, and [`CoordinatorEffect::AwaitSurplus`] with [`Coordinator::surplus_over`]. When the last main has
//! ended, all processes are told to end; [`CoordinatorEffect::AwaitClosing`] is answered with
//! [`Coordinator::closing_over`] after some time, unless [`CoordinatorEffect::Exit`] comes first.
//!
//! Whoever looks at the application gets [`Coordinator::describe`], joined with what members say of
//! themselves: [`Coordinator::ask_members`] asks them, and each answer is a [`CoordinatorEffect::Described`].
//!
//! Its own store gets each [`CoordinatorEffect::OwnStore`], and what that says goes to
//! [`Coordinator::received_from_own_store`]. Each answer to a [`CoordinatorEffect::SubmitStore`] goes to
//! [`Coordinator::store_submitted`], and changes of the store's job to [`Coordinator::report`], as of others.
//! If a session with a member has had no connection for some time after it broke, the shell calls
//! [`Coordinator::member_silent`].
//!
//! # Where to start reading
//!
//! ```text
//! frames       what processes send each other       session     exactly once, in order
//! member       one process                          coordinator the application
//!   call_queue   its calls to one actor               actors      names, restarts (gang_entry)
//!   local_holds  what it holds (held)                 holders     who holds what
//!   held_actor   the actor in it                      mains       how long the application lives
//!   gate         when calls start                     runner_report what the head says
//!   member_tasks its tasks                            ceiling     the GPUs of actors and runners
//!     task_calls   those that it has called           task_runners who runs tasks
//!       task_queue   of one class (queued_task)         class_demand  what is wanted of one class
//!         task_leases  the runners' windows
//!         runner_want  what the coordinator is told (task_load)
//!       task_bounds, task_estimates
//!     task_gate    when tasks start that have come    deadlocks    who waits for itself
//!       gate_block  while one keeps its GPUs
//!     task_wait    what running tasks wait for (member_blocks, task_probes)
//!   member_streams items of its tasks (stream_window)
//!     stream_maker when the next is made          stream_reader what has arrived and was read
//!   member_requests what it asks about actors (creation)
//!   member_nodes where others are (known_nodes)       coordinator_nodes further ones, lost ones (nodes)
//!   member_remakes lost values made again (lineage, remake_call)
//!                                                     coordinator_stores what stores say
//!     needed_bytes what tasks need, by node             fetches    places, and who fetches from where
//!                                                       lineages   how lost objects are made again
//!   member_references what its references are         coordinator_objects
//!     references   each of them (object_value)          directory   values of shared ones (object_frames)
//!     dependents   calls that wait for some
//! object_store the objects of one node            object_room whose memory makes room for others
//!   object_entry where one of them is               object_store_fetch what comes from other nodes
//!   store_figures what there is, for people
//!   store_frames what processes and the store send each other
//! descriptions what is told of it all to whoever looks (describe_application, describe_member, ended_tasks)
//! ```

mod actor_spec;
mod actors;
mod call_queue;
mod ceiling;
mod class_demand;
mod coordinator;
mod coordinator_effect;
mod coordinator_end;
mod coordinator_nodes;
mod coordinator_objects;
mod coordinator_stores;
mod coordinator_yields;
mod creation;
mod deadlocks;
mod dependents;
mod describe_application;
mod describe_member;
mod descriptions;
mod directory;
mod ended_tasks;
mod errors;
mod fetches;
mod frames;
mod gang_entry;
mod gate;
mod gate_block;
mod held;
mod held_actor;
mod holders;
mod ids;
mod known_nodes;
mod limits;
mod lineage;
mod lineages;
mod local_holds;
mod mains;
mod member;
mod member_blocks;
mod member_effect;
mod member_nodes;
mod member_references;
mod member_remakes;
mod member_requests;
mod member_streams;
mod member_tasks;
mod needed_bytes;
mod node_frames;
mod nodes;
mod object_entry;
mod object_frames;
mod object_room;
mod object_store;
mod object_store_effect;
mod object_store_fetch;
mod object_value;
mod queued_task;
mod references;
mod remake_call;
mod runner_report;
mod runner_want;
mod runner_yields;
mod session;
mod store_figures;
mod store_frames;
mod stream_maker;
mod stream_reader;
mod stream_window;
mod task_bounds;
mod task_calls;
mod task_class;
mod task_estimates;
mod task_gate;
mod task_leases;
mod task_load;
mod task_probes;
mod task_queue;
mod task_runners;
mod task_wait;
#[cfg(test)]
mod tests;

pub use actor_spec::{ActorSpec, ActorState, GangSpec, Lifetime};
pub use coordinator::Coordinator;
pub use coordinator_effect::CoordinatorEffect;
pub use descriptions::{
    ActorDescription, ActorWait, ApplicationDescription, CalledTasks, ClassDescription, EndedTaskDescription,
    MemberDescription, MemberTopic, NodeDescription, RunnerCondition, RunnerDescription,
    StartedTaskDescription, TaskDescription, TaskOutcome, TaskPlace,
};
pub use errors::{ActorEnd, CallError, CreateError};
pub use frames::{
    CallRequest, Construction, FromCoordinator, MethodAccess, OnPanic, OnRestart, TaskRequest, ToCallee,
    ToCaller, ToCoordinator,
};
pub use held::HeldId;
pub use ids::{
    ActorId, CallNumber, ClosingNumber, IncarnationNumber, LinkNumber, NodeNumber, ObjectId, RequestNumber,
    TaskRunnerNumber, Ticket,
};
pub use limits::{
    MAX_ACTORS, MAX_ARGUMENTS, MAX_ATTACHED, MAX_CALLS, MAX_DESCRIBED_TASKS, MAX_DESCRIBED_TEXT, MAX_INLINE,
    MAX_NAME, MAX_REMEMBERED_TASKS, MAX_STORE_FRAME, MAX_STORE_WAITS, MAX_TASK_BYTES, MAX_TASK_RUNNERS,
    MAX_TASKS, MAX_UNREAD_BYTES, MAX_UNREAD_ITEMS,
};
pub use lineage::Lineage;
pub use member::Member;
pub use member_effect::MemberEffect;
pub use member_nodes::MemberPlace;
pub use node_frames::{FetchFailure, FromStore, ToStore};
pub use nodes::CoordinatorNode;
pub use object_frames::{FromDirectory, ToDirectory};
pub use object_store::ObjectStore;
pub use object_store_effect::{ObjectKind, ObjectPlace, ObjectStoreEffect, StoreRefusal, TransferResult};
pub use object_value::{CallValue, Carried, CarriedValue, ObjectValue, SharedValue, StoredObject};
pub use runner_report::{RunnerReport, RunnerShortage, RunnerState};
pub use session::{Packet, Session, SessionError, SessionHello};
pub use store_figures::{ObjectFigures, StoreFigures};
pub use store_frames::{StoreReply, StoreRequest};
pub use stream_window::{ItemTotal, StreamPosition};
pub use task_class::{OnTaskError, TaskClass, TaskSpec};
pub use task_wait::TaskWait;
