//! The members of a sweep as a table, as CSV and as a document, sorted by what one wants to compare.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_client::types::{
    AshaRule, EarlyStopping, JobId, JobRecord, JobState, MedianRule, MetricValue, Sweep, SweepGoal,
};
use cohabit_console::table::{self, cell};
use cohabit_console::{CommandError, CommandErrorKind, Screen};
use comfy_table::Row;
use serde::Serialize;
use serde_json::{Map, Value};

use super::progress::value_text;
use super::states;

/// The most columns for parameters, and for metrics; JSON and CSV have all of them.
const MOST_COLUMNS: usize = 8;

/// A member.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SweepRow {
    pub(crate) id: JobId,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) state: JobState,
    pub(crate) step: Option<u64>,
    pub(crate) total: Option<u64>,
    /// The last values.
    pub(crate) metrics: BTreeMap<String, MetricValue>,
    /// The best value of the metric of the sweep.
    pub(crate) best: Option<MetricValue>,
    /// Why it was stopped, or what is wrong.
    pub(crate) note: String,
}

impl SweepRow {
    /// Its best value, for people.
    pub(crate) fn best_text(&self) -> Option<String> {
        self.best.map(value_text)
    }
}

/// A sweep with its members.
#[derive(Debug, Serialize)]
pub(crate) struct SweepDocument<'a> {
    id: JobId,
    name: &'a str,
    state: JobState,
    metric: Option<&'a str>,
    goal: &'static str,
    early_stopping: Option<RuleDocument>,
    members: &'a [SweepRow],
}

/// A rule with the names that its flags and its table in a file have.
#[derive(Debug, Serialize)]
struct RuleDocument {
    rule: &'static str,
    grace: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    eta: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rungs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<u32>,
}

impl From<EarlyStopping> for RuleDocument {
    fn from(rule: EarlyStopping) -> RuleDocument {
        let (grace, eta, rungs, completed) = match rule {
            EarlyStopping::Median(MedianRule { grace, completed }) => (grace, None, None, Some(completed)),
            EarlyStopping::Asha(AshaRule { grace, reduction, rungs }) => {
                (grace, Some(reduction), Some(rungs), None)
            }
        };
        RuleDocument { rule: rule.as_str(), grace, eta, rungs, completed }
    }
}

impl SweepDocument<'_> {
    pub(crate) fn new<'a>(
        record: &'a JobRecord,
        sweep: &'a Sweep,
        members: &'a [SweepRow],
    ) -> SweepDocument<'a> {
        SweepDocument {
            id: record.id,
            name: &record.name,
            state: record.state,
            metric: sweep.metric.as_deref(),
            goal: sweep.goal.as_str(),
            early_stopping: sweep.early_stopping.map(RuleDocument::from),
            members,
        }
    }
}

/// The names of all parameters and of all metrics.
fn names(rows: &[SweepRow]) -> (Vec<&String>, Vec<&String>) {
    let parameters: BTreeSet<&String> = rows.iter().flat_map(|row| row.parameters.keys()).collect();
    let metrics: BTreeSet<&String> = rows.iter().flat_map(|row| row.metrics.keys()).collect();
    (parameters.into_iter().collect(), metrics.into_iter().collect())
}

fn text_of(value: Option<&Value>) -> String {
    value.map_or(String::new(), |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The table.
pub(crate) fn sweep_table(rows: &[SweepRow], sweep: &Sweep, screen: Screen) -> String {
    let (mut parameters, mut metrics) = names(rows);
    parameters.truncate(MOST_COLUMNS);
    // The metric of the sweep is shown whatever else there is.
    metrics.sort_by_key(|name| Some(*name) != sweep.metric.as_ref());
    metrics.truncate(MOST_COLUMNS);
    let best = sweep.metric.as_ref().map(|metric| format!("BEST {metric}"));
    let of_members = parameters.iter().map(|it| it.as_str());
    let headings = ["ID"].into_iter().chain(of_members).chain(["STATE", "STEP"]);
    let headings = headings.chain(metrics.iter().map(|it| it.as_str())).chain(best.as_deref());
    let headings: Vec<String> =
        headings.chain(["NOTE"]).map(|it| cohabit_console::printable_line(it).into_owned()).collect();
    let mut table = table::table(&headings.iter().map(String::as_str).collect::<Vec<_>>(), screen);
    for row in rows {
        let mut cells = Row::new();
        cells.add_cell(cell(row.id));
        for name in &parameters {
            cells.add_cell(cell(text_of(row.parameters.get(*name))));
        }
        cells.add_cell(states::state(row.state)).add_cell(cell(steps(row)));
        for name in &metrics {
            cells.add_cell(cell(row.metrics.get(*name).map_or(String::new(), |value| value_text(*value))));
        }
        if best.is_some() {
            cells.add_cell(cell(row.best_text().unwrap_or_default()));
        }
        cells.add_cell(cell(&row.note));
        table.add_row(cells);
    }
    table::text(&table)
}

fn steps(row: &SweepRow) -> String {
    match (row.step, row.total) {
        (Some(step), Some(total)) => format!("{step}/{total}"),
        (Some(step), None) => step.to_string(),
        (None, _) => String::new(),
    }
}

/// A line for each member, with all parameters and metrics.
pub(crate) fn sweep_csv(rows: &[SweepRow], sweep: &Sweep) -> Result<String, CommandError> {
    let failed = |error: csv::Error| CommandError::from_error(CommandErrorKind::Internal, &error);
    let (parameters, metrics) = names(rows);
    let best = sweep.metric.as_ref().map(|metric| format!("best_{metric}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let of_members = parameters.iter().map(|it| it.as_str());
    let heading = ["id"].into_iter().chain(of_members).chain(["state", "step"]);
    let heading = heading.chain(metrics.iter().map(|it| it.as_str())).chain(best.as_deref());
    writer.write_record(heading.chain(["note"])).map_err(failed)?;
    for row in rows {
        let mut record = vec![row.id.to_string()];
        record.extend(parameters.iter().map(|name| text_of(row.parameters.get(*name))));
        record.push(row.state.word().to_owned());
        record.push(row.step.map_or(String::new(), |step| step.to_string()));
        let value = |value: Option<&MetricValue>| value.map_or(String::new(), ToString::to_string);
        record.extend(metrics.iter().map(|name| value(row.metrics.get(*name))));
        record.extend(best.iter().map(|_| value(row.best.as_ref())));
        record.push(row.note.clone());
        writer.write_record(record).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a row is sorted by. Rows without it come last.
enum SortKey<'a> {
    Id,
    State,
    Step,
    /// The best one first.
    Best(SweepGoal),
    Metric(&'a str),
    Parameter(&'a str),
}

/// Sorts by this key: a metric, a parameter, id, state or step.
pub(crate) fn sort_rows(
    rows: &mut [SweepRow],
    sweep: &Sweep,
    key: Option<&str>,
    is_reversed: bool,
) -> Result<(), String> {
    let key = key.or(sweep.metric.as_deref()).unwrap_or("id");
    let sort_key = match key {
        _ if sweep.metric.as_deref() == Some(key) => SortKey::Best(sweep.goal),
        _ if rows.iter().any(|row| row.metrics.contains_key(key)) => SortKey::Metric(key),
        _ if rows.iter().any(|row| row.parameters.contains_key(key)) => SortKey::Parameter(key),
        "id" => SortKey::Id,
        "state" => SortKey::State,
        "step" => SortKey::Step,
        _ => {
            let (parameters, metrics) = names(rows);
            let known: Vec<&str> = metrics.into_iter().chain(parameters).map(String::as_str).collect();
            return Err(format!(
                "--sort {key}: there is no such metric or parameter: write one of {}",
                [&known[..], &["id", "state", "step"]].concat().join(", ")
            ));
        }
    };
    rows.sort_by(|one, other| compare(one, other, &sort_key, is_reversed));
    Ok(())
}

fn compare(one: &SweepRow, other: &SweepRow, key: &SortKey<'_>, is_reversed: bool) -> Ordering {
    let directed = |order: Ordering| if is_reversed { order.reverse() } else { order };
    match key {
        SortKey::Id => directed(one.id.cmp(&other.id)),
        SortKey::State => directed(one.state.word().cmp(other.state.word())),
        SortKey::Step => last_without(one.step, other.step, |a, b| directed(a.cmp(&b))),
        SortKey::Best(goal) => {
            // Diverged members have no best.
            let best = |row: &SweepRow| row.best.map(|it| it.0).filter(|it| !it.is_nan());
            last_without(best(one), best(other), |a, b| {
                directed(match goal {
                    SweepGoal::Min => a.total_cmp(&b),
                    SweepGoal::Max => b.total_cmp(&a),
                })
            })
        }
        SortKey::Metric(name) => {
            let value = |row: &SweepRow| row.metrics.get(*name).map(|it| it.0).filter(|it| !it.is_nan());
            last_without(value(one), value(other), |a, b| directed(a.total_cmp(&b)))
        }
        SortKey::Parameter(name) => {
            let value = |row: &SweepRow| row.parameters.get(*name).cloned();
            last_without(value(one), value(other), |a, b| directed(compare_values(&a, &b)))
        }
    }
    .then(one.id.cmp(&other.id))
}

fn last_without<T>(one: Option<T>, other: Option<T>, order: impl FnOnce(T, T) -> Ordering) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => order(one, other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

/// Numbers by size, before texts.
fn compare_values(one: &Value, other: &Value) -> Ordering {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (None, None) => text_of(Some(one)).cmp(&text_of(Some(other))),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::entry_parameters;
    use cohabit_console::Colour;

    use super::*;

    fn row(index: u32, parameters: &str, loss: Option<f64>, best: Option<f64>) -> SweepRow {
        SweepRow {
            id: JobId::member(12, index),
            parameters: entry_parameters(parameters).unwrap(),
            state: JobState::Completed,
            step: loss.map(|_| 10 * u64::from(index)),
            total: Some(100),
            metrics: loss.map(|loss| ("loss".to_owned(), MetricValue(loss))).into_iter().collect(),
            best: best.map(MetricValue),
            note: String::new(),
        }
    }

    fn rows() -> Vec<SweepRow> {
        vec![
            row(0, r#"{"lr":"1e-1","net":"vgg"}"#, None, None),
            row(1, r#"{"lr":0.01,"net":"resnet"}"#, Some(0.5), Some(0.2)),
            row(2, r#"{"lr":0.2,"net":"resnet"}"#, Some(0.3), Some(0.3)),
            row(3, r#"{"lr":0.02,"net":"a"}"#, Some(f64::NAN), Some(f64::NAN)),
        ]
    }

    fn sweep(goal: SweepGoal) -> Sweep {
        Sweep { metric: Some("loss".into()), goal, early_stopping: None }
    }

    fn order(goal: SweepGoal, key: Option<&str>, is_reversed: bool) -> Vec<u32> {
        let mut rows = rows();
        sort_rows(&mut rows, &sweep(goal), key, is_reversed).unwrap();
        rows.iter().map(|row| row.id.index.unwrap()).collect()
    }

    #[test]
    fn the_best_come_first_and_those_without_a_number_last() {
        assert_eq!(order(SweepGoal::Min, None, false), [1, 2, 0, 3]);
        assert_eq!(order(SweepGoal::Max, None, false), [2, 1, 0, 3]);
        assert_eq!(order(SweepGoal::Min, Some("loss"), true), [2, 1, 0, 3]);
        assert_eq!(order(SweepGoal::Min, Some("lr"), false), [1, 3, 0, 2]);
        assert_eq!(order(SweepGoal::Min, Some("net"), false), [3, 1, 2, 0]);
        assert_eq!(order(SweepGoal::Min, Some("step"), true), [3, 2, 1, 0]);
        assert_eq!(order(SweepGoal::Min, Some("id"), true), [3, 2, 1, 0]);
    }

    #[test]
    fn an_unknown_key_is_refused_with_those_that_exist() {
        let refused = sort_rows(&mut rows(), &sweep(SweepGoal::Min), Some("acc"), false).unwrap_err();
        assert!(refused.ends_with("write one of loss, lr, net, id, state, step"), "{refused}");
    }

    #[test]
    fn a_table_has_parameters_states_steps_and_metrics() {
        let screen = Screen { width: None, colour: Colour::None };
        let mut rows = rows();
        rows.truncate(2);
        rows[1].note = "asha at step 10".into();
        let table = sweep_table(&rows, &sweep(SweepGoal::Min), screen);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["ID", "lr", "net", "STATE", "STEP", "loss", "BEST", "loss", "NOTE"]);
        assert_eq!(lines[1], ["12.0", "1e-1", "vgg", "COMPLETED"]);
        assert_eq!(
            lines[2],
            ["12.1", "0.01", "resnet", "COMPLETED", "10/100", "0.5000", "0.2000", "asha", "at", "step", "10"]
        );
    }

    #[test]
    fn csv_has_a_line_for_each_member() {
        let csv = sweep_csv(&rows()[1..], &sweep(SweepGoal::Min)).unwrap();
        assert_eq!(
            csv,
            "id,lr,net,state,step,loss,best_loss,note\n12.1,0.01,resnet,COMPLETED,10,0.5,0.2,\n\
             12.2,0.2,resnet,COMPLETED,20,0.3,0.3,\n12.3,0.02,a,COMPLETED,30,NaN,NaN,\n"
        );
    }
}
