//! What is asked is answered, in both directions, and one bad call never harms another.

use std::collections::BTreeMap;

use cohabit_types::{
    Array, AttemptProgress, DeviceId, DrainRequest, JobSpec, ModelDescription, Outcome, Progress, RankRun,
    Rendezvous, RunOrder, Share, Time,
};
use futures::future::join_all;

use super::*;
use crate::{MAX_CALL, RpcError, context_for};

#[tokio::test]
async fn every_call_of_a_client_is_answered() {
    let head = TestHead::start().await;
    let client = head.client("ada").await;
    let drained = client.drain_node(patient(), DrainRequest::new("node-a")).await.unwrap();
    assert_eq!(drained, Ok("node-a".into()));
    let refused = client.list_tokens(patient()).await.unwrap().unwrap_err();
    assert_eq!(refused.code, RefusalCode::NotAllowed);
    assert_eq!(client.read_log(patient(), log_request(41)).await.unwrap().unwrap().next, 42);
    assert_eq!(explain(&client, patient()).await[0], "ada");
    client.ping(patient()).await.unwrap();
}

async fn explain(client: &ClientServiceClient, context: Context) -> Vec<String> {
    client.explain(context, JobId::new(1)).await.unwrap().unwrap().sentences
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_link_carries_many_calls_both_ways_at_once() {
    let mut head = TestHead::start().await;
    let (link, session) = head.worker("node-a").await;
    let report = || vec![Report::Progress(vec![]); 500];
    let upwards = join_all((0..2_000).map(|_| link.head.report(patient(), report())));
    let downwards = join_all((0..2_000).map(|at| session.orders.read_log(patient(), log_request(at))));
    let orders = join_all((0..2_000).map(|_| session.orders.order(patient(), Vec::<Order>::new())));
    let (reported, read, ordered) = in_time(async { tokio::join!(upwards, downwards, orders) }).await;
    assert!(reported.iter().chain(&ordered).all(Result::is_ok));
    let nexts: Vec<u64> = read.into_iter().map(|chunk| chunk.unwrap().unwrap().next).collect();
    assert_eq!(nexts, (1..=2_000).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_of_both_directions_never_wait_for_each_other() {
    let mut head = TestHead::start().await;
    let (link, session) = head.worker("node-a").await;
    let long = || Outcome::Lost("x".repeat(2 << 20));
    let report = || some_reports().into_iter().map(|report| ended_by(report, long())).collect::<Vec<_>>();
    let upwards = join_all((0..40).map(|_| link.head.report(patient(), report())));
    let order =
        || some_orders().into_iter().map(|order| run_by(order, "y".repeat(2 << 20))).collect::<Vec<_>>();
    let downwards = join_all((0..40).map(|_| session.orders.order(patient(), order())));
    let (reported, ordered) = in_time(async { tokio::join!(upwards, downwards) }).await;
    assert!(reported.iter().chain(&ordered).all(Result::is_ok));
}

fn ended_by(report: Report, how: Outcome) -> Report {
    match report {
        Report::Ended { rank, stopped, progress, at, .. } => {
            Report::Ended { rank, outcome: how, stopped, progress, at, usage: Vec::new() }
        }
        report @ (Report::Started { .. }
        | Report::Progress(_)
        | Report::Sharing { .. }
        | Report::PrivateUser { .. }
        | Report::Condition { .. }
        | Report::Telemetry(_)
        | Report::Usage(_)
        | Report::Idle { .. }
        | Report::Active(_)
        | Report::ColocationSamples(_)
        | Report::Stalled { .. }
        | Report::SignalSent { .. }
        | Report::Checkpoints { .. }
        | Report::Allotted { .. }) => report,
    }
}

fn run_by(order: Order, user: String) -> Order {
    match order {
        Order::Run(run) => Order::Run(Box::new(RunOrder { user, ..*run })),
        Order::Stop { .. } | Order::Withdraw(_) | Order::Acknowledge(_) | Order::Allot { .. } => order,
    }
}

#[tokio::test]
async fn a_panicking_handler_answers_and_the_link_stays() {
    let head = TestHead::start().await;
    let client = head.client("ada").await;
    let error = in_time(client.drain_node(patient(), DrainRequest::new("panic"))).await.unwrap_err();
    let RpcError::Server(error) = error else { panic!("{error:?}") };
    assert!(error.detail.contains("failed while it handled the call"), "{}", error.detail);
    client.ping(patient()).await.unwrap();
}

#[tokio::test]
async fn an_answer_too_long_for_a_frame_is_an_error_of_its_call_alone() {
    let head = TestHead::start().await;
    let client = head.client("ada").await;
    let error = in_time(client.explain(patient(), JobId::new(3))).await.unwrap_err();
    let RpcError::Server(error) = error else { panic!("{error:?}") };
    assert!(error.detail.contains("longer than 8 MiB"), "{}", error.detail);
    client.ping(patient()).await.unwrap();
}

#[tokio::test]
async fn a_request_too_long_for_a_frame_fails_alone() {
    let head = TestHead::start().await;
    let client = head.client("ada").await;
    let error =
        in_time(client.drain_node(patient(), DrainRequest::new("x".repeat(9 << 20)))).await.unwrap_err();
    assert!(matches!(error, RpcError::Send(_)), "{error:?}");
    let nearly = "x".repeat((8 << 20) - 100);
    assert!(in_time(client.drain_node(patient(), DrainRequest::new(nearly))).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_call_has_the_time_limit_of_its_context_and_at_most_a_day() {
    let head = TestHead::start().await;
    let client = head.client("ada").await;
    let day = MAX_CALL.as_micros() / 1_000_000;
    for (asked, least, most) in
        [(Span::from_secs(300), 290, 300), (Span::from_micros(u64::MAX), day - 10, day)]
    {
        let left: u64 = explain(&client, context_for(asked)).await[1].parse().unwrap();
        assert!((least..=most).contains(&left), "{left} s of {asked}");
    }
}

#[tokio::test]
async fn a_call_past_its_deadline_ends_and_the_link_stays() {
    let head = TestHead::start().await;
    let client = head.client("ada").await;
    let watch = client.watch(context_for(Span::from_millis(50)), Vec::new());
    assert!(matches!(in_time(watch).await, Err(RpcError::DeadlineExceeded)));
    client.ping(patient()).await.unwrap();
}

#[tokio::test]
async fn a_link_ends_with_the_last_clone_of_its_client() {
    let mut head = TestHead::start().await;
    let client = head.client("ada").await;
    let clone = client.clone();
    drop(client);
    clone.ping(patient()).await.unwrap();
    drop(clone);
    assert_eq!(head.next_end().await, LinkEnd::ClosedByPeer);
}

#[tokio::test]
async fn a_worker_link_ends_on_both_sides_when_either_closes_it() {
    let mut head = TestHead::start().await;
    let (link, session) = head.worker("node-a").await;
    session.close();
    assert_eq!(in_time(session.closed).await, LinkEnd::ClosedHere);
    assert_eq!(in_time(link.closed).await, LinkEnd::ClosedByPeer);
    assert!(link.head.heartbeat(patient()).await.is_err());

    let (link, session) = head.worker("node-b").await;
    drop(link.head);
    assert_eq!(in_time(link.closed).await, LinkEnd::ClosedHere);
    assert_eq!(in_time(session.closed).await, LinkEnd::ClosedByPeer);

    let (link, session) = head.worker("node-c").await;
    drop(session.orders);
    assert_eq!(in_time(session.closed).await, LinkEnd::ClosedHere);
    assert_eq!(in_time(link.closed).await, LinkEnd::ClosedByPeer);
}

#[tokio::test]
async fn orders_and_reports_arrive_as_they_were_sent() {
    let mut head = TestHead::start().await;
    let (link, session) = head.worker("node-a").await;
    let (orders, reports) = (some_orders(), some_reports());
    session.orders.order(patient(), orders.clone()).await.unwrap();
    link.head.report(patient(), reports.clone()).await.unwrap();
    link.head.heartbeat(patient()).await.unwrap();
    assert_eq!(head.orders.1.try_recv().unwrap(), orders);
    assert_eq!(head.reports.try_recv().unwrap(), reports);
}

pub(super) fn some_orders() -> Vec<Order> {
    let attempt = JobId::member(3, 1).attempt(2);
    let mut spec = JobSpec::command(vec!["train".into()], "/home/ada".into());
    spec.model = Some(ModelDescription { flops_per_sample: Some(4.1e9), ..ModelDescription::default() });
    spec.array = Some(Array::from(0..=9));
    let device = RankRun {
        rank: 0,
        local_rank: 0,
        node_rank: 0,
        devices: vec![DeviceId("host-0".into())],
        share: Share::WHOLE,
    };
    let run = RunOrder {
        attempt,
        spec: spec.into(),
        user: "ada".into(),
        account: "ada".into(),
        role: Role::User,
        nodes: vec!["node-a".into()],
        world_size: 1,
        rendezvous: Some(Rendezvous { address: "node-a".into(), port: 29_600 }),
        application: None,
        place: None,
        checkpoints: None,
        idle_after: None,
        after: None,
        ranks: vec![device],
    };
    vec![Order::Run(Box::new(run)), Order::Acknowledge(attempt.rank(0))]
}

fn some_reports() -> Vec<Report> {
    let attempt = JobId::member(3, 1).attempt(2);
    let metrics = BTreeMap::from([("loss".to_owned(), 0.41.into())]);
    let progress =
        Progress { step: 120, total: Some(1_000), rate: Some(7.5), metrics, at: Time::from_micros(5) };
    let ended = Report::Ended {
        rank: attempt.rank(0),
        outcome: Outcome::Exited(3),
        stopped: None,
        progress: Some(progress.clone()),
        at: Time::from_micros(9),
        usage: Vec::new(),
    };
    vec![Report::Progress(vec![AttemptProgress { attempt, progress }]), ended]
}
