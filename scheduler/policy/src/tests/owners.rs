//! Nodes that serve one account alone, and devices that serve one at a time.

use cohabit_types::{AccountKey, Demand, Placement, ReasonCode, Share};

use super::kit::*;
use crate::{FreeNodes, NodeView, SharingMode, SharingUsers, Shortage, could_ever_hold, parse_policy};

const ADAS: Option<AccountKey> = Some(AccountKey(1));
const BEAS: Option<AccountKey> = Some(AccountKey(2));

const POLICIES: [&str; 13] = [
    "fifo",
    "easy-backfill",
    "spd",
    "las",
    "srtf-oracle",
    "a-srpt",
    "first-fit-sharing",
    "horus",
    "isacpp",
    "clwp-nlwp",
    "hybrid",
    "drf",
    "tetris",
];

fn owned(number: u8, owner: Option<AccountKey>) -> NodeView {
    NodeView { owner, ..node(number, &[1_000]) }
}

fn of(owner: Option<AccountKey>) -> Demand {
    Demand { account: owner, ..gpus(1) }
}

#[test]
fn no_policy_places_a_job_on_a_node_that_serves_another_account() {
    let view = view(
        vec![owned(1, ADAS), owned(2, BEAS)],
        vec![job(1, of(None)), job(2, of(BEAS)), job(3, of(BEAS))],
    );
    for name in POLICIES {
        let mut policy = parse_policy(name).unwrap();
        policy.learn(&view, &view.as_changes());
        assert_eq!(placed(&policy.plan(&view)), [2], "{name}");
    }
}

#[test]
fn a_job_may_use_the_nodes_of_its_account_and_those_of_all() {
    let view = view(vec![owned(1, ADAS), owned(2, None)], vec![job(1, of(ADAS)), job(2, of(BEAS))]);
    for name in POLICIES {
        let mut policy = parse_policy(name).unwrap();
        policy.learn(&view, &view.as_changes());
        assert_eq!(placed(&policy.plan(&view)).len(), 2, "{name}");
    }
}

#[test]
fn a_job_that_no_node_serves_blocks_nobody_and_is_told_why_it_waits() {
    let view = view(vec![owned(1, ADAS)], vec![job(1, of(BEAS)), job(2, of(ADAS))]);
    assert_eq!(placed(&plan(&view)), [2]);
    let (code, why) = wait(&view, 1);
    assert_eq!(code, ReasonCode::WaitingForNodes);
    assert!(why.contains("no connected worker accepts jobs of its account"), "{why}");
}

#[test]
fn a_node_that_serves_others_is_no_place_whatever_it_has() {
    let node = owned(1, ADAS);
    assert_eq!(node.shortage(&of(BEAS)), Some(Shortage::Account));
    let part = node.part(&of(ADAS), node.first_devices(&of(ADAS), 1));
    assert_eq!(node.fits(&of(ADAS), &part), Ok(()));
    assert!(node.fits(&of(BEAS), &part).unwrap_err().contains("does not run jobs of its account"));
    assert!(!could_ever_hold(&[node], &of(BEAS)));
}

/// A node with one GPU that its driver lets one user at a time share; this one does now.
fn sharing_with(user: Option<AccountKey>) -> NodeView {
    let mut node = node(1, &[1_000]);
    let device = &mut node.devices[0];
    (device.sharing.mode, device.sharing.users) = (SharingMode::Enforced, SharingUsers::One(user));
    if user.is_some() {
        device.free = Share(700);
    }
    node
}

fn third_of(owner: Option<AccountKey>) -> Demand {
    Demand { account: owner, ..part(300) }
}

#[test]
fn no_policy_lets_two_users_share_a_device_that_serves_one_at_a_time() {
    let jobs = || vec![job(1, third_of(ADAS)), job(2, third_of(BEAS)), job(3, third_of(ADAS))];
    for (user, expected) in [(ADAS, vec![1, 3]), (BEAS, vec![2])] {
        let view = view(vec![sharing_with(user)], jobs());
        for name in POLICIES {
            let mut policy = parse_policy(name).unwrap();
            policy.learn(&view, &view.as_changes());
            let plan = policy.plan(&view);
            assert!(placed(&plan).iter().all(|job| expected.contains(job)), "{name}: {:?}", placed(&plan));
        }
    }
}

#[test]
fn the_first_job_decides_whose_jobs_share_a_free_device() {
    let view = view(
        vec![sharing_with(None)],
        vec![job(1, third_of(ADAS)), job(2, third_of(BEAS)), job(3, third_of(ADAS))],
    );
    let mut policy = parse_policy("first-fit-sharing").unwrap();
    policy.learn(&view, &view.as_changes());
    assert_eq!(placed(&policy.plan(&view)), [1, 3]);
}

#[test]
fn a_device_for_one_user_serves_the_next_when_the_last_job_has_gone() {
    let nodes = [sharing_with(None)];
    let mut free = FreeNodes::new(&nodes);
    let node = free.node(0);
    let placement =
        Placement { parts: vec![node.part(&third_of(ADAS), node.first_devices(&third_of(ADAS), 1))] };
    let serves_bea = |free: &FreeNodes<'_>| free.node(0).devices[0].has_room(&third_of(BEAS));
    free.take(&third_of(ADAS), &placement);
    free.take(&third_of(ADAS), &placement);
    free.give_back(&third_of(ADAS), &placement);
    assert!(!serves_bea(&free));
    free.give_back(&third_of(ADAS), &placement);
    assert!(serves_bea(&free));
}

#[test]
fn a_job_that_waits_for_the_jobs_of_another_user_is_told_so() {
    let node = sharing_with(ADAS);
    assert_eq!(node.shortage(&third_of(BEAS)), Some(Shortage::OtherUser));
    assert!(Shortage::OtherUser.to_string().contains("no other user shares"));
}
