//! What users see of the objects of the application.

use std::cmp::Reverse;

use cohabit_application_core::{ApplicationDescription, ObjectFigures, ObjectPlace, StoreFigures};
use cohabit_types::{
    AttemptId, Bytes, MOST_LISTED, ObjectListing, ObjectLocation, ObjectRecord, ObjectStoreRecord,
};

/// The listing of what the store in the process `member` has, the largest objects first.
pub(super) fn listing(
    member: AttemptId,
    figures: StoreFigures,
    application: &ApplicationDescription,
) -> ObjectListing {
    let StoreFigures { budget, memory, disk, mut objects } = figures;
    objects.sort_by_key(|it| (Reverse(it.bytes), it.object));
    let omitted = objects.len().saturating_sub(MOST_LISTED) as u64;
    objects.truncate(MOST_LISTED);
    let record = |ObjectFigures { object, bytes, place, mapped }: ObjectFigures| ObjectRecord {
        id: object.to_string(),
        bytes: Bytes(bytes),
        store: member,
        place: match place {
            None => ObjectLocation::Making,
            Some(ObjectPlace::Memory) => ObjectLocation::Memory,
            Some(ObjectPlace::Disk) => ObjectLocation::Disk,
        },
        holders: application.object_holders.get(&object).copied().unwrap_or(0),
        mapped_by: mapped.into_iter().map(|(member, _)| member).collect(),
    };
    let store = ObjectStoreRecord { member, memory: Bytes(memory), disk: Bytes(disk), budget: Bytes(budget) };
    ObjectListing {
        stores: vec![store],
        objects: objects.into_iter().map(record).collect(),
        omitted,
        silent: Vec::new(),
    }
}
