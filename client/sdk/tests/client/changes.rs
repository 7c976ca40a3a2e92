//! Submissions and other changes: what is repeated over a broken link, and what is not.

use cohabit_client::types::{
    ChangeResult, DrainRequest, Explanation, IssuedToken, JobChange, JobId, ModelChoice, Models, NewToken,
    NodeId, RefusalCode, RefusedWorker, Role, SubmitReceipt, Time,
};
use cohabit_client::{Error, JobBuilder, Submission};

use crate::kit::{Call, Cluster, Turn, refusal};

fn submission() -> Submission {
    JobBuilder::new("train").workdir("/tmp").build().unwrap()
}

fn accepted(number: u64) -> Turn {
    Turn::Accepted(SubmitReceipt { job: JobId::new(number), members: 1, notes: Vec::new() })
}

fn keys(calls: &[Call]) -> Vec<Option<String>> {
    let key = |call: &Call| {
        let Call::Submit(_, key) = call else { return None };
        Some(key.clone())
    };
    calls.iter().filter_map(key).collect()
}

#[tokio::test]
async fn a_submission_cut_off_before_its_answer_is_repeated_with_the_same_key() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut, accepted(7)]).await;
    let submission = submission();
    let job = cluster.client_of(head.address).submit(&submission).await.unwrap();
    assert_eq!(job.id(), JobId::new(7));
    assert_eq!(keys(&head.calls()), vec![Some(submission.key().to_owned()); 2]);
}

#[tokio::test]
async fn two_submissions_of_one_description_have_keys_of_their_own() {
    let cluster = Cluster::new();
    let head = cluster.head([accepted(7), accepted(8)]).await;
    let client = cluster.client_of(head.address);
    for _ in 0..2 {
        client.submit(&Submission::new(submission().spec().clone()).unwrap()).await.unwrap();
    }
    let keys = keys(&head.calls());
    assert!(keys.iter().all(Option::is_some));
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_cancellation_is_repeated() {
    let cluster = Cluster::new();
    let already = Turn::Changed(vec![(JobId::new(7), ChangeResult::Already)]);
    let head = cluster.head([Turn::Cut, already]).await;
    cluster.client_of(head.address).job(JobId::new(7)).cancel().await.unwrap();
    assert_eq!(head.calls(), vec![Call::ChangeJobs(JobChange::Cancel, vec![JobId::new(7)]); 2]);
}

#[tokio::test]
async fn a_kill_is_repeated() {
    let cluster = Cluster::new();
    let done = Turn::Changed(vec![(JobId::new(7), ChangeResult::Done)]);
    let head = cluster.head([Turn::Cut, done]).await;
    cluster.client_of(head.address).job(JobId::new(7)).kill().await.unwrap();
    assert_eq!(head.calls(), vec![Call::ChangeJobs(JobChange::Kill, vec![JobId::new(7)]); 2]);
}

#[tokio::test]
async fn a_requeue_is_not_retried_and_the_error_says_it_is_unconfirmed() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut]).await;
    let result = cluster.client_of(head.address).job(JobId::new(7)).change(JobChange::Requeue).await;
    assert!(matches!(result, Err(Error::Unconfirmed { what: "requeue", .. })), "{result:?}");
    assert_eq!(head.calls().len(), 1);
}

#[tokio::test]
async fn a_requeue_over_a_link_that_broke_unnoticed_goes_over_a_new_one() {
    let cluster = Cluster::new();
    let done = Turn::Changed(vec![(JobId::new(7), ChangeResult::Done)]);
    let head = cluster.head([done]).await;
    let client = cluster.client_of(head.address);
    client.accepted().await.unwrap();
    head.cut();
    client.job(JobId::new(7)).change(JobChange::Requeue).await.unwrap();
    assert_eq!(head.calls().len(), 1);
}

#[tokio::test]
async fn a_token_is_made_once() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut]).await;
    let new = NewToken { name: "bob".into(), role: Role::User, account: None, node: None, expires_in: None };
    let result = cluster.client_of(head.address).create_token(new.clone()).await;
    assert!(matches!(result, Err(Error::Unconfirmed { what: "token create", .. })), "{result:?}");
    assert_eq!(head.calls(), [Call::CreateToken(new)]);
}

#[tokio::test]
async fn a_node_is_unbound_again_over_a_new_link_and_refused_workers_are_listed() {
    let cluster = Cluster::new();
    let node = NodeId(Default::default());
    let refused = RefusedWorker { node, address: "10.0.0.9".into(), at: Time::EPOCH, times: 2 };
    let turns = [Turn::Cut, Turn::Node("w1".into()), Turn::RefusedWorkers(vec![refused.clone()])];
    let head = cluster.head(turns).await;
    let client = cluster.client_of(head.address);
    assert_eq!(client.unbind("w1").await.unwrap(), "w1");
    assert_eq!(client.refused_workers().await.unwrap(), [refused]);
    let unbind = Call::UnbindNode("w1".into());
    assert_eq!(head.calls(), [unbind.clone(), unbind, Call::RefusedWorkers]);
}

#[tokio::test]
async fn a_model_is_chosen_again_over_a_new_link() {
    let cluster = Cluster::new();
    let models = Models { current: Some(2), pinned: true, ..Models::default() };
    let head = cluster.head([Turn::Cut, Turn::Models(models.clone())]).await;
    let choice = ModelChoice::Version(2);
    assert_eq!(cluster.client_of(head.address).choose_model(choice).await.unwrap(), models);
    assert_eq!(head.calls(), [Call::ChooseModel(choice), Call::ChooseModel(choice)]);
}

#[tokio::test]
async fn tokens_are_listed_again_over_a_new_link() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut, Turn::Tokens(Vec::new())]).await;
    assert_eq!(cluster.client_of(head.address).tokens().await.unwrap(), Vec::new());
    assert_eq!(head.calls(), [Call::ListTokens, Call::ListTokens]);
}

#[tokio::test]
async fn refusals_are_errors() {
    let cluster = Cluster::new();
    let unsatisfiable = Turn::Refuse(refusal(RefusalCode::Unsatisfiable));
    let forbidden = Turn::Refuse(refusal(RefusalCode::NotAllowed));
    let head = cluster.head([unsatisfiable, forbidden]).await;
    let client = cluster.client_of(head.address);
    let result = client.submit(&submission()).await;
    assert!(
        matches!(&result, Err(Error::Refused(why)) if *why == refusal(RefusalCode::Unsatisfiable)),
        "{result:?}"
    );
    let result = client.drain(DrainRequest::new("node-1")).await;
    assert!(matches!(&result, Err(Error::NotAllowed(why)) if why == "refused as NotAllowed"), "{result:?}");
}

#[tokio::test]
async fn a_change_of_one_job_returns_its_outcome() {
    let cluster = Cluster::new();
    let verdict = ChangeResult::Refused(refusal(RefusalCode::WrongState));
    let head = cluster.head([Turn::Changed(vec![(JobId::new(7), verdict)])]).await;
    let result = cluster.client_of(head.address).job(JobId::new(7)).change(JobChange::Release).await;
    assert!(matches!(&result, Err(Error::Refused(why)) if why.code == RefusalCode::WrongState), "{result:?}");
}

#[tokio::test]
async fn each_query_and_each_change_is_one_call() {
    let cluster = Cluster::new();
    let explanation = Explanation { sentences: vec!["It waits.".into()], history: Vec::new() };
    let issued = IssuedToken { text: "cohabit1.x.y".into() };
    let turns = [
        Turn::Node("node-1".into()),
        Turn::Node("node-1".into()),
        Turn::Explained(explanation.clone()),
        Turn::Nodes(Vec::new()),
        Turn::Token(issued.clone()),
        Turn::Revoked,
        Turn::Models(Models::default()),
    ];
    let head = cluster.head(turns).await;
    let client = cluster.client_of(head.address);
    let new = NewToken { name: "bob".into(), role: Role::User, account: None, node: None, expires_in: None };
    assert_eq!(client.drain(DrainRequest::new("node-1")).await.unwrap(), "node-1");
    assert_eq!(client.resume("node-1").await.unwrap(), "node-1");
    assert_eq!(client.explain(JobId::new(7)).await.unwrap(), explanation);
    assert_eq!(client.nodes().await.unwrap(), []);
    assert_eq!(client.create_token(new.clone()).await.unwrap(), issued);
    client.revoke_token("bob").await.unwrap();
    assert_eq!(client.models().await.unwrap(), Models::default());
    let calls = [
        Call::DrainNode("node-1".into()),
        Call::ResumeNode("node-1".into()),
        Call::Explain(JobId::new(7)),
        Call::Nodes,
        Call::CreateToken(new),
        Call::RevokeToken("bob".into()),
        Call::ListModels,
    ];
    assert_eq!(head.calls(), calls);
}
