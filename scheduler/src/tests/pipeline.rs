//! First come, first served, onto the first devices with room.

use cohabit_proto::{Bytes, Demand, ReasonCode};

use super::kit::*;
use crate::{Action, PendingJob};

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
                placement.parts[0].devices.iter().map(|it| it.0.clone()).collect()
            }
            Action::Preempt { .. } => vec![],
        })
        .collect();
    assert_eq!(devices, [vec!["gpu-0".to_owned()], vec!["gpu-0".into(), "gpu-1".into()]]);
}

#[test]
fn a_large_job_is_not_overtaken() {
    let jobs = vec![job(1, gpus(2)), job(2, gpus(1))];
    let plan = plan(&view(vec![node(1, &[1_000, 0])], jobs));
    assert_eq!(placed(&plan), [0_u64; 0]);
    assert_eq!(waiting(&plan), [(1, ReasonCode::WaitingForDevices)]);
}

#[test]
fn a_job_that_no_present_node_could_hold_does_not_block_the_others() {
    let jobs = vec![job(1, gpus(4)), job(2, gpus(1))];
    let plan = plan(&view(vec![node(1, &[1_000])], jobs));
    assert_eq!((placed(&plan), waiting(&plan)), (vec![2], vec![(1, ReasonCode::WaitingForDevices)]));
}

#[test]
fn larger_priorities_and_then_earlier_submissions_go_first() {
    let urgent = PendingJob { priority: 1, ..job(3, gpus(1)) };
    let plan = plan(&view(vec![node(1, &[1_000, 1_000])], vec![job(1, gpus(1)), job(2, gpus(1)), urgent]));
    assert_eq!(placed(&plan), [3, 1]);
}

#[test]
fn the_shortage_is_named_with_numbers() {
    let wait = |demand: Demand, nodes| {
        let plan = plan(&view(nodes, vec![job(1, demand)]));
        (plan.waits[0].code, plan.waits[0].why.clone())
    };
    let half_taken = || vec![node(1, &[500])];
    assert_eq!(
        wait(part(700), half_taken()),
        (
            ReasonCode::WaitingForDevices,
            "it needs 0.7 of a device and the largest free part is 0.5; it is next in line".into()
        )
    );
    let (code, why) = wait(Demand { gpu_memory: Some(Bytes(60 << 30)), ..part(500) }, half_taken());
    assert_eq!(code, ReasonCode::WaitingForMemory);
    assert!(why.starts_with("it needs 60 GiB of device memory and the most that is free is"), "{why}");
    let (code, why) = wait(Demand { cpus: 9, ..part(500) }, half_taken());
    assert_eq!((code, why.contains("9 cores")), (ReasonCode::WaitingForHost, true));
    assert_eq!(wait(gpus(1), vec![]).0, ReasonCode::WaitingForNodes);
}

#[test]
fn a_gang_waits_until_all_its_nodes_have_room() {
    let gang = Demand { nodes: 2, ..gpus(1) };
    let waits = plan(&view(vec![node(1, &[1_000]), node(2, &[0])], vec![job(1, gang)]));
    assert!(waits.waits[0].why.starts_with("it needs 2 nodes at once and 1 have room"));
    assert_eq!(placed(&plan(&view(vec![node(1, &[1_000]), node(2, &[1_000])], vec![job(1, gang)]))), [1]);
}

#[test]
fn jobs_without_devices_run_beside_full_ones() {
    assert_eq!(placed(&plan(&view(vec![node(1, &[0])], vec![job(1, gpus(0))]))), [1]);
}
