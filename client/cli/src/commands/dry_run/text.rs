//! The text of a dry run.

use cohabit_client::types::{
    Array, ColocationSlowdown, DryRun, DryRunNeighbor, DryRunPlacement, GpuRequest, JobPrediction, JobSpec,
    PredictedSlowdown, Share, Spread, counted,
};
use cohabit_console::printable_line;
use jiff::tz::TimeZone;

use crate::render::expected_times::{end, run_time, start};

/// Describes the job, where it would run, and at what slowdown.
pub(super) fn describe_dry_run(
    spec: &JobSpec,
    fitting: &[String],
    dry_run: &DryRun,
    zone: &TimeZone,
) -> String {
    let mut lines = vec![submission(spec)];
    lines.extend((!fitting.is_empty()).then(|| format!("Nodes large enough: {}.", fitting.join(", "))));
    lines.extend(dry_run.place.as_ref().map(|it| place(it, &dry_run.neighbors)));
    lines.extend(dry_run.slowdown.as_ref().map(|it| cost(it, &dry_run.neighbors)));
    lines.push(sentence(&dry_run.reason));
    lines.extend(expected(&dry_run.predicted, zone));
    lines.push("Nothing was submitted. --output json shows all details.".to_owned());
    lines.iter().map(|line| printable_line(line)).collect::<Vec<_>>().join("\n")
}

/// Turns a reason, which starts in lower case, into a sentence.
fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(letters).chain(['.']).collect()
}

fn submission(spec: &JobSpec) -> String {
    let members = spec
        .array
        .as_ref()
        .map(|array| format!(", an array with {}", counted(Array::len(array), "member", "members")));
    format!(
        "Would submit {} in {}{}: {}.",
        spec.entrypoint.command_line(),
        spec.workdir,
        members.unwrap_or_default(),
        devices(spec)
    )
}

fn devices(spec: &JobSpec) -> String {
    let gpus = match spec.demand.gpus {
        GpuRequest::Part(share) => format!("{share} of a GPU"),
        GpuRequest::Whole(count) => counted(count, "GPU", "GPUs"),
    };
    match (spec.demand.spread, spec.demand.nodes) {
        (Spread::Even, 1) => format!("{gpus} on one node"),
        (Spread::Even, nodes) => format!("{gpus} on each of {nodes} nodes"),
        (Spread::Free, _) => format!("{gpus} on any nodes"),
    }
}

fn place(place: &DryRunPlacement, neighbors: &[DryRunNeighbor]) -> String {
    let devices: Vec<&str> = place.devices.iter().map(|device| device.as_str()).collect();
    let what = match place.share {
        _ if devices.is_empty() => String::new(),
        Share::WHOLE => format!(" with {}", devices.join(", ")),
        share => format!(" with {share} of {}", devices.join(", ")),
    };
    let jobs: Vec<String> = neighbors.iter().map(|it| format!("job {} ({})", it.then.job, it.name)).collect();
    let beside = match jobs.is_empty() {
        true => String::new(),
        false => format!(", beside {}", jobs.join(" and ")),
    };
    format!("It would run on {}{what}{beside}.", place.nodes.join(", "))
}

fn cost(own: &ColocationSlowdown, neighbors: &[DryRunNeighbor]) -> String {
    let PredictedSlowdown { expected, least, most } = own.predicted;
    let measured = own.measured.map(|it| format!("; measured: {it:.2}")).unwrap_or_default();
    let theirs = neighbors.iter().map(|it| {
        let (job, then, now) = (it.then.job, it.then.slowdown(), it.now);
        format!(" Slowdown of job {job}: {then:.2} (now {now:.2}).")
    });
    format!(
        "Predicted slowdown there: {expected:.2} (probably between {least:.2} and {most:.2}{measured}).{}",
        theirs.collect::<String>()
    )
}

/// The predicted times and memory, as far as they are known.
fn expected(predicted: &JobPrediction, zone: &TimeZone) -> Option<String> {
    let parts = [
        start(predicted, zone).map(|time| format!("start {time}")),
        run_time(predicted).map(|span| format!("run time alone {span}")),
        end(predicted, zone).map(|time| format!("end {time}")),
        predicted.gpu_memory.map(|memory| format!("GPU memory {memory}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Expected: {}.", parts.join(", ")))
}
