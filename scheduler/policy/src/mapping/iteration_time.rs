//! The time of one iteration for a given placement: the paper's alpha.
//!
//! A replica computes, exchanges activations with the neighboring stages, and sums up gradients in the ring
//! of its stage. What stays on the server uses the interconnect, the rest its share of the network card. The
//! times of a server follow from the replicas on it alone, never from other servers or other jobs.

use super::graph::{GraphStage, JobGraph};
use super::server::DeviceClass;
use super::{IterationModel, NicShare};

/// Traffic is symmetric and links are full duplex, so half of the bytes go each way at the same time.
const DUPLEX: f64 = 2.0;

/// The devices of one class, as one job uses them.
#[derive(Debug, Clone)]
pub(super) struct DeviceSpeeds {
    share: f64,
    interconnect: f64,
    /// Seconds that one replica of each stage computes.
    compute: Vec<f64>,
}

impl DeviceSpeeds {
    pub(super) fn of(graph: &JobGraph, kind: &DeviceClass) -> DeviceSpeeds {
        let compute = graph.stages().iter().map(|stage| stage.compute_seconds_on(&kind.model)).collect();
        DeviceSpeeds { share: kind.share(), interconnect: kind.interconnect(), compute }
    }

    /// The usual device, on which sending takes no time.
    pub(super) fn unlinked(graph: &JobGraph) -> DeviceSpeeds {
        let compute = graph.stages().iter().map(GraphStage::compute_seconds).collect();
        DeviceSpeeds { share: f64::INFINITY, interconnect: f64::INFINITY, compute }
    }

    /// Seconds to exchange these bytes within the server.
    fn inside(&self, bytes: f64) -> f64 {
        seconds(bytes, DUPLEX * self.interconnect)
    }

    /// Seconds to exchange these bytes with other servers over the device's own share; they pass its
    /// interconnect too.
    fn outside(&self, bytes: f64) -> f64 {
        seconds(bytes, DUPLEX * self.share.min(self.interconnect))
    }
}

/// No bytes take no time, even without a link.
fn seconds(bytes: f64, rate: f64) -> f64 {
    if bytes > 0.0 { bytes / rate } else { 0.0 }
}

/// What an iteration costs the slowest replica of one stage on one server, in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct StageSeconds {
    /// Computing, and exchanging with the neighboring stages.
    pub(super) pass: f64,
    /// Summing up gradients.
    pub(super) ring: f64,
}

impl StageSeconds {
    /// One after the other: there is no overlap.
    pub(super) fn total(self) -> f64 {
        self.pass + self.ring
    }

    pub(super) const fn max(self, other: StageSeconds) -> StageSeconds {
        StageSeconds { pass: self.pass.max(other.pass), ring: self.ring.max(other.ring) }
    }

    pub(super) const fn min(self, other: StageSeconds) -> StageSeconds {
        StageSeconds { pass: self.pass.min(other.pass), ring: self.ring.min(other.ring) }
    }
}

/// Bytes that each of some replicas on one server exchanges.
#[derive(Debug, Clone, Copy)]
struct Load {
    replicas: u32,
    inside: f64,
    outside: f64,
}

/// Replicas on servers, and the iteration time that results.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arrangement {
    /// Replicas of each stage on each server, in rows of servers.
    pub(super) replicas: Vec<u32>,
    /// Seconds of one iteration.
    pub(super) alpha: f64,
}

/// The model of an iteration, for one job.
#[derive(Debug, Clone, Copy)]
pub(super) struct IterationTime<'g> {
    pub(super) graph: &'g JobGraph,
    pub(super) iteration: IterationModel,
    pub(super) nic_share: NicShare,
}

impl IterationTime<'_> {
    /// The times of the replicas on one server, stage by stage; stages without replicas take none.
    pub(super) fn server(&self, site: &DeviceSpeeds, replicas: &[u32], out: &mut [StageSeconds]) {
        match self.nic_share {
            NicShare::Device => self.server_with(site, replicas, out, &|_| &[]),
            NicShare::Job => {
                let present = || (0..replicas.len()).filter(|stage| replicas[*stage] > 0);
                let pipeline: Vec<Load> =
                    present().map(|stage| self.pipeline_load(stage, replicas)).collect();
                let rings: Vec<Load> = present().flat_map(|stage| self.ring_loads(stage, replicas)).collect();
                self.server_with(site, replicas, out, &|phase| match phase {
                    Phase::Pipeline => &pipeline,
                    Phase::Rings => &rings,
                });
            }
        }
    }

    fn server_with<'l>(
        &self,
        site: &DeviceSpeeds,
        replicas: &[u32],
        out: &mut [StageSeconds],
        competing: &dyn Fn(Phase) -> &'l [Load],
    ) {
        let devices: u32 = replicas.iter().sum();
        for (stage, seconds) in out.iter_mut().enumerate() {
            if replicas[stage] == 0 {
                *seconds = StageSeconds::default();
                continue;
            }
            let exchange = |load: &Load, phase| {
                let leaving = pooled(site, load.outside, competing(phase), devices);
                site.inside(load.inside) + leaving.unwrap_or_else(|| site.outside(load.outside))
            };
            let pipeline = exchange(&self.pipeline_load(stage, replicas), Phase::Pipeline);
            let rings = self.ring_loads(stage, replicas);
            let ring = rings.map(|load| exchange(&load, Phase::Rings)).fold(0.0, f64::max);
            *seconds = StageSeconds { pass: site.compute[stage] + pipeline, ring };
        }
    }

    /// What each replica of a stage on a server exchanges with other stages.
    fn pipeline_load(&self, stage: usize, replicas: &[u32]) -> Load {
        let mut load = Load { replicas: replicas[stage], inside: 0.0, outside: 0.0 };
        for (other, weight) in self.graph.neighbors(stage) {
            let here = replicas[other];
            load.inside += weight * f64::from(here);
            load.outside += weight * f64::from(self.graph.stages()[other].replicas - here);
        }
        load
    }

    /// What the replicas of a stage on a server exchange in their ring. They are neighbors on it, so only
    /// the two ends have a link to another server, and a single replica has two.
    fn ring_loads(&self, stage: usize, replicas: &[u32]) -> impl Iterator<Item = Load> {
        let here = replicas[stage];
        let node = &self.graph.stages()[stage];
        let load = |replicas: u32, links_outside: f64| Load {
            replicas,
            inside: node.ring_link * (2.0 - links_outside),
            outside: node.ring_link * links_outside,
        };
        let loads = match here {
            _ if here == node.replicas => [load(here, 0.0), load(0, 0.0)],
            1 => [load(1, 2.0), load(0, 0.0)],
            _ => [load(2, 1.0), load(here - 2, 0.0)],
        };
        loads.into_iter().filter(|load| load.replicas > 0)
    }

    /// The time of one iteration from the times of all servers: rows of as many stages as the graph has.
    pub(super) fn combine(&self, servers: &[StageSeconds]) -> f64 {
        match self.iteration {
            IterationModel::Bottleneck => servers.iter().map(|it| it.total()).fold(0.0, f64::max),
            IterationModel::Synchronous { micro_batches } => self.synchronous(servers, micro_batches),
        }
    }

    /// The pipeline fills with one micro-batch of each stage; the others follow at the pace of the slowest
    /// stage.
    fn synchronous(&self, servers: &[StageSeconds], micro_batches: u32) -> f64 {
        let stages = self.graph.stages().len();
        let slowest = |stage| servers[stage..].iter().step_by(stages).map(|it| it.pass).fold(0.0, f64::max);
        let passes = || (0..stages).map(slowest);
        let parts = f64::from(micro_batches.max(1));
        let pipeline = (passes().sum::<f64>() + (parts - 1.0) * passes().fold(0.0, f64::max)) / parts;
        pipeline + servers.iter().map(|it| it.ring).fold(0.0, f64::max)
    }

    /// The time of a stage where everything it sends stays on one server.
    pub(super) fn together(&self, site: &DeviceSpeeds, stage: usize) -> StageSeconds {
        let ring = site.inside(DUPLEX * self.graph.stages()[stage].ring_link);
        StageSeconds { pass: site.compute[stage] + site.inside(self.graph.pipeline_bytes(stage)), ring }
    }

    /// The time of a stage where everything it sends goes to other servers.
    pub(super) fn apart(&self, site: &DeviceSpeeds, stage: usize) -> StageSeconds {
        let ring = site.outside(DUPLEX * self.graph.stages()[stage].ring_link);
        StageSeconds { pass: site.compute[stage] + site.outside(self.graph.pipeline_bytes(stage)), ring }
    }
}

/// Pipelines run while a batch passes, rings afterwards: the two do not compete.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Pipeline,
    Rings,
}

/// Seconds until `bytes` have left over the pooled shares of `devices` devices while `loads` leave too: each
/// gets an equal part, and a load that is done leaves its part to the others. `None` without a pool.
fn pooled(site: &DeviceSpeeds, bytes: f64, loads: &[Load], devices: u32) -> Option<f64> {
    let ahead = |load: &Load| f64::from(load.replicas) * load.outside.min(bytes);
    let sent: f64 = loads.iter().map(ahead).sum();
    let over_the_card = seconds(sent, DUPLEX * site.share * f64::from(devices));
    (!loads.is_empty()).then(|| over_the_card.max(site.inside(bytes)))
}
