//! Applications on a real head: what their processes get, and what their coordinators may ask.

use cohabit_net::Token;
use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationTopic,
    ApplicationWork, AttemptId, CodeSnapshot, Demand, Entrypoint, GpuRequest, HeldRank, HeldRankPhase,
    JobChange, JobId, JobSpec, Outcome, Refusal, RefusalCode, Role, RunOrder, RunnerRole, RunnerWork, Span,
    Submit, TaskListing,
};

use crate::test_kit::cluster::{TestClient, TestHead, TestWorker};
use crate::test_kit::{at, inventory, spec};

fn part(code: &CodeSnapshot, entrypoint: Entrypoint) -> Submit {
    let demand = Demand { gpus: GpuRequest::Whole(0), ..Demand::default() };
    let spec = JobSpec { name: "search".into(), entrypoint, demand, code: Some(code.clone()), ..spec() };
    Submit { spec, idempotency_key: None, estimate: None }
}

fn application(code: &CodeSnapshot) -> Submit {
    let work = ApplicationWork { program: "train.py".into(), arguments: vec![], max_gpus: None };
    part(code, Entrypoint::Application(work))
}

fn runner(code: &CodeSnapshot, application: AttemptId) -> Submit {
    let (program, role) = ("train.py".into(), RunnerRole::Actor);
    part(
        code,
        Entrypoint::Runner(RunnerWork {
            application,
            program,
            role,
            arguments: vec![],
            node: None,
            ranks: 1,
        }),
    )
}

fn token(order: &RunOrder) -> Token {
    order.application.as_ref().unwrap().token.as_ref().unwrap().parse().unwrap()
}

fn code_of<T: std::fmt::Debug>(result: Result<T, Refusal>) -> RefusalCode {
    result.unwrap_err().code
}

/// A head, the worker on which an application of Ada runs, her client, the stored program, and the order.
async fn running() -> (TestHead, TestWorker, TestClient, CodeSnapshot, RunOrder) {
    let head = TestHead::start().await;
    let mut worker = head.worker(1, vec![]).await;
    let ada = head.user("ada").await;
    let code = ada.stored(b"a program").await;
    ada.try_submit(application(&code)).await.unwrap();
    let order = worker.next_run().await;
    worker.started(order.attempt.rank(0)).await;
    (head, worker, ada, code, order)
}

#[tokio::test]
async fn a_coordinator_submits_follows_and_ends_its_runners_and_nothing_else() {
    let (head, mut worker, ada, code, order) = running().await;
    let other = ada.submit().await;
    assert_eq!(worker.next_run().await.attempt.job, other);
    let coordinator = head.client(token(&order)).await.unwrap();
    assert_eq!(coordinator.user, "ada");
    let child = coordinator.try_submit(runner(&code, order.attempt)).await.unwrap().job;
    let run = worker.next_run().await;
    let (root, own) = (order.application.unwrap(), run.application.unwrap());
    assert_eq!(run.attempt.job, child);
    assert!(own.secret == root.secret && own.token.is_none(), "a runner gets no token");
    assert_eq!(coordinator.show(child).await.application, Some(order.attempt.job));
    assert_eq!(ada.show(child).await.user, "ada");
    coordinator.show(order.attempt.job).await;
    let plain = Submit { spec: spec(), idempotency_key: None, estimate: None };
    assert_eq!(code_of(coordinator.try_submit(plain).await), RefusalCode::NotAllowed);
    assert_eq!(code_of(coordinator.try_submit(application(&code)).await), RefusalCode::NotAllowed);
    assert_eq!(code_of(coordinator.records(vec![child, other]).await), RefusalCode::NotAllowed);
    assert_eq!(code_of(coordinator.change(JobChange::Cancel, vec![other]).await), RefusalCode::NotAllowed);
    assert_eq!(code_of(coordinator.change(JobChange::Hold, vec![child]).await), RefusalCode::NotAllowed);
    assert_eq!(code_of(coordinator.tokens().await), RefusalCode::NotAllowed);
    assert_eq!(code_of(coordinator.nodes().await), RefusalCode::NotAllowed);
    coordinator.change(JobChange::Cancel, vec![child]).await.unwrap();
    assert!(ada.show(child).await.reason.contains("cancelled"));
}

fn patient() -> cohabit_net::Context {
    cohabit_net::context_for(Span::from_secs(60))
}

async fn next_question(coordinator: &TestClient) -> ApplicationQuestion {
    let asked = coordinator.head.questions(patient()).await.unwrap().unwrap();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    *question
}

#[tokio::test]
async fn a_coordinator_answers_what_its_user_asks_and_others_are_refused() {
    let (head, _worker, ada, _code, order) = running().await;
    let root = order.attempt.job;
    let coordinator = head.client(token(&order)).await.unwrap();
    let mut listing = ActorListing::default();
    listing.silent.push(order.attempt.rank(0));
    let asking = tokio::spawn({
        let ada = ada.head.clone();
        async move { ada.actors(patient(), root).await.unwrap() }
    });
    let question = next_question(&coordinator).await;
    assert_eq!(question.topic, ApplicationTopic::Actors);
    let answer = Box::new(ApplicationAnswer::Actors(listing.clone()));
    let answered = coordinator.head.answer_question(patient(), question.number, answer).await.unwrap();
    assert_eq!(answered, Ok(()));
    assert_eq!(asking.await.unwrap(), Ok(listing));

    let eve = head.user("eve").await;
    let refused = eve.head.actors(patient(), root).await.unwrap().unwrap_err();
    assert_eq!(refused.code, RefusalCode::NotAllowed);
    assert_eq!(refused.message, "job 1 belongs to ada: only its owner and admins may see its actors");
    assert_eq!(code_of(ada.head.questions(patient()).await.unwrap()), RefusalCode::NotAllowed);
    let forged = Box::new(ApplicationAnswer::Tasks(TaskListing::default()));
    assert_eq!(
        code_of(eve.head.answer_question(patient(), 2, forged).await.unwrap()),
        RefusalCode::NotAllowed
    );
    assert_eq!(code_of(coordinator.head.tasks(patient(), root).await.unwrap()), RefusalCode::NotAllowed);

    let admin = head.admin().await;
    let asking = tokio::spawn(async move { admin.head.tasks(patient(), root).await.unwrap() });
    let question = next_question(&coordinator).await;
    let answer = Box::new(ApplicationAnswer::Tasks(TaskListing::default()));
    coordinator.head.answer_question(patient(), question.number, answer).await.unwrap().unwrap();
    assert_eq!(asking.await.unwrap(), Ok(TaskListing::default()));
}

#[tokio::test]
async fn only_live_applications_can_be_looked_at() {
    let (head, worker, ada, _code, order) = running().await;
    let plain = ada.submit().await;
    let refused = ada.head.tasks(patient(), plain).await.unwrap().unwrap_err();
    assert_eq!(refused.code, RefusalCode::WrongState);
    assert!(refused.message.contains("job 2 is no live application"), "{refused:?}");
    let unknown = ada.head.tasks(patient(), JobId::new(99)).await.unwrap();
    assert_eq!(code_of(unknown), RefusalCode::NotFound);
    worker.ended(order.attempt.rank(0), Outcome::Exited(0)).await;
    ada.seen(order.attempt.job, |record| record.state.is_terminal()).await;
    let refused = ada.head.objects(patient(), order.attempt.job).await.unwrap().unwrap_err();
    assert!(refused.message.contains("job 1 is no live application: it is COMPLETED"), "{refused:?}");
    drop(head);
}

#[tokio::test]
async fn applications_of_all_users_are_listed_on_demand() {
    let (head, _worker, ada, _code, _order) = running().await;
    let eve = head.user("eve").await;
    let listed = async |client: &TestClient, owner| {
        let listed = client.head.applications(patient(), owner).await.unwrap().unwrap();
        listed.into_iter().map(|it| (it.name, it.user)).collect::<Vec<_>>()
    };
    let expected = [("search".to_owned(), "ada".to_owned())];
    assert_eq!(listed(&ada, ApplicationOwner::Caller).await, expected);
    assert_eq!(listed(&eve, ApplicationOwner::Caller).await, []);
    assert_eq!(listed(&eve, ApplicationOwner::Anyone).await, expected);
}

#[tokio::test]
async fn the_token_of_an_application_ends_with_its_attempt() {
    let (head, worker, ada, code, order) = running().await;
    let coordinator = head.client(token(&order)).await.unwrap();
    worker.ended(order.attempt.rank(0), Outcome::Exited(0)).await;
    ada.seen(order.attempt.job, |record| record.state.is_terminal()).await;
    // Its link ends, too: whichever comes first, nothing is submitted any more.
    let refused = coordinator.head.submit(patient(), Box::new(runner(&code, order.attempt).spec), None);
    assert!(!matches!(refused.await, Ok(Ok(_))));
    assert!(head.client(token(&order)).await.is_err());
}

#[tokio::test]
async fn the_access_of_an_application_survives_a_restart_of_the_head() {
    let (head, worker, ada, code, order) = running().await;
    drop((worker, ada));
    let head = head.killed_and_started().await;
    let coordinator = head.client(token(&order)).await.unwrap();
    let held = HeldRank { rank: order.attempt.rank(0), phase: HeldRankPhase::Running(at(0)) };
    let mut worker = head.worker(2, vec![held]).await;
    let child = coordinator.try_submit(runner(&code, order.attempt)).await.unwrap().job;
    let run = worker.next_run().await;
    assert_eq!(run.attempt.job, child);
    assert!(run.application.unwrap().secret == order.application.unwrap().secret);
}

#[tokio::test]
async fn nothing_of_an_applications_secrets_is_written_down() {
    let (head, _worker, _ada, _code, order) = running().await;
    let credentials = order.application.clone().unwrap();
    let token = credentials.token.unwrap();
    let secret = token.rsplit('.').next().unwrap();
    let digits = cohabit_types::hex::to_hex(&credentials.secret.0);
    for entry in std::fs::read_dir(head.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let content = if path.is_file() { std::fs::read(&path).unwrap() } else { continue };
        for hidden in [secret, &digits] {
            let found = content.windows(hidden.len()).any(|it| it == hidden.as_bytes());
            assert!(!found, "{} has a secret", path.display());
        }
    }
    let tokens: Vec<_> = head.admin().await.tokens().await.unwrap();
    assert!(tokens.iter().all(|token| token.role != Role::User || token.name == "ada"), "{tokens:?}");
}

#[tokio::test]
async fn the_token_of_an_application_lets_no_worker_in() {
    let (head, _worker, _ada, _code, order) = running().await;
    let hello = cohabit_net::WorkerHello {
        key: cohabit_types::WorkerKey {
            node: cohabit_types::NodeId(uuid::Uuid::from_u128(99)),
            incarnation: cohabit_types::Incarnation(1),
        },
        credential: None,
        inventory: inventory(),
    };
    let refused = head.try_worker_with(token(&order), hello).await.err().unwrap().to_string();
    assert!(refused.contains("for its coordinator"), "{refused}");
}
