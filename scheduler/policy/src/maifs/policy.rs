//! The policy: agents, or the teacher, decide which job starts when, where, and with which share. Gangs over
//! several nodes are mapped as by other policies. `tune` changes the shares of running jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{JobId, ReasonCode, Spread};

use super::action::{AgentAction, JointAction};
use super::agents::Agents;
use super::coordination::Coordination;
use super::job_places::JobPlaces;
use super::joint_q::{JointQ, ResolvedAction};
use super::rewards::RewardClock;
use super::round::{MOST_STEPS, Round, RoundKnowledge};
use super::share_levels::LEVELS;
use super::situation::Situation;
use super::teacher::teach;
use super::waiting_window::WaitingJobs;
use crate::interference::InterferenceContext;
use crate::placement::{NoOutlooks, dry_run, find_shortage};
use crate::sensitivity::KnownSensitivity;
use crate::sharing::Jobs;
use crate::{
    FreeNodes, MappedPlacer, PendingJob, PendingReason, Placer, Plan, Policy, Profile, Proposal,
    SensitivityProfiles, Shortage, View, ViewChange,
};

/// How many gangs are tried in one plan.
const MOST_GANGS: usize = 16;

/// Why jobs start, in their history, where no agents decide.
const BY_TEACHER: &str = "shortest expected job, on the tightest node (no trained agents)";

/// The same where they do.
const BY_AGENTS: &str = "chosen by the agents of all nodes together";

/// The policy.
pub(crate) struct Maifs {
    agents: Option<Box<dyn Agents>>,
    rewards: Option<RewardClock>,
    waiting: WaitingJobs,
    profiles: BTreeMap<JobId, Profile>,
    jobs: Jobs,
    places: JobPlaces,
    known: KnownSensitivity,
    gangs: MappedPlacer,
}

impl Maifs {
    pub(crate) fn new(gangs: MappedPlacer, context: &InterferenceContext) -> Maifs {
        Maifs {
            agents: None,
            rewards: None,
            waiting: WaitingJobs::default(),
            profiles: BTreeMap::new(),
            jobs: Jobs::new(context.solos.clone()),
            places: JobPlaces::new(context),
            known: KnownSensitivity::default(),
            gangs,
        }
    }

    fn enqueue(&mut self, job: &PendingJob) {
        let profile = self.gangs.profile(&job.demand, &job.traits);
        self.waiting.insert(job, &profile);
        self.profiles.insert(job.id, profile);
    }

    fn forget(&mut self, job: JobId) {
        self.waiting.remove(job);
        self.profiles.remove(&job);
    }

    /// Jobs over several nodes, the shortest first, where they fit.
    fn place_gangs(&mut self, view: &View, round: &mut Round<'_>) {
        let gangs: Vec<JobId> =
            self.waiting.shortest().filter(|job| is_gang(&view.pending[job], view)).collect();
        for id in gangs {
            round.take(id);
            if round.gangs_tried >= MOST_GANGS {
                continue;
            }
            round.gangs_tried += 1;
            let (job, profile) = (&view.pending[&id], &self.profiles[&id]);
            if let Ok(proposal) = self.gangs.place(job, profile, &round.free) {
                round.free.take_as_resident(id, &job.demand, &proposal.placement);
                round.actions.push(proposal.start(id, profile));
            }
        }
    }

    /// Decides one sub-step. Returns how many jobs start.
    fn decide(&mut self, situation: &Situation, round: &mut Round<'_>) -> usize {
        let (resolved, why) = match &mut self.agents {
            None => (undisputed(teach(situation).action), BY_TEACHER),
            Some(agents) => {
                let (action, resolved) = choose(situation, agents.as_mut());
                if let Some(rewards) = &mut self.rewards {
                    let (observation, lesson) = (&situation.observation, teach(situation));
                    rewards.step(
                        round.now(),
                        observation,
                        action,
                        resolved.conflicts,
                        lesson,
                        agents.as_mut(),
                    );
                }
                (resolved, BY_AGENTS)
            }
        };
        let mut started = 0;
        for (node, action) in resolved.action.iter().enumerate() {
            if let AgentAction::Start { job, level } = *action {
                let profile = &self.profiles[&situation.window[job].0];
                round.start(situation, (node, job, level), profile, why.to_owned(), &mut self.places);
                started += 1;
            }
        }
        started
    }
}

/// What the agents choose, and what is left of it when every job starts once.
fn choose(situation: &Situation, agents: &mut dyn Agents) -> (JointAction, ResolvedAction) {
    let observation = &situation.observation;
    if agents.follow_teacher() {
        let action = teach(situation).action;
        return (action.clone(), undisputed(action));
    }
    let values = agents.values(std::slice::from_ref(observation)).remove(0);
    let coordination = agents.coordination();
    let joint = JointQ::of(observation, &values, coordination);
    let mut action = joint.best_action();
    agents.explore(observation, &mut action);
    if action.iter().all(|it| *it == AgentAction::Nothing) {
        action = joint.best_action();
    }
    serve_due(situation, &joint, &mut action);
    let resolved = joint.resolved(&action);
    (action, resolved)
}

const fn undisputed(action: JointAction) -> ResolvedAction {
    ResolvedAction { action, conflicts: 0 }
}

/// Section 7, step 6: the first job of the window has to start on one of the nodes that may start it.
fn serve_due(situation: &Situation, joint: &JointQ<'_>, action: &mut [AgentAction]) {
    let is_served = action.iter().any(|it| it.task() == 1);
    if situation.is_first_due
        && !is_served
        && let Some((node, start)) = joint.best_start(1..2)
    {
        if joint.coordination() == Coordination::Single {
            action.fill(AgentAction::Nothing);
        }
        action[node] = start;
    }
}

/// Whether a job cannot be placed on one node, so that no agent may start it.
fn is_gang(job: &PendingJob, view: &View) -> bool {
    let widest = view.nodes.iter().map(|node| node.devices.len() as u32).max().unwrap_or_default();
    job.demand.nodes > 1 || (job.demand.spread == Spread::Free && job.demand.devices() > widest)
}

impl Policy for Maifs {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.gangs.learn(view, changes);
        self.gangs.prepare(view);
        self.jobs.learn(view.now, changes);
        self.known.learn(view, changes);
        for change in changes {
            match change {
                ViewChange::Pending(job) => self.enqueue(job),
                ViewChange::Running(job) => {
                    self.waiting.started(job.id, job.started_at);
                    self.forget(job.id);
                }
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
        if let Some(rewards) = &mut self.rewards {
            rewards.count(view.now, (view.pending.len() + view.running.len()) as u32);
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        self.places.clear();
        let mut round = Round::new(view);
        self.place_gangs(view, &mut round);
        for _ in 0..MOST_STEPS {
            let mut knowledge = RoundKnowledge {
                waiting: &self.waiting,
                profiles: &self.profiles,
                jobs: &mut self.jobs,
                places: &mut self.places,
                known: &self.known,
                levels: self.agents.as_ref().map_or(LEVELS, |agents| agents.levels()),
            };
            let Some(situation) = round.observe(&mut knowledge) else { break };
            if self.decide(&situation, &mut round) == 0 {
                break;
            }
        }
        Plan { actions: round.actions, wake: None }
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        let free = FreeNodes::new(&view.nodes);
        let reason = |id: JobId| {
            let job = view.pending.get(&id)?;
            let (code, why) = match free.nodes().any(|node| node.shortage(&job.demand).is_none()) {
                true => {
                    let why = "Other jobs start first".to_owned();
                    (ReasonCode::WaitingForTurn, why)
                }
                false => {
                    let shortage = find_shortage(&job.demand, free.nodes());
                    (shortage.code(), shortage.to_string())
                }
            };
            let runtime = self.profiles.get(&id)?.expected_at(1.0);
            Some(PendingReason { job: id, code, why, not_before: None, runtime })
        };
        self.waiting.shortest().filter_map(reason).collect()
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        dry_run(&mut self.gangs, view, job, free, &NoOutlooks)
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.jobs.set_interference(context.solos.clone());
        self.places = JobPlaces::new(context);
    }

    fn set_sensitivity(&mut self, profiles: &Arc<SensitivityProfiles>) {
        self.known.profiles = Arc::clone(profiles);
    }

    fn set_agents(&mut self, agents: Box<dyn Agents>) {
        self.rewards = agents.baseline().map(RewardClock::new);
        self.agents = Some(agents);
    }
}

/// In training, the last sub-step is told when the episode is over.
impl Drop for Maifs {
    fn drop(&mut self) {
        if let (Some(mut rewards), Some(agents)) = (self.rewards.take(), &mut self.agents) {
            rewards.finish(agents.as_mut());
        }
    }
}
