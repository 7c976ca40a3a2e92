//! `profile`: finds this machine's worker directory and NVIDIA's library, and has the laboratory measure.

use std::process::ExitCode;

use cohabit_console::CommandError;
use cohabit_lab::profile::ProfileArguments;

use crate::config::{RawSettings, SettingKey, read_settings};
use crate::endpoint::path_flag;
use crate::worker_directory::worker_directory;

pub(super) fn profile(arguments: &ProfileArguments) -> Result<ExitCode, CommandError> {
    let mut flags = RawSettings::new();
    flags.extend(path_flag(SettingKey::State, arguments.state.as_deref())?);
    flags.extend(path_flag(SettingKey::NvmlLibrary, arguments.nvml_library.as_deref())?);
    let settings = read_settings(flags)?;
    let nvml_library = settings.path(SettingKey::NvmlLibrary);
    cohabit_lab::profile::run(arguments, nvml_library, || worker_directory(&settings))
}
