//! Which devices a newcomer may join: those on which, with it, every job stays within its slowdown limit.
//!
//! Devices with equal residents are judged together: there are many devices, and few ways to fill one. A
//! predictor may be slow, so it is asked about as few sets as possible. First about pairs of the newcomer
//! and a resident, which are few however many devices there are: two jobs that may not be together as a pair
//! may not be together in a larger set. Then about whole sets, the least harmful by their pairs first: sets
//! that were asked about before cost nothing, and of new ones a limited number is asked about in one
//! question. The rest is left for the next decision.

use std::sync::Arc;

use cohabit_types::{JobId, Slowdown};

use super::admission::{Confidence, SetAdmission, admit};
use super::resident_groups::{DeviceResidents, ResidentGroup};
use super::verdicts::{NewcomerNumber, PairVerdict, SetVerdict, Verdict, Verdicts};
use crate::interference::{ColocationEstimate, GpuKind, InternedSet, PredictionCache};
use crate::sharing::Jobs;
use crate::{SharingConflict, Shortage};

/// The number of new pairs, and of new whole sets, in one decision.
const MAX_NEW: usize = 16;

/// The number of groups that are judged by their whole sets, and of devices that are listed.
const MAX_LISTED: usize = 128;

/// A device that the newcomer may join.
#[derive(Debug, Clone)]
pub(super) struct AdmittedDevice {
    /// Its index in the list of free devices.
    pub(super) device: usize,
    pub(super) confidence: Confidence,
    /// The estimates of the newcomer and of each resident while all are there.
    pub(super) verdict: Arc<SetVerdict>,
    /// The estimates of each resident without the newcomer.
    pub(super) before: Arc<[ColocationEstimate]>,
    pub(super) residents: Arc<DeviceResidents>,
}

/// What the filter asks, and by which limits it judges.
pub(super) struct SharingFilter<'s> {
    pub(super) newcomer: JobId,
    pub(super) cache: &'s mut PredictionCache,
    pub(super) verdicts: &'s mut Verdicts,
    pub(super) jobs: &'s mut Jobs,
    pub(super) caution: f64,
    /// The limit of jobs that state none.
    pub(super) max_slowdown: Option<Slowdown>,
    /// Whether everything is known that was asked.
    pub(super) is_settled: bool,
}

/// The newcomer beside the residents of a group.
struct Candidate<'g> {
    group: &'g ResidentGroup,
    newcomer: NewcomerNumber,
    verdict: Verdict,
}

/// A group of devices that is fine as far as is known by its pairs.
struct CandidateGroup<'g> {
    candidate: Candidate<'g>,
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
        self.judge_sets(&mut candidates);
        let mut admitted = Vec::new();
        for CandidateGroup { candidate: Candidate { group, verdict, .. }, .. } in candidates {
            let Some(verdict) = verdict.set else { continue };
            if admitted.len() >= MAX_LISTED {
                break;
            }
            match verdict.admission {
                SetAdmission::Admitted(confidence) => {
                    let residents = std::slice::from_ref(&group.kind.residents);
                    let predict = || self.cache.predict(residents).remove(0);
                    let before = self.verdicts.without_newcomer(group.number, predict);
                    admitted.extend(group.devices.iter().map(|device| AdmittedDevice {
                        device: device.index,
                        confidence,
                        verdict: Arc::clone(&verdict),
                        before: Arc::clone(&before),
                        residents: Arc::clone(&device.residents),
                    }));
                }
                refused @ (SetAdmission::TooSlow { .. } | SetAdmission::NoMemory) => {
                    let limits = self.limits(group);
                    least.note(refused, &limits, |member| group.first_resident(member));
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
        let mut all = self.recall(groups);
        self.judge_pairs(&mut all);
        let mut candidates = Vec::new();
        for candidate in all {
            match candidate.verdict.pairs {
                Some(Ok(harm)) => candidates.push(CandidateGroup { candidate, harm }),
                Some(Err((resident, admission))) => {
                    let group = candidate.group;
                    let limits = self.limits(group);
                    let pair = [limits[0], limits[resident + 1]];
                    least.note(admission, &pair, |member| group.first_resident(member * (resident + 1)));
                }
                None => unreachable!("all pairs were judged"),
            }
        }
        let first = |it: &CandidateGroup<'_>| it.candidate.group.devices[0].index;
        candidates.sort_by(|one, other| one.harm.total_cmp(&other.harm).then(first(one).cmp(&first(other))));
        candidates
    }

    /// What earlier questions found out.
    fn recall<'g>(&mut self, groups: &'g [ResidentGroup]) -> Vec<Candidate<'g>> {
        let own = self.own_limit();
        let mut of_kind: Option<(&GpuKind, NewcomerNumber)> = None;
        let mut recalled = Vec::with_capacity(groups.len());
        for group in groups {
            let gpu = &group.kind.residents.gpu;
            let newcomer = match of_kind {
                Some((known, number)) if known == gpu => number,
                Some(_) | None => {
                    let member = self.jobs.member(self.newcomer, gpu);
                    self.verdicts.number_of(&member, own)
                }
            };
            of_kind = Some((gpu, newcomer));
            let verdict = self.verdicts.of(newcomer, group.number);
            recalled.push(Candidate { group, newcomer, verdict });
        }
        recalled
    }

    /// Asks about pairs that are not known yet, and judges all. What was left out is judged for this decision
    /// alone.
    fn judge_pairs(&mut self, all: &mut [Candidate<'_>]) {
        let mut new: Vec<&mut Candidate<'_>> =
            all.iter_mut().filter(|it| it.verdict.pairs.is_none()).collect();
        let residents =
            new.iter().flat_map(|it| (0..it.group.kind.allowed.len()).map(move |at| (it.group, at)));
        let pairs: Vec<InternedSet> = residents
            .map(|(group, resident)| join(self.newcomer, group, Some(resident), self.jobs))
            .collect();
        if pairs.is_empty() && new.is_empty() {
            return;
        }
        let mut answers = self.cache.predict_some(&pairs, MAX_NEW).into_iter();
        for Candidate { group, newcomer, verdict } in new.iter_mut().map(|it| &mut **it) {
            let limits = self.limits(group);
            let of_group: Vec<_> = answers.by_ref().take(group.kind.allowed.len()).collect();
            verdict.pairs = Some(sum_pair_slowdowns(&of_group, &limits));
            if of_group.iter().all(Option::is_some) {
                self.verdicts.note(*newcomer, group.number, verdict.clone());
            } else {
                self.is_settled = false;
            }
        }
    }

    /// Asks about sets that are not known yet.
    fn judge_sets(&mut self, all: &mut [CandidateGroup<'_>]) {
        let candidates = all.iter_mut().map(|it| &mut it.candidate);
        let new: Vec<&mut Candidate<'_>> = candidates.filter(|it| it.verdict.set.is_none()).collect();
        if new.is_empty() {
            return;
        }
        let sets: Vec<InternedSet> =
            new.iter().map(|it| join(self.newcomer, it.group, None, self.jobs)).collect();
        let answers = self.cache.predict_some(&sets, MAX_NEW);
        for (Candidate { group, newcomer, verdict }, together) in new.into_iter().zip(answers) {
            let Some(together) = together else {
                self.is_settled = false;
                continue;
            };
            let admission = admit(&together, &self.limits(group), self.caution);
            verdict.set = Some(Arc::new(SetVerdict { admission, together }));
            // Pairs that were left out have to be judged again.
            if self.verdicts.of(*newcomer, group.number).pairs.is_some() {
                self.verdicts.note(*newcomer, group.number, verdict.clone());
            }
        }
    }

    /// The limit of the newcomer.
    fn own_limit(&self) -> Option<Slowdown> {
        self.jobs.max_slowdown(self.newcomer).or(self.max_slowdown)
    }

    /// The limits of the newcomer and of the residents of a group.
    fn limits(&self, group: &ResidentGroup) -> Vec<Option<Slowdown>> {
        let residents = group.kind.allowed.iter().map(|allowed| allowed.or(self.max_slowdown));
        [self.own_limit()].into_iter().chain(residents).collect()
    }
}

/// A newcomer with one of the residents of a group, or with all of them.
fn join(newcomer: JobId, group: &ResidentGroup, only: Option<usize>, jobs: &mut Jobs) -> InternedSet {
    let InternedSet { gpu, sharing, members } = &group.kind.residents;
    let residents = only.map_or(&members[..], |resident| std::slice::from_ref(&members[resident]));
    let newcomer = jobs.member(newcomer, gpu);
    let members = [newcomer].into_iter().chain(residents.iter().cloned()).collect();
    InternedSet { gpu: gpu.clone(), sharing: *sharing, members }
}

/// The sum of the slowdowns of the newcomer and each resident as pairs; the first pair that exceeds a limit,
/// if any.
fn sum_pair_slowdowns(
    pairs: &[Option<Vec<ColocationEstimate>>],
    allowed: &[Option<Slowdown>],
) -> PairVerdict {
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
