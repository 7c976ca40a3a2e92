//! Errors of the SDK, and refusals by the head, as errors of a command.

use cohabit_client::{CodeError, Error as ClientError};
use cohabit_settings::{SettingsError, SettingsErrorKind};
use cohabit_types::{Refusal, RefusalCode};

use super::{CommandError, CommandErrorKind};

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> CommandError {
        let kind = match refusal.code {
            RefusalCode::Invalid => CommandErrorKind::Usage,
            RefusalCode::Unsatisfiable => CommandErrorKind::Impossible("unsatisfiable"),
            RefusalCode::Ambiguous => CommandErrorKind::Impossible("ambiguous"),
            RefusalCode::WrongState => CommandErrorKind::Impossible("wrong_state"),
            RefusalCode::NotFound => CommandErrorKind::NotFound,
            RefusalCode::NotAllowed => CommandErrorKind::NotAllowed,
            RefusalCode::Unavailable | RefusalCode::StorageFailed | RefusalCode::Limit => {
                CommandErrorKind::TryLater
            }
            RefusalCode::Internal => CommandErrorKind::Internal,
        };
        CommandError::new(kind, refusal.message)
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> CommandError {
        let kind = match &error {
            ClientError::Refused(refusal) => return refusal.clone().into(),
            ClientError::Unreachable(_) => CommandErrorKind::Unreachable,
            ClientError::NotAllowed(_) => CommandErrorKind::NotAllowed,
            ClientError::Unconfirmed { .. } => CommandErrorKind::TryLater,
            ClientError::InvalidJob(_) => CommandErrorKind::Usage,
            ClientError::Code(error) => kind_of(error),
            ClientError::Configuration(_) | ClientError::Link(_) => CommandErrorKind::Configuration,
            ClientError::Protocol(_) => CommandErrorKind::Protocol,
            // Variants that a later SDK adds.
            _ => CommandErrorKind::Internal,
        };
        CommandError::from_error(kind, &error)
    }
}

impl From<SettingsError> for CommandError {
    fn from(error: SettingsError) -> CommandError {
        let kind = match error.kind {
            SettingsErrorKind::Flag => CommandErrorKind::Usage,
            SettingsErrorKind::Configuration => CommandErrorKind::Configuration,
            SettingsErrorKind::HeadStopped => CommandErrorKind::Unreachable,
        };
        CommandError::new(kind, error.message)
    }
}

/// Most of what is wrong with a folder, its user can put right.
fn kind_of(error: &CodeError) -> CommandErrorKind {
    match error {
        CodeError::Git { .. } | CodeError::Unreadable { .. } => CommandErrorKind::InputOutput,
        CodeError::Changing(_) => CommandErrorKind::TryLater,
        CodeError::Folder { .. } => CommandErrorKind::NotFound,
        CodeError::NotUnderGit(_)
        | CodeError::NotUtf8 { .. }
        | CodeError::BadPattern { .. }
        | CodeError::TooLarge(_)
        | CodeError::Impossible(_)
        // Variants that a later SDK adds.
        | _ => CommandErrorKind::Usage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_their_code_for_scripts_and_get_an_exit_code() {
        let failure = CommandError::from(Refusal::new(RefusalCode::Unsatisfiable, "no node has 9 GPUs"));
        assert_eq!(failure.kind.exit_code(), 65);
        assert_eq!(
            serde_json::to_string(&failure.document()).unwrap(),
            r#"{"schema":1,"error":{"code":"unsatisfiable","message":"no node has 9 GPUs"}}"#
        );
        assert_eq!(CommandError::from(Refusal::new(RefusalCode::NotAllowed, "")).kind.exit_code(), 77);
    }
}
