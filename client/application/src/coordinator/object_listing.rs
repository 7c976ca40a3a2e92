//! What users see of the objects of the application.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_application_core::{
    ApplicationDescription, NodeNumber, ObjectFigures, ObjectPlace, StoreFigures,
};
use cohabit_types::{
    Bytes, MOST_LISTED, ObjectListing, ObjectLocation, ObjectRecord, ObjectStoreRecord, RankId,
};

use super::survey::SurveyResult;

/// The listing of what stores have, the largest objects first. `own` is the coordinator, in whose process the
/// store of its node is, and `further` are those of further nodes by the names of these.
pub(super) fn listing(
    found: SurveyResult<NodeNumber, StoreFigures>,
    (own, further): (RankId, &BTreeMap<String, RankId>),
    application: &ApplicationDescription,
) -> ObjectListing {
    let name = |node| application.nodes.iter().find(|it| it.node == node).map_or("", |it| it.name.as_str());
    let store_of = |node| match node {
        NodeNumber::COORDINATOR => own,
        further_node => further.get(name(further_node)).copied().unwrap_or(own),
    };
    let (mut stores, mut objects) = (Vec::new(), Vec::new());
    let mut untold = 0;
    for (node, StoreFigures { budget, memory, disk, objects: found, omitted }) in found.answers {
        untold += omitted;
        stores.push(ObjectStoreRecord {
            member: store_of(node),
            node: name(node).to_owned(),
            memory: Bytes(memory),
            disk: Bytes(disk),
            budget: Bytes(budget),
        });
        objects.extend(found.into_iter().map(|object| (node, object)));
    }
    stores.sort_by_key(|store| store.member != own);
    objects.sort_by_key(|(node, it)| (Reverse(it.bytes), it.object, *node));
    let omitted = untold + objects.len().saturating_sub(MOST_LISTED) as u64;
    objects.truncate(MOST_LISTED);
    let record = |(node, object): (NodeNumber, ObjectFigures)| ObjectRecord {
        id: object.object.to_string(),
        bytes: Bytes(object.bytes),
        store: store_of(node),
        node: name(node).to_owned(),
        place: match object.place {
            None => ObjectLocation::Making,
            Some(ObjectPlace::Memory) => ObjectLocation::Memory,
            Some(ObjectPlace::Disk) => ObjectLocation::Disk,
        },
        holders: application.object_holders.get(&object.object).copied().unwrap_or(0),
        mapped_by: object.mapped.into_iter().map(|(member, _)| member).collect(),
    };
    ObjectListing {
        stores,
        objects: objects.into_iter().map(record).collect(),
        omitted,
        silent: found.silent.into_iter().map(store_of).collect(),
    }
}
