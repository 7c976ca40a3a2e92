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
    #[serde(default, skip_serializing_if = "is_zero")]
    open_part: u32,
    #[serde(default = "usual_keep_for", skip_serializing_if = "is_usual_keep_for")]
    keep_for: Span,
    #[serde(with = "As::<StoredUserLimits>", default, skip_serializing_if = "is_usual")]
    user: types::UserLimits,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

fn usual_keep_for() -> Span {
    types::ShareTable::default().keep_for
}

fn is_usual_keep_for(span: &Span) -> bool {
    *span == usual_keep_for()
}

fn is_usual(limits: &types::UserLimits) -> bool {
    *limits == types::UserLimits::default()
}

fn is_unlimited(limits: &types::RunningLimits) -> bool {
    limits.is_unlimited()
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::UserLimits")]
pub(crate) struct StoredUserLimits {
    #[serde(with = "As::<StoredRunningLimits>", default, skip_serializing_if = "is_unlimited")]
    running: types::RunningLimits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queued_jobs: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    submits_per_minute: Option<u32>,
    high_gpu_hours: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::RunningLimits")]
pub(crate) struct StoredRunningLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gpus: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jobs: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ShareProject")]
pub(crate) struct StoredShareProject {
    weight: u32,
    guaranteed: u64,
    users: BTreeSet<String>,
    #[serde(with = "As::<StoredRunningLimits>", default, skip_serializing_if = "is_unlimited")]
    running: types::RunningLimits,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RecentUse")]
pub(crate) struct StoredRecentUse {
    held: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    low: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    high: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    high_used: u128,
    #[serde(default, skip_serializing_if = "is_zero")]
    fixed: u64,
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
    StoredUserLimits => types::UserLimits,
    StoredRunningLimits => types::RunningLimits,
    StoredRecentUse => RecentUse,
}
