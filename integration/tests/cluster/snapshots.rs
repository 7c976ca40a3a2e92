//! Jobs that run in a snapshot of their code, as users meet them.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;

use crate::kit::*;

/// A folder under git with a program that prints this.
fn project(cluster: &Cluster, text: &str) -> String {
    let folder = cluster.path("net");
    fs::create_dir_all(Path::new(&folder).join("src")).unwrap();
    fs::write(Path::new(&folder).join("src/train.sh"), format!("echo {text}\n")).unwrap();
    fs::write(Path::new(&folder).join(".gitignore"), "data\n").unwrap();
    fs::write(Path::new(&folder).join("data"), "large").unwrap();
    let git = Command::new("git").args(["init", "-q", &folder]).status();
    assert!(git.expect("git is installed").success());
    folder
}

fn edit(folder: &str, text: &str) {
    fs::write(Path::new(folder).join("src/train.sh"), format!("echo {text}\n")).unwrap();
}

#[test]
fn what_is_edited_later_does_not_change_what_runs() {
    let mut cluster = Cluster::start(&["host:1", "host:1"]);
    let folder = project(&cluster, "one");
    let flags = ["--workdir", &folder, "--snapshot"];
    let first = cluster.submit(&[&flags[..], &["--hold", "--nodes", "2"]].concat(), "sh src/train.sh; ls -A");
    edit(&folder, "two");
    let second = cluster.submit(&[&flags[..], &["--hold"]].concat(), "sh src/train.sh");
    edit(&folder, "three");
    let live = cluster.submit(&["--workdir", &folder], "sh src/train.sh");
    cluster.kill_head();
    cluster.restart_head();
    cluster.ok(&["release", &first, &second]);
    for job in [&first, &second, &live] {
        assert_eq!(cluster.end(job)["state"], "COMPLETED");
    }
    for rank in ["0", "1"] {
        let printed = cluster.ok(&["logs", "--rank", rank, &first]);
        assert_eq!(printed, "one\n.gitignore\nsrc\n", "not the ignored file, nor git's own");
    }
    assert_eq!(cluster.ok(&["logs", &second]), "two\n");
    assert_eq!(cluster.ok(&["logs", &live]), "three\n");
    let code = &cluster.show(&first)["code"];
    assert_eq!((&code["folder"], &code["files"]), (&folder.as_str().into(), &2.into()));
    assert_eq!(cluster.show(&live)["code"], serde_json::Value::Null);
    cluster.kill_worker(0);
    cluster.restart_worker(0);
    let again = cluster.submit(&[&flags[..], &["--nodes", "2"]].concat(), "sh src/train.sh");
    assert_eq!(cluster.end(&again)["state"], "COMPLETED");
}

#[test]
fn the_code_of_a_job_is_compared_with_today_s_and_taken_out_again() {
    let cluster = Cluster::start(&["host:1"]);
    let folder = project(&cluster, "one");
    let job = cluster.submit(&["--workdir", &folder, "--snapshot"], "sh src/train.sh");
    cluster.end(&job);
    let unchanged = cluster.run(&["code", &job]);
    assert_eq!((unchanged.code, unchanged.stdout.as_str()), (0, ""));
    assert!(unchanged.stderr.contains("no differences"), "{}", unchanged.stderr);
    edit(&folder, "two");
    fs::write(Path::new(&folder).join("new.py"), "pass\n").unwrap();
    let patch = cluster.ok(&["code", &job]);
    assert!(patch.contains("-echo one\n+echo two\n") && patch.contains("+++ b/new.py"), "{patch}");
    let taken = cluster.path("taken");
    cluster.ok(&["code", &job, "--extract", &taken]);
    assert_eq!(fs::read_to_string(Path::new(&taken).join("src/train.sh")).unwrap(), "echo one\n");
    // A real patch: git applies it to what was taken out.
    let patch_file = cluster.path("patch");
    fs::write(&patch_file, patch).unwrap();
    let applied = Command::new("git").args(["apply", &patch_file]).current_dir(&taken).status().unwrap();
    assert!(applied.success());
    assert_eq!(fs::read_to_string(Path::new(&taken).join("src/train.sh")).unwrap(), "echo two\n");
    let same = cluster.run(&["code", &job, "--against", &taken, "--stat"]);
    assert_eq!(same.code, 0, "{}", same.stderr);
    let plain = cluster.submit(&[], "true");
    let refused = cluster.run(&["code", &plain]);
    assert!(refused.code != 0 && refused.stderr.contains("without --snapshot"), "{}", refused.stderr);
    let eve = cluster.token("eve", &["--role", "user", "--name", "eve"]);
    let refused = cluster.run(&["code", &job, "--token-file", &eve]);
    assert!(refused.code == 77 && refused.stderr.contains("only its owner"), "{}", refused.stderr);
}

#[test]
fn bad_snapshots_are_refused_before_anything_is_sent() {
    let cluster = Cluster::with_head_in(
        tempfile::tempdir().unwrap(),
        &[("COHABIT_MAX_SNAPSHOT_SIZE", "1M")],
        &["--policy", "fifo"],
        &[],
    );
    let folder = cluster.path("plain");
    fs::create_dir_all(Path::new(&folder).join(".venv/bin")).unwrap();
    fs::write(Path::new(&folder).join(".venv/bin/python"), "").unwrap();
    let submit = |flags: &[&str], command: &[&str]| {
        let arguments = [&["submit", "--workdir", &folder], flags, &["--"], command].concat();
        cluster.run(&arguments)
    };
    let refused = submit(&["--snapshot"], &["true"]);
    assert!(refused.code != 0 && refused.stderr.contains("--snapshot=all"), "{}", refused.stderr);
    fs::write(Path::new(&folder).join("weights"), vec![0; 2 << 20]).unwrap();
    let refused = submit(&["--snapshot=all"], &["true"]);
    assert!(refused.code != 0 && refused.stderr.contains("max-snapshot-size"), "{}", refused.stderr);
    fs::write(Path::new(&folder).join(".cohabitignore"), "weights\n.venv\n").unwrap();
    let refused = submit(&["--snapshot=all"], &[".venv/bin/python"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("is not part of the snapshot"),
        "{}",
        refused.stderr
    );
    let file = fs::File::create(Path::new(&folder).join("huge")).unwrap();
    file.set_len(1 << 30).unwrap();
    let refused = submit(&["--snapshot=all"], &["true"]);
    let named = refused.stderr.contains("huge") && refused.stderr.contains(".cohabitignore");
    assert!(refused.code != 0 && named, "{}", refused.stderr);
    assert_eq!(cluster.json(&["list", "--all"])["jobs"].as_array().unwrap().len(), 0);
}

/// The copy belongs to the user of the job: others can neither read nor change it.
#[test]
fn a_copy_belongs_to_the_user_of_its_job() {
    if !geteuid().is_root() {
        return say("skipped: only root may run jobs as the accounts of their users");
    }
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(cluster.folder(), open).unwrap();
    cluster.add_worker("host:2");
    let folder = project(&cluster, "one");
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let eve = cluster.token("eve", &["--role", "user", "--name", "eve"]);
    let (go, place) = (cluster.path("go"), cluster.path("place"));
    fs::write(&place, "").unwrap();
    fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let script = format!(
        "pwd > {place}; echo more >> src/train.sh && mkdir runs && touch runs/1 && stat -c %U:%a . src; \
         until [ -e {go} ]; do sleep 0.05; done"
    );
    let flags = ["--workdir", &folder, "--snapshot"];
    let job = cluster.submit(&[&["--token-file", &ada], &flags[..]].concat(), &script);
    until("the job has begun", || !cluster.read("place").is_empty());
    let copy = cluster.read("place").trim().to_owned();
    let spy = cluster.submit(&["--token-file", &eve], &format!("ls {copy} || cat {copy}/src/train.sh"));
    assert_eq!(cluster.end(&spy)["state"], "FAILED");
    fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    assert!(cluster.ok(&["logs", &job]).contains(":700\n"), "{}", cluster.ok(&["logs", &job]));
    until("what was not changed is gone", || !Path::new(&copy).join(".gitignore").exists());
    assert!(Path::new(&copy).join("runs/1").exists());
    assert_eq!(fs::read_to_string(Path::new(&copy).join("src/train.sh")).unwrap(), "echo one\nmore\n");
}
