//! Requests that would cost the head or other users dearly: refused before they are written down, or
//! answered in parts.

use cohabit_types::{
    Array, Bytes, ChangeResult, Dependency, DependencyKind, Filter, IndexRange, JobChange, JobId, JobRef,
    JobSpec, ModelDescription, Refusal, RefusalCode, Signal, Span, Submit, WarningSignal,
};

use crate::RequestLimits;
use crate::test_kit::cluster::{TestClient, TestHead};
use crate::test_kit::{spec, submit};

fn array(members: u32) -> Option<Array> {
    Some(Array { ranges: vec![IndexRange { first: 0, last: members - 1, step: 1 }], at_once: None })
}

fn held(change: impl FnOnce(&mut JobSpec)) -> Submit {
    let mut submit = submit();
    submit.spec.held = true;
    change(&mut submit.spec);
    submit
}

async fn refused(client: &TestClient, change: impl FnOnce(&mut JobSpec)) -> Refusal {
    client.try_submit(held(change)).await.unwrap_err()
}

/// How many requests of clients are in the journal.
fn requests(head: &TestHead) -> u64 {
    let count = "SELECT printf('%d', count(*)) FROM events WHERE event LIKE '{\"client_request\"%'";
    head.ask(count).parse().unwrap()
}

#[tokio::test]
async fn every_text_of_a_job_has_a_limit_and_the_refusal_names_it() {
    let head = TestHead::start().await;
    let eve = head.user("eve").await;
    let long = |bytes| "x".repeat(bytes);
    let model = |name: String| Some(ModelDescription { name: Some(name), ..ModelDescription::default() });
    let name = refused(&eve, |spec| spec.name = long(8 << 10)).await;
    assert_eq!((name.code, name.message.contains("8192 bytes")), (RefusalCode::Invalid, true), "{name}");
    assert!(name.message.contains("at most 1024"), "{name}");
    for refusal in [
        refused(&eve, |spec| spec.group = Some(long(2_000))).await,
        refused(&eve, |spec| spec.checkpoint = Some(long(5_000))).await,
        refused(&eve, |spec| spec.workdir = "/".to_owned() + &long(5_000)).await,
        refused(&eve, |spec| spec.model = model(long(2_000))).await,
        refused(&eve, |spec| drop(spec.environment.insert("BIG".into(), long(3 << 20)))).await,
        refused(&eve, |spec| spec.depends_on = vec![after(JobId::new(1)); 1_001]).await,
        refused(&eve, |spec| spec.array = array(10_001)).await,
    ] {
        assert!(refusal.message.contains("at most"), "{refusal}");
    }
    assert!(eve.drain(&long(2_000)).await.unwrap_err().message.contains("at most"));
}

fn after(job: JobId) -> Dependency {
    Dependency { job, when: DependencyKind::AfterAny }
}

#[tokio::test]
async fn requests_that_change_nothing_are_not_written_down() {
    let head = TestHead::start().await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    let keyed = || Submit { idempotency_key: Some("k".into()), ..submit() };
    let job = ada.try_submit(keyed()).await.unwrap().job;
    let before = requests(&head);
    assert_eq!(before, 1);
    for _ in 0..3 {
        let results = eve.change(JobChange::Cancel, vec![job, JobId::new(99)]).await.unwrap();
        assert!(results.iter().all(|(_, result)| matches!(result, ChangeResult::Refused(_))), "{results:?}");
        assert_eq!(ada.change(JobChange::Release, vec![job]).await, Ok(vec![(job, ChangeResult::Already)]));
        eve.drain("box").await.unwrap_err();
        refused(&eve, |spec| spec.depends_on = vec![after(JobId::new(99))]).await;
        refused(&eve, |spec| spec.workdir = "here".into()).await;
    }
    assert_eq!(ada.try_submit(keyed()).await.unwrap().job, job, "the same key is the same job");
    assert_eq!(requests(&head), before);
    assert_eq!(ada.change(JobChange::Cancel, vec![job]).await, Ok(vec![(job, ChangeResult::Done)]));
    assert_eq!(requests(&head), before + 1);
}

#[tokio::test]
async fn one_user_cannot_fill_the_queue_or_the_memory_and_admins_may() {
    let limits = RequestLimits { queued_jobs: 5, user_bytes: Bytes(20_000), ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let (ada, eve, admin) = (head.user("ada").await, head.user("eve").await, head.admin().await);
    eve.try_submit(held(|spec| spec.array = array(5))).await.unwrap();
    let full = refused(&eve, |_| {}).await;
    assert!(full.message.contains("5 jobs of eve") && full.message.contains("at most 5"), "{full}");
    ada.try_submit(held(|_| {})).await.unwrap();
    let heavy = |spec: &mut JobSpec| drop(spec.environment.insert("BIG".into(), "x".repeat(15_000)));
    ada.try_submit(held(heavy)).await.unwrap();
    let full = refused(&ada, heavy).await;
    assert!(full.message.contains("max-user-size"), "{full}");
    admin.try_submit(held(|spec| spec.array = array(50))).await.unwrap();
    let all = eve.change(JobChange::Cancel, vec![JobId::new(1)]).await;
    assert_eq!(all, Ok(vec![(JobId::new(1), ChangeResult::Done)]));
    eve.try_submit(held(|_| {})).await.unwrap();
}

#[tokio::test]
async fn a_job_cannot_ask_for_more_grace_than_the_cluster_gives() {
    let head = TestHead::start().await;
    let admin = head.admin().await;
    let long = refused(&admin, |spec| spec.stop.grace = Span::from_secs(3_650 * 86_400)).await;
    assert!(long.message.contains("at most 1 h 0 min are allowed (max-grace)"), "{long}");
    let before = Span::from_secs(7_200);
    let warning = Some(WarningSignal { signal: Signal::USR1, before });
    let early = refused(&admin, |spec| spec.stop.warning = warning).await;
    assert!(early.message.contains("max-grace"), "{early}");
    admin.try_submit(held(|spec| spec.stop.grace = Span::from_secs(3_600))).await.unwrap();
}

#[tokio::test]
async fn users_lower_their_priority_and_admins_raise_it() {
    let head = TestHead::start().await;
    let (eve, admin) = (head.user("eve").await, head.admin().await);
    let high = refused(&eve, |spec| spec.priority = 1).await;
    assert_eq!(high.code, RefusalCode::NotAllowed);
    assert!(high.message.contains("priority 1 is above 0"), "{high}");
    eve.try_submit(held(|spec| spec.priority = -5)).await.unwrap();
    admin.try_submit(held(|spec| spec.priority = 5)).await.unwrap();
}

#[tokio::test]
async fn a_user_who_submits_too_fast_is_refused_and_others_are_not() {
    let limits = RequestLimits { submits_per_second: 2, ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    let all = futures::future::join_all((0..200).map(|_| eve.try_submit(held(|_| {})))).await;
    let refusal = all.into_iter().find_map(Result::err).unwrap();
    assert!(refusal.message.contains("max-submits-per-second"), "{refusal}");
    ada.try_submit(held(|_| {})).await.unwrap();
}

/// Members count one by one, or one array would be as cheap as one job.
#[tokio::test]
async fn a_user_who_changes_jobs_too_fast_is_refused_and_others_are_not() {
    let limits = RequestLimits { changes_per_second: 1, ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    let of = |members| held(move |spec| spec.array = array(members));
    let (hers, his) = (eve.try_submit(of(8)).await.unwrap(), ada.try_submit(of(8)).await.unwrap());
    eve.change(JobChange::Release, vec![hers.job]).await.unwrap();
    let refusal = eve.change(JobChange::Hold, vec![hers.job]).await.unwrap_err();
    assert!(refusal.to_string().contains("max-changes-per-second"), "{refusal}");
    ada.change(JobChange::Release, vec![his.job]).await.unwrap();
    head.admin().await.change(JobChange::Hold, vec![hers.job]).await.unwrap();
}

/// Each cycle leaves lines in the history of every member.
#[tokio::test]
async fn arrays_that_are_requeued_again_and_again_reach_the_limit_of_memory() {
    let limits = RequestLimits { user_bytes: Bytes(1 << 20), ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let eve = head.user("eve").await;
    let job = eve.try_submit(held(|spec| spec.array = array(500))).await.unwrap().job;
    let mut cycles = 0;
    let refusal = loop {
        eve.change(JobChange::Cancel, vec![job]).await.unwrap();
        match eve.change(JobChange::Requeue, vec![job]).await {
            Ok(_) => cycles += 1,
            Err(refusal) => break refusal.to_string(),
        }
        assert!(cycles < 50, "each leaves more than 100 bytes with 500 members");
    };
    assert!(cycles > 1 && refusal.contains("max-user-size"), "{cycles}: {refusal}");
}

/// What is cancelled waits no longer, but the head remembers it.
#[tokio::test]
async fn arrays_that_are_cancelled_again_and_again_reach_the_limit_of_memory() {
    let limits = RequestLimits { user_bytes: Bytes(1 << 20), ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let eve = head.user("eve").await;
    let mut accepted = 0;
    let refusal = loop {
        match eve.try_submit(held(|spec| spec.array = array(500))).await {
            Ok(receipt) => drop(eve.change(JobChange::Cancel, vec![receipt.job]).await.unwrap()),
            Err(refusal) => break refusal,
        }
        accepted += 1;
        assert!(accepted < 10, "each takes a quarter of it");
    };
    assert!(accepted > 1 && refusal.message.contains("max-user-size"), "{accepted}: {refusal}");
}

/// The requests wait for the same commit, so none of them is in the head's memory yet.
#[tokio::test]
async fn requests_that_arrive_together_count_together() {
    let limits = RequestLimits { queued_jobs: 10, ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let eve = head.user("eve").await;
    let all = (0..40).map(|_| eve.try_submit(held(|_| {})));
    let accepted = futures::future::join_all(all).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(accepted, 10);
}

#[tokio::test]
async fn questions_about_many_jobs_are_refused_or_answered_once_for_each() {
    let head = TestHead::start().await;
    let eve = head.user("eve").await;
    let job = eve.try_submit(held(|_| {})).await.unwrap().job;
    assert_eq!(eve.records(vec![job; 10_000]).await.unwrap().len(), 1);
    for refusal in [
        eve.records(vec![job; 10_001]).await.unwrap_err(),
        eve.change(JobChange::Cancel, vec![job; 10_001]).await.unwrap_err(),
        eve.resolve(vec![JobRef::Id(job); 10_001]).await.unwrap_err(),
        eve.watch(vec![cohabit_types::JobRevision { job, revision: 0 }; 10_001]).await.unwrap_err(),
    ] {
        assert!(refusal.message.contains("at most 10000"), "{refusal}");
    }
}

#[tokio::test]
async fn a_new_job_has_a_name_in_one_line() {
    let head = TestHead::start().await;
    let eve = head.user("eve").await;
    for name in ["a\nb", "", "\u{1b}[2J"] {
        let refusal = eve.try_submit(held(|spec| spec.name = name.into())).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::Invalid);
        assert!(refusal.message.starts_with("the name of the job"), "{refusal}");
        let spec = JobSpec { name: name.into(), ..spec() };
        assert_eq!(eve.dry_run(spec).await.unwrap_err().message, refusal.message);
    }
}

#[tokio::test]
async fn long_commands_do_not_break_the_list_and_show_tells_them_in_parts() {
    let head = TestHead::start().await;
    let (eve, ada) = (head.user("eve").await, head.user("ada").await);
    let long = "x".repeat(1_900_000);
    let mut jobs = Vec::new();
    for _ in 0..8 {
        let argv = vec!["/bin/train".to_owned(), long.clone()];
        let entrypoint = JobSpec::command(argv, "/".into()).entrypoint;
        jobs.push(eve.try_submit(held(|spec| spec.entrypoint = entrypoint)).await.unwrap().job);
    }
    let page = ada.list(Filter { limit: 100, ..Filter::default() }).await.unwrap();
    assert_eq!((page.jobs.len(), page.more), (8, false));
    assert!(page.jobs.iter().all(|record| record.work.chars().count() == 301), "lists shorten long texts");
    let shown = eve.records(jobs.clone()).await.unwrap();
    assert!((1..8).contains(&shown.len()), "{} records", shown.len());
    assert!(shown.iter().all(|record| record.work.len() > 1_900_000));
    assert_eq!(shown.iter().map(|it| it.id).collect::<Vec<_>>(), jobs[..shown.len()]);
    let mut known: Vec<_> =
        jobs.iter().map(|job| cohabit_types::JobRevision { job: *job, revision: 0 }).collect();
    let mut rounds = 0;
    while known.iter().any(|it| it.revision == 0) {
        for record in eve.watch(known.clone()).await.unwrap() {
            let seen = known.iter_mut().find(|it| it.job == record.id).unwrap();
            seen.revision = record.revision;
        }
        rounds += 1;
        assert!(rounds < 8, "each answer brings some");
    }
    assert!(spec().weight() < 4_096);
}

/// A filter that no job passes looks at all of them, in steps between which others are answered.
#[tokio::test]
async fn a_list_is_complete_however_few_jobs_pass_its_filter() {
    let limits = RequestLimits { queued_jobs: 100_000, ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let eve = head.user("eve").await;
    let array = eve.try_submit(held(|spec| spec.array = array(50_000))).await.unwrap().job;
    eve.change(JobChange::Cancel, vec![JobId::member(array.number, 49_990)]).await.unwrap();
    let states = vec![cohabit_types::JobState::Cancelled];
    let members_of = Some(array.number);
    let page = eve.list(Filter { members_of, states, limit: 10, ..Filter::default() }).await.unwrap();
    let found: Vec<JobId> = page.jobs.iter().map(|record| record.id).collect();
    assert_eq!((found, page.more), (vec![JobId::member(array.number, 49_990)], false));
}
