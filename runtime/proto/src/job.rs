//! What a user submits: the job specification.
//!
//! A specification is checked once, at the edge that wrote it (`JobSpec::check`), and never changed
//! afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{Demand, JobId, ModelDescription, Span, Time};

/// Everything the cluster needs to know to run a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people; need not be unique.
    pub name: String,
    /// What is run.
    pub work: Work,
    /// What it needs.
    pub demand: Demand,
    /// How its ranks are started.
    pub launch: Launch,
    /// Absolute path of the folder it starts in, on the worker.
    pub workdir: String,
    /// Variables added to the clean environment that a worker gives to jobs.
    pub environment: BTreeMap<String, String>,
    /// Members, if this is an array.
    pub array: Option<Array>,
    /// Jobs that have to end first.
    pub depends_on: Vec<Dependency>,
    /// Not before this time.
    pub begin: Option<Time>,
    /// The larger, the earlier; 0 unless said.
    pub priority: i32,
    /// How long one attempt may run.
    pub time_limit: Option<Span>,
    /// What happens after a failure.
    pub retry: Retry,
    /// How an attempt is stopped.
    pub stop: Stop,
    /// Jobs that recur carry the same group; estimates learn from earlier members.
    pub group: Option<String>,
    /// What is trained.
    pub model: Option<ModelDescription>,
    /// Training iterations, where the user knows them.
    pub iterations: Option<u64>,
    /// Folder for checkpoints; without it the worker makes one that all attempts on it share.
    pub checkpoint: Option<String>,
    /// Whether it waits for a release before it may run.
    pub held: bool,
    /// Whether ranks also get `SLURM_*` names for what `COHABIT_*` says.
    pub slurm_environment: bool,
}

/// What a job runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A program with arguments.
    Command(Command),
    /// A function that a Rust program registered; not yet run by workers.
    Function(FunctionWork),
    /// A long-lived actor that a Rust program registered; not yet run by workers.
    Actor(ActorWork),
}

/// A program with arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Program, then arguments; never empty.
    pub argv: Vec<String>,
    /// The text of the script that `argv[0]` names, as it was at submission: later edits do not change the
    /// job.
    pub script: Option<String>,
}

/// A call of a registered function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionWork {
    /// The registered name.
    pub name: String,
    /// The encoded argument.
    pub argument: Vec<u8>,
}

/// A named, supervised actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorWork {
    /// The registered type.
    pub name: String,
    /// The encoded initial state.
    pub state: Vec<u8>,
}

/// How the ranks of an attempt are started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Launch {
    /// One rank on each node, holding all devices there; the command is its own launcher.
    #[default]
    PerNode,
    /// One rank for each device.
    PerGpu,
}

/// The members of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// Their indices, as written: `1-100`, `0-9:3`, `4`.
    pub ranges: Vec<IndexRange>,
    /// How many may run at once; no limit without it.
    pub at_once: Option<u32>,
}

/// Indices from `first` to `last`, both included, `step` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexRange {
    /// The first index.
    pub first: u32,
    /// The last index, if `step` meets it.
    pub last: u32,
    /// At least 1.
    pub step: u32,
}

/// One member for each index, all at once if there is room.
impl From<RangeInclusive<u32>> for Array {
    fn from(indices: RangeInclusive<u32>) -> Array {
        let (first, last) = indices.into_inner();
        Array { ranges: vec![IndexRange { first, last, step: 1 }], at_once: None }
    }
}

impl Array {
    /// The largest number of members that one array may have.
    pub const MAX_MEMBERS: u64 = 1_000_000;

    /// All indices in the order written.
    pub fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|range| (range.first..=range.last).step_by(range.step.max(1) as usize))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        let members = |range: &IndexRange| match range.last.checked_sub(range.first) {
            Some(width) => u64::from(width / range.step.max(1)) + 1,
            None => 0,
        };
        self.ranges.iter().map(members).sum()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A job that has to end before another may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The earlier job; an array as a whole, if it is one.
    pub job: JobId,
    /// How it has to end.
    pub when: When,
}

/// How an earlier job has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// COMPLETED.
    AfterOk,
    /// In any way.
    AfterAny,
    /// In any way but COMPLETED.
    AfterNotOk,
}

/// What happens after an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How many more attempts a failing job gets. Attempts lost with their node or stopped by us do not
    /// count.
    pub limit: u32,
    /// Pause before the first retry; it doubles each time.
    pub backoff: Span,
    /// The longest pause.
    pub backoff_cap: Span,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { limit: 0, backoff: Span::from_secs(5), backoff_cap: Span::from_secs(600) }
    }
}

impl Retry {
    /// The pause before retry number `retry`, from 1: the back-off doubled for each earlier one, up to the
    /// cap.
    #[must_use]
    pub fn pause(&self, retry: u32) -> Span {
        let doublings = retry.saturating_sub(1).min(40);
        (self.backoff * (1 << doublings)).min(self.backoff_cap)
    }
}

/// How an attempt is stopped: warning signal, SIGTERM, grace, SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Sent ahead of SIGTERM, where asked for.
    pub warning: Option<Warning>,
    /// From SIGTERM to SIGKILL.
    pub grace: Span,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop { warning: None, grace: Span::from_secs(30) }
    }
}

/// The signal that announces a stop, and how long before SIGTERM it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Which signal.
    pub signal: Signal,
    /// How long before SIGTERM.
    pub before: Span,
}

/// A signal by its Linux number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(pub i32);

impl Signal {
    /// Hang-up.
    pub const HUP: Signal = Signal(1);
    /// Interrupt.
    pub const INT: Signal = Signal(2);
    /// Kill: cannot be caught.
    pub const KILL: Signal = Signal(9);
    /// First user signal.
    pub const USR1: Signal = Signal(10);
    /// Second user signal.
    pub const USR2: Signal = Signal(12);
    /// Polite request to end.
    pub const TERM: Signal = Signal(15);
    /// Go on after a stop.
    pub const CONT: Signal = Signal(18);

    const NAMES: [(&str, Signal); 13] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal(3)),
        ("ILL", Signal(4)),
        ("ABRT", Signal(6)),
        ("BUS", Signal(7)),
        ("FPE", Signal(8)),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("SEGV", Signal(11)),
        ("USR2", Signal::USR2),
        ("TERM", Signal::TERM),
        ("CONT", Signal::CONT),
    ];

    /// The signal with this name, with or without `SIG`, or this number.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Signal> {
        let upper = name.to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        let named = Signal::NAMES.iter().find(|(known, _)| *known == bare).map(|(_, signal)| *signal);
        named.or_else(|| bare.parse().ok().filter(|n| (1..=64).contains(n)).map(Signal))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Signal::NAMES.iter().find(|(_, signal)| signal == self) {
            Some((name, _)) => write!(f, "SIG{name}"),
            None => write!(f, "signal {}", self.0),
        }
    }
}

impl Work {
    /// One line for people: the command as typed, or the registered name.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Work::Command(command) => command.argv.join(" "),
            Work::Function(function) => format!("function {}", function.name),
            Work::Actor(actor) => format!("actor {}", actor.name),
        }
    }
}

impl JobSpec {
    /// A job that runs this command with default settings: one device, one node, no retries.
    #[must_use]
    pub fn command(argv: Vec<String>, workdir: String) -> JobSpec {
        let name = argv.first().map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
        JobSpec {
            name: name.unwrap_or_default(),
            work: Work::Command(Command { argv, script: None }),
            demand: Demand::default(),
            launch: Launch::default(),
            workdir,
            environment: BTreeMap::new(),
            array: None,
            depends_on: Vec::new(),
            begin: None,
            priority: 0,
            time_limit: None,
            retry: Retry::default(),
            stop: Stop::default(),
            group: None,
            model: None,
            iterations: None,
            checkpoint: None,
            held: false,
            slurm_environment: false,
        }
    }

    /// Refuses what can never be run, in words for the person who wrote it.
    ///
    /// # Errors
    /// What is wrong and what to do.
    pub fn check(&self) -> Result<(), String> {
        self.check_work()?;
        self.demand.check()?;
        if !self.workdir.starts_with('/') {
            return Err(format!(
                "the working directory '{}' is not absolute: give the full path",
                self.workdir
            ));
        }
        if let Some(name) = self.environment.keys().find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            return Err(format!("'{name}' cannot be the name of an environment variable"));
        }
        if self.time_limit == Some(Span::ZERO) {
            return Err("a time limit of zero would stop the job at once: leave it out for no limit".into());
        }
        self.array.as_ref().map_or(Ok(()), Array::check)
    }

    fn check_work(&self) -> Result<(), String> {
        let Work::Command(command) = &self.work else {
            return Err("workers run commands only so far: submit a command".into());
        };
        match command.argv.first() {
            None => Err("there is no command to run: write it after the flags".into()),
            Some(program) if program.is_empty() => Err("the command's name is empty".into()),
            Some(_) if command.argv.iter().any(|arg| arg.contains('\0')) => {
                Err("a command cannot contain a NUL character".into())
            }
            Some(_) => Ok(()),
        }
    }
}

impl Array {
    fn check(&self) -> Result<(), String> {
        if self.at_once == Some(0) {
            return Err("an array with a limit of %0 would never run: give at least %1".into());
        }
        match self.len() {
            0 => Err("the array has no members: give at least one index, like 0-9".into()),
            n if n > Array::MAX_MEMBERS => Err(format!(
                "the array has {n} members, the most is {}: split it into several",
                Array::MAX_MEMBERS
            )),
            _ => self.check_distinct(),
        }
    }

    fn check_distinct(&self) -> Result<(), String> {
        let mut indices: Vec<u32> = self.indices().collect();
        indices.sort_unstable();
        match indices.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("the array names index {} twice", pair[0])),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> JobSpec {
        JobSpec::command(vec!["/bin/sleep".into(), "1".into()], "/tmp".into())
    }

    fn array(ranges: &[(u32, u32, u32)]) -> Array {
        let range = |&(first, last, step): &(u32, u32, u32)| IndexRange { first, last, step };
        Array { ranges: ranges.iter().map(range).collect(), at_once: None }
    }

    #[test]
    fn an_array_counts_what_it_lists() {
        for ranges in [&[(0, 9, 3)][..], &[(1, 1, 1), (5, 7, 1)], &[(0, 10, 5)], &[(3, 2, 1)]] {
            let array = array(ranges);
            assert_eq!(array.len(), array.indices().count() as u64, "{ranges:?}");
        }
    }

    #[test]
    fn a_job_that_can_never_run_is_refused_in_words() {
        let refused = |change: fn(&mut JobSpec)| {
            let mut spec = sleeper();
            change(&mut spec);
            spec.check().unwrap_err()
        };
        assert_eq!(sleeper().check(), Ok(()));
        assert!(refused(|spec| spec.workdir = "here".into()).contains("not absolute"));
        assert!(refused(|spec| spec.time_limit = Some(Span::ZERO)).contains("zero"));
        assert!(refused(|spec| spec.array = Some(array(&[(3, 2, 1)]))).contains("no members"));
        assert!(refused(|spec| spec.array = Some(array(&[(0, 4, 2), (4, 4, 1)]))).contains("twice"));
        assert!(refused(|spec| spec.array = Some(array(&[(0, u32::MAX, 1)]))).contains("split it"));
        assert!(refused(|spec| spec.work = JobSpec::command(vec![], "/".into()).work).contains("no command"));
    }

    #[test]
    fn the_pause_doubles_up_to_its_cap() {
        let retry = Retry { limit: 9, backoff: Span::from_secs(5), backoff_cap: Span::from_secs(60) };
        let pauses: Vec<u64> = (1..=6).map(|n| retry.pause(n).as_micros() / 1_000_000).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
    }

    #[test]
    fn signals_go_by_name_and_number() {
        assert_eq!(Signal::by_name("SIGUSR1"), Some(Signal::USR1));
        assert_eq!(Signal::by_name("term"), Some(Signal::TERM));
        assert_eq!(Signal::by_name("64"), Some(Signal(64)));
        assert_eq!(Signal::by_name("65"), None);
        assert_eq!(Signal::USR1.to_string(), "SIGUSR1");
    }
}
