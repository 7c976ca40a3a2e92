//! What can happen to an application, and when.

use cohabit_application_core::{
    ActorId, CallNumber, FromCoordinator, LinkNumber, ObjectId, Packet, SessionHello, TaskClass,
    TaskRunnerNumber, Ticket, ToCallee, ToCaller, ToCoordinator,
};
use cohabit_types::{AttemptId, JobId};

use super::head::RunnerRequest;
use super::simulated_store::{StoreAnswer, StoreCall, StoreWork};

/// A session: who dials, and who accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) dialer: AttemptId,
    pub(super) acceptor: AttemptId,
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
    Step(AttemptId),
    /// A method returns, fails or panics.
    MethodEnd { member: AttemptId, ticket: Ticket },
    /// The function of a task does its next step.
    TaskStep { member: AttemptId, ticket: Ticket },
    /// The reader of a stream looks at it.
    Read { member: AttemptId, call: CallNumber },
    /// A runner of tasks has rested.
    Rested { member: AttemptId, rest: u64 },
    /// A task that was interrupted has had time to end.
    Abandon { member: AttemptId, ticket: Ticket },
    /// A process exits if all that it has sent has arrived.
    Settle { member: AttemptId, code: i32 },
    /// The store gets a request.
    AskStore { member: AttemptId, request: StoreCall },
    /// A process gets a reply of the store.
    StoreReplies { member: AttemptId, reply: StoreAnswer },
    /// The store goes on.
    Store(StoreWork),
    /// A process has filled the memory of an object.
    Filled { member: AttemptId, object: ObjectId },
    /// A process has used an object.
    Unmap { member: AttemptId, object: ObjectId },
    /// A constructor ends.
    ConstructorEnd { member: AttemptId, incarnation: u32 },
    /// The head gets a submission.
    Submit { actor: ActorId, request: RunnerRequest },
    /// The coordinator gets the head's answer: a job, or a refusal.
    Submitted { actor: ActorId, job: Option<JobId> },
    /// The head gets the submission of a runner of tasks.
    SubmitTaskRunner { runner: TaskRunnerNumber, request: RunnerRequest },
    /// The coordinator gets the head's answer to it.
    TaskRunnerSubmitted { runner: TaskRunnerNumber, job: Option<JobId> },
    /// A process that was told to end has had time for it.
    PatienceOver(JobId),
    /// Runners of a class have been too many for some time.
    SurplusOver(TaskClass),
    /// The head gets a cancellation.
    Cancel(JobId),
    /// The head starts the next attempt of a job.
    StartAttempt(JobId),
    /// A process is ended.
    Kill(AttemptId),
    /// The head learns that a process has ended.
    AttemptEnded(AttemptId),
    /// The coordinator gets the record of a job.
    Report(JobId),
    /// A user starts another main.
    StartMain,
    /// A fault.
    Fault(ApplicationFault),
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
}
