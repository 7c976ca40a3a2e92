//! How much cores and host memory speed the simulated jobs up, and what policies know of that.

use std::path::Path;
use std::sync::Arc;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_sim::workload::{SensitivityTables, Workload, noisy_tables, read_sensitivity};
use cohabit_sim::{Hardware, MachineSpec, SensitivityProfiles, SensitivityTable};
use cohabit_types::Bytes;

use crate::simulate::arguments::{SensitivityKnowledge, WorkloadArguments};

/// Names of profiles in an error.
const MOST_NAMES: usize = 20;

/// The tables that groups of jobs draw from.
pub(super) struct Sensitivity {
    tables: SensitivityTables,
    known: SensitivityKnowledge,
    /// Sentences about tables that were left out.
    pub(super) left_out: Vec<String>,
}

/// What holds in one run.
#[derive(Debug, Default, Clone)]
pub(super) struct SeededSensitivity {
    /// The table of each group.
    pub(super) truth: Arc<SensitivityProfiles>,
    /// What policies know of them.
    pub(super) known: Arc<SensitivityProfiles>,
}

impl Sensitivity {
    /// Reads the tables of --sensitivity for these machines, if there are any.
    pub(super) fn read(
        arguments: &WorkloadArguments,
        machines: &[MachineSpec],
    ) -> Result<Option<Sensitivity>, CommandError> {
        let given = &arguments.sensitivity;
        let Some(path) = &given.sensitivity else { return Ok(None) };
        if !arguments.cluster.spec.has_host_resources() {
            let message = format!(
                "--sensitivity needs the cores and the memory of each machine, which '{}' (--cluster) does not have: \
                 write them after a comma, as in 8x8:V100@25g,24c500G",
                arguments.cluster.written
            );
            return Err(CommandError::new(CommandErrorKind::Usage, message));
        }
        let unusable = |error: &dyn std::error::Error| {
            CommandError::from_error(CommandErrorKind::Impossible("unusable_table"), error)
        };
        let (tables, left_out) = read_sensitivity(path).map_err(|error| unusable(&error))?;
        let tables = selected(tables, &given.sensitivity_models, path)?;
        tables.iter().try_for_each(|(name, table)| check(name, table, machines))?;
        Ok(Some(Sensitivity { tables, known: given.known(), left_out }))
    }

    /// The jobs with ranges on these machines, and the tables of their groups.
    pub(super) fn apply(
        &self,
        workload: Workload,
        machines: &[MachineSpec],
        seed: u64,
    ) -> (Workload, SeededSensitivity) {
        let (workload, truth) = workload.with_ranges(machines, &self.tables, seed);
        let truth = Arc::new(truth);
        let known = match self.known {
            SensitivityKnowledge::Exact => Arc::clone(&truth),
            SensitivityKnowledge::Noisy(sigma) => Arc::new(noisy_tables(&truth, sigma, seed)),
            SensitivityKnowledge::None => Arc::default(),
        };
        (workload, SeededSensitivity { truth, known })
    }
}

impl Sensitivity {
    /// The names of the tables.
    #[cfg(feature = "predict")]
    pub(super) fn names(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }
}

impl SeededSensitivity {
    /// The hardware on which jobs have these tables.
    pub(super) fn hardware(&self, usual: &Hardware) -> Hardware {
        Hardware { sensitivity: Arc::clone(&self.truth), ..usual.clone() }
    }
}

/// The tables with these names, or all if none are given.
fn selected(
    tables: SensitivityTables,
    names: &[String],
    path: &Path,
) -> Result<SensitivityTables, CommandError> {
    if names.is_empty() {
        return Ok(tables);
    }
    if let Some(unknown) = names.iter().find(|name| !tables.contains_key(*name)) {
        let known: Vec<&str> = tables.keys().take(MOST_NAMES).map(String::as_str).collect();
        let more = match tables.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (path, known) = (path.display(), known.join(", "));
        let message =
            format!("--sensitivity-models: '{unknown}' is not a profile of {path}, which has {known}{more}");
        return Err(CommandError::new(CommandErrorKind::Usage, message));
    }
    Ok(tables.into_iter().filter(|(name, _)| names.contains(name)).collect())
}

/// Speeds are relative to that at the proportional share, so there must be one.
fn check(name: &str, table: &SensitivityTable, machines: &[MachineSpec]) -> Result<(), CommandError> {
    let memory = machines.iter().map(|it| it.memory.0 / u64::from(it.devices.max(1))).min();
    let (has, needs) =
        (Bytes(memory.unwrap_or_default()), table.memory().first().copied().unwrap_or_default());
    if has.0 as f64 >= needs {
        return Ok(());
    }
    let needs = Bytes(needs as u64);
    let message = format!(
        "profile '{name}' of --sensitivity needs {needs} of host memory for each GPU, and machines of --cluster have \
         {has}: give them more memory, or choose other profiles with --sensitivity-models"
    );
    Err(CommandError::new(CommandErrorKind::Impossible("unusable_table"), message))
}
