//! Gives up stored code that nobody has used for long.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cohabit_actor::{Actor, ActorFailure, Address, Context, blocking};
use cohabit_types::Span;

use crate::code_store::CodeStores;
use crate::driver::{Message, Query};

/// How often.
const INTERVAL: Duration = Duration::from_secs(3_600);

/// The actor that looks after all stores.
pub(crate) struct CodeCleaner {
    pub(crate) stores: Arc<CodeStores>,
    pub(crate) driver: Address<Message>,
    /// How long code is kept after its last use: as long as jobs that have ended may be queued again.
    pub(crate) retention: Span,
}

/// Look at every store.
pub(crate) struct Clean;

impl Actor for CodeCleaner {
    type Message = Clean;

    async fn started(&mut self, context: &mut Context<CodeCleaner>) -> Result<(), ActorFailure> {
        context.send_every(INTERVAL, || Clean);
        Ok(())
    }

    async fn handle(&mut self, _: Clean, _: &mut Context<CodeCleaner>) -> Result<(), ActorFailure> {
        let stores = Arc::clone(&self.stores);
        for user in blocking(move || stores.users()).await {
            self.clean(user).await;
        }
        Ok(())
    }
}

impl CodeCleaner {
    async fn clean(&self, user: String) {
        let (stores, name) = (Arc::clone(&self.stores), user.clone());
        let store = match blocking(move || stores.of(&name)).await {
            Ok(store) => store,
            Err(error) => return tracing::warn!(user, %error, "the stored code of a user cannot be read"),
        };
        let _turn = store.turn.lock().await;
        let mut kept = store.pinned();
        // Without an answer the head is stopping, or its state is broken: nothing is given up.
        let asked = self.driver.ask(|reply_to| Message::Query(Query::CodeInUse(user, reply_to))).await;
        let Ok(in_use) = asked else { return };
        kept.extend(in_use);
        let before = SystemTime::now().checked_sub(self.retention.into());
        let expiring = Arc::clone(&store);
        let Some(before) = before else { return };
        if let Err(error) = blocking(move || expiring.expire(before, &kept)).await {
            tracing::warn!(%error, "no stored code of a user is given up");
        }
    }
}
