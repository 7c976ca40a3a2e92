//! What a job runs: a command, or a part of an application.

use serde::{Deserialize, Serialize};

use crate::{ApplicationRole, ApplicationWork, AttemptId, RunnerWork, quoted_command};

/// How the title of an application begins.
const APPLICATION_TITLE: &str = "application ";

/// The longest command, in bytes as typed, that is quoted for people.
const LONGEST_QUOTED: usize = 64 << 10;

/// What a job runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Entrypoint {
    /// A program with arguments.
    Command(Command),
    /// The coordinator of an application: its root job.
    Application(ApplicationWork),
    /// A part of the code of an application: a child of its root job.
    Runner(RunnerWork),
}

/// A program with arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// Program, then arguments; never empty.
    pub argv: Vec<String>,
    /// The text of the script that `argv[0]` names, as it was at submission: later edits do not change the
    /// job.
    pub script: Option<String>,
}

impl Entrypoint {
    /// What it runs, in one line: program and arguments with spaces between them, or the part of the
    /// application.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Entrypoint::Command(command) => command.argv.join(" "),
            Entrypoint::Application(work) => {
                format!("{APPLICATION_TITLE}{}", titled(&work.program, &work.arguments))
            }
            Entrypoint::Runner(work) => {
                format!("{} of application {}", work.role.as_str(), work.application.job)
            }
        }
    }

    /// A command as it can be typed into a shell, where that differs from its title, and is not too long.
    #[must_use]
    pub fn shell_command(&self) -> Option<String> {
        match self {
            Entrypoint::Command(command) => {
                let length = command.argv.iter().map(String::len).sum::<usize>();
                let quoted = || quoted_command(command.argv.iter().map(String::as_str));
                (length <= LONGEST_QUOTED).then(quoted).filter(|quoted| *quoted != self.title())
            }
            Entrypoint::Application(_) | Entrypoint::Runner(_) => None,
        }
    }

    /// What it runs, in one line for people: a command is quoted.
    #[must_use]
    pub fn command_line(&self) -> String {
        self.shell_command().unwrap_or_else(|| self.title())
    }

    /// Whether this may be the title of an application: that of a command may begin in the same way.
    #[must_use]
    pub fn is_application_title(title: &str) -> bool {
        title.starts_with(APPLICATION_TITLE)
    }

    /// Its role in an application, if it is a part of one.
    #[must_use]
    pub const fn role(&self) -> Option<ApplicationRole> {
        match self {
            Entrypoint::Command(_) => None,
            Entrypoint::Application(_) => Some(ApplicationRole::Coordinator),
            Entrypoint::Runner(work) => Some(ApplicationRole::Runner(work.role)),
        }
    }

    /// The attempt of the root job to which it belongs, if it is a child in an application.
    #[must_use]
    pub const fn parent(&self) -> Option<AttemptId> {
        match self {
            Entrypoint::Command(_) | Entrypoint::Application(_) => None,
            Entrypoint::Runner(work) => Some(work.application),
        }
    }

    /// The application to which an attempt of the job belongs, by the attempt of the root.
    #[must_use]
    pub const fn application_of(&self, attempt: AttemptId) -> Option<AttemptId> {
        match self {
            Entrypoint::Command(_) => None,
            Entrypoint::Application(_) => Some(attempt),
            Entrypoint::Runner(work) => Some(work.application),
        }
    }
}

fn titled(program: &str, arguments: &[String]) -> String {
    [program].into_iter().chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_where_its_words_are_not_clear_without() {
        let command = |argv: &[&str]| {
            Entrypoint::Command(Command {
                argv: argv.iter().map(|word| (*word).into()).collect(),
                script: None,
            })
        };
        assert_eq!(command(&["python", "train.py", "--lr=1"]).shell_command(), None);
        let quoted = command(&["python", "-c", "print(\"a b\")"]);
        assert_eq!(quoted.title(), "python -c print(\"a b\")");
        assert_eq!(quoted.command_line(), "python -c 'print(\"a b\")'");
        let long = command(&["echo", &"'".repeat(LONGEST_QUOTED)]);
        assert_eq!((long.shell_command(), long.command_line()), (None, long.title()));
    }
}
