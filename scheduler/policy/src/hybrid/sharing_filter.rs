//! Which devices a newcomer may join: those on which, with it, every job stays within its slowdown limit.
//!
//! A predictor may be slow, so it is asked about as few sets as possible. First about pairs of the newcomer
//! and a resident, which are few however many devices there are: two jobs that may not be together as a pair
//! may not be together in a larger set. Then about whole sets, the least harmful by their pairs first: sets
//! that were asked about before cost nothing, and of new ones a limited number is asked about in one
//! question. The rest is left for the next decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::{JobId, Slowdown};

use super::admission::{Confidence, SetAdmission, admit};
use crate::interference::{ColocationEstimate, GpuKind, InternedMember, InternedSet, PredictionCache};
use crate::sharing::multi_stage::build_set;
use crate::sharing::{FreeDevice, Jobs};
use crate::{SharingConflict, SharingMode, Shortage};

/// The number of new pairs, and of new whole sets, in one decision.
const MAX_NEW: usize = 16;

/// The number of devices that are judged by their whole sets.
const MAX_JUDGED: usize = 128;

/// A device that the newcomer may join.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AdmittedDevice {
    /// Its index in the list of free devices.
    pub(super) device: usize,
    pub(super) confidence: Confidence,
    /// The estimates of the newcomer and of each resident while all are there.
    pub(super) together: Vec<ColocationEstimate>,
    /// The estimates of each resident without the newcomer.
    pub(super) before: Vec<ColocationEstimate>,
    /// The residents.
    pub(super) residents: Vec<JobId>,
}

/// What the filter asks, and by which limits it judges.
pub(super) struct SharingFilter<'s> {
    pub(super) newcomer: JobId,
    pub(super) cache: &'s mut PredictionCache,
    pub(super) jobs: &'s mut Jobs,
    pub(super) caution: f64,
    /// The limit of jobs that state none.
    pub(super) max_slowdown: Option<Slowdown>,
}

/// A device that may be joined as far as is known by its pairs.
struct CandidateDevice {
    device: usize,
    residents: Vec<JobId>,
    set: InternedSet,
    allowed: Vec<Option<Slowdown>>,
    /// The sum of the slowdowns in the newcomer's pairs.
    harm: f64,
}

/// The estimates of the newcomer and one resident, by way of sharing, kind of GPU and resident.
type Pairs = BTreeMap<(SharingMode, GpuKind, Arc<InternedMember>), Vec<ColocationEstimate>>;

/// The refusal that came nearest to an admission.
#[derive(Default)]
struct NearestRefusal {
    excess: Option<f64>,
    harm: Option<SharingConflict>,
}

impl SharingFilter<'_> {
    /// The devices that may be joined.
    ///
    /// # Errors
    /// What rules out the device that came nearest, if none may be joined.
    pub(super) fn list_admitted(
        &mut self,
        devices: &[FreeDevice<'_>],
        taken: &[usize],
    ) -> Result<Vec<AdmittedDevice>, Shortage> {
        let mut least = NearestRefusal::default();
        let mut candidates = self.filter_by_pairs(devices, taken, &mut least);
        candidates.truncate(MAX_JUDGED);
        let sets: Vec<InternedSet> = candidates.iter().map(|it| it.set.clone()).collect();
        let answers = self.cache.predict_some(&sets, MAX_NEW);
        let mut admitted = Vec::new();
        for (candidate, together) in candidates.into_iter().zip(answers) {
            let Some(together) = together else { continue };
            let CandidateDevice { device, residents, allowed, set, .. } = candidate;
            match admit(&together, &allowed, self.caution) {
                SetAdmission::Admitted(confidence) => {
                    let before = self.predict_residents(set);
                    admitted.push(AdmittedDevice { device, confidence, together, before, residents });
                }
                refused @ (SetAdmission::TooSlow { .. } | SetAdmission::NoMemory) => {
                    least.note(refused, &allowed, |member| residents.get(member.wrapping_sub(1)).copied());
                }
            }
        }
        if admitted.is_empty() { Err(least.shortage(taken.len())) } else { Ok(admitted) }
    }

    /// The estimates of the residents of a set without its newcomer.
    fn predict_residents(&mut self, set: InternedSet) -> Vec<ColocationEstimate> {
        let without = InternedSet { members: set.members[1..].to_vec(), ..set };
        self.cache.predict(std::slice::from_ref(&without)).remove(0)
    }

    /// The devices on which every pair of the newcomer and a resident stays within its limits, the least
    /// harmful first.
    fn filter_by_pairs(
        &mut self,
        devices: &[FreeDevice<'_>],
        taken: &[usize],
        least: &mut NearestRefusal,
    ) -> Vec<CandidateDevice> {
        let sets: Vec<(Vec<JobId>, InternedSet)> = taken
            .iter()
            .map(|device| {
                let residents = self.jobs.on(devices[*device].view);
                let all: Vec<JobId> = [self.newcomer].into_iter().chain(residents.iter().copied()).collect();
                (residents, build_set(&devices[*device], &all, self.jobs))
            })
            .collect();
        let pairs = self.predict_pairs(sets.iter().map(|(_, set)| set));
        let mut candidates = Vec::new();
        for (device, (residents, set)) in taken.iter().copied().zip(sets) {
            let allowed = self.list_limits(&residents);
            match sum_pair_slowdowns(&set, &allowed, &pairs) {
                Ok(harm) => candidates.push(CandidateDevice { device, residents, set, allowed, harm }),
                Err((resident, admission)) => {
                    let pair = [allowed[0], allowed[resident + 1]];
                    least.note(admission, &pair, |member| (member == 1).then_some(residents[resident]));
                }
            }
        }
        candidates.sort_by(|one, other| one.harm.total_cmp(&other.harm).then(one.device.cmp(&other.device)));
        candidates
    }

    /// The estimates of the newcomer with each kind of resident on any of the devices.
    fn predict_pairs<'c>(&mut self, sets: impl Iterator<Item = &'c InternedSet>) -> Pairs {
        let encountered = sets.flat_map(|set| {
            set.members[1..].iter().map(|other| (set.sharing, set.gpu.clone(), other.clone()))
        });
        let encountered: BTreeSet<(SharingMode, GpuKind, Arc<InternedMember>)> = encountered.collect();
        let pair = |(sharing, gpu, other): &(SharingMode, GpuKind, Arc<InternedMember>)| InternedSet {
            gpu: gpu.clone(),
            sharing: *sharing,
            members: vec![self.jobs.member(self.newcomer, gpu), other.clone()],
        };
        let cache: Vec<InternedSet> = encountered.iter().map(pair).collect();
        let estimates = self.cache.predict_some(&cache, MAX_NEW);
        encountered
            .into_iter()
            .zip(estimates)
            .filter_map(|(encountered, estimates)| Some((encountered, estimates?)))
            .collect()
    }

    /// The limits of the newcomer and of each resident.
    fn list_limits(&self, residents: &[JobId]) -> Vec<Option<Slowdown>> {
        let all = [self.newcomer].into_iter().chain(residents.iter().copied());
        all.map(|job| self.jobs.max_slowdown(job).or(self.max_slowdown)).collect()
    }
}

/// The sum of the slowdowns of the newcomer and each resident as pairs; the first pair that exceeds a limit,
/// if any.
fn sum_pair_slowdowns(
    set: &InternedSet,
    allowed: &[Option<Slowdown>],
    pairs: &Pairs,
) -> Result<f64, (usize, SetAdmission)> {
    let mut harm = 0.0;
    for (resident, known) in set.members[1..].iter().enumerate() {
        // A pair that was not asked about yet ranks behind those that are known to be fine.
        let Some(estimates) = pairs.get(&(set.sharing, set.gpu.clone(), known.clone())) else {
            harm += 1.0;
            continue;
        };
        // Caution is not applied here: a set may be better known than its pairs.
        let admission = admit(estimates, &[allowed[0], allowed[resident + 1]], 0.0);
        if !matches!(admission, SetAdmission::Admitted(_)) {
            return Err((resident, admission));
        }
        harm += estimates.iter().map(|it| it.slowdown - 1.0).sum::<f64>();
    }
    Ok(harm)
}

impl NearestRefusal {
    /// Records a refusal; `resident` says which job a member is, unless it is the newcomer.
    fn note(
        &mut self,
        refused: SetAdmission,
        allowed: &[Option<Slowdown>],
        resident: impl Fn(usize) -> Option<JobId>,
    ) {
        let (excess, harm) = match refused {
            SetAdmission::Admitted(_) => return,
            SetAdmission::NoMemory => (f64::INFINITY, SharingConflict::Memory),
            SetAdmission::TooSlow { member, slowdown, excess } => {
                let (slowdown, allowed) =
                    (Slowdown::from(slowdown), allowed[member].unwrap_or(Slowdown::NONE));
                let harm = match resident(member) {
                    None => SharingConflict::OwnSlowdown { slowdown, allowed },
                    Some(job) => SharingConflict::NeighborSlowdown { job, slowdown, allowed },
                };
                (excess, harm)
            }
        };
        if self.excess.is_none_or(|least| excess < least) {
            (self.excess, self.harm) = (Some(excess), Some(harm));
        }
    }

    fn shortage(self, devices: usize) -> Shortage {
        Shortage::Slowdown { devices: devices as u32, conflict: self.harm.unwrap_or(SharingConflict::Memory) }
    }
}
