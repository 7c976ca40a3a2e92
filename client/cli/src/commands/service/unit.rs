//! The text of a unit.

use std::path::Path;

use cohabit_console::CommandError;

use crate::arguments::ServiceDaemon;

/// The first version of systemd that keeps a service and what it started in cgroups of their own.
const WITH_SUBGROUPS: u32 = 254;

/// The number of a version of systemd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) struct SystemdVersion(u32);

impl SystemdVersion {
    /// The version in what `systemctl --version` prints: `systemd 252 (252.22-1~deb12u1)`.
    pub(super) fn parse(text: &str) -> Option<SystemdVersion> {
        let number = text.strip_prefix("systemd ")?.split(|it: char| !it.is_ascii_digit()).next()?;
        number.parse().ok().map(SystemdVersion)
    }
}

/// What a unit is made of.
pub(super) struct Unit<'a> {
    pub(super) daemon: ServiceDaemon,
    pub(super) is_of_user: bool,
    pub(super) program: &'a Path,
    pub(super) flags: &'a [String],
    /// The systemd that will read it; the latest one if that is not known.
    pub(super) systemd: Option<SystemdVersion>,
}

impl Unit<'_> {
    /// The name of its file.
    pub(super) fn name(&self) -> String {
        format!("cohabit-{}.service", self.daemon.command())
    }

    /// Its text.
    ///
    /// # Errors
    /// When a path or a flag cannot be written in a unit.
    pub(super) fn text(&self) -> Result<String, CommandError> {
        let program = self.program.to_str().ok_or_else(|| {
            CommandError::invalid(format!("{} is not valid UTF-8: use another path", self.program.display()))
        })?;
        let words = [program, self.daemon.command(), "start"].into_iter();
        let words = words.chain(self.flags.iter().map(String::as_str));
        let command = words.map(quoted).collect::<Result<Vec<String>, CommandError>>()?.join(" ");
        let daemon = self.daemon.command();
        let target = if self.is_of_user { "default.target" } else { "multi-user.target" };
        let has_scope = self.has_scope();
        let scope = if self.is_of_user {
            "/usr/bin/systemd-run --user --scope"
        } else {
            "/usr/bin/systemd-run --scope"
        };
        let start = match has_scope {
            true => format!("{scope} --quiet -p Delegate=yes -p TasksMax=infinity {command}"),
            false => command,
        };
        let own = match self.daemon {
            ServiceDaemon::Head => "LimitNOFILE=1048576\n".to_owned(),
            ServiceDaemon::Worker => of_worker(has_scope),
        };
        Ok(format!(
            "# Written by `cohabit service install {daemon}`.\n\
             [Unit]\n\
             Description=Cohabit {daemon}\n\
             Wants=network-online.target\n\
             After=network-online.target\n\
             StartLimitIntervalSec=0\n\
             \n\
             [Service]\n\
             ExecStart={start}\n\
             Restart=always\n\
             RestartSec=2\n\
             {own}\
             \n\
             [Install]\n\
             WantedBy={target}\n"
        ))
    }

    /// Whether a worker needs a scope of its own, because its systemd could not start it again while jobs
    /// run in the cgroup of the service.
    fn has_scope(&self) -> bool {
        self.daemon == ServiceDaemon::Worker
            && self.systemd.is_some_and(|it| it < SystemdVersion(WITH_SUBGROUPS))
    }
}

/// Jobs outlive the daemon: only its own process ends with the service.
fn of_worker(has_scope: bool) -> String {
    let delegation = match has_scope {
        true => "",
        false => "Delegate=yes\nDelegateSubgroup=daemon\nTasksMax=infinity\n",
    };
    format!("KillMode=process\n{delegation}LimitMEMLOCK=infinity\nLimitNOFILE=1048576\n")
}

/// A word as systemd reads it in `ExecStart`.
fn quoted(word: &str) -> Result<String, CommandError> {
    if word.chars().any(char::is_control) {
        return Err(CommandError::invalid(format!(
            "{word:?} contains a control character: a unit cannot hold it"
        )));
    }
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=,@+%$".contains(it);
    match !escaped.is_empty() && escaped.chars().all(is_plain) {
        true => Ok(escaped),
        false => Ok(format!("\"{escaped}\"")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn unit(daemon: ServiceDaemon, systemd: Option<u32>, flags: &[String]) -> String {
        let program = Path::new("/bin/true");
        let systemd = systemd.map(SystemdVersion);
        Unit { daemon, is_of_user: false, program, flags, systemd }.text().unwrap()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        assert_eq!(quoted("--state=/var/lib/a_b").unwrap(), "--state=/var/lib/a_b");
        assert_eq!(quoted("a b").unwrap(), "\"a b\"");
        assert_eq!(quoted("50%$x\"\\").unwrap(), "\"50%%$$x\\\"\\\\\"");
        assert_eq!(quoted("").unwrap(), "\"\"");
        assert!(quoted("a\nExecStartPre=/bin/sh").is_err());
    }

    #[test]
    fn a_worker_keeps_its_jobs_with_every_systemd() {
        let flags = words(&["--join", "head:7070"]);
        let (old, new) =
            (unit(ServiceDaemon::Worker, Some(252), &flags), unit(ServiceDaemon::Worker, Some(254), &flags));
        assert!(old.contains("ExecStart=/usr/bin/systemd-run --scope --quiet -p Delegate=yes"), "{old}");
        assert!(!old.contains("DelegateSubgroup") && old.contains("KillMode=process"), "{old}");
        assert!(new.contains("ExecStart=/bin/true worker start --join head:7070\n"), "{new}");
        assert!(new.contains("DelegateSubgroup=daemon\n"), "{new}");
        assert_eq!(SystemdVersion::parse("systemd 252 (252.22-1~deb12u1)\n+PAM"), Some(SystemdVersion(252)));
        assert_eq!(SystemdVersion::parse("systemd 257~rc1"), Some(SystemdVersion(257)));
        assert_eq!(SystemdVersion::parse("launchd"), None);
    }

    /// The program of systemd that reads units is the judge, where it is installed.
    #[test]
    fn systemd_finds_no_fault_with_the_units() {
        let folder = tempfile::tempdir().unwrap();
        for (daemon, flags) in [
            (ServiceDaemon::Head, words(&["--state", "/tmp/50% of $HOME \"x\""])),
            (ServiceDaemon::Worker, words(&["--join", "head:7070"])),
        ] {
            let path = folder.path().join(format!("cohabit-{}.service", daemon.command()));
            std::fs::write(&path, unit(daemon, Some(254), &flags)).unwrap();
            match Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&path).output() {
                Ok(verified) => {
                    let told = String::from_utf8_lossy(&verified.stderr);
                    // What an older systemd does not know it says, and ignores.
                    let faults = told.lines().filter(|line| line.contains(path.to_str().unwrap()));
                    let faults: Vec<&str> =
                        faults.filter(|line| !line.contains("DelegateSubgroup")).collect();
                    assert!(faults.is_empty(), "{told}");
                }
                Err(error) => eprintln!("skipped: systemd-analyze cannot be run: {error}"),
            }
        }
    }
}
