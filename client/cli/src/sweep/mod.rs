//! Sweeps: the parameters of the members of an array, and the rules that stop members early.
//!
//! `domain` has the values that a parameter may take; `written` and `file` read them from flags and from a
//! TOML file, `request` puts both together, `plan` makes members of them, and `placeholders` compares them
//! with the command. Everything is counted before anything is expanded. `early_stopping` decides from what
//! members have reported. Nothing here reads the clock or talks to the head; `commands/sweep` does.

mod domain;
pub(crate) mod early_stopping;
mod file;
mod placeholders;
mod plan;
mod request;
mod values;
mod written;

pub(crate) use self::domain::ParameterDomain;
pub(crate) use self::file::{SweepFile, job_flags_of};
pub(crate) use self::placeholders::check_placeholders;
pub(crate) use self::plan::{SweepParameters, SweepPlan};
pub(crate) use self::request::{RuleName, RuleSettings, SweepMethod, SweepSettings, sweep_request};
pub(crate) use self::written::{parse_member, parse_parameter};
