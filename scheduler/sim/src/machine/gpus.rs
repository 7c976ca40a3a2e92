//! The GPUs of a machine: MPS servers, their faults, and GPUs that stop responding.
//!
//! MPS servers outlive the worker daemon, as executors do. After a fault all clients hang until they are
//! stopped or notice the fault themselves; the server is restarted when they are gone.

use cohabit_types::{Bytes, DeviceId, DeviceKind, GpuReading, Outcome, RankId, Share, Span, Time};
use cohabit_worker_core::{GpuAccess, GpuSample, MpsEvent, MpsOrder, WorkerEvent};

use super::gpu_states::{FaultAttribution, FaultChance, MpsServerState, ObservedMemory};
use super::{Disk, Outbox, RankTimerKind, SimMachine};
use crate::process::RankProcess;
use crate::random::Random;

/// How long a client takes to notice a fault by itself, if it does.
const CLIENT_NOTICE_DELAY: (Span, Span) = (Span::from_millis(10), Span::from_secs(20));

impl SimMachine {
    /// Carries out an order for the MPS server of a GPU and returns what the server reports.
    ///
    /// # Errors
    /// If the order needs the GPU without clients and there are some.
    pub(crate) fn carry_out(
        &mut self,
        device: &DeviceId,
        order: MpsOrder,
        chance: FaultChance,
    ) -> Result<MpsEvent, String> {
        let clients = self.clients(device);
        match order {
            MpsOrder::Start(_) | MpsOrder::Recover(_) | MpsOrder::Stop if !clients.is_empty() => {
                return Err(format!(
                    "{order:?} was ordered on {device} while it has the clients {clients:?}"
                ));
            }
            MpsOrder::Start(_) | MpsOrder::Recover(_) | MpsOrder::Stop | MpsOrder::Adopt(_) => {}
        }
        Ok(match (order, chance) {
            (MpsOrder::Start(_) | MpsOrder::Recover(_), FaultChance::Succeeds) => {
                self.gpus.servers.insert(device.clone(), MpsServerState::Active);
                MpsEvent::Up
            }
            (MpsOrder::Start(_) | MpsOrder::Recover(_), FaultChance::Fails) => {
                self.gpus.servers.remove(device);
                MpsEvent::Failed("the server exited with status 1".into())
            }
            (MpsOrder::Adopt(_), _) if self.gpus.servers.get(device) == Some(&MpsServerState::Active) => {
                MpsEvent::Up
            }
            (MpsOrder::Adopt(_), _) => MpsEvent::Failed("the server is in fault".into()),
            (MpsOrder::Stop, _) => {
                self.gpus.servers.remove(device);
                MpsEvent::Stopped
            }
        })
    }

    /// Whether an MPS server is active on this machine.
    pub(crate) fn serves_clients(&self) -> bool {
        self.gpus.servers.values().any(|server| *server == MpsServerState::Active)
    }

    /// Breaks one of the active MPS servers, chosen by number, and returns the event that the daemon
    /// observes.
    pub(crate) fn break_mps_server(
        &mut self,
        now: Time,
        number: usize,
        attribution: FaultAttribution,
    ) -> Option<WorkerEvent> {
        let active = self.gpus.servers.iter().filter(|(_, server)| **server == MpsServerState::Active);
        let active: Vec<DeviceId> = active.map(|(device, _)| device.clone()).collect();
        let device = active.get(number.checked_rem(active.len())?)?.clone();
        self.gpus.servers.insert(device.clone(), MpsServerState::Broken);
        let clients = self.clients(&device);
        let culprit = match attribution {
            FaultAttribution::Culprit => clients.get(number.checked_rem(clients.len()).unwrap_or(0)).copied(),
            FaultAttribution::Unknown => None,
        };
        let suffers = |rank: &RankId| {
            // One that only has to exit needs the GPU no more, and ends as it would have.
            Some(*rank) != culprit && self.processes.get(rank).is_some_and(|it| it.ending.is_none())
        };
        let victims: Vec<RankId> = clients.iter().copied().filter(suffers).collect();
        self.accounts.victims.extend(victims);
        clients.into_iter().for_each(|rank| self.hang(now, rank));
        Some(WorkerEvent::Mps(device, MpsEvent::Faulted { culprit, detail: "a fatal GPU error".into() }))
    }

    /// Lets some of the hanging clients notice the fault and end by themselves.
    pub(crate) fn end_hanging_clients(&self, now: Time, random: &mut Random, out: &mut Outbox) {
        for (rank, _) in self.live().filter(|(_, process)| process.hangs) {
            if random.chance(0.3) {
                out.schedule(
                    now + random.span(CLIENT_NOTICE_DELAY),
                    *rank,
                    RankTimerKind::End(Outcome::Exited(1)),
                );
            }
        }
    }

    /// Makes one GPU, chosen by number, stop responding, and returns its id.
    pub(crate) fn lose_gpu(&mut self, number: usize) -> Option<DeviceId> {
        let device = self.gpu(number)?;
        self.gpus.lost.insert(device.clone());
        Some(device)
    }

    /// Selects a GPU by number, modulo how many there are.
    pub(crate) fn gpu(&self, number: usize) -> Option<DeviceId> {
        let gpus = self.real_gpus();
        gpus.get(number.checked_rem(gpus.len())?).cloned()
    }

    /// Samples all GPUs while processes outside the cluster hold this much memory on each.
    pub(crate) fn sample_gpus(&self, foreign_memory: Bytes, observed: ObservedMemory) -> Vec<GpuSample> {
        let sample = |device: DeviceId| GpuSample {
            reading: match self.gpus.lost.contains(&device) {
                true => Err("the GPU is lost".into()),
                false => Ok(GpuReading { utilization: Some(0.5), ..GpuReading::default() }),
            },
            ranks: self.ranks_on(&device).map(|(rank, it)| (*rank, observed_memory(it, observed))).collect(),
            foreign_memory,
            device,
        };
        self.real_gpus().into_iter().map(sample).collect()
    }

    /// Prepares the GPUs for a new worker daemon: MPS servers without clients stop, and lost GPUs respond
    /// again, because whoever restarts a daemon repairs its GPUs first.
    pub(crate) fn restart_lost_gpus(&mut self) {
        self.gpus.lost.clear();
        let unused = |device: &DeviceId| self.clients(device).is_empty();
        let unused: Vec<DeviceId> =
            self.gpus.servers.keys().filter(|device| unused(device)).cloned().collect();
        unused.iter().for_each(|device| _ = self.gpus.servers.remove(device));
    }

    /// Stops the MPS servers with the machine. The disk still shows that they ran, unless it was wiped.
    pub(super) fn power_off_gpus(&mut self, disk: Disk) {
        self.gpus.lost.clear();
        match disk {
            Disk::Kept => self.gpus.servers.values_mut().for_each(|server| *server = MpsServerState::Broken),
            Disk::Wiped => self.gpus.servers.clear(),
        }
    }

    /// The GPUs on which this rank is, or was, a client of an MPS server.
    pub(crate) fn served_by(&self, rank: RankId) -> Vec<DeviceId> {
        let client = self.processes.get(&rank).filter(|process| is_client(process));
        client.map(|process| process.start.devices.clone()).unwrap_or_default()
    }

    /// Checks that a rank uses its devices in the way that their state allows. A daemon that was suspended
    /// may read an order before it hears that the MPS server has broken meanwhile.
    pub(super) fn check_access(&self, rank: RankId, process: &RankProcess) -> Result<(), String> {
        let start = &process.start;
        let real = self.shape.kind == DeviceKind::Gpu && !start.devices.is_empty();
        let serves = |device| match self.gpus.servers.get(device) {
            Some(MpsServerState::Active) => true,
            Some(MpsServerState::Broken) => !self.daemon_acts,
            None => false,
        };
        let fits = match start.access {
            GpuAccess::None => !real,
            GpuAccess::Exclusive => {
                real && start.share == Share::WHOLE
                    && !start.devices.iter().any(|device| self.gpus.servers.contains_key(device))
            }
            GpuAccess::Mps(_) => real && start.share < Share::WHOLE && start.devices.iter().all(serves),
            GpuAccess::TimeSliced(_) => real && start.share < Share::WHOLE,
        };
        match fits {
            true => Ok(()),
            false => Err(format!("{rank} may not use {:?} with {:?}", start.devices, start.access)),
        }
    }

    /// Whether the MPS server of this rank is in fault.
    pub(super) fn has_lost_server(&self, process: &RankProcess) -> bool {
        let broken = |device| self.gpus.servers.get(device) == Some(&MpsServerState::Broken);
        is_client(process) && process.start.devices.iter().any(broken)
    }

    /// Makes a rank hang: it does no work and still slows the others on its device.
    fn hang(&mut self, now: Time, rank: RankId) {
        if let Some(process) = self.processes.get_mut(&rank) {
            process.hangs = true;
            process.work.retime(now, 0.0);
        }
    }

    fn clients(&self, device: &DeviceId) -> Vec<RankId> {
        self.ranks_on(device).filter(|(_, process)| is_client(process)).map(|(rank, _)| *rank).collect()
    }

    fn ranks_on<'m>(&'m self, device: &'m DeviceId) -> impl Iterator<Item = (&'m RankId, &'m RankProcess)> {
        self.live().filter(|(_, process)| process.start.devices.contains(device))
    }

    fn real_gpus(&self) -> Vec<DeviceId> {
        let devices = self.shape.devices().into_iter();
        devices.filter(|device| device.kind == DeviceKind::Gpu).map(|device| device.id).collect()
    }
}

const fn is_client(process: &RankProcess) -> bool {
    matches!(process.start.access, GpuAccess::Mps(_))
}

fn observed_memory(process: &RankProcess, observed: ObservedMemory) -> Bytes {
    let requested = process.start.spec.demand.gpu_memory.unwrap_or_default();
    match observed {
        ObservedMemory::AsRequested => requested,
        ObservedMemory::OverRequest => Bytes(requested.0 + 1),
    }
}
