//! Rules of style that a machine can check: sizes, names, docs, unfinished marks, and commands in the
//! documentation.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::path::{Path, PathBuf};
use std::process::Command;

const LONGEST_FILE: usize = 600;
const LONGEST_FUNCTION: usize = 70;
const LONGEST_LINE: usize = 110;
const BANNED_FILES: [&str; 8] = ["manager", "helper", "helpers", "utils", "util", "common", "data", "info"];

struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// Lines before the unit tests; all lines of a test.
    fn product(&self) -> Vec<&str> {
        let lines: Vec<&str> = self.text.lines().collect();
        let is_test = self.path.components().any(|part| part.as_os_str() == "tests");
        let cut = lines.iter().position(|line| line.trim() == "#[cfg(test)]").filter(|_| !is_test);
        lines[..cut.unwrap_or(lines.len())].to_vec()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every file with this ending that git knows or would add.
fn files(ending: &str) -> Vec<Source> {
    let output = Command::new("git")
        .current_dir(root())
        .args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .expect("git runs");
    let names = String::from_utf8(output.stdout).unwrap();
    let read = |name: &str| {
        let path = root().join(name);
        Some(Source { text: std::fs::read_to_string(&path).ok()?, path: name.into() })
    };
    let found: Vec<Source> = names.lines().filter(|name| name.ends_with(ending)).filter_map(read).collect();
    assert!(!found.is_empty(), "there are {ending} files");
    found
}

fn complain(title: &str, rows: Vec<String>) {
    assert!(rows.is_empty(), "{title}:\n{}", rows.join("\n"));
}

#[test]
fn files_are_short_and_lines_fit() {
    let mut rows = Vec::new();
    for source in files(".rs") {
        let lines = source.product();
        if lines.len() > LONGEST_FILE {
            rows.push(format!("{} has {} lines", source.path.display(), lines.len()));
        }
        let too_long = |line: &str| code_width(line) > LONGEST_LINE;
        let long = lines.iter().enumerate().filter(|(_, line)| too_long(line));
        rows.extend(long.map(|(number, _)| format!("{}:{} is too long", source.path.display(), number + 1)));
    }
    complain("too long", rows);
}

/// The width of a line without what is quoted in it: a sentence for users is not broken for the sake of its
/// line, but the code around it has to fit.
fn code_width(line: &str) -> usize {
    let in_text = line.ends_with('\\') && line.matches('"').count().is_multiple_of(2);
    let comment = line.trim_start().starts_with("//");
    let outside = line.split('"').step_by(2).map(|part| part.chars().count()).sum();
    if comment {
        line.chars().count()
    } else if in_text {
        0
    } else {
        outside
    }
}

#[test]
fn functions_are_short() {
    let mut rows = Vec::new();
    for source in files(".rs") {
        let lines = source.product();
        for (start, line) in lines.iter().enumerate() {
            let length = if begins_function(line) { function_length(&lines[start..]) } else { 0 };
            if length > LONGEST_FUNCTION {
                rows.push(format!("{}:{} has {length} lines", source.path.display(), start + 1));
            }
        }
    }
    complain("long functions", rows);
}

fn begins_function(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = words.iter().position(|word| *word == "fn");
    name.is_some_and(|at| {
        words[..at].iter().all(|word| word.starts_with("pub") || ["async", "const", "unsafe"].contains(word))
    })
}

/// Lines up to the brace that closes what the first line opens; the indentation of rustfmt is enough to find
/// it.
fn function_length(lines: &[&str]) -> usize {
    let indent = lines[0].len() - lines[0].trim_start().len();
    let closing =
        |line: &&str| line.len() - line.trim_start().len() == indent && line.trim_start().starts_with('}');
    if lines[0].ends_with(';') || lines[0].trim_end().ends_with('}') {
        return 1;
    }
    lines.iter().position(closing).map_or(1, |last| last + 1)
}

#[test]
fn every_file_begins_with_its_purpose() {
    let silent =
        |source: &Source| !source.text.trim_start().starts_with("//!") && !source.text.starts_with("#!");
    let rows = files(".rs").into_iter().filter(silent).map(|source| source.path.display().to_string());
    complain("files without a first line that says what they are for", rows.collect());
}

#[test]
fn file_names_are_specific() {
    let banned = |source: &Source| {
        let stem = source.path.file_stem().unwrap().to_str().unwrap();
        BANNED_FILES.contains(&stem)
    };
    let rows = files(".rs").into_iter().filter(banned).map(|source| source.path.display().to_string());
    complain("files with names that say nothing", rows.collect());
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = ["TODO", "FIXME", "XXX", "HACK", "todo!(", "unimplemented!("];
    let mut rows = Vec::new();
    for source in files(".rs").into_iter().filter(|it| !it.path.ends_with("tests/tidy.rs")) {
        let marked =
            source.text.lines().enumerate().filter(|(_, line)| marks.iter().any(|mark| line.contains(mark)));
        rows.extend(marked.map(|(number, _)| format!("{}:{}", source.path.display(), number + 1)));
    }
    complain("unfinished", rows);
}

/// Whether a text counts with `(s)` behind a noun, as in `{count} job(s)`: `cohabit_types::counted` is for
/// that.
fn has_lazy_plural(line: &str) -> bool {
    line.match_indices("(s)").any(|(at, _)| {
        let noun = line[..at].trim_end_matches(|letter: char| letter.is_ascii_lowercase() || letter == '-');
        noun.len() < at
            && (noun.ends_with("} ") || noun.ends_with(|it: char| it.is_ascii_digit() || it == ' '))
    })
}

#[test]
fn counted_nouns_are_in_the_singular_or_the_plural() {
    for (line, is_lazy) in [
        (r#"write!(f, "{} job(s) changed")"#, true),
        (r#""{count} co-location sample(s)""#, true),
        (r#""3 restart(s)""#, true),
        (r#"counted(2, "job", "jobs")"#, false),
        ("(s)", false),
        ("parse(s)", false),
    ] {
        assert_eq!(has_lazy_plural(line), is_lazy, "{line}");
    }
    let mut rows = Vec::new();
    for source in files(".rs").iter().filter(|source| !source.path.starts_with("integration")) {
        let lazy =
            source.text.lines().enumerate().filter(|(_, line)| line.contains('"') && has_lazy_plural(line));
        rows.extend(lazy.map(|(number, line)| format!("{}:{}: {line}", source.path.display(), number + 1)));
    }
    complain("counts with (s)", rows);
}

#[test]
fn every_link_between_documents_has_a_target() {
    let mut rows = Vec::new();
    for source in files(".md") {
        for target in source.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            let local = !file.is_empty() && !file.contains("://");
            if local && !root().join(&source.path).with_file_name("").join(file).exists() {
                rows.push(format!("{} -> {target}", source.path.display()));
            }
        }
    }
    complain("links that lead nowhere", rows);
}
