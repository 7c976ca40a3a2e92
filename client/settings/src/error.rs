//! Errors in settings: what is wrong, where, and what to do.

/// A setting that cannot be used, or is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SettingsError {
    /// What kind of error it is.
    pub kind: SettingsErrorKind,
    /// What is wrong, where, and what to do.
    pub message: String,
}

/// What a program can do about an error in settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsErrorKind {
    /// A flag has a wrong value.
    Flag,
    /// A variable, a file or a state directory is wrong or missing.
    Configuration,
    /// The head that is meant does not run.
    HeadStopped,
}

impl SettingsError {
    /// An error in a variable, a file or a state directory.
    pub(crate) fn configuration(message: impl Into<String>) -> SettingsError {
        SettingsError { kind: SettingsErrorKind::Configuration, message: message.into() }
    }
}
