//! The file of workloads: every mistake in it is told, with its line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cohabit_client::proto::{Bytes, ModelDescription};
use cohabit_profiler::ProfileWorkload;
use serde::Deserialize;
use toml::Spanned;

use crate::failure::CommandError;
use crate::place::line_of;
use crate::specification::description;

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadFile {
    workloads: Vec<Spanned<WorkloadTable>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadTable {
    name: Spanned<String>,
    model: Option<String>,
    batch: Option<Spanned<u64>>,
    #[serde(default)]
    precision: String,
    command: Spanned<Vec<String>>,
    workdir: Option<Spanned<PathBuf>>,
    description: Option<Spanned<PathBuf>>,
    memory: Option<Spanned<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// The workloads of a file.
pub(super) fn read(file: &Path) -> Result<Vec<ProfileWorkload>, CommandError> {
    let text = fs::read_to_string(file).map_err(|error| {
        CommandError::invalid(format!("--workloads {} cannot be read: {error}", file.display()))
    })?;
    understood(file, &text)
}

/// The workloads of this text, which lies in the file.
pub(crate) fn understood(file: &Path, text: &str) -> Result<Vec<ProfileWorkload>, CommandError> {
    let mut reader = Reader { file, text, mistakes: Vec::new() };
    let workloads = match toml::from_str::<WorkloadFile>(text) {
        Ok(written) => reader.all(written),
        Err(error) => {
            reader.wrong(error.span().map_or(0, |span| span.start), error.message());
            Vec::new()
        }
    };
    if reader.mistakes.is_empty() {
        Ok(workloads)
    } else {
        Err(CommandError::invalid(reader.mistakes.join("\n")))
    }
}

struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    /// All that is wrong, with where it stands.
    mistakes: Vec<String>,
}

impl Reader<'_> {
    fn wrong(&mut self, offset: usize, message: &str) {
        let line = line_of(self.text, offset);
        self.mistakes.push(format!("{}:{line}: {message}", self.file.display()));
    }

    fn all(&mut self, written: WorkloadFile) -> Vec<ProfileWorkload> {
        if written.workloads.is_empty() {
            self.wrong(0, "there is no workload: add a [[workloads]] table");
        }
        let mut workloads: Vec<ProfileWorkload> = Vec::new();
        for written in written.workloads {
            let at = written.span().start;
            let name = written.get_ref().name.clone();
            if workloads.iter().any(|known| known.name == *name.get_ref()) {
                self.wrong(name.span().start, &format!("there are two workloads '{}'", name.get_ref()));
            }
            workloads.push(self.one(at, written.into_inner()));
        }
        workloads
    }

    fn one(&mut self, at: usize, written: WorkloadTable) -> ProfileWorkload {
        let description = written.description.and_then(|file| self.description(&file));
        if written.name.get_ref().trim().is_empty() {
            self.wrong(written.name.span().start, "a workload needs a name");
        }
        if written.command.get_ref().first().is_none_or(String::is_empty) {
            let example = "command = [\"python\", \"train.py\"]";
            self.wrong(written.command.span().start, &format!("there is no program: write {example}"));
        }
        let memory = written.memory.and_then(|memory| self.memory(&memory));
        let workdir = written.workdir.map_or_else(|| PathBuf::from("."), |folder| self.workdir(&folder));
        ProfileWorkload {
            model: self.model(at, written.model, description.as_ref()),
            batch: self.batch(at, written.batch, description.as_ref()),
            name: written.name.into_inner(),
            precision: written.precision,
            command: written.command.into_inner(),
            workdir,
            memory,
            environment: written.env,
            description,
        }
    }

    /// Paths are relative to the file.
    fn beside(&self, path: &Path) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    fn description(&mut self, file: &Spanned<PathBuf>) -> Option<ModelDescription> {
        match description(&self.beside(file.get_ref())) {
            Ok(description) => Some(description),
            Err(failure) => {
                self.wrong(file.span().start, &failure.to_string());
                None
            }
        }
    }

    fn workdir(&mut self, folder: &Spanned<PathBuf>) -> PathBuf {
        let path = self.beside(folder.get_ref());
        if !path.is_dir() {
            self.wrong(folder.span().start, &format!("workdir: there is no folder {}", path.display()));
        }
        path
    }

    fn memory(&mut self, memory: &Spanned<String>) -> Option<Bytes> {
        let read = memory.get_ref().parse::<Bytes>().map_err(|error| error.to_string());
        let read = read
            .and_then(|bytes| if bytes == Bytes::ZERO { Err("it may not be 0".into()) } else { Ok(bytes) });
        read.map_err(|error| self.wrong(memory.span().start, &format!("memory: {error}"))).ok()
    }

    fn model(&mut self, at: usize, own: Option<String>, described: Option<&ModelDescription>) -> String {
        let model = own.or_else(|| described?.name.clone()).filter(|model| !model.is_empty());
        model.unwrap_or_else(|| {
            self.wrong(at, "no model is named: add model = \"…\", or a description with a name");
            String::new()
        })
    }

    fn batch(&mut self, at: usize, own: Option<Spanned<u64>>, described: Option<&ModelDescription>) -> u64 {
        let described = described.and_then(|model| model.batch_size);
        match (own, described) {
            (Some(own), Some(described)) if *own.get_ref() != described => {
                let message =
                    format!("batch is {}, but the description says batch-size = {described}", own.get_ref());
                self.wrong(own.span().start, &message);
                described
            }
            (Some(own), _) => own.into_inner(),
            (None, Some(described)) => described,
            (None, None) => {
                self.wrong(at, "the batch is not known: add batch = 32, or a description with a batch-size");
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, description: &str) -> Result<Vec<ProfileWorkload>, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("net.toml"), description).unwrap();
        let file = folder.path().join("w.toml");
        fs::write(&file, text).unwrap();
        let place = format!("{}/", folder.path().display());
        read(&file).map_err(|failure| failure.message.replace(&place, ""))
    }

    #[test]
    fn a_workload_has_all_that_its_file_and_its_description_say() {
        let text = "[[workloads]]\nname = 'a'\ncommand = ['python', 'a.py']\ndescription = 'net.toml'\n\
                    precision = 'bf16'\nmemory = '8G'\nworkdir = '.'\nenv = { SEED = '1' }\n\
                    [[workloads]]\nname = 'b'\nmodel = 'vgg'\nbatch = 4\ncommand = ['b']\n";
        let workloads = read_text(text, "name = 'resnet'\nbatch-size = 64\nparameters = 3\n").unwrap();
        let first = &workloads[0];
        assert_eq!((first.model.as_str(), first.batch, first.memory), ("resnet", 64, Some(Bytes(8 << 30))));
        assert_eq!(first.environment, [("SEED".to_owned(), "1".to_owned())].into());
        assert_eq!(first.description.as_ref().and_then(|model| model.parameters), Some(3));
        let second = &workloads[1];
        assert_eq!(
            (second.model.as_str(), second.batch, second.workdir.as_path()),
            ("vgg", 4, Path::new("."))
        );
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let text = "[[workloads]]\nname = 'a'\nmodel = 'm'\nbatch = 1\ncommand = []\nmemory = 'lots'\n\n\
                    [[workloads]]\nname = 'a'\ncommand = ['x']\nworkdir = 'nowhere'\n\n\
                    [[workloads]]\nname = 'c'\nbatch = 8\ncommand = ['x']\ndescription = 'net.toml'\n\n\
                    [[workloads]]\nname = 'd'\nmodel = 'm'\nbatch = 8\ncommand = ['x']\ndescription = 'none.toml'\n";
        let told = read_text(text, "name = 'n'\nbatch-size = 64\n").unwrap_err();
        let lines: Vec<&str> = told.lines().collect();
        for (line, words) in [
            "w.toml:5: there is no program",
            "w.toml:6: memory: 'lots' is not an amount of memory",
            "w.toml:9: there are two workloads 'a'",
            "w.toml:11: workdir: there is no folder nowhere",
            "w.toml:8: no model is named",
            "w.toml:8: the batch is not known",
            "w.toml:15: batch is 8, but the description says batch-size = 64",
            "w.toml:24: the description none.toml cannot be read",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(lines[line].starts_with(words), "{words}: {told}");
        }
        assert_eq!(lines.len(), 8, "{told}");
    }

    #[test]
    fn what_is_no_file_of_workloads_is_refused_with_its_line() {
        let refused = |text: &str| read_text(text, "").unwrap_err();
        assert!(refused("workloads = []").starts_with("w.toml:1: there is no workload"));
        assert!(refused("\nx = 1").starts_with("w.toml:2: unknown field `x`"));
        assert!(refused("[[workloads]]\nname = 'a'\nbatch = 'x'\n").starts_with("w.toml:3: invalid type"));
        assert!(refused("[[workloads]]\ncolour = 1\n").starts_with("w.toml:2: unknown field `colour`"));
    }
}
