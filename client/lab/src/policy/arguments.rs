//! Arguments of `policy`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use cohabit_console::DisplayArguments;
use cohabit_sim::maifs::Coordination;

use crate::simulate::{WorkloadArguments, parse_load};

/// The most episodes of one training: a week of two cores.
const MOST_EPISODES: i64 = 1_000_000;

// Arguments of `policy`.
#[derive(Debug, Args)]
pub struct PolicyArguments {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

// Commands on agents.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    /// Train agents for the policy maifs in the simulator and store them in a directory
    Train(Box<PolicyTrainArguments>),
    /// Show the description of trained agents
    Show(PolicyShowArguments),
}

// Arguments of `policy train`.
#[derive(Debug, Args)]
pub(crate) struct PolicyTrainArguments {
    #[command(flatten)]
    pub(crate) workload: WorkloadArguments,
    /// Directory for the agents; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Number of jobs of an episode: a part of the trace that is drawn anew for each. The last fifth of a
    /// trace is for validation; synthetic:JOBS draws other jobs for it
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) episode_jobs: u32,
    /// Load of an episode, drawn from this range: the fraction of all devices that ideally placed jobs keep
    /// busy
    #[arg(long, value_name = "FROM..TO", default_value = "0.7..1.3")]
    pub(crate) load: LoadRange,
    /// Number of episodes of the teacher that the agents imitate first
    #[arg(long, value_name = "COUNT", default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) taught: u32,
    /// How often these episodes are gone through; 0 leaves the agents untaught
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1_000))]
    pub(crate) imitation_epochs: u32,
    /// Number of episodes in which the agents act and learn by Q-learning
    #[arg(long, value_name = "COUNT", default_value_t = 400)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=MOST_EPISODES))]
    pub(crate) episodes: u32,
    /// Number of episodes for validation; the agents that are best on them are stored
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) validation: u32,
    /// How agents agree: dynamic (on a graph of those that want the same job), none, full, or single (one
    /// agent for all nodes)
    #[arg(long, value_name = "dynamic|none|full|single", default_value = "dynamic")]
    pub(crate) coordination: Coordination,
    /// Train agents that do not attend to each other
    #[arg(long)]
    pub(crate) no_attention: bool,
    /// Train agents that see nothing of the slowdowns of jobs that share a GPU
    #[arg(long)]
    pub(crate) no_interference_features: bool,
    /// Train agents that start every job with the proportional share of cores and memory
    #[arg(long)]
    pub(crate) fixed_shares: bool,
    /// Seed of all random choices; the same seed gives the same agents, bit for bit
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Show training progress
    #[arg(long)]
    pub(crate) show_progress: bool,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `policy show`.
#[derive(Debug, Args)]
pub(crate) struct PolicyShowArguments {
    /// Directory of the agents
    #[arg(value_name = "DIR")]
    pub(crate) agents: PathBuf,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

/// A range of loads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadRange {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl FromStr for LoadRange {
    type Err = String;
    fn from_str(text: &str) -> Result<LoadRange, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let (from, to) = (parse_load(from)?, parse_load(to)?);
        if from > to {
            return Err(format!(
                "'{text}' is not a range of loads: write the smaller one first, {to}..{from}"
            ));
        }
        Ok(LoadRange { from, to })
    }
}

impl PolicyArguments {
    /// The display flags.
    pub fn display(&self) -> &DisplayArguments {
        match &self.verb {
            PolicyVerb::Train(arguments) => &arguments.display,
            PolicyVerb::Show(arguments) => &arguments.display,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_a_range_or_one_number() {
        assert_eq!("0.7..1.3".parse(), Ok(LoadRange { from: 0.7, to: 1.3 }));
        assert_eq!("1".parse(), Ok(LoadRange { from: 1.0, to: 1.0 }));
        for (text, advice) in [("1.3..0.7", "0.7..1.3"), ("0..1", "write 0.9"), ("..", "write 0.9")] {
            let refusal = text.parse::<LoadRange>().unwrap_err();
            assert!(refusal.contains(advice), "{refusal}");
        }
    }
}
