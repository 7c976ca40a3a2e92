//! What every session needs of the head.

use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::Address;
use cohabit_net::{NodeCredentials, TokenStore};
use cohabit_types::{Bytes, NodeId, PrivateData, Span};
use tokio::sync::watch;

use super::answer_pacer::AnswerPacer;
use super::forward_limits::ForwardLimits;
use super::status::HeadSetup;
use super::user_limiter::UserLimiter;
use crate::RequestLimits;
use crate::application_questions::ApplicationQuestions;
use crate::code_store::CodeStores;
use crate::driver::Message;
use crate::history::HistoryReader;
use crate::rates::SharedRates;
use crate::update_log::UpdateLog;
use crate::watchers::Watchers;

/// The handles that every session needs. Sessions and their calls share them by one reference: to clone a
/// dozen handles for each call is measurable, because all threads write their counts.
pub(crate) struct SessionContext {
    pub(crate) driver: Address<Message>,
    pub(crate) watchers: Watchers,
    pub(crate) updates: UpdateLog,
    pub(crate) history: HistoryReader,
    /// Changes when the feed was written to.
    pub(crate) feed: watch::Receiver<()>,
    pub(crate) tokens: TokenStore,
    pub(crate) credentials: NodeCredentials,
    /// How long ended jobs stay in memory.
    pub(crate) memory: Span,
    /// How long `Watch` waits for a change.
    pub(crate) watch_limit: Duration,
    /// A worker that is silent for longer is gone.
    pub(crate) silence_limit: Duration,
    /// Bounds the queries of each user that are answered at once.
    pub(crate) queries: UserLimiter,
    /// Bounds the changes of jobs by each user that are made at once.
    pub(crate) changes: UserLimiter,
    /// Bounds the bytes of connections to ports of jobs of each user.
    pub(crate) forwards: ForwardLimits,
    /// Bounds the bytes of answers for each user.
    pub(crate) answers: AnswerPacer,
    /// Bounds how often each node joins.
    pub(crate) joins: SharedRates<NodeId>,
    /// Bounds how often the log says of each token that a worker with it was refused.
    pub(crate) refusal_lines: SharedRates<String>,
    /// The stored code of users.
    pub(crate) code: Arc<CodeStores>,
    /// What users ask the coordinators of their applications.
    pub(crate) application_questions: ApplicationQuestions,
    /// The directory for checkpoints of jobs that name none; without it their workers keep them.
    pub(crate) checkpoint_directory: Option<String>,
    /// The most checkpoints that are carried from one worker to another.
    pub(crate) checkpoint_limit: Bytes,
    /// The limits of requests.
    pub(crate) limits: RequestLimits,
    /// Whether users see the particulars of each other's jobs.
    pub(crate) private_data: PrivateData,
    /// How long a new token of a user is good for unless an admin says otherwise; none if for ever.
    pub(crate) user_token_lifetime: Option<Span>,
    /// What admins may ask about this head.
    pub(crate) setup: HeadSetup,
}
