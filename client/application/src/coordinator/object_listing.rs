//! What users see of the objects of the application.

use cohabit_types::ObjectListing;

/// The listing of all objects. The coordinator owns none yet: this is the place to list them.
pub(super) fn listing() -> ObjectListing {
    ObjectListing::default()
}
