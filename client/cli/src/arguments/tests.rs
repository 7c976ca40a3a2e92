//! Snapshots of help texts, and errors on wrong command lines.

use clap::CommandFactory as _;

use super::*;

fn parse(words: &str) -> Result<Verb, clap::Error> {
    CommandLine::try_parse_from(["cohabit"].into_iter().chain(words.split_whitespace())).map(|line| line.verb)
}

fn refusal(words: &str) -> String {
    parse(words).unwrap_err().to_string()
}

/// The help of a command, as on a terminal that is 100 columns wide.
fn help(path: &[&str]) -> String {
    let mut command = help_command(100);
    let found = path.iter().fold(&mut command, |command, name| command.find_subcommand_mut(name).unwrap());
    found.render_help().to_string()
}

#[test]
fn the_definitions_are_sound() {
    CommandLine::command().debug_assert();
}

#[test]
fn help_texts_are_reviewed() {
    insta::assert_snapshot!("help_submit", help(&["submit"]));
    insta::assert_snapshot!("help_list", help(&["list"]));
    insta::assert_snapshot!("help_cancel", help(&["cancel"]));
    insta::assert_snapshot!("help_logs", help(&["logs"]));
    insta::assert_snapshot!("help_applications", help(&["applications"]));
    insta::assert_snapshot!("help_actors", help(&["actors"]));
    #[cfg(feature = "demo")]
    insta::assert_snapshot!("help", help(&[]));
    #[cfg(feature = "simulate")]
    insta::assert_snapshot!("help_simulate", help(&["simulate"]));
    #[cfg(feature = "head")]
    insta::assert_snapshot!("help_head_start", help(&["head", "start"]));
    #[cfg(feature = "predict")]
    insta::assert_snapshot!("help_predict_train", help(&["predict", "train"]));
    #[cfg(feature = "worker")]
    insta::assert_snapshot!("help_profile", help(&["profile"]));
    #[cfg(feature = "worker")]
    insta::assert_snapshot!("help_worker_start", help(&["worker", "start"]));
}

#[test]
fn help_names_every_setting() {
    let help = after_help();
    for key in SettingKey::ALL {
        let ends = [',', ' ', ';', '.'];
        assert!(ends.iter().any(|end| help.contains(&format!("{}{end}", key.name()))), "{}", key.name());
    }
}

#[test]
fn every_command_has_a_help_text() {
    for command in CommandLine::command().get_subcommands() {
        assert!(command.get_about().is_some(), "{}", command.get_name());
    }
}

#[test]
fn a_misspelling_is_answered_with_a_suggestion() {
    assert!(refusal("submit --gpu-memory 2G x").contains("'--gpu-mem'"));
    assert!(refusal("lst").contains("'list'"));
    assert!(refusal("list --outptu json").contains("'--output'"));
}

#[test]
fn errors_on_wrong_values_say_how_to_write_them() {
    for (words, advice) in [
        ("submit --gpus 1.5 x", "ask for 0.5, 1 or 2"),
        ("submit --time 90 x", "90s for seconds"),
        ("submit --array 5-1 x", "write 1-5"),
        ("submit --mem lots x", "like 20G"),
        ("submit --begin later x", "now+1h"),
        ("submit --depends-on after:3 x", "afterok, afterany or afternotok"),
        ("submit --stop-signal NOPE x", "SIGUSR1@60s"),
        ("submit --launch many x", "per-node, per-gpu"),
        ("submit", "<CMD>"),
        ("show", "<ID>"),
        ("actors", "<APP>"),
        ("applications --all --user ada", "cannot be used with"),
        ("show 1.x", "is not a job"),
        ("list --state SLEEPING", "PENDING"),
        ("token create --role king", "worker, user, admin"),
        ("logs --tail x 1", "--tail"),
        ("submit --snapshot=some x", "git, all, no"),
        ("code 12 --extract there --stat", "cannot be used with"),
    ] {
        let refusal = refusal(words);
        assert!(refusal.contains(advice), "{words}: {refusal}");
    }
}

#[test]
fn list_takes_states_or_the_path_of_a_state_directory() {
    let Ok(Verb::List(arguments)) = parse("list --state running,failed --state ./here") else { panic!() };
    assert_eq!(arguments.states().len(), 2);
    assert_eq!(arguments.connection().state, Some("./here".into()));
}

#[test]
fn a_change_takes_states_or_the_path_of_a_state_directory() {
    let Ok(Verb::Cancel(arguments)) = parse("cancel --force --state running --state ./here") else {
        panic!()
    };
    assert_eq!(arguments.change.selection.states(), [cohabit_client::types::JobState::Running]);
    assert_eq!(arguments.change.connection().state, Some("./here".into()));
    assert!(refusal("hold --state SLEEPING").contains("PENDING"));
}

#[test]
fn list_has_the_usual_aliases() {
    for words in ["list", "ls", "queue"] {
        assert!(matches!(parse(words), Ok(Verb::List(_))), "{words}");
    }
}

#[test]
fn dependencies_are_lists_or_repeated_flags() {
    let Ok(Verb::Submit(arguments)) = parse("submit -d 1,afterany:2 -d 3 x") else { panic!() };
    assert_eq!(arguments.submission.job.depends_on.len(), 3);
}

#[test]
fn the_snapshot_of_the_code_has_a_choice_after_an_equals_sign_only() {
    for (words, choice) in [
        ("submit x", None),
        ("submit --snapshot x", Some(SnapshotArgument::Git)),
        ("submit --snapshot=all x", Some(SnapshotArgument::All)),
        ("submit --snapshot --snapshot=no x", Some(SnapshotArgument::No)),
    ] {
        let Ok(Verb::Submit(arguments)) = parse(words) else { panic!("{words}") };
        assert_eq!(arguments.submission.job.snapshot, choice, "{words}");
        assert_eq!(arguments.submission.command, ["x"], "{words}");
    }
    assert_eq!(SnapshotArgument::parse("all"), Ok(SnapshotArgument::All));
    assert!(SnapshotArgument::parse("yes").unwrap_err().contains("write git, all or no"));
}
