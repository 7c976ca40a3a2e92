//! The choice between idle devices and those that a newcomer may join: the device on which it and its
//! neighbors are done soonest, in sum.
//!
//! Which devices may be joined is decided by `sharing_filter.rs`; whether the job should rather wait, by
//! A-SRPT.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{GpuRequest, JobId, NodeId, Share, Slowdown, Span, Time};

use super::HybridOptions;
use super::admission::{Confidence, inflate_by_uncertainty};
use super::resident_groups::{DeviceResidents, ResidentGroups};
use super::sharing_filter::{AdmittedDevice, SharingFilter};
use super::standings::{DeviceStanding, Standings, what_is_late};
use super::verdicts::Verdicts;
use crate::interference::{ColocationEstimate, InterferenceContext, PredictionCache};
use crate::mapping::Toggle;
use crate::placement::{JobOutlook, Outlooks};
use crate::sharing::multi_stage::{ContentionDegree, DeviceTimeline, run_stages};
use crate::sharing::{DeviceChoice, DeviceChooser, FreeDevice, Jobs, compute_slowness};
use crate::{ExclusiveReason, PendingJob, SharingConflict, Shortage, ViewChange};

/// Devices that are simulated to the end: the best ones by their first stage.
const MAX_SIMULATED: usize = 8;

/// Puts a newcomer where it costs all jobs the least time, within the slowdown limit of each.
#[derive(Debug)]
pub(super) struct LeastCostChooser {
    options: HybridOptions,
    max_slowdown: Option<Slowdown>,
    /// Jobs that wait for each device.
    backlog: f64,
    cache: PredictionCache,
    groups: ResidentGroups,
    verdicts: Verdicts,
    standings: Standings,
    /// Whether the last choice knew all that it asked the predictor about.
    is_settled: bool,
}

/// What a device costs the newcomer and the jobs on it.
#[derive(Debug, Clone, Copy)]
struct DeviceCost {
    device: usize,
    confidence: Confidence,
    /// The cost, in seconds.
    price: f64,
    /// The slowdown of the newcomer, as a factor of at least 1.
    slowdown: f64,
    /// The number of residents.
    neighbors: usize,
    /// How many seconds later the newcomer ends because of its neighbors.
    own_delay: f64,
    /// How many seconds later its neighbors end, in sum.
    others_delay: f64,
    /// How many seconds sooner the jobs that wait start because of it, in sum; negative where later.
    queue_gain: f64,
}

impl LeastCostChooser {
    pub(super) fn new(options: HybridOptions, context: &InterferenceContext) -> LeastCostChooser {
        let cache = PredictionCache::new(context.interference.clone());
        let max_slowdown = context.max_slowdown;
        LeastCostChooser {
            options,
            max_slowdown,
            backlog: 0.0,
            cache,
            groups: ResidentGroups::default(),
            verdicts: Verdicts::default(),
            standings: Standings::default(),
            is_settled: true,
        }
    }

    /// The costs of the devices that may be joined, simulated to the end.
    fn price_shared_devices(
        &mut self,
        newcomer: JobId,
        devices: &[FreeDevice<'_>],
        taken: &[usize],
        slowness: &[f64],
        jobs: &mut Jobs,
        outlooks: &dyn Outlooks,
    ) -> Result<Vec<DeviceCost>, Shortage> {
        self.is_settled = true;
        if self.options.sharing == Toggle::Off {
            return Err(refuse_sharing(devices, taken));
        }
        let HybridOptions { caution, harm_weight, .. } = self.options;
        let max_slowdown = self.max_slowdown;
        self.verdicts.make_room();
        if self.groups.make_room() {
            self.verdicts = Verdicts::default();
        }
        let groups = self.groups.of(devices, taken, jobs);
        let (cache, verdicts) = (&mut self.cache, &mut self.verdicts);
        let mut filter =
            SharingFilter { newcomer, cache, verdicts, jobs, caution, max_slowdown, is_settled: true };
        let admitted = filter.list_admitted(&groups);
        self.is_settled = filter.is_settled;
        let mut admitted = admitted?;
        let alone = jobs.profile(newcomer).runtime.as_secs_f64();
        let first_stage = |it: &AdmittedDevice| price_first_stage(it, alone, harm_weight);
        admitted.sort_by_cached_key(|it| (it.confidence, Span::from_secs_f64(first_stage(it)), it.device));
        admitted.truncate(MAX_SIMULATED);
        let joined: Vec<(FreeDevice<'_>, Arc<DeviceResidents>)> =
            admitted.iter().map(|it| (devices[it.device], Arc::clone(&it.residents))).collect();
        let without = self.standings.of(&joined, jobs, outlooks, &mut self.cache);
        let mut with: Vec<DeviceTimeline> =
            without.iter().map(|standing| standing.work.timeline_with(newcomer, jobs)).collect();
        run_stages(&mut with, &mut self.cache, ContentionDegree::default());
        let own = what_is_late(newcomer, jobs);
        let mut conflict = None;
        let mut costs = Vec::new();
        for ((it, with), without) in admitted.iter().zip(&with).zip(&without) {
            if let Some(later) = self.find_later(newcomer, own, it, without, with.ends(), jobs.now()) {
                conflict.get_or_insert(later);
                continue;
            }
            let [end, others @ ..] = with.ends() else { unreachable!("the newcomer is there") };
            let later = |(with, without): (&f64, &f64)| (with - without).max(0.0);
            let others_delay: f64 = others.iter().zip(&without.ends).map(later).sum();
            let own_delay = (end - alone).max(0.0);
            let own_price = (end * slowness[it.device] - alone).max(0.0);
            let queue_gain =
                self.options.queue_weight * self.backlog * self.device_time_gained(it, with.ends());
            costs.push(DeviceCost {
                device: it.device,
                confidence: it.confidence,
                price: own_price + harm_weight * others_delay - queue_gain,
                slowdown: if alone > 0.0 { (end / alone).max(1.0) } else { 1.0 },
                neighbors: it.residents.jobs.len(),
                own_delay,
                others_delay,
                queue_gain,
            });
        }
        match conflict {
            Some(conflict) if costs.is_empty() => {
                Err(Shortage::Slowdown { devices: taken.len() as u32, conflict })
            }
            Some(_) | None => Ok(costs),
        }
    }

    /// The first job that would be done later than without sharing by more than the tolerance. `own` is what
    /// is expected of the newcomer.
    fn find_later(
        &self,
        newcomer: JobId,
        own: Option<JobOutlook>,
        admitted: &AdmittedDevice,
        standing: &DeviceStanding,
        ends: &[f64],
        now: Time,
    ) -> Option<SharingConflict> {
        let residents = admitted.residents.jobs.iter().copied().zip(standing.expected.iter().copied());
        let members = [(newcomer, own)].into_iter().chain(residents);
        members.zip(ends).find_map(|((job, outlook), end)| {
            let outlook = outlook?;
            let with = now.since(outlook.submitted_at).as_secs_f64() + end;
            let without = outlook.completion_without_sharing.as_secs_f64();
            let neighbor = (job != newcomer).then_some(job);
            let by = Span::from_secs_f64(with - without);
            (with > without * (1.0 + self.options.later)).then_some(SharingConflict::Later { neighbor, by })
        })
    }

    /// The work that the jobs of a device do in addition because of the newcomer while it is there, in
    /// seconds of one job on one device. Doubt counts against it.
    fn device_time_gained(&mut self, joined: &AdmittedDevice, ends: &[f64]) -> f64 {
        let caution = self.options.caution;
        let speed = |it: &ColocationEstimate| 1.0 / inflate_by_uncertainty(it, caution).max(1.0);
        let together: f64 = joined.verdict.together.iter().map(speed).sum();
        let before: f64 = joined.before.iter().map(speed).sum();
        let [newcomer, others @ ..] = ends else { return 0.0 };
        let last = others.iter().copied().fold(0.0, f64::max);
        (together - before) * newcomer.min(last)
    }

    /// The cost of one idle device of each kind: the one that leaves the most room for whole nodes.
    fn price_idle_devices(
        &self,
        newcomer: JobId,
        devices: &[FreeDevice<'_>],
        idle: &[usize],
        slowness: &[f64],
        jobs: &Jobs,
    ) -> Vec<DeviceCost> {
        let mut on_node: BTreeMap<NodeId, usize> = BTreeMap::new();
        idle.iter().for_each(|device| *on_node.entry(devices[*device].node.id).or_default() += 1);
        let alone = jobs.profile(newcomer).runtime.as_secs_f64();
        let weight = if jobs.has_waiting_whole_device_jobs() { self.options.idle_price } else { 0.0 };
        let mut best: BTreeMap<&str, usize> = BTreeMap::new();
        for device in idle {
            let left = |device: usize| on_node[&devices[device].node.id];
            let known = best.entry(&devices[*device].view.model).or_insert(*device);
            if left(*device) < left(*known) {
                *known = *device;
            }
        }
        let cost = |device: usize| DeviceCost {
            device,
            confidence: Confidence::Known,
            price: alone * (slowness[device] - 1.0 + weight),
            slowdown: 1.0,
            neighbors: 0,
            own_delay: 0.0,
            others_delay: 0.0,
            queue_gain: 0.0,
        };
        best.into_values().map(cost).collect()
    }
}

impl DeviceChooser for LeastCostChooser {
    fn set_interference(&mut self, context: &InterferenceContext) {
        self.cache = PredictionCache::new(context.interference.clone());
        self.groups = ResidentGroups::default();
        self.verdicts = Verdicts::default();
        self.standings.clear();
        self.max_slowdown = context.max_slowdown;
    }

    fn learn(&mut self, changes: &[ViewChange]) {
        self.groups.learn(changes);
        self.standings.clear();
    }

    fn is_settled(&self) -> bool {
        self.is_settled
    }

    fn set_backlog(&mut self, jobs_per_device: f64) {
        self.backlog = jobs_per_device;
    }

    fn choose(
        &mut self,
        newcomer: &PendingJob,
        devices: &[FreeDevice<'_>],
        jobs: &mut Jobs,
        outlooks: &dyn Outlooks,
    ) -> Result<DeviceChoice, Shortage> {
        let (idle, taken): (Vec<usize>, Vec<usize>) =
            (0..devices.len()).partition(|device| devices[*device].view.jobs.is_empty());
        let slowness = compute_slowness(newcomer.id, devices, jobs);
        let mut costs = self.price_idle_devices(newcomer.id, devices, &idle, &slowness, jobs);
        match self.price_shared_devices(newcomer.id, devices, &taken, &slowness, jobs, outlooks) {
            Ok(joined) => costs.extend(joined),
            Err(shortage) if costs.is_empty() => return Err(shortage),
            Err(_) => {}
        }
        let before = |one: &&DeviceCost, other: &&DeviceCost| {
            let surer = one.confidence.cmp(&other.confidence);
            let more_memory =
                devices[other.device].view.memory_free.cmp(&devices[one.device].view.memory_free);
            surer
                .then(one.price.total_cmp(&other.price))
                .then(more_memory)
                .then(one.device.cmp(&other.device))
        };
        let best = costs.iter().min_by(before).expect("there is at least one device");
        Ok(DeviceChoice {
            slowdown: Some(best.slowdown),
            delay: Span::from_secs_f64((best.own_delay + best.others_delay - best.queue_gain).max(0.0)),
            why: explain(best, devices.len()),
            ..DeviceChoice::new(best.device)
        })
    }
}

/// The cost of joining if the first stage lasted until the newcomer is done, in seconds.
fn price_first_stage(admitted: &AdmittedDevice, alone: f64, harm_weight: f64) -> f64 {
    let [newcomer, others @ ..] = &admitted.verdict.together[..] else { return 0.0 };
    let harm = |(left, estimates): (&Option<f64>, &ColocationEstimate)| {
        left.map_or(alone, |left| left.min(alone)) * (estimates.slowdown - 1.0)
    };
    alone * (newcomer.slowdown - 1.0)
        + harm_weight * admitted.residents.left.iter().zip(others).map(harm).sum::<f64>()
}

/// The shortage where devices with residents have room but sharing is switched off.
fn refuse_sharing(devices: &[FreeDevice<'_>], taken: &[usize]) -> Shortage {
    let share = taken.iter().map(|device| devices[*device].view.free).max().unwrap_or(Share(0));
    Shortage::Devices {
        needed: GpuRequest::Whole(1),
        alone: Some(ExclusiveReason::Policy),
        whole: 0,
        share,
        out: 0,
    }
}

fn explain(best: &DeviceCost, devices: usize) -> String {
    let DeviceCost { slowdown, neighbors, own_delay, others_delay, confidence, .. } = best;
    let jobs = match neighbors {
        0 => return String::new(),
        1 => "1 job".to_owned(),
        more => format!("{more} jobs"),
    };
    let doubt = match confidence {
        Confidence::Known => "",
        Confidence::Unknown => "; nothing is known yet about such jobs together",
    };
    let (own, others) = (Span::from_secs_f64(*own_delay), Span::from_secs_f64(*others_delay));
    format!(
        "shares a GPU with {jobs}, the best of {devices} with room: expected slowdown {slowdown:.2}, \
         which delays it by {own} and the others by {others}{doubt}"
    )
}
