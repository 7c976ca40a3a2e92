//! Dry runs of jobs that would start, share, or wait.

use cohabit_client::types::{
    Bytes, ColocationSlowdown, Demand, DeviceId, DryRun, DryRunNeighbor, DryRunPlacement,
    EnforcementRequirement, GpuRequest, JobId, JobPrediction, JobSpec, PredictedSlowdown, Share, Slowdown,
    Span, Spread,
};
use jiff::tz::TimeZone;

use super::*;
use crate::render::hostile_text::assert_printable;
use crate::render::samples::{at, nodes};

fn spec(demand: Demand) -> JobSpec {
    JobSpec { demand, ..JobSpec::command(vec!["train".into()], "/home/ada".into()) }
}

fn half() -> JobSpec {
    spec(Demand { gpus: GpuRequest::Part(Share(500)), ..Demand::default() })
}

fn fitting(demand: Demand) -> Vec<String> {
    fitting_nodes(&demand, &nodes())
}

/// No placement and no prediction.
fn waits() -> DryRun {
    DryRun {
        place: None,
        reason: "no worker is connected that takes jobs".into(),
        predicted: JobPrediction::default(),
        slowdown: None,
        neighbors: Vec::new(),
    }
}

/// Job 15 beside job 12.
fn joins() -> DryRun {
    let slowdown_of = |job: u64, beside: u64, slowdown, measured| ColocationSlowdown {
        job: JobId::new(job),
        beside: vec![JobId::new(beside)],
        predicted: PredictedSlowdown::new(slowdown, 0.05),
        measured,
    };
    DryRun {
        place: Some(DryRunPlacement {
            nodes: vec!["gpu1".into()],
            devices: vec![DeviceId("GPU-5e1".into())],
            share: Share(500),
        }),
        reason: "it would start at once".into(),
        predicted: JobPrediction {
            iterations: Some(1_000),
            runtime: Some(Span::from_secs(600)),
            runtime_between: Some([Span::from_secs(420), Span::from_secs(900)]),
            runs: Some(14),
            slowdown: Some(Slowdown(1_120)),
            gpu_memory: Some(Bytes(11 << 30)),
            starts_at: Some(at(100)),
            ends_at: Some(at(772)),
            starts_between: None,
            ends_between: None,
        },
        slowdown: Some(slowdown_of(15, 12, 1.12, None)),
        neighbors: vec![DryRunNeighbor {
            name: "resnet".into(),
            now: Slowdown::NONE,
            then: slowdown_of(12, 15, 1.3, Some(Slowdown(1_220))),
        }],
    }
}

fn described(spec: &JobSpec, fitting: &[&str], dry_run: &DryRun) -> String {
    let fitting: Vec<String> = fitting.iter().map(ToString::to_string).collect();
    describe_dry_run(spec, &fitting, dry_run, &TimeZone::UTC)
}

#[test]
fn nodes_that_are_large_enough_are_listed() {
    let two = Demand { gpus: GpuRequest::Whole(2), ..Demand::default() };
    assert_eq!(fitting(two), ["gpu1"]);
    let large = Demand { gpu_memory: Some(Bytes(100 << 30)), ..Demand::default() };
    assert_eq!(fitting(large), ["gpu1", "trial"]);
    assert_eq!(fitting(Demand { cpus: 65, ..Demand::default() }), [""; 0]);
    assert_eq!(
        fitting(Demand { gpus: GpuRequest::Whole(9), spread: Spread::Free, ..two }),
        ["gpu1", "trial"]
    );
}

#[test]
fn sharing_needs_room_for_the_reserve_and_may_require_enforced_limits() {
    let part = |gib: u64, limits| {
        let gpu_memory = Some(Bytes(gib << 30));
        fitting(Demand { gpus: GpuRequest::Part(Share(500)), gpu_memory, limits, ..Demand::default() })
    };
    assert_eq!(part(140, EnforcementRequirement::BestEffort), ["gpu1", "trial"]);
    // The host slot has no memory to count.
    assert_eq!(part(141, EnforcementRequirement::BestEffort), ["gpu1"]);
    assert_eq!(part(140, EnforcementRequirement::Enforced), ["gpu1"]);
    assert_eq!(part(141, EnforcementRequirement::Enforced), [""; 0]);
}

#[test]
fn the_text_names_neighbors_and_the_slowdown_of_each_job() {
    insta::assert_snapshot!("dry_run", described(&half(), &["gpu1"], &joins()));
}

#[test]
fn a_job_that_would_wait_has_a_reason() {
    let any = spec(Demand { gpus: GpuRequest::Whole(3), spread: Spread::Free, ..Demand::default() });
    insta::assert_snapshot!("dry_run_waits", described(&any, &[], &waits()));
}

#[test]
fn the_document_describes_the_job_and_the_decision() {
    let plan = DryRunDocument::new(&half(), "key", vec!["gpu1".into()], &joins());
    insta::assert_snapshot!("dry_run_json", serde_json::to_string_pretty(&with_schema(plan)).unwrap());
    let plan = DryRunDocument::new(&half(), "key", vec!["gpu1".into()], &waits());
    let document = serde_json::to_value(with_schema(plan)).unwrap();
    assert!(document["placement"].is_null() && document["predicted"]["slowdown"].is_null(), "{document}");
}

#[test]
fn a_dry_run_shows_codes_of_characters_that_are_not_visible() {
    assert_printable(|text| {
        let mut dry_run = joins();
        dry_run.reason = format!("it waits for {text}");
        dry_run.neighbors[0].name = text.to_owned();
        described(&half(), &[text], &dry_run)
    });
}
