//! `report`: what users and projects had over some days, what a job did, and which jobs do nothing.

use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_client::types::{
    Filter, JobId, JobRecord, JobState, Span, Time, UsageRecord, UsageReportRequest,
};
use cohabit_console::{CommandError, OutputFormat, Screen, output, with_schema};
#[cfg(feature = "simulate")]
use cohabit_lab::OutputFile;
use futures::TryStreamExt as _;

use super::job_reference::resolve_one;
use super::show::usage_of;
use crate::arguments::{
    ReportArguments, ReportIdleArguments, ReportJobArguments, ReportOutput, ReportSumsArguments, ReportVerb,
};
use crate::clock::now;
use crate::endpoint::connect;
use crate::render::report::{
    IdleDocument, IdleJob, JobReport, JobReportDocument, ReportDocument, idle_table, job_report_text,
    report_csv, report_table,
};

/// What is reported on without a time.
const USUAL: Span = Span::from_secs(30 * 86_400);

pub(super) async fn report(arguments: ReportArguments) -> Result<ExitCode, CommandError> {
    match arguments.verb {
        None => sums(arguments.sums).await,
        Some(ReportVerb::Job(job)) => report_job(job).await,
        Some(ReportVerb::Idle(idle)) => report_idle(idle).await,
    }
}

async fn sums(arguments: ReportSumsArguments) -> Result<ExitCode, CommandError> {
    // What makes no sense is told before the head is asked.
    let request = request(&arguments, now())?;
    #[cfg(feature = "simulate")]
    let page = OutputFile::prepare_if_any("--html", arguments.html.as_ref())?;
    let client = connect(&arguments.connection).await?;
    let report = client.usage_report(request).await?;
    #[cfg(feature = "simulate")]
    if let Some(page) = page {
        let html = cohabit_lab::usage_page::page(&report)?;
        page.write(|to| to.write_all(html.as_bytes()))?;
    }
    match arguments.output {
        ReportOutput::Table => output::print_text(&report_table(&report, Screen::of_stdout()))?,
        ReportOutput::Json => output::print_document(&with_schema(ReportDocument::from(&report)))?,
        ReportOutput::Csv => output::print_text(&report_csv(&report)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn request(arguments: &ReportSumsArguments, now: Time) -> Result<UsageReportRequest, CommandError> {
    let since = arguments.since.map_or(now - arguments.last.unwrap_or(USUAL), |since| since.resolve(now));
    let until = arguments.until.map_or(now, |until| until.resolve(now));
    if since > now {
        return Err(CommandError::invalid("--since is in the future: give a time that has passed"));
    }
    if since > until {
        return Err(CommandError::invalid("--since is after --until: give a --since before it"));
    }
    Ok(UsageReportRequest { since, until, by: arguments.by })
}

async fn report_job(arguments: ReportJobArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let job = resolve_one(&client, &arguments.job).await?;
    let jobs = client.show(&[job]).await?;
    let [record] = &jobs[..] else {
        return Err(CommandError::invalid(format!("job {job} has no record: see `cohabit history`")));
    };
    if record.array.is_some() {
        let message = format!("job {job} is an array: report on one member, for example {job}.0");
        return Err(CommandError::invalid(message));
    }
    let usage = usage_of(&client, &[job], arguments.display.output).await?;
    let report = JobReport::new(record, &usage, now());
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&job_report_text(&report))?,
        OutputFormat::Json => output::print_document(&with_schema(JobReportDocument::from(&report)))?,
        OutputFormat::Quiet => output::print_text(&report.advice().join("\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn report_idle(arguments: ReportIdleArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let running = running(&client).await?;
    let ids: Vec<JobId> = running.iter().map(|record| record.id).collect();
    let usage: Vec<UsageRecord> = usage_of(&client, &ids, OutputFormat::Json).await?;
    let now = now();
    let idle: Vec<IdleJob> = running.iter().filter_map(|job| IdleJob::new(job, &usage, now)).collect();
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&idle_table(&idle, Screen::of_stdout()))?;
        }
        OutputFormat::Json => output::print_document(&with_schema(IdleDocument::from(&idle[..])))?,
        OutputFormat::Quiet => idle.iter().try_for_each(|it| output::print_text(&it.job.to_string()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The jobs that run, and the members of arrays that do, as far as this user may see them.
async fn running(client: &Client) -> Result<Vec<JobRecord>, CommandError> {
    let states = vec![JobState::Running];
    let listed: Vec<JobRecord> =
        client.list(Filter { states: states.clone(), ..Filter::default() }).try_collect().await?;
    let mut ids = Vec::new();
    for record in listed {
        match record.array {
            None => ids.push(record.id),
            Some(_) => {
                let members_of = Some(record.id.number);
                let members = Filter { states: states.clone(), members_of, ..Filter::default() };
                let members: Vec<JobRecord> = client.list(members).try_collect().await?;
                ids.extend(members.into_iter().map(|member| member.id));
            }
        }
    }
    // A list has no attempts.
    Ok(client.show(&ids).await?)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{CommandLine, Verb};

    fn asked(flags: &str) -> Result<UsageReportRequest, String> {
        let line = format!("cohabit report {flags}");
        let parsed = CommandLine::try_parse_from(line.split_whitespace()).map_err(|it| it.to_string())?;
        let Verb::Report(arguments) = parsed.verb else { panic!("{line}") };
        let now = Time::from_micros(1_800_000_000_000_000);
        request(&arguments.sums, now).map_err(|error| error.message)
    }

    #[test]
    fn times_are_relative_to_now_or_absolute() {
        let days = |request: UsageReportRequest| {
            (request.until - request.since.since(Time::EPOCH)).as_micros() / 86_400_000_000
        };
        assert_eq!(days(asked("").unwrap()), 30);
        assert_eq!(days(asked("--last 7d").unwrap()), 7);
        assert_eq!(days(asked("--since 90d --until 30d").unwrap()), 60);
        assert_eq!(days(asked("--since 2026-11-01 --until 2026-11-03").unwrap()), 2);
    }

    #[test]
    fn times_and_rows_that_make_no_sense_are_refused_with_the_remedy() {
        for (flags, told) in [
            ("--since 2127-01-01", "--since is in the future: give a time that has passed"),
            ("--since 3d --until 5d", "--since is after --until: give a --since before it"),
            ("--by gpu", "'gpu' has no rows in a report: write user, project or project,user"),
            ("--last 7d --since 3d", "cannot be used with"),
            ("--until 3d", "--since"),
        ] {
            let refusal = asked(flags).unwrap_err();
            assert!(refusal.contains(told), "{flags}: {refusal}");
        }
    }
}
