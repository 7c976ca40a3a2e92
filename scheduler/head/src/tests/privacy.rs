//! What users see of each other's jobs where data is private.

use std::collections::BTreeMap;

use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, AttemptProgress, COPY_LIMIT, CodeRequest, ContentHash,
    CopyDepth, CopyId, CopyRead, CopyRequest, Demand, DrainRequest, ExecId, ExecRead, ExecRequest, Filter,
    FollowMode, ForwardId, ForwardPiece, ForwardPurpose, ForwardRead, ForwardRequest, GpuRequest, InputPiece,
    JobChange, JobId, JobRef, JobRevision, JobSettings, JobSpec, LogPosition, LogRequest, ModelChoice,
    ModelDescription, NewToken, Outcome, PrivateData, Progress, RankId, RefusalCode, Report, Role, Share,
    Span, Time, UpdateCursor, UsageGrouping, UsageReportRequest,
};
use cohabit_wire::ClientServiceRequest as Question;
use serde::Serialize;

use crate::clock::wall_clock;
use crate::test_kit::cluster::{TestClient, TestHead, TestWorker, within};
use crate::test_kit::spec;

/// Occurs in everything that a job's user wrote and that the job reported.
const SECRET: &str = "umbrella";

async fn private_head(retention: Span) -> TestHead {
    let head = TestHead::start_like(|options| {
        options.private_data = PrivateData::On;
        options.policy = "first-fit-sharing".into();
        options.config.retention = retention;
    });
    head.await
}

/// A job for half a device, with the secret wherever a user can write it.
fn secret_spec() -> JobSpec {
    let text = || SECRET.to_owned();
    let mut spec = JobSpec::command(vec!["/bin/train".into(), text()], format!("/home/{SECRET}"));
    spec.name = text();
    spec.group = Some(text());
    spec.environment = [(text(), text())].into();
    spec.checkpoint = Some(format!("/checkpoints/{SECRET}"));
    let (name, precision) = (Some(text()), Some(text()));
    spec.model = Some(ModelDescription { name, precision, iterations: Some(424_242), ..Default::default() });
    JobSpec { demand: half(), ..spec }
}

fn half() -> Demand {
    Demand { gpus: GpuRequest::Part(Share(500)), ..Demand::default() }
}

/// The next job runs, and reports a metric with the secret as its name.
async fn start_next(worker: &mut TestWorker) -> RankId {
    let rank = worker.next_run().await.attempt.rank(0);
    worker.started(rank).await;
    let metrics = [(SECRET.to_owned(), 0.5.into())].into();
    let progress = Progress { step: 1, total: Some(10), metrics, ..Progress::default() };
    worker.report(Report::Progress(vec![AttemptProgress { attempt: rank.attempt, progress }])).await;
    rank
}

async fn end(worker: &TestWorker, rank: RankId) {
    let message = format!("CUDA out of memory in {SECRET}");
    worker.ended(rank, Outcome::OutOfGpuMemory { code: 1, message }).await;
}

/// One of each question that a client can ask, about this job.
pub(super) fn questions(job: JobId) -> Vec<Question> {
    let list = |filter| Question::List { filter: Filter { limit: 10, ..filter } };
    let rank = job.attempt(1).rank(0);
    let new =
        NewToken { name: "mallory".into(), role: Role::Admin, account: None, node: None, expires_in: None };
    let (name, choice) = ("box".to_owned(), ModelChoice::Base);
    let mut questions = vec![
        list(Filter::default()),
        list(Filter { user: Some("ada".into()), ..Filter::default() }),
        list(Filter { members_of: Some(job.number), ..Filter::default() }),
        Question::Show { jobs: vec![job] },
        Question::Explain { job },
        Question::Watch { known: vec![JobRevision { job, revision: 0 }] },
        Question::DryRun { spec: Box::new(JobSpec { demand: half(), ..spec() }) },
        Question::Submit { spec: Box::new(JobSpec { demand: half(), ..spec() }), idempotency_key: None },
        Question::ChangeJobs { change: JobChange::Cancel, jobs: vec![job] },
        Question::Resolve { references: vec![JobRef::Id(job), JobRef::Range(1, 9)] },
        Question::Nodes {},
        Question::ReadLog {
            request: LogRequest { rank, from: LogPosition::Start, at_end: FollowMode::Return },
        },
        Question::DrainNode { drain: DrainRequest::new(name.clone()) },
        Question::UpdateJobs {
            update: JobSettings { priority: Some(-1), ..JobSettings::default() },
            jobs: vec![job],
        },
        Question::ResumeNode { name: name.clone() },
        Question::UnbindNode { name },
        Question::RefusedWorkers {},
        Question::CreateToken { token: new },
        Question::ListTokens {},
        Question::RevokeToken { name: "ada".into() },
        Question::ListModels {},
        Question::ChooseModel { choice },
        Question::Applications { owner: ApplicationOwner::Caller },
        Question::Applications { owner: ApplicationOwner::Anyone },
        Question::Actors { application: job },
        Question::Tasks { application: job },
        Question::Objects { application: job },
        Question::Questions {},
        Question::AnswerQuestion {
            number: 1,
            answer: Box::new(ApplicationAnswer::Actors(ActorListing::default())),
        },
        Question::MissingContent { files: vec![ContentHash([7; 32])] },
        Question::PutContent { pieces: Vec::new() },
        Question::ReadCode { request: CodeRequest { job, file: ContentHash([7; 32]), offset: 0 } },
        Question::Ping {},
        Question::OwnToken {},
        Question::HeadStatus {},
        Question::HeadProblems {},
        Question::JobUpdates { after: None },
        Question::Feed { after: None },
        Question::ReadMetrics { rank },
        Question::Figures {},
        Question::Usage { jobs: vec![job] },
    ];
    questions.extend(share_questions());
    questions.extend(input_questions(rank));
    questions.extend(forward_questions(rank));
    questions.extend(copy_questions(rank));
    questions
}

/// Those about who has which part of the cluster, and had.
fn share_questions() -> [Question; 6] {
    let by = UsageGrouping::ProjectAndUser;
    [
        Question::UsageReport { request: UsageReportRequest { since: wall_clock(), until: Time::NEVER, by } },
        Question::Shares {},
        Question::ApplyShares { table: Box::default(), dry_run: false },
        Question::Reserve { request: Box::default() },
        Question::CancelReservation { number: 1 },
        Question::Reservations {},
    ]
}

/// Those about what is typed into a rank, and about further processes beside it.
fn input_questions(rank: RankId) -> [Question; 4] {
    let process = ExecId { rank, number: 7 };
    let argv = vec!["env".into()];
    let request = ExecRequest { id: process, argv, environment: BTreeMap::new(), terminal: None };
    let bytes = b"read this".to_vec();
    [
        Question::WriteInput {
            piece: InputPiece { rank, process: None, offset: 0, bytes, is_last: true, typist: None },
        },
        Question::StartExec { request: Box::new(request) },
        Question::ReadExec { read: ExecRead { id: process, from: LogPosition::Start } },
        Question::EndExec { process },
    ]
}

/// Those about connections to its ports.
fn forward_questions(rank: RankId) -> [Question; 4] {
    let id = ForwardId { rank, number: 7 };
    let purpose = ForwardPurpose::Connect;
    [
        Question::OpenForward { request: ForwardRequest { id, port: 8888, purpose } },
        Question::ReadForward { read: ForwardRead { id, from: 0, at_end: FollowMode::Return } },
        Question::WriteForward {
            piece: ForwardPiece { id, offset: 0, bytes: b"ping".to_vec(), is_last: true },
        },
        Question::CloseForward { connection: id },
    ]
}

/// Those about copies of its files.
fn copy_questions(rank: RankId) -> [Question; 3] {
    let id = CopyId { rank, number: 7 };
    let request = CopyRequest { id, path: "out/model.pt".into(), depth: CopyDepth::File, limit: COPY_LIMIT };
    [
        Question::StartCopy { request: request.into() },
        Question::ReadCopy { read: CopyRead { id, from: 0, at_end: FollowMode::Return } },
        Question::EndCopy { copy: id },
    ]
}

/// The whole answer as text. A question that is new does not compile here: add it to `questions` as well.
pub(super) async fn answer(client: &TestClient, question: Question) -> String {
    let head = &client.head;
    let long = cohabit_net::context_for(Span::from_secs(60));
    match question {
        Question::List { filter } => text(head.list(long, filter)).await,
        Question::Show { jobs } => text(head.show(long, jobs)).await,
        Question::Explain { job } => text(head.explain(long, job)).await,
        Question::Watch { known } => text(head.watch(long, known)).await,
        Question::DryRun { spec } => text(head.dry_run(long, spec)).await,
        Question::Submit { spec, idempotency_key } => text(head.submit(long, spec, idempotency_key)).await,
        Question::ChangeJobs { change, jobs } => text(head.change_jobs(long, change, jobs)).await,
        Question::Resolve { references } => text(head.resolve(long, references)).await,
        Question::Nodes {} => text(head.nodes(long)).await,
        Question::ReadLog { request } => text(head.read_log(long, request)).await,
        Question::DrainNode { drain } => text(head.drain_node(long, drain)).await,
        Question::UpdateJobs { update, jobs } => text(head.update_jobs(long, update, jobs)).await,
        Question::ResumeNode { name } => text(head.resume_node(long, name)).await,
        Question::UnbindNode { name } => text(head.unbind_node(long, name)).await,
        Question::RefusedWorkers {} => text(head.refused_workers(long)).await,
        Question::CreateToken { token } => text(head.create_token(long, token)).await,
        Question::ListTokens {} => text(head.list_tokens(long)).await,
        Question::RevokeToken { name } => text(head.revoke_token(long, name)).await,
        Question::ListModels {} => text(head.list_models(long)).await,
        Question::ChooseModel { choice } => text(head.choose_model(long, choice)).await,
        Question::Applications { owner } => text(head.applications(long, owner)).await,
        Question::Actors { application } => text(head.actors(long, application)).await,
        Question::Tasks { application } => text(head.tasks(long, application)).await,
        Question::Objects { application } => text(head.objects(long, application)).await,
        Question::Questions {} => text(head.questions(long)).await,
        Question::AnswerQuestion { number, answer } => text(head.answer_question(long, number, answer)).await,
        Question::MissingContent { files } => text(head.missing_content(long, files)).await,
        Question::PutContent { pieces } => text(head.put_content(long, pieces)).await,
        Question::ReadCode { request } => text(head.read_code(long, request)).await,
        Question::Ping {} => text(head.ping(long)).await,
        Question::OwnToken {} => text(head.own_token(long)).await,
        Question::HeadStatus {} => text(head.head_status(long)).await,
        Question::HeadProblems {} => text(head.head_problems(long)).await,
        Question::JobUpdates { .. } => {
            let UpdateCursor { run, .. } = client.job_updates(None).await.next;
            text(head.job_updates(long, Some(UpdateCursor { run, position: 0 }))).await
        }
        Question::Feed { after } => text(head.feed(long, after)).await,
        Question::ReadMetrics { rank } => text(head.read_metrics(long, rank)).await,
        Question::WriteInput { piece } => text(head.write_input(long, piece)).await,
        Question::StartExec { request } => text(head.start_exec(long, request)).await,
        Question::ReadExec { read } => text(head.read_exec(long, read)).await,
        Question::EndExec { process } => text(head.end_exec(long, process)).await,
        Question::OpenForward { request } => text(head.open_forward(long, request)).await,
        Question::ReadForward { read } => text(head.read_forward(long, read)).await,
        Question::WriteForward { piece } => text(head.write_forward(long, piece)).await,
        Question::CloseForward { connection } => text(head.close_forward(long, connection)).await,
        Question::StartCopy { request } => text(head.start_copy(long, request)).await,
        Question::ReadCopy { read } => text(head.read_copy(long, read)).await,
        Question::EndCopy { copy } => text(head.end_copy(long, copy)).await,
        Question::Figures {} => text(head.figures(long)).await,
        Question::UsageReport { request } => text(head.usage_report(long, request)).await,
        Question::Usage { jobs } => text(head.usage(long, jobs)).await,
        Question::Shares {} => text(head.shares(long)).await,
        Question::ApplyShares { table, dry_run } => text(head.apply_shares(long, table, dry_run)).await,
        Question::Reserve { request } => text(head.reserve(long, request)).await,
        Question::CancelReservation { number } => text(head.cancel_reservation(long, number)).await,
        Question::Reservations {} => text(head.reservations(long)).await,
    }
}

async fn text<T: Serialize, E: std::fmt::Debug>(asked: impl Future<Output = Result<T, E>>) -> String {
    serde_json::to_string(&within(asked).await.unwrap()).unwrap()
}

/// Asserts that no answer to this client has the secret or the number of iterations.
async fn assert_hides(client: &TestClient, job: JobId) {
    for question in questions(job) {
        let asked = format!("{question:?}");
        let answer = answer(client, question).await;
        assert!(!answer.contains(SECRET) && !answer.contains("424242"), "{asked}: {answer}");
    }
}

#[tokio::test]
async fn no_answer_shows_the_particulars_of_a_job_of_another_user() {
    let head = private_head(Span::from_secs(3_600)).await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    let job = ada.submit_like(|spec| *spec = secret_spec()).await;
    assert_hides(&eve, job).await;
    let mut worker = head.worker(1, vec![]).await;
    let rank = start_next(&mut worker).await;
    assert_hides(&eve, job).await;
    end(&worker, rank).await;
    ada.seen(job, |record| record.state.is_terminal()).await;
    assert_hides(&eve, job).await;
}

#[tokio::test]
async fn the_history_shows_no_particulars_of_a_job_of_another_user() {
    let head = private_head(Span::ZERO).await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    let mut worker = head.worker(1, vec![]).await;
    let job = ada.submit_like(|spec| *spec = secret_spec()).await;
    let rank = start_next(&mut worker).await;
    end(&worker, rank).await;
    let forgotten = async {
        let fired = "SELECT cast(count(*) AS TEXT) FROM events WHERE event = '\"timer_fired\"'";
        while head.ask(fired) == "0" {
            ada.nodes().await.unwrap();
        }
    };
    within(forgotten).await;
    let kept = ada.explain(job).await.unwrap().sentences;
    assert!(kept.iter().any(|sentence| sentence.contains("only its record is kept")), "{kept:?}");
    assert_hides(&eve, job).await;
}

#[tokio::test]
async fn owner_and_admins_see_all_and_others_see_who_holds_what() {
    let head = private_head(Span::from_secs(3_600)).await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    let mut worker = head.worker(1, vec![]).await;
    let job = ada.submit_like(|spec| *spec = secret_spec()).await;
    start_next(&mut worker).await;
    let full = ada.show(job).await;
    assert!((&*full.name, full.progress.is_some()) == (SECRET, true), "{full:?}");
    assert_eq!(head.admin().await.show(job).await.work, full.work);
    let seen = eve.show(job).await;
    assert_eq!((seen.id, &*seen.user, seen.state), (job, "ada", full.state));
    assert_eq!((&seen.demand, seen.started_at, seen.nodes()), (&full.demand, full.started_at, full.nodes()));
    assert_eq!((&*seen.name, &*seen.work, &*seen.workdir), ("(private)", "", ""));
    let sentences = eve.explain(job).await.unwrap().sentences;
    assert!(sentences.contains(&"Only ada and admins can see more of it.".to_owned()), "{sentences:?}");
    let neighbors = |client: TestClient| async move {
        let dry_run = client.dry_run(JobSpec { demand: half(), ..spec() }).await.unwrap();
        dry_run.neighbors.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    assert_eq!(neighbors(ada).await, [SECRET]);
    assert_eq!(neighbors(eve).await, ["(private)"]);
}

#[tokio::test]
async fn a_name_finds_only_ones_own_jobs() {
    let head = private_head(Span::from_secs(3_600)).await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    ada.submit_like(|spec| *spec = secret_spec()).await;
    let named = |user: Option<&str>| Filter {
        name: Some(SECRET.to_owned()),
        user: user.map(ToOwned::to_owned),
        limit: 10,
        ..Filter::default()
    };
    for user in [None, Some("ada"), Some("eve")] {
        assert!(eve.list(named(user)).await.unwrap().jobs.is_empty(), "{user:?}");
    }
    assert_eq!(ada.list(named(None)).await.unwrap().jobs.len(), 1);
    let refusal = eve.resolve(vec![JobRef::Name(SECRET.to_owned())]).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::NotFound);
    let own = eve.submit_like(|spec| *spec = secret_spec()).await;
    assert_eq!(eve.resolve(vec![JobRef::Name(SECRET.to_owned())]).await, Ok(vec![own]));
    assert_eq!(eve.list(named(None)).await.unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn without_the_setting_users_see_all_jobs() {
    let head = TestHead::start().await;
    let (ada, eve) = (head.user("ada").await, head.user("eve").await);
    let job = ada.submit_like(|spec| *spec = secret_spec()).await;
    assert_eq!(eve.show(job).await.name, SECRET);
    let sentences = eve.explain(job).await.unwrap().sentences;
    assert!(sentences.len() > 2, "{sentences:?}");
}
