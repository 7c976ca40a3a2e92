//! Shared by the tests of this crate: a journal in a directory, and events and records of a small cluster.

pub(crate) mod cluster;

use std::path::PathBuf;

use cohabit_journal::{encode_head, encode_part};
use cohabit_policy::{Action, Plan, View, first_come_first_served};
use cohabit_scheduler_core::{Config, Event, Head};
use cohabit_types::{
    AttemptRecord, Bytes, ClientRequestId, ColocationSample, Demand, Device, DeviceId, DeviceKind, FeedEvent,
    FeedJob, FeedKind, Incarnation, Inventory, Isolation, JobId, JobLabels, JobRecord, JobSpec, JobState,
    LinkBandwidths, NodeId, Outcome, Placement, PlanRequestId, Principal, Progress, RankId, RankPlacement,
    ReasonCode, Report, Request, Role, Share, SharingLimits, SharingStrategy, Span, Submit, Time,
    TrainingSpec, WorkerKey,
};
use tempfile::TempDir;
use uuid::Uuid;

use crate::HeadError;
use crate::journal::{EncodedPart, Journal, JournalEntry, JournalWrite, SqliteJournal};

/// An error with its cause.
pub(crate) fn message_of(error: &HeadError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

/// A directory with a journal in it.
pub(crate) struct TestJournal {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

impl TestJournal {
    pub(crate) fn new() -> TestJournal {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite");
        TestJournal { _folder: folder, path }
    }

    /// A journal of these events, a second apart.
    pub(crate) fn of(events: Vec<Event>) -> TestJournal {
        let journal = TestJournal::new();
        journal.open().commit(&writes(events)).unwrap();
        journal
    }

    pub(crate) fn open(&self) -> SqliteJournal {
        SqliteJournal::open(&self.path).unwrap()
    }

    /// Edits the file as a person with a tool would.
    pub(crate) fn edit(&self, sql: &str) {
        rusqlite::Connection::open(&self.path).unwrap().execute_batch(sql).unwrap();
    }

    /// The columns of the first row of a query, as text.
    pub(crate) fn ask(&self, sql: &str) -> Vec<Option<String>> {
        let connection = rusqlite::Connection::open(&self.path).unwrap();
        let mut query = connection.prepare(sql).unwrap();
        let columns = query.column_count();
        let text = |value: rusqlite::types::Value| match value {
            rusqlite::types::Value::Null => None,
            rusqlite::types::Value::Integer(number) => Some(number.to_string()),
            rusqlite::types::Value::Real(number) => Some(number.to_string()),
            rusqlite::types::Value::Text(text) => Some(text),
            rusqlite::types::Value::Blob(_) => panic!("no column holds bytes"),
        };
        query.query_row([], |row| (0..columns).map(|column| row.get(column).map(text)).collect()).unwrap()
    }
}

/// The time this many seconds after 2026-01-01 00:00 UTC.
pub(crate) fn at(secs: u64) -> Time {
    Time::from_micros(1_767_225_600_000_000) + Span::from_secs(secs)
}

pub(crate) fn writes(events: Vec<Event>) -> Vec<JournalWrite> {
    (0..).zip(events).map(|(secs, event)| JournalWrite::from(JournalEntry { at: at(secs), event })).collect()
}

/// A snapshot of a head behind the event of this number, in parts of one job.
pub(crate) fn snapshot(sequence: u64, head: &Head) -> Vec<JournalWrite> {
    let (rest, parts) = head.split_for_snapshot(1);
    let parts = parts.map(|part| EncodedPart::of(&encode_part(&part).unwrap()));
    let contents = std::iter::once(EncodedPart::of(&encode_head(&rest).unwrap())).chain(parts);
    let part = |(number, content)| JournalWrite::Part { snapshot: sequence, number, content };
    let mut writes: Vec<JournalWrite> = (0..).zip(contents).map(part).collect();
    let parts = writes.len() as u32;
    writes.push(JournalWrite::Snapshot { sequence, at: at(sequence - 1), parts });
    writes
}

pub(crate) fn ada() -> Principal {
    Principal::new("ada", Role::User)
}

pub(crate) fn node() -> NodeId {
    NodeId(Uuid::from_u128(7))
}

pub(crate) fn key() -> WorkerKey {
    WorkerKey { node: node(), incarnation: Incarnation(1) }
}

/// A machine with two host slots.
pub(crate) fn inventory() -> Inventory {
    let slot = |n| Device::new(DeviceId(format!("host-{n}").into()), DeviceKind::Host, "host slot", None);
    Inventory {
        name: "box".into(),
        address: "127.0.0.1".into(),
        cpus: 8,
        memory: Bytes(16 << 30),
        devices: vec![slot(0), slot(1)],
        build: "test".into(),
        links: LinkBandwidths::default(),
        sharing: SharingLimits::default(),
        max_jobs: None,
        rendezvous_ports: vec![29_601],
        isolation: Isolation::default(),
        fetches_code: true,
        prefetches: false,
        application_ports: true,
        changes_host_shares: true,
        orphan_grace: Span::from_secs(120),
        held_ranks: vec![],
    }
}

pub(crate) fn spec() -> JobSpec {
    JobSpec::command(vec!["/bin/train".into(), "--fast".into()], "/tmp".into())
}

pub(crate) fn submit() -> Submit {
    Submit { spec: spec(), idempotency_key: None, estimate: None }
}

pub(crate) fn submitted(client: u64) -> Event {
    Event::Client(ClientRequestId(client), ada(), Request::Submit(Box::new(submit())))
}

pub(crate) fn planned(ticket: u64, job: &str) -> Event {
    let devices = vec![DeviceId("host-0".into())];
    let part = RankPlacement { node: node(), devices, share: Share::WHOLE, ranks: vec![], host: None };
    let place = Action::Place {
        job: job.parse().unwrap(),
        placement: Placement { parts: vec![part] },
        runtime: None,
        slowdown: None,
        why: "it is first".into(),
    };
    Event::Planned(PlanRequestId(ticket), Plan { actions: vec![place], ..Plan::default() })
}

pub(crate) fn ended(rank: &str, outcome: Outcome) -> Event {
    let rank: RankId = rank.parse().unwrap();
    Event::Report(
        key(),
        Report::Ended { rank, outcome, stopped: None, progress: None, at: at(0), usage: Vec::new() },
    )
}

/// The start of a job of this user.
pub(crate) fn feed_event(at: Time, user: &str) -> FeedEvent {
    let job = FeedJob {
        id: JobId::new(1),
        name: "train".into(),
        user: user.into(),
        state: JobState::Running,
        reason_code: ReasonCode::Running,
        reason: String::new(),
        attempt: 1,
        exit_code: None,
        signal: None,
        nodes: vec!["box".into()],
        array: None,
        submitted_at: at,
        started_at: Some(at),
        ended_at: None,
        requests: vec![],
    };
    FeedEvent { at, kind: FeedKind::Start, job: Some(job), node: None, device: None, text: "it runs".into() }
}

/// One job from its submission to its end, in seven events.
pub(crate) fn one_job() -> Vec<Event> {
    let rank = "1#1/0".parse().unwrap();
    vec![
        Event::HeadStarted(Config::default()),
        Event::Joined(key(), inventory()),
        submitted(1),
        planned(1, "1"),
        Event::Report(key(), Report::Started { rank, at: at(4) }),
        ended("1#1/0", Outcome::Exited(0)),
        submitted(2),
    ]
}

/// The record of a job of user ada that ran for this long. Job `n` was submitted in minute `n`.
pub(crate) fn ran(number: u64, runtime: Span) -> JobRecord {
    let submitted_at = at(number * 60);
    let attempt = AttemptRecord {
        attempt: 1,
        started_at: submitted_at,
        ended_at: Some(submitted_at + runtime),
        stopped: None,
        ranks: vec![],
        host: Vec::new(),
        idle: None,
    };
    JobRecord {
        id: JobId::new(number),
        name: "train".into(),
        user: "ada".into(),
        group: None,
        state: JobState::Completed,
        reason_code: ReasonCode::Completed,
        reason: String::new(),
        work: "/bin/train --fast".into(),
        shell_command: None,
        demand: Demand::default(),
        priority: 0,
        time_limit: None,
        workdir: "/tmp".into(),
        code: None,
        application: None,
        attempt: 1,
        attempts: vec![attempt],
        exit_code: Some(0),
        signal: None,
        submitted_at,
        started_at: Some(submitted_at),
        ended_at: Some(submitted_at + runtime),
        sharing_with: vec![],
        trained: TrainingSpec::default(),
        predicted: None,
        slowdown_measured: None,
        progress: Some(Progress { step: 500, ..Progress::default() }),
        array: None,
        revision: 1,
        labels: JobLabels::default(),
    }
}

/// A sample of this minute of a job that makes `rate` steps a second beside these neighbors, on a V100
/// under MPS.
pub(crate) fn minute(number: u64, job: JobId, rate: f64, neighbors: &[JobId]) -> ColocationSample {
    ColocationSample {
        rank: job.attempt(1).rank(0),
        device: DeviceId("gpu-0".into()),
        gpu: "V100".into(),
        sharing: SharingStrategy::Mps,
        neighbors: neighbors.iter().map(|job| job.attempt(1).rank(0)).collect(),
        from: at(60 * number),
        to: at(60 * number + 60),
        steps: 600,
        rate,
        memory: None,
        utilization: Some(0.5),
    }
}

/// The plan of first come, first served for a view that it has not seen before.
pub(crate) fn fifo_plan(view: &View) -> Plan {
    let mut policy = first_come_first_served();
    policy.learn(view, &view.as_changes());
    policy.plan(view)
}

/// The head after these events, one in each second.
pub(crate) fn replayed(events: Vec<Event>) -> Head {
    let mut head = Head::new();
    for (secs, event) in (0..).zip(events) {
        head.handle(at(secs), event, &mut Vec::new());
    }
    head
}

/// A view with one pending job and a free machine.
pub(crate) fn pending_view() -> View {
    let mut head = Head::new();
    for event in one_job().drain(..3) {
        head.handle(at(0), event, &mut Vec::new());
    }
    head.view(at(1))
}
