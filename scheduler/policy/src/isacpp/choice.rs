//! The rules by which one of the GPUs is chosen, once the interference on each is known.

use crate::interference::{InterferenceContext, PredictionCache};
use crate::sharing::multi_stage::{ContentionDegree, MultiStageEstimate, expected};
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
    asked: PredictionCache,
}

impl Isacpp {
    pub(crate) fn new(options: IsacppOptions, knowledge: &InterferenceContext) -> Isacpp {
        Isacpp { options, asked: PredictionCache::new(knowledge.interference.clone()) }
    }
}

impl DeviceChooser for Isacpp {
    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        self.asked = PredictionCache::new(knowledge.interference.clone());
    }

    fn choose(
        &mut self,
        newcomer: &PendingJob,
        seats: &[FreeDevice<'_>],
        jobs: &mut Jobs,
    ) -> Result<DeviceChoice, Shortage> {
        let expected = expected(newcomer.id, seats, jobs, &mut self.asked, self.options.contention);
        let slowness = compute_slowness(newcomer.id, seats, jobs);
        let by_speed = |slowness: &f64| self.options.speed_weight * (slowness - 1.0);
        let scores: Vec<f64> = expected
            .iter()
            .zip(&slowness)
            .map(|(it, slowness)| it.interference + by_speed(slowness))
            .collect();
        let seat = match self.options.selection {
            GpuSelection::LeastInterference => least_interference(seats, &expected, &scores, &slowness),
            GpuSelection::AsReleased => as_released(seats, &scores),
        };
        let why = why(&expected[seat], seats.len());
        Ok(DeviceChoice { slowdown: Some(expected[seat].slowdown), why, ..DeviceChoice::new(seat) })
    }
}

/// The device with the least score among those where memory probably fits, if any; among equals, the one
/// with more free memory, then the faster one, then the first.
fn least_interference(
    seats: &[FreeDevice<'_>],
    expected: &[MultiStageEstimate],
    scores: &[f64],
    slowness: &[f64],
) -> usize {
    let before = |one: &usize, other: &usize| {
        let (one, other) = (*one, *other);
        let likelier_to_fit = expected[other].fits.cmp(&expected[one].fits);
        let more_memory = seats[other].device.memory_free.cmp(&seats[one].device.memory_free);
        let faster = slowness[one].total_cmp(&slowness[other]);
        likelier_to_fit.then(scores[one].total_cmp(&scores[other])).then(more_memory).then(faster)
    };
    (0..seats.len()).min_by(before).expect("a choice is made among seats")
}

/// The first device of the first node whose largest score is least.
fn as_released(seats: &[FreeDevice<'_>], scores: &[f64]) -> usize {
    let of_node = |seat: &usize| {
        let same = |(other, _): &(&FreeDevice<'_>, &f64)| other.node.id == seats[*seat].node.id;
        seats.iter().zip(scores).filter(same).map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max)
    };
    let before = |one: &usize, other: &usize| of_node(one).total_cmp(&of_node(other));
    (0..seats.len()).min_by(before).expect("a choice is made among seats")
}

fn why(expected: &MultiStageEstimate, seats: usize) -> String {
    let MultiStageEstimate { interference, slowdown, neighbours, fits } = expected;
    let jobs = match neighbours {
        0 => return String::new(),
        1 => "1 job".to_owned(),
        more => format!("{more} jobs"),
    };
    let doubt = if *fits { "" } else { "; their memory may not fit" };
    format!(
        "shares a GPU with {jobs}, the best of {seats} with room: interference {interference:.2}, expected \
         slowdown {slowdown:.2}{doubt}"
    )
}
