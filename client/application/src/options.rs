//! What an actor claims and how it lives, as its attribute says and as a builder changes it.

use bytes::Bytes;
use cohabit_application_core::ActorSpec;
use cohabit_types::{Demand, EnforcementRequirement, GpuRequest, Share, Sharing};
use cohabit_wire::codec;
use serde::{Deserialize, Serialize};

/// How many `&self` methods of an actor run beside each other, unless it says otherwise.
pub const DEFAULT_CONCURRENCY: u32 = 16;

/// What the attribute of an actor says.
#[derive(Debug, Clone, Copy)]
pub struct ActorOptions {
    /// Thousandths of a GPU.
    pub gpus: u32,
    /// Bytes of memory on each GPU.
    pub gpu_memory: Option<u64>,
    /// Cores.
    pub cpus: u32,
    /// Bytes of host memory.
    pub memory: u64,
    /// How often its process may be started again.
    pub restarts: u32,
    /// Most `&self` methods at the same time.
    pub concurrency: u32,
    /// Whether it shares GPUs only where limits are enforced.
    pub enforced: bool,
    /// Whether nobody else may join its GPU.
    pub exclusive: bool,
}

/// What the job of an actor claims beside GPUs: it passes through the cores as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunnerClaims {
    gpu_memory: Option<u64>,
    cpus: u32,
    memory: u64,
    enforced: bool,
    exclusive: bool,
}

impl ActorOptions {
    /// What passes through the cores, encoded.
    pub(crate) fn claims(&self) -> Bytes {
        let ActorOptions { gpu_memory, cpus, memory, enforced, exclusive, .. } = *self;
        let claims = RunnerClaims { gpu_memory, cpus, memory, enforced, exclusive };
        codec::encode(&claims).expect("a few numbers fit")
    }

    /// Refuses what no job can demand, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        RunnerClaims::decode(&self.claims())?.demand(Share(self.gpus)).check()
    }

    /// Sets what the core knows of them.
    pub(crate) fn describe(&self, spec: &mut ActorSpec) {
        spec.gpus = Share(self.gpus);
        spec.restarts = self.restarts;
        spec.concurrency = self.concurrency;
        spec.claims = self.claims();
    }
}

impl RunnerClaims {
    /// # Errors
    /// In words, if a process of another program encoded them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<RunnerClaims, String> {
        codec::decode(bytes).map_err(|error| error.to_string())
    }

    /// What the job of the actor demands.
    pub(crate) fn demand(&self, gpus: Share) -> Demand {
        let whole = gpus.0 / Share::WHOLE.0;
        Demand {
            gpus: match gpus {
                Share(1..1_000) => GpuRequest::Part(gpus),
                Share(_) => GpuRequest::Whole(whole),
            },
            gpu_memory: self.gpu_memory.map(cohabit_types::Bytes),
            cpus: self.cpus,
            memory: cohabit_types::Bytes(self.memory),
            sharing: if self.exclusive { Sharing::Exclusive } else { Sharing::Shared },
            limits: match self.enforced {
                true => EnforcementRequirement::Enforced,
                false => EnforcementRequirement::BestEffort,
            },
            ..Demand::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_pass_through_the_cores_and_become_a_demand() {
        let options = ActorOptions {
            gpus: 250,
            gpu_memory: Some(8 << 30),
            cpus: 2,
            memory: 1 << 20,
            restarts: 3,
            concurrency: 4,
            enforced: true,
            exclusive: false,
        };
        let claims = RunnerClaims::decode(&options.claims()).unwrap();
        let demand = claims.demand(Share(options.gpus));
        assert_eq!(demand.gpus, GpuRequest::Part(Share(250)));
        assert_eq!((demand.gpu_memory, demand.cpus), (Some(cohabit_types::Bytes(8 << 30)), 2));
        assert_eq!(demand.limits, EnforcementRequirement::Enforced);
        assert_eq!(demand.check(), Ok(()));
        assert_eq!(claims.demand(Share(2_000)).gpus, GpuRequest::Whole(2));
        assert_eq!(claims.demand(Share(0)).gpus, GpuRequest::Whole(0));
    }
}
