//! Samples of what scripts and files give a job: a label, files for its output, requests for messages, and
//! entries, and input that a client sends.

use cohabit_scheduler_core::Event;
use cohabit_types::{
    Array, ClientRequestId, FeedKind, JobInput, JobSpec, NotifyRequest, OutputFiles, Principal, Request,
    Role, Submit,
};

/// Files for the output of a job.
pub(super) fn output_files() -> OutputFiles {
    OutputFiles { stdout: Some("/home/ada/%x-%4j.out".into()), stderr: Some("/home/ada/%x.err".into()) }
}

/// A script with files for its output, an array of two entries, and a job that reads what a client sends.
pub(super) fn events() -> [Event; 3] {
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
    [script, entries, reader].map(|spec| {
        let submit = Submit { spec, idempotency_key: None, estimate: None };
        Event::Client(
            ClientRequestId(9),
            Principal::new("ada", Role::User),
            Request::Submit(Box::new(submit)),
        )
    })
}
