//! Answers requests for the metrics of ranks.

use cohabit_actor::blocking;
use cohabit_host::progress::read_series;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::{MetricSeries, RankId, Refusal, RefusalCode};

use crate::state_directory::StateDirectory;

/// The metrics of a rank over its steps; none where it reported none, or its directory was removed with its
/// output.
pub(crate) async fn read(state: &StateDirectory, rank: RankId) -> Result<MetricSeries, Refusal> {
    let path = RankDirectory::for_rank(&state.ranks(), rank).series();
    blocking(move || read_series(&path)).await.map_err(|error| {
        Refusal::new(RefusalCode::Unavailable, format!("the metrics of {rank} cannot be read: {error}"))
    })
}
