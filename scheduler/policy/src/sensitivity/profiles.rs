//! Whose tables are known: by group, model or name of a job.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::JobSpec;

use super::table::SensitivityTable;
use crate::JobTraits;

/// Tables by the name that jobs are known under.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct SensitivityProfiles(BTreeMap<String, Arc<SensitivityTable>>);

impl SensitivityProfiles {
    /// Adds the table of the jobs with this group, model or name, in place of an earlier one.
    pub fn insert(&mut self, name: impl Into<String>, table: Arc<SensitivityTable>) {
        self.0.insert(name.into(), table);
    }

    /// The table of a job: that of its group, else of the model that it trains, else of its name.
    #[must_use]
    pub fn find(&self, traits: &JobTraits) -> Option<&Arc<SensitivityTable>> {
        names(traits).find_map(|name| self.0.get(name))
    }

    /// The table of a job, by its specification, and the name that it is known under.
    #[must_use]
    pub fn find_for<'s>(&self, spec: &'s JobSpec) -> Option<(&'s str, &Arc<SensitivityTable>)> {
        let model = spec.model.as_ref().and_then(|model| model.name.as_deref());
        let names = [spec.group.as_deref(), model, Some(spec.name.as_str())];
        names.into_iter().flatten().find_map(|name| Some((name, self.0.get(name)?)))
    }

    /// All names with their tables.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<SensitivityTable>)> {
        self.0.iter().map(|(name, table)| (name.as_str(), table))
    }

    /// Whether no table is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a job is known under, the most telling name first.
pub(super) fn names(traits: &JobTraits) -> impl Iterator<Item = &str> {
    let model = traits.model.as_ref().and_then(|model| model.name.as_deref());
    [traits.group.as_deref(), model, Some(traits.name.as_str())].into_iter().flatten()
}
