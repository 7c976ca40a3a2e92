//! Workload jobs last as long as the jobs of the trace, and loads are as requested.

use std::collections::BTreeSet;

use cohabit_types::{Bytes, GpuRequest, LaunchMode, PipelineStage, Share, Spread};

use super::*;
use crate::cluster_spec::ClusterSpec;
use crate::program::SimProgram;
use crate::trace::{ReadOptions, Trace, read, synthetic};

const SEED: u64 = 5;

fn machines(spec: &str) -> Vec<MachineSpec> {
    spec.parse::<ClusterSpec>().unwrap().shapes()
}

fn trace(text: &str) -> Trace {
    read(text.as_bytes(), &ReadOptions::default()).unwrap()
}

fn on(spec: &str, trace: &Trace) -> Workload {
    let machines = machines(spec);
    let mut pace = Pace::on(&machines);
    workload(trace, &machines, None, SEED, |model, devices| pace.fastest(model, devices))
}

/// Iteration time on a cluster whose links cost nothing: the longest computation of a stage.
fn computation(model: &ModelDescription, _: u32) -> Option<f64> {
    model.stages.iter().map(|stage| stage.compute_seconds).max_by(f64::total_cmp)
}

fn stages(job: &WorkloadJob) -> &[PipelineStage] {
    &job.spec.model.as_ref().unwrap().stages
}

#[test]
fn at_its_best_placement_a_job_lasts_as_long_as_in_the_trace() {
    let trace = synthetic(300, SEED);
    let workload = on("16x8:V100@25g", &trace);
    assert_eq!(workload.jobs.len(), 300);
    for (job, traced) in workload.jobs.iter().zip(&trace.jobs) {
        let (is, should) = (job.ideal().as_secs_f64(), traced.duration.as_secs_f64());
        assert!(job.pace > 0.0 && job.iterations > 0);
        assert!((is - should).abs() <= should * 0.025 + 1e-5, "{is} {should}");
        assert_eq!(u64::from(job.spec.demand.total_devices()) * 1_000, traced.devices_milli);
        job.spec.demand.check().unwrap();
    }
}

#[test]
fn a_job_of_a_few_iterations_lasts_to_the_microsecond() {
    let workload = on("1x4:V100@25g", &trace("submit_s,duration_s,gpus\n0,8,2\n1,2,4\n2,2,1\n"));
    let ideal: Vec<Span> = workload.jobs.iter().map(WorkloadJob::ideal).collect();
    assert_eq!(ideal, [8, 2, 2].map(Span::from_secs));
}

#[test]
fn jobs_of_a_group_and_size_train_one_model_whatever_else_there_is() {
    let heading = "submit_s,duration_s,gpus,group\n";
    let alone = on("4x8:V100@25g", &trace(&format!("{heading}0,10000,4,a\n")));
    let among = on("4x8:V100@25g", &trace(&format!("{heading}0,9,4,b\n1,9,8,a\n2,5000,4,a\n3,7000,4,a\n")));
    assert_eq!(alone.jobs[0].spec.model, among.jobs[2].spec.model);
    assert_eq!(among.jobs[2].spec.model, among.jobs[3].spec.model);
    let kinds: BTreeSet<String> =
        on("16x8:V100@25g", &synthetic(300, SEED)).jobs.into_iter().map(|job| job.spec.name).collect();
    assert_eq!(kinds.len(), 5, "all networks are drawn: {kinds:?}");
}

#[test]
fn another_seed_draws_other_models() {
    let (trace, machines) = (synthetic(100, SEED), machines("16x8:V100@25g"));
    let names = |seed| {
        let workload = workload(&trace, &machines, None, seed, computation);
        workload.jobs.into_iter().map(|job| job.spec.name).collect::<Vec<_>>()
    };
    assert_eq!(names(1), names(1));
    assert_ne!(names(1), names(2));
}

#[test]
fn a_known_network_that_the_trace_names_is_used() {
    let text = "submit_s,duration_s,gpus,model,batch\n0,100,1,vgg-19,64\n1,100,1,ResNet-18,4096\n";
    let jobs = on("1x8:V100@25g", &trace(text)).jobs;
    let [named, unknown] = &jobs[..] else { panic!("{jobs:?}") };
    // 39.3e9 operations forward, three times that in total, 64 samples, at half of 15.7e12 operations per
    // second.
    assert!((named.pace / (3.0 * 39.28e9 * 64.0 / 7.85e12) - 1.0).abs() < 0.01, "{}", named.pace);
    let model = unknown.spec.model.as_ref().unwrap();
    assert_eq!((model.name.as_deref(), model.batch_size), (Some("ResNet-18"), Some(4_096)));
    assert!(unknown.pace < 5.0, "a batch of something else is not computed: {}", unknown.pace);
}

#[test]
fn iterations_of_the_trace_are_kept_with_their_duration() {
    let text = "submit_s,duration_s,gpus,group,iterations\n0,100,4,a,50\n1,100,4,a,\n";
    let jobs = on("4x4:V100@25g", &trace(text)).jobs;
    assert_eq!(jobs[0].iterations, 50);
    assert!((jobs[0].pace - 2.0).abs() < 1e-9);
    let factors = stages(&jobs[0]).iter().zip(stages(&jobs[1])).map(|(scaled, drawn)| {
        assert!((scaled.gradient_bytes / drawn.gradient_bytes / (2.0 / jobs[1].pace) - 1.0).abs() < 1e-9);
        scaled.compute_seconds / drawn.compute_seconds
    });
    assert!(factors.into_iter().all(|factor| (factor - 2.0 / jobs[1].pace).abs() < 1e-9));
}

#[test]
fn no_later_knowledge_is_submitted() {
    let text = "submit_s,duration_s,gpus,iterations\n0,100,4,50\n";
    let spec = &on("4x4:V100@25g", &trace(text)).jobs[0].spec;
    assert_eq!((spec.iterations, spec.model.as_ref().unwrap().total_iterations()), (None, None));
    assert_eq!(spec.time_limit, None);
}

#[test]
fn whole_devices_may_be_anywhere_and_parts_leave_room() {
    let text = "submit_s,duration_s,gpus,gpu_share,gpu_mem_bytes\n0,10,12,,\n1,10,1,0.25,1000\n2,10,1,,\n";
    let jobs = on("2x8:V100@25g", &trace(text)).jobs;
    let demand = |number: usize| jobs[number].spec.demand;
    assert_eq!((demand(0).gpus, demand(0).spread, demand(0).nodes), (GpuRequest::Whole(12), Spread::Free, 1));
    assert_eq!(jobs[0].spec.launch, LaunchMode::PerGpu);
    assert_eq!((demand(1).gpus, demand(1).gpu_memory), (GpuRequest::Part(Share(250)), Some(Bytes(1_000))));
    assert!(SimProgram::of(&jobs[1].spec).busy < 0.25);
    assert!((jobs[1].work() - 2.5).abs() < 0.5, "{}", jobs[1].work());
    assert_eq!(demand(2).gpus, GpuRequest::Whole(1));
}

#[test]
fn jobs_that_can_never_run_are_skipped_and_counted() {
    let text = "submit_s,duration_s,gpus,gpu_mem_bytes\n0,9,17,\n1,9,16,\n2,9,1,99000000000\n3,9,1,\n";
    let workload = on("2x8:V100@25g", &trace(text));
    assert_eq!(workload.jobs.len(), 2);
    assert_eq!(workload.left_out, SkippedJobs { too_wide: 1, too_large: 1 });
}

#[test]
fn jobs_need_enough_gpus_with_their_memory_and_the_reserve_of_a_shared_one() {
    // A V100 has 16 GiB, these A100 have 40.
    let heading = "submit_s,duration_s,gpus,gpu_share,gpu_mem_bytes\n";
    let left_out =
        |row: &str| on("1x8:V100@25g+1x2:A100-40G@25g", &trace(&format!("{heading}0,9,1,,\n{row}"))).left_out;
    let large = SkippedJobs { too_wide: 0, too_large: 1 };
    assert_eq!(left_out("1,9,2,,30000000000\n"), SkippedJobs::default());
    assert_eq!(left_out("1,9,3,,30000000000\n"), large);
    let whole_memory = 40_u64 << 30;
    assert_eq!(left_out(&format!("1,9,1,,{whole_memory}\n")), SkippedJobs::default());
    assert_eq!(left_out(&format!("1,9,1,0.5,{whole_memory}\n")), large, "no reserve is left");
    assert_eq!(left_out(&format!("1,9,1,0.5,{}\n", u64::MAX)), large);
}

#[test]
fn the_load_becomes_the_requested_one_and_the_order_stays() {
    let workload = on("4x8:V100@25g", &synthetic(200, SEED));
    for load in [0.5, 1.5] {
        let scaled = workload.clone().with_load(load, 32);
        assert!((scaled.load(32).unwrap() / load - 1.0).abs() < 1e-3, "{:?}", scaled.load(32));
        assert!(scaled.jobs.is_sorted_by_key(|job| job.at));
        let works = |it: &Workload| it.jobs.iter().map(WorkloadJob::work).collect::<Vec<_>>();
        assert_eq!(works(&scaled), works(&workload));
    }
}

#[test]
fn jobs_that_arrive_at_once_have_no_load() {
    let workload = on("1x8:V100@25g", &trace("submit_s,duration_s,gpus\n0,9,1\n0,9,1\n"));
    assert_eq!(workload.load(8), None);
    assert_eq!(workload.clone().with_load(0.9, 8), workload);
}
