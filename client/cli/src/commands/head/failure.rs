//! The errors of a head, and of its backups, as the command line reports them.

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_head::{BackupError, HeadError};

/// The error of a head that cannot start or has failed.
pub(in crate::commands) fn failure(error: HeadError) -> CommandError {
    let kind = match &error {
        HeadError::State { .. } | HeadError::Journal { .. } => CommandErrorKind::InputOutput,
        HeadError::Full { .. } => CommandErrorKind::TryLater,
        HeadError::Replayable { .. } | HeadError::NoJournal(_) => CommandErrorKind::Usage,
        HeadError::NetworkFileSystem { .. }
        | HeadError::WritableByOthers { .. }
        | HeadError::InUse { .. }
        | HeadError::JournalMissing { .. }
        | HeadError::Corrupt { .. }
        | HeadError::LogDamaged(_)
        | HeadError::CannotContinue { .. }
        | HeadError::CannotReplay { .. }
        | HeadError::Newer { .. }
        | HeadError::Listen(_)
        | HeadError::Secrets(_)
        | HeadError::Token(_)
        | HeadError::Policy(_)
        | HeadError::Interference { .. }
        | HeadError::NoModels { .. }
        | HeadError::Sensitivity(_)
        | HeadError::NoSensitivity(_)
        | HeadError::Agents(_)
        | HeadError::NoAgents(_) => CommandErrorKind::Configuration,
        HeadError::Failed(_) => CommandErrorKind::Internal,
    };
    CommandError::from_error(kind, &error)
}

/// The error of a backup that cannot be made or restored.
pub(super) fn backup_failure(error: BackupError) -> CommandError {
    let kind = match error {
        BackupError::Head(error) => return failure(error),
        BackupError::Io { .. } => CommandErrorKind::InputOutput,
        BackupError::OtherAccount { .. } => CommandErrorKind::NotAllowed,
        BackupError::Exists(_)
        | BackupError::NoFile(_)
        | BackupError::InsideState(_)
        | BackupError::NotEmpty(_) => CommandErrorKind::Usage,
        BackupError::Changed(_) | BackupError::NoRoom { .. } => CommandErrorKind::TryLater,
        BackupError::TooManyFiles { .. }
        | BackupError::Refused { .. }
        | BackupError::Newer { .. }
        | BackupError::Clock { .. } => CommandErrorKind::Configuration,
    };
    CommandError::from_error(kind, &error)
}
