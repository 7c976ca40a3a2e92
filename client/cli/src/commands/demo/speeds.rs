//! What the two jobs of `demo --tune` hold, use and do: readings, the lines in between and the report.

use std::time::{Duration, Instant};

use cohabit_client::types::Time;
use cohabit_console::{Screen, table};

use super::cpu_time::CpuUse;

const HEADINGS: [&str; 8] =
    ["JOB", "TRAINING", "SHARES", "ALLOTTED", "CPU.MAX", "CPU USED", "STEPS/S", "SPEED"];
const NOTHING: &str = "-";

/// One job at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JobReading {
    pub(super) at: Instant,
    /// Cores that the head has given it.
    pub(super) cores: u32,
    pub(super) cpu: CpuUse,
    /// Its last step, and when that was.
    pub(super) step: u64,
    pub(super) step_at: Time,
}

/// A job over some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JobSpeed {
    /// Cores that it held at the end.
    pub(super) cores: u32,
    pub(super) limit: Option<f64>,
    /// CPU seconds a second.
    pub(super) used: f64,
    /// Steps a second.
    pub(super) steps: f64,
}

impl JobReading {
    /// What the job did between these two readings.
    pub(super) fn since(self, earlier: JobReading) -> JobSpeed {
        let per_second = |count: f64, seconds: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let used: Duration = self.cpu.used.saturating_sub(earlier.cpu.used);
        JobSpeed {
            cores: self.cores,
            limit: self.cpu.limit,
            used: per_second(used.as_secs_f64(), (self.at - earlier.at).as_secs_f64()),
            steps: per_second(
                self.step.saturating_sub(earlier.step) as f64,
                self.step_at.since(earlier.step_at).as_secs_f64(),
            ),
        }
    }
}

/// `digits: 2 cores allotted, 1.98 used, 10.1 steps/s`
pub(super) fn line(name: &str, speed: JobSpeed) -> String {
    let JobSpeed { cores, used, steps, limit: _ } = speed;
    format!("{name}: {cores} allotted, {used:.2} used, {steps:5.1} steps/s")
}

/// A table with a row for each job in each phase, and the sum of speeds. A phase has a name and the jobs in
/// the order of their names; speeds are relative to those of the first phase.
pub(super) fn report(names: &[String], phases: &[(&str, Vec<JobSpeed>)], screen: Screen) -> String {
    let mut table = table::table(&HEADINGS, screen);
    for (job, name) in names.iter().enumerate() {
        for (phase, speeds) in phases {
            let Some(speed) = speeds.get(job) else { continue };
            table.add_row([
                (job + 1).to_string(),
                name.clone(),
                (*phase).to_owned(),
                speed.cores.to_string(),
                speed.limit.map_or(NOTHING.to_owned(), |limit| format!("{limit:.2}")),
                format!("{:.2}", speed.used),
                format!("{:.1}", speed.steps),
                relative(phases, job, *speed).map_or(NOTHING.to_owned(), |speed| format!("{speed:.2}")),
            ]);
        }
    }
    table::text(&table) + &sums(phases)
}

/// Against the first phase, if there is another one.
fn relative(phases: &[(&str, Vec<JobSpeed>)], job: usize, speed: JobSpeed) -> Option<f64> {
    let [(_, first), _, ..] = phases else { return None };
    let before = first.get(job)?.steps;
    (before > 0.0).then(|| speed.steps / before)
}

fn sums(phases: &[(&str, Vec<JobSpeed>)]) -> String {
    let sum = |speeds: &[JobSpeed]| -> Option<f64> {
        speeds.iter().enumerate().map(|(job, speed)| relative(phases, job, *speed)).sum()
    };
    let each = phases.iter().filter_map(|(phase, speeds)| Some(format!("{:.2} {phase}", sum(speeds)?)));
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!("Sum of speeds: {}.\n", each.join(", ")) }
}

#[cfg(test)]
mod tests {
    use cohabit_console::Colour;

    use super::*;
    use crate::render::samples::at;

    const SCREEN: Screen = Screen { width: None, colour: Colour::None };

    fn speed(cores: u32, limit: Option<f64>, steps: f64) -> JobSpeed {
        JobSpeed { cores, limit, used: 1.5, steps }
    }

    fn names() -> Vec<String> {
        ["digits", "charlm"].map(str::to_owned).into()
    }

    #[test]
    fn speeds_are_differences_over_their_own_times() {
        let begin = Instant::now();
        let cpu = |seconds| CpuUse { used: Duration::from_secs(seconds), limit: Some(2.0) };
        let first = JobReading { at: begin, cores: 2, cpu: cpu(3), step: 100, step_at: at(10) };
        let later = begin + Duration::from_secs(2);
        let second = JobReading { at: later, cores: 3, cpu: cpu(7), step: 160, step_at: at(13) };
        let speed = second.since(first);
        assert_eq!(speed, JobSpeed { cores: 3, limit: Some(2.0), used: 2.0, steps: 20.0 });
        assert_eq!(first.since(first).steps, 0.0);
        assert_eq!(line("digits", speed), "digits: 3 allotted, 2.00 used,  20.0 steps/s");
    }

    #[test]
    fn two_phases_are_compared() {
        let before = vec![speed(2, Some(2.0), 10.0), speed(2, Some(2.0), 40.0)];
        let after = vec![speed(3, Some(3.0), 14.0), speed(1, Some(1.0), 40.0)];
        let text = report(&names(), &[("proportional", before), ("tuned", after)], SCREEN);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2], ["1", "digits", "tuned", "3", "3.00", "1.50", "14.0", "1.40"]);
        assert_eq!(rows[4], ["2", "charlm", "tuned", "1", "1.00", "1.50", "40.0", "1.00"]);
        assert_eq!(text.lines().last(), Some("Sum of speeds: 2.00 proportional, 2.40 tuned."));
    }

    #[test]
    fn one_phase_is_compared_with_nothing() {
        let text = report(&names(), &[("fixed", vec![speed(1, None, 10.0), speed(1, None, 40.0)])], SCREEN);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["1", "digits", "fixed", "1", "-", "1.50", "10.0", "-"]);
        assert_eq!(rows.len(), 3);
    }
}
