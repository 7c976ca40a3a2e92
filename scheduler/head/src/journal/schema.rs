//! The tables of the journal and of the history, and how a file of an older version is brought up to date.
//!
//! People query the history with ordinary tools: its columns and views only ever gain, they never change.

use rusqlite::{Connection, Transaction};

/// The format that this version writes: tables, and the JSON of events and snapshots. A change that an older
/// version cannot read raises it and adds a migration.
pub(super) const FORMAT: u32 = MIGRATIONS.len() as u32;

/// "COHB": marks the file as ours.
pub(super) const APPLICATION: i32 = 0x434f_4842;

/// The step from each format to the next; the first makes an empty file a journal.
const MIGRATIONS: [&str; 5] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
];

/// Brings a file of the format `found` up to [`FORMAT`].
pub(super) fn migrate(connection: &mut Connection, found: u32) -> rusqlite::Result<()> {
    if found == FORMAT {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for step in &MIGRATIONS[found as usize..] {
        transaction.execute_batch(step)?;
    }
    mark(&transaction)?;
    transaction.commit()
}

fn mark(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    let set = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
    transaction.execute(set, ("format", FORMAT.to_string()))?;
    transaction.execute(set, ("written_by", env!("CARGO_PKG_VERSION")))?;
    let cluster = uuid::Uuid::now_v7().to_string();
    transaction.execute("INSERT OR IGNORE INTO meta VALUES ('cluster_id', ?1)", [cluster])?;
    Ok(())
}
