//! Nodes that serve one account alone.

use cohabit_types::{Demand, OwnerKey, ReasonCode};

use super::kit::*;
use crate::{NodeView, Shortage, could_ever_hold, parse_policy};

const ADAS: Option<OwnerKey> = Some(OwnerKey(1));
const BEAS: Option<OwnerKey> = Some(OwnerKey(2));

const POLICIES: [&str; 11] = [
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
];

fn owned(number: u8, owner: Option<OwnerKey>) -> NodeView {
    NodeView { owner, ..node(number, &[1_000]) }
}

fn of(owner: Option<OwnerKey>) -> Demand {
    Demand { owner, ..gpus(1) }
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
