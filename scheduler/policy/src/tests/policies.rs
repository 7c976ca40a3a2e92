//! Names and parameters of policies, and the errors for wrong ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cohabit_types::Placement;

use super::kit::*;
use crate::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, Interference, InterferenceContext, MaxMinSharing,
};
use crate::{
    Action, POLICY_NAMES, Plan, View, parse_policy, parse_policy_with, uses_agents, uses_interference,
    uses_sensitivity,
};

fn refusal(text: &str) -> String {
    parse_policy(text).err().map(|why| why.to_string()).unwrap_or_default()
}

#[test]
fn every_listed_name_is_a_policy_that_plans() {
    for name in POLICY_NAMES {
        let view = view(vec![node(1, &[1_000])], vec![]);
        let mut policy = parse_policy(name).unwrap();
        policy.learn(&view, &view.as_changes());
        assert_eq!(policy.plan(&view).actions, [], "{name}");
    }
}

/// The first plan of the policy with this name for this view.
fn plan_of(name: &str, view: &View) -> Plan {
    let mut policy = parse_policy(name).unwrap();
    policy.learn(view, &view.as_changes());
    policy.plan(view)
}

#[test]
fn fifo_takes_the_first_devices_and_strict_fifo_the_mappers() {
    let nodes = vec![node(1, &[1_000; 4]), node(2, &[1_000; 2])];
    let view = view(nodes, vec![job(1, gpus(2))]);
    let place = |name| match plan_of(name, &view).actions.as_slice() {
        [Action::Place { placement: Placement { parts, .. }, .. }] => parts[0].node.0.as_u128(),
        others => panic!("{name}: {others:?}"),
    };
    assert_eq!(["fifo", "fifo-strict", "fifo-greedy"].map(place), [1, 2, 2]);
}

#[test]
fn only_a_strict_fifo_lets_no_job_pass_one_that_does_not_fit() {
    let view = view(vec![node(1, &[1_000, 0])], vec![job(1, gpus(2)), job(2, gpus(1))]);
    let started = |name| placed(&plan_of(name, &view));
    assert_eq!(["fifo", "fifo-strict", "fifo-greedy"].map(started), [vec![], vec![], vec![2]]);
}

#[test]
fn parameters_follow_a_colon() {
    for text in [
        "a-srpt-turn:theta=1.5,delta=1",
        "a-srpt:preempt=off,quantum=60,stop-ratio=2,margin=0.5,theta=2,delta=1,lane=0.1,patience=2,patience-base=3600,drain=0",
        "a-srpt:promise=turn,promise-factor=2",
        " las : gpu-hours=0.5, factor=4 ,queues=2,quantum=60",
        "srtf-oracle:quantum=1",
        "spd:network=10g,interconnect=300GB,swaps=off,multi-start=off,nic-share=job",
        "a-srpt:selection=random,map-seed=3,micro-batches=4",
        "fifo-strict:selection=fragments,network=10g",
        "easy-backfill:",
        "isacpp:rcd=sum,as-released=on,speed-weight=0.5,network=10g",
        "util-threshold:threshold=1.5",
        "hybrid:caution=1,harm-weight=0.5,idle-price=0.1,sharing=off,watchdog=off,theta=2,network=10g",
        "clwp-nlwp:similarity=load,slots=all,mu=0.5,own=2,hurt=0,communication=1,traffic=parameter-server",
        "clwp-nlwp:network=10g,interconnect=300GB",
        "first-fit-sharing:selection=fragments",
    ] {
        assert_eq!(refusal(text), "", "{text}");
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest_ones() {
    let why = refusal("easy-backfil");
    assert!(why.starts_with("there is no policy 'easy-backfil': did you mean easy-backfill?"), "{why}");
    assert!(
        refusal("zzz").starts_with("there is no policy 'zzz': use one of fifo, fifo-strict, fifo-greedy")
    );
}

#[test]
fn an_unknown_parameter_is_answered_with_the_known_ones() {
    let why = refusal("las:quantun=3");
    assert!(why.starts_with("the policy las has no parameter 'quantun': did you mean quantum?"), "{why}");
    assert!(why.contains("gpu-hours, factor, queues, quantum"), "{why}");
    assert_eq!(refusal("fifo:theta=1"), "the policy fifo has no parameter 'theta': use one of tune");
    assert!(refusal("spd:theta=1").contains("has no parameter 'theta'"));
}

#[test]
fn a_bad_value_is_answered_with_what_is_allowed() {
    for (text, needle) in [
        ("las:queues=0", "queues is '0': use a whole number from 1 to 20"),
        ("las:gpu-hours=-1", "gpu-hours is '-1': use a number above 0"),
        ("srtf-oracle:quantum=nan", "quantum is 'nan': use seconds"),
        ("spd:network=fast", "network is 'fast': use a bandwidth like 25g"),
        ("spd:swaps=maybe", "swaps is 'maybe': use on or off"),
        ("a-srpt:theta=x", "theta is 'x'"),
        ("isacpp:rcd=median", "rcd is 'median': use mean or sum"),
        ("isacpp:speed-weight=-1", "speed-weight is '-1': use a number from 0 to 1000"),
        ("clwp-nlwp:similarity=none", "similarity is 'none': use cosine or load"),
        ("clwp-nlwp:mu=-1", "mu is '-1': use a number from 0 to 1000"),
        ("hybrid:caution=-1", "caution is '-1': use a number from 0 to 1000"),
        ("hybrid:sharing=maybe", "sharing is 'maybe': use on or off"),
        ("hybrid:theta=x", "theta is 'x'"),
        ("util-threshold:threshold=nan", "threshold is 'nan': use a number from 0 to 10"),
    ] {
        let why = refusal(text);
        assert!(why.contains(needle) && why.contains(text.split(':').next().unwrap()), "{why}");
    }
}

#[test]
fn a_malformed_parameter_is_answered_with_the_syntax() {
    let why = refusal("las:fast");
    assert_eq!(why, "'fast' is not a parameter of the policy las: write las:key=value,key=value");
}

#[test]
fn policies_that_share_gpus_use_interference_and_others_do_not() {
    let uses = |name: &&str| uses_interference(name).unwrap();
    let (using, others): (Vec<&str>, Vec<&str>) = POLICY_NAMES.into_iter().partition(uses);
    assert!(using.contains(&"isacpp") && using.contains(&"horus"), "{using:?}");
    assert!(others.contains(&"fifo") && others.contains(&"a-srpt"), "{others:?}");
    assert!(uses_interference("hybrid:sharing=off").unwrap());
    assert!(uses_interference("fif").is_err());
}

#[test]
fn policies_that_tune_shares_use_sensitivity_and_others_do_not() {
    for (text, uses) in
        [("hybrid", false), ("fifo:tune=on", true), ("las:queues=2,tune=off", false), ("maifs", true)]
    {
        assert_eq!(uses_sensitivity(text).unwrap(), uses, "{text}");
    }
    assert!(uses_sensitivity("fifo:tune=maybe").is_err());
}

#[test]
fn agents_decide_for_maifs_alone() {
    let used: Vec<&str> = POLICY_NAMES.into_iter().filter(|name| uses_agents(name).unwrap()).collect();
    assert_eq!(used, ["maifs"]);
    assert!(uses_agents("maifs:tune=off").unwrap());
}

/// Counts how often it is asked.
#[derive(Debug, Default)]
struct CountingInterference(AtomicUsize);

impl Interference for CountingInterference {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        AnalyticInterference::<MaxMinSharing>::default().predict(sets)
    }
}

/// A policy of the table that is not aware of interference gets none when it is made; told of it later, it
/// must not ask either.
#[test]
fn only_policies_that_the_table_calls_aware_ask_for_predictions() {
    let pending = (1..=4).map(|number| job(number, part(500))).collect();
    let view = view(vec![node(1, &[1_000, 1_000])], pending);
    let asks = |name: &str| {
        let counting = Arc::new(CountingInterference::default());
        let context = InterferenceContext {
            interference: Arc::clone(&counting) as Arc<dyn Interference>,
            ..InterferenceContext::default()
        };
        let mut policy = parse_policy_with(name, &context).unwrap();
        policy.set_interference(&context);
        policy.learn(&view, &view.as_changes());
        policy.plan(&view);
        counting.0.load(Ordering::Relaxed) > 0
    };
    for name in POLICY_NAMES {
        assert!(uses_interference(name).unwrap() || !asks(name), "{name}");
    }
    assert!(asks("hybrid"), "on this cluster the question comes up");
}
