//! What a script for Slurm, or the command line of `sbatch`, asks for, as flags of Cohabit.

use std::collections::BTreeMap;

use super::getopt::{ParsedWord, parse_words};
use super::resources;
use super::sbatch_options::{Meaning, SBATCH_OPTIONS, SbatchKey, SubmissionOption, option_names};
use super::values;
use crate::job_flags::check_flags;
use cohabit_settings::closest_name;

/// The options that were given, the last of each kind; those of the command line come after a script's.
#[derive(Debug, Default)]
pub(crate) struct SlurmRequest {
    given: BTreeMap<SbatchKey, GivenOption>,
    submission: Vec<(SubmissionOption, String)>,
    warnings: Vec<Remark>,
    errors: Vec<Remark>,
}

/// An option as it was given.
#[derive(Debug, Clone)]
pub(super) struct GivenOption {
    /// The line of the script; none on the command line.
    pub(super) line: Option<usize>,
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// What there is to say about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) line: Option<usize>,
    pub(crate) text: String,
}

/// What the options become.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    pub(crate) flags: Vec<String>,
    pub(crate) warnings: Vec<Remark>,
    pub(crate) errors: Vec<Remark>,
}

/// What the option before a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Known,
    Unknown,
}

impl SlurmRequest {
    /// Adds the words of a `#SBATCH` line.
    pub(crate) fn add_line(&mut self, line: usize, words: &[String]) {
        let mut rest = words;
        while let (Some(at), after) = self.add(Some(line), rest) {
            // What follows an option that nobody knows may be its value.
            if after == Before::Known {
                return self.refuse(Some(line), format!("'{}' is not an option of sbatch", rest[at]));
            }
            rest = &rest[at + 1..];
        }
    }

    /// Adds the words of the command line of `sbatch`. Returns the position of the script.
    pub(crate) fn add_command_line(&mut self, words: &[String]) -> Option<usize> {
        self.add(None, words).0
    }

    /// Adds the options at the begin. Returns the position of the first word that is none.
    fn add(&mut self, line: Option<usize>, words: &[String]) -> (Option<usize>, Before) {
        let mut before = Before::Known;
        for word in parse_words(words, &option_names()) {
            match word {
                ParsedWord::Operand(at) => return (Some(at), before),
                ParsedWord::Wrong(why) => self.refuse(line, why),
                ParsedWord::Unknown(name) => {
                    before = Before::Unknown;
                    self.unknown(line, &name);
                }
                ParsedWord::Known { position, name, value } => {
                    before = Before::Known;
                    self.add_known(line, position, GivenOption { line, name, value });
                }
            }
        }
        (None, before)
    }

    fn add_known(&mut self, line: Option<usize>, position: usize, option: GivenOption) {
        let name = &option.name;
        match SBATCH_OPTIONS[position].1 {
            Meaning::Ignored(why) => self.warn(line, format!("{name} has no effect: {why}")),
            Meaning::Submission(_) if line.is_some() => {
                self.warn(
                    line,
                    format!("{name} has no effect: it is for the command line of sbatch, remove it"),
                );
            }
            Meaning::Submission(meaning) => {
                self.submission.push((meaning, option.value.unwrap_or_default()));
            }
            Meaning::Job(key) => drop(self.given.insert(key, option)),
        }
    }

    /// In a script, it has no effect. On the command line, nobody can tell whether the next word is its value
    /// or the script.
    fn unknown(&mut self, line: Option<usize>, name: &str) {
        let long: Vec<String> = SBATCH_OPTIONS.iter().map(|(name, _)| format!("--{}", name.long)).collect();
        let advice = match closest_name(name, long.iter().map(String::as_str)) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => "remove it, or use flags of Cohabit".to_owned(),
        };
        match line {
            Some(_) => self.warn(line, format!("{name} has no effect, because it is unknown: {advice}")),
            None => self.refuse(line, format!("{name} is unknown: {advice}")),
        }
    }

    /// The value of an option of the command line, if it was given.
    pub(crate) fn submission(&self, option: SubmissionOption) -> Option<&str> {
        self.submission.iter().rev().find(|(given, _)| *given == option).map(|(_, value)| value.as_str())
    }

    /// Adds what another request says, which decides where both say something.
    pub(crate) fn override_with(&mut self, other: SlurmRequest) {
        let SlurmRequest { given, submission, warnings, errors } = other;
        self.given.extend(given);
        self.submission.extend(submission);
        self.warnings.extend(warnings);
        self.errors.extend(errors);
    }

    /// The flags of Cohabit. `names_gpus`: whether other flags say how many GPUs the job gets, which then
    /// decide.
    pub(crate) fn translate(mut self, names_gpus: bool) -> Translated {
        let mut flags = vec!["--slurm-env".to_owned()];
        for (key, option) in std::mem::take(&mut self.given) {
            match self.flags_of(key, &option) {
                None => drop(self.given.insert(key, option)),
                Some(Ok(of_option)) => match check_flags(&of_option) {
                    Ok(()) => flags.extend(of_option),
                    Err(why) => self.refuse(option.line, format!("{}: {why}", option.name)),
                },
                Some(Err(why)) => self.refuse(option.line, format!("{}: {why}", option.name)),
            }
        }
        flags.extend(resources::flags(&mut self, names_gpus));
        let by_line = |remark: &Remark| remark.line;
        self.warnings.sort_by_key(by_line);
        self.errors.sort_by_key(by_line);
        Translated { flags, warnings: self.warnings, errors: self.errors }
    }

    /// The flags of an option that depends on no other; none for those of `resources`.
    fn flags_of(&mut self, key: SbatchKey, option: &GivenOption) -> Option<Result<Vec<String>, String>> {
        let value = option.value.as_deref().unwrap_or_default();
        let flag = |name: &str| Ok(vec![name.to_owned(), value.to_owned()]);
        let named = |name: &str, value: Result<String, String>| Ok(vec![name.to_owned(), value?]);
        Some(match key {
            SbatchKey::JobName => flag("--name"),
            SbatchKey::Array => flag("--array"),
            SbatchKey::Chdir => flag("--workdir"),
            SbatchKey::Output => flag("--stdout"),
            SbatchKey::Error => flag("--stderr"),
            SbatchKey::Partition => flag("--partition"),
            SbatchKey::Export if option.value.is_none() => Ok(vec!["--export=ALL".into()]),
            SbatchKey::Export => Ok(vec![format!("--export={value}")]),
            SbatchKey::Hold => Ok(vec!["--hold".into()]),
            SbatchKey::Time => values::time_limit(value).map(|limit| {
                limit.map_or(Vec::new(), |seconds| vec!["--time".into(), format!("{seconds}s")])
            }),
            SbatchKey::Dependency => named("--depends-on", values::dependency(value)),
            SbatchKey::Begin => named("--begin", values::begin(value)),
            SbatchKey::Signal => self.signal(option, value),
            SbatchKey::Requeue => Ok(self.requeue(option)),
            SbatchKey::MailType => self.mail_type(option, value),
            SbatchKey::CpusPerTask
            | SbatchKey::CpusPerGpu
            | SbatchKey::Mem
            | SbatchKey::MemPerCpu
            | SbatchKey::MemPerGpu
            | SbatchKey::Gres
            | SbatchKey::Gpus
            | SbatchKey::GpusPerNode
            | SbatchKey::GpusPerTask
            | SbatchKey::Nodes
            | SbatchKey::Ntasks
            | SbatchKey::NtasksPerNode
            | SbatchKey::Exclusive => return None,
        })
    }

    fn signal(&mut self, option: &GivenOption, value: &str) -> Result<Vec<String>, String> {
        let signal = values::signal(value)?;
        if signal.letters.contains('B') {
            let why = "the signal goes to all processes of the job, not to the shell of the script alone: trap it there \
                       and in the program";
            self.warn(option.line, format!("{}={value}: {why}", option.name));
        }
        Ok(vec!["--stop-signal".into(), signal.flag])
    }

    fn mail_type(&mut self, option: &GivenOption, value: &str) -> Result<Vec<String>, String> {
        let wanted = values::mail_type(value)?;
        if !wanted.without_effect.is_empty() {
            let words = wanted.without_effect.join(",");
            let why =
                "Cohabit tells of start, end, fail, timeout, oom, stall, requeue and reclaim (--notify)";
            self.warn(option.line, format!("{}: {words} has no effect: {why}", option.name));
        }
        Ok(wanted.events.map_or(Vec::new(), |events| vec!["--notify".into(), events]))
    }

    /// A job is queued again after its node was lost, or after `cohabit requeue`, whatever it asks for.
    fn requeue(&mut self, option: &GivenOption) -> Vec<String> {
        if option.name.starts_with("--r") {
            return Vec::new();
        }
        let why = "the scheduler will not stop the job for a more urgent one, but a job that loses its node is queued \
                   again";
        self.warn(option.line, format!("{}: {why}", option.name));
        vec!["--no-preemptible".into()]
    }

    /// The line of the first of these options that was given.
    pub(super) fn line(&self, keys: &[SbatchKey]) -> Option<usize> {
        keys.iter().find_map(|key| self.given.get(key))?.line
    }

    pub(super) fn take(&mut self, key: SbatchKey) -> Option<GivenOption> {
        self.given.remove(&key)
    }

    pub(super) fn warn(&mut self, line: Option<usize>, text: String) {
        self.warnings.push(Remark { line, text });
    }

    pub(super) fn refuse(&mut self, line: Option<usize>, text: String) {
        self.errors.push(Remark { line, text });
    }
}
