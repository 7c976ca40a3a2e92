//! Actors that share a job: they start, begin anew and end together.

use bytes::Bytes;
use cohabit_types::{JobId, RankId, Share};

use super::kit::{MAIN, ROOT, actor, actor_spec, effects, gang, handle, member, named, root_node};
use crate::{
    ActorEnd, ActorId, ActorSpec, ActorState, Coordinator, CoordinatorEffect, CreateError, FromCoordinator,
    GangSpec, HeldId, IncarnationNumber, Lifetime, MAX_ARGUMENTS, RequestNumber, RunnerReport, RunnerState,
    ToCoordinator,
};

const JOB: JobId = JobId::new(5);

/// The first attempt of a rank.
const fn rank(rank: u32) -> RankId {
    JOB.attempt(1).rank(rank)
}

fn trio() -> GangSpec {
    gang(vec![actor_spec(), actor_spec(), actor_spec()])
}

fn received(it: &mut Coordinator, from: RankId, frame: ToCoordinator) -> Vec<CoordinatorEffect> {
    effects(|effects| it.received(from, frame, effects))
}

fn connects(it: &mut Coordinator, member: RankId) -> Vec<CoordinatorEffect> {
    effects(|effects| it.connected(member, "n0", effects))
}

fn report(it: &mut Coordinator, ended_attempts: u32, state: RunnerState) -> Vec<CoordinatorEffect> {
    effects(|effects| it.report(JOB, RunnerReport { ended_attempts, state }, effects))
}

fn create(it: &mut Coordinator, request: u64, gang: GangSpec) -> Vec<CoordinatorEffect> {
    let request = RequestNumber(request);
    received(it, MAIN, ToCoordinator::Create { request, gang, carries: Vec::new() })
}

fn result_of(created: &[CoordinatorEffect]) -> Result<ActorId, CreateError> {
    let CoordinatorEffect::Send { frame: FromCoordinator::Created { result, .. }, .. } = &created[0] else {
        panic!("{created:?}")
    };
    result.clone()
}

fn release(it: &mut Coordinator, number: u64) -> Vec<CoordinatorEffect> {
    let frame = ToCoordinator::Release { held: handle(number), settled: vec![(ROOT, 1)] };
    received(it, MAIN, frame)
}

fn application(ceiling: Option<Share>) -> Coordinator {
    let mut it = Coordinator::new(ROOT, root_node(), ceiling, None);
    effects(|effects| {
        it.main(MAIN.job(), effects);
        it.connected(MAIN, "n0", effects);
    });
    it
}

/// Main watches three actors, whose processes have connected.
fn with_trio() -> Coordinator {
    let mut it = application(None);
    let created = create(&mut it, 1, trio());
    assert_eq!(result_of(&created), Ok(actor(1)));
    assert_eq!(
        created[1..],
        [CoordinatorEffect::Submit { first: actor(1), gang: trio() }],
        "one job for all"
    );
    effects(|effects| it.submitted(actor(1), Ok(JOB), effects));
    for number in 1..=3 {
        received(&mut it, MAIN, ToCoordinator::Watch { actor: actor(number) });
    }
    report(&mut it, 0, RunnerState::Live);
    for number in 0..3 {
        assert_eq!(constructs(&connects(&mut it, rank(number))), [(rank(number), number + 1, 1)]);
    }
    it
}

fn with_ready_trio() -> Coordinator {
    let mut it = with_trio();
    let incarnation = IncarnationNumber(1);
    for number in 0..3 {
        let ready = received(&mut it, rank(number), ToCoordinator::Constructed { incarnation });
        let state = ActorState::Ready { member: rank(number), incarnation };
        assert_eq!(states(&ready), [(u64::from(number) + 1, state)], "of the others nothing is said");
    }
    it
}

/// The frames that are sent, with those who get them.
fn sent(effects: &[CoordinatorEffect]) -> impl Iterator<Item = (RankId, &FromCoordinator)> {
    effects.iter().filter_map(|effect| {
        if let CoordinatorEffect::Send { to, frame } = effect { Some((*to, frame)) } else { None }
    })
}

/// Who is to construct which actor, and its incarnation.
fn constructs(effects: &[CoordinatorEffect]) -> Vec<(RankId, u32, u32)> {
    let construct = |(to, frame): (RankId, &FromCoordinator)| {
        let FromCoordinator::Construct(it) = frame else { return None };
        Some((to, it.actor.0 as u32, it.incarnation.0))
    };
    sent(effects).filter_map(construct).collect()
}

fn states(effects: &[CoordinatorEffect]) -> Vec<(u64, ActorState)> {
    let state = |(_, frame): (RankId, &FromCoordinator)| {
        let FromCoordinator::State { actor, state } = frame else { return None };
        Some((actor.0, state.clone()))
    };
    sent(effects).filter_map(state).collect()
}

fn all_ended(end: &ActorEnd) -> [(u64, ActorState); 3] {
    [1, 2, 3].map(|number| (number, ActorState::Ended(end.clone())))
}

#[test]
fn a_gang_begins_anew_as_a_whole() {
    let mut it = with_ready_trio();
    let reported =
        report(&mut it, 1, RunnerState::Waiting { why: "it starts again soon".to_owned(), shortage: None });
    assert_eq!(states(&reported), [1, 2, 3].map(|number| (number, ActorState::Restarting)));
    for number in 0..3 {
        assert!(!it.admits(rank(number)), "rank {number}");
        let next = JOB.attempt(2).rank(number);
        assert_eq!(constructs(&connects(&mut it, next)), [(next, number + 1, 2)]);
    }
}

/// A process of the next attempt may connect before the head has said that the one before has ended.
#[test]
fn no_rank_begins_anew_before_all_of_the_attempt_before_have_ended() {
    let mut it = with_ready_trio();
    for number in [2, 0] {
        assert_eq!(connects(&mut it, JOB.attempt(2).rank(number)), [], "rank {number}");
    }
    let begun = constructs(&report(&mut it, 1, RunnerState::Live));
    assert_eq!(begun, [0, 2].map(|number| (JOB.attempt(2).rank(number), number + 1, 2)));
}

#[test]
fn a_gang_lives_as_long_as_one_of_its_actors_is_held() {
    let mut it = with_ready_trio();
    assert_eq!((release(&mut it, 1), release(&mut it, 3)), (vec![], vec![]));
    assert_eq!(it.describe().actors.iter().map(|actor| actor.holders).collect::<Vec<_>>(), [0, 1, 0]);
    let end = |to: u32| CoordinatorEffect::Send { to: rank(to), frame: FromCoordinator::End };
    let ended = release(&mut it, 2);
    assert_eq!(ended, [end(0), end(1), end(2), CoordinatorEffect::AwaitEnd { job: JOB }]);
    report(&mut it, 1, RunnerState::Ended { code: 0, text: String::new() });
    assert!(it.describe().actors.is_empty(), "it is forgotten");
}

#[test]
fn stopping_one_stops_all_and_is_answered_when_all_have_ended() {
    let mut it = with_ready_trio();
    let stop = ToCoordinator::Stop { request: RequestNumber(2), actor: actor(2) };
    assert_eq!(states(&received(&mut it, MAIN, stop)), all_ended(&ActorEnd::Stopped));
    let ended = report(&mut it, 1, RunnerState::Ended { code: 0, text: String::new() });
    let frame = FromCoordinator::Stopped { request: RequestNumber(2) };
    assert!(ended.contains(&CoordinatorEffect::Send { to: MAIN, frame }), "{ended:?}");
}

#[test]
fn a_gang_whose_processes_are_not_all_there_is_ended_by_the_head() {
    let mut it = application(None);
    create(&mut it, 1, trio());
    effects(|effects| it.submitted(actor(1), Ok(JOB), effects));
    connects(&mut it, rank(1));
    let stop = ToCoordinator::Stop { request: RequestNumber(2), actor: actor(1) };
    assert_eq!(received(&mut it, MAIN, stop), [CoordinatorEffect::CancelRunner { job: JOB }]);
}

#[test]
fn a_failed_constructor_ends_all_and_is_named() {
    let mut it = with_trio();
    let failed = ToCoordinator::ConstructorFailed { text: "no file".to_owned() };
    let end = ActorEnd::ConstructorFailed("that of rank 2: no file".to_owned());
    assert_eq!(states(&received(&mut it, rank(2), failed)), all_ended(&end));
    let late = received(&mut it, rank(0), ToCoordinator::Constructed { incarnation: IncarnationNumber(1) });
    assert_eq!(late, [], "the others end, too");
}

#[test]
fn the_ceiling_counts_all_ranks() {
    let mut it = application(Some(Share(4_000)));
    let whole = |count| GangSpec { gpus: Share::WHOLE, ..gang(vec![actor_spec(); count]) };
    let above = CreateError::AboveCeiling { gpus: Share(5_000), max_gpus: Share(4_000) };
    assert_eq!(result_of(&create(&mut it, 1, whole(5))), Err(above));
    assert_eq!(create(&mut it, 2, whole(3)).len(), 2, "it is submitted");
    assert_eq!(create(&mut it, 3, whole(2)).len(), 1, "it waits");
    effects(|effects| it.submitted(actor(1), Err("no".to_owned()), effects));
    let released = [1, 2, 3].map(|number| release(&mut it, number).len());
    assert_eq!(released, [0, 0, 0], "the second gang was submitted when the head refused the first");
    assert_eq!(it.describe().actors.iter().map(|it| it.actor.0).collect::<Vec<_>>(), [4, 5]);
}

#[test]
fn what_no_gang_can_be_is_refused() {
    let mut it = application(None);
    assert_eq!(result_of(&create(&mut it, 1, gang(vec![]))), Err(CreateError::EmptyGang));
    let half = ActorSpec { arguments: Bytes::from(vec![0; MAX_ARGUMENTS / 2 + 1]), ..actor_spec() };
    let bytes = MAX_ARGUMENTS + 2;
    let large = create(&mut it, 2, gang(vec![half.clone(), half]));
    assert_eq!(result_of(&large), Err(CreateError::ArgumentsTooLarge { bytes }));
    let ada = named("ada", Lifetime::Detached);
    let twice = GangSpec { actors: vec![ada.actors[0].clone(), ada.actors[0].clone()], ..ada.clone() };
    let in_use = CreateError::NameInUse { name: "ada".to_owned() };
    assert_eq!(result_of(&create(&mut it, 3, twice)), Err(in_use.clone()));
    let nameless = GangSpec { actors: vec![ada.actors[0].clone(), actor_spec()], ..ada.clone() };
    assert_eq!(result_of(&create(&mut it, 4, nameless)), Err(CreateError::DetachedWithoutName));
    let many = gang(vec![actor_spec(); 1_001]);
    assert_eq!(result_of(&create(&mut it, 5, many)), Err(CreateError::TooManyActors));
    let named_of_two = GangSpec { actors: vec![actor_spec(), ada.actors[0].clone()], ..trio() };
    assert_eq!(result_of(&create(&mut it, 6, named_of_two)), Ok(actor(1)));
    assert_eq!(result_of(&create(&mut it, 7, ada)), Err(in_use));
    let find = ToCoordinator::Find { request: RequestNumber(8), name: "ada".to_owned() };
    let found = FromCoordinator::Found { request: RequestNumber(8), actor: Some(actor(2)) };
    assert_eq!(received(&mut it, MAIN, find), [CoordinatorEffect::Send { to: MAIN, frame: found }]);
}

#[test]
fn a_stranger_among_the_ranks_gets_nothing() {
    let mut it = with_ready_trio();
    assert_eq!(connects(&mut it, rank(3)), []);
    let constructed = ToCoordinator::Constructed { incarnation: IncarnationNumber(9) };
    assert_eq!(received(&mut it, rank(3), constructed), []);
    let held: Vec<HeldId> = (0..6).map(handle).collect();
    for held in held {
        received(&mut it, rank(3), ToCoordinator::Release { held, settled: vec![] });
    }
    assert_eq!(it.describe().actors.len(), 3);
    assert_eq!(connects(&mut it, member(9)), []);
}
