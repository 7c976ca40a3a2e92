//! The report on a job, in words and as JSON, with advice.

use cohabit_console::printable_line;
use serde::Serialize;

use super::job_figures::JobReport;
use super::units::{hours, percent};

/// The report in words.
pub(crate) fn job_report_text(report: &JobReport) -> String {
    let hours = |seconds: f64| format!("{:.2}", hours(seconds));
    let unmeasured = report.measured <= 0.0;
    let measured = |text: String| if unmeasured { "not measured".to_owned() } else { text };
    let memory = report.memory.map_or("not measured".to_owned(), |memory| {
        format!("at most {} of {} claimed; the GPU has {}", memory.used, memory.claimed, memory.of_device)
    });
    let lines = [
        ("Job", format!("{} {} ({})", report.job, printable_line(&report.name), report.state)),
        ("Attempts", format!("{}, together {}", report.attempts, report.ran)),
        ("GPU hours held", hours(report.held)),
        ("GPU hours busy", measured(hours(report.busy))),
        ("GPU hours idle", measured(hours(report.idle))),
        ("GPU hours lost", hours(report.lost)),
        ("Efficiency", percent(report.efficiency())),
        ("GPU memory", memory),
    ];
    let mut text: String = lines.iter().map(|(name, value)| format!("{name:<16}{value}\n")).collect();
    for sentence in report.advice() {
        text += &format!("\n{sentence}\n");
    }
    text
}

/// The report as JSON; `null` where nothing was measured.
#[derive(Debug, Serialize)]
pub(crate) struct JobReportDocument {
    job: String,
    name: String,
    state: &'static str,
    attempts: usize,
    ran_s: f64,
    held_gpu_s: f64,
    measured_gpu_s: f64,
    busy_gpu_s: f64,
    idle_gpu_s: f64,
    lost_gpu_s: f64,
    efficiency: Option<f64>,
    gpu_memory_used: Option<u64>,
    gpu_memory_claimed: Option<u64>,
    gpu_memory_of_device: Option<u64>,
    advice: Vec<String>,
}

impl From<&JobReport> for JobReportDocument {
    fn from(report: &JobReport) -> JobReportDocument {
        JobReportDocument {
            job: report.job.clone(),
            name: report.name.clone(),
            state: report.state,
            attempts: report.attempts,
            ran_s: report.ran.as_secs_f64(),
            held_gpu_s: report.held,
            measured_gpu_s: report.measured,
            busy_gpu_s: report.busy,
            idle_gpu_s: report.idle,
            lost_gpu_s: report.lost,
            efficiency: report.efficiency(),
            gpu_memory_used: report.memory.map(|it| it.used.0),
            gpu_memory_claimed: report.memory.map(|it| it.claimed.0),
            gpu_memory_of_device: report.memory.map(|it| it.of_device.0),
            advice: report.advice(),
        }
    }
}
