//! The environment in which a rank starts, and why a start may fail.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::kit::{Executor, Plan};

#[test]
fn the_environment_is_exactly_the_prepared_one() {
    let mut rank = Plan::argv(&["env"]).start();
    rank.ended();
    let printed = rank.printed_text();
    let mut names: Vec<&str> = printed.lines().filter_map(|line| line.split('=').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["COHABIT_PROGRESS", "DIR", "PATH"]);
}

#[test]
fn it_runs_in_its_working_directory_with_nothing_on_its_standard_input() {
    let mut rank = Plan::shell("pwd; cat; echo end").start();
    rank.ended();
    let folder = rank.path("").canonicalize().unwrap();
    assert_eq!(rank.printed_text(), format!("{}\nend\n", folder.display()));
}

#[test]
fn nothing_is_inherited_from_the_process_that_started_the_worker() {
    let executor = Executor::start_after("umask 0; trap '' HUP INT USR1 XFSZ; exec 9</etc/passwd");
    let plan = Plan::shell(
        "(umask; ls /proc/self/fd | head -3 | xargs; ls /proc/$$/fd | grep -cx 9; \
         grep -E '^(SigIgn|NoNewPrivs)' /proc/self/status | cut -f 2) > $DIR/inherited",
    );
    executor.run(&plan);
    let inherited = fs::read_to_string(plan.path().join("inherited")).unwrap();
    let lines: Vec<&str> = inherited.lines().collect();
    assert_eq!(lines[..3], ["0022", "0 1 2", "0"]);
    // Signals 32 and 33 are reserved by the C library and are always inherited.
    assert_eq!(u64::from_str_radix(lines[3], 16).unwrap() & !(3 << 31), 0);
    assert_eq!(lines[4], "1");
}

#[test]
fn it_leads_a_group_of_its_own_in_a_session_without_terminal() {
    let mut rank = Plan::shell(
        "read pid name state parent group session terminal rest < /proc/$$/stat; \
                                echo $((pid == group)) $((session == parent)) $terminal",
    )
    .start();
    rank.ended();
    assert_eq!(rank.printed_text(), "1 1 0\n");
}

#[test]
fn a_script_is_run_as_it_was_when_it_was_submitted() {
    let mut rank = Plan::script("#!/bin/sh\necho \"$#: $1 $2\"\nexit 3\n").start();
    assert_eq!(rank.outcome(), json!({ "exited": 3 }));
    assert_eq!(rank.printed_text(), "2: one two\n");
    assert_eq!(fs::metadata(rank.path("script")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_script_without_first_line_is_run_by_the_shell() {
    let mut rank = Plan::script("echo \"$2\"\n").start();
    assert_eq!(rank.outcome(), json!({ "exited": 0 }));
    assert_eq!(rank.printed_text(), "two\n");
}

#[test]
fn a_relative_program_is_looked_for_in_the_working_directory() {
    let plan = Plan::argv(&["./train"]);
    write_program(&plan, "train", 0o755, b"#!/bin/sh\nexit 5\n");
    assert_eq!(plan.outcome(), json!({ "exited": 5 }));
}

#[test]
fn a_bare_name_is_looked_up_in_the_search_path_of_the_job() {
    let plan = Plan::argv(&["train"]);
    write_program(&plan, "train", 0o755, b"#!/bin/sh\nexit 6\n");
    let folder = plan.path().to_str().unwrap().to_owned();
    let plan = plan.change(|plan| _ = plan.environment.insert("PATH".into(), format!("/nowhere::{folder}")));
    assert_eq!(plan.outcome(), json!({ "exited": 6 }));
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    for name in ["no-such-program", "./no-such-program", "/no/such/program", "/dev/null/program"] {
        let expected = json!({ "not_started": { "command_not_found": name } });
        assert_eq!(Plan::argv(&[name]).outcome(), expected);
    }
}

#[test]
fn a_program_that_may_not_be_executed_is_named() {
    let cases: [(u32, &[u8]); 3] = [
        (0o644, b"#!/bin/sh\nexit 0\n"),
        (0o755, b"#!/no/such/interpreter\n"),
        (0o755, b"\x7fELF\0\0 and then garbage"),
    ];
    for (mode, content) in cases {
        let plan = Plan::argv(&["./program"]);
        write_program(&plan, "program", mode, content);
        assert_eq!(plan.outcome(), json!({ "not_started": { "not_executable": "./program" } }));
    }
    assert_eq!(Plan::argv(&["/tmp"]).outcome(), json!({ "not_started": { "not_executable": "/tmp" } }));
}

#[test]
fn a_missing_working_directory_is_named() {
    let plan = Plan::argv(&["true"]).change(|plan| plan.spec.workdir = "/no/such/folder".into());
    assert_eq!(plan.outcome(), json!({ "not_started": { "workdir_missing": "/no/such/folder" } }));
}

#[test]
fn a_directory_for_checkpoints_that_the_job_names_exists_before_it_runs() {
    let keep = |place: &str| {
        let place = place.to_owned();
        Plan::shell("cp -r checkpoints/of/it $DIR/copy").change(|plan| plan.spec.checkpoint = Some(place))
    };
    assert_eq!(keep("checkpoints/of/it").outcome(), json!({ "exited": 0 }));
    // A file that is no directory, and a file system that takes none: both are the job's problem.
    for place in ["/etc/passwd/checkpoints", "/proc/checkpoints"] {
        let outcome = keep(place).outcome();
        let why = outcome["not_started"]["other"].as_str().unwrap_or_default();
        assert!(why.contains("create the directory for checkpoints") && why.contains(place), "{outcome}");
    }
}

fn write_program(plan: &Plan, name: &str, mode: u32, content: &[u8]) {
    let path = plan.path().join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}
