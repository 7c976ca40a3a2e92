//! A-SRPT as the algorithm is written down: every plan tries every pending job, one after the other. Nothing
//! is cached, and classes count only where they are part of the rule: of jobs that need the same, the first
//! that does not fit may become a barrier. The real policy must schedule exactly like this one.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Span, Time};

use super::super::queue_state::compute_virtual_work;
use super::instances::{Instance, Shape, place};
use crate::a_srpt::{ASrpt, ASrptOptions, QueueMode, QueueOrder, StarvationBarrier};
use crate::mapping::Toggle;
use crate::queue::virtual_srpt_machine::VirtualSrptMachine;
use crate::tests::cluster::{Ran, TestCluster};
use crate::{
    Action, ClassKey, FreeNodes, MappedPlacer, PendingJob, PendingReason, Placer, Plan, Policy, Profile,
    Proposal, Shortage, View, ViewChange,
};

struct Reference {
    options: ASrptOptions,
    place: MappedPlacer,
    machine: VirtualSrptMachine,
    profiles: BTreeMap<JobId, Profile>,
    turns: BTreeMap<JobId, Time>,
    waits: Vec<Span>,
}

impl Reference {
    fn median_wait(&self) -> Span {
        let mut last: Vec<Span> = self.waits.iter().rev().take(200).copied().collect();
        last.sort_unstable();
        last.get(last.len() / 2).copied().unwrap_or(Span::ZERO)
    }

    fn allowance(&self, profile: &Profile) -> f64 {
        let allowance = self.options.delta * profile.runtime.as_secs_f64();
        self.options.tau.map_or(allowance, |tau| allowance.min(tau.as_secs_f64()))
    }

    fn order(&self, view: &View) -> Vec<(JobId, Time)> {
        let mut order: Vec<_> = view
            .pending
            .values()
            .filter_map(|job| Some((*self.turns.get(&job.id)?, job)))
            .map(|(turn, job)| {
                let by_turn = self.options.virtual_machine == Toggle::On
                    && self.options.queue_order == QueueOrder::Turn;
                let measure = match by_turn {
                    true => turn.as_micros(),
                    false => self.profiles[&job.id].runtime.as_micros(),
                };
                (measure, job.submitted_at, job.id, turn)
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, job, turn)| (job, turn)).collect()
    }
}

impl Policy for Reference {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.place.prepare(view);
        let devices: usize = view.nodes.iter().map(|node| node.devices.len()).sum();
        self.machine.set_speed(devices as u64 * 1_000);
        for change in changes {
            match change {
                ViewChange::Pending(job) => {
                    let profile = self.place.profile(&job.demand, &job.traits);
                    let work = compute_virtual_work(&profile, self.options.virtual_alpha);
                    self.profiles.insert(job.id, profile);
                    let turns = &mut self.turns;
                    self.machine.advance(job.eligible_at, |job, at| turns.extend([(job, at)]));
                    match self.options.virtual_machine {
                        Toggle::On => self.machine.release(job.eligible_at, job.id, work),
                        Toggle::Off => self.turns.extend([(job.id, job.eligible_at)]),
                    }
                }
                ViewChange::Running(job) => self.waits.push(job.started_at.since(self.turns[&job.id])),
                ViewChange::Gone(_)
                | ViewChange::Node(_)
                | ViewChange::NodeGone(_)
                | ViewChange::Shares(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let turns = &mut self.turns;
        self.machine.advance(view.now, |job, at| turns.extend([(job, at)]));
        let mut plan = Plan { wake: self.machine.next_completion(), ..Plan::default() };
        let mut free = FreeNodes::new(&view.nodes);
        let mut without_room = BTreeSet::new();
        for (job, turn) in self.order(view) {
            let (job, profile) = (&view.pending[&job], &self.profiles[&job]);
            let proposal = match self.place.place(job, profile, &free) {
                Ok(proposal) => proposal,
                Err(_) => {
                    let longest = (self.median_wait() * 3)
                        .max(profile.runtime)
                        .max(Span::from_secs_f64(self.allowance(profile)));
                    let starves = self.options.starvation_barrier == StarvationBarrier::Block
                        && without_room.insert(ClassKey::of(&job.demand, profile))
                        && view.now.since(turn) > longest;
                    if self.options.queue_mode == QueueMode::Strict || starves {
                        break;
                    }
                    continue;
                }
            };
            let price = profile.runtime.as_secs_f64() * (proposal.slowdown - 1.0);
            let until = turn + Span::from_secs_f64(price.min(self.allowance(profile)));
            let heavy = profile.sensitivity() > self.options.theta;
            if heavy && proposal.slowdown > 1.0 + 1e-9 && view.now < until {
                plan.wake = Some(plan.wake.map_or(until, |wake| wake.min(until)));
                continue;
            }
            free.take(&job.demand, &proposal.placement);
            plan.actions.push(Action::Place {
                job: job.id,
                placement: proposal.placement,
                runtime: None,
                slowdown: None,
                why: String::new(),
            });
        }
        plan
    }

    fn explain_pending(&mut self, _: &View) -> Vec<PendingReason> {
        Vec::new()
    }

    fn dry_run_on(&mut self, _: &View, _: &PendingJob, _: &FreeNodes<'_>) -> Result<Proposal, Shortage> {
        unreachable!("nobody asks")
    }
}

const VARIANTS: [&[(&str, &str)]; 7] = [
    &[],
    &[("starvation-barrier", "block"), ("order", "turn")],
    &[("queue", "strict")],
    &[("theta", "1.05"), ("delta", "3")],
    &[("delta", "0.2"), ("starvation-barrier", "block")],
    &[("tau", "20"), ("order", "turn")],
    &[("virtual-machine", "off"), ("virtual-alpha", "max")],
];

#[test]
fn classes_and_caches_change_no_schedule() {
    let place = place();
    for seed in 0..210 {
        let mut options = ASrptOptions::default();
        VARIANTS[seed as usize % 7].iter().for_each(|(key, value)| options.set(key, value).unwrap());
        let shape = [(3, 4), (2, 8), (6, 2)][seed as usize / 7 % 3];
        let shape = Shape { nodes: shape.0, devices: shape.1, jobs: 40, error: 0.5 };
        let instance = Instance::draw(shape, seed);
        let run = |policy: &mut dyn Policy| -> Vec<(JobId, Time, Time)> {
            let (nodes, jobs) = (instance.nodes.clone(), instance.jobs.clone());
            let ran = TestCluster::new(nodes, jobs, Box::new(place.clone())).run(policy);
            ran.into_iter().map(|Ran { job, started_at, ended_at, .. }| (job, started_at, ended_at)).collect()
        };
        let reference = &mut Reference {
            options: options.clone(),
            place: place.clone(),
            machine: VirtualSrptMachine::default(),
            profiles: BTreeMap::new(),
            turns: BTreeMap::new(),
            waits: Vec::new(),
        };
        assert_eq!(run(&mut ASrpt::new(&options, place.clone())), run(reference), "seed {seed}");
    }
}
