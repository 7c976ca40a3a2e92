//! Observations of co-located jobs reach the policy, survive a restart, and become models that admins
//! choose from.

use std::time::Duration;

use cohabit_policy::interference::{ColocationSet, GpuKind, InterferenceContext, SetMember};
use cohabit_policy::{
    FreeNodes, PendingJob, PendingReason, Plan, Policy, Proposal, Shortage, View, ViewChange,
};
use cohabit_types::{
    Bytes, Device, DeviceId, DeviceKind, GpuRequest, Inventory, JobId, JobSpec, ModelDescription, Outcome,
    RefusalCode, Report, Share, SharingStrategy,
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::planner::PolicyFactory;
use crate::test_kit::cluster::{TestClient, TestHead, TestWorker, policy, within};
use crate::test_kit::{fifo_plan, inventory, message_of, minute};

/// Sends the test what it plans from, whenever it plans.
struct ReportingPolicy {
    knowledge: Option<InterferenceContext>,
    tell: UnboundedSender<PlannerInput>,
}

/// What a policy plans from.
struct PlannerInput {
    knowledge: Option<InterferenceContext>,
    pending: Vec<JobId>,
    running: Vec<JobId>,
}

impl Policy for ReportingPolicy {
    fn learn(&mut self, _: &View, _: &[ViewChange]) {}

    fn explain_pending(&mut self, _: &View) -> Vec<PendingReason> {
        Vec::new()
    }

    fn plan(&mut self, view: &View) -> Plan {
        let input = PlannerInput {
            knowledge: self.knowledge.clone(),
            pending: view.pending.keys().copied().collect(),
            running: view.running.keys().copied().collect(),
        };
        // The test may have ended.
        let _ = self.tell.send(input);
        fifo_plan(view)
    }

    fn dry_run_on(&mut self, _: &View, _: &PendingJob, _: &FreeNodes<'_>) -> Result<Proposal, Shortage> {
        unreachable!("no test asks for it")
    }

    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        self.knowledge = Some(knowledge.clone());
    }
}

fn reporting_policy() -> (PolicyFactory, UnboundedReceiver<PlannerInput>) {
    let (tell, reports) = unbounded_channel();
    (policy(move || ReportingPolicy { knowledge: None, tell: tell.clone() }), reports)
}

/// A head with a [`ReportingPolicy`], two jobs and a worker.
async fn with_two_jobs() -> (TestHead, UnboundedReceiver<PlannerInput>, [JobId; 2], TestWorker) {
    let (policy, reports) = reporting_policy();
    let head = TestHead::start_with(policy, Duration::from_secs(30)).await;
    let (client, worker) = (head.admin().await, head.worker(1, vec![]).await);
    let jobs = [submit(&client, "a").await, submit(&client, "b").await];
    (head, reports, jobs, worker)
}

async fn submit(client: &TestClient, model: &str) -> JobId {
    let model = ModelDescription { name: Some(model.into()), batch_size: Some(32), ..Default::default() };
    let model = |spec: &mut JobSpec| {
        spec.model = Some(model);
        spec.demand.gpus = GpuRequest::Part(Share(500));
    };
    client.submit_like(model).await
}

/// Samples in which `b` slows `a` down by a factor of 1.25, and `a` slows `b` down by a factor of 2.
fn pair([a, b]: [JobId; 2]) -> Report {
    let alone = vec![minute(1, a, 10.0, &[]), minute(1, b, 6.0, &[])];
    let together = vec![minute(2, a, 8.0, &[b]), minute(2, b, 3.0, &[a])];
    Report::ColocationSamples([alone, together].concat())
}

/// The predicted slowdowns of the pair, once they are measured ones.
async fn measured(reports: &mut UnboundedReceiver<PlannerInput>) -> [f64; 2] {
    let member = |model: &str| SetMember { model: model.into(), batch: Some(32), ..SetMember::default() };
    let sharing = Some(SharingStrategy::Mps);
    let set = ColocationSet { gpu: GpuKind::named("v100"), sharing, members: ["a", "b"].map(member).into() };
    loop {
        let knowledge = within(reports.recv()).await.expect("the policy is there").knowledge;
        let said = knowledge.map(|it| it.interference.predict(std::slice::from_ref(&set)).remove(0));
        if let Some([a, b]) = said.as_deref().filter(|said| said.iter().all(|it| it.measured)) {
            return [a, b].map(|it| (it.slowdown * 100.0).round() / 100.0);
        }
    }
}

#[tokio::test]
async fn observed_slowdowns_reach_the_policy_even_without_pending_jobs() {
    let (_head, mut reports, jobs, mut worker) = with_two_jobs().await;
    for _ in jobs {
        worker.next_run().await;
    }
    worker.report(pair(jobs)).await;
    assert_eq!(measured(&mut reports).await, [1.25, 2.0]);
}

#[tokio::test]
async fn observed_slowdowns_are_known_after_a_restart() {
    let (head, mut reports, jobs, worker) = with_two_jobs().await;
    worker.report(pair(jobs)).await;
    measured(&mut reports).await;
    head.admin().await.submit_like(|spec| spec.demand.gpus = GpuRequest::Whole(2)).await;
    let (policy, mut reports) = reporting_policy();
    let _head = head.restarted_with(policy).await;
    assert_eq!(measured(&mut reports).await, [1.25, 2.0], "known at the first plan after the restart");
}

/// A share of a GPU for a job that trains this model.
fn sharing_a_gpu(model: &str) -> impl FnOnce(&mut JobSpec) {
    let name = Some(model.to_owned());
    let model = ModelDescription { name, batch_size: Some(32), ..ModelDescription::default() };
    |spec| {
        spec.model = Some(model);
        (spec.demand.gpus, spec.demand.gpu_memory) = (GpuRequest::Part(Share(500)), Some(Bytes(1 << 30)));
    }
}

/// A head on whose only GPU job 2 (`b`) finds no memory left beside job 1 (`a`). Job 3 waits for the GPU.
async fn with_a_misfit() -> (TestHead, UnboundedReceiver<PlannerInput>) {
    let (policy, mut reports) = reporting_policy();
    let head = TestHead::start_with(policy, Duration::from_secs(30)).await;
    let gpu = Device::new(DeviceId("gpu-0".into()), DeviceKind::Gpu, "V100", Some(Bytes(16 << 30)));
    let mut worker = head.worker_with(1, Inventory { devices: vec![gpu], ..inventory() }).await;
    let client = head.admin().await;
    for model in ["a", "b"] {
        client.submit_like(sharing_a_gpu(model)).await;
        let rank = worker.next_run().await.attempt.rank(0);
        worker.started(rank).await;
    }
    client.submit_like(|spec| spec.demand.gpus = GpuRequest::Whole(1)).await;
    while within(reports.recv()).await.is_some_and(|input| input.pending != [JobId::new(3)]) {}
    // By the time that this is durable the head has that plan, so it may request the next one at once.
    client.submit_like(|spec| spec.held = true).await;
    let outcome = Outcome::OutOfGpuMemory { code: 1, message: "CUDA out of memory".into() };
    worker.ended(JobId::new(2).attempt(1).rank(0), outcome).await;
    (head, reports)
}

/// Whether the policy is told that the pair may fit, at the first plan without job 2.
async fn may_fit(reports: &mut UnboundedReceiver<PlannerInput>) -> bool {
    let member = |model: &str| SetMember { model: model.into(), batch: Some(32), ..SetMember::default() };
    let sharing = Some(SharingStrategy::TimeSliced);
    let set = ColocationSet { gpu: GpuKind::named("v100"), sharing, members: ["b", "a"].map(member).into() };
    loop {
        let input = within(reports.recv()).await.expect("the policy is there");
        if input.pending == [JobId::new(3)] && !input.running.contains(&JobId::new(2)) {
            let knowledge = input.knowledge;
            return knowledge.is_none_or(|it| it.interference.predict(&[set])[0][0].fits > 0.0);
        }
    }
}

#[tokio::test]
async fn a_set_that_did_not_fit_counts_in_the_very_next_plan() {
    let (_head, mut reports) = with_a_misfit().await;
    assert!(!may_fit(&mut reports).await);
}

#[tokio::test]
async fn a_set_that_did_not_fit_is_known_after_a_restart() {
    let (head, mut reports) = with_a_misfit().await;
    may_fit(&mut reports).await;
    let (policy, mut reports) = reporting_policy();
    let head = head.restarted_with(policy).await;
    assert!(!may_fit(&mut reports).await);
    assert_eq!(head.ask("SELECT job || ' ' || neighbours FROM misfits"), r#"2 ["1"]"#);
}

#[tokio::test]
async fn a_misfit_that_a_crash_kept_from_the_history_is_known_and_counts_once() {
    for lost in ["", "DELETE FROM misfits"] {
        let (head, mut reports) = with_a_misfit().await;
        may_fit(&mut reports).await;
        let (policy, mut reports) = reporting_policy();
        let head = head.crashed_and_started_with(lost, policy).await;
        assert!(!may_fit(&mut reports).await);
        assert_eq!(head.ask("SELECT cast(count(*) AS TEXT) FROM misfits"), "1");
    }
}

#[tokio::test]
async fn a_policy_that_does_not_use_interference_is_not_asked_to_plan_after_a_training() {
    let head = TestHead::start_like(|options| options.policy = "fifo".into()).await;
    let (client, worker) = (head.admin().await, head.worker(1, vec![]).await);
    let jobs = [submit(&client, "a").await, submit(&client, "b").await];
    worker.report(pair(jobs)).await;
    let head = head.restarted().await;
    assert_eq!(
        head.ask("SELECT cast(count(*) AS TEXT) FROM events WHERE event = '\"interference_updated\"'"),
        "0"
    );
    let models = head.admin().await.models().await.unwrap();
    assert_eq!((models.base.as_str(), models.sets, models.rows), ("law", 1, 2));
}

#[tokio::test]
async fn only_admins_choose_a_model_and_only_an_existing_one() {
    use cohabit_types::ModelChoice;
    let head = TestHead::start().await;
    let (admin, ada) = (head.admin().await, head.user("ada").await);
    assert_eq!(ada.models().await.unwrap().current, None);
    let refused = ada.choose_model(ModelChoice::Base).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::NotAllowed);
    let unknown = admin.choose_model(ModelChoice::Version(3)).await.unwrap_err();
    assert_eq!(unknown.code, RefusalCode::NotFound);
    assert_eq!(unknown.message, "there is no version 3 of the model: there are base");
    assert!(admin.choose_model(ModelChoice::Base).await.unwrap().pinned);
    let head = head.restarted().await;
    let admin = head.admin().await;
    assert!(admin.models().await.unwrap().pinned, "the choice of an admin survives a restart");
    assert!(!admin.choose_model(ModelChoice::Auto).await.unwrap().pinned);
}

#[cfg(feature = "learned")]
mod learned {
    use cohabit_types::{ColocationSample, HostShare, ModelChoice, Models};

    use super::*;
    use crate::{HeadDaemon, HeadError, HeadOptions, InterferenceSource};

    /// So many that enough of their pairs judge a model.
    const JOBS: usize = 14;

    /// Samples of every pair of jobs; the slowdown grows with the number of the job and of its
    /// neighbor.
    fn all_pairs(jobs: &[JobId]) -> Vec<ColocationSample> {
        let alone = jobs.iter().map(|job| minute(0, *job, 10.0, &[]));
        let slowdown = |one: usize, other: usize| 1.0 + 0.02 * (one + 1) as f64 * (other + 2) as f64 / 2.0;
        let beside = jobs.iter().enumerate().flat_map(|(one, job)| {
            let others = jobs.iter().enumerate().filter(move |(other, _)| *other != one);
            others.map(move |(other, neighbor)| {
                minute(
                    (one.max(other) * JOBS + one.min(other)) as u64,
                    *job,
                    10.0 / slowdown(one, other),
                    &[*neighbor],
                )
            })
        });
        alone.chain(beside).collect()
    }

    /// A head that has trained its first version.
    async fn with_a_version() -> (TestHead, Models) {
        let head = TestHead::start_like(|options| options.policy = "isacpp".into()).await;
        let (client, worker) = (head.admin().await, head.worker(1, vec![]).await);
        let mut jobs = Vec::new();
        for number in 0..JOBS {
            jobs.push(submit(&client, &format!("model {number}")).await);
        }
        worker.report(Report::ColocationSamples(all_pairs(&jobs))).await;
        let learned = async {
            loop {
                let models = client.models().await.unwrap();
                if !models.versions.is_empty() {
                    return models;
                }
            }
        };
        let models = within(learned).await;
        (head, models)
    }

    #[tokio::test]
    async fn a_model_with_a_lower_error_becomes_a_version_and_survives_a_restart() {
        let (head, models) = with_a_version().await;
        let [version] = &models.versions[..] else { panic!("{models:?}") };
        let all = (JOBS * (JOBS - 1)) as u64;
        assert_eq!((models.current, models.pinned, models.rows), (Some(1), false, all));
        assert_eq!((version.version, version.kind.as_str()), (1, "gaussian"));
        assert_eq!(version.rows + version.validation_rows, all, "each set is learned or judges");
        assert!(version.error < version.error_before / 2.0, "{version:?}");
        let head = head.restarted().await;
        assert_eq!(head.admin().await.models().await, Ok(models));
    }

    #[tokio::test]
    async fn the_choice_of_a_version_survives_a_restart() {
        let (head, _) = with_a_version().await;
        for (choice, current) in [(ModelChoice::Base, None), (ModelChoice::Version(1), Some(1))] {
            let chosen = head.admin().await.choose_model(choice).await.unwrap();
            assert_eq!((chosen.current, chosen.pinned), (current, true));
        }
        let head = head.restarted().await;
        let models = head.admin().await.models().await.unwrap();
        assert_eq!((models.current, models.pinned), (Some(1), true));
    }

    #[tokio::test]
    async fn a_damaged_version_is_skipped_at_the_start() {
        let (head, _) = with_a_version().await;
        std::fs::write(head.folder.path().join("interference/1/weights.safetensors"), "no weights").unwrap();
        let head = head.restarted().await;
        let admin = head.admin().await;
        let models = admin.models().await.unwrap();
        assert_eq!((models.current, models.versions.len()), (None, 1));
        let refused = admin.choose_model(ModelChoice::Version(1)).await.unwrap_err();
        assert_eq!(refused.code, RefusalCode::WrongState);
        assert!(refused.message.contains("weights.safetensors"), "{refused}");
    }

    #[tokio::test]
    async fn the_pretrained_model_is_the_default() {
        assert_eq!(HeadOptions::new("/nowhere").interference, InterferenceSource::Pretrained);
        let head = TestHead::start_like(|options| {
            options.policy = "isacpp".into();
            options.interference = InterferenceSource::Pretrained;
        })
        .await;
        let models = head.admin().await.models().await.unwrap();
        assert_eq!((models.base.as_str(), models.failure), ("pretrained", None));
    }

    async fn refused(policy: &str, interference: InterferenceSource) -> Result<(), HeadError> {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let policy = policy.to_owned();
        let options = HeadOptions { listen, policy, interference, ..HeadOptions::new(folder.path()) };
        HeadDaemon::start(options).await.map(drop)
    }

    #[tokio::test]
    async fn an_invalid_table_is_refused_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.csv");
        let columns = cohabit_types::CO_LOCATION_COLUMNS.join(",");
        std::fs::write(&path, format!("{columns}\n1,v100,mps,a,32,ten,8,1,1,0.5,0.5,true\n")).unwrap();
        let refusal =
            message_of(&refused("isacpp", InterferenceSource::Table(path.clone())).await.unwrap_err());
        let place = format!("table:{}", path.display());
        assert!(refusal.contains(&place) && refusal.contains("line 2, column 'solo_rate'"), "{refusal}");
    }

    #[tokio::test]
    async fn wrong_tables_of_sensitivity_are_refused_with_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables.csv");
        let state = folder.path().join("state");
        for policy in ["fifo", "fifo:tune=on"] {
            std::fs::write(&path, "profile,cores,memory_gb,speed\na,1,20,fast\n").unwrap();
            let options = HeadOptions {
                listen: "127.0.0.1:0".parse().unwrap(),
                policy: policy.into(),
                sensitivity: Some(path.clone()),
                ..HeadOptions::new(&state)
            };
            let refusal = HeadDaemon::start(options.clone()).await.map(drop).unwrap_err();
            let refusal = message_of(&refusal);
            assert!(refusal.starts_with("cannot use the tables of --sensitivity: "), "{refusal}");
            assert!(
                refusal.contains("tables.csv: line 2, column 'speed': 'fast' is not a speed"),
                "{refusal}"
            );
            assert!(!state.exists(), "nothing was created");
            std::fs::write(&path, "profile,cores,memory_gb,speed\na,1,20,2\n").unwrap();
            HeadDaemon::start(options).await.unwrap().stop().await.unwrap();
            std::fs::remove_dir_all(&state).unwrap();
        }
    }

    #[tokio::test]
    async fn a_range_below_the_first_amount_of_its_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables.csv");
        std::fs::write(&path, "profile,cores,memory_gb,speed\nimage,1,20.8,1\nimage,1,62.5,2\n").unwrap();
        let job = |group: &str, least: u64| {
            let mut submit = crate::test_kit::submit();
            submit.spec.group = Some(group.to_owned());
            let demand = &mut submit.spec.demand;
            (demand.cpus, demand.memory) = (1, Bytes(least << 30));
            demand.up_to = Some(HostShare { cpus: 1, memory: Bytes(70 << 30) });
            submit
        };
        for (policy, group, least, refused) in [
            ("fifo:tune=on", "image", 4, true),
            ("fifo:tune=on", "image", 21, false),
            ("fifo:tune=on", "text", 4, false),
            ("fifo", "image", 4, false),
        ] {
            let tables = path.clone();
            let head =
                TestHead::start_like(|it| (it.policy, it.sensitivity) = (policy.into(), Some(tables))).await;
            let client = head.admin().await;
            let submitted = client.try_submit(job(group, least)).await.map(drop);
            let planned = client.dry_run(job(group, least).spec).await.map(drop);
            assert_eq!(
                (submitted.is_err(), planned.is_err()),
                (refused, refused),
                "{policy} {group} {least}"
            );
            for refusal in submitted.err().into_iter().chain(planned.err()) {
                let expected = "its host memory begins at 4 GiB, and jobs known as 'image' do not train with less \
                                than 20.8 GiB, the first amount of their table (--sensitivity of the head): begin \
                                the range with 21 GiB";
                assert_eq!((refusal.code, refusal.message.as_str()), (RefusalCode::Invalid, expected));
            }
        }
    }

    #[tokio::test]
    async fn a_directory_without_a_model_is_refused_if_the_policy_uses_interference() {
        let nowhere = InterferenceSource::Model("/nowhere".into());
        let refusal = message_of(&refused("isacpp", nowhere.clone()).await.unwrap_err());
        assert!(refusal.contains("model:/nowhere") && refusal.contains("card.json"), "{refusal}");
        assert!(refused("fifo", nowhere).await.is_ok());
    }
}

#[cfg(not(feature = "learned"))]
#[tokio::test]
async fn a_program_without_models_refuses_tables_of_sensitivity() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = crate::HeadOptions::new(folder.path());
    (options.policy, options.sensitivity) = ("fifo".into(), Some("tables.csv".into()));
    let refusal = crate::HeadDaemon::start(options).await.map(drop).unwrap_err().to_string();
    assert!(refusal.contains("cannot read tables.csv (--sensitivity): leave the flag out"), "{refusal}");
}

#[cfg(not(feature = "learned"))]
#[tokio::test]
async fn a_program_without_models_refuses_the_pretrained_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = crate::HeadOptions::new(folder.path());
    (options.policy, options.interference) = ("isacpp".into(), crate::InterferenceSource::Pretrained);
    let refusal = crate::HeadDaemon::start(options).await.map(drop).unwrap_err().to_string();
    assert!(refusal.contains("built without models") && refusal.contains("--interference law"), "{refusal}");
}
