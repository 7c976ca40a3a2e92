//! A job as it is submitted: its checked specification and the key by which the head knows it again.

use cohabit_types::JobSpec;
use uuid::Uuid;

use crate::Error;

/// A job that can be submitted, as often as it takes: the head makes one job of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    spec: JobSpec,
    key: String,
}

impl Submission {
    /// Takes a specification that can be run, under a key of its own.
    ///
    /// # Errors
    /// [`Error::InvalidJob`] says what is wrong with it, and what to do.
    pub fn new(spec: JobSpec) -> Result<Submission, Error> {
        spec.check().map_err(Error::InvalidJob)?;
        Ok(Submission { spec, key: new_key() })
    }

    /// The same under this key: two submissions of one user with the same key are one job, also across
    /// programs.
    #[must_use]
    pub fn with_key(self, key: impl Into<String>) -> Submission {
        Submission { key: key.into(), ..self }
    }

    /// What is run.
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
