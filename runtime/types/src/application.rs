//! Applications: a job of a Rust program that calls itself in further jobs.
//!
//! The root job of an application runs its coordinator, and its children run its code. All run the same
//! program file, a code snapshot that the head stores by its hash, and belong to one attempt of the root:
//! its end ends them.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex::{from_hex, to_hex};
use crate::{AttemptId, CodeSnapshot, JobId, JobState, Share, Time};

/// The longest name of an application, in bytes.
const LONGEST_NAME: usize = 128;

/// The longest name of a file, in bytes.
const LONGEST_FILE_NAME: usize = 255;

/// What the root job of an application runs: the coordinator of its program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ApplicationWork {
    /// The file name of the program, the one file of the job's code snapshot.
    pub program: String,
    /// What its `main` gets as arguments, without the name of the program.
    pub arguments: Vec<String>,
    /// How many GPUs its runners may hold together; as many as there are without it.
    pub max_gpus: Option<u32>,
}

/// What a child job of an application runs: a part of its code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunnerWork {
    /// The attempt of the root job to which it belongs.
    pub application: AttemptId,
    /// The file name of the program, which is that of the root.
    pub program: String,
    /// What it runs of it.
    pub role: RunnerRole,
    /// The arguments of the program, without its name.
    pub arguments: Vec<String>,
}

/// What a child job of an application runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunnerRole {
    /// The program's `main`.
    Main,
    /// One actor, with the share of the job.
    Actor,
    /// Tasks, one after another, with the share of the job.
    Tasks,
}

impl RunnerRole {
    /// All roles.
    pub const ALL: [RunnerRole; 3] = [RunnerRole::Main, RunnerRole::Actor, RunnerRole::Tasks];

    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            RunnerRole::Main => "main",
            RunnerRole::Actor => "actor",
            RunnerRole::Tasks => "tasks",
        }
    }
}

/// What a process of an application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApplicationRole {
    /// The process of the root job, which owns the leases, actors and objects of the application.
    Coordinator,
    /// A process that runs code of the application.
    Runner(RunnerRole),
}

impl ApplicationRole {
    /// The variable that tells a process its role. Where it is set, standard input has an
    /// [`ApplicationAccess`].
    pub const VARIABLE: &'static str = "COHABIT_APPLICATION_ROLE";

    const ALL: [ApplicationRole; 4] = [
        ApplicationRole::Coordinator,
        ApplicationRole::Runner(RunnerRole::Main),
        ApplicationRole::Runner(RunnerRole::Actor),
        ApplicationRole::Runner(RunnerRole::Tasks),
    ];

    /// The value of the variable.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ApplicationRole::Coordinator => "coordinator",
            ApplicationRole::Runner(role) => role.as_str(),
        }
    }

    /// The role with this value of the variable.
    #[must_use]
    pub fn parse(word: &str) -> Option<ApplicationRole> {
        ApplicationRole::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

/// 256 bits that the processes of one attempt of an application share, and nobody else. `Debug` hides them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ApplicationSecret(pub [u8; 32]);

/// What the head gives to the processes of an application, beside their orders. `Debug` hides the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationCredentials {
    /// By which its processes know each other.
    pub secret: ApplicationSecret,
    /// With which the coordinator submits and ends runners; other processes have none.
    pub token: Option<String>,
}

/// What a process of an application finds on its standard input, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationAccess {
    /// The attempt of the root job.
    pub application: AttemptId,
    /// The attempt of its own job.
    pub member: AttemptId,
    /// What the head gave for it.
    pub credentials: ApplicationCredentials,
    /// The program of the application, as its jobs name it.
    pub code: CodeSnapshot,
    /// The address of the head, `host:port`.
    pub head: String,
    /// The directory for the sockets of the application's processes on this node. Only its account enters it.
    pub directory: PathBuf,
    /// How many GPUs, or devices that stand for them, this node has for jobs.
    pub gpus: u32,
}

/// An application that runs, or waits to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationRecord {
    /// The root job.
    pub job: JobId,
    /// Its name, unique among the live applications of its user.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// The state of the root job.
    pub state: JobState,
    /// The attempt of the root job that runs.
    pub attempt: Option<AttemptId>,
    /// Its program: a snapshot of one file.
    pub code: Option<CodeSnapshot>,
    /// The file name of its program.
    pub program: String,
    /// Its child jobs that have not ended, by number.
    pub runners: Vec<JobId>,
    /// The child jobs of the running attempt that run, or ran, its `main`, by number.
    pub mains: Vec<JobId>,
    /// How many of its child jobs that have not ended do what; none of a role without any.
    pub counts: Vec<RunnerCount>,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When the running attempt started.
    pub started_at: Option<Time>,
    /// The node of the running attempt.
    pub node: Option<String>,
    /// The GPUs that its child jobs hold together.
    pub gpus: Share,
    /// The GPUs that they may hold together, if that is limited.
    pub max_gpus: Option<u32>,
}

/// How many child jobs of an application have one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerCount {
    /// The role.
    pub role: RunnerRole,
    /// How many of them have a place.
    pub placed: u32,
    /// How many wait.
    pub waiting: u32,
}

impl ApplicationWork {
    /// Refuses an application with this name that can never run.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains(char::is_control) {
            return Err(format!(
                "an application needs a name of 1 to {LONGEST_NAME} bytes without control characters: give \
                 #[cohabit::main(name = \"…\")]"
            ));
        }
        check_program(&self.program, &self.arguments)
    }
}

impl RunnerWork {
    pub(crate) fn check(&self) -> Result<(), String> {
        check_program(&self.program, &self.arguments)
    }
}

fn check_program(program: &str, arguments: &[String]) -> Result<(), String> {
    let is_directory = ["", ".", ".."].contains(&program);
    if is_directory || program.len() > LONGEST_FILE_NAME || program.contains(['/', '\0']) {
        return Err(format!(
            "'{program}' cannot be the file name of a program: give a name without directories"
        ));
    }
    match arguments.iter().any(|argument| argument.contains('\0')) {
        true => Err("an argument cannot contain a NUL character".into()),
        false => Ok(()),
    }
}

impl fmt::Debug for ApplicationSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApplicationSecret")
    }
}

impl fmt::Debug for ApplicationCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApplicationCredentials")
    }
}

/// As text in JSON, and as bytes on links.
impl Serialize for ApplicationSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.serialize_str(&to_hex(&self.0)),
            false => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ApplicationSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ApplicationSecret, D::Error> {
        if !deserializer.is_human_readable() {
            return Ok(ApplicationSecret(<[u8; 32]>::deserialize(deserializer)?));
        }
        let digits = String::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("the secret of an application has 64 hexadecimal digits");
        from_hex(&digits).map(ApplicationSecret).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, ContentHash};

    fn access() -> ApplicationAccess {
        ApplicationAccess {
            application: JobId::new(3).attempt(1),
            member: JobId::new(4).attempt(2),
            credentials: ApplicationCredentials {
                secret: ApplicationSecret([7; 32]),
                token: Some("cohabit1.aa.bb".into()),
            },
            code: CodeSnapshot {
                manifest: ContentHash([1; 32]),
                folder: "/target".into(),
                files: 1,
                bytes: Bytes(1),
            },
            head: "127.0.0.1:7070".into(),
            directory: "/run/sockets".into(),
            gpus: 2,
        }
    }

    #[test]
    fn an_access_comes_back_from_its_json_and_does_not_show_its_secrets() {
        let text = serde_json::to_string(&access()).unwrap();
        assert!(text.contains(&"07".repeat(32)), "{text}");
        assert_eq!(serde_json::from_str::<ApplicationAccess>(&text).unwrap(), access());
        let shown = format!("{:?}", access());
        assert!(!shown.contains("cohabit1") && !shown.contains("0707"), "{shown}");
    }

    #[test]
    fn a_role_comes_back_from_its_variable() {
        for role in ApplicationRole::ALL {
            assert_eq!(ApplicationRole::parse(role.as_str()), Some(role));
        }
        assert_eq!(ApplicationRole::parse("worker"), None);
    }

    #[test]
    fn an_application_that_can_never_run_is_refused() {
        let work = ApplicationWork { program: "search".into(), arguments: vec![], max_gpus: None };
        assert_eq!(work.check("search"), Ok(()));
        assert!(work.check("").unwrap_err().contains("needs a name"));
        for program in ["", ".", "..", "a/b", "a\0b"] {
            let refused = ApplicationWork { program: program.into(), ..work.clone() }.check("a").unwrap_err();
            assert!(refused.contains("file name of a program"), "{refused}");
        }
        let nul = ApplicationWork { arguments: vec!["a\0".into()], ..work };
        assert!(nul.check("a").unwrap_err().contains("NUL"));
    }
}
