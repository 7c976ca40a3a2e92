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

use super::admission::{Confidence, SetAdmission, judge};
use crate::interference::{ColocationEstimate, GpuKind, InternedMember, InternedSet, PredictionCache};
use crate::sharing::multi_stage::company;
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
    pub(super) seat: usize,
    pub(super) confidence: Confidence,
    /// The estimates of the newcomer and of each resident while all are there.
    pub(super) together: Vec<ColocationEstimate>,
    /// The residents.
    pub(super) residents: Vec<JobId>,
}

/// What the filter asks, and by which limits it judges.
pub(super) struct SharingFilter<'s> {
    pub(super) newcomer: JobId,
    pub(super) asked: &'s mut PredictionCache,
    pub(super) jobs: &'s mut Jobs,
    pub(super) caution: f64,
    /// The limit of jobs that state none.
    pub(super) max_slowdown: Slowdown,
}

/// A device that may be joined as far as is known by its pairs.
struct CandidateDevice {
    seat: usize,
    residents: Vec<JobId>,
    company: InternedSet,
    allowed: Vec<Slowdown>,
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
    pub(super) fn admitted(
        &mut self,
        seats: &[FreeDevice<'_>],
        taken: &[usize],
    ) -> Result<Vec<AdmittedDevice>, Shortage> {
        let mut least = NearestRefusal::default();
        let mut candidates = self.with_harmless_pairs(seats, taken, &mut least);
        candidates.truncate(MAX_JUDGED);
        let companies: Vec<InternedSet> = candidates.iter().map(|it| it.company.clone()).collect();
        let answers = self.asked.predict_some(&companies, MAX_NEW);
        let mut admitted = Vec::new();
        for (candidate, together) in candidates.into_iter().zip(answers) {
            let Some(together) = together else { continue };
            let CandidateDevice { seat, residents, allowed, .. } = candidate;
            match judge(&together, &allowed, self.caution) {
                SetAdmission::Admitted(confidence) => {
                    admitted.push(AdmittedDevice { seat, confidence, together, residents });
                }
                refused @ (SetAdmission::TooSlow { .. } | SetAdmission::NoMemory) => {
                    least.note(refused, &allowed, |member| residents.get(member.wrapping_sub(1)).copied());
                }
            }
        }
        if admitted.is_empty() { Err(least.shortage(taken.len())) } else { Ok(admitted) }
    }

    /// The devices on which every pair of the newcomer and a resident stays within its limits, the least
    /// harmful first.
    fn with_harmless_pairs(
        &mut self,
        seats: &[FreeDevice<'_>],
        taken: &[usize],
        least: &mut NearestRefusal,
    ) -> Vec<CandidateDevice> {
        let companies: Vec<(Vec<JobId>, InternedSet)> = taken
            .iter()
            .map(|seat| {
                let residents = self.jobs.on(seats[*seat].device);
                let all: Vec<JobId> = [self.newcomer].into_iter().chain(residents.iter().copied()).collect();
                (residents, company(&seats[*seat], &all, self.jobs))
            })
            .collect();
        let pairs = self.pairs(companies.iter().map(|(_, company)| company));
        let mut candidates = Vec::new();
        for (seat, (residents, company)) in taken.iter().copied().zip(companies) {
            let allowed = self.allowed(&residents);
            match harm_of_pairs(&company, &allowed, &pairs) {
                Ok(harm) => candidates.push(CandidateDevice { seat, residents, company, allowed, harm }),
                Err((resident, verdict)) => {
                    let pair = [allowed[0], allowed[resident + 1]];
                    least.note(verdict, &pair, |member| (member == 1).then_some(residents[resident]));
                }
            }
        }
        candidates.sort_by(|one, other| one.harm.total_cmp(&other.harm).then(one.seat.cmp(&other.seat)));
        candidates
    }

    /// The estimates of the newcomer with each kind of resident on any of the devices.
    fn pairs<'c>(&mut self, companies: impl Iterator<Item = &'c InternedSet>) -> Pairs {
        let met = companies.flat_map(|company| {
            company.members[1..].iter().map(|other| (company.sharing, company.gpu.clone(), other.clone()))
        });
        let met: BTreeSet<(SharingMode, GpuKind, Arc<InternedMember>)> = met.collect();
        let pair = |(sharing, gpu, other): &(SharingMode, GpuKind, Arc<InternedMember>)| InternedSet {
            gpu: gpu.clone(),
            sharing: *sharing,
            members: vec![self.jobs.member(self.newcomer, gpu), other.clone()],
        };
        let asked: Vec<InternedSet> = met.iter().map(pair).collect();
        let told = self.asked.predict_some(&asked, MAX_NEW);
        met.into_iter().zip(told).filter_map(|(met, told)| Some((met, told?))).collect()
    }

    /// The limits of the newcomer and of each resident.
    fn allowed(&self, residents: &[JobId]) -> Vec<Slowdown> {
        let all = [self.newcomer].into_iter().chain(residents.iter().copied());
        all.map(|job| self.jobs.max_slowdown(job).unwrap_or(self.max_slowdown)).collect()
    }
}

/// The sum of the slowdowns of the newcomer and each resident as pairs; the first pair that exceeds a limit,
/// if any.
fn harm_of_pairs(
    company: &InternedSet,
    allowed: &[Slowdown],
    pairs: &Pairs,
) -> Result<f64, (usize, SetAdmission)> {
    let mut harm = 0.0;
    for (resident, known) in company.members[1..].iter().enumerate() {
        // A pair that was not asked about yet ranks behind those that are known to be fine.
        let Some(told) = pairs.get(&(company.sharing, company.gpu.clone(), known.clone())) else {
            harm += 1.0;
            continue;
        };
        // Caution is not applied here: a set may be better known than its pairs.
        let verdict = judge(told, &[allowed[0], allowed[resident + 1]], 0.0);
        if !matches!(verdict, SetAdmission::Admitted(_)) {
            return Err((resident, verdict));
        }
        harm += told.iter().map(|it| it.slowdown - 1.0).sum::<f64>();
    }
    Ok(harm)
}

impl NearestRefusal {
    /// Records a refusal; `resident` says which job a member is, unless it is the newcomer.
    fn note(
        &mut self,
        refused: SetAdmission,
        allowed: &[Slowdown],
        resident: impl Fn(usize) -> Option<JobId>,
    ) {
        let (excess, harm) = match refused {
            SetAdmission::Admitted(_) => return,
            SetAdmission::NoMemory => (f64::INFINITY, SharingConflict::Memory),
            SetAdmission::TooSlow { member, slowdown, excess } => {
                let (slowdown, allowed) = (Slowdown::from(slowdown), allowed[member]);
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

    fn shortage(self, seats: usize) -> Shortage {
        Shortage::Slowdown { devices: seats as u32, conflict: self.harm.unwrap_or(SharingConflict::Memory) }
    }
}
