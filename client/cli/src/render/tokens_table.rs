//! The table of tokens, without their secrets.

use cohabit_client::types::TokenRecord;
use cohabit_console::Screen;
use cohabit_console::table::{self, cell};
use jiff::tz::TimeZone;

use super::local_time;

/// The table, with times in `zone`.
pub(crate) fn tokens_table(tokens: &[TokenRecord], zone: &TimeZone, screen: Screen) -> String {
    let mut table = table::table(&["NAME", "ROLE", "ACCOUNT", "NODE", "CREATED", "EXPIRES"], screen);
    for token in tokens {
        let expires = token.expires_at.map_or("never".to_owned(), |at| local_time(at, zone));
        let account = token.runs_as().unwrap_or_default().to_owned();
        let created = local_time(token.created_at, zone);
        let node = token.node.clone().unwrap_or_default();
        table
            .add_row([token.name.clone(), token.role.to_string(), account, node, created, expires].map(cell));
    }
    table::text(&table)
}
