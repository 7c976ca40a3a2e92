//! What reports look like, and which jobs count as idle.

use cohabit_client::types::{
    AttemptRecord, DeviceId, DeviceUsage, JobRecord, JobState, Progress, RankRecord, Share, Span, Time,
    UsageAmounts, UsageCurve, UsageDay, UsagePoint, UsageRecord, UsageReport, UsageReportRow, UsageSums,
    WaitTimes, WorkAlone,
};
use cohabit_console::{Colour, Screen};

use super::*;
use crate::render::samples;

const PIPE: Screen = Screen { width: None, colour: Colour::None };

fn sums() -> UsageSums {
    let mut waits = WaitTimes::default();
    [0, 60, 3_600].into_iter().for_each(|secs| waits.observe(Span::from_secs(secs)));
    let alone =
        WorkAlone { exclusive: 3_600.0, predicted: 3_600.0, unknown: 1_800.0, ..WorkAlone::default() };
    UsageSums {
        jobs: [(JobState::Completed, 2), (JobState::Failed, 1)].into(),
        attempts: [("completed".to_owned(), 2), ("exit_code".to_owned(), 1), ("reclaimed".to_owned(), 2)]
            .into(),
        waits,
        amounts: UsageAmounts {
            held: 7_200.0,
            measured: 3_600.0,
            busy: 1_800.0,
            idle: 900.0,
            lost: 360.0,
            alone,
        },
    }
}

fn report() -> UsageReport {
    let day = |day: u64| Time::from_micros(day * 86_400_000_000);
    let row = |project: &str, user: Option<&str>| UsageReportRow {
        project: Some(project.to_owned()),
        user: user.map(str::to_owned),
        sums: sums(),
        used_part: Some(0.25),
        entitled_part: 0.5,
    };
    UsageReport {
        since: day(20_000),
        until: day(20_030),
        rows: vec![row("vision", None), row("vision", Some("a,d\u{1b}a"))],
        total: sums(),
        days: vec![UsageDay { start: day(20_001), amounts: sums().amounts }],
    }
}

#[test]
fn a_report_as_table_says_what_its_figures_rest_on() {
    insta::assert_snapshot!(report_table(&report(), PIPE));
}

#[test]
fn a_report_as_csv_has_a_line_for_each_row() {
    insta::assert_snapshot!(report_csv(&report()).unwrap());
}

#[test]
fn a_report_as_json_has_rows_days_and_the_total() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&ReportDocument::from(&report())).unwrap());
}

#[test]
fn a_report_on_nothing_says_so() {
    let nothing = UsageReport { rows: vec![], days: vec![], total: UsageSums::default(), ..report() };
    assert!(report_table(&nothing, PIPE).starts_with("No jobs from 2024-10-04"));
    assert_eq!(report_csv(&nothing).unwrap().lines().count(), 1);
}

/// A job whose only attempt began at this time on one device.
fn running(started: u64) -> JobRecord {
    let rank = RankRecord {
        node: "gpu1".into(),
        devices: vec![DeviceId("GPU-1".into())],
        share: Share(500),
        outcome: None,
        enforcement: None,
        gpu_memory: None,
        host_limits: None,
        private_uid: None,
    };
    let started_at = samples::at(started);
    let attempt = AttemptRecord {
        attempt: 1,
        started_at,
        ended_at: None,
        stopped: None,
        ranks: vec![rank],
        host: vec![],
        idle: None,
    };
    let state = JobState::Running;
    JobRecord { attempt: 1, attempts: vec![attempt], state, progress: None, ..samples::running() }
}

/// Minutes of utilization on a GPU of that job.
fn curve(job: &JobRecord, device: &str, utilization: &[Option<u8>]) -> UsageRecord {
    let point = |utilization: &Option<u8>| UsagePoint { utilization: *utilization, memory: None };
    let minutes = Span::from_secs(60 * utilization.len() as u64);
    UsageRecord {
        rank: job.id.attempt(1).rank(0),
        user: job.user.clone(),
        node: "gpu1".into(),
        share: Share(500),
        at: samples::at(0),
        live: true,
        usage: DeviceUsage {
            device: DeviceId(device.into()),
            held: minutes,
            measured: minutes,
            busy: Span::from_secs(60),
            idle: Span::ZERO,
            memory: None,
            capacity: cohabit_client::types::Bytes(80 << 30),
            energy: None,
            shared: true,
            curve: UsageCurve { step: Span::from_secs(60), points: utilization.iter().map(point).collect() },
        },
    }
}

#[test]
fn a_job_is_idle_when_all_its_gpus_have_done_nothing_for_ten_minutes() {
    let job = running(0);
    let now = samples::at(3_600);
    let ends = |zeros: usize| [vec![Some(90), None], vec![Some(0); zeros]].concat();
    let idle = |usage: &[UsageRecord]| IdleJob::new(&job, usage, now).is_some();
    assert!(idle(&[curve(&job, "GPU-1", &ends(10))]));
    assert!(!idle(&[curve(&job, "GPU-1", &ends(9))]));
    assert!(!idle(&[curve(&job, "GPU-1", &ends(30)), curve(&job, "GPU-2", &ends(2))]), "one works");
    let unknown = [vec![Some(0); 30], vec![None]].concat();
    assert!(!idle(&[curve(&job, "GPU-1", &unknown)]), "what is not measured is not idle");
}

#[test]
fn without_readings_a_job_is_idle_by_its_progress() {
    let now = samples::at(3_600);
    let idle = |progress: Option<u64>| {
        let at = |secs| Progress { at: samples::at(secs), ..Progress::default() };
        IdleJob::new(&JobRecord { progress: progress.map(at), ..running(0) }, &[], now)
    };
    assert!(idle(Some(3_000)).is_some() && idle(Some(3_001)).is_none());
    assert!(idle(None).is_none(), "a job that reports no steps tells nothing");
    let table = idle_table(&[idle(Some(1_800)).unwrap()], PIPE);
    assert!(table.contains("30 min 0 s") && table.contains("progress"), "{table}");
    let ended = JobRecord { state: JobState::Completed, ..running(0) };
    assert!(IdleJob::new(&ended, &[], now).is_none());
}

#[test]
fn a_job_report_sums_all_attempts_and_tells_what_was_not_measured() {
    let job = running(0);
    let unmeasured = job_report_text(&JobReport::new(&job, &[], samples::at(7_200)));
    assert!(unmeasured.contains("GPU hours held  1.00\n"), "half a GPU for two hours: {unmeasured}");
    assert!(unmeasured.contains("GPU hours busy  not measured\n"), "{unmeasured}");
    let usage = [curve(&job, "GPU-1", &[Some(50); 60])];
    let measured = job_report_text(&JobReport::new(&job, &usage, samples::at(3_600)));
    assert!(
        measured.contains("GPU hours busy  0.01\n") && measured.contains("Efficiency      2%\n"),
        "{measured}"
    );
}
