//! `doctor`: looks at this machine and says what to change; it changes nothing itself, and what a probe
//! starts, it stops again.
//!
//! Each file below looks at one matter. What cannot be looked at is a finding too, never a silent pass.

#[cfg(feature = "worker")]
mod device_files;
mod findings;
mod folder;
#[cfg(feature = "worker")]
mod gpu_processes;
#[cfg(feature = "worker")]
mod gpus;
mod head;
#[cfg(feature = "worker")]
mod isolation;
mod limits;
#[cfg(feature = "worker")]
mod mps;
#[cfg(feature = "worker")]
mod probe;
mod processes;

use std::process::ExitCode;

use cohabit_console::{CommandError, Screen, output, with_schema};

use self::findings::{Diagnosis, Finding, Findings};
use crate::arguments::{DoctorArguments, OutputFormat};
use crate::connect::{settings, state_folder};

/// Something is broken.
const EXIT_BROKEN: u8 = 78;

pub(super) async fn doctor(arguments: DoctorArguments) -> Result<ExitCode, CommandError> {
    let settings = settings(&arguments.connection)?;
    let state = state_folder(&settings)?;
    let mut findings = folder::look(&state);
    findings.extend(head::look(&settings).await);
    #[cfg(feature = "worker")]
    findings.extend(gpus::look(&gpus::GpuCheckOptions::new(&arguments, &settings, &state)));
    #[cfg(feature = "worker")]
    findings.extend(isolation::look());
    #[cfg(not(feature = "worker"))]
    findings.push(gpus_without_worker());
    findings.extend(processes::look());
    findings.extend(limits::look());
    tell(&Findings { findings }, arguments.display.output)
}

#[cfg(not(feature = "worker"))]
fn gpus_without_worker() -> Finding {
    let seen = "this build has no worker, so GPUs are not looked at";
    Finding::doubtful("gpu driver", seen, "run the `doctor` of a build with the feature `worker`")
}

fn tell(findings: &Findings, format: OutputFormat) -> Result<ExitCode, CommandError> {
    let is_broken = |finding: &&Finding| finding.judgement == Diagnosis::Broken;
    match format {
        OutputFormat::Json => output::print_document(&with_schema(findings))?,
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&findings.table(Screen::of_stdout()))?,
        OutputFormat::Quiet => {
            findings
                .findings
                .iter()
                .filter(is_broken)
                .try_for_each(|finding| output::print_text(finding.matter))?;
        }
    }
    match findings.findings.iter().any(|finding| is_broken(&finding)) {
        true => Ok(EXIT_BROKEN.into()),
        false => Ok(ExitCode::SUCCESS),
    }
}
