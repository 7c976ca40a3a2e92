//! Sums over days: as a table, as CSV, and as JSON.

use std::collections::BTreeMap;

use cohabit_client::types::{JobState, Span, UsageAmounts, UsageDay, UsageReport, UsageReportRow, UsageSums};
use cohabit_console::table::{self, cell};
use cohabit_console::{CommandError, CommandErrorKind, Screen, printable_line};
use serde::Serialize;

use super::units::{hours, percent};
use crate::render::rfc3339;

/// The table, with the sum of all rows below; notes say what the figures rest on.
pub(crate) fn report_table(report: &UsageReport, screen: Screen) -> String {
    let days = format!("{} to {} (days in UTC)", rfc3339(report.since), rfc3339(report.until));
    if report.rows.is_empty() {
        return format!("No jobs from {days}.\n");
    }
    let headings = [
        "PROJECT",
        "USER",
        "JOBS",
        "GPU HOURS",
        "BUSY",
        "IDLE",
        "LOST",
        "EFFICIENCY",
        "WAIT",
        "WAIT P50",
        "WAIT P95",
        "SHARING",
        "USED",
        "ENTITLED",
        "FAILURES",
    ];
    let mut table = table::table(&headings, screen);
    for row in &report.rows {
        let parts = [percent(row.used_part), percent(Some(row.entitled_part))];
        let names = [name(row.project.as_deref(), "-"), name(row.user.as_deref(), "all")];
        table.add_row(texts(names, &row.sums, parts).map(cell));
    }
    let dash = || "-".to_owned();
    table.add_row(texts(["total".to_owned(), dash()], &report.total, [dash(), dash()]).map(cell));
    format!("{days}\n\n{}\n{}", table::text(&table), notes(&report.total.amounts))
}

fn name(name: Option<&str>, without: &str) -> String {
    name.map_or_else(|| without.to_owned(), |name| printable_line(name).into_owned())
}

fn texts(names: [String; 2], sums: &UsageSums, [used, entitled]: [String; 2]) -> [String; 15] {
    let amounts = &sums.amounts;
    let span = |span: Option<Span>| span.map_or("-".to_owned(), |span| span.to_string());
    let hours = |seconds: f64| format!("{:.2}", hours(seconds));
    let failures: Vec<String> =
        sums.failures().iter().map(|(how, count)| format!("{count} {}", printable_line(how))).collect();
    let [project, user] = names;
    [
        project,
        user,
        sums.ended_jobs().to_string(),
        hours(amounts.held),
        hours(amounts.busy),
        hours(amounts.idle),
        hours(amounts.lost),
        percent(amounts.efficiency()),
        span(sums.waits.mean()),
        span(sums.waits.quantile(0.5)),
        span(sums.waits.quantile(0.95)),
        percent(amounts.sharing_efficiency()),
        used,
        entitled,
        if failures.is_empty() { "-".to_owned() } else { failures.join(", ") },
    ]
}

/// What the figures of all rows together rest on.
fn notes(total: &UsageAmounts) -> String {
    if total.held <= 0.0 {
        return "Nothing was held.\n".to_owned();
    }
    let of_held = |part: f64| percent(Some(part / total.held));
    let alone = &total.alone;
    let known = |part: f64| percent(Some(part / alone.total().max(f64::MIN_POSITIVE)));
    format!(
        "Efficiency: busy time of the {} of the held time that was measured.\nSharing: work that would take {:.2} GPU \
         hours alone, per time held: {} ran alone, {} by measured and {} by predicted slowdowns; of {} of the held time \
         no slowdown is known.\n",
        of_held(total.measured),
        hours(alone.total()),
        known(alone.exclusive),
        known(alone.measured),
        known(alone.predicted),
        of_held(alone.unknown),
    )
}

/// A line for each row, and a heading; without the total, which is the sum of lines.
pub(crate) fn report_csv(report: &UsageReport) -> Result<String, CommandError> {
    let failed = |error: csv::Error| CommandError::from_error(CommandErrorKind::Internal, &error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let headings = [
        "since",
        "until",
        "project",
        "user",
        "jobs",
        "attempts",
        "held_gpu_s",
        "measured_gpu_s",
        "busy_gpu_s",
        "idle_gpu_s",
        "lost_gpu_s",
        "efficiency",
        "starts",
        "wait_mean_s",
        "wait_p50_s",
        "wait_p95_s",
        "alone_exclusive_gpu_s",
        "alone_measured_gpu_s",
        "alone_predicted_gpu_s",
        "unknown_gpu_s",
        "sharing_efficiency",
        "used_part",
        "entitled_part",
        "failures",
    ];
    writer.write_record(headings).map_err(failed)?;
    for row in &report.rows {
        let UsageReportRow { project, user, sums, used_part, entitled_part } = row;
        let amounts = &sums.amounts;
        let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
        let secs = |span: Option<Span>| number(span.map(Span::as_secs_f64));
        let attempts: u64 = sums.attempts.values().sum();
        let failures =
            sums.failures().iter().map(|(how, count)| format!("{how}={count}")).collect::<Vec<_>>();
        let fields = [
            rfc3339(report.since),
            rfc3339(report.until),
            project.clone().unwrap_or_default(),
            user.clone().unwrap_or_default(),
            sums.ended_jobs().to_string(),
            attempts.to_string(),
            amounts.held.to_string(),
            amounts.measured.to_string(),
            amounts.busy.to_string(),
            amounts.idle.to_string(),
            amounts.lost.to_string(),
            number(amounts.efficiency()),
            sums.waits.count().to_string(),
            secs(sums.waits.mean()),
            secs(sums.waits.quantile(0.5)),
            secs(sums.waits.quantile(0.95)),
            amounts.alone.exclusive.to_string(),
            amounts.alone.measured.to_string(),
            amounts.alone.predicted.to_string(),
            amounts.alone.unknown.to_string(),
            number(amounts.sharing_efficiency()),
            number(*used_part),
            entitled_part.to_string(),
            failures.join(" "),
        ];
        writer.write_record(fields).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The report as JSON. Amounts are seconds on GPUs, each times the part that was held.
#[derive(Debug, Serialize)]
pub(crate) struct ReportDocument<'a> {
    since: String,
    until: String,
    rows: Vec<RowDocument<'a>>,
    total: SumsDocument<'a>,
    days: Vec<DayDocument>,
}

#[derive(Debug, Serialize)]
struct RowDocument<'a> {
    /// `null` where a row is of a user.
    project: Option<&'a str>,
    /// `null` where a row is of all users of a project.
    user: Option<&'a str>,
    used_part: Option<f64>,
    entitled_part: f64,
    #[serde(flatten)]
    sums: SumsDocument<'a>,
}

#[derive(Debug, Serialize)]
struct SumsDocument<'a> {
    jobs: u64,
    jobs_by_state: BTreeMap<&'static str, u64>,
    attempts: &'a BTreeMap<String, u64>,
    #[serde(flatten)]
    amounts: AmountsDocument,
    starts: u64,
    wait_mean_s: Option<f64>,
    wait_p50_s: Option<f64>,
    wait_p95_s: Option<f64>,
}

/// `null` where nothing was measured, or no slowdown is known.
#[derive(Debug, Serialize)]
struct AmountsDocument {
    held_gpu_s: f64,
    measured_gpu_s: f64,
    busy_gpu_s: f64,
    idle_gpu_s: f64,
    lost_gpu_s: f64,
    efficiency: Option<f64>,
    alone_exclusive_gpu_s: f64,
    alone_measured_gpu_s: f64,
    alone_predicted_gpu_s: f64,
    unknown_gpu_s: f64,
    sharing_efficiency: Option<f64>,
}

#[derive(Debug, Serialize)]
struct DayDocument {
    day: String,
    #[serde(flatten)]
    amounts: AmountsDocument,
}

impl<'a> From<&'a UsageReport> for ReportDocument<'a> {
    fn from(report: &'a UsageReport) -> ReportDocument<'a> {
        let row = |row: &'a UsageReportRow| RowDocument {
            project: row.project.as_deref(),
            user: row.user.as_deref(),
            used_part: row.used_part,
            entitled_part: row.entitled_part,
            sums: SumsDocument::from(&row.sums),
        };
        let day = |UsageDay { start, amounts }: &UsageDay| DayDocument {
            day: rfc3339(*start).chars().take(10).collect(),
            amounts: AmountsDocument::from(amounts),
        };
        ReportDocument {
            since: rfc3339(report.since),
            until: rfc3339(report.until),
            rows: report.rows.iter().map(row).collect(),
            total: SumsDocument::from(&report.total),
            days: report.days.iter().map(day).collect(),
        }
    }
}

impl<'a> From<&'a UsageSums> for SumsDocument<'a> {
    fn from(sums: &'a UsageSums) -> SumsDocument<'a> {
        let state = |(state, count): (&JobState, &u64)| (state.word(), *count);
        let secs = |span: Option<Span>| span.map(Span::as_secs_f64);
        SumsDocument {
            jobs: sums.ended_jobs(),
            jobs_by_state: sums.jobs.iter().map(state).collect(),
            attempts: &sums.attempts,
            amounts: AmountsDocument::from(&sums.amounts),
            starts: sums.waits.count(),
            wait_mean_s: secs(sums.waits.mean()),
            wait_p50_s: secs(sums.waits.quantile(0.5)),
            wait_p95_s: secs(sums.waits.quantile(0.95)),
        }
    }
}

impl From<&UsageAmounts> for AmountsDocument {
    fn from(amounts: &UsageAmounts) -> AmountsDocument {
        AmountsDocument {
            held_gpu_s: amounts.held,
            measured_gpu_s: amounts.measured,
            busy_gpu_s: amounts.busy,
            idle_gpu_s: amounts.idle,
            lost_gpu_s: amounts.lost,
            efficiency: amounts.efficiency(),
            alone_exclusive_gpu_s: amounts.alone.exclusive,
            alone_measured_gpu_s: amounts.alone.measured,
            alone_predicted_gpu_s: amounts.alone.predicted,
            unknown_gpu_s: amounts.alone.unknown,
            sharing_efficiency: amounts.sharing_efficiency(),
        }
    }
}
