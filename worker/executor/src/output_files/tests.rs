//! Files for output: what their patterns stand for, who writes them, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use cohabit_host::log::LogLimits;
use cohabit_types::{JobId, JobSpec, Role, Share, Span};
use cohabit_worker_core::{GpuAccess, RankStart};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

/// A rank of `ada`, on the second node, of member 5 of array 12, or of job 12.
fn start(index: Option<u32>, attempt: u32, rank: u32, output: OutputFiles) -> StartRecord {
    let job = JobId { number: 12, index };
    let name = "re/net".to_owned();
    let spec = JobSpec { output, name, ..JobSpec::command(vec!["train".into()], "/".into()) };
    let environment =
        BTreeMap::from([("COHABIT_NODE_RANK".into(), "1".into()), ("LOCAL_RANK".into(), "0".into())]);
    StartRecord {
        workdir: None,
        program: None,
        rank: RankStart {
            rank: job.attempt(attempt).rank(rank),
            spec: spec.into(),
            user: "ada".into(),
            account: "ada".into(),
            role: Role::User,
            private_uid: None,
            devices: Vec::new(),
            share: Share::WHOLE,
            access: GpuAccess::None,
            rendezvous_port: None,
            application: None,
            place: None,
            node_rank: 0,
            checkpoints: None,
            note: None,
            idle_after: None,
            environment: BTreeMap::new(),
        },
        environment,
        orphan_grace: Span::from_secs(1),
        lease_term: None,
        leased_at: None,
        log: LogLimits::default(),
        booted_at: None,
        removal: None,
        account: None,
        cgroup: None,
    }
}

fn both(path: &Path) -> OutputFiles {
    OutputFiles { stdout: Some(path.to_str().unwrap().to_owned()), stderr: None }
}

#[test]
fn patterns_stand_for_what_they_do_in_slurm() {
    let member = start(Some(5), 1, 3, OutputFiles::default());
    for (pattern, path) in [
        ("/o/%x-%j.out", "/o/re_net-12.5.out"),
        ("/o/%A_%a", "/o/12_5"),
        ("/o/%4A_%3a_%4j", "/o/0012_005_0012.5"),
        ("/o/%u/%n/%t/%s", "/o/ada/1/3/batch"),
        ("/100%%", "/100%"),
        ("/%q %", "/%q %"),
        ("/%99999999999999999999a", "/5"),
        ("/%12a", "/0000000005"),
        ("/é%é%j", "/é%é12.5"),
    ] {
        assert_eq!(expand(pattern, &member), path, "{pattern}");
    }
    assert_eq!(expand("/%j_%a", &start(None, 1, 0, OutputFiles::default())), "/12_4294967294");
    let host = expand("/%N", &member);
    assert!(host.len() > 1 && !host.contains('.'), "{host}");
}

#[test]
fn one_rank_writes_a_file_unless_its_path_names_the_rank_or_the_node() {
    let writes = |rank, pattern: &str| {
        let files = of_rank(&start(None, 1, rank, both(Path::new(pattern))));
        files.stdout.is_some()
    };
    assert!(writes(0, "/o/%j") && !writes(3, "/o/%j"));
    assert!(writes(3, "/o/%j.%2t") && writes(3, "/o/%N") && writes(3, "/o/%n"));
    assert!(!writes(3, "/o/%%t"), "a percent sign and a letter");
}

#[test]
fn the_first_attempt_empties_a_file_and_later_ones_append() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "old\n").unwrap();
    for (attempt, expected) in [(1, "out\nerr\n"), (2, "out\nerr\nout\nerr\n")] {
        let OpenOutput { stdout, stderr } = open(&start(None, attempt, 0, both(&path))).unwrap();
        stdout.unwrap().write_all(b"out\n").unwrap();
        stderr.unwrap().write_all(b"err\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
}

#[test]
fn each_stream_may_have_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| Some(folder.path().join(name).to_str().unwrap().to_owned());
    let open = |output| open(&start(None, 1, 0, output)).unwrap();
    let two = open(OutputFiles { stdout: at("out"), stderr: at("err") });
    two.stderr.unwrap().write_all(b"err").unwrap();
    assert_eq!(fs::read(folder.path().join("out")).unwrap(), b"");
    let only_errors = open(OutputFiles { stdout: None, stderr: at("err") });
    assert!(only_errors.stdout.is_none() && only_errors.stderr.is_some());
    let nothing = open(OutputFiles { stdout: Some("/dev/null".into()), stderr: None });
    assert!(nothing.stdout.is_none() && nothing.stderr.is_none());
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    symlink("/proc/self/oom_score_adj", &link).unwrap();
    let before = fs::read("/proc/self/oom_score_adj").unwrap();
    for path in [&pipe, &link, Path::new("/proc/self/mem"), folder.path(), &folder.path().join("no/out")] {
        let Err(StartFailure::Other(why)) = open(&start(None, 1, 0, both(path))) else { panic!("{path:?}") };
        assert!(why.contains(path.to_str().unwrap()) && why.contains("--stdout"), "{why}");
    }
    assert_eq!(fs::read("/proc/self/oom_score_adj").unwrap(), before);
}
