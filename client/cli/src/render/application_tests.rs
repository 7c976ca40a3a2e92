//! Snapshots of tables and documents of applications.

use cohabit_client::types::{
    ActorRecord, ApplicationRecord, JobId, NodeRecord, NodeState, ObjectRecord, TaskClassRecord, TaskRecord,
    TaskRunnerRecord,
};
use cohabit_console::{Colour, Screen, with_schema};
use jiff::tz::TimeZone;
use serde::Serialize;

use super::actors_table::actors_table;
use super::application_documents::{
    ActorListDocument, ApplicationDocument, ApplicationListDocument, ObjectListDocument, TaskListDocument,
};
use super::application_samples::{actors, applications, objects, tasks};
use super::applications_table::applications_table;
use super::hostile_text::{assert_printable, job};
use super::objects_table::objects_table;
use super::samples::{nodes, pending, running};
use super::tasks_table::tasks_table;

const PIPE: Screen = Screen { width: None, colour: Colour::None };

fn json(document: impl Serialize) -> String {
    serde_json::to_string_pretty(&with_schema(document)).unwrap()
}

fn root() -> JobId {
    JobId::new(3)
}

#[test]
fn applications_have_their_processes_and_gpus() {
    insta::assert_snapshot!("applications", applications_table(&applications(), &TimeZone::UTC, PIPE));
    let applications = applications().iter().map(ApplicationDocument::from).collect();
    insta::assert_snapshot!("applications_json", json(ApplicationListDocument { applications }));
}

#[test]
fn actors_have_what_the_coordinator_and_the_head_know() {
    insta::assert_snapshot!("actors", actors_table(&actors(), &[running()], &[], PIPE));
    insta::assert_snapshot!("actors_json", json(ActorListDocument::new(root(), &actors(), &[running()])));
}

#[test]
fn tasks_come_after_the_processes_that_run_them() {
    insta::assert_snapshot!("tasks", tasks_table(&tasks(), &[running(), pending()], PIPE));
    insta::assert_snapshot!("tasks_json", json(TaskListDocument::new(root(), &tasks(), &[])));
}

#[test]
fn objects_come_after_their_stores() {
    insta::assert_snapshot!("objects", objects_table(&objects(), &[], PIPE));
    insta::assert_snapshot!("objects_json", json(ObjectListDocument::new(root(), &objects(), &[])));
}

#[test]
fn tables_of_applications_show_codes_of_characters_that_are_not_visible() {
    let text = |text: &str| text.to_owned();
    assert_printable(|it| {
        let named =
            |record| ApplicationRecord { name: text(it), user: text(it), node: Some(text(it)), ..record };
        let named: Vec<_> = applications().into_iter().map(named).collect();
        applications_table(&named, &TimeZone::UTC, PIPE)
    });
    assert_printable(|it| {
        let mut listing = actors();
        let named = |actor| ActorRecord { kind: text(it), name: Some(text(it)), why: text(it), ..actor };
        listing.actors = listing.actors.into_iter().map(named).collect();
        actors_table(&listing, &[job(running(), it)], &[], PIPE)
    });
    assert_printable(|it| {
        let mut listing = tasks();
        let named = |task| TaskRecord { name: text(it), why: text(it), ..task };
        listing.tasks = listing.tasks.into_iter().map(named).collect();
        let runner = |runner| TaskRunnerRecord { why: text(it), ..runner };
        let named = |class: TaskClassRecord| TaskClassRecord {
            why: text(it),
            runners: class.runners.into_iter().map(runner).collect(),
            ..class
        };
        listing.classes = listing.classes.into_iter().map(named).collect();
        tasks_table(&listing, &[job(running(), it)], PIPE)
    });
    assert_printable(|it| {
        let mut listing = objects();
        let named = |object| ObjectRecord { id: text(it), ..object };
        listing.objects = listing.objects.into_iter().map(named).collect();
        objects_table(&listing, &[job(running(), it)], PIPE)
    });
}

#[test]
fn a_node_of_which_nothing_is_heard_is_marked_beside_its_actors() {
    let of = |state| NodeRecord { state, ..nodes().remove(0) };
    let table = |state| actors_table(&actors(), &[running()], &[of(state)], PIPE);
    assert!(
        table(NodeState::Unreachable).contains("gpu1 (UNREACHABLE)"),
        "{}",
        table(NodeState::Unreachable)
    );
    assert!(!table(NodeState::Up).contains("gpu1 ("), "{}", table(NodeState::Up));
}
