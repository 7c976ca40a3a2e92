//! The tables of the journal and of the history, and the steps from each format of the file to the next.
//!
//! People query the history with their own tools. Its columns and views may gain, but never lose or rename,
//! anything; a change of a column's words goes into CHANGELOG.md.

use rusqlite::Connection;

/// The format of the file that this version writes. A change that an older version cannot read raises it and
/// adds a migration. Rows keep the format of the text in them; see `cohabit_journal::FORMAT`.
pub(super) const FORMAT: u32 = MIGRATIONS.len() as u32;

const _: () = assert!(FORMAT == cohabit_journal::FORMAT, "a new format of the text raises that of the file");

/// "COHB": marks the file as a journal of Cohabit.
pub(super) const APPLICATION: i32 = 0x434f_4842;

/// The step from each format to the next. The first one makes an empty file a journal.
const MIGRATIONS: [&str; 6] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
];

/// Brings a file of the format `found` up to [`FORMAT`], inside the caller's transaction.
pub(super) fn migrate(connection: &Connection, found: u32) -> rusqlite::Result<()> {
    for step in &MIGRATIONS[found as usize..] {
        connection.execute_batch(step)?;
    }
    mark(connection)
}

fn mark(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", FORMAT)?;
    let set = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
    connection.execute(set, ("format", FORMAT.to_string()))?;
    connection.execute(set, ("written_by", env!("CARGO_PKG_VERSION")))?;
    let cluster = uuid::Uuid::now_v7().to_string();
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('cluster_id', ?1)", [cluster])?;
    Ok(())
}
