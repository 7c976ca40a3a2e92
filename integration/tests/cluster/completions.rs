//! Completion in real shells, with the jobs and nodes of a live head.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::kit::*;

/// What `bash` offers for a line whose last word is typed so far.
fn offered_by_bash(cluster: &Cluster, state: &str, line: &[&str]) -> Vec<String> {
    let words = line.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let script = format!(
        "source <(cohabit completions bash); COMP_WORDS=(cohabit {words}); COMP_CWORD={}; COMP_TYPE=9; \
         _clap_complete_cohabit cohabit '{}' cohabit; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        line.len(),
        line.last().unwrap()
    );
    let output = in_shell(cluster, state, "bash", &["--noprofile", "--norc", "-c", &script]);
    output.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Runs a shell in which `cohabit` is the program under test. It must print nothing to stderr.
fn in_shell(cluster: &Cluster, state: &str, shell: &str, arguments: &[&str]) -> String {
    let folder = binary().parent().unwrap().display().to_string();
    let mut command = Command::new(shell);
    command.env_clear().env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()));
    command.env("HOME", cluster.folder()).env("COHABIT_STATE", state).current_dir(cluster.folder());
    command.env("TERM", "dumb").stdin(Stdio::null()).args(arguments);
    let ran = CommandOutput::from(command.output().unwrap());
    assert_eq!(ran.stderr, "", "{shell} {arguments:?}");
    ran.stdout
}

fn is_installed(shell: &str) -> bool {
    let found = ["/bin", "/usr/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(shell).exists());
    found.contains(&true)
}

#[test]
fn bash_completes_commands_live_jobs_and_nodes() {
    let cluster = Cluster::start(&["host:1"]);
    let state = cluster.path("head");
    let running = cluster.submit(&["--name", "train-net"], "sleep 1000");
    cluster.until_state(&running, "RUNNING");
    let ended = cluster.submit(&["--name", "quick", "--gpus", "0"], "true");
    cluster.end(&ended);
    let offered = |line: &[&str]| offered_by_bash(&cluster, &state, line);

    assert_eq!(offered(&["subm"]), ["submit"]);
    assert_eq!(offered(&["cancel", ""]).iter().filter(|it| !it.starts_with('-')).count(), 2);
    for word in [&running, "train-net"] {
        assert!(offered(&["cancel", ""]).iter().any(|it| it == word), "{word}");
    }
    assert_eq!(offered(&["cancel", "tr"]), ["train-net"]);
    assert_eq!(offered(&["logs", "qui"]), ["quick"], "jobs that ended lately can be read");
    assert_eq!(offered(&["cancel", "qui"]), Vec::<String>::new());
    assert_eq!(offered(&["submit", "--depends-on", "afterany:tr"]), ["afterany:train-net"]);
    let node = cluster.json(&["nodes"])["nodes"][0]["name"].as_str().unwrap().to_owned();
    assert_eq!(offered(&["worker", "drain", &node[..1]]), [node.as_str()]);
    let by_flag = offered_by_bash(&cluster, "/nonexistent", &["show", "--state", &state, "tr"]);
    assert_eq!(by_flag, ["train-net"], "the flags of the line count");
}

#[test]
fn without_a_head_completion_offers_nothing_soon() {
    let mut cluster = Cluster::start(&["host:1"]);
    let state = cluster.path("head");
    cluster.kill_head();
    for state in [state.as_str(), "/nonexistent"] {
        let start = Instant::now();
        assert_eq!(offered_by_bash(&cluster, state, &["cancel", "1"]), Vec::<String>::new());
        assert!(start.elapsed() < Duration::from_secs(20), "a shell waits for it");
    }
}

#[test]
fn fish_and_zsh_understand_their_scripts() {
    let cluster = Cluster::start(&["host:1"]);
    let state = cluster.path("head");
    let job = cluster.submit(&["--name", "train-net"], "sleep 1000");
    cluster.until_state(&job, "RUNNING");
    match is_installed("fish") {
        true => {
            let script = "cohabit completions fish | source; complete -C 'cohabit cancel '";
            let offered = in_shell(&cluster, &state, "fish", &["--no-config", "-c", script]);
            assert!(offered.contains(&format!("{job}\ttrain-net, RUNNING")), "{offered}");
        }
        false => say("skipped: there is no fish"),
    }
    match is_installed("zsh") {
        true => {
            let script = "autoload -Uz compinit && compinit -u -D; source <(cohabit completions zsh); \
                          print -r -- $_comps[cohabit]";
            let registered = in_shell(&cluster, &state, "zsh", &["-f", "-c", script]);
            assert!(registered.contains("_clap_dynamic_completer_cohabit"), "{registered}");
        }
        false => say("skipped: there is no zsh"),
    }
}
