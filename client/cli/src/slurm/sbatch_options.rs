//! All options of `sbatch`, with what they are here.

use super::getopt::{OptionName, ValueUse};

/// An option that has a meaning for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SbatchKey {
    JobName,
    Time,
    CpusPerTask,
    CpusPerGpu,
    Mem,
    MemPerCpu,
    MemPerGpu,
    Gres,
    Gpus,
    GpusPerNode,
    GpusPerTask,
    Array,
    Dependency,
    Nodes,
    Ntasks,
    NtasksPerNode,
    Chdir,
    Begin,
    Signal,
    Hold,
    Output,
    Error,
    Export,
    Partition,
    /// `--requeue` or `--no-requeue`, whichever comes last.
    Requeue,
    Exclusive,
    MailType,
}

/// An option that only the command line of `sbatch` can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmissionOption {
    Parsable,
    Quiet,
    TestOnly,
    Wait,
    Wrap,
}

/// What an option is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Job(SbatchKey),
    Submission(SubmissionOption),
    /// It has no effect; why, and what to do.
    Ignored(&'static str),
}

const fn with(short: char, long: &'static str, meaning: Meaning) -> (OptionName, Meaning) {
    let short = if short == ' ' { None } else { Some(short) };
    (OptionName { short, long, value: ValueUse::Always }, meaning)
}

const fn without(short: char, long: &'static str, meaning: Meaning) -> (OptionName, Meaning) {
    let (name, meaning) = with(short, long, meaning);
    (OptionName { value: ValueUse::Never, ..name }, meaning)
}

const fn perhaps(short: char, long: &'static str, meaning: Meaning) -> (OptionName, Meaning) {
    let (name, meaning) = with(short, long, meaning);
    (OptionName { value: ValueUse::Optional, ..name }, meaning)
}

const MAIL_USER: Meaning = Meaning::Ignored(
    "the admins set the addresses: choose among their channels with `#COHABIT --notify end@CHANNEL`",
);
const ACCOUNTING: Meaning =
    Meaning::Ignored("Cohabit has no accounts and no QOS: remove it, or set --priority");
const PLACE: Meaning = Meaning::Ignored("the scheduler chooses the nodes: remove it");
const LAYOUT: Meaning = Meaning::Ignored("cores and processes are not placed by socket or core: remove it");
const SITE: Meaning = Meaning::Ignored("Cohabit has nothing of this kind: remove it");
const ENVIRONMENT: Meaning =
    Meaning::Ignored("the environment comes from --export and `#COHABIT --env`: use these");
const SHARES: Meaning = Meaning::Ignored(
    "GPUs are shared by jobs that ask for a part of one: write `#COHABIT --gpus 0.5 --gpu-mem SIZE`",
);

/// Every option of `sbatch`.
pub(super) const SBATCH_OPTIONS: &[(OptionName, Meaning)] = &[
    with('J', "job-name", Meaning::Job(SbatchKey::JobName)),
    with('t', "time", Meaning::Job(SbatchKey::Time)),
    with('c', "cpus-per-task", Meaning::Job(SbatchKey::CpusPerTask)),
    with(' ', "cpus-per-gpu", Meaning::Job(SbatchKey::CpusPerGpu)),
    with(' ', "mem", Meaning::Job(SbatchKey::Mem)),
    with(' ', "mem-per-cpu", Meaning::Job(SbatchKey::MemPerCpu)),
    with(' ', "mem-per-gpu", Meaning::Job(SbatchKey::MemPerGpu)),
    with(' ', "gres", Meaning::Job(SbatchKey::Gres)),
    with('G', "gpus", Meaning::Job(SbatchKey::Gpus)),
    with(' ', "gpus-per-node", Meaning::Job(SbatchKey::GpusPerNode)),
    with(' ', "gpus-per-task", Meaning::Job(SbatchKey::GpusPerTask)),
    with('a', "array", Meaning::Job(SbatchKey::Array)),
    with('d', "dependency", Meaning::Job(SbatchKey::Dependency)),
    with('N', "nodes", Meaning::Job(SbatchKey::Nodes)),
    with('n', "ntasks", Meaning::Job(SbatchKey::Ntasks)),
    with(' ', "ntasks-per-node", Meaning::Job(SbatchKey::NtasksPerNode)),
    with('D', "chdir", Meaning::Job(SbatchKey::Chdir)),
    with('b', "begin", Meaning::Job(SbatchKey::Begin)),
    with(' ', "signal", Meaning::Job(SbatchKey::Signal)),
    without('H', "hold", Meaning::Job(SbatchKey::Hold)),
    with('o', "output", Meaning::Job(SbatchKey::Output)),
    with('e', "error", Meaning::Job(SbatchKey::Error)),
    perhaps(' ', "export", Meaning::Job(SbatchKey::Export)),
    with('p', "partition", Meaning::Job(SbatchKey::Partition)),
    without(' ', "requeue", Meaning::Job(SbatchKey::Requeue)),
    without(' ', "no-requeue", Meaning::Job(SbatchKey::Requeue)),
    perhaps(' ', "exclusive", Meaning::Job(SbatchKey::Exclusive)),
    without(' ', "parsable", Meaning::Submission(SubmissionOption::Parsable)),
    without('Q', "quiet", Meaning::Submission(SubmissionOption::Quiet)),
    without(' ', "test-only", Meaning::Submission(SubmissionOption::TestOnly)),
    without('W', "wait", Meaning::Submission(SubmissionOption::Wait)),
    with(' ', "wrap", Meaning::Submission(SubmissionOption::Wrap)),
    with(' ', "mail-type", Meaning::Job(SbatchKey::MailType)),
    with(' ', "mail-user", MAIL_USER),
    with('A', "account", ACCOUNTING),
    with('q', "qos", ACCOUNTING),
    with(' ', "wckey", ACCOUNTING),
    perhaps(' ', "nice", Meaning::Ignored("write `#COHABIT --priority` with a negative number instead")),
    with(' ', "priority", Meaning::Ignored("write `#COHABIT --priority` with a number of Cohabit instead")),
    with('w', "nodelist", PLACE),
    with('x', "exclude", PLACE),
    with('F', "nodefile", PLACE),
    with('C', "constraint", PLACE),
    with(' ', "cluster-constraint", PLACE),
    with('M', "clusters", PLACE),
    with(' ', "switches", PLACE),
    without(' ', "contiguous", PLACE),
    without(' ', "spread-job", PLACE),
    without(' ', "use-min-nodes", PLACE),
    with(' ', "reservation", PLACE),
    with('m', "distribution", LAYOUT),
    with(' ', "sockets-per-node", LAYOUT),
    with(' ', "cores-per-socket", LAYOUT),
    with(' ', "threads-per-core", LAYOUT),
    with('B', "extra-node-info", LAYOUT),
    with(' ', "ntasks-per-core", LAYOUT),
    with(' ', "ntasks-per-socket", LAYOUT),
    with(' ', "ntasks-per-gpu", LAYOUT),
    with(' ', "gpus-per-socket", LAYOUT),
    with(' ', "gpu-bind", LAYOUT),
    with(' ', "hint", LAYOUT),
    with(' ', "mincpus", LAYOUT),
    with('S', "core-spec", LAYOUT),
    with(' ', "thread-spec", LAYOUT),
    with(' ', "gres-flags", LAYOUT),
    without('O', "overcommit", SHARES),
    without('s', "oversubscribe", SHARES),
    without(' ', "share", SHARES),
    with(' ', "export-file", ENVIRONMENT),
    perhaps(' ', "get-user-env", ENVIRONMENT),
    perhaps(' ', "propagate", ENVIRONMENT),
    with(' ', "comment", Meaning::Ignored("nothing shows it: remove it")),
    with(' ', "open-mode", Meaning::Ignored("the first attempt empties the file, and later ones append")),
    with('i', "input", Meaning::Ignored("standard input is empty: write `command < FILE` in the script")),
    with(' ', "time-min", Meaning::Ignored("the time limit is --time: remove it")),
    without('k', "no-kill", Meaning::Ignored("a job that loses one of its nodes starts anew: remove it")),
    with(
        ' ',
        "kill-on-invalid-dep",
        Meaning::Ignored("a job whose dependency failed is cancelled: remove it"),
    ),
    with('L', "licenses", SITE),
    with(' ', "tmp", SITE),
    with(' ', "cpu-freq", SITE),
    without('v', "verbose", Meaning::Ignored("use `cohabit explain` for the reasons of the scheduler")),
];

/// The names alone, for the reader of options.
pub(super) fn option_names() -> Vec<OptionName> {
    SBATCH_OPTIONS.iter().map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_option_is_there_once() {
        let long: BTreeSet<&str> = SBATCH_OPTIONS.iter().map(|(name, _)| name.long).collect();
        assert_eq!(long.len(), SBATCH_OPTIONS.len());
        let letters: Vec<char> = SBATCH_OPTIONS.iter().filter_map(|(name, _)| name.short).collect();
        assert_eq!(letters.iter().collect::<BTreeSet<_>>().len(), letters.len());
    }
}
