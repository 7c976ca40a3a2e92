//! Flags become a job specification.

use std::fs;

use clap::Parser;
use cohabit_client::types::{Bytes, LaunchMode, Share, Slowdown, Span, Spread};

use super::*;

/// Flags of a job alone.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    job: JobArguments,
}

fn here(variables: &[(&str, &str)]) -> SubmitContext {
    SubmitContext {
        folder: "/home/ada".into(),
        variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        host: "login1".into(),
        now: "2026-11-21T12:00:00+01:00[Europe/Berlin]".parse().unwrap(),
    }
}

fn specified(flags: &str, context: &SubmitContext) -> Result<JobSpec, CommandError> {
    let flags = ["job"].into_iter().chain(flags.split_whitespace());
    let job = Flags::try_parse_from(flags).unwrap().job;
    specify(&job, vec!["python".into(), "train.py".into()], None, context)
}

fn refusal(flags: &str) -> String {
    specified(flags, &here(&[])).unwrap_err().message
}

#[test]
fn without_flags_a_job_is_plain_and_starts_here() {
    let spec = specified("", &here(&[])).unwrap();
    assert_eq!(spec, JobSpec::command(vec!["python".into(), "train.py".into()], "/home/ada".into()));
    assert_eq!(spec.check(), Ok(()));
}

#[test]
fn every_flag_reaches_the_specification() {
    let flags = "--name r50 --gpus 4 --nodes 2 --gpu-mem 20G --cpus 8 --mem 64G --time 2h --priority -3 --retries 2 \
                 --workdir runs --checkpoint ck --launch per-gpu --hold --slurm-env --group g --iterations 100 \
                 --exclusive";
    let spec = specified(flags, &here(&[])).unwrap();
    assert_eq!(
        spec.demand,
        Demand {
            nodes: 2,
            gpus: GpuRequest::Whole(2),
            gpu_memory: Some(Bytes(20 << 30)),
            cpus: 8,
            memory: Bytes(64 << 30),
            sharing: Sharing::Exclusive,
            spread: Spread::Even,
            ..Demand::default()
        }
    );
    assert_eq!((spec.name.as_str(), spec.launch, spec.priority), ("r50", LaunchMode::PerGpu, -3));
    assert_eq!((spec.workdir.as_str(), spec.checkpoint.as_deref()), ("/home/ada/runs", Some("/home/ada/ck")));
    assert_eq!((spec.time_limit, spec.retry.limit), (Some(Span::from_secs(7_200)), 2));
    assert!(spec.held && spec.slurm_environment);
}

#[test]
fn files_for_output_are_relative_to_the_working_directory() {
    let files = |flags: &str| specified(flags, &here(&[])).unwrap().output;
    let output = files("--workdir runs --stdout logs/%j.out --stderr /tmp/e");
    assert_eq!(output.stdout.as_deref(), Some("/home/ada/runs/logs/%j.out"));
    assert_eq!(output.stderr.as_deref(), Some("/tmp/e"));
    let folder = specified("--stdout logs/", &here(&[])).unwrap();
    assert!(folder.check().unwrap_err().contains("names a directory"));
}

#[test]
fn exported_variables_are_those_that_slurm_would_copy() {
    let shell =
        [("PATH", "/bin"), ("LANG", "C"), ("A", "1"), ("COHABIT_TOKEN_FILE", "/t"), ("SLURM_JOB_ID", "9")];
    let copied = |flags: &str| {
        let environment = specified(flags, &here(&shell)).unwrap().environment;
        environment.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(copied(""), "LANG=C PATH=/bin");
    assert_eq!(copied("--export=ALL"), "A=1 LANG=C PATH=/bin");
    assert_eq!(copied("--export=ALL,A=2"), "A=2 LANG=C PATH=/bin");
    assert_eq!(copied("--export=NONE"), "");
    assert_eq!(copied("--export=A,MISSING,B=3 --env C=4"), "A=1 B=3 C=4");
    assert_eq!(copied("--export=NONE --slurm-env"), "SLURM_SUBMIT_HOST=login1");
}

#[test]
fn flags_of_sharing_become_part_of_the_demand() {
    let flags = "--gpus 0.25 --gpu-mem 8G --enforced --cap-compute --gpu-processes 4 --max-slowdown 1.25";
    let demand = specified(flags, &here(&[])).unwrap().demand;
    let limits = (demand.limits, demand.compute, demand.gpu_processes, demand.max_slowdown);
    assert_eq!(limits, (EnforcementRequirement::Enforced, ComputeLimit::Capped, 4, Some(Slowdown(1_250))));
    let whole = specified("--gpus 1 --cap-compute", &here(&[])).unwrap();
    assert!(whole.check().unwrap_err().contains("only a job with a share of a GPU"));
    let alone = specified("--gpus 1 --max-slowdown 2", &here(&[])).unwrap();
    assert!(alone.check().unwrap_err().contains("can limit its slowdown"));
    let none = specified("--gpus 0.5 --gpu-processes 0", &here(&[])).unwrap();
    assert!(none.check().unwrap_err().contains("--gpu-processes must be at least 1"));
}

#[test]
fn a_stop_signal_makes_a_job_preemptible_unless_a_flag_says_otherwise() {
    for (flags, expected) in [
        ("", false),
        ("--grace 10s", false),
        ("--preemptible", true),
        ("--no-preemptible", false),
        ("--stop-signal USR1@60s", true),
        ("--stop-signal USR1@60s --preemptible", true),
        ("--stop-signal USR1@60s --no-preemptible", false),
        ("--no-preemptible --stop-signal USR1@60s", false),
        ("--no-preemptible --preemptible", true),
        ("--preemptible --no-preemptible --stop-signal USR1", false),
    ] {
        assert_eq!(specified(flags, &here(&[])).unwrap().preemptible, expected, "{flags}");
    }
}

#[test]
fn a_total_of_gpus_overrides_gpus_per_node() {
    let gpus = |flags| specified(flags, &here(&[])).unwrap().demand.gpus;
    assert_eq!(gpus("--gpus-per-node 2 --nodes 3"), GpuRequest::Whole(2));
    assert_eq!(gpus("--gpus-per-node 2 --gpus 0.5"), GpuRequest::Part(Share(500)));
}

#[test]
fn only_path_and_locale_variables_are_inherited() {
    let context = here(&[("PATH", "/bin"), ("LANG", "de"), ("SECRET", "x"), ("MINE", "1")]);
    let spec = specified("--env MINE --env A=b=c --env LANG=en", &context).unwrap();
    let expected = [("A", "b=c"), ("LANG", "en"), ("MINE", "1"), ("PATH", "/bin")];
    assert_eq!(spec.environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[test]
fn contradictions_are_errors() {
    assert!(refusal("--env NOT_SET").contains("--env NOT_SET=VALUE"));
    assert!(refusal("--gpus 3 --nodes 2").contains("multiple of 2"));
    assert!(
        refusal("--model /nonexistent.toml").contains("cannot read the model description /nonexistent.toml")
    );
}

#[test]
fn a_model_is_read_and_an_error_names_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.toml");
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        specified(&format!("--model {}", path.display()), &here(&[]))
    };
    let model = read("name = 'r50'\nbatch-size = 64\n[[stages]]\nreplicas = 4\ncompute-seconds = 0.1\n")
        .unwrap()
        .model;
    assert_eq!(model.unwrap().batch_size, Some(64));

    let message = read("name = 'r50'\nbatch_size = 64\n").unwrap_err().message;
    assert!(
        message.contains("model.toml:2: unknown field `batch_size`") && message.contains("`batch-size`"),
        "{message}"
    );
    assert!(read("name = ").unwrap_err().message.contains("model.toml:1: "));
    assert!(read("\n\nfamily = 'tree'").unwrap_err().message.contains("model.toml:3: unknown variant"));
}

#[test]
fn a_script_is_copied_as_text() {
    let script = Some("#!/bin/sh\necho\n".to_owned());
    let spec = specify(&JobArguments::default(), vec!["./train.sh".into()], script, &here(&[])).unwrap();
    let Entrypoint::Command(command) = spec.entrypoint else { panic!("a command was described") };
    assert_eq!(command.script.as_deref(), Some("#!/bin/sh\necho\n"));
    assert_eq!(spec.name, "train.sh");
}
