//! Job scripts: their text is copied into the job, and lines such as `#COHABIT --gpus 0.5` at the top are
//! flags.
//!
//! Directives precede the first command, as in Slurm. Each line is checked separately, so that an error can
//! name it, and all errors are told at once. An unknown flag of `#COHABIT` is an error. What `#SBATCH` lines
//! become is in `slurm`: an option of them that is unknown, or means nothing here, is a warning. `#COHABIT`
//! lines override `#SBATCH` lines, and flags on the command line override both.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cohabit_console::CommandError;

use crate::job_flags::check_flags;
use crate::slurm::{Remark, SlurmRequest};

/// Larger files that start with `#!` are programs with an embedded script; they are not copied.
pub(crate) const MAX_SCRIPT_BYTES: u64 = 1 << 20;

const COHABIT_MARKER: &str = "#COHABIT";
const SLURM_MARKER: &str = "#SBATCH";

/// The script that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    path: PathBuf,
    text: String,
}

/// What the directives of a script say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Directives {
    /// Flags of the job, in the order in which later ones override earlier ones.
    pub(crate) flags: Vec<String>,
    /// What there is to know about lines that have no effect, or another one than in Slurm.
    pub(crate) warnings: Vec<String>,
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

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// A script that is not in a file, with a name for messages.
    pub(crate) fn of(path: &Path, text: &str) -> Script {
        Script { path: path.to_owned(), text: text.to_owned() }
    }

    /// The path that it was read from.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What its directives say. `names_gpus`: whether flags of the command line say how many GPUs it gets.
    pub(crate) fn directives(&self, names_gpus: bool) -> Result<Directives, CommandError> {
        self.directives_with(None, names_gpus)
    }

    /// What its directives say. Options of a command line of `sbatch`, if that submits it, override them.
    pub(crate) fn directives_with(
        &self,
        command_line: Option<SlurmRequest>,
        names_gpus: bool,
    ) -> Result<Directives, CommandError> {
        let (mut flags, mut errors) = (Vec::new(), Vec::new());
        let mut request = SlurmRequest::default();
        let mut is_for_slurm = command_line.is_some();
        for (line, directive) in directives(&self.text) {
            let (Directive::Cohabit(text) | Directive::Slurm(text)) = directive;
            let Some(words) = shlex::split(text) else {
                errors.push(Remark { line: Some(line), text: "unbalanced quotation mark".into() });
                continue;
            };
            match directive {
                Directive::Slurm(_) => {
                    is_for_slurm = true;
                    request.add_line(line, &words);
                }
                Directive::Cohabit(_) => match check_flags(&words) {
                    Ok(()) => flags.extend(words),
                    Err(text) => errors.push(Remark { line: Some(line), text }),
                },
            }
        }
        let names_gpus = names_gpus || flags.iter().any(|flag| flag.starts_with("--gpus"));
        let mut directives = Directives { flags, warnings: Vec::new() };
        if is_for_slurm {
            command_line.into_iter().for_each(|options| request.override_with(options));
            let translated = request.translate(names_gpus);
            directives.flags.splice(0..0, translated.flags);
            directives.warnings = translated.warnings.iter().map(|it| self.place(it)).collect();
            errors.extend(translated.errors);
        }
        errors.sort_by_key(|error| error.line);
        let errors: Vec<String> = errors.iter().map(|it| self.place(it)).collect();
        if errors.is_empty() { Ok(directives) } else { Err(CommandError::invalid(errors.join("\n"))) }
    }

    /// The remark with its place in front.
    fn place(&self, remark: &Remark) -> String {
        match remark.line {
            Some(line) => format!("{}:{line}: {}", self.path.display(), remark.text),
            None => remark.text.clone(),
        }
    }

    /// The numbers of lines with directives after the first command, which are not read.
    pub(crate) fn late_directives(&self) -> Vec<usize> {
        let header = header_length(&self.text);
        let lines = self.text.lines().enumerate().skip(header);
        lines.filter(|(_, line)| directive(line).is_some()).map(|(number, _)| number + 1).collect()
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

#[cfg(test)]
mod tests;
