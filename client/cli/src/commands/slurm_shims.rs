//! `slurm-shims`: writes the programs `sbatch`, `squeue`, `scancel` and `sinfo`, which call this one.

use std::env;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use cohabit_console::{CommandError, CommandErrorKind, output};

use crate::arguments::{SlurmProgram, SlurmShimsArguments};

/// The second line of every program, by which an earlier one is recognized.
const MARK: &str = "# Written by `cohabit slurm-shims`: Cohabit in place of Slurm's program.";

pub(super) fn slurm_shims(arguments: &SlurmShimsArguments) -> Result<ExitCode, CommandError> {
    let program = env::current_exe().map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot find this program: {error}"))
    })?;
    let written = write_shims(&arguments.dir, &program)?;
    let folder = fs::canonicalize(&arguments.dir).unwrap_or_else(|_| arguments.dir.clone());
    output::print_text(&format!(
        "Wrote {} to {}\nTo use them: export PATH={}:$PATH",
        written.join(", "),
        folder.display(),
        quoted(&folder)?
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the programs, unless one of the names belongs to something else.
fn write_shims(folder: &Path, program: &Path) -> Result<Vec<&'static str>, CommandError> {
    fs::create_dir_all(folder).map_err(|error| failed("create", folder, &error))?;
    let names: Vec<&'static str> = SlurmProgram::value_variants().iter().map(|it| it.name()).collect();
    for name in &names {
        refuse_foreign(&folder.join(name))?;
    }
    let program = quoted(program)?;
    for name in &names {
        let text = format!("#!/bin/sh\n{MARK}\nexec {program} slurm {name} \"$@\"\n");
        replace(&folder.join(name), &text)?;
    }
    Ok(names)
}

/// What is there must be an earlier program of this kind.
fn refuse_foreign(path: &Path) -> Result<(), CommandError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("read", path, &error)),
        Ok(_) => {}
    }
    let is_own = fs::read(path).is_ok_and(|bytes| {
        String::from_utf8_lossy(&bytes).lines().nth(1) == Some(MARK) && !path.is_symlink()
    });
    if is_own {
        return Ok(());
    }
    Err(CommandError::invalid(format!(
        "{} is there already and was not written by this command: give a directory of its own with --dir",
        path.display()
    )))
}

/// A program that runs at the moment is replaced, and not changed.
fn replace(path: &Path, text: &str) -> Result<(), CommandError> {
    let new = path.with_extension("new");
    let written = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o755))?;
        fs::rename(&new, path)
    };
    written().map_err(|error| failed("write", path, &error))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("cannot {what} {}: {error}", path.display()))
}

/// The path as a shell reads it.
fn quoted(path: &Path) -> Result<String, CommandError> {
    let text = path.to_str().and_then(|text| shlex::try_quote(text).ok());
    text.map(std::borrow::Cow::into_owned).ok_or_else(|| {
        CommandError::invalid(format!("{} is not valid UTF-8: use another path", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn programs_are_written_again_and_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let shims = folder.path().join("new/shims");
        let program = Path::new("/opt/my tools/cohabit");
        for _ in 0..2 {
            let names = write_shims(&shims, program).unwrap();
            assert_eq!(names, ["sbatch", "squeue", "scancel", "sinfo"]);
        }
        let path = shims.join("squeue");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("exec '/opt/my tools/cohabit' slurm squeue \"$@\"\n"), "{text}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(&shims).unwrap().count(), 4);

        fs::write(&path, "#!/bin/sh\nsqueue of somebody else\n").unwrap();
        let refusal = write_shims(&shims, program).unwrap_err().message;
        assert!(refusal.contains("squeue is there already") && refusal.contains("--dir"), "{refusal}");
        fs::remove_file(&path).unwrap();
        symlink(shims.join("sinfo"), &path).unwrap();
        assert!(write_shims(&shims, program).is_err());
    }
}
