//! What actors and tasks claim and how they live, as their attributes say and as builders change it.

use bytes::Bytes;
use cohabit_application_core::{OnTaskError, TaskClass};
use cohabit_types::{Demand, EnforcementRequirement, GpuRequest, LaunchMode, Share, Sharing, Spread};
use cohabit_wire::codec;
use serde::{Deserialize, Serialize};

/// How many `&self` methods of an actor run beside each other, unless it says otherwise.
pub const DEFAULT_CONCURRENCY: u32 = 16;

/// What the job of an actor or of tasks claims, as the attribute says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// Thousandths of a GPU.
    pub gpus: u32,
    /// Bytes of memory on each GPU.
    pub gpu_memory: Option<u64>,
    /// Cores.
    pub cpus: u32,
    /// Bytes of host memory.
    pub memory: u64,
    /// Whether it shares GPUs only where limits are enforced.
    pub enforced: bool,
    /// Whether nobody else may join its GPU.
    pub exclusive: bool,
}

/// What the attribute of an actor says.
#[derive(Debug, Clone, Copy)]
pub struct ActorOptions {
    /// What its job claims.
    pub claims: Claims,
    /// How often its process may be started again.
    pub restarts: u32,
    /// Most `&self` methods at the same time.
    pub concurrency: u32,
}

/// What the attribute of a task says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOptions {
    /// What the jobs claim that run it.
    pub claims: Claims,
    /// How often it is sent again after the end of a process that had got it.
    pub retries: u32,
    /// What happens after an error or a panic.
    pub on_error: OnTaskError,
}

/// What a job claims beside GPUs: it passes through the cores as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunnerClaims {
    gpu_memory: Option<u64>,
    cpus: u32,
    memory: u64,
    enforced: bool,
    exclusive: bool,
}

impl Claims {
    #[cfg(test)]
    pub(crate) const NONE: Claims =
        Claims { gpus: 0, gpu_memory: None, cpus: 0, memory: 0, enforced: false, exclusive: false };

    /// What the cores know and pass through, unless no job with so many processes can demand it.
    ///
    /// # Errors
    /// In words, if none can.
    pub(crate) fn encode(&self, ranks: u32) -> Result<(Share, Bytes), String> {
        let Claims { gpus, gpu_memory, cpus, memory, enforced, exclusive } = *self;
        let (gpus, claims) = (Share(gpus), RunnerClaims { gpu_memory, cpus, memory, enforced, exclusive });
        claims.of_gang(gpus, ranks).0.check()?;
        Ok((gpus, codec::encode(&claims).expect("a few numbers fit")))
    }
}

impl TaskOptions {
    /// The runners that can run a task with these options.
    ///
    /// # Errors
    /// In words, if no job can claim that much.
    pub(crate) fn class(&self) -> Result<TaskClass, String> {
        let (gpus, claims) = self.claims.encode(1)?;
        Ok(TaskClass { gpus, claims })
    }
}

impl RunnerClaims {
    /// # Errors
    /// In words, if a process of another program encoded them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<RunnerClaims, String> {
        codec::decode(bytes).map_err(|error| error.to_string())
    }

    /// What the job of a gang demands in which each of so many members claims this, and how its processes
    /// start. Whole GPUs of any nodes can only be had one for each process.
    pub(crate) fn of_gang(&self, gpus: Share, ranks: u32) -> (Demand, LaunchMode) {
        let one = self.demand(gpus);
        if ranks == 1 {
            return (one, LaunchMode::PerNode);
        }
        let memory = cohabit_types::Bytes(one.memory.0.saturating_mul(ranks.into()));
        let all = Demand { cpus: one.cpus.saturating_mul(ranks), memory, ..one };
        match one.gpus {
            GpuRequest::Whole(0) => (all, LaunchMode::PerGpu),
            GpuRequest::Whole(1) => {
                let (gpus, spread) = (GpuRequest::Whole(ranks), Spread::Free);
                (Demand { gpus, spread, ..all }, LaunchMode::PerGpu)
            }
            GpuRequest::Whole(_) | GpuRequest::Part(_) => {
                (Demand { nodes: ranks, ..one }, LaunchMode::PerNode)
            }
        }
    }

    /// What the job of a single process demands.
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
        let claims = Claims {
            gpus: 250,
            gpu_memory: Some(8 << 30),
            cpus: 2,
            memory: 1 << 20,
            enforced: true,
            exclusive: false,
        };
        let (gpus, claims) = claims.encode(1).unwrap();
        let claims = RunnerClaims::decode(&claims).unwrap();
        let demand = claims.demand(gpus);
        assert_eq!(demand.gpus, GpuRequest::Part(Share(250)));
        assert_eq!((demand.gpu_memory, demand.cpus), (Some(cohabit_types::Bytes(8 << 30)), 2));
        assert_eq!(demand.limits, EnforcementRequirement::Enforced);
        assert_eq!(demand.check(), Ok(()));
        assert_eq!(claims.demand(Share(2_000)).gpus, GpuRequest::Whole(2));
        assert_eq!(claims.demand(Share(0)).gpus, GpuRequest::Whole(0));
        let refused = Claims { gpu_memory: Some(1), ..Claims::NONE }.encode(1).unwrap_err();
        assert!(refused.contains("GPU memory but for no GPU"), "{refused}");
    }

    #[test]
    fn gangs_are_placed_by_what_their_members_claim() {
        let of_four = |gpus| {
            let claims = Claims { gpus, cpus: 2, memory: 1 << 20, ..Claims::NONE };
            let (gpus, claims) = claims.encode(4).unwrap();
            let (demand, launch) = RunnerClaims::decode(&claims).unwrap().of_gang(gpus, 4);
            assert_eq!(demand.check(), Ok(()));
            ((demand.nodes, demand.gpus, demand.spread), (demand.cpus, demand.memory.0 >> 20), launch)
        };
        let beside = ((1, GpuRequest::Whole(0), Spread::Even), (8, 4), LaunchMode::PerGpu);
        assert_eq!(of_four(0), beside, "on one node");
        let anywhere = ((1, GpuRequest::Whole(4), Spread::Free), (8, 4), LaunchMode::PerGpu);
        assert_eq!(of_four(1_000), anywhere, "on any nodes");
        let apart = |gpus| ((4, gpus, Spread::Even), (2, 1), LaunchMode::PerNode);
        assert_eq!(of_four(2_000), apart(GpuRequest::Whole(2)), "each on its own node");
        assert_eq!(of_four(500), apart(GpuRequest::Part(Share(500))));
    }
}
