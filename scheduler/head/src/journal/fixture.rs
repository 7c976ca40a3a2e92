//! The journal of this release, as SQL: what every later version must load.
//!
//! Written once for each format, by `cargo test -p cohabit-head write_the_fixture -- --ignored`, and never
//! changed after the release.

use std::fmt::Write as _;

use cohabit_scheduler_core::{Config, Effect, Event, Head};
use cohabit_types::{
    Array, Bytes, Condition, Dependency, DependencyKind, DeviceId, DeviceSharing, Enforcement, Health,
    HeldRank, HeldRankPhase, IndexRange, JobChange, JobId, JobSpec, ModelDescription, ModelFamily, Outcome,
    PipelineStage, PlanRequestId, Progress, Request, RetryPolicy, Role, Signal, Span, Stop, Submit,
    WarningSignal,
};
use cohabit_types::{ClientRequestId, Incarnation, Inventory, Principal, Report, WorkerKey};

use super::schema::FORMAT;
use super::{Journal, JournalEntry, Write};
use crate::test_kit::{TestJournal, ada, at, fifo_plan, inventory, key, snapshot};

/// A cluster that lives through a little of everything.
#[derive(Default)]
struct Cluster {
    head: Head,
    entries: Vec<JournalEntry>,
    question: Option<PlanRequestId>,
}

impl Cluster {
    fn happens(&mut self, event: Event) {
        let entry = JournalEntry { at: at(self.entries.len() as u64), event };
        let mut effects = Vec::new();
        self.head.handle(entry.at, entry.event.clone(), &mut effects);
        self.entries.push(entry);
        for effect in effects {
            match effect {
                Effect::Plan(ticket) => self.question = Some(ticket),
                Effect::Tell(..) | Effect::Answer(..) | Effect::Publish(..) | Effect::Close(..) => {}
            }
        }
    }

    fn asks(&mut self, by: Principal, request: Request) {
        self.happens(Event::Client(ClientRequestId(self.entries.len() as u64), by, request));
    }

    fn submits(&mut self, change: impl FnOnce(&mut JobSpec)) {
        let idempotency_key = Some(format!("key {}", self.entries.len()));
        // A program that every machine has: the tests of later versions run what is left to run.
        let spec = JobSpec::command(vec!["echo".into(), "trained".into()], "/tmp".into());
        let mut submit = Submit { spec, idempotency_key, estimate: None };
        change(&mut submit.spec);
        self.asks(ada(), Request::Submit(Box::new(submit)));
    }

    /// The policy answers, if it was asked.
    fn plans(&mut self) {
        let Some(ticket) = self.question.take() else { return };
        let mut plan = fifo_plan(&self.head.view(at(self.entries.len() as u64)));
        plan.wake = Some(at(1_000));
        self.happens(Event::Planned(ticket, plan));
    }

    fn reports(&mut self, report: Report) {
        self.happens(Event::Report(key(), report));
    }

    fn ends(&mut self, rank: &str, outcome: Outcome) {
        let metrics = [("loss".to_owned(), 0.25)].into();
        let progress = Progress { step: 9, total: Some(10), rate: Some(1.5), metrics, at: at(0) };
        let rank = rank.parse().unwrap();
        self.reports(Report::Ended { rank, outcome, stopped: None, progress: Some(progress), at: at(0) });
    }
}

/// Everything that a user can say about a job.
fn say_everything(spec: &mut JobSpec) {
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

fn in_trouble() -> Condition {
    Condition {
        health: Health::Recovering("MPS is restarted".into()),
        sharing: DeviceSharing::Enforced,
        foreign_memory: Bytes(256 << 20),
    }
}

/// Job 1 completed, job 2 runs, job 3 waits for it, job 4 is an array, job 5 was cancelled; and a snapshot
/// after so many events.
fn a_little_of_everything() -> (Vec<JournalEntry>, usize, Vec<Write>) {
    let mut cluster = Cluster::default();
    let admin = || Principal::new("root", Role::Admin);
    cluster.happens(Event::Configured(Config::default()));
    cluster.happens(Event::Joined(key(), inventory()));
    cluster.submits(say_everything);
    cluster.plans();
    cluster.reports(Report::Started { rank: "1#1/0".parse().unwrap(), at: at(0) });
    cluster.ends("1#1/0", Outcome::Signalled(Signal::KILL));
    cluster.happens(Event::Alarm);
    cluster.submits(|_| {});
    cluster.plans();
    cluster.reports(Report::Started { rank: "2#1/0".parse().unwrap(), at: at(0) });
    let early = cluster.entries.len();
    let snapshot = snapshot(early as u64, &cluster.head);
    cluster.submits(|spec| {
        spec.depends_on = vec![Dependency { job: JobId::new(2), when: DependencyKind::AfterOk }];
        spec.begin = Some(at(500));
    });
    let ranges = vec![IndexRange { first: 0, last: 4, step: 2 }];
    cluster.submits(|spec| spec.array = Some(Array { ranges, at_once: Some(1) }));
    cluster.submits(|spec| spec.held = true);
    cluster.asks(ada(), Request::Change(JobChange::Release, vec![JobId::new(5)]));
    cluster.asks(ada(), Request::Change(JobChange::Cancel, vec![JobId::new(5)]));
    cluster.happens(Event::Alarm);
    cluster.plans();
    cluster.reports(Report::Sharing {
        rank: "2#1/0".parse().unwrap(),
        enforcement: Enforcement::Unenforced("MPS is switched off".into()),
    });
    cluster.reports(Report::Condition { device: DeviceId("host-1".into()), condition: in_trouble() });
    cluster.ends("1#2/0", Outcome::Exited(0));
    cluster.happens(Event::Learned);
    cluster.asks(admin(), Request::Drain("box".into()));
    cluster.happens(Event::Lost(key(), "the other side closed it".into()));
    let again = WorkerKey { incarnation: Incarnation(2), ..key() };
    let held = vec![HeldRank { rank: "2#1/0".parse().unwrap(), phase: HeldRankPhase::Running(at(0)) }];
    cluster.happens(Event::Joined(again, Inventory { held, ..inventory() }));
    cluster.asks(admin(), Request::Resume("box".into()));
    cluster.plans();
    (cluster.entries, early, snapshot)
}

#[test]
#[ignore = "writes the fixture of a release; run by hand when the format changes"]
fn write_the_fixture() {
    let (mut early, taken, snapshot) = a_little_of_everything();
    let late = early.split_off(taken);
    let events = |entries: Vec<JournalEntry>| entries.into_iter().map(Write::from).collect::<Vec<_>>();
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
        ("events", "sequence, at, event"),
        ("snapshots", "sequence, at, parts"),
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
