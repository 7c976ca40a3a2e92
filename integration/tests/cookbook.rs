//! Carries out the example of "Add a policy" in CONTRIBUTING.md, word for word, in a copy of the repository.
//!
//! A step is a numbered item that creates a file, adds a block to one, replaces a piece of one, or runs a
//! command. Items in other words are for people.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A copy of every file that git knows or would add.
fn copy_repository() -> tempfile::TempDir {
    let output = Command::new("git")
        .current_dir(root())
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .expect("git runs");
    let copy = tempfile::tempdir().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    for name in names.split('\0').filter(|name| root().join(name).is_file()) {
        let to = copy.path().join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(root().join(name), to).unwrap();
    }
    copy
}

/// One step of the example.
#[derive(Debug, PartialEq)]
enum Step {
    Create { file: String, text: String },
    AddBefore { file: String, anchor: String, text: String },
    AddAtTheEnd { file: String, text: String },
    Replace { file: String, old: String, new: String },
    Run(String),
}

/// The numbered items of the section, each as one line of prose and its block of code.
fn items(section: &str) -> Vec<(String, String)> {
    let mut items: Vec<(String, String)> = Vec::new();
    let mut indent = None;
    for line in section.lines() {
        let begins = line.split_once(". ").filter(|(number, _)| number.parse::<u32>().is_ok());
        match (indent, begins) {
            (Some(by), _) if line.trim() != "```" => {
                let code = line.get(by..).unwrap_or_default();
                items.last_mut().unwrap().1 += &format!("{code}\n");
            }
            (Some(_), _) => indent = None,
            (None, Some((_, prose))) => items.push((prose.to_owned(), String::new())),
            (None, None) if line.trim() == "```rust" => indent = Some(line.len() - line.trim_start().len()),
            (None, None) => {
                if let Some((prose, _)) = items.last_mut() {
                    *prose += " ";
                    *prose += line.trim();
                }
            }
        }
    }
    items
}

/// What an item tells to do, if it is in the words of a step.
fn step((prose, text): &(String, String)) -> Option<Step> {
    // Code between backticks may contain anything but a backtick, and keeps its leading spaces.
    let quoted: Vec<&str> = prose.split('`').skip(1).step_by(2).collect();
    let words: Vec<&str> = prose.split('`').step_by(2).map(str::trim).collect();
    let text = text.clone();
    let own = |index: usize| quoted[index].to_owned();
    let last =
        words.iter().position(|it| it.ends_with("Create") || it.ends_with("In") || it.ends_with("Run"))?;
    match words.get(last + 1).copied()? {
        ":" => Some(Step::Create { file: own(last), text }),
        ", add before" => Some(Step::AddBefore { file: own(last), anchor: own(last + 1), text }),
        ", add at the end:" => Some(Step::AddAtTheEnd { file: own(last), text }),
        ", replace" => Some(Step::Replace { file: own(last), old: own(last + 1), new: own(last + 2) }),
        "." => Some(Step::Run(own(last))),
        _ => None,
    }
}

fn steps() -> Vec<Step> {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let section = text.split("## Add a policy").nth(1).expect("there is the section");
    items(section.split("\n## ").next().unwrap()).iter().filter_map(step).collect()
}

/// Puts `text` in place of what `edit` finds, which must be there once.
fn edit(path: &Path, old: &str, new: &str) {
    let before = std::fs::read_to_string(path).unwrap();
    assert_eq!(before.matches(old).count(), 1, "{} has this once: {old}", path.display());
    std::fs::write(path, before.replacen(old, new, 1)).unwrap();
}

fn carry_out(step: &Step, copy: &Path) {
    match step {
        Step::Create { file, text } => std::fs::write(copy.join(file), text).unwrap(),
        Step::AddBefore { file, anchor, text } => {
            edit(&copy.join(file), &format!("{anchor}\n"), &format!("{text}{anchor}\n"));
        }
        Step::AddAtTheEnd { file, text } => {
            let before = std::fs::read_to_string(copy.join(file)).unwrap();
            std::fs::write(copy.join(file), before + text).unwrap();
        }
        Step::Replace { file, old, new } => edit(&copy.join(file), old, new),
        Step::Run(command) => run(command, copy),
    }
}

fn run(command: &str, copy: &Path) {
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("cargo"));
    // Libraries that are built already need not be built again.
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let output = Command::new(env!("CARGO"))
        .current_dir(copy)
        .args(words)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {printed}{complaint}");
    assert!(printed.contains("test result: ok. 1 passed"), "{command}: {printed}");
}

#[test]
fn a_policy_is_added_as_contributing_describes() {
    let copy = copy_repository();
    let steps = steps();
    assert!(steps.len() >= 7, "the example has {} steps: {steps:#?}", steps.len());
    assert!(matches!(steps.last(), Some(Step::Run(_))), "the example ends with a test");
    for step in &steps {
        carry_out(step, copy.path());
    }
}
