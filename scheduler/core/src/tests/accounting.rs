//! What counts in reports on users and projects.

use cohabit_types::{
    JobChange, JobState, Outcome, Reply, Request, ShareProject, ShareTable, Signal, Span, StopReason,
};

use super::kit::*;
use crate::accounting_entry::{AccountOwner, AccountingKind};

/// The entries since the last call, in one word each, with seconds or how it ended.
fn told(test: &mut TestHead) -> Vec<String> {
    let told = |entry| match entry {
        AccountingKind::Started(waited) => format!("started after {}", waited.as_secs_f64()),
        AccountingKind::AttemptEnded { account, how, is_lost } => {
            format!("{} ended: {how}{}", account.attempt, if is_lost { ", lost" } else { "" })
        }
        AccountingKind::JobEnded(state) => state.word().to_owned(),
    };
    std::mem::take(&mut test.accounts).into_iter().map(|entry| told(entry.kind)).collect()
}

#[test]
fn waits_attempts_and_jobs_are_each_told_once() {
    let mut test = TestHead::with_devices(1);
    let first = test.submit(gpus(1));
    let second = test.submit(gpus(1));
    test.after(Span::from_secs(30));
    test.change(JobChange::Cancel, first);
    test.ended(rank(first.number, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Cancelled));
    let entries = ["started after 0", "1#1 ended: cancelled", "CANCELLED", "started after 30"];
    assert_eq!(told(&mut test), entries, "the second waited for the first");
    test.ended(rank(second.number, 1), Outcome::Lost("gone".into()), None);
    assert_eq!(told(&mut test), ["2#1 ended: executor_lost, lost", "started after 0"], "it is tried again");
    let waiting = test.submit(gpus(1));
    test.change(JobChange::Cancel, waiting);
    assert_eq!(told(&mut test), ["CANCELLED"], "it had no attempt");
}

#[test]
fn an_attempt_counts_for_the_project_of_its_user_and_by_what_it_holds() {
    let mut test = TestHead::with_devices(2);
    let users = ["ada".to_owned()].into();
    let projects = [("vision".to_owned(), ShareProject { users, ..ShareProject::default() })].into();
    let table = ShareTable { projects, ..ShareTable::default() };
    assert_eq!(test.request(root(), Request::ApplyShares(Box::new(table))), Reply::SharesApplied);
    let shared = test.submit(part(300));
    let live = test.head.live_accounts();
    assert_eq!(live.len(), 1);
    let owner = AccountOwner { project: "vision".into(), user: "ada".into() };
    assert_eq!((&live[0].owner, live[0].account.is_exclusive), (&owner, false));
    assert!((live[0].account.devices - 0.3).abs() < 1e-9);
    test.ended(rank(shared.number, 1), Outcome::Exited(0), None);
    let kinds: Vec<AccountingKind> = test.accounts.iter().map(|entry| entry.kind.clone()).collect();
    assert!(test.accounts.iter().all(|entry| entry.owner == owner));
    let [AccountingKind::Started(_), AccountingKind::AttemptEnded { account, how, .. }, _] = &kinds[..]
    else {
        panic!("{kinds:?}")
    };
    assert_eq!((account, *how), (&live[0].account, "completed"));
    assert_eq!(kinds[2], AccountingKind::JobEnded(JobState::Completed));
    assert_eq!(test.head.live_accounts(), []);
}
