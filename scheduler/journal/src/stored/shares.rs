//! The table of fair share, and what users hold and used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_fair_share::RecentUse;
use cohabit_scheduler_core::state::ShareBook;
use cohabit_types::{self as types, Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::{As, DeserializeAs, Same, SerializeAs};

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ShareTable")]
pub(crate) struct StoredShareTable {
    half_life: Span,
    prices: BTreeMap<String, u32>,
    #[serde(with = "As::<BTreeMap<Same, StoredShareProject>>")]
    projects: BTreeMap<String, types::ShareProject>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ShareProject")]
pub(crate) struct StoredShareProject {
    weight: u32,
    guaranteed: u64,
    users: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RecentUse")]
pub(crate) struct StoredRecentUse {
    held: u64,
    used: u128,
    at: Time,
}

/// Absent in snapshots of releases without fair share, where nobody has used anything.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredShareBook {
    #[serde(with = "As::<StoredShareTable>")]
    table: types::ShareTable,
    #[serde(with = "As::<BTreeMap<Same, StoredRecentUse>>")]
    used: BTreeMap<String, RecentUse>,
}

impl SerializeAs<ShareBook> for StoredShareBook {
    fn serialize_as<S: Serializer>(book: &ShareBook, serializer: S) -> Result<S::Ok, S::Error> {
        let (table, used) = (types::ShareTable::clone(book.table()), book.used().clone());
        Serialize::serialize(&StoredShareBook { table, used }, serializer)
    }
}

impl<'de> DeserializeAs<'de, ShareBook> for StoredShareBook {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<ShareBook, D::Error> {
        let StoredShareBook { table, used } = <StoredShareBook as Deserialize>::deserialize(deserializer)?;
        Ok(ShareBook::new(Arc::new(table), used))
    }
}

shape_of! {
    StoredShareTable => types::ShareTable,
    StoredShareProject => types::ShareProject,
    StoredRecentUse => RecentUse,
}
