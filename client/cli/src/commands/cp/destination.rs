//! Where copies go on this machine, by the rules of `cp`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cohabit_client::types::{JobRef, LogStream};
use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, output};
use cohabit_transfer::Target;

use crate::arguments::{CpArguments, JobPath, NO_UPLOAD};

/// Where copies go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    /// The standard output.
    Output,
    /// A directory that is there.
    Into(PathBuf),
    /// This path, which one file or directory gets.
    At(PathBuf),
}

/// Names of the standard output. As files they would be replaced by others.
const OWN_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// The standard output of this program.
struct OwnOutput;

impl Destination {
    /// Where `sources` go, which these arguments name.
    pub(super) fn of(
        destination: &Path,
        sources: &[JobPath],
        arguments: &CpArguments,
    ) -> Result<Destination, CommandError> {
        let CpArguments { recursive, display, .. } = arguments;
        let shown = destination.display();
        if OWN_OUTPUT.iter().any(|name| destination.as_os_str() == *name) {
            return match (sources, recursive, display.output) {
                ([_], false, OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet) => {
                    Ok(Destination::Output)
                }
                ([_], false, OutputFormat::Json) => Err(CommandError::invalid(
                    "the standard output gets the file, so it has no room for --output json: name another DEST",
                )),
                _ => Err(CommandError::invalid("- takes one file: name a directory as DEST for more")),
            };
        }
        if is_of_job(destination) {
            return Err(CommandError::invalid(format!(
                "'{shown}' names a file of a job. {NO_UPLOAD}. A file of this machine with such a name is ./{shown}"
            )));
        }
        match fs::metadata(destination) {
            Ok(found) if found.is_dir() => Ok(Destination::Into(
                fs::canonicalize(destination).map_err(|error| unusable(destination, &error))?,
            )),
            _ if sources.len() > 1 => Err(CommandError::invalid(format!(
                "'{shown}' is no directory: {} are to be copied, and need one that is there",
                cohabit_client::types::counted(sources.len(), "path", "paths")
            ))),
            // The file that a link leads to is replaced, not the link.
            Ok(_) => fs::canonicalize(destination)
                .map(Destination::At)
                .map_err(|error| unusable(destination, &error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => new(destination, *recursive),
            Err(error) => Err(unusable(destination, &error)),
        }
    }

    /// Where this goes, for people.
    pub(super) fn shown(&self, source: &JobPath) -> PathBuf {
        match self.target(source) {
            Target::Path(path) => path,
            Target::Stream(_) => "-".into(),
        }
    }

    /// Where this goes.
    pub(super) fn target(&self, source: &JobPath) -> Target {
        match self {
            Destination::Output => Target::Stream(Box::new(OwnOutput)),
            Destination::Into(directory) => match source.name() {
                Some(name) => Target::Path(directory.join(name)),
                None => Target::Path(directory.clone()),
            },
            Destination::At(path) => Target::Path(path.clone()),
        }
    }
}

/// A path at which nothing is yet.
fn new(destination: &Path, recursive: bool) -> Result<Destination, CommandError> {
    let shown = destination.display();
    if destination.as_os_str().as_encoded_bytes().ends_with(b"/") && !recursive {
        let message = format!("directory '{shown}' does not exist: create it, or leave out the / at its end");
        return Err(CommandError::new(CommandErrorKind::NotFound, message));
    }
    let above = destination.parent().filter(|above| !above.as_os_str().is_empty());
    match fs::metadata(above.unwrap_or(Path::new("."))) {
        Ok(found) if found.is_dir() && destination.file_name().is_some() => {
            Ok(Destination::At(destination.components().collect()))
        }
        _ => {
            let message = format!("the directory above '{shown}' does not exist: create it");
            Err(CommandError::new(CommandErrorKind::NotFound, message))
        }
    }
}

/// Whether this would be a file of a job, where one is named. A file of this machine has a `/` before the
/// colon.
fn is_of_job(destination: &Path) -> bool {
    destination
        .to_str()
        .and_then(|text| text.split_once(':'))
        .is_some_and(|(job, _)| !job.contains('/') && job.parse::<JobRef>().is_ok())
}

fn unusable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("cannot use '{}': {error}", path.display()))
}

impl Write for OwnOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match output::print_bytes(LogStream::Stdout, bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) if error.kind == CommandErrorKind::ClosedPipe => Err(io::ErrorKind::BrokenPipe.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use clap::{Parser, Subcommand};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        verb: Verb,
    }

    #[derive(Subcommand)]
    enum Verb {
        Cp(CpArguments),
    }

    fn destination(words: &[&str]) -> Result<Destination, CommandError> {
        let Verb::Cp(arguments) = Line::try_parse_from([&["x", "cp"], words].concat()).unwrap().verb;
        let (sources, destination) = arguments.sources_and_destination()?;
        Destination::of(destination, &sources, &arguments)
    }

    #[test]
    fn a_directory_keeps_the_name_and_another_path_gives_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
        fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        let into = destination(&["1:a", "1:b", &at("")]).unwrap();
        assert_eq!(into, Destination::Into(root.clone()));
        let target = |source: &str| match into.target(&source.parse().unwrap()) {
            Target::Path(path) => path,
            Target::Stream(_) => panic!("it is a path"),
        };
        assert_eq!((target("1:out/model.pt"), target("1:.")), (root.join("model.pt"), root.clone()));
        assert_eq!(destination(&["1:a", &at("new")]), Ok(Destination::At(root.join("new"))));
        assert_eq!(destination(&["1:a", &at("link")]), Ok(Destination::At(root.join("file"))));
        assert_eq!(destination(&["-r", "1:a", &at("new/")]), Ok(Destination::At(root.join("new"))));
        assert_eq!(destination(&["1:a", "--limit", "5G", "-"]), Ok(Destination::Output));
    }

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("file"), "").unwrap();
        let refused = |words: &[&str]| {
            let refused = destination(words).unwrap_err();
            (refused.kind, refused.message)
        };
        for words in [&["1:a", "2:b", "-"][..], &["-r", "1:a", "-"], &["1:a", "-", "--output", "json"]] {
            assert_eq!(refused(words).0, CommandErrorKind::Usage, "{words:?}");
        }
        assert!(refused(&["1:a", "2:b"]).1.contains("cohabit exec JOB -- tee PATH < FILE"));
        assert!(refused(&["1:a", "1:b", &at("file")]).1.contains("2 paths"));
        assert!(refused(&["1:a"]).1.contains("cohabit cp JOB:PATH DEST"));
        for name in ["new/", "no/where"] {
            assert_eq!(refused(&["1:a", &at(name)]).0, CommandErrorKind::NotFound, "{name}");
        }
    }
}
