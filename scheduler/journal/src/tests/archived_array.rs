//! A head with an archive, for the golden files.

use cohabit_scheduler_core::{ArchivedPart, Config, Effect, Event, Head};
use cohabit_types::{
    Array, ClientRequestId, JobChange, JobId, JobSpec, Principal, Request, Role, Span, Submit,
};

use super::config_samples::config;
use super::samples::at;

/// A head that has archived an array, and what it archived.
pub(crate) fn archived_array() -> (Head, ArchivedPart) {
    let mut head = Head::new();
    let ada = Principal::new("ada", Role::User);
    let array = Some(Array::from(0..=2));
    let spec =
        JobSpec { array, name: "sweep".into(), ..JobSpec::command(vec!["train".into()], "/tmp".into()) };
    let submit = Submit { spec, idempotency_key: Some("once".into()), estimate: None };
    let cancel =
        |jobs| Event::Client(ClientRequestId(1), ada.clone(), Request::Change(JobChange::Cancel, jobs));
    let mut effects = Vec::new();
    let archive_after = Span::from_secs(3_600);
    let events = [
        (at(0), Event::HeadStarted(Config { archive_after, ..config() })),
        (at(1), Event::Client(ClientRequestId(1), ada.clone(), Request::Submit(Box::new(submit)))),
        (at(2), cancel(vec![JobId::member(1, 1)])),
        (at(3), cancel(vec![JobId::new(1)])),
        (at(7_200), Event::Alarm),
    ];
    for (at, event) in events {
        head.handle(at, event, &mut effects);
    }
    let archived = |effect| if let Effect::Archive(part) = effect { Some(*part) } else { None };
    let part = effects.into_iter().find_map(archived).expect("it has ended long ago");
    (head, part)
}
