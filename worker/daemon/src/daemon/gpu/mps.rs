//! The actor of one GPU's MPS daemon: obeys the core's orders, and looks after the daemon meanwhile. It tells
//! the core of each fault once, and before any rank that ended by it is told to have ended.

mod orders;

use std::time::Duration;

use cohabit_actor::{Actor, Address, Context, Failure, Reply};
use cohabit_gpu::mps::{Daemon, Home, Tools};
use cohabit_types::{DeviceId, RankId};
use cohabit_worker_core::{Event, MpsOrder, MpsWord};
use tokio::time::Instant;

use super::owners::Owners;
use super::proof::{Member, Proofs};
use super::sight::{Breakdown, Depth, Sight};
use super::within::within;
use crate::daemon::driver::DriverMessage;

/// How often it is looked whether the daemon is well.
const LOOK: Duration = Duration::from_secs(1);

/// How often the daemon is asked itself, while nobody waits for what it says.
const ASK: Duration = Duration::from_secs(5);

/// How long a look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(30);

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
    Examine(Reply<()>),
    /// A rank that will be a client comes.
    Joined(RankId),
    /// Its first process has this number, which the server's log may name.
    Runs(RankId, i32),
    /// It is gone.
    Left(RankId),
    /// These processes of ranks hold memory of the GPU.
    HeldBy(Vec<Member>),
}

/// The daemon of one GPU, or its absence.
pub(crate) struct Mps {
    gpu: DeviceId,
    home: Home,
    /// Or what is missing.
    tools: Result<Tools, String>,
    owners: Owners,
    driver: Address<DriverMessage>,
    service: Service,
    proofs: Proofs,
    asked_at: Instant,
}

/// How the daemon is.
enum Service {
    /// There is none that we know of.
    Absent,
    Up(Daemon),
    /// The core knows of it, and will order what to do. None, if the daemon was given up.
    Faulted(Option<Daemon>),
}

impl Mps {
    pub(crate) fn new(
        gpu: DeviceId,
        home: Home,
        tools: Result<Tools, String>,
        owners: Owners,
        driver: Address<DriverMessage>,
    ) -> Mps {
        let (service, proofs) = (Service::Absent, Proofs::default());
        Mps { gpu, home, tools, owners, driver, service, proofs, asked_at: Instant::now() }
    }
}

impl Actor for Mps {
    type Message = MpsMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), Failure> {
        context.send_after(LOOK, MpsMessage::Look);
        Ok(())
    }

    async fn handle(&mut self, message: MpsMessage, context: &mut Context<Self>) -> Result<(), Failure> {
        match message {
            MpsMessage::Order(order) => {
                let word = self.obey(order).await;
                self.tell(Event::Mps(self.gpu.clone(), word)).await;
            }
            MpsMessage::Settle => self.settle().await,
            MpsMessage::Look => {
                self.look(self.depth()).await;
                context.send_after(LOOK, MpsMessage::Look);
            }
            MpsMessage::Examine(reply_to) => {
                self.look(Depth::Thorough).await;
                reply_to.send(());
            }
            MpsMessage::Joined(rank) => self.proofs.join(Instant::now(), rank),
            MpsMessage::Runs(rank, pid) => self.owners.note(pid, rank),
            MpsMessage::Left(rank) => self.proofs.leave(rank),
            MpsMessage::HeldBy(holders) => self.proofs.held_by(holders),
        }
        Ok(())
    }

    /// The daemon stays for the ranks that go on; where there are none, nobody would ever stop it.
    async fn stopped(&mut self) {
        if self.proofs.is_empty() {
            self.leave().await;
        }
    }
}

impl Mps {
    fn take(&mut self) -> Service {
        std::mem::replace(&mut self.service, Service::Absent)
    }

    fn depth(&self) -> Depth {
        let now = Instant::now();
        if self.proofs.is_waiting(now) || now >= self.asked_at + ASK { Depth::Thorough } else { Depth::Brief }
    }

    /// Only at a daemon that is up: of a fault the core is told once.
    async fn look(&mut self, depth: Depth) {
        let mut daemon = match self.take() {
            Service::Up(daemon) => daemon,
            other @ (Service::Absent | Service::Faulted(_)) => return self.service = other,
        };
        let work = move || (Sight::of(&mut daemon, depth), daemon);
        match within(LOOK_LIMIT, work, drop).await {
            Ok((Sight::Well(clients), daemon)) => {
                self.service = Service::Up(daemon);
                if let Some(clients) = clients {
                    self.asked_at = Instant::now();
                    self.prove(&clients).await;
                }
            }
            Ok((Sight::Broken(breakdown), daemon)) => self.broken(Some(daemon), breakdown).await,
            Err(detail) => self.broken(None, Breakdown { culprits: Vec::new(), detail }).await,
        }
    }

    async fn broken(&mut self, daemon: Option<Daemon>, breakdown: Breakdown) {
        self.service = Service::Faulted(daemon);
        let culprit = breakdown.culprits.iter().find_map(|pid| self.owners.rank_of(*pid));
        let detail = breakdown.detail;
        tracing::warn!(gpu = %self.gpu, ?culprit, detail, "its MPS server is in fault");
        self.tell(Event::Mps(self.gpu.clone(), MpsWord::Faulted { culprit, detail })).await;
    }

    async fn prove(&mut self, clients: &[i32]) {
        let members = clients.iter().filter_map(|pid| Some((self.owners.rank_of(*pid)?, *pid)));
        let members: Vec<Member> = members.collect();
        for (rank, enforcement) in self.proofs.compare(&members) {
            self.tell(Event::Sharing(rank, enforcement)).await;
        }
    }

    /// Without a driver the daemon is stopping, and the next one will look again.
    async fn tell(&self, event: Event) {
        let _ = self.driver.tell(DriverMessage::Happened(event)).await;
    }
}
