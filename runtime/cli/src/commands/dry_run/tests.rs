//! What a dry run says of jobs that fit, wait, or never fit.

use super::*;
use crate::render::samples::nodes;

fn spec(demand: Demand) -> JobSpec {
    JobSpec { demand, ..JobSpec::command(vec!["train".into()], "/home/ada".into()) }
}

fn fitting(demand: Demand) -> Result<Vec<String>, Failure> {
    fitting_nodes(&spec(demand), &nodes())
}

#[test]
fn nodes_that_are_large_enough_fit() {
    let two = Demand { gpus: Gpus::Whole(2), ..Demand::default() };
    assert_eq!(fitting(two).unwrap(), ["gpu1"]);
    let large = Demand { gpu_memory: Some(Bytes(100 << 30)), ..Demand::default() };
    assert_eq!(fitting(large).unwrap(), ["gpu1", "trial"]);
    assert_eq!(fitting(Demand { nodes: 2, ..Demand::default() }).unwrap(), ["gpu1", "trial"]);
}

#[test]
fn who_shares_needs_room_for_the_reserve_and_may_insist_on_limits() {
    let part = |gib: u64, limits| {
        let gpu_memory = Some(Bytes(gib << 30));
        Demand { gpus: Gpus::Part(Share(500)), gpu_memory, limits, ..Demand::default() }
    };
    assert_eq!(fitting(part(140, Limits::BestEffort)).unwrap(), ["gpu1", "trial"]);
    // The host slot has no memory to count.
    assert_eq!(fitting(part(141, Limits::BestEffort)).unwrap(), ["gpu1"]);
    assert_eq!(fitting(part(140, Limits::Enforced)).unwrap(), ["gpu1"]);
    let failure = fitting(part(141, Limits::Enforced)).unwrap_err();
    assert!(failure.message.starts_with("it shares a GPU only within enforced limits"), "{failure}");
}

#[test]
fn what_no_node_can_meet_is_refused_with_the_largest_there_is() {
    for demand in [
        Demand { gpus: Gpus::Whole(4), ..Demand::default() },
        Demand { nodes: 3, ..Demand::default() },
        Demand { cpus: 65, ..Demand::default() },
        Demand { memory: Bytes(1 << 50), ..Demand::default() },
        Demand { gpus: Gpus::Whole(3), gpu_memory: Some(Bytes(1 << 50)), ..Demand::default() },
    ] {
        let failure = fitting(demand).unwrap_err();
        assert_eq!(failure.trouble, Trouble::Impossible("unsatisfiable"));
        assert!(failure.message.contains("the largest node is gpu1 with 3 devices"), "{failure}");
    }
}

#[test]
fn devices_on_any_nodes_are_counted_together() {
    let anywhere = |count| Demand { gpus: Gpus::Whole(count), spread: Spread::Free, ..Demand::default() };
    let all: usize = nodes().iter().filter(|node| is_there(node)).map(|node| node.devices.len()).sum();
    let all = u32::try_from(all).unwrap();
    assert_eq!(fitting(anywhere(all)).unwrap(), ["gpu1", "trial"]);
    let failure = fitting(anywhere(all + 1)).unwrap_err();
    assert_eq!(failure.trouble, Trouble::Impossible("unsatisfiable"));
    assert!(failure.message.contains(&format!("together have {all}")), "{failure}");
    assert_eq!(fitting_nodes(&spec(anywhere(9)), &[]).unwrap(), [""; 0]);

    let plan = Plan::new(&spec(anywhere(3)), "key", vec!["gpu1".into()]);
    assert_eq!((plan.nodes, plan.gpus_per_node, plan.gpus), (None, None, 3.0));
    assert!(plan.words().contains("/home/ada: 3 GPUs on any nodes."), "{}", plan.words());
}

#[test]
fn before_the_first_worker_joins_anything_may_wait() {
    let any = spec(Demand { gpus: Gpus::Whole(9), ..Demand::default() });
    let plan = Plan::new(&any, "key", fitting_nodes(&any, &[]).unwrap());
    assert!(plan.words().contains("It has to wait for a worker to join."), "{}", plan.words());
}

#[test]
fn the_document_says_what_would_be_submitted() {
    let spec = spec(Demand { gpus: Gpus::Part(Share(500)), ..Demand::default() });
    let plan = Plan::new(&spec, "key", vec!["gpu1".into()]);
    insta::assert_snapshot!("dry_run_json", serde_json::to_string_pretty(&versioned(plan)).unwrap());
}
