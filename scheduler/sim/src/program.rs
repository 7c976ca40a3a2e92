//! The behaviour of a simulated process, encoded in the command line of its job.

use cohabit_types::{Bytes, Entrypoint, JobSpec, Outcome, Signal, Span, StartFailure};
use serde::{Deserialize, Serialize};

/// The behaviour of every process of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimProgram {
    /// Run time on devices of its own; for a gang, at its best placement.
    #[serde(rename = "alone")]
    pub solo_duration: Span,
    /// Training steps in this time.
    pub steps: u64,
    /// Whether it reports progress.
    pub reports: ProgressReporting,
    /// The fraction of its devices' time that it keeps them busy when alone, 0 to 1.
    pub busy: f64,
    /// Memory that it allocates on each device, if that is limited; it may have requested less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<Bytes>,
    /// How it starts.
    pub start: StartBehaviour,
    /// Its exit code.
    pub exit: i32,
    /// The first this many attempts exit with code 1 instead.
    pub failing_attempts: u32,
    /// What it does on SIGTERM.
    pub on_term: SigtermBehaviour,
    /// Whether it connects to the MPS server that its environment names.
    #[serde(rename = "attaches")]
    pub mps_attachment: MpsAttachment,
    /// How long SIGKILL takes: long if the process hangs in the kernel.
    #[serde(rename = "on_kill")]
    pub kill_delay: Span,
    /// How long the processes that it leaves behind would run if nobody stopped them.
    #[serde(rename = "leaves", default, skip_serializing_if = "is_zero")]
    pub leftover_duration: Span,
    /// How long it loads a checkpoint before it works on.
    #[serde(rename = "loads", default, skip_serializing_if = "is_zero")]
    pub restart_duration: Span,
}

/// How a start ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartBehaviour {
    /// It runs after this time.
    #[serde(rename = "Takes")]
    Succeeds(Span),
    /// It fails after this time, because the command does not exist.
    Fails(Span),
}

/// Whether a process reports its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgressReporting {
    /// At intervals of a quarter of its run time.
    Progress,
    /// Soon after it starts, or the set of processes on its devices changes, and then ever more rarely.
    Adaptive,
    /// Never.
    #[serde(rename = "Nothing")]
    Never,
}

/// Whether a process connects to the MPS server that its environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MpsAttachment {
    /// It does, as it should.
    Always,
    /// It uses the GPU without MPS.
    Never,
}

/// What a process does on SIGTERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SigtermBehaviour {
    /// Saves a checkpoint for this long and exits with code 0; the next attempt continues from it. In a gang,
    /// the first rank saves for all.
    #[serde(rename = "Saves")]
    Checkpoints(Span),
    /// Exits because of the signal after this time.
    #[serde(rename = "Dies")]
    Exits(Span),
    /// Nothing.
    Ignores,
}

impl SimProgram {
    /// A run time longer than any simulation.
    pub const ENDLESS: Span = Span::from_secs(365 * 86_400);

    /// A well-behaved program that needs its devices for itself.
    #[must_use]
    pub const fn working(solo_duration: Span) -> SimProgram {
        let (start, on_term) = (
            StartBehaviour::Succeeds(Span::from_millis(200)),
            SigtermBehaviour::Exits(Span::from_millis(50)),
        );
        let kill_delay = Span::from_millis(20);
        let (steps, reports, mps_attachment) = (1_000, ProgressReporting::Progress, MpsAttachment::Always);
        SimProgram {
            solo_duration,
            steps,
            reports,
            busy: 0.9,
            gpu_memory: None,
            start,
            exit: 0,
            failing_attempts: 0,
            on_term,
            mps_attachment,
            kill_delay,
            leftover_duration: Span::ZERO,
            restart_duration: Span::ZERO,
        }
    }

    /// Whether it runs until somebody stops it.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.solo_duration >= SimProgram::ENDLESS
    }

    /// A job that runs this program.
    #[must_use]
    pub fn job(&self) -> JobSpec {
        let text = serde_json::to_string(self).expect("a program has only text keys");
        JobSpec::command(vec!["program".into(), text], "/".into())
    }

    /// The program of a job; one that ends at once if the job runs something else.
    #[must_use]
    pub fn of(spec: &JobSpec) -> SimProgram {
        serde_json::from_str(SimProgram::text_of(spec)).unwrap_or(SimProgram::working(Span::ZERO))
    }

    /// The encoded program of a job.
    pub(crate) fn text_of(spec: &JobSpec) -> &str {
        let text = match &spec.entrypoint {
            Entrypoint::Command(command) => command.argv.get(1),
            Entrypoint::Application(work) => work.arguments.first(),
            Entrypoint::Runner(work) => work.arguments.first(),
        };
        text.map_or("", String::as_str)
    }

    /// How this attempt ends when its work is done.
    #[must_use]
    pub const fn outcome(&self, attempt: u32) -> Outcome {
        Outcome::Exited(if attempt <= self.failing_attempts { 1 } else { self.exit })
    }
}

impl StartBehaviour {
    /// How long the start takes, and whether it succeeds.
    pub fn result(self) -> (Span, Result<(), StartFailure>) {
        match self {
            StartBehaviour::Succeeds(span) => (span, Ok(())),
            StartBehaviour::Fails(span) => (span, Err(StartFailure::CommandNotFound("program".into()))),
        }
    }
}

impl SigtermBehaviour {
    /// How long the process takes to end after SIGTERM, and how it ends; `None` if it ignores the signal.
    #[must_use]
    pub const fn end(self) -> Option<(Span, Outcome)> {
        match self {
            SigtermBehaviour::Checkpoints(span) => Some((span, Outcome::Exited(0))),
            SigtermBehaviour::Exits(span) => Some((span, Outcome::Signalled(Signal::TERM))),
            SigtermBehaviour::Ignores => None,
        }
    }
}

fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_carries_its_program() {
        let program =
            SimProgram { busy: 0.25, failing_attempts: 2, ..SimProgram::working(Span::from_secs(7)) };
        assert_eq!(SimProgram::of(&program.job()), program);
        let codes: Vec<i32> = (1..=3).map(|attempt| program.outcome(attempt).shell_code()).collect();
        assert_eq!(codes, [1, 1, 0]);
    }
}
