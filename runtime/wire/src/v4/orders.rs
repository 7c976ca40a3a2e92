//! The job specification and the orders of protocol 4. Frozen: not a field may change.
//!
//! Protocol 5 lets a job say whether it may be stopped for a more urgent one. Before, a job with a warning
//! signal was one that could save its work when it was stopped.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    self as types, Array, AttemptId, Command, Dependency, LaunchMode, ModelDescription, RankId, RankRun,
    Rendezvous, RetryPolicy, Span, Stop, Time,
};
use serde::{Deserialize, Serialize};

use super::demand::Demand;
use super::jobs::StopReason;
use super::principal::Role;

/// Everything the cluster needs to know to run a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people; need not be unique.
    pub name: String,
    /// What is run.
    pub entrypoint: Entrypoint,
    /// What it needs.
    pub demand: Demand,
    /// How its ranks are started.
    pub launch: LaunchMode,
    /// Absolute path of the directory it starts in, on the worker.
    pub workdir: String,
    /// Variables added to the clean environment that a worker gives to jobs.
    pub environment: BTreeMap<String, String>,
    /// Members, if this is an array.
    pub array: Option<Array>,
    /// Jobs that have to end first.
    pub depends_on: Vec<Dependency>,
    /// Not before this time.
    pub begin: Option<Time>,
    /// The larger, the earlier; 0 unless said.
    pub priority: i32,
    /// How long one attempt may run.
    pub time_limit: Option<Span>,
    /// What happens after a failure.
    pub retry: RetryPolicy,
    /// How an attempt is stopped.
    pub stop: Stop,
    /// Jobs that recur carry the same group; estimates learn from earlier members.
    pub group: Option<String>,
    /// What is trained.
    pub model: Option<ModelDescription>,
    /// Training iterations, where the user knows them.
    pub iterations: Option<u64>,
    /// Directory for checkpoints.
    pub checkpoint: Option<String>,
    /// Whether it waits for a release before it may run.
    pub held: bool,
    /// Whether ranks also get `SLURM_*` names for what `COHABIT_*` says.
    pub slurm_environment: bool,
}

/// What a job runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Entrypoint {
    /// A program with arguments.
    Command(Command),
    /// A function of a Rust program, which every head refused.
    Function {
        /// The registered name.
        name: String,
        /// The encoded argument.
        argument: Vec<u8>,
    },
    /// An actor of a Rust program, which every head refused.
    Actor {
        /// The registered type.
        name: String,
        /// The encoded initial state.
        state: Vec<u8>,
    },
}

/// What was always refused is refused as a job without a command.
impl From<Entrypoint> for types::Entrypoint {
    fn from(entrypoint: Entrypoint) -> types::Entrypoint {
        types::Entrypoint::Command(match entrypoint {
            Entrypoint::Command(command) => command,
            Entrypoint::Function { .. } | Entrypoint::Actor { .. } => Command { argv: vec![], script: None },
        })
    }
}

/// No part of an application is placed on a node whose worker speaks protocol 4.
impl From<types::Entrypoint> for Entrypoint {
    fn from(entrypoint: types::Entrypoint) -> Entrypoint {
        Entrypoint::Command(match entrypoint {
            types::Entrypoint::Command(command) => command,
            part @ (types::Entrypoint::Application(_) | types::Entrypoint::Runner(_)) => {
                Command { argv: vec![part.title()], script: None }
            }
        })
    }
}

/// An order of the head to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Start these ranks.
    Run(Box<RunOrder>),
    /// Stop all ranks of this attempt here, by the stop sequence of its job.
    Stop {
        /// Which attempt.
        attempt: AttemptId,
        /// Why.
        why: StopReason,
    },
    /// The head has made the end of this rank durable: the worker may forget the rank.
    Acknowledge(RankId),
}

/// Start the ranks of an attempt that fall to this worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOrder {
    /// The attempt.
    pub attempt: AttemptId,
    /// The job as submitted.
    pub spec: JobSpec,
    /// Who submitted it.
    pub user: String,
    /// The account on the node as which it runs, where the worker can choose.
    pub account: String,
    /// What its user's token allowed.
    pub role: Role,
    /// All nodes of the attempt, by address, in the order of node ranks.
    pub nodes: Vec<String>,
    /// How many ranks the attempt has on all nodes together.
    pub world_size: u32,
    /// Where its ranks meet; none if the node of rank 0 has no port to offer.
    pub rendezvous: Option<Rendezvous>,
    /// The ranks to start here.
    pub ranks: Vec<RankRun>,
}

/// A job with a warning signal can write a checkpoint before it is stopped, so it may be.
impl From<JobSpec> for types::JobSpec {
    fn from(spec: JobSpec) -> types::JobSpec {
        types::JobSpec {
            preemptible: spec.stop.warning.is_some(),
            code: None,
            requeue_on_timeout: false,
            stall: None,
            output: types::OutputFiles::default(),
            partition: None,
            entries: Vec::new(),
            notify: Vec::new(),
            input: types::JobInput::default(),
            qos: types::Qos::default(),
            project: None,
            sweep: None,
            interactive: false,
            name: spec.name,
            entrypoint: spec.entrypoint.into(),
            demand: spec.demand.into(),
            launch: spec.launch,
            workdir: spec.workdir,
            environment: spec.environment,
            array: spec.array,
            depends_on: spec.depends_on,
            begin: spec.begin,
            priority: spec.priority,
            time_limit: spec.time_limit,
            retry: spec.retry,
            stop: spec.stop,
            group: spec.group,
            model: spec.model,
            iterations: spec.iterations,
            checkpoint: spec.checkpoint,
            held: spec.held,
            slurm_environment: spec.slurm_environment,
        }
    }
}

/// Leaves out what only the head has to know, its code snapshot (no job with one is placed on a node whose
/// worker cannot fetch it), and its stall timeout, which a worker of protocol 4 does not watch.
/// Files for its output are not written there. A worker gets no entries of an array in any version.
impl From<types::JobSpec> for JobSpec {
    fn from(spec: types::JobSpec) -> JobSpec {
        let types::JobSpec {
            preemptible: _,
            code: _,
            requeue_on_timeout: _,
            stall: _,
            output: _,
            partition: _,
            entries: _,
            notify: _,
            input: _,
            qos: _,
            project: _,
            sweep: _,
            interactive: _,
            ..
        } = spec;
        JobSpec {
            name: spec.name,
            entrypoint: spec.entrypoint.into(),
            demand: spec.demand.into(),
            launch: spec.launch,
            workdir: spec.workdir,
            environment: spec.environment,
            array: spec.array,
            depends_on: spec.depends_on,
            begin: spec.begin,
            priority: spec.priority,
            time_limit: spec.time_limit,
            retry: spec.retry,
            stop: spec.stop,
            group: spec.group,
            model: spec.model,
            iterations: spec.iterations,
            checkpoint: spec.checkpoint,
            held: spec.held,
            slurm_environment: spec.slurm_environment,
        }
    }
}

impl From<RunOrder> for types::RunOrder {
    fn from(run: RunOrder) -> types::RunOrder {
        types::RunOrder {
            attempt: run.attempt,
            spec: Arc::new(run.spec.into()),
            user: run.user,
            account: run.account,
            role: run.role.into(),
            nodes: run.nodes,
            world_size: run.world_size,
            rendezvous: run.rendezvous,
            ranks: run.ranks,
            application: None,
            place: None,
            checkpoints: None,
            idle_after: None,
            after: None,
        }
    }
}

impl From<types::RunOrder> for RunOrder {
    fn from(run: types::RunOrder) -> RunOrder {
        RunOrder {
            attempt: run.attempt,
            spec: Arc::unwrap_or_clone(run.spec).into(),
            user: run.user,
            account: run.account,
            role: run.role.into(),
            nodes: run.nodes,
            world_size: run.world_size,
            rendezvous: run.rendezvous,
            ranks: run.ranks,
        }
    }
}

impl From<Order> for types::Order {
    fn from(order: Order) -> types::Order {
        match order {
            Order::Run(run) => types::Order::Run(Box::new((*run).into())),
            Order::Stop { attempt, why } => types::Order::Stop { attempt, why: why.into() },
            Order::Acknowledge(rank) => types::Order::Acknowledge(rank),
        }
    }
}

impl Order {
    /// The order, where protocol 4 has words for it: a worker of protocol 4 says that it cannot change what a
    /// running job holds, and is not told to.
    #[must_use]
    pub fn of(order: types::Order) -> Option<Order> {
        match order {
            types::Order::Run(run) => Some(Order::Run(Box::new((*run).into()))),
            types::Order::Stop { attempt, why } => Some(Order::Stop { attempt, why: why.into() }),
            types::Order::Acknowledge(rank) => Some(Order::Acknowledge(rank)),
            types::Order::Allot { .. } | types::Order::Withdraw(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{DeviceId, JobId, Share, Signal, WarningSignal};

    use super::*;
    use crate::codec::{decode, encode};

    /// A job as today's command line describes it.
    fn spec() -> types::JobSpec {
        types::JobSpec::command(vec!["train".into(), "--fast".into()], "/home/ada".into())
    }

    fn run(spec: types::JobSpec) -> types::Order {
        let attempt = JobId::member(3, 1).attempt(2);
        let devices = vec![DeviceId("host-0".into())];
        let rank = RankRun { rank: 0, local_rank: 0, node_rank: 0, devices, share: Share::WHOLE };
        types::Order::Run(Box::new(types::RunOrder {
            attempt,
            spec: spec.into(),
            user: "ada".into(),
            account: "lovelace".into(),
            role: types::Role::User,
            nodes: vec!["node-a".into()],
            world_size: 1,
            rendezvous: Some(Rendezvous { address: "node-a".into(), port: 29_600 }),
            ranks: vec![rank],
            application: None,
            place: None,
            checkpoints: None,
            idle_after: None,
            after: None,
        }))
    }

    #[test]
    fn a_job_of_protocol_4_is_preemptible_if_it_has_a_warning_signal() {
        let mut old = JobSpec::from(spec());
        assert!(!types::JobSpec::from(old.clone()).preemptible);
        old.stop.warning = Some(WarningSignal { signal: Signal::USR1, before: Span::from_secs(60) });
        let expected = types::JobSpec { preemptible: true, stop: old.stop, ..spec() };
        assert_eq!(types::JobSpec::from(old), expected);
    }

    #[test]
    fn orders_travel_to_a_worker_of_protocol_4_and_from_a_head_of_it_unchanged() {
        let attempt = JobId::new(3).attempt(1);
        let stop = types::Order::Stop { attempt, why: types::StopReason::Preempted };
        let orders = [run(spec()), stop, types::Order::Acknowledge(attempt.rank(2))];
        for order in orders {
            let bytes = encode(&Order::of(order.clone()).unwrap()).unwrap();
            assert_eq!(types::Order::from(decode::<Order>(&bytes).unwrap()), order);
        }
    }

    #[test]
    fn a_worker_of_protocol_4_gets_what_a_job_was_given_and_no_change_of_it() {
        let mut demand = types::Demand { cpus: 6, ..types::Demand::default() };
        let fixed = run(types::JobSpec { demand, ..spec() });
        demand.up_to = Some(types::HostShare { cpus: 12, memory: types::Bytes::ZERO });
        assert_eq!(Order::of(run(types::JobSpec { demand, ..spec() })), Order::of(fixed));
        let attempt = JobId::new(3).attempt(1);
        assert_eq!(Order::of(types::Order::Allot { attempt, host: types::HostShare::default() }), None);
    }

    /// A worker starts and stops ranks alike whether or not the head may preempt them.
    #[test]
    fn an_order_of_protocol_4_leaves_out_only_whether_its_job_is_preemptible() {
        let preemptible = run(types::JobSpec { preemptible: true, ..spec() });
        assert_eq!(Order::of(preemptible.clone()), Order::of(run(spec())));
        let bytes = |order: &types::Order| encode(order).unwrap().len();
        let old = encode(&Order::of(preemptible.clone()).unwrap()).unwrap().len();
        let left_out = "and that it has no code, no range of cores, no slices of time, no stall timeout, no files, \
                        partition, entries, messages, input, project or sweep, its quality of service, whether it is \
                        interactive and when it is told to be idle, no checkpoints elsewhere, what it follows, and is \
                        no part of an application";
        assert_eq!(bytes(&preemptible), old + 20, "{left_out}");
    }
}
