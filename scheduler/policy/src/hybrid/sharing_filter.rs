//! Which devices a newcomer may join: those on which, with it, every job stays within its slowdown limit.
//!
//! Devices with equal residents are judged together: there are many devices, and few ways to fill one. A
//! predictor may be slow, so it is asked about as few sets as possible. First about pairs of the newcomer
//! and a resident, which are few however many devices there are: two jobs that may not be together as a pair
//! may not be together in a larger set. Then about whole sets, the least harmful by their pairs first: sets
//! that were asked about before cost nothing, and of new ones a limited number is asked about in one
//! question. The rest is left for the next decision.

use cohabit_types::{JobId, Slowdown};

use super::admission::{Confidence, SetAdmission, admit};
use super::resident_groups::ResidentGroup;
use crate::interference::{ColocationEstimate, InternedSet, PredictionCache};
use crate::sharing::Jobs;
use crate::{SharingConflict, Shortage};

/// The number of new pairs, and of new whole sets, in one decision.
const MAX_NEW: usize = 16;

/// The number of groups that are judged by their whole sets, and of devices that are listed.
const MAX_LISTED: usize = 128;

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

/// A group of devices that is fine as far as is known by its pairs.
struct CandidateGroup<'g> {
    group: &'g ResidentGroup,
    /// The newcomer and the residents.
    set: InternedSet,
    /// The limits of all of them.
    allowed: Vec<Option<Slowdown>>,
    /// The sum of the slowdowns in the newcomer's pairs.
    harm: f64,
}

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
        groups: &[ResidentGroup],
    ) -> Result<Vec<AdmittedDevice>, Shortage> {
        let mut least = NearestRefusal::default();
        let mut candidates = self.filter_by_pairs(groups, &mut least);
        candidates.truncate(MAX_LISTED);
        let sets: Vec<InternedSet> = candidates.iter().map(|it| it.set.clone()).collect();
        let answers = self.cache.predict_some(&sets, MAX_NEW);
        let mut admitted = Vec::new();
        for (candidate, together) in candidates.into_iter().zip(answers) {
            let Some(together) = together else { continue };
            if admitted.len() >= MAX_LISTED {
                break;
            }
            match admit(&together, &candidate.allowed, self.caution) {
                SetAdmission::Admitted(confidence) => {
                    let before =
                        self.cache.predict(std::slice::from_ref(&candidate.group.residents)).remove(0);
                    let devices = candidate.group.devices.iter();
                    admitted.extend(devices.map(|(device, residents)| AdmittedDevice {
                        device: *device,
                        confidence,
                        together: together.clone(),
                        before: before.clone(),
                        residents: residents.clone(),
                    }));
                }
                refused @ (SetAdmission::TooSlow { .. } | SetAdmission::NoMemory) => {
                    least.note(refused, &candidate.allowed, |member| candidate.group.first_resident(member));
                }
            }
        }
        let devices = groups.iter().map(|group| group.devices.len()).sum();
        if admitted.is_empty() { Err(least.shortage(devices)) } else { Ok(admitted) }
    }

    /// The groups in which every pair of the newcomer and a resident stays within its limits, the least
    /// harmful first.
    fn filter_by_pairs<'g>(
        &mut self,
        groups: &'g [ResidentGroup],
        least: &mut NearestRefusal,
    ) -> Vec<CandidateGroup<'g>> {
        let own = self.jobs.max_slowdown(self.newcomer).or(self.max_slowdown);
        let residents = groups.iter().flat_map(|group| (0..group.allowed.len()).map(move |it| (group, it)));
        let pairs: Vec<InternedSet> =
            residents.map(|(group, resident)| self.join(group, Some(resident))).collect();
        let mut pairs = self.cache.predict_some(&pairs, MAX_NEW).into_iter();
        let mut candidates = Vec::new();
        for group in groups {
            let limits = group.allowed.iter().map(|allowed| allowed.or(self.max_slowdown));
            let allowed: Vec<Option<Slowdown>> = [own].into_iter().chain(limits).collect();
            let of_group: Vec<_> = pairs.by_ref().take(group.allowed.len()).collect();
            match sum_pair_slowdowns(&of_group, &allowed) {
                Ok(harm) => {
                    candidates.push(CandidateGroup { group, set: self.join(group, None), allowed, harm });
                }
                Err((resident, admission)) => {
                    let pair = [own, allowed[resident + 1]];
                    least.note(admission, &pair, |member| group.first_resident(member * (resident + 1)));
                }
            }
        }
        let first = |it: &CandidateGroup<'_>| it.group.devices[0].0;
        candidates.sort_by(|one, other| one.harm.total_cmp(&other.harm).then(first(one).cmp(&first(other))));
        candidates
    }

    /// The newcomer with one of the residents of a group, or with all of them.
    fn join(&mut self, group: &ResidentGroup, only: Option<usize>) -> InternedSet {
        let InternedSet { gpu, sharing, members } = &group.residents;
        let residents = only.map_or(&members[..], |resident| std::slice::from_ref(&members[resident]));
        let newcomer = self.jobs.member(self.newcomer, gpu);
        let members = [newcomer].into_iter().chain(residents.iter().cloned()).collect();
        InternedSet { gpu: gpu.clone(), sharing: *sharing, members }
    }
}

impl ResidentGroup {
    /// A resident of its first device, by its place in the set with the newcomer.
    fn first_resident(&self, member: usize) -> Option<JobId> {
        let (_, residents) = self.devices.first()?;
        residents.get(member.checked_sub(1)?).copied()
    }
}

/// The sum of the slowdowns of the newcomer and each resident as pairs; the first pair that exceeds a limit,
/// if any.
fn sum_pair_slowdowns(
    pairs: &[Option<Vec<ColocationEstimate>>],
    allowed: &[Option<Slowdown>],
) -> Result<f64, (usize, SetAdmission)> {
    let mut harm = 0.0;
    for (resident, estimates) in pairs.iter().enumerate() {
        // A pair that was not asked about yet ranks behind those that are known to be fine.
        let Some(estimates) = estimates else {
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
