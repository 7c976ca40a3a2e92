//! `doctor`: looks at this machine and says what to change; it changes nothing itself, and what a probe
//! starts, it stops again.
//!
//! Each file below looks at one matter. What cannot be looked at is a finding too, never a silent pass.

#[cfg(feature = "worker")]
mod device_files;
#[cfg(feature = "worker")]
mod device_name;
mod findings;
#[cfg(feature = "worker")]
mod gpu_processes;
#[cfg(feature = "worker")]
mod gpus;
mod head;
#[cfg(feature = "worker")]
mod isolation;
#[cfg(feature = "worker")]
mod mps;
mod open_files;
#[cfg(feature = "worker")]
mod probe;
mod processes;
mod state_directory;

use std::process::ExitCode;

use cohabit_console::{CommandError, Screen, output, with_schema};

use self::findings::{Diagnosis, Finding, Findings};
use crate::arguments::{DoctorArguments, OutputFormat};
use crate::endpoint::{settings, state_folder};
use crate::process::block_on;

/// Something is broken.
const EXIT_ERROR: u8 = 78;

pub(super) fn doctor(arguments: DoctorArguments) -> Result<ExitCode, CommandError> {
    let settings = settings(&arguments.connection)?;
    let state = state_folder(&settings)?;
    let mut findings = state_directory::check(&state);
    findings.extend(block_on(async { Ok(head::check(&settings).await) })?);
    #[cfg(feature = "worker")]
    findings.extend(gpus::check(&gpus::GpuCheckOptions::new(&arguments, &settings, &state)));
    #[cfg(feature = "worker")]
    findings.extend(isolation::check());
    #[cfg(not(feature = "worker"))]
    findings.push(gpus_without_worker());
    findings.extend(processes::check());
    findings.extend(open_files::check());
    tell(&Findings { findings }, arguments.display.output)
}

#[cfg(not(feature = "worker"))]
fn gpus_without_worker() -> Finding {
    let seen = "this build has no worker, so GPUs are not looked at";
    Finding::warning("gpu driver", seen, "run the `doctor` of a build with the feature `worker`")
}

fn tell(findings: &Findings, format: OutputFormat) -> Result<ExitCode, CommandError> {
    let is_error = |finding: &&Finding| finding.status == Diagnosis::Error;
    match format {
        OutputFormat::Json => output::print_document(&with_schema(findings))?,
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&findings.table(Screen::of_stdout()))?,
        OutputFormat::Quiet => {
            findings
                .findings
                .iter()
                .filter(is_error)
                .try_for_each(|finding| output::print_text(finding.check))?;
        }
    }
    match findings.findings.iter().any(|finding| is_error(&finding)) {
        true => Ok(EXIT_ERROR.into()),
        false => Ok(ExitCode::SUCCESS),
    }
}
