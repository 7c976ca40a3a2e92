//! The SDK's examples, run as programs against a real cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::*;

/// The path of an example that `cargo test --workspace` has built.
fn example(name: &str) -> PathBuf {
    let example = binary().with_file_name("examples").join(name);
    assert!(example.exists(), "{} is missing: run `cargo test --workspace`", example.display());
    example
}

/// Runs the example. Returns its stdout, then its stderr.
fn run(cluster: &Cluster, name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(example(name));
    command.env_clear().env("PATH", std::env::var("PATH").unwrap()).env("HOME", cluster.folder());
    command.env("COHABIT_STATE", cluster.folder().join("head")).current_dir(cluster.folder());
    let output = command.args(arguments).output().unwrap();
    let ran = CommandOutput::from(output);
    assert_eq!(ran.code, 0, "{name} failed: {}", ran.stderr);
    ran.stdout + &ran.stderr
}

#[test]
fn a_program_submits_and_follows_a_job() {
    let cluster = Cluster::start(&["host:1"]);
    let printed = run(&cluster, "submit_and_follow", &["sh", "-c", "echo trained"]);
    assert!(printed.contains("trained") && printed.contains("COMPLETED"), "{printed}");
}

#[test]
fn a_sweep_finds_the_best_learning_rate() {
    let cluster = Cluster::start(&["host:2"]);
    let digits = binary().with_file_name("digits").display().to_string();
    let printed = run(&cluster, "sweep", &[&digits, "--epochs", "3"]);
    assert!(printed.contains("best"), "{printed}");
}

/// A place in which a program looks for its head, and what is there.
struct ConfiguredPlace {
    name: &'static str,
    variables: Vec<(&'static str, String)>,
    /// `./cohabit.toml`
    near: String,
    /// `~/.config/cohabit/config.toml`
    of_user: String,
}

/// What this program says in this place.
fn run_in(place: &ConfiguredPlace, folder: &Path, program: &Path, arguments: &[&str]) -> CommandOutput {
    std::fs::create_dir_all(folder.join(".config/cohabit")).unwrap();
    std::fs::write(folder.join("cohabit.toml"), &place.near).unwrap();
    std::fs::write(folder.join(".config/cohabit/config.toml"), &place.of_user).unwrap();
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var("PATH").unwrap()).env("HOME", folder).current_dir(folder);
    command.envs(place.variables.iter().map(|(name, value)| (*name, value.as_str())));
    CommandOutput::from(command.args(arguments).output().unwrap())
}

#[test]
fn programs_and_the_command_line_find_the_same_head_in_every_place() {
    let cluster = Cluster::start(&["host:1"]);
    let (state, token) = (cluster.path("head"), cluster.path("head/admin.token"));
    let head = cluster.address();
    let right = format!("head = '{head}'\ntoken-file = '{token}'\n");
    let of_state = format!("state = '{state}'\n");
    // Nothing listens there: whoever takes it over a better place fails.
    let wrong = "head = '127.0.0.1:1'\ntoken-file = '/nonexistent/token'\n".to_owned();
    let place = |name, variables, near: &str, of_user: &str| ConfiguredPlace {
        name,
        variables,
        near: near.to_owned(),
        of_user: of_user.to_owned(),
    };
    let named = vec![("COHABIT_HEAD", head.clone()), ("COHABIT_TOKEN_FILE", token.clone())];
    let by_state = vec![("COHABIT_STATE", state.clone())];
    let places = [
        place("variables", named, &wrong, &wrong),
        place("the variable of a state directory", by_state, &wrong, &wrong),
        place("the file in the present directory", Vec::new(), &right, &wrong),
        place("its key of a state directory", Vec::new(), &of_state, &wrong),
        place("the file of the user", Vec::new(), "", &right),
    ];
    let folder = tempfile::tempdir().unwrap();
    for place in places {
        let line = run_in(&place, folder.path(), &binary(), &["nodes", "--output", "json"]);
        assert_eq!(line.code, 0, "{}: {}", place.name, line.stderr);
        let program = run_in(&place, folder.path(), &example("submit_and_follow"), &["echo", "found"]);
        assert!(program.code == 0 && program.stdout.contains("found"), "{}: {}", place.name, program.stderr);
    }
    let misspelt = place("a wrong key", Vec::new(), "state = 'here'\ntoken_file = 'x'\n", "");
    for (program, arguments) in [(binary(), &["nodes"][..]), (example("submit_and_follow"), &["true"][..])] {
        let refused = run_in(&misspelt, folder.path(), &program, arguments);
        assert_ne!(refused.code, 0);
        let expected = "cohabit.toml:2: there is no setting 'token_file'; did you mean 'token-file'?";
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}
