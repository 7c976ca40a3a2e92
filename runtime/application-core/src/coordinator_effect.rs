//! What the shell of the coordinator does, in order.

use cohabit_types::{JobId, RankId};

use crate::actor_spec::GangSpec;
use crate::descriptions::MemberDescription;
use crate::frames::FromCoordinator;
use crate::ids::{ActorId, ClosingNumber, NodeNumber, RequestNumber, TaskRunnerNumber};
use crate::node_frames::ToStore;
use crate::store_figures::StoreFigures;
use crate::task_class::TaskClass;

/// What the shell of the coordinator does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CoordinatorEffect {
    /// Send this on the session of the member.
    Send {
        /// The member.
        to: RankId,
        /// The frame.
        frame: FromCoordinator,
    },
    /// Submit the job of a gang, in which each actor is a rank, and say what the head answered with
    /// `submitted`.
    Submit {
        /// The actor of rank 0.
        first: ActorId,
        /// What they are, and claim.
        gang: GangSpec,
    },
    /// Submit a runner of tasks, and say what the head answered with `task_runner_submitted`.
    SubmitTaskRunner {
        /// The runner.
        runner: TaskRunnerNumber,
        /// What its job claims.
        class: TaskClass,
    },
    /// A process was told to end: call `patience_over` with its job after some time.
    AwaitEnd {
        /// The job.
        job: JobId,
    },
    /// More runners of the class are on their way than are wanted: call `surplus_over` after some time, since
    /// wants come and go.
    AwaitSurplus {
        /// The class.
        class: TaskClass,
    },
    /// Somebody waits for what runners of tasks hold: call `yield_due` after some time.
    AwaitYield,
    /// Submit the store of a further node, and say what the head answered with `store_submitted`.
    SubmitStore {
        /// The node.
        node: NodeNumber,
        /// Its name at the head.
        name: String,
    },
    /// The store of a node has ended, and another one follows: call `store_overdue` after some time.
    AwaitStore {
        /// The node.
        node: NodeNumber,
        /// How often that was so.
        restarts: u32,
    },
    /// For the store in the coordinator's own process; what that says is told with `received_from_own_store`.
    OwnStore(ToStore),
    /// Cancel the job of a runner. Its end comes as a report.
    CancelRunner {
        /// The job.
        job: JobId,
    },
    /// A member has described itself.
    Described {
        /// The member.
        member: RankId,
        /// The question.
        request: RequestNumber,
        /// What it said.
        description: Box<MemberDescription>,
    },
    /// A member has ended: close its session and read nothing more from it.
    Close {
        /// The member.
        member: RankId,
    },
    /// The store of a further node has said what it has.
    StoreTold {
        /// The node.
        node: NodeNumber,
        /// The question.
        request: RequestNumber,
        /// What it has.
        figures: StoreFigures,
    },
    /// All processes were told that the application is over: call `closing_over` with this number after some
    /// time.
    AwaitClosing {
        /// The number.
        closing: ClosingNumber,
    },
    /// The application is over: exit with this code. The head ends what is left.
    Exit {
        /// That of the first main.
        code: i32,
    },
}
