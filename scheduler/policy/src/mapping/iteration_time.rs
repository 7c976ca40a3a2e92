//! The time of one iteration for a given placement: the paper's alpha.
//!
//! A replica computes, exchanges activations with the neighboring stages, and sums up gradients in the ring
//! of its stage. What stays on the server uses the interconnect, the rest its share of the network card; the
//! slower of its two directions counts (`traffic.rs`). The times of a server follow from the replicas on it
//! alone, never from other servers or other jobs.

use super::graph::{GraphStage, JobGraph};
use super::server::DeviceClass;
use super::traffic::{LinkRates, transfer_seconds};
use super::{IterationModel, NicShare};

/// A pipeline edge carries half of its bytes each way.
const PIPELINE_DIRECTIONS: f64 = 2.0;

/// The devices of one class, as one job uses them.
#[derive(Debug, Clone)]
pub(super) struct DeviceSpeeds {
    rates: LinkRates,
    /// Seconds that one replica of each stage computes.
    compute: Vec<f64>,
}

impl DeviceSpeeds {
    pub(super) fn of(graph: &JobGraph, kind: &DeviceClass) -> DeviceSpeeds {
        let compute = graph.stages().iter().map(|stage| stage.compute_seconds_on(&kind.model)).collect();
        DeviceSpeeds { rates: kind.rates(), compute }
    }

    /// The usual device, on which sending takes no time.
    pub(super) fn unlinked(graph: &JobGraph) -> DeviceSpeeds {
        let compute = graph.stages().iter().map(GraphStage::compute_seconds).collect();
        DeviceSpeeds { rates: LinkRates { share: f64::INFINITY, interconnect: f64::INFINITY }, compute }
    }

    /// Seconds to send these bytes within the server, or to receive them.
    fn inside(&self, bytes: f64) -> f64 {
        transfer_seconds(bytes, self.rates.interconnect)
    }

    /// Seconds to send these bytes to other servers over the device's own share, or to receive them.
    fn outside(&self, bytes: f64) -> f64 {
        transfer_seconds(bytes, self.rates.outside())
    }
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

/// Bytes in one direction of some replicas on one server; in the other direction, as many replicas have as
/// many bytes.
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
                let rings: Vec<Load> = present().map(|stage| self.ring_load(stage, replicas)).collect();
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
            let ring = exchange(&self.ring_load(stage, replicas), Phase::Rings);
            *seconds = StageSeconds { pass: site.compute[stage] + pipeline, ring };
        }
    }

    /// What each replica of a stage on a server sends to other stages, and receives from them.
    fn pipeline_load(&self, stage: usize, replicas: &[u32]) -> Load {
        let mut load = Load { replicas: replicas[stage], inside: 0.0, outside: 0.0 };
        for (other, weight) in self.graph.neighbors(stage) {
            let (here, each_way) = (replicas[other], weight / PIPELINE_DIRECTIONS);
            load.inside += each_way * f64::from(here);
            load.outside += each_way * f64::from(self.graph.stages()[other].replicas - here);
        }
        load
    }

    /// What the slowest replica of a stage on a server sends or receives in their ring.
    ///
    /// The ring passes through one server after the other. A server with a part of the stage has one replica
    /// that sends over the network and one that receives over it: the two ends, or a single replica that
    /// does both at the same time. The others send and receive as much within the server, no slower.
    fn ring_load(&self, stage: usize, replicas: &[u32]) -> Load {
        let node = &self.graph.stages()[stage];
        match replicas[stage] {
            here if here == node.replicas => Load { replicas: here, inside: node.ring_link, outside: 0.0 },
            _ => Load { replicas: 1, inside: 0.0, outside: node.ring_link },
        }
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
        self.all_of(site, stage, |bytes| site.inside(bytes))
    }

    /// The time of a stage where everything it sends goes to other servers.
    pub(super) fn apart(&self, site: &DeviceSpeeds, stage: usize) -> StageSeconds {
        self.all_of(site, stage, |bytes| site.outside(bytes))
    }

    fn all_of(&self, site: &DeviceSpeeds, stage: usize, seconds: impl Fn(f64) -> f64) -> StageSeconds {
        let pipeline = self.graph.pipeline_bytes(stage) / PIPELINE_DIRECTIONS;
        let ring = seconds(self.graph.stages()[stage].ring_link);
        StageSeconds { pass: site.compute[stage] + seconds(pipeline), ring }
    }
}

/// Pipelines run while a batch passes, rings afterwards: the two do not compete.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Pipeline,
    Rings,
}

/// Seconds until `bytes` have left over the pooled shares of `devices` devices while `loads` leave too: each
/// gets an equal part, and a load that is done leaves its part to the others. Arriving bytes take as long, at
/// the same time. `None` without a pool.
fn pooled(site: &DeviceSpeeds, bytes: f64, loads: &[Load], devices: u32) -> Option<f64> {
    let ahead = |load: &Load| f64::from(load.replicas) * load.outside.min(bytes);
    let sent: f64 = loads.iter().map(ahead).sum();
    let over_the_card = transfer_seconds(sent, site.rates.share * f64::from(devices));
    (!loads.is_empty()).then(|| over_the_card.max(site.inside(bytes)))
}
