//! Scripts for Slurm: their options, their variables, the files of their output, and programs of Slurm.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use nix::unistd::{User, geteuid};

use crate::kit::*;

/// Writes a script and returns its path.
fn script(cluster: &Cluster, name: &str, text: &str) -> String {
    let path = cluster.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_script_runs_with_slurms_variables_and_writes_the_files_it_names() {
    let cluster = Cluster::start(&["host:4"]);
    std::fs::create_dir(cluster.folder().join("logs")).unwrap();
    let text = "#!/bin/sh\n#SBATCH --job-name=re --partition=gpu,long --qos=high --mail-user=ada\n\
                #SBATCH --output=logs/%x-%4j.out --error=logs/%x.err --cpus-per-task=1 --ntasks=1\n\
                #SBATCH --frobnicate 3\n\
                echo out $SLURM_JOB_ID $SLURM_JOB_NAME $SLURM_JOB_PARTITION $SLURM_CPUS_PER_TASK $SLURM_NTASKS\n\
                test $SLURM_SUBMIT_HOST = $(uname -n) && echo err >&2\n";
    let path = script(&cluster, "re.sh", text);
    let submitted = cluster.run(&["submit", "--output", "quiet", &path]);
    assert_eq!(submitted.code, 0, "{}", submitted.stderr);
    for line in
        ["re.sh:2: --qos has no effect", "re.sh:2: --mail-user has no effect", "re.sh:4: --frobnicate"]
    {
        assert!(submitted.stderr.contains(line), "{line}: {}", submitted.stderr);
    }
    let job = submitted.stdout.trim();
    let ended = cluster.completed_in(1, job);
    assert_eq!(ended["partition"], "gpu,long");
    let expected = format!("out {job} re gpu,long 1 1\n");
    assert_eq!(cluster.read(&format!("logs/re-{:0>4}.out", job)), expected);
    assert_eq!(cluster.read("logs/re.err"), "err\n");
    assert_eq!(cluster.run(&["logs", job]).stdout, expected, "the log has it, too");
    let sheet = cluster.ok(&["show", job]);
    assert!(sheet.contains("gpu,long") && sheet.contains("%x-%4j.out"), "{sheet}");
}

#[test]
fn all_bad_values_of_a_script_are_told_at_once() {
    let cluster = Cluster::start(&[]);
    let path =
        script(&cluster, "bad.sh", "#!/bin/sh\n#SBATCH --time=soon\n#SBATCH --mem=lots -d singleton\n");
    let refused = cluster.run(&["submit", &path]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    for place in ["bad.sh:2: --time", "bad.sh:3: --mem", "bad.sh:3: -d: singleton is not supported"] {
        assert!(refused.stderr.contains(place), "{place}: {}", refused.stderr);
    }
}

#[test]
fn a_second_attempt_appends_to_the_file_that_the_first_one_emptied() {
    let cluster = Cluster::start(&["host:1"]);
    std::fs::write(cluster.folder().join("out"), "of an earlier job\n").unwrap();
    let job = cluster.submit(&["--stdout", "out"], "echo attempt $COHABIT_ATTEMPT");
    cluster.completed_in(1, &job);
    assert_eq!(cluster.read("out"), "attempt 1\n");
    cluster.ok(&["requeue", &job]);
    until("the second attempt has ended", || cluster.read("out") == "attempt 1\nattempt 2\n");
}

#[test]
fn a_file_that_cannot_be_written_fails_the_job_with_what_to_do() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&["--stdout", "no/such/directory/%j"], "echo");
    let ended = cluster.end(&job);
    assert_eq!((&ended["state"], &ended["reason_code"]), (&"FAILED".into(), &"could_not_start".into()));
    let reason = ended["reason"].to_string();
    assert!(reason.contains("no/such/directory") && reason.contains("create its directory"), "{reason}");
}

/// A worker that is root opens the files with no more rights than the job has.
#[test]
fn files_for_output_are_opened_as_the_account_of_the_user() {
    if !geteuid().is_root() {
        say("skipped: only root may run jobs as the accounts of their users");
        return;
    }
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    std::fs::set_permissions(cluster.folder(), std::fs::Permissions::from_mode(0o777)).unwrap();
    cluster.add_worker_with("host:1", &["--min-uid", "1"]);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "bin"]);
    let run = |path: &str| {
        let job = cluster.submit(&["--token-file", &ada, "--stdout", path], "echo out");
        cluster.end(&job)
    };
    assert_eq!(run("mine")["state"], "COMPLETED");
    let owner = std::fs::metadata(cluster.path("mine")).unwrap().uid();
    assert_eq!(owner, User::from_name("bin").unwrap().unwrap().uid.as_raw());

    let secret = cluster.path("secret");
    std::fs::write(&secret, "secret\n").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&secret, cluster.path("link")).unwrap();
    for path in ["secret", "link", "/root/file", "/proc/self/mem"] {
        let ended = run(path);
        assert_eq!(ended["state"], "FAILED", "{path}: {ended}");
    }
    assert_eq!(cluster.read("secret"), "secret\n");
}

/// The programs that `slurm-shims` writes.
struct Shims<'a> {
    cluster: &'a Cluster,
}

impl Shims<'_> {
    fn run(&self, line: &str) -> CommandOutput {
        let mut shell = Command::new("sh");
        let search_path = format!("{}:{}", self.cluster.path("shims"), std::env::var("PATH").unwrap());
        shell.args(["-c", line]).current_dir(self.cluster.folder());
        shell.env("PATH", search_path).env("COHABIT_STATE", self.cluster.path("head"));
        shell.output().unwrap().into()
    }

    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
        ran.stdout
    }
}

#[test]
fn programs_of_slurm_submit_list_and_cancel_jobs() {
    let cluster = Cluster::start(&["host:2"]);
    cluster.ok(&["slurm-shims", "--dir", "shims"]);
    let shims = Shims { cluster: &cluster };
    let text = "#!/bin/sh\n#SBATCH -J scripted --gres=gpu:1 --time=10\necho $SLURM_JOB_NAME $1\n";
    script(&cluster, "train.sh", text);
    let said = shims.ok("sbatch --wait --job-name=typed train.sh argument");
    let job = said.trim().strip_prefix("Submitted batch job ").unwrap().to_owned();
    assert_eq!(cluster.read(&format!("slurm-{job}.out")), "typed argument\n");

    let wrapped = shims.ok("sbatch --parsable -W -o wrapped --wrap 'echo $SLURM_JOB_ID'");
    assert_eq!(cluster.read("wrapped"), wrapped);
    let piped = shims.ok("printf '#!/bin/sh\\necho piped\\n' | sbatch --parsable -W -o piped");
    assert_eq!((cluster.read("piped").as_str(), piped.trim().is_empty()), ("piped\n", false));

    let array = shims.ok("sbatch --parsable --array=1-5%1 -G 1 -p gpu -J arr --wrap 'sleep 1000'");
    let array = array.trim();
    cluster.until_state(&format!("{array}.1"), "RUNNING");
    let queue = shims.ok("squeue -p gpu --me");
    let rows: Vec<Vec<&str>> = queue.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]);
    assert_eq!(rows[1][..3], [&*format!("{array}_[2-5]"), "gpu", "arr"], "{queue}");
    assert_eq!((rows[1][4], rows[1][7]), ("PD", "(JobArrayTaskLimit)"), "{queue}");
    assert_eq!((rows[2][0], rows[2][4], rows[2][7]), (&*format!("{array}_1"), "R", "node0"), "{queue}");
    assert_eq!(shims.ok(&format!("squeue -h -t PD -r -j '{array}_[4-9]'")).lines().count(), 2);
    let nodes = shims.ok("sinfo");
    assert!(nodes.starts_with("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"), "{nodes}");
    assert!(nodes.contains(" mix node0"), "{nodes}");

    shims.ok(&format!("scancel {array}_5"));
    assert_eq!(cluster.end(&format!("{array}.5"))["state"], "CANCELLED");
    assert_eq!(shims.run("scancel 999").code, 1);
    shims.ok("scancel --me -n arr");
    assert_eq!(cluster.end(array)["state"], "CANCELLED");
    for (line, advice) in [
        ("squeue -o %i", "cohabit list"),
        ("sinfo --summarize", "cohabit nodes"),
        ("sbatch --frob train.sh", "--frob is unknown"),
        ("sbatch nowhere.sh", "Unable to open file"),
    ] {
        let refused = shims.run(line);
        assert!(refused.code != 0 && refused.stderr.contains(advice), "{line}: {}", refused.stderr);
    }
}
