//! Starts the actors of the GPUs: one for the MPS daemon of each, and the monitor.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cohabit_actor::{Actor, Address, ChildSpec, Context};
use cohabit_types::{Bytes, DeviceId};
use cohabit_worker_core::{GpuAccess, MpsEvent, MpsOrder, RankStart, WorkerEvent};

use super::monitor::Monitor;
use super::mps::{MpsManager, MpsMessage};
use super::mps_directories::MpsDirectories;
use super::process_owners::ProcessOwners;
use crate::isolation::Isolator;
use crate::messages::DriverMessage;

/// Messages that may be queued for one actor.
const MAILBOX: usize = 256;

/// The answer to an order that no actor can take.
const NO_ACTOR: &str = "the worker's MPS manager has failed: restart the worker";

/// The actors; none on a host without GPUs.
#[derive(Default)]
pub(crate) struct GpuManagers {
    mps: BTreeMap<DeviceId, Address<MpsMessage>>,
    pub(crate) owners: ProcessOwners,
}

/// The MPS daemon whose client a rank is.
#[derive(Clone)]
pub(crate) struct MpsService {
    /// Its actor.
    pub(crate) address: Address<MpsMessage>,
    /// The limit of memory for each process of the rank.
    pub(crate) limit: Bytes,
}

impl GpuManagers {
    /// Starts them as children of the driver.
    pub(crate) fn spawn<Driver: Actor<Message = DriverMessage>>(
        context: &Context<Driver>,
        mps_directories: &MpsDirectories,
        isolation: &Isolator,
        owners: ProcessOwners,
        nvml_library: Option<PathBuf>,
    ) -> GpuManagers {
        let driver = context.address();
        let mps = mps_directories.iter().map(|(gpu, directory)| {
            let mps = MpsManager::new(
                gpu.clone(),
                directory.clone(),
                mps_directories.programs.clone(),
                isolation.clone(),
                owners.clone(),
                driver.clone(),
            );
            (gpu.clone(), context.spawn_once(ChildSpec::new(format!("mps {gpu}"), MAILBOX), mps))
        });
        let mps: BTreeMap<_, _> = mps.collect();
        if !mps.is_empty() {
            let (mps, owners, driver) = (mps.clone(), owners.clone(), driver.clone());
            let monitor =
                move || Monitor::new(nvml_library.clone(), mps.clone(), owners.clone(), driver.clone());
            context.spawn(ChildSpec::new("monitor", MAILBOX), monitor);
        }
        GpuManagers { mps, owners }
    }

    /// Passes an order on. Returns its answer at once if no actor can take it.
    pub(crate) fn order(&self, gpu: DeviceId, order: MpsOrder) -> Option<WorkerEvent> {
        let mps = self.mps.get(&gpu);
        if mps.is_some_and(|mps| mps.try_tell(MpsMessage::Order(order.clone())).is_ok()) {
            return None;
        }
        tracing::error!(%gpu, ?order, "the MPS manager of this GPU has failed");
        let answer = match order {
            MpsOrder::Start(_) | MpsOrder::Adopt(_) | MpsOrder::Recover(_) => {
                MpsEvent::Failed(NO_ACTOR.to_owned())
            }
            MpsOrder::Stop => MpsEvent::Stopped,
        };
        Some(WorkerEvent::Mps(gpu, answer))
    }

    /// To be called when all ranks that earlier daemons left are known.
    pub(crate) fn settle(&self) {
        for mps in self.mps.values() {
            // The mailbox is nearly empty now; without an actor there is nothing to settle.
            let _ = mps.try_tell(MpsMessage::Settle);
        }
    }

    /// The MPS daemon whose client this rank is.
    pub(crate) fn mps_of(&self, start: &RankStart) -> Option<MpsService> {
        match start.access {
            GpuAccess::Mps(limits) => {
                let address = self.mps.get(start.devices.first()?)?.clone();
                Some(MpsService { address, limit: limits.memory })
            }
            GpuAccess::None | GpuAccess::Exclusive | GpuAccess::TimeSliced(_) => None,
        }
    }
}
