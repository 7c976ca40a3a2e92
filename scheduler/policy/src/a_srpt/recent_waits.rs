//! The median wait of the jobs that started last: what is usual now.
//!
//! Keeps a window of starts; each start costs at most the size of the window. No clock, no jobs.

use std::collections::VecDeque;

use cohabit_types::Span;

/// The number of starts in the window.
const WINDOW: usize = 200;

/// The waits of the last starts.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentWaits {
    in_order_of_start: VecDeque<Span>,
    in_order_of_length: Vec<Span>,
}

impl RecentWaits {
    /// Records that a job started after this wait.
    pub(super) fn note(&mut self, wait: Span) {
        if self.in_order_of_start.len() == WINDOW
            && let Some(oldest) = self.in_order_of_start.pop_front()
        {
            let place = self.in_order_of_length.partition_point(|it| *it < oldest);
            self.in_order_of_length.remove(place);
        }
        self.in_order_of_start.push_back(wait);
        let place = self.in_order_of_length.partition_point(|it| *it < wait);
        self.in_order_of_length.insert(place, wait);
    }

    /// The median; zero before the first start.
    pub(super) fn median(&self) -> Span {
        let count = self.in_order_of_length.len();
        self.in_order_of_length.get(count / 2).copied().unwrap_or(Span::ZERO)
    }
}
