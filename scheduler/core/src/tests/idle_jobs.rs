//! Interactive jobs that do nothing: told, stopped when somebody waits, and after hours in any case.

use cohabit_policy::Action;
use cohabit_types::{
    FeedKind, IdleRecord, JobId, JobSpec, JobState, Outcome, ReasonCode, Report, Signal, Span, StopReason,
    Time,
};

use super::kit::*;
use super::planning::{answer, unplanned};
use crate::interface::{Config, Event};

const TOLD: Span = Span::from_secs(1_200);
const STOP: Span = Span::from_secs(1_800);

fn shell() -> JobSpec {
    JobSpec { interactive: true, ..gpus(1) }
}

impl TestHead {
    /// The worker of job 1 reports that it has done nothing for so long.
    fn idles(&mut self, quiet_for: Span) {
        let since = Time::from_micros(5);
        self.event(Event::Report(
            key(1, 1),
            Report::Idle { attempt: JobId::new(1).attempt(1), since, quiet_for },
        ));
    }

    fn works(&mut self) {
        self.event(Event::Report(key(1, 1), Report::Active(JobId::new(1).attempt(1))));
    }

    fn idle_from(&self, id: JobId) -> Option<Time> {
        self.head.view(self.now).running[&id].idle_from
    }

    /// The policy stops this job for another one that waits.
    fn policy_stops(&mut self, id: JobId) {
        let ticket = unplanned(self, vec![gpus(1)]);
        answer(self, ticket, vec![Action::StopIdle { job: id, why: "a test".into() }]);
    }
}

/// A job that has run for an hour.
fn running(spec: JobSpec) -> (TestHead, JobId) {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(spec);
    test.after(Span::from_secs(3_600));
    (test, id)
}

#[test]
fn a_worker_tells_of_an_interactive_job_after_two_thirds_of_the_time() {
    let mut test = TestHead::with_devices(2);
    test.submit(shell());
    test.submit(gpus(1));
    assert_eq!(test.runs().iter().map(|run| run.idle_after).collect::<Vec<_>>(), [Some(TOLD), None]);
    let mut off = TestHead::with_devices(1);
    off.event(Event::HeadStarted(Config { idle_stop: None, ..Config::default() }));
    off.rejoin(1, 2, vec![]);
    off.submit(shell());
    assert_eq!(off.runs()[0].idle_after, None);
}

#[test]
fn the_policy_may_stop_it_from_then_on_until_it_works_again() {
    let (mut test, id) = running(shell());
    assert_eq!(test.idle_from(id), None);
    test.idles(TOLD);
    assert_eq!(test.idle_from(id), Some(test.now + Span::from_secs(600)));
    let record = test.record(id);
    let since = test.now - TOLD;
    let (stop_from, stop_at) = (Some(since + STOP), Some(since + Span::from_secs(8 * 3_600)));
    assert_eq!(record.attempts[0].idle, Some(IdleRecord { since, stop_from, stop_at }));
    test.policy_stops(id);
    assert_eq!(test.state(id), JobState::Running, "ten minutes too early");
    test.works();
    assert_eq!((test.idle_from(id), test.record(id).attempts[0].idle), (None, None));
    test.idles(STOP);
    test.policy_stops(id);
    assert_eq!(test.state(id), JobState::Completing);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::HUP), Some(StopReason::Idle));
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::Cancelled, ReasonCode::Idle));
    assert_eq!(record.attempts[0].stopped, Some(StopReason::Idle));
    assert!(
        record.reason.starts_with("it was interactive and had done nothing for 30 min 0 s"),
        "{}",
        record.reason
    );
}

#[test]
fn what_it_does_is_unknown_from_the_end_of_a_link_until_its_worker_tells_again() {
    let (mut test, id) = running(shell());
    test.idles(STOP);
    test.lose(1, 1);
    assert_eq!(test.idle_from(id), None);
    let held =
        cohabit_types::HeldRank { rank: rank(1, 1), phase: cohabit_types::HeldRankPhase::Running(test.now) };
    test.rejoin(1, 2, vec![held]);
    test.policy_stops(id);
    assert_eq!((test.state(id), test.idle_from(id)), (JobState::Running, None));
    let (attempt, since) = (JobId::new(1).attempt(1), Time::from_micros(5));
    test.event(Event::Report(key(1, 2), Report::Idle { attempt, since, quiet_for: STOP }));
    assert_eq!(test.idle_from(id), Some(test.now));
}

#[test]
fn nobody_has_to_wait_for_it_after_eight_hours() {
    let (mut test, id) = running(shell());
    test.idles(TOLD);
    test.after(Span::from_secs(8 * 3_600) - TOLD - Span::from_micros(1));
    assert_eq!(test.state(id), JobState::Running);
    test.after(Span::from_micros(1));
    assert_eq!(test.state(id), JobState::Completing);
    let (mut busy, id) = running(shell());
    busy.idles(TOLD);
    busy.works();
    busy.after(Span::from_secs(9 * 3_600));
    assert_eq!(busy.state(id), JobState::Running);
}

#[test]
fn other_jobs_that_do_nothing_are_only_told_of() {
    let (mut test, id) = running(gpus(1));
    test.idles(STOP);
    let idle = IdleRecord { since: test.now - STOP, stop_from: None, stop_at: None };
    assert_eq!((test.idle_from(id), test.record(id).attempts[0].idle), (None, Some(idle)));
    test.after(Span::from_secs(9 * 3_600));
    assert_eq!(test.state(id), JobState::Running);
}

#[test]
fn what_goes_on_on_another_node_is_unknown() {
    let mut test = TestHead::with_devices(1);
    test.join(2, 1);
    let mut spec = shell();
    spec.demand.nodes = 2;
    let id = test.submit(spec);
    test.after(Span::from_secs(3_600));
    test.idles(STOP);
    assert_eq!((test.idle_from(id), test.record(id).attempts[0].idle.is_some()), (None, true));
}

#[test]
fn its_user_is_told_what_becomes_of_it() {
    let (mut test, id) = running(shell());
    test.idles(TOLD);
    test.idles(TOLD);
    let told: Vec<_> = test.feed().into_iter().filter(|it| it.kind == FeedKind::Idle).collect();
    let text = "attempt 1 has done nothing for 20 min 0 s; it is interactive, so it is stopped after 30 min 0 s \
                without work if a job waits for its place, and after 8 h 0 min in any case";
    assert_eq!((told.len(), told[0].text.as_str()), (1, text));
    let limited = JobSpec { time_limit: Some(Span::from_secs(7_200)), ..shell() };
    let (mut short, of_limit) = running(limited);
    short.idles(TOLD);
    assert!(short.feed().iter().any(|it| it.text.ends_with("and at its time limit in any case")));
    let stop_at = short.record(of_limit).attempts[0].idle.unwrap().stop_at;
    assert_eq!(stop_at, Some(short.now + Span::from_secs(3_600)));
    let explained = test.reader().explain(id).unwrap().sentences.join(" ");
    assert!(explained.contains("It has done nothing for 20 min 0 s; it is interactive"), "{explained}");
}
