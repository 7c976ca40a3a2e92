//! The GPUs of a machine: their MPS daemons, faults of those, and GPUs that do not answer any more.
//!
//! Daemons outlive the worker daemon as executors do. After a fault all clients hang until they are stopped,
//! or see for themselves what has happened, and the server comes back when they are gone.

use cohabit_types::{Bytes, DeviceId, DeviceKind, GpuReading, Outcome, RankId, Share, Span, Time};
use cohabit_worker_core::{GpuAccess, GpuSample, MpsEvent, MpsOrder, WorkerEvent};

use super::gpu_states::{FaultAttribution, FaultChance, MpsServerState, ObservedMemory};
use super::{Disk, Machine, Outbox, RankSignalKind};
use crate::process::RankProcess;
use crate::random::Random;

/// How long a client takes to see for itself that it has lost, if it does.
const CLIENT_NOTICE_DELAY: (Span, Span) = (Span::from_millis(10), Span::from_secs(20));

impl Machine {
    /// What the actor of a GPU's MPS daemon finds and does when it carries out an order.
    ///
    /// # Errors
    /// If clients are there that must not be.
    pub(crate) fn carry_out(
        &mut self,
        device: &DeviceId,
        order: MpsOrder,
        luck: FaultChance,
    ) -> Result<MpsEvent, String> {
        let clients = self.clients(device);
        match order {
            MpsOrder::Start | MpsOrder::Recover | MpsOrder::Stop if !clients.is_empty() => {
                return Err(format!("{order:?} was ordered on {device} while {clients:?} are clients there"));
            }
            MpsOrder::Start | MpsOrder::Recover | MpsOrder::Stop | MpsOrder::Adopt => {}
        }
        Ok(match (order, luck) {
            (MpsOrder::Start | MpsOrder::Recover, FaultChance::Good) => {
                self.gpus.servers.insert(device.clone(), MpsServerState::Active);
                MpsEvent::Up
            }
            (MpsOrder::Start | MpsOrder::Recover, FaultChance::Bad) => {
                self.gpus.servers.remove(device);
                MpsEvent::Failed("the server exited with status 1".into())
            }
            (MpsOrder::Adopt, _) if self.gpus.servers.get(device) == Some(&MpsServerState::Active) => {
                MpsEvent::Up
            }
            (MpsOrder::Adopt, _) => MpsEvent::Failed("the server is in fault".into()),
            (MpsOrder::Stop, _) => {
                self.gpus.servers.remove(device);
                MpsEvent::Stopped
            }
        })
    }

    /// Whether an MPS server is active here.
    pub(crate) fn serves_clients(&self) -> bool {
        self.gpus.servers.values().any(|server| *server == MpsServerState::Active)
    }

    /// An MPS server breaks, if one is active: one of several, by number. What its actor sees of that.
    pub(crate) fn break_server(
        &mut self,
        now: Time,
        number: usize,
        blame: FaultAttribution,
    ) -> Option<WorkerEvent> {
        let active = self.gpus.servers.iter().filter(|(_, server)| **server == MpsServerState::Active);
        let active: Vec<DeviceId> = active.map(|(device, _)| device.clone()).collect();
        let device = active.get(number.checked_rem(active.len())?)?.clone();
        self.gpus.servers.insert(device.clone(), MpsServerState::Broken);
        let clients = self.clients(&device);
        let culprit = match blame {
            FaultAttribution::Culprit => clients.get(number.checked_rem(clients.len()).unwrap_or(0)).copied(),
            FaultAttribution::Nobody => None,
        };
        self.accounts.victims.extend(clients.iter().filter(|rank| Some(**rank) != culprit));
        clients.into_iter().for_each(|rank| self.hang(now, rank));
        Some(WorkerEvent::Mps(device, MpsEvent::Faulted { culprit, detail: "a fatal GPU error".into() }))
    }

    /// Some of those that hang see for themselves that they have lost, and end.
    pub(crate) fn give_up(&self, now: Time, random: &mut Random, out: &mut Outbox) {
        for (rank, _) in self.live().filter(|(_, process)| process.hangs) {
            if random.chance(0.3) {
                out.pulse(
                    now + random.span(CLIENT_NOTICE_DELAY),
                    *rank,
                    RankSignalKind::End(Outcome::Exited(1)),
                );
            }
        }
    }

    /// A GPU does not answer any more: one of several, by number. Which.
    pub(crate) fn lose_gpu(&mut self, number: usize) -> Option<DeviceId> {
        let device = self.gpu(number)?;
        self.gpus.lost.insert(device.clone());
        Some(device)
    }

    /// A GPU of several, by number.
    pub(crate) fn gpu(&self, number: usize) -> Option<DeviceId> {
        let gpus = self.real_gpus();
        gpus.get(number.checked_rem(gpus.len())?).cloned()
    }

    /// What a look at all GPUs shows, while strangers hold this much of each.
    pub(crate) fn look(&self, strangers: Bytes, appetite: ObservedMemory) -> Vec<GpuSample> {
        let sample = |device: DeviceId| GpuSample {
            reading: match self.gpus.lost.contains(&device) {
                true => Err("the GPU is lost".into()),
                false => Ok(GpuReading { utilisation: Some(0.5), ..GpuReading::default() }),
            },
            ranks: self.on(&device).map(|(rank, it)| (*rank, seen(it, appetite))).collect(),
            foreign_memory: strangers,
            device,
        };
        self.real_gpus().into_iter().map(sample).collect()
    }

    /// A new worker daemon comes: it stops MPS daemons that serve nobody, and whoever restarted it has looked
    /// after the GPUs.
    pub(crate) fn restart_lost_gpus(&mut self) {
        self.gpus.lost.clear();
        let idle = |device: &DeviceId| self.clients(device).is_empty();
        let idle: Vec<DeviceId> = self.gpus.servers.keys().filter(|device| idle(device)).cloned().collect();
        idle.iter().for_each(|device| _ = self.gpus.servers.remove(device));
    }

    /// No server outlives the machine's power, but the disk keeps that there were some.
    pub(super) fn gpus_off(&mut self, disk: Disk) {
        self.gpus.lost.clear();
        match disk {
            Disk::Kept => self.gpus.servers.values_mut().for_each(|server| *server = MpsServerState::Broken),
            Disk::Wiped => self.gpus.servers.clear(),
        }
    }

    /// The GPUs whose MPS servers this rank is, or was, a client of.
    pub(crate) fn served_by(&self, rank: RankId) -> Vec<DeviceId> {
        let client = self.processes.get(&rank).filter(|process| is_client(process));
        client.map(|process| process.start.devices.clone()).unwrap_or_default()
    }

    /// Whether a rank may come to its devices as it is about to.
    pub(super) fn check_access(&self, rank: RankId, process: &RankProcess) -> Result<(), String> {
        let start = &process.start;
        let real = self.shape.kind == DeviceKind::Gpu && !start.devices.is_empty();
        let serves = |device| self.gpus.servers.get(device) == Some(&MpsServerState::Active);
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
            false => Err(format!("{rank} comes to {:?} by {:?}, and must not", start.devices, start.access)),
        }
    }

    /// Whether the MPS server that this rank needs is broken.
    pub(super) fn has_lost_server(&self, process: &RankProcess) -> bool {
        let broken = |device| self.gpus.servers.get(device) == Some(&MpsServerState::Broken);
        is_client(process) && process.start.devices.iter().any(broken)
    }

    /// What hangs does no work, and is in the way of the others as before.
    fn hang(&mut self, now: Time, rank: RankId) {
        if let Some(process) = self.processes.get_mut(&rank) {
            process.hangs = true;
            process.work.retime(now, 0.0);
        }
    }

    fn clients(&self, device: &DeviceId) -> Vec<RankId> {
        self.on(device).filter(|(_, process)| is_client(process)).map(|(rank, _)| *rank).collect()
    }

    fn on<'m>(&'m self, device: &'m DeviceId) -> impl Iterator<Item = (&'m RankId, &'m RankProcess)> {
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

fn seen(process: &RankProcess, appetite: ObservedMemory) -> Bytes {
    let asked = process.start.spec.demand.gpu_memory.unwrap_or_default();
    match appetite {
        ObservedMemory::AsRequested => asked,
        ObservedMemory::OverRequest => Bytes(asked.0 + 1),
    }
}
