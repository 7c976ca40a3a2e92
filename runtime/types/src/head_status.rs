//! How a head is set up, as its admins see it.

use serde::{Deserialize, Serialize};

use crate::{PrivateData, Span};

/// How a head is set up, as far as that decides who can do what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadStatus {
    /// The address that it listens on.
    pub listens_on: String,
    /// Whether users see the particulars of each other's jobs.
    pub private_data: PrivateData,
    /// How long a new token of a user is good for unless an admin says otherwise; for ever without it.
    pub user_token_lifetime: Option<Span>,
    /// The file with the token of the first admin.
    pub admin_token_file: TokenFileStatus,
    /// The kind of the file system that holds the journal, such as `ext4`; nothing if the system does not
    /// tell.
    pub journal_file_system: Option<String>,
}

/// Who may read a file with a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenFileStatus {
    /// There is no such file.
    Missing,
    /// It has these permissions.
    Mode(u32),
    /// Its permissions cannot be read: why.
    Unknown(String),
}
