//! `service install`: writes the unit with which systemd starts the head or a worker.
//!
//! It enables and starts nothing: the commands that do are printed, for whoever has the right to run them.

mod unit;

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser as _;
use cohabit_console::{CommandError, CommandErrorKind, output};

use self::unit::{SystemdVersion, Unit};
use crate::arguments::{CommandLine, ServiceArguments, ServiceInstallArguments, ServiceVerb};

/// Where units of the machine are.
const SYSTEM_UNITS: &str = "/etc/systemd/system";

pub(super) fn service(arguments: &ServiceArguments) -> Result<ExitCode, CommandError> {
    match &arguments.verb {
        ServiceVerb::Install(install) => self::install(install),
    }
}

fn install(arguments: &ServiceInstallArguments) -> Result<ExitCode, CommandError> {
    check_flags(arguments)?;
    let program = env::current_exe().map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot find this program: {error}"))
    })?;
    let unit = Unit {
        daemon: arguments.daemon,
        is_of_user: arguments.user,
        program: &program,
        flags: &arguments.flags,
        systemd: systemd_version(),
    };
    let text = unit.text()?;
    if arguments.print {
        output::print_text(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = match &arguments.dir {
        Some(folder) => folder.clone(),
        None if arguments.user => user_units()?,
        None => PathBuf::from(SYSTEM_UNITS),
    };
    let path = folder.join(unit.name());
    write(&path, &text, arguments.force)?;
    let systemctl = if arguments.user { "systemctl --user" } else { "systemctl" };
    output::print_text(&format!(
        "Wrote {}\nTo start it now and with the machine: {systemctl} daemon-reload && {systemctl} enable --now {}\n\
         Its log: journalctl {}-u {}",
        path.display(),
        unit.name(),
        if arguments.user { "--user " } else { "" },
        unit.name(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Flags that the daemon would refuse, or that mean something else in the directory of a service, are refused
/// before anything is written.
fn check_flags(arguments: &ServiceInstallArguments) -> Result<(), CommandError> {
    let command = arguments.daemon.command();
    let words = ["cohabit", command, "start"].into_iter();
    let words = words.chain(arguments.flags.iter().map(String::as_str));
    CommandLine::try_parse_from(words).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default().trim_start_matches("error: ");
        CommandError::invalid(format!("`cohabit {command} start` does not understand these flags: {why}"))
    })?;
    let flags = &arguments.flags;
    let pairs = flags.iter().zip(flags.iter().skip(1).map(Some).chain([None]));
    for (flag, next) in pairs {
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag.as_str(), next.map(String::as_str)),
        };
        let is_path =
            ["--state", "--token-file", "--sensitivity", "--agents", "--nvml-library"].contains(&name);
        if let Some(value) = value.filter(|value| is_path && !value.starts_with('/')) {
            return Err(CommandError::invalid(format!(
                "{name} {value} is relative, and a service starts in /: give the full path"
            )));
        }
    }
    let has = |name: &str| flags.iter().any(|flag| flag == name || flag.starts_with(&format!("{name}=")));
    if arguments.daemon.command() == "worker" && !has("--join") {
        return Err(CommandError::invalid(
            "a worker needs the address of its head and a token: add -- --join HEAD:7070 --token-file /etc/cohabit/worker.token"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The systemd of this machine, if it has one.
fn systemd_version() -> Option<SystemdVersion> {
    let told = Command::new("systemctl").arg("--version").output().ok()?;
    SystemdVersion::parse(&String::from_utf8_lossy(&told.stdout))
}

fn user_units() -> Result<PathBuf, CommandError> {
    let base = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".config")));
    let base =
        base.ok_or_else(|| CommandError::invalid("HOME is not set: name a directory with --dir".to_owned()))?;
    Ok(base.join("systemd/user"))
}

/// Writes the unit, unless another one is there.
fn write(path: &Path, text: &str, force: bool) -> Result<(), CommandError> {
    match fs::read_to_string(path) {
        Ok(there) if there == text => return Ok(()),
        Ok(_) if !force => {
            return Err(CommandError::invalid(format!(
                "{} is there already and differs: look at the new one with --print, and replace it with --force",
                path.display()
            )));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("read", path, &error)),
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|error| failed("create", folder, &error))?;
    let new = path.with_extension("service.new");
    let written = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    written().map_err(|error| failed("write", path, &error))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> CommandError {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let remedy = if is_denied { ": run it as root, or with --user for your own account" } else { "" };
    CommandError::new(
        CommandErrorKind::InputOutput,
        format!("cannot {what} {}: {error}{remedy}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::ServiceDaemon;

    fn arguments(daemon: ServiceDaemon, flags: &[&str]) -> ServiceInstallArguments {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        ServiceInstallArguments { daemon, dir: None, user: false, print: false, force: false, flags }
    }

    #[test]
    fn flags_that_a_service_cannot_use_are_refused() {
        let check = |daemon, flags: &[&str]| {
            check_flags(&arguments(daemon, flags)).map_err(|refused| refused.message)
        };
        assert_eq!(check(ServiceDaemon::Head, &["--state", "/var/lib/cohabit"]), Ok(()));
        assert_eq!(check(ServiceDaemon::Worker, &["--join=head:7070", "--token-file", "/etc/t"]), Ok(()));
        for (daemon, flags, why) in [
            (ServiceDaemon::Head, &["--polcy", "fifo"][..], "does not understand"),
            (ServiceDaemon::Head, &["--state", "state"], "--state state is relative"),
            (ServiceDaemon::Head, &["--state=state"], "--state state is relative"),
            (ServiceDaemon::Worker, &[], "--join HEAD:7070"),
        ] {
            let refused = check(daemon, flags).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn a_unit_that_is_there_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("units/cohabit-head.service");
        for _ in 0..2 {
            write(&path, "one\n", false).unwrap();
        }
        let refused = write(&path, "two\n", false).unwrap_err().message;
        assert!(refused.contains("--force"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
        write(&path, "two\n", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
