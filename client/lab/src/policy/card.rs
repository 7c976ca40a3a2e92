//! `policy show`: the description of trained agents.

use std::path::Path;

use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, output};
use cohabit_predict::maifs::{AgentsCard, AgentsStoreError, NetworkAgents, StoredAgents};
use cohabit_predict::{FileAction, StoredFileError};

use super::arguments::PolicyShowArguments;

pub(super) fn show(arguments: &PolicyShowArguments) -> Result<(), CommandError> {
    let card = StoredAgents::load(&arguments.agents).map_err(|error| unusable(&error))?.card;
    match arguments.display.output {
        OutputFormat::Json => output::print_document(&card),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&text(&card)),
        OutputFormat::Quiet => output::print_text(&card.digest),
    }
}

/// The agents in a directory.
pub(crate) fn load_agents(folder: &Path) -> Result<NetworkAgents, CommandError> {
    let stored = StoredAgents::load(folder).map_err(|error| unusable(&error))?;
    stored.agents().map_err(|error| CommandError::from_error(CommandErrorKind::Internal, &error))
}

/// The description as a sheet.
pub(super) fn text(card: &AgentsCard) -> String {
    let training = &card.training;
    let attention = if card.attention { "with attention" } else { "without attention" };
    let learned = format!(
        "{} episodes of the teacher, then {} of their own; {} updates in the whole training",
        training.taught_episodes, training.episodes, training.updates
    );
    let mut lines = vec![
        ("trained by", format!("cohabit {}, seed {}", card.cohabit, card.seed)),
        ("networks", format!("{} levels of a share, {attention}", card.shape.levels)),
        ("coordination", card.coordination.clone()),
        ("clusters", training.clusters.join(", ")),
        ("workloads", training.workloads.join(", ")),
        ("sensitivities", training.sensitivities.join(", ")),
        ("learned from", learned),
    ];
    let figures = &card.validation;
    let figure = |name: &str| figures.get(name).copied();
    if let (Some(ratio), Some(mean)) = (figure("mean_jct_ratio_to_teacher"), figure("mean_jct_seconds")) {
        let percent = ratio * 100.0;
        let conflicts = figure("conflicts_per_sub_step")
            .map_or_else(String::new, |count| format!(", {count:.3} conflicts in a sub-step"));
        let text = format!("mean JCT {mean:.0} s, {percent:.1}% of the teacher's{conflicts}");
        lines.push(("on validation", text));
    }
    lines.push(("command", card.command.clone()));
    lines.iter().map(|(name, value)| format!("{name:15} {value}\n")).collect()
}

/// The error of a directory that holds no usable agents.
pub(super) fn unusable(error: &AgentsStoreError) -> CommandError {
    let kind = match error {
        AgentsStoreError::File(StoredFileError { action: FileAction::Read, .. }) => {
            CommandErrorKind::NotFound
        }
        AgentsStoreError::File(StoredFileError {
            action: FileAction::Write | FileAction::Create, ..
        })
        | AgentsStoreError::Unwritable(_) => CommandErrorKind::InputOutput,
        AgentsStoreError::Card { .. }
        | AgentsStoreError::Format { .. }
        | AgentsStoreError::Schema { .. }
        | AgentsStoreError::Shape { .. }
        | AgentsStoreError::Unusable { .. }
        | AgentsStoreError::Digest { .. } => CommandErrorKind::Impossible("unusable_agents"),
    };
    CommandError::from_error(kind, error)
}
