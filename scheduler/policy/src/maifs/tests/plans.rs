//! Checks 8 (second half) and 11 of the specification: what plans of agents hold, whatever their networks
//! say.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohabit_types::{Bytes, Demand, HostShare, RankPlacement};
use proptest::collection::vec;
use proptest::prelude::*;

use super::instances::Instance;
use crate::maifs::{AgentAction, Agents, Coordination, GraphKind, JointObservation, JointValues, LEVELS};
use crate::tests::kit::{fits, gpus, job, node, placed, view};
use crate::{Action, FreeNodes, NodeView, PendingJob, Plan, parse_policy};

const GB: u64 = 1_000_000_000;

/// Agents whose values are drawn anew at each sub-step, from what the nodes may do alone.
struct RandomAgents {
    seed: u64,
    levels: usize,
    coordination: Coordination,
}

impl Agents for RandomAgents {
    fn coordination(&self) -> Coordination {
        self.coordination
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
        let drawn = observations.iter().map(|observation| {
            self.seed = self.seed.wrapping_add(1);
            Instance::drawn(self.seed, observation.shape()).values
        });
        drawn.collect()
    }

    fn explore(&mut self, observation: &JointObservation, action: &mut [AgentAction]) {
        assert_eq!(observation.shape().levels, self.levels);
        assert_eq!(action.len(), observation.agents());
    }
}

/// Agents that would always rather do nothing.
struct IdleAgents;

impl Agents for IdleAgents {
    fn coordination(&self) -> Coordination {
        Coordination::default()
    }

    fn levels(&self) -> usize {
        LEVELS
    }

    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
        let idle = observations.iter().map(|observation| {
            let shape = observation.shape();
            let of_agent = (0..shape.actions()).map(|action| if action == 0 { 1.0 } else { 0.0 });
            JointValues {
                shape,
                utilities: of_agent.collect::<Vec<f32>>().repeat(shape.nodes),
                factors: vec![0.0; shape.nodes * shape.tasks()],
                bilinear: vec![0.0],
                kappa: 1.0,
                state: 0.0,
            }
        });
        idle.collect()
    }
}

fn server(number: u8, free: &[u32]) -> NodeView {
    let (cpus, memory) = (3 * free.len() as u32, Bytes(62 * GB * free.len() as u64));
    NodeView { cpus, cpus_free: cpus, memory, memory_free: memory, ..node(number, free) }
}

const fn host(cpus: u32, gb: u64) -> HostShare {
    HostShare { cpus, memory: Bytes(gb * GB) }
}

fn ranged(devices: u32, least: HostShare, most: HostShare) -> Demand {
    Demand { cpus: least.cpus, memory: least.memory, up_to: Some(most), ..gpus(devices) }
}

fn plan_of(nodes: &[NodeView], pending: &[PendingJob], agents: RandomAgents) -> Plan {
    let view = view(nodes.to_vec(), pending.to_vec());
    let mut policy = parse_policy("maifs:tune=off").unwrap();
    policy.set_agents(Box::new(agents));
    policy.learn(&view, &view.as_changes());
    policy.plan(&view)
}

fn any_coordination() -> impl Strategy<Value = Coordination> {
    prop_oneof![
        Just(Coordination::Agents(GraphKind::Dynamic)),
        Just(Coordination::Agents(GraphKind::Empty)),
        Just(Coordination::Agents(GraphKind::Full)),
        Just(Coordination::Single),
    ]
}

/// Starts of a plan: the job, and what it gets.
fn starts(plan: &Plan) -> Vec<(u64, RankPlacement)> {
    let start = |action: &Action| match action {
        Action::Place { job, placement, .. } => (job.number, placement.parts[0].clone()),
        Action::Preempt { .. } | Action::Reclaim { .. } | Action::StopIdle { .. } | Action::Allot { .. } => {
            panic!("agents start jobs only")
        }
    };
    plan.actions.iter().map(start).collect()
}

/// Nobody waits for ever in a cluster in which nothing else happens.
#[test]
fn agents_that_would_rather_do_nothing_start_what_fits() {
    let view = view(vec![node(1, &[1_000; 2])], vec![job(1, gpus(1)), job(2, gpus(1)), job(3, gpus(2))]);
    let mut policy = parse_policy("maifs").unwrap();
    policy.set_agents(Box::new(IdleAgents));
    policy.learn(&view, &view.as_changes());
    assert_eq!(placed(&policy.plan(&view)), [1, 2], "and nothing is left for the third");
}

proptest! {
    /// Agents that know one level schedule as if all jobs asked for the proportional share.
    #[test]
    fn with_one_level_the_schedule_is_that_of_fixed_demands(
        seed in any::<u64>(),
        coordination in any_coordination(),
        nodes in 1_u8..5,
        widths in vec(1_u32..5, 1..12),
    ) {
        let nodes: Vec<NodeView> = (1..=nodes).map(|number| server(number, &[1_000; 4])).collect();
        let jobs = |demand: &dyn Fn(u32) -> Demand| -> Vec<PendingJob> {
            widths.iter().zip(1..).map(|(devices, number)| job(number, demand(*devices))).collect()
        };
        let agents = || RandomAgents { seed, levels: 1, coordination };
        let proportional = |devices: u32| host(3 * devices, 62 * u64::from(devices));
        let free = jobs(&|devices| ranged(devices, host(1, 10), host(12, 250)));
        let fixed = jobs(&|devices| {
            let share = proportional(devices);
            Demand { cpus: share.cpus, memory: share.memory, ..gpus(devices) }
        });
        let (free, fixed) = (plan_of(&nodes, &free, agents()), plan_of(&nodes, &fixed, agents()));
        let mut started = starts(&free);
        for (number, part) in &mut started {
            prop_assert_eq!(part.host.take(), Some(proportional(widths[*number as usize - 1])));
        }
        prop_assert_eq!(started, starts(&fixed));
    }

    /// No job starts twice, no node is over capacity, and every share is within its range.
    #[test]
    fn plans_of_agents_fit(
        seed in any::<u64>(),
        coordination in any_coordination(),
        levels in prop_oneof![Just(1), Just(LEVELS)],
        free in vec(vec(prop_oneof![Just(0), Just(1_000)], 1..5), 1..5),
        jobs in vec((1_u32..4, (1_u32..7, 1_u64..90), (0_u32..12, 0_u64..200)), 1..16),
    ) {
        let nodes: Vec<NodeView> = free.iter().zip(1..).map(|(free, number)| server(number, free)).collect();
        let demand = |(devices, least, more): &(u32, (u32, u64), (u32, u64))| {
            let least = host(least.0, least.1);
            let most = least.plus(host(more.0, more.1));
            let up_to = Some(most).filter(|most| *most != least);
            Demand { up_to, ..ranged(*devices, least, most) }
        };
        let pending: Vec<PendingJob> =
            jobs.iter().zip(1..).map(|(it, number)| job(number, demand(it))).collect();
        let plan = plan_of(&nodes, &pending, RandomAgents { seed, levels, coordination });
        let mut free = FreeNodes::new(&nodes);
        let mut started = BTreeSet::new();
        for action in &plan.actions {
            let Action::Place { job, placement, .. } = action else { panic!("agents start jobs only") };
            prop_assert!(started.insert(*job), "job {} starts twice", job);
            let demand = &pending[job.number as usize - 1].demand;
            prop_assert_eq!(fits(&free, demand, placement), Ok(()));
            free.take_as_resident(*job, demand, placement);
        }
    }
}
