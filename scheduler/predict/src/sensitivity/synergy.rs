//! The public tables of Synergy (Mohan et al., OSDI 2022; MIT): a Python file for each model in the directory
//! `simulator/models` of github.com/msr-fiddle/synergy.
//!
//! A file assigns `self.tput = np.array([[…], …])`: a row for each number of cores and a column for each
//! amount of host memory. Only models on one GPU (`*_1.py`) are read; those on several have other columns. A
//! first column of 0.1 means that the model thrashes with so little memory: then its table begins with the
//! next one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_policy::SensitivityTable;

use super::error::{ReadSensitivityError, SensitivityProblem};
use super::format::{MOST_PROFILES, ReadTables, gigabytes};
use super::text_file::read_text;

/// Cores of the rows.
const CORES: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0];
/// Gigabytes of the columns.
const MEMORY_GB: [f64; 5] = [20.8, 62.5, 125.0, 187.5, 250.0];
/// The speed of a model that thrashes.
const THRASHING: f64 = 0.1;
/// How the files of models on one GPU end.
const ONE_GPU: &str = "_1.py";
/// The largest file of a model.
const MOST_MODEL_BYTES: u64 = 1 << 20;
/// What the table is assigned to.
const SPEEDS: &str = "self.tput";

/// The tables of all models on one GPU in this directory.
pub(super) fn read_directory(directory: &Path) -> Result<ReadTables, ReadSensitivityError> {
    let about = |problem| ReadSensitivityError::new(directory, problem);
    let models = models(directory).map_err(about)?;
    if models.is_empty() {
        let why = format!("give a CSV file, or a directory with Synergy's files *{ONE_GPU} of models");
        return Err(about(SensitivityProblem::NoTables(why)));
    }
    let (mut tables, mut left_out) = (BTreeMap::new(), Vec::new());
    for (name, path) in models {
        match read_model(&path) {
            Ok(table) => _ = tables.insert(name, Arc::new(table)),
            Err(problem) => {
                left_out.push(format!("{} is left out: {problem}", path.display()));
            }
        }
    }
    match left_out.first().filter(|_| tables.is_empty()) {
        Some(first) => Err(about(SensitivityProblem::NoTables(first.clone()))),
        None => Ok((tables, left_out)),
    }
}

/// The files of models on one GPU, by the name of the model.
fn models(directory: &Path) -> Result<BTreeMap<String, PathBuf>, SensitivityProblem> {
    let mut models = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(SensitivityProblem::File)? {
        let entry = entry.map_err(SensitivityProblem::File)?;
        let file = entry.file_name();
        let Some(name) = file.to_str().and_then(|name| name.strip_suffix(ONE_GPU)) else { continue };
        if !name.is_empty() {
            models.insert(name.to_owned(), entry.path());
        }
        if models.len() > MOST_PROFILES {
            return Err(SensitivityProblem::TooManyProfiles);
        }
    }
    Ok(models)
}

fn read_model(path: &Path) -> Result<SensitivityTable, SensitivityProblem> {
    parse_model(&read_text(path, MOST_MODEL_BYTES)?).map_err(SensitivityProblem::Model)
}

/// The table of a model.
///
/// # Errors
/// What is wrong with it, and what to do.
pub(super) fn parse_model(text: &str) -> Result<SensitivityTable, String> {
    let code = without_comments(text);
    let assigned = assigned(&code).ok_or_else(|| {
        format!("it does not assign {SPEEDS} = np.array([[…], …]): give files of models as Synergy has them")
    })?;
    let rows = rows(assigned)?;
    let is_whole = rows.len() == CORES.len() && rows.iter().all(|row| row.len() == MEMORY_GB.len());
    if !is_whole {
        let (cores, columns) = (CORES.len(), MEMORY_GB.len());
        return Err(format!(
            "{SPEEDS} is not {cores} rows of {columns} speeds: give the table of a model on one GPU"
        ));
    }
    let thrashes = rows.iter().all(|row| row[0] == THRASHING);
    let floor = usize::from(thrashes);
    let memory: Vec<_> = MEMORY_GB[floor..].iter().map(|it| gigabytes(*it)).collect();
    let rows: Vec<Vec<f64>> = rows.into_iter().map(|row| row[floor..].to_vec()).collect();
    SensitivityTable::new(CORES.to_vec(), &memory, &rows).map_err(|error| error.to_string())
}

fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| line.split_once('#').map_or(line, |(code, _)| code));
    code.collect::<Vec<_>>().join("\n")
}

/// What follows the last assignment of the table, which is the one that counts in Python.
fn assigned(code: &str) -> Option<&str> {
    let uses = code.match_indices(SPEEDS).map(|(place, _)| &code[place + SPEEDS.len()..]);
    let assigned =
        uses.filter_map(|rest| rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix("np.array"));
    assigned.filter_map(|rest| rest.trim_start().strip_prefix('(')).last()
}

/// Parses `[[1, 2], [3, 4]])`: rows of numbers.
fn rows(text: &str) -> Result<Vec<Vec<f64>>, String> {
    let unfinished = || format!("{SPEEDS} does not end: the file is incomplete, get it again");
    let mut rest = text.trim_start().strip_prefix('[').ok_or_else(unfinished)?;
    let mut rows = Vec::new();
    loop {
        rest = rest.trim_start_matches(|it: char| it.is_whitespace() || it == ',');
        if rest.starts_with(']') {
            return Ok(rows);
        }
        let row = rest.strip_prefix('[').ok_or_else(unfinished)?;
        let (row, after) = row.split_once(']').ok_or_else(unfinished)?;
        let cells = row.split(',').map(str::trim).filter(|cell| !cell.is_empty());
        rows.push(cells.map(speed).collect::<Result<_, _>>()?);
        rest = after;
    }
}

fn speed(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("'{text}' in {SPEEDS} is not a number: write a speed above 0"))
}
