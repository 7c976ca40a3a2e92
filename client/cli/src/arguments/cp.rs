//! Arguments of `cp`.

use std::ffi::OsString;
use std::path::Path;
use std::str::FromStr;

use clap::Args;
use cohabit_client::types::{Bytes, COPY_LIMIT, JobRef};
use cohabit_console::{CommandError, DisplayArguments};

use super::connection::ConnectionArguments;

/// What to do instead of copying to a job.
pub(crate) const NO_UPLOAD: &str = "Files are copied from jobs, not to them: submit with --snapshot to send code \
    along, or write into a running job with `cohabit exec JOB -- tee PATH < FILE`";

// Arguments of `cp`.
#[derive(Debug, Args)]
#[command(override_usage = "cohabit cp [OPTIONS] <JOB:PATH>... <DEST>")]
pub(crate) struct CpArguments {
    /// Files of jobs that run or have ended, as JOB:PATH, and at last DEST, a file or a directory on this
    /// machine, or - for the standard output. JOB is a number (12), an array member (12.5), a name, `last`,
    /// or @~1; PATH is relative to the working directory of the job, or absolute
    // One list, so that flags may come in between.
    #[arg(value_name = "PATH", required = true, num_args = 1..)]
    paths: Vec<OsString>,
    /// Copy directories with all that is in them; links in them stay links
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Rank on whose node the files are [default: 0]
    #[arg(long)]
    pub(crate) rank: Option<u32>,
    /// Largest amount of content to copy from each PATH
    #[arg(long, value_name = "SIZE", default_value_t = COPY_LIMIT)]
    pub(crate) limit: Bytes,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

impl CpArguments {
    /// What to copy, and where to.
    pub(crate) fn sources_and_destination(&self) -> Result<(Vec<JobPath>, &Path), CommandError> {
        match self.paths.split_last() {
            Some((destination, sources)) if !sources.is_empty() => {
                let read = |source: &OsString| source.to_string_lossy().parse::<JobPath>();
                let sources: Result<Vec<JobPath>, String> = sources.iter().map(read).collect();
                Ok((sources.map_err(CommandError::invalid)?, Path::new(destination)))
            }
            _ => Err(CommandError::invalid("name what to copy and where to: cohabit cp JOB:PATH DEST")),
        }
    }
}

/// A file or a directory of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobPath {
    pub(crate) job: JobRef,
    pub(crate) path: String,
}

impl FromStr for JobPath {
    type Err = String;

    fn from_str(text: &str) -> Result<JobPath, String> {
        let refuse = || {
            format!("'{text}' names no file of a job: write JOB:PATH, such as 12:out/model.pt. {NO_UPLOAD}")
        };
        let (job, path) = text.split_once(':').ok_or_else(refuse)?;
        let job = job.parse().map_err(|_| refuse())?;
        match path {
            "" => Err(format!("'{text}' has no path: write {job}:. for the working directory of the job")),
            path => Ok(JobPath { job, path: path.to_owned() }),
        }
    }
}

impl JobPath {
    /// The name that it keeps in a directory; none of the working directory itself and the like, of which
    /// only what is in them is copied.
    pub(crate) fn name(&self) -> Option<&str> {
        let last = self.path.trim_end_matches('/').rsplit('/').next()?;
        (!matches!(last, "" | "." | "..")).then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_a_job_is_a_job_and_a_path() {
        let read = |text: &str| text.parse::<JobPath>().unwrap();
        assert_eq!(read("12.5:out/a:b").path, "out/a:b");
        assert_eq!(read("last:/tmp/x").job, JobRef::Last(0));
        assert_eq!(read("train:model.pt").job, JobRef::Name("train".into()));
        let refused = |text: &str| text.parse::<JobPath>().unwrap_err();
        for text in ["model.pt", "./12:x", "/tmp/a:b", ":x", "-1:x"] {
            assert!(refused(text).contains("cohabit exec JOB -- tee PATH < FILE"), "{text}");
        }
        assert!(refused("12:").contains("write 12:."));
    }

    #[test]
    fn the_last_name_of_a_path_is_kept() {
        let name = |path: &str| JobPath { job: JobRef::Last(0), path: path.into() }.name().map(str::to_owned);
        assert_eq!(name("out/model.pt").as_deref(), Some("model.pt"));
        assert_eq!(name("/srv/out//").as_deref(), Some("out"));
        for path in [".", "..", "/", "out/.", "out/..", "./"] {
            assert_eq!(name(path), None, "{path}");
        }
    }
}
