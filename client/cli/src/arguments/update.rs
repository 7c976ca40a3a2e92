//! Arguments of `update`.

use clap::{ArgGroup, Args};
use cohabit_client::types::TimeLimitSetting;
use cohabit_console::DisplayArguments;

use super::connection::ConnectionArguments;
use super::jobs::JobReferences;
use crate::values::{self, BeginTime};

// Arguments of `update`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("setting").args(["priority", "time", "retries", "begin"]).required(true).multiple(true))]
pub(crate) struct UpdateArguments {
    #[command(flatten)]
    pub(crate) jobs: JobReferences,
    /// New priority; jobs with a higher number start earlier
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// New time limit of an attempt: 2h, 02:00:00, or 'unlimited'
    #[arg(long, short = 't', value_name = "TIME", value_parser = parse_time_limit)]
    pub(crate) time: Option<TimeLimitSetting>,
    /// New number of further attempts after a failure
    #[arg(long, value_name = "COUNT")]
    pub(crate) retries: Option<u32>,
    /// New earliest start time: now, now+1h, 08:00, 2026-11-22T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = values::parse_begin)]
    pub(crate) begin: Option<BeginTime>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

fn parse_time_limit(text: &str) -> Result<TimeLimitSetting, String> {
    match text {
        "unlimited" | "none" => Ok(TimeLimitSetting::Unlimited),
        _ => values::parse_duration(text).map(TimeLimitSetting::Limit),
    }
}
