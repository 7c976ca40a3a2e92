//! First come, first served, on the first devices that fit.

use cohabit_types::{Bytes, Demand, JobId, ReasonCode};

use super::kit::*;
use crate::{Action, PendingJob, View, ViewChange};

#[test]
fn jobs_fill_nodes_in_order() {
    let view =
        view(vec![node(1, &[1_000]), node(2, &[1_000, 1_000])], vec![job(1, gpus(1)), job(2, gpus(2))]);
    let plan = plan(&view);
    let devices: Vec<Vec<String>> = plan
        .actions
        .iter()
        .map(|action| match action {
            Action::Place { placement, .. } => {
                placement.parts[0].devices.iter().map(|it| it.to_string()).collect()
            }
            Action::Preempt { .. }
            | Action::Reclaim { .. }
            | Action::StopIdle { .. }
            | Action::Allot { .. } => vec![],
        })
        .collect();
    assert_eq!(devices, [vec!["gpu-0".to_owned()], vec!["gpu-0".into(), "gpu-1".into()]]);
}

#[test]
fn a_large_job_is_not_overtaken() {
    let jobs = vec![job(1, gpus(2)), job(2, gpus(1))];
    let view = view(vec![node(1, &[1_000, 0])], jobs);
    assert_eq!(placed(&plan(&view)), [0_u64; 0]);
    assert_eq!(wait(&view, 1).0, ReasonCode::WaitingForDevices);
    assert_eq!(wait(&view, 2), (ReasonCode::WaitingForTurn, "1 job is ahead in the queue".into()));
}

#[test]
fn a_job_that_no_present_node_could_hold_does_not_block_the_others() {
    let jobs = vec![job(1, gpus(4)), job(2, gpus(1))];
    let view = view(vec![node(1, &[1_000])], jobs);
    assert_eq!((placed(&plan(&view)), wait(&view, 1).0), (vec![2], ReasonCode::WaitingForDevices));
}

#[test]
fn larger_priorities_and_then_earlier_submissions_go_first() {
    let urgent = PendingJob { priority: 1, ..job(3, gpus(1)) };
    let plan = plan(&view(vec![node(1, &[1_000, 1_000])], vec![job(1, gpus(1)), job(2, gpus(1)), urgent]));
    assert_eq!(placed(&plan), [3, 1]);
}

#[test]
fn the_shortage_is_named_with_numbers() {
    let wait = |demand: Demand, nodes| wait(&view(nodes, vec![job(1, demand)]), 1);
    let half_taken = || vec![node(1, &[500])];
    assert_eq!(
        wait(part(700), half_taken()),
        (
            ReasonCode::WaitingForDevices,
            "needs 0.7 of a GPU; the largest free part is 0.5. First in the queue".into()
        )
    );
    let (code, why) = wait(Demand { gpu_memory: Some(Bytes(60 << 30)), ..part(500) }, half_taken());
    assert_eq!(code, ReasonCode::WaitingForMemory);
    assert!(why.starts_with("needs 60 GiB of GPU memory; the best GPU has"), "{why}");
    let (code, why) = wait(Demand { cpus: 9, ..part(500) }, half_taken());
    assert_eq!((code, why.contains("9 CPU cores")), (ReasonCode::WaitingForHost, true));
    assert_eq!(wait(gpus(1), vec![]).0, ReasonCode::WaitingForNodes);
}

#[test]
fn a_gang_waits_until_it_fits_on_all_its_nodes() {
    let gang = Demand { nodes: 2, ..gpus(1) };
    let half = view(vec![node(1, &[1_000]), node(2, &[0])], vec![job(1, gang)]);
    assert!(wait(&half, 1).1.starts_with("needs 2 nodes at the same time; 1 node has enough free"));
    assert_eq!(placed(&plan(&view(vec![node(1, &[1_000]), node(2, &[1_000])], vec![job(1, gang)]))), [1]);
}

#[test]
fn jobs_without_devices_run_beside_full_ones() {
    assert_eq!(placed(&plan(&view(vec![node(1, &[0])], vec![job(1, gpus(0))]))), [1]);
}

#[test]
fn a_job_for_any_nodes_takes_what_the_first_nodes_have() {
    let nodes = || vec![node(1, &[1_000, 500]), node(2, &[1_000, 1_000])];
    let plan = plan(&view(nodes(), vec![job(1, anywhere(2))]));
    let Action::Place { placement, .. } = &plan.actions[0] else { panic!("{plan:?}") };
    let counts: Vec<usize> = placement.parts.iter().map(|part| part.devices.len()).collect();
    assert_eq!(counts, [1, 1]);
    let (_, why) = wait(&view(nodes(), vec![job(1, anywhere(4))]), 1);
    assert_eq!(why, "needs 4 free GPUs on any nodes; 3 are free. First in the queue");
}

#[test]
fn changes_are_enough_to_plan_on() {
    let mut policy = fifo();
    let mut view = view(vec![node(1, &[1_000])], vec![job(1, gpus(2))]);
    let mut planned = |view: &View, changes: &[ViewChange]| {
        policy.learn(view, changes);
        placed(&policy.plan(view))
    };
    assert_eq!(planned(&view, &view.as_changes()), [0_u64; 0]);
    let changes = [ViewChange::Node(node(2, &[1_000, 1_000])), ViewChange::Pending(job(2, gpus(1)))];
    view.apply(&changes);
    assert_eq!(planned(&view, &changes), [1, 2]);
    let changes = [ViewChange::Gone(JobId::new(1)), ViewChange::NodeGone(view.nodes[0].id)];
    view.apply(&changes);
    assert_eq!(planned(&view, &changes), [2]);
}
