//! The actors that look after the GPUs: one for the MPS daemon of each, and the monitor.

use std::collections::BTreeMap;

use cohabit_actor::{Address, ChildSpec, Context};
use cohabit_types::DeviceId;
use cohabit_worker_core::{GpuAccess, MpsEvent, MpsOrder, RankStart, WorkerEvent};

use super::monitor::Monitor;
use super::mps::{Mps, MpsMessage};
use super::owners::ProcessOwners;
use crate::daemon::driver::WorkerDriver;
use crate::daemon::environment::RankContext;

/// Messages that may wait for one of them.
const MAILBOX: usize = 256;

/// Why no order is obeyed any more.
const NO_ACTOR: &str = "the part of the worker that looks after MPS has failed: restart the worker";

/// All of them; nobody, on a machine without GPUs.
#[derive(Default)]
pub(crate) struct GpuManagers {
    mps: BTreeMap<DeviceId, Address<MpsMessage>>,
}

impl GpuManagers {
    /// Starts them as children of the driver.
    pub(crate) fn spawn(context: &Context<WorkerDriver>, rank_context: &RankContext) -> GpuManagers {
        let mps_directories = &rank_context.gpus;
        let owners = ProcessOwners::new(rank_context.state.ranks(), mps_directories.pipes());
        let driver = context.address();
        let mps = mps_directories.iter().map(|(gpu, home)| {
            let mps = Mps::new(
                gpu.clone(),
                home.clone(),
                mps_directories.tools.clone(),
                owners.clone(),
                driver.clone(),
            );
            (gpu.clone(), context.spawn_once(ChildSpec::new(format!("mps {gpu}"), MAILBOX), mps))
        });
        let mps: BTreeMap<_, _> = mps.collect();
        if !mps.is_empty() {
            let (library, mps, driver) = (rank_context.nvml_library.clone(), mps.clone(), driver.clone());
            let monitor = move || Monitor::new(library.clone(), mps.clone(), owners.clone(), driver.clone());
            context.spawn(ChildSpec::new("monitor", MAILBOX), monitor);
        }
        GpuManagers { mps }
    }

    /// Passes an order on; if there is nobody to obey it, this is the answer.
    pub(crate) fn order(&self, gpu: DeviceId, order: MpsOrder) -> Option<WorkerEvent> {
        let mps = self.mps.get(&gpu);
        if mps.is_some_and(|mps| mps.try_tell(MpsMessage::Order(order)).is_ok()) {
            return None;
        }
        tracing::error!(%gpu, ?order, "nobody looks after the MPS daemon of this GPU");
        let word = match order {
            MpsOrder::Start | MpsOrder::Adopt | MpsOrder::Recover => MpsEvent::Failed(NO_ACTOR.to_owned()),
            MpsOrder::Stop => MpsEvent::Stopped,
        };
        Some(WorkerEvent::Mps(gpu, word))
    }

    /// What earlier worker daemons left is known now.
    pub(crate) fn settle(&self) {
        for mps in self.mps.values() {
            // Its mailbox is as good as empty at this time, and without an actor there is nothing to settle.
            let _ = mps.try_tell(MpsMessage::Settle);
        }
    }

    /// Who looks after the MPS daemon whose client this rank is.
    pub(crate) fn mps_of(&self, start: &RankStart) -> Option<Address<MpsMessage>> {
        match start.access {
            GpuAccess::Mps(_) => self.mps.get(start.devices.first()?).cloned(),
            GpuAccess::None | GpuAccess::Exclusive | GpuAccess::TimeSliced(_) => None,
        }
    }
}
