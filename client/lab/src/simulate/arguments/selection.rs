//! Arguments that select jobs of the trace: a part, and windows.

use clap::Args;

// Which jobs of the trace are used.
#[derive(Debug, Args)]
pub(crate) struct SelectionArguments {
    /// Number of jobs to skip at the start
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) skip: usize,
    /// Largest number of jobs to use, in each window if there are several
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Number of parts of the trace with --limit jobs each, from --skip on, that are run independently of
    /// each other; results are means, and differences between policies are paired by window
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "limit")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) windows: u32,
    /// Number of jobs from the start of a window to that of the next [default: --limit]
    #[arg(long, value_name = "COUNT", requires = "windows")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) stride: Option<u64>,
}

impl SelectionArguments {
    /// The most jobs of a window.
    pub(crate) fn jobs_per_window(&self) -> Option<usize> {
        self.limit.map(to_count)
    }

    /// The number of jobs before this window, the first of which is 0.
    pub(crate) fn start_of(&self, window: u32) -> usize {
        let stride = self.stride.or(self.limit).map_or(0, to_count);
        self.skip.saturating_add(stride.saturating_mul(window as usize))
    }
}

fn to_count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
