//! How the head is set up, for admins. The files are looked at on a blocking thread, at the time of the
//! question.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_actor::blocking;
use cohabit_types::{HeadStatus, Principal, Refusal, TokenFileStatus};

use super::context::SessionContext;
use super::permission::check_admin;
use crate::state_dir::file_system;

/// What does not change while the head runs.
#[derive(Debug)]
pub(crate) struct HeadSetup {
    pub(crate) address: SocketAddr,
    pub(crate) admin_token: PathBuf,
    pub(crate) journal: PathBuf,
}

/// The present status.
pub(super) async fn status(by: &Principal, context: &Arc<SessionContext>) -> Result<HeadStatus, Refusal> {
    check_admin(by, "see how the head is set up")?;
    let shared = Arc::clone(context);
    let files = blocking(move || {
        let setup = &shared.setup;
        (token_file(&setup.admin_token), file_system::kind(&setup.journal))
    });
    let (admin_token_file, journal_file_system) = files.await;
    Ok(HeadStatus {
        listens_on: context.setup.address.to_string(),
        private_data: context.private_data,
        user_token_lifetime: context.user_token_lifetime,
        admin_token_file,
        journal_file_system,
    })
}

fn token_file(path: &Path) -> TokenFileStatus {
    match path.metadata() {
        Ok(metadata) => TokenFileStatus::Mode(metadata.mode() & 0o777),
        Err(error) if error.kind() == io::ErrorKind::NotFound => TokenFileStatus::Missing,
        Err(error) => TokenFileStatus::Unknown(error.to_string()),
    }
}
