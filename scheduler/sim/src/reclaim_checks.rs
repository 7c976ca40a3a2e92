//! What a plan may reclaim for others: checked against the view for which it was made.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_fair_share::{Division, FairShares, Party, wanted};
use cohabit_policy::{Action, Plan, RunPhase, RunningJob, View};
use cohabit_types::{JobId, Qos, Span, Time};

/// Room is kept for a job so long at most.
const KEPT_AT_MOST: Span = Span::from_secs(30 * 60);
/// And so long after the jobs that made room have ended.
const KEPT_AFTERWARDS: Span = Span::from_secs(5 * 60);

/// The jobs for which others were told to stop.
#[derive(Debug, Default)]
pub(crate) struct ReclaimChecks {
    claims: BTreeMap<JobId, Claim>,
}

/// A job for which others were told to stop.
#[derive(Debug)]
struct Claim {
    until: Time,
    victims: BTreeSet<JobId>,
}

impl Claim {
    /// Room is made for a job now.
    fn new(now: Time) -> Claim {
        Claim { until: now + KEPT_AT_MOST, victims: BTreeSet::new() }
    }

    /// Takes note of what has ended; whether room may still be kept for this job.
    fn update(&mut self, job: JobId, view: &View) -> bool {
        let had_victims = !self.victims.is_empty();
        self.victims.retain(|victim| view.running.contains_key(victim));
        if had_victims && self.victims.is_empty() {
            self.until = self.until.min(view.now + KEPT_AFTERWARDS);
        }
        view.pending.contains_key(&job) && view.now < self.until
    }
}

impl ReclaimChecks {
    /// Checks what a plan reclaims.
    ///
    /// # Errors
    /// With the first rule that it breaks.
    pub(crate) fn check_plan(&mut self, view: &View, plan: &Plan) -> Result<(), String> {
        self.claims.retain(|job, claim| claim.update(*job, view));
        let mut stopped: BTreeMap<JobId, BTreeSet<JobId>> = BTreeMap::new();
        for action in &plan.actions {
            if let Action::Reclaim { job, why } = action {
                let claimant = claimant(why).ok_or("a plan reclaims for nobody")?;
                stopped.entry(claimant).or_default().insert(*job);
            } else if let Action::StopIdle { job, why } = action {
                let claimant = claimant(why).ok_or("a plan stops an idle job for nobody")?;
                check_idle(view, *job, claimant)?;
                self.note_stop(view, claimant, *job);
            }
        }
        for (claimant, victims) in stopped {
            let shares = view.fair_shares.as_ref().ok_or("a plan reclaims where users take no turns")?;
            let for_whom =
                view.pending.get(&claimant).ok_or("a plan reclaims for a job that does not wait")?;
            let party = party(shares, &for_whom.traits.user);
            victims.iter().for_each(|victim| self.note_stop(view, claimant, *victim));
            check_victims(view, shares, party, &victims)?;
            self.check_parts(view, plan, shares, party)?;
        }
        Ok(())
    }

    fn note_stop(&mut self, view: &View, claimant: JobId, victim: JobId) {
        let claim = self.claims.entry(claimant).or_insert_with(|| Claim::new(view.now));
        claim.until = view.now + KEPT_AT_MOST;
        claim.victims.insert(victim);
    }

    /// Whoever gives up a job that is not of low quality of service still holds the part that is due to them,
    /// with what starts, and what room is kept for.
    fn check_parts(
        &self,
        view: &View,
        plan: &Plan,
        shares: &FairShares,
        claimant: Party,
    ) -> Result<(), String> {
        let (stopped, starts) = (stopped_by(plan), started_by(plan));
        let going = |job: &&RunningJob| job.phase == RunPhase::Stopping || stopped.contains(&job.id);
        let coming: BTreeSet<JobId> = self.claims.keys().copied().chain(starts).collect();
        let division = divide(view, shares);
        let reclaimed = plan.actions.iter().filter_map(|action| match action {
            Action::Reclaim { job, .. } => view.running.get(job),
            Action::Place { .. }
            | Action::Preempt { .. }
            | Action::StopIdle { .. }
            | Action::Allot { .. } => None,
        });
        for job in reclaimed.filter(|job| job.traits.qos != Qos::Low) {
            let victim = party(shares, &job.traits.user);
            let is_own_project = shares.project(victim) == shares.project(claimant);
            let standing = match is_own_project {
                true => &division.users[victim.0 as usize],
                false => &division.projects[shares.project(victim)],
            };
            let is_side = |user: &str| match is_own_project {
                true => party(shares, user) == victim,
                false => shares.project(party(shares, user)) == shares.project(victim),
            };
            let gives_up = view.running.values().filter(going).filter(|job| is_side(&job.traits.user));
            let gets = coming.iter().filter_map(|job| view.pending.get(job));
            let given_up: u64 = gives_up.map(|job| job.holds).sum();
            let got: u64 = gets.filter(|job| is_side(&job.traits.user)).map(|job| wanted(&job.demand)).sum();
            let (held, entitled) = (standing.held, standing.entitled);
            if (held + got).saturating_sub(given_up) < entitled {
                return Err(format!(
                    "job {} is reclaimed, but {} is left with less than is due to them: of {held} held and {got} more, \
                     {given_up} are given up, and {entitled} are due (thousandths of a GPU)",
                    job.id, job.traits.user
                ));
            }
        }
        Ok(())
    }

    /// Whether room may be kept for a job for which others were stopped.
    pub(crate) fn keep_room(&self) -> bool {
        !self.claims.is_empty()
    }
}

/// The job for which another one is reclaimed.
fn claimant(why: &str) -> Option<JobId> {
    why.strip_prefix("makes room for job ")?.split(' ').next()?.parse().ok()
}

fn party(shares: &FairShares, user: &str) -> Party {
    shares.party(user).unwrap_or_default()
}

/// A job is stopped because it does nothing only once it may be, and for one that others may be stopped for.
fn check_idle(view: &View, id: JobId, claimant: JobId) -> Result<(), String> {
    let job = view.running.get(&id).ok_or_else(|| format!("job {id} is stopped as idle and does not run"))?;
    let for_whom = view.pending.get(&claimant);
    let why_not = match () {
        () if job.phase == RunPhase::Stopping => "it was told to stop before",
        () if job.idle_from.is_none_or(|from| from > view.now) => "it works",
        () if for_whom.is_none_or(|it| it.traits.qos == Qos::Low) => "nobody waits for its place",
        () => return Ok(()),
    };
    Err(format!("job {id} is stopped as idle, but {why_not}"))
}

fn check_victims(
    view: &View,
    shares: &FairShares,
    claimant: Party,
    victims: &BTreeSet<JobId>,
) -> Result<(), String> {
    let keep_for = shares.table().keep_for;
    for id in victims {
        let job = view.running.get(id).ok_or_else(|| format!("job {id} is reclaimed and does not run"))?;
        let is_low = job.traits.qos == Qos::Low;
        let why_not = match () {
            () if !job.traits.preemptible => "it may not be stopped",
            () if job.phase == RunPhase::Stopping => "it was told to stop before",
            () if view.now < job.reclaimable_from => "it was reclaimed too often",
            () if !is_low && view.now.since(job.started_at) < keep_for => "it ran for too short a time",
            () if !is_low && party(shares, &job.traits.user) == claimant => "it is one of the same user",
            () => continue,
        };
        return Err(format!("job {id} is reclaimed, but {why_not}"));
    }
    Ok(())
}

/// The parts of all users and projects, computed from the whole view.
fn divide(view: &View, shares: &FairShares) -> Division {
    let devices = view.nodes.iter().flat_map(|node| &node.devices).filter(|device| device.is_in_service());
    let capacity: u64 = devices.map(|device| u64::from(shares.table().price(&device.model))).sum();
    let mut waiting: BTreeMap<Party, u64> = BTreeMap::new();
    for job in view.pending.values() {
        *waiting.entry(party(shares, &job.traits.user)).or_default() += wanted(&job.demand);
    }
    shares.divide(view.now, capacity, |it| waiting.get(&it).copied().unwrap_or_default())
}

fn stopped_by(plan: &Plan) -> BTreeSet<JobId> {
    let stopped = plan.actions.iter().filter_map(|action| match action {
        Action::Preempt { job, .. } | Action::Reclaim { job, .. } | Action::StopIdle { job, .. } => {
            Some(*job)
        }
        Action::Place { .. } | Action::Allot { .. } => None,
    });
    stopped.collect()
}

fn started_by(plan: &Plan) -> BTreeSet<JobId> {
    let started = plan.actions.iter().filter_map(|action| match action {
        Action::Place { job, .. } => Some(*job),
        Action::Preempt { .. } | Action::Reclaim { .. } | Action::StopIdle { .. } | Action::Allot { .. } => {
            None
        }
    });
    started.collect()
}
