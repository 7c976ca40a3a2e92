//! Copies of files of jobs: the head says with whose rights its worker is to read them, and passes the
//! pieces.
//!
//! The rights are those that a new job of the owner would have now. So nobody gets by a copy what a job of
//! theirs could not read, and a right that was taken away is gone for old jobs, too. An admin reads the files
//! of others with the rights of these, and never those of a job with all rights.

use cohabit_actor::ReplyTo;
use cohabit_types::{
    COPY_PIECE, CopyId, CopyPiece, CopyRead, CopyRequest, FileCopyOrder, FollowMode, JobRecord, RankId,
    Refusal, RefusalCode, Role, TokenRecord,
};

use super::client::ClientSession;
use crate::driver::{CopyMessage, WorkerSessionMessage};

/// What is done with files of a job.
const COPYING: &str = "copy its files";

impl ClientSession {
    pub(super) async fn pass_copy(&self, request: CopyRequest) -> Result<(), Refusal> {
        request.check().map_err(|why| Refusal::new(RefusalCode::Invalid, why))?;
        let rank = request.id.rank;
        let record = self.own_record(rank, COPYING).await?;
        let order = Box::new(self.copy_order(request, record));
        self.ask_for_copy(rank, |reply_to| CopyMessage::Start(order, reply_to)).await
    }

    /// A long poll, which takes a turn of its user only for bytes that are there, as that of a connection.
    pub(super) async fn find_copy_piece(&self, read: CopyRead) -> Result<CopyPiece, Refusal> {
        let ask = |read: CopyRead| async move {
            let ask = move |reply_to| CopyMessage::Read(read, reply_to);
            bounded(self.ask_for_copy(read.id.rank, ask).await?)
        };
        let turn = self.session_context.forwards.passed.permit(&self.by.user).await;
        let piece = ask(CopyRead { at_end: FollowMode::Return, ..read }).await?;
        drop(turn);
        match read.at_end {
            FollowMode::Wait if piece.bytes.is_empty() && !piece.is_last => ask(read).await,
            FollowMode::Wait | FollowMode::Return => Ok(piece),
        }
    }

    pub(super) async fn pass_copy_end(&self, id: CopyId) -> Result<(), Refusal> {
        self.ask_for_copy(id.rank, |reply_to| CopyMessage::End(id, reply_to)).await
    }

    fn copy_order(&self, request: CopyRequest, record: JobRecord) -> FileCopyOrder {
        let (account, role) = match self.by.user == record.user {
            true => (self.by.account.clone(), self.by.role),
            false => (account_of(&record.user, &self.session_context.tokens.list()), Role::User),
        };
        // A part of an application does not start in the copy of its code.
        let code = record.code.as_ref().filter(|_| record.application.is_none());
        let code_workdir = code.and_then(|code| code.relative(&record.workdir)?.to_str().map(str::to_owned));
        FileCopyOrder {
            request,
            user: self.by.user.clone(),
            account: account.unwrap_or(record.user),
            role,
            workdir: record.workdir,
            code_workdir,
        }
    }

    async fn ask_for_copy<T: Send + 'static>(
        &self,
        rank: RankId,
        question: impl FnOnce(ReplyTo<Result<T, Refusal>>) -> CopyMessage,
    ) -> Result<T, Refusal> {
        let question = |reply_to| WorkerSessionMessage::Copy(question(reply_to));
        self.ask_by_route(rank, COPYING, "files", question).await
    }
}

/// The account as which jobs of this user run, where it is not named like the user.
fn account_of(user: &str, tokens: &[TokenRecord]) -> Option<String> {
    tokens.iter().find(|token| token.name == user)?.account.clone()
}

/// Root on one worker may send anything, and must not fill the memory of the head.
fn bounded(piece: CopyPiece) -> Result<CopyPiece, Refusal> {
    match piece.bytes.len() <= COPY_PIECE {
        true => Ok(piece),
        false => Err(Refusal::new(
            RefusalCode::Internal,
            format!("the worker sent more than the {COPY_PIECE} bytes of a piece"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Time;

    use super::*;

    #[test]
    fn the_account_of_a_user_is_that_of_their_token() {
        let token = |name: &str, account: Option<&str>| TokenRecord {
            name: name.into(),
            role: Role::User,
            account: account.map(str::to_owned),
            node: None,
            created_at: Time::EPOCH,
            expires_at: None,
        };
        let tokens = [token("ada", Some("lovelace")), token("bea", None)];
        assert_eq!(account_of("ada", &tokens).as_deref(), Some("lovelace"));
        assert_eq!((account_of("bea", &tokens), account_of("gone", &tokens)), (None, None));
    }

    #[test]
    fn a_worker_that_sends_more_than_a_piece_is_not_believed() {
        let piece = |bytes: usize| bounded(CopyPiece { bytes: vec![0; bytes], is_last: false });
        assert!(piece(COPY_PIECE).is_ok());
        assert_eq!(piece(COPY_PIECE + 1).unwrap_err().code, RefusalCode::Internal);
    }
}
