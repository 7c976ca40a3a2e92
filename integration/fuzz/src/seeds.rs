//! Seeds that no editor can write: what peers say, in the encoding of links, and objects. Written once for
//! each version of the protocol or format, by `cargo test -p cohabit-fuzz write_the_seeds -- --ignored`.

use std::fs;
use std::path::Path;

use cohabit_application_core::{
    ActorId, CallError, CallNumber, CallRequest, CallValue, Carried, CarriedValue, FromCoordinator,
    FromDirectory, FromStore, HeldId, Lineage, MethodAccess, NodeNumber, ObjectId, OnRestart, RequestNumber,
    SharedValue, StoredObject, TaskClass, TaskRequest, ToCallee, ToCaller, ToCoordinator, ToDirectory,
    ToStore,
};
use cohabit_memory::fuzzing::{ObjectExample, object_of};
use cohabit_net::fuzzing::{decode, encode, v4};
use cohabit_net::{Secret, WorkerHello};
use cohabit_types::{
    Array, Bytes, Demand, Dependency, DependencyKind, Device, DeviceId, DeviceKind, DrainRequest, Filter,
    FollowMode, GpuRequest, Incarnation, IndexRange, Inventory, Isolation, JobChange, JobId, JobRef,
    JobRevision, JobSpec, LinkBandwidths, LogChunk, LogPosition, LogRecord, LogRequest, LogStream, NewToken,
    NodeId, Order, Outcome, Refusal, Rendezvous, Report, Request, Role, Share, SharingLimits, Signal, Span,
    StopReason, Submit, Time, WorkerKey,
};
use serde::Serialize;

use crate::applications::MemberAction;
use crate::cluster::{FuzzQuery, PeerAction, User};
use crate::stores::{StoreAction, seed_object};

/// The beginning of a call: its kind, its number, the time that it has, and a trace that nobody follows.
const CALL: [u8; 21] = [0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// The beginning of a good answer.
const ANSWER: [u8; 3] = [2, 1, 0];

fn submit(change: impl FnOnce(&mut JobSpec)) -> Request {
    let mut spec = JobSpec::command(vec!["train".into(), "--fast".into()], "/home/ada".into());
    change(&mut spec);
    Request::Submit(Box::new(Submit { spec, idempotency_key: Some("key".into()), estimate: None }))
}

fn part(spec: &mut JobSpec) {
    let (gpus, gpu_memory) = (GpuRequest::Part(Share(300)), Some(Bytes(4 << 30)));
    spec.demand = Demand { gpus, gpu_memory, ..Demand::default() };
}

fn array(spec: &mut JobSpec) {
    spec.array = Some(Array { ranges: vec![IndexRange { first: 1, last: 9, step: 2 }], at_once: Some(2) });
    spec.depends_on = vec![Dependency { job: JobId::new(1), when: DependencyKind::AfterOk }];
    spec.begin = Some(Time::from_micros(9));
    spec.time_limit = Some(Span::from_secs(60));
}

fn inventory() -> Inventory {
    let device =
        |n| Device::new(DeviceId(format!("gpu-{n}").into()), DeviceKind::Fake, "V100", Some(Bytes(16 << 30)));
    Inventory {
        fetches_code: true,
        prefetches: true,
        application_ports: true,
        changes_host_shares: true,
        name: "node-a".into(),
        address: "127.0.0.1".into(),
        cpus: 8,
        memory: Bytes(64 << 30),
        devices: (0..2).map(device).collect(),
        build: "0.1.0".into(),
        links: LinkBandwidths::default(),
        sharing: SharingLimits::default(),
        max_jobs: None,
        rendezvous_ports: vec![29_600],
        isolation: Isolation::default(),
        orphan_grace: Span::from_secs(120),
        held_ranks: Vec::new(),
    }
}

fn ended() -> Report {
    let rank = JobId::new(1).attempt(1).rank(0);
    Report::Ended {
        rank,
        outcome: Outcome::Exited(1),
        stopped: None,
        progress: None,
        at: Time::from_micros(5),
        usage: Vec::new(),
    }
}

fn queries() -> Vec<FuzzQuery> {
    vec![
        FuzzQuery::Resolve(vec![JobRef::Range(7, 1), JobRef::Last(0), JobRef::Name("train".into())]),
        FuzzQuery::Show(vec![JobId::new(1), JobId::member(2, 5)]),
        FuzzQuery::Explain(JobId::new(1)),
        FuzzQuery::Watch(vec![JobRevision { job: JobId::new(1), revision: 0 }]),
        FuzzQuery::List(Filter::default()),
        FuzzQuery::Nodes,
    ]
}

/// What happens to a head.
fn scenarios() -> Vec<Vec<(Span, PeerAction)>> {
    let second = Span::from_secs(1);
    let asks = |request| (second, PeerAction::Asks(User::Ada, request));
    let all_queries = queries().into_iter().map(|query| (second, PeerAction::Wonders(User::Bea, query)));
    let rank = JobId::new(1).attempt(1).rank(0);
    let joins = (second, PeerAction::Joins(0, inventory()));
    let runs = (second, PeerAction::Reports(0, Report::Started { rank, at: Time::from_micros(3) }));
    let ends = (second, PeerAction::Reports(0, ended()));
    let mut questions = vec![asks(submit(|_| {})), asks(submit(array))];
    questions.extend(all_queries);
    let mut twice = inventory();
    twice.devices.extend(inventory().devices);
    let joins_twice = (second, PeerAction::Joins(2, twice));
    vec![
        vec![joins_twice, asks(submit(part)), asks(submit(part))],
        vec![joins, asks(submit(part)), asks(submit(part)), runs, ends, (second, PeerAction::Waits)],
        questions,
        vec![
            (second, PeerAction::Joins(1, inventory())),
            asks(submit(array)),
            asks(Request::Change(JobChange::Cancel, vec![JobId::new(1)])),
            (second, PeerAction::Asks(User::Admin, Request::Drain(DrainRequest::new("node-a")))),
            (second, PeerAction::Leaves(1)),
            (second, PeerAction::Waits),
            (second, PeerAction::Asks(User::Admin, Request::Change(JobChange::Requeue, vec![JobId::new(1)]))),
        ],
    ]
}

/// Each by who speaks, how it begins, which of the service's calls it is, and what is said.
fn recorded_messages() -> Vec<(&'static str, Vec<u8>)> {
    let log = LogRequest {
        rank: JobId::new(1).attempt(1).rank(0),
        from: LogPosition::Tail(9),
        at_end: FollowMode::Wait,
    };
    let record = LogRecord { stream: LogStream::Stderr, at: Time::EPOCH, bytes: b"hi\n".to_vec() };
    let chunk: Result<LogChunk, Refusal> = Ok(LogChunk { records: vec![record], ..LogChunk::default() });
    let stop = Order::Stop { attempt: JobId::new(1).attempt(1), why: StopReason::TimeLimit };
    let killed = Report::Ended {
        rank: log.rank,
        outcome: Outcome::Signalled(Signal::KILL),
        stopped: Some(StopReason::Orphaned),
        progress: Some(Default::default()),
        at: Time::from_micros(70_000),
        usage: Vec::new(),
    };
    let token = NewToken {
        name: "ada".into(),
        role: Role::User,
        account: None,
        node: None,
        expires_in: Some(Span::ZERO),
    };
    let mut spec = JobSpec::command(vec!["train".into(), "--fast".into()], "/home/ada".into());
    array(&mut spec);
    let old_submit = v4::messages::Submit {
        spec: spec.clone().into(),
        idempotency_key: Some("key".into()),
        estimate: None,
    };
    let old_submit = v4::messages::Request::Submit(Box::new(old_submit));
    let old_token = v4::messages::TokenRequest::Create {
        name: token.name.clone(),
        role: token.role.into(),
        account: token.account.clone(),
        expires_in: token.expires_in,
    };
    vec![
        ("submit", message(0, &CALL, 0, &(spec, Some("key".to_owned())))),
        ("list", message(0, &CALL, 7, &Filter::default())),
        ("read-log", message(0, &CALL, 13, &log)),
        ("token", message(0, &CALL, 14, &token)),
        ("logged", message(1, &ANSWER, 13, &chunk)),
        ("submit-v4", message(4, &CALL, 0, &old_submit)),
        ("query-v4", message(4, &CALL, 1, &queries().remove(0))),
        ("read-log-v4", message(4, &CALL, 2, &log)),
        ("token-v4", message(4, &CALL, 3, &old_token)),
        ("logged-v4", message(5, &ANSWER, 2, &chunk)),
        ("report", message(2, &CALL, 0, &vec![killed, ended()])),
        ("order", message(3, &CALL, 0, &vec![stop.clone()])),
        ("order-v4", message(6, &CALL, 0, &vec![stop])),
    ]
}

fn message(speaker: u8, beginning: &[u8], call: u8, argument: &impl Serialize) -> Vec<u8> {
    let argument = encode(argument).expect("it is short");
    [&[speaker], beginning, &[call], &argument[..]].concat()
}

/// Objects without and with buffers.
fn objects() -> [(&'static str, ObjectExample); 2] {
    let parts = vec![(Some(vec![1, u64::MAX].into()), 7), (None, 8), (Some(vec![].into()), 9)];
    let full = ObjectExample {
        name: "weights".into(),
        words: (0..40).collect(),
        parts,
        bytes: b"bytes".to_vec().into(),
    };
    [("empty", ObjectExample::default()), ("full", full)]
}

/// What happens in an application.
fn application_scenarios() -> Vec<(&'static str, Vec<MemberAction>)> {
    let (actor, call) = (ActorId(1), CallNumber(1));
    let class = || TaskClass { gpus: Share(500), claims: Default::default() };
    let request = CallRequest {
        method: 3,
        access: MethodAccess::Exclusive,
        on_restart: OnRestart::Retry,
        arguments: b"hi".to_vec().into(),
        needs: Vec::new(),
    };
    let (arguments, needs, carries) = (b"hi".to_vec().into(), Vec::new(), vec![Carried::Actor(actor)]);
    let task = TaskRequest { function: 1, depth: 2, arguments, needs, resume: None, store_as: None };
    let runner = JobId::new(3).attempt(1).rank(0);
    let ran = |call, result| {
        let (call, took) = (CallNumber(call), Span::from_micros(90));
        MemberAction::Answered(1, ToCaller::Ran { call, result, carries: Vec::new(), took })
    };
    vec![
        (
            "actors",
            vec![
                MemberAction::Hears(FromCoordinator::Found { request: RequestNumber(1), actor: Some(actor) }),
                MemberAction::Called(1, ToCallee::Call { actor, call, request, carries }),
                MemberAction::Calls(1),
                MemberAction::Cancels(1),
            ],
        ),
        (
            "runner",
            vec![
                MemberAction::Hears(FromCoordinator::ServeTasks { class: class() }),
                MemberAction::Called(1, ToCallee::Run { call, task, carries: Vec::new() }),
                MemberAction::Called(1, ToCallee::Recall { call }),
                MemberAction::Hears(FromCoordinator::End),
            ],
        ),
        (
            "tasks",
            vec![
                MemberAction::Runs(1),
                MemberAction::Hears(FromCoordinator::RunnerJoined { class: class(), runner }),
                ran(1, Err(CallError::Failed("no".into()))),
                ran(1, Ok(CallValue::Inline(b"yes".to_vec().into()))),
                MemberAction::Hears(FromCoordinator::MemberEnded { member: runner }),
            ],
        ),
        (
            "coordinator",
            vec![
                MemberAction::Connects(0, 0),
                MemberAction::Tells(0, ToCoordinator::WantRunners { class: class(), runners: 3 }),
                MemberAction::Connects(7, 0),
                MemberAction::Tells(7, ToCoordinator::Idle),
                MemberAction::Reported(0, 1),
                MemberAction::Over(0),
            ],
        ),
        ("references", references()),
        ("directory", directory()),
        ("nodes", nodes()),
        ("remake", remake()),
        ("store", store()),
    ]
}

/// A process makes objects, calls with them, gets some from others, and drops them.
fn references() -> Vec<MemberAction> {
    let maker = JobId::new(3).attempt(1).rank(0);
    let object = |number| ObjectId { maker, number };
    let stored = StoredObject { object: object(2), bytes: 1 << 20, home: NodeNumber(0), has_handles: true };
    let values = [
        CarriedValue::Shared,
        CarriedValue::Stored(stored),
        CarriedValue::Inline(b"leaf".to_vec().into()),
        CarriedValue::Failed(CallError::Cancelled),
    ];
    let carries = (1..).zip(values).map(|(number, value)| Carried::Object { object: object(number), value });
    let item = b"item".to_vec().into();
    let value = SharedValue::Inline { value: b"late".to_vec().into(), carries: Vec::new() };
    vec![
        MemberAction::RunsForReference(1),
        MemberAction::Makes(false),
        MemberAction::Makes(true),
        MemberAction::RunsForReference(0),
        MemberAction::Calls(1),
        MemberAction::Answered(
            1,
            ToCaller::Item { call: CallNumber(1), number: 1, item, carries: carries.collect() },
        ),
        MemberAction::Opens(object(2)),
        MemberAction::Hears(FromCoordinator::Object(FromDirectory::Known { object: object(1), value })),
        MemberAction::Fails(0),
        MemberAction::Drops(1),
        MemberAction::Drops(0),
    ]
}

/// Processes share references, wait for them, store objects, and end.
fn directory() -> Vec<MemberAction> {
    let maker = JobId::new(2).attempt(1).rank(0);
    let object = |number| ObjectId { maker, number };
    let tells = |who, report| MemberAction::Tells(who, ToCoordinator::Object(report));
    let stored = StoredObject { object: object(2), bytes: 9, home: NodeNumber(0), has_handles: true };
    let carries = vec![Carried::Object { object: object(1), value: CarriedValue::Shared }];
    let held = HeldId::Object(object(1));
    let to = JobId::new(3).attempt(1).rank(0);
    vec![
        MemberAction::Connects(0, 0),
        MemberAction::Connects(1, 0),
        tells(0, ToDirectory::Share { object: object(1), value: None }),
        tells(1, ToDirectory::Watch { object: object(1), lender: maker }),
        tells(0, ToDirectory::Stored { stored, carries }),
        tells(1, ToDirectory::Open { request: RequestNumber(1), object: object(2) }),
        MemberAction::Tells(0, ToCoordinator::Lend { held, to }),
        tells(0, ToDirectory::Resolve { object: object(1), value: SharedValue::Stored(stored) }),
        MemberAction::Tells(
            0,
            ToCoordinator::Release { held, settled: vec![(JobId::new(1).attempt(1).rank(0), 1)] },
        ),
        MemberAction::Over(0),
    ]
}

fn at(node: &str) -> Rendezvous {
    Rendezvous { address: node.into(), port: 29_601 }
}

fn lineage(carries: Vec<Carried>) -> Box<Lineage> {
    let class = TaskClass { gpus: Share(500), claims: Default::default() };
    let arguments = b"hi".to_vec().into();
    Box::new(Lineage { class, function: 1, arguments, needs: Vec::new(), carries, retries: 2 })
}

/// A process of another node stores an object, that of the coordinator fetches it, and the node is lost.
fn nodes() -> Vec<MemberAction> {
    let (maker, store) = (JobId::new(3).attempt(1).rank(0), JobId::new(9).attempt(1).rank(0));
    let object = ObjectId { maker, number: 1 };
    let stored = StoredObject { object, bytes: 9, home: NodeNumber(1), has_handles: false };
    let tells = |who, frame| MemberAction::Tells(who, frame);
    vec![
        MemberAction::Connects(0, 0),
        MemberAction::Connects(1, 1),
        // The head gives the next number to the job of the store.
        MemberAction::Connects(7, 1),
        tells(7, ToCoordinator::Store(FromStore::Listens { at: at("n1") })),
        tells(1, ToCoordinator::Object(ToDirectory::Stored { stored, carries: Vec::new() })),
        tells(1, ToCoordinator::Object(ToDirectory::Made { object, lineage: lineage(Vec::new()) })),
        tells(1, ToCoordinator::Lend { held: HeldId::Object(object), to: JobId::new(2).attempt(1).rank(0) }),
        MemberAction::OwnStoreSays(FromStore::Wants { object }),
        MemberAction::OwnStoreSays(FromStore::Fetched { object, result: Err("it broke".to_owned().into()) }),
        MemberAction::OwnStoreSays(FromStore::Fetched { object, result: Ok(()) }),
        MemberAction::OwnStoreSays(FromStore::Dropped { object }),
        MemberAction::Silent(7),
        MemberAction::OwnStoreSays(FromStore::Wants { object }),
        MemberAction::Reported(1, 1),
        MemberAction::RefusesStore(1),
        MemberAction::Hears(FromCoordinator::Welcome { node: NodeNumber(1) }),
        MemberAction::Hears(FromCoordinator::NodeAt { node: NodeNumber(0), at: at("n0") }),
        MemberAction::Hears(FromCoordinator::MemberAt { member: store, node: NodeNumber(0) }),
        MemberAction::Hears(FromCoordinator::Store(ToStore::Tell { request: RequestNumber(3) })),
        MemberAction::StoreSays(FromStore::Wants { object }),
    ]
}

/// A process runs the task of a lost object again, and another one runs it for it.
fn remake() -> Vec<MemberAction> {
    let object = ObjectId { maker: JobId::new(3).attempt(1).rank(0), number: 1 };
    let class = || TaskClass { gpus: Share(500), claims: Default::default() };
    let (arguments, call, runner) = (b"hi".to_vec().into(), CallNumber(1), JobId::new(4).attempt(1).rank(0));
    let task = TaskRequest {
        function: 1,
        depth: 0,
        arguments,
        needs: Vec::new(),
        resume: None,
        store_as: Some(object),
    };
    let again = |remake| {
        let lineage = lineage(vec![Carried::Actor(ActorId(1))]);
        MemberAction::Hears(FromCoordinator::Object(FromDirectory::Remake { object, remake, lineage }))
    };
    let failed = Err(CallError::Failed("no".into()));
    let ran = ToCaller::Ran { call, result: failed, carries: Vec::new(), took: Span::from_micros(9) };
    vec![
        again(1),
        MemberAction::Hears(FromCoordinator::RunnerJoined { class: class(), runner }),
        MemberAction::Answered(2, ran),
        again(2),
        MemberAction::Hears(FromCoordinator::MemberEnded { member: runner }),
        MemberAction::Hears(FromCoordinator::Object(FromDirectory::Inquire { object })),
        MemberAction::Hears(FromCoordinator::ServeTasks { class: class() }),
        MemberAction::Called(1, ToCallee::Run { call, task, carries: Vec::new() }),
    ]
}

/// Objects of a node are made, fetched, spilled, served, lost and freed.
fn store() -> Vec<MemberAction> {
    let (object, error) = (seed_object(), CallError::ObjectLost("node n1 is lost".into()));
    let actions = vec![
        StoreAction::Reserves(0, 60),
        StoreAction::Fills(0),
        StoreAction::Wants(2),
        StoreAction::Fetch(2, 70),
        StoreAction::Spilled(0, true),
        StoreAction::Fetched(2, false),
        StoreAction::Fetch(2, 70),
        StoreAction::Fetched(2, true),
        StoreAction::Serves(2),
        StoreAction::Unmaps(2),
        StoreAction::Wants(0),
        StoreAction::BroughtBack(0, true),
        StoreAction::Wants(2),
        StoreAction::Hears(ToStore::Lost { object, error }),
        StoreAction::Remakes(18, 20),
        StoreAction::Hears(ToStore::Forget { maker: object.maker, keep: vec![object] }),
        StoreAction::Hears(ToStore::Keep { object }),
        StoreAction::Hears(ToStore::Free { object }),
        StoreAction::Ends(0),
    ];
    actions.into_iter().map(MemberAction::Stores).collect()
}

/// By target and name.
fn seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds: Vec<_> =
        recorded_messages().into_iter().map(|(name, bytes)| ("messages", name.to_owned(), bytes)).collect();
    for (number, scenario) in scenarios().iter().enumerate() {
        seeds.push(("cluster", number.to_string(), encode(scenario).expect("it is short").to_vec()));
    }
    for (name, object) in objects() {
        seeds.push(("objects", name.to_owned(), object_of(&object).expect("there is memory")));
    }
    for (name, scenario) in application_scenarios() {
        seeds.push(("applications", name.into(), encode(&scenario).expect("it is short").to_vec()));
    }
    let key = WorkerKey { node: NodeId(uuid::Uuid::from_u128(7)), incarnation: Incarnation(3) };
    let worker =
        WorkerHello { key, credential: Some(Secret::new([5; Secret::LENGTH])), inventory: inventory() };
    let worker = encode(&([7u8; 32], 1u8, worker)).expect("it is short");
    seeds.push(("hello", "client".into(), [&[7; 32][..], &[0]].concat()));
    seeds.push(("hello", "worker".into(), worker.to_vec()));
    seeds.push(("hello", "other-version".into(), b"COHABIT\n\0\0\0\x633.1\x1b[2Jbody".to_vec()));
    seeds
}

#[test]
#[ignore = "it writes the seeds anew"]
fn write_the_seeds() {
    for (target, name, bytes) in seeds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }
}

#[test]
fn seeds_are_those_of_this_version_of_the_protocol() {
    for (target, name, bytes) in seeds() {
        let kept = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target).join(&name));
        assert!(kept.is_ok_and(|kept| kept == bytes), "{target}/{name}: write the seeds anew");
    }
    assert!(
        scenarios()
            .iter()
            .all(|scenario| decode::<Vec<(Span, PeerAction)>>(&encode(scenario).unwrap()).is_some())
    );
}
