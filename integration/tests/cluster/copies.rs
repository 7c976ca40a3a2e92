//! Files of jobs on the machine of their user.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, User, geteuid, mkfifo};

use crate::kit::*;

/// A job with a working directory of its own below the cluster's, which has run this to its end there.
fn ended(cluster: &Cluster, script: &str) -> String {
    let job = cluster.submit(&["--gpus", "0", "--workdir", &work(cluster)], script);
    cluster.end(&job);
    job
}

fn work(cluster: &Cluster) -> String {
    fs::create_dir_all(cluster.path("work")).unwrap();
    cluster.path("work")
}

/// What is in the directory where copies go.
fn arrived(cluster: &Cluster) -> Vec<String> {
    let entries = fs::read_dir(cluster.path("here")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A cluster with a directory where copies go.
fn start(devices: &[&str]) -> Cluster {
    let cluster = Cluster::start(devices);
    fs::create_dir(cluster.path("here")).unwrap();
    cluster
}

/// A copy of a file of a gigabyte, which has begun to arrive.
fn begun_copy(cluster: &Cluster, job: &str) -> Child {
    let large = File::create(format!("{}/large", work(cluster))).unwrap();
    large.set_len(1 << 30).unwrap();
    let source = format!("{job}:large");
    let mut command = cluster.command(&["cp", &source, &cluster.path("here")]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let is_large =
        |name: String| fs::metadata(cluster.path(&format!("here/{name}"))).is_ok_and(|it| it.len() > 4 << 20);
    until("a part of it has arrived", || arrived(cluster).into_iter().any(is_large));
    child
}

/// Its exit code, and what it said.
fn end_of(child: Child) -> (Option<i32>, String) {
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn files_of_a_job_that_runs_and_of_one_that_has_ended_are_copied() {
    let cluster = start(&["host:2"]);
    let here = cluster.path("here");
    let script = "mkdir -p out; head -c 3000000 /dev/urandom > out/model.pt; printf log > log.csv";
    let job = ended(&cluster, script);
    let ran = cluster.run(&["cp", &format!("{job}:out/model.pt"), "last:log.csv", &here]);
    assert_eq!((ran.code, &*ran.stdout), (0, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("copied 2 files, 2.9 MiB"), "{}", ran.stderr);
    assert!(
        fs::read(cluster.path("here/model.pt")).unwrap()
            == fs::read(cluster.path("work/out/model.pt")).unwrap()
    );
    assert_eq!(cluster.ok(&["cp", &format!("{job}:{}/log.csv", work(&cluster)), "-"]), "log");
    let running =
        cluster.submit(&["--gpus", "0", "--workdir", &work(&cluster)], "echo step 7 > live; sleep 100000");
    cluster.until_file("work/live");
    until("it is written", || cluster.read("work/live").contains("step 7"));
    let new = cluster.path("here/renamed");
    let shown = cluster.json(&["cp", &format!("{running}:live"), &new]);
    assert_eq!((&shown["files"], &shown["bytes"], &shown["left_out"]), (&1.into(), &7.into(), &0.into()));
    assert_eq!(cluster.read("here/renamed"), "step 7\n");
    assert_eq!(arrived(&cluster), ["log.csv", "model.pt", "renamed"]);
}

#[test]
fn a_directory_is_copied_and_what_is_no_file_is_left_out() {
    let cluster = start(&["host:1"]);
    let job = ended(
        &cluster,
        "mkdir -p out/a; echo 1 > out/a/one; ln -s a/one out/link; ln -s /etc out/etc; mkfifo out/pipe",
    );
    let refused = cluster.run(&["cp", &format!("{job}:out"), &cluster.path("here")]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("--recursive (-r)"), "{}", refused.stderr);
    let ran = cluster.run(&["cp", "-r", &format!("{job}:out"), &cluster.path("here")]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for said in [
        "copied 1 file, 1 link, 2 B; left out 2",
        "'etc': it is a link that leads out",
        "'pipe': it is a named pipe",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(cluster.read("here/out/link"), "1\n");
    // A second time, into the same place, by the content of the working directory.
    fs::remove_file(cluster.path("work/out/pipe")).unwrap();
    fs::remove_file(cluster.path("work/out/etc")).unwrap();
    cluster.ok(&["cp", "-r", &format!("{job}:."), &cluster.path("here")]);
    assert_eq!(arrived(&cluster), ["out"]);
}

#[test]
fn what_is_not_copied_is_said_with_its_exit_code_and_leaves_nothing() {
    let cluster = start(&["host:1"]);
    let job = ended(&cluster, "echo 12345 > small; mkfifo pipe");
    let here = cluster.path("here");
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let ran = cluster.run(&[&["cp"], arguments].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
    };
    let of = |path: &str| format!("{job}:{path}");
    refused(&[&of("missing"), &here], 66, &cluster.path("work/missing"));
    refused(&[&of("pipe"), &here], 65, "it is a named pipe");
    refused(&[&of("/dev/zero"), &here], 65, "it is a device");
    refused(&[&of("/proc/self/environ"), &here], 65, "/proc");
    refused(&[&of("small"), "--limit", "5", &here], 65, "raise it with --limit");
    // Both are on one disk, and the job may still write into it.
    refused(&[&of("small"), &work(&cluster)], 74, "it is the file of the job itself");
    refused(&[&of("small"), &cluster.path("no/where")], 66, "does not exist");
    refused(&[&of("small"), "/dev/null"], 74, "is not replaced");
    refused(&["999:x", &here], 66, "999");
    refused(&[&of("small"), "--rank", "4", &here], 66, "rank");
    refused(&[&cluster.path("work/small"), &of("up")], 2, "cohabit exec JOB -- tee PATH < FILE");
    refused(&[&of("small"), &of("up")], 2, "Files are copied from jobs, not to them");
    let held = cluster.submit(&["--hold"], "true");
    refused(&[&format!("{held}:x"), &here], 65, "has not run");
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    refused(&["--token-file", &ada, &of("small"), &here], 77, "only its owner and admins");
    let viewer = cluster.token("viewer", &["--role", "viewer", "--name", "screen"]);
    refused(&["--token-file", &viewer, &of("small"), &here], 77, "copy files of a job");
    // The worker's secrets are no files of a job, although this job could be root's.
    for secret in ["worker0/credential.json", "worker0/node.json"] {
        refused(&[&of(&cluster.path(secret)), &here], 77, "state directory of the worker");
    }
    assert_eq!(arrived(&cluster), [""; 0]);
}

#[test]
fn a_copy_goes_on_while_the_head_is_restarted() {
    let mut cluster = start(&["host:1"]);
    let job = ended(&cluster, "true");
    let copy = begun_copy(&cluster, &job);
    cluster.kill_head();
    cluster.restart_head();
    let (code, said) = end_of(copy);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::metadata(cluster.path("here/large")).unwrap().len(), 1 << 30);
    assert_eq!(arrived(&cluster), ["large"]);
}

#[test]
fn no_part_of_a_file_stays_when_the_worker_dies_or_the_person_gives_up() {
    let mut cluster = start(&["host:1"]);
    let job = ended(&cluster, "true");
    let copy = begun_copy(&cluster, &job);
    kill(Pid::from_raw(copy.id() as i32), Signal::SIGINT).unwrap();
    let (code, said) = end_of(copy);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(arrived(&cluster), [""; 0]);
    let copy = begun_copy(&cluster, &job);
    cluster.kill_worker(0);
    cluster.restart_worker(0);
    let (code, said) = end_of(copy);
    assert!(code == Some(75) && said.contains("copy it again"), "{code:?}: {said}");
    assert_eq!(arrived(&cluster), [""; 0]);
}

#[test]
fn a_node_that_is_away_is_named() {
    let mut cluster = start(&["host:1"]);
    let job = ended(&cluster, "echo 1 > one");
    cluster.stop_worker(0);
    until("the head knows", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UNREACHABLE");
    let ran = cluster.run(&["cp", &format!("{job}:one"), &cluster.path("here")]);
    assert_eq!(ran.code, 75, "{}", ran.stderr);
    assert!(ran.stderr.contains("which keeps the files of"), "{}", ran.stderr);
}

#[test]
fn files_are_read_with_the_rights_of_the_account_and_no_others() {
    if !geteuid().is_root() {
        say("skipped: only root may run jobs as the accounts of their users");
        return;
    }
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    fs::set_permissions(cluster.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    cluster.add_worker_with("host:2", &["--min-uid", "1"]);
    for folder in ["here", "work"] {
        fs::create_dir(cluster.path(folder)).unwrap();
        fs::set_permissions(cluster.path(folder), fs::Permissions::from_mode(0o777)).unwrap();
    }
    fs::write(cluster.path("work/secret"), "of root").unwrap();
    fs::set_permissions(cluster.path("work/secret"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("secret", cluster.path("work/way")).unwrap();
    mkfifo(cluster.path("work/pipe").as_str(), Mode::S_IRWXU).unwrap();
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "bin"]);
    let submit = ["--token-file", &ada, "--gpus", "0", "--workdir", &cluster.path("work")];
    let job = cluster.submit(
        &submit,
        "umask 077; echo mine > own; echo $COHABIT_CHECKPOINT_DIR > place; \
         echo weights > $COHABIT_CHECKPOINT_DIR/last",
    );
    cluster.end(&job);
    let uid = User::from_name("bin").unwrap().unwrap().uid.as_raw();
    assert_eq!(fs::metadata(cluster.path("work/own")).unwrap().uid(), uid);
    let copy = |token: &[&str], path: &str| {
        let target = cluster.path("here/x");
        cluster.run(&[&["cp"], token, &[&format!("{job}:{path}"), &target]].concat())
    };
    let checkpoint = format!("{}/last", cluster.read("work/place").trim());
    // An admin reads them with the rights of the user, too.
    for token in [&["--token-file", &*ada][..], &[]] {
        for (path, content) in [("own", "mine\n"), (&checkpoint, "weights\n")] {
            let ran = copy(token, path);
            assert_eq!(ran.code, 0, "{path}: {}", ran.stderr);
            assert_eq!(cluster.read("here/x"), content);
        }
        for path in ["secret", "way", "/etc/shadow", &cluster.path("worker0/credential.json")] {
            let ran = copy(token, path);
            assert_eq!(ran.code, 77, "{path}: {}", ran.stderr);
        }
    }
    // Files that were root's job's are for the owner of that job, not for other admins.
    let of_root = cluster.submit(&["--gpus", "0", "--workdir", &cluster.path("work")], "true");
    cluster.end(&of_root);
    let source = format!("{of_root}:secret");
    cluster.ok(&["cp", &source, &cluster.path("here/of-root")]);
    let other = cluster.token("ops", &["--role", "admin", "--name", "ops", "--account", "bin"]);
    let ran = cluster.run(&["cp", "--token-file", &other, &source, &cluster.path("here/y")]);
    assert!(ran.code == 77 && ran.stderr.contains("is root on the worker"), "{}: {}", ran.code, ran.stderr);
}
