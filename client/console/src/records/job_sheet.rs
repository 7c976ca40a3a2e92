//! The properties of one job, and the sheet of them.

use cohabit_types::{
    AttemptRecord, Bytes, CodeSnapshot, ComputeLimit, Demand, Enforcement, EnforcementRequirement, JobRecord,
    OutputFiles, RankRecord, Share, Span, Spread, Time, UsageRecord, counted,
};
use jiff::tz::TimeZone;

use super::expected_times::{end, run_time, start};
use super::gpu_usage::attempt_usage;
use super::job_cells::{gpus, runtime};
use super::parameters::entry_text;
use super::progress::{progress_text, silence};
use super::time::local_time;
use crate::{format_number, printable_line};

/// A property of a job: its heading and a text.
pub type JobProperty = (&'static str, String);

/// One line per property: a heading and a text. `usage` is what the job did with its GPUs.
#[must_use]
pub fn job_sheet(job: &JobRecord, usage: &[UsageRecord], now: Time, zone: &TimeZone) -> String {
    let mut lines = vec![format!("job {} {} {}", job.id, job.name, job.state)];
    let line = |(heading, text): JobProperty| format!("  {:<13}{text}", format!("{heading}:"));
    lines.extend(job_properties(job, now, zone).into_iter().map(line));
    for attempt in &job.attempts {
        lines.push(format!("  attempt {}: {}", attempt.attempt, attempt_span(attempt, zone)));
        let ranks = attempt.ranks.iter().enumerate();
        lines.extend(ranks.map(|(number, rank)| format!("    rank {number} {}", rank_line(rank))));
        let usage = attempt_usage(usage, job.id.attempt(attempt.attempt));
        lines.extend(usage.map(|usage| format!("    GPU use: {usage}")));
    }
    lines.iter().map(|line| printable_line(line).into_owned() + "\n").collect()
}

/// What is known of a job, without its attempts.
#[must_use]
pub fn job_properties(job: &JobRecord, now: Time, zone: &TimeZone) -> Vec<JobProperty> {
    let at = |time: Option<Time>| time.map_or(String::new(), |time| local_time(time, zone));
    let length = |span: Option<Span>| span.map_or(String::new(), |span| span.to_string());
    let properties = [
        ("reason", format!("{} ({})", job.reason, job.reason_code)),
        ("command", job.command_line().to_owned()),
        ("user", job.user.clone()),
        ("entry", job.labels.entry.as_deref().map_or(String::new(), entry_text)),
        ("group", job.group.clone().unwrap_or_default()),
        ("directory", job.workdir.clone()),
        ("application", job.application.map_or(String::new(), |root| format!("child of job {root}"))),
        ("code", job.code.as_ref().map_or(String::new(), code)),
        ("needs", needs(job)),
        (
            "partition",
            job.labels
                .partition
                .clone()
                .map_or(String::new(), |name| name + " (a label; no rule depends on it)"),
        ),
        ("output", output_files(&job.labels.output)),
        ("checkpoints", checkpoints(job)),
        ("time limit", length(job.time_limit)),
        ("submitted", at(Some(job.submitted_at))),
        ("started", at(job.started_at)),
        ("ended", at(job.ended_at)),
        ("runtime", length(runtime(job, now))),
        ("members", members(job)),
        ("predicted", predicted(job, zone)),
        ("measured", measured(job)),
        ("progress", progress(job, now)),
        ("sharing", job.sharing().map_or(String::new(), ToString::to_string)),
        ("holds", holds(job)),
        ("limits", limits(job)),
        ("beside", job.sharing_with.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    ];
    properties.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

fn code(code: &CodeSnapshot) -> String {
    let files = counted(code.files, "file", "files");
    format!("{}: {files}, {} of {}", code.manifest.short(), code.bytes, code.folder)
}

/// The files that the output is written to, as the user named them.
fn output_files(files: &OutputFiles) -> String {
    match (&files.stdout, &files.stderr) {
        (None, None) => String::new(),
        (Some(stdout), None) => stdout.clone(),
        (None, Some(stderr)) => format!("stderr to {stderr}"),
        (Some(stdout), Some(stderr)) => format!("{stdout}, stderr to {stderr}"),
    }
}

/// Where its checkpoints are: in the directory that it names, or with the nodes of its latest attempt.
fn checkpoints(job: &JobRecord) -> String {
    let nodes = || job.attempts.last().map(|_| job.nodes().join(", ")).filter(|nodes| !nodes.is_empty());
    match (&job.labels.checkpoint, nodes()) {
        (Some(folder), _) => folder.clone(),
        (None, Some(nodes)) => {
            format!("on {nodes}, until its log-retention is over; carried along when the job moves")
        }
        (None, None) => String::new(),
    }
}

fn needs(job: &JobRecord) -> String {
    let mut needs = claims(&job.demand);
    if job.priority != 0 {
        needs.push(format!("priority {}", job.priority));
    }
    needs.join(", ")
}

/// What a job claims, in words.
#[must_use]
pub fn claims(demand: &Demand) -> Vec<String> {
    let mut needs = vec![match gpus(demand).as_str() {
        "0" => "no GPU".to_owned(),
        "1" => "1 GPU".to_owned(),
        count => format!("{count} GPUs"),
    }];
    if demand.spread == Spread::Free {
        needs.push("any nodes".to_owned());
    }
    if demand.nodes > 1 {
        needs.push(format!("{} nodes", demand.nodes));
    }
    if let Some(memory) = demand.gpu_memory {
        needs.push(format!("{memory} on each GPU"));
    }
    if demand.limits == EnforcementRequirement::Enforced {
        needs.push("enforced limits".to_owned());
    }
    if demand.compute == ComputeLimit::Capped {
        needs.push("computation limited to its share".to_owned());
    }
    if demand.gpu_processes > 1 {
        needs.push(format!("{} processes per GPU", demand.gpu_processes));
    }
    if let Some(most) = demand.max_slowdown {
        needs.push(format!("a slowdown of at most {most}"));
    }
    let (least, most) = (demand.least_host(), demand.most_host());
    match (least.cpus, most.cpus) {
        (_, 0) => {}
        (least, most) if least == most => needs.push(counted(least, "core", "cores")),
        (least, most) => needs.push(format!("{least} to {most} cores")),
    }
    match (least.memory, most.memory) {
        (_, Bytes::ZERO) => {}
        (least, most) if least == most => needs.push(format!("{least} of host memory")),
        (least, most) => needs.push(format!("{least} to {most} of host memory")),
    }
    needs
}

/// Cores and host memory of the latest attempt, where they may differ from the least that the job needs.
fn holds(job: &JobRecord) -> String {
    let shares = job.latest().map_or(&[][..], |attempt| &attempt.host).iter().map(ToString::to_string);
    shares.collect::<Vec<_>>().join("; ")
}

fn members(job: &JobRecord) -> String {
    job.array.as_ref().map_or(String::new(), |array| {
        let states = array.states.iter().map(|(state, count)| format!("{count} {state}"));
        format!("{}: {}", array.members, states.collect::<Vec<_>>().join(", "))
    })
}

fn predicted(job: &JobRecord, zone: &TimeZone) -> String {
    let Some(predicted) = &job.predicted else { return String::new() };
    let parts = [
        predicted.iterations.map(|count| counted(count, "iteration", "iterations")),
        run_time(predicted).map(|span| format!("run time {span}")),
        predicted.slowdown.map(|slowdown| format!("slowdown {slowdown:.2}")),
        predicted.gpu_memory.map(|memory| format!("{memory} of GPU memory")),
        start(predicted, zone).map(|time| format!("starts {time}")),
        end(predicted, zone).map(|time| format!("ends {time}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether its limits of CPUs and host memory are enforced.
fn limits(job: &JobRecord) -> String {
    match job.host_limits() {
        None => String::new(),
        Some((_, Enforcement::Enforced)) => "cpus and memory are enforced".to_owned(),
        Some((node, Enforcement::Unenforced(why))) => {
            format!("cpus and memory are not enforced on node {node} ({why})")
        }
    }
}

/// The measured slowdown, if known.
fn measured(job: &JobRecord) -> String {
    let slowdown = job.slowdown_measured;
    slowdown.map_or(String::new(), |slowdown| format!("slowdown {slowdown:.2}"))
}

fn progress(job: &JobRecord, now: Time) -> String {
    let Some(progress) = &job.progress else { return String::new() };
    let mut parts = vec![progress_text(progress)];
    parts.extend(progress.rate.map(|rate| format!("{} steps/s", format_number(rate))));
    if !job.state.is_terminal() {
        let left = || progress.remaining().map(|span| format!("{span} left"));
        parts.extend(silence(progress, now).or_else(left));
    }
    parts.join(", ")
}

/// When an attempt started, and when and why it ended.
#[must_use]
pub fn attempt_span(attempt: &AttemptRecord, zone: &TimeZone) -> String {
    let end = match (attempt.ended_at, attempt.stopped) {
        (None, None) => String::new(),
        (None, Some(why)) => format!(", stopping because {}", why.clause()),
        (Some(at), None) => format!(", ended {}", local_time(at, zone)),
        (Some(at), Some(why)) => format!(", stopped {} because {}", local_time(at, zone), why.clause()),
    };
    format!("started {}{end}", local_time(attempt.started_at, zone))
}

/// Where a rank runs, or ran, and how it ended.
#[must_use]
pub fn rank_line(rank: &RankRecord) -> String {
    let parts = [place(rank), user(rank), memory(rank), outcome(rank)].concat();
    format!("on {parts}")
}

fn place(rank: &RankRecord) -> String {
    let devices = rank.devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match rank.share {
        _ if rank.devices.is_empty() => rank.node.clone(),
        Share::WHOLE => format!("{} with {devices}", rank.node),
        share => format!("{} with {share} of {devices}", rank.node),
    }
}

/// The uid that it runs under, if its user has no account on the node.
fn user(rank: &RankRecord) -> String {
    rank.private_uid.map_or(String::new(), |uid| format!(" as uid {uid} (the user has no account there)"))
}

/// The memory that it holds on its devices now.
fn memory(rank: &RankRecord) -> String {
    rank.gpu_memory.map_or(String::new(), |memory| format!(", holding {memory} of GPU memory"))
}

fn outcome(rank: &RankRecord) -> String {
    rank.outcome.as_ref().map_or(String::new(), |outcome| format!(" {outcome}"))
}
