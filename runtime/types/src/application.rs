//! Applications: a job of a Rust program that calls itself in further jobs.
//!
//! The root job of an application runs its coordinator, and its children run its code. All run the same
//! program file, a code snapshot that the head stores by its hash, and belong to one attempt of the root:
//! its end ends them.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex::{from_hex, to_hex};
use crate::{AttemptId, CodeSnapshot, Demand, JobId, JobState, RankId, Rendezvous, Share, Time};

/// The longest name of an application, in bytes.
const LONGEST_NAME: usize = 128;

/// The longest name of a node, in bytes.
const LONGEST_NODE_NAME: usize = 255;

/// Most ranks of a gang.
const MOST_RANKS: u32 = 1_000;

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
    /// The name of the one node on which it may run: that of a store, and of nothing else.
    pub node: Option<String>,
    /// How many processes it has: the actors of a gang; 1 of everything else.
    pub ranks: u32,
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
    /// The objects of a node that is not that of the coordinator; it claims nothing.
    Store,
}

impl RunnerRole {
    /// All roles.
    pub const ALL: [RunnerRole; 4] =
        [RunnerRole::Main, RunnerRole::Actor, RunnerRole::Tasks, RunnerRole::Store];

    /// In words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            RunnerRole::Main => "main",
            RunnerRole::Actor => "actor",
            RunnerRole::Tasks => "tasks",
            RunnerRole::Store => "store",
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

    const ALL: [ApplicationRole; 5] = [
        ApplicationRole::Coordinator,
        ApplicationRole::Runner(RunnerRole::Main),
        ApplicationRole::Runner(RunnerRole::Actor),
        ApplicationRole::Runner(RunnerRole::Tasks),
        ApplicationRole::Runner(RunnerRole::Store),
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
    /// The process itself: its job, attempt and rank.
    pub member: RankId,
    /// What the head gave for it.
    pub credentials: ApplicationCredentials,
    /// The program of the application, as its jobs name it.
    pub code: CodeSnapshot,
    /// The address of the head, `host:port`.
    pub head: String,
    /// The directory for the sockets of the application's processes on this node. Only its account enters it.
    pub directory: PathBuf,
    /// How many GPUs, or devices that stand for them, the nodes have on which its processes may run.
    pub gpus: u32,
    /// The name of this node.
    pub node: String,
    /// Where the coordinator and the stores of further nodes listen for processes of other nodes; none in
    /// other processes, and where the application stays within its node.
    pub port: Option<Rendezvous>,
    /// Where the coordinator listens for processes of other nodes; none where the application stays within
    /// its node.
    pub coordinator: Option<Rendezvous>,
    /// The name of the node of the coordinator.
    pub coordinator_node: String,
}

impl ApplicationAccess {
    /// The process of the coordinator.
    #[must_use]
    pub const fn coordinator_process(&self) -> RankId {
        self.application.rank(0)
    }
}

/// Where the processes of an application run, for those on one node.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationPlace {
    /// The name of this node.
    pub node: String,
    /// Where this process listens for those of other nodes: a coordinator, or the store of a further node.
    /// None in other processes, and where the application stays within its node.
    pub port: Option<Rendezvous>,
    /// Where the coordinator listens for processes of other nodes.
    pub coordinator: Option<Rendezvous>,
    /// The name of the node of the coordinator.
    pub coordinator_node: String,
    /// How many GPUs, or devices that stand for them, the nodes have on which its processes may run.
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
    /// Refuses a child with this demand, which starts so many ranks, that can never run.
    pub(crate) fn check(&self, demand: &Demand, started: u32) -> Result<(), String> {
        match (self.role, &self.node) {
            (RunnerRole::Store, Some(node)) => check_store(node, demand)?,
            (RunnerRole::Store, None) => return Err("a store needs the name of its node".into()),
            (RunnerRole::Main | RunnerRole::Actor | RunnerRole::Tasks, None) => {}
            (role @ (RunnerRole::Main | RunnerRole::Actor | RunnerRole::Tasks), Some(_)) => {
                let role = role.as_str();
                return Err(format!("only a store names its node, and this is a child of the role '{role}'"));
            }
        }
        self.check_ranks(started)?;
        check_program(&self.program, &self.arguments)
    }

    fn check_ranks(&self, started: u32) -> Result<(), String> {
        match (self.role, self.ranks) {
            (_, ranks) if ranks != started || !(1..=MOST_RANKS).contains(&ranks) => Err(format!(
                "a child of an application with {ranks} ranks demands what starts {started}: both have to be the same, from 1 to {MOST_RANKS}"
            )),
            (RunnerRole::Actor, _) | (_, 1) => Ok(()),
            (RunnerRole::Main | RunnerRole::Tasks | RunnerRole::Store, ranks) => {
                let role = self.role.as_str();
                Err(format!(
                    "only actors have several ranks, and this is a child of the role '{role}' with {ranks}"
                ))
            }
        }
    }
}

fn check_store(node: &str, demand: &Demand) -> Result<(), String> {
    if node.is_empty() || node.len() > LONGEST_NODE_NAME || node.contains(char::is_control) {
        return Err(format!(
            "'{}' cannot be the name of a node: it has 1 to {LONGEST_NODE_NAME} bytes without control \
             characters",
            node.escape_debug()
        ));
    }
    let claims = demand.devices() > 0 || demand.gpu_memory.is_some() || demand.claims_host();
    match claims {
        true => Err("a store claims nothing: no GPUs, no cores and no memory".into()),
        false => Ok(()),
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
    use crate::{Bytes, ContentHash, GpuRequest};

    fn access() -> ApplicationAccess {
        ApplicationAccess {
            application: JobId::new(3).attempt(1),
            member: JobId::new(4).attempt(2).rank(1),
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
            node: "n1".into(),
            port: None,
            coordinator: Some(Rendezvous { address: "n0".into(), port: 29_600 }),
            coordinator_node: "n0".into(),
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
    fn a_store_names_its_node_and_claims_nothing_and_nothing_else_names_one() {
        let nothing = Demand { gpus: GpuRequest::Whole(0), ..Demand::default() };
        let child = |role, node: Option<&str>| RunnerWork {
            application: JobId::new(3).attempt(1),
            program: "search".into(),
            role,
            arguments: vec![],
            node: node.map(str::to_owned),
            ranks: 1,
        };
        assert_eq!(child(RunnerRole::Store, Some("n1")).check(&nothing, 1), Ok(()));
        for demand in [
            Demand { gpus: GpuRequest::Part(Share(1)), ..nothing },
            Demand { cpus: 1, ..nothing },
            Demand { memory: Bytes(1), ..nothing },
        ] {
            let refused = child(RunnerRole::Store, Some("n1")).check(&demand, 1).unwrap_err();
            assert!(refused.contains("claims nothing"), "{refused}");
        }
        for node in [None, Some(""), Some("a\nb")] {
            assert!(child(RunnerRole::Store, node).check(&nothing, 1).is_err());
        }
        for role in [RunnerRole::Main, RunnerRole::Actor, RunnerRole::Tasks] {
            assert_eq!(child(role, None).check(&nothing, 1), Ok(()));
            let refused = child(role, Some("n1")).check(&nothing, 1).unwrap_err();
            assert!(refused.contains("only a store names its node"), "{refused}");
        }
    }

    #[test]
    fn a_gang_has_as_many_ranks_as_its_demand_starts_and_consists_of_actors() {
        let nothing = Demand { gpus: GpuRequest::Whole(0), ..Demand::default() };
        let gang = |role, ranks| RunnerWork {
            application: JobId::new(3).attempt(1),
            program: "search".into(),
            role,
            arguments: vec![],
            node: None,
            ranks,
        };
        assert_eq!(gang(RunnerRole::Actor, 4).check(&nothing, 4), Ok(()));
        for (ranks, started) in [(4, 1), (1, 4), (0, 0), (1_001, 1_001), (u32::MAX, u32::MAX)] {
            let refused = gang(RunnerRole::Actor, ranks).check(&nothing, started).unwrap_err();
            assert!(refused.contains(&format!("{ranks} ranks")), "{refused}");
        }
        for role in [RunnerRole::Main, RunnerRole::Tasks] {
            let refused = gang(role, 2).check(&nothing, 2).unwrap_err();
            assert!(refused.contains("only actors have several ranks"), "{refused}");
        }
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
