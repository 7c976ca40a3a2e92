//! The rules by which one of the GPUs is chosen, once the interference on each is known.

use crate::interference::{InterferenceContext, PredictionCache};
use crate::placement::Outlooks;
use crate::sharing::multi_stage::{ContentionDegree, MultiStageEstimate, estimate_all};
use crate::sharing::{DeviceChoice, DeviceChooser, FreeDevice, Jobs, compute_slowness};
use crate::{PendingJob, Shortage};

/// What the paper leaves open, and where its released code differs.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct IsacppOptions {
    /// How contention is computed.
    pub(crate) contention: ContentionDegree,
    /// The rule by which a GPU is chosen.
    pub(crate) selection: GpuSelection,
    /// The weight of a slower kind of GPU against interference.
    pub(crate) speed_weight: f64,
}

/// The rule by which a GPU is chosen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GpuSelection {
    /// The GPU with the least overall interference.
    #[default]
    LeastInterference,
    /// As in the released code: the node whose worst GPU is best, and on it the first GPU that fits.
    AsReleased,
}

/// Puts a newcomer where it and its neighbors interfere least until they end.
#[derive(Debug)]
pub(crate) struct Isacpp {
    options: IsacppOptions,
    cache: PredictionCache,
}

impl Isacpp {
    pub(crate) fn new(options: IsacppOptions, context: &InterferenceContext) -> Isacpp {
        Isacpp { options, cache: PredictionCache::new(context.interference.clone()) }
    }
}

impl DeviceChooser for Isacpp {
    fn set_interference(&mut self, context: &InterferenceContext) {
        self.cache = PredictionCache::new(context.interference.clone());
    }

    fn choose(
        &mut self,
        newcomer: &PendingJob,
        devices: &[FreeDevice<'_>],
        jobs: &mut Jobs,
        _: &dyn Outlooks,
    ) -> Result<DeviceChoice, Shortage> {
        let expected = estimate_all(newcomer.id, devices, jobs, &mut self.cache, self.options.contention);
        let slowness = compute_slowness(newcomer.id, devices, jobs);
        let by_speed = |slowness: &f64| self.options.speed_weight * (slowness - 1.0);
        let scores: Vec<f64> = expected
            .iter()
            .zip(&slowness)
            .map(|(it, slowness)| it.interference + by_speed(slowness))
            .collect();
        let device = match self.options.selection {
            GpuSelection::LeastInterference => least_interference(devices, &expected, &scores, &slowness),
            GpuSelection::AsReleased => as_released(devices, &scores),
        };
        let why = explain(&expected[device], devices.len());
        Ok(DeviceChoice { slowdown: Some(expected[device].slowdown), why, ..DeviceChoice::new(device) })
    }
}

/// The device with the least score among those where memory probably fits, if any; among equals, the one
/// with more free memory, then the faster one, then the first.
fn least_interference(
    devices: &[FreeDevice<'_>],
    expected: &[MultiStageEstimate],
    scores: &[f64],
    slowness: &[f64],
) -> usize {
    let before = |one: &usize, other: &usize| {
        let (one, other) = (*one, *other);
        let likelier_to_fit = expected[other].fits.cmp(&expected[one].fits);
        let more_memory = devices[other].view.memory_free.cmp(&devices[one].view.memory_free);
        let faster = slowness[one].total_cmp(&slowness[other]);
        likelier_to_fit.then(scores[one].total_cmp(&scores[other])).then(more_memory).then(faster)
    };
    (0..devices.len()).min_by(before).expect("there is at least one device")
}

/// The first device of the first node whose largest score is least.
fn as_released(devices: &[FreeDevice<'_>], scores: &[f64]) -> usize {
    let of_node = |device: &usize| {
        let same = |(other, _): &(&FreeDevice<'_>, &f64)| other.node.id == devices[*device].node.id;
        devices.iter().zip(scores).filter(same).map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max)
    };
    let before = |one: &usize, other: &usize| of_node(one).total_cmp(&of_node(other));
    (0..devices.len()).min_by(before).expect("there is at least one device")
}

fn explain(expected: &MultiStageEstimate, devices: usize) -> String {
    let MultiStageEstimate { interference, slowdown, neighbors, fits } = expected;
    let jobs = match neighbors {
        0 => return String::new(),
        1 => "1 job".to_owned(),
        more => format!("{more} jobs"),
    };
    let doubt = if *fits { "" } else { "; their memory may not fit" };
    format!(
        "shares a GPU with {jobs}, the best of {devices} with room: interference {interference:.2}, expected \
         slowdown {slowdown:.2}{doubt}"
    )
}
