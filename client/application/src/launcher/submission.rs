//! The program as a code snapshot, and the jobs that run it.

use std::ffi::OsStr;
use std::path::PathBuf;

use cohabit_client::{CodeFolder, Submission};
use cohabit_types::{
    ApplicationWork, AttemptId, CodeSnapshot, Demand, Entrypoint, GpuRequest, JobSpec, RunnerRole, RunnerWork,
};

use super::launched::{FAILED, LaunchFailure};
use crate::start_entry::MainEntry;

/// What the kernel appends to the path of a program whose file was replaced.
const REPLACED: &str = " (deleted)";

/// This program as it runs now.
pub(super) struct Program {
    name: String,
    arguments: Vec<String>,
    workdir: String,
    pub(super) code: CodeFolder,
}

impl Program {
    /// Reads and hashes it.
    pub(super) async fn read() -> Result<Program, LaunchFailure> {
        let unusable = |text: String| LaunchFailure { code: FAILED, text };
        let path = std::env::current_exe();
        let path = path.map_err(|error| unusable(format!("cannot find the program: {error}")))?;
        let name = path.file_name().and_then(OsStr::to_str).map(str::to_owned);
        let name = name.ok_or_else(|| unusable(format!("the name of {} is not UTF-8", path.display())))?;
        let name = name.strip_suffix(REPLACED).unwrap_or(&name).to_owned();
        let workdir = std::env::current_dir().map(PathBuf::into_os_string);
        let workdir = workdir.map_err(|error| unusable(format!("no working directory: {error}")))?;
        let workdir = workdir.into_string();
        let workdir =
            workdir.map_err(|path| unusable(format!("the working directory {path:?} is not UTF-8")))?;
        let code = CodeFolder::of_program("/proc/self/exe", name.clone()).await?;
        let arguments: Result<Vec<String>, _> =
            std::env::args_os().skip(1).map(|it| it.into_string()).collect();
        let arguments =
            arguments.map_err(|argument| unusable(format!("the argument {argument:?} is not UTF-8")))?;
        Ok(Program { name, arguments, workdir, code })
    }

    /// The root job.
    pub(super) fn root(&self, entry: MainEntry) -> Result<Submission, LaunchFailure> {
        let work = ApplicationWork {
            program: self.name.clone(),
            arguments: self.arguments.clone(),
            max_gpus: entry.max_gpus,
        };
        self.job(entry.name, Entrypoint::Application(work), self.code.snapshot())
    }

    /// One more main in this attempt of an application, which runs the same code.
    pub(super) fn main(
        &self,
        entry: MainEntry,
        application: AttemptId,
        code: CodeSnapshot,
    ) -> Result<Submission, LaunchFailure> {
        let work = RunnerWork {
            application,
            program: self.name.clone(),
            role: RunnerRole::Main,
            arguments: self.arguments.clone(),
            node: None,
            ranks: 1,
        };
        self.job(entry.name, Entrypoint::Runner(work), code)
    }

    fn job(
        &self,
        name: &str,
        entrypoint: Entrypoint,
        code: CodeSnapshot,
    ) -> Result<Submission, LaunchFailure> {
        let spec = JobSpec {
            name: name.to_owned(),
            entrypoint,
            demand: Demand { gpus: GpuRequest::Whole(0), ..Demand::default() },
            code: Some(code),
            ..JobSpec::command(vec![self.name.clone()], self.workdir.clone())
        };
        Ok(Submission::new(spec)?)
    }
}
