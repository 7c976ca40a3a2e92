//! Submissions and other changes: what is repeated over a broken link, and what is not.

use cohabit_client::proto::{
    ChangeResult, JobChange, JobId, ModelChoice, ModelRequest, Models, RefusalCode, Reply, Request, Role,
    TokenAnswer, TokenRequest,
};
use cohabit_client::{Error, JobBuilder, Submission};

use crate::kit::{Call, Cluster, Turn, refusal};

fn submission() -> Submission {
    JobBuilder::new("train").workdir("/tmp").build().unwrap()
}

fn accepted(number: u64) -> Turn {
    Turn::Reply(Reply::Accepted { job: JobId::new(number), members: 1 })
}

fn keys(calls: &[Call]) -> Vec<Option<String>> {
    let key = |call: &Call| {
        let Call::Request(Request::Submit(submit)) = call else { return None };
        Some(submit.idempotency_key.clone())
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
async fn a_plain_submit_request_gets_a_key_that_stays() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut, accepted(7)]).await;
    let submit = cohabit_client::proto::Submit {
        spec: submission().spec().clone(),
        idempotency_key: None,
        estimate: None,
    };
    cluster.client_of(head.address).request(Request::Submit(Box::new(submit))).await.unwrap();
    let keys = keys(&head.calls());
    assert_eq!(keys.len(), 2);
    assert!(keys[0].is_some());
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_cancellation_is_repeated() {
    let cluster = Cluster::new();
    let already = Turn::Reply(Reply::Changed(vec![(JobId::new(7), ChangeResult::Already)]));
    let head = cluster.head([Turn::Cut, already]).await;
    cluster.client_of(head.address).job(JobId::new(7)).cancel().await.unwrap();
    assert_eq!(head.calls(), vec![Call::Request(Request::Change(JobChange::Cancel, vec![JobId::new(7)])); 2]);
}

#[tokio::test]
async fn a_requeue_is_asked_once_and_the_error_says_that_nobody_knows() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut]).await;
    let result = cluster.client_of(head.address).job(JobId::new(7)).change(JobChange::Requeue).await;
    assert!(matches!(result, Err(Error::Unconfirmed { what: "requeue", .. })), "{result:?}");
    assert_eq!(head.calls().len(), 1);
}

#[tokio::test]
async fn a_requeue_over_a_link_that_broke_unnoticed_goes_over_a_new_one() {
    let cluster = Cluster::new();
    let done = Turn::Reply(Reply::Changed(vec![(JobId::new(7), ChangeResult::Done)]));
    let head = cluster.head([done]).await;
    let client = cluster.client_of(head.address);
    client.welcome().await.unwrap();
    head.cut();
    client.job(JobId::new(7)).change(JobChange::Requeue).await.unwrap();
    assert_eq!(head.calls().len(), 1);
}

#[tokio::test]
async fn a_token_is_made_once() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut]).await;
    let create =
        TokenRequest::Create { name: "bob".into(), role: Role::User, account: None, expires_in: None };
    let result = cluster.client_of(head.address).tokens(create.clone()).await;
    assert!(matches!(result, Err(Error::Unconfirmed { what: "token create", .. })), "{result:?}");
    assert_eq!(head.calls(), [Call::Token(create)]);
}

#[tokio::test]
async fn a_model_is_chosen_again_over_a_new_link() {
    let cluster = Cluster::new();
    let models = Models { current: Some(2), held: true, ..Models::default() };
    let head = cluster.head([Turn::Cut, Turn::Models(models.clone())]).await;
    let choose = ModelRequest::Use(ModelChoice::Version(2));
    assert_eq!(cluster.client_of(head.address).models(choose.clone()).await.unwrap(), models);
    assert_eq!(head.calls(), [Call::Models(choose.clone()), Call::Models(choose)]);
}

#[tokio::test]
async fn tokens_are_listed_again_over_a_new_link() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Cut, Turn::Token(TokenAnswer::Listed(Vec::new()))]).await;
    let answer = cluster.client_of(head.address).tokens(TokenRequest::List).await.unwrap();
    assert_eq!(answer, TokenAnswer::Listed(Vec::new()));
}

#[tokio::test]
async fn refusals_are_errors_whichever_way_they_come() {
    let cluster = Cluster::new();
    let inside = Turn::Reply(Reply::Refused(refusal(RefusalCode::Unsatisfiable)));
    let outside = Turn::Refuse(refusal(RefusalCode::Unsatisfiable));
    let forbidden = Turn::Refuse(refusal(RefusalCode::NotAllowed));
    let head = cluster.head([inside, outside, forbidden]).await;
    let client = cluster.client_of(head.address);
    for _ in 0..2 {
        let result = client.submit(&submission()).await;
        assert!(
            matches!(&result, Err(Error::Refused(why)) if *why == refusal(RefusalCode::Unsatisfiable)),
            "{result:?}"
        );
    }
    let result = client.drain("node-1").await;
    assert!(matches!(&result, Err(Error::NotAllowed(why)) if why == "refused as NotAllowed"), "{result:?}");
}

#[tokio::test]
async fn what_became_of_one_job_is_the_outcome_of_its_change() {
    let cluster = Cluster::new();
    let verdict = ChangeResult::Refused(refusal(RefusalCode::WrongState));
    let head = cluster.head([Turn::Reply(Reply::Changed(vec![(JobId::new(7), verdict)]))]).await;
    let result = cluster.client_of(head.address).job(JobId::new(7)).change(JobChange::Release).await;
    assert!(matches!(&result, Err(Error::Refused(why)) if why.code == RefusalCode::WrongState), "{result:?}");
}

#[tokio::test]
async fn an_answer_to_something_else_is_not_taken() {
    let cluster = Cluster::new();
    let head = cluster.head([Turn::Reply(Reply::Node("node-1".into()))]).await;
    let result = cluster.client_of(head.address).submit(&submission()).await;
    assert!(matches!(result, Err(Error::Protocol(_))), "{result:?}");
}
