//! `sbatch`: submits a script, or the command of `--wrap`, with its `#SBATCH` lines and the options typed.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;
use cohabit_client::types::JobInput;
use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, output};

use super::super::{dry_run, submission};
use super::words::{connection, usage};
use crate::arguments::{CommandLine, SubmissionArguments, Verb};
use crate::endpoint::connect;
use crate::process::exit_code;
use crate::script::{MAX_SCRIPT_BYTES, Script};
use crate::slurm::{SlurmRequest, SubmissionOption};
use cohabit_console::usage_message;

/// A script that has no name of its own.
const STANDARD_INPUT: &str = "sbatch";

pub(super) async fn sbatch(words: &[String]) -> Result<ExitCode, CommandError> {
    let mut request = SlurmRequest::default();
    let operands = request.add_command_line(words).map_or(&[][..], |at| &words[at..]);
    let has = |option| request.submission(option).is_some();
    let (is_parsable, is_quiet) = (has(SubmissionOption::Parsable), has(SubmissionOption::Quiet));
    let (waits, is_test) = (has(SubmissionOption::Wait), has(SubmissionOption::TestOnly));
    let (script, command) = script(request.submission(SubmissionOption::Wrap), operands)?;
    let (arguments, warnings) = arguments(request, &script, command)?;
    warnings.iter().for_each(|warning| output::print_message(&format!("warning: {warning}")));

    let client = connect(&connection()).await?;
    let prepared = submission::prepare(&client, arguments, Some(script), JobInput::Empty).await?;
    if is_test {
        return dry_run::dry_run(&client, &prepared.submission, OutputFormat::Table).await;
    }
    let job = prepared.submit(&client).await?;
    match (is_parsable, is_quiet) {
        (true, _) => output::print_text(&job.id().to_string())?,
        (false, false) => output::print_text(&format!("Submitted batch job {}", job.id()))?,
        (false, true) => {}
    }
    if !waits {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(exit_code(job.wait().await?.shell_code().unwrap_or(0)))
}

/// The script, and the command that runs it with its arguments.
fn script(wrapped: Option<&str>, operands: &[String]) -> Result<(Script, Vec<String>), CommandError> {
    match (wrapped, operands) {
        (Some(_), [_, ..]) => Err(usage("Script arguments not permitted with --wrap option")),
        (Some(command), []) => {
            let text = format!("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n");
            Ok((Script::of(Path::new("wrap"), &text), vec!["wrap".to_owned()]))
        }
        (None, []) => {
            let text = standard_input()?;
            Ok((Script::of(Path::new(STANDARD_INPUT), &text), vec![STANDARD_INPUT.to_owned()]))
        }
        (None, [path, ..]) => {
            let file = PathBuf::from(path);
            if let Err(error) = std::fs::metadata(&file) {
                return Err(CommandError::invalid(format!("Unable to open file {path}: {error}")));
            }
            let script = Script::at(&file)?.ok_or_else(not_a_script)?;
            Ok((script, operands.to_vec()))
        }
    }
}

fn not_a_script() -> CommandError {
    CommandError::invalid(
        "This does not look like a batch script. The first line must start with #! followed by the path to an \
         interpreter. For instance: #!/bin/sh",
    )
}

fn standard_input() -> Result<String, CommandError> {
    let mut text = String::new();
    let read = io::stdin().lock().take(MAX_SCRIPT_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot read the script: {error}"))
    })?;
    match text.len() as u64 {
        0..=MAX_SCRIPT_BYTES if text.starts_with("#!") && !text.contains('\0') => Ok(text),
        0..=MAX_SCRIPT_BYTES => Err(not_a_script()),
        _ => Err(CommandError::invalid(format!(
            "the script is larger than {MAX_SCRIPT_BYTES} bytes: keep its data in files"
        ))),
    }
}

/// The arguments of `submit` with the same meaning, and what there is to know about the options.
fn arguments(
    request: SlurmRequest,
    script: &Script,
    command: Vec<String>,
) -> Result<(SubmissionArguments, Vec<String>), CommandError> {
    let directives = script.directives_with(Some(request), false)?;
    let mut words = vec!["cohabit".to_owned(), "submit".to_owned()];
    words.extend(defaults(&directives.flags, script.path()));
    words.extend(directives.flags);
    words.push("--".to_owned());
    words.extend(command);
    match CommandLine::try_parse_from(words).map(|line| line.verb) {
        Ok(Verb::Submit(arguments)) => Ok((arguments.submission, directives.warnings)),
        Ok(_) => Err(usage("sbatch submits jobs only")),
        Err(error) => Err(usage(usage_message(&error))),
    }
}

/// What sbatch does where nothing else is said: the job has the name of the script's file, and its output
/// goes to a file.
fn defaults(flags: &[String], script: &Path) -> Vec<String> {
    let has = |name: &str| flags.iter().any(|flag| flag == name);
    let mut defaults = Vec::new();
    let name = script.file_name().and_then(|name| name.to_str());
    if let (false, Some(name)) = (has("--name"), name) {
        defaults.push(format!("--name={name}"));
    }
    if !has("--stdout") {
        let pattern = if has("--array") { "slurm-%A_%a.out" } else { "slurm-%j.out" };
        defaults.push(format!("--stdout={pattern}"));
    }
    defaults
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn arguments_of(line: &str, text: &str) -> Result<(SubmissionArguments, Vec<String>), CommandError> {
        let mut request = SlurmRequest::default();
        let words: Vec<String> = shlex::split(line).unwrap();
        request.add_command_line(&words);
        arguments(request, &Script::of(Path::new("/home/ada/train.sh"), text), vec!["train.sh".into()])
    }

    #[test]
    fn options_override_the_script_and_the_defaults_are_those_of_sbatch() {
        let text = "#!/bin/sh\n#SBATCH -J a --gres=gpu:2 --time=10\n#COHABIT --priority -1\n";
        let (read, warnings) = arguments_of("--time=20 --qos=x", text).unwrap();
        assert_eq!(read.job.name.as_deref(), Some("a"));
        assert_eq!(read.job.stdout.as_deref(), Some(Path::new("slurm-%j.out")));
        assert_eq!(read.job.time.map(|time| time.as_micros() / 1_000_000), Some(1_200));
        assert_eq!((read.job.priority, read.job.gpus_per_node), (Some(-1), Some(2)));
        assert!(read.job.slurm_env && warnings[0].starts_with("--qos has no effect"), "{warnings:?}");
        let (read, _) = arguments_of("-a 1-3 -e e.txt", "#!/bin/sh\n").unwrap();
        assert_eq!(read.job.name.as_deref(), Some("train.sh"));
        assert_eq!(read.job.stdout.as_deref(), Some(Path::new("slurm-%A_%a.out")));
        let (read, _) = arguments_of("", "#!/bin/sh\n").unwrap();
        assert!(read.job.slurm_env, "whatever sbatch submits is a job for Slurm");
        let refusal = arguments_of("--frob --time=x", "#!/bin/sh\n#SBATCH --mem=x\n").unwrap_err().message;
        assert_eq!(refusal.lines().count(), 3, "{refusal}");
    }

    #[test]
    fn a_script_comes_from_a_file_or_from_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.sh").to_str().unwrap().to_owned();
        let refusal = |operands: &[String]| script(None, operands).unwrap_err().message;
        assert!(refusal(std::slice::from_ref(&path)).starts_with("Unable to open file"));
        fs::write(&path, "echo\n").unwrap();
        assert!(refusal(std::slice::from_ref(&path)).contains("must start with #!"));
        fs::write(&path, "#!/bin/sh\necho\n").unwrap();
        let operands = [path, "-n".to_owned(), "3".to_owned()];
        assert_eq!(script(None, &operands).unwrap().1, operands);
        let (wrapped, command) = script(Some("nvidia-smi -L"), &[]).unwrap();
        assert_eq!(command, ["wrap"]);
        assert!(wrapped.into_text().ends_with("\n\nnvidia-smi -L\n"));
        assert!(script(Some("ls"), &operands).is_err());
    }
}
