//! How long a step takes, alone and beside other programs.

use std::time::Duration;

use cohabit_fakes::{GpuRoute, Process};

use crate::arguments::Arguments;
use crate::context::Context;

/// The duration of the next step.
pub(crate) fn step_time(arguments: &Arguments, context: &Context) -> Duration {
    let slower = |other: &Process| match (context.process.via, other.via) {
        (GpuRoute::Client(mine), GpuRoute::Client(theirs)) if mine == theirs => arguments.mps_factor - 1.0,
        _ => arguments.sliced_factor - 1.0,
    };
    let factor = 1.0 + context.co_runners().iter().map(slower).sum::<f64>();
    Duration::from_secs_f64(factor / arguments.rate)
}
