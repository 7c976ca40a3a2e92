//! Whatever the cluster and the queue, a plan never gives what is not there.

use cohabit_types::{AccountKey, Bytes, Demand, EnforcementRequirement, Spread};
use proptest::prelude::*;

use super::kit::*;
use crate::{
    Action, DeviceAvailability, FirstFit, FreeNodes, NodeView, Placer, Profile, SharingMode, SharingTerms,
    SharingUsers, View, parse_policy,
};

const WORK_CONSERVING: [&str; 14] = [
    "fifo-greedy",
    "spd",
    "spw",
    "las",
    "las-tuned",
    "srtf-oracle",
    "a-srpt-no-vm",
    "first-fit-sharing",
    "least-loaded",
    "horus",
    "isacpp",
    "clwp-nlwp",
    "drf",
    "tetris",
];

fn demands() -> impl Strategy<Value = Demand> {
    let gpus =
        prop_oneof![(1_u32..1_000).prop_map(part), (0_u32..5).prop_map(gpus), (1_u32..12).prop_map(anywhere)];
    let amounts = (0_u32..4, 0_u32..10, prop::option::of(1_u64..100));
    let limits =
        prop_oneof![Just(EnforcementRequirement::BestEffort), Just(EnforcementRequirement::Enforced)];
    (gpus, amounts, limits, owners()).prop_map(|(demand, (nodes, cpus, memory), limits, owner)| Demand {
        limits,
        account: owner,
        nodes: if demand.spread == Spread::Free { 1 } else { nodes.max(1) },
        cpus,
        gpu_memory: memory.filter(|_| demand.devices() > 0).map(|gib| Bytes(gib << 30)),
        ..demand
    })
}

fn owners() -> impl Strategy<Value = Option<AccountKey>> {
    prop_oneof![3 => Just(None), 1 => (0_u64..2).prop_map(|key| Some(AccountKey(key)))]
}

fn nodes() -> impl Strategy<Value = Vec<NodeView>> {
    let devices = prop::collection::vec((prop_oneof![Just(1_000_u32), 0_u32..1_000], conditions()), 0..5);
    let max_jobs = prop_oneof![3 => Just(None), 1 => (0_u32..3).prop_map(Some)];
    prop::collection::vec((devices, owners(), max_jobs), 0..5).prop_map(|all| {
        let node =
            |(number, (devices, owner, max_jobs))| NodeView { owner, max_jobs, ..node_with(number, devices) };
        (0..).zip(all).map(node).collect()
    })
}

/// Whether jobs may use a device, how it may be shared, and how much of its memory other programs hold.
type Condition = (DeviceAvailability, SharingTerms, Bytes);

fn conditions() -> impl Strategy<Value = Condition> {
    let availability = prop_oneof![
        8 => Just(DeviceAvailability::Open),
        1 => Just(DeviceAvailability::Recovering),
        1 => Just(DeviceAvailability::Closed),
    ];
    let mode =
        prop_oneof![Just(SharingMode::Enforced), Just(SharingMode::Unenforced), Just(SharingMode::Exclusive)];
    let reserve = prop_oneof![Just(Bytes::ZERO), Just(Bytes(1 << 30))];
    let users = prop_oneof![3 => Just(SharingUsers::Several), 1 => owners().prop_map(SharingUsers::One)];
    let terms = (mode, prop::option::of(0_u32..4), reserve, users)
        .prop_map(|(mode, ranks_free, reserve, users)| SharingTerms { mode, ranks_free, reserve, users });
    (
        availability,
        terms,
        prop_oneof![3 => Just(Bytes::ZERO), 1 => (0_u64..40).prop_map(|gib| Bytes(gib << 30))],
    )
}

fn node_with(number: u8, devices: Vec<(u32, Condition)>) -> NodeView {
    let free: Vec<u32> = devices.iter().map(|(free, _)| *free).collect();
    let mut node = node(number, &free);
    for (device, (_, (availability, sharing, foreign_memory))) in node.devices.iter_mut().zip(devices) {
        device.memory_free = device.memory_free.map(|free| free.saturating_sub(foreign_memory));
        (device.availability, device.sharing, device.foreign_memory) =
            (availability, sharing, foreign_memory);
    }
    node
}

fn views() -> impl Strategy<Value = View> {
    (nodes(), prop::collection::vec(demands(), 0..20)).prop_map(|(nodes, demands)| {
        let jobs = demands.into_iter().zip(1..).map(|(demand, number)| job(number, demand)).collect();
        view(nodes, jobs)
    })
}

proptest! {
    #[test]
    fn every_action_fits_what_those_before_it_left(view in views()) {
        let mut free = FreeNodes::new(&view.nodes);
        for action in plan(&view).actions {
            let Action::Place { job, placement, .. } = action else { panic!("nothing runs") };
            let demand = view.pending[&job].demand;
            prop_assert_eq!(fits(&free, &demand, &placement), Ok(()));
            free.take(&demand, &placement);
        }
    }

    #[test]
    fn a_work_conserving_policy_leaves_no_job_waiting_that_fits(view in views()) {
        for name in WORK_CONSERVING {
            let mut policy = parse_policy(name).unwrap();
            policy.learn(&view, &view.as_changes());
            let mut free = FreeNodes::new(&view.nodes);
            let mut waiting = view.pending.clone();
            for action in policy.plan(&view).actions {
                let Action::Place { job, placement, .. } = action else { panic!("nothing runs") };
                let started = waiting.remove(&job).expect("a job is placed once");
                prop_assert_eq!(fits(&free, &started.demand, &placement), Ok(()), "{}", name);
                free.take(&started.demand, &placement);
            }
            for job in waiting.values() {
                let profile = Profile::flat(&job.demand, &job.traits);
                prop_assert!(FirstFit.place(job, &profile, &free).is_err(), "{name}: {:?}", job.demand);
            }
        }
    }

    #[test]
    fn an_empty_cluster_that_could_hold_the_first_job_starts_it(view in views()) {
        let emptied = View { nodes: view.nodes.iter().map(emptied).collect(), ..view };
        let Some(first) = emptied.pending.values().next() else { return Ok(()) };
        let could = FreeNodes::new(&emptied.nodes).could_hold_when_empty(&first.demand);
        prop_assert_eq!(placed(&plan(&emptied)).first() == Some(&first.id.number), could);
    }

    #[test]
    fn the_same_view_gets_the_same_plan(view in views()) {
        prop_assert_eq!(plan(&view), plan(&view));
    }
}

fn emptied(node: &NodeView) -> NodeView {
    let whole = vec![1_000; node.devices.len()];
    let NodeView { id, ordinal, owner, ref name, .. } = *node;
    NodeView { id, ordinal, owner, name: name.clone(), ..super::kit::node(1, &whole) }
}
