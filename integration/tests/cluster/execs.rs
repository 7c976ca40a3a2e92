//! Further processes beside a running job.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

use crate::kit::*;

/// A job that runs until it is cancelled.
fn running(cluster: &Cluster, flags: &[&str]) -> String {
    let job = cluster.submit(flags, "echo up; sleep 100000");
    cluster.until_state(&job, "RUNNING");
    until("it has begun", || cluster.ok(&["logs", &job]) == "up\n");
    job
}

#[test]
fn a_process_has_the_environment_of_the_rank_and_its_own_streams_and_exit_code() {
    let cluster = Cluster::start(&["host:2"]);
    std::fs::create_dir(cluster.folder().join("here")).unwrap();
    let job = running(&cluster, &["--workdir", "here", "--env", "OWN=1", "--gpus", "1"]);
    let script = "echo $COHABIT_JOB_ID $OWN ${PWD##*/} $COHABIT_DEVICES; cat; echo problem >&2; exit 3";
    let mut command = cluster.command(&["exec", "last", "--", "sh", "-c", script]);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(b"some input\n").unwrap();
    let ended = process.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout).starts_with(&format!("{job} 1 here")), "{}", text(&ended.stdout));
    assert!(text(&ended.stdout).ends_with("some input\n"));
    assert_eq!(text(&ended.stderr), "problem\n");
    // It is not the job's own output, and the job goes on.
    assert_eq!(cluster.ok(&["logs", &job]), "up\n");
    assert_eq!(cluster.state(&job), "RUNNING");
    let missing = cluster.run(&["exec", &job, "--", "no-such-program"]);
    assert_eq!(missing.code, 127, "{}", missing.stderr);
}

#[test]
fn no_byte_of_a_large_output_is_dropped() {
    let cluster = Cluster::start(&["host:1"]);
    let job = running(&cluster, &[]);
    let mut command = cluster.command(&["exec", &job, "--", "seq", "6000000"]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let (mut read, mut piece) = (0, vec![0; 65_536]);
    let mut output = process.stdout.take().unwrap();
    while let length @ 1.. = output.read(&mut piece).unwrap() {
        read += length;
    }
    let expected: usize = (1..=6_000_000_u32).map(|number| number.to_string().len() + 1).sum();
    assert_eq!((read, process.wait().unwrap().code()), (expected, Some(0)));
}

#[test]
fn a_process_ends_with_its_client_and_with_its_job() {
    let cluster = Cluster::start(&["host:1"]);
    let job = running(&cluster, &[]);
    let script = "trap '' TERM HUP; echo here > $0; while :; do sleep 1; done";
    for end in [Signal::SIGINT, Signal::SIGTERM] {
        let mark = cluster.path(&format!("mark-{end}"));
        let mut client = cluster.command(&["exec", &job, "--", "sh", "-c", script, &mark]).spawn().unwrap();
        cluster.until_file(&format!("mark-{end}"));
        kill(Pid::from_raw(client.id() as i32), end).unwrap();
        assert_eq!(client.wait().unwrap().code(), Some(130));
        until("it has ended", || processes_with(&mark).is_empty());
    }
    let mark = cluster.path("last");
    let mut client = cluster.command(&["exec", &job, "--", "sh", "-c", script, &mark]).spawn().unwrap();
    cluster.until_file("last");
    cluster.ok(&["cancel", "--force", &job]);
    assert_ne!(client.wait().unwrap().code(), Some(0));
    until("it has ended", || processes_with(&mark).is_empty());
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");
}

#[test]
fn head_and_worker_may_be_restarted_while_a_process_runs() {
    let mut cluster = Cluster::start(&["host:1"]);
    let job = running(&cluster, &[]);
    let mut command = cluster.command(&["exec", &job, "--", "cat"]);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    let mut output = process.stdout.take().unwrap();
    let mut line = [0; 4];
    output.read_exact(&mut line).unwrap();
    cluster.kill_head();
    input.write_all(b"two\n").unwrap();
    cluster.restart_head();
    output.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"two\n");
    cluster.kill_worker(0);
    input.write_all(b"six\n").unwrap();
    cluster.restart_worker(0);
    output.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"six\n");
    drop(input);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn a_process_may_have_a_terminal() {
    let cluster = Cluster::start(&["host:1"]);
    let job = running(&cluster, &[]);
    let mut screen = cluster.screen(&["exec", &job, "--pty", "--", "bash", "--norc", "--noprofile"]);
    screen.ask("stty size; echo job=$COHABIT_JOB_ID$((1))", &format!("job={job}1"));
    screen.until_shown("30 100");
    screen.type_keys("exit 9\r");
    assert_eq!(screen.code(), Some(9), "{}", screen.text());
    assert!(screen.is_cooked());
}

#[test]
fn only_a_few_processes_of_ones_own_running_jobs_are_started() {
    let cluster = Cluster::start(&["host:1"]);
    let job = running(&cluster, &[]);
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let ran = cluster.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
    };
    let held = cluster.submit(&["--hold"], "true");
    refused(&["exec", &held, "--", "true"], 65, "is HELD: only a running job takes further processes");
    refused(&["exec", &job, "--rank", "4", "--", "true"], 66, "rank");
    refused(&["exec", &job, "--pty", "--", "true"], 2, "cohabit exec --pty needs a terminal");
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    refused(&["exec", "--token-file", &ada, &job, "--", "true"], 77, "only its owner and admins");
    let mut others: Vec<_> = (0..8)
        .map(|number| {
            let script = "echo > $0; sleep 100000";
            let mark = cluster.path(&format!("busy{number}"));
            let client = cluster.command(&["exec", &job, "--", "sh", "-c", script, &mark]).spawn().unwrap();
            cluster.until_file(&format!("busy{number}"));
            client
        })
        .collect();
    refused(&["exec", &job, "--", "true"], 65, "8 further processes are there already");
    for other in &mut others {
        kill(Pid::from_raw(other.id() as i32), Signal::SIGTERM).unwrap();
        other.wait().unwrap();
    }
    until("there is room again", || cluster.run(&["exec", &job, "--", "true"]).code == 0);
}

#[test]
fn a_process_has_the_account_of_the_job() {
    if !geteuid().is_root() {
        say("skipped: only root may run jobs as the accounts of their users");
        return;
    }
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    std::fs::set_permissions(cluster.folder(), std::fs::Permissions::from_mode(0o777)).unwrap();
    cluster.add_worker_with("host:1", &["--min-uid", "1"]);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "bin"]);
    let job = cluster.submit(&["--token-file", &ada], "sleep 100000");
    cluster.until_state(&job, "RUNNING");
    let uid = User::from_name("bin").unwrap().unwrap().uid;
    let script =
        "id -u; id -ru; grep NoNewPrivs /proc/self/status; cat /proc/self/cgroup > cgroup; sudo -n true; :";
    let printed = cluster.ok(&["exec", &job, "--", "sh", "-c", script]);
    assert!(printed.starts_with(&format!("{uid}\n{uid}\nNoNewPrivs:\t1\n")), "{printed}");
    let its_own = cluster.ok(&["exec", "--token-file", &ada, &job, "--", "id", "-u"]);
    assert_eq!(its_own, format!("{uid}\n"));
}
