//! Parses the command line.
//!
//! If the command of `submit`, `run` or `sweep` is a script with directives, the line is parsed again with
//! the flags of the script before those that were typed: the last occurrence of a flag wins. The flags in the
//! file of a sweep stand between both.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser as _};
use cohabit_console::{CommandError, CommandErrorKind, Screen, output};

use crate::arguments::{CommandLine, OutputFormat, Verb, help_command};
use crate::script::{Directives, Script};
use crate::sweep::job_flags_of;
use cohabit_console::usage_message;

/// The words before the flags: the name of the program and the subcommand.
const BEFORE_FLAGS: usize = 2;

/// The most columns of a help text.
const WIDEST_HELP: usize = 100;

/// Why there is no command to run.
#[derive(Debug)]
pub(crate) enum CommandLineError {
    /// clap rejected it, or it asks for help.
    Clap(clap::Error, OutputFormat),
    /// The script that it names is unreadable or has a bad directive.
    Script(CommandError, OutputFormat),
}

/// A command line that was understood.
#[derive(Debug)]
pub(crate) struct ParsedCommandLine {
    /// What to do.
    pub(crate) verb: Verb,
    /// The script that the command of `submit` or `run` names.
    pub(crate) script: Option<Script>,
    /// What there is to know about its directives.
    pub(crate) warnings: Vec<String>,
}

/// Parses the words of a command line.
pub(crate) fn read(words: Vec<OsString>) -> Result<ParsedCommandLine, CommandLineError> {
    let words = with_help_as_flag(words);
    let verb = parse(&words)?;
    let format = verb.format();
    let fail = |error| CommandLineError::Script(error, format);
    let Some((job, command)) = verb.submitted() else {
        return Ok(ParsedCommandLine { verb, script: None, warnings: Vec::new() });
    };
    let script = script_of(command).map_err(fail)?;
    let Directives { mut flags, warnings } = match &script {
        Some(script) => script.directives(job.names_gpus()).map_err(fail)?,
        None => Directives::default(),
    };
    if let Some(file) = verb.submitted_sweep().and_then(|sweep| sweep.file.as_deref()) {
        flags.extend(job_flags_of(file).map_err(fail)?);
    }
    let verb = if flags.is_empty() { verb } else { parse(&with_flags(&words, flags))? };
    Ok(ParsedCommandLine { verb, script, warnings })
}

fn parse(words: &[OsString]) -> Result<Verb, CommandLineError> {
    let parsed = match asks_for_help(words) {
        true => parse_with_help(words),
        false => CommandLine::try_parse_from(words),
    };
    Ok(parsed.map_err(|error| CommandLineError::Clap(error, format_of(words)))?.verb)
}

/// Whether the answer may be a help text: those take a while to put together.
fn asks_for_help(words: &[OsString]) -> bool {
    words.len() < BEFORE_FLAGS || words.iter().any(|word| word == "--help" || word == "-h")
}

fn parse_with_help(words: &[OsString]) -> Result<CommandLine, clap::Error> {
    let width = Screen::of_stdout().width.map_or(WIDEST_HELP, |width| usize::from(width).min(WIDEST_HELP));
    let mut command = help_command(width);
    let mut matches = command.try_get_matches_from_mut(words)?;
    CommandLine::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// `cohabit help run` is `cohabit run --help`.
fn with_help_as_flag(words: Vec<OsString>) -> Vec<OsString> {
    match words.get(1).is_some_and(|word| word == "help") {
        false => words,
        true => {
            let (program, asked) = (words[..1].iter(), words[2..].iter());
            program.chain(asked).cloned().chain(["--help".into()]).collect()
        }
    }
}

fn script_of(command: &[String]) -> Result<Option<Script>, CommandError> {
    match command.first() {
        Some(program) if !program.is_empty() => Script::at(Path::new(program)),
        Some(_) | None => Ok(None),
    }
}

fn with_flags(words: &[OsString], flags: Vec<String>) -> Vec<OsString> {
    let (before, typed) = words.split_at(BEFORE_FLAGS.min(words.len()));
    before.iter().cloned().chain(flags.into_iter().map(Into::into)).chain(typed.iter().cloned()).collect()
}

/// The output format, for a command line that was rejected.
fn format_of(words: &[OsString]) -> OutputFormat {
    let ours = words.iter().take_while(|word| *word != "--");
    let pairs = ours.clone().zip(ours.clone().skip(1));
    let is_json = ours.clone().any(|word| word == "--output=json")
        || pairs.into_iter().any(|(flag, value)| flag == "--output" && value == "json");
    if is_json { OutputFormat::Json } else { OutputFormat::Table }
}

impl CommandLineError {
    /// Prints the error, or the help, and returns the exit code: 0 for help.
    pub(crate) fn report(self) -> ExitCode {
        let (failure, format) = match self {
            CommandLineError::Script(failure, format) => (failure, format),
            CommandLineError::Clap(error, OutputFormat::Json) if error.use_stderr() => {
                (CommandError::new(CommandErrorKind::Usage, usage_message(&error)), OutputFormat::Json)
            }
            CommandLineError::Clap(error, _) => {
                // Nobody reads the output any more.
                let _ = error.print();
                return u8::try_from(error.exit_code()).unwrap_or(2).into();
            }
        };
        output::print_error(&failure, format);
        failure.exit_code()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cohabit_client::types::{GpuRequest, Share, Span};

    use super::*;
    use crate::arguments::{SnapshotArgument, SubmissionArguments};

    fn read_words(words: &[&str]) -> Result<ParsedCommandLine, CommandLineError> {
        read(words.iter().map(Into::into).collect())
    }

    fn submission(words: &[&str]) -> (SubmissionArguments, Option<Script>) {
        let ParsedCommandLine { verb, script, .. } = read_words(words).unwrap();
        let Verb::Submit(arguments) = verb else { panic!("{verb:?}") };
        (arguments.submission, script)
    }

    #[test]
    fn the_command_line_overrides_flags_of_the_script() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.sh");
        fs::write(&path, "#!/bin/sh\n#COHABIT --gpus 0.5 --time 1h --env A=1\n").unwrap();
        let path = path.to_str().unwrap();

        let (read, script) =
            submission(&["cohabit", "submit", "--time", "2h", "--env", "B=2", path, "--gpus", "9"]);
        assert_eq!(read.job.gpus, Some(GpuRequest::Part(Share(500))));
        assert_eq!(read.job.time, Some(Span::from_secs(7_200)));
        assert_eq!(read.job.env.len(), 2);
        assert_eq!(read.command, [path, "--gpus", "9"]);
        assert!(script.is_some());
    }

    #[test]
    fn the_command_line_overrides_whether_the_script_may_be_preempted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.sh");
        let path = path.to_str().unwrap();
        for (directive, flag, expected) in [
            ("--stop-signal USR1@60s", "--no-preemptible", false),
            ("--preemptible", "--no-preemptible", false),
            ("--no-preemptible", "--preemptible", true),
            ("--no-preemptible", "--stop-signal=USR1", false),
        ] {
            fs::write(path, format!("#!/bin/sh\n#COHABIT {directive}\n")).unwrap();
            let (read, _) = submission(&["cohabit", "submit", flag, path]);
            assert_eq!(read.job.is_preemptible(), expected, "{directive}, then {flag}");
        }
    }

    #[test]
    fn the_command_line_overrides_the_snapshot_that_the_script_asks_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.sh");
        fs::write(&path, "#!/bin/sh\n#COHABIT --snapshot\n").unwrap();
        let path = path.to_str().unwrap();
        let (read, _) = submission(&["cohabit", "submit", path]);
        assert_eq!(read.job.snapshot, Some(SnapshotArgument::Git));
        let (read, _) = submission(&["cohabit", "submit", "--snapshot=no", path]);
        assert_eq!(read.job.snapshot, Some(SnapshotArgument::No));
    }

    #[test]
    fn everything_after_the_command_belongs_to_it() {
        let (read, _) =
            submission(&["cohabit", "submit", "--gpus", "1", "python", "train.py", "--gpus", "4", "--help"]);
        assert_eq!(read.command, ["python", "train.py", "--gpus", "4", "--help"]);
        let (read, script) = submission(&["cohabit", "submit", "--", "-x", "--", "y"]);
        assert_eq!(read.command, ["-x", "--", "y"]);
        assert!(script.is_none());
    }

    #[test]
    fn the_error_of_a_bad_directive_names_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.sh");
        fs::write(&path, "#!/bin/sh\n#SBATCH --time=soon\n").unwrap();
        let unread = read_words(&["cohabit", "run", "--output", "json", path.to_str().unwrap()]).unwrap_err();
        let CommandLineError::Script(failure, format) = unread else { panic!("{unread:?}") };
        assert_eq!(format, OutputFormat::Json);
        assert!(failure.message.contains("train.sh:2: --time: 'soon' is not a time of Slurm"), "{failure}");
    }

    #[test]
    fn the_output_format_is_recognized_in_a_rejected_command_line() {
        let format = |words: &[&str]| {
            let unread = read_words(words).unwrap_err();
            let CommandLineError::Clap(_, format) = unread else { panic!("{unread:?}") };
            format
        };
        assert_eq!(format(&["cohabit", "list", "--nonsense", "--output", "json"]), OutputFormat::Json);
        assert_eq!(format(&["cohabit", "list", "--nonsense", "--output=json"]), OutputFormat::Json);
        assert_eq!(
            format(&["cohabit", "submit", "--nonsense", "--", "x", "--output=json"]),
            OutputFormat::Table
        );
    }
}
