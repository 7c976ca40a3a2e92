//! A submission: a checked specification and its idempotency key.

use cohabit_types::{CodeSnapshot, JobSpec};
use uuid::Uuid;

use crate::Error;

/// A job to submit. Submitted more than once, it is still one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    spec: JobSpec,
    key: String,
}

impl Submission {
    /// A submission of this specification, with a new key.
    ///
    /// # Errors
    /// [`Error::InvalidJob`] says what is wrong with it, and what to do.
    pub fn new(spec: JobSpec) -> Result<Submission, Error> {
        spec.check().and_then(|()| spec.check_name()).map_err(Error::InvalidJob)?;
        Ok(Submission { spec, key: new_key() })
    }

    /// The same submission with this key: two submissions of one user with the same key are one job, also
    /// across programs.
    #[must_use]
    pub fn with_key(self, key: impl Into<String>) -> Submission {
        Submission { key: key.into(), ..self }
    }

    /// The same submission of a job that runs in this snapshot of its code.
    ///
    /// # Errors
    /// [`Error::InvalidJob`] if its working directory does not lie in the folder of the snapshot.
    pub fn with_code(self, code: CodeSnapshot) -> Result<Submission, Error> {
        let spec = JobSpec { code: Some(code), ..self.spec };
        spec.check().map_err(Error::InvalidJob)?;
        Ok(Submission { spec, ..self })
    }

    /// The specification.
    #[must_use]
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// The idempotency key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

fn new_key() -> String {
    Uuid::now_v7().to_string()
}
