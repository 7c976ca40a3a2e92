//! Arguments of `simulate`.

mod behavior;
mod interference;
mod selection;
mod sensitivity;
mod workload;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{ArgAction, Args, ValueEnum};
use cohabit_console::{CommandError, CommandErrorKind, DisplayArguments};
use cohabit_sim::{ClusterSpec, EstimatorKind, POLICY_NAMES};
use cohabit_types::Sharing;

pub(crate) use self::interference::{Predictor, Truth};
pub(crate) use self::selection::SelectionArguments;
pub(crate) use self::sensitivity::{SensitivityArguments, SensitivityKnowledge};
pub(crate) use self::workload::WorkloadArguments;

/// The most synthetic jobs: they take a gigabyte of memory.
const MAX_SYNTHETIC_JOBS: usize = 1_000_000;
/// The policy in which agents decide.
const AGENTS_POLICY: &str = "maifs";

// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArguments {
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Scale the arrival times so that ideally placed jobs would keep this fraction of all devices busy
    /// [default: 0.9 for synthetic jobs, otherwise as in the trace]
    #[arg(long, value_parser = parse_load)]
    pub(crate) load: Option<f64>,
    // The help text lists the policies of the scheduler.
    #[arg(
        long,
        value_name = "POLICY,…",
        default_value = "fifo,easy-backfill,a-srpt,hybrid",
        action = ArgAction::Append,
        help = policy_help()
    )]
    pub(crate) policy: Vec<Policies>,
    /// Directory of trained agents (from `cohabit policy train`): run maifs with them, too; may be repeated.
    /// Without agents, maifs follows a fixed rule
    #[arg(long, value_name = "DIR", action = ArgAction::Append)]
    pub(crate) agents: Vec<PathBuf>,
    /// Whether users take turns by what they are entitled to, as in a head. With 'both', each policy runs in
    /// both ways on the same jobs
    #[arg(long, value_name = "ON|OFF|BOTH", value_enum, default_value = "on")]
    pub(crate) fair_share: FairShare,
    /// Policies to run on the same jobs without GPU sharing, for comparison
    #[arg(long, value_name = "POLICY,…", action = ArgAction::Append)]
    pub(crate) exclusive: Vec<Policies>,
    /// Policy that the others are compared with, as it is named in results [default: the first one]
    #[arg(long, value_name = "POLICY")]
    pub(crate) baseline: Option<String>,
    /// Run each policy a second time on the same jobs without GPU sharing, and report how many jobs are done
    /// later with sharing, and by how much
    #[arg(long)]
    pub(crate) incentive: bool,
    /// Number of runs at the same time; results do not depend on it, except for times of a real clock
    /// [default: one for each CPU core]
    #[arg(long, value_name = "COUNT")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Seeds of training configurations, synthetic jobs and estimation errors; with several seeds, results
    /// are means and standard deviations. Window k of several uses seed + k - 1
    #[arg(long, value_name = "SEED,…", value_delimiter = ',', default_value = "1", action = ArgAction::Append)]
    pub(crate) seed: Vec<u64>,
    /// Learn interference during each run from the jobs that report progress, as the head does, starting with
    /// --predictor
    #[arg(long)]
    pub(crate) learn_online: bool,
    /// Write a self-contained HTML page with charts to this file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// Write a row for each job under each policy to this CSV file: user, times, wait, JCT, slowdown, nodes
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) jobs_csv: Option<PathBuf>,
    /// Write a row for each user under each policy to this CSV file: waits, JCTs and GPU hours
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) users_csv: Option<PathBuf>,
    #[command(flatten)]
    pub display: DisplayArguments,
}

/// The source of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TraceSource {
    /// A trace file.
    File(PathBuf),
    /// This many jobs, generated from the seed.
    Synthetic(usize),
}

/// A cluster, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClusterArgument {
    pub(crate) written: String,
    pub(crate) spec: ClusterSpec,
}

/// Policies by name, in the order of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Policies(pub(crate) Vec<String>);

/// A policy in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PolicyVariant<'a> {
    /// Its name and parameters.
    pub(crate) policy: &'a str,
    /// The directory of the agents that decide in it, if any.
    pub(crate) agents: Option<&'a Path>,
    /// Whether its jobs may share GPUs.
    pub(crate) sharing: Sharing,
    /// Whether users take turns.
    pub(crate) fair_share: FairShare,
    /// Whether every second job is submitted a moment later: what differs then differs by chance.
    pub(crate) nudged: bool,
}

/// Whether users take turns by what they are entitled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FairShare {
    /// They do, as in a head.
    On,
    /// The policy orders the jobs of all users together.
    Off,
    /// Each policy runs in both ways.
    Both,
}

/// The jobs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The part of the trace, from 0.
    pub(crate) window: u32,
    /// The seed of this window: parts of a trace do not draw the same configurations.
    pub(crate) seed: u64,
}

/// An estimator of run times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EstimatorArgument(pub(crate) EstimatorKind);

impl SimulateArguments {
    /// All policies, each once; those without sharing first.
    pub(crate) fn policy_variants(&self) -> Vec<PolicyVariant<'_>> {
        let some = [(Sharing::Exclusive, &self.exclusive), (Sharing::Shared, &self.policy)];
        let all = some.into_iter().flat_map(|(sharing, lists)| lists.iter().map(move |list| (sharing, list)));
        distinct(all.flat_map(|(sharing, Policies(names))| {
            names
                .iter()
                .flat_map(move |policy| self.with_agents(policy, sharing))
                .flat_map(|it| self.in_turns(it))
        }))
    }

    /// A policy, and the same with each of the given agents if agents may decide in it.
    fn with_agents<'a>(
        &'a self,
        policy: &'a str,
        sharing: Sharing,
    ) -> impl Iterator<Item = PolicyVariant<'a>> {
        let is_maifs = policy.trim().split(':').next() == Some(AGENTS_POLICY);
        let trained = self.agents.iter().filter(move |_| is_maifs).map(|folder| Some(folder.as_path()));
        std::iter::once(None).chain(trained).map(move |agents| PolicyVariant {
            policy,
            agents,
            sharing,
            fair_share: self.fair_share,
            nudged: false,
        })
    }

    /// The variant with turns of users, without, or both.
    fn in_turns<'a>(&self, variant: PolicyVariant<'a>) -> Vec<PolicyVariant<'a>> {
        match self.fair_share {
            FairShare::On | FairShare::Off => vec![variant],
            FairShare::Both => vec![variant, PolicyVariant { fair_share: FairShare::On, ..variant }],
        }
    }

    /// # Errors
    /// If there are agents for a policy that does not run.
    pub(crate) fn check_agents(&self) -> Result<(), CommandError> {
        if self.agents.is_empty() || self.policy_variants().iter().any(|it| it.agents.is_some()) {
            return Ok(());
        }
        let message = "--agents is for the policy maifs, which does not run: add --policy maifs";
        Err(CommandError::new(CommandErrorKind::Usage, message))
    }

    /// The index of the policy that the others are compared with.
    ///
    /// # Errors
    /// If the policy of --baseline is not among those that run.
    pub(crate) fn baseline_index(&self) -> Result<usize, CommandError> {
        let Some(wanted) = &self.baseline else { return Ok(0) };
        let names: Vec<String> = self.policy_variants().iter().map(PolicyVariant::to_string).collect();
        names.iter().position(|name| name == wanted).ok_or_else(|| {
            let known = names.join("', '");
            let message = format!("--baseline '{wanted}' is not among the policies: write '{known}'");
            CommandError::new(CommandErrorKind::Usage, message)
        })
    }

    /// Every run of a policy: windows, and for each of them all seeds.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let windows = 0..self.selection.windows;
        let seeds = self.seeds();
        let of_window = |window: u32| {
            let seeds = seeds.iter();
            seeds.map(move |seed| Sample { window, seed: seed.wrapping_add(u64::from(window)) })
        };
        windows.flat_map(of_window).collect()
    }

    /// All seeds, each once.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        distinct(self.seed.iter().copied())
    }
}

impl<'a> PolicyVariant<'a> {
    /// The same policy without sharing.
    pub(crate) const fn exclusive(self) -> PolicyVariant<'a> {
        PolicyVariant { sharing: Sharing::Exclusive, ..self }
    }

    /// The same policy with jobs that are submitted a moment apart.
    pub(crate) const fn nudged(self) -> PolicyVariant<'a> {
        PolicyVariant { nudged: true, ..self }
    }
}

fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut seen, one| {
        if !seen.contains(&one) {
            seen.push(one);
        }
        seen
    })
}

impl FromStr for TraceSource {
    type Err = String;
    fn from_str(text: &str) -> Result<TraceSource, String> {
        let Some(count) = text.strip_prefix("synthetic:") else { return Ok(TraceSource::File(text.into())) };
        let jobs = count.parse().ok().filter(|jobs| (1..=MAX_SYNTHETIC_JOBS).contains(jobs));
        jobs.map(TraceSource::Synthetic).ok_or_else(|| {
            format!(
                "'{count}' is not a number of jobs from 1 to {MAX_SYNTHETIC_JOBS}: write synthetic:1000, or ./{text} for a \
                 file of this name"
            )
        })
    }
}

impl fmt::Display for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceSource::File(path) => path.display().fmt(f),
            TraceSource::Synthetic(jobs) => write!(f, "synthetic:{jobs}"),
        }
    }
}

impl FromStr for ClusterArgument {
    type Err = cohabit_sim::ParseClusterError;
    fn from_str(text: &str) -> Result<ClusterArgument, Self::Err> {
        Ok(ClusterArgument { written: text.to_owned(), spec: text.parse()? })
    }
}

/// As in results: `exclusive a-srpt`.
impl fmt::Display for PolicyVariant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sharing {
            Sharing::Exclusive => write!(f, "exclusive {}", self.policy)?,
            Sharing::Shared => f.write_str(self.policy)?,
        }
        self.agents.map_or(Ok(()), |folder| write!(f, " with {}", folder.display()))?;
        match self.fair_share {
            FairShare::On | FairShare::Off => Ok(()),
            FairShare::Both => f.write_str(" without fair share"),
        }
    }
}

/// Commas separate policies as well as the parameters of a policy: a part with a value and without a colon
/// belongs to the policy before it.
impl FromStr for Policies {
    type Err = String;
    fn from_str(text: &str) -> Result<Policies, String> {
        let mut policies: Vec<String> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let is_parameter = part.contains('=') && !part.contains(':');
            match policies.last_mut() {
                Some(policy) if is_parameter => *policy = format!("{policy},{part}"),
                _ => policies.push(part.to_owned()),
            }
        }
        for policy in &policies {
            cohabit_sim::parse_policy(policy).map_err(|error| error.to_string())?;
        }
        Ok(Policies(policies))
    }
}

/// The estimators without a parameter, by name. `noisy:SIGMA` is the only one with a parameter.
const ESTIMATORS: [(&str, EstimatorKind); 5] = [
    ("oracle", EstimatorKind::Oracle),
    ("forest", EstimatorKind::Forest),
    ("recent-median", EstimatorKind::RecentMedian),
    ("group-mean", EstimatorKind::GroupMean),
    ("constant", EstimatorKind::Constant),
];

impl FromStr for EstimatorArgument {
    type Err = String;
    fn from_str(text: &str) -> Result<EstimatorArgument, String> {
        let named = ESTIMATORS.into_iter().find(|(name, _)| *name == text).map(|(_, kind)| kind);
        let kind = named.map_or_else(|| parse_sigma(text).map(EstimatorKind::Noisy), Ok)?;
        Ok(EstimatorArgument(kind))
    }
}

fn parse_sigma(text: &str) -> Result<f64, String> {
    let written = text.strip_prefix("noisy:").ok_or_else(|| {
        let names = ESTIMATORS.map(|(name, _)| name).join(", ");
        format!("'{text}' is not an estimator: write {names} or noisy:0.3")
    })?;
    let sigma = written.parse().ok().filter(|sigma| (0.0..=10.0).contains(sigma));
    sigma.ok_or_else(|| {
        format!("'{written}' is not a standard deviation between 0 and 10: write for example noisy:0.3")
    })
}

impl fmt::Display for EstimatorArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let EstimatorKind::Noisy(sigma) = self.0 {
            return write!(f, "noisy:{sigma}");
        }
        let named = ESTIMATORS.into_iter().find(|(_, kind)| *kind == self.0);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

fn policy_help() -> String {
    format!(
        "Policies to compare on the same arrivals: {}. Parameters follow a colon: a-srpt:theta=1.5,delta=1",
        POLICY_NAMES.join(", ")
    )
}

pub(crate) fn parse_load(text: &str) -> Result<f64, String> {
    let load = text.parse().ok().filter(|load| (0.001..=1_000.0).contains(load));
    load.ok_or_else(|| format!("'{text}' is not a load: write 0.9 for 90% of all devices"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        simulate: SimulateArguments,
    }

    /// Parses the words, with required flags added where they are missing.
    fn parse(words: &str) -> Result<SimulateArguments, clap::Error> {
        let missing = [("--cluster", "2x4:V100"), ("--trace", "jobs.csv")];
        let missing = missing.into_iter().filter(|(flag, _)| !words.contains(flag));
        let given = words.split_whitespace().map(str::to_owned);
        let needed = missing.flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]);
        let line = Line::try_parse_from(["cohabit".to_owned()].into_iter().chain(needed).chain(given));
        line.map(|line| line.simulate)
    }

    #[test]
    fn parameters_belong_to_the_policy_before_them() {
        let arguments =
            parse("--policy fifo,a-srpt:theta=1.5,delta=2,spd --policy las:queues=2 --policy fifo").unwrap();
        let variants: Vec<String> =
            arguments.policy_variants().iter().map(PolicyVariant::to_string).collect();
        assert_eq!(variants, ["fifo", "a-srpt:theta=1.5,delta=2", "spd", "las:queues=2"]);
    }

    #[test]
    fn policies_without_sharing_come_first() {
        let arguments = parse("--policy fifo,horus --exclusive a-srpt,fifo").unwrap();
        let variants: Vec<String> =
            arguments.policy_variants().iter().map(PolicyVariant::to_string).collect();
        assert_eq!(variants, ["exclusive a-srpt", "exclusive fifo", "fifo", "horus"]);
    }

    #[test]
    fn agents_run_beside_the_policy_without_them() {
        let arguments = parse("--policy fifo,maifs:tune=off --agents one --agents two").unwrap();
        let variants: Vec<String> =
            arguments.policy_variants().iter().map(PolicyVariant::to_string).collect();
        let with = |folder: &str| format!("maifs:tune=off with {folder}");
        assert_eq!(variants, ["fifo".to_owned(), "maifs:tune=off".to_owned(), with("one"), with("two")]);
        assert!(arguments.check_agents().is_ok());
        let refusal = parse("--policy fifo --agents one").unwrap().check_agents().unwrap_err().to_string();
        assert!(refusal.contains("add --policy maifs"), "{refusal}");
    }

    #[test]
    fn seeds_are_lists_or_repeated_flags_without_duplicates() {
        assert_eq!(parse("--seed 3,1 --seed 2 --seed 3").unwrap().seeds(), [3, 1, 2]);
        assert_eq!(parse("").unwrap().seeds(), [1]);
    }

    #[test]
    fn windows_follow_each_other_with_a_seed_of_their_own() {
        let whole = parse("--skip 5").unwrap();
        assert_eq!((whole.selection.start_of(0), whole.selection.jobs_per_window()), (5, None));
        let arguments = parse("--skip 100 --limit 40 --windows 3 --seed 7").unwrap();
        let starts: Vec<usize> = (0..3).map(|window| arguments.selection.start_of(window)).collect();
        assert_eq!((starts, arguments.selection.jobs_per_window()), (vec![100, 140, 180], Some(40)));
        let samples = arguments.samples();
        let drawn: Vec<(u32, u64)> = samples.iter().map(|sample| (sample.window, sample.seed)).collect();
        assert_eq!(drawn, [(0, 7), (1, 8), (2, 9)]);
        let apart = parse("--limit 40 --windows 2 --stride 1000").unwrap();
        assert_eq!(apart.selection.start_of(1), 1_000);
    }

    #[test]
    fn the_baseline_is_one_of_the_policies() {
        let index = |words: &str| parse(words).unwrap().baseline_index();
        assert_eq!(index("--policy fifo,las").unwrap(), 0);
        assert_eq!(index("--policy fifo,las --baseline las").unwrap(), 1);
        let refusal = index("--policy fifo,las --baseline spd").unwrap_err().to_string();
        assert!(refusal.contains("write 'fifo', 'las'"), "{refusal}");
    }

    #[test]
    fn what_policies_know_of_sensitivity_is_printed_as_it_is_parsed() {
        for name in ["exact", "none", "noisy:0", "noisy:0.35"] {
            assert_eq!(name.parse::<SensitivityKnowledge>().unwrap().to_string(), name);
        }
        for (text, words) in
            [("noisy:-1", "write noisy:0.2"), ("noisy", "write exact"), ("some:1", "or none")]
        {
            assert!(text.parse::<SensitivityKnowledge>().unwrap_err().contains(words), "{text}");
        }
        let given = parse("--sensitivity a.csv --sensitivity-models one,two").unwrap().workload.sensitivity;
        assert_eq!(
            (&given.sensitivity_models, given.known()),
            (&vec!["one".to_owned(), "two".into()], SensitivityKnowledge::Noisy(0.2))
        );
        let refusal = parse("--known-sensitivity exact").unwrap_err().to_string();
        assert!(refusal.contains("--sensitivity <FILE|DIR>"), "{refusal}");
    }

    #[test]
    fn every_estimator_is_printed_as_it_is_parsed() {
        for name in ["oracle", "forest", "recent-median", "group-mean", "constant", "noisy:0.3"] {
            assert_eq!(name.parse::<EstimatorArgument>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn sources_of_slowdowns_are_printed_as_they_are_parsed() {
        let arguments = parse("--interference table:pairs.csv --predictor truth --max-slowdown 1.5").unwrap();
        let written =
            (arguments.workload.interference.to_string(), arguments.workload.predictor().to_string());
        assert_eq!((written.0.as_str(), written.1.as_str()), ("table:pairs.csv", "truth"));
        let learned = parse("--interference model:one --predictor model:a/b").unwrap();
        let written = (learned.workload.interference.to_string(), learned.workload.predictor().to_string());
        assert_eq!((written.0.as_str(), written.1.as_str()), ("model:one", "model:a/b"));
        for predictor in ["pretrained", "none"] {
            let written =
                parse(&format!("--predictor {predictor}")).unwrap().workload.predictor().to_string();
            assert_eq!(written, predictor);
        }
        let usual = parse("").unwrap().workload;
        assert_eq!(
            (&usual.interference, usual.predictor(), usual.max_slowdown),
            (&Truth::Law, &Predictor::Law, None)
        );
    }

    #[test]
    fn the_behavior_of_jobs_is_parsed() {
        let usual = parse("").unwrap().workload.behavior.behavior();
        assert_eq!((usual.reporting, usual.stop_cost.to_string()), (0.3, "15,45".to_owned()));
        let given =
            parse("--progress 1 --preemptible 0.6 --stop-cost 1,0").unwrap().workload.behavior.behavior();
        assert_eq!((given.reporting, given.stop_cost.to_string()), (1.0, "1,0".to_owned()));
        assert_eq!((usual.preemptible, given.preemptible), (1.0, 0.6));
    }

    #[test]
    fn jobs_come_from_a_file_or_from_the_seed() {
        assert_eq!("synthetic:600".parse(), Ok(TraceSource::Synthetic(600)));
        assert_eq!("./synthetic:600".parse(), Ok(TraceSource::File("./synthetic:600".into())));
        assert_eq!(TraceSource::Synthetic(600).to_string(), "synthetic:600");
    }

    #[test]
    fn errors_on_wrong_values_say_how_to_write_them() {
        for (words, advice) in [
            ("--policy fifa", "fifo"),
            ("--policy a-srpt:speed=1", "theta"),
            ("--policy fifo,,spd", "there is no policy"),
            ("--trace synthetic:0", "write synthetic:1000"),
            ("--cluster 2x4", "for example 16x8:V100@25g"),
            ("--estimator magic", "noisy:0.3"),
            ("--estimator noisy:-1", "between 0 and 10"),
            ("--load 0", "write 0.9"),
            ("--exclusive fifa", "fifo"),
            ("--interference model:", "write law, table:FILE or model:DIR"),
            ("--interference table:", "write law, table:FILE or model:DIR"),
            ("--interference magic", "write law, table:FILE or model:DIR"),
            ("--predictor model:", "write law, none, truth, pretrained or model:DIR"),
            ("--predictor magic", "write law, none, truth, pretrained or model:DIR"),
            ("--max-slowdown 0.9", "at least 1"),
            ("--max-sharing 0", "1..=1000"),
            ("--load NaN", "write 0.9"),
            ("--progress 1.1", "from 0 to 1"),
            ("--progress NaN", "from 0 to 1"),
            ("--preemptible 2", "from 0 to 1"),
            ("--stop-cost 15", "for example 15,45"),
            ("--limit 0", "1"),
            ("--windows 2", "--limit <COUNT>"),
            ("--windows 0 --limit 4", "1..=10000"),
            ("--max-gpus 0", "1"),
            ("--max-duration 3", "3"),
            ("--jobs 0", "0"),
            ("--seed x", "invalid digit"),
            ("--format xls", "csv, philly, openb, gavel"),
            ("--throughputs-of sim/k80", "--throughputs <FILE>"),
        ] {
            let refusal = parse(words).unwrap_err().to_string();
            assert!(refusal.contains(advice), "{words}: {refusal}");
        }
    }
}
