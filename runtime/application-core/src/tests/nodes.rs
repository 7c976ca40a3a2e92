//! Processes on further nodes: their stores, when they begin, and what is lost with a node.

use cohabit_types::RankId;

use super::kit::{MAIN, ROOT, actor, address, class, effects, member, root_node, spec};
use crate::{
    ActorEnd, ActorState, Coordinator, CoordinatorEffect, FromCoordinator, FromStore, IncarnationNumber,
    NodeNumber, ObjectId, RequestNumber, RunnerReport, RunnerState, StoreFigures, StoredObject,
    TaskRunnerNumber, ToCoordinator, ToDirectory, ToStore,
};

const RUNNER: RankId = member(3);
const ACTOR: RankId = member(4);
const STORE: RankId = member(20);
const N1: NodeNumber = NodeNumber(1);

fn send(to: RankId, frame: FromCoordinator) -> CoordinatorEffect {
    CoordinatorEffect::Send { to, frame }
}

fn welcome(to: RankId, node: u32) -> [CoordinatorEffect; 2] {
    let root = FromCoordinator::NodeAt { node: NodeNumber::COORDINATOR, at: address(0) };
    [send(to, FromCoordinator::Welcome { node: NodeNumber(node) }), send(to, root)]
}

fn node_at(to: RankId) -> CoordinatorEffect {
    send(to, FromCoordinator::NodeAt { node: N1, at: address(1) })
}

fn member_at(to: RankId, member: RankId) -> CoordinatorEffect {
    send(to, FromCoordinator::MemberAt { member, node: N1 })
}

fn submit_store() -> CoordinatorEffect {
    CoordinatorEffect::SubmitStore { node: N1, name: "n1".to_owned() }
}

fn cancel(member: RankId) -> CoordinatorEffect {
    CoordinatorEffect::CancelRunner { job: member.job() }
}

fn ended(member: RankId, to: &[RankId]) -> Vec<CoordinatorEffect> {
    let told = to.iter().map(|to| send(*to, FromCoordinator::MemberEnded { member }));
    std::iter::once(CoordinatorEffect::Close { member }).chain(told).collect()
}

fn serve_tasks() -> CoordinatorEffect {
    send(RUNNER, FromCoordinator::ServeTasks { class: class() })
}

fn joined() -> CoordinatorEffect {
    send(MAIN, FromCoordinator::RunnerJoined { class: class(), runner: RUNNER })
}

fn received(it: &mut Coordinator, from: RankId, frame: ToCoordinator) -> Vec<CoordinatorEffect> {
    effects(|all| it.received(from, frame, all))
}

fn connects(it: &mut Coordinator, member: RankId, node: &str) -> Vec<CoordinatorEffect> {
    effects(|all| it.connected(member, node, all))
}

fn listens(it: &mut Coordinator, store: RankId) -> Vec<CoordinatorEffect> {
    received(it, store, ToCoordinator::Store(FromStore::Listens { at: address(1) }))
}

fn says(it: &mut Coordinator, frame: FromStore) -> Vec<CoordinatorEffect> {
    received(it, STORE, ToCoordinator::Store(frame))
}

fn submitted(it: &mut Coordinator, result: Result<RankId, &str>) -> Vec<CoordinatorEffect> {
    let result = result.map(|store| store.job()).map_err(str::to_owned);
    effects(|all| it.store_submitted(N1, result, all))
}

fn report(it: &mut Coordinator, of: RankId, ended: u32, state: RunnerState) -> Vec<CoordinatorEffect> {
    effects(|all| it.report(of.job(), RunnerReport { ended_attempts: ended, state }, all))
}

fn over() -> RunnerState {
    RunnerState::Ended { code: 1, text: "its process ended with 1".to_owned() }
}

/// A main on node n0 wants a runner, which has a job.
fn with_job() -> Coordinator {
    let mut it = Coordinator::new(ROOT, root_node(), None, None);
    effects(|all| {
        it.main(MAIN.job(), all);
        it.connected(MAIN, "n0", all);
        it.received(MAIN, ToCoordinator::WantRunners { class: class(), runners: 1 }, all);
        it.task_runner_submitted(TaskRunnerNumber(1), Ok(RUNNER.job()), all);
    });
    it
}

/// Its runner is on node n1, whose store listens.
fn with_runner() -> Coordinator {
    let mut it = with_job();
    connects(&mut it, RUNNER, "n1");
    submitted(&mut it, Ok(STORE));
    connects(&mut it, STORE, "n1");
    listens(&mut it, STORE);
    it
}

/// The main watches an actor, whose process on node n1 is ready.
fn with_actor() -> Coordinator {
    let mut it = with_runner();
    let create = ToCoordinator::Create { request: RequestNumber(1), gang: spec(), carries: vec![] };
    received(&mut it, MAIN, create);
    received(&mut it, MAIN, ToCoordinator::Watch { actor: actor(1) });
    effects(|all| it.submitted(actor(1), Ok(ACTOR.job()), all));
    connects(&mut it, ACTOR, "n1");
    received(&mut it, ACTOR, ToCoordinator::Constructed { incarnation: IncarnationNumber(1) });
    it
}

fn stored(object: ObjectId) -> ToCoordinator {
    let stored = StoredObject { object, bytes: 9, home: N1, has_handles: false };
    ToCoordinator::Object(ToDirectory::Stored { stored, carries: vec![] })
}

#[test]
fn processes_of_a_further_node_begin_when_its_store_listens() {
    let mut it = with_job();
    assert_eq!(connects(&mut it, RUNNER, "n1"), [&welcome(RUNNER, 1)[..], &[submit_store()]].concat());
    assert_eq!(submitted(&mut it, Ok(STORE)), []);
    assert_eq!(connects(&mut it, STORE, "n1"), welcome(STORE, 1));
    assert_eq!(listens(&mut it, STORE), [node_at(MAIN), serve_tasks(), member_at(MAIN, RUNNER), joined()]);
    assert_eq!(listens(&mut it, STORE), [], "it was said");
    assert_eq!(connects(&mut it, RUNNER, "n1"), [], "it was welcomed before");
    let further = connects(&mut it, member(30), "n2");
    assert_eq!(further[..3], [&welcome(member(30), 2)[..], &[node_at(member(30))]].concat());
}

#[test]
fn a_store_may_listen_before_the_answer_to_its_submission_comes() {
    let mut it = with_job();
    connects(&mut it, RUNNER, "n1");
    connects(&mut it, STORE, "n1");
    assert_eq!(listens(&mut it, STORE), []);
    assert_eq!(
        submitted(&mut it, Ok(STORE)),
        [node_at(MAIN), serve_tasks(), member_at(MAIN, RUNNER), joined()]
    );
}

#[test]
fn the_next_attempt_of_a_store_counts_once_the_one_before_has_ended() {
    let mut it = with_runner();
    received(&mut it, RUNNER, stored(ObjectId { maker: RUNNER, number: 1 }));
    let next = STORE.job().attempt(2).rank(0);
    connects(&mut it, next, "n1");
    assert_eq!(listens(&mut it, next), []);
    let places = |it: &Coordinator| it.describe().object_places.into_values().next();
    assert_eq!(places(&it), Some(vec![N1]));
    let told = report(&mut it, STORE, 1, RunnerState::Live);
    let awaited = CoordinatorEffect::AwaitStore { node: N1, restarts: 1 };
    assert_eq!(told, [ended(STORE, &[MAIN, RUNNER, next]), vec![awaited, node_at(MAIN)]].concat());
    assert_eq!(places(&it), Some(vec![N1]), "the runner may have put it into the second one");
    assert!(it.admits(next) && !it.admits(STORE));
}

/// A main comes when the stores were told to end: the processes of its node wait for the next store there.
#[test]
fn a_store_that_was_told_to_end_is_replaced_if_the_application_goes_on() {
    let mut it = with_runner();
    report(&mut it, RUNNER, 1, over());
    received(&mut it, MAIN, ToCoordinator::Closed { member: RUNNER, settled: vec![] });
    received(&mut it, STORE, ToCoordinator::Closed { member: RUNNER, settled: vec![] });
    let told = report(&mut it, MAIN, 1, over());
    assert!(told.ends_with(&[send(STORE, FromCoordinator::End)]), "{told:?}");
    let late = member(40);
    effects(|all| it.main(late.job(), all));
    assert_eq!(connects(&mut it, late, "n1"), welcome(late, 1));
    let told = report(&mut it, STORE, 1, over());
    assert!(told.contains(&submit_store()), "{told:?}");
}

#[test]
fn an_actor_of_another_node_is_named_with_its_node() {
    let mut it = with_actor();
    received(&mut it, RUNNER, ToCoordinator::Watch { actor: actor(1) });
    let ready = ActorState::Ready { member: ACTOR, incarnation: IncarnationNumber(1) };
    let state = |to| send(to, FromCoordinator::State { actor: actor(1), state: ready.clone() });
    let watch = || ToCoordinator::Watch { actor: actor(1) };
    assert_eq!(received(&mut it, MAIN, watch()), [member_at(MAIN, ACTOR), state(MAIN)]);
    assert_eq!(received(&mut it, RUNNER, watch()), [state(RUNNER)], "both are on n1");
    let described = it.describe();
    assert_eq!(described.actors[0].node, Some(N1));
    assert_eq!(described.classes[0].runners[0].node, Some(N1));
    let nodes: Vec<_> =
        described.nodes.iter().map(|node| (node.name.as_str(), node.store, node.is_served)).collect();
    assert_eq!(nodes, [("n0", None, true), ("n1", Some(STORE.job()), true)]);
}

#[test]
fn a_silent_store_ends_the_runners_of_its_node_and_leaves_actors_to_the_head() {
    let mut it = with_actor();
    assert_eq!(effects(|all| it.member_silent(RUNNER, all)), [], "it is no store");
    let told = effects(|all| it.member_silent(STORE, all));
    let runner = [&[cancel(RUNNER)], &ended(RUNNER, &[MAIN, ACTOR])[..]].concat();
    let submit = CoordinatorEffect::SubmitTaskRunner { runner: TaskRunnerNumber(2), class: class() };
    let store = ended(STORE, &[MAIN, RUNNER, ACTOR]);
    assert_eq!(told, [store, vec![cancel(STORE)], runner, vec![submit]].concat());
    assert!(!it.admits(RUNNER) && !it.admits(STORE) && it.admits(ACTOR));
    let close = |member| vec![CoordinatorEffect::Close { member }];
    assert_eq!(connects(&mut it, RUNNER, "n1"), close(RUNNER));
    assert_eq!(effects(|all| it.member_silent(STORE, all)), [], "that is known");
    assert_eq!(connects(&mut it, ACTOR, "n1"), [submit_store()], "the node is back");
    let second = member(21);
    submitted(&mut it, Ok(second));
    connects(&mut it, second, "n1");
    // Both may have lived on, and the runner may have put objects there.
    let forget = |maker| send(second, FromCoordinator::Store(ToStore::Forget { maker, keep: Vec::new() }));
    let forgotten = [RUNNER, STORE].map(forget);
    assert_eq!(listens(&mut it, second), [&[node_at(MAIN)], &forgotten[..]].concat());
    assert_eq!(report(&mut it, RUNNER, 1, over()), []);
}

#[test]
fn an_actor_on_a_lost_node_ends_when_the_head_says_so() {
    let mut it = with_actor();
    effects(|all| it.member_silent(STORE, all));
    let restarting = FromCoordinator::State { actor: actor(1), state: ActorState::Restarting };
    let waiting = RunnerState::Waiting { why: "its node was lost".to_owned(), shortage: None };
    let told = report(&mut it, ACTOR, 1, waiting);
    assert_eq!(told, [vec![send(MAIN, restarting)], ended(ACTOR, &[MAIN])].concat());
}

#[test]
fn what_is_stored_on_a_node_without_a_store_has_no_place() {
    let mut it = with_actor();
    effects(|all| it.member_silent(STORE, all));
    received(&mut it, ACTOR, stored(ObjectId { maker: ACTOR, number: 1 }));
    assert_eq!(it.describe().object_places.into_values().collect::<Vec<_>>(), [Vec::new()]);
}

#[test]
fn a_node_whose_stores_fail_is_given_up_and_its_processes_end() {
    let mut it = with_job();
    connects(&mut it, RUNNER, "n1");
    let told = submitted(&mut it, Err("no such node"));
    assert_eq!(told[..3], [&[cancel(RUNNER)], &ended(RUNNER, &[MAIN])[..]].concat());
    for store in [STORE, member(21)] {
        let next = member(store.job().number + 100);
        assert_eq!(connects(&mut it, next, "n1").last(), Some(&submit_store()));
        submitted(&mut it, Ok(store));
        report(&mut it, store, 1, over());
    }
    let create = ToCoordinator::Create { request: RequestNumber(1), gang: spec(), carries: vec![] };
    received(&mut it, MAIN, create);
    received(&mut it, MAIN, ToCoordinator::Watch { actor: actor(1) });
    effects(|all| it.submitted(actor(1), Ok(ACTOR.job()), all));
    let why = "its process runs on node n1, where processes of other nodes cannot reach it: the store of the \
               application there has failed: its process ended with 1";
    let state = ActorState::Ended(ActorEnd::GivenUp(why.to_owned()));
    let ends = [send(MAIN, FromCoordinator::State { actor: actor(1), state }), cancel(ACTOR)];
    assert_eq!(connects(&mut it, ACTOR, "n1"), [&welcome(ACTOR, 1)[..], &ends].concat());
}

#[test]
fn a_store_fetches_frees_and_forgets_what_is_on_its_node() {
    let mut it = with_runner();
    let object = ObjectId { maker: RUNNER, number: 1 };
    received(&mut it, RUNNER, stored(object));
    let wants = FromStore::Wants { object };
    let fetch = ToStore::Fetch { object, bytes: 9, from: N1 };
    let own = CoordinatorEffect::OwnStore;
    assert_eq!(effects(|all| it.received_from_own_store(wants, all)), [own(fetch)]);
    let fetched = FromStore::Fetched { object, result: Ok(()) };
    assert_eq!(effects(|all| it.received_from_own_store(fetched, all)), []);
    let held = crate::HeldId::Object(object);
    let release = ToCoordinator::Release { held, settled: vec![(ROOT, 1)] };
    let free = ToStore::Free { object };
    let to_store = |frame| send(STORE, FromCoordinator::Store(frame));
    assert_eq!(received(&mut it, RUNNER, release), [own(free.clone()), to_store(free)]);
    report(&mut it, RUNNER, 1, over());
    received(&mut it, MAIN, ToCoordinator::Closed { member: RUNNER, settled: vec![] });
    let closed = received(&mut it, STORE, ToCoordinator::Closed { member: RUNNER, settled: vec![] });
    assert_eq!(closed, [to_store(ToStore::Forget { maker: RUNNER, keep: vec![] })]);
}

#[test]
fn a_wish_for_what_is_not_known_is_settled_by_its_maker() {
    let mut it = with_runner();
    let object = ObjectId { maker: MAIN, number: 1 };
    let inquire = FromCoordinator::Object(crate::FromDirectory::Inquire { object });
    assert_eq!(says(&mut it, FromStore::Wants { object }), [send(MAIN, inquire)]);
    let fetch = ToStore::Fetch { object, bytes: 9, from: NodeNumber::COORDINATOR };
    let to_store = |frame| send(STORE, FromCoordinator::Store(frame));
    assert_eq!(received(&mut it, MAIN, stored(object)), [to_store(fetch)], "that was on its way");
    let said = |object| ToCoordinator::Object(ToDirectory::Said { object });
    assert_eq!(received(&mut it, MAIN, said(object)), []);

    let object = ObjectId { maker: MAIN, number: 2 };
    says(&mut it, FromStore::Wants { object });
    let error = crate::CallError::ObjectLost("nobody holds it any more".to_owned());
    assert_eq!(received(&mut it, MAIN, said(object)), [to_store(ToStore::Lost { object, error })]);

    let object = ObjectId { maker: member(99), number: 1 };
    let lost = says(&mut it, FromStore::Wants { object });
    assert!(matches!(
        &lost[..],
        [CoordinatorEffect::Send { frame: FromCoordinator::Store(ToStore::Lost { .. }), .. }]
    ));
}

#[test]
fn stores_of_further_nodes_say_what_they_have() {
    let mut it = with_runner();
    let request = RequestNumber(7);
    let mut asked = Vec::new();
    assert_eq!(it.ask_stores(request, &mut asked), [N1].into());
    assert_eq!(asked, [send(STORE, FromCoordinator::Store(ToStore::Tell { request }))]);
    let figures = StoreFigures { budget: 9, memory: 0, disk: 0, objects: vec![], omitted: 0 };
    let told = FromStore::Told { request, figures: figures.clone() };
    assert_eq!(says(&mut it, told), [CoordinatorEffect::StoreTold { node: N1, request, figures }]);
}
