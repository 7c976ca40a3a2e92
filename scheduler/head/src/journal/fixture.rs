//! A journal of this release, as SQL. Every later version must load it.
//!
//! `cargo nextest run -p cohabit-head --run-ignored all write_the_fixture` writes the one of a new format. It
//! never changes after the release.

use std::fmt::Write as _;

use cohabit_scheduler_core::{Config, Effect, Event, Head};
use cohabit_types::{
    Array, Bytes, Condition, Dependency, DependencyKind, DeviceId, DeviceSharing, DrainRequest, Enforcement,
    Health, HeldRank, HeldRankPhase, IndexRange, JobChange, JobId, JobSpec, ModelDescription, ModelFamily,
    Outcome, PipelineStage, PlanRequestId, Progress, Request, RetryPolicy, Role, Signal, Span, Stop, Submit,
    WarningSignal,
};
use cohabit_types::{ClientRequestId, Incarnation, Inventory, Principal, Report, WorkerKey};

use super::schema::FORMAT;
use super::{Journal, JournalEntry, JournalWrite};
use crate::test_kit::{TestJournal, ada, at, fifo_plan, inventory, key, snapshot};

/// A head that meets every kind of event.
#[derive(Default)]
struct Cluster {
    head: Head,
    entries: Vec<JournalEntry>,
    open_request: Option<PlanRequestId>,
}

impl Cluster {
    fn handle(&mut self, event: Event) {
        let entry = JournalEntry { at: at(self.entries.len() as u64), event };
        let mut effects = Vec::new();
        self.head.handle(entry.at, entry.event.clone(), &mut effects);
        self.entries.push(entry);
        for effect in effects {
            match effect {
                Effect::Plan(request) => self.open_request = Some(request),
                Effect::SendOrder(..)
                | Effect::Answer(..)
                | Effect::Publish(..)
                | Effect::RecordMisfit(_)
                | Effect::RecordUsage(_)
                | Effect::AddToFeed(_)
                | Effect::Account(_)
                | Effect::Archive(_)
                | Effect::Close(..) => {}
            }
        }
    }

    fn request(&mut self, by: Principal, request: Request) {
        self.handle(Event::Client(ClientRequestId(self.entries.len() as u64), by, request));
    }

    fn submit(&mut self, change: impl FnOnce(&mut JobSpec)) {
        let idempotency_key = Some(format!("key {}", self.entries.len()));
        // Every machine has this program: the tests of later versions run the jobs that have not ended.
        let spec = JobSpec::command(vec!["echo".into(), "trained".into()], "/tmp".into());
        let mut submit = Submit { spec, idempotency_key, estimate: None };
        change(&mut submit.spec);
        self.request(ada(), Request::Submit(Box::new(submit)));
    }

    /// Answers the open query to the policy, if there is one.
    fn plan(&mut self) {
        let Some(request) = self.open_request.take() else { return };
        let mut plan = fifo_plan(&self.head.view(at(self.entries.len() as u64)));
        plan.wake = Some(at(1_000));
        self.handle(Event::Planned(request, plan));
    }

    fn report(&mut self, report: Report) {
        self.handle(Event::Report(key(), report));
    }

    fn end(&mut self, rank: &str, outcome: Outcome) {
        let metrics = [("loss".to_owned(), 0.25.into())].into();
        let progress = Progress { step: 9, total: Some(10), rate: Some(1.5), metrics, at: at(0) };
        let rank = rank.parse().unwrap();
        self.report(Report::Ended {
            rank,
            outcome,
            stopped: None,
            progress: Some(progress),
            at: at(0),
            usage: Vec::new(),
        });
    }
}

/// Sets every option of a job.
fn set_every_option(spec: &mut JobSpec) {
    spec.environment = [("SEED".to_owned(), "7".to_owned())].into();
    spec.time_limit = Some(Span::from_secs(3_600));
    spec.retry = RetryPolicy { limit: 2, ..RetryPolicy::default() };
    spec.stop = Stop {
        warning: Some(WarningSignal { signal: Signal::USR1, before: Span::from_secs(60) }),
        ..spec.stop
    };
    spec.group = Some("nightly".into());
    spec.iterations = Some(10);
    spec.checkpoint = Some("/tmp/checkpoints".into());
    spec.slurm_environment = true;
    spec.model = Some(ModelDescription {
        name: Some("resnet50".into()),
        family: Some(ModelFamily::Cnn),
        flops_per_sample: Some(4.1e9),
        operators: [("Conv".to_owned(), 53)].into(),
        stages: vec![PipelineStage {
            replicas: 4,
            compute_seconds_on: Default::default(),
            compute_seconds: 0.11,
            activation_bytes: 1.2e8,
            gradient_bytes: 1.0e8,
        }],
        ..ModelDescription::default()
    });
}

fn recovering() -> Condition {
    Condition {
        health: Health::Recovering("MPS is restarted".into()),
        sharing: DeviceSharing::Enforced,
        foreign_memory: Bytes(256 << 20),
    }
}

/// Job 1 completed, job 2 runs, job 3 waits for job 2, job 4 is an array, job 5 was cancelled. Also returns a
/// snapshot, and after how many of the events it was taken.
fn entries_with_snapshot() -> (Vec<JournalEntry>, usize, Vec<JournalWrite>) {
    let mut cluster = Cluster::default();
    let admin = || Principal::new("root", Role::Admin);
    cluster.handle(Event::HeadStarted(Config { max_running_jobs: Some(4), ..Config::default() }));
    cluster.handle(Event::Joined(key(), inventory()));
    cluster.submit(set_every_option);
    cluster.plan();
    cluster.report(Report::Started { rank: "1#1/0".parse().unwrap(), at: at(0) });
    cluster.end("1#1/0", Outcome::Signalled(Signal::KILL));
    cluster.handle(Event::Alarm);
    cluster.submit(|_| {});
    cluster.plan();
    cluster.report(Report::Started { rank: "2#1/0".parse().unwrap(), at: at(0) });
    let early = cluster.entries.len();
    let snapshot = snapshot(early as u64, &cluster.head);
    cluster.submit(|spec| {
        spec.depends_on = vec![Dependency { job: JobId::new(2), when: DependencyKind::AfterOk }];
        spec.begin = Some(at(500));
    });
    let ranges = vec![IndexRange { first: 0, last: 4, step: 2 }];
    cluster.submit(|spec| spec.array = Some(Array { ranges, at_once: Some(1) }));
    cluster.submit(|spec| spec.held = true);
    cluster.request(ada(), Request::Change(JobChange::Release, vec![JobId::new(5)]));
    cluster.request(ada(), Request::Change(JobChange::Kill, vec![JobId::new(5)]));
    cluster.handle(Event::Alarm);
    cluster.plan();
    cluster.report(Report::Sharing {
        rank: "2#1/0".parse().unwrap(),
        enforcement: Enforcement::Unenforced("MPS is switched off".into()),
    });
    cluster.report(Report::Condition { device: DeviceId("host-1".into()), condition: recovering() });
    cluster.end("1#2/0", Outcome::Exited(0));
    cluster.handle(Event::InterferenceUpdated);
    cluster.request(admin(), Request::Drain(DrainRequest::new("box")));
    cluster.handle(Event::Lost(key(), "the other side closed it".into()));
    let again = WorkerKey { incarnation: Incarnation(2), ..key() };
    let held = vec![HeldRank { rank: "2#1/0".parse().unwrap(), phase: HeldRankPhase::Running(at(0)) }];
    cluster.handle(Event::Joined(again, Inventory { held_ranks: held, ..inventory() }));
    cluster.request(admin(), Request::Resume("box".into()));
    cluster.plan();
    (cluster.entries, early, snapshot)
}

#[test]
#[ignore = "writes the fixture of a new format; run it by hand"]
fn write_the_fixture() {
    let (mut early, taken, snapshot) = entries_with_snapshot();
    let late = early.split_off(taken);
    let events = |entries: Vec<JournalEntry>| entries.into_iter().map(JournalWrite::from).collect::<Vec<_>>();
    let journal = TestJournal::new();
    let mut open = journal.open();
    open.commit(&events(early)).unwrap();
    open.commit(&snapshot).unwrap();
    open.commit(&events(late)).unwrap();
    let path = format!("{}/tests/fixtures/journal-{FORMAT}.sql", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, dump(&journal)).unwrap();
}

/// The whole file as SQL.
fn dump(journal: &TestJournal) -> String {
    let file = rusqlite::Connection::open(&journal.path).unwrap();
    let pragma = |name: &str| -> i64 { file.pragma_query_value(None, name, |row| row.get(0)).unwrap() };
    let mut sql = format!("-- The journal of cohabit {}, format {FORMAT}.\n", env!("CARGO_PKG_VERSION"));
    for name in ["application_id", "user_version"] {
        writeln!(sql, "PRAGMA {name} = {};", pragma(name)).unwrap();
    }
    let mut made =
        file.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").unwrap();
    for statement in made.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        writeln!(sql, "{};", statement.unwrap()).unwrap();
    }
    for (table, columns) in [
        ("meta", "key, value"),
        ("events", "sequence, at, event, format"),
        ("snapshots", "sequence, at, parts, format"),
        ("parts", "snapshot, number, content"),
    ] {
        let quoted = columns
            .split(", ")
            .map(|column| format!("quote({column})"))
            .collect::<Vec<_>>()
            .join(" || ', ' || ");
        let mut rows = file.prepare(&format!("SELECT {quoted} FROM {table}")).unwrap();
        for row in rows.query_map([], |row| row.get::<_, String>(0)).unwrap() {
            writeln!(sql, "INSERT INTO {table} VALUES ({});", row.unwrap()).unwrap();
        }
    }
    sql
}
