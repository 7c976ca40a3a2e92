//! The table of the objects of an application.

use cohabit_client::types::{JobRecord, ObjectListing, ObjectRecord, ObjectStoreRecord};
use cohabit_console::table::{self, cell};
use cohabit_console::{Screen, printable_line};
use comfy_table::Row;

use super::silence::omissions;

/// What the table leaves out on purpose: `MAX_INLINE` of `cohabit-application-core`.
const INLINE: &str = "Values of at most 64 KiB are no objects: they travel in messages and are not listed.\n";

const HEADINGS: [&str; 6] = ["ID", "SIZE", "NODE", "PLACE", "HOLDERS", "MAPPED BY"];

/// A line for each store, the table, and what it does not list; `records` are those of the jobs of silent
/// stores.
pub(crate) fn objects_table(listing: &ObjectListing, records: &[JobRecord], screen: Screen) -> String {
    let stores: String = listing.stores.iter().map(store).collect();
    let mut table = table::table(&HEADINGS, screen);
    table.add_rows(listing.objects.iter().map(row));
    let missing = omissions(listing.omitted, ("object", "objects"), &listing.silent, records);
    stores + &table::text(&table) + &missing + INLINE
}

fn store(store: &ObjectStoreRecord) -> String {
    let ObjectStoreRecord { member, node, memory, disk, budget } = store;
    let line = format!("{node} (job {}): {memory} of {budget} in memory, {disk} on disk", member.job());
    printable_line(&line).into_owned() + "\n"
}

fn row(object: &ObjectRecord) -> Row {
    let mapped = object.mapped_by.iter().map(|member| member.job().to_string());
    let mut row = Row::new();
    row.add_cell(cell(&object.id))
        .add_cell(cell(object.bytes))
        .add_cell(cell(&object.node))
        .add_cell(cell(object.place))
        .add_cell(cell(object.holders))
        .add_cell(cell(mapped.collect::<Vec<_>>().join(",")));
    row
}
