//! `head recover`: shows what in the journal stops every start, and sets the event aside or repairs the log.

use std::process::ExitCode;

use cohabit_console::{CommandError, output, with_schema};
use cohabit_head::{
    LogRepair, RepairedLog, UnreplayableEvent, quarantine, repair_journal, retry_replay, unreplayable_event,
};
use serde::Serialize;

use super::failure::failure;
use crate::arguments::{HeadRecoverArguments, OutputFormat};
use crate::config::{RawSettings, SettingKey, read_settings};
use crate::endpoint::{path_flag, state_directory};

/// `{"event", "what", "why", "quarantined"}`; nulls where everything can be replayed.
#[derive(Serialize)]
struct RecoveryDocument {
    event: Option<u64>,
    what: Option<String>,
    why: Option<String>,
    quarantined: bool,
}

/// `{"repaired", "last_event", "damaged_log"}`; nulls where the log was sound.
#[derive(Serialize)]
struct RepairDocument {
    repaired: bool,
    last_event: Option<u64>,
    damaged_log: Option<String>,
}

pub(super) fn recover(arguments: &HeadRecoverArguments) -> Result<ExitCode, CommandError> {
    let flags: RawSettings = path_flag(SettingKey::State, arguments.state.as_deref())?.into_iter().collect();
    let state = state_directory(&read_settings(flags)?)?;
    if let Some(repair) = repair_of(arguments) {
        let repaired = repair_journal(&state, repair).map_err(failure)?;
        print_repair(repaired.as_ref(), arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.retry {
        retry_replay(&state).map_err(failure)?;
    }
    let found = match arguments.quarantine {
        Some(event) => Some(quarantine(&state, event).map_err(failure)?),
        None => unreplayable_event(&state).map_err(failure)?,
    };
    print(found.as_ref(), arguments)?;
    Ok(ExitCode::SUCCESS)
}

fn repair_of(arguments: &HeadRecoverArguments) -> Option<LogRepair> {
    match (arguments.salvage, arguments.cut) {
        (true, _) => Some(LogRepair::Salvage),
        (false, true) => Some(LogRepair::Cut),
        (false, false) => None,
    }
}

fn print_repair(
    repaired: Option<&RepairedLog>,
    arguments: &HeadRecoverArguments,
) -> Result<(), CommandError> {
    match (arguments.display.output, repaired) {
        (OutputFormat::Json, _) => output::print_document(&with_schema(RepairDocument {
            repaired: repaired.is_some(),
            last_event: repaired.map(|it| it.last_event),
            damaged_log: repaired.map(|it| it.kept.display().to_string()),
        })),
        (OutputFormat::Quiet, repaired) => {
            output::print_text(&repaired.map(|it| it.last_event.to_string()).unwrap_or_default())
        }
        (OutputFormat::Table | OutputFormat::Wide, None) => {
            output::print_text("The write-ahead log of the journal is sound: nothing was changed")
        }
        (OutputFormat::Table | OutputFormat::Wide, Some(RepairedLog { last_event, kept })) => {
            output::print_text(&format!(
                "The journal is whole up to event {last_event}, and the head starts with it. The damaged log is kept as {}",
                kept.display()
            ))
        }
    }
}

fn print(found: Option<&UnreplayableEvent>, arguments: &HeadRecoverArguments) -> Result<(), CommandError> {
    let quarantined = arguments.quarantine.is_some();
    match (arguments.display.output, found) {
        (OutputFormat::Json, _) => output::print_document(&with_schema(RecoveryDocument {
            event: found.map(|it| it.event),
            what: found.map(|it| it.what.clone()),
            why: found.map(|it| it.why.clone()),
            quarantined,
        })),
        (OutputFormat::Quiet, found) => {
            output::print_text(&found.map(|it| it.event.to_string()).unwrap_or_default())
        }
        (OutputFormat::Table | OutputFormat::Wide, None) => {
            output::print_text("The journal can be replayed: nothing has to be set aside")
        }
        (OutputFormat::Table | OutputFormat::Wide, Some(UnreplayableEvent { event, what, why })) => {
            let next = match quarantined {
                true => {
                    "It is set aside in the table `quarantine` of the journal. The head starts without it"
                }
                false => {
                    "To start without it: `cohabit head recover --quarantine EVENT`; to try again: `--retry`"
                }
            };
            output::print_text(&format!("Event {event} ({what}) {why}\n{next}"))
        }
    }
}
