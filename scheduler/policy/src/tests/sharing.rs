//! Which jobs share a device, which get one alone, and which wait, with the reasons.

use cohabit_types::{Bytes, Demand, EnforcementRequirement, JobId, ReasonCode, Share, Sharing, Span};

use super::kit::*;
use crate::{
    DeviceAvailability, DeviceView, FreeNodes, NodeView, PendingJob, PendingReason, Plan, QueueForecast,
    SharingMode, SharingTerms, could_ever_hold,
};

const GIB: u64 = 1 << 30;

/// A node with one GPU of 80 GiB that three ranks may share, with enforced limits and a reserve of 1 GiB.
fn gpu(change: impl FnOnce(&mut DeviceView)) -> Vec<NodeView> {
    let mut node = node(1, &[1_000]);
    let device = &mut node.devices[0];
    let reserve = Bytes(GIB);
    device.sharing =
        SharingTerms { mode: SharingMode::Enforced, ranks_free: Some(3), reserve, ..SharingTerms::default() };
    change(device);
    vec![node]
}

/// This many jobs are on it, each with a tenth of it and this much memory.
fn taken_by(jobs: u64, memory: u64) -> impl FnOnce(&mut DeviceView) {
    move |device| {
        device.jobs = (100..100 + jobs).map(JobId::new).collect();
        device.free = Share(1_000 - 100 * jobs as u32);
        device.memory_free = Some(Bytes((80 - jobs * memory) * GIB));
        device.sharing.ranks_free = Some(3 - jobs as u32);
    }
}

fn in_state(availability: DeviceAvailability) -> impl FnOnce(&mut DeviceView) {
    move |device| device.availability = availability
}

fn shared_as(mode: SharingMode) -> impl FnOnce(&mut DeviceView) {
    move |device| device.sharing.mode = mode
}

fn strangers_hold(gib: u64) -> impl FnOnce(&mut DeviceView) {
    move |device| {
        device.foreign_memory = Bytes(gib * GIB);
        device.memory_free = Some(Bytes((80 - gib) * GIB));
    }
}

fn tenth(memory: u64) -> Demand {
    Demand { gpu_memory: Some(Bytes(memory * GIB)), ..part(100) }
}

fn without_figure() -> Demand {
    Demand { gpu_memory: None, ..part(100) }
}

fn insisting() -> Demand {
    Demand { limits: EnforcementRequirement::Enforced, ..tenth(8) }
}

fn starts(demand: Demand, nodes: Vec<NodeView>) -> bool {
    !planned(vec![demand], nodes).actions.is_empty()
}

fn planned(demands: Vec<Demand>, nodes: Vec<NodeView>) -> Plan {
    plan(&view(nodes, jobs(demands)))
}

fn jobs(demands: Vec<Demand>) -> Vec<PendingJob> {
    (1..).zip(demands).map(|(number, demand)| job(number, demand)).collect()
}

/// Why it waits, without its position in the queue.
fn why(demand: Demand, nodes: Vec<NodeView>) -> (ReasonCode, String) {
    let (code, why) = wait(&view(nodes, vec![job(1, demand)]), 1);
    (code, why.strip_suffix(". First in the queue").expect("it is the only one").to_owned())
}

fn share_given(plan: &Plan) -> Share {
    let crate::Action::Place { placement, .. } = &plan.actions[0] else { panic!("{plan:?}") };
    placement.parts[0].share
}

#[test]
fn jobs_that_share_leave_the_reserve_free() {
    assert!(starts(tenth(19), gpu(taken_by(2, 30))));
    assert!(!starts(tenth(20), gpu(taken_by(2, 30))));
    let sentence = "needs 20 GiB of GPU memory plus a reserve of 1 GiB; the best GPU has 20 GiB free";
    assert_eq!(why(tenth(20), gpu(taken_by(2, 30))), (ReasonCode::WaitingForMemory, sentence.into()));
}

#[test]
fn a_job_alone_on_a_device_may_use_all_of_its_memory() {
    let alone = |memory| Demand { gpu_memory: Some(Bytes(memory * GIB)), ..gpus(1) };
    assert!(starts(alone(80), gpu(|_| {})));
    assert!(!could_ever_hold(&gpu(|_| {}), &alone(81)));
    assert!(could_ever_hold(&gpu(|_| {}), &tenth(79)));
    assert!(!could_ever_hold(&gpu(|_| {}), &tenth(80)), "79 GiB and the reserve are all there is");
}

#[test]
fn no_more_ranks_share_a_device_than_the_limit() {
    assert_eq!(placed(&planned(vec![tenth(8); 5], gpu(|_| {}))), [1, 2, 3]);
    let sentence = "needs a GPU with room for one more rank; each already runs 3, the limit";
    assert_eq!(why(tenth(8), gpu(taken_by(3, 8))), (ReasonCode::WaitingForDevices, sentence.into()));
}

#[test]
fn a_part_without_stated_memory_takes_the_whole_device() {
    let plan = planned(vec![without_figure(), tenth(8)], gpu(|_| {}));
    assert_eq!((placed(&plan), share_given(&plan)), (vec![1], Share::WHOLE));
    let (code, sentence) = why(without_figure(), gpu(taken_by(1, 8)));
    assert_eq!(code, ReasonCode::WaitingForDevices);
    assert_eq!(
        sentence,
        "needs 1 free GPU on one node; the best node has 0 free. It takes a whole GPU because it does not \
         state how much GPU memory it needs (--gpu-mem)"
    );
}

#[test]
fn on_devices_without_memory_a_part_need_not_state_its_memory() {
    let slot = |device: &mut DeviceView| {
        (device.memory, device.memory_free) = (None, None);
        device.sharing = SharingTerms::default();
    };
    let plan = planned(vec![without_figure(); 10], gpu(slot));
    assert_eq!((plan.actions.len(), share_given(&plan)), (10, Share(100)));
}

#[test]
fn ranks_of_a_gang_share_no_device() {
    let nodes =
        || vec![gpu(|_| {}).remove(0), NodeView { id: node(2, &[]).id, ordinal: 2, ..gpu(|_| {}).remove(0) }];
    let gang = Demand { nodes: 2, ..tenth(8) };
    let plan = planned(vec![gang, tenth(8)], nodes());
    assert_eq!((placed(&plan), share_given(&plan)), (vec![1], Share::WHOLE));
}

#[test]
fn an_exclusive_job_has_no_neighbors() {
    let exclusive = Demand { sharing: Sharing::Exclusive, ..tenth(8) };
    assert!(!starts(exclusive, gpu(taken_by(1, 8))));
    assert_eq!(placed(&planned(vec![exclusive, tenth(8)], gpu(|_| {}))), [1]);
}

#[test]
fn a_job_that_requires_limits_shares_only_where_they_are_enforced() {
    assert!(starts(insisting(), gpu(shared_as(SharingMode::Enforced))));
    assert!(!starts(insisting(), gpu(shared_as(SharingMode::Unenforced))));
    assert!(starts(tenth(8), gpu(shared_as(SharingMode::Unenforced))));
    assert!(!could_ever_hold(&gpu(shared_as(SharingMode::Unenforced)), &insisting()));
    let sentence = "needs a GPU that enforces limits (--enforced); no free GPU does";
    let reason = why(insisting(), gpu(shared_as(SharingMode::Unenforced)));
    assert_eq!(reason, (ReasonCode::WaitingForDevices, sentence.into()));
    let whole = Demand { limits: EnforcementRequirement::Enforced, ..gpus(1) };
    assert!(starts(whole, gpu(shared_as(SharingMode::Unenforced))), "who shares nothing needs no limits");
}

#[test]
fn a_device_that_cannot_be_shared_is_given_whole_for_a_part() {
    let plan = planned(vec![insisting(), tenth(8)], gpu(shared_as(SharingMode::Exclusive)));
    assert_eq!((placed(&plan), share_given(&plan)), (vec![1], Share::WHOLE));
}

#[test]
fn a_device_out_of_service_takes_no_job_but_counts_at_submission() {
    for availability in [DeviceAvailability::Recovering, DeviceAvailability::Closed] {
        for demand in [gpus(1), tenth(8), without_figure()] {
            assert!(!starts(demand, gpu(in_state(availability))));
            assert!(could_ever_hold(&gpu(in_state(availability)), &demand));
        }
        let sentence =
            "needs 1 free GPU on one node; the best node has 0 free; 1 GPU there is out of service";
        assert_eq!(
            why(gpus(1), gpu(in_state(availability))),
            (ReasonCode::WaitingForDevices, sentence.into())
        );
    }
}

#[test]
fn a_job_for_a_fenced_device_blocks_no_other_but_one_for_a_recovering_device_does() {
    let nodes = |availability| {
        let mut node = node(1, &[1_000, 1_000]);
        node.devices[1].availability = availability;
        vec![node]
    };
    let jobs = vec![gpus(2), gpus(1)];
    assert_eq!(placed(&planned(jobs.clone(), nodes(DeviceAvailability::Closed))), [2]);
    assert_eq!(placed(&planned(jobs, nodes(DeviceAvailability::Recovering))), [0_u64; 0]);
}

#[test]
fn memory_of_other_programs_is_not_given_to_jobs() {
    assert!(starts(tenth(29), gpu(strangers_hold(50))));
    assert!(!starts(tenth(30), gpu(strangers_hold(50))));
    assert!(!FreeNodes::new(&gpu(strangers_hold(50))).could_hold_when_empty(&tenth(30)));
    assert!(could_ever_hold(&gpu(strangers_hold(50)), &tenth(30)), "strangers come and go");
}

#[test]
fn other_programs_with_more_than_a_tenth_keep_away_jobs_without_stated_memory() {
    for demand in [gpus(1), without_figure()] {
        assert!(starts(demand, gpu(strangers_hold(8))));
        assert!(!starts(demand, gpu(strangers_hold(9))));
    }
    let sentence = "does not state how much GPU memory it needs (--gpu-mem); other programs hold at least \
                    9 GiB of every free GPU";
    assert_eq!(why(gpus(1), gpu(strangers_hold(9))), (ReasonCode::WaitingForMemory, sentence.into()));
    let modest = Demand { gpu_memory: Some(Bytes(60 * GIB)), ..gpus(1) };
    assert_eq!(
        placed(&planned(vec![gpus(1), modest], gpu(strangers_hold(9)))),
        [2],
        "no reason for who does"
    );
}

#[test]
fn memory_released_by_a_preempted_neighbor_is_not_that_of_other_programs() {
    let nodes = gpu(strangers_hold(50));
    let mut free = FreeNodes::new(&nodes);
    let parts = vec![nodes[0].part(&tenth(8), vec![nodes[0].devices[0].id.clone()])];
    free.give_back(&tenth(8), &cohabit_types::Placement { parts });
    assert_eq!(free.node(0).devices[0].memory_free, Some(Bytes(30 * GIB)));
}

#[test]
fn a_forecast_counts_neither_devices_out_of_service_nor_more_ranks_than_the_limit() {
    let reasons = |jobs: u64| {
        (1..=jobs).map(|number| PendingReason {
            job: JobId::new(number),
            code: ReasonCode::WaitingForDevices,
            why: String::new(),
            not_before: None,
            runtime: Some(Span::from_secs(60)),
        })
    };
    let waits = |demand, count: u64, nodes| {
        let view = view(nodes, jobs(vec![demand; count as usize]));
        let queue = QueueForecast::new(&view, reasons(count).collect());
        let starts = queue.replay(view.now, count as usize, |_| Some(Span::from_secs(60)));
        let secs = |at: cohabit_types::Time| at.since(view.now).as_micros() / 1_000_000;
        starts.into_iter().map(|at| at.map(secs)).collect::<Vec<_>>()
    };
    assert_eq!(waits(gpus(1), 1, gpu(in_state(DeviceAvailability::Closed))), [None]);
    assert_eq!(waits(gpus(1), 1, gpu(in_state(DeviceAvailability::Recovering))), [Some(0)]);
    let one_after_three = [Some(0), Some(0), Some(0), Some(60)];
    assert_eq!(waits(tenth(8), 4, gpu(|_| {})), one_after_three);
    assert_eq!(waits(without_figure(), 2, gpu(|_| {})), [Some(0), Some(60)]);
}
