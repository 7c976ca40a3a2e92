//! Stored code: clients store it before they submit a job that runs in a snapshot, workers and clients read
//! it.
//!
//! Everything is bounded: hashes and bytes of a request here, bytes and files of a user in their store, and
//! how many requests of one user or worker are served at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_actor::blocking;
use cohabit_store::ContentError;
use cohabit_types::{
    Bytes, CodeRequest, CodeSnapshot, ContentHash, ContentPiece, JobId, Refusal, RefusalCode, Request, Role,
};

use super::client::ClientSession;
use super::context::SessionContext;
use crate::code_store::{CodePin, CodeStore, refusal};
use crate::driver::Query;
use crate::request_limits::check_count;

/// The most pieces of one request.
const MOST_PIECES: usize = 4_096;

/// The most bytes of content of one request.
const MOST_BYTES: usize = 4 << 20;

impl ClientSession {
    /// Those of these files that are not stored for this user.
    pub(super) async fn missing_code(&self, files: Vec<ContentHash>) -> Result<Vec<ContentHash>, Refusal> {
        check_count(files.len())?;
        let store = self.own_code().await?;
        Ok(blocking(move || store.missing(&files)).await)
    }

    /// Stores these pieces; makes room for them first where there is none.
    pub(super) async fn put_code(&self, pieces: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal> {
        check_pieces(&pieces)?;
        let _permit = self.session_context.changes.permit(&self.by.user).await;
        let store = self.own_code().await?;
        let pieces = Arc::new(pieces);
        let put =
            |store: Arc<CodeStore>, pieces: Arc<Vec<ContentPiece>>| blocking(move || store.put(&pieces));
        let mut stored = put(Arc::clone(&store), Arc::clone(&pieces)).await;
        if let Err(ContentError::Full { .. }) = stored {
            self.make_room(&store, &pieces).await?;
            stored = put(store, pieces).await;
        }
        stored.map_err(|error| refusal(&error))
    }

    async fn make_room(&self, store: &Arc<CodeStore>, pieces: &[ContentPiece]) -> Result<(), Refusal> {
        let _turn = store.turn.lock().await;
        // The order matters: a submission that was pinned and is known by now is found by one of the two.
        let mut kept = store.pinned();
        let user = self.by.user.clone();
        kept.extend(self.ask(|reply_to| Query::CodeInUse(user, reply_to)).await?);
        let files: BTreeMap<ContentHash, u64> = pieces.iter().map(|piece| (piece.file, piece.size)).collect();
        let bytes = Bytes(files.values().copied().fold(0, u64::saturating_add));
        let (store, count) = (Arc::clone(store), files.len());
        let made = blocking(move || store.make_room(bytes, count, &kept)).await;
        // Whether there is room shows when the pieces are stored.
        made.map(drop).map_err(|error| refusal(&error))
    }

    /// Checks the snapshot that a submission names, and keeps it as long as the pin exists.
    pub(super) async fn pinned_code(&self, request: &Request) -> Result<Option<CodePin>, Refusal> {
        let Request::Submit(submit) = request else { return Ok(None) };
        let Some(code) = submit.spec.code.clone() else { return Ok(None) };
        let store = self.own_code().await?;
        let pin = {
            let _turn = store.turn.lock().await;
            store.pin(code.manifest)
        };
        let limits = self.session_context.limits.clone();
        blocking(move || store.check(&code, &limits)).await.map(|()| Some(pin))
    }

    /// A piece of the code of a job, which its user and admins may read.
    pub(super) async fn read_code_of(&self, request: CodeRequest) -> Result<ContentPiece, Refusal> {
        let record = self.record(request.job).await?;
        if self.by.role != Role::Admin && self.by.user != record.user {
            let (job, user) = (request.job, record.user);
            let message = format!("job {job} belongs to {user}: only its owner and admins may read its code");
            return Err(Refusal::new(RefusalCode::NotAllowed, message));
        }
        let Some(code) = record.code else { return Err(no_snapshot(request.job)) };
        let _permit = self.query_permit().await;
        let piece = read(&self.session_context, record.user, code, request).await?;
        self.pace_answer(piece.bytes.len()).await;
        Ok(piece)
    }

    async fn own_code(&self) -> Result<Arc<CodeStore>, Refusal> {
        store_of(&self.session_context, self.by.user.clone()).await
    }
}

/// A piece of this snapshot of this user.
pub(super) async fn read(
    context: &Arc<SessionContext>,
    user: String,
    code: CodeSnapshot,
    request: CodeRequest,
) -> Result<ContentPiece, Refusal> {
    let store = store_of(context, user).await?;
    let CodeRequest { job: _, file, offset } = request;
    blocking(move || store.read(&code.manifest, &file, offset)).await.map_err(|error| refusal(&error))
}

/// The refusal for a job that runs in its working directory itself.
pub(super) fn no_snapshot(job: JobId) -> Refusal {
    Refusal::new(RefusalCode::NotFound, format!("job {job} has no snapshot of its code"))
}

async fn store_of(context: &Arc<SessionContext>, user: String) -> Result<Arc<CodeStore>, Refusal> {
    let context = Arc::clone(context);
    blocking(move || context.code.of(&user)).await.map_err(|error| refusal(&error))
}

fn check_pieces(pieces: &[ContentPiece]) -> Result<(), Refusal> {
    let bytes = pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>();
    if pieces.len() <= MOST_PIECES && bytes <= MOST_BYTES {
        return Ok(());
    }
    let (pieces, bytes, most) = (pieces.len(), Bytes(bytes as u64), Bytes(MOST_BYTES as u64));
    let message = format!(
        "the request carries {bytes} in {pieces} pieces, and at most {most} in {MOST_PIECES} are allowed: send \
         several"
    );
    Err(Refusal::new(RefusalCode::Invalid, message))
}
