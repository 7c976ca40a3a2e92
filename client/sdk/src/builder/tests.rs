//! What a description turns into, and what is refused.

use cohabit_types::{IndexRange, Share, Span};

use super::*;

fn refused(description: JobBuilder) -> String {
    match description.build() {
        Err(Error::InvalidJob(why)) => why,
        Err(other) => panic!("another error: {other}"),
        Ok(submission) => panic!("taken: {:?}", submission.spec()),
    }
}

#[test]
fn unset_fields_have_the_defaults_of_a_command() {
    let submission = JobBuilder::new("/opt/train").build().unwrap();
    let here = std::env::current_dir().unwrap().display().to_string();
    assert_eq!(submission.spec(), &JobSpec::command(vec!["/opt/train".into()], here));
}

#[test]
fn settings_arrive_in_the_specification() {
    let submission = JobBuilder::new("python")
        .arg("train.py")
        .args(["--lr", "0.1"])
        .name("mnist")
        .gpus(0.5)
        .gpu_memory(Bytes(7))
        .enforced()
        .cap_compute()
        .gpu_processes(2)
        .cpus(2)
        .memory(Bytes(8))
        .nodes(3)
        .workdir("/data")
        .env("SEED", "1")
        .array(1..=9)
        .at_once(4)
        .depends_on(JobId::new(5), DependencyKind::AfterAny)
        .begin(Time::from_micros(6))
        .priority(-1)
        .time_limit(Duration::from_secs(60))
        .retries(2)
        .stop_signal(Signal::USR1, Duration::from_secs(30))
        .grace(Duration::from_secs(10))
        .group("nightly")
        .iterations(1000)
        .checkpoint("/data/checkpoints")
        .hold()
        .notify(FeedKind::End, Some("mail"))
        .notify(FeedKind::Stall, None)
        .build()
        .unwrap();
    let spec = submission.spec();
    let Entrypoint::Command(command) = &spec.entrypoint else { panic!("{:?}", spec.entrypoint) };
    assert_eq!(command.argv, ["python", "train.py", "--lr", "0.1"]);
    assert_eq!((spec.name.as_str(), spec.workdir.as_str()), ("mnist", "/data"));
    assert_eq!((spec.demand.gpus, spec.demand.gpu_memory), (GpuRequest::Part(Share(500)), Some(Bytes(7))));
    let demand = &spec.demand;
    assert_eq!(
        (demand.limits, demand.compute, demand.gpu_processes),
        (EnforcementRequirement::Enforced, ComputeLimit::Capped, 2)
    );
    assert_eq!((spec.demand.cpus, spec.demand.memory, spec.demand.nodes), (2, Bytes(8), 3));
    assert_eq!(spec.environment["SEED"], "1");
    let members = vec![IndexRange { first: 1, last: 9, step: 1 }];
    assert_eq!(spec.array, Some(Array { ranges: members, at_once: Some(4) }));
    assert_eq!(spec.depends_on, [Dependency { job: JobId::new(5), when: DependencyKind::AfterAny }]);
    assert_eq!((spec.begin, spec.priority), (Some(Time::from_micros(6)), -1));
    assert_eq!((spec.time_limit, spec.retry.limit), (Some(Span::from_secs(60)), 2));
    assert_eq!(spec.stop.warning, Some(WarningSignal { signal: Signal::USR1, before: Span::from_secs(30) }));
    assert_eq!((spec.stop.grace, spec.preemptible), (Span::from_secs(10), true));
    assert_eq!((spec.group.as_deref(), spec.iterations), (Some("nightly"), Some(1000)));
    assert_eq!((spec.checkpoint.as_deref(), spec.held), (Some("/data/checkpoints"), true));
    let requests: Vec<String> = spec.notify.iter().map(ToString::to_string).collect();
    assert_eq!(requests, ["end@mail", "stall"]);
}

#[test]
fn a_stop_signal_makes_a_job_preemptible_unless_the_program_says_otherwise() {
    let is_preemptible = |description: JobBuilder| description.build().unwrap().spec().preemptible;
    let plain = || JobBuilder::new("x");
    let announced = || plain().stop_signal(Signal::USR1, Duration::from_secs(30));
    assert!(!is_preemptible(plain()));
    assert!(is_preemptible(plain().preemptible(true)));
    assert!(is_preemptible(announced()));
    assert!(!is_preemptible(announced().preemptible(false)));
    let said_first = plain().preemptible(false).stop_signal(Signal::USR1, Duration::from_secs(30));
    assert!(!is_preemptible(said_first));
}

#[test]
fn whole_gpus_are_numbers_or_the_enum() {
    let gpus = |description: JobBuilder| description.build().unwrap().spec().demand.gpus;
    assert_eq!(gpus(JobBuilder::new("x").gpus(4)), GpuRequest::Whole(4));
    assert_eq!(gpus(JobBuilder::new("x").gpus(GpuRequest::Whole(0))), GpuRequest::Whole(0));
    assert_eq!(gpus(JobBuilder::new("x").gpus(GpuRequest::Part(Share(250)))), GpuRequest::Part(Share(250)));
}

#[test]
fn jobs_that_can_never_run_are_refused_with_a_message() {
    assert!(refused(JobBuilder::new("x").gpus(1.5)).contains("1.5 is not a number of GPUs"));
    assert!(refused(JobBuilder::new("x").at_once(2)).contains("only an array"));
    assert!(refused(JobBuilder::command([""; 0])).contains("no command"));
    assert!(refused(JobBuilder::new("x").time_limit(Duration::ZERO)).contains("zero"));
}

#[test]
fn every_submission_has_a_key_of_its_own_unless_it_is_given_one() {
    let build = || JobBuilder::new("x").build().unwrap();
    assert_ne!(build().key(), build().key());
    assert_eq!(JobBuilder::new("x").idempotency_key("mine").build().unwrap().key(), "mine");
}
