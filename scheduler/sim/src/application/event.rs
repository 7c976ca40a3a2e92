//! What can happen to an application, and when.

use cohabit_application_core::{
    ActorId, CallNumber, ClosingNumber, FromCoordinator, FromStore, LinkNumber, NodeNumber, ObjectId, Packet,
    SessionHello, TaskClass, TaskRunnerNumber, Ticket, ToCallee, ToCaller, ToCoordinator, ToStore,
};
use cohabit_types::{JobId, RankId, Time};

use super::head::RunnerRequest;
use super::node_index::NodeIndex;
use super::simulated_store::{StoreAnswer, StoreCall, StoreWork};

/// A session: who dials, and who accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) dialer: RankId,
    pub(super) acceptor: RankId,
}

/// One end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Dialer,
    Acceptor,
}

impl End {
    pub(super) const fn other(self) -> End {
        match self {
            End::Dialer => End::Acceptor,
            End::Acceptor => End::Dialer,
        }
    }
}

/// A frame of either kind of session.
#[derive(Debug, Clone)]
pub(super) enum AnyFrame {
    ToCoordinator(ToCoordinator),
    FromCoordinator(FromCoordinator),
    ToCallee(ToCallee),
    ToCaller(ToCaller),
}

/// What travels on a connection.
#[derive(Debug, Clone)]
pub(super) enum LinkContent {
    Hello(SessionHello),
    Packet(Packet<AnyFrame>),
}

/// An event of the simulation.
#[derive(Debug, Clone)]
pub(super) enum ApplicationEvent {
    /// One end dials, unless it has an open connection.
    Dial(Pair),
    /// Something arrives at one end.
    Deliver { pair: Pair, link: LinkNumber, at: End, content: LinkContent },
    /// One end notices that a connection is gone.
    Notice { pair: Pair, link: LinkNumber, at: End },
    /// One end acknowledges what it has received.
    Acknowledge { pair: Pair, at: End },
    /// The code of a process does something.
    Step(RankId),
    /// The code of a process reads all objects that it holds.
    ReadAll(RankId),
    /// A method returns, fails or panics.
    MethodEnd { member: RankId, ticket: Ticket },
    /// The function of a task does its next step.
    TaskStep { member: RankId, ticket: Ticket },
    /// The reader of a stream looks at it.
    Read { member: RankId, call: CallNumber },
    /// A runner of tasks has rested.
    Rested { member: RankId, rest: u64 },
    /// A task that was interrupted has had time to end.
    Abandon { member: RankId, ticket: Ticket },
    /// A process exits if all that it has sent has arrived.
    Settle { member: RankId, code: i32 },
    /// A store gets a request.
    AskStore { member: RankId, store: RankId, request: StoreCall },
    /// A process gets a reply of the store of its node.
    StoreReplies { member: RankId, store: RankId, reply: StoreAnswer },
    /// A store goes on.
    Store { store: RankId, work: StoreWork },
    /// The coordinator says something to the store in its own process.
    OwnStoreHears(ToStore),
    /// That store says something to the coordinator.
    OwnStoreSays(FromStore),
    /// A fetch between two stores ends.
    FetchEnds(u64),
    /// A process has filled the memory of an object.
    Filled { member: RankId, store: RankId, object: ObjectId },
    /// A process has used an object.
    Unmap { member: RankId, store: RankId, object: ObjectId },
    /// A constructor ends.
    ConstructorEnd { member: RankId, incarnation: u32 },
    /// The coordinator has had no connection of a member since then.
    Silent { member: RankId, since: Time },
    /// A node that the head does not reach ends what runs there.
    NodeEnds(NodeIndex, u32),
    /// The head is certain that nothing runs on a node any more.
    GiveUpNode(NodeIndex, u32),
    /// A node that was cut off is reached again.
    NodeReturns(NodeIndex),
    /// Two nodes reach each other again.
    JoinNodes(NodeIndex, NodeIndex),
    /// A fault.
    Fault(ApplicationFault),
    /// Something between the coordinator, the head and the nodes.
    Head(HeadEvent),
}

/// What happens between the coordinator, the head and the nodes.
#[derive(Debug, Clone)]
pub(super) enum HeadEvent {
    /// The head gets a submission.
    Submit { first: ActorId, request: RunnerRequest },
    /// The coordinator gets the head's answer: a job, or a refusal.
    Submitted { first: ActorId, job: Option<JobId> },
    /// The head gets the submission of a runner of tasks.
    SubmitTaskRunner { runner: TaskRunnerNumber, request: RunnerRequest },
    /// The coordinator gets the head's answer to it.
    TaskRunnerSubmitted { runner: TaskRunnerNumber, job: Option<JobId> },
    /// The head gets the submission of the store of a further node.
    SubmitStore { node: NodeNumber, request: RunnerRequest },
    /// The coordinator gets the head's answer to it.
    StoreSubmitted { node: NodeNumber, job: JobId },
    /// A process that was told to end has had time for it.
    PatienceOver(JobId),
    /// Runners of a class have been too many for some time.
    SurplusOver(TaskClass),
    /// Somebody has waited some time for what runners of tasks hold.
    YieldDue,
    /// The next store of a node has had time to listen.
    StoreOverdue { node: NodeNumber, restarts: u32 },
    /// Processes that were told that the application is over have had time.
    ClosingOver(ClosingNumber),
    /// The head gets a cancellation.
    Cancel(JobId),
    /// The head starts the next attempt of a job.
    StartAttempt(JobId),
    /// A process is ended.
    Kill(RankId),
    /// A process is ended by the head.
    EndOrder(RankId),
    /// The head learns that a process has ended.
    RankEnded(RankId),
    /// The coordinator gets the record of a job.
    Report(JobId),
    /// A user starts another main.
    StartMain,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy)]
pub(super) enum ApplicationFault {
    /// A connection breaks, and loses what is under way.
    Break,
    /// A process dials although it is connected or has dialed.
    DialAgain,
    /// A process is killed.
    Kill,
    /// The head starts the next attempt of an actor although the present one lives.
    EarlyAttempt,
    /// The coordinator dies.
    KillCoordinator,
    /// A node is cut off from all others.
    CutNode,
    /// Two further nodes are cut off from each other.
    CutPair,
    /// The store of a further node is killed.
    KillStore,
    /// A node is lost with all that runs there.
    LoseNode,
}
