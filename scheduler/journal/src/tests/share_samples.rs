//! Samples of fair share: a head where users take turns, and a table.

use cohabit_scheduler_core::{Config, Event};
use cohabit_types::{ClientRequestId, Principal, Request, Role, ShareProject, ShareTable, Span};

use super::samples::config;

/// A head starts with fair share, and a table is applied.
pub(super) fn events() -> Vec<Event> {
    let by = Principal::new("root", Role::Admin);
    let apply = Request::ApplyShares(Box::new(table()));
    vec![
        Event::HeadStarted(Config { fair_share: true, ..config() }),
        Event::Client(ClientRequestId(9), by, apply),
    ]
}

/// A table with a price and a project.
fn table() -> ShareTable {
    let users = ["ada", "ben"].map(str::to_owned).into();
    ShareTable {
        half_life: Span::from_secs(86_400),
        prices: [("V100".to_owned(), 300)].into(),
        projects: [("vision".to_owned(), ShareProject { weight: 2_000, guaranteed: 8_000, users })].into(),
    }
}
