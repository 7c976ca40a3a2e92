//! What a simulated process does, as its command line says: the fake machine's only programming language.

use cohabit_types::{Bytes, Entrypoint, JobSpec, Outcome, Signal, Span, StartFailure};
use serde::{Deserialize, Serialize};

/// The behaviour of every process of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimProgram {
    /// Work for this long on devices of its own; as a gang, at its best place in the cluster.
    pub alone: Span,
    /// The steps of this work, as it counts them.
    pub steps: u64,
    /// Whether it says how far it is.
    pub reports: ProgressReporting,
    /// The fraction of its devices that it keeps busy then.
    pub busy: f64,
    /// Memory that it holds on each of its devices, where that counts: it may have asked for less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<Bytes>,
    /// How its start goes.
    pub start: StartBehaviour,
    /// The code it exits with in the end.
    pub exit: i32,
    /// So many first attempts exit with code 1 instead.
    pub failing_attempts: u32,
    /// What it does about SIGTERM.
    pub on_term: SigtermBehaviour,
    /// Whether it becomes a client of the MPS server that its environment names.
    pub attaches: MpsAttachment,
    /// How long SIGKILL takes: long, where it hangs in the kernel.
    pub on_kill: Span,
    /// How long the processes that it leaves behind would go on if they were let.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub leaves: Span,
}

/// How a start goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartBehaviour {
    /// It runs after this long.
    Takes(Span),
    /// It is found after this long that there is no such command.
    Fails(Span),
}

/// Whether a process says how far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgressReporting {
    /// Now and then.
    Progress,
    /// Never.
    Nothing,
}

/// Whether a process becomes a client of the MPS server that its environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MpsAttachment {
    /// As it should.
    Always,
    /// It comes to the GPU by another way.
    Never,
}

/// What a process does about SIGTERM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SigtermBehaviour {
    /// Saves its work for this long and exits with code 0; the next attempt goes on from there. Of a gang,
    /// the first rank saves for all.
    Saves(Span),
    /// Dies of it after this long.
    Dies(Span),
    /// Nothing.
    Ignores,
}

impl SimProgram {
    /// Longer than anybody waits.
    pub const ENDLESS: Span = Span::from_secs(365 * 86_400);

    /// A well-behaved one that needs all of its devices.
    #[must_use]
    pub const fn working(alone: Span) -> SimProgram {
        let (start, on_term) =
            (StartBehaviour::Takes(Span::from_millis(200)), SigtermBehaviour::Dies(Span::from_millis(50)));
        let on_kill = Span::from_millis(20);
        let (steps, reports, attaches) = (1_000, ProgressReporting::Progress, MpsAttachment::Always);
        SimProgram {
            alone,
            steps,
            reports,
            busy: 0.9,
            gpu_memory: None,
            start,
            exit: 0,
            failing_attempts: 0,
            on_term,
            attaches,
            on_kill,
            leaves: Span::ZERO,
        }
    }

    /// Whether it goes on for so long that somebody has to stop it.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.alone >= SimProgram::ENDLESS
    }

    /// A job that runs it.
    #[must_use]
    pub fn job(&self) -> JobSpec {
        let text = serde_json::to_string(self).expect("a program has only text keys");
        JobSpec::command(vec!["program".into(), text], "/".into())
    }

    /// The program that a job runs; one that ends at once, where a job runs something else.
    #[must_use]
    pub fn of(spec: &JobSpec) -> SimProgram {
        let text = match &spec.work {
            Entrypoint::Command(command) => command.argv.get(1).map_or("", String::as_str),
            Entrypoint::Function(_) | Entrypoint::Actor(_) => "",
        };
        serde_json::from_str(text).unwrap_or(SimProgram::working(Span::ZERO))
    }

    /// How this attempt ends when its work is done.
    #[must_use]
    pub const fn outcome(&self, attempt: u32) -> Outcome {
        Outcome::Exited(if attempt <= self.failing_attempts { 1 } else { self.exit })
    }
}

impl StartBehaviour {
    /// When it is over, and how it went.
    pub fn result(self) -> (Span, Result<(), StartFailure>) {
        match self {
            StartBehaviour::Takes(span) => (span, Ok(())),
            StartBehaviour::Fails(span) => (span, Err(StartFailure::CommandNotFound("program".into()))),
        }
    }
}

impl SigtermBehaviour {
    /// When it ends because of SIGTERM, and how.
    #[must_use]
    pub const fn end(self) -> Option<(Span, Outcome)> {
        match self {
            SigtermBehaviour::Saves(span) => Some((span, Outcome::Exited(0))),
            SigtermBehaviour::Dies(span) => Some((span, Outcome::Signalled(Signal::TERM))),
            SigtermBehaviour::Ignores => None,
        }
    }
}

fn is_nothing(span: &Span) -> bool {
    *span == Span::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_says_what_its_program_does() {
        let program =
            SimProgram { busy: 0.25, failing_attempts: 2, ..SimProgram::working(Span::from_secs(7)) };
        assert_eq!(SimProgram::of(&program.job()), program);
        let codes: Vec<i32> = (1..=3).map(|attempt| program.outcome(attempt).shell_code()).collect();
        assert_eq!(codes, [1, 1, 0]);
    }
}
