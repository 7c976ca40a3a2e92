//! The processor time of ranks, by which it is seen whether an interactive job does anything.

use std::time::Duration;

use cohabit_host::process::processor_time_below;
use cohabit_types::{RankId, Span};
use nix::unistd::Pid;

use crate::gpu::ProcessOwners;

/// How often it is read.
pub(crate) const READ_INTERVAL: Duration = Duration::from_secs(2);

/// What the processes of these ranks have taken since they started, as far as that can be read: from their
/// cgroups, or else from the processes below their executors. Reads `/proc`, and so blocks.
pub(crate) fn processor_times(owners: &ProcessOwners, ranks: Vec<RankId>) -> Vec<(RankId, Span)> {
    let time_of = |rank| match owners.cgroups() {
        Some(cgroups) => cgroups.processor_time(rank),
        None => processor_time_below(Pid::from_raw(owners.executor_of(rank)?.pid)),
    };
    ranks.into_iter().filter_map(|rank| Some((rank, time_of(rank)?))).collect()
}
