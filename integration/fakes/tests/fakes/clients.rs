//! The fake CUDA client: what it does on its GPU, and what stops it.

use std::fs;
use std::time::{Duration, Instant};

use cohabit_fakes::{ComputeMode, FakeGpu, GpuRoute};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::{Bench, Ran, end, ended, until};

fn stop(client: &std::process::Child) {
    kill(Pid::from_raw(client.id() as i32), Signal::SIGTERM).unwrap();
}

#[test]
fn without_a_daemon_a_client_silently_runs_without_mps() {
    let bench = Bench::new();
    let ran = Ran::from(bench.client(&["--steps", "1"]).output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("fake CUDA program on Fake H200 (not a GPU)"), "{ran:?}");
    assert!(ran.stdout.contains("without MPS"), "{ran:?}");
}

#[test]
fn a_daemon_in_the_default_directory_captures_clients_that_name_none() {
    let bench = Bench::new();
    let daemon = |command: &mut std::process::Command| {
        command.env("CUDA_MPS_PIPE_DIRECTORY", bench.world.default_pipe());
        Ran::from(command.output().unwrap())
    };
    assert_eq!(daemon(bench.command(&bench.control_program()).arg("-d")).code, 0);
    let mut client = bench.client(&["--steps", "1"]);
    let ran = Ran::from(client.env_remove("CUDA_MPS_PIPE_DIRECTORY").output().unwrap());
    assert!(ran.stdout.contains("through MPS server"), "{ran:?}");
    let elsewhere = Ran::from(bench.client(&["--steps", "1"]).output().unwrap());
    assert!(elsewhere.stdout.contains("without MPS"), "{elsewhere:?}");
}

#[test]
fn memory_runs_out_at_the_limit_under_mps_and_at_the_gpus_end_without() {
    let bench = Bench::new();
    let with_limit = |arguments: &[&str]| {
        let mut client = bench.client(arguments);
        Ran::from(client.env("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1024M").output().unwrap())
    };
    assert_eq!(with_limit(&["--steps", "1", "--alloc", "2G"]).code, 0, "nobody enforces it");
    let full = with_limit(&["--steps", "1", "--alloc", "200G"]);
    assert!(full.code == 1 && full.stderr.contains("Tried to allocate 200.00 GiB"), "{full:?}");
    bench.start_server();
    let torch = with_limit(&["--steps", "5", "--alloc-after", "2=2G"]);
    assert!(
        torch.code == 1 && torch.stderr.starts_with("torch.OutOfMemoryError: CUDA out of memory."),
        "{torch:?}"
    );
    let jax = with_limit(&["--alloc", "2G", "--oom-text", "jax"]);
    assert!(jax.code == 1 && jax.stderr.contains("RESOURCE_EXHAUSTED: Out of memory"), "{jax:?}");
}

#[test]
fn a_neighbors_memory_is_not_free() {
    let bench = Bench::new();
    let neighbor = bench.endless(&mut bench.client(&["--alloc", "100G"]));
    until("it has its memory", || bench.world.memory_used(&bench.world.gpus()[0]) > 100 << 30);
    let late = Ran::from(bench.client(&["--alloc", "100G"]).output().unwrap());
    assert!(late.code == 1 && late.stderr.contains("of which 40.50 GiB is free"), "{late:?}");
    end(neighbor);
    let alone = Ran::from(bench.client(&["--steps", "1", "--alloc", "100G"]).output().unwrap());
    assert_eq!(alone.code, 0, "the dead hold nothing");
}

#[test]
fn an_attempt_begins_where_the_last_one_was_stopped() {
    let bench = Bench::new();
    let progress = bench.path("progress");
    let steps = || -> Vec<u64> {
        let text = fs::read_to_string(&progress).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.map(|line| line["step"].as_u64().unwrap()).collect()
    };
    let client = |arguments: &[&str]| {
        let mut client = bench.client(arguments);
        client.env("COHABIT_PROGRESS", &progress).env("COHABIT_CHECKPOINT_DIR", bench.path("state"));
        client
    };
    let first = bench.endless(&mut client(&["--checkpoint"]));
    until("it makes steps", || steps().len() > 2);
    stop(&first);
    let ran = ended(first);
    let kept = *steps().last().unwrap();
    assert!(ran.code == 0 && ran.stdout.contains(&format!("stopped at step {kept}")), "{ran:?}");
    let total = (kept + 2).to_string();
    assert_eq!(client(&["--checkpoint", "--steps", &total]).output().unwrap().status.code(), Some(0));
    assert_eq!(steps()[kept as usize..], [kept + 1, kept + 2]);
}

#[test]
fn a_client_that_ignores_sigterm_has_to_be_killed() {
    let bench = Bench::new();
    let progress = bench.path("progress");
    let mut deaf = bench.client(&["--ignore-term"]);
    let deaf = bench.endless(deaf.env("COHABIT_PROGRESS", &progress));
    stop(&deaf);
    let length = || fs::read_to_string(&progress).unwrap_or_default().lines().count();
    let so_far = length();
    until("it goes on", || length() > so_far + 2);
    end(deaf);
    let polite = bench.endless(&mut bench.client(&[]));
    stop(&polite);
    assert_eq!(ended(polite).code, -1, "the signal ended it");
}

#[test]
fn under_mps_there_is_only_the_daemons_gpu_and_it_is_number_0() {
    let bench = Bench::of(vec![FakeGpu::numbered(0), FakeGpu::numbered(1)]);
    bench.start_server();
    let seen = |devices: &str| {
        let mut client = bench.client(&["--steps", "1"]);
        Ran::from(client.env("CUDA_VISIBLE_DEVICES", devices).output().unwrap())
    };
    let first = seen("0");
    assert!(first.code == 0 && first.stdout.contains(bench.gpu().as_str()), "{first:?}");
    for other in ["1", &FakeGpu::numbered(1).uuid] {
        let refused = seen(other);
        assert!(refused.code == 1 && refused.stderr.contains("no CUDA-capable device"), "{refused:?}");
    }
}

#[test]
fn a_limit_for_another_gpu_or_of_another_form_is_none() {
    let bench = Bench::new();
    bench.start_server();
    let limited = |limit: &str| {
        let mut client = bench.client(&["--steps", "1"]);
        Ran::from(client.env("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit).output().unwrap()).stdout
    };
    for none in ["1=1G", "8192M", "0=8192MB", "0=8", &format!("{}=1G", FakeGpu::numbered(1).uuid)] {
        assert!(limited(none).contains("memory: no limit"), "{none}");
    }
    for good in ["0=8192M", "0=8G", &format!("1=1G,{}=8G", bench.gpu())] {
        assert!(limited(good).contains("at most 8192 MiB"), "{good}");
    }
}

#[test]
fn exit_codes_are_as_scripted() {
    let bench = Bench::new();
    let ran = bench.client(&["--steps", "1", "--exit", "3"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(3));
}

#[test]
fn all_processes_of_a_client_are_clients_and_those_that_bypass_mps_are_not() {
    let bench = Bench::new();
    let server = bench.start_server();
    let many = bench.endless(&mut bench.client(&["--processes", "3", "--alloc", "1G"]));
    until("three are clients", || bench.world.clients(&bench.gpu().0).len() == 3);
    let aside = bench.endless(&mut bench.client(&["--bypass-mps"]));
    let found = bench.world.processes_on(&bench.gpu().0).into_iter().find(|it| it.pid == aside.id() as i32);
    assert_eq!(found.unwrap().via, GpuRoute::Itself);
    let listed = bench.tell(&format!("get_client_list {server}\n"));
    assert_eq!(listed.lines().count(), 3, "{listed}");
    stop(&many);
    ended(many);
    until("all have ended", || bench.world.clients(&bench.gpu().0).is_empty());
    end(aside);
}

#[test]
fn a_step_takes_longer_beside_others() {
    let bench = Bench::new();
    let neighbor = bench.endless(&mut bench.client(&[]));
    let begin = Instant::now();
    let slow = bench.client(&["--steps", "5", "--rate", "50", "--sliced-factor", "10"]).output().unwrap();
    assert_eq!(slow.status.code(), Some(0));
    assert!(begin.elapsed() >= Duration::from_secs(1), "five steps of a fiftieth second, ten times as long");
    end(neighbor);
}

#[test]
fn a_gpu_for_one_process_refuses_a_second_one() {
    let bench =
        Bench::of(vec![FakeGpu { compute_mode: ComputeMode::ExclusiveProcess, ..FakeGpu::numbered(0) }]);
    let first = bench.endless(&mut bench.client(&[]));
    let second = Ran::from(bench.client(&["--steps", "1"]).output().unwrap());
    assert!(second.code == 1 && second.stderr.contains("(46)"), "{second:?}");
    end(first);
}

#[test]
fn a_fault_without_mps_is_of_the_client_alone() {
    let bench = Bench::new();
    let neighbor = bench.endless(&mut bench.client(&[]));
    let culprit = Ran::from(bench.client(&["--fault-at", "1"]).output().unwrap());
    assert!(culprit.code == 1 && culprit.stderr.contains("illegal memory access"), "{culprit:?}");
    assert_eq!(end(neighbor).stderr, "");
    let xid = bench.world.take_xid(&[bench.gpu().to_string()]).unwrap().unwrap();
    assert_eq!(xid.code, 31);
}
