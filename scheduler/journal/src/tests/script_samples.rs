//! Samples of what scripts and files give a job: a label, files for its output, requests for messages, and
//! entries, input that a client sends, a terminal, and rules of sweeps.

use cohabit_scheduler_core::Event;
use cohabit_types::{
    Array, AshaRule, ClientRequestId, EarlyStopping, FeedKind, JobInput, JobSpec, MedianRule, NotifyRequest,
    OutputFiles, Principal, Request, Role, Submit, Sweep, SweepGoal, TerminalSize,
};

/// Files for the output of a job.
pub(super) fn output_files() -> OutputFiles {
    OutputFiles { stdout: Some("/home/ada/%x-%4j.out".into()), stderr: Some("/home/ada/%x.err".into()) }
}

/// A script with files for its output, an array of two entries, a job that reads what a client sends, one
/// with a terminal, and sweeps.
pub(super) fn events() -> [Event; 7] {
    let script = JobSpec {
        partition: Some("gpu".into()),
        output: output_files(),
        notify: vec![
            NotifyRequest { event: FeedKind::Fail, channel: Some("mail".into()) },
            NotifyRequest { event: FeedKind::OutOfMemory, channel: None },
        ],
        ..JobSpec::command(vec!["./train.sh".into()], "/home/ada".into())
    };
    let entries = JobSpec {
        entries: vec!["seed 1".into(), r#"{"lr":0.1}"#.into()],
        array: Some(Array::from(0..=1)),
        ..JobSpec::command(vec!["train".into(), "{}".into()], "/".into())
    };
    let reader =
        JobSpec { input: JobInput::Sent, ..JobSpec::command(vec!["wc".into(), "-l".into()], "/".into()) };
    let sweep = |early_stopping| JobSpec {
        entries: vec![r#"{"lr":"1e-5"}"#.into()],
        array: Some(Array::from(0..=0)),
        sweep: Some(Sweep { metric: Some("accuracy".into()), goal: SweepGoal::Max, early_stopping }),
        ..JobSpec::command(vec!["train".into(), "--lr={lr}".into()], "/".into())
    };
    let median = sweep(Some(EarlyStopping::Median(MedianRule { grace: 10, completed: 3 })));
    let asha = sweep(Some(EarlyStopping::Asha(AshaRule { grace: 1, reduction: 4, rungs: 5 })));
    let shell = JobSpec {
        input: JobInput::Terminal(TerminalSize { rows: 50, columns: 132 }),
        ..JobSpec::command(vec!["bash".into()], "/home/ada".into())
    };
    [script, entries, reader, shell, median, asha, sweep(None)].map(|spec| {
        let submit = Submit { spec, idempotency_key: None, estimate: None };
        Event::Client(
            ClientRequestId(9),
            Principal::new("ada", Role::User),
            Request::Submit(Box::new(submit)),
        )
    })
}
