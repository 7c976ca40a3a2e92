//! What a token with the role viewer may ask, and what it is told.

use cohabit_types::{Demand, Filter, GpuRequest, JobId, JobSpec, Outcome, PrivateData, Role, Share};
use cohabit_wire::ClientServiceRequest as Question;

use super::privacy::{answer, questions};
use crate::test_kit::cluster::{TestClient, TestHead};

/// Occurs in what a viewer must not see of a job.
const SECRET: &str = "umbrella";

/// Whether a viewer may ask this. A question that is new does not compile here: decide on it, in
/// `sessions/viewer.rs` as well.
fn is_allowed(question: &Question) -> bool {
    match question {
        Question::List { .. }
        | Question::Show { .. }
        | Question::Explain { .. }
        | Question::Watch { .. }
        | Question::Resolve { .. }
        | Question::JobUpdates { .. }
        | Question::Applications { .. }
        | Question::Nodes {}
        | Question::Figures {}
        | Question::Usage { .. }
        | Question::UsageReport { .. }
        | Question::Shares {}
        | Question::Reservations {}
        | Question::HeadProblems {}
        | Question::ListModels {}
        | Question::OwnToken {}
        | Question::Ping {} => true,
        Question::Submit { .. }
        | Question::ChangeJobs { .. }
        | Question::UpdateJobs { .. }
        | Question::DryRun { .. }
        | Question::DrainNode { .. }
        | Question::ResumeNode { .. }
        | Question::UnbindNode { .. }
        | Question::ApplyShares { .. }
        | Question::Reserve { .. }
        | Question::CancelReservation { .. }
        | Question::RefusedWorkers {}
        | Question::ReadLog { .. }
        | Question::ReadMetrics { .. }
        | Question::WriteInput { .. }
        | Question::StartExec { .. }
        | Question::ReadExec { .. }
        | Question::EndExec { .. }
        | Question::OpenForward { .. }
        | Question::ReadForward { .. }
        | Question::WriteForward { .. }
        | Question::CloseForward { .. }
        | Question::StartCopy { .. }
        | Question::ReadCopy { .. }
        | Question::EndCopy { .. }
        | Question::ReadCode { .. }
        | Question::MissingContent { .. }
        | Question::PutContent { .. }
        | Question::Actors { .. }
        | Question::Tasks { .. }
        | Question::Objects { .. }
        | Question::Questions {}
        | Question::AnswerQuestion { .. }
        | Question::CreateToken { .. }
        | Question::ListTokens {}
        | Question::RevokeToken { .. }
        | Question::ChooseModel { .. }
        | Question::HeadStatus {}
        | Question::Feed { .. } => false,
    }
}

/// A job with the secret wherever a viewer must not see it.
fn secret_spec() -> JobSpec {
    let mut spec = JobSpec::command(vec!["/bin/train".into(), SECRET.into()], format!("/home/{SECRET}"));
    spec.name = "resnet".into();
    spec.environment = [("KEY".into(), SECRET.into())].into();
    spec.checkpoint = Some(format!("/checkpoints/{SECRET}"));
    JobSpec { demand: Demand { gpus: GpuRequest::Part(Share(500)), ..Demand::default() }, ..spec }
}

/// Asks everything about the job: what is refused says role and remedy, and no answer has the secret.
async fn assert_only_looks(viewer: &TestClient, job: JobId) {
    for question in questions(job) {
        let (asked, is_allowed) = (format!("{question:?}"), is_allowed(&question));
        let answer = answer(viewer, question).await;
        let is_refused = answer.contains("has the role viewer, which cannot ")
            && answer.contains("`cohabit token create --role ");
        assert_eq!(is_refused, !is_allowed, "{asked}: {answer}");
        assert!(!answer.contains(SECRET), "{asked}: {answer}");
    }
}

#[tokio::test]
async fn a_viewer_reads_jobs_and_nodes_and_is_refused_everything_else() {
    let head = TestHead::start().await;
    let (ada, viewer) = (head.user("ada").await, head.client_with_role("wall", Role::Viewer).await);
    let job = ada.submit_like(|spec| *spec = secret_spec()).await;
    assert_only_looks(&viewer, job).await;
    let mut worker = head.worker(1, vec![]).await;
    let rank = worker.next_run().await.attempt.rank(0);
    worker.started(rank).await;
    assert_only_looks(&viewer, job).await;
    assert_eq!(ada.show(job).await.state, viewer.show(job).await.state, "and nothing has changed");
    let message = format!("{SECRET}: not found");
    worker.ended(rank, Outcome::OutOfGpuMemory { code: 1, message }).await;
    ada.seen(job, |record| record.state.is_terminal()).await;
    assert_only_looks(&viewer, job).await;

    let (full, seen) = (ada.show(job).await, viewer.show(job).await);
    assert!(full.command_line().contains(SECRET) && seen.command_line().is_empty(), "{full:?}");
    assert_eq!((seen.name.as_str(), seen.user.as_str()), ("resnet", "ada"));
    assert_eq!((seen.state, &seen.demand, seen.nodes()), (full.state, &full.demand, full.nodes()));
    let named = Filter { name: Some("resnet".into()), limit: 10, ..Filter::default() };
    assert_eq!(viewer.list(named).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn a_viewer_that_is_named_like_a_former_user_is_not_that_user() {
    let head = TestHead::start_like(|options| options.private_data = PrivateData::On).await;
    let admin = head.admin().await;
    let ada = head.user("ada").await;
    let job = ada.submit_like(|spec| *spec = secret_spec()).await;
    admin.revoke_token("ada").await.unwrap();
    let viewer = head.client_with_role("ada", Role::Viewer).await;
    assert_only_looks(&viewer, job).await;
    assert_eq!(viewer.show(job).await.name, "(private)");
    let named = Filter { name: Some("resnet".into()), limit: 10, ..Filter::default() };
    assert!(viewer.list(named).await.unwrap().jobs.is_empty());
    assert_eq!(admin.show(job).await.state, cohabit_types::JobState::Pending);
}
