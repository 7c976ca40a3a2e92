//! A dry run in sentences.

use cohabit_client::proto::{
    Array, ColocationSlowdown, DryRun, DryRunNeighbor, DryRunPlacement, Entrypoint, GpuRequest,
    JobPrediction, JobSpec, PredictedSlowdown, Share, Spread,
};
use jiff::tz::TimeZone;

use crate::render::local_time;

/// What would be submitted, what would become of it, and that nothing was.
pub(super) fn describe_dry_run(
    spec: &JobSpec,
    fitting: &[String],
    dry_run: &DryRun,
    zone: &TimeZone,
) -> String {
    let mut lines = vec![submission(spec)];
    lines.extend((!fitting.is_empty()).then(|| format!("It fits {}.", fitting.join(", "))));
    lines.extend(dry_run.place.as_ref().map(|it| place(it, &dry_run.neighbours)));
    lines.extend(dry_run.company.as_ref().map(|it| cost(it, &dry_run.neighbours)));
    lines.push(sentence(&dry_run.reason));
    lines.extend(expected(&dry_run.predicted, zone));
    lines.push("Nothing was submitted; --output json shows everything.".to_owned());
    lines.join("\n")
}

/// A reason, which begins like a clause.
fn sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters.next().map(char::to_uppercase).into_iter().flatten();
    first.chain(letters).chain(['.']).collect()
}

fn submission(spec: &JobSpec) -> String {
    let command = match &spec.work {
        Entrypoint::Command(command) => shlex::try_join(command.argv.iter().map(String::as_str)).ok(),
        Entrypoint::Function(_) | Entrypoint::Actor(_) => None,
    };
    let members = spec.array.as_ref().map(|array| format!(", an array of {} members", Array::len(array)));
    format!(
        "Would submit {} in {}{}: {}.",
        command.unwrap_or_else(|| spec.name.clone()),
        spec.workdir,
        members.unwrap_or_default(),
        devices(spec)
    )
}

fn devices(spec: &JobSpec) -> String {
    let count = match spec.demand.gpus {
        GpuRequest::Part(share) => share.to_string(),
        GpuRequest::Whole(count) => count.to_string(),
    };
    match spec.demand.spread {
        Spread::Even => format!("{count} GPUs on each of {} node(s)", spec.demand.nodes),
        Spread::Free => format!("{count} GPUs on any nodes"),
    }
}

fn place(place: &DryRunPlacement, neighbours: &[DryRunNeighbor]) -> String {
    let devices: Vec<&str> = place.devices.iter().map(|device| device.as_str()).collect();
    let what = match place.share {
        _ if devices.is_empty() => String::new(),
        Share::WHOLE => format!(" with {}", devices.join(", ")),
        share => format!(" with {share} of {}", devices.join(", ")),
    };
    let jobs: Vec<String> =
        neighbours.iter().map(|it| format!("job {} ({})", it.then.job, it.name)).collect();
    let beside = match jobs.is_empty() {
        true => String::new(),
        false => format!(", beside {}", jobs.join(" and ")),
    };
    format!("It would go to {}{what}{beside}.", place.nodes.join(", "))
}

fn cost(own: &ColocationSlowdown, neighbours: &[DryRunNeighbor]) -> String {
    let PredictedSlowdown { expected, least, most } = own.predicted;
    let measured = own.measured.map(|it| format!(", and {it:.2} times was measured")).unwrap_or_default();
    let theirs = neighbours.iter().map(|it| {
        let (job, then, now) = (it.then.job, it.then.slowdown(), it.now);
        format!("; job {job} would take {then:.2} times as long (now {now:.2})")
    });
    format!(
        "There it is predicted to take {expected:.2} times as long as alone (probably between {least:.2} and \
         {most:.2}){measured}{}.",
        theirs.collect::<String>()
    )
}

/// When it may start and end, and what it takes, as far as anything is known.
fn expected(predicted: &JobPrediction, zone: &TimeZone) -> Option<String> {
    let parts = [
        predicted.starts_at.map(|time| format!("start at {}", local_time(time, zone))),
        predicted.runtime.map(|span| format!("run for {span} alone")),
        predicted.ends_at.map(|time| format!("end at {}", local_time(time, zone))),
        predicted.gpu_memory.map(|memory| format!("take {memory} of GPU memory")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("It is expected to {}.", parts.join(", ")))
}
