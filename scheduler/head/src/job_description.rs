//! The demand of an ended job and the model that it trained, from its record.

use cohabit_policy::JobTraits;
use cohabit_types::{Demand, JobRecord, ModelDescription};

/// The demand and the traits of the job of this record, as far as the record keeps them.
pub(crate) fn demand_and_traits_of(record: &JobRecord) -> (Demand, JobTraits) {
    let trained = &record.trained;
    let named = trained.model.is_some() || trained.batch_size.is_some();
    let model = named.then(|| ModelDescription {
        name: trained.model.clone(),
        batch_size: trained.batch_size,
        precision: trained.precision.clone(),
        ..ModelDescription::default()
    });
    let traits = JobTraits {
        user: record.user.clone(),
        name: record.name.clone(),
        group: record.group.clone(),
        model,
        time_limit: record.time_limit,
        ..JobTraits::default()
    };
    (record.demand, traits)
}
