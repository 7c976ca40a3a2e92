//! Sections of a document, their blocks of code, and the commands in them.

use std::fs;
use std::path::{Path, PathBuf};

/// The programs with which a line of commands begins.
const PROGRAMS: [&str; 6] = ["cohabit", "cargo", "sudo", "export", "sbatch", "sqlite3"];

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A section: its title with the hash signs, and its text up to the next title of its level or above.
pub(crate) struct Section {
    title: String,
    text: String,
}

impl Section {
    pub(crate) fn of(file: &str, title: &str) -> Section {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let (_, rest) =
            text.split_once(&format!("\n{title}\n")).unwrap_or_else(|| panic!("{file} has {title}"));
        let level = title.split(' ').next().unwrap().len();
        let is_end = |line: &&str| {
            let hashes = line.len() - line.trim_start_matches('#').len();
            hashes > 0 && hashes <= level && line[hashes..].starts_with(' ')
        };
        let lines: Vec<&str> = rest.lines().take_while(|line| !is_end(line)).collect();
        Section { title: title.to_owned(), text: lines.join("\n") }
    }

    /// The blocks of code, without their indentation or fences.
    pub(crate) fn blocks(&self) -> Vec<String> {
        let (mut blocks, mut open, mut fenced): (Vec<String>, bool, bool) = (Vec::new(), false, false);
        for line in self.text.lines() {
            if line.starts_with("```") {
                (fenced, open) = (!fenced, false);
                continue;
            }
            let code = if fenced { Some(line) } else { line.strip_prefix("    ") };
            match code {
                Some(code) if open => *blocks.last_mut().unwrap() += &format!("{code}\n"),
                Some(code) => {
                    blocks.push(format!("{code}\n"));
                    open = true;
                }
                // An empty line within a block belongs to it; one behind it is cut off below.
                None if line.is_empty() && open => *blocks.last_mut().unwrap() += "\n",
                None => open = false,
            }
        }
        blocks.iter().map(|block| format!("{}\n", block.trim_end())).collect()
    }

    /// The only block that contains these words.
    pub(crate) fn block_with(&self, words: &str) -> String {
        let mut found: Vec<String> =
            self.blocks().into_iter().filter(|block| block.contains(words)).collect();
        assert_eq!(found.len(), 1, "blocks with {words} in {}", self.title);
        found.remove(0)
    }

    /// The blocks of commands, each as its lines.
    pub(crate) fn commands(&self) -> Vec<Vec<String>> {
        let begins = |line: &str| PROGRAMS.contains(&line.split_whitespace().next().unwrap_or_default());
        let blocks = self.blocks().into_iter().filter(|block| begins(block.lines().next().unwrap()));
        let commands: Vec<Vec<String>> =
            blocks.map(|block| block.lines().map(str::to_owned).collect()).collect();
        for line in commands.iter().flatten() {
            assert!(begins(line), "{}: is this a command? {line}", self.title);
        }
        assert!(!commands.is_empty(), "{} has commands", self.title);
        commands
    }

    /// Commands in the sentences, between backticks, that begin so.
    pub(crate) fn commands_in_prose(&self, begin: &str) -> Vec<String> {
        let prose: Vec<&str> = self.text.lines().filter(|line| !line.starts_with("    ")).collect();
        let prose = prose.join(" ").replace("```", "");
        let quoted = prose.split('`').skip(1).step_by(2);
        quoted.filter(|code| code.starts_with(begin)).map(str::to_owned).collect()
    }

    /// Whether the sentences say this, wherever their lines break.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) {
        let text: Vec<&str> = self.text.split_whitespace().collect();
        assert!(text.join(" ").contains(words), "{} says: {words}", self.title);
    }
}
