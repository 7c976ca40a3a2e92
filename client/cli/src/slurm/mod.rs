//! Slurm's options: which ones there are, and which flags of Cohabit they become.
//!
//! `#SBATCH` lines of scripts and the command line of `sbatch` are read alike. Options that have no meaning
//! here are warnings, because a script for Slurm should run as it is; a malformed value is an error. All of
//! them are told at once. Start reading at [`SlurmRequest`].

mod getopt;
mod request;
mod resources;
mod sbatch_options;
mod values;

pub(crate) use getopt::{OptionName, ParsedWord, ValueUse, parse_words};
pub(crate) use request::{Remark, SlurmRequest};
pub(crate) use sbatch_options::SubmissionOption;

#[cfg(test)]
mod tests;
