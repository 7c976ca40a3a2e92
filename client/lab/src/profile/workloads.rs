//! Reads the file of workloads. The error lists every mistake with its line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cohabit_console::model_description::read_model_description;
use cohabit_console::{CommandError, line_of};
use cohabit_profiler::ProfileWorkload;
use cohabit_types::{Bytes, ModelDescription};
use serde::Deserialize;
use toml::Spanned;

/// The file as written.
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

/// Reads the workloads of a file.
pub(super) fn read(file: &Path) -> Result<Vec<ProfileWorkload>, CommandError> {
    let text = fs::read_to_string(file).map_err(|error| {
        CommandError::invalid(format!("cannot read --workloads {}: {error}", file.display()))
    })?;
    parse_workloads(file, &text)
}

/// Parses the text of `file`.
///
/// # Errors
///
/// All mistakes, one per line, each with its file and line.
pub fn parse_workloads(file: &Path, text: &str) -> Result<Vec<ProfileWorkload>, CommandError> {
    let mut reader = Reader { file, text, mistakes: Vec::new() };
    let workloads = match toml::from_str::<WorkloadFile>(text) {
        Ok(written) => reader.read_all(written),
        Err(error) => {
            reader.add_mistake(error.span().map_or(0, |span| span.start), error.message());
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
    /// The mistakes, each with its file and line.
    mistakes: Vec<String>,
}

impl Reader<'_> {
    fn add_mistake(&mut self, offset: usize, message: &str) {
        let line = line_of(self.text, offset);
        self.mistakes.push(format!("{}:{line}: {message}", self.file.display()));
    }

    fn read_all(&mut self, written: WorkloadFile) -> Vec<ProfileWorkload> {
        if written.workloads.is_empty() {
            self.add_mistake(0, "no workloads: add a [[workloads]] table");
        }
        let mut workloads: Vec<ProfileWorkload> = Vec::new();
        for written in written.workloads {
            let at = written.span().start;
            let name = written.get_ref().name.clone();
            if workloads.iter().any(|known| known.name == *name.get_ref()) {
                self.add_mistake(name.span().start, &format!("duplicate workload '{}'", name.get_ref()));
            }
            workloads.push(self.read_one(at, written.into_inner()));
        }
        workloads
    }

    fn read_one(&mut self, at: usize, written: WorkloadTable) -> ProfileWorkload {
        let description = written.description.and_then(|file| self.description(&file));
        if written.name.get_ref().trim().is_empty() {
            self.add_mistake(written.name.span().start, "the name of a workload must not be empty");
        }
        if written.command.get_ref().first().is_none_or(String::is_empty) {
            let example = "command = [\"python\", \"train.py\"]";
            self.add_mistake(
                written.command.span().start,
                &format!("the command is empty: write for example {example}"),
            );
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

    /// Paths are relative to the directory of the file.
    fn resolve(&self, path: &Path) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    fn description(&mut self, file: &Spanned<PathBuf>) -> Option<ModelDescription> {
        match read_model_description(&self.resolve(file.get_ref())) {
            Ok(description) => Some(description),
            Err(failure) => {
                self.add_mistake(file.span().start, &failure.to_string());
                None
            }
        }
    }

    fn workdir(&mut self, folder: &Spanned<PathBuf>) -> PathBuf {
        let path = self.resolve(folder.get_ref());
        if !path.is_dir() {
            self.add_mistake(
                folder.span().start,
                &format!("workdir: the directory {} does not exist", path.display()),
            );
        }
        path
    }

    fn memory(&mut self, memory: &Spanned<String>) -> Option<Bytes> {
        let read = memory.get_ref().parse::<Bytes>().map_err(|error| error.to_string());
        let read = read
            .and_then(|bytes| if bytes == Bytes::ZERO { Err("it must not be 0".into()) } else { Ok(bytes) });
        read.map_err(|error| self.add_mistake(memory.span().start, &format!("memory: {error}"))).ok()
    }

    fn model(&mut self, at: usize, own: Option<String>, described: Option<&ModelDescription>) -> String {
        let model = own.or_else(|| described?.name.clone()).filter(|model| !model.is_empty());
        model.unwrap_or_else(|| {
            self.add_mistake(at, "no model name: add model = \"…\", or a description with a name");
            String::new()
        })
    }

    fn batch(&mut self, at: usize, own: Option<Spanned<u64>>, described: Option<&ModelDescription>) -> u64 {
        let described = described.and_then(|model| model.batch_size);
        match (own, described) {
            (Some(own), Some(described)) if *own.get_ref() != described => {
                let message =
                    format!("batch is {}, but the description says batch-size = {described}", own.get_ref());
                self.add_mistake(own.span().start, &message);
                described
            }
            (Some(own), _) => own.into_inner(),
            (None, Some(described)) => described,
            (None, None) => {
                self.add_mistake(at, "no batch size: add batch = 32, or a description with a batch-size");
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
    fn a_workload_combines_its_table_and_its_description() {
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
    fn every_mistake_is_listed_with_its_line() {
        let text = "[[workloads]]\nname = 'a'\nmodel = 'm'\nbatch = 1\ncommand = []\nmemory = 'lots'\n\n\
                    [[workloads]]\nname = 'a'\ncommand = ['x']\nworkdir = 'nowhere'\n\n\
                    [[workloads]]\nname = 'c'\nbatch = 8\ncommand = ['x']\ndescription = 'net.toml'\n\n\
                    [[workloads]]\nname = 'd'\nmodel = 'm'\nbatch = 8\ncommand = ['x']\ndescription = 'none.toml'\n";
        let message = read_text(text, "name = 'n'\nbatch-size = 64\n").unwrap_err();
        let lines: Vec<&str> = message.lines().collect();
        for (line, words) in [
            "w.toml:5: the command is empty",
            "w.toml:6: memory: 'lots' is not an amount of memory",
            "w.toml:9: duplicate workload 'a'",
            "w.toml:11: workdir: the directory nowhere does not exist",
            "w.toml:8: no model name",
            "w.toml:8: no batch size",
            "w.toml:15: batch is 8, but the description says batch-size = 64",
            "w.toml:24: cannot read the model description none.toml",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(lines[line].starts_with(words), "{words}: {message}");
        }
        assert_eq!(lines.len(), 8, "{message}");
    }

    #[test]
    fn other_files_are_errors_with_a_line() {
        let refused = |text: &str| read_text(text, "").unwrap_err();
        assert!(refused("workloads = []").starts_with("w.toml:1: no workloads"));
        assert!(refused("\nx = 1").starts_with("w.toml:2: unknown field `x`"));
        assert!(refused("[[workloads]]\nname = 'a'\nbatch = 'x'\n").starts_with("w.toml:3: invalid type"));
        assert!(refused("[[workloads]]\ncolour = 1\n").starts_with("w.toml:2: unknown field `colour`"));
    }
}
