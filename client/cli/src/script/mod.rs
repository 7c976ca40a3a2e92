//! Job scripts: their text is copied into the job, and lines such as `#COHABIT --gpus 0.5` at the top are
//! flags.
//!
//! Directives precede the first command, as in Slurm. Each line is checked separately, so that an error can
//! name it. An unknown directive is an error. Flags on the command line override directives.

mod slurm;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args as _, Command};
use cohabit_console::CommandError;

use crate::arguments::JobArguments;
use crate::usage_message::usage_message;

/// Larger files that start with `#!` are programs with an embedded script; they are not copied.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

const COHABIT_MARKER: &str = "#COHABIT";
const SLURM_MARKER: &str = "#SBATCH";

/// The script that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    path: PathBuf,
    text: String,
}

impl Script {
    /// Reads the script at this path; `None` unless it is a text file that starts with `#!`.
    pub(crate) fn at(path: &Path) -> Result<Option<Script>, CommandError> {
        let unreadable =
            |error| CommandError::invalid(format!("cannot read the script {}: {error}", path.display()));
        let Ok(mut file) = fs::File::open(path) else { return Ok(None) };
        if !file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_SCRIPT_BYTES) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unreadable)?;
        let text =
            String::from_utf8(bytes).ok().filter(|text| text.starts_with("#!") && !text.contains('\0'));
        Ok(text.map(|text| Script { path: path.to_owned(), text }))
    }

    #[cfg(feature = "fuzzing")]
    pub(crate) fn of(path: &Path, text: &str) -> Script {
        Script { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// The flags of its directives, in order.
    pub(crate) fn flags(&self) -> Result<Vec<String>, CommandError> {
        let mut flags = Vec::new();
        for (line, directive) in directives(&self.text) {
            let refuse = |why| CommandError::invalid(format!("{}:{line}: {why}", self.path.display()));
            flags.extend(directive.flags().map_err(refuse)?);
        }
        Ok(flags)
    }

    /// The numbers of lines with directives after the first command, which are not read.
    pub(crate) fn late_directives(&self) -> Vec<usize> {
        let header = header_length(&self.text);
        let lines = self.text.lines().enumerate().skip(header);
        lines.filter(|(_, line)| line.starts_with(COHABIT_MARKER)).map(|(number, _)| number + 1).collect()
    }
}

/// A directive line without its marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive<'a> {
    Cohabit(&'a str),
    Slurm(&'a str),
}

/// The directives with their line numbers, from 1.
fn directives(text: &str) -> impl Iterator<Item = (usize, Directive<'_>)> {
    let header = text.lines().take(header_length(text)).enumerate();
    header.filter_map(|(number, line)| Some((number + 1, directive(line)?)))
}

/// The number of lines before the first command.
fn header_length(text: &str) -> usize {
    text.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty()).count()
}

fn directive(line: &str) -> Option<Directive<'_>> {
    let after = |marker| {
        line.strip_prefix(marker).filter(|rest: &&str| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    after(COHABIT_MARKER).map(Directive::Cohabit).or_else(|| after(SLURM_MARKER).map(Directive::Slurm))
}

impl Directive<'_> {
    fn flags(self) -> Result<Vec<String>, String> {
        let (Directive::Cohabit(text) | Directive::Slurm(text)) = self;
        let words = shlex::split(text).ok_or("unbalanced quotation mark")?;
        let flags = match self {
            Directive::Cohabit(_) => words,
            Directive::Slurm(_) => slurm::translate(&words)?,
        };
        check(&flags)?;
        Ok(flags)
    }
}

/// Checks that these are flags of a job, with the parser of the command line.
fn check(flags: &[String]) -> Result<(), String> {
    let reader =
        JobArguments::augment_args(Command::new("script").no_binary_name(true).disable_help_flag(true));
    match reader.try_get_matches_from(flags) {
        Ok(_) => Ok(()),
        Err(error) => Err(usage_message(&error)),
    }
}

#[cfg(test)]
mod tests;
