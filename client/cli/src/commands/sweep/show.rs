//! `sweep show`: the members with their parameters, states and metrics.

use std::collections::BTreeSet;
use std::process::ExitCode;

use cohabit_client::types::{JobId, JobState, MetricValue, Sweep, SweepGoal, entry_parameters};
use cohabit_console::{CommandError, Screen, output, with_schema};

use super::members::{MembersReader, SweepMember};
use super::reference;
use crate::arguments::{SweepOutput, SweepShowArguments};
use crate::endpoint::connect;
use crate::render::sweep_rows::{SweepDocument, SweepRow, sort_rows, sweep_csv, sweep_table};
use crate::sweep::early_stopping::StopDecision;

pub(super) async fn show(arguments: SweepShowArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let (record, sweep) = reference::find(&client, &arguments.sweep).await?;
    let mut reader = MembersReader::new(&client, record.id);
    reader.refresh().await?;
    let decisions = reader.decisions(&sweep);
    let mut rows: Vec<SweepRow> =
        reader.members.keys().map(|id| row_of(&reader, &sweep, *id, &decisions)).collect();
    sort_rows(&mut rows, &sweep, arguments.sort.as_deref(), arguments.reverse)
        .map_err(CommandError::invalid)?;
    match arguments.output {
        SweepOutput::Json => {
            output::print_document(&with_schema(SweepDocument::new(&record, &sweep, &rows)))?
        }
        SweepOutput::Csv => output::print_text(&sweep_csv(&rows, &sweep)?)?,
        SweepOutput::Table => {
            output::print_text(&sweep_table(&rows, &sweep, Screen::of_stdout()))?;
            never_reported(&reader, &sweep).iter().for_each(|note| output::print_message(note));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The row of a member.
pub(super) fn row_of(
    reader: &MembersReader,
    sweep: &Sweep,
    id: JobId,
    decisions: &[(JobId, StopDecision)],
) -> SweepRow {
    let member = &reader.members[&id];
    let record = &member.record;
    let decision = decisions.iter().find(|(stopped, _)| *stopped == id).map(|(_, decision)| decision);
    let entry = record.labels.entry.as_deref().and_then(entry_parameters);
    SweepRow {
        id,
        parameters: entry.unwrap_or_default(),
        state: record.state,
        step: record.progress.as_ref().map(|it| it.step),
        total: record.progress.as_ref().and_then(|it| it.total),
        metrics: record.progress.as_ref().map(|it| it.metrics.clone()).unwrap_or_default(),
        best: best(member, sweep),
        note: note(member, sweep, decision),
    }
}

/// The best value of the metric of the sweep: of all reports that can be read, and the last one.
fn best(member: &SweepMember, sweep: &Sweep) -> Option<MetricValue> {
    let metric = sweep.metric.as_ref()?;
    let last = member.record.progress.as_ref().and_then(|it| it.metrics.get(metric)).map(|it| it.0);
    let reports = member.reports_of(metric).reports;
    let all = reports.iter().map(|it| it.value).chain(last);
    let better = |one: f64, other: f64| match sweep.goal {
        SweepGoal::Min => one.min(other),
        SweepGoal::Max => one.max(other),
    };
    // The smaller or larger of a number and NaN is the number.
    all.reduce(better).map(MetricValue)
}

fn note(member: &SweepMember, sweep: &Sweep, decision: Option<&StopDecision>) -> String {
    let record = &member.record;
    let metric = sweep.metric.as_ref().filter(|metric| !member.metrics().any(|name| name == *metric));
    match (record.state, decision) {
        (JobState::Cancelled, Some(decision)) => return decision.reason.clone(),
        (state, _) if state.is_terminal() && state != JobState::Completed => return record.reason.clone(),
        (_, Some(_) | None) => {}
    }
    match metric {
        Some(metric) if record.state == JobState::Completed => format!("never reported {metric}"),
        Some(metric) if record.progress.is_some() => format!("has not reported {metric}"),
        Some(_) | None => String::new(),
    }
}

/// Says so where no member has reported the metric, and what they have reported instead.
fn never_reported(reader: &MembersReader, sweep: &Sweep) -> Option<String> {
    let metric = sweep.metric.as_ref()?;
    let known: BTreeSet<&String> = reader.members.values().flat_map(SweepMember::metrics).collect();
    if known.contains(metric) {
        return None;
    }
    let instead = match known.is_empty() {
        true => format!(
            "write lines such as {{\"step\": 120, \"{metric}\": 0.41}} to the file that $COHABIT_PROGRESS names"
        ),
        false => format!("reported are {}", known.into_iter().cloned().collect::<Vec<_>>().join(", ")),
    };
    Some(format!("note: no member has reported '{metric}': {instead}"))
}
