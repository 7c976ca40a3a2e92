//! The actor of one GPU's MPS daemon: carries out the core's orders and checks the daemon's health. It
//! reports each fault once, and before the end of any rank that the fault ended.

mod orders;

use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context, ReplyTo, blocking};
use cohabit_gpu::mps::{MpsDaemon, MpsDirectory, MpsPrograms};
use cohabit_types::{Bytes, DeviceId, RankId};
use cohabit_worker_core::{MpsEvent, MpsOrder, WorkerEvent};
use tokio::time::Instant;

use super::client_limits::ClientLimits;
use super::enforcement::{EnforcementChecks, RankPid};
use super::mps_health::{MpsFailure, MpsHealth, ProbeDepth};
use super::process_owners::ProcessOwners;
use super::timeout::run_with_timeout;
use crate::isolation::Isolator;
use crate::messages::DriverMessage;

/// The time between two health checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two checks that ask the daemon itself, while nothing depends on its answer.
const QUERY_INTERVAL: Duration = Duration::from_secs(5);

/// How long a check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Messages to the MPS actor.
pub(crate) enum MpsMessage {
    /// An order of the core.
    Order(MpsOrder),
    /// All ranks that earlier worker daemons left are known. An MPS daemon that was not adopted by order has
    /// no clients and is stopped.
    Settle,
    /// It is time for a check.
    Check,
    /// A rank has failed: check for a fault at once, and answer when the core has been told.
    Examine(ReplyTo<()>),
    /// A rank starts that will be a client, with this limit of memory for each of its processes.
    Joined(RankId, Bytes),
    /// Its first process has this process id, which the server's log may name.
    Runs(RankId, i32),
    /// It has ended.
    Left(RankId),
    /// These processes of ranks hold memory of the GPU.
    HeldBy(Vec<RankPid>),
}

/// The manager of one GPU's daemon.
pub(crate) struct MpsManager {
    gpu: DeviceId,
    directory: MpsDirectory,
    /// NVIDIA's programs, or why they cannot be used.
    programs: Result<MpsPrograms, String>,
    isolation: Isolator,
    owners: ProcessOwners,
    driver: Address<DriverMessage>,
    daemon: DaemonState,
    checks: EnforcementChecks,
    limits: ClientLimits,
    asked_at: Instant,
}

/// The state of the daemon.
enum DaemonState {
    /// No daemon is known.
    Absent,
    Up(MpsDaemon),
    /// Reported to the core, which will give an order. `None` if the daemon was given up.
    Faulted(Option<MpsDaemon>),
}

impl MpsManager {
    pub(crate) fn new(
        gpu: DeviceId,
        directory: MpsDirectory,
        programs: Result<MpsPrograms, String>,
        isolation: Isolator,
        owners: ProcessOwners,
        driver: Address<DriverMessage>,
    ) -> MpsManager {
        let (daemon, checks) = (DaemonState::Absent, EnforcementChecks::default());
        let asked_at = Instant::now();
        let limits = ClientLimits::default();
        MpsManager { gpu, directory, programs, isolation, owners, driver, daemon, checks, limits, asked_at }
    }
}

impl Actor for MpsManager {
    type Message = MpsMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_after(CHECK_INTERVAL, MpsMessage::Check);
        Ok(())
    }

    async fn handle(&mut self, message: MpsMessage, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        match message {
            MpsMessage::Order(order) => {
                let answer = self.execute(order).await;
                self.tell(WorkerEvent::Mps(self.gpu.clone(), answer)).await;
            }
            MpsMessage::Settle => self.settle().await,
            MpsMessage::Check => {
                self.check(self.depth()).await;
                context.send_after(CHECK_INTERVAL, MpsMessage::Check);
            }
            MpsMessage::Examine(reply_to) => {
                self.check(ProbeDepth::Thorough).await;
                reply_to.send(());
            }
            MpsMessage::Joined(rank, limit) => {
                self.checks.join(Instant::now(), rank);
                self.limits.insert(rank, limit);
                self.limit_server().await;
            }
            MpsMessage::Runs(rank, pid) => {
                let owners = self.owners.clone();
                blocking(move || owners.note(pid, rank)).await;
            }
            MpsMessage::Left(rank) => {
                self.checks.leave(rank);
                self.limits.remove(rank);
                self.limit_server().await;
            }
            MpsMessage::HeldBy(holders) => self.checks.held_by(holders),
        }
        Ok(())
    }

    /// The daemon keeps running for its ranks. Without ranks it is stopped, because nobody else would do it.
    async fn stopped(&mut self) {
        if self.checks.is_empty() {
            self.leave().await;
        }
    }
}

impl MpsManager {
    fn take(&mut self) -> DaemonState {
        std::mem::replace(&mut self.daemon, DaemonState::Absent)
    }

    fn depth(&self) -> ProbeDepth {
        let now = Instant::now();
        if self.checks.is_waiting(now) || now >= self.asked_at + QUERY_INTERVAL {
            ProbeDepth::Thorough
        } else {
            ProbeDepth::Brief
        }
    }

    /// Checks a daemon that is up; a fault is reported only once.
    async fn check(&mut self, depth: ProbeDepth) {
        let mut daemon = match self.take() {
            DaemonState::Up(daemon) => daemon,
            other @ (DaemonState::Absent | DaemonState::Faulted(_)) => return self.daemon = other,
        };
        let work = move || (MpsHealth::check(&mut daemon, depth), daemon);
        match run_with_timeout(CHECK_TIMEOUT, work, drop).await {
            Ok((MpsHealth::Healthy(clients), daemon)) => {
                self.daemon = DaemonState::Up(daemon);
                if let Some(clients) = clients {
                    self.asked_at = Instant::now();
                    self.compare_clients(clients).await;
                }
            }
            Ok((MpsHealth::Failed(failure), daemon)) => self.fail(Some(daemon), failure).await,
            Err(detail) => self.fail(None, MpsFailure { culprits: Vec::new(), detail }).await,
        }
    }

    /// Limits new clients of the server to what the rank with the highest limit may take.
    async fn limit_server(&mut self) {
        let Some(limit) = self.limits.highest() else { return };
        let daemon = match self.take() {
            DaemonState::Up(daemon) => daemon,
            other @ (DaemonState::Absent | DaemonState::Faulted(_)) => return self.daemon = other,
        };
        let work = move || (daemon.limit_clients(limit), daemon);
        match run_with_timeout(CHECK_TIMEOUT, work, drop).await {
            Ok((limited, daemon)) => {
                self.daemon = DaemonState::Up(daemon);
                if let Err(why) = &limited {
                    tracing::warn!(gpu = %self.gpu, %why, "the MPS server has no limit of its own");
                }
                self.limits.note_server(limited.is_ok().then_some(limit));
            }
            Err(detail) => self.fail(None, MpsFailure { culprits: Vec::new(), detail }).await,
        }
    }

    async fn fail(&mut self, daemon: Option<MpsDaemon>, failure: MpsFailure) {
        self.daemon = DaemonState::Faulted(daemon);
        let (owners, culprits) = (self.owners.clone(), failure.culprits);
        let culprit = blocking(move || culprits.iter().find_map(|pid| owners.rank_of(*pid))).await;
        let detail = failure.detail;
        tracing::warn!(gpu = %self.gpu, ?culprit, detail, "the MPS server has failed");
        self.tell(WorkerEvent::Mps(self.gpu.clone(), MpsEvent::Faulted { culprit, detail })).await;
    }

    async fn compare_clients(&mut self, clients: Vec<i32>) {
        let (owners, limits) = (self.owners.clone(), self.limits.clone());
        let member = move |pid: i32| Some((owners.rank_of(pid)?, pid));
        let examine = move || {
            let members: Vec<RankPid> = clients.into_iter().filter_map(member).collect();
            (limits.unlimited(&members), members)
        };
        let (unlimited, members) = blocking(examine).await;
        for (rank, enforcement) in self.checks.compare(&members, &unlimited) {
            self.tell(WorkerEvent::Sharing(rank, enforcement)).await;
        }
    }

    /// Does nothing if the daemon is stopping; the next one checks again.
    async fn tell(&self, event: WorkerEvent) {
        let _ = self.driver.tell(DriverMessage::Worker(event)).await;
    }
}
