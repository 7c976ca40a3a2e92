//! Live applications: whose are asked for, and what is asked again.

use cohabit_client::Error;
use cohabit_client::types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationTopic, JobId,
    ObjectListing, RefusalCode, TaskListing,
};

use crate::kit::{Call, Cluster, Turn, refusal};

const ROOT: JobId = JobId::new(3);

#[tokio::test]
async fn applications_are_those_of_the_user_unless_all_are_asked_for() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Applications(vec![]), Turn::Cut, Turn::Applications(vec![])]).await;
    let client = cluster.client_of(head.address);
    assert!(client.applications().await.unwrap().is_empty());
    assert!(client.applications_of(ApplicationOwner::Anyone).await.unwrap().is_empty());
    let anyone = Call::Applications(ApplicationOwner::Anyone);
    assert_eq!(head.calls(), [Call::Applications(ApplicationOwner::Caller), anyone.clone(), anyone]);
}

#[tokio::test]
async fn each_listing_is_asked_for_by_itself() {
    let cluster = Cluster::new();
    let silent = vec![ROOT.attempt(1).rank(0)];
    let actors = ActorListing { silent: silent.clone(), ..ActorListing::default() };
    let tasks = TaskListing { silent: silent.clone(), ..TaskListing::default() };
    let objects = ObjectListing { silent, ..ObjectListing::default() };
    let answers = [
        Turn::Inspected(ApplicationAnswer::Actors(actors.clone())),
        Turn::Inspected(ApplicationAnswer::Tasks(tasks.clone())),
        Turn::Inspected(ApplicationAnswer::Objects(objects.clone())),
    ];
    let head = cluster.head(answers).await;
    let client = cluster.client_of(head.address);
    assert_eq!(client.actors(ROOT).await.unwrap(), actors);
    assert_eq!(client.tasks(ROOT).await.unwrap(), tasks);
    assert_eq!(client.objects(ROOT).await.unwrap(), objects);
    assert_eq!(head.calls(), [Call::Actors(ROOT), Call::Tasks(ROOT), Call::Objects(ROOT)]);
}

/// Who asks has waited for long enough.
#[tokio::test]
async fn a_coordinator_that_does_not_answer_is_not_asked_again() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Refuse(refusal(RefusalCode::Unavailable))]).await;
    let refused = cluster.client_of(head.address).actors(ROOT).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(refusal) if refusal.code == RefusalCode::Unavailable));
    assert_eq!(head.calls(), [Call::Actors(ROOT)]);
}

#[tokio::test]
async fn a_coordinator_waits_for_questions_and_answers_over_new_links() {
    let cluster = Cluster::new();
    let question = ApplicationQuestion { number: 7, topic: ApplicationTopic::Tasks };
    let turns = [Turn::Cut, Turn::Questions(vec![question]), Turn::Cut, Turn::AnswerTaken];
    let head = cluster.head(turns).await;
    let client = cluster.client_of(head.address);
    assert_eq!(client.questions().await.unwrap(), [question]);
    let answer = ApplicationAnswer::Tasks(TaskListing::default());
    client.answer_question(7, answer.clone()).await.unwrap();
    let given = Call::AnswerQuestion(7, Box::new(answer));
    assert_eq!(head.calls(), [Call::Questions, Call::Questions, given.clone(), given]);
}
