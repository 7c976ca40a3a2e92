//! The settings of a command: its flags, then the environment, then the configuration files.
//!
//! `cohabit-settings`, which the SDK uses as well, reads them; what it has to say besides is printed here.

use cohabit_console::CommandError;
use cohabit_console::output::print_message;

#[cfg(feature = "worker")]
pub(crate) use cohabit_settings::SettingSource;
#[cfg(feature = "fuzzing")]
pub(crate) use cohabit_settings::parse_settings;
pub(crate) use cohabit_settings::{RawSettings, SettingKey, Settings};

/// These flags, then the environment, then the configuration files.
pub(crate) fn read_settings(flags: RawSettings) -> Result<Settings, CommandError> {
    let settings = Settings::with_flags(flags)?;
    settings.warnings().iter().for_each(|warning| print_message(&format!("warning: {warning}")));
    Ok(settings)
}
