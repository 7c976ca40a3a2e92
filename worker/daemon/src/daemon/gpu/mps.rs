//! The actor of one GPU's MPS daemon: obeys the core's orders, and looks after the daemon meanwhile. It tells
//! the core of each fault once, and before any rank that ended by it is told to have ended.

mod orders;

use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context, ReplyTo};
use cohabit_gpu::mps::{MpsDaemon, MpsDirectory, MpsPrograms};
use cohabit_types::{DeviceId, RankId};
use cohabit_worker_core::{MpsEvent, MpsOrder, WorkerEvent};
use tokio::time::Instant;

use super::mps_health::{MpsFailure, MpsHealth, ProbeDepth};
use super::owners::ProcessOwners;
use super::proof::{EnforcementChecks, RankPid};
use super::within::within;
use crate::daemon::driver::DriverMessage;

/// How often it is looked whether the daemon is well.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the daemon is asked itself, while nobody waits for what it says.
const QUERY_INTERVAL: Duration = Duration::from_secs(5);

/// How long a look may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// What the actor is told.
pub(crate) enum MpsMessage {
    /// The core orders this.
    Order(MpsOrder),
    /// All that earlier worker daemons left is known: an MPS daemon that was not ordered to be adopted has no
    /// clients, and goes.
    Settle,
    /// It is time to look.
    Look,
    /// A rank has ended badly: look for a fault at once, and answer when the core has been told.
    Examine(ReplyTo<()>),
    /// A rank that will be a client comes.
    Joined(RankId),
    /// Its first process has this number, which the server's log may name.
    Runs(RankId, i32),
    /// It is gone.
    Left(RankId),
    /// These processes of ranks hold memory of the GPU.
    HeldBy(Vec<RankPid>),
}

/// The daemon of one GPU, or its absence.
pub(crate) struct Mps {
    gpu: DeviceId,
    home: MpsDirectory,
    /// Or what is missing.
    tools: Result<MpsPrograms, String>,
    owners: ProcessOwners,
    driver: Address<DriverMessage>,
    service: Service,
    checks: EnforcementChecks,
    asked_at: Instant,
}

/// How the daemon is.
enum Service {
    /// There is none that we know of.
    Absent,
    Up(MpsDaemon),
    /// The core knows of it, and will order what to do. None, if the daemon was given up.
    Faulted(Option<MpsDaemon>),
}

impl Mps {
    pub(crate) fn new(
        gpu: DeviceId,
        home: MpsDirectory,
        tools: Result<MpsPrograms, String>,
        owners: ProcessOwners,
        driver: Address<DriverMessage>,
    ) -> Mps {
        let (service, checks) = (Service::Absent, EnforcementChecks::default());
        Mps { gpu, home, tools, owners, driver, service, checks, asked_at: Instant::now() }
    }
}

impl Actor for Mps {
    type Message = MpsMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_after(CHECK_INTERVAL, MpsMessage::Look);
        Ok(())
    }

    async fn handle(&mut self, message: MpsMessage, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        match message {
            MpsMessage::Order(order) => {
                let word = self.execute(order).await;
                self.tell(WorkerEvent::Mps(self.gpu.clone(), word)).await;
            }
            MpsMessage::Settle => self.settle().await,
            MpsMessage::Look => {
                self.look(self.depth()).await;
                context.send_after(CHECK_INTERVAL, MpsMessage::Look);
            }
            MpsMessage::Examine(reply_to) => {
                self.look(ProbeDepth::Thorough).await;
                reply_to.send(());
            }
            MpsMessage::Joined(rank) => self.checks.join(Instant::now(), rank),
            MpsMessage::Runs(rank, pid) => self.owners.note(pid, rank),
            MpsMessage::Left(rank) => self.checks.leave(rank),
            MpsMessage::HeldBy(holders) => self.checks.held_by(holders),
        }
        Ok(())
    }

    /// The daemon stays for the ranks that go on; where there are none, nobody would ever stop it.
    async fn stopped(&mut self) {
        if self.checks.is_empty() {
            self.leave().await;
        }
    }
}

impl Mps {
    fn take(&mut self) -> Service {
        std::mem::replace(&mut self.service, Service::Absent)
    }

    fn depth(&self) -> ProbeDepth {
        let now = Instant::now();
        if self.checks.is_waiting(now) || now >= self.asked_at + QUERY_INTERVAL {
            ProbeDepth::Thorough
        } else {
            ProbeDepth::Brief
        }
    }

    /// Only at a daemon that is up: of a fault the core is told once.
    async fn look(&mut self, depth: ProbeDepth) {
        let mut daemon = match self.take() {
            Service::Up(daemon) => daemon,
            other @ (Service::Absent | Service::Faulted(_)) => return self.service = other,
        };
        let work = move || (MpsHealth::of(&mut daemon, depth), daemon);
        match within(CHECK_TIMEOUT, work, drop).await {
            Ok((MpsHealth::Well(clients), daemon)) => {
                self.service = Service::Up(daemon);
                if let Some(clients) = clients {
                    self.asked_at = Instant::now();
                    self.prove(&clients).await;
                }
            }
            Ok((MpsHealth::Broken(breakdown), daemon)) => self.broken(Some(daemon), breakdown).await,
            Err(detail) => self.broken(None, MpsFailure { culprits: Vec::new(), detail }).await,
        }
    }

    async fn broken(&mut self, daemon: Option<MpsDaemon>, breakdown: MpsFailure) {
        self.service = Service::Faulted(daemon);
        let culprit = breakdown.culprits.iter().find_map(|pid| self.owners.rank_of(*pid));
        let detail = breakdown.detail;
        tracing::warn!(gpu = %self.gpu, ?culprit, detail, "its MPS server is in fault");
        self.tell(WorkerEvent::Mps(self.gpu.clone(), MpsEvent::Faulted { culprit, detail })).await;
    }

    async fn prove(&mut self, clients: &[i32]) {
        let members = clients.iter().filter_map(|pid| Some((self.owners.rank_of(*pid)?, *pid)));
        let members: Vec<RankPid> = members.collect();
        for (rank, enforcement) in self.checks.compare(&members) {
            self.tell(WorkerEvent::Sharing(rank, enforcement)).await;
        }
    }

    /// Without a driver the daemon is stopping, and the next one will look again.
    async fn tell(&self, event: WorkerEvent) {
        let _ = self.driver.tell(DriverMessage::Happened(event)).await;
    }
}
