//! Shells and other jobs with a terminal, typed into from a terminal, whatever is restarted meanwhile.

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::kit::{Cluster, Screen, cohabit, say, until};

/// The keys Ctrl-C, Ctrl-D and Ctrl-Z.
const INTERRUPT: &str = "\x03";
const END: &str = "\x04";
const SUSPEND: &str = "\x1a";
/// The keys that detach.
const DETACH: &str = "\r~.";

/// A shell that shows "ready" once it can be typed into.
pub(crate) fn shell(cluster: &Cluster, flags: &[&str]) -> Screen {
    let mut screen = cluster.screen(&[&["shell"], flags, &["--", "bash", "--norc", "--noprofile"]].concat());
    screen.until_shown("connected to job");
    screen.ask("echo rea''dy", "ready");
    screen
}

#[test]
fn a_job_has_a_terminal_and_its_exit_code_is_that_of_run() {
    let cluster = Cluster::start(&["host:1"]);
    let script = "stty size; tty; echo $TERM; read line; echo \"got $line.\"; exit 7";
    let mut screen = cluster.screen(&["run", "--pty", "--", "sh", "-c", script]);
    screen.until_shown("30 100\r\n/dev/pts/");
    screen.until_shown("xterm-256color");
    // Backspace erases a whole character.
    screen.ask("größeß\x7f", "got größe.");
    assert_eq!(screen.code(), Some(7), "{}", screen.text());
    assert!(screen.is_cooked());
    assert!(cluster.ok(&["logs", "last"]).contains("got größe."));
}

#[test]
fn the_next_attempt_is_announced_and_gets_every_key() {
    let cluster = Cluster::start(&["host:1"]);
    let mut screen = shell(&cluster, &["--retries", "1"]);
    screen.type_keys("exit 1\r");
    screen.until_shown("[attempt 2 of job 1 begins: what ran before has ended]");
    screen.ask("echo fir''st", "first");
}

#[test]
fn keys_of_job_control_reach_the_shell() {
    let cluster = Cluster::start(&["host:1"]);
    let mut screen = shell(&cluster, &[]);
    screen.type_keys("sleep 1000; echo interrupted=$?\r");
    until("it sleeps", || cluster_runs(&cluster, "sleep\x001000"));
    screen.type_keys(INTERRUPT);
    screen.ask("", "^C");
    screen.type_keys("sleep 2000\r");
    until("it sleeps", || cluster_runs(&cluster, "sleep\x002000"));
    screen.type_keys(SUSPEND);
    screen.until_shown("Stopped");
    screen.ask("kill %1; wait; echo alive=$((6*7))", "alive=42");
    screen.resize(40, 120);
    screen.ask("until stty size | grep 40.120; do :; done", "40 120");
    screen.ask("(exit 3); echo co''de=$?", "code=3");
    screen.type_keys(&format!("(exit 5)\r{END}"));
    assert_eq!(screen.code(), Some(5), "{}", screen.text());
}

/// Whether a process with these words runs, of whichever job.
fn cluster_runs(cluster: &Cluster, words: &str) -> bool {
    let mark = cluster.folder().display().to_string();
    crate::kit::processes_with(&mark).iter().any(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(words.as_bytes())
    })
}

#[test]
fn the_default_is_the_login_shell_in_the_working_directory() {
    let cluster = Cluster::start(&["host:1"]);
    std::fs::create_dir(cluster.folder().join("here")).unwrap();
    let mut screen = cluster.screen(&["shell", "--workdir", "here", "--env", "SHELL=/bin/bash"]);
    screen.ask("echo $0.${PWD##*/}", "/bin/bash.here");
    screen.type_keys("exit\r");
    assert_eq!(screen.code(), Some(0));
    assert_eq!(cluster.show("last")["name"], "shell");
    let mut screen = cluster.screen(&["shell", "--env", "SHELL=/usr/sbin/nologin"]);
    screen.ask("echo is=$0", "is=/bin/bash");
}

#[test]
fn a_shell_outlives_head_worker_and_client() {
    let mut cluster = Cluster::start(&["host:1"]);
    let mut screen = shell(&cluster, &[]);
    screen.ask("x=1; echo val=$x", "val=1");
    cluster.kill_head();
    screen.type_keys("x=2; echo val=$x\r");
    cluster.restart_head();
    screen.until_shown("val=2");
    cluster.kill_worker(0);
    screen.type_keys("x=3; echo val=$x\r");
    cluster.restart_worker(0);
    screen.until_shown("val=3");
    screen.signal(Signal::SIGKILL);
    screen.code();
    let mut attached = cluster.screen(&["attach", "last"]);
    // The end of what was shown before.
    attached.until_shown("val=3");
    attached.ask("echo still=$x", "still=3");
    attached.type_keys(DETACH);
    assert_eq!(attached.code(), Some(0), "{}", attached.text());
    attached.until_shown("goes on: cohabit attach 1");
    assert!(attached.is_cooked());
    assert_eq!(cluster.state("1"), "RUNNING");
}

#[test]
fn several_terminals_show_the_same_shell() {
    let cluster = Cluster::start(&["host:1"]);
    let mut first = shell(&cluster, &["--name", "both"]);
    let mut second = cluster.screen(&["attach", "both"]);
    second.until_shown("connected");
    first.ask("echo from=$((1))st", "from=1st");
    second.until_shown("from=1st");
    second.ask("echo from=$((2))nd", "from=2nd");
    first.until_shown("from=2nd");
    second.type_keys("exit 4\r");
    assert_eq!((first.code(), second.code()), (Some(4), Some(4)));
}

#[test]
fn a_large_paste_arrives_whole() {
    let cluster = Cluster::start(&["host:1"]);
    let text: String = (0..1_000_000_u32).map(|number| (b'a' + (number % 23) as u8) as char).collect();
    std::fs::write(cluster.folder().join("text"), &text).unwrap();
    let script = "stty raw -echo; echo ready; head -c 1000000 | cmp - text && echo sa''me";
    let mut screen = cluster.screen(&["run", "--pty", "--", "sh", "-c", script]);
    screen.until_shown("ready");
    screen.type_keys(&text);
    screen.until_shown("same");
    assert_eq!(screen.code(), Some(0), "{}", screen.text());
}

#[test]
fn a_cancelled_shell_ends_although_shells_ignore_sigterm() {
    let cluster = Cluster::start(&["host:1"]);
    let mut screen = shell(&cluster, &["--grace", "50m"]);
    screen.ask("sleep 3000 & echo be''hind", "behind");
    cluster.ok(&["cancel", "last"]);
    assert_eq!(cluster.end("last")["state"], "CANCELLED");
    screen.code();
    screen.until_shown("CANCELLED");
    assert!(screen.is_cooked());
}

#[test]
fn a_client_that_is_told_to_end_leaves_its_terminal_in_order() {
    let cluster = Cluster::start(&["host:1"]);
    let mut screen = shell(&cluster, &[]);
    // A second screen, without a cursor.
    screen.ask("printf '\\033[?1049h\\033[?25l%s' se''cond", "second");
    assert!(!screen.is_cooked());
    screen.signal(Signal::SIGTERM);
    assert_eq!(screen.code(), Some(130));
    screen.until_shown("\x1b[?25h\x1b[?1049l");
    screen.until_shown("ended by SIGTERM. Job 1 goes on: cohabit attach 1");
    assert!(screen.is_cooked());
}

#[test]
fn a_queued_shell_says_why_it_waits_and_ctrl_c_cancels_it() {
    let cluster = Cluster::start(&["host:1"]);
    let before = cluster.submit(&["--gpus", "1"], "sleep 1000");
    cluster.until_state(&before, "RUNNING");
    let mut screen = cluster.screen(&["shell", "--gpus", "1"]);
    screen.until_shown("job 2 waits: ");
    screen.type_keys(INTERRUPT);
    assert_eq!(screen.code(), Some(130));
    screen.until_shown("interrupted: job 2 was cancelled");
    assert_eq!(cluster.end("2")["state"], "CANCELLED");
}

#[test]
fn whoever_cannot_type_hears_why() {
    let cluster = Cluster::start(&["host:2"]);
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let ran = cluster.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["shell"], 2, "cohabit shell needs a terminal as its standard input and output");
    refused(&["shell"], 2, "cohabit run -- COMMAND");
    refused(&["run", "--pty", "--", "true"], 2, "cohabit run --pty needs a terminal");
    refused(&["attach", "last"], 2, "cohabit attach needs a terminal");

    let plain = cluster.submit(&[], "sleep 1000");
    cluster.until_state(&plain, "RUNNING");
    let on_screen = |arguments: &[&str], code: i32, why: &str| {
        let mut screen = cluster.screen(arguments);
        assert_eq!(screen.code(), Some(code), "{arguments:?}: {}", screen.text());
        screen.until_shown(why);
        assert!(screen.is_cooked());
    };
    on_screen(
        &["attach", &plain],
        65,
        "has no terminal, which only cohabit shell and cohabit run --pty give",
    );
    cluster.ok(&["cancel", &plain]);
    cluster.end(&plain);
    on_screen(&["attach", &plain], 65, "has ended (CANCELLED): see its output with cohabit logs 1");
    on_screen(&["run", "--pty", "--array", "0-1", "--", "true"], 2, "have no terminal: leave out --array");
    on_screen(&["shell", "--nodes", "2", "--gpus", "2"], 2, "a job with a terminal has one rank, not 2");

    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let _own = shell(&cluster, &[]);
    on_screen(&["attach", "--token-file", &ada, "2"], 77, "belongs to root: only its owner and admins may");
}

/// Runs a command of tmux for the server of this cluster.
fn tmux(cluster: &Cluster, arguments: &[&str]) -> String {
    let socket = cluster.path("tmux");
    let mut command = Command::new("tmux");
    command.args(["-f", "/dev/null", "-S", &socket]).args(arguments).stdin(Stdio::null());
    command.env("COHABIT_STATE", cluster.folder().join("head")).env("HOME", cluster.folder());
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

fn is_installed(program: &str) -> bool {
    Command::new("which").arg(program).stdout(Stdio::null()).status().is_ok_and(|found| found.success())
}

#[test]
fn a_program_that_fills_the_screen_is_drawn_again_for_who_attaches() {
    if !["tmux", "less"].into_iter().all(is_installed) {
        say("skipped: tmux or less is not installed");
        return;
    }
    let cluster = Cluster::start(&["host:1"]);
    let lines: String = (1..=500).map(|line| format!("line {line}.\n")).collect();
    std::fs::write(cluster.folder().join("lines"), lines).unwrap();
    let program = cohabit(cluster.folder()).get_program().display().to_string();
    let directory = cluster.folder().display().to_string();
    tmux(&cluster, &["new-session", "-d", "-x", "80", "-y", "20", "-c", &directory, "sh"]);
    let shows = |text: &str| tmux(&cluster, &["capture-pane", "-p"]).contains(text);
    let send = |keys: &[&str]| tmux(&cluster, &[&["send-keys"], keys].concat());
    let line = |text: &str| send(&[text, "Enter"]);
    line(&format!("{program} run --pty -- less lines"));
    until("the first page is shown", || shows("line 19.") && !shows("line 20."));
    send(&["G"]);
    until("the last page is shown", || shows("line 500.") && !shows("line 481."));
    // At the beginning of a line, which less does not have.
    send(&["Enter", "~", "."]);
    until("it is detached", || shows("detached from job 1"));
    line("clear; stty -a | grep -o ' icanon'; echo cooked=$?");
    until("the terminal is as before", || shows("icanon") && shows("cooked=0"));
    tmux(&cluster, &["resize-window", "-x", "60", "-y", "30"]);
    line(&format!("{program} attach last"));
    until("the page is drawn in the new size", || shows("line 482.") && shows("~\n~\n~\n~\n(END)"));
    send(&["q"]);
    until("the job has ended", || cluster.state("1") == "COMPLETED");
    tmux(&cluster, &["kill-server"]);
}
