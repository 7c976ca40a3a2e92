//! The actors that look after the GPUs: one for the MPS daemon of each, and the monitor.

use std::collections::BTreeMap;

use cohabit_actor::{Address, Context, Spec};
use cohabit_types::DeviceId;
use cohabit_worker_core::{Event, GpuAccess, MpsOrder, MpsWord, RankStart};

use super::monitor::Monitor;
use super::mps::{Mps, MpsMessage};
use super::owners::Owners;
use crate::daemon::driver::Driver;
use crate::daemon::environment::Surroundings;

/// Messages that may wait for one of them.
const MESSAGES: usize = 256;

/// Why no order is obeyed any more.
const NOBODY: &str = "the part of the worker that looks after MPS has failed: restart the worker";

/// All of them; nobody, on a machine without GPUs.
#[derive(Default)]
pub(crate) struct Crew {
    mps: BTreeMap<DeviceId, Address<MpsMessage>>,
}

impl Crew {
    /// Starts them as children of the driver.
    pub(crate) fn spawn(context: &Context<Driver>, surroundings: &Surroundings) -> Crew {
        let homes = &surroundings.gpus;
        let owners = Owners::new(surroundings.state.ranks(), homes.pipes());
        let driver = context.address();
        let mps = homes.iter().map(|(gpu, home)| {
            let mps =
                Mps::new(gpu.clone(), home.clone(), homes.tools.clone(), owners.clone(), driver.clone());
            (gpu.clone(), context.spawn_once(Spec::new(format!("mps {gpu}"), MESSAGES), mps))
        });
        let mps: BTreeMap<_, _> = mps.collect();
        if !mps.is_empty() {
            let (library, mps, driver) = (surroundings.nvml_library.clone(), mps.clone(), driver.clone());
            let monitor = move || Monitor::new(library.clone(), mps.clone(), owners.clone(), driver.clone());
            context.spawn(Spec::new("monitor", MESSAGES), monitor);
        }
        Crew { mps }
    }

    /// Passes an order on; if there is nobody to obey it, this is the answer.
    pub(crate) fn order(&self, gpu: DeviceId, order: MpsOrder) -> Option<Event> {
        let mps = self.mps.get(&gpu);
        if mps.is_some_and(|mps| mps.try_tell(MpsMessage::Order(order)).is_ok()) {
            return None;
        }
        tracing::error!(%gpu, ?order, "nobody looks after the MPS daemon of this GPU");
        let word = match order {
            MpsOrder::Start | MpsOrder::Adopt | MpsOrder::Recover => MpsWord::Failed(NOBODY.to_owned()),
            MpsOrder::Stop => MpsWord::Stopped,
        };
        Some(Event::Mps(gpu, word))
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
