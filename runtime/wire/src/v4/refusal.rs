//! Refusals as protocol 4 knows them. Frozen: not a variant may change.

use cohabit_types as types;
use serde::{Deserialize, Serialize};

/// The result of a change to one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeResult {
    /// It is done, or under way.
    Done,
    /// It already is so.
    Already,
    /// It cannot be done.
    Refused(Refusal),
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people.
    pub message: String,
}

/// Why something was not done, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalCode {
    /// The request makes no sense.
    Invalid,
    /// No node of the cluster can ever meet it.
    Unsatisfiable,
    /// There is no such job, node or token.
    NotFound,
    /// A name fits several jobs.
    Ambiguous,
    /// The token does not allow it.
    NotAllowed,
    /// The job is in a state in which that cannot be done.
    WrongState,
    /// The head cannot do it now; trying later may help.
    Unavailable,
    /// The head is at fault.
    Internal,
    /// What was asked cannot be written down; trying later may help.
    StorageFailed,
}

impl From<types::ChangeResult> for ChangeResult {
    fn from(result: types::ChangeResult) -> ChangeResult {
        match result {
            types::ChangeResult::Done => ChangeResult::Done,
            types::ChangeResult::Already => ChangeResult::Already,
            types::ChangeResult::Refused(refusal) => ChangeResult::Refused(refusal.into()),
        }
    }
}

impl From<types::Refusal> for Refusal {
    fn from(refusal: types::Refusal) -> Refusal {
        Refusal { code: refusal.code.into(), message: refusal.message }
    }
}

impl From<Refusal> for types::Refusal {
    fn from(refusal: Refusal) -> types::Refusal {
        types::Refusal { code: refusal.code.into(), message: refusal.message }
    }
}

impl From<types::RefusalCode> for RefusalCode {
    fn from(code: types::RefusalCode) -> RefusalCode {
        match code {
            types::RefusalCode::Invalid => RefusalCode::Invalid,
            types::RefusalCode::Unsatisfiable => RefusalCode::Unsatisfiable,
            types::RefusalCode::NotFound => RefusalCode::NotFound,
            types::RefusalCode::Ambiguous => RefusalCode::Ambiguous,
            types::RefusalCode::NotAllowed => RefusalCode::NotAllowed,
            types::RefusalCode::WrongState => RefusalCode::WrongState,
            types::RefusalCode::Unavailable | types::RefusalCode::Limit => RefusalCode::Unavailable,
            types::RefusalCode::Internal => RefusalCode::Internal,
            types::RefusalCode::StorageFailed => RefusalCode::StorageFailed,
        }
    }
}

impl From<RefusalCode> for types::RefusalCode {
    fn from(code: RefusalCode) -> types::RefusalCode {
        match code {
            RefusalCode::Invalid => types::RefusalCode::Invalid,
            RefusalCode::Unsatisfiable => types::RefusalCode::Unsatisfiable,
            RefusalCode::NotFound => types::RefusalCode::NotFound,
            RefusalCode::Ambiguous => types::RefusalCode::Ambiguous,
            RefusalCode::NotAllowed => types::RefusalCode::NotAllowed,
            RefusalCode::WrongState => types::RefusalCode::WrongState,
            RefusalCode::Unavailable => types::RefusalCode::Unavailable,
            RefusalCode::Internal => types::RefusalCode::Internal,
            RefusalCode::StorageFailed => types::RefusalCode::StorageFailed,
        }
    }
}
