//! Expected run times and ends as text: with their range where they rest on earlier runs.

use cohabit_types::{JobPhase, JobPrediction, JobRecord, Time, counted, span_range};
use jiff::tz::TimeZone;

use super::time::local_time;

/// `10–40 min, from 14 runs like it`.
#[must_use]
pub fn run_time(predicted: &JobPrediction) -> Option<String> {
    let Some([least, most]) = predicted.runtime_between else {
        return predicted.runtime.map(|span| span.to_string());
    };
    let runs = predicted.runs.map(|runs| format!(", from {} like it", counted(runs as usize, "run", "runs")));
    Some(span_range(least, most) + &runs.unwrap_or_default())
}

/// When a job starts, in this time zone.
#[must_use]
pub fn start(predicted: &JobPrediction, zone: &TimeZone) -> Option<String> {
    moment(predicted.starts_at, predicted.starts_between, zone)
}

/// When a job ends, in this time zone.
#[must_use]
pub fn end(predicted: &JobPrediction, zone: &TimeZone) -> Option<String> {
    moment(predicted.ends_at, predicted.ends_between, zone)
}

fn moment(at: Option<Time>, between: Option<[Time; 2]>, zone: &TimeZone) -> Option<String> {
    if let Some([least, most]) = between {
        return Some(format!("between {} and {}", local_time(least, zone), local_time(most, zone)));
    }
    at.map(|time| local_time(time, zone))
}

/// In how much time a job ends. Of a job that runs, and of which nothing is known, that is said.
#[must_use]
pub fn eta(job: &JobRecord, now: Time) -> String {
    let predicted = job.predicted.as_ref().filter(|_| !job.state.is_terminal());
    let between = predicted.and_then(|it| it.ends_between);
    let end = predicted.and_then(|it| it.ends_at);
    match (between, end) {
        (Some([least, most]), _) => span_range(least.since(now), most.since(now)),
        (None, Some(end)) => end.since(now).to_string(),
        (None, None) if job.state.phase() == JobPhase::Placed && job.array.is_none() => "unknown".to_owned(),
        (None, None) => String::new(),
    }
}
