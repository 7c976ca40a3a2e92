//! The question before a change, and what came of it.

use askama::Template;
use cohabit_client::types::{JobChange, JobRecord};

use super::line;
use super::state_badge::StateBadge;

/// The question before a change.
#[derive(Template)]
#[template(path = "confirmation.html")]
pub(crate) struct Confirmation {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) state: StateBadge,
    pub(crate) verb: &'static str,
    pub(crate) consequence: &'static str,
    pub(crate) members: Option<u64>,
}

impl Confirmation {
    pub(crate) fn new(job: &JobRecord, change: JobChange) -> Confirmation {
        Confirmation {
            id: job.id.to_string(),
            name: line(&job.name),
            user: line(&job.user),
            state: job.state.into(),
            verb: change.verb(),
            consequence: consequence(change),
            members: job.array.as_ref().map(|array| array.members),
        }
    }
}

const fn consequence(change: JobChange) -> &'static str {
    match change {
        JobChange::Cancel => "A running job gets its stop signal and ends. A waiting job never starts.",
        JobChange::Hold => "It does not start until it is released.",
        JobChange::Release => "It may start when its turn comes.",
        JobChange::Requeue => {
            "A running job is stopped first. The next attempt starts from its last checkpoint, if it writes any."
        }
        JobChange::Kill => "It ends at once, without its stop signal.",
        JobChange::Withdraw => "Its application does not need it any more.",
    }
}

/// Why a page cannot be shown, or a change was not made.
#[derive(Template)]
#[template(path = "failure.html")]
pub(crate) struct Failure<'a> {
    pub(crate) assets: &'a str,
    pub(crate) title: &'a str,
    pub(crate) why: &'a str,
}

/// The same inside a page.
#[derive(Template)]
#[template(path = "problem.html")]
pub(crate) struct Problem<'a> {
    pub(crate) title: &'a str,
    pub(crate) why: &'a str,
}
