//! What a head refuses, and its messages.

use cohabit_net::{HelloRefusalCode, LinkError, Token, context_for};
use cohabit_types::{
    ChangeResult, FollowMode, JobChange, LogPosition, LogRequest, NewToken, Outcome, RefusalCode, Role, Span,
};

use crate::HeadError;
use crate::test_kit::cluster::{TestHead, within};

#[tokio::test]
async fn a_worker_token_does_not_admit_a_client() {
    let head = TestHead::start().await;
    let token = Token::read_file(&head.daemon.worker_token_file()).unwrap();
    let refused = head.client(token).await.map(drop).unwrap_err();
    assert!(matches!(refused, LinkError::Refused { code: HelloRefusalCode::WrongRole, .. }), "{refused}");
}

#[tokio::test]
async fn users_change_and_read_only_their_own_jobs_and_logs() {
    let head = TestHead::start().await;
    let (ada, eve, mut worker) =
        (head.user("ada").await, head.user("eve").await, head.worker(1, vec![]).await);
    let job = ada.submit().await;
    let rank = worker.run_one(Outcome::Exited(0)).await;
    let log = LogRequest { rank, from: LogPosition::Start, at_end: FollowMode::Return };
    assert!(ada.read_log(log).await.is_ok());
    assert_eq!(eve.read_log(log).await.unwrap_err().code, RefusalCode::NotAllowed);
    let results = eve.change(JobChange::Cancel, vec![job]).await.unwrap();
    let [(_, ChangeResult::Refused(refusal))] = &results[..] else { panic!("{results:?}") };
    assert_eq!(refusal.code, RefusalCode::NotAllowed);
    assert_eq!(eve.drain("box").await.unwrap_err().code, RefusalCode::NotAllowed);
    assert_eq!(eve.tokens().await.unwrap_err().code, RefusalCode::NotAllowed);
}

#[tokio::test]
async fn the_revocation_of_a_token_ends_its_links() {
    let head = TestHead::start().await;
    let (admin, eve) = (head.admin().await, head.user("eve").await);
    let second =
        NewToken { name: "eve".into(), role: Role::User, account: None, node: None, expires_in: None };
    assert_eq!(admin.create_token(second).await.unwrap_err().code, RefusalCode::Invalid);
    assert_eq!(admin.revoke_token("eve").await, Ok(()));
    let closed = async { while eve.head.ping(context_for(Span::from_secs(5))).await.is_ok() {} };
    within(closed).await;
    assert_eq!(admin.revoke_token("eve").await.unwrap_err().code, RefusalCode::NotFound);
}

#[tokio::test]
async fn a_directory_or_a_port_in_use_is_refused() {
    let head = TestHead::start().await;
    let same_folder = head.start_another(|_| {}).await.map(drop).unwrap_err();
    assert!(matches!(same_folder, HeadError::InUse { .. }), "{same_folder}");
    let other = tempfile::tempdir().unwrap();
    let address = head.daemon.address();
    let same_port = head
        .start_another(|options| {
            options.state_dir = other.path().to_owned();
            options.listen = address;
        })
        .await
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(same_port.contains(&address.to_string()), "{same_port}");
}

#[tokio::test]
async fn an_unknown_policy_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = crate::HeadOptions::new(folder.path().join("state"));
    options.policy = "fifi".into();
    let refusal = crate::HeadDaemon::start(options).await.map(drop).unwrap_err().to_string();
    assert!(refusal.contains("'fifi'") && refusal.contains("fifo"), "{refusal}");
    assert!(!folder.path().join("state").exists());
}
