//! Draws applications: some jobs become roots, with children that are submitted while they run.
//!
//! A child is submitted again and again until an attempt of its root runs, and not any more once the root has
//! ended.

use cohabit_types::{
    ApplicationWork, AttemptId, Bytes, CodeSnapshot, ContentHash, Demand, Entrypoint, GpuRequest, JobId,
    JobSpec, LaunchMode, RunnerRole, RunnerWork, Span, Spread,
};

use crate::program::SimProgram;
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario, ScenarioSubmission};

/// Makes roots of some submissions in a third of the scenarios, and adds their children.
pub(super) fn draw(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "applications");
    if !random.chance(0.35) {
        return;
    }
    let jobs = scenario.external_events.iter().filter_map(|(at, event)| {
        if let ExternalEvent::Submit(index) = event { Some((*at, *index)) } else { None }
    });
    for (at, index) in jobs.collect::<Vec<_>>() {
        if !random.chance(0.3) {
            continue;
        }
        let work = ApplicationWork {
            program: "program".into(),
            arguments: vec![text(&scenario.submissions[index].spec)],
            max_gpus: random.chance(0.4).then(|| random.between(0, 3) as u32),
        };
        let submission = &mut scenario.submissions[index];
        // Every application has a name of its own, or there would be few.
        submission.spec.name = format!("application {}", index / 2);
        part(&mut submission.spec, Entrypoint::Application(work));
        // A coordinator holds no device.
        submission.spec.demand.gpus = GpuRequest::Whole(0);
        submission.spec.demand.gpu_memory = None;
        for _ in 0..random.between(0, 6) {
            let later = at + random.span((Span::from_millis(1), Span::from_secs(900)));
            add_child(&mut random, scenario, index);
            let child = scenario.submissions.len() - 1;
            scenario.external_events.push((later, ExternalEvent::Submit(child)));
        }
    }
}

/// Adds a child that is like some other submission.
fn add_child(random: &mut Random, scenario: &mut Scenario, root: usize) {
    let like = &scenario.submissions[random.between(0, scenario.submissions.len() as u64 - 1) as usize];
    let mut spec = like.spec.clone();
    let role = *random.pick(&RunnerRole::ALL);
    let store_node = store_node(random, scenario);
    let work = RunnerWork {
        // Known when it is submitted.
        application: NO_APPLICATION,
        program: "program".into(),
        role,
        arguments: vec![text(&spec)],
        node: Some(store_node).filter(|_| role == RunnerRole::Store),
        ranks: 1,
    };
    part(&mut spec, Entrypoint::Runner(work));
    if role == RunnerRole::Store {
        spec.demand = Demand { gpus: GpuRequest::Whole(0), ..Demand::default() };
    }
    let user = scenario.submissions[root].user.clone();
    scenario.submissions.push(ScenarioSubmission { spec, user, after: Vec::new(), parent: Some(root) });
}

/// The node of a store, which now and then does not exist.
fn store_node(random: &mut Random, scenario: &Scenario) -> String {
    let known = random.chance(0.9).then(|| random.pick(&scenario.shapes).name.clone());
    known.unwrap_or_else(|| "nowhere".to_owned())
}

/// What a child has in place of its application until it is submitted.
const NO_APPLICATION: AttemptId = AttemptId { job: JobId { number: 0, index: None }, attempt: 0 };

/// The program as a simulated process reads it.
fn text(spec: &JobSpec) -> String {
    SimProgram::text_of(spec).to_owned()
}

/// Makes a part of an application of the job.
fn part(spec: &mut JobSpec, entrypoint: Entrypoint) {
    spec.entrypoint = entrypoint;
    spec.code =
        Some(CodeSnapshot { manifest: ContentHash([2; 32]), folder: "/".into(), files: 1, bytes: Bytes(1) });
    (spec.array, spec.launch) = (None, LaunchMode::PerNode);
    spec.demand = Demand { nodes: 1, spread: Spread::Even, ..spec.demand };
}
