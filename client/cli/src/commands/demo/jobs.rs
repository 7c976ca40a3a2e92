//! The jobs of the demo: one network with several learning rates, and a language model.

use std::env;
use std::path::Path;
use std::time::Duration;

use cohabit_client::{Client, JobBuilder, JobHandle};
use cohabit_console::{CommandError, CommandErrorKind};

/// The share of a slot of each job: two share one.
const SHARE: f64 = 0.5;
/// More than a slow machine needs, so that a job that hangs does not hang the demo.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// Long enough to watch; all jobs together take less than a minute on two cores.
const DIGITS_EPOCHS: &str = "100";
const CHARLM_STEPS: &str = "400";

/// One training job.
pub(super) struct DemoTraining {
    program: &'static str,
    length_flag: &'static str,
    length: &'static str,
    learning_rate: &'static str,
}

/// The jobs in the order of submission: the longest first, so that none runs alone at the end.
pub(super) fn trainings() -> Vec<DemoTraining> {
    let charlm = ["0.005", "0.002"].map(|learning_rate| DemoTraining {
        program: "charlm",
        length_flag: "--steps",
        length: CHARLM_STEPS,
        learning_rate,
    });
    let digits = ["0.0003", "0.001", "0.003", "0.01", "0.03"].map(|learning_rate| DemoTraining {
        program: "digits",
        length_flag: "--epochs",
        length: DIGITS_EPOCHS,
        learning_rate,
    });
    charlm.into_iter().chain(digits).collect()
}

impl DemoTraining {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.program, self.learning_rate)
    }

    /// Submits the hidden command `train` of this program.
    pub(super) async fn submit(&self, client: &Client, folder: &Path) -> Result<JobHandle, CommandError> {
        let job = JobBuilder::new(this_program()?)
            .args([
                "train",
                self.program,
                self.length_flag,
                self.length,
                "--learning-rate",
                self.learning_rate,
            ])
            .name(self.name())
            .gpus(SHARE)
            .time_limit(TIME_LIMIT)
            .workdir(folder);
        Ok(job.submit(client).await?)
    }
}

/// The path of this program, which has the hidden command `train`.
pub(super) fn this_program() -> Result<String, CommandError> {
    let program = env::current_exe().map_err(|error| {
        let message = format!("cannot determine the path of this program: {error}");
        CommandError::new(CommandErrorKind::InputOutput, message)
    })?;
    program.into_os_string().into_string().map_err(|path| {
        let message = format!("the path of this program is not valid UTF-8: {}", path.display());
        CommandError::configuration(message)
    })
}
