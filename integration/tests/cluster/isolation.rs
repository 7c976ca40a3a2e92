//! Isolation of jobs from jobs of other users, and from the daemons.
//!
//! Only a root worker can run jobs as other accounts. Where the tests do not run as root, those that need it
//! say so and pass.

use std::os::unix::fs::PermissionsExt;

use nix::unistd::{User, geteuid};
use serde_json::Value;

use crate::kit::*;

/// Signals 32 and 33, whose handling no program can set: a process that ignores them inherited that.
const OF_THE_C_LIBRARY: u64 = 3 << 31;

/// Whether this test must be skipped, and says so.
fn is_skipped() -> bool {
    let skipped = !geteuid().is_root();
    if skipped {
        say("skipped: only root may run jobs as the accounts of their users");
    }
    skipped
}

/// Lets accounts of the system stand for those of people: these exist on every machine.
const ANY_ACCOUNT: [&str; 2] = ["--min-uid", "1"];

/// A cluster whose directory every user may enter, like a state directory in its default place.
fn open_cluster(flags: &[&str]) -> Cluster {
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(cluster.folder(), open).unwrap();
    cluster.add_worker_with("host:4", flags);
    cluster
}

fn uid_of(account: &str) -> u32 {
    User::from_name(account).unwrap().unwrap().uid.as_raw()
}

/// Runs a script to its end with this token. Returns its output, read as an admin.
fn printed_by(cluster: &Cluster, token: &str, script: &str) -> String {
    let job = cluster.submit(&["--token-file", token], script);
    let ended = cluster.end(&job);
    assert_eq!(ended["state"], "COMPLETED", "{ended}");
    cluster.ok(&["logs", &job])
}

fn history(cluster: &Cluster, job: &str) -> String {
    cluster.json(&["explain", job]).to_string()
}

#[test]
fn a_job_runs_as_the_account_of_its_user_with_nothing_of_the_daemon() {
    if is_skipped() {
        return;
    }
    let cluster = open_cluster(&ANY_ACCOUNT);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "bin"]);
    let script = "id -u; id -g; id -G; echo $USER $LOGNAME $HOME; pwd; umask; \
                  ls /proc/self/fd | head -3 | xargs; \
                  grep -E '^(CapEff|CapPrm|NoNewPrivs|SigIgn|SigBlk)' /proc/self/status | cut -f 2 | xargs; \
                  grep -E '^(Uid|Gid)' /proc/self/status | xargs; env";
    let printed = printed_by(&cluster, &ada, script);
    let lines: Vec<&str> = printed.lines().collect();
    let account = User::from_name("bin").unwrap().unwrap();
    let (uid, gid) = (account.uid.to_string(), account.gid.to_string());
    let home = account.dir.display();
    assert_eq!(lines[..3], [&uid, &gid, &gid]);
    assert_eq!(lines[3], format!("bin bin {home}"));
    assert_eq!(lines[4..7], [cluster.path("").trim_end_matches('/'), "0022", "0 1 2"]);
    // In the order of the file: blocked and ignored signals, capabilities, and the way to new ones.
    let status: Vec<u64> = lines[7].split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
    assert_eq!(status, [0, status[1] & OF_THE_C_LIBRARY, 0, 0, 1]);
    // Real, effective, saved, and of the file system: none by which the job could become another.
    assert_eq!(lines[8], format!("Uid: {uid} {uid} {uid} {uid} Gid: {gid} {gid} {gid} {gid}"));
    assert!(!printed.contains("DAEMON_SECRET"), "{printed}");
}

#[test]
fn a_job_reaches_its_own_files_and_neither_those_of_others_nor_the_workers() {
    if is_skipped() {
        return;
    }
    let cluster = open_cluster(&ANY_ACCOUNT);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "games"]);
    let bea = cluster.token("bea", &["--role", "user", "--name", "bea", "--account", "bin"]);
    let own = "echo weights > $COHABIT_CHECKPOINT_DIR/weights && echo '{\"step\": 3}' >> $COHABIT_PROGRESS && \
               echo $COHABIT_CHECKPOINT_DIR $$ > pid.new && mv pid.new pid; sleep 1000";
    let victim = cluster.submit(&["--token-file", &ada, "--env", "SECRET=of-ada"], own);
    cluster.until_file("pid");
    until("its progress is seen", || cluster.show(&victim)["progress"]["step"] == 3);
    let (checkpoints, pid) =
        cluster.read("pid").trim().split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let rank = cluster.path(&format!("worker0/ranks/{victim}/1/0"));
    for file in ["start.json", "progress", "log/0", "socket"] {
        let mode = std::fs::metadata(format!("{rank}/{file}")).map(|found| found.permissions().mode());
        assert!(mode.as_ref().map_or(true, |mode| mode & 0o077 == 0), "{file} has {mode:?}");
    }
    let files = [
        format!("{checkpoints}/weights"),
        format!("{rank}/start.json"),
        format!("{rank}/progress"),
        format!("/proc/{pid}/environ"),
        cluster.path("worker0/node.json"),
        cluster.path("head/worker.token"),
        cluster.path("head/admin.token"),
        cluster.path("head/journal.sqlite"),
    ];
    let folders = [
        checkpoints,
        rank.clone(),
        format!("{rank}/log"),
        cluster.path("worker0/ranks"),
        cluster.path("head"),
    ];
    let script = format!(
        "for f in {}; do cat $f >/dev/null 2>&1 && echo read $f; done; for d in {}; do ls $d >/dev/null 2>&1 && \
         echo listed $d; done; kill -9 {pid} 2>/dev/null && echo killed; echo x >> {rank}/script 2>/dev/null && \
         echo wrote; touch {rank}/new 2>/dev/null && echo made; echo done",
        files.join(" "),
        folders.join(" ")
    );
    assert_eq!(printed_by(&cluster, &bea, &script), "done\n");
    assert_eq!(cluster.state(&victim), "RUNNING");
    assert!(
        !cluster.run(&["show", "--token-file", &bea, "--output", "json", &victim]).stdout.contains("of-ada")
    );
    assert_eq!(cluster.run(&["logs", "--token-file", &bea, &victim]).code, 77);
    assert_eq!(cluster.run(&["cancel", "--token-file", &bea, &victim]).code, 77);
    cluster.ok(&["cancel", &victim]);
    assert_eq!(cluster.end(&victim)["state"], "CANCELLED");
    assert!(!cluster.read("daemons.log").contains("of-ada"));
}

#[test]
fn checkpoints_are_seen_again_by_the_next_attempt_and_scripts_belong_to_their_user() {
    if is_skipped() {
        return;
    }
    let cluster = open_cluster(&ANY_ACCOUNT);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "games"]);
    let text = "#!/bin/sh\ncat $COHABIT_CHECKPOINT_DIR/step 2>/dev/null && exit 0\n\
                echo 7 > $COHABIT_CHECKPOINT_DIR/step\nexit 1\n";
    std::fs::write(cluster.folder().join("train.sh"), text).unwrap();
    let submit = ["submit", "--output", "quiet", "--token-file", &ada, "--retries", "1", "train.sh"];
    let job = cluster.ok(&submit).trim().to_owned();
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    assert_eq!(cluster.ok(&["logs", &job]), "7\n");
}

#[test]
fn a_user_without_an_account_gets_a_private_uid() {
    if is_skipped() {
        return;
    }
    let mut cluster = open_cluster(&[]);
    let strangers = ["no-such-account", "no-other-account"].map(|name| {
        let token = cluster.token(name, &["--role", "user", "--name", name]);
        let job = cluster.submit(&["--token-file", &token], "id -u; id -G; touch of-stranger-$(id -u)");
        (token, job)
    });
    let uids = strangers.each_ref().map(|(_, job)| {
        let ended = cluster.end(job);
        assert_eq!(ended["state"], "COMPLETED", "{ended}");
        let uid = ended["attempts"][0]["ranks"][0]["private_uid"].as_u64().unwrap();
        assert_eq!(cluster.ok(&["logs", job]), format!("{uid}\n{uid}\n"));
        uid
    });
    assert_ne!(uids[0], uids[1]);
    let text = history(&cluster, &strangers[0].1);
    let account = "the account 'no-such-account' does not exist there";
    assert_eq!(text.matches(account).count(), 1, "{text}");
    assert!(cluster.ok(&["show", &strangers[0].1]).contains(&format!("as uid {}", uids[0])));

    cluster.kill_worker(0);
    cluster.restart_worker(0);
    assert_eq!(printed_by(&cluster, &strangers[0].0, "id -u"), format!("{}\n", uids[0]));
}

/// A cluster whose directory only root may enter.
#[test]
fn a_user_without_an_account_runs_in_tmp_and_is_told_why() {
    if is_skipped() {
        return;
    }
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    let locked = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(cluster.folder(), locked).unwrap();
    cluster.add_worker_with("host:1", &ANY_ACCOUNT);
    let stranger = cluster.token("stranger", &["--role", "user", "--name", "no-such-account"]);
    let job = cluster.submit(&["--token-file", &stranger], "pwd; echo done");
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    let printed = cluster.run(&["logs", &job]);
    assert_eq!(printed.stdout, "/tmp\ndone\n");
    assert!(printed.stderr.contains("'no-such-account' has no account on this node"), "{}", printed.stderr);

    let bin = cluster.token("bin", &["--role", "user", "--name", "bin"]);
    let job = cluster.submit(&["--token-file", &bin], "pwd");
    let ended = cluster.end(&job);
    assert_eq!(ended["reason_code"], "could_not_start", "{ended}");
}

#[test]
fn only_an_admin_runs_as_root_and_only_where_the_worker_does_not_mind() {
    if is_skipped() {
        return;
    }
    let cluster = open_cluster(&[]);
    let admin = cluster.submit(&[], "id -u");
    assert_eq!(cluster.end(&admin)["state"], "COMPLETED");
    assert_eq!(cluster.ok(&["logs", &admin]), "0\n");
    for flags in [["--name", "root", "--account", "root"], ["--name", "eve", "--account", "root"]] {
        let refused = cluster.run(&[&["token", "create", "--role", "user"], &flags[..]].concat());
        assert!(refused.stderr.contains("never run as root"), "{}", refused.stderr);
    }

    let strict = open_cluster(&["--no-root-jobs", "--min-uid", "1"]);
    let job = strict.submit(&[], "id -u");
    let ended = strict.end(&job);
    assert_eq!((&ended["state"], &ended["reason_code"]), (&"FAILED".into(), &"could_not_start".into()));
    assert!(ended["reason"].as_str().unwrap().contains("--no-root-jobs"), "{ended}");
    let ops = strict.token("ops", &["--role", "admin", "--name", "ops", "--account", "daemon"]);
    assert_eq!(printed_by(&strict, &ops, "id -u"), format!("{}\n", uid_of("daemon")));
}

#[test]
fn no_job_runs_as_an_account_of_the_system_and_private_users_do() {
    if is_skipped() {
        return;
    }
    let cluster = open_cluster(&[]);
    for (name, uid) in [("daemon", 1), ("nobody", 65_534)] {
        let token = cluster.token(name, &["--role", "user", "--name", name]);
        let job = cluster.submit(&["--token-file", &token, "--retries", "1"], "true");
        let ended = cluster.end(&job);
        assert_eq!((&ended["state"], &ended["reason_code"]), (&"FAILED".into(), &"could_not_start".into()));
        let reason = ended["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("'{name}' (user id {uid}) belongs to the system")), "{reason}");
        assert!(reason.contains("--min-uid"), "{reason}");
    }
    let stranger = cluster.token("stranger", &["--role", "user", "--name", "no-such-account"]);
    let uid: u32 = printed_by(&cluster, &stranger, "id -u").trim().parse().unwrap();
    assert!((61_184..=65_519).contains(&uid), "{uid}");
}

/// An account without rights as which the binary can be started, or says that there is none.
fn account_without_rights(folder: &std::path::Path) -> Option<User> {
    let account = User::from_name("games").unwrap().filter(|_| !is_skipped())?;
    let ran = cohabit_as(&account, folder).arg("--version").output();
    if !ran.is_ok_and(|ran| ran.status.success()) {
        say("skipped: another account cannot run the binary that is tested");
        return None;
    }
    Some(account)
}

#[test]
fn a_worker_that_is_not_root_runs_only_jobs_of_its_own_account_unless_all_may_share_it() {
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    std::fs::set_permissions(cluster.folder(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let Some(account) = account_without_rights(cluster.folder()) else { return };
    cluster.add_worker_as(&account, "host:2", &[]);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "games"]);
    let bea = cluster.token("bea", &["--role", "user", "--name", "bea"]);
    let beas = cluster.submit(&["--token-file", &bea], "cat worker0/node.json token0 >/dev/null && id -u");
    let uid = format!("{}\n", account.uid);
    assert_eq!(printed_by(&cluster, &ada, "id -u"), uid);
    let waiting = cluster.show(&beas);
    assert_eq!(
        (&waiting["state"], &waiting["reason_code"]),
        (&"PENDING".into(), &"waiting_for_nodes".into())
    );
    assert_eq!(waiting["attempts"], Value::Array(Vec::new()), "{waiting}");
    let why = cluster.ok(&["explain", &beas]);
    assert!(why.contains("Node node0 serves only the account 'games'"), "{why}");
    assert!(why.contains("--allow-shared-account"), "{why}");
    let isolation = &cluster.json(&["nodes"])["nodes"][0]["isolation"];
    assert_eq!((&isolation["users"], &isolation["account"]), (&"one_account".into(), &"games".into()));

    cluster.stop_worker(0);
    cluster.add_worker_as(&account, "host:2", &["--allow-shared-account"]);
    assert_eq!(cluster.end(&beas)["state"], "COMPLETED");
    assert_eq!(cluster.ok(&["logs", &beas]), uid, "it could read the worker's secrets");
}

#[test]
fn one_command_serves_the_user_who_gives_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let Some(account) = account_without_rights(folder.path()) else { return };
    let mut up = cohabit_as(&account, folder.path());
    up.args(["up", "--devices", "host:1", "--listen", "127.0.0.1:0", "--state", "state"]);
    let mut daemon = up.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(daemon.stdout.take().unwrap()), &mut ready)
        .unwrap();
    let run = ["run", "--state", "state", "--", "id", "-u"];
    let ran = cohabit_as(&account, folder.path()).args(run).output().unwrap();
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    assert!(ready.starts_with("ready"), "{ready}");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(printed, format!("{}\n", account.uid), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn directories_of_root_are_not_entered_for_a_user() {
    if is_skipped() {
        return;
    }
    let cluster = open_cluster(&ANY_ACCOUNT);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "bin"]);
    let locked = cluster.folder().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::write(locked.join("program"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(locked.join("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
    let folder = locked.display().to_string();
    let refused = |flags: &[&str]| {
        let submit = [&["submit", "--output", "quiet", "--token-file", &ada], flags].concat();
        let job = cluster.ok(&submit).trim().to_owned();
        cluster.end(&job)["reason_code"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(&["--workdir", &folder, "--", "true"]), "workdir_missing");
    // Given by its path, it would travel with the job.
    let search_path = format!("PATH={folder}");
    assert_eq!(refused(&["--env", &search_path, "--", "program"]), "not_executable");
    let outside = format!("{folder}/checkpoints");
    assert_eq!(refused(&["--checkpoint", &outside, "--", "true"]), "could_not_start");
    assert!(!locked.join("checkpoints").exists());
}

#[test]
fn unenforced_claims_are_reported_and_jobs_run() {
    let cluster = Cluster::start(&["host:1"]);
    let job =
        cluster.submit(&["--mem", "64M", "--cpus", "1"], "head -c 200M /dev/zero | tail -c 200M | wc -c");
    let ended = cluster.end(&job);
    let node = &cluster.json(&["nodes"])["nodes"][0]["isolation"];
    let sheet = cluster.ok(&["show", &job]);
    match ended["limits"].as_str() {
        Some("unenforced") => {
            assert_eq!((&ended["state"], &node["limits"]), (&"COMPLETED".into(), &"unenforced".into()));
            let why = ended["limits_reason"].as_str().unwrap();
            assert!(why.starts_with("no delegated cgroup: "), "{why}");
            assert!(
                sheet.contains(&format!("cpus and memory are not enforced on node node0 ({why})")),
                "{sheet}"
            );
            say(&format!("limits are not enforced here, so it was not tried what they do: {why}"));
        }
        Some("enforced") => {
            assert_eq!(
                (&ended["state"], &ended["reason_code"]),
                (&"OUT_OF_MEMORY".into(), &"memory_limit".into())
            );
            assert!(sheet.contains("64 MiB") && sheet.contains("cpus and memory are enforced"), "{sheet}");
        }
        other => panic!("{other:?}: {ended}"),
    }
    let silent = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&silent)["limits"], Value::Null);
}
