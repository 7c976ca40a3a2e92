//! `doctor`: checks this machine, or with `--cluster` the cluster, and says what to change.
//!
//! It changes nothing itself, and stops everything that a probe starts. Each file below holds the checks of
//! one subject. A check that cannot be made is a finding, never a silent pass. Start reading at [`doctor`].

mod cluster;
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
use crate::endpoint::{read_settings, state_directory as configured_state_directory};
use crate::process::block_on;

/// At least one check found an error.
const EXIT_ERROR: u8 = 78;

pub(super) fn doctor(arguments: DoctorArguments) -> Result<ExitCode, CommandError> {
    let settings = read_settings(&arguments.connection)?;
    if arguments.cluster {
        let findings = block_on(async { Ok(cluster::check(&settings).await) })?;
        return print_result(&Findings { findings }, arguments.display.output);
    }
    let state = configured_state_directory(&settings)?;
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
    print_result(&Findings { findings }, arguments.display.output)
}

#[cfg(not(feature = "worker"))]
fn gpus_without_worker() -> Finding {
    let observed = "this build has no worker, so GPUs are not checked";
    Finding::warning("gpu driver", observed, "run `doctor` of a build with the feature `worker`")
}

fn print_result(findings: &Findings, format: OutputFormat) -> Result<ExitCode, CommandError> {
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
